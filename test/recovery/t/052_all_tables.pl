# CREATE PUBLICATION ... FOR ALL TABLES leaves out what belongs to the extension: so
# it can be subscribed to by a server with the extension, and by one without.  From 17
# on also a standby that becomes the publisher, with the subscription's slot.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $major = pg_major();
my $conf = q{
wal_level = logical
wal_retrieve_retry_interval = '100ms'
wal_consistency_checking = ''
};
my $pub = new_node('publisher', conf => $conf, allows_streaming => 'logical');
my $with = new_node('with', conf => $conf, allows_streaming => 'logical');
my $without = PostgreSQL::Test::Cluster->new('without');
$without->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$without->append_conf('postgresql.conf', "wal_retrieve_retry_interval = '100ms'\nmax_prepared_transactions = 10\n");
$_->start foreach $pub, $with, $without;
one($_, 'CREATE EXTENSION inplace') foreach $pub, $with;

my @tables = qw(i h);
my %am = (i => [ 'inplace', 'heap' ], h => [ 'heap', 'inplace' ]);
foreach my $t (@tables)
{
	my $columns = "$t (id int PRIMARY KEY, n int, v text)";
	is(one($pub, "CREATE TABLE $columns USING $am{$t}[0]; ALTER TABLE $t ALTER v SET STORAGE EXTERNAL; INSERT INTO $t SELECT g, g, 'copied' FROM generate_series(1, 500) g"), '', "table $t");
	is(one($with, "CREATE TABLE $columns USING $am{$t}[1]"), '', "$t on a subscriber with the extension");
	is(one($without, "CREATE TABLE $columns"), '', "$t on one without");
}
is(one($pub, 'CREATE PUBLICATION p FOR ALL TABLES'), '', 'publication of all tables');
is(one($pub, q{SELECT string_agg(schemaname || '.' || tablename, ' ' ORDER BY tablename) FROM pg_publication_tables}), 'public.h public.i', '... has no others');
if ($major >= 17)
{
	one($pub, q{SELECT pg_create_physical_replication_slot('phys')});
	$pub->append_conf('postgresql.conf', "synchronized_standby_slots = 'phys'");
	$pub->reload;
	$pub->backup('b');
}
my $failover = $major >= 17 ? 'WITH (failover = true)' : '';
my $connstr = $pub->connstr . ' dbname=postgres';
my $standby;
if ($major >= 17)
{
	$standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($pub, 'b', has_streaming => 1, has_restoring => 0);
	$standby->append_conf('postgresql.conf', "primary_slot_name = 'phys'\nprimary_conninfo = '" . $pub->connstr . " dbname=postgres'\nhot_standby_feedback = on\nsynchronized_standby_slots = ''\nwal_receiver_status_interval = 1\n");
	$standby->start;
}
my %node = (sub_with => $with, sub_without => $without);
foreach my $name (sort keys %node)
{
	unlike(one($node{$name}, "SET client_min_messages = error; CREATE SUBSCRIPTION $name CONNECTION '$connstr' PUBLICATION p $failover"), qr/ERROR/, "$name: subscription");
	$node{$name}->wait_for_subscription_sync($pub, $name);
}

sub change
{
	my ($node, $what) = @_;
	foreach my $t (@tables)
	{
		is(one($node, "UPDATE $t SET n = n + 1 WHERE id % 3 = 0; UPDATE $t SET v = repeat('$what', 800) WHERE id = 7; UPDATE $t SET n = -1 WHERE id = 7;
			UPDATE $t SET id = id + 100000 WHERE id % 50 = 1 AND id < 100000; DELETE FROM $t WHERE id % 17 = 0;
			INSERT INTO $t SELECT max(id) + 1, 0, '$what' FROM $t; BEGIN; UPDATE $t SET v = 'never'; ROLLBACK"), '', "$what: changes of $t");
	}
}
sub same
{
	my ($node, $what) = @_;
	foreach my $name (sort keys %node)
	{
		$node->wait_for_catchup($name);
		is(contents($node{$name}, $_), contents($node, $_), "$what: $_ is the same on the subscriber $name") foreach @tables;
	}
}
same($pub, 'copied');
change($pub, 'first');
same($pub, 'first');

if ($major >= 17)
{
	# the slots are there on the standby as soon as it has what they need
	$pub->wait_for_catchup($standby, 'replay', $pub->lsn('insert'));
	my $ready;
	foreach my $try (1 .. 100)
	{
		one($pub, 'SELECT pg_log_standby_snapshot()');
		$pub->wait_for_catchup($standby, 'replay', $pub->lsn('insert'));
		one($standby, 'SELECT pg_sync_replication_slots()');
		$ready = one($standby, 'SELECT count(*) FROM pg_replication_slots WHERE synced AND NOT temporary AND failover AND invalidation_reason IS NULL');
		last if $ready eq '2';
	}
	is($ready, '2', 'slots are synchronised to the standby');

	# subscribers are ahead of those slots, and something is not committed when the publisher is lost
	change($pub, 'second');
	same($pub, 'second');
	my $open = psql_session($pub);
	$open->query("BEGIN; UPDATE i SET v = 'lost', n = 0; UPDATE h SET v = 'lost', n = 0; SELECT 1");
	$pub->wait_for_catchup($standby, 'replay', $pub->lsn('insert'));
	$pub->stop('immediate');
	eval { $open->quit };
	$standby->promote;
	my $new = $standby->connstr . ' dbname=postgres';
	is(one($node{$_}, "ALTER SUBSCRIPTION $_ CONNECTION '$new'"), '', "$_: goes to the new publisher") foreach sort keys %node;
	is(one($standby, "SELECT count(*) FROM i WHERE v = 'lost'"), '0', 'what was not committed is not there');
	change($standby, 'third');
	same($standby, 'third');
	check_clean($standby, 'the new publisher');
	$standby->stop;
	check_log($standby);
}
else
{
	$pub->stop;
}
check_clean($with, 'the subscriber');
$_->stop foreach $with, $without;
check_log($_) foreach $pub, $with;
done_testing();
