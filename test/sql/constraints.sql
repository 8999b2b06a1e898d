-- Unique, exclusion, check and NOT NULL constraints, immediate and deferred.
CREATE TABLE cn (id int PRIMARY KEY, u int UNIQUE, d int UNIQUE DEFERRABLE INITIALLY DEFERRED, c int CHECK (c < 100), nn int NOT NULL) USING inplace;
INSERT INTO cn SELECT g, g, g, g, g FROM generate_series(1, 5) g;
INSERT INTO cn VALUES (6, 5, 6, 6, 6);
UPDATE cn SET u = 1 WHERE id = 2;
UPDATE cn SET u = NULL WHERE id IN (1, 2);
UPDATE cn SET c = c * 30;
UPDATE cn SET nn = NULL WHERE id = 1;
-- the key is free again after delete, update, rollback
DELETE FROM cn WHERE id = 5;
INSERT INTO cn VALUES (5, 5, 5, 5, 5);
UPDATE cn SET u = 50 WHERE id = 5;
UPDATE cn SET u = 5 WHERE id = 4;
UPDATE cn SET u = 5 WHERE id = 5;
BEGIN;
UPDATE cn SET u = 500 WHERE id = 4;
INSERT INTO cn VALUES (7, 5, 7, 7, 7);
ROLLBACK;
INSERT INTO cn VALUES (7, 5, 7, 7, 7);
INSERT INTO cn VALUES (7, 500, 7, 7, 7);
-- swaps, in one command and deferred
UPDATE cn SET u = CASE id WHEN 4 THEN 50 ELSE 5 END WHERE id IN (4, 5);
UPDATE cn SET d = d + 1;
BEGIN;
UPDATE cn SET d = 3 WHERE id = 1;
UPDATE cn SET d = 2 WHERE id = 2;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
BEGIN;
UPDATE cn SET d = 3 WHERE id = 1;
UPDATE cn SET d = 2 WHERE id = 2;
SET CONSTRAINTS ALL IMMEDIATE;
COMMIT;
BEGIN;
INSERT INTO cn VALUES (8, 8, 4, 8, 8);
UPDATE cn SET d = 80 WHERE id = 8;
UPDATE cn SET d = 4 WHERE id = 8;
DELETE FROM cn WHERE id = 3;
COMMIT;
BEGIN;
INSERT INTO cn VALUES (9, 9, 4, 9, 9);
COMMIT;
-- a deferred duplicate whose row is changed again, in place, or locked
BEGIN;
INSERT INTO cn VALUES (9, 9, 4, 9, 9);
UPDATE cn SET c = 90 WHERE id = 9;
COMMIT;
BEGIN;
INSERT INTO cn VALUES (9, 9, 4, 9, 9);
UPDATE cn SET c = 90 WHERE id = 9;
UPDATE cn SET c = 91 WHERE id = 8;
SELECT id FROM cn WHERE id = 9 FOR UPDATE;
DELETE FROM cn WHERE id = 8;
COMMIT;
SELECT * FROM cn ORDER BY id;
-- the primary key shifts
UPDATE cn SET id = id + 1;
UPDATE cn SET id = id - 1000;
SELECT id, u, d FROM cn ORDER BY id;
-- exclusion
CREATE TABLE cn_ex (room int, during int4range, note text, EXCLUDE USING gist (during WITH &&) WHERE (room = 1),
    CONSTRAINT cn_ex_def EXCLUDE USING hash (note WITH =) DEFERRABLE INITIALLY DEFERRED) USING inplace;
INSERT INTO cn_ex VALUES (1, '[1,5)', 'a'), (1, '[5,9)', 'b'), (2, '[1,9)', 'c');
INSERT INTO cn_ex VALUES (1, '[4,6)', 'd');
UPDATE cn_ex SET room = 1 WHERE room = 2;
UPDATE cn_ex SET during = '[1,6)' WHERE note = 'a';
UPDATE cn_ex SET during = '[1,4)' WHERE note = 'a';
UPDATE cn_ex SET during = '[4,9)' WHERE note = 'b';
BEGIN;
UPDATE cn_ex SET note = 'b' WHERE note = 'a';
UPDATE cn_ex SET note = 'x' WHERE during = '[4,9)';
COMMIT;
BEGIN;
UPDATE cn_ex SET note = 'c' WHERE note = 'x';
COMMIT;
SELECT * FROM cn_ex ORDER BY note;
-- by the method itself: the executor asks it, so the row moves
CREATE TABLE cn_exb (id int, k int, v int, EXCLUDE USING inplace_btree (k WITH =) WHERE (v > 0)) USING inplace;
INSERT INTO cn_exb VALUES (1, 1, 1), (2, 2, 1), (3, 1, 0);
UPDATE cn_exb SET k = 1 WHERE id = 2;
UPDATE cn_exb SET v = 1 WHERE id = 3;
UPDATE cn_exb SET k = 3 WHERE id = 1;
UPDATE cn_exb SET v = 1 WHERE id = 3;
SELECT * FROM cn_exb ORDER BY id;
-- adding constraints to a table with changed rows
CREATE TABLE cn_add (k int, v int) USING inplace;
INSERT INTO cn_add SELECT g, g % 3 FROM generate_series(1, 30) g;
UPDATE cn_add SET v = 5;
UPDATE cn_add SET v = k WHERE k < 20;
ALTER TABLE cn_add ADD UNIQUE (v);
ALTER TABLE cn_add ADD CHECK (v < 19);
ALTER TABLE cn_add ADD CHECK (v < 18) NOT VALID;
UPDATE cn_add SET v = k WHERE k >= 20;
DELETE FROM cn_add WHERE v >= 18;
ALTER TABLE cn_add ADD UNIQUE (v);
ALTER TABLE cn_add VALIDATE CONSTRAINT cn_add_v_check;
ALTER TABLE cn_add ALTER k SET NOT NULL;
ALTER TABLE cn_add ADD PRIMARY KEY (k);
SELECT count(*) FROM cn_add;
CREATE UNIQUE INDEX cn_add_i ON cn_add ((v % 5));
CREATE UNIQUE INDEX cn_add_n ON cn_add ((nullif(v, v)));
CREATE UNIQUE INDEX cn_add_nd ON cn_add ((nullif(v, v))) NULLS NOT DISTINCT;

SELECT * FROM check_all();
