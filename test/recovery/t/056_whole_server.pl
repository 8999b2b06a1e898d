# What goes through all tables of all databases passes over undo, whoever owns
# the database; and undo that goes, or comes, with the extension in a transaction
# that is rolled back.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('whole', conf => "default_table_access_method = inplace\n");
$node->start;
one($node, 'CREATE ROLE somebody LOGIN');
my $make = q{
	CREATE TABLE t (id int PRIMARY KEY, v text);
	CREATE INDEX t_v ON t (v);
	INSERT INTO t SELECT i, 'x' || i FROM generate_series(1, 1000) i;
	CREATE UNLOGGED TABLE u AS SELECT * FROM t;
	CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM t;
	CLUSTER t USING t_pkey;
	UPDATE t SET v = 'y' WHERE id < 100;
	UPDATE u SET v = 'y' WHERE id < 100;};
foreach my $db ('mine', 'theirs')
{
	one($node, "CREATE DATABASE $db" . ($db eq 'mine' ? '' : ' OWNER somebody'));
	$node->safe_psql($db, "CREATE EXTENSION inplace; $make");
}
$node->safe_psql('theirs', q{
	GRANT CREATE, USAGE ON SCHEMA public TO somebody;
	SET ROLE somebody;
	CREATE TABLE own (id int PRIMARY KEY, v text);
	INSERT INTO own SELECT i, 'x' || i FROM generate_series(1, 1000) i;
	UPDATE own SET v = 'y' WHERE id < 100;});
one($node, "CREATE DATABASE copy TEMPLATE theirs OWNER somebody");

my %rows = map { my $db = $_; $db => join(' ', map { contents($node, $_, $db) } 't', 'u') } ('mine', 'theirs', 'copy');
sub same
{
	my ($what) = @_;
	foreach my $db (sort keys %rows)
	{
		is(join(' ', map { contents($node, $_, $db) } 't', 'u'), $rows{$db}, "$what: the rows of $db are the same");
		check_clean($node, "$what: $db", $db);
		is(one($node, q{BEGIN; UPDATE t SET v = 'z'; UPDATE u SET v = 'z'; ROLLBACK}, $db), '', "$what: tables of $db can be changed");
	}
}

# ---- by a superuser

$node->command_ok([ @$_ ], "@$_") foreach (
	[ 'vacuumdb', '--all', '--quiet' ], [ 'vacuumdb', '--all', '--quiet', '--full' ],
	[ 'vacuumdb', '--all', '--quiet', '--full', '--analyze' ], [ 'vacuumdb', '--all', '--quiet', '--freeze', '--analyze' ],
	[ 'vacuumdb', '--all', '--quiet', '--analyze-in-stages' ],
	[ 'reindexdb', '--all', '--quiet' ], [ 'reindexdb', '--all', '--quiet', '--concurrently' ],
	[ 'clusterdb', '--all', '--quiet' ]);
is(one($node, $_, 'mine'), '', $_) foreach (
	'VACUUM FULL', 'VACUUM (FULL, ANALYZE)', 'VACUUM FULL inplace.undo_log_unlogged', 'VACUUM FULL inplace.undo_log, t, inplace.undo_log_unlogged, u',
	'VACUUM', 'ANALYZE', 'CLUSTER', 'REINDEX DATABASE mine', 'REINDEX SCHEMA inplace');
like(sqlstate_of($node, $_, 'mine'), qr/ 0A000: .*undo/, $_) foreach ('REFRESH MATERIALIZED VIEW inplace.undo_log', 'REFRESH MATERIALIZED VIEW inplace.undo_log WITH NO DATA');
same('superuser');

# ---- by who owns the database, and nothing of the extension

$node->command_ok([ @$_ ], "@$_") foreach (
	[ 'vacuumdb', '--quiet', '--full', '-U', 'somebody', 'theirs' ], [ 'vacuumdb', '--quiet', '--analyze', '-U', 'somebody', 'theirs' ],
	[ 'reindexdb', '--quiet', '-U', 'somebody', 'theirs' ]);
like(sqlstate_of($node, "SET ROLE somebody; $_", 'theirs'), qr/ 42501: /, "somebody: $_") foreach (
	'REFRESH MATERIALIZED VIEW inplace.undo_log', 'DROP MATERIALIZED VIEW inplace.undo_log', 'DROP EXTENSION inplace CASCADE', 'BEGIN; LOCK TABLE inplace.undo_log_unlogged',
	'SELECT * FROM inplace.undo_log_unlogged');
same('somebody');

# ---- owners

$node->safe_psql('theirs', 'CREATE ROLE heir; REASSIGN OWNED BY somebody TO heir; ALTER MATERIALIZED VIEW inplace.undo_log OWNER TO heir; ALTER TABLE inplace.undo_log_unlogged OWNER TO heir');
like(sqlstate_of($node, "SET ROLE heir; $_", 'theirs'), qr/ 0A000: .*undo| 2BP01: /, "heir: $_") foreach (
	'REFRESH MATERIALIZED VIEW inplace.undo_log', 'REFRESH MATERIALIZED VIEW inplace.undo_log WITH NO DATA', 'DROP MATERIALIZED VIEW inplace.undo_log CASCADE',
	'TRUNCATE inplace.undo_log_unlogged', 'INSERT INTO inplace.undo_log_unlogged DEFAULT VALUES');
