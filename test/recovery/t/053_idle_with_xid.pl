# A transaction that has changed something, and then does nothing, keeps no
# versions that it does not need itself: undo does not grow with what others
# update.  Snapshots of every kind that are held at the same time go on seeing
# what they saw at first, and so does the idle transaction see what it should;
# also after rollbacks, on a standby that was not connected, and after a crash.
# Long: on one server of a run.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = seed();
my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
wal_level = logical
wal_keep_size = 2GB
max_wal_senders = 5
max_prepared_transactions = 5
inplace.undo_worker_delay = 100
min_parallel_table_scan_size = 0
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, k int, v text);
	CREATE INDEX ON t USING inplace_btree (k);
	INSERT INTO t SELECT i, 100, i, 'v' FROM generate_series(1, 100) i;
	CREATE TABLE ref (t int REFERENCES t);
	CREATE TABLE other (id int PRIMARY KEY, n int);
	INSERT INTO other SELECT i, 0 FROM generate_series(1, 100) i;});

my $hot = pgbench_script($node, 'hot', q{
\set a random(1, 100)
UPDATE t SET v = repeat('z', 1 + :a % 9) WHERE id = :a;
});
my $move = script_that_moves_n($node);
my $single = pgbench_script($node, 'single', q{
\set a random(1, 8)
\set k random(1, 40)
UPDATE t SET v = repeat('y', :k) WHERE id = :a;
});
# a statement that takes a while, with a snapshot of its own
my $looking = pgbench_script($node, 'look', q{
\set ms random(1, 400)
SELECT 1 / (sum(n) = 10000)::int FROM t;
SELECT (SELECT count(*) FROM pg_sleep(:ms / 1000.0)) AS slept, 1 / ((SELECT sum(n) FROM t) = 10000)::int;
});

my $look = q{SELECT string_agg(t::text, '|' ORDER BY id) FROM t};
my $undo = q{pg_relation_size('inplace.undo_log')};

# ---- size

sub growth
{
	my ($what, $begin, $end) = @_;
	undo_floor_reached($node, "before $what", 30);
	my $idle = psql_session($node);
	$idle->query_safe($_) foreach @$begin;
	unchecked { end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 20000, '-f', $hot)) };
	my $size = one($node, "SELECT $undo");
	is($idle->query_safe('SELECT sum(n) FROM t'), 10000, "$what: sees all");
	$idle->query_safe($end);
	$idle->quit;
	is(one($node, 'SELECT sum(n) FROM other'), $end eq 'COMMIT' ? 1 : 0, "$what: $end");
	$node->safe_psql('postgres', 'UPDATE other SET n = 0 WHERE n <> 0');
	undo_floor_reached($node, "after $what", 30);
	note "undo has grown to $size bytes with $what";
	return $size;
}
my $change = 'UPDATE other SET n = 1 WHERE id = 1';
$node->append_conf('postgresql.conf', "inplace.squeeze_undo = off\n");
$node->reload;
my $without = growth('squeeze_undo off', [ 'BEGIN', $change ], 'COMMIT');
$node->append_conf('postgresql.conf', "inplace.squeeze_undo = on\n");
$node->reload;
# (What is under way takes some 300 kB beside what is always there, however many updates there are;
# twice that on a machine with much to do, as each of two clients takes an extent of 256 kB more.)
my $less = $without * 0.8;
cmp_ok($without, '>', 1_700_000, 'undo grows with the updates without');
cmp_ok(growth('an idle transaction', [ 'BEGIN', $change ], 'COMMIT'), '<', $less, '... and not with');
cmp_ok(growth('a subtransaction', [ 'BEGIN', 'SAVEPOINT s', $change ], 'ROLLBACK'), '<', $less, '... also with its change in a subtransaction');
foreach my $how ('REPEATABLE READ', 'SERIALIZABLE')
{
	cmp_ok(growth("$how, after a change", [ "BEGIN ISOLATION LEVEL $how", 'SELECT sum(n) FROM t', $change ], 'COMMIT'),
		'<', $less, "... also if it is $how and has a snapshot");
}
check_clean($node, 'size');

# ---- a cursor with the newer snapshot of a foreign key's check: it stays there when
# the session is idle

$node->safe_psql('postgres', q{
	CREATE TABLE pk (id int PRIMARY KEY);
	CREATE TABLE fk (id int REFERENCES pk ON DELETE CASCADE);
	INSERT INTO pk VALUES (1);
	INSERT INTO fk VALUES (1);
	CREATE FUNCTION open_cursor() RETURNS trigger LANGUAGE plpgsql STABLE AS
		$$ DECLARE c refcursor := 'cc'; BEGIN OPEN c FOR SELECT v FROM t WHERE id = 1; RETURN old; END $$;
	CREATE TRIGGER open_cursor BEFORE DELETE ON fk FOR EACH ROW EXECUTE FUNCTION open_cursor();});
