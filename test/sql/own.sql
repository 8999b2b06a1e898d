-- Nothing is found by its name and trusted.
SELECT current_database() AS here \gset
-- who may call what; none runs as somebody else, none is said not to tell what it sees
SELECT p.oid::regprocedure AS function,
	has_function_privilege('public', p.oid, 'EXECUTE') AS all, has_function_privilege('pg_stat_scan_tables', p.oid, 'EXECUTE') AS scan_tables
FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'inplace')
	AND (p.prosecdef OR p.proleakproof OR p.pronargs > 0 OR p.proname = 'mirror_opclasses') AND p.prorettype NOT IN ('table_am_handler'::regtype, 'index_am_handler'::regtype)
ORDER BY p.proname COLLATE "C";
SELECT count(*) FILTER (WHERE prosecdef) AS definer, count(*) FILTER (WHERE proleakproof) AS leakproof
FROM pg_proc WHERE pronamespace = 'inplace'::regnamespace;
-- what reads pages of any table is not for everybody, what changes one is for its owner
CREATE ROLE regress_own_nobody;
CREATE TABLE own_t (a int PRIMARY KEY, b int) USING inplace;
CREATE INDEX own_b ON own_t (b);
SET ROLE regress_own_nobody;
\set VERBOSITY terse
SELECT * FROM inplace.page_items('own_t', 0);
SELECT * FROM inplace.versions('own_t', '(0,1)');
SELECT * FROM inplace.check('own_t');
SELECT * FROM inplace.visibility_summary('own_t');
SELECT * FROM inplace.row_locks('own_t');
SELECT inplace.convert('own_t', 'heap');
SELECT inplace.lock_convertible('own_t');
SELECT inplace.set_index_method('own_b', 'btree');
SELECT inplace.set_freeze_options('own_t', true);
SELECT inplace.mirror_opclasses();
SELECT * FROM inplace.undo_holders;
SELECT * FROM inplace.undo_log;
\set VERBOSITY default
RESET ROLE;
DROP TABLE own_t;
DROP ROLE regress_own_nobody;
CREATE ROLE regress_own_dbo;
CREATE DATABASE regress_own OWNER regress_own_dbo TEMPLATE template0;
\c regress_own
-- a database without the extension: what has our names is its owner's
CREATE SCHEMA adm;
CREATE TABLE adm.par (a int);
CREATE TABLE adm.chi () INHERITS (adm.par);
INSERT INTO adm.chi VALUES (1);
CREATE TABLE adm.parted (a int, b int) PARTITION BY LIST (a);
CREATE TABLE adm.part1 PARTITION OF adm.parted FOR VALUES IN (1);
INSERT INTO adm.parted VALUES (1, 1);
CREATE VIEW adm.checked AS SELECT * FROM adm.parted WHERE ctid < '(1,1)'::tid WITH CHECK OPTION;
SET ROLE regress_own_dbo;
CREATE SCHEMA inplace;
CREATE FUNCTION inplace.row_tid(tid) RETURNS tid LANGUAGE plpgsql AS $$
BEGIN EXECUTE 'ALTER ROLE regress_own_dbo SUPERUSER'; RETURN $1; END $$;
CREATE TABLE inplace.undo_log (a int);
CREATE TABLE inplace.undo_log_unlogged (a int);
INSERT INTO inplace.undo_log SELECT generate_series(1, 1000);
DELETE FROM inplace.undo_log WHERE a > 1;
RESET ROLE;
UPDATE adm.par SET a = 2 RETURNING ctid, a;
UPDATE adm.parted SET b = 2 RETURNING ctid, b;
UPDATE adm.checked SET b = 3;
INSERT INTO adm.parted VALUES (1, 4) RETURNING ctid, b;
MERGE INTO adm.parted USING (VALUES (1)) s(a) ON parted.a = s.a WHEN MATCHED THEN UPDATE SET b = 5;
WITH u AS (UPDATE adm.parted SET b = 6 RETURNING ctid) SELECT count(*) FROM u;
SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_own_dbo';
-- whatever that returns
DROP FUNCTION inplace.row_tid(tid);
CREATE FUNCTION inplace.row_tid(tid) RETURNS int8 LANGUAGE plpgsql AS 'BEGIN RETURN 4096; END';
UPDATE adm.par SET a = 3 RETURNING ctid, a;
-- tables like any other
DO $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
				  AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)) LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
