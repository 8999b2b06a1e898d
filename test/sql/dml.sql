-- INSERT, UPDATE, DELETE, SELECT in their plain forms.
CREATE TABLE dml (id int PRIMARY KEY, a int, b text) USING inplace;
INSERT INTO dml VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, NULL);
INSERT INTO dml (id, b) SELECT g, 'row ' || g FROM generate_series(4, 8) g;
INSERT INTO dml DEFAULT VALUES;
INSERT INTO dml VALUES (1, 0, 'again');
SELECT * FROM dml ORDER BY id;

UPDATE dml SET a = a + 1 WHERE id = 1;
UPDATE dml SET a = id * 100, b = NULL WHERE id > 5;
UPDATE dml SET b = 'a longer text than it was before' WHERE id = 2;
UPDATE dml SET b = '' WHERE id = 2;
UPDATE dml SET (a, b) = (SELECT 7, 'seven') WHERE id = 3;
UPDATE dml SET id = id + 100 WHERE id IN (4, 5);
UPDATE dml SET id = 1 WHERE id = 2;
SELECT * FROM dml ORDER BY id;
DELETE FROM dml WHERE id = 104;
DELETE FROM dml WHERE id = 104;
SELECT * FROM dml ORDER BY id;

-- A command does not see its own changes.
UPDATE dml SET a = (SELECT sum(a) FROM dml);
SELECT * FROM dml ORDER BY id;
INSERT INTO dml SELECT id + 1000, a, b FROM dml;
SELECT count(*) FROM dml;
WITH u AS (UPDATE dml SET a = -1 RETURNING id)
SELECT count(*), count(*) FILTER (WHERE a = -1) AS seen FROM dml JOIN u USING (id);
-- (of two changes in one statement one is done)
WITH u AS (UPDATE dml SET a = -2 WHERE id = 1 RETURNING id)
UPDATE dml SET a = -3 WHERE id = 1;
SELECT a IN (-2, -3) FROM dml WHERE id = 1;
-- UPDATE ... FROM with several matches changes a row once
UPDATE dml SET a = 0;
UPDATE dml SET a = a + 1 FROM generate_series(1, 5) g;
SELECT DISTINCT a FROM dml;
DELETE FROM dml USING generate_series(1, 5) g WHERE id > 1000;
SELECT count(*) FROM dml;

-- Many changes of one row in one transaction; each query sees the newest.
BEGIN;
DO $$
BEGIN
    FOR i IN 1..500 LOOP
        UPDATE dml SET a = i, b = repeat('x', i % 50) WHERE id = 1;
        IF (SELECT a FROM dml WHERE id = 1) <> i THEN RAISE 'wrong'; END IF;
    END LOOP;
END $$;
SELECT a, b FROM dml WHERE id = 1;
ROLLBACK;
SELECT a, b FROM dml WHERE id = 1;

-- Rolled back changes of every kind
BEGIN;
INSERT INTO dml VALUES (50, 50, 'fifty');
UPDATE dml SET a = 99;
UPDATE dml SET b = repeat('y', 500);
UPDATE dml SET id = id + 10000;
DELETE FROM dml WHERE id = 10001;
SELECT id, a, length(b) FROM dml ORDER BY id;
ROLLBACK;
SELECT * FROM dml ORDER BY id;
-- ... and change what was rolled back
UPDATE dml SET a = 5 WHERE id = 1;
DELETE FROM dml WHERE id = 3;
INSERT INTO dml VALUES (50, 50, 'fifty');
SELECT * FROM dml ORDER BY id;
-- ... an aborted statement in between
UPDATE dml SET a = 1 / (id - 50);
SELECT * FROM dml ORDER BY id;

-- Rows of no columns, and rows with NULLs only
CREATE TABLE dml_none () USING inplace;
INSERT INTO dml_none DEFAULT VALUES;
INSERT INTO dml_none DEFAULT VALUES;
SELECT count(*) FROM dml_none;
DELETE FROM dml_none;
SELECT count(*) FROM dml_none;
CREATE TABLE dml_nulls (a int, b text, c numeric) USING inplace;
INSERT INTO dml_nulls VALUES (NULL, NULL, NULL);
UPDATE dml_nulls SET b = 'b';
UPDATE dml_nulls SET a = 1, b = NULL;
UPDATE dml_nulls SET a = NULL, c = 2.50;
SELECT * FROM dml_nulls;
UPDATE dml_nulls SET c = NULL;
SELECT * FROM dml_nulls;

-- Rules and views over it
CREATE VIEW dml_v AS SELECT id, a FROM dml WHERE a >= 0 WITH CHECK OPTION;
INSERT INTO dml_v VALUES (60, 6);
INSERT INTO dml_v VALUES (61, -6);
UPDATE dml_v SET a = -1 WHERE id = 60;
UPDATE dml_v SET a = 61 WHERE id = 60;
SELECT * FROM dml WHERE id >= 60 ORDER BY id;
CREATE MATERIALIZED VIEW dml_m USING inplace AS SELECT * FROM dml;
CREATE UNIQUE INDEX ON dml_m (id);
UPDATE dml SET a = a + 1000 WHERE id < 7;
REFRESH MATERIALIZED VIEW CONCURRENTLY dml_m;
SELECT count(*) FROM (TABLE dml EXCEPT TABLE dml_m) s;
REFRESH MATERIALIZED VIEW dml_m;
SELECT * FROM dml_m ORDER BY id;

-- Inheritance, of a heap table too
CREATE TABLE dml_child (extra text) INHERITS (dml) USING inplace;
CREATE TABLE dml_child_h (extra text) INHERITS (dml) USING heap;
INSERT INTO dml_child VALUES (1, 1, 'c', 'x');
INSERT INTO dml_child_h VALUES (1, 1, 'h', 'x');
UPDATE dml SET a = -4 WHERE id = 1;
SELECT tableoid::regclass, id, a FROM dml WHERE id = 1 ORDER BY 1;
DELETE FROM dml WHERE id = 1;
SELECT count(*) FROM dml WHERE id = 1;

SELECT * FROM check_all();
