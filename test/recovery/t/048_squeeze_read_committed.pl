# Versions are dropped under the snapshots of READ COMMITTED transactions, too:
# those of cursors while their session waits for its client, and those of
# queries that run for long.  Each goes on seeing what it saw at first, whatever
# its session does in between, and undo does not grow with the updates.
# Long: on one server of a run.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
inplace.undo_worker_delay = 100
# (nothing is replayed)
wal_consistency_checking = ''
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, k int, v text);
	CREATE INDEX ON t USING inplace_btree (k);
	INSERT INTO t SELECT i, 100, i, 'v' FROM generate_series(1, 8) i;
	-- n only moves between rows
	CREATE FUNCTION must_be_800(s bigint) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN IF s IS DISTINCT FROM 800 THEN RAISE 'the sum is %', s; END IF; END $$;
	CREATE FUNCTION sums(seconds float) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE own CURSOR FOR SELECT sum(n) FROM t; s bigint;
	BEGIN
		OPEN own;
		FOR i IN 1 .. 3 LOOP
			PERFORM must_be_800(sum(n)) FROM t;
			PERFORM pg_sleep(seconds / 3);
		END LOOP;
		FETCH own INTO s;
		PERFORM must_be_800(s);
	END $$;
	CREATE FUNCTION sum_now() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(n) FROM t); END $$;
	CREATE DOMAIN checked AS int CHECK (VALUE = sum_now());});

my $move = script_that_moves_n($node, q{v = repeat('y', :k)});

# xids, for only snapshots that are older than some of them are looked at
my $xids = pgbench_script($node, 'xids', q{
DO $$ BEGIN FOR i IN 1 .. 1000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$;
\sleep 50 ms
});

# sessions that hold snapshots, in all the ways that there are
my $cursors = pgbench_script($node, 'cursors', q{
\set ms random(1, 1500)
\set which random(1, 4)
BEGIN;
DECLARE c CURSOR FOR SELECT sum(n) FROM t;
\if :which = 2
DECLARE d CURSOR FOR SELECT sum(n) FROM t WHERE k BETWEEN 0 AND 100;
\endif
\if :which = 3
FETCH 0 FROM c;
\endif
\sleep :ms ms
\if :which = 2
DECLARE e CURSOR FOR SELECT sum(n) FROM t;
\sleep :ms ms
FETCH 1 FROM d \gset
SELECT must_be_800(:sum);
\sleep :ms ms
FETCH 1 FROM e \gset
SELECT must_be_800(:sum);
\endif
\if :which = 4
SELECT sums(:ms / 1000.0);
SELECT sum(n) FROM t \gset
SELECT must_be_800(:sum);
SELECT 800::checked;
\sleep :ms ms
\endif
FETCH 1 FROM c \gset
SELECT must_be_800(:sum);
COMMIT;
});
my $queries = pgbench_script($node, 'queries', q{
\set ms random(1, 1500)
\set which random(1, 4)
\if :which < 3
SELECT (SELECT count(*) FROM pg_sleep(:ms / 1000.0)) AS slept, (SELECT sum(n) FROM t) AS sum \gset
\elif :which = 3
SELECT (SELECT count(*) FROM pg_sleep(:ms / 1000.0)) AS slept, sum_now() AS sum, sums(:ms / 1000.0) \gset
\else
BEGIN;
DECLARE c CURSOR FOR SELECT sum(n) FROM t;
SELECT (SELECT count(*) FROM pg_sleep(:ms / 1000.0)) AS slept, (SELECT sum(n) FROM t) AS sum \gset
SELECT must_be_800(:sum);
SELECT (SELECT count(*) FROM pg_sleep(:ms / 1000.0)) AS slept, sum_now() AS sum \gset
SELECT must_be_800(:sum);
FETCH 1 FROM c \gset
COMMIT;
\endif
SELECT must_be_800(:sum);
});

my @load;
foreach my $protocol ('simple', 'extended', 'prepared')
{
	push @load, start_pgbench($node, '-M', $protocol, '-c', 4, '-j', 2, '-T', 8, '-f', $cursors, '-f', $queries);
}
my $moves = start_pgbench($node, '-c', 3, '-T', 9, '--max-tries=20', '-f', $move);
my $burn = start_pgbench($node, '-T', 9, '-f', $xids);
my $out;
foreach my $l (@load)
{
	$out = end_pgbench($l);
	unlike($out, qr/aborted/, 'each snapshot sees all of every transaction') or diag($out);
}
$out = end_pgbench($moves);
unlike($out, qr/aborted/, 'those who move n have no error') or diag($out);
end_pgbench($burn);
check_clean($node, 'under snapshots');

