-- System columns.
CREATE TABLE sy (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO sy SELECT g, 0 FROM generate_series(1, 4) g;
SELECT tableoid::regclass, ctid, xmax, id FROM sy ORDER BY id;
-- xmin changes with each transaction that updates, ctid does not
SELECT xmin AS x1, ctid AS c1 FROM sy WHERE id = 1 \gset
UPDATE sy SET v = 1 WHERE id = 1;
SELECT xmin AS x2 FROM sy WHERE id = 1 \gset
SELECT xmin <> :'x1' AS xmin_new, ctid = :'c1' AS same_place, xmax FROM sy WHERE id = 1;
-- optimistic locking
UPDATE sy SET v = 2 WHERE id = 1 AND xmin = :'x1' RETURNING v;
UPDATE sy SET v = 2 WHERE id = 1 AND xmin = :'x2' RETURNING v;
UPDATE sy SET v = 3 WHERE id = 1 AND xmin = :'x2' RETURNING v;
-- another row's is as it was
SELECT xmin = :'x1' AS as_before FROM sy WHERE id = 2;
-- of a rolled back change
SELECT xmin AS x3 FROM sy WHERE id = 1 \gset
BEGIN;
UPDATE sy SET v = 4 WHERE id = 1;
SELECT xmin::text = pg_current_xact_id()::text AS mine FROM sy WHERE id = 1;
ROLLBACK;
SELECT xmin = :'x3' AS as_before, v FROM sy WHERE id = 1;
UPDATE sy SET v = 5 WHERE id = 1 AND xmin = :'x3' RETURNING v;
-- cmin, in one transaction
BEGIN;
INSERT INTO sy VALUES (10, 0);
INSERT INTO sy VALUES (11, 0);
SELECT id, cmin FROM sy WHERE id >= 10 ORDER BY id;
UPDATE sy SET v = 1 WHERE id = 10;
SELECT id, cmin FROM sy WHERE id >= 10 ORDER BY id;
SAVEPOINT a;
UPDATE sy SET v = 2 WHERE id = 10;
SELECT xmin::text <> pg_current_xact_id()::text AS of_subtransaction FROM sy WHERE id = 10;
ROLLBACK TO a;
SELECT xmin::text = pg_current_xact_id()::text AS mine FROM sy WHERE id = 10;
COMMIT;
-- an older version has its own xmin
SELECT xmin AS x1 FROM sy WHERE id = 3 \gset
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE c CURSOR FOR SELECT xmin, ctid, id, v FROM sy WHERE id = 3;
UPDATE sy SET v = 1 WHERE id = 3;
UPDATE sy SET v = 2 WHERE id = 3;
DO $$
DECLARE c refcursor := 'c'; r record;
BEGIN
    FETCH c INTO r;
    PERFORM set_config('sy.seen', r.xmin::text, false);
    RAISE NOTICE '% % %', r.ctid, r.id, r.v;
END $$;
SELECT current_setting('sy.seen') = :'x1' AS own;
COMMIT;
-- row locks
BEGIN;
SELECT id FROM sy WHERE id = 4 FOR SHARE;
SELECT xmax::text = pg_current_xact_id()::text AS mine, xmin::text <> pg_current_xact_id()::text AS xmin_kept FROM sy WHERE id = 4;
COMMIT;
-- deleted row, seen by an older snapshot; ctid of a row that moves
UPDATE sy SET id = 20 WHERE id = 2;
SELECT ctid <> '(0,2)' AS moved, xmax FROM sy WHERE id = 20;
SELECT count(*) FROM sy WHERE ctid = '(0,2)';
-- in indexes, constraints, generated columns: refused as on heap
CREATE INDEX ON sy (ctid);
ALTER TABLE sy ADD CHECK (xmin IS NOT NULL);
ALTER TABLE sy ADD CHECK (tableoid = 'sy'::regclass);
-- triggers and joins see the right ones
SELECT bool_and(a.ctid = b.ctid AND a.xmin = b.xmin) FROM sy a JOIN sy b USING (id);
CREATE FUNCTION sy_trg() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% %', OLD.tableoid::regclass, NEW.v; RETURN NULL; END $$;
CREATE TRIGGER sy_trg AFTER UPDATE ON sy FOR EACH ROW EXECUTE FUNCTION sy_trg();
UPDATE sy SET v = 6 WHERE id = 4;

SELECT * FROM check_all();
