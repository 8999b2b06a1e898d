# In-place updates leave nothing for autovacuum, deletes do.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('autovacuum', conf => q{
autovacuum_naptime = '1s'
autovacuum_vacuum_threshold = 10
autovacuum_vacuum_scale_factor = 0
autovacuum_vacuum_insert_threshold = -1
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int, v text) USING inplace;
	CREATE TABLE h (id int PRIMARY KEY, n int, v text) USING heap;
	INSERT INTO t SELECT i, 0, 'v' FROM generate_series(1, 5000) i;
	INSERT INTO h SELECT i, 0, 'v' FROM generate_series(1, 5000) i;
	VACUUM t; VACUUM h;
});
foreach my $i (1 .. 4)
{
	$node->safe_psql('postgres', "UPDATE $_ SET n = n + 1") foreach ('t', 'h');
}
my $stat = q{SELECT %s FROM pg_stat_user_tables WHERE relname = '%s'};
ok(defined poll_value($node, sprintf($stat, 'n_tup_upd >= 20000', 't'), 10), '20000 updates are counted');
is(one($node, sprintf($stat, 'n_tup_hot_upd = n_tup_upd', 't')), 't', 'all of them in place');
# Heap needs it, so autovacuum runs at all.
ok(defined poll_value($node, sprintf($stat, 'autovacuum_count > 0', 'h'), 60), 'autovacuum of the heap table');
usleep(3_000_000);
is(one($node, sprintf($stat, 'autovacuum_count', 't')), '0', 'no autovacuum of the inplace table');
cmp_ok(one($node, sprintf($stat, 'n_dead_tup', 't')), '<=', 10, 'n_dead_tup is low');
is(one($node, q{SELECT in_place_updates || ' ' || moved_updates || ' ' || dead_rows FROM inplace.stat_tables WHERE relname = 't'}),
	'20000 0 0', 'inplace.stat_tables');
# ANALYZE counts no old versions as dead rows, even while somebody sees them.
my $s = psql_session($node);
$s->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', 'UPDATE t SET n = n + 1; ANALYZE t');
usleep(2_500_000);
cmp_ok(one($node, sprintf($stat, 'n_dead_tup', 't')), '<=', 10, 'n_dead_tup after ANALYZE');
cmp_ok(one($node, sprintf($stat, 'n_live_tup', 't')), '==', 5000, 'n_live_tup after ANALYZE');
is(one($node, sprintf($stat, 'autovacuum_count', 't')), '0', 'no autovacuum under a snapshot');
$s->query('COMMIT');
$s->quit;

$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 5 = 0');
ok(defined poll_value($node, sprintf($stat, 'autovacuum_count > 0', 't'), 60), 'deletes make autovacuum run');
ok(defined poll_value($node, sprintf($stat, 'n_dead_tup <= 10', 't'), 60), 'after which no dead rows are left');
my $size = one($node, q{SELECT pg_relation_size('t')});
$node->safe_psql('postgres', q{INSERT INTO t SELECT i, 0, 'v' FROM generate_series(10001, 10900) i});
cmp_ok(one($node, q{SELECT pg_relation_size('t')}), '<=', $size, 'and their space is used again');
check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
