# As in 064_torn_undo.pl, but WAL ends between the two records: the one that names an undo page
# without a reference to it, and the one that has the page's image.  Recovery puts the first
# one's undo on the page, and writes it.  If that is torn, too, recovery comes to the first
# record again, and to no image: the page has to be put together from what is there, for
# changes that are rolled back need all of it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $sector = 512;
my $node = new_node('torn', extra => ['--data-checksums'], conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_prepared_transactions = 2
wal_level = replica
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace; CREATE EXTENSION pg_walinspect;
	CREATE TABLE h (i int);
	CREATE TABLE t (id int PRIMARY KEY, n int, v text);
	INSERT INTO t SELECT i, 0, 'x' FROM generate_series(1, 1000) i});
my $undo = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('inplace.undo_log')});
# (Undo is not given back before the page has been looked at.)
$node->safe_psql('postgres', q{BEGIN; INSERT INTO h VALUES (1); PREPARE TRANSACTION 'holds'});

my $before = contents($node, 't');
my $s = psql_session($node);
$s->query_safe('BEGIN');
$s->query_safe('UPDATE t SET n = n + 1 WHERE id <= 30');
$node->safe_psql('postgres', 'CHECKPOINT');
my $lsn = one($node, 'SELECT pg_current_wal_insert_lsn()');
# this session does not know of the new redo pointer before it has inserted a record
$s->query_safe('UPDATE t SET n = n + 1 WHERE id = 31');
# (WAL goes to disk.  The undo worker, which may come in, has no xid.)
$node->safe_psql('postgres', 'CREATE TABLE flushed (i int) USING heap');

my @records = split /\n/, one($node, qq{SELECT record_type, block_ref, description, (pg_walfile_name_offset(end_lsn)).*
	FROM pg_get_wal_records_info('$lsn', pg_current_wal_flush_lsn())
	WHERE resource_manager = 'inplace' AND xid <> '0' ORDER BY start_lsn LIMIT 2});
note join "\n", @records;
my ($block) = $records[0] =~ /^UPDATE\|.*undo rel: \d+, blk: (\d+)/;
ok(defined $block, 'the first record after the checkpoint names an undo page');
unlike($records[0], qr/blkref #1/, 'and does not refer to it');
like($records[1], qr/^UNDO\|.*blkref #0: .*blk $block\b.*FPW/, 'the next one has its image');

$node->stop('immediate');
eval { $s->quit };
my ($segment, $end) = $records[0] =~ /\|(\w{24})\|(\d+)$/;
overwrite_file($node->data_dir . "/pg_wal/$segment", $end, "\0" x (16 * 1024 * 1024 - $end));

sub page
{
	open(my $fh, '<:raw', $undo) or die "$undo: $!";
	seek($fh, $block * 8192, 0) or die $!;
	read($fh, my $page, 8192) == 8192 or die "$undo: short read";
	return $page;
}

# The state after the first crash, to which the server comes back each time.
my $saved = $node->data_dir . '.saved';
system_or_bail('cp', '-a', $node->data_dir, $saved);

sub crashed_in_recovery
{
	my ($page) = @_;
	system_or_bail('rm', '-rf', $node->data_dir);
	system_or_bail('cp', '-a', $saved, $node->data_dir);
	overwrite_file($undo, $block * 8192, $page) if defined $page;
	return $node->start(fail_ok => 1);
}

my $old = page();
ok(crashed_in_recovery(), 'recovery from WAL that ends between the two');
is(contents($node, 't'), $before, 'contents');
$node->stop;
my $new = page();
isnt($new, $old, 'the record is on the page that recovery has written');
is(substr($new, 0, 8), substr($old, 0, 8), '... which has the LSN that it had');
isnt(substr($new, $sector), substr($old, $sector), '... and does not differ in its header alone');

my %torn = (
	'header written' => substr($new, 0, $sector) . substr($old, $sector),
	'all but the header written' => substr($old, 0, $sector) . substr($new, $sector));
foreach my $what (sort keys %torn)
{
	ok(crashed_in_recovery($torn{$what}), "$what: recovery") or next;
	like(slurp_file($node->logfile), qr/block $block of undo was torn/, "$what: that the page was torn is in the log");
	is(contents($node, 't'), $before, "$what: contents");
	check_clean($node, $what);
	$node->safe_psql('postgres', q{ROLLBACK PREPARED 'holds'});
	is(one($node, 'UPDATE t SET n = n + 1; SELECT min(n) = 1 AND max(n) = 1 FROM t'), 't', "$what: all can be changed");
	undo_floor_reached($node, $what, 20);
	$node->stop;
	check_log($node);
	unlink $node->logfile;
}

# A page that is damaged otherwise does not count as torn: what it has lost is missed when
# it is looked for, and it has not been written over.
my $damaged = substr($old, 0, 4096) . join('', map { chr(($_ * 37 + 11) % 256) } 0 .. 4095);
ok(crashed_in_recovery($damaged), 'damaged: recovery');
like(sqlstate_of($node, 'UPDATE t SET n = n + 1'), qr/ERROR:  XX001:/, 'damaged: the changes cannot be rolled back');
$node->stop;
is(page(), $damaged, 'damaged: the page is as it was');
done_testing();
