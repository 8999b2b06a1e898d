# A VACUUM that finds nothing dead makes up for one before it, which freed pages of indexes
# but could not make their files shorter, as somebody had the indexes locked.

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
# (nothing is replayed)
wal_consistency_checking = ''
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace; CREATE EXTENSION pg_freespacemap');

sub fill
{
	my ($rows) = @_;
	$rows //= 30000;
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id int PRIMARY KEY, k int, n int);
		CREATE INDEX t_k ON t (k);
		SET inplace.default_index_method = btree;
		CREATE INDEX t_n ON t (n);
		INSERT INTO t SELECT i, i, i FROM generate_series(1, $rows) i;
		VACUUM ANALYZE t;});
	return;
}

my @indexes = qw(t_k t_n t_pkey);

sub pages
{
	my %pages = split /[|\n]/, $node->safe_psql('postgres',
		"SELECT indexrelid::regclass, pg_relation_size(indexrelid) / 8192 FROM pg_index WHERE indrelid = 't'::regclass");
	return \%pages;
}

# What it says of index pages, by index: those seen, and those cut off.
sub vacuum
{
	my ($options) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "VACUUM (VERBOSE, $options) t");
	is($rc, 0, "VACUUM ($options)") or diag $err;
	my %seen = $err =~ /index "(\w+)": pages: (\d+) in total/g;
	my %cut = $err =~ /index "(\w+)": \d+ pages moved, (\d+) removed from the end of the file/g;
	return (\%seen, \%cut);
}

# A VACUUM frees pages while a transaction that has read the table has the indexes locked.
sub vacuum_beside_a_reader
{
	my ($change) = @_;
	my $reader = psql_session($node);
	$reader->query_safe($_) foreach 'BEGIN', 'SELECT count(*) FROM t WHERE k > 0';
	$node->safe_psql('postgres', $change);
	my $before = pages();
	my ($seen, $cut) = vacuum('PARALLEL 0');
	is_deeply($cut, {}, 'nothing is cut off beside a reader');
	is_deeply(pages(), $before, '... no page');
	$reader->query_safe('COMMIT');
	$reader->quit;
	return;
}

sub noted_free
{
	my ($index) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_freespace('$index') WHERE avail > 0");
}

# VACUUM until it has noted pages as free, without cutting them off.
sub vacuum_notes_free
{
	foreach my $try (1 .. 20)
	{
		xids_pass();
		vacuum('TRUNCATE off, PARALLEL 0');
		last unless grep { noted_free($_) <= 20 } @_;
	}
	cmp_ok(noted_free($_), '>', 20, "$_ has free pages") foreach @_;
	return;
}

# xids are taken, so that deleted pages can be used anew
sub xids_pass
{
	$node->safe_psql('postgres', 'SELECT pg_current_xact_id()') foreach 1 .. 3;
	return;
}

# files as after a VACUUM that had the indexes to itself
sub short_enough
{
	my ($want, $name) = @_;
	my $pages = pages();
	cmp_ok($pages->{$_}, '<=', $want->{$_} + 8, "$name: $_") foreach sort keys %$want;
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class c WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass) AND relpages <> pg_relation_size(oid) / 8192"), 0, "$name: relpages");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class c WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass) AND abs(reltuples - (SELECT count(*) FROM t)) > 0.02 * (SELECT count(*) FROM t)"), 0, "$name: reltuples") unless $name =~ /not yet/;
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(k) FROM t WHERE k > 0'),
		$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(k) FROM t WHERE k > 0'), "$name: rows by index");
	check_clean($node, $name);
	return;
}

# (rows at the ends stay, so neighbours stay too: whole pages become free for stock btree as well)
my $deletion = 'DELETE FROM t WHERE id BETWEEN 5000 AND 25000';
my $update = 'UPDATE t SET k = id / 20 * 20';

