# A crash while the undo worker restores a big rollback.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $node = new_node('rollback', conf => "inplace.undo_worker_delay = 10\nautovacuum = off\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, a int, v text) USING inplace;
	CREATE INDEX ON t (a);
	INSERT INTO t SELECT i, i % 1000, 'v' || i FROM generate_series(1, 30000) i;
});
my $before = contents($node, 't');
my $in_between = 0;

foreach my $round (1 .. 4)
{
	# In place, growing, moves, deletes, inserts: all undone.
	$node->safe_psql('postgres', "BEGIN; UPDATE t SET v = repeat(v, 5) WHERE id <= 1500; UPDATE t SET a = a + 1 WHERE id > 28500;
		DELETE FROM t WHERE id BETWEEN 15000 AND 16500; INSERT INTO t SELECT i, i, i FROM generate_series(200000, 200600) i; ROLLBACK");
	$node->safe_psql('postgres', 'CHECKPOINT') if rand() < 0.5;
	my $s = psql_session($node);
	$s->query('BEGIN; UPDATE t SET v = upper(v) || 1');
	$s->query('ROLLBACK');
	# The worker begins.
	usleep(int(rand(30_000)));
	if ($round % 2) { kill9_all($node) } else { $node->stop('immediate') }
	eval { $s->quit };
	$node->start;
	is(contents($node, 't'), $before, "crash $round (seed $seed): contents");
	# Through the index.
	is(one($node, 'SET enable_seqscan = off; SELECT count(*), sum(id) FROM t WHERE a = 5'), '30|435150',
		"crash $round: rows by index");
	ok(defined poll_value($node, 'SELECT sum(extents_to_restore) = 0 FROM inplace.undo', 60), "crash $round: all is restored");
	my $rows = one($node, 'SELECT sum(rows_restored) FROM inplace.undo');
	note "crash $round: $rows rows restored after it";
	$in_between++ if $rows > 0;
}
cmp_ok($in_between, '>', 0, "$in_between crashes were while there were rows to restore");
ok(defined poll_value($node, 'SELECT sum(extents_to_restore) = 0 FROM inplace.undo', 60), 'all is restored');
undo_floor_reached($node, 'after the rollbacks', 10);
is(contents($node, 't'), $before, 'contents at the end');
check_clean($node, 'at the end');

# A backend killed in the middle of its transaction, and the cluster after it.
my $s = psql_session($node);
my $pid = $s->query('SELECT pg_backend_pid()');
$s->query('BEGIN; UPDATE t SET v = v || 1');
is(one($node, "SELECT pg_terminate_backend($pid, 10000)"), 't', 'backend ended');
eval { $s->quit };
is(contents($node, 't'), $before, 'contents after the end of a backend');
# Rows of which the rollback has not been restored can be changed.
is(one($node, "UPDATE t SET a = a + 1 WHERE id <= 1000; UPDATE t SET a = a - 1 WHERE id <= 1000; SELECT 1"), '1', 'update after that');
is(contents($node, 't'), $before, 'contents after the update');
$node->stop('immediate');
$node->start;
is(contents($node, 't'), $before, 'contents after a crash');
undo_floor_reached($node, 'at the end', 20);
check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
