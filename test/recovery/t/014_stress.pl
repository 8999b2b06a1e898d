# Many sessions at once, at every isolation level, with VACUUM and index builds
# in between: things that must hold at any moment, in whatever order the
# sessions run (the differential test has only schedules that can be played
# one step at a time).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $seconds = $ENV{TAP_SECONDS} // 20;
my $node = new_node('stress', conf => q{
default_table_access_method = 'inplace'
autovacuum_vacuum_threshold = 20
autovacuum_vacuum_scale_factor = 0.01
autovacuum_analyze_threshold = 20
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');
$node->safe_psql('postgres', q{
	-- money is moved, never made
	CREATE TABLE acc (id int PRIMARY KEY, bal int NOT NULL, cat int, note text) WITH (fillfactor = 90);
	CREATE INDEX acc_cat ON acc (cat);
	INSERT INTO acc SELECT g, 100, g % 10, repeat('n', g % 300) FROM generate_series(1, 400) g;
	-- no child without its parent
	CREATE TABLE par (id int PRIMARY KEY, n int, v int);
	CREATE INDEX par_v ON par (v);
	INSERT INTO par SELECT g, 0, 0 FROM generate_series(1, 50) g;
	CREATE TABLE chi (id bigserial PRIMARY KEY, p int REFERENCES par ON DELETE CASCADE, x text);
	CREATE INDEX chi_p ON chi (p);
	-- a counter and what it has counted
	CREATE TABLE cnt (k int PRIMARY KEY, n bigint);
	CREATE TABLE cntlog (k int);
	-- a queue whose jobs are done once
	CREATE TABLE q (id bigserial PRIMARY KEY, state int, payload text);
	CREATE INDEX q_state ON q (state) WHERE state = 0;
	CREATE TABLE done (id bigint);
	-- somebody of each group is on duty: what only SERIALIZABLE can promise
	CREATE TABLE duty (id int PRIMARY KEY, g int, v int, note text);
	CREATE INDEX duty_g ON duty (g);
	INSERT INTO duty SELECT i, i % 3, 1, '' FROM generate_series(1, 30) i;
	CREATE TABLE broken (what text);
});

my %script = (
	transfer => q{
\set a random(1, 400)
\set b random(1, 400)
\set d random(1, 5)
\set c random(0, 9)
BEGIN ISOLATION LEVEL READ COMMITTED;
UPDATE acc SET bal = bal - :d WHERE id = least(:a, :b);
SAVEPOINT s;
UPDATE acc SET bal = bal + 1000, note = repeat('g', :d * 200) WHERE id = greatest(:a, :b);
ROLLBACK TO s;
UPDATE acc SET bal = bal + :d, note = repeat('m', :c * 50), cat = CASE WHEN :c < 3 THEN :c ELSE cat END
 WHERE id = greatest(:a, :b);
COMMIT;
},
	reader => q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
DO $$
DECLARE
	sums text[];
BEGIN
	sums := sums || (SELECT sum(bal) || '/' || count(*) FROM acc);
	PERFORM pg_sleep(0.01);
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	sums := sums || (SELECT sum(bal) || '/' || count(*) FROM acc WHERE id BETWEEN 1 AND 400);
	sums := sums || (SELECT sum(bal) || '/' || count(*) FROM acc WHERE cat >= 0);
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_bitmapscan = on;
	sums := sums || (SELECT sum(bal) || '/' || count(*) FROM acc WHERE cat >= 0);
	IF sums <> '{40000/400,40000/400,40000/400,40000/400}' THEN
		INSERT INTO broken VALUES ('sums ' || sums::text);
	END IF;
	IF EXISTS (SELECT FROM chi WHERE NOT EXISTS (SELECT FROM par WHERE par.id = chi.p)) THEN
		INSERT INTO broken VALUES ('orphan');
	END IF;
END $$;
COMMIT;
},
	family => q{
\set p random(1, 50)
\set r random(1, 10)
\if :r = 1
DELETE FROM par WHERE id = :p;
\elif :r < 4
INSERT INTO par VALUES (:p, 0, :r) ON CONFLICT (id) DO UPDATE SET v = par.v + 1;
\elif :r < 6
UPDATE par SET v = v + 1 WHERE id = :p;
\elif :r < 7
UPDATE par SET n = n + 1 WHERE id = :p;
\else
INSERT INTO chi (p, x) SELECT id, repeat('x', 30) FROM (SELECT id FROM par WHERE id = :p FOR KEY SHARE) y;
\endif
},
	counter => q{
\set k random(1, 20)
\set r random(1, 20)
BEGIN;
INSERT INTO cnt VALUES (:k, 1) ON CONFLICT (k) DO UPDATE SET n = cnt.n + 1;
INSERT INTO cntlog VALUES (:k);
\if :r = 1
ROLLBACK;
\else
COMMIT;
\endif
},
	queue => q{
\set r random(1, 2)
\if :r = 1
INSERT INTO q (state, payload) SELECT 0, repeat('p', 100) FROM generate_series(1, 2);
\else
BEGIN;
WITH x AS (UPDATE q SET state = 1, payload = 'done' WHERE id IN
 (SELECT id FROM q WHERE state = 0 ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) RETURNING id)
INSERT INTO done SELECT id FROM x;
DELETE FROM q WHERE id IN (SELECT id FROM q WHERE state = 1 ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED);
COMMIT;
\endif
},
	duty => q{
\set a random(1, 30)
\set b random(1, 30)
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO broken SELECT 'nobody on duty' WHERE (SELECT sum(v) FROM duty WHERE g = :a % 3) < 1;
UPDATE duty SET v = 0, note = repeat('s', :b * 20) WHERE id = :a AND v = 1
 AND (SELECT sum(v) FROM duty WHERE g = :a % 3) > 1;
COMMIT;
UPDATE duty SET v = 1 WHERE id = :b AND v = 0 AND :a < 4;
},
	maintain => q{
\set r random(1, 10)
\if :r < 4
VACUUM acc, par, chi, cnt, cntlog, q, duty;
\elif :r < 6
VACUUM (FREEZE) acc, par, q;
\elif :r < 7
REINDEX TABLE CONCURRENTLY acc;
\elif :r < 8
REINDEX TABLE CONCURRENTLY par;
\elif :r < 9
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) chi, cnt, duty;
\else
DROP INDEX IF EXISTS acc_tmp;
CREATE INDEX CONCURRENTLY acc_tmp ON acc (bal);
\endif
\sleep 200 ms
});
($script{transfer_rr} = $script{transfer}) =~ s/READ COMMITTED/REPEATABLE READ/;

