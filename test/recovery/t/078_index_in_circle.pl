# Links of a damaged B-tree that lead in a circle, or to pages of another kind: whoever
# goes along them comes to an end, and says so.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('circle', extra => pg_major() >= 18 ? ['--no-data-checksums'] : [], conf => q{
autovacuum = off
max_parallel_maintenance_workers = 0
restart_after_crash = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int, k text, o text, n int) USING inplace;
	INSERT INTO t SELECT i, lpad(i::text, 300, 'x'), lpad(i::text, 300, 'y'), i FROM generate_series(1, 4000) i;
	CREATE INDEX t_k ON t USING inplace_btree (k) WITH (fillfactor = 70);
	CREATE INDEX t_n ON t USING inplace_btree (n);
	SET inplace.default_index_method = btree;
	CREATE INDEX t_o ON t (o) WITH (fillfactor = 70);
	DELETE FROM t WHERE id % 3 <> 0;
	CHECKPOINT;
});
my $check = q{SET statement_timeout = '60s'; SELECT index::regclass || ': ' || problem FROM inplace.check('t') WHERE index IS NOT NULL};

sub number { return unpack('V', substr($_[0], $_[1], 4)) }
sub level { return number($_[0], 8192 - 8) }
sub leaf_link { return 8192 - 16 + ($_[0] eq 'left' ? 0 : 4) }
sub item { return number($_[0], 24 + 4 * ($_[1] - 1)) & 0x7fff }

# the index's file, with its leaf pages in order, and an inner page just above them
my %index;
foreach my $name ('t_k', 't_o')
{
	my $file = $node->data_dir . '/' . one($node, "SELECT pg_relation_filepath('$name')");
	my $all = slurp_file($file);
	my @pages = map { substr($all, $_ * 8192, 8192) } 0 .. length($all) / 8192 - 1;
	my @leaves = grep { level($pages[$_]) == 0 && number($pages[$_], 8192 - 4) & 1 } 1 .. $#pages;
	my ($inner) = grep { level($pages[$_]) == 1 } 1 .. $#pages;
	cmp_ok(scalar(@leaves), '>', 50, "$name: " . @leaves . ' leaves');
	$index{$name} = { file => $file, pages => \@pages, leaves => \@leaves, inner => $inner };
}

# writes the damaged page, runs what is to be run, puts the page back
sub with_damage
{
	my ($name, $block, $damage, $run) = @_;
	my $sound = $index{$name}{pages}[$block];
	my $page = $sound;
	$damage->($page);
	$node->stop;
	overwrite_file($index{$name}{file}, $block * 8192, $page);
	$node->start;
	$run->();
	$node->stop;
	overwrite_file($index{$name}{file}, $block * 8192, $sound);
	$node->start;
}

sub finds
{
	my ($name, $block, $damage, $expected, $what) = @_;
	with_damage($name, $block, $damage, sub {
		my ($rc, $out, $err) = $node->psql('postgres', $check, timeout => 300);
		like($out, qr/\b$name: $expected/, "$name: $what");
		unlike($err, qr/ERROR/, "$name: $what: no error");
	});
}

