-- Undo that was not reserved is not written, wherever the extent stands.  On servers with
-- assertions inplace_test.undo_excess makes each change ask for so many bytes more than it
-- writes, which is too much if the room for the change is what it takes, and no more.
SET default_table_access_method = inplace;
SET inplace.default_index_method = btree;
CREATE TABLE roomy (id int, k int, v text) WITH (fillfactor = 50);
CREATE INDEX ON roomy (k);
INSERT INTO roomy SELECT i, i, 'x' FROM generate_series(1, 10) i;
CREATE TEMP TABLE roomy_temp (id int, v int);
INSERT INTO roomy_temp VALUES (1, 1);
CREATE FUNCTION refused(statement text) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('inplace_test.undo_excess', '9000', true);
	EXECUTE statement;
	PERFORM set_config('inplace_test.undo_excess', '0', true);
	RETURN NOT current_setting('debug_assertions')::bool;
EXCEPTION WHEN internal_error THEN
	RETURN sqlerrm LIKE 'undo of % bytes for relation "roomy%" was not reserved';
END $$;
-- a record of any length fits these
BEGIN;
SELECT refused('UPDATE roomy SET v = ''y'' WHERE id = 1') AS in_place,
	refused('UPDATE roomy SET k = 100 WHERE id = 2') AS moved,
	refused('UPDATE roomy_temp SET v = 2') AS temporary;
ROLLBACK;
BEGIN;
UPDATE roomy SET v = 'z' WHERE id = 3;
SELECT refused('DELETE FROM roomy WHERE id = 3') AS deleted;
ROLLBACK;
SELECT * FROM roomy ORDER BY id LIMIT 3;
DROP TABLE roomy, roomy_temp;
DROP FUNCTION refused;
RESET inplace.default_index_method;
