-- Access by TID, TID range, TABLESAMPLE.
CREATE TABLE td (id int, v text) USING inplace;
INSERT INTO td SELECT g, 'v' || g FROM generate_series(1, 10) g;
SELECT * FROM td WHERE ctid = '(0,3)';
SELECT * FROM td WHERE ctid = ANY (ARRAY['(0,2)', '(0,2)', '(0,9)', '(0,77)', '(5,1)']::tid[]) ORDER BY id;
SELECT * FROM td WHERE ctid = '(0,0)' OR ctid = '(0,1)' OR ctid IS NULL;
SELECT * FROM td WHERE ctid = '(4294967295,1)';
SELECT * FROM td WHERE ctid = '(0,65535)';
SELECT * FROM td WHERE ctid >= '(0,9)';
SELECT * FROM td WHERE ctid > '(0,3)' AND ctid < '(0,6)' ORDER BY id;
SELECT * FROM td WHERE ctid < '(0,2)';
SELECT * FROM td WHERE ctid > '(7,0)';
UPDATE td SET v = 'updated' WHERE ctid = '(0,3)' RETURNING *;
UPDATE td SET v = 'range' WHERE ctid BETWEEN '(0,5)' AND '(0,6)' RETURNING *;
SELECT ctid, * FROM td WHERE ctid = '(0,3)';
DELETE FROM td WHERE ctid = '(0,4)';
SELECT * FROM td WHERE ctid = '(0,4)';
-- joins by TID
SELECT a.id, b.v FROM td a JOIN td b ON a.ctid = b.ctid WHERE a.id < 4 ORDER BY 1;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT a.id, b.v FROM td a JOIN td b ON a.ctid = b.ctid WHERE a.id < 4 ORDER BY 1;
RESET enable_hashjoin;
RESET enable_mergejoin;
-- the version that the snapshot sees
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM td WHERE ctid = '(0,3)';
DECLARE r CURSOR FOR SELECT * FROM td WHERE ctid >= '(0,1)' AND ctid <= '(0,4)';
UPDATE td SET v = 'newer';
DELETE FROM td WHERE id = 2;
FETCH ALL FROM c;
FETCH ALL FROM r;
ROLLBACK;
SELECT * FROM td ORDER BY id;
-- latest version
SELECT currtid2('td'::text, '(0,3)'::tid);
-- a TID that no row can have
SELECT currtid2('td'::text, '(0,512)'::tid);
SELECT currtid2('td'::text, '(0,0)'::tid);
-- range over many pages, deleted and moved rows among them
CREATE TABLE td_h (id int PRIMARY KEY, v text) USING heap;
CREATE TABLE td_i (LIKE td_h INCLUDING ALL) USING inplace;
SELECT do_both('td', $$INSERT INTO $T SELECT g, repeat('v', g % 100) FROM generate_series(1, 3000) g$$);
SELECT do_both('td', $$DELETE FROM $T WHERE id % 5 = 0$$);
SELECT do_both('td', $$UPDATE $T SET v = v || 'u' WHERE id % 3 = 0$$);
SELECT do_both('td', $$UPDATE $T SET id = -id WHERE id % 7 = 0$$);
SELECT twins('td');
SELECT (SELECT count(*) FROM td_i WHERE ctid < '(10,1)') + (SELECT count(*) FROM td_i WHERE ctid >= '(10,1)') = count(*) FROM td_i;
SELECT count(*) FROM td_i a WHERE NOT EXISTS (SELECT FROM td_i b WHERE b.ctid = a.ctid AND b.id = a.id);
-- TABLESAMPLE
SELECT count(*) = (SELECT count(*) FROM td_h) FROM td_i TABLESAMPLE BERNOULLI (100);
SELECT count(*) = (SELECT count(*) FROM td_h) FROM td_i TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM td_i TABLESAMPLE BERNOULLI (0);
SELECT count(*) BETWEEN 800 AND 1600 FROM td_i TABLESAMPLE BERNOULLI (50) REPEATABLE (3);
SELECT (SELECT string_agg(id::text, ',' ORDER BY id) FROM td_i TABLESAMPLE SYSTEM (30) REPEATABLE (4)) =
       (SELECT string_agg(id::text, ',' ORDER BY id) FROM td_i TABLESAMPLE SYSTEM (30) REPEATABLE (4)) AS repeatable;
BEGIN;
DECLARE s CURSOR FOR SELECT count(*), sum(length(v)) FROM td_i TABLESAMPLE SYSTEM (100);
SELECT count(*), sum(length(v)) FROM td_i;
UPDATE td_i SET v = '';
DELETE FROM td_i WHERE id < 0;
FETCH s;
ROLLBACK;
DROP TABLE td_h, td_i;

SELECT * FROM check_all();
