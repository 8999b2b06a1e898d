-- INCLUDE columns of inplace_btree: an update of theirs alone is in place and
-- leaves the index alone; index-only scans show what their snapshot sees.
CREATE SCHEMA inc;
SET search_path = inc, inplace, public;
CREATE TABLE t (id int PRIMARY KEY, a int, b int, s text, n numeric) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i, i % 10, 's' || i, i / 4.0 FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX t_a ON t USING inplace_btree (a) INCLUDE (b, s);
CREATE INDEX t_b ON t USING inplace_btree (b DESC) INCLUDE (n);
VACUUM (FREEZE, ANALYZE) t;
CREATE FUNCTION alone() RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)) LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
	RETURN true;
END $$;
CREATE FUNCTION fetches(q text) RETURNS int LANGUAGE plpgsql
	SET enable_seqscan = off SET enable_bitmapscan = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE j json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT json) ' || q INTO j;
	RETURN (regexp_match(j::text, '"Heap Fetches": (\d+)'))[1];
END $$;
-- what index-only scans answer, where it differs from the table
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	expected text;
	got text;
BEGIN
	FOREACH q IN ARRAY ARRAY['SELECT a, b, s FROM t WHERE a > 0', 'SELECT a, s FROM t WHERE a > 100 AND b IS NOT NULL', 'SELECT b, n FROM t WHERE b >= 0', 'SELECT b, n FROM t WHERE b = 3'] LOOP
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off;
		EXECUTE format('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM (%s) x', q) INTO expected;
		SET LOCAL enable_seqscan = off; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_indexscan = on;
		EXECUTE format('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM (%s) x', q) INTO got;
		IF got IS DISTINCT FROM expected THEN
			RETURN NEXT q;
		END IF;
	END LOOP;
END $$;
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT a, b, s FROM t WHERE a > 0;
RESET enable_seqscan; RESET enable_bitmapscan;

SELECT pg_relation_size('t') AS t_size, pg_relation_size('t_a') AS a_size \gset
UPDATE t SET s = 'x' || id WHERE id = 1 RETURNING ctid;
UPDATE t SET s = 'x' || id WHERE id % 2 = 0;
UPDATE t SET s = NULL WHERE id % 50 = 0;
UPDATE t SET n = n + 1 WHERE id % 3 = 0;
UPDATE t SET b = b + 1 WHERE id % 7 = 0;
SELECT pg_relation_size('t') <= :t_size * 1.1 AS t_same, pg_relation_size('t_a') = :a_size AS a_same;
SELECT * FROM differences();
-- rolled back: never shown
BEGIN;
UPDATE t SET s = 'not to be seen', b = 77 WHERE id <= 100;
SELECT count(*) FROM t WHERE s = 'not to be seen';
SELECT * FROM differences();
SAVEPOINT a;
UPDATE t SET s = 'neither', n = 0;
ROLLBACK TO a;
SELECT * FROM differences();
ROLLBACK;
SELECT * FROM differences();
SELECT alone() \gset
VACUUM t;
SELECT * FROM differences();
SELECT alone() \gset
VACUUM (FREEZE) t;
SELECT * FROM differences();
SELECT fetches('SELECT a, b, s FROM t WHERE a > 0'), fetches('SELECT b, n FROM t WHERE b > 0');
SELECT problem FROM inplace.check('t');
-- cursors see what was there when they were opened
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT a, s FROM t WHERE a BETWEEN 10 AND 14 ORDER BY a;
FETCH 2 FROM c;
UPDATE t SET s = 'later' WHERE a BETWEEN 10 AND 14;
FETCH ALL FROM c;
SELECT a, s FROM t WHERE a BETWEEN 10 AND 14 ORDER BY a;
COMMIT;
-- Payloads that grow beyond their page of the index: rows keep their mark until
-- there is room.
CREATE TABLE u (a int, s text) USING inplace WITH (autovacuum_enabled = off, fillfactor = 40);
INSERT INTO u SELECT i, 's' FROM generate_series(1, 1000) i;
CREATE INDEX u_a ON u USING inplace_btree (a) INCLUDE (s) WITH (fillfactor = 100);
UPDATE u SET s = repeat('g', 40) || a;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) u;
SELECT alone() \gset
VACUUM (FREEZE, INDEX_CLEANUP on, ANALYZE) u;
SELECT fetches('SELECT a, s FROM u WHERE a > 0') BETWEEN 1 AND 999 AS some_left;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(*), count(DISTINCT s), min(length(s)) FROM (SELECT a, s FROM u WHERE a > 0 OFFSET 0) x;
REINDEX INDEX u_a;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) u;
SELECT alone() \gset
VACUUM (FREEZE, INDEX_CLEANUP on) u;
SELECT fetches('SELECT a, s FROM u WHERE a > 0');
SELECT count(*), count(DISTINCT s), min(length(s)) FROM (SELECT a, s FROM u WHERE a > 0 OFFSET 0) x;
RESET enable_seqscan; RESET enable_bitmapscan;
-- Too long a row is moved, and fails as with btree if its entry is too long.
UPDATE t SET s = (SELECT string_agg(md5(id::text || g), '') FROM generate_series(1, 70) g) WHERE id = 5;
SELECT * FROM differences();
UPDATE t SET s = (SELECT string_agg(md5(id::text || g), '') FROM generate_series(1, 90) g) WHERE id = 5;
ALTER TABLE t ALTER s SET STORAGE EXTERNAL;
UPDATE t SET s = repeat('y', 3000) WHERE id = 6;
SELECT * FROM differences();
-- there and back, with VACUUM in between
UPDATE t SET a = -a, s = 'k' WHERE id <= 20;
SELECT * FROM differences();
UPDATE t SET a = -a, s = 'j' WHERE id <= 10;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) t;
SELECT * FROM differences();
UPDATE t SET a = -a, s = 'l' WHERE id <= 20;
SELECT alone() \gset
VACUUM (FREEZE, INDEX_CLEANUP on) t;
SELECT alone() \gset
VACUUM (FREEZE, INDEX_CLEANUP on) t;
SELECT * FROM differences();
SELECT problem FROM inplace.check('t');
-- uniqueness is as ever
INSERT INTO t VALUES (5000, 30, 0, 's');
UPDATE t SET a = 31, s = 'dup' WHERE id = 30;
DROP SCHEMA inc CASCADE;