my $deleter = psql_session($node);
$deleter->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM t');
$node->safe_psql('postgres', q{UPDATE t SET v = 'newer' WHERE id = 1});
$deleter->query_safe('DELETE FROM pk WHERE id = 1');
use_up_xids($node);
end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 2000, '-f', $single)) for 1 .. 2;
is($deleter->query_safe('FETCH ALL FROM cc'), 'newer', 'the cursor sees what was there when it was opened');
$deleter->query_safe('ROLLBACK');
$deleter->quit;

# ---- snapshots of every kind, beside idle transactions

my (@held, @idle);
sub hold
{
	my ($how, $look_here, @begin) = @_;
	my $s = psql_session($node);
	$s->query_safe($_) foreach @begin;
	my $h = { session => $s, name => "$how, number " . (1 + @held), look => $look_here };
	$h->{answer} = $s->query_safe($look_here);
	isnt($h->{answer}, '', "$h->{name} has looked");
	push @held, $h;
}
my $exporter = psql_session($node);
my @kinds = (
	sub { hold('REPEATABLE READ', $look, 'BEGIN ISOLATION LEVEL REPEATABLE READ') },
	sub { hold('REPEATABLE READ with an xid', $look, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT pg_current_xact_id()') },
	sub { hold('SERIALIZABLE', $look, 'BEGIN ISOLATION LEVEL SERIALIZABLE') },
	sub {
		hold('REPEATABLE READ with foreign keys', $look, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'INSERT INTO ref VALUES (1)');
		# these are checked with a newer snapshot
		$held[-1]->{also} = 'INSERT INTO ref SELECT i FROM generate_series(1, 8) i';
	},
	sub { hold('cursor', 'FETCH ABSOLUTE 1 FROM c', 'BEGIN', "DECLARE c SCROLL CURSOR FOR $look") },
	sub { hold('cursor with an xid', 'FETCH ABSOLUTE 1 FROM c', 'BEGIN', 'SELECT pg_current_xact_id()', "DECLARE c SCROLL CURSOR FOR $look") },
	sub { hold('holdable cursor', 'FETCH ABSOLUTE 1 FROM c', 'BEGIN', "DECLARE c SCROLL CURSOR WITH HOLD FOR $look", 'COMMIT') },
	sub {
		$exporter->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
		my $id = $exporter->query_safe('SELECT pg_export_snapshot()');
		# others end, and see more
		end_pgbench(start_pgbench($node, '-t', 20, '-f', $single));
		hold('imported', $look, 'BEGIN ISOLATION LEVEL REPEATABLE READ', "SET TRANSACTION SNAPSHOT '$id'");
		$exporter->query_safe('COMMIT');
	},
	sub {
		hold('parallel', $look, 'SET debug_parallel_query = on', 'SET parallel_setup_cost = 0', 'BEGIN ISOLATION LEVEL REPEATABLE READ')
		  if pg_major() >= 16;
	});
sub look_again
{
	my ($after) = @_;
	foreach my $h (@held)
	{
		is($h->{session}->query_safe($h->{look}), $h->{answer}, "$h->{name} sees the same after $after (seed $seed)");
		$h->{session}->query_safe($h->{also}) if $h->{also};
	}
	is($_->query_safe('SELECT sum(n) FROM t'), 10000, "an idle transaction sees all after $after (seed $seed)") foreach @idle;
	is(one($node, 'SELECT sum(n) FROM t'), 10000, "others see all after $after (seed $seed)");
}
sub forget
{
	my ($id) = @_;
	my $s = psql_session($node);
	$s->query_safe($_) foreach ('BEGIN', "UPDATE other SET n = n + 1 WHERE id = $id");
	push @idle, $s;
}

forget(1);
$node->safe_psql('postgres', q{BEGIN; UPDATE other SET n = 7 WHERE id = 50; UPDATE t SET v = 'prepared', n = n + 5 WHERE id = 50; PREPARE TRANSACTION 'p'});
use_up_xids($node);
my $load = start_pgbench($node, '-c', 4, '-j', 2, '-T', 24, '--max-tries=20',
	'-f', "$move\@4", '-f', "$single\@6");
my $looks = start_pgbench($node, '-c', 3, '-T', 24, '-f', $looking);
foreach my $round (1 .. 12)
{
	$kinds[ ($round <= @kinds) ? $round - 1 : int(rand(@kinds)) ]->();
	select(undef, undef, undef, 1 + rand(0.6));
	forget($round) if $round % 4 == 0;
	if ($round % 3 == 0)
	{
		look_again("round $round");
		my ($h) = splice(@held, int(rand(@held)), 1);
		$h->{session}->quit;
	}
	if ($round == 7)
	{
		# the oldest one does something, and is idle again
		$idle[0]->query_safe($_) foreach ('SAVEPOINT a', q{UPDATE t SET v = 'idle' WHERE id = 3}, 'ROLLBACK TO a', 'UPDATE other SET n = n + 1 WHERE id = 2');
	}
}
my $out = end_pgbench($looks);
unlike($out, qr/aborted/, 'each statement sees all of every transaction') or diag($out);
end_pgbench($load);
look_again('the load');
check_clean($node, 'under snapshots');
$_->{session}->quit foreach @held;
@held = ();
$exporter->quit;

# a snapshot that is older than all that is known of its session
my $other = psql_session($node);
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $exported = $other->query_safe('SELECT pg_export_snapshot()');
my $exported_saw = $other->query_safe($look);
end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 2000, '-f', $single));
my $importer = psql_session($node);
$importer->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', "SET TRANSACTION SNAPSHOT '$exported'");
$other->quit;
end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 2000, '-f', $single));
is($importer->query_safe($look), $exported_saw, 'an imported snapshot, alone, sees the same');
$importer->quit;

