-- Temporary and unlogged tables.
CREATE TEMP TABLE tt (id int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO tt SELECT g, 0, repeat('t', g % 100) FROM generate_series(1, 2000) g;
UPDATE tt SET v = v + 1;
BEGIN;
UPDATE tt SET v = v + 1, t = t || 'longer';
DELETE FROM tt WHERE id % 2 = 0;
SAVEPOINT a;
UPDATE tt SET v = 100;
ROLLBACK TO a;
SELECT count(*), sum(v), sum(length(t)) FROM tt;
ROLLBACK;
SELECT count(*), sum(v), sum(length(t)) FROM tt;
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(v), sum(length(t)) FROM tt;
UPDATE tt SET v = -v, t = '';
UPDATE tt SET t = 'xx';
FETCH c;
COMMIT;
SELECT count(*), sum(v), sum(length(t)) FROM tt;
VACUUM tt;
VACUUM FULL tt;
ANALYZE tt;
SELECT count(*), sum(v), sum(length(t)) FROM tt;
DO $$
BEGIN
    FOR i IN 1..50 LOOP
        BEGIN
            UPDATE tt SET v = i WHERE id <= 100;
            IF i % 2 = 0 THEN RAISE 'undo'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END LOOP;
END $$;
SELECT v, count(*) FROM tt GROUP BY v ORDER BY v;
CREATE TEMP TABLE tt_drop (a int) USING inplace ON COMMIT DROP;
BEGIN;
CREATE TEMP TABLE tt_delete (a int, b text) USING inplace ON COMMIT DELETE ROWS;
CREATE TEMP TABLE tt_drop (a int) USING inplace ON COMMIT DROP;
INSERT INTO tt_delete VALUES (1, 'x');
INSERT INTO tt_drop VALUES (1);
UPDATE tt_delete SET a = 2;
SELECT * FROM tt_delete, tt_drop;
COMMIT;
SELECT * FROM tt_delete;
SELECT * FROM tt_drop;
INSERT INTO tt_delete VALUES (1, 'x');
SELECT * FROM tt_delete;
-- made in a subtransaction that is rolled back
BEGIN;
SAVEPOINT a;
CREATE TEMP TABLE tt_gone (a int) USING inplace;
INSERT INTO tt_gone VALUES (1);
UPDATE tt_gone SET a = 2;
ROLLBACK TO a;
COMMIT;
SELECT * FROM check_all();
DROP TABLE tt, tt_delete;
-- a new session begins afresh
CREATE TEMP TABLE tt (a int) USING inplace;
INSERT INTO tt VALUES (1);
UPDATE tt SET a = 2;
\c -
SELECT * FROM tt;
CREATE TEMP TABLE tt (a int, b text) USING inplace;
INSERT INTO tt VALUES (3, repeat('toast', 10000));
UPDATE tt SET a = 4;
UPDATE tt SET b = reverse(b);
SELECT a, length(b), left(b, 5) FROM tt;
SELECT * FROM check_all();
DISCARD TEMP;
SELECT * FROM tt;
CREATE TEMP TABLE tt (a int) USING inplace;
INSERT INTO tt VALUES (5);
UPDATE tt SET a = 6 RETURNING *;

CREATE UNLOGGED TABLE ul (id int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO ul SELECT g, 0, 'u' FROM generate_series(1, 1000) g;
UPDATE ul SET v = v + 1;
BEGIN;
UPDATE ul SET v = v + 1, t = 'longer ' || id;
DELETE FROM ul WHERE id > 500;
SELECT count(*), sum(v) FROM ul;
ROLLBACK;
SELECT count(*), sum(v) FROM ul;
ALTER TABLE ul SET LOGGED;
UPDATE ul SET v = v + 1;
SELECT count(*), sum(v) FROM ul;
ALTER TABLE ul SET UNLOGGED;
UPDATE ul SET v = v + 1;
VACUUM ul;
SELECT count(*), sum(v) FROM ul;
CREATE UNLOGGED TABLE ul_h (k int) USING heap;
INSERT INTO ul_h VALUES (1);
ALTER TABLE ul_h SET ACCESS METHOD inplace;
UPDATE ul_h SET k = 2;
ALTER TABLE ul_h SET LOGGED, SET ACCESS METHOD heap;
ALTER TABLE ul_h SET ACCESS METHOD inplace;
SELECT * FROM ul_h;
-- all three kinds in one transaction
CREATE TABLE lg (a int) USING inplace;
CREATE UNLOGGED TABLE ug (a int) USING inplace;
CREATE TEMP TABLE tp (a int) USING inplace;
INSERT INTO lg VALUES (1);
INSERT INTO ug VALUES (1);
INSERT INTO tp VALUES (1);
BEGIN;
UPDATE lg SET a = a + 1;
UPDATE ug SET a = a + 1;
UPDATE tp SET a = a + 1;
SAVEPOINT a;
UPDATE lg SET a = a + 1;
UPDATE ug SET a = a + 1;
UPDATE tp SET a = a + 1;
ROLLBACK TO a;
UPDATE tp SET a = a + 10;
SELECT lg.a, ug.a, tp.a FROM lg, ug, tp;
COMMIT;
SELECT lg.a, ug.a, tp.a FROM lg, ug, tp;
-- what may not refer to what
CREATE TEMP TABLE tp_ref (a int) USING inplace;
BEGIN;
UPDATE tp SET a = 0;
PREPARE TRANSACTION 'temp';

-- clustered between changes of one transaction, the last of which is undone
CREATE TEMP TABLE tc (id int PRIMARY KEY, a int) USING inplace;
INSERT INTO tc SELECT i, 0 FROM generate_series(1, 3) i;
BEGIN;
UPDATE tc SET a = 1;
CLUSTER tc USING tc_pkey;
SAVEPOINT s;
UPDATE tc SET a = 2;
ROLLBACK TO s;
COMMIT;
SELECT * FROM tc ORDER BY id;
UPDATE tc SET a = 5;
SELECT * FROM tc ORDER BY id;
SELECT * FROM inplace.check('tc');

SELECT * FROM check_all();
