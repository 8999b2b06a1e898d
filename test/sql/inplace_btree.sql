-- inplace_btree: an update of its columns is in place, and every way through
-- the index finds what a sequential scan finds.
CREATE SCHEMA ib;
SET search_path = ib, inplace, public;
CREATE TABLE t (id int PRIMARY KEY, k int, s text, u int, n numeric, pad text) USING inplace;
INSERT INTO t SELECT i, i % 50, 's' || i % 20, i, i, 'x' FROM generate_series(1, 1000) i;
CREATE INDEX t_k ON t USING inplace_btree (k);
CREATE INDEX t_sk ON t USING inplace_btree (s DESC NULLS LAST, k) INCLUDE (pad);
CREATE UNIQUE INDEX t_u ON t USING inplace_btree (u);
CREATE INDEX t_n ON t USING inplace_btree (n);
CREATE INDEX t_partial ON t USING inplace_btree (k) WHERE k > 40;
DROP INDEX t_partial, t_n;
ANALYZE t;

-- Do the three ways agree with the sequential scan?  Returns what differs.
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	plan text;
	expected text[];
	got text[];
BEGIN
	FOREACH q IN ARRAY ARRAY[
		'SELECT id, k, s FROM t WHERE k BETWEEN 3 AND 20',
		'SELECT k FROM t WHERE k BETWEEN 3 AND 20',
		'SELECT id, k FROM t WHERE k IN (1, 7, 44)',
		'SELECT id, s FROM t WHERE s = ''s3''',
		'SELECT s, k, pad FROM t WHERE s IN (''s3'', ''s7'', ''moved'') AND k > 5',
		'SELECT id, u FROM t WHERE u < 200',
		'SELECT id FROM t WHERE s IS NULL']
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
				RETURN NEXT plan || ': ' || q;
			END IF;
		END LOOP;
	END LOOP;
END $$;

-- The row stays; and is found once, by its new key only.
SELECT ctid FROM t WHERE id = 5;
UPDATE t SET k = 45 WHERE id = 5 RETURNING ctid, k;
UPDATE t SET s = NULL WHERE id = 6 RETURNING ctid, s;
SELECT count(*) FROM t WHERE k = 45;
SELECT * FROM differences();
-- There and back: the first entry is still there, and is used again.
UPDATE t SET k = 5 WHERE id = 5;
UPDATE t SET k = 45 WHERE id = 5;
UPDATE t SET k = 5 WHERE id = 5 RETURNING ctid, k;
SELECT * FROM differences();
-- (what a session has not sent yet is sent at some time)
SELECT pg_stat_force_next_flush();
SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_all_tables WHERE relid = 't'::regclass;

-- A statement does not meet the entries it has made itself.
UPDATE t SET k = k + 1 WHERE k BETWEEN 10 AND 30;
SELECT sum(k) FROM t;
SELECT * FROM differences();

-- Rolled back: the entries stay behind, the rows do not lie under them.
BEGIN;
UPDATE t SET k = 7 WHERE id % 3 = 0;
SAVEPOINT a;
UPDATE t SET s = 's3' WHERE id % 5 = 0;
ROLLBACK TO a;
SELECT * FROM differences();
ROLLBACK;
SELECT * FROM differences();
VACUUM t;
SELECT * FROM differences();

-- Cursors see what was there when they were opened.
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT id, k FROM t WHERE k BETWEEN 1 AND 3 ORDER BY k, id;
DECLARE d CURSOR FOR SELECT count(*), sum(id) FROM t WHERE k BETWEEN 1 AND 3;
SELECT count(*), sum(id) FROM t WHERE k BETWEEN 1 AND 3;
UPDATE t SET k = 2 WHERE k IN (1, 8);
UPDATE t SET k = 60 WHERE k = 2 AND id < 500;
FETCH 3 FROM c;
FETCH d;
COMMIT;
SELECT * FROM differences();

-- Unique: freed keys can be taken, taken ones not got back.
UPDATE t SET u = 6 WHERE id = 5;
UPDATE t SET u = 10005 WHERE id = 5;
UPDATE t SET u = 5 WHERE id = 6;
UPDATE t SET u = 5 WHERE id = 5;
UPDATE t SET u = 6 WHERE id = 5;
INSERT INTO t VALUES (2000, 1, 'x', 10005);
INSERT INTO t VALUES (2001, 1, 'x', 6);
UPDATE t SET u = 6 WHERE id = 5;
SELECT id, u FROM t WHERE u IN (5, 6, 10005) ORDER BY u;
SELECT * FROM differences();

-- What makes the row move: equal keys that need not be identical; not a changed
-- INCLUDE column, nor what an expression is computed from.
CREATE TABLE m (id int PRIMARY KEY, a int, b int, n numeric) USING inplace;
INSERT INTO m VALUES (1, 1, 1, 1.0);
CREATE INDEX m_a ON m USING inplace_btree (a) INCLUDE (b);
UPDATE m SET a = 2 RETURNING ctid;
UPDATE m SET b = 2 RETURNING ctid;
CREATE INDEX m_n ON m USING inplace_btree (n);
UPDATE m SET n = 1.00 RETURNING ctid;
DROP INDEX m_a;
CREATE INDEX m_e ON m USING inplace_btree ((a + 1)) WHERE b > 0;
UPDATE m SET a = 3 RETURNING ctid;
SET enable_seqscan = off;
SELECT n FROM m WHERE n = 1;
SELECT a FROM m WHERE a + 1 = 4 AND b > 0;
RESET enable_seqscan;

