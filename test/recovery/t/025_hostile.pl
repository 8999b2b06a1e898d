# Keys of inplace_btree indexes changed at random while servers are killed, and
# while standbys are asked: under one snapshot every index answers as a sequential
# scan does.  Once with each record checked against the page, once as usual,
# when recovery takes page images instead.

use strict;
use warnings;

# a session that the standby ends must not end the test
$SIG{PIPE} = 'IGNORE';
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep time);

my $seed = seed();
my $seconds = $ENV{TAP_SECONDS} // 4;

# What differs from a sequential scan; the caller's snapshot is that of a
# REPEATABLE READ transaction.
my $setup = q{
CREATE EXTENSION inplace;
CREATE TABLE t (id int PRIMARY KEY, k int, s text, u int, n numeric, j int, pad text) USING inplace WITH (fillfactor = 90);
CREATE INDEX t_k ON t USING inplace_btree (k);
CREATE INDEX t_sk ON t USING inplace_btree (s DESC NULLS LAST, k) INCLUDE (j);
CREATE UNIQUE INDEX t_u ON t USING inplace_btree (u);
CREATE INDEX t_n ON t USING inplace_btree (n);
CREATE INDEX t_part ON t USING inplace_btree (k) WHERE j > 5;
CREATE INDEX t_expr ON t USING inplace_btree ((k % 7));
CREATE UNIQUE INDEX t_upart ON t USING inplace_btree (u) WHERE j > 5;
CREATE UNIQUE INDEX t_nu ON t USING inplace_btree ((n * 1.0), u);
CREATE INDEX t_payload ON t USING inplace_btree (upper(s)) INCLUDE (k) WHERE j < 8;
INSERT INTO t SELECT i, i % 40, 's' || i % 10, i, i % 6, i % 11, repeat('p', i % 50) FROM generate_series(1, 2000) i;
VACUUM ANALYZE t;
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	plan text;
	expected text[];
	got text[];
	lo int := random() * 40;
	id int := random() * 2000;
BEGIN
	FOREACH q IN ARRAY ARRAY[
		format('SELECT id, k, s, u FROM t WHERE k BETWEEN %s AND %s', lo, lo + 5),
		format('SELECT k FROM t WHERE k BETWEEN %s AND %s', lo, lo + 5),
		format('SELECT id FROM t WHERE k IN (%s, 1, 2)', lo),
		format('SELECT s, k, j FROM t WHERE s = ''s%s'' AND k > %s', lo % 10, lo),
		format('SELECT s, k FROM t WHERE s > ''s%s''', lo % 10),
		format('SELECT u FROM t WHERE u BETWEEN %s AND %s', id, id + 100),
		format('SELECT id, n FROM t WHERE n = %s', lo % 6),
		format('SELECT k FROM t WHERE j > 5 AND k < %s', lo),
		format('SELECT id FROM t WHERE k %% 7 = %s', lo % 7),
		format('SELECT u FROM t WHERE j > 5 AND u BETWEEN %s AND %s', id, id + 200),
		format('SELECT id, n FROM t WHERE n * 1.0 = %s AND u > %s', lo % 6, id),
		format('SELECT id, s, k FROM t WHERE upper(s) = ''S%s'' AND j < 8', lo % 10),
		format('SELECT id FROM t WHERE (k = %s AND s = ''s1'') OR u = %s', lo, id),
		format('(SELECT id, s, k FROM t WHERE s < ''s%s'' ORDER BY s, k DESC OFFSET 0)', lo % 10),
		format('(SELECT id, k FROM t WHERE k IN (%s, %s, 3, 5) ORDER BY k DESC OFFSET 0)', lo, lo + 1)]
	LOOP
		PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
			set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
		EXECUTE format('SELECT array_agg(x::text ORDER BY x::text) FROM (%s) x', q) INTO expected;
		PERFORM set_config('enable_seqscan', 'off', true);
		FOREACH plan IN ARRAY ARRAY['indexscan', 'indexonlyscan', 'bitmapscan']
		LOOP
			PERFORM set_config('enable_indexscan', (plan <> 'bitmapscan')::text, true),
				set_config('enable_indexonlyscan', (plan = 'indexonlyscan')::text, true),
				set_config('enable_bitmapscan', (plan = 'bitmapscan')::text, true);
			EXECUTE format('SELECT array_agg(x::text ORDER BY x::text) FROM (%s) x', q) INTO got;
			IF got IS DISTINCT FROM expected THEN
				RETURN NEXT format('%s: %s: %s rows instead of %s', plan, q, cardinality(got), cardinality(expected));
			END IF;
		END LOOP;
	END LOOP;
END $$;
};

