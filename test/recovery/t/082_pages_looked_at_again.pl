# VACUUM looks again at a bounded share of the pages that are all-visible and not frozen
# (vacuum/skip.c), however many are read ahead of it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => 'autovacuum = off');
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE r (id int, t text) USING inplace;
	ALTER TABLE r ALTER t SET STORAGE plain;
	INSERT INTO r SELECT g, repeat('f', 3900) FROM generate_series(1, 16000) g;});

sub pages
{
	return split /\|/, $node->safe_psql('postgres', q{SELECT sum(pages), sum(all_visible), sum(all_frozen) FROM inplace.visibility_summary('r')});
}

$node->safe_psql('postgres', $_) foreach 'SET inplace.adaptive_freezing = off; VACUUM r', 'UPDATE r SET id = id WHERE id % 80 = 0';
my ($pages, $visible, $frozen) = pages();
cmp_ok($visible, '>', 7000, 'most pages are all-visible');
# (15 freezes none; later ones may have frozen what they had to write to WAL anyhow)
cmp_ok($frozen, '<', 200, '... and not frozen');
# pages that have to be read are asked for well ahead
$node->restart;
$node->safe_psql('postgres', 'VACUUM r');
my $before = $frozen;
($pages, $visible, $frozen) = pages();
cmp_ok($frozen - $before, '>', 0, 'some have been frozen then');
cmp_ok($frozen - $before, '<', $pages / 4, '... but no more than a fifth, and those that were changed');
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
