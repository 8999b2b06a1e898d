# Versions between two snapshots, which neither of them sees, are dropped: under
# snapshots that are held, of any age, each goes on seeing what it saw at first,
# while rows are updated all the time; and undo stays small if the held ones are
# those of REPEATABLE READ transactions.  Also after rollbacks, on a standby
# that gives no feedback, and after a crash.
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
max_wal_senders = 5
inplace.undo_worker_delay = 100
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, k int, u int, m int, v text, w numeric, big text);
	ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
	CREATE INDEX ON t USING inplace_btree (k);
	CREATE UNIQUE INDEX ON t USING inplace_btree (u);
	CREATE INDEX ON t (m);
	INSERT INTO t SELECT i, 100, i, i * 1000, i, 'v', i, CASE WHEN i = 5 THEN repeat('b', 3000) END FROM generate_series(1, 8) i;
	CREATE UNLOGGED TABLE unl (id int PRIMARY KEY, n int);
	INSERT INTO unl SELECT i, 0 FROM generate_series(1, 4) i;
	CREATE TABLE c (id int, t int REFERENCES t);
	CREATE TABLE cold (id int PRIMARY KEY, n int);
	INSERT INTO cold SELECT i, 0 FROM generate_series(1, 5000) i;});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = '100ms'\n");
$standby->start;

# ---- what the background does: n moves between rows, so its sum is constant

my $move = script_that_moves_n($node, 'w = CASE WHEN :end = 1 THEN NULL ELSE w END');
my $single = pgbench_script($node, 'single', q{
\set a random(1, 8)
\set b random(1, 4)
\set k random(1, 40)
UPDATE t SET v = repeat('y', :k) WHERE id = :a;
UPDATE t SET m = m WHERE id = :a;
UPDATE unl SET n = n + 1 WHERE id = :b;
});
my $rare = pgbench_script($node, 'rare', q{
\set a random(1, 5000)
\set e random(1, 4)
UPDATE cold SET n = n + 1 WHERE id = :a;
INSERT INTO c VALUES (:a, :a % 8 + 1);
\if :e = 1
UPDATE t SET u = u + 1 WHERE id = 2;
UPDATE t SET big = repeat(:a::text, 900) WHERE id = 5;
UPDATE t SET m = m + 1 WHERE id = 8;
\endif
\sleep 20 ms
});
sub background
{
	my ($seconds) = @_;
	return start_pgbench($node, '-c', 4, '-j', 2, '-T', $seconds, '--max-tries=20',
		'-f', "$move\@4", '-f', "$single\@4", '-f', "$rare\@1");
}

my $look = q{SELECT string_agg(t::text, '|' ORDER BY id) || (SELECT string_agg(unl::text, '|' ORDER BY id) FROM unl) || (SELECT sum(n) || ' ' || count(*) FROM cold) FROM t};
my @ways = ($look,
	"SET enable_seqscan = off; SET enable_bitmapscan = off; $look WHERE id BETWEEN 1 AND 8; RESET ALL",
	"SET enable_seqscan = off; SET enable_indexscan = off; $look WHERE k BETWEEN 0 AND 100; RESET ALL");
my @held;
sub hold
{
	my ($where, $how, @begin) = @_;
	my $s = psql_session($where);
	$s->query($_) foreach ("BEGIN ISOLATION LEVEL $how", @begin);
	my $name = $where->name . ", $how, number " . (1 + @held);
	my $answer = $s->query($where == $standby ? 'SELECT sum(n) FROM t' : $look);
	isnt($answer, '', "$name has looked");
	push @held, { session => $s, name => $name, answer => $answer };
	return $held[-1];
}
my $cursors;
my @cursors;
sub hold_cursor
{
	if (!$cursors)
	{
		$cursors = psql_session($node);
		$cursors->query('BEGIN');
	}
	my $c = 'c' . @cursors;
	$cursors->query("DECLARE $c SCROLL CURSOR FOR $look");
	push @cursors, [ $c, $cursors->query("FETCH ABSOLUTE 1 FROM $c") ];
	isnt($cursors[-1]->[1], '', "cursor $c has looked");
}
sub look_again
{
	my ($after) = @_;
	foreach my $h (@held)
	{
		is($h->{session}->query($_), $h->{answer}, "$h->{name} sees the same after $after (seed $seed)") foreach @ways;
	}
	foreach my $c (@cursors)
	{
		is($cursors->query("FETCH ABSOLUTE 1 FROM $c->[0]"), $c->[1], "cursor $c->[0] sees the same after $after (seed $seed)");
	}
	is(one($node, 'SELECT sum(n) FROM t'), 800, "others see all of every transaction after $after (seed $seed)");
}
sub let_go
{
	my ($n) = @_;
	my ($h) = splice(@held, $n, 1);
	$h->{session}->query('COMMIT');
	$h->{session}->quit;
}

