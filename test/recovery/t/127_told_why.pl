# When the server is stopped at once, or comes down because a process has crashed, each session
# tells its client why, in the handler of a signal: whatever it is at, and with nothing
# allocated there.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('told', conf => 'restart_after_crash = on');
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace;
	INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
});

# Clients at various things; each of them has its messages in a file.
my %sql = (
	asleep => 'SELECT pg_sleep(600)',
	between => 'BEGIN; UPDATE t SET n = n + 1 WHERE id = 1; SELECT pg_sleep(600)',
	waits => 'SELECT pg_sleep(0.3); UPDATE t SET n = n + 1 WHERE id = 1',
	writes => q{DO $$BEGIN LOOP UPDATE t SET n = n + 1 WHERE id > 500; COMMIT; END LOOP; END$$});

sub start_clients
{
	my ($n) = @_;
	my @clients;
	for my $what (sort keys %sql)
	{
		my $file = "$PostgreSQL::Test::Utils::tmp_check/told_$what$n";
		push @clients, {
			what => $what,
			file => $file,
			run => IPC::Run::start(['psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $sql{$what}],
				'<', '/dev/null', '>', '/dev/null', '2>', $file) };
	}
	my $at_work;
	for (1 .. 300)
	{
		$at_work = one($node, q{
			SELECT count(*) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid()
				AND (query LIKE 'DO%' OR wait_event IN ('PgSleep', 'transactionid', 'tuple'))});
		last if $at_work == keys %sql;
		usleep(100_000);
	}
	is($at_work, scalar(keys %sql), 'all clients are at work');
	return @clients;
}

sub are_told
{
	my ($why, @clients) = @_;
	for my $client (@clients)
	{
		$client->{run}->finish;
		like(slurp_file($client->{file}), qr/WARNING:  terminating connection \Q$why\E/,
			"$client->{what}: $why");
	}
	return;
}

my @clients = start_clients(1);
my $victim = IPC::Run::start(['psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'SELECT pg_sleep(601)'],
	'<', '/dev/null', '>', '/dev/null', '2>', '/dev/null');
my $pid;
for (1 .. 300)
{
	last if $pid = one($node, q{SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(601)'});
	usleep(100_000);
}
kill 'KILL', $pid;
are_told('because of crash of another server process', @clients);
$victim->finish;
$node->poll_query_until('postgres', 'SELECT true') or die 'the server is not back';

@clients = start_clients(2);
$node->stop('immediate');
are_told('due to immediate shutdown command', @clients);

unlike(slurp_file($node->logfile), qr/TRAP/, 'no failed assertion');
done_testing();