# ---- one thing at a time; the versions in between are gone when it goes on

my $row = pgbench_script($node, 'row', "UPDATE t SET v = 'v' || random() WHERE id = 1;\n");
my $look_at_row = 'SELECT v FROM t WHERE id = 1';
sub go_by
{
	use_up_xids($node);
	foreach my $n (1 .. 3)
	{
		end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 1, '-t', 600, @_));
		# for the undo worker to look
		$node->safe_psql('postgres', 'SELECT pg_sleep(0.3)');
	}
}

# cursors of different ages
my $session = psql_session($node);
$session->query('BEGIN');
my @saw;
foreach my $c ('a', 'b', 'c')
{
	push @saw, one($node, $look_at_row);
	$session->query("DECLARE $c CURSOR FOR $look_at_row");
	$session->query('SELECT 1');
	go_by('-f', $row);
}
versions_dropped($node, 3000, $row, 'versions have been dropped');
is($session->query("FETCH 1 FROM $_->[0]"), $_->[1], "cursor $_->[0] sees what it saw at first")
  foreach ([ 'b', $saw[1] ], [ 'a', $saw[0] ], [ 'c', $saw[2] ]);
$session->query('COMMIT');

# a function's snapshot is younger than its query's
$node->safe_psql('postgres', q{
	CREATE FUNCTION wait_and_look() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE own CURSOR FOR SELECT v FROM t WHERE id = 1; r text;
	BEGIN
		PERFORM pg_advisory_lock_shared(1);
		OPEN own;
		PERFORM pg_advisory_lock_shared(2);
		FETCH own INTO r;
		RETURN r || ' ' || (SELECT v FROM t WHERE id = 1);
	END $$;});
my $locker = psql_session($node);
sub wait_for_lock
{
	my ($n) = @_;
	poll_value($node, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $n AND NOT granted", 60);
}
sub in_background
{
	my ($sql, $out) = @_;
	return IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $sql ], '>', $out);
}
$locker->query('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
my $first = one($node, $look_at_row);
my $answer;
my $waiting = in_background("SELECT wait_and_look(), v FROM t WHERE id = 1", \$answer);
wait_for_lock(1);
go_by('-f', $row);
my $second = one($node, $look_at_row);
$locker->query('SELECT pg_advisory_unlock(1)');
wait_for_lock(2);
go_by('-f', $row);
my $third = one($node, $look_at_row);
$locker->query('SELECT pg_advisory_unlock(2)');
$waiting->finish;
is($answer, "$second $third|$first\n", 'the snapshots of a query, of a cursor in its function, and of that');

# a snapshot that no query of its session has, given to another
$session->query('BEGIN');
$session->query("DECLARE c CURSOR FOR $look_at_row");
go_by('-f', $row);
$second = one($node, $look_at_row);
$session->query(q{DO $$ DECLARE s text; BEGIN s := set_config('x.s', pg_export_snapshot(), false); END $$});
my $exported = $session->query('SHOW x.s');
go_by('-f', $row);
my $importer = psql_session($node);
$importer->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
$importer->query("SET TRANSACTION SNAPSHOT '$exported'");
is($importer->query($look_at_row), $second, 'an exported snapshot sees what there was');
is($session->query('FETCH 1 FROM c'), $third, '... and the cursor, too');
$importer->query('COMMIT');
$session->query('COMMIT');

# a function of the server that calls a function of the user, in one snapshot
$node->safe_psql('postgres', q{
	CREATE FUNCTION look() RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT v FROM t WHERE id = 1); END $$;
	CREATE FUNCTION wait() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE r text;
	BEGIN
		r := pg_advisory_lock_shared(2)::text;
		PERFORM 1 FROM t;
		RETURN '';
	END $$;
	CREATE FUNCTION one_snapshot() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE r text;
	BEGIN
		r := wait() || look();
		INSERT INTO seen VALUES (r);
		RETURN 'x';
	END $$;
	CREATE TABLE seen (v text);});