# ---- one held snapshot: its row, and who replaced it

my $row = q{SELECT n, xmin, xmax <> 0, v FROM t WHERE id = 1};
my $first = psql_session($node);
# a statement that fails in a subtransaction does not keep it from being known
$first->query(q{DO $$ BEGIN CREATE TABLE t (a int); EXCEPTION WHEN duplicate_table THEN NULL; END $$});
$first->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $saw = $first->query('SELECT n, xmin, v FROM t WHERE id = 1');
$node->safe_psql('postgres', "UPDATE t SET v = 'after' WHERE id = 1");
my $replaced = $first->query('SELECT xmin, xmax FROM t WHERE id = 1');
$node->safe_psql('postgres', join(';', map { "UPDATE t SET v = 'v$_' WHERE id = 1" } 1 .. 400));
$node->safe_psql('postgres', join("\n", map { "UPDATE t SET v = 'v$_' WHERE id = 1;" } 1 .. 400));
is($first->query('SELECT n, xmin, v FROM t WHERE id = 1'), $saw, 'the row is the one it saw at first');
is($first->query('SELECT xmin, xmax FROM t WHERE id = 1'), $replaced, '... and was replaced by the same transaction');
cmp_ok(versions($node, 1), '<', 500,
	'most versions made by transactions of their own have been dropped');
is($first->query('SELECT id FROM t WHERE id = 1 FOR KEY SHARE'), 1, 'FOR KEY SHARE does not mind updates of other columns');
$first->query('ROLLBACK');
$first->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
$first->query($row);
$node->safe_psql('postgres', "UPDATE t SET u = u + 7 WHERE id = 1;\n"
	  . join("\n", map { "UPDATE t SET v = 'w$_' WHERE id = 1;" } 1 .. 200));
$first->query("SELECT id FROM t WHERE id = 1 FOR KEY SHARE");
like($first->{stderr}, qr/could not serialize access/, '... but those of a key, though the version is further back');
$first->{stderr} = '';
$first->query('ROLLBACK');

# rows that the held snapshot does not see at all
$first->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
$first->query($row);
$node->safe_psql('postgres', "INSERT INTO t VALUES (9, 0);\n"
	  . join("\n", map { "UPDATE t SET v = 'w$_' WHERE id = 9;" } 1 .. 200));
is($first->query('SELECT count(*) FROM t'), 8, 'a row made since is not seen');
is(one($node, q{SELECT v FROM t WHERE id = 9}), 'w200', '... but by others');
$node->safe_psql('postgres', 'DELETE FROM t WHERE id = 9');
check_clean($node, 'one snapshot');
$first->query('ROLLBACK');
$first->quit;

# ---- several, of various kinds and ages, while others update all the time

