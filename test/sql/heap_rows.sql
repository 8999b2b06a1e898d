-- Rows that come from a heap table as they are stored there (INSERT ... SELECT *, also
-- sorted or by way of a CTE) are formed from the heap tuple's bytes.  They have to be, byte
-- by byte, the rows that are formed of the same values.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CREATE TABLE heap_src (
	id int, b bool, i2 int2, c "char", i8 int8, i4 int4, f4 float4, f8 float8,
	n name, t tid, m macaddr, m8 macaddr8, u uuid, tz timetz, iv interval, p point, bx box,
	ch char(3), ch300 char(300), vc varchar(200), tx text, tx_ext text, tx_main text,
	nu numeric, arr int[], tarr text[], md mood, pr pair, bits bit(9), vbits varbit,
	ip inet, js jsonb, rng int4range, ts timestamptz, o oid, lastb bool
) USING heap;
ALTER TABLE heap_src ALTER tx_ext SET STORAGE EXTERNAL, ALTER tx_main SET STORAGE MAIN;
INSERT INTO heap_src
SELECT i, i % 2 = 0, i, chr(65 + i % 26)::"char", i::int8 << 33, -i, i / 3.0, i / 7.0,
	'name' || i, format('(%s,%s)', i, 1 + i % 100)::tid, '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05',
	md5(i::text)::uuid, '12:34:56.789+02', i * interval '1 day 1 second', point(i, -i), box(point(i, i), point(0, 0)),
	repeat('x', i % 4), repeat('y', i % 290), repeat('v', i % 150), repeat('t', i % 260), repeat('e', i % 700), repeat('m', i % 130),
	(i ^ (i % 11))::numeric, array[i, NULL, -i], array['a', repeat('b', i % 140)], (array['sad', 'ok', 'happy'])[1 + i % 3]::mood,
	row(i, repeat('p', i % 5))::pair, i::bit(9), i::bit(40)::varbit, '10.0.0.1/8', jsonb_build_object('k', i, 'l', repeat('j', i % 90)),
	int4range(i, i + 5), timestamptz '2020-01-01 00:00:00+00' + i * interval '1 hour', i, i % 3 = 0
FROM generate_series(1, 300) i;
-- any column null, all but the first, none
INSERT INTO heap_src (id) VALUES (1001);
DO $$
DECLARE
	col name;
	i int := 2000;
BEGIN
	FOR col IN SELECT attname FROM pg_attribute WHERE attrelid = 'heap_src'::regclass AND attnum > 1 ORDER BY attnum
	LOOP
		i := i + 1;
		CREATE TEMP TABLE one USING heap AS SELECT * FROM heap_src WHERE id = i % 300;
		EXECUTE format('UPDATE one SET id = %s, %I = NULL', i, col);
		INSERT INTO heap_src SELECT * FROM one;
		DROP TABLE one;
	END LOOP;
END $$;
-- compressed, in the TOAST table, and both
INSERT INTO heap_src (id, tx) VALUES (3001, repeat('long', 3000));
INSERT INTO heap_src (id, tx, b) SELECT 3002, string_agg(md5(i::text), ''), true FROM generate_series(1, 400) i;
INSERT INTO heap_src (id, tx_ext, tx_main, lastb) VALUES (3003, repeat('e', 5000), repeat('main', 1000), true);
INSERT INTO heap_src (id, ch300, arr) VALUES (3004, 'few', (SELECT array_agg(i) FROM generate_series(1, 3000) i));

-- (hint bits are flags, too: no ANALYZE is to come by)
CREATE TABLE from_rows (LIKE heap_src INCLUDING STORAGE) USING inplace WITH (autovacuum_enabled = off);
CREATE TABLE from_values (LIKE heap_src INCLUDING STORAGE) USING inplace WITH (autovacuum_enabled = off);
-- what sorts and CTEs have are the types' own kinds of storage
CREATE TABLE from_sorted (LIKE heap_src) USING inplace WITH (autovacuum_enabled = off);
CREATE TABLE from_cte (LIKE heap_src) USING inplace WITH (autovacuum_enabled = off);
CREATE TABLE from_values_2 (LIKE heap_src) USING inplace WITH (autovacuum_enabled = off);
CREATE TABLE as_select USING inplace AS SELECT * FROM heap_src ORDER BY id;
INSERT INTO from_rows SELECT * FROM heap_src WHERE id <> 0;
INSERT INTO from_sorted SELECT * FROM heap_src ORDER BY id;
WITH rows AS MATERIALIZED (SELECT * FROM heap_src) INSERT INTO from_cte SELECT * FROM rows;
-- a projection: the executor has the values
INSERT INTO from_values SELECT id + 0, b, i2, c, i8, i4, f4, f8, n, t, m, m8, u, tz, iv, p, bx, ch, ch300, vc, tx, tx_ext, tx_main,
	nu, arr, tarr, md, pr, bits, vbits, ip, js, rng, ts, o, lastb FROM heap_src ORDER BY id;
INSERT INTO from_values_2 SELECT id + 0, b, i2, c, i8, i4, f4, f8, n, t, m, m8, u, tz, iv, p, bx, ch, ch300, vc, tx, tx_ext, tx_main,
	nu, arr, tarr, md, pr, bits, vbits, ip, js, rng, ts, o, lastb FROM heap_src;

