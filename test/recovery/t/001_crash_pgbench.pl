# SIGKILL of all of the server at random moments of a pgbench run.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $rounds = $ENV{TAP_ROUNDS} // 20;
my $node = new_node('crash', conf => q{
default_table_access_method = 'inplace'
autovacuum_vacuum_threshold = 20
autovacuum_vacuum_scale_factor = 0.01
max_wal_size = '1GB'
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');
system_or_bail('pgbench', '-i', '-q', '-s', '1', '-h', $node->host, '-p', $node->port, 'postgres');
$node->safe_psql('postgres', q{
	CREATE INDEX ON pgbench_history (delta);
	CREATE TABLE seen (k int, v text);
	CREATE INDEX ON seen (k);
	INSERT INTO seen SELECT i, 'x' FROM generate_series(1, 500) i;
});
is(one($node, q{SELECT string_agg(DISTINCT amname, ',') FROM pg_class c JOIN pg_am a ON a.oid = relam
	WHERE relkind = 'r' AND relname LIKE 'pgbench%'}), 'inplace', 'pgbench tables are inplace tables');

# TPC-B with rollbacks, savepoints, moves (v grows, k is indexed), deletes.
my $script = $node->basedir . '/extra.sql';
append_to_file($script, q{
\set k random(1, 500)
\set aid random(1, 100000)
\set d random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :d WHERE aid = :aid;
SAVEPOINT a;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
UPDATE seen SET v = repeat('y', :k * 3) WHERE k = :k;
ROLLBACK TO a;
UPDATE seen SET k = k + 1000, v = v || 'z' WHERE k = :k;
UPDATE seen SET k = k - 1000, v = left(v, 5) WHERE k = :k + 1000;
ROLLBACK;
BEGIN;
DELETE FROM seen WHERE k = :k;
INSERT INTO seen SELECT :k, repeat(chr(65 + :k % 26), :k);
COMMIT;
});

my $committed = 0;
foreach my $round (1 .. $rounds)
{
	my $pgbench = start_pgbench($node, '-c', '4', '-T', '60', '-f', "$script\@1", '-b', 'tpcb-like@4');
	my $until = 300_000 + int(rand(1_800_000));
	my $checkpoints = int(rand(8));
	foreach my $i (1 .. $checkpoints)
	{
		my $part = int(rand($until / 2));
		usleep($part);
		$until -= $part;
		$node->psql('postgres', 'CHECKPOINT');
	}
	usleep($until);
	kill9_all($node);
	end_pgbench($pgbench);

	# With the checks on, records always refer to the undo page; so in turns.
	$node->append_conf('postgresql.conf',
		"wal_consistency_checking = '" . ($round % 4 == 3 ? 'all' : '') . "'");
	$node->start;

	# Both right after recovery (rollbacks not restored yet) and later.
	my $sums = one($node, q{
		SELECT (SELECT sum(abalance) FROM pgbench_accounts) = d AND
			(SELECT sum(tbalance) FROM pgbench_tellers) = d AND
			(SELECT sum(bbalance) FROM pgbench_branches) = d,
			(SELECT count(*) FROM pgbench_accounts), (SELECT count(DISTINCT aid) FROM pgbench_accounts),
			(SELECT count(*) FROM pgbench_tellers), (SELECT count(*) FROM pgbench_branches),
			(SELECT count(*) FROM seen WHERE k > 1000)
		FROM (SELECT coalesce(sum(delta), 0) AS d FROM pgbench_history) h});
	is($sums, 't|100000|100000|10|1|0', "crash $round (seed $seed): sums and row counts");
	# (Two sessions may insert the same k: rows may double, never vanish.)
	is(one($node, 'SELECT count(DISTINCT k) FROM seen'), '500', "crash $round: keys of seen");
	my $n = one($node, 'SELECT count(*) FROM pgbench_history');
	cmp_ok($n, '>=', $committed, "crash $round: no history lost ($n rows)");
	$committed = $n;
	check_clean($node, "crash $round") or last;
}
cmp_ok($committed, '>', 100, 'there was load');
undo_floor_reached($node, 'at the end', 20);
is(one($node, q{VACUUM; SELECT (SELECT sum(abalance) FROM pgbench_accounts) =
	(SELECT sum(delta) FROM pgbench_history)}), 't', 'sums after VACUUM');
check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
