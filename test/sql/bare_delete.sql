-- Deletes whose old header is in the new one: no undo; every kind of end.
CREATE TABLE bare (id int, v int) USING inplace;
INSERT INTO bare SELECT g, g FROM generate_series(1, 8) g;
CREATE VIEW bare_items AS
  SELECT item, array_remove(array_remove(flags, 'COMMITTED'), 'ABORTED') AS flags, cid, undo IS NOT NULL AS undo
  FROM inplace.page_items('bare', 0);
BEGIN;
DECLARE before CURSOR FOR SELECT * FROM bare ORDER BY id;
SAVEPOINT a;
UPDATE bare SET v = 0 WHERE id = 3;
DELETE FROM bare WHERE id <= 4;
SELECT item, flags, undo FROM bare_items WHERE item <= 4 ORDER BY item;
SELECT version, operation, status, visible, contents FROM inplace.versions('bare', '(0,1)') ORDER BY version;
SELECT * FROM inplace.check('bare');
SELECT sum(id) FROM bare;
FETCH ALL FROM before;
ROLLBACK TO a;
SELECT sum(id), sum(v) FROM bare;
DELETE FROM bare WHERE id = 1 RETURNING *;
INSERT INTO bare VALUES (1, -1);
COMMIT;
SELECT * FROM bare ORDER BY id, v;
SELECT * FROM inplace.check('bare');

-- rolled back: the next scan brings the rows back on their page
-- (unless the undo worker, which comes by twice a second, is there first: then once more)
VACUUM FREEZE bare;
DO $$
DECLARE
	marked bool;
BEGIN
	FOR i IN 1 .. 100 LOOP
		DELETE FROM bare;
		ASSERT NOT EXISTS (SELECT FROM bare);
		ROLLBACK;
		SELECT bool_and('DELETED' = ANY (flags)) INTO marked FROM bare_items;
		EXIT WHEN marked;
	END LOOP;
	RAISE INFO 'marked: %', marked;
END $$;
SELECT * FROM inplace.check('bare');
SELECT sum(id), sum(v) FROM bare;
SELECT DISTINCT flags FROM bare_items ORDER BY 1;
-- ... or VACUUM does, or who wants to change them
BEGIN; DELETE FROM bare; ROLLBACK;
VACUUM bare;
SELECT DISTINCT flags FROM bare_items ORDER BY 1;
BEGIN; DELETE FROM bare; ROLLBACK;
UPDATE bare SET v = v + 1 WHERE id = 5;
DELETE FROM bare WHERE id = 6;
SELECT * FROM bare ORDER BY id, v;

-- a locked row, and a late command, have undo
BEGIN;
SELECT id FROM bare WHERE id = 7 FOR KEY SHARE;
DELETE FROM bare WHERE id = 7;
SELECT flags, undo FROM bare_items WHERE item = 7;
ROLLBACK;
BEGIN;
DO $$ BEGIN FOR i IN 1 .. 12 LOOP INSERT INTO bare VALUES (100 + i, 0); END LOOP; END $$;
DELETE FROM bare WHERE id = 8;
SELECT flags, undo FROM bare_items WHERE item = 8;
SELECT version, operation, status, contents FROM inplace.versions('bare', '(0,8)') ORDER BY version;
ROLLBACK;
-- a command sees what was deleted by itself and later ones
BEGIN;
CREATE FUNCTION bare_count() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM bare';
CREATE FUNCTION bare_count_now() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM bare';
DELETE FROM bare WHERE id IN (2, 3) RETURNING id, bare_count();
SELECT bare_count(), bare_count_now();
ROLLBACK;

-- rewritten, with the delete in the same transaction
BEGIN;
DELETE FROM bare WHERE id = 2;
ALTER TABLE bare ADD COLUMN w int DEFAULT (random() * 0)::int;
SELECT count(*) FROM bare;
ROLLBACK;
SELECT count(*) FROM bare;

-- other storage, other partitions
CREATE TEMP TABLE bare_temp (a int) USING inplace;
CREATE UNLOGGED TABLE bare_unlogged (a int) USING inplace;
INSERT INTO bare_temp SELECT generate_series(1, 3);
INSERT INTO bare_unlogged SELECT generate_series(1, 3);
BEGIN; DELETE FROM bare_temp; DELETE FROM bare_unlogged; ROLLBACK;
SELECT count(*) FROM bare_temp;
SELECT count(*) FROM bare_unlogged;
SELECT undo, flags FROM inplace.page_items('bare_unlogged', 0);
CREATE TABLE bare_part (k int, v int) PARTITION BY LIST (k);
CREATE TABLE bare_part_1 PARTITION OF bare_part FOR VALUES IN (1) USING inplace;
CREATE TABLE bare_part_2 PARTITION OF bare_part FOR VALUES IN (2) USING inplace;
INSERT INTO bare_part VALUES (1, 1), (1, 2);
BEGIN;
UPDATE bare_part SET k = 2 WHERE v = 1;
SELECT flags, undo FROM inplace.page_items('bare_part_1', 0) ORDER BY item;
SELECT version, operation, status, contents FROM inplace.versions('bare_part_1', '(0,1)') ORDER BY version;
ROLLBACK;
UPDATE bare_part SET k = 2 WHERE v = 2;
SELECT tableoid::regclass, * FROM bare_part ORDER BY v;
SELECT * FROM inplace.check('bare_part_1');
DROP TABLE bare_part, bare_unlogged, bare_temp;
-- RETURNING has the deleter in xmax
CREATE TABLE bare_returning (a int) USING inplace;
INSERT INTO bare_returning VALUES (1), (2);
DELETE FROM bare_returning RETURNING a, xmin <> pg_current_xact_id()::xid AS xmin_ok, xmax = pg_current_xact_id()::xid AS xmax_ok;
DROP TABLE bare_returning;
DROP VIEW bare_items;
DROP TABLE bare;