my $dir = PostgreSQL::Test::Utils::tempdir();
foreach my $name (keys %script)
{
	append_to_file("$dir/$name.sql", $script{$name});
}

# Two crashes too: what holds at any moment holds then.
foreach my $round (1 .. 3)
{
	my $part = int($seconds / 3) + 1;
	my $load = start_pgbench($node, '-c', '8', '-j', '2', '-T', $part, '--max-tries=200',
		map { ('-f', "$dir/$_->[0].sql\@$_->[1]") }
		  [ transfer => 4 ], [ transfer_rr => 3 ], [ family => 5 ], [ counter => 3 ], [ queue => 3 ], [ duty => 3 ]);
	my $readers = start_pgbench($node, '-c', '2', '-T', $part, '-f', "$dir/reader.sql");
	my $maintain = start_pgbench($node, '-c', '1', '-T', $part, '-f', "$dir/maintain.sql");

	if ($round < 3)
	{
		usleep($part * 700_000);
		kill9_all($node);
		end_pgbench($_) foreach $load, $readers, $maintain;
		$node->start;
	}
	else
	{
		my $out = end_pgbench($load);
		like($out, qr/number of transactions actually processed: \d{3,}/, 'there was load') or diag($out);
		foreach my $p ([ 'load', $out ], [ 'readers', end_pgbench($readers) ], [ 'maintenance', end_pgbench($maintain) ])
		{
			# The server's manual, on INSERT: ON CONFLICT may fail so while REINDEX CONCURRENTLY runs.
			my @errors = grep { /ERROR/ && !/deadlock detected/ && !/unique constraint "\w+_cc(new|old)\d*"/ }
			  split /\n/, $p->[1];
			is(join("\n", @errors), '', "$p->[0]: no errors");
		}
	}
	is(one($node, 'SELECT string_agg(DISTINCT what, E\'\n\') FROM broken'), '', "round $round: what readers saw held");
	is(one($node, 'SELECT sum(bal), count(*), count(DISTINCT id) FROM acc'), '40000|400|400', "round $round: money");
	is(one($node, 'SET enable_seqscan = off; SELECT sum(bal), count(*) FROM acc WHERE cat >= 0'), '40000|400',
		"round $round: money by the index");
	is(one($node, 'SELECT count(*) FROM chi LEFT JOIN par ON par.id = chi.p WHERE par.id IS NULL'), '0',
		"round $round: no orphans");
	is(one($node, q{SELECT count(*) FROM (SELECT k, count(*) AS c FROM cntlog GROUP BY k) l
		FULL JOIN cnt USING (k) WHERE cnt.n IS DISTINCT FROM l.c}), '0', "round $round: counters");
	is(one($node, q{SELECT count(*) - count(DISTINCT id) FROM done}), '0', "round $round: each job done once");
	is(one($node, q{SELECT min(s) > 0 FROM (SELECT sum(v) AS s FROM duty GROUP BY g) d}), 't',
		"round $round: somebody is on duty");
	check_clean($node, "round $round");
}
undo_floor_reached($node, 'at the end', 20);
$node->stop;
check_log($node);
done_testing();
