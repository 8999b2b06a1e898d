-- Commands that rewrite, move, index or empty a table.
CREATE TABLE dd_h (id int PRIMARY KEY, v int, t text) USING heap;
CREATE TABLE dd_i (LIKE dd_h INCLUDING ALL) USING inplace;
CREATE INDEX ON dd_h (v);
CREATE INDEX dd_i_v ON dd_i (v);
SELECT do_both('dd', $$INSERT INTO $T SELECT g, (g * 7919) % 1009, repeat('d', g % 80) FROM generate_series(1, 1000) g$$);
SELECT do_both('dd', $$UPDATE $T SET t = t || '.' WHERE id % 2 = 0$$);
SELECT do_both('dd', $$DELETE FROM $T WHERE id % 10 = 0$$);
SELECT do_both('dd', $$UPDATE $T SET v = v + 1 WHERE id % 9 = 0$$);
-- CLUSTER: rows come in the index's order
CLUSTER dd_i USING dd_i_v;
SELECT count(*) FROM (SELECT v, lag(v) OVER (ORDER BY ctid) AS l FROM dd_i) s WHERE v < l;
SELECT twins('dd');
CLUSTER dd_i;
VACUUM FULL dd_i;
SELECT twins('dd');
SELECT do_both('dd', $$UPDATE $T SET t = t || '!'$$);
ALTER TABLE dd_i SET WITHOUT CLUSTER;
-- in a transaction with changes of its own (CLUSTER), rolled back
BEGIN;
SELECT do_both('dd', $$UPDATE $T SET v = -v WHERE id < 100$$);
SELECT do_both('dd', $$DELETE FROM $T WHERE id < 20$$);
CLUSTER dd_i USING dd_i_pkey;
SELECT do_both('dd', $$UPDATE $T SET v = -v WHERE id < 50$$);
SELECT twins('dd');
ROLLBACK;
SELECT twins('dd');
-- access methods, both ways
ALTER TABLE dd_i SET ACCESS METHOD heap;
SELECT do_both('dd', $$UPDATE $T SET t = t || '?' WHERE id % 3 = 0$$);
ALTER TABLE dd_i SET ACCESS METHOD inplace;
SELECT twins('dd');
SELECT do_both('dd', $$UPDATE $T SET v = v + 5 WHERE id % 5 = 0$$);
BEGIN;
ALTER TABLE dd_i SET ACCESS METHOD heap;
SELECT do_both('dd', $$DELETE FROM $T$$);
ROLLBACK;
SELECT twins('dd');
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'dd_i';
-- TRUNCATE, rolled back and not
BEGIN;
TRUNCATE dd_i;
INSERT INTO dd_i VALUES (1, 1, 'x');
UPDATE dd_i SET v = 2;
SELECT * FROM dd_i;
ROLLBACK;
SELECT twins('dd');
BEGIN;
SAVEPOINT a;
TRUNCATE dd_i;
INSERT INTO dd_i VALUES (1, 1, 'x');
ROLLBACK TO a;
SELECT do_both('dd', $$UPDATE $T SET v = 3 WHERE id = 1$$);
COMMIT;
SELECT twins('dd');
-- concurrent index builds
CREATE INDEX CONCURRENTLY dd_i_t ON dd_i (t, id);
\set VERBOSITY terse
CREATE UNIQUE INDEX CONCURRENTLY dd_i_u ON dd_i (v);
\set VERBOSITY default
CREATE UNIQUE INDEX CONCURRENTLY dd_i_u2 ON dd_i (id, v);
CREATE INDEX CONCURRENTLY dd_i_e ON dd_i (lower(t)) WHERE v > 100;
REINDEX INDEX CONCURRENTLY dd_i_t;
SET client_min_messages = error;
REINDEX TABLE CONCURRENTLY dd_i;
RESET client_min_messages;
SELECT count(*) FROM pg_index WHERE indrelid = 'dd_i'::regclass AND NOT indisvalid;
DROP INDEX CONCURRENTLY IF EXISTS dd_i_u;
REINDEX TABLE CONCURRENTLY dd_i;
DROP INDEX CONCURRENTLY dd_i_e;
SELECT do_both('dd', $$UPDATE $T SET t = 'after', v = id WHERE id % 4 = 1$$);
SELECT twins('dd');
-- tablespaces
\set VERBOSITY terse
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE inplace_ts LOCATION '';
ALTER TABLE dd_i SET TABLESPACE inplace_ts;
ALTER INDEX dd_i_t SET TABLESPACE inplace_ts;
SELECT do_both('dd', $$UPDATE $T SET t = 'in tablespace' WHERE id % 4 = 2$$);
SELECT twins('dd');
BEGIN;
SELECT do_both('dd', $$UPDATE $T SET t = 'gone' WHERE id % 4 = 2$$);
ALTER TABLE dd_i SET TABLESPACE pg_default;
SELECT do_both('dd', $$UPDATE $T SET t = 'gone too' WHERE id % 4 = 2$$);
ROLLBACK;
SELECT twins('dd');
REINDEX (TABLESPACE pg_default) TABLE dd_i;
ALTER TABLE dd_i SET TABLESPACE pg_default;
SELECT twins('dd');
DROP TABLESPACE inplace_ts;
\set VERBOSITY default
-- ANALYZE
ANALYZE dd_i;
SELECT reltuples = (SELECT count(*) FROM dd_h) AS exact FROM pg_class WHERE relname = 'dd_i';
SELECT attname, null_frac, n_distinct FROM pg_stats WHERE tablename = 'dd_i' AND attname = 'id';
CREATE STATISTICS dd_st ON v, t FROM dd_i;
ANALYZE dd_i;
-- created and dropped, created as, in one transaction
BEGIN;
CREATE TABLE dd_new USING inplace AS SELECT * FROM dd_i;
UPDATE dd_new SET v = 0;
CREATE INDEX ON dd_new (t);
SELECT count(*), sum(v) FROM dd_new;
ROLLBACK;
BEGIN;
CREATE TABLE dd_new USING inplace AS SELECT * FROM dd_i;
UPDATE dd_new SET v = 0;
TRUNCATE dd_new;
INSERT INTO dd_new VALUES (1, 2, '3');
UPDATE dd_new SET v = 7;
COMMIT;
SELECT * FROM dd_new;
DROP TABLE dd_new;
SELECT set_config('default_table_access_method', 'inplace', false);
CREATE TABLE dd_default (a int PRIMARY KEY, b text);
SELECT a + 1 AS a INTO dd_into FROM generate_series(1, 3) a;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname IN ('dd_default', 'dd_into') ORDER BY 1;
RESET default_table_access_method;
-- an error that is caught while CREATE TABLE AS is planned: the method is the default all the same
CREATE FUNCTION dd_int(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN $1::int;
EXCEPTION WHEN invalid_text_representation THEN
	RETURN NULL;
END $$;
SET default_table_access_method = inplace;
CREATE TABLE dd_caught AS SELECT dd_int('x') AS a;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'dd_caught';
RESET default_table_access_method;
-- the row type, whole-row references
CREATE TYPE dd_comp AS (a int, b text);
CREATE TABLE dd_row OF dd_comp USING inplace;
INSERT INTO dd_row VALUES (1, 'x');
UPDATE dd_row r SET b = r::text;
SELECT r FROM dd_row r;

-- CLUSTER by an index with entries of former keys: a row goes where its newest key is
CREATE TABLE dd_keys (id int PRIMARY KEY, v int, s text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO dd_keys SELECT g, g, 's' || g FROM generate_series(1, 1000) g;
CREATE INDEX dd_keys_v ON dd_keys USING inplace_btree (v);
CREATE INDEX dd_keys_e ON dd_keys USING inplace_btree ((v + 1) DESC, s);
CLUSTER dd_keys USING dd_keys_v;
UPDATE dd_keys SET v = 2000 - id WHERE id % 2 = 0;
BEGIN;
SAVEPOINT a;
UPDATE dd_keys SET v = -v WHERE id < 20;
ROLLBACK TO a;
UPDATE dd_keys SET v = v - 1 WHERE id > 990;
DELETE FROM dd_keys WHERE id IN (4, 5);
CLUSTER dd_keys;
COMMIT;
SELECT count(*), count(*) FILTER (WHERE v < last) AS out_of_order FROM (SELECT v, lag(v) OVER () AS last FROM (SELECT v FROM dd_keys OFFSET 0) x) y;
UPDATE dd_keys SET v = 3000 - v WHERE id % 3 = 0;
CLUSTER dd_keys USING dd_keys_e;
SELECT count(*), count(*) FILTER (WHERE v > last) AS out_of_order FROM (SELECT v, lag(v) OVER () AS last FROM (SELECT v FROM dd_keys OFFSET 0) x) y;

-- rewriting leaves no empty pages at the end
CREATE TABLE dd_tail USING inplace AS SELECT g AS id, repeat('x', 100) AS t FROM generate_series(1, 5000) g;
CREATE FUNCTION dd_empty_at_end(c regclass) RETURNS bigint LANGUAGE sql AS $$
	SELECT pg_relation_size(c) / 8192 - 1 - max(substring(ctid::text FROM 2 FOR strpos(ctid::text, ',') - 2)::int) FROM dd_tail $$;
VACUUM FULL dd_tail;
SELECT dd_empty_at_end('dd_tail');
ALTER TABLE dd_tail ALTER id TYPE bigint;
SELECT dd_empty_at_end('dd_tail');
SELECT count(*), sum(id) FROM dd_tail;

SELECT * FROM check_all();
