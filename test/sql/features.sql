-- What stands on tables, whatever their access method: views, rules, sequences,
-- statistics, event triggers, EXPLAIN, parallel plans.
CREATE TABLE fe (id serial PRIMARY KEY, a int, b int, v text) USING inplace;
INSERT INTO fe (a, b, v) SELECT g % 10, g % 10 * 2, 'v' || g FROM generate_series(1, 2000) g;
SELECT max(id), currval('fe_id_seq') FROM fe;

-- views that can be updated, WITH CHECK OPTION, INSTEAD OF
CREATE VIEW fe_view AS SELECT id, a, v FROM fe WHERE a < 3 WITH CHECK OPTION;
UPDATE fe_view SET v = v || '!' WHERE id = 1 RETURNING *;
UPDATE fe_view SET a = 5 WHERE id = 1;
INSERT INTO fe_view (a, v) VALUES (1, 'by view') RETURNING id;
DELETE FROM fe_view WHERE v = 'by view' RETURNING a;
CREATE FUNCTION fe_instead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN UPDATE fe SET v = NEW.v WHERE id = OLD.id; RETURN NEW; END $$;
CREATE VIEW fe_sum AS SELECT id, a + b AS ab, v FROM fe;
CREATE TRIGGER t INSTEAD OF UPDATE ON fe_sum FOR EACH ROW EXECUTE FUNCTION fe_instead();
UPDATE fe_sum SET v = 'instead' WHERE id = 2 RETURNING *;
SELECT v FROM fe WHERE id = 2;

-- rules
CREATE TABLE fe_log (what text, id int, v text) USING inplace;
CREATE RULE fe_upd AS ON UPDATE TO fe WHERE OLD.v <> NEW.v DO ALSO INSERT INTO fe_log VALUES ('update', OLD.id, NEW.v);
CREATE RULE fe_del AS ON DELETE TO fe WHERE OLD.id = 7 DO INSTEAD NOTHING;
UPDATE fe SET v = 'by rule' WHERE id IN (3, 4);
DELETE FROM fe WHERE id IN (7, 8);
SELECT * FROM fe_log ORDER BY id;
SELECT id FROM fe WHERE id IN (7, 8);
DROP RULE fe_upd ON fe;
DROP RULE fe_del ON fe;

-- statistics, of columns and of several
CREATE STATISTICS fe_st (dependencies, ndistinct, mcv) ON a, b FROM fe;
ANALYZE fe;
SELECT attname, n_distinct, null_frac, correlation IS NOT NULL AS correlation FROM pg_stats WHERE tablename = 'fe' AND attname IN ('a', 'b') ORDER BY 1;
SELECT n_distinct::text, dependencies::text FROM pg_stats_ext WHERE statistics_name = 'fe_st';
SELECT reltuples, relpages > 0 AS pages FROM pg_class WHERE oid = 'fe'::regclass;
DO $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) SELECT * FROM fe WHERE a = 1 AND b = 2' INTO plan;
	RAISE NOTICE 'estimate by them: %', (plan #>> '{0,Plan,Plan Rows}')::numeric BETWEEN 150 AND 250;
END $$;

-- EXPLAIN
EXPLAIN (COSTS off) SELECT * FROM fe WHERE id = 5;
EXPLAIN (COSTS off) UPDATE fe SET v = 'x' WHERE id BETWEEN 5 AND 6;
DO $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) UPDATE fe SET v = v WHERE id BETWEEN 11 AND 20' INTO plan;
	RAISE NOTICE 'rows found %, buffers %', (plan #>> '{0,Plan,Plans,0,Actual Rows}')::numeric::int, (plan #>> '{0,Plan,Shared Hit Blocks}')::int > 0;
END $$;

-- parallel plans, of scans and of joins, agree with others
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
EXPLAIN (COSTS off) SELECT sum(a) FROM fe;
SELECT count(*), sum(a), sum(length(v)) FROM fe;
SELECT count(*), sum(x.a) FROM fe x JOIN fe y USING (id) WHERE y.b > 4;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(a) FROM fe WHERE id > 100;
RESET max_parallel_workers_per_gather;
SELECT count(*), sum(a) FROM fe WHERE id > 100;
RESET ALL;

-- event triggers see what they see with heap
CREATE FUNCTION fe_event() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE c record;
BEGIN
	FOR c IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
		RAISE NOTICE '%: % %', TG_EVENT, c.command_tag, c.object_identity;
	END LOOP;
END $$;
CREATE FUNCTION fe_rewrite() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '%: % %', TG_EVENT, pg_event_trigger_table_rewrite_oid()::regclass, pg_event_trigger_table_rewrite_reason(); END $$;
CREATE EVENT TRIGGER regress_fe_end ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE', 'CREATE INDEX') EXECUTE FUNCTION fe_event();
CREATE EVENT TRIGGER regress_fe_rewrite ON table_rewrite EXECUTE FUNCTION fe_rewrite();
CREATE TABLE fe_ev (i int, n int) USING inplace;
CREATE INDEX fe_ev_i ON fe_ev (i);
ALTER TABLE fe_ev ALTER n TYPE bigint;
ALTER TABLE fe_ev SET ACCESS METHOD heap;
DROP EVENT TRIGGER regress_fe_end;
DROP EVENT TRIGGER regress_fe_rewrite;

-- samples can be repeated, and differ by seed
SELECT count(*) = (SELECT count(*) FROM fe TABLESAMPLE BERNOULLI (30) REPEATABLE (1)) FROM fe TABLESAMPLE BERNOULLI (30) REPEATABLE (1);
SELECT count(*) BETWEEN 400 AND 800 FROM fe TABLESAMPLE BERNOULLI (30) REPEATABLE (7);
SELECT count(*) > 0 AND count(*) < 2000 FROM fe TABLESAMPLE SYSTEM (40) REPEATABLE (3);
SELECT * FROM inplace.check('fe');
DROP TABLE fe, fe_log, fe_ev CASCADE;
DROP FUNCTION fe_instead, fe_event, fe_rewrite;
