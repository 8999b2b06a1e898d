-- Storage parameters, extension commands and privileges.
\set VERBOSITY sqlstate
CREATE TABLE opt (i int) USING inplace WITH (fillfactor = 5);
CREATE TABLE opt (i int) USING inplace WITH (fillfactor = 101);
CREATE TABLE opt (i int) USING inplace WITH (no_such_option = 1);
CREATE TABLE opt (i int) USING inplace WITH (autovacuum_enabled = perhaps);
CREATE TABLE opt (i int) USING inplace WITH (toast.no_such_option = 1);
CREATE TABLE opt (i int) USING no_such_method;
CREATE VIEW opt AS SELECT 1 AS i;
ALTER VIEW opt SET ACCESS METHOD inplace;
DROP VIEW opt;
\set VERBOSITY terse
-- fillfactor is kept to, by INSERT and by COPY; later updates find room
CREATE TABLE opt (i int, v text) USING inplace WITH (fillfactor = 50, toast.autovacuum_enabled = off, autovacuum_vacuum_scale_factor = 0.4, parallel_workers = 3);
INSERT INTO opt SELECT g, repeat('x', 100) FROM generate_series(1, 1000) g;
SELECT pg_relation_size('opt') / 8192 BETWEEN 28 AND 40 AS about_half;
SELECT reloptions FROM pg_class WHERE oid = 'opt'::regclass;
SELECT reloptions FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'opt'::regclass);
UPDATE opt SET v = v || v;
SELECT pg_relation_size('opt') / 8192 BETWEEN 28 AND 40 AS still;
ALTER TABLE opt SET (fillfactor = 100), RESET (parallel_workers);
ALTER TABLE opt SET (fillfactor = 1);
TRUNCATE opt;
INSERT INTO opt SELECT g, repeat('x', 100) FROM generate_series(1, 1000) g;
SELECT pg_relation_size('opt') / 8192 BETWEEN 12 AND 19 AS full_pages;
-- autovacuum's own thresholds are those of heap tables
SELECT reloptions FROM pg_class WHERE oid = 'opt'::regclass;

-- settings, by those who may
ALTER SYSTEM SET inplace.undo_worker_delay = '1 day';
\set VERBOSITY sqlstate
ALTER SYSTEM SET inplace.undo_limit = -1;
\set VERBOSITY terse
SET inplace.undo_limit = '10MB';
SET inplace.undo_extents = 5;
ALTER SYSTEM SET inplace.undo_worker_delay = '400ms';
ALTER SYSTEM RESET inplace.undo_worker_delay;

-- the extension
ALTER EXTENSION inplace UPDATE;
ALTER EXTENSION inplace UPDATE TO 'no such version';
ALTER EXTENSION inplace SET SCHEMA public;
ALTER EXTENSION inplace DROP MATERIALIZED VIEW inplace.undo_log;
ALTER EXTENSION inplace ADD MATERIALIZED VIEW inplace.undo_log;
DROP EXTENSION inplace;
DROP ACCESS METHOD inplace;
CREATE EXTENSION inplace;

-- who may call what
CREATE ROLE regress_ip_plain;
CREATE ROLE regress_ip_monitor IN ROLE pg_monitor;
CREATE ROLE regress_ip_stats IN ROLE pg_read_all_stats;
CREATE ROLE regress_ip_scan IN ROLE pg_stat_scan_tables;
SELECT r.name, f.name, has_function_privilege(r.name, f.name, 'EXECUTE') AS may
FROM (VALUES ('inplace.page_items(regclass, bigint)'), ('inplace.versions(regclass, tid)'), ('inplace.check(regclass, boolean)'),
	('inplace.mirror_opclasses()')) f (name),
	(VALUES (1, 'regress_ip_plain'), (2, 'regress_ip_monitor'), (3, 'regress_ip_stats'), (4, 'regress_ip_scan')) r (n, name)
ORDER BY f.name, r.n;
SELECT r.name, v.name, has_table_privilege(r.name, v.name, 'SELECT') AS may
FROM (VALUES ('inplace.undo'), ('inplace.undo_holders'), ('inplace.stat_tables'), ('inplace.stat_freeze'), ('inplace.undo_log')) v (name),
	(VALUES (1, 'regress_ip_plain'), (2, 'regress_ip_monitor'), (3, 'regress_ip_stats')) r (n, name)
ORDER BY v.name, r.n;
CREATE TABLE secret (i int, v text) USING inplace;
INSERT INTO secret VALUES (1, 'secret');
SET ROLE regress_ip_plain;
SELECT * FROM inplace.page_items('secret', 0);
SELECT * FROM inplace.row_locks('secret');
SELECT count(*) > 0 FROM inplace.undo;
SELECT count(*) FROM inplace.undo_holders;
SELECT * FROM inplace.undo_log;
SELECT inplace.convert('secret');
SELECT * FROM secret;
CREATE TEMP TABLE mine (i int) USING inplace;
INSERT INTO mine VALUES (1);
SELECT * FROM inplace.check('mine');
DROP TABLE mine;
SET ROLE regress_ip_scan;
SELECT count(*) FROM inplace.page_items('secret', 0);
SELECT * FROM inplace.check('secret');
SELECT * FROM inplace.row_locks('secret');
SELECT version FROM inplace.versions('secret', '(0,1)');
SET ROLE regress_ip_monitor;
SELECT count(*) >= 0 FROM inplace.undo_holders;
RESET ROLE;
-- row level security and column privileges
GRANT SELECT (i) ON secret TO regress_ip_plain;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON secret USING (i > 1);
INSERT INTO secret VALUES (2, 'open');
SET ROLE regress_ip_plain;
SELECT i FROM secret;
SELECT v FROM secret;
UPDATE secret SET i = 3;
RESET ROLE;
GRANT UPDATE (i) ON secret TO regress_ip_plain;
SET ROLE regress_ip_plain;
UPDATE secret SET i = 0 WHERE i = 2;
UPDATE secret SET i = i + 10;
RESET ROLE;
SELECT * FROM secret ORDER BY i;
DROP TABLE secret, opt;
DROP ROLE regress_ip_plain, regress_ip_monitor, regress_ip_stats, regress_ip_scan;
