-- Partitioned tables, of inplace and heap partitions.
CREATE TABLE pa (k int, v int, t text) PARTITION BY RANGE (k);
CREATE TABLE pa1 PARTITION OF pa FOR VALUES FROM (0) TO (100) USING inplace;
CREATE TABLE pa2 PARTITION OF pa FOR VALUES FROM (100) TO (200) USING inplace;
CREATE TABLE pa3 PARTITION OF pa FOR VALUES FROM (200) TO (300) USING heap;
CREATE TABLE pa4 PARTITION OF pa DEFAULT PARTITION BY LIST (t);
CREATE TABLE pa4x PARTITION OF pa4 FOR VALUES IN ('x') USING inplace;
CREATE TABLE pa4d PARTITION OF pa4 DEFAULT USING inplace;
CREATE INDEX ON pa (k);
CREATE INDEX ON pa (v);
INSERT INTO pa SELECT g, g % 10, CASE WHEN g % 3 = 0 THEN 'x' ELSE 'y' END FROM generate_series(0, 399) g;
SELECT tableoid::regclass::text AS part, count(*), sum(k) FROM pa GROUP BY 1 ORDER BY 1;
-- to each other, and of different order of columns
UPDATE pa SET k = k + 100 WHERE k % 4 = 0;
UPDATE pa SET t = 'x' WHERE k >= 300 AND v = 1;
SELECT tableoid::regclass::text AS part, count(*), sum(k) FROM pa GROUP BY 1 ORDER BY 1;
CREATE TABLE pa5 (t text, gone int, v int, k int) USING inplace;
ALTER TABLE pa5 DROP COLUMN gone;
ALTER TABLE pa ATTACH PARTITION pa5 FOR VALUES FROM (1000) TO (2000);
UPDATE pa SET k = k + 1000 WHERE k < 100 AND v = 2 RETURNING tableoid::regclass, *;
UPDATE pa SET v = v + 1 WHERE k >= 1000 RETURNING *;
UPDATE pa SET k = k - 1000 WHERE k >= 1050 RETURNING tableoid::regclass, *;
-- rolled back
BEGIN;
UPDATE pa SET k = 250 WHERE k < 200;
UPDATE pa SET k = 50 WHERE k = 250;
SELECT tableoid::regclass::text AS part, count(*) FROM pa GROUP BY 1 ORDER BY 1;
ROLLBACK;
SELECT tableoid::regclass::text AS part, count(*), sum(k) FROM pa GROUP BY 1 ORDER BY 1;
-- detach, attach, truncate, prune
ALTER TABLE pa DETACH PARTITION pa2;
UPDATE pa2 SET v = -1;
UPDATE pa2 SET k = 5 WHERE k = 101;
ALTER TABLE pa ATTACH PARTITION pa2 FOR VALUES FROM (100) TO (200);
DELETE FROM pa2 WHERE k = 5;
ALTER TABLE pa ATTACH PARTITION pa2 FOR VALUES FROM (100) TO (200);
SELECT count(*), sum(v) FROM pa WHERE k BETWEEN 100 AND 199;
ALTER TABLE pa DETACH PARTITION pa3 CONCURRENTLY;
ALTER TABLE pa DETACH PARTITION pa4;
ALTER TABLE pa DETACH PARTITION pa3 CONCURRENTLY;
SELECT count(*) FROM pa;
-- the method is inherited from the default, not from the parent (up to 16)
SET default_table_access_method = inplace;
CREATE TABLE pa6 PARTITION OF pa FOR VALUES FROM (300) TO (400);
RESET default_table_access_method;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'pa6';
-- partition-wise joins and aggregates, foreign keys, triggers
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT count(*) FROM pa a JOIN pa b USING (k);
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;
CREATE FUNCTION pa_trg() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% % % old % new %', tg_table_name, tg_when, tg_op, OLD, NEW; RETURN coalesce(NEW, OLD); END $$;
CREATE TRIGGER pa_a AFTER INSERT OR UPDATE OR DELETE ON pa FOR EACH ROW EXECUTE FUNCTION pa_trg();
UPDATE pa SET k = 110, t = 'moved' WHERE k = 1;
UPDATE pa SET t = 'stays' WHERE k = 110 AND t = 'moved';
DELETE FROM pa WHERE k = 110 AND t = 'stays';
TRUNCATE pa;
SELECT count(*) FROM pa;

SELECT * FROM check_all();
