# There is one undo worker in a database, whatever ends while another starts; and there
# is one again, whatever ended.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_node('primary', conf => q{
restart_after_crash = on
inplace.undo_worker_delay = 50
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int, v text) USING inplace;
	INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 2000) g;});

my $workers = q{SELECT coalesce(string_agg(pid::text, ' ' ORDER BY pid), '') FROM pg_stat_activity
	WHERE backend_type = 'inplace undo worker' AND datname = 'postgres'};

# The processes of the postmaster whose title begins so.
sub processes
{
	my ($title) = @_;
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @pids;
	foreach my $dir (glob '/proc/[0-9]*')
	{
		open(my $stat, '<', "$dir/stat") or next;
		my $line = <$stat>;
		close $stat;
		next unless defined $line && $line =~ /^(\d+) \(.*\) (\S) (\d+) / && $3 == $postmaster && $2 ne 'Z';
		my $pid = $1;
		open(my $cmdline, '<', "$dir/cmdline") or next;
		my $command = <$cmdline> // '';
		close $cmdline;
		push @pids, $pid if $command =~ /^postgres: .*\Q$title\E/;
	}
	return @pids;
}

sub process_of
{
	my ($title, $not) = @_;
	for (1 .. 1500)
	{
		my @pids = grep { $_ != ($not // 0) } processes($title);
		return $pids[0] if @pids;
		sleep(0.02);
	}
	return 0;
}

# Reaches new processes only.  The postmaster knows of it when it has told a session
# of a reload.
my $reloads = 0;
sub delay_starts
{
	my ($seconds, $session) = @_;
	$reloads++;
	$node->append_conf('postgresql.conf', "post_auth_delay = $seconds\ntest.reloads = $reloads");
	$node->reload;
	my $asked = q{SELECT current_setting('test.reloads', true)};
	for (1 .. 600)
	{
		last if ($session ? one_of($session, $asked) : one($node, $asked)) eq $reloads;
		sleep(0.1);
	}
	return;
}

sub launcher { return process_of('inplace undo launcher', @_) }

my $changes = q{UPDATE t SET v = repeat(md5(v), 15); BEGIN; UPDATE t SET v = repeat(md5(v || 1), 15); ROLLBACK};

# Undo that is needed for as long as this session is in its transaction.
my $holder = psql_session($node);
my $s = psql_session($node);
sub hold { $holder->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t'); return }
sub let_go { $holder->query('COMMIT'); return }

# ---------------- a launcher ends while a worker that it has registered starts

hold();
delay_starts(8, $s);
my $launcher = launcher();
$s->query(q{UPDATE t SET v = 'y' || v});
my $database = one_of($s, q{SELECT oid FROM pg_database WHERE datname = 'postgres'});
my $worker = process_of("inplace undo worker for database $database");
ok($worker, 'a worker is being started');
delay_starts(2, $s);
kill 'TERM', $launcher if $launcher;
my $successor = launcher($launcher);
ok($successor, 'the launcher has a successor');

# The successor's worker comes after the first one, if that stays, and is up before
# that is.
$s->query(q{DO $$
	DECLARE n int; most int := 0; finish timestamptz := clock_timestamp() + '14 s';
	BEGIN
		WHILE clock_timestamp() < finish LOOP
			PERFORM pg_stat_clear_snapshot(), pg_sleep(0.05);
			SELECT count(*) INTO n FROM pg_stat_activity
			 WHERE backend_type = 'inplace undo worker' AND datname = 'postgres';
			most := greatest(n, most);
		END LOOP;
		PERFORM set_config('test.most', most::text, false);
	END $$});
my $most = one_of($s, q{SELECT current_setting('test.most')});
is($most, 1, 'one worker, and never two at a time');
delay_starts(0);
ok(defined poll_value($node, qq{SELECT ($workers) ~ '^[0-9]+\$'}, 20), '... and there is one');
is(one($node, qq{SELECT count(*) FROM inplace.undo WHERE worker_pid::text = ($workers)}), '2', '... that has both kinds of undo');

# ---------------- launchers and workers come and go

for my $i (1 .. 2)
{
	my $before = one($node, $workers);
	my $old = launcher();
	kill 'TERM', $old if $old;
	ok(launcher($old), "launcher ended ($i): there is one again");
	sleep(0.7);
	is(one($node, $workers), $before, '... and the worker has stayed');
}
for my $signal ('TERM', 'INT', 'TERM')
{
	my $before = one($node, $workers);
	kill $signal, $before if $before;
	ok(defined poll_value($node, qq{SELECT ($workers) ~ '^[0-9]+\$'} . ($signal eq 'TERM' ? " AND ($workers) <> '$before'" : ''), 30),
		"SIG$signal to the worker: there is one");
	sleep(0.5);
}
# Both at once, so that a launcher finds the worker of its predecessor, and nobody tells it of its end.
{
	my $before = one($node, $workers);
	my $old = launcher();
	kill 'TERM', $old if $old;
	ok(launcher($old), 'launcher ended');
	sleep(0.7);
	kill 'TERM', $before if $before;
	ok(defined poll_value($node, qq{SELECT ($workers) ~ '^[0-9]+\$' AND ($workers) <> '$before'}, 30), '... then the worker: another one');
}
let_go();
undo_floor_reached($node, 'after that', 30);

# ---------------- the first visit after a start is tried again

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int, v text) USING inplace;
	INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 2000) g;});