is(one($node, $check), '', 'nothing wrong at first');
foreach my $name ('t_k', 't_o')
{
	my ($pages, $leaves, $inner) = @{ $index{$name} }{ 'pages', 'leaves', 'inner' };
	my ($b, $earlier) = ($leaves->[@$leaves * 3 / 4], $leaves->[@$leaves / 2]);

	finds($name, $b, sub { substr($_[0], leaf_link('right'), 4) = pack('V', $b) },
		qr/block $b: right sibling $b has left link/, 'a right link to the page itself');
	finds($name, $b, sub { substr($_[0], leaf_link('right'), 4) = pack('V', $earlier) },
		qr/block $b: right sibling $earlier has left link/, 'a right link to an earlier leaf');
	finds($name, $b, sub { substr($_[0], leaf_link('right'), 4) = pack('V', 0) },
		qr/block $b, offset 1: entry of a leaf page is marked as one of an inner page/, 'no right link where there is a high key');
	finds($name, $inner, sub {
			foreach my $i (2 .. (unpack('v', substr($_[0], 12, 2)) - 24) / 4)
			{
				substr($_[0], item($_[0], $i), 4) = pack('vv', 0, $inner);
			}
		}, qr/block $inner, offset \d+: downlink leads to block $inner, which is of level 1/, 'downlinks to the page itself');
	finds($name, $b, sub { substr($_[0], 8192 - 8, 4) = pack('V', 1) },
		qr/block $b: page's level and flags do not agree/, 'a leaf of level 1');
	finds($name, $b, sub { substr($_[0], 8192 - 4, 2) = pack('v', 0x8001) },
		qr/block $b: page has flags that there are not/, 'unknown flags');
	# the flag bit of the header of the high key, which says that it is one
	finds($name, $b, sub { substr($_[0], item($_[0], 1) + 7, 1) = chr(ord(substr($_[0], item($_[0], 1) + 7, 1)) & ~0x20) },
		qr/block $b, offset 1: entry of an inner page, or high key, is not marked as one/, 'a high key that looks like an entry');
	# a text longer than its entry
	finds($name, $b, sub { substr($_[0], item($_[0], 3) + 8, 4) = pack('V', 4000 << 2) },
		qr/block $b, offset 3: entry's values do not fit it/, 'a value that is too long');

	# two leaves that are each other's siblings, on both sides
	my ($first, $second) = @$leaves[0, 1];
	with_damage($name, $first, sub { substr($_[0], leaf_link('left'), 4) = pack('V', $second) }, sub {
		finds($name, $second, sub { substr($_[0], leaf_link('right'), 4) = pack('V', $first) },
			qr/block $second: right sibling $first begins below the high key/, 'a circle of links that agree');
	});
}

# VACUUM goes along the leaves to merge them, and to see what updates have left.
my $b = $index{t_k}{leaves}[@{ $index{t_k}{leaves} } * 3 / 4];
my $earlier = $index{t_k}{leaves}[@{ $index{t_k}{leaves} } / 2];
with_damage('t_k', $b, sub { substr($_[0], leaf_link('right'), 4) = pack('V', $earlier) }, sub {
	my $end = -s $node->logfile;
	my ($rc, $out, $err) = $node->psql('postgres', q{SET statement_timeout = '300s'; VACUUM (INDEX_CLEANUP on) t}, timeout => 600);
	is($rc, 0, 'VACUUM ends') or diag $err;
	like(slurp_file($node->logfile, $end), qr/LOG:  right links of index "t_k" lead in a circle, by way of block \d+\n.*HINT:  Please REINDEX it/s, 'and says what it met');
});
# (Indexes without the pages that VACUUM has emptied.)
one($node, 'REINDEX TABLE t; UPDATE t SET n = n + 1; CHECKPOINT');
my $file = $node->data_dir . '/' . one($node, "SELECT pg_relation_filepath('t_n')");
$node->stop;
my $all = slurp_file($file);
my $third = (grep { number($all, $_ * 8192 + 8192 - 4) & 1 } 1 .. length($all) / 8192 - 1)[2];
overwrite_file($file, $third * 8192 + leaf_link('right'), pack('V', 1));
$node->start;
like(sqlstate_of($node, q{SET statement_timeout = '300s'; VACUUM (INDEX_CLEANUP on) t}), qr/XX002/, 'stale entries are looked for in a circle: index_corrupted');
is(one($node, q{REINDEX INDEX t_n; VACUUM (INDEX_CLEANUP on) t; SELECT count(*) FROM t}), '1333', 'REINDEX makes that good');
is(one($node, $check), '', 'nothing wrong at last');
$node->stop;
done_testing();
