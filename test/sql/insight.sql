-- Views and functions that look inside.
CREATE TABLE ins (id int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO ins VALUES (1, 10, 'one'), (2, 20, NULL);
BEGIN;
UPDATE ins SET v = 11 WHERE id = 1;
SAVEPOINT a;
UPDATE ins SET v = 12, t = 'changed' WHERE id = 1;
DELETE FROM ins WHERE id = 2;
SELECT version, operation, status, tag, visible, changed, contents, lock_mode FROM inplace.versions('ins', '(0,1)') ORDER BY version;
SELECT version, operation, status, visible, contents FROM inplace.versions('ins', '(0,2)') ORDER BY version;
ROLLBACK TO a;
SELECT id FROM ins WHERE id = 2 FOR UPDATE;
SELECT operation, status, contents, lock_mode FROM inplace.versions('ins', '(0,2)') WHERE operation = 'lock';
UPDATE ins SET id = 3 WHERE id = 2;
SELECT version, operation, status, visible, contents, moved_to FROM inplace.versions('ins', '(0,2)') WHERE version = 0 AND operation <> 'lock';
SELECT version, operation, visible, contents FROM inplace.versions('ins', '(0,3)') WHERE version = 0 AND operation <> 'lock';
COMMIT;
SELECT version, operation, status, visible, contents FROM inplace.versions('ins', '(0,1)') WHERE version = 0;
SELECT item, state, natts, null_bits, data FROM inplace.page_items('ins', 0) WHERE item <> 2 ORDER BY item;
SELECT * FROM inplace.check('ins');
SELECT * FROM inplace.check('ins', false);
SELECT * FROM inplace.versions('ins', '(0,100)');
SELECT kind, size_bytes >= 0 AS size, used_bytes <= size_bytes AS used, free_extents <= extents AS free FROM inplace.undo ORDER BY kind;
SELECT inplace.undo_size() >= (SELECT sum(size_bytes) FROM inplace.undo WHERE kind = 'logged') AS undo_size;
-- who holds undo back
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 1 AS snapshot;
SELECT kind, pid = pg_backend_pid() AS own FROM inplace.undo_holders WHERE pid = pg_backend_pid();
COMMIT;
BEGIN;
UPDATE ins SET v = 0 WHERE id = 1;
PREPARE TRANSACTION 'inplace_insight';
SELECT kind, name, pid, holds_back FROM inplace.undo_holders WHERE kind = 'prepared transaction';
ROLLBACK PREPARED 'inplace_insight';
-- wrong input
CREATE TABLE ins_heap (a int PRIMARY KEY) USING heap;
CREATE TABLE ins_part (a int) PARTITION BY LIST (a);
CREATE VIEW ins_view AS SELECT 1 AS a;
\set VERBOSITY sqlstate
SELECT * FROM inplace.page_items('ins_heap', 0);
SELECT * FROM inplace.page_items('ins_part', 0);
SELECT * FROM inplace.page_items('ins_pkey', 0);
SELECT * FROM inplace.page_items('ins', 100);
SELECT * FROM inplace.page_items('ins', -1);
SELECT * FROM inplace.page_items('ins', 99999999999);
SELECT * FROM inplace.page_items('ins_view', 0);
SELECT * FROM inplace.versions('ins_heap', '(0,1)');
SELECT * FROM inplace.versions('ins', '(9,1)');
SELECT * FROM inplace.versions('inplace.undo_log', '(0,1)');
SELECT * FROM inplace.check('ins_heap');
SELECT * FROM inplace.check('inplace.undo_log');
\set VERBOSITY default
SELECT * FROM inplace.check(NULL);
SELECT * FROM inplace.page_items('ins', NULL);
-- privileges
CREATE ROLE inplace_reader;
SET ROLE inplace_reader;
SELECT * FROM inplace.page_items('ins', 0);
RESET ROLE;
GRANT pg_stat_scan_tables TO inplace_reader;
SET ROLE inplace_reader;
\set VERBOSITY sqlstate
SELECT * FROM inplace.page_items('ins', 0);
SELECT * FROM inplace.versions('ins', '(0,1)');
\set VERBOSITY default
SELECT * FROM inplace.check('ins');
RESET ROLE;
GRANT SELECT ON ins TO inplace_reader;
SET ROLE inplace_reader;
SELECT count(*) FROM inplace.page_items('ins', 0);
RESET ROLE;
ALTER TABLE ins ENABLE ROW LEVEL SECURITY;
SET ROLE inplace_reader;
\set VERBOSITY sqlstate
SELECT count(*) FROM inplace.page_items('ins', 0);
\set VERBOSITY default
RESET ROLE;
ALTER TABLE ins DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON ins FROM inplace_reader;
DROP ROLE inplace_reader;
-- what is no relation
SELECT * FROM inplace.page_items(0, 0);
SELECT * FROM inplace.versions(0, '(0,1)');
SELECT * FROM inplace.check(4294967295);
SELECT * FROM inplace.row_locks(4294967295);
SELECT * FROM inplace.visibility_summary(0);
SELECT inplace.set_freeze_options(4294967295, true);
SELECT inplace.set_index_method(4294967295, 'btree');
\set VERBOSITY sqlstate
SELECT * FROM inplace.check(0);
SELECT inplace.set_freeze_options(0, true);
SELECT inplace.set_index_method(0, 'btree');
SELECT inplace.convert(0);
SELECT * FROM inplace.lock_convertible(0);
\set VERBOSITY default
SELECT count(*) FROM inplace.convertible_indexes(0, 'btree');
-- A name in the text of a function means what the search path of its caller says,
-- and a type what the caller's temporary schema says first.  So a function has a path
-- of its own, with that last, or its types are qualified.
SELECT p.oid::regprocedure AS path_of_caller FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = 'inplace'::regnamespace AND l.lanname NOT IN ('c', 'internal')
	AND NOT coalesce(p.proconfig, '{}') @> '{"search_path=pg_catalog, pg_temp"}';
SELECT p.proname, m[1] AS not_qualified
FROM pg_proc p, regexp_matches(p.prosrc, '(::\s*(?!pg_catalog\.)\w+|\mcast\s*\(|^    (?!END|RETURN)\w+ (?:CONSTANT )?(?!pg_catalog\.)\w+(?:;| :=))', 'gn') m
WHERE p.pronamespace = 'inplace'::regnamespace AND p.proconfig IS NULL;
-- everything has a comment
SELECT p.proname FROM pg_proc p WHERE pronamespace = 'inplace'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL AND prokind = 'f';
SELECT relname FROM pg_class WHERE relnamespace = 'inplace'::regnamespace AND relkind IN ('r', 'm', 'v') AND obj_description(oid, 'pg_class') IS NULL;
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped
  WHERE relnamespace = 'inplace'::regnamespace AND relkind = 'v' AND col_description(c.oid, attnum) IS NULL;
SELECT amname FROM pg_am WHERE amname LIKE 'inplace%' AND obj_description(oid, 'pg_am') IS NULL;

SELECT * FROM check_all();
