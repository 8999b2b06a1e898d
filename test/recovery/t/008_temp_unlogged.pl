# Unlogged tables are empty after a crash (not after a clean stop); temporary
# tables have undo of their own.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_node('unlogged', conf => "temp_buffers = 800kB\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE UNLOGGED TABLE u (id int PRIMARY KEY, n int, v text) USING inplace;
	CREATE INDEX ON u (n);
	CREATE TABLE p (id int PRIMARY KEY, n int, v text) USING inplace;
});
my $fill = q{
	INSERT INTO u SELECT i, i, repeat('u', i % 100) FROM generate_series(1, 5000) i;
	UPDATE u SET v = v || 'x' WHERE id % 2 = 0;
	UPDATE u SET n = n + 1 WHERE id % 3 = 0;
	DELETE FROM u WHERE id % 10 = 0;
};
foreach my $round (1 .. 3)
{
	is(one($node, "$fill SELECT count(*) FROM u"), '4500', "round $round: filled");
	$node->safe_psql('postgres', q{BEGIN; UPDATE u SET v = 'lost', n = 0; DELETE FROM u WHERE id < 100; ROLLBACK});
	is(one($node, q{SELECT count(*) FROM u WHERE v = 'lost' OR n = 0}), '0', "round $round: rollback");
	my $before = contents($node, 'u');
	check_clean($node, "round $round, before");
	if ($round == 1)
	{
		$node->restart;
		is(contents($node, 'u'), $before, 'all there after a clean stop');
		is(one($node, "UPDATE u SET v = v || 'y' WHERE id = 1; SELECT count(*) FROM u"), '4500', 'an update after a clean stop');
	}
	# Changes of both kinds in an open transaction.
	my $s = psql_session($node);
	$s->query(q{BEGIN; UPDATE u SET v = 'open'; INSERT INTO p SELECT i, i, 'open' FROM generate_series(1, 1000) i});
	$node->safe_psql('postgres', 'CHECKPOINT');
	if ($round == 2) { kill9_all($node) } else { $node->stop('immediate') }
	eval { $s->quit };
	$node->start;
	is(one($node, 'SELECT count(*) FROM u'), '0', "round $round: empty after a crash");
	is(one($node, 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE n > 0'), '0', "round $round: empty by index");
	is(one($node, 'SELECT count(*) FROM p'), '0', "round $round: the permanent table has no row of an open transaction");
	check_clean($node, "round $round, after the crash");
	is(one($node, q{SELECT sum(size_bytes) FILTER (WHERE kind = 'unlogged') <= 1024 * 1024 FROM inplace.undo}), 't', "round $round: unlogged undo is empty");
}

# SET LOGGED / UNLOGGED.
$node->safe_psql('postgres', "$fill ALTER TABLE u SET LOGGED; UPDATE u SET v = 'now logged' WHERE id = 1");
my $before = contents($node, 'u');
crash_and_restart($node);
is(contents($node, 'u'), $before, 'SET LOGGED: all there after a crash');
$node->safe_psql('postgres', "ALTER TABLE u SET UNLOGGED; UPDATE u SET v = 'not logged'");
crash_and_restart($node);
is(one($node, 'SELECT count(*) FROM u'), '0', 'SET UNLOGGED: empty after a crash');

# Temporary tables, bigger than temp_buffers.
my $s = psql_session($node);
my $q = sub {
	my ($sql, $want, $what) = @_;
	$s->{stderr} = '';
	my $got = $s->query($sql);
	is($got . $s->{stderr}, $want, $what);
};
$q->(q{CREATE TEMP TABLE tt (id int PRIMARY KEY, n int, v text) USING inplace;
	INSERT INTO tt SELECT i, i, repeat('t', 100) FROM generate_series(1, 30000) i}, '', 'temporary table');
foreach my $i (1 .. 3)
{
	$q->("BEGIN; UPDATE tt SET v = 'lost', n = n + 1; DELETE FROM tt WHERE id % 2 = 0; ROLLBACK", '', "rollback $i");
	$q->("SELECT count(*), sum(n), count(*) FILTER (WHERE v = 'lost') FROM tt", '30000|450015000|0', "contents after rollback $i");
	$q->("BEGIN; UPDATE tt SET n = n + 1; SAVEPOINT a; UPDATE tt SET n = n + 10; DELETE FROM tt WHERE id < 20000; ROLLBACK TO a; UPDATE tt SET n = n - 1; COMMIT", '', "savepoint $i");
	$q->("SELECT count(*), sum(n) FROM tt", '30000|450015000', "contents after savepoint $i");
}
$q->('BEGIN; DECLARE c CURSOR FOR SELECT n FROM tt ORDER BY id; FETCH 1 FROM c; UPDATE tt SET n = n + 5', '1', 'cursor before the update');
$q->('FETCH 2 FROM c', "2\n3", 'the cursor sees rows as they were');
$q->('ROLLBACK; SELECT sum(n) FROM tt', '450015000', 'rolled back');
$q->('VACUUM tt; SELECT count(*) FROM inplace.check(' . q{'tt')}, '0', 'inplace.check of a temporary table');
$q->(q{SELECT size_bytes > 0 FROM inplace.undo WHERE kind = 'temporary'}, 't', 'temporary undo has a size');
# A transaction with temporary tables only leaves nothing behind.
$s->quit;
undo_floor_reached($node, 'at the end', 10);
# The session cleans up after the client has gone.
ok(defined poll_value($node, q{SELECT count(*) = 0 FROM pg_class WHERE relname = 'tt'}, 60), 'temporary table is gone');
$node->stop;
check_log($node);
done_testing();
