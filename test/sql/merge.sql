-- MERGE
CREATE TABLE mg (k int PRIMARY KEY, v int, t text) USING inplace;
CREATE TABLE mg_src (k int, v int, act text) USING inplace;
INSERT INTO mg SELECT g, g * 10, 't' || g FROM generate_series(1, 6) g;
INSERT INTO mg_src VALUES (1, 1, 'u'), (2, 2, 'd'), (3, 3, 'n'), (7, 7, 'i'), (8, 8, 'n'), (5, 5, 'k');
MERGE INTO mg USING mg_src s ON mg.k = s.k
WHEN MATCHED AND s.act = 'u' THEN UPDATE SET v = mg.v + s.v, t = mg.t || ' updated'
WHEN MATCHED AND s.act = 'd' THEN DELETE
WHEN MATCHED AND s.act = 'k' THEN UPDATE SET k = mg.k + 100
WHEN MATCHED THEN DO NOTHING
WHEN NOT MATCHED AND s.act = 'i' THEN INSERT VALUES (s.k, s.v, 'inserted')
WHEN NOT MATCHED THEN DO NOTHING;
SELECT * FROM mg ORDER BY k;

-- a row may be changed once
INSERT INTO mg_src VALUES (1, 100, 'u');
MERGE INTO mg USING mg_src s ON mg.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v;
MERGE INTO mg USING mg_src s ON mg.k = s.k WHEN MATCHED THEN DELETE;
SELECT * FROM mg ORDER BY k;
DELETE FROM mg_src WHERE v = 100;

-- constraint violations
MERGE INTO mg USING (VALUES (1), (9)) s(k) ON false WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k);
SELECT count(*) FROM mg;

-- triggers
CREATE FUNCTION mg_trg() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% % old % new %', tg_when, tg_op, OLD, NEW;
    RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER mg_b BEFORE INSERT OR UPDATE OR DELETE ON mg FOR EACH ROW EXECUTE FUNCTION mg_trg();
CREATE TRIGGER mg_a AFTER INSERT OR UPDATE OR DELETE ON mg FOR EACH ROW EXECUTE FUNCTION mg_trg();
MERGE INTO mg USING (VALUES (3, 33)) s(k, v) ON mg.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v;
MERGE INTO mg USING (VALUES (4, 44)) s(k, v) ON mg.k = s.k WHEN MATCHED THEN DELETE;
MERGE INTO mg USING (VALUES (4, 44)) s(k, v) ON mg.k = s.k WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, 'new');
DROP TRIGGER mg_a ON mg;
DROP TRIGGER mg_b ON mg;

-- in place: the rows stay where they are
CREATE TABLE mg_tids AS SELECT k, ctid AS tid FROM mg;
MERGE INTO mg USING mg AS s ON mg.k = s.k WHEN MATCHED THEN UPDATE SET v = mg.v + 1;
SELECT bool_and(mg.ctid = tid) FROM mg JOIN mg_tids USING (k);
SELECT * FROM mg ORDER BY k;

-- rolled back
BEGIN;
MERGE INTO mg USING (SELECT g AS k FROM generate_series(1, 20) g) s ON mg.k = s.k
WHEN MATCHED AND mg.k % 2 = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET t = repeat('m', 200)
WHEN NOT MATCHED THEN INSERT VALUES (s.k, 0, 'm');
SELECT count(*), sum(length(t)) FROM mg;
ROLLBACK;
SELECT * FROM mg ORDER BY k;

-- partitions, the row moves from one to the other
CREATE TABLE mg_p (k int, v int) PARTITION BY LIST (k);
CREATE TABLE mg_p1 PARTITION OF mg_p FOR VALUES IN (1, 2) USING inplace;
CREATE TABLE mg_p2 PARTITION OF mg_p FOR VALUES IN (3, 4) USING inplace;
INSERT INTO mg_p VALUES (1, 1), (3, 3);
MERGE INTO mg_p USING (VALUES (1, 4), (2, 0), (3, 3)) s(k, n) ON mg_p.k = s.k
WHEN MATCHED THEN UPDATE SET k = s.n, v = mg_p.v * 10
WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.n);
SELECT tableoid::regclass, * FROM mg_p ORDER BY k;

-- large, against a heap twin
CREATE TABLE mgl_h (k int PRIMARY KEY, v int, t text) USING heap;
CREATE TABLE mgl_i (LIKE mgl_h INCLUDING ALL) USING inplace;
SELECT do_both('mgl', $$INSERT INTO $T SELECT g, g, repeat('a', g % 40) FROM generate_series(1, 3000) g$$);
SELECT do_both('mgl', $$MERGE INTO $T t USING (SELECT g AS k, g % 7 AS m FROM generate_series(1500, 4500) g) s ON t.k = s.k
WHEN MATCHED AND m = 0 THEN DELETE
WHEN MATCHED AND m = 1 THEN UPDATE SET k = -t.k
WHEN MATCHED THEN UPDATE SET v = -v, t = t.t || m::text
WHEN NOT MATCHED AND m < 5 THEN INSERT VALUES (s.k, m, 'ins')$$);
SELECT twins('mgl');

SELECT * FROM check_all();
