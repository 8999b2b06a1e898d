# A compact record names its undo page without a reference to it, because one since the
# redo pointer has referred to it already.  If the redo pointer moves just then, the
# next record has the page's image.  Until replay comes to that one the page may be torn:
# with checksums it is not readable, and that must not end recovery.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('torn', extra => ['--data-checksums'], conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace; CREATE EXTENSION pg_walinspect;
	CREATE TABLE t (id int PRIMARY KEY, n int, v text);
	INSERT INTO t SELECT i, 0, 'x' FROM generate_series(1, 1000) i});
my $undo = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('inplace.undo_log')});

foreach my $end ('committed', 'open')
{
	my $before = contents($node, 't');
	my $s = psql_session($node);
	$s->query_safe('BEGIN');
	$s->query_safe('UPDATE t SET n = n + 1 WHERE id <= 30');
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $lsn = one($node, 'SELECT pg_current_wal_insert_lsn()');
	# this session does not know of the new redo pointer before it has inserted a record
	$s->query_safe("UPDATE t SET n = n + 1 WHERE id = $_") foreach 31, 32;
	if ($end eq 'committed')
	{
		$s->query_safe('COMMIT');
		$before = contents($node, 't');
	}
	# (WAL goes to disk.  The undo worker, which may come in, has no xid.)
	$node->safe_psql('postgres', "CREATE TABLE flushed_$end (i int) USING heap");

	my @records = split /\n/, one($node, qq{SELECT record_type, block_ref, description
		FROM pg_get_wal_records_info('$lsn', pg_current_wal_flush_lsn())
		WHERE resource_manager = 'inplace' AND xid <> '0' ORDER BY start_lsn LIMIT 3});
	note join "\n", @records;
	my ($block) = $records[0] =~ /^UPDATE\|.*undo rel: \d+, blk: (\d+)/;
	ok(defined $block, "$end: the first record after the checkpoint names an undo page");
	unlike($records[0], qr/blkref #1/, "$end: and does not refer to it");
	like($records[1] // '', qr/^UNDO\|.*blkref #0: .*blk $block\b.*FPW/, "$end: the next one has its image");

	$node->stop('immediate');
	eval { $s->quit };
	# Half of it has not come to the disk as it was written.
	overwrite_file($undo, $block * 8192 + 4096, join('', map { chr(($_ * 37 + 11) % 256) } 0 .. 4095));
	ok($node->start(fail_ok => 1), "$end: recovery") or last;
	is(contents($node, 't'), $before, "$end: contents after recovery");
	check_clean($node, $end);
	is(one($node, 'UPDATE t SET n = n + 1; SELECT min(n) >= 1 FROM t'), 't', "$end: all can be changed");
}
if (defined $node->{_pid})
{
	undo_floor_reached($node, 'at the end', 20);
	$node->stop;
}
check_log($node);
done_testing();
