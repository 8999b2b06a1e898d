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

# what a case has damaged is put back with the next one's damage
my $put_back = sub { };

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
	[ 't_a', 1, 'a TID that is none', sub {
		my ($page) = @_;
		my $at = item($page, 1);
		substr($page, $at + unpack('v', substr($page, $at + 2, 2)) + 4, 2) = pack('v', 0);
		return $page;
	}, qr/block 1: posting list does not fit its entry/ ],
	[ 't_a', 1, 'a list of TIDs that does not end', sub {
		my ($page) = @_;
		my $at = item($page, 1);
		$at += unpack('v', substr($page, $at + 2, 2)) + 6;
		$at += 1 + unpack('v', substr($page, $at, 2));
		substr($page, $at, 1) = chr(0x81);
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
	$put_back->();
	# pending entries are on the last page
	$block = (-s $file) / 8192 - 1 if $block < 0;
	my $sound = substr(slurp_file($file), 8192 * $block, 8192);
	overwrite_file($file, 8192 * $block, $damage->($sound));
	$node->start;
	like(one($node, $findings), qr/\b$index: $expected/, "$index: $what");
	$put_back = sub { overwrite_file($file, 8192 * $block, $sound) };
}
$node->stop;
$put_back->();
$node->start;
$put_back = sub { };
is(one($node, $findings), '', 'nothing wrong when all is put back');
# Inner pages, links, and what an index is asked for where a key is missing.  The entries of one key are
# damaged as well, so that it is asked: a sound GiST or hash index does not come to that.
$node->safe_psql('postgres', q{
	CREATE TABLE u (id int, h int, a numeric[], p point, w text) USING inplace;
	INSERT INTO u SELECT i, 7, ARRAY[i], point(i, i), repeat('key' || i, 10) FROM generate_series(1, 3000) i;
	CREATE INDEX u_h ON u USING hash (h);
	CREATE INDEX u_p ON u USING gist (p);
	CREATE INDEX u_a ON u USING gin (a) WITH (fastupdate = off);
	-- equal but not identical to the key in the index, which is asked for it
	INSERT INTO u VALUES (3001, 7, '{1500.00}', '(9999,9999)', 'x');
	-- the same with a tree that has grown by ascending keys: that of the last downlink is none
	CREATE TABLE v (a numeric[]) USING inplace;
	CREATE INDEX v_a ON v USING gin (a) WITH (fastupdate = off);
	INSERT INTO v SELECT ARRAY[i] FROM generate_series(1, 6000) i;
	INSERT INTO v SELECT ARRAY[i || '.00']::numeric[] FROM generate_series(1, 6000, 7) i;
	CHECKPOINT;
});
$findings = q{SELECT coalesce(index::regclass || ': ', '') || problem FROM inplace.check('u') ORDER BY 1};
is(one($node, $findings), '', 'nothing wrong with inner pages at first');
is(one($node, "SELECT * FROM inplace.check('v')"), '', 'equal keys are found');

# the flags of a page, which are GiST's, GIN's or hash's
sub flags { my ($page, $at) = @_; return unpack('v', substr($page, $at, 2)); }
sub is_inner { my ($index, $page) = @_; return !(flags($page, $index eq 'u_p' ? 8188 : 8190) & ($index eq 'u_p' ? 1 : 2 | 4 | 8)); }
# a page of a bucket, with pages after it
sub is_chain { my ($page) = @_; return (flags($page, 8188) & 15) == 2 && unpack('V', substr($page, 8180, 4)) != 0xffffffff; }
sub is_overflow { my ($page) = @_; return (flags($page, 8188) & 15) == 1; }
sub downlink { my ($page, $n, $blk) = @_; substr($page, item($page, $n), 4) = pack('vv', $blk >> 16, $blk & 0xffff); return $page; }
sub items { my ($page) = @_; return (unpack('v', substr($page, 12, 2)) - 24) / 4; }
sub all_downlinks { my ($page, $blk) = @_; $page = downlink($page, $_, $blk) for 1 .. items($page); return $page; }

# each is given a hash of block to page, and changes some
sub each_page
{
	my ($pages, $which, $damage) = @_;
	my @blocks = grep { $which->($pages->{$_}) } sort { $a <=> $b } keys %$pages;
	cmp_ok(scalar @blocks, '>', 0, 'there are such pages');
	$pages->{$_} = $damage->($pages->{$_}, $_) for @blocks;
}
my $gist_inner = sub { is_inner('u_p', $_[0]) };
my $gist_leaf = sub { !is_inner('u_p', $_[0]) };
my $gin_inner = sub { is_inner('u_a', $_[0]) };
# another key in the last entry of all leaves: their rows' entries are looked for
sub lose_keys
{
	my ($pages) = @_;
	each_page($pages, $gist_leaf, sub { my ($p) = @_; substr($p, item($p, items($p)) + 8, 8) = pack('d', 4711.5); return $p; });
}
# ... and another hash value, by which the entry is not found
sub lose_hashes
{
	my ($pages) = @_;
	each_page($pages, \&is_overflow, sub { my ($p) = @_; my $at = item($p, items($p)) + 8;
		substr($p, $at, 4) = pack('V', unpack('V', substr($p, $at, 4)) ^ 1); return $p; });
}
foreach my $case (
	[ 'u_p', 'inner pages with line pointers that lead outside', sub {
		each_page($_[0], $gist_inner, \&lead_outside); }, qr/u_p: block \d+: line pointer leads to no entry/ ],
	[ 'u_p', 'downlinks to no page', sub {
		each_page($_[0], $gist_inner, sub { all_downlinks($_[0], 0xffffffff) }); }, qr/u_p: block \d+: downlink leads to no page/ ],
	[ 'u_p', 'downlinks that lead round', sub {
		each_page($_[0], $gist_inner, sub { all_downlinks($_[0], 0) }); }, qr/u_p: block \d+: downlink leads to no page/ ],
	[ 'u_p', 'links to the right that lead round', sub {
		lose_keys($_[0]);
		# (as one that has been split since its downlink was read)
		each_page($_[0], $gist_leaf, sub { my ($p, $b) = @_; substr($p, 8176, 12) = pack('VVV', 0xffff, 0, $b); return $p; });
	}, qr/u_p: block \d+: links between pages lead round/ ],
	[ 'u_p', 'leaves that are new', sub {
		each_page($_[0], $gist_leaf, sub { "\0" x 8192 }); }, qr/u_p: block \d+: page is new/ ],
	[ 'u_p', 'a root that is new', sub { $_[0]->{0} = "\0" x 8192; }, qr/u_p: block 0: page is new/ ],
	[ 'u_a', 'inner pages with line pointers that lead outside', sub {
		each_page($_[0], $gin_inner, sub { my ($p) = @_; substr($p, 24 + 4 * (items($p) - 1), 4) = pack('V', 32760 | 1 << 15 | 16 << 17); return $p; });
	}, qr/u_a: block \d+: line pointer leads to no entry/ ],
	[ 'u_a', 'inner pages with keys that are too long', sub {
		each_page($_[0], $gin_inner, sub { my ($p) = @_; substr($p, item($p, items($p) - 1) + 8, 1) = chr(0xff); return $p; });
	}, qr/u_a: block \d+: entry's key does not fit it/ ],
	[ 'u_a', 'downlinks to no page', sub {
		each_page($_[0], $gin_inner, sub { my ($p) = @_; $p = downlink($p, $_, 0xffffffff) for 2 .. items($p); return $p; });
	}, qr/u_a: block \d+: downlink leads to no page/ ],
	# (the walk goes along the leaves)
	[ 'u_a', 'downlinks to the meta page', sub {
		each_page($_[0], $gin_inner, sub { my ($p) = @_; $p = downlink($p, $_, 0) for 2 .. items($p); return $p; });
	}, qr/u_a: block \d+: downlink leads to no page/ ],
	[ 'u_h', 'pages of a bucket that lead round', sub {
		lose_hashes($_[0]);
		each_page($_[0], \&is_overflow, sub { my ($p, $b) = @_; substr($p, 8180, 4) = pack('V', $b); return $p; });
	}, qr/u_h: block \d+: links between pages lead round/ ],
	[ 'u_h', 'a bucket that leads to the meta page', sub {
		lose_hashes($_[0]);
		each_page($_[0], \&is_chain, sub { my ($p) = @_; substr($p, 8180, 4) = pack('V', 0); return $p; });
	}, qr/u_h: block 0: page is of another kind than what leads to it/ ],
	[ 'u_h', 'pages of a bucket that are new', sub {
		each_page($_[0], \&is_overflow, sub { "\0" x 8192 }); }, qr/u_h: block \d+: page is new/ ],
	[ 'u_h', 'buckets that are always split', sub {
		lose_hashes($_[0]);
		each_page($_[0], \&is_chain, sub { my ($p) = @_; substr($p, 8176, 4) = pack('V', 0x7fffffff); return $p; });
	}, qr/u_h: block \d+: links between pages lead round/ ],
	[ 'u_h', 'a meta page of something else', sub {
		lose_hashes($_[0]);
		substr($_[0]->{0}, 24, 4) = pack('V', 4711);
	}, qr/u_h: block 0: meta page is wrong/ ])
{
	my ($index, $what, $damage, $expected) = @$case;
	my $file = $node->data_dir . '/' . one($node, "SELECT pg_relation_filepath('$index')");
	$node->stop;
	$put_back->();
	my $sound = slurp_file($file);
	my %pages = map { ($_ => substr($sound, 8192 * $_, 8192)) } 0 .. length($sound) / 8192 - 1;
	# (the meta page of GIN is none of its tree)
	delete $pages{0} if $index eq 'u_a';
	$damage->(\%pages);
	overwrite_file($file, 8192 * $_, $pages{$_}) for keys %pages;
	$node->start;
	my ($stdout, $stderr);
	$node->psql('postgres', "SET statement_timeout = '60s'; $findings", stdout => \$stdout, stderr => \$stderr);
	like($stdout . $stderr, $expected, "$index: $what");
	is(one($node, "SELECT pg_relation_size('$index')"), length($sound), 'the index has not grown');
	$put_back = sub { overwrite_file($file, 0, $sound) };
}
$node->stop;
$put_back->();
$node->start;
is(one($node, $findings), '', 'nothing wrong at last');
check_log($node);
$node->stop;
done_testing();
