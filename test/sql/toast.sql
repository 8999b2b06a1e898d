-- Large values, in line compressed, and out of line.
CREATE TABLE to_h (id int PRIMARY KEY, n int, main text, ext text, pl text, extd text) USING heap;
ALTER TABLE to_h ALTER main SET STORAGE MAIN, ALTER ext SET STORAGE EXTERNAL, ALTER pl SET STORAGE PLAIN, ALTER extd SET STORAGE EXTENDED;
CREATE TABLE to_i (LIKE to_h INCLUDING ALL) USING inplace;
-- (text that does not compress, of a length)
CREATE FUNCTION to_text(len int, seed int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT left(string_agg(md5(seed || ' ' || g), ''), len) FROM generate_series(0, len / 32) g
$$;
SELECT do_both('to', $$INSERT INTO $T SELECT g, g, repeat('m', g * 500), to_text(g * 300, g), repeat('p', g * 10), to_text(g * 500, -g) FROM generate_series(1, 60) g$$);
SELECT twins('to');
SELECT id, length(main), length(ext), length(extd) FROM to_i WHERE id IN (1, 2, 30, 60) ORDER BY id;
-- other columns; the values stay
SELECT do_both('to', $$UPDATE $T SET n = n + 1$$);
SELECT do_both('to', $$UPDATE $T SET pl = pl || 'x' WHERE id % 2 = 0$$);
SELECT twins('to');
-- in and out, shorter and longer
SELECT do_both('to', $$UPDATE $T SET ext = left(ext, 10) WHERE id % 3 = 0$$);
SELECT do_both('to', $$UPDATE $T SET extd = extd || to_text(3000, n) WHERE id % 4 = 0$$);
SELECT do_both('to', $$UPDATE $T SET extd = NULL, main = to_text(2500, n) WHERE id % 5 = 0$$);
SELECT do_both('to', $$UPDATE $T SET main = extd, extd = ext, ext = main WHERE id % 7 = 0$$);
SELECT twins('to');
BEGIN;
SELECT do_both('to', $$UPDATE $T SET ext = to_text(10000, id), extd = to_text(9000, id), main = NULL$$);
SAVEPOINT a;
SELECT do_both('to', $$UPDATE $T SET ext = ''$$);
SELECT do_both('to', $$DELETE FROM $T WHERE id > 30$$);
SELECT twins('to');
ROLLBACK TO a;
SELECT twins('to');
ROLLBACK;
SELECT twins('to');
-- an old snapshot still finds the old values
BEGIN;
DECLARE c CURSOR FOR SELECT md5(string_agg(t::text, ',' ORDER BY id)) = (SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM to_h t) FROM to_i t;
UPDATE to_i SET ext = to_text(5000, 1), extd = 'small', main = NULL;
UPDATE to_i SET ext = NULL;
DELETE FROM to_i WHERE id < 10;
FETCH c;
ROLLBACK;
-- slices, and values that come from another table or column
SELECT id, substr(ext, 5000, 10) = substr(to_text(id * 300, id), 5000, 10) FROM to_i WHERE id IN (52, 58) ORDER BY id;
SELECT do_both('to', $$INSERT INTO $T SELECT id + 100, n, ext, extd, NULL, main FROM $T$$);
SELECT do_both('to', $$UPDATE $T t SET ext = s.ext FROM $T s WHERE s.id = t.id + 100$$);
SELECT twins('to');
SELECT do_both('to', $$DELETE FROM $T WHERE id % 2 = 0$$);
VACUUM to_i;
SELECT twins('to');
VACUUM FULL to_i;
SELECT twins('to');
-- compression methods, and types with typmods
ALTER TABLE to_i ALTER extd SET COMPRESSION pglz;
UPDATE to_i SET extd = repeat('compress me ', 500) WHERE id = 1;
SELECT pg_column_compression(extd), length(extd) FROM to_i WHERE id = 1;
-- a row too long even with everything out of line
CREATE TABLE to_wide (a text) USING inplace;
ALTER TABLE to_wide ALTER a SET STORAGE PLAIN;
INSERT INTO to_wide VALUES (repeat('x', 8000));
UPDATE to_wide SET a = repeat('x', 8100);
DO $$
BEGIN
    INSERT INTO to_wide VALUES (repeat('x', 9000));
EXCEPTION WHEN program_limit_exceeded THEN RAISE NOTICE 'too big';
END $$;
DO $$
BEGIN
    UPDATE to_wide SET a = repeat('x', 9000);
EXCEPTION WHEN program_limit_exceeded THEN RAISE NOTICE 'too big';
END $$;
SELECT length(a) FROM to_wide;
-- toast_tuple_target
CREATE TABLE to_target (a text) USING inplace WITH (toast_tuple_target = 200);
ALTER TABLE to_target ALTER a SET STORAGE EXTERNAL;
INSERT INTO to_target VALUES (repeat('y', 1000));
UPDATE to_target SET a = a || 'z';
SELECT pg_relation_size(reltoastrelid) > 0 AS toasted, length(a) FROM to_target, pg_class WHERE relname = 'to_target';
-- composite, array and range values of toasted ones
CREATE TYPE to_comp AS (a int, b text);
CREATE TABLE to_nest (id int, c to_comp, arr text[], r to_comp[]) USING inplace;
INSERT INTO to_nest SELECT id, ROW(id, ext)::to_comp, ARRAY[ext, extd], ARRAY[ROW(1, main)::to_comp] FROM to_i WHERE id < 20;
UPDATE to_nest SET c.b = reverse((c).b);
UPDATE to_nest SET arr[1] = 'x', r = r || ROW(2, arr[2])::to_comp;
SELECT count(*), bool_and((c).b = reverse(ext)), bool_and(arr[2] IS NOT DISTINCT FROM extd) FROM to_nest JOIN to_i USING (id);

SELECT * FROM check_all();
