-- INSERT ... ON CONFLICT
CREATE TABLE oc (k int PRIMARY KEY, v int, t text) USING inplace;
INSERT INTO oc VALUES (1, 1, 'a'), (2, 2, 'b');
INSERT INTO oc VALUES (1, 10, 'x'), (3, 3, 'c') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO oc VALUES (1, 10, 'x'), (4, 4, 'd') ON CONFLICT (k) DO UPDATE SET v = oc.v + excluded.v RETURNING *;
INSERT INTO oc AS o VALUES (1, 10, 'x') ON CONFLICT (k) DO UPDATE SET v = 0 WHERE o.v < 5 RETURNING *;
INSERT INTO oc VALUES (2, 10, 'longer text') ON CONFLICT ON CONSTRAINT oc_pkey DO UPDATE SET (v, t) = (excluded.v, excluded.t);
SELECT * FROM oc ORDER BY k;
-- inserted, or updated?
INSERT INTO oc VALUES (1, 100, 'u'), (5, 100, 'i'), (2, 100, 'u'), (6, 100, 'i')
ON CONFLICT (k) DO UPDATE SET v = excluded.v, t = excluded.t
RETURNING k, xmax = 0 AS inserted;
-- ... in the same transaction as the insert
BEGIN;
INSERT INTO oc VALUES (7, 7, 'i') ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING k, xmax = 0 AS inserted;
INSERT INTO oc VALUES (7, 8, 'u') ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING k, v, xmax = 0 AS inserted;
COMMIT;
-- ... and that changes the key
INSERT INTO oc VALUES (7, 0, 'key') ON CONFLICT (k) DO UPDATE SET k = 70, t = excluded.t RETURNING k, xmax = 0 AS inserted;
-- a row twice in a command
INSERT INTO oc VALUES (8, 1, 'a'), (8, 2, 'b') ON CONFLICT (k) DO UPDATE SET v = excluded.v;
INSERT INTO oc VALUES (8, 1, 'a'), (8, 2, 'b') ON CONFLICT (k) DO NOTHING;
INSERT INTO oc VALUES (1, 1, 'a'), (1, 2, 'b') ON CONFLICT (k) DO UPDATE SET v = excluded.v;
INSERT INTO oc VALUES (5, 1, 'a'), (70, 2, 'b') ON CONFLICT (k) DO UPDATE SET k = 5;
SELECT * FROM oc ORDER BY k;

-- Other arbiters: several unique indexes, partial, expression, exclusion
UPDATE oc SET v = v - 60 WHERE v = 100;
CREATE UNIQUE INDEX oc_t ON oc (lower(t)) WHERE v > 50;
INSERT INTO oc VALUES (20, 60, 'Unique');
INSERT INTO oc VALUES (21, 60, 'UNIQUE') ON CONFLICT (lower(t)) WHERE v > 50 DO UPDATE SET v = oc.v + 1 RETURNING *;
INSERT INTO oc VALUES (21, 60, 'UNIQUE') ON CONFLICT (k) DO NOTHING;
INSERT INTO oc VALUES (21, 40, 'UNIQUE') ON CONFLICT (lower(t)) WHERE v > 50 DO NOTHING RETURNING *;
INSERT INTO oc VALUES (20, 60, 'unique') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO oc VALUES (22, 1, 'x') ON CONFLICT (v) DO NOTHING;
CREATE TABLE oc_ex (r int4range, v int, EXCLUDE USING gist (r WITH &&)) USING inplace;
INSERT INTO oc_ex VALUES ('[1,5)', 1), ('[5,9)', 2);
INSERT INTO oc_ex VALUES ('[3,4)', 3) ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO oc_ex VALUES ('[9,10)', 3) ON CONFLICT ON CONSTRAINT oc_ex_r_excl DO NOTHING RETURNING *;
INSERT INTO oc_ex VALUES ('[9,10)', 3) ON CONFLICT ON CONSTRAINT oc_ex_r_excl DO UPDATE SET v = 1;
CREATE TABLE oc_def (k int UNIQUE DEFERRABLE) USING inplace;
INSERT INTO oc_def VALUES (1) ON CONFLICT (k) DO NOTHING;
INSERT INTO oc_def VALUES (1) ON CONFLICT DO NOTHING;

