-- The ctid in RETURNING, and in check options of views, of rows that AFTER triggers ask
-- for: without a number on top, whatever may be executed, and in any kind of statement.
SET client_min_messages = warning;
CREATE SCHEMA rc;
SET search_path = rc;
CREATE TABLE log (what text, old_ctid tid, new_ctid tid, old_v int, new_v int);
CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO rc.log VALUES (TG_TABLE_NAME, old.ctid, new.ctid, old.v, new.v);
    RETURN NULL;
END $$;
CREATE FUNCTION logged() RETURNS SETOF text LANGUAGE sql AS
$$WITH d AS (DELETE FROM rc.log RETURNING *) SELECT format('%s: %s -> %s', what, old_v, new_v) FROM d ORDER BY 1$$;
CREATE TABLE t (id int PRIMARY KEY, v int) USING inplace;
CREATE TRIGGER log AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION log();
INSERT INTO t SELECT g, 0 FROM generate_series(1, 3) g;
-- as after a usual hardening, of all that there is
CREATE ROLE regress_rc;
GRANT USAGE ON SCHEMA rc TO regress_rc;
GRANT ALL ON ALL TABLES IN SCHEMA rc TO regress_rc;
BEGIN;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA inplace FROM PUBLIC;
REVOKE USAGE ON SCHEMA inplace FROM PUBLIC;
SET ROLE regress_rc;
UPDATE t SET v = v + 1 RETURNING ctid, id, v;
UPDATE t SET v = v + 1 WHERE id = 2 RETURNING t.ctid::text || '!', ctid = '(0,2)'::tid AS same, v;
ROLLBACK;
-- twice, in one and the same transaction, and with a plan of before
PREPARE p(int) AS UPDATE t SET v = v + 1 WHERE id = $1 RETURNING ctid, v;
EXECUTE p(1);
BEGIN;
EXECUTE p(1);
EXECUTE p(1);
SAVEPOINT s;
EXECUTE p(2);
ROLLBACK TO s;
EXECUTE p(2);
COMMIT;
SELECT logged();
-- WITH: several result relations, one table
WITH a AS (UPDATE t SET v = 10 WHERE id = 1 RETURNING ctid AS c, id), b AS (UPDATE t SET v = 20 WHERE id = 2 RETURNING ctid AS c, id),
     c AS (INSERT INTO t VALUES (3, 0), (4, 0) ON CONFLICT (id) DO UPDATE SET v = 30 RETURNING ctid AS c, id)
