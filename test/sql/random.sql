-- A random workload, always the same, on a heap and an inplace table: each
-- statement does the same on both, and so do the rollbacks.
CREATE TABLE ra_h (id int PRIMARY KEY, k int, u int UNIQUE, t text, n numeric, c char(30), big text) USING heap;
CREATE TABLE ra_i (LIKE ra_h INCLUDING ALL) USING inplace;
CREATE INDEX ON ra_h (k, t);
CREATE INDEX ON ra_i (k, t);
CREATE INDEX ON ra_i USING gist (numrange(n, n, '[]'));
CREATE INDEX ON ra_i USING brin (id);
CREATE INDEX ON ra_i USING hash (t);
-- a generator of our own: the server's differs between versions
CREATE FUNCTION ra(lo int, hi int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE s bigint := current_setting('ra.seed')::bigint;
BEGIN
    s := (s * 1103515245 + 12345) % 2147483648;
    PERFORM set_config('ra.seed', s::text, false);
    RETURN lo + ((s / 65536) % (hi - lo + 1))::int;
END $$;
CREATE FUNCTION ra_statement() RETURNS text LANGUAGE plpgsql AS $$
DECLARE a int := ra(1, 400); b int := a + ra(0, 60); x int := ra(0, 1000); y int := ra(0, 250);
BEGIN
    RETURN CASE ra(1, 16)
        WHEN 1 THEN format('INSERT INTO $T SELECT g, g %% 17, g * 1000 + %s, repeat(''i'', %s), g / 7.0, g, NULL FROM generate_series(%s, %s) g', x, y, a, b)
        WHEN 2 THEN format('INSERT INTO $T SELECT g, %s, NULL, repeat(''c'', g %% 40), NULL, NULL, repeat(md5(g::text), %s) FROM generate_series(%s, %s) g ON CONFLICT (id) DO UPDATE SET k = excluded.k, t = excluded.t || %s', y, x / 8, a, b, x)
        WHEN 3 THEN format('INSERT INTO $T SELECT g, %s, NULL, NULL, 1, ''x'', NULL FROM generate_series(%s, %s) g ON CONFLICT DO NOTHING', y, a, b)
        WHEN 4 THEN format('UPDATE $T SET t = repeat(''u'', %s) WHERE id BETWEEN %s AND %s', y, a, b)
        WHEN 5 THEN format('UPDATE $T SET t = left(t, %s), n = n + 1 WHERE id BETWEEN %s AND %s RETURNING *', y / 5, a, b)
        WHEN 6 THEN format('UPDATE $T SET k = k + %s WHERE id BETWEEN %s AND %s', x % 3, a, b)
        WHEN 7 THEN format('UPDATE $T SET id = id + 1000 WHERE id BETWEEN %s AND %s', a, b)
        WHEN 8 THEN format('UPDATE $T SET id = id - 1000 WHERE id BETWEEN %s AND %s', a + 1000, b + 1000)
        WHEN 9 THEN format('UPDATE $T SET u = %s WHERE id BETWEEN %s AND %s', x, a, a + x % 2)
        WHEN 10 THEN format('UPDATE $T SET c = NULL, n = %s, big = CASE WHEN id %% 2 = 0 THEN repeat(md5(id::text), %s) END WHERE id BETWEEN %s AND %s', x, y, a, b)
        WHEN 11 THEN format('DELETE FROM $T WHERE id BETWEEN %s AND %s', a, a + x % 30)
        WHEN 12 THEN format('DELETE FROM $T WHERE k = %s RETURNING id, t', x % 40)
        WHEN 13 THEN format('UPDATE $T a SET t = coalesce(b.t, '''') || b.id, c = b.c FROM $T b WHERE b.id = a.id + %s AND a.id < %s', x % 5, b)
        WHEN 14 THEN format('SELECT * FROM $T WHERE k = %s', x % 20)
        WHEN 15 THEN format('SELECT id, t FROM $T WHERE id BETWEEN %s AND %s', a, b)
        ELSE format('MERGE INTO $T m USING (SELECT g AS id FROM generate_series(%s, %s) g) s ON m.id = s.id WHEN MATCHED AND m.k %% 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET t = ''merged'', k = m.k + 1 WHEN NOT MATCHED THEN INSERT (id, k, c) VALUES (s.id, %s, ''m'')', a, b, x % 20)
    END;
END $$;
-- nested subtransactions that end one way or the other
CREATE FUNCTION ra_block(depth int, statements int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE s text; r text;
BEGIN
    FOR i IN 1..statements LOOP
        IF depth < 3 AND ra(1, 5) = 1 THEN
            BEGIN
                PERFORM ra_block(depth + 1, ra(1, 4));
                IF ra(1, 2) = 1 THEN RAISE 'undo'; END IF;
            EXCEPTION WHEN raise_exception THEN NULL;
            END;
        ELSE
            s := ra_statement();
            r := do_both('ra', s);
            IF r <> 'same' THEN RAISE WARNING '%: %', s, left(r, 500); END IF;
        END IF;
    END LOOP;
    r := twins('ra');
    IF r <> 'equal' THEN RAISE WARNING 'depth %: %', depth, r; END IF;
END $$;
CREATE PROCEDURE ra_run(seed int, transactions int) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('ra.seed', seed::text, false);
    FOR i IN 1..transactions LOOP
        PERFORM ra_block(0, ra(1, 6));
        IF ra(1, 4) = 1 THEN ROLLBACK; ELSE COMMIT; END IF;
        IF twins('ra') <> 'equal' THEN RAISE WARNING 'after transaction %: %', i, twins('ra'); EXIT; END IF;
    END LOOP;
END $$;
SET jit = off;
CALL ra_run(1, 60);
SELECT twins('ra');
VACUUM ra_i;
CALL ra_run(2, 60);
SELECT twins('ra');
SELECT * FROM check_all();
VACUUM (FREEZE) ra_i;
CALL ra_run(3, 60);
-- by each index
SET enable_seqscan = off;
SELECT twins('ra');
SELECT do_both('ra', 'SELECT id FROM $T WHERE k BETWEEN 3 AND 9');
SELECT do_both('ra', 'SELECT id FROM $T WHERE u IS NOT NULL AND u < 100000');
SELECT do_both('ra', 'SELECT id FROM $T WHERE t = ''merged''');
SELECT do_both('ra', 'SELECT id FROM $T WHERE numrange(n, n, ''[]'') && ''[3,30]''');
RESET enable_seqscan;
SELECT count(*) FROM (TABLE ra_h EXCEPT ALL TABLE ra_i) s;
SELECT count(*) FROM (TABLE ra_i EXCEPT ALL TABLE ra_h) s;
SELECT count(*) > 100 AS some FROM ra_i;

SELECT * FROM check_all();
