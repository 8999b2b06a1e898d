# A dump comes back, without an error, into a database whose template has the extension
# already; and whatever privileges have been changed of the extension's objects.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";

use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

# (DROP EXTENSION may be in a deadlock with it: 056)
my $node = new_node('template', conf => "autovacuum = off\n");
$node->start;

one($node, $_, 'template1') foreach ('CREATE EXTENSION inplace', 'CREATE TABLE of_template (a int PRIMARY KEY) USING inplace');
one($node, 'CREATE DATABASE mine');
one($node, 'CREATE ROLE reader');
one($node, $_, 'mine') foreach (
	'DROP TABLE of_template',
	'CREATE TABLE t (id int PRIMARY KEY, v text, n int) USING inplace',
	'CREATE INDEX t_n ON t (n)',
	q{INSERT INTO t SELECT g, 'v' || g, g % 10 FROM generate_series(1, 200) g},
	'UPDATE t SET n = n + 1 WHERE id % 2 = 0',
	q{SELECT inplace.set_freeze_options('t', false, 60)},
	'CREATE VIEW v AS SELECT relid, moved_updates FROM inplace.stat_tables',
	'REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA inplace FROM PUBLIC',
	q{GRANT EXECUTE ON FUNCTION inplace."check"(regclass, boolean) TO reader},
	'REVOKE SELECT ON inplace.undo FROM PUBLIC',
	'GRANT SELECT ON inplace.undo TO reader');

my $state = q{
	SELECT (SELECT string_agg(c.relname || ' ' || a.amname, ', ' ORDER BY c.relname) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
			WHERE c.relnamespace = 'public'::regnamespace),
		(SELECT label FROM pg_seclabel WHERE provider = 'inplace'),
		has_function_privilege('reader', 'inplace.check(regclass, boolean)', 'EXECUTE'),
		has_function_privilege('reader', 'inplace.undo_size()', 'EXECUTE'),
		has_table_privilege('reader', 'inplace.undo', 'SELECT'), has_table_privilege('public', 'inplace.undo', 'SELECT'),
		has_schema_privilege('public', 'inplace', 'USAGE'),
		(SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'inplace'),
		(SELECT deptype FROM pg_depend WHERE classid = 'pg_namespace'::regclass AND objid = 'inplace'::regnamespace AND refclassid = 'pg_extension'::regclass)};
my $before = one($node, $state, 'mine');
is($before, "t inplace, t_n inplace_btree, t_pkey btree|adaptive_freezing=off, target_freeze_duration=60|t|f|t|f|t|pg_catalog|e", 'before');
my $rows = contents($node, 't', 'mine');

