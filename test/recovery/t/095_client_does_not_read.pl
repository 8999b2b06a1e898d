# A client that does not read what it is sent keeps nobody from a page, nor from the space
# of undo: errors and messages are sent with nothing locked.  Its session ends when it
# is told to.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $limit = $PostgreSQL::Test::Utils::timeout_default;

# A client of the protocol's own; it reads only what comes before its first query.
sub connect_mute
{
	my ($node) = @_;
	my $s = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port)
	  or die "cannot connect: $!";
	my $user = one($node, 'SELECT current_user');
	my $body = "user\0$user\0database\0postgres\0\0";
	my ($got, $pid) = ('', undef);
	$s->syswrite(pack('NN', length($body) + 8, 196608) . $body);
	# BackendKeyData, and ReadyForQuery, which comes last
	until ($got =~ /Z\x00\x00\x00\x05I\z/) { $s->sysread($got, 65536, length $got) or die "no answer: $got" }
	($pid) = map { unpack 'N', $_ } $got =~ /K\x00\x00\x00\x0c(.{4})/s or die 'no key';
	return ($s, $pid);
}

sub send_query
{
	my ($s, $sql) = @_;
	$s->syswrite('Q' . pack('N', length($sql) + 5) . $sql . "\0");
	return;
}

sub poll_ok
{
	my ($node, $sql, $what) = @_;
	return ok(defined poll_value($node, $sql, $limit), $what);
}

sub blocked
{
	my ($pid) = @_;
	return "SELECT coalesce((SELECT wait_event = 'ClientWrite' FROM pg_stat_activity WHERE pid = $pid), false)";
}

# A query whose answer the socket and the server's buffer just take, so that the next
# message does not fit.  What the socket takes is measured.
my $rows_that_fit;
sub filling_query
{
	my ($node) = @_;
	if (!defined $rows_that_fit)
	{
		my ($s, $pid) = connect_mute($node);
		send_query($s, q{SELECT repeat('x', 1000) FROM generate_series(1, 100000)});
		poll_ok($node, blocked($pid), 'the answer does not fit the socket');
		my $bytes = pack 'L', 0;
		ioctl($s, 0x541B, $bytes) // die "FIONREAD: $!";    # (Linux)
		$rows_that_fit = int((unpack('L', $bytes) + 4096) / 1011);
		note "$rows_that_fit rows fit";
		$s->close;
	}
	return "SELECT repeat('x', 1000) FROM generate_series(1, $rows_that_fit)";
}

# With the answer not read, a statement fails; what others do meanwhile.
sub nobody_waits
{
	my ($node, $what, $first, $statement, $log, @others) = @_;
	my ($s, $pid) = connect_mute($node);
	my $from = -s $node->logfile;
	my $query = filling_query($node);
	send_query($s, "$first; $query; $statement");
	ok($node->wait_for_log($log, $from), "$what: fails");
	poll_ok($node, blocked($pid), "$what: the client does not read");
	foreach my $sql (@others, 'CHECKPOINT')
	{
		my ($rc, $out, $err) = $node->psql('postgres', $sql, timeout => $limit, timed_out => \my $late);
		ok(!$late && $rc == 0, "$what: $sql") or diag "$late $err";
	}
	one($node, "SELECT pg_terminate_backend($pid)");
	poll_ok($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)", "$what: it is terminated");
	$s->close;
	return;
}

my $node = new_node('mute', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
wal_consistency_checking = ''
inplace.undo_extents = 1024
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE plain (id int, v text);
	ALTER TABLE plain ALTER v SET STORAGE plain;
	INSERT INTO plain VALUES (1, 'a'), (2, 'b');
	CREATE TABLE big (id int, v text);
	ALTER TABLE big ALTER v SET STORAGE plain;
	INSERT INTO big SELECT g, repeat('a', 1900) FROM generate_series(1, 20000) g;
	CREATE UNLOGGED TABLE unlogged (id int, v text);
	ALTER TABLE unlogged ALTER v SET STORAGE plain;
	INSERT INTO unlogged SELECT g, repeat('a', 3900) FROM generate_series(1, 10000) g;
	CREATE TABLE small (id int, v int);
	INSERT INTO small SELECT g, 0 FROM generate_series(1, 5) g});

nobody_waits($node, 'row too big', 'SELECT 1',
	q{UPDATE plain SET v = repeat('y', 9000) WHERE id = 1},
	qr/ERROR: .*row is too big/,
	'SELECT count(*) FROM plain', q{UPDATE plain SET v = 'c' WHERE id = 2});

my @others = ('SELECT count(*) FROM big', 'DELETE FROM big WHERE id = (SELECT max(id) FROM big)', 'INSERT INTO big VALUES (1)',
	'SELECT count(*) FROM inplace.undo');
one($node, 'ALTER SYSTEM SET inplace.undo_limit = \'8MB\'');
one($node, 'SELECT pg_reload_conf()');
# (the others have an extent of their own)
my $other = psql_session($node, 'postgres');
$other->query_safe($_) foreach ('BEGIN', 'UPDATE small SET v = 1 WHERE id = 5');
nobody_waits($node, 'message of the limit', 'SET client_min_messages = log',
	q{UPDATE big SET v = repeat('b', 1900)},
	qr/LOG: .*undo of inplace tables has reached "inplace.undo_limit"/,
	@others);
nobody_waits($node, 'error of the limit', 'SELECT 1',
	q{UPDATE big SET v = repeat('b', 1900)},
	qr/ERROR: .*undo of inplace tables has reached the limit of 8192 kB/,
	@others);
$other->query_safe($_) foreach ('UPDATE small SET v = 2 WHERE id = 4', 'COMMIT');
one($node, 'ALTER SYSTEM RESET inplace.undo_limit');
one($node, 'SELECT pg_reload_conf()');

# (1024 extents are 256 MB, each round takes 39)
nobody_waits($node, 'undo full', 'SET client_min_messages = log',
	join('; ', map { "UPDATE unlogged SET v = repeat('$_', 3900)" } 'b' .. 'h'),
	qr/ERROR: .*undo of inplace tables has reached the limit of \d+ extents/,
	'SELECT count(*) FROM unlogged', 'INSERT INTO unlogged VALUES (1)', 'SELECT count(*) FROM inplace.undo');

check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