-- A conflict with rows that were rolled back is none
BEGIN;
INSERT INTO oc VALUES (30, 1, 'gone');
UPDATE oc SET k = 31 WHERE k = 1;
ROLLBACK;
INSERT INTO oc VALUES (30, 2, 'new'), (31, 2, 'new') ON CONFLICT (k) DO NOTHING RETURNING *;
INSERT INTO oc VALUES (1, 3, 'upd') ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING *;
-- ... nor with a deleted one
DELETE FROM oc WHERE k = 30;
INSERT INTO oc VALUES (30, 9, 'after delete') ON CONFLICT (k) DO NOTHING RETURNING *;

-- Triggers
CREATE FUNCTION oc_trg() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% % old % new %', tg_when, tg_op, OLD, NEW;
    RETURN NEW;
END $$;
CREATE TRIGGER oc_b BEFORE INSERT OR UPDATE ON oc FOR EACH ROW EXECUTE FUNCTION oc_trg();
CREATE TRIGGER oc_a AFTER INSERT OR UPDATE ON oc FOR EACH ROW EXECUTE FUNCTION oc_trg();
INSERT INTO oc VALUES (30, 10, 'conflict'), (40, 1, 'none') ON CONFLICT (k) DO UPDATE SET v = excluded.v;
DROP TRIGGER oc_a ON oc;
DROP TRIGGER oc_b ON oc;

DROP INDEX oc_t;

-- The same row, many times; it stays where it is
SELECT ctid AS before FROM oc WHERE k = 1 \gset
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        INSERT INTO oc VALUES (1, i, 'n') ON CONFLICT (k) DO UPDATE SET v = excluded.v;
    END LOOP;
END $$;
SELECT v, ctid = :'before' AS same_place FROM oc WHERE k = 1;
-- (many rows at a time, half of them new)
INSERT INTO oc SELECT g, g, 'bulk' FROM generate_series(100, 1099) g;
INSERT INTO oc SELECT g, -g, 'bulk' FROM generate_series(600, 1599) g ON CONFLICT (k) DO UPDATE SET v = excluded.v, t = 'upd';
SELECT t, count(*), sum(v) FROM oc WHERE k >= 100 GROUP BY t ORDER BY t;
-- partitions
CREATE TABLE oc_p (k int PRIMARY KEY, v int) PARTITION BY HASH (k);
CREATE TABLE oc_p0 PARTITION OF oc_p FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING inplace;
CREATE TABLE oc_p1 PARTITION OF oc_p FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING heap;
INSERT INTO oc_p SELECT g, 0 FROM generate_series(1, 10) g;
INSERT INTO oc_p SELECT g, 1 FROM generate_series(5, 15) g ON CONFLICT (k) DO UPDATE SET v = oc_p.v + excluded.v + 1;
SELECT * FROM oc_p ORDER BY k;

SELECT * FROM check_all();

-- An arbiter with operator class and collation written out (on 18 these
-- indexes are inplace_btree).
CREATE TABLE oc_named (i int, u int, x text COLLATE "C") USING inplace;
CREATE UNIQUE INDEX oc_named_u ON oc_named (u int4_ops);
CREATE UNIQUE INDEX oc_named_x ON oc_named (x COLLATE "POSIX" text_pattern_ops);
INSERT INTO oc_named VALUES (0, 1, '1'), (0, 2, '2');
INSERT INTO oc_named (u) VALUES (1) ON CONFLICT (u) DO UPDATE SET i = -1 RETURNING i, u;
INSERT INTO oc_named (u) VALUES (1) ON CONFLICT (u int4_ops) DO UPDATE SET i = -2 RETURNING i, u;
INSERT INTO oc_named (x) VALUES ('1') ON CONFLICT (x COLLATE "POSIX" text_pattern_ops) DO UPDATE SET i = -3 RETURNING i, x;
INSERT INTO oc_named (x) VALUES ('1') ON CONFLICT (x COLLATE "POSIX") DO UPDATE SET i = -4 RETURNING i, x;
INSERT INTO oc_named (x) VALUES ('1') ON CONFLICT (x text_pattern_ops) DO UPDATE SET i = -5 RETURNING i, x;
INSERT INTO oc_named (x) VALUES ('1') ON CONFLICT (x COLLATE "C") DO UPDATE SET i = -6 RETURNING i, x;
INSERT INTO oc_named (x) VALUES ('1') ON CONFLICT (x text_ops) DO UPDATE SET i = -7 RETURNING i, x;
DROP TABLE oc_named;
