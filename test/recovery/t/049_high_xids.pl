# The same with xids beyond 2^31, where half of all others precede those that
# come first: whatever compares an xid with a constant shows.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
# no VACUUM for wraparound: the oldest xid that may be compared with others stays far behind
autovacuum_freeze_max_age = 2000000000
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE old (id int PRIMARY KEY, k int, v text);
	CREATE INDEX ON old USING inplace_btree (k);
	INSERT INTO old SELECT i, i, 'o' FROM generate_series(1, 500) i;
	UPDATE old SET k = k + 1000 WHERE id % 5 = 0;
	DELETE FROM old WHERE id % 7 = 0;});

# template0, too, which autovacuum may come to or not
$node->safe_psql('postgres', q{UPDATE pg_database SET datallowconn = true WHERE datname = 'template0'});
# each in the first page of a segment of pg_xact
foreach my $segment (1430, 2861)
{
	$node->command_ok([ 'vacuumdb', '--all', '--freeze', '-h', $node->host, '-p', $node->port ], 'all is frozen');
	$node->stop;
	my $xid = $segment * 1048576;
	append_to_file(sprintf('%s/pg_xact/%04X', $node->data_dir, $segment), "\0" x 262144);
	command_ok([ 'pg_resetwal', '-x', $xid, $node->data_dir ], "next xid $xid");
	$node->start;
}
cmp_ok(one($node, 'SELECT pg_current_xact_id()::text::bigint % 4294967296'), '>', 2**31 + 3, 'xids are high');
is(one($node, 'SELECT count(*), sum(k) FROM old'), one($node,
	q{SELECT count(*), sum(CASE WHEN i % 5 = 0 THEN i + 1000 ELSE i END) FROM generate_series(1, 500) i WHERE i % 7 <> 0}),
	'rows from before are there');
check_clean($node, 'rows from before');
$node->safe_psql('postgres', q{UPDATE old SET v = v || '!' WHERE id % 2 = 0; BEGIN; UPDATE old SET v = 'no'; DELETE FROM old WHERE id % 3 = 0; ROLLBACK});
is(one($node, q{SELECT count(*) FILTER (WHERE v = 'o!') || ' ' || count(*) FILTER (WHERE v = 'o') FROM old}),
	one($node, q{SELECT count(*) FILTER (WHERE i % 2 = 0) || ' ' || count(*) FILTER (WHERE i % 2 = 1) FROM generate_series(1, 500) i WHERE i % 7 <> 0}),
	'they can be changed');
ok(defined poll_value($node, q{SELECT bool_and(extents = free_extents) FROM inplace.undo WHERE kind = 'logged'}, 30),
	'... and their undo is given back, for frozen versions have xids of an earlier age');

# An update that looks for the versions before may come to a frozen one of the earlier age.  Some
# transactions look, by chance: so there are many, beside a snapshot that nothing is known of.
my $reader = psql_session($node);
my $sum = q{SELECT count(*) || ' ' || sum(k) || ' ' || string_agg(v, '' ORDER BY id) FROM old};
my $before = one($node, $sum);
$reader->query_until(qr/go/, "\\echo go\nSELECT (SELECT pg_sleep(3)) IS NULL, ($sum);\n");
ok(defined poll_value($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 60),
	'a statement is running');
$node->safe_psql('postgres', join(';', map { "UPDATE old SET v = v || '.', k = k + 1 WHERE id % 50 = $_; UPDATE old SET v = v || ',' WHERE id % 50 = $_" } 0 .. 49));
like($reader->query('SELECT 1'), qr/\Q$before\E/, 'it sees the rows from before through many updates');
check_clean($node, 'rows from before, updated many times');

# ---- unique keys that were changed, and not in the end

$node->safe_psql('postgres', q{
	CREATE TABLE u (id int PRIMARY KEY, k int, v int);
	CREATE UNIQUE INDEX u_k ON u USING inplace_btree (k);
	INSERT INTO u VALUES (1, 10, 0);});
