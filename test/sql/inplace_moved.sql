-- Which updates stay in place, which move; the view counts both.
CREATE TABLE mv (id int PRIMARY KEY, k int, p int, v int, t text) USING inplace;
SET inplace.default_index_method = btree;
CREATE INDEX ON mv (k);
CREATE INDEX ON mv (id) WHERE p > 0;
CREATE INDEX ON mv ((v / 100));
RESET inplace.default_index_method;
INSERT INTO mv SELECT g, g, 0, 0, 'text' FROM generate_series(1, 10) g;
CREATE FUNCTION mv_count(OUT ins bigint, OUT in_place bigint, OUT moved bigint, OUT del bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_stat_force_next_flush();
    PERFORM pg_stat_clear_snapshot();
    SELECT inserts, in_place_updates, moved_updates, deletes INTO ins, in_place, moved, del
    FROM inplace.stat_tables WHERE relid = 'mv'::regclass;
END $$;
SELECT pg_stat_force_next_flush();
SELECT * FROM mv_count();
UPDATE mv SET t = 'other';
SELECT pg_stat_force_next_flush();
SELECT * FROM mv_count();
-- shrinking, growing, to NULL and back
UPDATE mv SET t = NULL;
UPDATE mv SET t = repeat('g', 100);
SELECT pg_stat_force_next_flush();
SELECT * FROM mv_count();
SELECT string_agg(ctid::text, ' ' ORDER BY id) FROM mv;
-- an indexed column set to what it is
UPDATE mv SET k = k, id = id;
SELECT pg_stat_force_next_flush();
SELECT * FROM mv_count();
-- an indexed column, that of a predicate, that of an expression: they move
UPDATE mv SET k = k + 100 WHERE id <= 2;
UPDATE mv SET p = 1 WHERE id = 3;
UPDATE mv SET v = 100 WHERE id = 4;
SELECT pg_stat_force_next_flush();
SELECT * FROM mv_count();
SELECT id FROM mv WHERE ctid > '(0,10)' ORDER BY id;
-- deletes; rolled back ones count too
BEGIN;
UPDATE mv SET t = 'x' WHERE id = 5;
DELETE FROM mv WHERE id = 6;
ROLLBACK;
DELETE FROM mv WHERE id = 7;
SELECT pg_stat_force_next_flush();
SELECT * FROM mv_count();
SELECT schemaname, relname, in_place_share, live_rows, table_size > 0 AS has_size FROM inplace.stat_tables WHERE relname = 'mv';
-- more often than there are version tags, in one transaction: it moves now and then
CREATE TABLE mv_tag (id int, v int) USING inplace;
INSERT INTO mv_tag VALUES (1, 0);
DO $$ BEGIN FOR i IN 1..120 LOOP UPDATE mv_tag SET v = i; END LOOP; END $$;
SELECT ctid, v FROM mv_tag;
DO $$ BEGIN FOR i IN 1..300 LOOP UPDATE mv_tag SET v = i; END LOOP; END $$;
SELECT v, ctid <> '(0,1)' AS moved FROM mv_tag;
-- ... in many transactions it stays
TRUNCATE mv_tag;
INSERT INTO mv_tag VALUES (1, 0);
DO $$ BEGIN FOR i IN 1..300 LOOP UPDATE mv_tag SET v = i; COMMIT; END LOOP; END $$;
SELECT ctid, v FROM mv_tag;
-- in-place updates make no bloat
CREATE TABLE mv_size (id int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO mv_size SELECT g, 0, repeat('s', 50) FROM generate_series(1, 2000) g;
SELECT pg_relation_size('mv_size') AS tab, pg_relation_size('mv_size_pkey') AS idx \gset
DO $$ BEGIN FOR i IN 1..20 LOOP UPDATE mv_size SET v = v + 1; END LOOP; END $$;
SELECT pg_relation_size('mv_size') = :tab AS tab, pg_relation_size('mv_size_pkey') = :idx AS idx, sum(v) FROM mv_size;
-- TOASTed values: in place as well
CREATE TABLE mv_toast (id int, v int, t text) USING inplace;
INSERT INTO mv_toast SELECT 1, 0, string_agg(md5(g::text), '') FROM generate_series(1, 500) g;
UPDATE mv_toast SET v = 1;
UPDATE mv_toast SET t = t || 'x';
SELECT ctid, v, length(t) FROM mv_toast;

SELECT * FROM check_all();