# now that only idle ones are left
unchecked { end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 4000, '-f', $single)) } for 1 .. 2;
versions_dropped($node, 1000, $single, 'versions have been dropped beside idle transactions and a prepared one');
check_clean($node, 'idle transactions');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
is(one($node, q{SELECT (SELECT n FROM other WHERE id = 50) || ' ' || n || ' ' || (v <> 'prepared') FROM t WHERE id = 50}), '0 100 true', 'the prepared transaction has been rolled back');
foreach my $s (@idle)
{
	$s->query_safe($s == $idle[0] ? 'ROLLBACK' : 'COMMIT');
	$s->quit;
}
is(one($node, q{SELECT string_agg(id || ':' || n, ' ' ORDER BY id) FROM other WHERE n <> 0}), '4:1 8:1 12:1', 'what the idle ones did is there, or not');
@idle = ();
undo_floor_reached($node, 'after all have ended', 30);

# ---- a standby

$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = '100ms'\n");
$standby->start;
$node->wait_for_catchup($standby);
forget(20);
use_up_xids($node);
$node->wait_for_catchup($standby);
my $there = psql_session($standby);
$there->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $saw = $there->query_safe($look);
end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 3000, '-f', $single));
$node->wait_for_catchup($standby);
is($there->query($look), $saw, 'a query on a standby that is connected is not in the way');

# not connected: what it does not see as all did on the primary is cancelled
$standby->append_conf('postgresql.conf', "primary_conninfo = ''\n");
$standby->reload;
poll_value($node, 'SELECT count(*) = 0 FROM pg_stat_replication', 30);
end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 4000, '-f', $single)) for 1 .. 2;
versions_dropped($node, 1000, $single, 'versions have been dropped while no standby was connected');
$standby->append_conf('postgresql.conf', q{primary_conninfo = '} . $node->connstr . qq{ application_name=standby'\n});
$standby->reload;
$node->wait_for_catchup($standby);
my $alive = one($standby, q{SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'});
is($alive ? $there->query($look) : 'cancelled', $alive ? $saw : 'cancelled', 'its snapshot is right, or cancelled');
is(one($standby, 'SELECT sum(n) FROM t'), 10000, 'a later snapshot there sees all of every transaction');
is(one($standby, $look), one($node, $look), '... and the same rows');
is(one($standby, q{SELECT k.* FROM inplace.check('t') k LIMIT 20}), '', 'standby: inplace.check has no finding');
$standby->stop;

# ---- a crash

my $rows = one($node, $look);
forget(30);
$idle[-1]->query_safe(q{UPDATE t SET n = -1, v = 'open', k = 99});
$node->safe_psql('postgres', 'CHECKPOINT; UPDATE other SET n = 0 WHERE id = 40');
crash_and_restart($node);
eval { $_->quit } foreach @idle;
@idle = ();
is(one($node, $look), $rows, 'after a crash: the rows are as they were');
check_clean($node, 'after a crash');
forget(20);
use_up_xids($node);
unchecked { end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 4000, '-f', $single)) } for 1 .. 2;
versions_dropped($node, 1000, $single, 'versions have been dropped after a crash');
look_again('a crash');
$_->query_safe('COMMIT'), $_->quit foreach @idle;
@idle = ();
undo_floor_reached($node, 'at the end', 30);
check_clean($node, 'at the end');
check_log($node);
check_log($standby);
done_testing();
