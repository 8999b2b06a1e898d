# Columns under GIN, GiST and hash indexes changed at random, back and forth, with
# savepoints, aborts and prepared transactions, beside VACUUM, while servers are killed and
# standbys are asked: under one snapshot each index answers as a sequential scan does, as
# plain, index-only and bitmap scans, and by distance.
#
# What is the server's own, and so on heap, too, is left out:
# - An index-only scan of a GiST index returns rows that were deleted before its snapshot, if
#   VACUUM takes them out meanwhile.  So there are none of these beside VACUUM.
# - Replay of Gist/DELETE sets a flag that the deletion does not set.
# - Records of hash have images of a page that is not locked, if replay is checked: their checksum
#   may not fit.  So replay is not checked for either.
#
# TAP_SEED plays a run again (what sessions draw, not how they meet), TAP_SECONDS says how
# long each part is under load, TAP_ROUNDS how often servers are killed.

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
my $seconds = $ENV{TAP_SECONDS} // 3;
my $rounds = $ENV{TAP_ROUNDS} // 2;

# rows move never, often, or as usual
my $limit = (0, 3, 24)[ rand 3 ];
my $nrows = (300, 2000)[ rand 2 ];
note "former_keys_limit $limit, $nrows rows";

# What differs from a sequential scan; the caller's snapshot is that of a
# REPEATABLE READ transaction.
my $setup = qq{
CREATE EXTENSION inplace;
CREATE TABLE t (id int PRIMARY KEY, a int[], doc jsonb, ts tsvector, h int, n numeric, p point, b box, r int4range,
	j int, pad text) USING inplace WITH (fillfactor = 80);
INSERT INTO t SELECT i, ARRAY[i % 20, 20 + i % 7], jsonb_build_object('a', i % 9, 'b', i % 4),
	to_tsvector('simple', 'w' || i % 12 || ' v' || i % 5), i % 25, i % 6, point(i % 20, i % 30),
	box(point(i % 20, i % 30), point(i % 20 + 2, i % 30 + 3)), int4range(i % 40, i % 40 + 1 + i % 7), i % 11,
	repeat('p', i % 50)
	FROM generate_series(1, $nrows) i;
CREATE INDEX t_k ON t (h);
CREATE INDEX t_a ON t USING gin (a);
CREATE INDEX t_aslow ON t USING gin (a, ts) WITH (fastupdate = off);
CREATE INDEX t_doc ON t USING gin (doc) WHERE j > 3;
CREATE INDEX t_path ON t USING gin (doc jsonb_path_ops);
CREATE INDEX t_h ON t USING hash (h);
CREATE INDEX t_n ON t USING hash (n);
CREATE INDEX t_hpart ON t USING hash (h) WHERE j < 8;
CREATE INDEX t_p ON t USING gist (p);
CREATE INDEX t_pj ON t USING gist (p) INCLUDE (j) WHERE j > 2;
CREATE INDEX t_br ON t USING gist (b, r);
CREATE INDEX t_r ON t USING gist (r);
VACUUM ANALYZE t;
} . q{
CREATE FUNCTION differences(index_only boolean) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	plan text;
	expected text[];
	got text[];
	x int := random() * 20;
	y int := random() * 30;
BEGIN
	FOREACH q IN ARRAY ARRAY[
		format('SELECT id, a FROM t WHERE a @> ARRAY[%s]', x),
		format('SELECT id, a FROM t WHERE a && ARRAY[%s, %s]', x, 20 + y % 7),
		format('SELECT id FROM t WHERE a @> ARRAY[%s, %s]', x, 20 + y % 7),
		format('SELECT id FROM t WHERE a = ARRAY[%s, %s]', x, 20 + y % 7),
		format('SELECT id FROM t WHERE a <@ ARRAY[%s, 1, 2, 20, 21, 22, 23]', x),
		format('SELECT id FROM t WHERE a @> ARRAY[%s] AND ts @@ ''v%s''::tsquery', x, y % 5),
		format('SELECT id, ts FROM t WHERE ts @@ ''w%s & !v%s''::tsquery', y % 12, x % 5),
		format('SELECT id, doc FROM t WHERE j > 3 AND doc @> ''{"a": %s}''', x % 9),
		format('SELECT id, doc FROM t WHERE j > 3 AND doc ? ''c%s''', x % 3),
		format('SELECT id, doc FROM t WHERE doc @> ''{"a": %s, "b": %s}''', x % 9, y % 4),
		format('SELECT id FROM t WHERE doc @@ ''$.b == %s''', y % 4),
		format('SELECT id, h FROM t WHERE h = %s', x),
		format('SELECT id, n FROM t WHERE n = %s', x % 6),
		format('SELECT id, h, j FROM t WHERE h = %s AND j < 8', x),
		format('SELECT id FROM t WHERE (h = %s AND a @> ARRAY[%s]) OR n = %s', x, y % 20, x % 6),
		format('SELECT id, p FROM t WHERE p <@ box(point(%s, %s), point(%s, %s))', x, y, x + 4, y + 4),
		format('SELECT p FROM t WHERE p <@ box(point(%s, %s), point(%s, %s))', x, y, x + 9, y + 4),
		format('SELECT p, j FROM t WHERE j > 2 AND p <@ box(point(%s, %s), point(%s, %s))', x, y, x + 5, y + 5),
		format('SELECT id FROM t WHERE p ~= point(%s, %s)', x, y),
		format('SELECT id, b FROM t WHERE b && box(point(%s, %s), point(%s, %s))', x, y, x + 2, y + 2),
		format('SELECT id, b, r FROM t WHERE b && box(point(%s, %s), point(%s, %s)) AND r @> %s', x, y, x + 5, y + 5, y),
		format('SELECT r FROM t WHERE r && int4range(%s, %s)', y, y + 2),
		format('SELECT id, r FROM t WHERE r -|- int4range(%s, %s)', y, y + 2),
		format('SELECT * FROM (SELECT p <-> point(%s, %s) AS d FROM t ORDER BY p <-> point(%1$s, %2$s) LIMIT 80) x', x, y),
		format('SELECT * FROM (SELECT p <-> point(%s, %s) AS d FROM t WHERE j > 2 ORDER BY p <-> point(%1$s, %2$s)) x', x, y)]
	LOOP
		PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
			set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
		-- by distance the order is part of the answer
		EXECUTE format('SELECT array_agg(x::text ORDER BY %s) FROM (%s) x',
			CASE WHEN q LIKE '%<->%' THEN 'd' ELSE 'x::text' END, q) INTO expected;
		PERFORM set_config('enable_seqscan', 'off', true);
		FOREACH plan IN ARRAY ARRAY['indexscan', 'indexonlyscan', 'bitmapscan']
		LOOP
			CONTINUE WHEN q LIKE '%<->%' AND plan = 'bitmapscan' OR plan = 'indexonlyscan' AND NOT index_only;
			PERFORM set_config('enable_indexscan', (plan <> 'bitmapscan')::text, true),
				set_config('enable_indexonlyscan', (plan = 'indexonlyscan')::text, true),
				set_config('enable_bitmapscan', (plan = 'bitmapscan' OR plan = 'indexscan' AND random() < 0.1)::text, true),
				set_config('enable_sort', (q NOT LIKE '%<->%')::text, true);
			EXECUTE format('SELECT array_agg(x::text %s) FROM (%s) x',
				CASE WHEN q LIKE '%<->%' THEN '' ELSE 'ORDER BY x::text' END, q) INTO got;
			IF got IS DISTINCT FROM expected THEN
				RETURN NEXT format('%s: %s: %s rows instead of %s', plan, q, cardinality(got), cardinality(expected));
			END IF;
		END LOOP;
	END LOOP;
END $$;
};