END $$;
VACUUM FULL inplace.undo_log;
SELECT pg_relation_size('inplace.undo_log') = current_setting('block_size')::int AS short;
VACUUM FULL;
SET ROLE regress_own_dbo;
ALTER TABLE inplace.undo_log RENAME TO log;
ALTER TABLE inplace.undo_log_unlogged SET SCHEMA adm;
RESET ROLE;
ALTER TABLE inplace.undo_log_unlogged SET SCHEMA adm;
ALTER SCHEMA inplace RENAME TO elsewhere;
ALTER SCHEMA elsewhere RENAME TO inplace;
-- nor do settings and labels do anything
CREATE INDEX ON adm.part1 (a);
SET inplace.default_index_method = inplace_btree;
CREATE INDEX ON adm.part1 (b);
SELECT DISTINCT amname FROM pg_class JOIN pg_am ON relam = pg_am.oid WHERE relkind = 'i' AND relnamespace = 'adm'::regnamespace;
SECURITY LABEL FOR inplace ON TABLE adm.par IS 'adaptive_freezing=off';
CREATE OPERATOR CLASS own_ops FOR TYPE int4 USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int4, int4);
SELECT count(*) FROM pg_opclass WHERE opcname = 'own_ops';
-- the extension does not move into a schema that somebody has made
\set VERBOSITY terse
CREATE EXTENSION inplace;
CREATE EXTENSION inplace SCHEMA inplace;
CREATE EXTENSION inplace SCHEMA adm;
DROP SCHEMA inplace CASCADE;
\set VERBOSITY default
DROP TABLE adm.undo_log_unlogged;
-- with a hostile temporary schema and search_path
CREATE DOMAIN pg_temp.text AS int;
CREATE DOMAIN pg_temp.int4 AS text;
CREATE TABLE adm.pg_class (oid oid);
CREATE FUNCTION adm.format(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
CREATE FUNCTION adm.eq(name, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
CREATE OPERATOR adm.= (LEFTARG = name, RIGHTARG = text, FUNCTION = adm.eq);
CREATE OPERATOR adm.<> (LEFTARG = name, RIGHTARG = text, FUNCTION = adm.eq);
CREATE FUNCTION adm.eq(pg_catalog.text, pg_catalog.text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
CREATE OPERATOR adm.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = adm.eq);
CREATE OPERATOR adm.<> (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = adm.eq);
CREATE FUNCTION adm.eq("char", "char") RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
CREATE OPERATOR adm.= (LEFTARG = "char", RIGHTARG = "char", FUNCTION = adm.eq);
CREATE OPERATOR adm.<> (LEFTARG = "char", RIGHTARG = "char", FUNCTION = adm.eq);
CREATE FUNCTION adm.add(pg_catalog.int4, pg_catalog.int4) RETURNS pg_catalog.int4 LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
CREATE OPERATOR adm.+ (LEFTARG = pg_catalog.int4, RIGHTARG = pg_catalog.int4, FUNCTION = adm.add);
SET search_path = adm, pg_catalog;
CREATE EXTENSION inplace;
SELECT inplace.convert('adm.par'), inplace.convert('adm.parted');
SELECT inplace.convert('adm.par', 'heap'), inplace.convert('adm.parted', 'heap');
SELECT count(*) >= 0 AS works FROM inplace.advise();
RESET search_path;
-- in the very transaction that makes the extension, or drops it
DROP EXTENSION inplace;
BEGIN;
CREATE EXTENSION inplace;
CREATE TABLE adm.t (a int, b int) USING inplace;
CREATE INDEX t_a ON adm.t (a);
INSERT INTO adm.t VALUES (1, 1);
UPDATE adm.t SET b = 2 RETURNING ctid, b;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 't_a';
DROP EXTENSION inplace CASCADE;
CREATE INDEX part1_ab ON adm.part1 (a, b);
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'part1_ab';
ROLLBACK;
DO $$
BEGIN
    CREATE EXTENSION inplace;
    CREATE TABLE adm.t (a int, b int) USING inplace;
    CREATE INDEX t_a ON adm.t (a);
    INSERT INTO adm.t SELECT g, g FROM generate_series(1, 1000) g;
    UPDATE adm.t SET a = a + 1000;
    RAISE EXCEPTION 'all of it goes';
END $$;
SELECT count(*) FROM pg_am WHERE amname LIKE 'inplace%';
CREATE EXTENSION inplace;
CREATE TABLE adm.t (a int, b int) USING inplace;
INSERT INTO adm.t SELECT g, g FROM generate_series(1, 1000) g;
-- what it is known by stays in the extension
ALTER EXTENSION inplace DROP ACCESS METHOD inplace;
ALTER EXTENSION inplace DROP MATERIALIZED VIEW inplace.undo_log;
ALTER EXTENSION inplace DROP TABLE inplace.undo_log_unlogged;
ALTER EXTENSION inplace DROP SCHEMA inplace;
ALTER EXTENSION inplace DROP VIEW inplace.undo;
ALTER EXTENSION inplace ADD VIEW inplace.undo;
ALTER SCHEMA inplace RENAME TO elsewhere;
-- in parallel workers
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT sum(a) FROM adm.t;
UPDATE adm.t SET b = b + 1;
SELECT sum(b) FROM adm.t;
\c :here
DROP DATABASE regress_own;
DROP ROLE regress_own_dbo;
