# The apply worker waits for a lock on the row that it has found.  If the row has
# been replaced by then it must look for it again, as on heap, for it may be
# another by now: with another key of the replica identity's index (in place, if
# that is an inplace_btree), or with other values if that is FULL.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $conf = q{
wal_level = logical
wal_retrieve_retry_interval = '100ms'
autovacuum = off
};
my $pub = new_node('publisher', conf => $conf, allows_streaming => 'logical');
my $sub = new_node('subscriber', conf => $conf, allows_streaming => 'logical');
$_->start, one($_, 'CREATE EXTENSION inplace') for $pub, $sub;

# Heap is what must come out; the identity is that of an index, or FULL with an
# index that is used to find the row (from 16 on), or without any.
my @tables = map { ("heap_$_", "inplace_$_") } qw(key full seq);

foreach my $t (@tables)
{
	my ($am, $identity) = split /_/, $t;
	# (In 16 and 17 the worker finds no row by an inplace_btree.)
	my $index = $am eq 'heap' || ($identity eq 'key' && pg_major() =~ /^1[67]$/) ? 'btree' : 'inplace_btree';
	foreach my $node ($pub, $sub)
	{
		one($node, "CREATE TABLE $t (k int NOT NULL, v text) USING $am");
		one($node, "CREATE UNIQUE INDEX ${t}_k ON $t USING $index (k)") if $identity ne 'seq';
		one($node, "ALTER TABLE $t REPLICA IDENTITY " . ($identity eq 'key' ? "USING INDEX ${t}_k" : 'FULL'));
	}
	one($pub, "INSERT INTO $t SELECT g, 'old' FROM generate_series(1, 8) g");
}
one($pub, 'CREATE PUBLICATION p FOR TABLE ' . join(', ', @tables));
one($sub, q{CREATE SUBSCRIPTION s CONNECTION '} . $pub->connstr . q{ dbname=postgres' PUBLICATION p});
$sub->wait_for_subscription_sync($pub, 's');

# What the publisher does to a row, and what a session of the subscriber, which
# has locked it before, does to it while the worker waits.
my @remote = (
	[ 'delete', 'DELETE FROM %s WHERE k = %d' ],
	[ 'update', q{UPDATE %s SET v = 'remote' WHERE k = %d} ]);
my @local = (
	[ 'another key', 'UPDATE %s SET k = k + 100 WHERE k = %d' ],
	[ 'another value', q{UPDATE %s SET v = 'local' WHERE k = %d} ],
	[ 'there and back', q{UPDATE %1$s SET k = k + 100 WHERE k = %2$d; UPDATE %1$s SET k = k - 100 WHERE k = %2$d + 100} ]);

my %got;
foreach my $t (@tables)
{
	my $k = 0;
	foreach my $remote (@remote)
	{
		foreach my $local (@local)
		{
			$k++;
			my $session = psql_session($sub);
			$session->query("BEGIN; SELECT k FROM $t WHERE k = $k FOR UPDATE");
			one($pub, sprintf($remote->[1], $t, $k));
			$sub->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
				WHERE NOT l.granted AND a.backend_type LIKE 'logical replication%')}) or die "the worker does not wait";
			$session->query(sprintf("$local->[1]; COMMIT", $t, $k));
			$session->quit;
			$pub->wait_for_catchup('s');
			$got{$t}{"$remote->[0], $local->[0]"} = one($sub,
				"SELECT coalesce(string_agg(k || ' ' || v, ', ' ORDER BY k), 'none') FROM $t WHERE k IN ($k, $k + 100)");
		}
	}
}
foreach my $t (grep { /^heap/ } @tables)
{
	(my $ours = $t) =~ s/heap/inplace/;
	is($got{$ours}{$_}, $got{$t}{$_}, "$ours: $_: $got{$t}{$_}") for sort keys %{ $got{$t} };
}
is($got{heap_key}{'delete, another key'}, '101 old', 'the worker has waited');
check_clean($sub, "subscriber");
$_->stop, check_log($_) foreach $sub, $pub;
done_testing();
