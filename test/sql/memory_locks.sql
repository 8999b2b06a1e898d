-- Row locks in memory: which they are, that they end with their (sub)transaction, and
-- that all others stand on the rows.
SET inplace.row_locks_in_memory = 4;
CREATE TABLE ml (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO ml SELECT g, 0 FROM generate_series(1, 10) g;
VACUUM (FREEZE) ml;
-- the rows that are locked: how, and is that on the page?
CREATE FUNCTION ml_locks(OUT id int, OUT modes text[], OUT on_page text)
RETURNS SETOF record LANGUAGE sql AS $$
	SELECT ml.id, l.modes, i.lock_mode
	FROM ml
	JOIN inplace.row_locks('ml') l ON l.locked_row = ml.ctid
	JOIN inplace.page_items('ml', 0) i ON '(0,' || i.item || ')' = ml.ctid::text
	ORDER BY 1
$$;
BEGIN;
SELECT id FROM ml WHERE id <= 6 ORDER BY id FOR UPDATE;
SELECT * FROM ml_locks();
-- what is locked in memory shows in xmax, too
SELECT id, xmax::text = pg_current_xact_id()::text AS mine FROM ml WHERE id IN (1, 6, 7) ORDER BY id;
ROLLBACK;
SELECT * FROM ml_locks();
-- share locks are on the page
BEGIN;
SELECT id FROM ml WHERE id = 1 FOR NO KEY UPDATE;
SELECT id FROM ml WHERE id = 2 FOR SHARE;
SELECT id FROM ml WHERE id = 3 FOR KEY SHARE;
SELECT * FROM ml_locks();
COMMIT;
-- a change is a lock as well: room for others
BEGIN;
SELECT id FROM ml WHERE id <= 4 ORDER BY id FOR UPDATE;
UPDATE ml SET v = v + 1 WHERE id <= 3;
SELECT id FROM ml WHERE id > 4 ORDER BY id FOR NO KEY UPDATE;
SELECT * FROM ml_locks();
ROLLBACK;
-- subtransactions: what is rolled back goes
BEGIN;
SAVEPOINT a;
SELECT id FROM ml WHERE id = 1 FOR NO KEY UPDATE;
SAVEPOINT b;
SELECT id FROM ml WHERE id = 1 FOR UPDATE;
SELECT id FROM ml WHERE id = 2 FOR UPDATE;
SELECT * FROM ml_locks();
ROLLBACK TO b;
SELECT * FROM ml_locks();
RELEASE a;
SELECT * FROM ml_locks();
-- the outer lock is there again when a change is rolled back
SAVEPOINT c;
UPDATE ml SET v = 100 WHERE id = 1;
ROLLBACK TO c;
SELECT * FROM ml_locks();
DELETE FROM ml WHERE id = 1;
ROLLBACK;
SELECT * FROM ml_locks();
-- ON CONFLICT DO UPDATE: no lock is left over, nor on the page
INSERT INTO ml SELECT g, 0 FROM generate_series(1, 10) g
ON CONFLICT (id) DO UPDATE SET v = ml.v + 1 RETURNING id, v, xmax = 0 AS inserted;
BEGIN;
INSERT INTO ml SELECT g, 0 FROM generate_series(1, 10) g
ON CONFLICT (id) DO UPDATE SET v = ml.v + 1 WHERE ml.id <> 3;
SELECT * FROM ml_locks();
COMMIT;
-- an old lock on the page, and a new one in memory
BEGIN;
SELECT id FROM ml WHERE id = 5 FOR SHARE;
COMMIT;
BEGIN;
SELECT id FROM ml WHERE id = 5 FOR UPDATE;
SELECT * FROM ml_locks();
UPDATE ml SET v = -1 WHERE id = 5;
COMMIT;
-- the old one may have been of several transactions
BEGIN;
SELECT id FROM ml WHERE id = 6 FOR KEY SHARE;
SAVEPOINT a;
SELECT id FROM ml WHERE id = 6 FOR SHARE;
SELECT multi, modes FROM inplace.row_locks('ml');
COMMIT;
BEGIN;
SELECT id FROM ml WHERE id = 6 FOR UPDATE;
SELECT multi, locker::text = pg_current_xact_id()::text AS mine, modes FROM inplace.row_locks('ml');
COMMIT;
-- our own share lock, made stronger
BEGIN;
SELECT id FROM ml WHERE id = 5 FOR KEY SHARE;
SELECT id FROM ml WHERE id = 5 FOR UPDATE;
SELECT * FROM ml_locks();
UPDATE ml SET v = -2 WHERE id = 5;
COMMIT;
-- the table is emptied, or written anew, by its locker
BEGIN;
SELECT id FROM ml WHERE id = 1 FOR UPDATE;
TRUNCATE ml;
INSERT INTO ml VALUES (1, 0);
UPDATE ml SET v = 1;
SELECT * FROM ml;
ROLLBACK;
BEGIN;
SELECT id FROM ml WHERE id = 10 FOR UPDATE;
ALTER TABLE ml ALTER v TYPE bigint;
UPDATE ml SET v = 1 WHERE id = 10;
COMMIT;
SELECT * FROM ml_locks();
-- none in memory
SET inplace.row_locks_in_memory = 0;
BEGIN;
SELECT id FROM ml WHERE id = 1 FOR UPDATE;
SELECT * FROM ml_locks();
-- the setting counts at once
SET LOCAL inplace.row_locks_in_memory = 64;
SELECT id FROM ml WHERE id = 2 FOR UPDATE;
SELECT * FROM ml_locks();
SET LOCAL inplace.row_locks_in_memory = 0;
UPDATE ml SET v = 7 WHERE id IN (1, 2);
COMMIT;
SELECT * FROM ml ORDER BY id LIMIT 2;
SELECT * FROM inplace.check('ml');
SET inplace.row_locks_in_memory = 65;
RESET inplace.row_locks_in_memory;
DROP FUNCTION ml_locks();
DROP TABLE ml;
