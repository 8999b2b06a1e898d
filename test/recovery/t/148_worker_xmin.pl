# The undo worker goes through undo of a table that is not there any more.  It must not keep the
# rest of the database back meanwhile: it looks into catalogs with a snapshot, and has to let that
# go at once.  On a server with assertions UndoTargetGet() fails, at each record, if it has not.

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
inplace.undo_worker_delay = 10
wal_consistency_checking = ''
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int);});
foreach my $round (1 .. 4)
{
	$node->safe_psql('postgres', q{
		CREATE TABLE gone (id int, n int, v text);
		INSERT INTO gone SELECT i, 0, repeat('x', 50) FROM generate_series(1, 100000) i;
		BEGIN; UPDATE gone SET n = 1, v = repeat('y', 50); ROLLBACK;
		DROP TABLE gone;});
	ok(defined poll_value($node, 'SELECT sum(extents_to_restore) = 0 FROM inplace.undo', 60), "round $round: the worker has gone through it");
}
undo_floor_reached($node, 'at the end', 20);
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
