# inplace.check reads pages of GIN, hash and GiST indexes: those that are damaged are findings, and do
# no harm.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('damaged', extra => pg_major() >= 18 ? ['--no-data-checksums'] : [], conf => "autovacuum = off\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int, h int, a int[], p point, w text[]) USING inplace;
	INSERT INTO t SELECT i, i, ARRAY[i % 5, 10 + i], point(i, i), ARRAY['key' || i] FROM generate_series(1, 150) i;
	CREATE INDEX t_h ON t USING hash (h);
	CREATE INDEX t_p ON t USING gist (p);
	CREATE INDEX t_a ON t USING gin (a);
	CREATE INDEX t_w ON t USING gin (w);
	CREATE INDEX t_pending ON t USING gin (a, w);
	INSERT INTO t SELECT i, i, ARRAY[i % 5], point(i, i), ARRAY['more' || i] FROM generate_series(151, 160) i;
	CHECKPOINT;
});
my $findings = q{SELECT index::regclass || ': ' || problem FROM inplace.check('t') ORDER BY 1};
is(one($node, $findings), '', 'nothing wrong at first');

# where the n-th item of a page begins
sub item
{
	my ($page, $n) = @_;
	return unpack('V', substr($page, 24 + 4 * ($n - 1), 4)) & 0x7fff;
}

sub lead_outside
{
	my ($page) = @_;
	substr($page, 24, 4) = pack('V', 8184 | 1 << 15 | 16 << 17);
	return $page;
}

# The first page that is looked at is: block 1 for hash and GIN, 0 for GiST.
foreach my $case (
	[ 't_h', 1, 'a line pointer that leads outside', \&lead_outside, qr/block 1: line pointer leads to no entry/ ],
	[ 't_p', 0, 'a line pointer that leads outside', \&lead_outside, qr/block 0: line pointer leads to no entry/ ],
	[ 't_a', 1, 'a line pointer that leads outside', \&lead_outside, qr/block 1: line pointer leads to no entry/ ],
	[ 't_h', 1, 'another hash value', sub {
		my ($page) = @_;
		my $at = item($page, 1) + 8;
		substr($page, $at, 4) = pack('V', unpack('V', substr($page, $at, 4)) ^ 1);
		return $page;
	}, qr/row has no index entry with its key/ ],
	[ 't_p', 0, 'another key', sub {
		my ($page) = @_;
		substr($page, item($page, 3) + 8, 8) = pack('d', 4711);
		return $page;
	}, qr/row has no index entry with its key/ ],
	[ 't_p', 0, 'a page of something else', sub {
		my ($page) = @_;
		substr($page, 8190, 2) = pack('v', 1);
		return $page;
	}, qr/block 0: page is not one of a GiST index/ ],
	[ 't_a', 1, 'another key', sub {
		my ($page) = @_;
		substr($page, item($page, 1) + 8, 4) = pack('V', 0xffffffff);
		return $page;
	}, qr/row has no index entry with one of its keys/ ],
	[ 't_a', 1, 'a list of TIDs that is too long', sub {
		my ($page) = @_;
		my $at = item($page, 1);
		my $list = unpack('v', substr($page, $at + 2, 2));
		substr($page, $at + $list + 6, 2) = pack('v', 30000);
		return $page;
	}, qr/block 1: posting list does not fit its entry/ ],
	[ 't_w', 1, 'a key that is too long', sub {
		my ($page) = @_;
		substr($page, item($page, 1) + 8, 1) = chr(0xff);
		return $page;
	}, qr/block 1: entry's key does not fit it/ ],
	[ 't_pending', -1, 'a list of pending entries that is none', sub {
		my ($page) = @_;
		substr($page, 8190, 2) = pack('v', unpack('v', substr($page, 8190, 2)) ^ (1 << 4));
		return $page;
	}, qr/block \d+: page is not one of pending entries/ ])
{
	my ($index, $block, $what, $damage, $expected) = @$case;
	my $file = $node->data_dir . '/' . one($node, "SELECT pg_relation_filepath('$index')");
	$node->stop;
	# pending entries are on the last page
	$block = (-s $file) / 8192 - 1 if $block < 0;
	my $sound = substr(slurp_file($file), 8192 * $block, 8192);
	overwrite_file($file, 8192 * $block, $damage->($sound));
	$node->start;
	like(one($node, $findings), qr/\b$index: $expected/, "$index: $what");
	$node->stop;
	overwrite_file($file, 8192 * $block, $sound);
	$node->start;
}
is(one($node, $findings), '', 'nothing wrong at last');
check_log($node);
$node->stop;
done_testing();
