# A prepared transaction has written to an extent that was looked through, and so waits for an xid
# that nobody has used yet.  When the transaction is rolled back, and nobody takes an xid after
# that, its row is restored all the same, and its undo given back.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
max_prepared_transactions = 5
inplace.undo_worker_delay = 10
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int, v text);
	INSERT INTO t SELECT i, 0, repeat('x', 50) FROM generate_series(1, 3000) i;});

# The worker looks through the first transaction's extent while the second one has it, and waits
# for a row, so has written nothing to it yet.
my ($changer, $locker) = map { psql_session($node) } 1 .. 2;
my $found = 0;
my $restored = q{SELECT extents_to_restore = 0 FROM inplace.undo WHERE kind = 'logged'};
foreach my $try (1 .. 100)
{
	$locker->query_safe('BEGIN; SELECT 1 FROM t WHERE id = 2500 FOR NO KEY UPDATE; SELECT pg_current_xact_id()');
	my $wait = ($try % 25) * 0.002;
	$changer->query_until(qr/begun/, qq{\\echo begun
		BEGIN; UPDATE t SET n = n + 1, v = repeat('y', 50) WHERE id <= 2000; ROLLBACK; SELECT pg_sleep($wait);
		BEGIN; UPDATE t SET n = 1 WHERE id = 2500; PREPARE TRANSACTION 'p';\n});
	usleep(400_000);
	$locker->query_safe('COMMIT');
	die 'not prepared' unless defined poll_value($node, 'SELECT count(*) = 1 FROM pg_prepared_xacts', 60);
	usleep(100_000);
	$found = one($node, q{SELECT oldest_xid_needed::text::int8 > (SELECT transaction::text::int8 FROM pg_prepared_xacts)
		FROM inplace.undo WHERE kind = 'logged'}) eq 't';
	$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
	last if $found || !defined poll_value($node, $restored, 30);
}
note($found ? 'an extent waited for an unused xid' : 'no extent waited for an unused xid');
my $t = poll_value($node, $restored, 20);
ok(defined $t, 'the row is restored though nobody takes an xid');
undo_floor_reached($node, 'nor then', 20);
is(one($node, 'SELECT n FROM t WHERE id = 2500'), '0', 'the row is as it was');
$_->quit foreach $changer, $locker;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