$locker->query('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
$first = one($node, $look_at_row);
$waiting = in_background(q{SELECT (SELECT count(*) FROM pg_advisory_lock_shared(1)), v,
	(SELECT count(*) FROM ts_stat('select to_tsvector(''simple'', one_snapshot())')) FROM t WHERE id = 1}, \$answer);
wait_for_lock(1);
go_by('-f', $row);
$second = one($node, $look_at_row);
$locker->query('SELECT pg_advisory_unlock(1)');
wait_for_lock(2);
go_by('-f', $row);
$locker->query('SELECT pg_advisory_unlock(2)');
$waiting->finish;
is($answer, "1|$first|1\n", 'the query sees what there was when it began');
is(one($node, 'SELECT v FROM seen'), $second, '... the function in it what there was when that began');

# rows on a page that a scan has begun with
$node->safe_psql('postgres', q{
	CREATE TABLE s (id int, v text);
	INSERT INTO s SELECT i, 'first' FROM generate_series(1, 200) i;});
my $all_rows = pgbench_script($node, 'all', "UPDATE s SET v = 'v' || random();\n");
$session->query('BEGIN');
$session->query('DECLARE c CURSOR FOR SELECT v FROM s');
$node->safe_psql('postgres', "UPDATE s SET v = 'second'");
is($session->query('FETCH 2 FROM c'), "first\nfirst", 'a scan has begun on a page with newer versions');
go_by('-f', $all_rows);
is($session->query('FETCH ALL FROM c'), join("\n", ('first') x 198), '... and goes on when their undo is gone');
$session->query('COMMIT');
check_clean($node, 'after that');

# ---- size

my $size = q{pg_relation_size('inplace.undo_log')};
my $hot = pgbench_script($node, 'hot', q{
\set a random(1, 8)
UPDATE t SET v = repeat('z', :a) WHERE id = :a;
});
my $look = q{SELECT string_agg(t::text, '|' ORDER BY id) FROM t};

# holds a snapshot while rows are updated; returns the growth of undo
sub growth
{
	my ($what, $begin, $end) = @_;
	undo_floor_reached($node, "before $what", 30);
	my $before = one($node, $look);
	my $size_before = one($node, "SELECT $size");
	$begin->();
	end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 24000, '-f', $hot));
	my $growth = one($node, "SELECT $size") - $size_before;
	is($end->(), $before, "$what sees what there was");
	note "undo has grown by $growth bytes with $what";
	return $growth;
}
sub cursor
{
	return (sub { $session->query($_) foreach ('BEGIN', "DECLARE c CURSOR FOR $look") },
		sub { my $r = $session->query('FETCH 1 FROM c'); $session->query('COMMIT'); return $r });
}
$node->append_conf('postgresql.conf', "inplace.squeeze_undo = off\n");
$node->reload;
my $without = growth('a cursor, with squeeze_undo off', cursor());
cmp_ok($without, '>', 1_500_000, 'undo grows with the updates when it is off');
# (What is under way takes some 800 kB, however many updates there are.)
my $less = $without * 0.7;
$node->append_conf('postgresql.conf', "inplace.squeeze_undo = on\n");
$node->reload;
cmp_ok(growth('a cursor', cursor()), '<', $less, '... and not with a cursor of a session that waits');

# a query that goes on until it gets a lock
cmp_ok(growth('a long query',
	sub {
		$locker->query('SELECT pg_advisory_lock(1)');
		$waiting = in_background("SELECT (SELECT count(*) FROM pg_advisory_lock_shared(1)), ($look)", \$answer);
		wait_for_lock(1);
	},
	sub {
		$locker->query('SELECT pg_advisory_unlock(1)');
		$waiting->finish;
		chomp $answer;
		return $answer =~ s/^1\|//r;
	}), '<', $less, '... nor with a query that runs for long');

# a session with a cursor that goes on to other statements: all versions between its two
# snapshots may be needed, but nothing is added to them
undo_floor_reached($node, 'before a session goes on', 30);
my @at = one($node, $look);
$session->query($_) foreach ('BEGIN', "DECLARE c CURSOR FOR $look");
my $beside = start_pgbench($node, '-c', 2, '-T', 3, '-f', $hot);
# (no version is dropped under snapshots of a session that goes on taking them)
$session->query(q{DO $$ BEGIN FOR i IN 1 .. 300 LOOP PERFORM sum(n) FROM t; PERFORM pg_sleep(0.01); END LOOP; END $$});
end_pgbench($beside);
push @at, one($node, $look);
$session->query($_) foreach ("DECLARE d CURSOR FOR $look", 'SELECT 1 FROM t');
my $at_second = one($node, "SELECT $size");
end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 24000, '-f', $hot));
my $since = one($node, "SELECT $size") - $at_second;
note "undo has grown by $since bytes since the session went on";
cmp_ok($since, '<', $less, 'undo does not go on growing when a session with a cursor has gone on');
is($session->query("FETCH 1 FROM $_->[0]"), $_->[1], "cursor $_->[0] sees what there was") foreach ([ 'd', $at[1] ], [ 'c', $at[0] ]);
$session->query('COMMIT');

# nobody knows of a session that does not report
$session->query('SET track_activities = off');
growth('a cursor of a session that does not report', cursor());
$session->query('RESET track_activities');

check_clean($node, 'at the end');
undo_floor_reached($node, 'at the end', 30);
check_log($node);
done_testing();
