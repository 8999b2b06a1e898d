# Snapshots that were taken on a standby and live on when it has been promoted
# see what they saw, while versions between them and others are dropped.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = seed();
my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
inplace.undo_worker_delay = 100
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, k int, v text);
	CREATE INDEX ON t USING inplace_btree (k);
	INSERT INTO t SELECT i, 100, i, 'v' FROM generate_series(1, 8) i;
	INSERT INTO t VALUES (9, 0, 9, 'v');
	CREATE TABLE other (id int PRIMARY KEY, n int);
	INSERT INTO other VALUES (1, 0);});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
my $move = script_that_moves_n($standby);
end_pgbench(start_pgbench($node, '-c', 2, '-t', 200, '--max-tries=20', '-f', $move));

# what is open when the primary goes, and what has been prepared
$node->safe_psql('postgres', q{BEGIN; UPDATE t SET v = 'prepared', n = n + 5 WHERE id = 9; SAVEPOINT a; UPDATE t SET k = -1 WHERE id = 9; PREPARE TRANSACTION 'p'});
my $open = psql_session($node);
$open->query_safe($_) foreach ('BEGIN', q{UPDATE t SET v = 'open', n = -1 WHERE id = 8}, 'SAVEPOINT a', 'UPDATE other SET n = 1');
$node->safe_psql('postgres', q{UPDATE t SET v = 'last' WHERE id = 1});
$node->wait_for_catchup($standby);
$node->stop('immediate');
eval { $open->quit };

my $look = q{SELECT string_agg(t::text, '|' ORDER BY id) FROM t};
my @held;
sub hold
{
	my ($how, $look_here, @begin) = @_;
	my $s = psql_session($standby);
	$s->query_safe($_) foreach @begin;
	my $h = { session => $s, name => $how, look => $look_here };
	$h->{answer} = $s->query_safe($look_here);
	like($h->{answer}, qr/last/, "$how has looked");
	push @held, $h;
}
hold('REPEATABLE READ', $look, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
hold('cursor', 'FETCH ABSOLUTE 1 FROM c', 'BEGIN', "DECLARE c SCROLL CURSOR FOR $look");
sub look_again
{
	my ($after) = @_;
	is($_->{session}->query_safe($_->{look}), $_->{answer}, "$_->{name}: the same after $after (seed $seed)") foreach @held;
	is(one($standby, 'SELECT sum(n) FROM t'), 800, "others see all after $after (seed $seed)");
}
$standby->promote;
look_again('promotion');
end_pgbench(start_pgbench($standby, '-c', 3, '-t', 500, '--max-tries=20', '-f', $move));
look_again('a load');

# beside a transaction with an xid, and snapshots that are taken now
my $idle = psql_session($standby);
$idle->query_safe($_) foreach ('BEGIN', 'UPDATE other SET n = 2');
use_up_xids($standby);
hold('a later REPEATABLE READ', $look, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
for (1 .. 3)
{
	end_pgbench(start_pgbench($standby, '-c', 3, '-t', 700, '--max-tries=20', '-f', $move));
	use_up_xids($standby);
	look_again("load $_");
}
versions_dropped($standby, 1200, $move, 'versions have been dropped');
check_clean($standby, 'under snapshots');
is(one($standby, q{SELECT count(*) FROM t WHERE v IN ('prepared', 'open') OR k = -1}), 0, 'what had not been committed is not there');
one($standby, q{ROLLBACK PREPARED 'p'});
look_again('ROLLBACK PREPARED');
foreach my $h (splice @held)
{
	$h->{session}->query_safe('COMMIT');
	$h->{session}->quit;
}
$idle->query_safe('COMMIT');
$idle->quit;
undo_floor_reached($standby, 'at the end', 30);
look_again('all have ended');
check_clean($standby, 'at the end');
$standby->stop;
check_log($standby);
done_testing();
