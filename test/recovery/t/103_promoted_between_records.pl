# VACUUM's changes to pages of an inplace_btree are several records: a merge leaves a page
# half-dead, which is unlinked by a record of nbtree's; where no two pages become one, entries
# move several times.  A server that replays no more than the first of them, and is
# promoted, has an index that scans and insertions find in order, and that the next
# VACUUM goes on with.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 20000;
my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pg_walinspect;
	CREATE TABLE m (id int, at int);
	CREATE TABLE s (id int, at int);
	INSERT INTO m SELECT i, i FROM generate_series(1, $rows) i;
	INSERT INTO s SELECT i, i FROM generate_series(1, $rows) i;
	CREATE INDEX m_at ON m USING inplace_btree (at);
	CREATE INDEX s_at ON s USING inplace_btree (at);
	SET inplace.merge_index_pages = off;
	DELETE FROM m WHERE id % 5 <> 0;
	DELETE FROM s WHERE id % 3 = 0;
	VACUUM ANALYZE m, s;
	DELETE FROM m WHERE id <= 1500;
	DELETE FROM s WHERE id <= 1500;});
$node->backup('b');
my $from = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');

# (pages are packed if others take xids meanwhile)
my $take_xids = PostgreSQL::Test::Utils::tempdir() . '/take_xids.sql';
append_to_file($take_xids, "SELECT pg_current_xact_id();\n");
my $takers = IPC::Run::start([ 'pgbench', '-n', '-t', 100000, '-f', $take_xids, $node->connstr('postgres') ], '<', \'', '>', \my $done, '2>', \my $said);
my $began = $node->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
ok(defined poll_value($node, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint > $began + 10", 60), 'xids are taken');
$node->safe_psql('postgres', 'SET vacuum_cost_delay = 5; SET vacuum_cost_limit = 5; VACUUM (INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) m, s');
$takers->kill_kill;
$node->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '')});

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off';
foreach my $what ('merge of index pages', 'index entries to the right')
{
	my @ends = split /\n/, $node->safe_psql('postgres', qq{
		SELECT end_lsn FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
		WHERE description LIKE '$what%' ORDER BY 1});
	cmp_ok(scalar @ends, '>', 3, "$what: there are such records");
	my $end = $ends[ @ends / 2 ];
	my $name = $what =~ /^(\w+)/ ? $1 : '';
	my $copy = PostgreSQL::Test::Cluster->new($name);
	$copy->init_from_backup($node, 'b', has_streaming => 1);
	$copy->append_conf('postgresql.conf', "recovery_target_lsn = '$end'\nrecovery_target_action = 'promote'\n");
	$copy->start;
	ok($copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), "$name: promoted after it");

	check_clean($copy, "$name: promoted");
	foreach my $t ('m', 's')
	{
		my $sum = $copy->safe_psql('postgres', "SELECT count(*), sum(id::bigint * 7) FROM $t");
		is($copy->safe_psql('postgres', "$by_index; SELECT count(*), sum(id::bigint * 7) FROM (SELECT * FROM $t WHERE at > 0 ORDER BY at $_ OFFSET 0) x"), $sum, "$name: all rows of $t, $_")
		  foreach 'ASC', 'DESC';
	}
	# (between all entries, so on both sides of whatever is half done)
	$copy->safe_psql('postgres', "INSERT INTO m SELECT i, i FROM generate_series(1, $rows, 7) i; INSERT INTO s SELECT i, i FROM generate_series(1, $rows, 7) i");
	check_clean($copy, "$name: with more rows");
	my ($rc, $out, $err) = $copy->psql('postgres', 'VACUUM (INDEX_CLEANUP on, PARALLEL 0) m, s; VACUUM (INDEX_CLEANUP on, PARALLEL 0) m, s');
	is("$rc$err", '0', "$name: VACUUM goes on");
	check_clean($copy, "$name: after VACUUM");
	$copy->stop;
	check_log($copy);
}
$node->stop;
check_log($node);
done_testing();
