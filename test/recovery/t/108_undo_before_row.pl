# An update leaves the old row to its page, for full_page_writes is on; as its record is
# inserted that has been switched off, and so the next record has the undo.  WAL may end
# between the two.  Who replays the first one then has the only copy of the undo, and
# the page must not be written before it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace; CREATE EXTENSION pg_walinspect;
	CREATE TABLE t (id int PRIMARY KEY, n int, v text);
	INSERT INTO t SELECT i, 0, 'x' FROM generate_series(1, 100) i;
	VACUUM t});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'bgwriter_lru_maxpages = 0');
$standby->start;

my $before = contents($node, 't');
my $s = psql_session($node);
$s->query_safe('BEGIN');
$s->query_safe('UPDATE t SET n = n + 1 WHERE id <= 30');
$node->safe_psql('postgres', 'CHECKPOINT');
$node->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');

$node->safe_psql('postgres', 'ALTER SYSTEM SET full_page_writes = off');
$node->reload;
# (The checkpointer tells the others, and says so in WAL.)
ok(defined poll_value($node, q{SELECT count(*) > 0
	FROM pg_get_wal_records_info((SELECT redo_lsn FROM pg_control_checkpoint()), pg_current_wal_flush_lsn())
	WHERE resource_manager = 'XLOG' AND record_type = 'FPW_CHANGE'}, 20), 'full_page_writes is off');
my $lsn = one($node, 'SELECT pg_current_wal_insert_lsn()');
# this session does not know of that before it has inserted a record
$s->query_safe('UPDATE t SET n = n + 1 WHERE id = 31');
$node->safe_psql('postgres', 'CREATE TABLE flushed (i int) USING heap');

my @records = split /\n/, one($node, qq{SELECT record_type, fpi_length, block_ref, description
	FROM pg_get_wal_records_info('$lsn', pg_current_wal_flush_lsn())
	WHERE resource_manager = 'inplace' AND xid <> '0' ORDER BY start_lsn LIMIT 2});
note join "\n", @records;
my ($block, $offset) = $records[0] =~ /^UPDATE\|0\|.*undo rel: \d+, blk: (\d+), offset: (\d+), old row from page/;
ok(defined $block, 'the record leaves the old row to the page, and has no image of that');
like($records[1], qr/^UNDO\|0\|.*blkref #0: .*blk $block\b/, 'the next one has the undo');
$node->wait_for_catchup($standby);

my $undo = $standby->data_dir . '/' . one($standby, q{SELECT pg_relation_filepath('inplace.undo_log')});
my ($pd_lower) = unpack('x12 v', substr(slurp_file($undo), $block * 8192, 8192));
cmp_ok($pd_lower, '>', $offset, 'the standby has the undo on disk');

$node->stop('immediate');
eval { $s->quit };
$standby->promote;
is(contents($standby, 't'), $before, 'promoted: contents');
check_clean($standby, 'promoted');
$standby->stop;
check_log($standby);
done_testing();
