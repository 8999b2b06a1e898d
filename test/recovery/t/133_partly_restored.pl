# Of a row that was changed twice by a transaction, and locked by another, only the second change
# is taken back at first, as there is no room in undo for more.  The lock's record then stands on
# a change that was rolled back.  It has to stay until that one has been taken back, too.

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
inplace.undo_worker_delay = 50
});
$node->start;
# Four records of undo of this table fill a page.
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE filler (id int, v text);
	ALTER TABLE filler ALTER v SET STORAGE plain;
	INSERT INTO filler SELECT i, repeat('a', 2000) FROM generate_series(1, 200) i;
	CREATE TABLE t (id int PRIMARY KEY, n int, v text);
	ALTER TABLE t ALTER v SET STORAGE plain;
	INSERT INTO t SELECT i, 0, repeat('x', 400) FROM generate_series(1, 18) i;});
undo_floor_reached($node, 'at first', 60);
$node->append_conf('postgresql.conf', 'inplace.undo_worker_delay = 60000');
$node->reload;
sleep 1;

my ($reader, $changer, $locker, $filler) = map { psql_session($node) } 1 .. 4;
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$node->safe_psql('postgres', 'UPDATE t SET n = 3 WHERE id = 1');
$changer->query_safe($_) foreach ('BEGIN', 'UPDATE t SET n = 1 WHERE id = 1', 'SAVEPOINT a', 'UPDATE t SET n = 2 WHERE id = 1');
$filler->query_safe('BEGIN');
# all pages of an extent but three
$filler->query_safe(q{UPDATE filler SET v = repeat('b', 2000) WHERE id <= 116});
$locker->query_safe('BEGIN; SELECT 1 FROM t WHERE id = 1 FOR KEY SHARE');
$changer->query_safe('ROLLBACK');
# This needs room, so it prunes the page.
$filler->query_safe(q{SET enable_seqscan = off; UPDATE t SET v = repeat('y', 2000) WHERE id = 2});
is(one($node, q{SELECT string_agg(operation || ' ' || status, ', ' ORDER BY version, operation) FROM inplace.versions('t', '(0,1)') WHERE version < 2}),
	'lock in progress, update aborted, update committed', 'the row is restored in part');
$filler->query_safe('COMMIT');
$reader->query_safe('COMMIT');
$locker->query_safe('COMMIT');
# The undo worker cannot have the table for a while.
my $table = psql_session($node);
$table->query_safe('BEGIN; LOCK TABLE t IN SHARE MODE');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'inplace undo worker'});
sleep 4;
is(one($node, 'SELECT n FROM t WHERE id = 1'), '3', 'the row is as it was');
$table->query_safe('COMMIT');
is(sqlstate_of($node, 'UPDATE t SET n = 5 WHERE id = 1'), '', 'it can be changed');
is(one($node, 'SELECT n FROM t WHERE id = 1'), '5', '... and is');
$_->quit foreach $reader, $changer, $locker, $filler, $table;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