-- Random updates, with aborts; then the row is moved, deleted, its place reused.
DO $$
BEGIN
	PERFORM setseed(0.5);
	FOR i IN 1 .. 3000 LOOP
		BEGIN
			CASE (random() * 6)::int
				WHEN 0 THEN UPDATE t SET k = (random() * 50)::int WHERE id = (random() * 1000)::int;
				WHEN 1 THEN UPDATE t SET k = k + 1 WHERE id = (random() * 1000)::int;
				WHEN 2 THEN UPDATE t SET k = k - 1 WHERE id = (random() * 1000)::int;
				WHEN 3 THEN UPDATE t SET s = 's' || (random() * 20)::int WHERE id = (random() * 1000)::int;
				WHEN 4 THEN UPDATE t SET u = (random() * 1100)::int WHERE id = (random() * 1000)::int;
				WHEN 5 THEN UPDATE t SET pad = repeat('y', (random() * 60)::int) WHERE id = (random() * 1000)::int;
				ELSE
					DELETE FROM t WHERE id = i % 1000;
					INSERT INTO t VALUES (i % 1000, i % 50, 's' || i % 20, 3000 + i);
			END CASE;
			IF random() < 0.3 THEN
				RAISE division_by_zero;
			END IF;
		EXCEPTION WHEN division_by_zero OR unique_violation THEN NULL;
		END;
		IF i % 500 = 0 AND EXISTS (SELECT FROM differences()) THEN
			RAISE EXCEPTION 'differences after step %', i;
		END IF;
	END LOOP;
END $$;
SELECT * FROM differences();
SELECT problem FROM inplace.check('t');
VACUUM t;
SELECT * FROM differences();
SELECT problem FROM inplace.check('t');

-- Entries of former keys go before a page splits.
CREATE TABLE w (id int PRIMARY KEY, k int) USING inplace;
INSERT INTO w SELECT i, i FROM generate_series(1, 5000) i;
CREATE INDEX w_k ON w USING inplace_btree (k);
SELECT pg_relation_size('w_k') AS fresh, pg_relation_size('w') AS table_fresh, pg_relation_size('w_pkey') AS pkey_fresh \gset
DO $$
BEGIN
	PERFORM setseed(0.25);
	FOR i IN 1 .. 40 LOOP
		UPDATE w SET k = (random() * 5000)::int;
		COMMIT;
	END LOOP;
END $$;
SELECT pg_relation_size('w_k') < 4 * :fresh AS bounded, pg_relation_size('w') = :table_fresh AS table_same,
	pg_relation_size('w_pkey') = :pkey_fresh AS pkey_same;
SELECT problem FROM inplace.check('w');

-- Keys that change by a little: a page has the same row again and again.  One of the indexes
-- computes its keys.
CREATE TABLE step (id int PRIMARY KEY, k int) USING inplace;
INSERT INTO step SELECT i, i * 7919 % 5000 * 10 FROM generate_series(1, 5000) i;
CREATE INDEX step_k ON step USING inplace_btree (k);
CREATE INDEX step_computed ON step USING inplace_btree (abs(k));
SELECT pg_relation_size('step_k') AS fresh \gset
DO $$
DECLARE
	chosen int;
BEGIN
	PERFORM setseed(0.5);
	FOR i IN 1 .. 300 LOOP
		FOR j IN 1 .. 100 LOOP
			chosen := 1 + random() * 4999;
			UPDATE step SET k = k + 1 WHERE id = chosen;
		END LOOP;
		COMMIT;
	END LOOP;
END $$;
SELECT pg_relation_size('step_k') <= 1.3 * :fresh AS k_bounded, pg_relation_size('step_computed') <= 1.3 * :fresh AS computed_bounded;
SELECT problem FROM inplace.check('step');
SET enable_seqscan = off;
SELECT count(*), sum(k) = (SELECT sum(k) FROM (SELECT k FROM step ORDER BY id OFFSET 0) x) AS same FROM step WHERE k >= 0;
SELECT count(*), sum(k) = (SELECT sum(k) FROM (SELECT k FROM step ORDER BY id OFFSET 0) x) AS same FROM step WHERE abs(k) >= 0;
RESET enable_seqscan;
DROP TABLE step;

-- Rewriting; on another table it is a btree.
CLUSTER t USING t_k;
SELECT * FROM differences();
REINDEX TABLE t;
REINDEX INDEX CONCURRENTLY t_k;
SELECT * FROM differences();
CREATE TABLE h (a int) USING heap;
CREATE INDEX ON h USING inplace_btree (a);
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA ib CASCADE;
RESET client_min_messages;
