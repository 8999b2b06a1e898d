# A query that a stopped server is asked fails, and does not end the test that asks.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary');

# More than a pipe takes, so that psql ends before all is written.
my $long = 'SELECT 1' . ' ' x 1_000_000;
my ($rc, $out, $err) = $node->psql('postgres', $long);
is($rc, 2, 'psql could not connect');
is($out, '', '... and has no answer');
is($node->psql('postgres', $long), 2, '... which a caller that wants the exit status alone is told, too');
like(one($node, $long), qr/^rc 2/, 'one() says so');
ok(!eval { $node->safe_psql('postgres', $long); 1 }, 'safe_psql dies');

$node->start;
is(one($node, 'SELECT 7'), '7', 'a server that runs answers');
is($node->psql('postgres', 'SELECT 1/0'), 3, '... and refuses');
$node->psql('postgres', 'SELECT 8', stdout => \my $eight);
is($eight, '8', '... and an answer goes where it is wanted');
$node->stop;
done_testing();
