# VACUUM with parallel workers summarizes ranges of a BRIN index.  It cannot write undo then,
# so it must do without restoring a row whose change was rolled back beside a lock that stays.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => "autovacuum = off\nmin_parallel_index_scan_size = 0");
$node->start;
one($node, q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace WITH (fillfactor = 50);
	CREATE INDEX t_n ON t USING brin (n) WITH (pages_per_range = 4);
	INSERT INTO t SELECT g, g FROM generate_series(1, 3000) g});

# the version below is one that a snapshot does not see
my ($reader, $writer, $locker) = map { psql_session($node) } 1 .. 3;
$reader->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM t';
one($node, 'UPDATE t SET n = n + 20000 WHERE id = 1500');
$writer->query_safe($_) foreach 'BEGIN', 'UPDATE t SET n = n + 40000 WHERE id = 1500';
$locker->query_safe($_) foreach 'BEGIN', 'SELECT id FROM t WHERE id = 1500 FOR KEY SHARE';

# the undo worker does not come by
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'inplace undo worker'}), 'there is an undo worker');
my $worker = one($node, q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'inplace undo worker'});
kill 'STOP', $worker;
$writer->query_safe('ROLLBACK');
is(one($node, 'VACUUM (PARALLEL 2) t'), '', 'VACUUM with parallel workers');
# (up to 15 an update of such a column moves the row)
is(one($node, q{SELECT 'ABORTED' = ANY (flags) FROM inplace.page_items('t', (SELECT (ctid::text::point)[0]::int FROM t WHERE id = 1500)) WHERE 'LOCK_INDIRECT' = ANY (flags)}),
	pg_major() >= 16 ? 't' : '', 'the row has not been restored');

# both versions that anybody sees are found by what VACUUM has summarized
$_->query_safe('SET enable_seqscan = off') foreach $reader, $locker;
is($locker->query_safe('SELECT id, n FROM t WHERE n BETWEEN 21500 AND 21501'), '1500|21500', 'by the index: the version that came back');
is($reader->query_safe('SELECT id, n FROM t WHERE n = 1500'), '1500|1500', '... and an older one');
kill 'CONT', $worker;
$_->quit foreach $reader, $writer, $locker;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