fill();
$node->safe_psql('postgres', $deletion);
my ($seen, $cut) = vacuum('PARALLEL 0');
my $want = pages();
cmp_ok($cut->{$_} // 0, '>', 20, "alone, VACUUM cuts off the end of $_") foreach @indexes;

foreach my $options ('PARALLEL 0', 'PARALLEL 2', 'PARALLEL 0, INDEX_CLEANUP on')
{
	# pages deleted, which nobody may use yet: none is noted as free
	fill();
	vacuum_beside_a_reader($deletion);
	vacuum($options);
	short_enough($want, "pages that are not yet free, $options");

	# deleted and noted as free
	fill();
	vacuum_beside_a_reader($deletion);
	vacuum_notes_free(@indexes);
	my $before = pages();
	vacuum('TRUNCATE off, PARALLEL 0');
	is_deeply(pages(), $before, 'TRUNCATE off: all stays');
	vacuum('INDEX_CLEANUP off, PARALLEL 0');
	is_deeply(pages(), $before, 'INDEX_CLEANUP off: all stays');
	vacuum($options);
	short_enough($want, "pages that are free, $options");
	# and then there is nothing left
	($seen, $cut) = vacuum($options);
	is_deeply($cut, {}, 'no page goes twice');
}

# ---- former keys: there are no dead rows at all

fill();
$node->safe_psql('postgres', $update);
vacuum('PARALLEL 0');
$want = { t_k => pages()->{t_k} };
foreach my $xids (0, 1)
{
	fill();
	vacuum_beside_a_reader($update);
	if ($xids)
	{
		vacuum_notes_free('t_k');
	}
	vacuum('PARALLEL 0');
	short_enough($want, 'former keys, ' . ($xids ? 'free' : 'not yet free'));
}

# ---- an index with few free pages is not even looked at; nor one that is locked

fill();
($seen, $cut) = vacuum('PARALLEL 0');
is_deeply([ $seen, $cut ], [ {}, {} ], 'no page is free: no index is gone through');
$node->safe_psql('postgres', 'DELETE FROM t WHERE id BETWEEN 5000 AND 6500');
vacuum('TRUNCATE off, PARALLEL 0');
xids_pass();
vacuum('TRUNCATE off, PARALLEL 0, INDEX_CLEANUP on');
xids_pass();
vacuum('TRUNCATE off, PARALLEL 0');
($seen, $cut) = vacuum('PARALLEL 0');
is_deeply([ $seen, $cut ], [ {}, {} ], 'few pages are free: no index is gone through');

fill();
vacuum_beside_a_reader($deletion);
vacuum_notes_free(@indexes);
my $reader = psql_session($node);
$reader->query_safe($_) foreach 'BEGIN', 'SELECT count(*) FROM t WHERE k > 0';
($seen, $cut) = vacuum('PARALLEL 0');
is_deeply([ $seen, $cut ], [ {}, {} ], 'locked: no index is gone through');
$reader->query_safe('COMMIT');
$reader->quit;

# ---- larger ones, of whose pages a sample is looked at

fill(120000);
vacuum_beside_a_reader('DELETE FROM t WHERE id BETWEEN 5000 AND 50000');
vacuum_notes_free(@indexes);
my %large = %{ pages() };
cmp_ok($large{$_}, '>', 300, "$_ is larger") foreach @indexes;
vacuum('PARALLEL 0');
cmp_ok(pages()->{$_}, '<', 0.75 * $large{$_}, "$_ is shorter") foreach @indexes;
check_clean($node, 'larger');
fill();
vacuum_beside_a_reader($deletion);
vacuum_notes_free(@indexes);

# ---- a free space map that is wrong, as after a crash

my $before = pages();
$node->safe_psql('postgres', 'CHECKPOINT');
my %fsm = map { $_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") . '_fsm' } @indexes;
my %old = map { $_ => slurp_file($fsm{$_}) } @indexes;
vacuum('PARALLEL 0');
cmp_ok(pages()->{$_}, '<', $before->{$_}, "$_ is shorter") foreach @indexes;
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, i, i FROM generate_series(5000, 25000) i; VACUUM ANALYZE t');
my $full = pages();
$node->stop;
foreach my $index (@indexes)
{
	open my $fh, '>:raw', $fsm{$index} or die $!;
	print $fh $old{$index};
	close $fh;
}
$node->start;
($seen, $cut) = vacuum('PARALLEL 0');
is_deeply([ sort keys %$seen ], \@indexes, 'the indexes are gone through');
is_deeply(pages(), $full, 'pages that are in use, but noted as free, stay');
is(noted_free($_), 0, "$_: the map is right again") foreach @indexes;
($seen, $cut) = vacuum('PARALLEL 0');
is_deeply([ $seen, $cut ], [ {}, {} ], '... so they are not gone through for it again');
short_enough($full, 'a wrong map');

$node->stop;
check_log($node);
done_testing();