sub refused
{
	my ($sql, $what) = @_;
	like(sqlstate_of($node, $sql), qr/23505/, $what);
}
$node->safe_psql('postgres', 'BEGIN; UPDATE u SET k = 30 WHERE id = 1; ROLLBACK');
refused('INSERT INTO u VALUES (2, 10, 0)', 'the key of a row whose change was rolled back');
refused('BEGIN; SAVEPOINT a; UPDATE u SET k = 30; ROLLBACK TO a; INSERT INTO u VALUES (2, 10, 0); COMMIT',
	'... to a savepoint');
$node->safe_psql('postgres', 'INSERT INTO u VALUES (2, 30, 0); DELETE FROM u WHERE id = 2');
my $open = psql_session($node);
my $inserter = psql_session($node);
$open->query('BEGIN');
$open->query('UPDATE u SET k = 40 WHERE id = 1');
$inserter->query_until(qr/go/, "\\echo go\nINSERT INTO u VALUES (3, 10, 0);\n\\echo done\n");
ok(defined poll_value($node, q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted}, 60),
	'an insert of a key that is being changed waits');
$open->query('ROLLBACK');
$inserter->query('SELECT 1');
like($inserter->{stderr}, qr/duplicate key/, '... and is refused after a rollback');
is(one($node, 'SELECT count(*) FROM u WHERE k = 10'), 1, 'one row has the key');
$node->safe_psql('postgres', 'REINDEX INDEX u_k');

# ---- a load with rollbacks, held snapshots, VACUUM and a crash

$node->safe_psql('postgres', q{
	CREATE TABLE t (id int PRIMARY KEY, n int, k int, v text);
	CREATE INDEX ON t USING inplace_btree (k);
	INSERT INTO t SELECT i, 100, i, 'v' FROM generate_series(1, 50) i;});
my $dir = $node->basedir;
append_to_file("$dir/move.pgb", q{
\set a random(1, 49)
\set b random(:a + 1, 50)
\set k random(1, 60)
BEGIN;
UPDATE t SET n = n - 1, k = :k WHERE id = :a;
SAVEPOINT s;
UPDATE t SET n = n + 1000, v = repeat('x', :k), k = :k + 1 WHERE id = :b;
ROLLBACK TO s;
UPDATE t SET n = n + 1 WHERE id = :b;
\if :k < 20
ROLLBACK;
\else
COMMIT;
\endif
});
my $held = psql_session($node);
$held->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $look = q{SELECT string_agg(t::text, '|' ORDER BY id) FROM t};
my $saw = $held->query($look);
my $bench = start_pgbench($node, '-c', 4, '-t', 1500, '-f', "$dir/move.pgb");
$node->safe_psql('postgres', 'VACUUM t; SELECT pg_sleep(0.3)') foreach 1 .. 4;
unlike(end_pgbench($bench), qr/aborted/, 'a load has no error');
is($held->query($look), $saw, 'a held snapshot sees what it saw at first');
is(one($node, 'SELECT sum(n) FROM t'), 5000, 'the sum is right');
check_clean($node, 'after the load');
$held->query('COMMIT');
undo_floor_reached($node, 'after the load', 30);
$bench = start_pgbench($node, '-c', 4, '-T', 60, '-f', "$dir/move.pgb");
$node->safe_psql('postgres', 'SELECT pg_sleep(2)');
eval { $_->quit } foreach ($held, $open, $inserter);
crash_and_restart($node);
end_pgbench($bench);
is(one($node, 'SELECT sum(n) FROM t'), 5000, '... and after a crash');
check_clean($node, 'after a crash');
undo_floor_reached($node, 'after a crash', 30);
$node->safe_psql('postgres', 'VACUUM (FREEZE) t');
check_clean($node, 'after VACUUM FREEZE');
check_log($node);
done_testing();
