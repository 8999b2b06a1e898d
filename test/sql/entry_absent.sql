-- An update does not look for an entry of its new key where there cannot be
-- one (index/taking.c).  Each case here is one where it has to: a second entry
-- with the same key and TID would be returned twice.
CREATE SCHEMA ea;
SET search_path = ea, inplace, public;
CREATE TABLE t (id int PRIMARY KEY, k int, s text) USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
ALTER TABLE t ALTER s SET STORAGE MAIN;
INSERT INTO t SELECT i, i, 's' || i FROM generate_series(1, 8) i;
CREATE INDEX t_k ON t USING inplace_btree (k);
CREATE INDEX t_s ON t USING inplace_btree (s);

-- what the indexes say that the table does not; and whether the row stayed
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	col text;
	expected text;
	got text;
BEGIN
	FOR col IN SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
		WHERE indrelid = 't'::regclass ORDER BY attname COLLATE "C"
	LOOP
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;
		EXECUTE format('SELECT string_agg(md5(%1$I::text), '','' ORDER BY md5(%1$I::text)) FROM t WHERE %1$I IS NOT NULL', col) INTO expected;
		SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = on;
		EXECUTE format('SELECT string_agg(md5(%1$I::text), '','' ORDER BY md5(%1$I::text)) FROM (SELECT %1$I FROM t WHERE %1$I IS NOT NULL ORDER BY %1$I OFFSET 0) x', col) INTO got;
		IF got IS DISTINCT FROM expected THEN RETURN NEXT 'index-only scan of ' || col; END IF;
		SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = off;
		EXECUTE format('SELECT string_agg(md5(%1$I::text), '','' ORDER BY md5(%1$I::text)) FROM (SELECT * FROM t WHERE %1$I IS NOT NULL ORDER BY %1$I OFFSET 0) x', col) INTO got;
		IF got IS DISTINCT FROM expected THEN RETURN NEXT 'index scan of ' || col; END IF;
	END LOOP;
	SET LOCAL enable_seqscan = on;
	RETURN QUERY SELECT 'check: ' || c::text FROM inplace.check('t') c;
	RETURN QUERY SELECT 'moved: ' || id FROM t WHERE ctid <> format('(0,%s)', id)::tid;
END $$;

-- there and back, and there again
UPDATE t SET k = 101 WHERE id = 1;
UPDATE t SET k = 1 WHERE id = 1;
UPDATE t SET k = 101 WHERE id = 1;
SELECT * FROM differences();
-- the entry is of an update that was rolled back
BEGIN;
UPDATE t SET k = 102 WHERE id = 2;
ROLLBACK;
UPDATE t SET k = 102 WHERE id = 2;
SELECT * FROM differences();
BEGIN;
SAVEPOINT a;
UPDATE t SET k = 103 WHERE id = 3;
ROLLBACK TO a;
UPDATE t SET k = 103 WHERE id = 3;
SELECT * FROM differences();
ROLLBACK;
UPDATE t SET k = 103 WHERE id = 3;
SELECT * FROM differences();
-- a row that is deleted in between, in vain, or locked
BEGIN;
UPDATE t SET k = 104 WHERE id = 4;
DELETE FROM t WHERE id = 4;
ROLLBACK;
BEGIN;
DELETE FROM t WHERE id = 4;
ROLLBACK;
BEGIN;
SELECT id FROM t WHERE id = 4 FOR UPDATE;
UPDATE t SET k = 104 WHERE id = 4;
COMMIT;
SELECT * FROM differences();
-- in the transaction that inserts the row
BEGIN;
INSERT INTO t VALUES (9, 9, 's9');
UPDATE t SET k = 109 WHERE id = 9;
UPDATE t SET k = 9 WHERE id = 9;
COMMIT;
UPDATE t SET k = 109 WHERE id = 9;
SELECT * FROM differences();
-- the same value, stored in another way
UPDATE t SET s = repeat('x', 2200) WHERE id = 5;
SELECT pg_column_size(s) < 200 AS compressed FROM t WHERE id = 5;
VACUUM (INDEX_CLEANUP on) t;
VACUUM (INDEX_CLEANUP on) t;
ALTER TABLE t ALTER s SET STORAGE PLAIN;
UPDATE t SET s = s || '' WHERE id = 5;
SELECT pg_column_size(s) < 200 AS compressed FROM t WHERE id = 5;
SELECT * FROM differences();
UPDATE t SET s = 's5' WHERE id = 5;
-- a column that the row does not have yet
ALTER TABLE t ADD m int DEFAULT 7;
CREATE INDEX t_m ON t USING inplace_btree (m);
VACUUM (INDEX_CLEANUP on) t;
VACUUM (INDEX_CLEANUP on) t;
UPDATE t SET m = 7 WHERE id = 6;
SELECT * FROM differences();
UPDATE t SET m = 8 WHERE id = 6;
UPDATE t SET m = 7 WHERE id = 6;
UPDATE t SET m = 8 WHERE id = 7;
UPDATE t SET k = 107 WHERE id = 7;
UPDATE t SET m = 7, k = 7 WHERE id = 7;
SELECT * FROM differences();
-- an index made when a change of its column was rolled back, but not on the page yet
DROP INDEX t_m;
BEGIN;
UPDATE t SET m = 9 WHERE id = 8;
ROLLBACK;
CREATE INDEX t_m ON t USING inplace_btree (m);
UPDATE t SET m = 9 WHERE id = 8;
UPDATE t SET m = 7 WHERE id = 8;
UPDATE t SET m = 9 WHERE id = 8;
SELECT * FROM differences();
-- a line pointer that is used again, by a row with the key of an old entry
DELETE FROM t WHERE id = 8;
VACUUM (INDEX_CLEANUP on) t;
VACUUM (INDEX_CLEANUP on) t;
INSERT INTO t VALUES (8, 208, 's8', 3);
UPDATE t SET m = 9, k = 8 WHERE id = 8;
UPDATE t SET m = 7, k = 208 WHERE id = 8;
SELECT * FROM differences();
-- after VACUUM has cleared all marks
UPDATE t SET k = id + 300;
UPDATE t SET k = id;
VACUUM (INDEX_CLEANUP on) t;
VACUUM (INDEX_CLEANUP on) t;
UPDATE t SET k = id + 300;
UPDATE t SET k = id;
UPDATE t SET k = id + 300;
SELECT * FROM differences();
SELECT id, k, m FROM t ORDER BY id;
-- a comparison that updates the row while the update makes its entries
CREATE FUNCTION cmp(int, int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('ea.armed', true) = 'on' THEN
		IF EXISTS (SELECT FROM ea.t WHERE id = 1 AND m = 11) THEN
			SET ea.armed = off;
			UPDATE ea.t SET m = 12 WHERE id = 1;
			UPDATE ea.t SET m = 11 WHERE id = 1;
		END IF;
	END IF;
	RETURN btint4cmp($1, $2);
END $$;
CREATE OPERATOR CLASS own_ops FOR TYPE int USING inplace_btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cmp(int, int);
CREATE INDEX t_own ON t USING inplace_btree (k own_ops);
DROP INDEX t_k, t_m;
CREATE INDEX t_m ON t USING inplace_btree (m);
VACUUM (INDEX_CLEANUP on) t;
VACUUM (INDEX_CLEANUP on) t;
SET ea.armed = on;
UPDATE t SET k = 401, m = 11 WHERE id = 1;
SHOW ea.armed;
DROP INDEX t_own;
SELECT * FROM differences();
SELECT id, k, m FROM t WHERE id = 1;
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA ea CASCADE;
RESET client_min_messages;
