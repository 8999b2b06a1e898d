# Whom the log message of inplace.undo_limit names: prepared transactions, too, and of those with
# the same horizon first the one whose transaction it is.  (A message is written only every ten
# seconds in a database, so each case has its own.)

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('holders', conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
inplace.undo_limit = '2MB'
});
$node->start;

sub new_database
{
	my ($db) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, q{
		CREATE EXTENSION inplace;
		CREATE TABLE t (id int);
		CREATE TABLE big (id int, v text);
		INSERT INTO big SELECT i, repeat('a', 100) FROM generate_series(1, 30000) i;});
	return $db;
}

# A transaction that is too large alone; returns those of the message's detail.
sub holders
{
	my ($db) = @_;
	my $log = -s $node->logfile;
	like(sqlstate_of($node, q{UPDATE big SET v = repeat('b', 100)}, $db), qr/53400/, "$db: past the limit");
	slurp_file($node->logfile, $log) =~
	  /LOG:  undo of inplace tables has reached "inplace\.undo_limit" \(2048 kB\).*\n.*DETAIL:  (.*\n(\t.*\n)*)/
	  or return "no message in the log";
	# (what a session did last may have lines of its own)
	return grep { /needs/ } map { s/^\t//r } split /\n/, $1;
}

# ---- a prepared transaction
my $xid;
sub prepare
{
	my ($db) = @_;
	my $s = psql_session($node, $db);
	$s->query_safe($_) foreach ('BEGIN', 'INSERT INTO t VALUES (1)');
	$xid = $s->query_safe('SELECT pg_current_xact_id()');
	$s->query_safe("PREPARE TRANSACTION '$db'");
	$s->quit;
}
prepare(new_database('prepared'));
use_up_xids($node);
my @lines = holders('prepared');
like($lines[0], qr/^Prepared transaction $xid needs its undo \(age \d{4,}\)\.$/, 'named first');
like($lines[-1], qr/^Process \d+ needs undo from transaction \d+ on .*UPDATE big/, 'who has found out comes last');
is(scalar(@lines), 2, 'nobody else');

# ---- of another database
new_database('another');
@lines = holders('another');
like($lines[0], qr/^Process \d+ needs undo .*UPDATE big/, 'one of another database is not named');
is(scalar(@lines), 1, 'nobody else');
$node->safe_psql('prepared', q{ROLLBACK PREPARED 'prepared'});

# ---- that is over
prepare(new_database('finished'));
$node->safe_psql('finished', q{COMMIT PREPARED 'finished'});
@lines = holders('finished');
like($lines[0], qr/^Process \d+ needs undo .*UPDATE big/, 'one that has been committed is not named');
is(scalar(@lines), 1, 'nobody else');

# ---- an idle writer; snapshots taken since then have the same horizon, in sessions that were
# there before and after it (they are looked at in their order)
new_database('idle');
my @before = map { psql_session($node, 'idle') } 1 .. 9;
my $writer = psql_session($node, 'idle');
my @readers = (@before, map { psql_session($node, 'idle') } 1 .. 9);
$writer->query_safe($_) foreach ('BEGIN', 'INSERT INTO t VALUES (1)');
$xid = $writer->query_safe('SELECT pg_current_xact_id()');
my $pid = $writer->query_safe('SELECT pg_backend_pid()');
foreach my $s (@readers)
{
	$s->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1 AS reader');
}
@lines = holders('idle');
like($lines[0], qr/^Process $pid needs undo from transaction $xid on \(age \d+\): SELECT pg_backend_pid/, 'the idle writer is named first');
is(scalar(grep { /^Process \d+ needs undo from transaction $xid on .*: SELECT 1 AS reader/ } @lines), 7, 'then those who have snapshots');
is(scalar(@lines), 8, 'no more than eight');
$_->quit foreach $writer, @readers;

check_clean($node, 'at the end', $_) foreach qw(prepared another finished idle);
$node->stop;
check_log($node);
done_testing();
