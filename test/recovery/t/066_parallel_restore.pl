# Parallel queries and index builds beside rows whose change has been rolled back, which the
# undo worker has not restored yet, and which a worker of a parallel query cannot; also where
# the leader's own change is below, and is rolled back later.

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
inplace.undo_worker_delay = 60s
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

my $rows = 20000;
my $parallel = q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET max_parallel_workers_per_gather = 2; SET max_parallel_maintenance_workers = 2; SET enable_indexscan = off; SET enable_indexonlyscan = off;
	SET enable_bitmapscan = off;};

# A row in 97 has an older version that a snapshot needs, and a lock; a change of it is rolled
# back, and so are deletions that the undo worker does not know of.
sub beside_rolled_back
{
	my ($name, $sql, $expected) = @_;
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS pr;
		CREATE TABLE pr (id int PRIMARY KEY, v int, f text) WITH (parallel_workers = 2);
		INSERT INTO pr SELECT g, 0, repeat('x', 100) FROM generate_series(1, $rows) g;
		VACUUM (FREEZE) pr;});
	my $old = psql_session($node);
	$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM pr');
	$node->safe_psql('postgres', 'UPDATE pr SET v = 1 WHERE id % 97 = 2');
	my $locker = psql_session($node);
	$locker->query_safe($_) foreach ('BEGIN', 'SELECT count(*) FROM (SELECT id FROM pr WHERE id % 97 = 2 FOR KEY SHARE) x');
	my ($rc, $out, $err) = $node->psql('postgres', qq{
		BEGIN; DELETE FROM pr WHERE id % 97 = 1; UPDATE pr SET v = 2 WHERE id % 97 = 2; ROLLBACK;
		$parallel
		$sql});
	is($err, '', "$name: no error");
	is($out, $expected, "$name: all rows");
	is($old->query_safe('SELECT count(*), sum(v) FROM pr'), "$rows|0", "$name: an older snapshot");
	$old->query_safe('COMMIT');
	$node->safe_psql('postgres', "$parallel SELECT count(*) FROM pr");
	$locker->query_safe('COMMIT');
	is($node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM pr'), $expected, "$name: afterwards");
	$_->quit foreach $old, $locker;
	check_clean($node, $name);
}

my $changed = int(($rows - 2) / 97) + 1;
my $answer = "$rows|$changed";
my $query = 'SELECT count(*), sum(v) FROM pr;';
beside_rolled_back('parallel scan', $query, $answer);
like($node->safe_psql('postgres', "$parallel EXPLAIN (COSTS off) $query"), qr/Parallel Seq Scan/, 'the plan is parallel');
beside_rolled_back('parallel scan without workers, in a subtransaction without an xid',
	"SET max_parallel_workers = 0; BEGIN; SELECT pg_current_xact_id() IS NULL WHERE false; SAVEPOINT a; $query COMMIT;", $answer);
beside_rolled_back('parallel index build', "CREATE INDEX ON pr (f, v); $query", $answer);
beside_rolled_back('parallel index build, rolled back', "BEGIN; CREATE INDEX ON pr (f, v); ROLLBACK; $query", $answer);

# ---- the version below the lock is a change of the leader's own, and is rolled back after it

$node->append_conf('postgresql.conf', 'inplace.undo_worker_delay = 100ms');
$node->reload;

sub own_change
{
	my ($name, $sql) = @_;
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS pr;
		CREATE TABLE pr (id int PRIMARY KEY, v int, f text) WITH (parallel_workers = 2);
		INSERT INTO pr SELECT g, 0, repeat('x', 100) FROM generate_series(1, $rows) g;
		VACUUM (FREEZE) pr;});
	my ($leader, $locker, $keeper) = map { psql_session($node) } 1 .. 3;
	$leader->query_safe($_) foreach ('BEGIN', 'UPDATE pr SET v = 1 WHERE id % 97 = 2', 'SAVEPOINT s',
		'UPDATE pr SET v = 2 WHERE id % 97 = 2', 'DELETE FROM pr WHERE id % 97 = 1');
	$locker->query_safe($_) foreach ('BEGIN', 'SELECT count(*) FROM (SELECT id FROM pr WHERE id % 97 = 2 FOR KEY SHARE) x');
	$leader->query_safe($_) foreach ('ROLLBACK TO s', 'RELEASE s', "$parallel SET parallel_leader_participation = off", $sql);
	is($leader->query_safe('SELECT count(*), sum(v) FROM pr'), $answer, "$name: what the leader sees");
	# the undo worker cannot restore rows of a table that somebody has locked so
	$keeper->query_until(qr/waits/, "BEGIN;\n\\echo waits\nLOCK TABLE pr IN SHARE MODE;\n");
	poll_value($node, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND mode = 'ShareLock' AND locktype = 'relation'}, 60);
	$leader->query_safe('ROLLBACK');
	$keeper->query_safe('SELECT 1');
	$locker->query_safe('COMMIT');
	$node->safe_psql('postgres', 'SELECT pg_current_xact_id()') for 1 .. 5;
	sleep 2;
	is($keeper->query_safe('SELECT count(*), sum(v) FROM pr'), "$rows|0", "$name: before rows are restored");
	$keeper->query_safe('ROLLBACK');
	undo_floor_reached($node, $name, 60);
	is($node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM pr'), "$rows|0", "$name: all rows in the end");
	$_->quit foreach $leader, $locker, $keeper;
	check_clean($node, $name);
}

own_change("scan, of the leader's change", $query);
own_change("index build, of the leader's change", 'CREATE INDEX ON pr (f, v)');

# the same, and a crash while the index is built
$node->safe_psql('postgres', 'DROP TABLE pr');
$node->stop('immediate');
$node->start;
check_log($node);
done_testing();
