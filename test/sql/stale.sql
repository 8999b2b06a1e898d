-- Stale index entries: a VACUUM takes them out, a later one clears the rows'
-- mark, and index-only scans do not have to look at the table any more.
CREATE SCHEMA st;
SET search_path = st, inplace, public;
CREATE TABLE t (id int PRIMARY KEY, k int, u int, s text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i % 50, i, 's' || i FROM generate_series(1, 2000) i;
CREATE INDEX t_k ON t USING inplace_btree (k);
CREATE UNIQUE INDEX t_u ON t USING inplace_btree (u);
CREATE INDEX t_s ON t USING inplace_btree (s, k);
SELECT alone() \gset
VACUUM (FREEZE, ANALYZE) t;

CREATE FUNCTION fetches(q text) RETURNS int LANGUAGE plpgsql
	SET enable_seqscan = off SET enable_bitmapscan = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE j json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT json) ' || q INTO j;
	RETURN (regexp_match(j::text, '"Heap Fetches": (\d+)'))[1];
END $$;
CREATE FUNCTION stale(rel regclass DEFAULT 't', OUT stale bigint, OUT unchanged bigint, OUT pages_not_visible int) LANGUAGE sql AS $$
	SELECT count(*) FILTER (WHERE 'STALE' = ANY (flags)), count(*) FILTER (WHERE 'UNCHANGED' = ANY (flags)),
		(SELECT relpages - relallvisible FROM pg_class WHERE oid = rel)
	FROM (SELECT flags FROM generate_series(0, pg_relation_size(rel) / 8192 - 1) b, page_items(rel, b)) x $$;
-- Once the mark is gone nothing is rechecked: an entry left over would show.
CREATE FUNCTION differences(rel regclass DEFAULT 't') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	col text;
	plan text;
	q text;
	expected text;
	got text;
BEGIN
	FOREACH col IN ARRAY ARRAY['k', 'u', 's'] LOOP
		q := format('SELECT count(*) || '' '' || sum(hashtext(%1$I::text)::bigint * id) FROM (SELECT id, %1$I FROM %2$s WHERE %1$I IS NOT NULL ORDER BY %1$I OFFSET 0) x', col, rel);
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
		EXECUTE q INTO expected;
		SET LOCAL enable_seqscan = off;
		FOREACH plan IN ARRAY ARRAY['indexscan', 'bitmapscan'] LOOP
			PERFORM set_config('enable_indexscan', (plan = 'indexscan')::text, true),
				set_config('enable_bitmapscan', (plan = 'bitmapscan')::text, true);
			EXECUTE q INTO got;
			IF got IS DISTINCT FROM expected THEN
				RETURN NEXT format('%s %s: %s instead of %s', plan, col, got, expected);
			END IF;
		END LOOP;
		EXECUTE format('SELECT count(*) || '' '' || sum(hashtext(%1$I::text)::bigint) FROM %2$s', col, rel) INTO expected;
		SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = off;
		EXECUTE format('SELECT count(*) || '' '' || sum(hashtext(%1$I::text)::bigint) FROM (SELECT %1$I FROM %2$s WHERE %1$I IS NOT NULL ORDER BY %1$I OFFSET 0) x', col, rel) INTO got;
		IF got IS DISTINCT FROM expected THEN
			RETURN NEXT format('index-only scan of %s: %s instead of %s', col, got, expected);
		END IF;
	END LOOP;
	SET LOCAL enable_seqscan = on;
END $$;

-- background workers may have snapshots
CREATE FUNCTION alone() RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)) LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
	RETURN true;
END $$;

