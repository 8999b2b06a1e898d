# inplace.undo_extents that is smaller than the undo file needs: on a standby that is
# promoted, and after a restart.  Nothing is lost, what is beyond the setting is given back as
# soon as nobody needs it, and until then the errors say what to do.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $settings = q{
inplace.squeeze_undo = off
inplace.undo_worker_delay = 50
wal_compression = off
};
my $node = new_node('primary', allows_streaming => 1, conf => "$settings\ninplace.undo_extents = 4096\n");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE other');
foreach my $db ('postgres', 'other')
{
	$node->safe_psql($db, q{
		CREATE EXTENSION inplace;
		CREATE TABLE t (id int PRIMARY KEY, n int, v text) USING inplace;
		INSERT INTO t SELECT g, 0, repeat(md5(g::text), 40) FROM generate_series(1, 8000) g;});
}
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'inplace.undo_extents = 256');
$standby->start;

# The primary's worker comes too late to give anything back.
$node->append_conf('postgresql.conf', 'inplace.undo_worker_delay = 60000');
$node->reload;

# About 40 extents of undo for each round; the last is rolled back, and is in what has no place.
sub fill
{
	my ($db, $rounds) = @_;
	my $change = q{UPDATE t SET n = n + 1, v = repeat(md5(v), 40);};
	$node->safe_psql($db, $change) for 1 .. $rounds;
	$node->safe_psql($db, "BEGIN; $change DELETE FROM t WHERE id % 3 = 0; ROLLBACK");
	return;
}
my %holder = map { $_ => psql_session($node, $_) } 'postgres', 'other';
$_->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t') foreach values %holder;
$node->safe_psql('other', q{BEGIN; UPDATE t SET v = 'prepared' WHERE id = 1; PREPARE TRANSACTION 'p'});
$node->safe_psql('postgres', q{UPDATE t SET v = 'prepared' WHERE id = 1});
fill('postgres', 8);
$node->safe_psql('other', q{UPDATE t SET n = 1 WHERE id BETWEEN 2 AND 10});

my $extents = q{SELECT sum(extents) FROM inplace.undo};
cmp_ok(one($node, $extents), '>', 300, 'undo of more extents than the standby is set to');
my %want = map { $_ => contents($node, 't', $_) } 'postgres', 'other';
$node->wait_for_catchup($standby);
$_->quit foreach values %holder;
$node->stop('immediate');

sub goes_on
{
	my ($server, $what) = @_;
	is(contents($server, 't', $_), $want{$_}, "$what: contents in $_") foreach sort keys %want;
	is(one($server, q{SELECT count(*), sum(extents) >= 0 FROM inplace.undo}), '3|t', "$what: the view answers");
	ok(defined eventually($server, 'postgres', q{UPDATE t SET n = n + 1 WHERE id = 2}), "$what: UPDATE");
	ok(defined eventually($server, 'postgres', q{DELETE FROM t WHERE id = 3}), "$what: DELETE");
	undo_floor_reached($server, $what, 60);
	is(one($server, q{SELECT n FROM t WHERE id = 2}), one($server, q{SELECT n + 1 FROM t WHERE id = 4}), '... has updated');
	is(one($server, q{SELECT count(*) FROM t WHERE id = 3}), '0', '... and deleted');
	check_clean($server, $what);
	return;
}

# Until it does not fail for want of undo any more.
sub eventually
{
	my ($server, $db, $sql) = @_;
	for (1 .. 600)
	{
		my $error = sqlstate_of($server, $sql, $db);
		return 1 if $error eq '';
		if ($error !~ /53400/)
		{
			note $error;
			return undef;
		}
		usleep(100_000);
	}
	note 'still 53400';
	return undef;
}

# ---------------- promotion

$standby->promote;
goes_on($standby, 'promoted');
like(slurp_file($standby->logfile),
	qr/undo of database "postgres" has \d+ extents more than "inplace.undo_extents" \(256\) has places for/,
	'... the log says so');
one($standby, q{ROLLBACK PREPARED 'p'}, 'other');
undo_floor_reached($standby, 'promoted, other database', 60, 'other');
check_clean($standby, 'promoted, other database', 'other');
check_log($standby);
$standby->stop;

# ---------------- a restart, with undo that is held back

$node->start;
$node->safe_psql('postgres', q{CREATE TABLE held (id int) USING inplace; BEGIN; INSERT INTO held VALUES (1); PREPARE TRANSACTION 'q'});
fill('postgres', 9);
$node->stop('immediate');
$node->append_conf('postgresql.conf', "inplace.undo_extents = 256\ninplace.undo_worker_delay = 50");
$node->start;
cmp_ok(one($node, $extents), '>', 256, 'restarted: undo of more extents than the setting');
my $error = sqlstate_of($node, q{UPDATE t SET v = repeat(md5(v), 40)});
like($error, qr/53400/, 'restarted: with all of it held back UPDATE fails');
my ($beyond) = $error =~ /DETAIL:  (\d+) extents of this database are beyond it/;
my ($needed) = $error =~ /HINT: .* set "inplace.undo_extents" to (\d+) or more/i;
ok($beyond && $needed && $needed > 256, "... and the hint says what is needed") or note $error;
is(one($node, q{INSERT INTO t VALUES (10000, 0, 'new') RETURNING id}), '10000', '... INSERT goes on');
is(one($node, q{SELECT extents_to_restore > 0 FROM inplace.undo WHERE kind = 'logged'}), 't', '... the view says what is left to restore');

# With what the hint says it goes on; the undo is held back as before.
$node->append_conf('postgresql.conf', "inplace.undo_extents = $needed");
$node->stop('immediate');
$node->start;
is(sqlstate_of($node, q{UPDATE t SET n = n + 1 WHERE id BETWEEN 10 AND 20}), '', '... UPDATE with the setting of the hint');
$node->append_conf('postgresql.conf', 'inplace.undo_extents = 256');
$node->stop('immediate');
$node->start;
one($node, q{ROLLBACK PREPARED 'q'});
one($node, q{ROLLBACK PREPARED 'p'}, 'other');
%want = map { $_ => contents($node, 't', $_) } 'postgres', 'other';
goes_on($node, 'restarted, nothing held back');
undo_floor_reached($node, 'restarted, other database', 60, 'other');
is(sqlstate_of($node, q{UPDATE t SET v = repeat(md5(v), 40)}, 'other'), '', '... UPDATE there');

check_log($node);
$node->stop;
done_testing();
