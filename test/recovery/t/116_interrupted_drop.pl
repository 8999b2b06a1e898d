# A DROP DATABASE that was interrupted leaves a database that nobody can connect to.  No
# undo worker is sent there, and what shared memory has of its undo is given up.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

# The map has two parts, and each database with undo takes one.  A worker looks every ten
# seconds, so that it does not give back what is to be found.
my $node = new_node('primary', conf => q{
inplace.undo_extents = 256
inplace.undo_worker_delay = 10000
});
$node->start;
my $make = q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int, v text) USING inplace;
	INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 2000) g;};
$node->safe_psql('postgres', $make);
my $holder = psql_session($node);
$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$node->safe_psql('postgres', 'UPDATE t SET v = v || 1');

$node->safe_psql('postgres', 'CREATE DATABASE gone');
$node->safe_psql('gone', $make);
$node->safe_psql('gone', 'UPDATE t SET v = v || 1');
$node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity
	WHERE backend_type = 'inplace undo worker' AND datname = 'gone' AND state = 'idle')});
$node->safe_psql('gone', 'UPDATE t SET v = v || 2');

# DROP DATABASE waits until all processes have closed its files.
my $deaf = psql_session($node);
my $pid = $deaf->query_safe('SELECT pg_backend_pid()');
kill 'STOP', $pid;
my $dropper = psql_session($node);
my $dropper_pid = $dropper->query_safe('SELECT pg_backend_pid()');
$dropper->query_until(qr/sent/, "\\echo sent\nDROP DATABASE gone;\n");
ok(defined poll_value($node, q{SELECT datconnlimit = -2 FROM pg_database WHERE datname = 'gone'}, 60), 'the database is of no use any more');
is(one($node, "SELECT pg_cancel_backend($dropper_pid)"), 't', '... when DROP DATABASE is cancelled');
ok(defined poll_value($node, "SELECT state <> 'active' FROM pg_stat_activity WHERE pid = $dropper_pid", 60), '... and ends');
kill 'CONT', $pid;
is($dropper->query('SELECT 1'), '1', '... its session goes on');
like($dropper->{stderr}, qr/canceling statement due to user request/, '... with the error');
is(one($node, q{SELECT datconnlimit FROM pg_database WHERE datname = 'gone'}), '-2', '... and the database is left');

sleep(5);
unlike(slurp_file($node->logfile), qr/cannot connect to invalid database/, 'no worker is sent there');
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', $make);
is(one($node, 'UPDATE t SET v = v || 3; SELECT count(*) FROM t', 'other'), '2000', 'another database gets its place in the map');
is(one($node, 'DROP DATABASE gone'), '', 'DROP DATABASE again');
$_->quit foreach $holder, $deaf, $dropper;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