SELECT fetches('SELECT k FROM t WHERE k < 10');
UPDATE t SET k = k + 100 WHERE k < 5;
UPDATE t SET u = u + 10000 WHERE id % 7 = 0;
SELECT * FROM stale();
SELECT fetches('SELECT k FROM t WHERE k < 10') > 0 AS looks;
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT * FROM stale();
SELECT fetches('SELECT k FROM t WHERE k < 10') > 0 AS looks;
SELECT * FROM differences();
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT * FROM stale();
SELECT fetches('SELECT k FROM t WHERE k < 10'), fetches('SELECT k FROM t WHERE k > 90'),
	fetches('SELECT u FROM t WHERE u > 0'), fetches('SELECT s, k FROM t WHERE s > ''''');
SELECT * FROM differences();
SELECT problem FROM inplace.check('t');

-- Whatever happens to a row between the two VACUUMs starts it over.
UPDATE t SET k = k + 1000 WHERE id <= 70;
SELECT alone() \gset
VACUUM t;
SELECT * FROM stale();
UPDATE t SET k = k - 1000 WHERE id <= 10;
UPDATE t SET s = 'other' WHERE id BETWEEN 11 AND 20;
BEGIN; UPDATE t SET k = 0, u = -id WHERE id BETWEEN 21 AND 30; ROLLBACK;
BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id BETWEEN 31 AND 40 FOR KEY SHARE) x; COMMIT;
BEGIN; DELETE FROM t WHERE id BETWEEN 41 AND 50; ROLLBACK;
DELETE FROM t WHERE id BETWEEN 51 AND 60;
SELECT * FROM differences();
SELECT alone() \gset
VACUUM t;
SELECT count(*) FILTER (WHERE 'STALE' = ANY (flags)) AS still_stale FROM page_items('t', 0) WHERE state = 'normal';
SELECT * FROM differences();
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT * FROM stale();
SELECT * FROM differences();
SELECT problem FROM inplace.check('t');
-- ... and there and back again, after it is clean
UPDATE t SET k = k + 1 WHERE id % 10 = 0;
UPDATE t SET k = k - 1 WHERE id % 10 = 0;
BEGIN; UPDATE t SET u = u + 50000 WHERE id % 10 = 1; ROLLBACK;
SELECT * FROM differences();
SELECT alone() \gset
VACUUM t;
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT * FROM stale();
SELECT * FROM differences();
SELECT fetches('SELECT k FROM t WHERE k > 0');

-- Rows are looked up for the indexes only that have more than one entry of them.
CREATE TABLE one (id int, k int, a text, b text, c text, d text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO one SELECT i, i, md5('a' || i), md5('b' || i), md5('c' || i), md5('d' || i) FROM generate_series(1, 4000) i;
CREATE TABLE six (LIKE one) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO six SELECT * FROM one;
CREATE INDEX ON one USING inplace_btree (k);
CREATE INDEX six_k ON six USING inplace_btree (k);
CREATE INDEX ON six USING inplace_btree (a);
CREATE INDEX ON six USING inplace_btree (b, id);
CREATE INDEX ON six USING inplace_btree (c DESC);
CREATE INDEX ON six USING inplace_btree (lower(d));
CREATE INDEX six_i ON six USING inplace_btree ((id % 10));
UPDATE one SET k = k + 10000 WHERE id % 2 = 0;
UPDATE six SET k = k + 10000 WHERE id % 2 = 0;
CREATE FUNCTION reads_of_vacuum(rel regclass, before bigint DEFAULT 0) RETURNS bigint LANGUAGE sql AS $$
	SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot();
	SELECT heap_blks_hit + heap_blks_read - before FROM pg_statio_all_tables WHERE relid = rel $$;
SELECT reads_of_vacuum('one') \gset
SELECT reads_of_vacuum('one') AS one, reads_of_vacuum('six') AS six \gset
SELECT alone() \gset
VACUUM one, six;
SELECT reads_of_vacuum('one') \gset
SELECT reads_of_vacuum('six', :six) < 1.2 * reads_of_vacuum('one', :one) AS as_many_for_six_indexes,
	reads_of_vacuum('one', :one) > 0 AS counted;
SELECT stale('six');
-- ... and which these are is found out for each index
UPDATE six SET a = 'x' || a WHERE id % 3 = 0;
UPDATE six SET d = 'x' || d WHERE id % 5 = 0;
UPDATE six SET d = upper(d) WHERE id % 7 = 0;
BEGIN; UPDATE six SET c = 'x' || c WHERE id % 11 = 0; ROLLBACK;
UPDATE six SET k = NULL WHERE id % 13 = 0;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) six;
SELECT alone() \gset
VACUUM (FREEZE) six;
SELECT stale('six');
SELECT problem FROM inplace.check('six');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(k) FROM (SELECT k FROM six WHERE k > 0 OFFSET 0) x;
SELECT count(*), count(DISTINCT a) FROM (SELECT a FROM six WHERE a > '' OFFSET 0) x;
SELECT count(*) FROM six WHERE lower(d) > '';
SELECT count(*) FROM (SELECT c FROM six WHERE c > '' OFFSET 0) x;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE one, six;

-- Without index cleanup no entry goes, but those that went before count.
UPDATE t SET k = k + 1 WHERE id % 4 = 0;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP off) t;
SELECT * FROM stale();
SELECT alone() \gset
VACUUM t;
SELECT stale > 0 AS stale, stale = unchanged AS swept FROM stale();
SELECT alone() \gset
VACUUM (INDEX_CLEANUP off, FREEZE) t;
SELECT * FROM stale();
SELECT * FROM differences();
-- A few stale rows are not worth going through all indexes, unless asked for.
UPDATE t SET k = k + 1 WHERE id = 5;
INSERT INTO t SELECT i, i % 50, i, repeat('s', 500) || i FROM generate_series(20001, 23000) i;
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT stale FROM stale();
SELECT alone() \gset
VACUUM (FREEZE, INDEX_CLEANUP on) t;
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT * FROM stale();
-- An index that has next to nothing to give is gone through all the same.
UPDATE t SET u = -u;
UPDATE t SET k = k + 7 WHERE id % 900 = 3;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) t;
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT * FROM stale();
SELECT * FROM differences();
-- Keys in the TOAST table are fetched, for that only.
ALTER TABLE t ALTER s SET STORAGE EXTERNAL;
CREATE INDEX t_md5 ON t USING inplace_btree (md5(s), k);
UPDATE t SET s = repeat('x', 2500) || id, k = k + 1 WHERE id = 7;
UPDATE t SET s = repeat('y', 2500) || id WHERE id = 7;
SELECT alone() \gset
VACUUM (FREEZE, INDEX_CLEANUP on) t;
SELECT alone() \gset
VACUUM (FREEZE, INDEX_CLEANUP on) t;
SELECT * FROM stale();
SELECT * FROM differences();
SELECT problem FROM inplace.check('t');
SET enable_seqscan = off;
SELECT id FROM t WHERE s >= 'xx' AND s < 'zz';
RESET enable_seqscan;
UPDATE t SET s = 'short' WHERE id = 7;
DROP INDEX t_md5;
SELECT alone() \gset
VACUUM (FREEZE, INDEX_CLEANUP on) t;
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT * FROM stale();
SELECT * FROM differences();
-- No index has entries any more, parallel VACUUM, and pages left empty.
UPDATE t SET k = k + 100000, u = u + 100000;
SELECT alone() \gset
VACUUM (PARALLEL 2, INDEX_CLEANUP on) t;
DROP INDEX t_k;
SELECT alone() \gset
VACUUM (FREEZE, PARALLEL 2) t;
SELECT * FROM stale();
SELECT problem FROM inplace.check('t');

-- Random keys back and forth with VACUUM at any time, in all kinds of tables.
CREATE TABLE p (id int PRIMARY KEY, k int, u int, s text) USING inplace WITH (autovacuum_enabled = off);
CREATE UNLOGGED TABLE n (LIKE p) USING inplace WITH (autovacuum_enabled = off);
CREATE TEMP TABLE y (LIKE p) USING inplace;
SELECT setseed(0.25);
\set ECHO none
SELECT format('INSERT INTO %1$s SELECT i, i %% 7, i, ''s'' || i %% 3 FROM generate_series(1, 300) i;', rel) AS a,
	format('CREATE INDEX ON %s USING inplace_btree (k)', rel), format('CREATE INDEX ON %s USING inplace_btree (u)', rel),
	format('CREATE INDEX ON %s USING inplace_btree (s, k)', rel)
FROM unnest(ARRAY['p', 'n', 'y']) rel \gexec
SELECT CASE (random() * 9)::int
	WHEN 0 THEN format('VACUUM (INDEX_CLEANUP on) %s', rel)
	WHEN 1 THEN format('VACUUM (FREEZE) %s', rel)
	WHEN 2 THEN format('UPDATE %s SET k = k + 1 WHERE id %% 10 = %s', rel, n % 10)
	WHEN 3 THEN format('UPDATE %s SET k = k - 1 WHERE id %% 10 = %s', rel, n % 10)
	WHEN 4 THEN format('UPDATE %s SET k = (k + 1) %% 3, u = -u WHERE id %% 5 = %s', rel, n % 5)
	WHEN 5 THEN format('DO $x$ BEGIN UPDATE %s SET k = 1, s = ''x'' WHERE id %% 7 = %s; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $x$', rel, n % 7)
	WHEN 6 THEN format('UPDATE %s SET s = ''s'' || (hashtext(s) & 3) WHERE id %% 9 = %s', rel, n % 9)
	WHEN 7 THEN format('DELETE FROM %s WHERE id %% 97 = %s', rel, n % 97)
	WHEN 8 THEN format('INSERT INTO %s VALUES (%s, %s, %s, ''s1'')', rel, 1000 + n, n % 7, n)
	ELSE format('VACUUM %s', rel) END AS step,
	format('DO $x$ DECLARE d text; BEGIN FOR d IN SELECT differences(%L) LOOP RAISE WARNING ''step %s: %%'', d; END LOOP; END $x$', rel, n)
FROM generate_series(1, 120) n, unnest(ARRAY['p', 'n', 'y']) rel ORDER BY n, rel \gexec
\set ECHO all
SELECT problem FROM unnest(ARRAY['p', 'n', 'y']) rel, inplace.check(rel::regclass);
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) p, n, y;
SELECT alone() \gset
VACUUM (FREEZE) p, n, y;
SELECT * FROM unnest(ARRAY['p', 'n', 'y']) rel, stale(rel::regclass);
SELECT d FROM unnest(ARRAY['p', 'n', 'y']) rel, differences(rel::regclass) d;
DROP SCHEMA st CASCADE;
