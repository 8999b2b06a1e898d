-- All index types: after updates of every kind each index finds what a
-- sequential scan does.
SET jit = off;
CREATE TABLE ix_h (id int PRIMARY KEY, n int, t text COLLATE "C", a int[], p point, b box, r int4range, ts tsvector, j jsonb, f float8) USING heap;
CREATE TABLE ix_i (LIKE ix_h INCLUDING ALL) USING inplace;
CREATE FUNCTION ix_rows(lo int, hi int) RETURNS SETOF ix_h LANGUAGE sql AS $$
    SELECT g, g % 50, 'text' || g % 97, ARRAY[g % 7, g % 11, g % 13], point(g % 31, g % 37),
           box(point(g % 31, g % 37), point(g % 31 + 2, g % 37 + 2)), int4range(g, g + 3),
           to_tsvector('simple', 'word' || g % 17 || ' word' || g % 19), jsonb_build_object('k', g % 23, 'l', g), g / 3.0
    FROM generate_series(lo, hi) g
$$;
DO $$
DECLARE m text;
BEGIN
    FOREACH m IN ARRAY ARRAY['h', 'i'] LOOP
        EXECUTE 'INSERT INTO ix_' || m || ' SELECT * FROM ix_rows(1, 1000)';
        EXECUTE replace('
            CREATE INDEX ix_$T_btree ON ix_$T (n);
            CREATE INDEX ix_$T_multi ON ix_$T (t DESC, n NULLS FIRST);
            CREATE INDEX ix_$T_hash ON ix_$T USING hash (t);
            CREATE INDEX ix_$T_gin ON ix_$T USING gin (a);
            CREATE INDEX ix_$T_gints ON ix_$T USING gin (ts) WITH (fastupdate = off);
            CREATE INDEX ix_$T_ginj ON ix_$T USING gin (j);
            CREATE INDEX ix_$T_gist ON ix_$T USING gist (b);
            CREATE INDEX ix_$T_gistp ON ix_$T USING gist (p);
            CREATE INDEX ix_$T_gistr ON ix_$T USING gist (r);
            CREATE INDEX ix_$T_spgist ON ix_$T USING spgist (p);
            CREATE INDEX ix_$T_spgistt ON ix_$T USING spgist (t);
            CREATE INDEX ix_$T_brin ON ix_$T USING brin (f) WITH (pages_per_range = 1);
            CREATE INDEX ix_$T_brinm ON ix_$T USING brin (n int4_minmax_multi_ops) WITH (pages_per_range = 2);
            CREATE INDEX ix_$T_part ON ix_$T (id) WHERE n > 40;
            CREATE INDEX ix_$T_expr ON ix_$T (lower(t), (n * 2));
            CREATE UNIQUE INDEX ix_$T_incl ON ix_$T (id) INCLUDE (n, t)', '$T', m);
    END LOOP;
END $$;
-- each query by each way there is, compared with heap
CREATE FUNCTION ix_compare() RETURNS TABLE (wrong text) LANGUAGE plpgsql AS $$
DECLARE q text; m text; way text; want text; got text;
BEGIN
    FOREACH q IN ARRAY ARRAY[
        'n = 7', 'n BETWEEN 10 AND 12', 'n IS NULL', 'n IN (1, 3, 5)', 't = ''text5''', 't >= ''text9'' AND n < 20',
        't LIKE ''text1%''', 'a @> ARRAY[3, 4]', 'a && ARRAY[12]', 'ts @@ ''word3 & word5''', 'ts @@ ''!word3''', 'j @> ''{"k": 5}''', 'j ? ''new''',
        'b && box(point(3, 3), point(6, 6))', 'p <@ box(point(3, 3), point(9, 9))', 'p ~= point(4, 4)', 'r && int4range(100, 110)', 'r @> 50',
        'f BETWEEN 10 AND 20', 'f < 5', 'id = 77', 'n > 40 AND id BETWEEN 100 AND 200', 'lower(t) = ''text8''', 'lower(t) = ''text8'' AND n * 2 = 16',
        'id BETWEEN 10 AND 30', 'id < 0', 'n = 7 OR t = ''text8'' OR f < 2', 'n = 3 AND a @> ARRAY[3]'] LOOP
        EXECUTE 'SELECT md5(string_agg(s::text, '','' ORDER BY id)) FROM ix_h s WHERE ' || q INTO want;
        FOREACH way IN ARRAY ARRAY['seqscan', 'indexscan', 'bitmapscan', 'indexonlyscan'] LOOP
            PERFORM set_config('enable_seqscan', CASE way WHEN 'seqscan' THEN 'on' ELSE 'off' END, true);
            PERFORM set_config('enable_indexscan', CASE way WHEN 'indexscan' THEN 'on' WHEN 'indexonlyscan' THEN 'on' ELSE 'off' END, true);
            PERFORM set_config('enable_bitmapscan', CASE way WHEN 'bitmapscan' THEN 'on' ELSE 'off' END, true);
            EXECUTE 'SELECT md5(string_agg(s::text, '','' ORDER BY id)) FROM ix_i s WHERE ' || q INTO got;
            IF want IS DISTINCT FROM got THEN wrong := way || ': ' || q; RETURN NEXT; END IF;
            IF way = 'indexonlyscan' THEN
                -- (only columns that are in the index)
                EXECUTE 'SELECT md5(string_agg(id::text, '','' ORDER BY id)) FROM ix_h s WHERE ' || q INTO want;
                EXECUTE 'SELECT md5(string_agg(id::text, '','' ORDER BY id)) FROM ix_i s WHERE ' || q INTO got;
                IF want IS DISTINCT FROM got THEN wrong := way || ' (id): ' || q; RETURN NEXT; END IF;
                EXECUTE 'SELECT md5(string_agg(t || n, '','' ORDER BY t, n)) FROM ix_h s WHERE ' || q INTO want;
                EXECUTE 'SELECT md5(string_agg(t || n, '','' ORDER BY t, n)) FROM ix_i s WHERE ' || q INTO got;
                IF want IS DISTINCT FROM got THEN wrong := way || ' (t, n): ' || q; RETURN NEXT; END IF;
            END IF;
        END LOOP;
    END LOOP;
    PERFORM set_config('enable_' || w, 'on', true) FROM unnest(ARRAY['seqscan', 'indexscan', 'bitmapscan']) w;
END $$;
SELECT * FROM ix_compare();
-- changes: not indexed alone, then of each kind of index
SELECT do_both('ix', $$INSERT INTO $T SELECT * FROM ix_rows(1001, 1500)$$);
SELECT do_both('ix', $$UPDATE $T SET n = n + 1 WHERE id % 3 = 0$$);
SELECT do_both('ix', $$UPDATE $T SET t = upper(t) WHERE id % 5 = 0$$);
SELECT do_both('ix', $$UPDATE $T SET a = a || 99, ts = ts || 'word3'::tsvector WHERE id % 4 = 1$$);
SELECT do_both('ix', $$UPDATE $T SET p = p + point(1, 1), b = b + point(1, 1) WHERE id % 7 = 2$$);
SELECT do_both('ix', $$UPDATE $T SET f = f + 100 WHERE id % 6 = 5$$);
SELECT do_both('ix', $$UPDATE $T SET r = NULL, j = j || '{"new": true}' WHERE id % 11 = 0$$);
SELECT * FROM ix_compare();
SELECT do_both('ix', $$UPDATE $T SET n = NULL WHERE id % 13 = 0$$);
SELECT do_both('ix', $$DELETE FROM $T WHERE id % 17 = 0$$);
SELECT do_both('ix', $$UPDATE $T SET id = -id WHERE id % 19 = 0$$);
SELECT do_both('ix', $$UPDATE $T SET n = 41 WHERE n = 40$$);
SELECT * FROM ix_compare();
-- keys that go away and come back, rollbacks
BEGIN;
SELECT do_both('ix', $$UPDATE $T SET n = 7, t = 'text5', p = point(4, 4), f = 1$$);
SELECT * FROM ix_compare();
ROLLBACK;
SELECT * FROM ix_compare();
SELECT do_both('ix', $$UPDATE $T SET n = n + 1000, t = t || 'x'$$);
SELECT do_both('ix', $$UPDATE $T SET n = n - 1000, t = left(t, -1)$$);
SELECT * FROM ix_compare();
VACUUM ANALYZE ix_i, ix_h;
SELECT * FROM ix_compare();
-- reuse of the space
SELECT do_both('ix', $$DELETE FROM $T WHERE id % 2 = 0$$);
VACUUM ix_i, ix_h;
SELECT do_both('ix', $$INSERT INTO $T SELECT * FROM ix_rows(2001, 2600)$$);
SELECT * FROM ix_compare();
REINDEX TABLE ix_i;
SELECT * FROM ix_compare();
SELECT twins('ix');
-- order
SET enable_seqscan = off;
SET enable_sort = off;
SELECT id, n FROM ix_i WHERE n IS NOT NULL ORDER BY n DESC, id DESC LIMIT 3;
SELECT count(*) FROM (SELECT n, lag(n) OVER () AS l FROM (SELECT n FROM ix_i ORDER BY n) s) s WHERE n < l;
SELECT id, p FROM ix_i WHERE id > 2500 ORDER BY p <-> point(5.1, 5.2), id LIMIT 3;
RESET enable_sort;
RESET enable_seqscan;

-- an index-only scan sees what the snapshot sees
CREATE TABLE ix_only (k int, v int) USING inplace;
INSERT INTO ix_only SELECT g, 0 FROM generate_series(1, 100) g;
CREATE INDEX ON ix_only (k) INCLUDE (v);
VACUUM ix_only;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
BEGIN;
DECLARE c CURSOR FOR SELECT k, v FROM ix_only WHERE k < 5 ORDER BY k;
FETCH 1 FROM c;
UPDATE ix_only SET v = 1 WHERE k < 4;
DELETE FROM ix_only WHERE k = 4;
FETCH ALL FROM c;
SELECT k, v FROM ix_only WHERE k < 6 ORDER BY k;
COMMIT;
SELECT k, v FROM ix_only WHERE k < 6 ORDER BY k;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- an index made while older versions are wanted
BEGIN ISOLATION LEVEL REPEATABLE READ;
CREATE TABLE ix_late (k int, v int) USING inplace;
INSERT INTO ix_late SELECT g, g FROM generate_series(1, 50) g;
UPDATE ix_late SET v = v + 1;
DELETE FROM ix_late WHERE k > 40;
UPDATE ix_late SET v = v * 10;
CREATE INDEX ix_late_v ON ix_late (v);
SET LOCAL enable_seqscan = off;
SELECT count(*) FROM ix_late WHERE v > 0;
SELECT * FROM ix_late WHERE v = 100;
COMMIT;

-- an index that is built concurrently, and whose definition is read anew on the way
CREATE TABLE ix_anew (a int) USING inplace;
INSERT INTO ix_anew SELECT i % 100 FROM generate_series(1, 300) i;
CREATE FUNCTION ix_touch() RETURNS void VOLATILE LANGUAGE plpgsql AS
$$BEGIN UPDATE pg_class SET relname = relname WHERE relname LIKE 'ix\_anew\_i%'; END$$;
CREATE FUNCTION ix_anew(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$BEGIN IF $1 = 7 THEN PERFORM public.ix_touch(); END IF; RETURN -$1; END$$;
CREATE INDEX CONCURRENTLY ix_anew_i ON ix_anew USING inplace_btree (ix_anew(a));
REINDEX INDEX CONCURRENTLY ix_anew_i;
SELECT am.amname, i.indisvalid FROM pg_class c JOIN pg_am am ON am.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relname = 'ix_anew_i';
SET enable_seqscan = off;
SELECT count(*), min(a) FROM ix_anew WHERE ix_anew(a) < -50;
RESET enable_seqscan;

SELECT * FROM check_all();
