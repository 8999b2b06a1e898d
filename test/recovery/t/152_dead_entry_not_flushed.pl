# A scan marks the index entry of a row that is dead to everybody.  The mark is not logged, so
# it may reach the disk before the commit of the delete does; after a crash the row would be
# there and its entry not.  So entries are marked only when the commit is on disk.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
autovacuum = off
synchronous_commit = off
wal_writer_delay = 10s
wal_writer_flush_after = 1GB
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pageinspect;
	CREATE TABLE t (id int PRIMARY KEY, v int) USING inplace;
	CREATE INDEX t_v ON t USING inplace_btree (v);});

sub dead_entries
{
	return one($node, q{SELECT count(*) FILTER (WHERE dead) FROM bt_page_items(get_raw_page('t_pkey', 1))})
	  . ' ' . one($node, q{SELECT count(*) FILTER (WHERE dead) FROM bt_page_items(get_raw_page('t_v', 1))});
}

sub scan
{
	$node->safe_psql('postgres', q{
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		SELECT v FROM t WHERE id BETWEEN 1 AND 100 ORDER BY id;
		SELECT id FROM t WHERE v BETWEEN 1 AND 100 ORDER BY v;}) foreach 1 .. 2;
}

# The WAL writer may come just now: once more then.
my $looked = 0;
foreach my $round (1 .. 5)
{
	$node->safe_psql('postgres', q{
		TRUNCATE t;
		INSERT INTO t SELECT i, i FROM generate_series(1, 100) i;
		CHECKPOINT;});
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id <= 50');
	my $end = one($node, 'SELECT pg_current_wal_insert_lsn()');
	scan();
	my $dead = dead_entries();
	next if one($node, "SELECT pg_current_wal_flush_lsn() >= '$end'") eq 't';
	is($dead, '0 0', 'no entry is marked whose delete is not on disk');
	$looked = 1;
	last;
}
ok($looked, 'there was time to look');
$node->safe_psql('postgres', 'CHECKPOINT');
scan();
like(dead_entries(), qr/^[1-9]\d* [1-9]\d*$/, 'then they are');
is(one($node, 'SELECT count(*) FROM t'), 50, 'rows');
check_clean($node);

done_testing();
