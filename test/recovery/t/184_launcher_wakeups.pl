# While a database's undo worker cannot start, its transactions do not wake the launcher one by
# one: the launcher knows, and looks again by itself.  Here no worker ever can.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $transactions = 5000;

my $node = new_node('primary', conf => q{
autovacuum = off
max_logical_replication_workers = 0
max_worker_processes = 1
max_parallel_workers = 0
wal_consistency_checking = ''
synchronous_commit = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace;
	INSERT INTO t VALUES (1, 0);});

my $launcher = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'inplace undo launcher'});
like($launcher, qr/^\d+$/, 'the launcher has the only place');

# how often it has gone to sleep
sub sleeps
{
	my ($n) = slurp_file("/proc/$launcher/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
	return $n;
}

my $before = sleeps();
$node->safe_psql('postgres', qq{DO \$\$
	BEGIN
		FOR i IN 1 .. $transactions LOOP
			UPDATE t SET n = n + 1;
			COMMIT;
		END LOOP;
	END \$\$});
my $slept = sleeps() - $before;
note("the launcher slept $slept times in $transactions transactions");
cmp_ok($slept, '<', $transactions / 10, 'it was not woken by each of them');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'inplace undo worker'}),
	'0', 'no worker could start');

# with room for one, undo is given back
$node->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$node->restart;
undo_floor_reached($node, 'with a worker', 60);
is($node->safe_psql('postgres', 'SELECT n FROM t'), $transactions, 'the row is right');

# a database that gets the undo space of one that has gone is noticed as well
foreach my $round (1 .. 3)
{
	$node->safe_psql('postgres', 'CREATE DATABASE other TEMPLATE template0');
	$node->safe_psql('other', q{
		CREATE EXTENSION inplace;
		CREATE TABLE t USING inplace AS SELECT 1 AS id, 0 AS n;
		UPDATE t SET n = 1;});
	ok(defined poll_value($node, q{SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE backend_type = 'inplace undo worker' AND datname = 'other')}, 60), "round $round: its worker comes");
	$node->safe_psql('postgres', 'DROP DATABASE other');
}
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
