# inplace.check looks at B-trees of both methods as trees: what is wrong on a
# leaf page is found, and where.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('tree', extra => pg_major() >= 18 ? ['--no-data-checksums'] : [], conf => "autovacuum = off\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, k int, d int, p text) USING inplace;
	INSERT INTO t SELECT i, i, i / 50, nullif('p' || i % 7, 'p3') FROM generate_series(1, 3000) i;
	CREATE INDEX t_k ON t USING inplace_btree (k);
	CREATE INDEX t_d ON t USING inplace_btree (d);
	CREATE INDEX t_ours ON t USING inplace_btree (k) INCLUDE (d, p);
	SET inplace.default_index_method = btree;
	CREATE UNIQUE INDEX t_stock ON t (k) INCLUDE (d, p);
	-- what an update leaves in an entry of ours is no finding
	UPDATE t SET d = -1, p = 'xyz' WHERE id = 1500;
	CHECKPOINT;
});
my $findings = q{SELECT index::regclass || ': ' || problem FROM inplace.check('t') WHERE index IS NOT NULL};
is(one($node, $findings), '', 'nothing wrong at first');

# the fifth entry of a page of t_ours or t_stock (without nulls): its key is at byte 8, d at 12
sub change_payload
{
	my ($page) = @_;
	my $item = unpack('V', substr($page, 24 + 4 * 5, 4)) & 0x7fff;
	substr($page, $item + 12, 4) = pack('V', 4711);
	return $page;
}

# Leaf pages of a built index begin at block 1; its line pointers at byte 24, the
# first one being the high key's; the page's neighbours are in its special space.
foreach my $case (
	[ 't_k', 'two entries change places', sub {
		my ($page) = @_;
		my $lp = substr($page, 24 + 4 * 10, 4);
		substr($page, 24 + 4 * 10, 4) = substr($page, 24 + 4 * 11, 4);
		substr($page, 24 + 4 * 11, 4) = $lp;
		return $page;
	}, qr/block 1, offset 11: entry is not below the next one/ ],
	[ 't_pkey', 'the same in a primary key', sub {
		my ($page) = @_;
		my $lp = substr($page, 24 + 4 * 10, 4);
		substr($page, 24 + 4 * 10, 4) = substr($page, 24 + 4 * 11, 4);
		substr($page, 24 + 4 * 11, 4) = $lp;
		return $page;
	}, qr/block 1, offset 11: entry is not below the next one/ ],
	[ 't_k', 'an entry beyond the high key', sub {
		my ($page) = @_;
		my $lower = unpack('v', substr($page, 12, 2));
		my $last = unpack('V', substr($page, $lower - 4, 4)) & 0x7fff;
		substr($page, $last + 8, 4) = pack('V', 2900);
		return $page;
	}, qr/block 1, offset \d+: entry is above the page's high key/ ],
	[ 't_k', 'a wrong right link', sub {
		my ($page) = @_;
		substr($page, 8192 - 16 + 4, 4) = pack('V', 5);
		return $page;
	}, qr/block 1: right sibling 5 has left link/ ],
	[ 't_k', 'a line pointer that leads outside', sub {
		my ($page) = @_;
		substr($page, 24 + 4 * 5, 4) = pack('V', 8190 | 1 << 15 | 16 << 17);
		return $page;
	}, qr/block 1, offset 6: line pointer does not lead to an entry/ ],
	[ 't_d', 'a posting list out of order', sub {
		my ($page) = @_;
		my $item = unpack('V', substr($page, 24 + 4 * 3, 4)) & 0x7fff;
		# an entry's first six bytes say where the list begins
		my $list = $item + (unpack('v', substr($page, $item, 2)) << 16 | unpack('v', substr($page, $item + 2, 2)));
		my $tid = substr($page, $list, 6);
		substr($page, $list, 6) = substr($page, $list + 6, 6);
		substr($page, $list + 6, 6) = $tid;
		return $page;
	}, qr/block 1, offset 4: posting list is not in order/ ],
	[ 't_ours', 'another payload', \&change_payload, qr/index entry has INCLUDE columns that are not the row's$/ ],
	[ 't_stock', 'another payload', \&change_payload, qr/index entry has INCLUDE columns that are not the row's$/ ])
{
	my ($index, $what, $damage, $expected) = @$case;
	my $file = $node->data_dir . '/' . one($node, "SELECT pg_relation_filepath('$index')");
	$node->stop;
	my $sound = substr(slurp_file($file), 8192, 8192);
	overwrite_file($file, 8192, $damage->($sound));
	$node->start;
	like(one($node, $findings), qr/\b$index: $expected/, "$index: $what");
	$node->stop;
	overwrite_file($file, 8192, $sound);
	$node->start;
}
is(one($node, $findings), '', 'nothing wrong at last');

# Entries whose rows are gone, all but those on the first page.
one($node, 'CREATE TABLE gone (id int PRIMARY KEY, n int) USING inplace; CREATE INDEX ON gone (n);
	INSERT INTO gone SELECT i, i FROM generate_series(1, 20000) i');
my $gone = $node->data_dir . '/' . one($node, "SELECT pg_relation_filepath('gone')");
$node->stop;
overwrite_file($gone, 8192, "\0" x ((-s $gone) - 8192));
$node->start;
is(one($node, "SELECT index, severity, problem, count(*) FROM inplace.check('gone') GROUP BY 1, 2, 3 ORDER BY 1, 2"),
	join("\n", map { ("$_|error|index entry leads to an unused line pointer|100",
		"$_|warning|more than 100 findings, the rest is not reported|1") } 'gone_pkey', 'gone_n_idx'),
	'entries that lead nowhere');
check_log($node);
$node->stop;
done_testing();
