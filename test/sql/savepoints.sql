-- Subtransactions: nested, rolled back, released, with every kind of change.
CREATE TABLE sp (id int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO sp SELECT g, 0, repeat('s', 50) FROM generate_series(1, 5) g;
BEGIN;
UPDATE sp SET v = 1, t = 'short';
SAVEPOINT a;
UPDATE sp SET v = 2, t = repeat('l', 200);
SAVEPOINT b;
UPDATE sp SET v = 3, t = '';
DELETE FROM sp WHERE id = 1;
INSERT INTO sp VALUES (6, 3, 'in b');
SAVEPOINT c;
UPDATE sp SET id = id + 10;
SELECT id, v, length(t) FROM sp ORDER BY id;
ROLLBACK TO c;
SELECT id, v, length(t) FROM sp ORDER BY id;
ROLLBACK TO b;
SELECT id, v, length(t) FROM sp ORDER BY id;
ROLLBACK TO a;
SELECT id, v, t FROM sp ORDER BY id;
UPDATE sp SET v = 4, t = repeat('g', 100) WHERE id > 2;
RELEASE a;
SELECT id, v, length(t) FROM sp ORDER BY id;
ROLLBACK;
SELECT id, v, length(t) FROM sp ORDER BY id;

-- changes over changes that were rolled back, in the same transaction
BEGIN;
SAVEPOINT a;
UPDATE sp SET t = repeat('a', 1000);
ROLLBACK TO a;
UPDATE sp SET v = 10;
SAVEPOINT a2;
DELETE FROM sp;
ROLLBACK TO a2;
UPDATE sp SET v = v + 1;
SAVEPOINT a3;
UPDATE sp SET v = v + 1000;
ROLLBACK TO a3;
DELETE FROM sp WHERE id = 5;
SELECT id, v, length(t) FROM sp ORDER BY id;
COMMIT;
SELECT id, v, length(t) FROM sp ORDER BY id;

-- deletes and inserts of the same key
BEGIN;
SAVEPOINT a;
DELETE FROM sp WHERE id = 4;
INSERT INTO sp VALUES (4, -1, 'new');
SAVEPOINT b;
DELETE FROM sp WHERE id = 4;
ROLLBACK TO b;
SELECT * FROM sp WHERE id = 4;
ROLLBACK TO a;
SELECT id, v, length(t) FROM sp WHERE id = 4;
INSERT INTO sp VALUES (4, 0, 'dup');
ROLLBACK TO a;
DELETE FROM sp WHERE id = 4;
RELEASE a;
INSERT INTO sp VALUES (4, 44, 'new');
COMMIT;
SELECT id, v, length(t) FROM sp ORDER BY id;

-- locks
BEGIN;
SELECT id FROM sp WHERE id = 1 FOR KEY SHARE;
SAVEPOINT a;
SELECT id FROM sp WHERE id = 1 FOR UPDATE;
SAVEPOINT b;
UPDATE sp SET v = -5 WHERE id = 1;
ROLLBACK TO b;
SELECT v FROM sp WHERE id = 1 FOR NO KEY UPDATE;
ROLLBACK TO a;
SELECT v FROM sp WHERE id = 1 FOR SHARE;
UPDATE sp SET v = v + 1 WHERE id = 1;
SAVEPOINT c;
DELETE FROM sp WHERE id = 1;
ROLLBACK TO c;
COMMIT;
SELECT id, v FROM sp WHERE id = 1;

-- deep, in functions
CREATE FUNCTION sp_deep(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    IF n = 0 THEN RETURN (SELECT v FROM sp WHERE id = 2); END IF;
    BEGIN
        UPDATE sp SET v = n, t = repeat('d', n) WHERE id = 2;
        PERFORM sp_deep(n - 1);
        IF n % 2 = 0 THEN RAISE 'undo'; END IF;
    EXCEPTION WHEN raise_exception THEN
        UPDATE sp SET t = t || '!' WHERE id = 2;
    END;
    RETURN (SELECT v FROM sp WHERE id = 2);
END $$;
SELECT sp_deep(31);
SELECT v, t FROM sp WHERE id = 2;
SELECT sp_deep(30);
SELECT v, t FROM sp WHERE id = 2;
-- many subtransactions of one transaction
BEGIN;
DO $$
BEGIN
    FOR i IN 1..300 LOOP
        BEGIN
            UPDATE sp SET v = i, t = repeat('m', i % 60) WHERE id = 3;
            INSERT INTO sp VALUES (1000 + i, i, 'many');
            IF i % 3 = 0 THEN RAISE 'undo'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END LOOP;
END $$;
SELECT v, length(t) FROM sp WHERE id = 3;
COMMIT;
SELECT v, length(t) FROM sp WHERE id = 3;
SELECT count(*), sum(v) FROM sp WHERE id > 1000;
-- full page, every row shrinks, others take the space, roll back
CREATE TABLE sp_full (id int, t text) USING inplace;
INSERT INTO sp_full SELECT g, repeat('f', 300) FROM generate_series(1, 100) g;
BEGIN;
SAVEPOINT a;
UPDATE sp_full SET t = '';
INSERT INTO sp_full SELECT g, repeat('i', 300) FROM generate_series(101, 200) g;
UPDATE sp_full SET t = repeat('g', 200) WHERE id <= 100;
ROLLBACK TO a;
INSERT INTO sp_full SELECT g, repeat('j', 300) FROM generate_series(101, 150) g;
SELECT count(*), sum(length(t)), sum(id) FROM sp_full;
ROLLBACK;
SELECT count(*), sum(length(t)), sum(id) FROM sp_full;
INSERT INTO sp_full SELECT g, repeat('k', 300) FROM generate_series(101, 150) g;
SELECT count(*), sum(length(t)), sum(id), min(t) = repeat('f', 300) FROM sp_full;
-- a cursor opened before the savepoint
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM sp WHERE id < 10 ORDER BY id;
SAVEPOINT a;
UPDATE sp SET v = 7777;
FETCH 2 FROM c;
ROLLBACK TO a;
FETCH ALL FROM c;
COMMIT;

SELECT * FROM check_all();