like(sqlstate_of($node, 'DROP OWNED BY heir', 'theirs'), qr/ 2BP01: /, 'DROP OWNED BY heir');
$node->safe_psql('theirs', 'REASSIGN OWNED BY heir TO CURRENT_USER; DROP OWNED BY heir; DROP OWNED BY somebody');
same('owners');

# ---- dumped and restored as a whole

$node->command_ok([ 'pg_dumpall', '--file', $node->basedir . '/all.sql' ], 'pg_dumpall');
unlike(slurp_file($node->basedir . '/all.sql'), qr/CREATE (MATERIALIZED VIEW|UNLOGGED TABLE) inplace\.|REFRESH MATERIALIZED VIEW inplace\./, 'no undo in the dump');
my $other = new_node('other', conf => "default_table_access_method = heap\n");
$other->start;
# (the role is there already)
$other->command_ok([ 'psql', '-X', '-q', '-d', 'postgres', '-f', $node->basedir . '/all.sql' ], 'restored');
foreach my $db (sort keys %rows)
{
	is(join(' ', map { contents($other, $_, $db) } 't', 'u'), $rows{$db}, "restored: the rows of $db are the same");
	is(one($other, q{SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 't'}, $db), 'inplace', "restored: $db has an inplace table");
	check_clean($other, "restored: $db", $db);
}
$other->stop;
check_log($other);

# ---- the extension goes and comes back

# It takes the indexes of its method before their tables, as DROP EXTENSION does with
# those of any extension's operator classes; autovacuum takes the table first, and one
# of the two would be told of a deadlock.
stop_autovacuum($node);
my $again = q{DROP EXTENSION inplace CASCADE; CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, 'new' FROM generate_series(1, 500) i; UPDATE t SET v = 'newer';
	CREATE UNLOGGED TABLE u AS SELECT * FROM t; UPDATE u SET v = 'newer';};
my $drop = 'SET client_min_messages = error; BEGIN; ';
is(one($node, "$drop $_", 'mine'), '', $_) foreach (
	q{UPDATE t SET v = 'z'; DROP EXTENSION inplace CASCADE; ROLLBACK},
	"$again ROLLBACK",
	"UPDATE t SET v = 'z'; UPDATE u SET v = 'z'; $again ROLLBACK",
	"SAVEPOINT a; $again ROLLBACK TO a; UPDATE t SET v = 'z'; UPDATE u SET v = 'z'; ROLLBACK",
	"UPDATE t SET v = 'z'; UPDATE u SET v = 'z'; SAVEPOINT a; $again SAVEPOINT b; UPDATE t SET v = 'b'; ROLLBACK TO b; UPDATE t SET v = 'c'; ROLLBACK TO a; UPDATE t SET v = 'zz'; ROLLBACK");
same('rolled back');
is(one($node, "$drop UPDATE t SET v = 'z'; SAVEPOINT a; $again ROLLBACK TO a; UPDATE t SET v = v || 'zz'; COMMIT; SELECT count(*), min(v), max(v) FROM t", 'mine'), '1000|zzz|zzz', 'what is around it is committed');
is(one($node, "$drop UPDATE t SET v = 'z'; SAVEPOINT a; $again SAVEPOINT b; UPDATE t SET v = 'b'; ROLLBACK TO b; RELEASE a; UPDATE t SET v = v || 'c'; COMMIT; SELECT count(*), min(v), max(v) FROM t", 'mine'),
	'500|newerc|newerc', 'a new one');
is(one($node, "$drop UPDATE t SET v = 'z'; $again PREPARE TRANSACTION 'again'", 'mine'), '', 'in a prepared transaction');
is(one($node, q{ROLLBACK PREPARED 'again'; SELECT count(*), min(v), max(v) FROM t}, 'mine'), '500|newerc|newerc', '... that is rolled back');
is(one($node, "$drop UPDATE t SET v = 'z'; $again PREPARE TRANSACTION 'again'", 'mine'), '', 'in another');
$node->stop('immediate');
$node->start;
is(one($node, q{COMMIT PREPARED 'again'; SELECT count(*), min(v), max(v) FROM t}, 'mine'), '500|newer|newer', '... that is committed after a crash');
is(one($node, q{UPDATE t SET v = v || 'est'; SELECT count(*), min(v), max(v) FROM t}, 'mine'), '500|newerest|newerest', 'and its tables can be changed');
check_clean($node, 'at the end', 'mine');
undo_floor_reached($node, 'at the end', 30, 'mine');
$node->stop;
check_log($node);
done_testing();