my $load = q{
\set a random(1, 2000)
\set b random(0, 39)
\set c random(0, 10)
\set w random(1, 100)
BEGIN;
UPDATE t SET k = :b WHERE id = :a;
\if :w < 30
SAVEPOINT s;
UPDATE t SET k = k + 1, s = 's' || :c WHERE id BETWEEN :a AND :a + 5;
ROLLBACK TO s;
\endif
UPDATE t SET j = :c WHERE id = :a + 1;
\if :w < 10
UPDATE t SET k = 1 WHERE id = :a; UPDATE t SET k = 2 WHERE id = :a; UPDATE t SET k = 1 WHERE id = :a;
\endif
\if :w > 70
UPDATE t SET n = round((:c % 6)::numeric, :w % 3), pad = repeat('q', :w) WHERE id = :a + 2;
\endif
\if :w > 90
DO $$ BEGIN DELETE FROM t WHERE id = :a; INSERT INTO t VALUES (:a, :b, 's' || :c, 10000 + :a, 1.0, :c, ''); EXCEPTION WHEN unique_violation THEN NULL; END $$;
\endif
\if :w < 20
ROLLBACK;
\else
COMMIT;
\endif
\if :w = 50
VACUUM t;
\endif
};

my $compare = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM differences(); COMMIT';

sub unanimous
{
	my ($node, $what) = @_;
	return answers_agree($node, $compare, $what);
}

foreach my $consistency ('all', '')
{
	my $mode = $consistency eq '' ? 'plain' : 'checked';
	my $primary = new_node("hostile_$mode", allows_streaming => 1, conf => qq{
wal_consistency_checking = '$consistency'
deadlock_timeout = '20ms'
checkpoint_timeout = '30s'
wal_receiver_status_interval = '1s'
max_standby_streaming_delay = '500ms'
});
	$primary->start;
	$primary->safe_psql('postgres', $setup);
	unanimous($primary, "$mode, at first");

	# killed in the middle, twice
	foreach my $round (1, 2)
	{
		my $l = begin_load($primary, $load, '--max-tries=10');
		my $end = time() + $seconds;
		my $found = '';
		while (time() < $end)
		{
			$found .= one($primary, $compare);
			usleep(100_000);
		}
		is($found, '', "$mode, round $round: under load");
		$primary->safe_psql('postgres', 'CHECKPOINT') if $round == 2;
		usleep(300_000);
		load_is_on($l, "$mode, round $round");
		kill9_all($primary);
		eval { $l->{run}->finish };
		$primary->start;
		unanimous($primary, "$mode, round $round: after a crash");
		check_clean($primary, "$mode, round $round: after a crash");
		is(one($primary, 'SET enable_indexonlyscan = off; SET enable_indexscan = off; SET enable_bitmapscan = off; '
				. 'SELECT count(*) FROM (SELECT u FROM t GROUP BY u HAVING count(*) > 1) x'),
			'0', "$mode, round $round: no duplicate");
	}

	# standbys: one holds up the primary, one is cancelled, and then waits
	my %standby = feedback_standbys($primary, "hostile_$mode");
	my $l = begin_load($primary, $load, '--max-tries=10');
	compare_on_standbys(\%standby, $compare, $seconds, $mode);
	end_load($l, "$mode, standbys");

	$primary->wait_for_catchup($standby{$_}) foreach ('on', 'off');
	my $rows = contents($primary, 't');
	is(contents($standby{$_}, 't'), $rows, "$mode: the standby with feedback $_ has the same rows") foreach ('on', 'off');
	unanimous($standby{$_}, "$mode: standby with feedback $_") foreach ('on', 'off');

	# promoted in the middle of the load
	$l = begin_load($primary, $load, '--max-tries=10');
	usleep(1_000_000);
	$standby{off}->promote;
	end_load($l, "$mode, promotion");
	unanimous($standby{off}, "$mode: promoted");
	my $l2 = begin_load($standby{off}, $load, '--max-tries=10');
	usleep(1_000_000);
	unanimous($standby{off}, "$mode: promoted, under load");
	end_load($l2, "$mode, promoted");
	check_clean($standby{off}, "$mode: promoted");
	check_log($_) foreach ($primary, $standby{on}, $standby{off});
	$_->stop('immediate') foreach ($standby{on}, $standby{off}, $primary);
}
done_testing();
