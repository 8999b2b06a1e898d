# Undo is kept for those who need it, who are named, and given back after.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
wal_receiver_status_interval = '1s'
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');
system_or_bail('pgbench', '-i', '-q', '-s', '1', '-h', $node->host, '-p', $node->port, 'postgres');
undo_floor_reached($node, 'after loading', 20);
my $pages = q{SELECT string_agg(relname || ' ' || pg_relation_size(oid) / 8192, ', ' ORDER BY relname) FROM pg_class
	WHERE relname IN ('pgbench_accounts', 'pgbench_accounts_pkey', 'pgbench_tellers', 'pgbench_tellers_pkey', 'pgbench_branches', 'pgbench_branches_pkey')};
my $at_first = one($node, $pages);
note $at_first;

sub load
{
	my ($transactions) = @_;
	my $p = start_pgbench($node, '-M', 'prepared', '-c', '4', '-t', $transactions, '-b', 'tpcb-like');
	like(end_pgbench($p), qr/number of transactions actually processed: [1-9]/, 'load ran');
}
# Holds something while there is load; then lets go.
sub held
{
	my ($what, $query, $want, $release) = @_;
	my $size = one($node, 'SELECT inplace.undo_size()');
	load(400);
	my $grown = one($node, 'SELECT inplace.undo_size()');
	cmp_ok($grown, '>', $size + 256 * 1024, "$what: undo grows ($size to $grown)");
	is(one($node, $pages), $at_first, "$what: pages of tables and indexes");
	is(one($node, $query), $want, "$what: undo_holders");
	usleep(2_000_000);
	cmp_ok(one($node, 'SELECT inplace.undo_size()'), '>=', $grown, "$what: undo stays");
	$release->();
	undo_floor_reached($node, $what, 5);
	is(one($node, $pages), $at_first, "$what: pages at the end");
}
my $sum = q{SELECT sum(abalance), (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT count(*) FROM pgbench_history) FROM pgbench_accounts};

my $s = psql_session($node);
my $pid = $s->query('SELECT pg_backend_pid()');
my $seen = $s->query("BEGIN ISOLATION LEVEL REPEATABLE READ; $sum");
held('snapshot', "SELECT kind, name = current_user FROM inplace.undo_holders WHERE holds_back AND pid = $pid", 'session|t',
	sub { is($s->query($sum), $seen, 'the snapshot sees what it saw'); $s->query('COMMIT') });
$seen = $s->query('DECLARE c CURSOR WITH HOLD FOR SELECT 1; BEGIN; DECLARE d CURSOR FOR SELECT abalance FROM pgbench_accounts ORDER BY aid; FETCH 1 FROM d');
held('cursor', "SELECT kind FROM inplace.undo_holders WHERE holds_back AND pid = $pid", 'session',
	sub { is($s->query('MOVE ALL IN d; COMMIT'), '', 'the cursor goes on'); });
$s->quit;

$node->safe_psql('postgres', "BEGIN; CREATE TABLE new (); PREPARE TRANSACTION 'the one'");
# (Sessions that come and go, such as autovacuum's, hold it back for a moment, too.)
held('prepared transaction', q{SELECT kind, name FROM inplace.undo_holders WHERE holds_back AND kind <> 'session'}, 'prepared transaction|the one',
	sub { $node->safe_psql('postgres', "COMMIT PREPARED 'the one'") });

$node->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('slot1', true)});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'slot1'\nhot_standby_feedback = on\nmax_standby_streaming_delay = -1\n");
$standby->start;
$node->wait_for_catchup($standby);
$s = psql_session($standby);
$seen = $s->query("BEGIN ISOLATION LEVEL REPEATABLE READ; $sum");
ok(defined poll_value($node, q{SELECT xmin IS NOT NULL FROM pg_replication_slots}, 20), 'the slot has an xmin');
usleep(1_500_000);
held('standby', q{SELECT kind, name FROM inplace.undo_holders WHERE holds_back AND kind <> 'session'}, 'replication slot|slot1',
	sub {
		is($s->query($sum), $seen, "the standby's snapshot sees what it saw");
		$s->query('COMMIT');
		# Feedback comes once in wal_receiver_status_interval.
		poll_value($node, q{SELECT age(xmin) < 5 FROM pg_replication_slots}, 20);
	});
# A standby that is gone for good, whose slot still holds.
$s->query("BEGIN ISOLATION LEVEL REPEATABLE READ; $sum");
usleep(1_500_000);
eval { $s->quit };
$standby->stop;
is(one($node, 'SELECT sum(holds_back::int) FROM inplace.undo_holders') =~ /^\d*$/, 1, 'undo_holders with an inactive slot');
$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('slot1')});
undo_floor_reached($node, 'slot dropped', 5);
check_clean($node, 'at the end');
$node->stop;
check_log($node);
check_log($standby);
done_testing();
