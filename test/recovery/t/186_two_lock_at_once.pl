# Two backends that have the page of a row share-locked, and find nothing in the way, do not
# both get the row's lock in memory (row/memory_lock.c).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary');
my $lib = build_module($node, 'hold_row_locks');
$node->start;
one($node, qq{
	CREATE EXTENSION inplace;
	CREATE FUNCTION hold_row_locks(bigint, text) RETURNS void LANGUAGE C STRICT AS '$lib';
	CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace;
	INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g});

my $holder = psql_session($node);
my @takers = map { psql_session($node) } 1 .. 3;
my @pids = map { $_->query_safe('SELECT pg_backend_pid()') } @takers;
my $of_takers = 'pid IN (' . join(', ', @pids) . ')';
my $free = "SELECT array_to_string(array_agg(pid), ' ') FROM pg_stat_activity WHERE $of_takers AND state = 'idle in transaction'";

# All ask for a row; so many of them get one at once.
sub meet
{
	my ($what, $sql, $get_one) = @_;
	my $release = $node->basedir . "/release-$what";
	$holder->query_until(qr/sent/, "\\echo sent\nSELECT hold_row_locks(size, '$release') FROM pg_shmem_allocations WHERE name = 'inplace row locks';\n");
	ok(defined poll_value($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active' AND wait_event IS NULL AND query LIKE 'SELECT hold_row_locks%'}, 60),
		"$what: row locks in memory are held up");
	foreach my $taker (@takers)
	{
		$taker->query_safe('BEGIN');
		$taker->query_until(qr/sent/, "\\echo sent\n$sql;\n");
	}
	ok(defined poll_value($node, "SELECT count(*) = 3 FROM pg_stat_activity WHERE $of_takers AND wait_event = 'InplaceRowLock'", 60),
		'... all have looked at it, and are about to lock it');
	append_to_file($release, '');
	$holder->query_safe('SELECT 1');
	ok(defined poll_value($node, "SELECT count(*) = 3 - $get_one FROM pg_stat_activity WHERE $of_takers AND wait_event_type = 'Lock'", 60),
		'... ' . (3 - $get_one) . ' of them wait');
	ok(defined poll_value($node, "SELECT count(*) = $get_one FROM pg_stat_activity WHERE $of_takers AND state = 'idle in transaction'", 60),
		"... $get_one got one");
	return;
}

meet('wait', 'SELECT n FROM t WHERE id = 7 FOR UPDATE', 1);

# One after the other adds to it.
my %left = map { $pids[$_] => $takers[$_] } 0 .. 2;
foreach my $i (1 .. 3)
{
	ok(defined poll_value($node, "SELECT ($free) ~ '^[0-9]+\$'", 60), "one has the row ($i)");
	my $taker = delete $left{ one($node, $free) };
	my ($n) = $taker->query_safe('SELECT n AS now FROM t WHERE id = 7') =~ /(\d+)$/;
	$taker->query_safe($_) foreach "UPDATE t SET n = $n + 1 WHERE id = 7", 'COMMIT';
}
is(one($node, 'SELECT n FROM t WHERE id = 7'), '3', 'no update is lost');

meet('skip', 'SELECT id FROM t LIMIT 1 FOR UPDATE SKIP LOCKED', 3);
is(one($node, 'SELECT count(*) FROM (SELECT id FROM t FOR UPDATE SKIP LOCKED) l'), '17', '... each another one');
$_->query_safe('ROLLBACK') foreach @takers;

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