my $exporter = psql_session($node);
hold($node, 'REPEATABLE READ');
my $bench = background(16);
sleep 2;
hold($node, 'REPEATABLE READ');
hold($node, 'SERIALIZABLE');
look_again('2 s');
let_go(2);
sleep 2;
$exporter->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $exported = $exporter->query('SELECT pg_export_snapshot()');
hold($node, 'REPEATABLE READ', "SET TRANSACTION SNAPSHOT '$exported'");
hold_cursor();
sleep 2;
hold_cursor();
look_again('6 s');
hold($node, 'REPEATABLE READ');
$cursors->query('COMMIT');
@cursors = ();
sleep 2;
$exporter->quit;
# no other snapshot than theirs
hold($node, 'REPEATABLE READ');
look_again('9 s');
let_go(1);
foreach my $n (1 .. 3)
{
	sleep 1;
	hold($node, 'REPEATABLE READ') if $n < 3;
	look_again("$n more");
}
my $out = end_pgbench($bench);
unlike($out, qr/aborted/, 'pgbench has had no error') or diag($out);
look_again('pgbench');
check_clean($node, 'under snapshots');
$node->wait_for_catchup($standby);
is(one($standby, 'SELECT sum(n) FROM t'), 800, 'the standby sees all of every transaction');
is(one($standby, q{SELECT string_agg(t::text, '|' ORDER BY id) FROM t}),
	one($node, q{SELECT string_agg(t::text, '|' ORDER BY id) FROM t}), '... and the same rows');
is(one($standby, q{SELECT k.* FROM inplace.check('t') k LIMIT 20}), '', 'standby: inplace.check has no finding');

# ---- size, with one held snapshot

let_go(0) while @held;
$node->safe_psql('postgres', 'DELETE FROM c');
undo_floor_reached($node, 'without snapshots', 30);
my $size = q{pg_relation_size('inplace.undo_log')};
my %size;
foreach my $setting ('off', 'on')
{
	$node->append_conf('postgresql.conf', "inplace.squeeze_undo = $setting\n");
	$node->reload;
	hold($node, 'REPEATABLE READ');
	my $in_standby = psql_session($standby);
	$in_standby->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$in_standby->query('SELECT sum(n) FROM t');
	my $pid = $in_standby->query('SELECT pg_backend_pid()');
	unchecked { end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 9000, '-f', $single)) };
	$size{$setting} = one($node, "SELECT $size");
	look_again("a load with squeeze_undo $setting");
	$node->wait_for_catchup($standby);
	my $alive = one($standby, "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid");
	is($alive ? $in_standby->query('SELECT sum(n) FROM t') : 'cancelled', $alive || $setting eq 'off' ? 800 : 'cancelled',
		"a standby's snapshot with squeeze_undo $setting: right, or cancelled if on");
	$in_standby->quit if $alive;
	let_go(0);
	undo_floor_reached($node, "after a load with squeeze_undo $setting", 30);
}
note "undo: $size{off} bytes without, $size{on} with";
cmp_ok($size{off}, '>', 1_400_000, 'undo grows with the updates without');
# (A megabyte is there at any time.)
cmp_ok($size{on}, '<', $size{off} * 0.7, '... and does not with');

# ---- a crash in the middle

hold($node, 'REPEATABLE READ');
end_pgbench(background(3));
my $rows = one($node, $look);
my $open = psql_session($node);
$open->query("BEGIN; UPDATE t SET n = -1, v = 'open', k = 99");
$node->safe_psql('postgres', "CHECKPOINT");
$node->safe_psql('postgres', 'UPDATE cold SET n = n + 1 WHERE id < 500');
eval { $_->{session}->quit } foreach @held;
@held = ();
crash_and_restart($node);
eval { $open->quit };
is(one($node, 'SELECT sum(n) FROM t'), 800, 'after a crash: the sum is right');
check_clean($node, 'after a crash');
$node->safe_psql('postgres', 'INSERT INTO unl SELECT i, 0 FROM generate_series(1, 4) i');
hold($node, 'REPEATABLE READ');
end_pgbench(background(4));
look_again('a crash');
let_go(0);
check_clean($node, 'at the end');
undo_floor_reached($node, 'at the end', 30);
$node->wait_for_catchup($standby);
is(one($standby, q{SELECT k.* FROM inplace.check('t') k LIMIT 20}), '', 'standby, at the end: inplace.check has no finding');
check_log($node);
check_log($standby);
done_testing();
