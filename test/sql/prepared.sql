-- Two-phase commit.
CREATE TABLE pr (id int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO pr SELECT g, 0, 't' FROM generate_series(1, 6) g;
BEGIN;
UPDATE pr SET v = 1, t = 'a longer text' WHERE id = 1;
DELETE FROM pr WHERE id = 2;
INSERT INTO pr VALUES (7, 1, 'new');
UPDATE pr SET id = 30 WHERE id = 3;
SELECT id FROM pr WHERE id = 4 FOR UPDATE;
SAVEPOINT a;
SELECT id FROM pr WHERE id = 5 FOR KEY SHARE;
PREPARE TRANSACTION 'inplace_1';
SELECT * FROM pr ORDER BY id;
-- its locks are held
SELECT id FROM pr ORDER BY id FOR UPDATE SKIP LOCKED;
SELECT id FROM pr ORDER BY id FOR SHARE SKIP LOCKED;
SELECT id FROM pr ORDER BY id FOR KEY SHARE SKIP LOCKED;
SELECT id FROM pr WHERE id = 1 FOR UPDATE NOWAIT;
SELECT id FROM pr WHERE id = 4 FOR KEY SHARE NOWAIT;
SELECT id FROM pr WHERE id = 5 FOR NO KEY UPDATE NOWAIT;
\set VERBOSITY terse
SET lock_timeout = '100ms';
UPDATE pr SET v = 5 WHERE id = 1;
DELETE FROM pr WHERE id = 5;
UPDATE pr SET v = 5 WHERE id = 5;
INSERT INTO pr VALUES (7, 0, 'dup');
RESET lock_timeout;
\set VERBOSITY default
\c -
SELECT id FROM pr WHERE id = 4 FOR KEY SHARE NOWAIT;
SELECT gid FROM pg_prepared_xacts WHERE database = current_database();
COMMIT PREPARED 'inplace_1';
SELECT * FROM pr ORDER BY id;
SELECT id FROM pr ORDER BY id FOR UPDATE NOWAIT;
-- rolled back
BEGIN;
UPDATE pr SET v = v + 100, t = repeat('x', 300);
SAVEPOINT a;
DELETE FROM pr WHERE id = 1;
ROLLBACK TO a;
DELETE FROM pr WHERE id = 4;
PREPARE TRANSACTION 'inplace_2';
SELECT * FROM pr ORDER BY id;
SELECT * FROM check_all();
VACUUM pr;
ROLLBACK PREPARED 'inplace_2';
SELECT * FROM pr ORDER BY id;
UPDATE pr SET v = v + 1;
DELETE FROM pr WHERE id = 4;
SELECT * FROM pr ORDER BY id;
-- DDL in it, and deferred triggers
BEGIN;
CREATE TABLE pr_new (a int) USING inplace;
INSERT INTO pr_new VALUES (1);
UPDATE pr_new SET a = 2;
ALTER TABLE pr ADD COLUMN more text DEFAULT 'more';
UPDATE pr SET more = 'changed' WHERE id = 1;
PREPARE TRANSACTION 'inplace_3';
COMMIT PREPARED 'inplace_3';
SELECT * FROM pr ORDER BY id;
SELECT * FROM pr_new;
BEGIN;
DROP TABLE pr_new;
TRUNCATE pr;
INSERT INTO pr VALUES (1, 1, 'after truncate');
PREPARE TRANSACTION 'inplace_4';
ROLLBACK PREPARED 'inplace_4';
SELECT * FROM pr ORDER BY id;
SELECT * FROM pr_new;
-- several lockers
BEGIN;
SELECT id FROM pr WHERE id = 1 FOR KEY SHARE;
PREPARE TRANSACTION 'inplace_5';
BEGIN;
SELECT id FROM pr WHERE id = 1 FOR SHARE;
PREPARE TRANSACTION 'inplace_6';
SELECT id FROM pr WHERE id = 1 FOR NO KEY UPDATE NOWAIT;
SELECT id FROM pr WHERE id = 1 FOR SHARE NOWAIT;
COMMIT PREPARED 'inplace_6';
UPDATE pr SET v = 77 WHERE id = 1 RETURNING id, v;
SELECT id FROM pr WHERE id = 1 FOR UPDATE NOWAIT;
ROLLBACK PREPARED 'inplace_5';
SELECT id, v FROM pr WHERE id = 1 FOR UPDATE NOWAIT;
-- locks of rows whose table has had other storage since
CREATE TABLE pr_locked (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO pr_locked SELECT g, 0 FROM generate_series(1, 4) g;
BEGIN;
SELECT id FROM pr_locked WHERE id = 2 FOR UPDATE;
ALTER TABLE pr_locked SET ACCESS METHOD heap;
PREPARE TRANSACTION 'inplace_7';
ROLLBACK PREPARED 'inplace_7';
BEGIN;
SELECT id FROM pr_locked WHERE id = 2 FOR UPDATE;
SAVEPOINT a;
SELECT id FROM pr_locked WHERE id = 3 FOR UPDATE;
TRUNCATE pr_locked;
INSERT INTO pr_locked VALUES (5, 0);
ROLLBACK TO a;
SELECT id FROM pr_locked WHERE id = 4 FOR NO KEY UPDATE;
PREPARE TRANSACTION 'inplace_8';
SELECT id FROM pr_locked ORDER BY id FOR KEY SHARE SKIP LOCKED;
SELECT id FROM pr_locked ORDER BY id FOR UPDATE SKIP LOCKED;
COMMIT PREPARED 'inplace_8';
-- one that was made in it
BEGIN;
CREATE TABLE pr_made (id int) USING inplace;
COPY pr_made FROM stdin (FREEZE);
1
2
\.
SELECT id FROM pr_made ORDER BY id FOR UPDATE;
TRUNCATE pr_made;
PREPARE TRANSACTION 'inplace_9';
COMMIT PREPARED 'inplace_9';
SELECT * FROM pr_made;
-- the locks of subtransactions, and what became of changes beside them
BEGIN;
SELECT id FROM pr_locked WHERE id = 1 FOR UPDATE;
SELECT id FROM pr_locked WHERE id = 3 FOR NO KEY UPDATE;
SAVEPOINT a;
UPDATE pr_locked SET v = 1 WHERE id IN (1, 3);
DELETE FROM pr_locked WHERE id = 1;
SELECT id FROM pr_locked WHERE id = 2 FOR UPDATE;
ROLLBACK TO a;
SAVEPOINT b;
SELECT id FROM pr_locked WHERE id = 3 FOR UPDATE;
RELEASE b;
SAVEPOINT c;
SELECT id FROM pr_locked WHERE id = 4 FOR UPDATE;
UPDATE pr_locked SET v = 2 WHERE id = 4;
PREPARE TRANSACTION 'inplace_10';
SELECT id FROM pr_locked ORDER BY id FOR KEY SHARE SKIP LOCKED;
ROLLBACK PREPARED 'inplace_10';
SELECT id, v FROM pr_locked ORDER BY id FOR UPDATE NOWAIT;

SELECT * FROM check_all();
