# Hundreds of writers at a time, and the progress of a long rollback while the
# table is in use.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('many', conf => q{
max_connections = 330
inplace.undo_worker_delay = 50
wal_consistency_checking = ''
});
$node->start;
$node->safe_psql('postgres', $_) foreach ('CREATE EXTENSION inplace',
	'CREATE TABLE acc (id int PRIMARY KEY, v bigint, n int) USING inplace',
	'INSERT INTO acc SELECT g, 1000, 0 FROM generate_series(1, 2000) g',
	'CREATE TABLE his (id int, delta int) USING inplace',
	'CREATE TABLE hot (v int) USING inplace', 'INSERT INTO hot VALUES (0)');

# 300 sessions, each moving values between rows; some lock, delete and insert,
# and some give up.  All are in transactions at the same time.
my $script = $node->basedir . '/writers.sql';
append_to_file($script, q{
\set a random(1, 1000)
\set b random(1001, 2000)
\set d random(1, 100)
\set what random(1, 10)
BEGIN;
UPDATE acc SET v = v - :d, n = n + 1 WHERE id = :a;
UPDATE acc SET v = v + :d, n = n + 1 WHERE id = :b;
INSERT INTO his VALUES (:a, -:d), (:b, :d);
\if :what = 1
ROLLBACK;
\elif :what = 2
SAVEPOINT s;
DELETE FROM his;
ROLLBACK TO s;
COMMIT;
\else
COMMIT;
\endif
});
my ($clients, $each) = (300, 5);
$node->command_ok([ 'pgbench', '-n', '-c', $clients, '-j', 4, '-t', $each, '-f', $script, '-d', $node->connstr('postgres') ],
	"$clients writers, $each transactions each");
is(one($node, 'SELECT sum(v) FROM acc'), 2000 * 1000, 'no value is lost');
is(one($node, q{SELECT count(*) FROM acc a LEFT JOIN (SELECT id, sum(delta) AS d, count(*) AS n FROM his GROUP BY id) h USING (id)
	WHERE a.v <> 1000 + coalesce(d, 0) OR a.n <> coalesce(h.n, 0)}), '0', 'each row is what its history says');
cmp_ok(one($node, 'SELECT count(*) FROM his'), '>', $clients * $each, 'most have committed');

# All of them want the same row.
my $same = $node->basedir . '/same.sql';
append_to_file($same, 'UPDATE hot SET v = v + 1;');
$node->command_ok([ 'pgbench', '-n', '-c', $clients, '-j', 4, '-t', 2, '-f', $same, '-d', $node->connstr('postgres') ],
	"$clients writers of one row");
is(one($node, 'SELECT v FROM hot'), 2 * $clients, 'no update is lost');
is(one($node, q{SELECT pg_relation_size('hot')}), '8192', 'in one page');

# All of them want the same row, each with a value for the TOAST table.
$node->safe_psql('postgres', $_) foreach ('CREATE TABLE hot_big (id int PRIMARY KEY, v text) USING inplace',
	'ALTER TABLE hot_big ALTER v SET STORAGE EXTERNAL', q{INSERT INTO hot_big VALUES (1, repeat('0', 3000))});
my $value = $node->basedir . '/value.sql';
append_to_file($value, '\set a random(1000, 9999)' . "\nUPDATE hot_big SET v = repeat(:a::text, 900);\n");
$node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-t', 500, '-f', $value, '-d', $node->connstr('postgres') ],
	'writers of one large value');
is(one($node, 'SELECT length(v), v = repeat(left(v, 4), 900) FROM hot_big'), '3600|t', 'it is one of them');
is(one($node, q{SELECT count(DISTINCT chunk_id) FROM } . one($node, q{SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'hot_big'::regclass})),
	1, 'values that were written in vain are gone');
undo_floor_reached($node, 'many writers', 120);

# A rollback of many changes, on a table that is used at once.
my $rows = 300000;
$node->safe_psql('postgres', $_) foreach ('CREATE TABLE big (id int PRIMARY KEY, v int) USING inplace',
	"INSERT INTO big SELECT g, 0 FROM generate_series(1, $rows) g", 'VACUUM big');
my $base = one($node, q{SELECT rows_restored FROM inplace.undo WHERE kind = 'logged'});
my $watcher = psql_session($node);
$watcher->query_safe(q{CREATE TEMP TABLE seen (extents bigint, restored bigint)});
# It looks from before the rollback on, until there is no more to restore.
$watcher->query_until(qr/looks/, qq{\\echo looks
	DO \$\$ DECLARE
		left_over bigint;
		begun bool := false;
	BEGIN
		FOR i IN 1 .. 100000 LOOP
			INSERT INTO seen SELECT extents_to_restore, rows_restored - $base FROM inplace.undo WHERE kind = 'logged'
				RETURNING extents INTO left_over;
			begun := begun OR left_over > 0;
			EXIT WHEN begun AND left_over = 0;
			PERFORM pg_sleep(0.005);
		END LOOP;
	END \$\$;
});
$node->safe_psql('postgres', 'BEGIN; UPDATE big SET v = v + 1; ROLLBACK');
is(one($node, 'SELECT sum(v), count(*) FROM big WHERE id % 1000 = 0'), '0|' . $rows / 1000, 'old rows at once');
is(sqlstate_of($node, 'UPDATE big SET v = 5 WHERE id IN (1, 777, 299999)'), '', 'updates at once');
is(sqlstate_of($node, 'DELETE FROM big WHERE id = 2'), '', 'deletes at once');
is(sqlstate_of($node, 'INSERT INTO big VALUES (0, 9)'), '', 'inserts at once');
is($watcher->query_safe('SELECT extents FROM seen ORDER BY ctid DESC LIMIT 1'), '0', 'the rollback has come to its end');
is($watcher->query_safe("SELECT count(*) > 0 FROM seen WHERE extents > 0 AND restored BETWEEN 1 AND $rows * 0.9"), 't', 'progress was to be seen in inplace.undo');
is($watcher->query_safe('SELECT count(*) FROM (SELECT restored < lag(restored) OVER (ORDER BY ctid) AS back FROM seen) s WHERE back'), '0', 'and only went on');
$watcher->quit;
is(one($node, 'SELECT sum(v), count(*) FROM big'), '24|' . $rows, 'contents');
undo_floor_reached($node, 'long rollback', 120);

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
