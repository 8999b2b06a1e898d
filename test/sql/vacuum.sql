-- VACUUM
CREATE TABLE va (id int PRIMARY KEY, t text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO va SELECT g, repeat('v', 100) FROM generate_series(1, 5000) g;
DELETE FROM va WHERE id % 2 = 0;
VACUUM (FREEZE) va;
SELECT count(*) FROM inplace.page_items('va', 0) WHERE state = 'dead';
-- the space is used again
SELECT pg_relation_size('va') AS size \gset
INSERT INTO va SELECT g, repeat('w', 100) FROM generate_series(5001, 7400) g;
SELECT pg_relation_size('va') = :size AS same_size, count(*), sum(id) FROM va;
-- all visible: index-only scans need not look
VACUUM (FREEZE, ANALYZE) va;
SELECT relallvisible = relpages AS all_visible, reltuples FROM pg_class WHERE relname = 'va';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET jit = off;
CREATE FUNCTION va_fetches(q text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE j json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT json) ' || q INTO j;
    RETURN (regexp_match(j::text, '"Heap Fetches": (\d+)'))[1];
END $$;
SELECT va_fetches('SELECT id FROM va WHERE id BETWEEN 1 AND 1000');
UPDATE va SET t = 'changed' WHERE id = 501;
SELECT va_fetches('SELECT id FROM va WHERE id BETWEEN 1 AND 1000') > 0 AS looks;
SELECT count(*), sum(id) FROM va WHERE id BETWEEN 1 AND 1000;
BEGIN;
DELETE FROM va WHERE id < 500;
SELECT count(id) FROM va WHERE id BETWEEN 1 AND 1000;
ROLLBACK;
SELECT count(id) FROM va WHERE id BETWEEN 1 AND 1000;
VACUUM (FREEZE) va;
SELECT va_fetches('SELECT id FROM va WHERE id BETWEEN 1 AND 1000');
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET jit;
-- aborted rows
BEGIN;
INSERT INTO va SELECT g, 'aborted' FROM generate_series(10001, 12000) g;
UPDATE va SET t = repeat('aborted', 20);
DELETE FROM va WHERE id > 7000;
ROLLBACK;
VACUUM va;
SELECT count(*), sum(id), count(DISTINCT t) FROM va;
-- the tail is given back
DELETE FROM va WHERE id > 100;
SELECT pg_relation_size('va') AS size \gset
VACUUM (FREEZE) va;
SELECT pg_relation_size('va') < :size AS truncated, count(*) FROM va;
DELETE FROM va;
VACUUM (FREEZE) va;
SELECT pg_relation_size('va');
INSERT INTO va VALUES (1, 'again');
SELECT * FROM va;
-- relfrozenxid and relminmxid
SELECT relfrozenxid AS fxid FROM pg_class WHERE relname = 'va' \gset
INSERT INTO va SELECT g, 'x' FROM generate_series(2, 100) g;
UPDATE va SET t = 'y' WHERE id > 50;
DELETE FROM va WHERE id > 90;
SELECT count(*) FROM (SELECT FROM va FOR UPDATE) s;
VACUUM (FREEZE) va;
SELECT age(relfrozenxid) < age(:'fxid'::xid) AS advanced, mxid_age(relminmxid) <= 1 AS multi FROM pg_class WHERE relname = 'va';
SELECT DISTINCT 'FROZEN' = ANY (flags) AS frozen FROM inplace.page_items('va', 0) WHERE state = 'normal';
-- options, and indexes of every kind are cleaned
CREATE TABLE va_ix (id int PRIMARY KEY, a int[], p point, t text, f int) USING inplace WITH (autovacuum_enabled = off);
CREATE INDEX ON va_ix USING gin (a);
CREATE INDEX ON va_ix USING gist (p);
CREATE INDEX ON va_ix USING spgist (p);
CREATE INDEX ON va_ix USING hash (t);
CREATE INDEX ON va_ix USING brin (f);
INSERT INTO va_ix SELECT g, ARRAY[g % 10], point(g % 50, g), 't' || g % 20, g FROM generate_series(1, 3000) g;
DELETE FROM va_ix WHERE id % 3 = 0;
UPDATE va_ix SET t = 'moved' WHERE id % 5 = 0;
VACUUM (INDEX_CLEANUP off) va_ix;
VACUUM (INDEX_CLEANUP on, PARALLEL 2) va_ix;
INSERT INTO va_ix SELECT g, ARRAY[g % 10], point(g % 50, g), 't' || g % 20, g FROM generate_series(3001, 4000) g;
VACUUM (TRUNCATE off, DISABLE_PAGE_SKIPPING) va_ix;
SET enable_seqscan = off;
SELECT count(*) FROM va_ix WHERE a @> '{3}';
SELECT count(*) FROM va_ix WHERE p <@ box '(0,0),(10,1000)';
SELECT count(*) FROM va_ix WHERE t = 't7';
SELECT count(*) FROM va_ix WHERE f BETWEEN 100 AND 200;
RESET enable_seqscan;
VACUUM (VERBOSE off, ANALYZE) va_ix;
SELECT reltuples FROM pg_class WHERE relname = 'va_ix';
-- in-place updates leave nothing to do
SELECT pg_stat_force_next_flush();
UPDATE va_ix SET f = f WHERE id < 100;
CREATE TABLE va_none (id int, v int) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO va_none SELECT g, 0 FROM generate_series(1, 1000) g;
UPDATE va_none SET v = 1;
UPDATE va_none SET v = 2;
SELECT pg_stat_force_next_flush();
SELECT dead_rows, in_place_updates FROM inplace.stat_tables WHERE relname = 'va_none';
VACUUM;

SELECT * FROM check_all();