# Keys go away and come back; some are longer than their pages have room for.
my $load = qq{
\\set rows $nrows
} . q{
\set id random(1, :rows)
\set x random(0, 19)
\set y random(0, 29)
\set z random(0, 10)
\set w random(1, 100)
\set g random(1, 2000000000)
BEGIN;
UPDATE t SET a = ARRAY[:x, 20 + :y % 7] WHERE id = :id;
\if :w < 25
SAVEPOINT s;
UPDATE t SET a = a || :y, p = point(:y, :x), h = :y % 25 WHERE id BETWEEN :id AND :id + 5;
UPDATE t SET doc = doc || jsonb_build_object('a', :y % 9), r = int4range(:x, :x + 3) WHERE id BETWEEN :id AND :id + 5;
\if :w < 12
ROLLBACK TO s;
\endif
\endif
\if :w > 40 and :w < 70
UPDATE t SET p = point(:x, :y), b = box(point(:x, :y), point(:x + 2, :y + 1)) WHERE id = :id + 1;
UPDATE t SET h = :x, n = round((:x % 6)::numeric, :z % 3), j = :z WHERE id = :id + 2;
\endif
\if :w > 60
UPDATE t SET ts = to_tsvector('simple', 'w' || :y % 12 || ' v' || :x % 5), doc = jsonb_build_object('a', :x % 9, 'c' || :y % 3, 1) WHERE id = :id + 3;
UPDATE t SET r = int4range(:y, :y + 1 + :z), j = :z WHERE id BETWEEN :id AND :id + 2;
\endif
\if :w < 10
UPDATE t SET a = '{1,2}', h = 1, p = '(1,1)', r = '[1,2)', doc = '{"a": 1}' WHERE id = :id;
UPDATE t SET a = '{3}', h = 2, p = '(2,2)', r = '[3,5)', doc = '{"b": 2}' WHERE id = :id;
UPDATE t SET a = '{1,2}', h = 1, p = '(1,1)', r = '[1,2)', doc = '{"a": 1.0}' WHERE id = :id;
\endif
\if :w > 92
UPDATE t SET a = ARRAY(SELECT generate_series(:x, :x + 150)), pad = repeat('q', 3 * :w) WHERE id = :id;
UPDATE t SET a = NULL, h = NULL, p = NULL, r = NULL WHERE id = :id + 4;
\endif
\if :w > 86 and :w < 90
DELETE FROM t WHERE id = :id;
INSERT INTO t VALUES (:id, ARRAY[:x], '{"a": 2}', 'w1', :x, 2, point(:x, :y), box(point(:x, :y), point(:y, :x)), int4range(:x, :x + 2), :z, '') ON CONFLICT DO NOTHING;
\endif
\if :w < 20
ROLLBACK;
\elif :w > 94
PREPARE TRANSACTION 'g:g';
\else
COMMIT;
\endif
\if :w > 97
COMMIT PREPARED 'g:g';
\elif :w > 94
ROLLBACK PREPARED 'g:g';
\endif
\if :w = 50
VACUUM t;
\elif :w = 51
VACUUM (INDEX_CLEANUP on) t;
\endif
};