-- data in TOAST differs in its pointer alone: compared below, by value
CREATE FUNCTION stored_rows(rel regclass) RETURNS TABLE (row_bytes text) LANGUAGE sql AS $$
	SELECT format('%s %s %s %s %s', lp_len, natts, flags, null_bits, data)
	FROM generate_series(0, pg_relation_size(rel) / current_setting('block_size')::int - 1) blk,
		LATERAL inplace.page_items(rel, blk) WHERE NOT 'HASEXTERNAL' = ANY (flags)
$$;
SELECT rel, count(*), count(*) FILTER (WHERE row_bytes LIKE '%HASNULL%') AS nulls,
	count(*) FILTER (WHERE row_bytes LIKE '%ALIGNED%') AS aligned,
	count(*) FILTER (WHERE row_bytes LIKE '%HASTRIMMED%') AS trimmed
FROM (VALUES ('from_rows'::regclass), ('from_values'), ('from_sorted'), ('from_cte'), ('from_values_2')) r(rel), stored_rows(rel)
GROUP BY rel ORDER BY rel::text;
SELECT row_bytes FROM stored_rows('from_rows') EXCEPT ALL SELECT row_bytes FROM stored_rows('from_values');
SELECT row_bytes FROM stored_rows('from_sorted') EXCEPT ALL SELECT row_bytes FROM stored_rows('from_values_2');
SELECT row_bytes FROM stored_rows('from_cte') EXCEPT ALL SELECT row_bytes FROM stored_rows('from_values_2');
SELECT (SELECT count(*) FROM (SELECT r::text FROM heap_src r EXCEPT ALL SELECT r::text FROM from_rows r) x) AS rows_missing,
	(SELECT count(*) FROM (SELECT r::text FROM heap_src r EXCEPT ALL SELECT r::text FROM from_sorted r) x) AS sorted_missing,
	(SELECT count(*) FROM (SELECT r::text FROM heap_src r EXCEPT ALL SELECT r::text FROM from_cte r) x) AS cte_missing,
	(SELECT count(*) FROM (SELECT r::text FROM heap_src r EXCEPT ALL SELECT r::text FROM from_values r) x) AS values_missing,
	(SELECT count(*) FROM (SELECT r::text FROM heap_src r EXCEPT ALL SELECT r::text FROM as_select r) x) AS select_missing;

-- tables that are not alike, or not any more: columns added later, dropped, of another storage, generated
CREATE TABLE heap_old (a int, b text, c char(20)) USING heap;
INSERT INTO heap_old SELECT i, repeat('b', i), 'c' FROM generate_series(1, 130) i;
ALTER TABLE heap_old ADD d int DEFAULT 42, ADD e text;
INSERT INTO heap_old VALUES (200, 'new', 'row', 1, 'e');
CREATE TABLE new_old (LIKE heap_old) USING inplace;
INSERT INTO new_old SELECT * FROM heap_old;
SELECT count(*), sum(d), sum(length(b)), count(e), count(*) FILTER (WHERE c = 'c') FROM new_old;
ALTER TABLE heap_old DROP b;
CREATE TABLE new_dropped (x int, a int, c char(20), d int, e text) USING inplace;
ALTER TABLE new_dropped DROP x;
INSERT INTO new_dropped SELECT * FROM heap_old;
SELECT count(*), sum(a), sum(d), count(e), count(*) FILTER (WHERE c = 'c') FROM new_dropped;
CREATE TABLE new_plain (a int, c char(20), d int, e text) USING inplace;
ALTER TABLE new_plain ALTER e SET STORAGE PLAIN;
INSERT INTO new_plain SELECT * FROM heap_old;
SELECT count(*), sum(a), max(e) FROM new_plain;
CREATE TABLE new_generated (a int, c char(20), d int, e text, g int GENERATED ALWAYS AS (a + d) STORED) USING inplace;
INSERT INTO new_generated SELECT * FROM heap_old;
SELECT count(*), sum(g) FROM new_generated;
-- a trigger that looks at the row, and RETURNING
CREATE FUNCTION note_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	new.e := coalesce(new.e, 'from trigger');
	RETURN new;
END $$;
CREATE TRIGGER note BEFORE INSERT ON new_plain FOR EACH ROW EXECUTE FUNCTION note_row();
DELETE FROM new_plain WHERE a IN (1, 200);
INSERT INTO new_plain SELECT * FROM heap_old WHERE a IN (1, 200) RETURNING a, e, xmin::text = (pg_current_xact_id()::text::int8 % 4294967296)::text AS mine;
WITH rows AS MATERIALIZED (SELECT * FROM heap_old WHERE a < 4) INSERT INTO new_generated SELECT * FROM rows RETURNING *;
-- the table's own kind of index and a unique one, with conflicts
CREATE UNIQUE INDEX ON new_plain (a, e);
INSERT INTO new_plain SELECT * FROM heap_old ON CONFLICT DO NOTHING;
INSERT INTO new_plain SELECT * FROM heap_old ON CONFLICT (a, e) DO UPDATE SET d = -1;
SELECT count(*), count(*) FILTER (WHERE d = -1) FROM new_plain;
SELECT count(*) FROM inplace.check('from_rows');
SELECT count(*) FROM inplace.check('new_plain');
DROP TABLE heap_src, from_rows, from_sorted, from_cte, from_values, from_values_2, as_select, heap_old, new_old, new_dropped, new_plain, new_generated;
DROP TYPE mood, pair;
DROP FUNCTION stored_rows, note_row;
