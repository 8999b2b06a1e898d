-- RETURNING, with system columns
CREATE TABLE rt (id int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO rt SELECT g, g, 't' || g FROM generate_series(1, 3) g RETURNING ctid, id, tableoid::regclass;
INSERT INTO rt VALUES (4, 4, 't4') RETURNING ctid, *, v * 2 AS twice;
-- clean TIDs, the same place
UPDATE rt SET v = v + 1 RETURNING ctid, id, v;
UPDATE rt SET v = v + 1 RETURNING ctid, id, v;
BEGIN;
UPDATE rt SET v = v + 1 WHERE id = 1 RETURNING ctid, v;
UPDATE rt SET v = v + 1 WHERE id = 1 RETURNING ctid, v;
UPDATE rt SET v = v + 1 WHERE id = 1 RETURNING ctid::text || ' ' || v AS text;
SELECT ctid, v FROM rt WHERE id = 1 FOR UPDATE;
ROLLBACK;
SELECT ctid, id, v FROM rt ORDER BY id;
UPDATE rt SET v = 0 WHERE id = 1 RETURNING rt, rt.*;
UPDATE rt SET v = s.n FROM (VALUES (1, 11), (2, 22)) s(id, n) WHERE rt.id = s.id RETURNING rt.ctid, rt.id, v, s.n;
DELETE FROM rt WHERE id = 2 RETURNING ctid, *;
DELETE FROM rt USING (VALUES (3)) s(id) WHERE rt.id = s.id RETURNING rt.*, s.id AS sid;
-- a row that moves gets a new one
UPDATE rt SET id = 10 WHERE id = 1 RETURNING ctid = '(0,1)'::tid AS same, id;
-- TIDs of RETURNING find the rows again
WITH u AS (UPDATE rt SET v = 100 RETURNING ctid AS c, id)
SELECT u.id, rt.id FROM u JOIN rt ON rt.ctid = u.c ORDER BY 1;
UPDATE rt SET v = 101 WHERE id = 4 RETURNING ctid AS c \gset
SELECT * FROM rt WHERE ctid = :'c';
UPDATE rt SET v = 102 WHERE ctid = :'c' RETURNING *;
DELETE FROM rt WHERE ctid = :'c' RETURNING ctid = :'c' AS same, v;
-- in functions
CREATE FUNCTION rt_upd(int) RETURNS SETOF rt LANGUAGE sql AS 'UPDATE rt SET v = v + 1 WHERE id = $1 RETURNING *';
SELECT * FROM rt_upd(10);
DO $$
DECLARE c tid; n int;
BEGIN
    UPDATE rt SET v = 5 WHERE id = 10 RETURNING ctid, v INTO c, n;
    UPDATE rt SET v = 6 WHERE ctid = c RETURNING v INTO n;
    RAISE NOTICE 'v is %', n;
END $$;
-- xmin and xmax are ours
BEGIN;
UPDATE rt SET v = 7 RETURNING xmin::text = pg_current_xact_id()::text AS own, xmax = 0 AS not_locked;
DELETE FROM rt RETURNING v;
ROLLBACK;
-- with a join of the table with itself, and writable WITH
INSERT INTO rt SELECT g, g, 'more' FROM generate_series(20, 24) g;
WITH d AS (DELETE FROM rt WHERE id IN (20, 21) RETURNING *), i AS (INSERT INTO rt SELECT id + 100, v, t FROM d RETURNING *)
SELECT * FROM i ORDER BY id;
UPDATE rt a SET v = b.v FROM rt b WHERE b.id = a.id - 1 RETURNING a.ctid = b.ctid AS same, a.id, a.v, b.id;
SELECT id, v, t FROM rt ORDER BY id;
-- partitions
CREATE TABLE rt_p (id int, v int) PARTITION BY LIST (id);
CREATE TABLE rt_p1 PARTITION OF rt_p FOR VALUES IN (1) USING inplace;
CREATE TABLE rt_p2 PARTITION OF rt_p FOR VALUES IN (2) USING heap;
INSERT INTO rt_p VALUES (1, 0), (2, 0) RETURNING tableoid::regclass, ctid, *;
UPDATE rt_p SET v = 1 WHERE id = 1 RETURNING tableoid::regclass, ctid, *;
UPDATE rt_p SET v = 2 WHERE id = 1 RETURNING tableoid::regclass, ctid, *;
UPDATE rt_p SET id = 3 - id RETURNING tableoid::regclass, id, v;
SELECT tableoid::regclass, * FROM rt_p ORDER BY id;
-- the ctid of the new row in checks of views and policies is that which the row has,
-- where there is a trigger too
CREATE TABLE rt_check (id int PRIMARY KEY, v int) USING inplace;
CREATE FUNCTION rt_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% -> %', old.v, new.v; RETURN NULL; END $$;
CREATE TRIGGER after AFTER UPDATE ON rt_check FOR EACH ROW EXECUTE FUNCTION rt_row();
CREATE VIEW rt_view AS SELECT id, v FROM rt_check WHERE ctid < '(0,200)'::tid WITH CHECK OPTION;
INSERT INTO rt_view VALUES (1, 1), (2, 2);
UPDATE rt_view SET v = v + 10 WHERE id = 1;
UPDATE rt_view SET v = v + 10 WHERE id = 1 RETURNING *;
WITH u AS (UPDATE rt_view SET v = v + 10 WHERE id = 2 RETURNING id, v) SELECT * FROM u;
PREPARE rt_check AS UPDATE rt_view SET v = v + 10 WHERE id = $1;
EXECUTE rt_check(2);
INSERT INTO rt_view VALUES (2, 100) ON CONFLICT (id) DO UPDATE SET v = rt_view.v + excluded.v;
-- one on the other
CREATE VIEW rt_view2 AS SELECT * FROM rt_view WHERE v < 2000 WITH CASCADED CHECK OPTION;
UPDATE rt_view2 SET v = v + 10 WHERE id = 2;
UPDATE rt_view2 SET v = 2000 WHERE id = 2;
SELECT * FROM rt_check ORDER BY id;
-- policies are checked before the new row has a place, on heap, too
CREATE ROLE regress_rt;
GRANT ALL ON rt_check, rt_view TO regress_rt;
ALTER TABLE rt_check ENABLE ROW LEVEL SECURITY;
CREATE POLICY rt_pol ON rt_check USING (v < 5000) WITH CHECK (v < 5000 AND ctid = '(4294967295,0)'::tid);
SET ROLE regress_rt;
UPDATE rt_check SET v = v + 10 WHERE id = 1;
UPDATE rt_check SET v = v + 10 WHERE id = 1 RETURNING *;
INSERT INTO rt_check VALUES (3, 3), (1, 1) ON CONFLICT (id) DO UPDATE SET v = rt_check.v + excluded.v;
MERGE INTO rt_check USING (VALUES (2, 1), (3, 1)) s(i, n) ON rt_check.id = s.i WHEN MATCHED THEN UPDATE SET v = v + n;
UPDATE rt_check SET v = 5000 WHERE id = 1;
RESET ROLE;
ALTER POLICY rt_pol ON rt_check WITH CHECK (ctid < '(0,200)'::tid);
SET ROLE regress_rt;
UPDATE rt_check SET v = v + 10 WHERE id = 1;
UPDATE rt_check SET v = v + 10 WHERE id = 1 RETURNING *;
INSERT INTO rt_check VALUES (4, 4);
INSERT INTO rt_check VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = rt_check.v + excluded.v;
MERGE INTO rt_check USING (VALUES (2, 1)) s(i, n) ON rt_check.id = s.i WHEN MATCHED THEN UPDATE SET v = v + n;
RESET ROLE;
-- both, through a view of the role
ALTER POLICY rt_pol ON rt_check WITH CHECK (ctid = '(4294967295,0)'::tid);
ALTER VIEW rt_view OWNER TO regress_rt;
SET ROLE regress_rt;
UPDATE rt_view SET v = v + 10 WHERE id = 1;
INSERT INTO rt_view VALUES (2, 100) ON CONFLICT (id) DO UPDATE SET v = rt_view.v + excluded.v;
RESET ROLE;
SELECT * FROM rt_check ORDER BY id;
DROP VIEW rt_view2, rt_view;
REVOKE ALL ON rt_check FROM regress_rt;
DROP ROLE regress_rt;

SELECT * FROM check_all();

-- EXPLAIN shows ctid as ctid.
CREATE TABLE rt_explain (a int, b int) USING inplace;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE rt_explain SET b = 1 RETURNING ctid, a;
EXPLAIN (VERBOSE, COSTS OFF) SELECT ctid FROM rt_explain WHERE a = 1 ORDER BY ctid FOR UPDATE;
EXPLAIN (VERBOSE, COSTS OFF) WITH u AS (UPDATE rt_explain SET b = 1 RETURNING ctid AS c) SELECT c FROM u;
PREPARE rt_explain AS UPDATE rt_explain SET b = 1 RETURNING ctid, a;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE rt_explain;
-- (where AFTER triggers ask for versions, and where expressions refer to it, too)
CREATE FUNCTION rt_after() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER after AFTER UPDATE ON rt_explain FOR EACH ROW EXECUTE FUNCTION rt_after();
INSERT INTO rt_explain VALUES (1, 1);
UPDATE rt_explain SET b = 2 RETURNING ctid;
EXECUTE rt_explain;
SELECT ctid = '(0,1)' FROM rt_explain FOR UPDATE;
DO $$
DECLARE s text; l text;
BEGIN
	FOREACH s IN ARRAY ARRAY['UPDATE rt_explain SET b = b RETURNING ctid = ''(0,1)'', ctid', 'EXECUTE rt_explain',
		'WITH u AS (UPDATE rt_explain SET b = 1 RETURNING ctid AS c, ctid < ''(0,9)'') SELECT * FROM u ORDER BY c',
		'SELECT ctid, ctid > ''(0,0)'' FROM rt_explain ORDER BY b FOR UPDATE'] LOOP
		FOR l IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || s LOOP
			CONTINUE WHEN l !~ 'Output';
			RAISE NOTICE '%', l;
		END LOOP;
	END LOOP;
END $$;
DROP FUNCTION rt_after CASCADE;
DROP TABLE rt_explain;
