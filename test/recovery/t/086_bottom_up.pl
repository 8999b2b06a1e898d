# A page of an inplace_btree that is about to split gets rid of the entries of former keys
# first, of rows anywhere in the table, so that the index does not grow between two VACUUMs;
# and for that the table is not read from disk.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 40000;
my $scripts = 0;
my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
synchronous_commit = off
shared_buffers = '64MB'
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

# Rows on some 1,000 pages; the entries of an index page are of rows on most of them.
sub fill
{
	my ($keys, $index) = @_;
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id int PRIMARY KEY, k int, w text);
		INSERT INTO t SELECT i, (hashint4(i) & 16777215) % $keys, repeat('x', 160) FROM generate_series(1, $rows) i;
		CREATE INDEX t_k ON t USING inplace_btree (k) $index;
		VACUUM ANALYZE t;});
	return pages();
}

sub pages
{
	return one($node, "SELECT pg_relation_size('t_k') / 8192");
}

sub run_updates
{
	my ($keys, $n) = @_;
	my $script = pgbench_script($node, 'updates' . $scripts++, qq{\\set id random(1, $rows)
\\set k random(0, $keys - 1)
UPDATE t SET k = :k WHERE id = :id;
});
	$node->command_ok(
		[ 'pgbench', '-n', '-M', 'prepared', '-c', '2', '-t', $n / 2, '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
		"$n updates");
	return;
}

sub look
{
	my ($name) = @_;
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(k::bigint * id) FROM t WHERE k >= 0'),
		$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(k::bigint * id) FROM t WHERE k >= 0'),
		"$name: rows by index");
	check_clean($node, $name);
	return;
}

# As many updates as rows.  Entries of a key in posting lists, of which a page has a
# thousand; entries of their own; and keys that nbtree is not to deduplicate.
foreach my $case ([ $rows / 20, '', 1.25 ], [ 20, '', 1.3 ], [ $rows * 10, '', 1.3 ], [ $rows / 20, 'WITH (deduplicate_items = off)', 1.3 ])
{
	my ($keys, $index, $most) = @$case;
	my $before = fill($keys, $index);
	run_updates($keys, $rows);
	my $after = pages();
	note "$keys keys $index: $before to $after pages";
	cmp_ok($after, '<=', $most * $before, "an index of $keys keys $index does not grow much");
	look("$keys keys $index");
}

# ---- a table that does not fit the buffers

my $before = fill($rows / 20, '');
$node->append_conf('postgresql.conf', "shared_buffers = '1MB'\n");
$node->restart;
my $reads = q{SELECT pg_stat_force_next_flush(), heap_blks_read FROM pg_statio_user_tables WHERE relname = 't'};
my $n = 10000;
my ($read_before) = one($node, $reads) =~ /(\d+)$/;
run_updates($rows / 20, $n);
my ($read_after) = one($node, $reads) =~ /(\d+)$/;
my $each = ($read_after - $read_before) / $n;
note "$each pages read an update, index $before to ", pages(), ' pages';
cmp_ok($each, '<', 2, 'the table is not read for it');
look('few buffers');

$node->stop;
check_log($node);
done_testing();
