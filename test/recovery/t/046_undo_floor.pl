# Under load that goes on, the undo file goes back to the length it had before a
# snapshot that held much of it: also where those who go on changing rows, and
# sessions that are idle now, were writing to its end when the snapshot ended.
# For permanent and for unlogged tables.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('floor', conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
inplace.squeeze_undo = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int, f char(20));
	CREATE UNLOGGED TABLE u (id int PRIMARY KEY, n int, f char(20));
	INSERT INTO t SELECT i, 0, 'a' FROM generate_series(1, 60000) i;
	INSERT INTO u SELECT i, 0, 'a' FROM generate_series(1, 60000) i;});
my $dir = $node->basedir;
append_to_file("$dir/load.pgb", q{
\set id random(1, 60000)
BEGIN;
UPDATE t SET n = n + 1 WHERE id = :id;
UPDATE u SET n = n + 1 WHERE id = :id;
COMMIT;
});

sub size
{
	my ($kind) = @_;
	return one($node, "SELECT size_bytes / 8192 FROM inplace.undo WHERE kind = '$kind'");
}
my @kinds = ('logged', 'unlogged');
my %before = (logged => 0, unlogged => 0);

sub start_load
{
	local $ENV{PGAPPNAME} = 'load';
	return start_pgbench($node, '-c', '6', '-T', '800', '-R', '300', '-f', "$dir/load.pgb");
}

my $load = start_load();
usleep(3_000_000);
foreach my $i (1 .. 20)
{
	foreach my $kind (@kinds)
	{
		my $now = size($kind);
		$before{$kind} = $now if $now > $before{$kind};
	}
	usleep(100_000);
}
cmp_ok($before{$_}, '<', 800, "$_: $before{$_} pages at first") for @kinds;

# Extents are of 32 pages; the length may differ by a few.
my $margin = 128;
my @idle = map { psql_session($node) } 1 .. 4;
my $reader = psql_session($node);
my $sums = 'SELECT (SELECT sum(n) FROM t), (SELECT sum(n) FROM u)';

# Each UPDATE of all rows is some 300 pages of undo.
foreach my $case ([ 'much', 3, 60000, 500 ], [ 'a little', 1, 45000, $margin ])
{
	my ($what, $times, $rows, $growth) = @$case;
	my $seen = $reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $sums");
	foreach my $i (1 .. $times)
	{
		$node->safe_psql('postgres', "UPDATE $_ SET f = repeat(chr(98 + (ascii(f) + id) % 7), 20) WHERE id <= $rows") for 't', 'u';
	}
	foreach my $i (0 .. $#idle)
	{
		$idle[$i]->query_safe("UPDATE $_ SET n = n WHERE id = $i + 1") for 't', 'u';
	}
	cmp_ok(size($_), '>', $before{$_} + $growth, "$what, $_: undo has grown") for @kinds;
	is($reader->query_safe($sums), $seen, "$what: the snapshot sees what it saw");
	$reader->query_safe('COMMIT');

	foreach my $kind (@kinds)
	{
		my $t = poll_value($node, "SELECT size_bytes / 8192 <= $before{$kind} + $margin FROM inplace.undo WHERE kind = '$kind'", 30);
		ok(defined $t, "$what, $kind: undo is back at what it was, $before{$kind} pages");
		diag(one($node, 'SELECT * FROM inplace.undo')) if !defined $t;
		note sprintf('%s, %s: after %.1f s', $what, $kind, $t) if defined $t;
	}
	is(one($node, q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'load'}), '6', "$what: under load");
}
$_->query_safe('UPDATE t SET n = n WHERE id = 1') for @idle;
$_->quit for @idle, $reader;
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'load'});
end_pgbench($load);

# And without load, back to nothing.
foreach my $kind (@kinds)
{
	ok(defined poll_value($node, "SELECT size_bytes <= 8192 FROM inplace.undo WHERE kind = '$kind'", 60), "$kind: nothing is left");
}
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