foreach my $format ('plain', 'custom', 'directory')
{
	my $file = $node->basedir . "/dump.$format";
	$node->command_ok([ 'pg_dump', "--format=$format", '--file', $file, 'mine' ], "pg_dump, $format");
	foreach my $template ('template1', 'template0')
	{
		my $db = "${format}_$template";
		one($node, "CREATE DATABASE $db TEMPLATE $template");
		one($node, 'DROP TABLE of_template', $db) if $template eq 'template1';
		my @restore = $format eq 'plain' ? ('psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $db, '-f', $file) :
		  ('pg_restore', ($format eq 'directory' ? '--jobs=2' : ()), '--exit-on-error', '--dbname', $db, $file);
		$node->command_ok(\@restore, "$db: restored without an error");
		is(one($node, $state, $db), $before, "$db: the same");
		is(contents($node, 't', $db), $rows, "$db: the same rows");
		check_clean($node, $db, $db);
	}
}
# over what is there
$node->command_ok([ 'pg_restore', '--clean', '--if-exists', '--exit-on-error', '--dbname', 'custom_template1', $node->basedir . '/dump.custom' ], 'pg_restore --clean');
is(one($node, $state, 'custom_template1'), $before, '--clean: the same');
is(contents($node, 't', 'custom_template1'), $rows, '--clean: the same rows');
unlike(slurp_file($node->basedir . '/dump.plain'), qr/CREATE SCHEMA inplace/, 'the schema is not in the dump');

# the whole server, onto one whose template has the extension, too
$node->command_ok([ 'pg_dumpall', '--file', $node->basedir . '/all.sql' ], 'pg_dumpall');
my $other = new_node('other');
$other->start;
one($other, 'CREATE EXTENSION inplace', $_) foreach ('template1', 'postgres');
# (this role is there already)
$other->command_ok([ 'sh', '-c', "sed '/^CREATE ROLE [^r]/d' '" . $node->basedir . "/all.sql' | psql -X -q -v ON_ERROR_STOP=1 -d postgres" ], 'restored without an error');
is(one($other, $state, 'mine'), $before, 'pg_dumpall: the same');
is(contents($other, 't', 'mine'), $rows, 'pg_dumpall: the same rows');
$other->stop;
check_log($other);

# when the extension goes its schema does, and it can come back
is(one($node, 'SET client_min_messages = error; DROP EXTENSION inplace CASCADE; CREATE EXTENSION inplace', 'plain_template0'), '', 'dropped and created again');

# ---- what a session knows of the extension is not older than the table it uses
one($node, 'CREATE DATABASE late TEMPLATE template0');
one($node, 'CREATE SCHEMA inplace; CREATE TABLE inplace.undo_log (a int); INSERT INTO inplace.undo_log VALUES (1)', 'late');
my $session = psql_session($node, 'late');
$session->query_safe('BEGIN');
is($session->query_safe('SELECT a FROM inplace.undo_log'), '1', 'a session without the extension');
$session->query_safe('COMMIT');
is(one($node, q{DROP SCHEMA inplace CASCADE; CREATE EXTENSION inplace; CREATE TABLE t (id int, v int) USING inplace; INSERT INTO t SELECT g, g FROM generate_series(1, 100) g;
	CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (old.v, new.v); RETURN NULL; END'; CREATE TABLE log (o int, n int);
	CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()}, 'late'), '', 'another makes it');
is($session->query_safe('UPDATE t SET v = v + 1 WHERE id = 1; UPDATE t SET v = v + 1 WHERE id = 1 RETURNING ctid, v'), '(0,1)|3', 'now with it');
is($session->query_safe(q{CREATE INDEX t_v ON t (v); SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 't_v'}), 'inplace_btree', 'and its indexes');
$session->query_safe('BEGIN; UPDATE t SET v = v + 1 WHERE id < 3');
is($session->query_safe('UPDATE t SET v = v + 1 WHERE id < 3; COMMIT; SELECT string_agg(o || n::text, $$ $$ ORDER BY o, n) FROM log'), '12 23 23 34 34 45', 'its triggers');
is(one($node, 'SET client_min_messages = error; DROP EXTENSION inplace CASCADE; CREATE SCHEMA inplace; CREATE TABLE inplace.undo_log (a int)', 'late'), '', 'and it goes again');
is($session->query_safe('ALTER TABLE inplace.undo_log RENAME TO x; CREATE TABLE u (a int, b int); CREATE INDEX u_a ON u (a); UPDATE u SET b = 1 RETURNING ctid; SELECT count(*) FROM log'), '6', 'without it once more');
$session->quit;

# no undo worker has anything to do with tables that are called so
my $no_worker = q{SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'late' AND backend_type = 'inplace undo worker'};
ok(defined poll_value($node, $no_worker, 60), 'the worker has gone with the extension');
$node->restart;
is(one($node, 'SELECT count(*) FROM inplace.x', 'late'), '0', 'after a restart');
ok(defined poll_value($node, $no_worker, 60), 'the worker that has looked is gone');
is(one($node, 'DROP DATABASE late'), '', 'dropped');
unlike(slurp_file($node->logfile), qr/is not an undo page|block 0 of relation/, 'no worker has failed');
$node->stop;
check_log($node);
done_testing();