my $compare = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM differences(true); COMMIT';
my $compare_live = $compare =~ s/true/false/r;

sub unanimous
{
	my ($node, $what, $times) = @_;
	return answers_agree($node, $what =~ /under load/ ? $compare_live : $compare, $what, $times);
}

my $changes = 0;
my @options = ('--max-tries=100', '--progress=1');

# each second says how many transactions there were in it
sub count_changes
{
	my ($l) = @_;
	$changes += $1 while ${ $l->{err} } =~ /progress: \S+ s, (\S+) tps/g;
	return;
}

# a client whose statement has failed takes no part any more
sub all_take_part
{
	my ($l, $what) = @_;
	$l->{run}->pump_nb;
	return unlike(${ $l->{err} }, qr/abort|ERROR|FATAL/, "$what: all clients take part");
}

sub end_changes
{
	my ($l, $what) = @_;
	all_take_part($l, $what);
	end_load($l, $what, \&end_prepared);
	return count_changes($l);
}

# what a crash, or a client that was ended, has left prepared (a client's last statement may end it first)
sub end_prepared
{
	my ($node) = @_;
	foreach my $gid (split /\n/, one($node, 'SELECT gid FROM pg_prepared_xacts'))
	{
		$node->psql('postgres', (rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$gid'");
	}
	return;
}

my $checking = pg_major() == 15 ? '' : 'inplace, heap, heap2, gin, btree';
my $primary = new_node('others', allows_streaming => 1, conf => qq{
wal_consistency_checking = '$checking'
autovacuum = off
deadlock_timeout = '20ms'
checkpoint_timeout = '30s'
wal_receiver_status_interval = '1s'
max_standby_streaming_delay = '500ms'
inplace.former_keys_limit = $limit
});
$primary->start;
$primary->safe_psql('postgres', $setup);
unanimous($primary, 'at first');

foreach my $round (1 .. $rounds)
{
	my $l = begin_load($primary, $load, @options);
	my $end = time() + $seconds;
	my $found = '';
	while (time() < $end)
	{
		$found .= one($primary, $compare_live);
		$found .= one($primary, q{SELECT * FROM inplace.check('t') LIMIT 5}) if rand() < 0.4;
		usleep(50_000);
	}
	is($found, '', "round $round: under load");
	$primary->safe_psql('postgres', 'CHECKPOINT') if rand() < 0.5;
	usleep(rand 400_000);
	all_take_part($l, "round $round");
	rand() < 0.5 ? kill9_all($primary) : $primary->stop('immediate');
	eval { $l->{run}->finish };
	count_changes($l);
	$primary->start;
	unanimous($primary, "round $round: after a crash");
	end_prepared($primary);
	unanimous($primary, "round $round: nothing prepared any more", 2);
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
	unanimous($primary, "round $round: after VACUUM", 2);
	check_clean($primary, "round $round: after VACUUM");
}

# a standby that holds up the primary, and one that is cancelled, and then waits
my %standby = feedback_standbys($primary, 'others');
my $l = begin_load($primary, $load, @options);
compare_on_standbys(\%standby, $compare_live, $seconds, 'under load');
end_changes($l, 'standbys');
end_prepared($primary);

$primary->wait_for_catchup($standby{$_}) foreach ('on', 'off');
my $rows = contents($primary, 't');
is(contents($standby{$_}, 't'), $rows, "the standby with feedback $_ has the same rows") foreach ('on', 'off');
unanimous($standby{$_}, "standby with feedback $_") foreach ('on', 'off');
check_clean($standby{$_}, "standby with feedback $_") foreach ('on', 'off');

# promoted in the middle of the load
$l = begin_load($primary, $load, @options);
usleep(1_000_000);
$standby{off}->promote;
end_changes($l, 'promotion');
unanimous($standby{off}, 'promoted');
end_prepared($standby{off});
$l = begin_load($standby{off}, $load, @options);
usleep(1_000_000);
unanimous($standby{off}, 'promoted, under load');
end_changes($l, 'promoted');
end_prepared($standby{off});
check_clean($standby{off}, 'promoted');
$standby{off}->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
unanimous($standby{off}, 'promoted, after VACUUM', 2);
check_log($_) foreach ($primary, $standby{on}, $standby{off});
note "$changes transactions";
$_->stop('immediate') foreach ($standby{on}, $standby{off}, $primary);
done_testing();
