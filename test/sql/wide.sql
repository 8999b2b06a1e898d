-- Wide rows, full pages.
SELECT 'CREATE TABLE wi_h (' || string_agg(format('c%s int', g), ', ' ORDER BY g) || ') USING heap' AS h,
       'CREATE TABLE wi_i (' || string_agg(format('c%s int', g), ', ' ORDER BY g) || ') USING inplace' AS i,
       'INSERT INTO $T (c1, c2, c1600) VALUES (1, 2, 3), (NULL, NULL, NULL)' AS few,
       'UPDATE $T SET ' || string_agg(format('c%s = %s', g, g), ', ' ORDER BY g) FILTER (WHERE g % 2 = 0) AS half,
       'UPDATE $T SET ' || string_agg(format('c%s = %s', g, g), ', ' ORDER BY g) AS every,
       'UPDATE $T SET ' || string_agg(format('c%s = NULL', g), ', ' ORDER BY g) FILTER (WHERE g > 800) AS less
FROM generate_series(1, 1600) g \gset
:h;
:i;
\set VERBOSITY terse
CREATE TABLE wi_too AS SELECT FROM wi_i;
SELECT do_both('wi', :'few');
SELECT do_both('wi', :'half');
SELECT twins('wi');
SELECT do_both('wi', :'every');
SELECT do_both('wi', :'less');
SELECT twins('wi');
BEGIN;
SELECT do_both('wi', :'every');
SELECT do_both('wi', 'UPDATE $T SET c1 = NULL, c1600 = 5');
SELECT twins('wi');
ROLLBACK;
SELECT twins('wi');
SELECT count(*), sum(c1), sum(c800), sum(c801) FROM wi_i;
\set VERBOSITY default

-- Rows near the most that a page holds
CREATE TABLE wi_row (id int, t text, u text) USING inplace;
ALTER TABLE wi_row ALTER t SET STORAGE PLAIN, ALTER u SET STORAGE PLAIN;
DO $$
DECLARE n int; most int := 0;
BEGIN
    FOR n IN 8050..8170 LOOP
        BEGIN
            INSERT INTO wi_row VALUES (n, repeat('x', n), NULL);
            most := n;
        EXCEPTION WHEN program_limit_exceeded THEN
            EXIT;
        END;
    END LOOP;
    -- heap: 8160 bytes of row; here not less
    RAISE NOTICE 'as long as heap''s: %', most >= 8160 - 28 - 4;
END $$;
SELECT bool_and(length(t) = id) FROM wi_row;
UPDATE wi_row SET t = left(t, 10);
UPDATE wi_row SET t = repeat('y', id);
UPDATE wi_row SET t = left(t, 4000), u = repeat('z', 3900);
SELECT bool_and(t = repeat('y', 4000) AND u = repeat('z', 3900)), count(*) > 80 FROM wi_row;
BEGIN;
UPDATE wi_row SET t = NULL, u = NULL;
UPDATE wi_row SET u = repeat('u', id - 30);
ROLLBACK;
SELECT bool_and(t = repeat('y', 4000) AND u = repeat('z', 3900)), count(*) > 80 FROM wi_row;
DELETE FROM wi_row;
-- no snapshot of autovacuum's may keep VACUUM from anything
ALTER SYSTEM SET autovacuum = off;
SELECT pg_reload_conf() AS reloaded;
DO $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%') LOOP
		PERFORM pg_sleep(0.05), pg_stat_clear_snapshot();
	END LOOP;
END $$;
VACUUM wi_row;
SELECT pg_relation_size('wi_row');
ALTER SYSTEM RESET autovacuum;
SELECT pg_reload_conf() AS reloaded;

-- Full pages: rows grow and shrink, at random, beside heap
CREATE TABLE wg_h (id int PRIMARY KEY, a text, n int, b text) USING heap;
CREATE TABLE wg_i (LIKE wg_h INCLUDING ALL) USING inplace;
SELECT do_both('wg', $$INSERT INTO $T SELECT g, repeat('a', g % 300), g, NULL FROM generate_series(1, 1000) g$$);
SELECT do_both('wg', $$UPDATE $T SET a = a || repeat('+', 100) WHERE id % 4 = 0$$);
SELECT do_both('wg', $$UPDATE $T SET a = left(a, id % 50) WHERE id % 3 = 0$$);
SELECT twins('wg');
SELECT do_both('wg', $$UPDATE $T SET b = repeat('b', (id * 7919) % 1500)$$);
SELECT twins('wg');
DO $$
DECLARE r text;
BEGIN
    FOR i IN 1..30 LOOP
        r := do_both('wg', format('UPDATE $T SET a = repeat(%L, (id * %s) %% 400), b = CASE WHEN (id + %s) %% 5 > 1 THEN repeat(%L, (id * %s) %% 700) END WHERE id %% 7 = %s',
                                  chr(64 + i), i * 31, i, chr(96 + i % 26), i * 17, i % 7));
        IF r <> 'same' OR twins('wg') <> 'equal' THEN RAISE NOTICE '%: % %', i, r, twins('wg'); END IF;
        BEGIN
            r := do_both('wg', format('UPDATE $T SET a = repeat(%L, (id * %s) %% 900), b = NULL WHERE id %% 5 = %s', 'r', i * 13, i % 5));
            IF r <> 'same' OR twins('wg') <> 'equal' THEN RAISE NOTICE '%: % %', i, r, twins('wg'); END IF;
            RAISE 'undo';
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END LOOP;
END $$;
SELECT twins('wg');
VACUUM wg_i;
SELECT twins('wg');
-- a page where nothing is left but what shrinks give
CREATE TABLE wi_page (id int, t text) USING inplace;
INSERT INTO wi_page SELECT g, repeat('p', 400) FROM generate_series(1, 18) g;
SELECT ctid AS tid FROM wi_page WHERE id = 3 \gset
UPDATE wi_page SET t = repeat('s', 100) WHERE id IN (1, 2);
UPDATE wi_page SET t = repeat('g', 900) WHERE id = 3;
SELECT ctid = :'tid' AS same_place, length(t) FROM wi_page WHERE id = 3;

-- a row without the padding that heap has between its columns: there is no way to heap
SELECT 'CREATE TABLE wi_pairs (id int, ' || string_agg(format('b%s bool, i%s int8', g, g), ', ' ORDER BY g) || ') USING inplace' AS pairs,
       'UPDATE wi_pairs SET ' || string_agg(format('b%s = true, i%s = %s', g, g, g), ', ' ORDER BY g) AS set_pairs
FROM generate_series(1, 700) g \gset
:pairs;
INSERT INTO wi_pairs (id) VALUES (1), (2);
:set_pairs;
UPDATE wi_pairs SET i700 = -1 WHERE id = 1;
SELECT id, b1, i1, i350, b700, i700 FROM wi_pairs ORDER BY id;
\set VERBOSITY sqlstate
SELECT inplace.convert('wi_pairs', 'heap');
\set VERBOSITY default
VACUUM FULL wi_pairs;
SELECT id, b1, i1, i350, b700, i700 FROM wi_pairs ORDER BY id;

SELECT * FROM check_all();
