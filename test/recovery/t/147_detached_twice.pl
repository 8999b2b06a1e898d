# Two statements need the same database to themselves.  When one of them ends the undo
# worker does not come back before the other has ended, too.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

# (workers of autovacuum would wait for the database, too)
my $node = new_node('twice', conf => "inplace.undo_worker_delay = 100\nautovacuum = off");
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

my $worker = q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'inplace undo worker' AND datname = 'other'};
ok(defined poll_value($node, $worker, 10), 'there is a worker');

# the first statement waits for this lock of the database
my $locker = psql_session($node);
$locker->query_safe(q{BEGIN; COMMENT ON DATABASE other IS 'locked'});
my $first = psql_session($node);
$first->query_until(qr/begun/, "\\echo begun\nALTER DATABASE other RENAME TO another;\n");
ok(defined poll_value($node, q{
	SELECT count(*) > 0 FROM pg_stat_activity
	WHERE query LIKE 'ALTER DATABASE%' AND wait_event_type = 'Lock'
}, 5), 'the first statement waits');

my $since = time;
like(sqlstate_of($node, q{SET statement_timeout = '500ms'; ALTER DATABASE other RENAME TO third}),
	qr/57014/, 'the second is cancelled');

# a worker that comes now waits for the database, behind the first statement
my $comes = q{
	SELECT count(*) > 0 FROM pg_locks
	WHERE classid = 'pg_database'::regclass AND mode = 'RowExclusiveLock' AND NOT granted
		AND objid = (SELECT oid FROM pg_database WHERE datname = 'other')};
my $seen = 0;
while (time - $since < 6)
{
	$seen++ if one($node, $worker) eq 't' || one($node, $comes) eq 't';
	usleep(100_000);
}
is($seen, 0, 'no worker comes meanwhile');

# the reader is in the way of the first statement, which waits for it for 5 s
$locker->quit;
ok(defined poll_value($node, q{
	SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'ALTER DATABASE%' AND state = 'active'
}, 10), 'the first statement ends');
my $took = poll_value($node, $worker, 5);
ok(defined $took, 'there is a worker again');
$first->quit;
$reader->quit;
$node->stop;
done_testing();
