# Undo in the middle is given back while statements over whole tables update the
# same rows again and again under held snapshots: a chain is walked once for
# all extents that it may lead into.  What was kept is right for every snapshot,
# with rollbacks, tables that are truncated, dropped and locked
# meanwhile, and after a crash; and undo does not go on growing.
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
my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
inplace.undo_worker_delay = 100
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL, v text);
	INSERT INTO a SELECT i, 0, 'a' FROM generate_series(1, 1000) i;
	CREATE TABLE b (id int PRIMARY KEY, n int NOT NULL, k int);
	CREATE INDEX ON b USING inplace_btree (k);
	INSERT INTO b SELECT i, 0, i FROM generate_series(1, 1000) i;
	CREATE TABLE gone (id int, n int);
	INSERT INTO gone SELECT i, 0 FROM generate_series(1, 250) i;});

my $up = 'n + CASE WHEN id % 2 = 0 THEN 1 ELSE -1 END';
my $large = pgbench_script($node, 'large', qq{
\\set e random(1, 8)
UPDATE a SET n = $up, v = repeat(chr(97 + :e), :e);
BEGIN;
UPDATE b SET n = $up;
\\if :e = 1
UPDATE b SET n = n + 5, k = k + 1 WHERE id <= 150;
ROLLBACK;
\\elif :e = 2
SAVEPOINT s;
UPDATE b SET n = n + 5;
ROLLBACK TO s;
COMMIT;
\\else
COMMIT;
\\endif
});
my $part = pgbench_script($node, 'part', qq{
\\set f 2 * random(1, 450)
UPDATE a SET n = $up WHERE id > :f AND id <= :f + 100;
UPDATE gone SET n = n + 1;
});
my $ddl = pgbench_script($node, 'ddl', q{
\set e random(1, 6)
BEGIN;
\if :e = 1 and :drops = 1
TRUNCATE gone;
INSERT INTO gone SELECT i, 0 FROM generate_series(1, 250) i;
\elif :e = 2 and :drops = 1
DROP TABLE gone;
CREATE TABLE gone (id int, n int);
INSERT INTO gone SELECT i, 0 FROM generate_series(1, 250) i;
\elif :e = 3
DELETE FROM gone WHERE id % 3 = 0;
INSERT INTO gone SELECT i, 0 FROM generate_series(1, 250, 3) i;
\elif :e = 4
LOCK TABLE a IN SHARE MODE;
\else
LOCK TABLE b IN EXCLUSIVE MODE;
\endif
\sleep 30 ms
COMMIT;
\sleep 200 ms
});
sub background
{
	my ($transactions, $drops) = @_;
	my @args = ($node, '-D', "drops=$drops", '-c', 3, '-j', 3, '-t', $transactions, '--max-tries=1000',
		'-f', "$large\@4", '-f', "$part\@4", '-f', "$ddl\@1");
	# those with drops are before a crash, and after it
	return $drops ? start_pgbench(@args) : unchecked { start_pgbench(@args) };
}

my $look = q{SELECT (SELECT md5(string_agg(a::text, '|' ORDER BY id)) FROM a), (SELECT md5(string_agg(b::text, '|' ORDER BY id)) FROM b)};
my $by_index = qq{SET enable_seqscan = off; SET enable_bitmapscan = off; $look; RESET ALL};
my @held;
sub hold
{
	my $s = psql_session($node);
	$s->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
	push @held, [ $s, $s->query($look) ];
	isnt($held[-1]->[1], '', 'a snapshot has looked');
}
sub look_again
{
	my ($after) = @_;
	foreach my $n (0 .. $#held)
	{
		is($held[$n]->[0]->query($_), $held[$n]->[1], "snapshot $n sees the same after $after (seed $seed)")
		  foreach $look, $by_index;
	}
	is(one($node, 'SELECT (SELECT sum(n) FROM a) || ' . q{' '} . ' || (SELECT sum(n) FROM b)'), '0 0',
		"others see all of every statement after $after (seed $seed)");
}
sub let_go_of_all
{
	$_->[0]->quit foreach @held;
	@held = ();
}
sub check_tables
{
	my ($name) = @_;
	foreach my $t ('a', 'b', 'gone')
	{
		is(one($node, "SELECT k.* FROM inplace.check('$t') k LIMIT 20"), '', "$name: inplace.check('$t') has no finding");
	}
}

hold();
foreach my $n (1 .. 4)
{
	my $bench = background(60, 0);
	sleep 1;
	hold() if $n == 2;
	look_again("a second of round $n");
	my $out = end_pgbench($bench);
	unlike($out, qr/aborted/, "round $n: pgbench has had no error") or diag($out);
	look_again("round $n");
	check_tables("round $n");
}

# what is needed is, for each row, some 80 versions at most and the held ones, of
# some 600 that each has had; what has records of a table that is gone is kept, so
# that comes later.  (It came to 16 MB; it is the more the busier the machine.)
my $used = q{SELECT used_bytes FROM inplace.undo WHERE kind = 'logged'};
my $limit = 20 * 1024 * 1024;
poll_value($node, "SELECT used_bytes < $limit FROM inplace.undo WHERE kind = 'logged'", 60);
my $bytes = one($node, $used);
note "$bytes bytes are kept";
cmp_ok($bytes, '<', $limit, 'undo is given back while snapshots are held');
look_again('giving back');

# many extents that have to be kept, with long chains, and others behind them: each
# round has to look at some of the latter
let_go_of_all();
$node->safe_psql('postgres', q{
	CREATE TABLE x (id int PRIMARY KEY, n int);
	INSERT INTO x SELECT i, 0 FROM generate_series(1, 150) i;
	CREATE TABLE y (id int PRIMARY KEY, n int);
	INSERT INTO y SELECT i, 0 FROM generate_series(1, 300) i;});
hold();
my $unknown = psql_session($node);
$unknown->query_safe($_) foreach ('SET track_activities = off', 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT sum(n), pg_current_xact_id() FROM x');
unchecked { end_pgbench(start_pgbench($node, '-c', 1, '-t', 1500, '-f', pgbench_script($node, 'x', 'UPDATE x SET n = n + 1'))) };
$unknown->query('COMMIT');
$unknown->quit;
my $kept = one($node, $used);
cmp_ok($kept, '>', 5_000_000, 'a transaction with an xid that is not known to be idle has kept all versions');
unchecked { end_pgbench(start_pgbench($node, '-c', 1, '-t', 600, '-f', pgbench_script($node, 'y', 'UPDATE y SET n = n + 1'))) };
$limit = $kept + 4_000_000;
poll_value($node, "SELECT used_bytes < $limit FROM inplace.undo WHERE kind = 'logged'", 60);
cmp_ok(one($node, $used), '<', $limit, 'others are given back beside those that are kept');
look_again('long chains');
let_go_of_all();
hold();

end_pgbench(background(20, 1));
my $rows = one($node, $look);
$node->safe_psql('postgres', 'CHECKPOINT');
my $open = psql_session($node);
$open->query('BEGIN; UPDATE a SET n = 7; UPDATE b SET n = 7, k = -k');
$node->safe_psql('postgres', 'UPDATE gone SET n = n + 1');
eval { $_->[0]->quit } foreach @held;
@held = ();
crash_and_restart($node);
eval { $open->quit };
is(one($node, $look), $rows, 'after a crash: the same rows');
check_tables('after a crash');
hold();
end_pgbench(background(20, 1));
look_again('a crash');
$held[0]->[0]->quit;
check_tables('at the end');
undo_floor_reached($node, 'at the end', 30);
check_log($node);
done_testing();
