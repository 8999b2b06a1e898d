-- Cursors: what they see, WHERE CURRENT OF, WITH HOLD, backwards.
CREATE TABLE cu (id int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO cu SELECT g, g, 'r' || g FROM generate_series(1, 8) g;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu;
FETCH 2 FROM c;
UPDATE cu SET v = v + 100 WHERE CURRENT OF c RETURNING *;
-- the cursor does not see it, a new query does
FETCH RELATIVE 0 FROM c;
SELECT * FROM cu WHERE id = 2;
FETCH NEXT FROM c;
DELETE FROM cu WHERE CURRENT OF c;
-- again: it is gone
DELETE FROM cu WHERE CURRENT OF c;
UPDATE cu SET t = 'no' WHERE CURRENT OF c RETURNING *;
FETCH NEXT FROM c;
UPDATE cu SET t = repeat('w', 60) WHERE CURRENT OF c;
-- a row that was changed after the cursor was opened
UPDATE cu SET v = 500 WHERE id = 5;
FETCH NEXT FROM c;
UPDATE cu SET t = 'changed before' WHERE CURRENT OF c RETURNING *;
-- the key changed, so it has moved
UPDATE cu SET id = 60 WHERE id = 6;
FETCH NEXT FROM c;
UPDATE cu SET t = 'moved before' WHERE CURRENT OF c RETURNING *;
FETCH ALL FROM c;
UPDATE cu SET t = 'past the end' WHERE CURRENT OF c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu;
FETCH 3 FROM c;
MOVE c;
UPDATE cu SET v = -4 WHERE CURRENT OF c;
UPDATE cu SET v = -44 WHERE CURRENT OF c;
CLOSE c;
COMMIT;
SELECT * FROM cu ORDER BY id;

-- FOR UPDATE cursors
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu ORDER BY id FOR UPDATE;
FETCH 1 FROM c;
UPDATE cu SET v = v * 10 WHERE CURRENT OF c;
FETCH 1 FROM c;
UPDATE cu SET v = v * 10 WHERE CURRENT OF c;
UPDATE cu SET v = v + 1 WHERE CURRENT OF c;
COMMIT;
SELECT * FROM cu ORDER BY id LIMIT 3;
-- by index, by TID, of a join
BEGIN;
SET LOCAL enable_seqscan = off;
DECLARE c CURSOR FOR SELECT * FROM cu WHERE id BETWEEN 2 AND 4;
FETCH 2 FROM c;
UPDATE cu SET v = 33 WHERE CURRENT OF c RETURNING id, v;
DECLARE d CURSOR FOR SELECT a.id, b.v FROM cu a, cu b WHERE a.id = b.id + 1 AND a.id = 2 FOR UPDATE OF a;
FETCH d;
UPDATE cu SET v = 22 WHERE CURRENT OF d RETURNING id, v;
COMMIT;

-- scrolling over rows that change under it, in place, shrinking and growing
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, v, t FROM cu;
FETCH 3 FROM c;
UPDATE cu SET v = 0, t = 'new ' || t;
UPDATE cu SET t = repeat('q', 300);
DELETE FROM cu WHERE id > 6;
INSERT INTO cu VALUES (9, 9, 'new');
FETCH BACKWARD ALL FROM c;
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 4 FROM c;
FETCH FIRST FROM c;
FETCH LAST FROM c;
ROLLBACK;

-- holdable
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT * FROM cu ORDER BY id;
FETCH 1 FROM h;
UPDATE cu SET v = 9000 WHERE id = 2;
COMMIT;
UPDATE cu SET v = 9999;
DELETE FROM cu WHERE id = 3;
FETCH 2 FROM h;
FETCH ALL FROM h;
UPDATE cu SET v = 1 WHERE CURRENT OF h;
CLOSE h;
SELECT * FROM cu ORDER BY id;

-- cursor loops over what they change
DO $$
DECLARE r record; n int := 0;
    c CURSOR FOR SELECT * FROM cu;
BEGIN
    FOR r IN c LOOP
        UPDATE cu SET v = r.v + 1 WHERE CURRENT OF c;
        UPDATE cu SET v = v + 1 WHERE id = r.id + 1;
        n := n + 1;
    END LOOP;
    RAISE NOTICE '% rows', n;
END $$;
SELECT id, v FROM cu ORDER BY id;
-- loops that commit
CREATE PROCEDURE cu_p() LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    FOR r IN SELECT * FROM cu ORDER BY id LOOP
        UPDATE cu SET v = r.id WHERE id = r.id;
        IF r.id % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
    END LOOP;
END $$;
CALL cu_p();
SELECT id, v FROM cu ORDER BY id;

-- partitions
CREATE TABLE cu_part (id int, v int) PARTITION BY LIST (id);
CREATE TABLE cu_part1 PARTITION OF cu_part FOR VALUES IN (1) USING inplace;
CREATE TABLE cu_part2 PARTITION OF cu_part FOR VALUES IN (2) USING inplace;
INSERT INTO cu_part VALUES (1, 0), (2, 0);
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu_part;
FETCH 2 FROM c;
UPDATE cu_part SET v = 5 WHERE CURRENT OF c RETURNING *;
DELETE FROM cu_part WHERE CURRENT OF c RETURNING *;
COMMIT;
SELECT * FROM cu_part;

SELECT * FROM check_all();
