# A statement that needs a database to itself is cancelled while it waits for the undo worker
# to leave.  The worker comes back at once, not when the time is over for which it was to
# stay away.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = new_node('cancelled', conf => 'inplace.undo_worker_delay = 100');
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (n int) USING inplace;
	INSERT INTO t VALUES (1);
});

# While this is open there is something for a worker to wait for.
my $reader = psql_session($node, 'other');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t');
$node->safe_psql('other', 'UPDATE t SET n = 2');

my $worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'inplace undo worker' AND datname = 'other'};
my $pid;
for (1 .. 300)
{
	last if $pid = one($node, $worker);
	usleep(100_000);
}
ok($pid, 'there is a worker');

kill 'STOP', $pid;
my $result = sqlstate_of($node, q{SET statement_timeout = '1s'; ALTER DATABASE other RENAME TO another});
my $since = time;
kill 'CONT', $pid;
like($result, qr/57014/, 'the statement is cancelled');

my $new;
while (time - $since < 30)
{
	last if ($new = one($node, $worker)) && $new ne $pid;
	usleep(100_000);
}
ok($new, 'there is a worker again');
cmp_ok(time - $since, '<', 7, '... soon');
$reader->quit;
$node->stop;
done_testing();