$database = one($node, q{SELECT oid FROM pg_database WHERE datname = 'other'});
my $file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('inplace.undo_log')}, 'other');

# The undo of a database whose workers have to leave before they have looked.
my $blocker = psql_session($node, 'other');
$blocker->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$node->safe_psql('other', qq{$changes; CHECKPOINT});
$_->quit foreach $holder, $s, $blocker;
my $length = -s $file;
cmp_ok($length, '>', 1_000_000, 'undo to be given back');
$node->stop('immediate');
$node->append_conf('postgresql.conf', 'post_auth_delay = 1');
$node->start;
for (1 .. 2)
{
	my $visitor = process_of("inplace undo worker for database $database");
	ok($visitor, 'a worker is being started');
	kill 'TERM', $visitor if $visitor;
	sleep(0.1) while grep { $_ == $visitor } processes('inplace undo worker');
}
delay_starts(0);
my $shortened = 0;
for (1 .. 600)
{
	$shortened = 1, last if -s $file <= 300_000;
	sleep(0.1);
}
ok($shortened, '... and the next has given the undo back, though nobody uses the database')
  or note "$length bytes, now " . -s $file;
check_clean($node, 'other', 'other');

# ---------------- a copied database is visited, too

$node->safe_psql('other', 'UPDATE t SET v = v || 1');
$blocker = psql_session($node);
$blocker->query('BEGIN; SELECT txid_current()');
$node->safe_psql('other', $changes);
is(one($node, 'CREATE DATABASE copied TEMPLATE other'), '', 'CREATE DATABASE of a template with a worker');
$file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('inplace.undo_log')}, 'copied');
cmp_ok(-s $file, '>', 1_000_000, '... whose undo is copied');
$blocker->query('COMMIT');
$blocker->quit;
for (1 .. 600)
{
	$shortened = 2, last if -s $file <= 300_000;
	sleep(0.1);
}
is($shortened, 2, '... and given back there');
is(one($node, 'ALTER DATABASE copied RENAME TO renamed'), '', 'ALTER DATABASE RENAME');
is(one($node, 'DROP DATABASE renamed'), '', 'DROP DATABASE');

# ---------------- a crash of the worker

$holder = psql_session($node, 'other');
$holder->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$node->safe_psql('other', $changes);
$workers =~ s/'postgres'/'other'/;
ok(defined poll_value($node, qq{SELECT ($workers) ~ '^[0-9]+\$'}, 30), 'a worker');
my $killed = one($node, $workers);
kill 'KILL', $killed if $killed;
for (1 .. 1200)
{
	my ($rc, $out) = $node->psql('postgres', $workers);
	last if $rc == 0 && $out ne '' && $out ne $killed;
	sleep(0.1);
}
like(one($node, $workers), qr/^\d+$/, 'SIGKILL: one worker after the restart');
undo_floor_reached($node, 'after the crash', 30, 'other');
check_clean($node, 'after the crash', 'other');
eval { $holder->quit };

check_log($node);
$node->stop;
done_testing();

sub one_of
{
	my ($session, $sql) = @_;
	my $answer = $session->query($sql);
	$answer =~ s/\s+$//;
	return $answer;
}
