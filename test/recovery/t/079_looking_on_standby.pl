# What the functions that look into tables say on a standby: several lockers of a
# row; pages that COPY FREEZE has filled.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 1, extra => pg_major() >= 18 ? ['--no-data-checksums'] : [], conf => q{
default_table_access_method = 'inplace'
autovacuum = off
max_prepared_transactions = 5
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pg_visibility;
	CREATE TABLE t (id int PRIMARY KEY, n int);
	INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;

# two lockers (which are known as such on a standby if they have changed something, or been prepared)
$node->safe_psql('postgres', "BEGIN; INSERT INTO t VALUES ($_, 0); SELECT FROM t WHERE id = 1 FOR SHARE; PREPARE TRANSACTION 'p$_'") foreach (4, 5);
$node->wait_for_catchup($standby);
my $locks = q{SELECT locked_row, multi, cardinality(xids), modes FROM inplace.row_locks('t')};
is(one($node, $locks), '(0,1)|t|2|{"for share","for share"}', 'row_locks on the primary');
is(one($standby, $locks), one($node, $locks), '... and on the standby');
my $versions = q{SELECT version, operation, status, lock_mode FROM inplace.versions('t', '(0,1)')};
is(one($standby, $versions), one($node, $versions), 'versions');
like(one($standby, $versions), qr/lock\|in progress\|for share\n.*lock\|in progress\|for share/s, '... both locks');
$node->safe_psql('postgres', "COMMIT PREPARED 'p$_'") foreach (4, 5);

# COPY FREEZE, into a file that replay makes, too
my $rows = join('', map { "$_\t" . 'x' x 100 . "\n" } 1 .. 5000);
foreach my $kind ('', 'UNLOGGED')
{
	my $name = "frozen$kind";
	$node->safe_psql('postgres', "CREATE $kind TABLE $name (id int, v text)");
	$node->safe_psql('postgres', "BEGIN; TRUNCATE $name;\nCOPY $name FROM stdin (FREEZE);\n$rows\\.\nCOMMIT");
	# (the file may have been extended by more)
	my $pages = "SELECT count(*) FILTER (WHERE all_visible) = last + 1 AND count(*) FILTER (WHERE all_frozen) = last + 1 AND count(*) FILTER (WHERE pd_all_visible) = last + 1, last > 50"
	  . " FROM pg_visibility('$name'), (SELECT (max(ctid)::text::point)[0] AS last FROM $name) p GROUP BY last";
	is(one($node, $pages), 't|t', "$kind all pages with rows are all-visible and all-frozen, and say so");
	is(one($node, "SELECT count(*) FROM inplace.check('$name')"), '0', "$kind and are right");
	next if $kind;
	$node->wait_for_catchup($standby);
	is(one($standby, $pages), 't|t', 'likewise on the standby');
	is(one($standby, "SELECT count(*) FROM inplace.check('$name')"), '0', '... and right');
}
# what is changed, or put on such a page, takes the bits away
one($node, "UPDATE frozen SET v = 'y' WHERE id = 1; INSERT INTO frozen VALUES (0, 'z')");
my $not_set = "SELECT string_agg(blkno::text, ',' ORDER BY blkno) FROM pg_visibility('%s') v WHERE NOT (all_visible AND all_frozen AND pd_all_visible) AND EXISTS (SELECT FROM %s x WHERE (x.ctid::text::point)[0] = v.blkno)";
like(one($node, sprintf($not_set, ('frozen') x 2)), qr/^0,\d+$/, 'two pages are not any more');
# COPY FREEZE behind rows that are not frozen; and of a page that VACUUM has left empty
$node->safe_psql('postgres', "BEGIN; CREATE TABLE mixed (id int, v text); INSERT INTO mixed VALUES (0, 'first');\nCOPY mixed FROM stdin (FREEZE);\n$rows\\.\nCOMMIT");
is(one($node, sprintf($not_set, ('mixed') x 2)), '0', 'but the page that had a row');
$node->wait_for_catchup($standby);
foreach my $n ($node, $standby)
{
	is(one($n, "SELECT count(*), sum(id) FROM $_"), "5001|12502500", $n->name . ": $_") foreach ('frozen', 'mixed');
	is(one($n, "SELECT count(*) FROM inplace.check('$_')"), '0', $n->name . ": inplace.check('$_')") foreach ('frozen', 'mixed');
}

# Unlogged tables have no file on a standby.  Statements that are refused there say why.
$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE u_heap (id int) USING heap; CREATE UNLOGGED TABLE u_inplace (id int)');
$node->wait_for_catchup($standby);
foreach my $t ('u_heap', 'u_inplace')
{
	foreach my $statement ('VACUUM', 'ANALYZE', "VACUUM $t", "VACUUM FULL $t", "REINDEX TABLE $t", "CLUSTER $t")
	{
		my ($ret, $stdout, $stderr) = $standby->psql('postgres', $statement);
		like($stderr, qr/ERROR:  cannot execute \w+( TABLE)? during recovery/, "$statement on a standby");
	}
}

crash_and_restart($node);
is(one($node, q{SELECT all_visible, all_frozen FROM pg_visibility_map_summary('mixed')}), one($standby, q{SELECT all_visible, all_frozen FROM pg_visibility_map_summary('mixed')}), 'as many after a crash');

check_log($node);
$standby->stop;
$node->stop;
done_testing();
