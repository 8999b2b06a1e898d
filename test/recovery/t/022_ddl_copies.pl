# Copies of inplace tables that others make: pg_dump and pg_restore, CREATE
# DATABASE from a template by both strategies, rewrites, tablespaces,
# partitions and foreign keys with mixed methods.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Statements that must succeed.
sub run
{
	my ($node, $sql, $db) = @_;
	unlike(one($node, $sql, $db), qr/^rc /, substr($sql =~ s/\s+/ /gr, 0, 70));
}

my $node = new_node('copies');
$node->start;
run($node, 'CREATE DATABASE orig');
run($node, 'CREATE EXTENSION inplace', 'orig');

is($node->psql('orig', q{
	CREATE TABLE i (id int PRIMARY KEY, v text, n numeric, c char(50)) USING inplace;
	CREATE TABLE h (id int PRIMARY KEY, i int REFERENCES i ON DELETE CASCADE ON UPDATE CASCADE) USING heap;
	CREATE TABLE i2 (id int PRIMARY KEY, h int REFERENCES h ON DELETE SET NULL ON UPDATE CASCADE) USING inplace;
	CREATE INDEX ON i (v);
	CREATE MATERIALIZED VIEW m USING inplace AS SELECT 1 AS one;
	CREATE UNLOGGED TABLE u (id int) USING inplace;
	ALTER TABLE i ALTER v SET STORAGE EXTERNAL;
	INSERT INTO i SELECT g, repeat('v', g % 2000), g, 'c' || g FROM generate_series(1, 1000) g;
	UPDATE i SET c = 'changed' WHERE id % 3 = 0;
	DELETE FROM i WHERE id % 11 = 0;
	INSERT INTO h SELECT id, id FROM i WHERE id < 500;
	INSERT INTO i2 SELECT id, id FROM h WHERE id < 100;
	INSERT INTO u VALUES (1), (2);
	CREATE TABLE p (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE TABLE p_i PARTITION OF p FOR VALUES FROM (0) TO (100) USING inplace;
	CREATE TABLE p_h PARTITION OF p FOR VALUES FROM (100) TO (200) USING heap;
	CREATE TABLE a (id int NOT NULL, v text) USING inplace;
	INSERT INTO a SELECT g, 'attached' FROM generate_series(200, 299) g;
	UPDATE a SET v = 'attached later' WHERE id % 2 = 0;
	INSERT INTO p SELECT g, 'p' FROM generate_series(1, 199) g;
}, on_error_stop => 1), 0, 'tables');

# ---- partitions with mixed methods
run($node, q{ALTER TABLE p ATTACH PARTITION a FOR VALUES FROM (200) TO (300)}, 'orig');
run($node, q{DELETE FROM p WHERE id IN (150, 151, 250, 251, 50, 51)}, 'orig');
is(one($node, q{UPDATE p SET id = 150, v = 'i to h' WHERE id = 52;
	UPDATE p SET id = 50, v = 'h to i' WHERE id = 153;
	UPDATE p SET id = 250, v = 'i to i' WHERE id = 53;
	SELECT string_agg(tableoid::regclass || ' ' || id || ' ' || v, ', ' ORDER BY id) FROM p WHERE v LIKE '% to %'}, 'orig'),
	'p_i 50 h to i, p_h 150 i to h, a 250 i to i', 'rows move between partitions');
run($node, 'BEGIN; UPDATE p SET id = 51 WHERE id = 154; UPDATE p SET id = 151 WHERE id = 54; ROLLBACK', 'orig');
is(one($node, 'SELECT count(*) FROM p WHERE id IN (51, 151)', 'orig'), '0', '... and back by a rollback');
my $attached = contents($node, 'a', 'orig');
run($node, 'ALTER TABLE p DETACH PARTITION a', 'orig');
is(contents($node, 'a', 'orig'), $attached, 'a detached partition keeps its rows');
my ($drc) = $node->psql('orig', 'ALTER TABLE p DETACH PARTITION p_i CONCURRENTLY');
is($drc, 0, 'DETACH CONCURRENTLY');
run($node, 'ALTER TABLE p ATTACH PARTITION p_i FOR VALUES FROM (0) TO (100)', 'orig');

# ---- foreign keys between the methods, in both directions
like(sqlstate_of($node, 'INSERT INTO h VALUES (9000, 9000)', 'orig'), qr/23503/, 'heap references inplace');
like(sqlstate_of($node, 'INSERT INTO i2 VALUES (9000, 9000)', 'orig'), qr/23503/, 'inplace references heap');
run($node, 'UPDATE i SET id = id + 100000 WHERE id < 10; DELETE FROM i WHERE id BETWEEN 20 AND 30; UPDATE h SET id = id + 50000 WHERE id = 40', 'orig');
is(one($node, 'SELECT count(*) FROM h LEFT JOIN i ON h.i = i.id WHERE i.id IS NULL', 'orig'), '0', 'cascades from inplace to heap');
is(one($node, 'SELECT count(*) FILTER (WHERE h IS NULL) || \' \' || count(*) FILTER (WHERE h = 50040) FROM i2', 'orig'),
	'10 1', 'cascades from heap to inplace');

# ---- rewrites, with changes of the same transaction before
my $rows = contents($node, '(SELECT id, v, n::numeric(10,2), c FROM i)', 'orig');
run($node, q{ALTER TABLE i ALTER n TYPE numeric(10,2)}, 'orig');
is(contents($node, 'i', 'orig'), $rows, 'ALTER COLUMN TYPE');
foreach my $am (qw(heap inplace))
{
	run($node, "BEGIN; UPDATE i SET c = 'undone'; DELETE FROM i WHERE id % 2 = 0; ROLLBACK;
		ALTER TABLE i SET ACCESS METHOD $am", 'orig');
	is(contents($node, 'i', 'orig'), $rows, "SET ACCESS METHOD $am");
}
run($node, q{BEGIN; UPDATE i SET c = 'for now'; ALTER TABLE i ADD x int DEFAULT random(), ALTER c TYPE text; ROLLBACK}, 'orig');
is(contents($node, 'i', 'orig'), $rows, 'a rewrite rolled back');

# ---- pg_dump and pg_restore
my $dir = PostgreSQL::Test::Utils::tempdir();
my $methods = q{SELECT string_agg(relname || ' ' || amname, ', ' ORDER BY relname COLLATE "C")
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relkind IN ('r', 'm') AND relnamespace = 'public'::regnamespace};
my $orig_methods = one($node, $methods, 'orig');
like($orig_methods, qr/\bh heap, i inplace\b/, 'both methods are there');
my @tables = qw(i h i2 p a m u);
sub same_db
{
	my ($db, $what, @t) = @_;
	is(one($node, $methods, $db), $orig_methods, "$what: access methods");
	is(contents($node, $_, $db), contents($node, $_, 'orig'), "$what: $_") for @t;
}
my @conn = ('-h', $node->host, '-p', $node->port);
command_ok([ 'pg_dump', @conn, '-f', "$dir/plain.sql", 'orig' ], 'plain dump');
command_ok([ 'pg_dump', @conn, '-Fc', '-f', "$dir/custom", 'orig' ], 'custom dump');
command_ok([ 'pg_dump', @conn, '-Fd', '-j', 2, '-f', "$dir/dir", 'orig' ], 'directory dump, parallel');
run($node, "CREATE DATABASE $_") for qw(plain custom dir);
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', @conn, '-d', 'plain', '-f', "$dir/plain.sql" ], 'restore of the plain dump');
command_ok([ 'pg_restore', '-e', @conn, '-d', 'custom', "$dir/custom" ], 'restore of the custom dump');
command_ok([ 'pg_restore', '-e', '-j', 2, @conn, '-d', 'dir', "$dir/dir" ], 'restore of the directory dump, parallel');
foreach my $db (qw(plain custom dir))
{
	same_db($db, "$db dump", @tables);
	check_clean($node, "$db dump", $db);
}

# ---- CREATE DATABASE, with the undo of changes just made on the template's pages
foreach my $strategy (qw(wal_log file_copy))
{
	run($node, "UPDATE i SET c = '$strategy' WHERE id % 5 = 0", 'orig');
	run($node, "BEGIN; UPDATE i SET c = 'aborted', v = 'x'; DELETE FROM i WHERE id % 2 = 0; INSERT INTO i VALUES (999999, 'never'); ROLLBACK", 'orig');
	my $s = psql_session($node, 'orig');
	$s->query("BEGIN; UPDATE i SET c = 'killed'");
	run($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'orig' AND backend_type = 'client backend'");
	eval { $s->quit };
	ok(defined poll_value($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'orig' AND backend_type = 'client backend'}, 60),
		"$strategy: nobody is in the template");
	is(one($node, "CREATE DATABASE copy_$strategy TEMPLATE orig STRATEGY $strategy"), '', "CREATE DATABASE STRATEGY $strategy");
	same_db("copy_$strategy", "$strategy", @tables);
	run($node, "UPDATE i SET c = 'in the copy' WHERE id % 3 = 0; DELETE FROM i WHERE id % 7 = 0", "copy_$strategy");
	isnt(contents($node, 'i', "copy_$strategy"), contents($node, 'i', 'orig'), "$strategy: the copy is of its own");
	check_clean($node, "$strategy", "copy_$strategy");
}
check_clean($node, 'the template', 'orig');

# ---- tablespaces
mkdir "$dir/ts";
run($node, "CREATE TABLESPACE ts LOCATION '$dir/ts'");
run($node, "BEGIN; UPDATE i SET c = 'aborted'; ROLLBACK; ALTER TABLE i SET TABLESPACE ts", 'orig');
is(one($node, q{SELECT count(*) FROM pg_class WHERE relname = 'i' AND reltablespace <> 0}, 'orig'), '1', 'moved to a tablespace');
my $all = contents($node, 'i', 'orig');
run($node, "BEGIN; UPDATE i SET c = 'aborted'; ROLLBACK", 'copy_wal_log');
my $copy = contents($node, 'i', 'copy_wal_log');
ok(defined poll_value($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'copy_wal_log' AND backend_type = 'client backend'}, 60), 'nobody there');
is(one($node, 'ALTER DATABASE copy_wal_log SET TABLESPACE ts'), '', 'ALTER DATABASE SET TABLESPACE');
is(contents($node, 'i', 'copy_wal_log'), $copy, 'contents in the other tablespace');
check_clean($node, 'another tablespace', 'copy_wal_log');

crash_and_restart($node);
is(contents($node, 'i', 'orig'), $all, 'contents after a crash');
is(contents($node, 'i', 'copy_wal_log'), $copy, '... of the moved database');
check_clean($node, 'after a crash', $_) for qw(orig copy_wal_log copy_file_copy);
check_log($node);
$node->stop;
done_testing();
