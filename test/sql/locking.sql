-- Row locks of one session: they change nothing that is visible.
CREATE TABLE lk (id int PRIMARY KEY, v int, t text) USING inplace;
CREATE TABLE lk2 (id int REFERENCES lk, w int) USING inplace;
INSERT INTO lk SELECT g, g, 'x' FROM generate_series(1, 5) g;
INSERT INTO lk2 SELECT g, g FROM generate_series(1, 5) g;
BEGIN;
SELECT * FROM lk WHERE id = 1 FOR KEY SHARE;
SELECT * FROM lk WHERE id = 1 FOR SHARE;
SELECT * FROM lk WHERE id = 1 FOR NO KEY UPDATE;
SELECT * FROM lk WHERE id = 1 FOR UPDATE;
SELECT * FROM lk WHERE id = 2 FOR UPDATE NOWAIT;
SELECT * FROM lk ORDER BY id FOR SHARE SKIP LOCKED;
UPDATE lk SET v = 100 WHERE id = 1;
SELECT * FROM lk WHERE id = 1 FOR UPDATE;
UPDATE lk SET v = 101 WHERE id = 1;
DELETE FROM lk2 WHERE id = 3;
DELETE FROM lk WHERE id = 3;
SELECT * FROM lk ORDER BY id FOR UPDATE;
COMMIT;
SELECT * FROM lk ORDER BY id;
-- the lock shows in xmax
BEGIN;
SELECT xmax = 0 AS unlocked FROM lk WHERE id = 2;
SELECT id FROM lk WHERE id = 2 FOR UPDATE;
SELECT xmax::text = pg_current_xact_id()::text AS mine FROM lk WHERE id = 2;
ROLLBACK;
-- but not with another row that stands there later
BEGIN;
SELECT ctid FROM lk2 WHERE id = 1 FOR UPDATE;
TRUNCATE lk2;
INSERT INTO lk2 VALUES (1, 1) RETURNING ctid, xmax = 0 AS unlocked;
ROLLBACK;
-- savepoints and locks
BEGIN;
SELECT id FROM lk WHERE id = 4 FOR KEY SHARE;
SAVEPOINT a;
SELECT id FROM lk WHERE id = 4 FOR UPDATE;
UPDATE lk SET v = v * 2 WHERE id = 4;
ROLLBACK TO a;
SELECT * FROM lk WHERE id = 4 FOR SHARE;
UPDATE lk SET v = v + 1 WHERE id = 4;
COMMIT;
SELECT * FROM lk ORDER BY id;
-- joins: FOR UPDATE OF one of them, sub-selects, CTEs, LIMIT
SELECT lk.id, w FROM lk JOIN lk2 USING (id) ORDER BY 1 LIMIT 2 FOR UPDATE OF lk;
SELECT lk.id, w FROM lk JOIN lk2 USING (id) ORDER BY 1 FOR UPDATE OF lk2 NOWAIT;
SELECT lk.id, w FROM lk LEFT JOIN lk2 ON lk.id = lk2.id AND w > 3 ORDER BY 1 FOR UPDATE OF lk;
SELECT lk.id, w FROM lk LEFT JOIN lk2 USING (id) FOR UPDATE;
SELECT * FROM (SELECT * FROM lk FOR UPDATE) s ORDER BY id;
SELECT * FROM lk WHERE id IN (SELECT id FROM lk2 FOR SHARE) ORDER BY id FOR NO KEY UPDATE;
UPDATE lk SET v = 0 WHERE id = (SELECT id FROM lk ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *;
SELECT count(*) FROM lk FOR UPDATE;
SELECT DISTINCT v FROM lk FOR UPDATE;
-- a queue
BEGIN;
DO $$
DECLARE n int := 0; r record;
BEGIN
    LOOP
        DELETE FROM lk2 WHERE ctid = (SELECT ctid FROM lk2 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING * INTO r;
        EXIT WHEN NOT FOUND;
        n := n + 1;
    END LOOP;
    RAISE NOTICE '% taken', n;
END $$;
SELECT * FROM lk2;
ROLLBACK;
SELECT * FROM lk2 ORDER BY id;
-- the table does not grow from locks
CREATE TABLE lk_big (id int, t text) USING inplace;
INSERT INTO lk_big SELECT g, repeat('z', 100) FROM generate_series(1, 2000) g;
SELECT pg_relation_size('lk_big') AS before \gset
BEGIN;
SELECT count(*) FROM (SELECT * FROM lk_big FOR KEY SHARE) s;
SELECT count(*) FROM (SELECT * FROM lk_big FOR UPDATE) s;
COMMIT;
VACUUM FREEZE lk_big;
SELECT count(*) FROM (SELECT * FROM lk_big FOR SHARE) s;
UPDATE lk_big SET id = id + 1;
SELECT pg_relation_size('lk_big') = :before AS same_size, count(*), sum(id) FROM lk_big;

SELECT * FROM check_all();
