# VACUUM notes the free pages of an index before it locks it, to move pages to them from the
# end of the file.  Until it has the lock others may have used them: such a page is left
# alone, also where it has become a neighbour, or the parent, of one that is moved.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
max_parallel_maintenance_workers = 0
# (nothing is replayed)
wal_consistency_checking = ''
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION amcheck;
	CREATE TABLE t (id int, k int, w text) WITH (vacuum_index_cleanup = on);});
my @indexes = qw(t_id t_k t_stock t_w);

# Most pages of the indexes, and the table's end, become free; what they are noted for
# comes with the next VACUUM.
sub fill
{
	$node->safe_psql('postgres', q{
		DROP TABLE t;
		CREATE TABLE t (id int, k int, w text) WITH (vacuum_index_cleanup = on);
		INSERT INTO t SELECT i, hashint4(i), md5(i::text) || repeat('x', 500) FROM generate_series(1, 20000) i;
		CREATE INDEX t_id ON t (id);
		CREATE INDEX t_k ON t (k);
		CREATE INDEX t_w ON t (w);
		SET inplace.default_index_method = btree;
		CREATE INDEX t_stock ON t (k);
		DELETE FROM t WHERE id > 1000;});
	foreach (1 .. 2)
	{
		$node->safe_psql('postgres', 'VACUUM (TRUNCATE off, DISABLE_PAGE_SKIPPING) t; SELECT pg_current_xact_id()');
	}
	# (so that the next one looks at the indexes)
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 100 = 0');
	return;
}

# How many new rows there are decides how many of the free pages are used anew: a few, about
# half, all and more.
foreach my $rows (70, 350, 800, 2000, 4000, 10000, 24000)
{
	fill();
	my $holder = psql_session($node);
	$holder->query_safe($_) foreach 'BEGIN', 'LOCK TABLE t IN ROW EXCLUSIVE MODE';
	my $vacuumer = psql_session($node);
	$vacuumer->query_until(qr/begins/, "\\echo begins\nVACUUM (VERBOSE, PARALLEL 0, DISABLE_PAGE_SKIPPING) t;\n\\echo ends\n");
	# it has looked at the indexes, and waits, for 5 s of its own time, for the table's lock
	ok(defined poll_value($node, q{SELECT phase = 'truncating heap' FROM pg_stat_progress_vacuum}, 60), "$rows rows: VACUUM wants to cut the table's end");
	my $pid = one($node, 'SELECT pid FROM pg_stat_progress_vacuum');
	$pid =~ /^\d+$/ or BAIL_OUT('VACUUM has ended');
	kill 'STOP', $pid;
	$node->safe_psql('postgres', "INSERT INTO t SELECT -i, hashint4(-i), md5((-i)::text) || repeat('x', 20) FROM generate_series(1, $rows) i ORDER BY hashint4(i)");
	is(one($node, q{SELECT phase FROM pg_stat_progress_vacuum}), 'truncating heap', "$rows rows come before the indexes are locked");
	kill 'CONT', $pid;
	$holder->query_safe('COMMIT');
	ok(defined poll_value($node, q{SELECT count(*) = 0 FROM pg_stat_progress_vacuum}, 60), 'VACUUM ends')
		or BAIL_OUT('VACUUM waits for a page that it has itself');
	$vacuumer->query_until(qr/told/, "\\echo told\n");
	note $1 while $vacuumer->{stderr} =~ /(index "\w+": \d+ pages moved, \d+ removed)/g;
	$vacuumer->quit;
	$holder->quit;
	note join ', ', map { "$_: " . one($node, "SELECT pg_relation_size('$_') / 8192") } @indexes;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 990 + $rows, 'all rows are there');
	foreach my $key (qw(id k w))
	{
		is($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SELECT count(*) FROM (SELECT $key FROM t ORDER BY $key OFFSET 0) x"), 990 + $rows, "... by $key");
	}
	check_clean($node, 'index pages');
	is(one($node, q{SELECT bt_index_parent_check('t_stock', true)}), '', 'amcheck');
}

$node->stop;
check_log($node);
done_testing();