SELECT * FROM a UNION ALL SELECT * FROM b UNION ALL SELECT * FROM c ORDER BY id;
WITH d AS (UPDATE t SET v = 11 WHERE id = 1 RETURNING ctid, (SELECT max(x.v) FROM t x WHERE x.ctid = t.ctid) AS before)
SELECT * FROM d;
SELECT logged();
-- views, rules
CREATE VIEW vw AS SELECT ctid AS c, id, v FROM t WHERE ctid < '(0,100)'::tid WITH CHECK OPTION;
UPDATE vw SET v = v + 1 RETURNING *;
UPDATE vw SET v = v + 1 WHERE id = 1;
CREATE VIEW rv AS SELECT id, v, ctid AS c FROM t;
CREATE RULE rv_upd AS ON UPDATE TO rv DO INSTEAD UPDATE t SET v = new.v WHERE id = old.id RETURNING t.id, t.v, t.ctid;
UPDATE rv SET v = v + 1 WHERE id < 3 RETURNING c, id, v;
SELECT logged();
-- functions: a row that one statement has updated is updated by another within it
CREATE FUNCTION upd(i int) RETURNS text LANGUAGE sql AS $$UPDATE rc.t SET v = v + 100 WHERE id = i RETURNING ctid || ' ' || v$$;
UPDATE t SET v = v + 1 WHERE id = 1 RETURNING ctid, v, upd(2), upd(3), ctid;
SELECT logged();
-- parents and partitions of both methods
CREATE TABLE hp (id int, v int) USING heap;
CREATE TABLE hp_i (PRIMARY KEY (id)) INHERITS (hp) USING inplace;
CREATE TABLE ip (id int, v int) USING inplace;
CREATE TABLE ip_h () INHERITS (ip) USING heap;
CREATE TABLE pp (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE pp_i PARTITION OF pp FOR VALUES FROM (0) TO (10) USING inplace;
CREATE TABLE pp_h PARTITION OF pp FOR VALUES FROM (10) TO (20) USING heap;
CREATE TABLE pp_j (v int, gone int, id int NOT NULL) USING inplace;
ALTER TABLE pp_j DROP gone;
ALTER TABLE pp ATTACH PARTITION pp_j FOR VALUES FROM (20) TO (30);
CREATE TRIGGER log AFTER UPDATE ON hp FOR EACH ROW EXECUTE FUNCTION log();
CREATE TRIGGER log AFTER UPDATE ON hp_i FOR EACH ROW EXECUTE FUNCTION log();
CREATE TRIGGER log AFTER UPDATE ON ip FOR EACH ROW EXECUTE FUNCTION log();
CREATE TRIGGER log AFTER UPDATE ON ip_h FOR EACH ROW EXECUTE FUNCTION log();
CREATE TRIGGER log AFTER UPDATE ON pp FOR EACH ROW EXECUTE FUNCTION log();
INSERT INTO hp VALUES (1, 0);
INSERT INTO hp_i VALUES (2, 0);
INSERT INTO ip VALUES (3, 0);
INSERT INTO ip_h VALUES (4, 0);
INSERT INTO pp VALUES (1, 0), (11, 0), (21, 0);
UPDATE hp SET v = v + 1 RETURNING tableoid::regclass, ctid, id, v;
UPDATE hp SET v = v + 1 RETURNING tableoid::regclass, ctid, id, v;
UPDATE ip SET v = v + 1 RETURNING tableoid::regclass, ctid, id, v;
UPDATE ip SET v = v + 1 RETURNING tableoid::regclass, ctid, id, v;
UPDATE pp SET v = v + 1 RETURNING tableoid::regclass, ctid, id, v;
INSERT INTO pp VALUES (1, 0), (11, 0), (21, 0), (2, 0) ON CONFLICT (id) DO UPDATE SET v = pp.v + 10 RETURNING tableoid::regclass, ctid, id, v;
UPDATE pp SET id = CASE id WHEN 1 THEN 15 ELSE 5 END, v = v + 1 WHERE id IN (1, 11) RETURNING tableoid::regclass, ctid, id, v;
CREATE VIEW pv AS SELECT * FROM pp WHERE ctid < '(0,100)'::tid WITH CHECK OPTION;
UPDATE pv SET v = v + 1;
INSERT INTO pv VALUES (21, 0), (2, 0) ON CONFLICT (id) DO UPDATE SET v = pv.v + 10;
SELECT logged();
-- deferred triggers find their versions
ALTER TABLE t DISABLE TRIGGER log;
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON t INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log();
BEGIN;
UPDATE t SET v = 1 WHERE id = 1 RETURNING ctid, v;
UPDATE t SET v = 2 WHERE id = 1 RETURNING ctid, v;
UPDATE vw SET v = 3 WHERE id = 1 RETURNING c, v;
COMMIT;
SELECT logged();
SELECT count(*) FROM log WHERE new_ctid > '(0,100)'::tid;
-- the plan has nothing of it
EXPLAIN (VERBOSE, COSTS OFF) UPDATE t SET v = 1 RETURNING ctid;
SELECT current_setting('server_version_num')::int >= 170000 AS v17, current_setting('server_version_num')::int >= 180000 AS v18 \gset
-- MERGE ... RETURNING, and the old row; the same answers where the server has neither
CREATE TABLE answers (n int, a text);
\if :v17
WITH m AS (MERGE INTO t USING (VALUES (1, 5), (2, 6), (9, 9)) s(i, n) ON t.id = s.i WHEN MATCHED THEN UPDATE SET v = n
     WHEN NOT MATCHED THEN INSERT VALUES (i, n) RETURNING merge_action() AS a, t.ctid AS c, id, v)
INSERT INTO answers SELECT 1, string_agg(format('%s %s %s', a, c, v), ', ' ORDER BY id) FROM m;
WITH m AS (MERGE INTO pp USING (VALUES (21, 5), (12, 6)) s(i, n) ON pp.id = s.i WHEN MATCHED AND n = 5 THEN UPDATE SET v = n
     WHEN MATCHED THEN DELETE RETURNING merge_action() AS a, pp.ctid < '(0,100)' AS c, id)
INSERT INTO answers SELECT 2, string_agg(format('%s %s', a, c), ', ' ORDER BY id) FROM m;
\else
INSERT INTO answers VALUES (1, 'UPDATE (0,1) 5, UPDATE (0,2) 6, INSERT (0,5) 9'), (2, 'UPDATE t');
\endif
\if :v18
WITH u AS (UPDATE t SET v = v + 1 WHERE id IN (1, 2) RETURNING old.ctid AS o, new.ctid AS n, ctid AS c, old.v AS ov, new.v AS nv)
INSERT INTO answers SELECT 3, string_agg(format('%s %s %s %s', o, n, c, nv - ov), ', ' ORDER BY c) FROM u;
WITH u AS (INSERT INTO t VALUES (1, 0), (10, 0) ON CONFLICT (id) DO UPDATE SET v = t.v + 1 RETURNING id, old.ctid AS o, new.ctid AS n, old IS NULL AS x)
INSERT INTO answers SELECT 4, string_agg(format('%s %s %s', o, n, x), ', ' ORDER BY id) FROM u;
WITH d AS (DELETE FROM t WHERE id = 10 RETURNING old.ctid AS o, new.ctid AS n, ctid AS c, new IS NULL AS x)
INSERT INTO answers SELECT 5, format('%s %s %s %s', o, n, c, x) FROM d;
\else
INSERT INTO answers VALUES (3, '(0,1) (0,1) (0,1) 1, (0,2) (0,2) (0,2) 1'), (4, '(0,1) (0,1) f,  (0,6) t'), (5, '(0,6)  (0,6) t');
\endif
SELECT a FROM answers ORDER BY n;
SELECT * FROM inplace.check('t');
RESET client_min_messages;
\set VERBOSITY terse
SET client_min_messages = error;
DROP SCHEMA rc CASCADE;
DROP ROLE regress_rc;
RESET client_min_messages;
RESET search_path;
