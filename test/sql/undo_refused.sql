-- The undo relations are out of reach of SQL.
\set VERBOSITY sqlstate
SELECT * FROM inplace.undo_log;
SELECT count(*) FROM inplace.undo_log_unlogged;
SELECT * FROM inplace.undo_log TABLESAMPLE SYSTEM (10);
SELECT * FROM inplace.undo_log WHERE ctid = '(0,1)';
INSERT INTO inplace.undo_log DEFAULT VALUES;
DELETE FROM inplace.undo_log;
TRUNCATE inplace.undo_log;
ALTER TABLE inplace.undo_log ADD COLUMN a int;
ALTER TABLE inplace.undo_log SET ACCESS METHOD heap;
ALTER TABLE inplace.undo_log SET UNLOGGED;
ALTER TABLE inplace.undo_log SET TABLESPACE pg_global;
BEGIN;
ALTER TABLE inplace.undo_log RENAME TO other;
ROLLBACK;
ALTER MATERIALIZED VIEW inplace.undo_log RENAME TO other;
ALTER MATERIALIZED VIEW inplace.undo_log SET SCHEMA public;
ALTER INDEX inplace.undo_log RENAME TO other;
ALTER INDEX inplace.undo_log_unlogged RENAME TO other;
REFRESH MATERIALIZED VIEW inplace.undo_log;
REFRESH MATERIALIZED VIEW inplace.undo_log WITH NO DATA;
INSERT INTO inplace.undo_log_unlogged DEFAULT VALUES;
DELETE FROM inplace.undo_log_unlogged;
TRUNCATE inplace.undo_log_unlogged;
COPY inplace.undo_log_unlogged TO stdout;
ALTER TABLE inplace.undo_log_unlogged SET ACCESS METHOD heap;
ALTER TABLE inplace.undo_log_unlogged SET LOGGED;
DROP MATERIALIZED VIEW inplace.undo_log;
DROP TABLE inplace.undo_log;
DROP TABLE inplace.undo_log_unlogged CASCADE;
CLUSTER inplace.undo_log;
REINDEX TABLE inplace.undo_log;
\set VERBOSITY default
-- VACUUM and ANALYZE pass over them
VACUUM inplace.undo_log;
VACUUM FULL inplace.undo_log;
VACUUM FULL inplace.undo_log_unlogged;
VACUUM (FULL, ANALYZE) inplace.undo_log, inplace.undo_log_unlogged;
VACUUM (FREEZE, ANALYZE) inplace.undo_log, inplace.undo_log_unlogged;
ANALYZE inplace.undo_log;
VACUUM;
ANALYZE;
-- they are of no xid's age
SELECT relname, relfrozenxid, relminmxid FROM pg_class WHERE relnamespace = 'inplace'::regnamespace AND relkind IN ('r', 'm') ORDER BY 1;
-- a publication of all tables is without them
SET client_min_messages = error;
CREATE PUBLICATION ur_all FOR ALL TABLES;
CREATE PUBLICATION ur_schema FOR TABLES IN SCHEMA inplace;
SELECT pubname, tablename FROM pg_publication_tables WHERE schemaname = 'inplace';
CREATE PUBLICATION ur_one FOR TABLE inplace.undo_log;
CREATE PUBLICATION ur_one FOR TABLE inplace.undo_log_unlogged;
DROP PUBLICATION ur_all, ur_schema;
RESET client_min_messages;
-- the extension goes only with its tables
CREATE TABLE ur (a int) USING inplace;
INSERT INTO ur VALUES (1);
UPDATE ur SET a = 2;
\set VERBOSITY sqlstate
DROP EXTENSION inplace;
DROP ACCESS METHOD inplace;
DROP SCHEMA inplace;
ALTER SCHEMA inplace RENAME TO elsewhere;
\set VERBOSITY default
SELECT * FROM ur;
SELECT inplace.undo_size() > 0;
-- privileges
CREATE ROLE inplace_someone;
SET ROLE inplace_someone;
SELECT * FROM inplace.undo_log;
SELECT count(*) FROM inplace.undo;
SELECT count(*) FROM inplace.undo_holders;
SELECT count(*) > 0 FROM inplace.stat_tables;
SELECT * FROM inplace.check('ur');
RESET ROLE;
DROP ROLE inplace_someone;

SELECT * FROM check_all();
