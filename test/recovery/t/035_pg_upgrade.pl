# pg_upgrade, from the server in INPLACE_UPGRADE_FROM (an older one; without it
# this server's own version), by copy and by link: undo, rows that lead into it,
# rollbacks that are still to be restored, maps, and transaction ids that go
# round soon afterwards.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $from = $ENV{INPLACE_UPGRADE_FROM} // '';
my ($newbin) = map { chomp(my $d = `$_ --bindir`); $d } 'pg_config';
my $oldbin = $from ? "$from/bin" : $newbin;
chomp(my $oldversion = `$oldbin/pg_config --version`);
note "from $oldversion";
my @path = $from ? (install_path => $from) : ();
# Checksums are what the newer initdb has them on by default.
my @checksums = ('--data-checksums');

# Without worker processes, which are who restores what was rolled back.
my $conf = "autovacuum = off\nwal_consistency_checking = ''\n";
my $lazy = "max_worker_processes = 0\n";

my $old = new_node('old', @path, extra => \@checksums, conf => $conf);

# The next xid is so near its end that ids go round after the upgrade.
my $near = 4294967296 - 150_000;
sub zero_file
{
	my ($file) = @_;
	open(my $fh, '>', $file) or die "$file: $!";
	binmode $fh;
	print $fh "\0" x (32 * 8192);
	close $fh;
}
$old->start;
$old->safe_psql('postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS true');
$old->command_ok([ 'vacuumdb', '--all', '--freeze', '--quiet' ], 'old cluster frozen');
$old->safe_psql('postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS false');
$old->safe_psql('postgres', 'VACUUM FREEZE pg_database');
$old->stop;
zero_file(sprintf('%s/pg_xact/%04X', $old->data_dir, int($near / 32768 / 32)));
zero_file(sprintf('%s/pg_subtrans/%04X', $old->data_dir, int($near / 2048 / 32)));
command_ok([ "$oldbin/pg_resetwal", '-f', '-x', $near, '-u', $near - 1000, $old->data_dir ], 'next xid of the old cluster');
$old->start;
# Nothing has been touched since it was frozen.  Were that said to be of an xid
# that is yet to come, the commit log would be cut off when it has come.
$old->safe_psql('postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS true');
$old->safe_psql($_, "UPDATE pg_class SET relfrozenxid = '$near' WHERE relfrozenxid <> 0") foreach qw(template0 template1 postgres);
$old->safe_psql('postgres', "UPDATE pg_database SET datfrozenxid = '$near'; ALTER DATABASE template0 ALLOW_CONNECTIONS false");
$old->safe_psql('postgres', $_) foreach (
	'CREATE EXTENSION inplace',
	'CREATE TABLE t (id int PRIMARY KEY, a int, v text, c char(30)) USING inplace',
	'CREATE INDEX t_a ON t USING inplace_btree (a)',
	q{INSERT INTO t SELECT i, i, 'v' || i, 'c' || i FROM generate_series(1, 3000) i},
	'CREATE TABLE calm (id int PRIMARY KEY, v text) USING inplace',
	q{INSERT INTO calm SELECT i, repeat('calm', i % 20) FROM generate_series(1, 3000) i},
	'VACUUM (FREEZE) calm',
	kinds_of_tables(),
	# columns of every shape that are dropped: pg_upgrade forgets their types
	'CREATE TABLE holes (a bool, d1 int, b "char", d2 bigint, c text, d3 smallint, d char(20), d4 bool, e interval, d5 text, f numeric, d6 macaddr8, g name, d7 interval, h int2, d8 char(20), i text, d9 uuid, j float8, d10 name, k text)',
	q{INSERT INTO holes SELECT i % 2 = 0, i, 'x', i * 1000, 'c' || i, i, 'd' || i, true, i * '1 min'::interval, repeat('t', i), i / 7.0, macaddr8 '08:00:2b:01:02:03:04:05',
		'g' || i, '1 day', i, 'blank', repeat('i', i * 10), gen_random_uuid(), i / 3.0, 'n', 'k' || i FROM generate_series(1, 200) i},
	map("ALTER TABLE holes DROP d$_", 1 .. 10),
	# operator classes that are not the server's
	'CREATE EXTENSION citext',
	'CREATE FUNCTION cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$SELECT btint4cmp($2, $1)$$',
	'CREATE OPERATOR CLASS backwards FOR TYPE int USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 cmp(int, int)',
	'CREATE OPERATOR CLASS own FOR TYPE int USING inplace_btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 cmp(int, int)',
	# a namesake of btree, the other way round, with a family of that name, too, in which there is one with a mirror
	'CREATE OPERATOR CLASS own FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int)',
	'CREATE OPERATOR CLASS zother FOR TYPE int USING btree FAMILY own AS STORAGE int',
	'CREATE TABLE classes (a int, c citext) USING inplace',
	q{INSERT INTO classes SELECT i, 'C' || i FROM generate_series(1, 500) i},
	'CREATE INDEX classes_back ON classes USING inplace_btree (a backwards, c citext_pattern_ops)',
	'CREATE INDEX classes_own ON classes USING inplace_btree (a own)',
	'CREATE INDEX classes_own_btree ON classes USING btree (a own)',
	'CREATE INDEX classes_other ON classes USING inplace_btree (a zother)',
	'CREATE INDEX classes_c ON classes USING inplace_btree (c)',
	'CREATE DATABASE second',
	'VACUUM t');
$old->safe_psql('second', q{CREATE EXTENSION inplace; CREATE TABLE t (id int) USING inplace; INSERT INTO t SELECT generate_series(1, 500);
	UPDATE t SET id = id + 1000});
# From here on nobody restores or discards anything.
$old->append_conf('postgresql.conf', $lazy);
$old->restart;
$old->safe_psql('postgres', $_) foreach (
	kinds_of_changes(),
	"DELETE FROM t WHERE id % 17 = 0",
	"UPDATE holes SET c = c || '+', f = f + 1 WHERE h % 3 = 0",
	"INSERT INTO holes (a, c, h) VALUES (true, 'new', 9)",
	# what has been rolled back is still on the pages
	"BEGIN; UPDATE t SET v = 'lost', a = -1 WHERE id % 7 = 0; DELETE FROM t WHERE id % 11 = 0; INSERT INTO t SELECT i, i, 'lost', 'c' FROM generate_series(5000, 5500) i; ROLLBACK",
	"BEGIN; DELETE FROM calm WHERE id > 2900; ROLLBACK");
my @tables = qw(t calm big u p m h short holes classes);
my %before = map { $_ => contents($old, $_) } @tables;
my $frozen = one($old, q{SELECT string_agg(relname || ' ' || relfrozenxid || ' ' || relminmxid, ', ' ORDER BY relname) FROM pg_class WHERE relname IN ('t', 'calm')});
my $to_restore = one($old, q{SELECT extents_to_restore > 0 FROM inplace.undo WHERE kind = 'logged'});
is($to_restore, 't', 'rollbacks are still to be restored when the old server stops');
my $indexes = one($old, q{SELECT string_agg(pg_get_indexdef(indexrelid), '; ' ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = 'classes'::regclass});
my $members = q{SELECT count(DISTINCT c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod LEFT JOIN pg_depend d
	ON d.classid = 'pg_opclass'::regclass AND d.objid = c.oid AND d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'inplace')
	WHERE a.amname = 'inplace_btree' AND (d.objid IS NULL) <> (c.opcname <> 'own')};
my $members_before = one($old, $members);
my $families = q{SELECT string_agg(format('%s %s %s', c.opcname, f.opfname, f.opfmethod = c.opcmethod), ', ' ORDER BY c.opcname) FROM pg_opclass c JOIN pg_opfamily f ON f.oid = c.opcfamily
	JOIN pg_am a ON a.oid = c.opcmethod WHERE a.amname = 'inplace_btree' AND c.oid >= 16384 AND c.opcnamespace = 'public'::regnamespace};
my $families_before = one($old, $families);
like($families_before, qr/own own t, zother own f/, 'families of the same name');
$old->stop('fast');

sub upgrade
{
	my ($new, @options) = @_;
	my ($out, $err);
	my $rc = run_log([ 'pg_upgrade', '--no-sync',
			'-d', $old->data_dir, '-D', $new->data_dir, '-b', $oldbin, '-B', $newbin,
			'-s', $new->host, '-p', $old->port, '-P', $new->port, @options ], '>', \$out, '2>', \$err);
	note $out, $err;
	return ($rc, $out . $err);
}

# ---- a new cluster that does not load the library is refused beforehand
chdir ${PostgreSQL::Test::Utils::tmp_check};
my $bare = new_node('bare', extra => \@checksums, conf => "$conf\nshared_preload_libraries = ''\n");
my ($ok, $said) = upgrade($bare, '--check');
ok(!$ok, 'pg_upgrade --check: the new cluster must load the library');
my $how = '';
foreach my $f (glob($bare->data_dir . '/pg_upgrade_output.d/*/loadable_libraries.txt')) { $how .= slurp_file($f) }
like($how, qr/inplace.*shared_preload_libraries/s, 'and the report says so');

foreach my $mode ('copy', 'link')
{
	my $new = new_node("new_$mode", extra => \@checksums, conf => $conf . $lazy);
	($ok, $said) = upgrade($new, $mode eq "link" ? "--link" : ());
	ok($ok, "pg_upgrade --$mode");
	last if !$ok;
	$new->start;
	like(one($new, 'SELECT inplace.after_upgrade()', $_), qr/^\d+$/, "$mode: TOAST tables of $_") foreach qw(postgres second);
	is(contents($new, $_), $before{$_}, "$mode: contents of $_") foreach @tables;
	is(one($new, "SET enable_seqscan = off; SELECT count(*), sum(a) FROM t WHERE a > 10000"),
		one($new, "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(a) FROM t WHERE a > 10000"), "$mode: by index");
	is(one($new, q{SELECT string_agg(relname || ' ' || relfrozenxid || ' ' || relminmxid, ', ' ORDER BY relname) FROM pg_class WHERE relname IN ('t', 'calm')}),
		$frozen, "$mode: relfrozenxid, relminmxid");
	is(one($new, q{SELECT count(*), min(id), max(id) FROM t}, 'second'), '500|1001|1500', "$mode: another database");
	is(one($new, q{SET enable_seqscan = off; SELECT c FROM classes WHERE c = 'c77'}), 'C77', "$mode: by an operator class of an extension");
	is(one($new, q{SELECT string_agg(pg_get_indexdef(indexrelid), '; ' ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = 'classes'::regclass}), $indexes, "$mode: same indexes");
	is(one($new, $members), $members_before, "$mode: mirrors of operator classes are members of the extension");
	is(one($new, $families), $families_before, "$mode: they are in the same families");
	is(one($new, q{SELECT string_agg(c.opcname, ' ') FROM pg_opclass c WHERE c.opcmethod = 403 AND c.oid >= 16384 AND NOT EXISTS
		(SELECT FROM pg_opclass m JOIN pg_am a ON a.oid = m.opcmethod WHERE a.amname = 'inplace_btree' AND m.opcname = c.opcname AND m.opcnamespace = c.opcnamespace)}),
		'', "$mode: none is missing");
	check_clean($new, "$mode: before anything was written");
	check_clean($new, "$mode: before anything was written, second", 'second');

	# The undo of the old cluster is looked through and given back.
	$new->append_conf('postgresql.conf', "max_worker_processes = 8\nautovacuum = on\nautovacuum_freeze_max_age = 100000\nvacuum_freeze_min_age = 1000\nvacuum_freeze_table_age = 50000\n");
	$new->restart;
	$new->safe_psql('postgres', 'BEGIN; UPDATE t SET id = id WHERE id = 1; ROLLBACK');
	ok(defined poll_value($new, 'SELECT sum(extents_to_restore) = 0 FROM inplace.undo', 60), "$mode: the rollbacks are restored");
	undo_floor_reached($new, $mode, 30);
	is(contents($new, $_), $before{$_}, "$mode: contents of $_ with the undo gone") foreach @tables;
	check_clean($new, "$mode: with the undo gone");

	# Ids go round.
	$new->safe_psql('postgres', $_) foreach (
		'ALTER DATABASE template0 ALLOW_CONNECTIONS true',
		q{CREATE PROCEDURE burn(n int) LANGUAGE plpgsql AS $$ BEGIN
			FOR i IN 1..n LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$},
		'CALL burn(170000)',
		'VACUUM (FREEZE)');
	is(one($new, 'SELECT pg_current_xact_id()::text::bigint > 4294967296'), 't', "$mode: ids have gone round");
	is(contents($new, $_), $before{$_}, "$mode: contents of $_ after that") foreach @tables;
	$new->safe_psql('postgres', $_) foreach (
		"UPDATE t SET v = v || '+'", "BEGIN; UPDATE t SET v = 'lost again'; ROLLBACK", 'VACUUM (FREEZE) t',
		"UPDATE t SET v = left(v, -1)", 'REINDEX TABLE t', 'CREATE TABLE later (i int) USING inplace', 'INSERT INTO later VALUES (1)');
	is(contents($new, 't'), $before{t}, "$mode: contents of t after changes");
	is(one($new, q{SELECT count(*) FROM later}), '1', "$mode: a new table");
	check_clean($new, "$mode: at the end");
	# (the extension's indexes go before their tables: 056)
	stop_autovacuum($new);
	is(one($new, q{DROP TABLE t, later, calm, big, u, p CASCADE; SET client_min_messages = error; DROP EXTENSION inplace CASCADE; SELECT 1}), '1', "$mode: the extension can be dropped");
	$new->stop;
	check_log($new);
	unlike(slurp_file($new->logfile), qr/transaction-wraparound data loss/, "$mode: no database's ids are out of order");
}
check_log($old);
done_testing();
