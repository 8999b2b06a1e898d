-- TOAST tables that are inplace tables: updates of large values are in place.
SHOW inplace.toast_in_place;
CREATE TABLE tip_h (id int PRIMARY KEY, n int, ext text, cmp text, doc jsonb) USING heap;
ALTER TABLE tip_h ALTER ext SET STORAGE EXTERNAL;
CREATE TABLE tip_i (LIKE tip_h INCLUDING ALL) USING inplace;
SET inplace.toast_in_place = off;
CREATE TABLE tip_off (a text) USING inplace;
CREATE VIEW tip_methods AS
    SELECT c.relname, m.amname AS toast_method
    FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_am m ON m.oid = t.relam;
SELECT * FROM tip_methods WHERE relname IN ('tip_h', 'tip_i', 'tip_off') ORDER BY 1;
CREATE FUNCTION tip_toast_pages(rel regclass) RETURNS bigint LANGUAGE sql AS $$
    SELECT pg_relation_size(reltoastrelid) / 8192 FROM pg_class WHERE oid = rel $$;
CREATE FUNCTION tip_text(len int, seed int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT left(string_agg(md5(seed || ' ' || g), ''), len) FROM generate_series(0, len / 32) g $$;
CREATE FUNCTION tip_doc(n int, seed int) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_object_agg('key' || g, md5(seed || ' ' || g)) FROM generate_series(1, n) g $$;
-- about 3, 10, 50 and 200 kB
SELECT do_both('tip', $$INSERT INTO $T SELECT g, g, tip_text(s, g), tip_text(s, -g), tip_doc(s / 45, g)
    FROM generate_series(1, 8) g, LATERAL (SELECT (ARRAY[3000, 10000, 50000, 200000])[g % 4 + 1]) x(s)$$);
SELECT twins('tip');
SELECT id, length(ext), length(cmp) FROM tip_i WHERE id < 5 ORDER BY id;
CREATE TABLE tip_pages AS SELECT tip_toast_pages('tip_i') AS n;
-- the same length
SELECT do_both('tip', $$UPDATE $T SET ext = overlay(ext PLACING 'XYZ' FROM 1500), cmp = overlay(cmp PLACING 'XYZ' FROM 1500)$$);
SELECT do_both('tip', $$UPDATE $T SET doc = jsonb_set(doc, '{key33}', to_jsonb(md5(id::text)))$$);
SELECT twins('tip');
-- nothing has grown but what does not compress as well
SELECT tip_toast_pages('tip_i') <= n + 10 FROM tip_pages;
-- longer, shorter, at the end, at the front, in the middle
SELECT do_both('tip', $$UPDATE $T SET ext = ext || tip_text(1000 + id * 10, id)$$);
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET ext = 'front' || ext, cmp = tip_text(77, id) || cmp$$);
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET ext = left(ext, length(ext) - 2500), cmp = left(cmp, length(cmp) / 2) || 'middle' || right(cmp, length(cmp) / 3)$$);
SELECT twins('tip');
-- keys added and taken away
SELECT do_both('tip', $$UPDATE $T SET doc = doc || jsonb_build_object('key0', id, 'new' || id, repeat(md5(id::text), 5))$$);
SELECT do_both('tip', $$UPDATE $T SET doc = doc - 'key7' - 'key20'$$);
SELECT twins('tip');
-- slices
SELECT bool_and(substr(i.ext, p, 100) = substr(h.ext, p, 100)) FROM tip_i i JOIN tip_h h USING (id), unnest(ARRAY[1, 1990, 1996, 1997, 2100, 9000, 60000]) p;
SELECT bool_and(substr(i.cmp, p, 100) = substr(h.cmp, p, 100)) FROM tip_i i JOIN tip_h h USING (id), unnest(ARRAY[1, 1990, 5000, 60000]) p;
-- away, in line, back
SELECT do_both('tip', $$UPDATE $T SET ext = NULL WHERE id % 5 = 0$$);
SELECT do_both('tip', $$UPDATE $T SET ext = 'short' WHERE id % 5 = 1$$);
SELECT do_both('tip', $$UPDATE $T SET ext = tip_text(7000, id) WHERE id % 5 < 2$$);
SELECT do_both('tip', $$UPDATE $T SET ext = cmp, cmp = ext WHERE id % 3 = 0$$);
SELECT twins('tip');
-- rolled back: shorter, longer, often
BEGIN;
SELECT do_both('tip', $$UPDATE $T SET ext = left(ext, 2100)$$);
SAVEPOINT a;
SELECT do_both('tip', $$UPDATE $T SET ext = ext || tip_text(9000, 1), cmp = reverse(cmp)$$);
SELECT twins('tip');
SAVEPOINT b;
SELECT do_both('tip', $$UPDATE $T SET ext = reverse(ext), doc = doc - 'key1'$$);
SELECT do_both('tip', $$DELETE FROM $T WHERE id < 5$$);
SELECT twins('tip');
ROLLBACK TO b;
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET ext = 'b' || ext, cmp = overlay(cmp PLACING 'b' FROM 2500)$$);
SELECT twins('tip');
ROLLBACK TO a;
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET ext = ext || 'a', cmp = overlay(cmp PLACING 'a' FROM 2000)$$);
SELECT twins('tip');
ROLLBACK;
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET ext = overlay(ext PLACING 'after' FROM 3000)$$);
SELECT twins('tip');
-- more changes than numbers, in one transaction, and beside a cursor
BEGIN;
DECLARE c CURSOR FOR SELECT id, md5(ext) || md5(cmp) || md5(doc::text) AS md5 FROM tip_i WHERE id < 3 ORDER BY id;
CREATE TEMP TABLE tip_then AS SELECT id, md5(ext) || md5(cmp) || md5(doc::text) AS md5 FROM tip_i WHERE id < 3;
DO $$
BEGIN
    FOR i IN 1 .. 50 LOOP
        UPDATE tip_i SET ext = overlay(ext PLACING i::text FROM 1900 + i), doc = jsonb_set(doc, '{key50}', to_jsonb(i)) WHERE id < 3;
        UPDATE tip_h SET ext = overlay(ext PLACING i::text FROM 1900 + i), doc = jsonb_set(doc, '{key50}', to_jsonb(i)) WHERE id < 3;
    END LOOP;
END $$;
FETCH 1 FROM c \gset then_
SELECT :'then_md5' = md5 FROM tip_then WHERE id = :then_id;
COMMIT;
SELECT twins('tip');
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE d CURSOR WITH HOLD FOR SELECT id, ext FROM tip_i ORDER BY id;
UPDATE tip_i SET ext = reverse(ext);
UPDATE tip_i SET ext = reverse(ext);
COMMIT;
MOVE 3 FROM d;
FETCH 1 FROM d \gset d_
SELECT :'d_ext' = ext FROM tip_i WHERE id = :d_id;
CLOSE d;
-- read in a block that is rolled back: as on heap, and never another value
SELECT do_both('tip', $$INSERT INTO $T VALUES (100, 0, tip_text(9000, 0)), (101, 0, tip_text(300, 1))$$);
CREATE FUNCTION tip_back(rel regclass, act text, more text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v text; was text; said text; part text;
BEGIN
    BEGIN
        EXECUTE format(act, rel);
        EXECUTE format('SELECT ext FROM %s WHERE id >= 100 ORDER BY n DESC LIMIT 1', rel) INTO v;
        was := md5(v);
        part := substr(v, 5000, 20);
        RAISE EXCEPTION 'back';
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    said := CASE WHEN md5(v) = was AND substr(v, 5000, 20) = part THEN 'same' ELSE 'OTHER' END;
    EXECUTE format(more, rel);
    BEGIN
        said := said || CASE WHEN md5(v) = was AND substr(v, 5000, 20) = part THEN ', same' ELSE ', OTHER' END;
    EXCEPTION WHEN data_corrupted THEN
        said := said || ', gone';
    END;
    RETURN said;
END $$;
CREATE FUNCTION tip_backs(act text, more text) RETURNS text LANGUAGE sql AS $$
    SELECT 'heap: ' || tip_back('tip_h', act, more) || '; ours: ' || tip_back('tip_i', act, more) $$;
SELECT tip_backs('UPDATE %s SET n = 1, ext = overlay(ext PLACING ''changed'' FROM 3000) WHERE id = 100', 'SELECT %L');
SELECT tip_backs('UPDATE %s SET n = 1, ext = ext || tip_text(5000, 9) WHERE id = 100', 'SELECT %L');
SELECT tip_backs('UPDATE %s SET n = 1, ext = left(ext, 7000) WHERE id = 100', 'SELECT %L');
SELECT tip_backs('INSERT INTO %s VALUES (102, 1, tip_text(8000, 9))', 'SELECT %L');
-- two levels
SELECT tip_backs('DO ''BEGIN UPDATE %1$s SET n = 1, ext = overlay(ext PLACING $a$first$a$ FROM 5000) WHERE id = 100;
    BEGIN UPDATE %1$s SET n = 2, ext = overlay(ext PLACING $a$second$a$ FROM 10) WHERE id = 100; EXCEPTION WHEN raise_exception THEN NULL; END; END''', 'SELECT %L');
-- changed again since (the same chunk, another, and as often as there are numbers): the right one, or none
SELECT tip_backs('UPDATE %s SET n = 1, ext = overlay(ext PLACING ''changed'' FROM 3000) WHERE id = 100',
    'UPDATE %s SET ext = overlay(ext PLACING ''altered'' FROM 3000) WHERE id = 100');
SELECT tip_backs('UPDATE %s SET n = 1, ext = overlay(ext PLACING ''changed'' FROM 3000) WHERE id = 100',
    'UPDATE %s SET ext = overlay(ext PLACING ''altered'' FROM 7000) WHERE id = 100');
CREATE PROCEDURE tip_often(rel regclass) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 35 LOOP
        BEGIN
            EXECUTE format('UPDATE %s SET ext = overlay(ext PLACING %L FROM 3000) WHERE id = 100', rel, lpad(i::text, 7));
            IF i < 33 THEN RAISE EXCEPTION 'back'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
        -- (restores what was rolled back)
        EXECUTE format('UPDATE %s SET ext = ext WHERE id = 101', rel);
    END LOOP;
END $$;
SELECT tip_backs('UPDATE %s SET n = 1, ext = overlay(ext PLACING ''changed'' FROM 3000) WHERE id = 100', 'CALL tip_often(%L)');
-- the value that was rolled back is stored
CREATE FUNCTION tip_put_back(rel regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v text;
BEGIN
    BEGIN
        EXECUTE format('UPDATE %s SET ext = overlay(ext PLACING %L FROM 4444) WHERE id = 100', rel, 'put back');
        EXECUTE format('SELECT ext FROM %s WHERE id = 100', rel) INTO v;
        RAISE EXCEPTION 'back';
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    EXECUTE format('UPDATE %s SET ext = $1 WHERE id = 100', rel) USING v;
END $$;
SELECT tip_put_back('tip_h'), tip_put_back('tip_i');
SELECT twins('tip');
-- a rewrite meanwhile
CREATE FUNCTION tip_rewritten(rel regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v text; w text; m text;
BEGIN
    BEGIN
        EXECUTE format('UPDATE %s SET ext = overlay(ext PLACING %L FROM 555) WHERE id = 100', rel, 'kept');
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    EXECUTE format('SELECT ext FROM %s WHERE id = 100', rel) INTO v;
    m := md5(v);
    EXECUTE format('CLUSTER %s USING %s', rel, rel || '_pkey');
    EXECUTE format('SELECT ext FROM %s WHERE id = 100', rel) INTO w;
    RETURN m = md5(v) AND m = md5(w);
END $$;
SELECT tip_rewritten('tip_h'), tip_rewritten('tip_i');
SELECT twins('tip');
SELECT do_both('tip', $$DELETE FROM $T WHERE id >= 100$$);
-- OLD and NEW in triggers, before and after
CREATE TABLE tip_seen (id int, what text, old_ext text, new_ext text);
CREATE FUNCTION tip_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tip_seen VALUES (coalesce(new.id, old.id), tg_when || ' ' || tg_op,
        CASE WHEN tg_op <> 'INSERT' THEN md5(old.ext) END, CASE WHEN tg_op <> 'DELETE' THEN md5(new.ext) END);
    RETURN new;
END $$;
CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON tip_i FOR EACH ROW EXECUTE FUNCTION tip_note();
BEGIN;
CREATE TEMP TABLE tip_before AS SELECT id, md5(ext) AS m FROM tip_i;
UPDATE tip_i SET ext = 'trigger ' || ext;
UPDATE tip_i SET ext = 'again ' || ext;
SELECT count(*), count(DISTINCT old_ext), bool_and(s.old_ext = b.m) FILTER (WHERE s.new_ext = md5('trigger ' || substr(i.ext, 15))) AS first_old
    FROM tip_seen s JOIN tip_before b USING (id) JOIN tip_i i USING (id);
ROLLBACK;
DROP TRIGGER a ON tip_i;
SELECT twins('tip');
-- ON CONFLICT, MERGE, RETURNING
SELECT do_both('tip', $$INSERT INTO $T VALUES (1, 1, tip_text(9000, 5), tip_text(4000, 6), tip_doc(300, 7)) ON CONFLICT (id) DO UPDATE SET ext = excluded.ext, doc = $T.doc || excluded.doc$$);
SELECT do_both('tip', $$INSERT INTO $T VALUES (1, 1, tip_text(9000, 5)) ON CONFLICT DO NOTHING$$);
SELECT do_both('tip', $$MERGE INTO $T t USING (SELECT generate_series(6, 10) AS id) s ON t.id = s.id WHEN MATCHED AND s.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET ext = 'merged' || t.ext WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, tip_text(5000, s.id))$$);
SELECT twins('tip');
UPDATE tip_i SET ext = overlay(ext PLACING 'ret' FROM 10) WHERE id = 2 RETURNING substr(ext, 8, 8) AS now;
UPDATE tip_h SET ext = overlay(ext PLACING 'ret' FROM 10) WHERE id = 2;
SELECT twins('tip');
-- deleting, VACUUM, and what its indexes say
SELECT do_both('tip', $$DELETE FROM $T WHERE id % 4 = 1$$);
VACUUM tip_i;
SELECT twins('tip');
SELECT do_both('tip', $$INSERT INTO $T SELECT id + 1000, n, ext, cmp, doc FROM $T$$);
SELECT twins('tip');
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE relname = 'tip_i' \gset
SELECT count(*) FROM inplace.check(:'toast');
REINDEX TABLE tip_i;
REINDEX TABLE CONCURRENTLY tip_i;
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET ext = overlay(ext PLACING 'reindexed' FROM 2500)$$);
SELECT twins('tip');
-- beside a snapshot nothing grows but undo, and heap's does
SET inplace.toast_in_place = on;
CREATE TABLE tip_grow_h (id int, a text) USING heap WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off);
ALTER TABLE tip_grow_h ALTER a SET STORAGE EXTERNAL;
CREATE TABLE tip_grow_i (LIKE tip_grow_h INCLUDING ALL) USING inplace WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off);
INSERT INTO tip_grow_h SELECT id, tip_text(9000, id) FROM generate_series(1, 40) id;
INSERT INTO tip_grow_i SELECT * FROM tip_grow_h;
SET inplace.toast_in_place = off;
CREATE TABLE tip_pages2 AS SELECT tip_toast_pages('tip_grow_h') AS h, tip_toast_pages('tip_grow_i') AS i;
SELECT i <= h AS not_larger FROM tip_pages2;
BEGIN;
DECLARE c CURSOR FOR SELECT bool_and(a = tip_text(9000, id)) FROM tip_grow_i;
DO $$
BEGIN
    FOR i IN 1 .. 5 LOOP
        UPDATE tip_grow_h SET a = overlay(a PLACING 'x' || i FROM id * 50);
        UPDATE tip_grow_i SET a = overlay(a PLACING 'x' || i FROM id * 50);
    END LOOP;
END $$;
FETCH c;
COMMIT;
SELECT tip_toast_pages('tip_grow_h') > h * 4 AS heap_grows, tip_toast_pages('tip_grow_i') = i AS inplace_does_not FROM tip_pages2;
SELECT twins('tip_grow');
-- rewrites keep the method, with the setting on or off
VACUUM FULL tip_i;
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET ext = overlay(ext PLACING 'full' FROM 2500), doc = doc - 'key3'$$);
CLUSTER tip_i USING tip_i_pkey;
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET cmp = overlay(cmp PLACING 'clustered' FROM 2500)$$);
ALTER TABLE tip_i ALTER n TYPE bigint;
ALTER TABLE tip_h ALTER n TYPE bigint;
SELECT twins('tip');
SELECT do_both('tip', $$UPDATE $T SET cmp = overlay(cmp PLACING 'altered' FROM 2000)$$);
SELECT twins('tip');
SELECT * FROM tip_methods WHERE relname = 'tip_i';
-- a heap TOAST table stays one, until the table is of another method for a while
SET inplace.toast_in_place = on;
INSERT INTO tip_off VALUES (tip_text(9000, 1));
ALTER TABLE tip_off ALTER a SET STORAGE EXTERNAL;
VACUUM FULL tip_off;
UPDATE tip_off SET a = overlay(a PLACING 'x' FROM 5);
SELECT toast_method FROM tip_methods WHERE relname = 'tip_off';
SELECT inplace.convert('tip_off', 'heap');
SELECT inplace.convert('tip_off');
SELECT toast_method FROM tip_methods WHERE relname = 'tip_off';
SELECT md5(a) = md5(overlay(tip_text(9000, 1) PLACING 'x' FROM 5)) FROM tip_off;
SELECT inplace.convert('tip_i', 'heap');
SELECT twins('tip');
SELECT inplace.convert('tip_i');
SELECT twins('tip');
SELECT * FROM tip_methods WHERE relname = 'tip_i';
-- compression methods, storage
ALTER TABLE tip_i ALTER ext SET STORAGE EXTENDED;
SELECT do_both('tip', $$UPDATE $T SET ext = ext || 'compressed from now on'$$);
SELECT twins('tip');
-- temporary, unlogged, partitioned; TRUNCATE; a materialized view
CREATE TEMP TABLE tip_temp USING inplace AS SELECT id, tip_text(9000, id) AS a FROM generate_series(1, 10) id;
UPDATE tip_temp SET a = overlay(a PLACING 'temporary' FROM 4000);
BEGIN; UPDATE tip_temp SET a = reverse(a); ROLLBACK;
SELECT bool_and(a = overlay(tip_text(9000, id) PLACING 'temporary' FROM 4000)) FROM tip_temp;
CREATE UNLOGGED TABLE tip_unlogged USING inplace AS SELECT id, tip_text(9000, id) AS a FROM generate_series(1, 10) id;
UPDATE tip_unlogged SET a = overlay(a PLACING 'unlogged' FROM 4000);
SELECT bool_and(a = overlay(tip_text(9000, id) PLACING 'unlogged' FROM 4000)) FROM tip_unlogged;
TRUNCATE tip_unlogged;
INSERT INTO tip_unlogged VALUES (1, tip_text(9000, 1));
SELECT length(a) FROM tip_unlogged;
CREATE TABLE tip_part (id int, a text) PARTITION BY RANGE (id);
CREATE TABLE tip_part1 PARTITION OF tip_part FOR VALUES FROM (0) TO (10) USING inplace;
CREATE TABLE tip_part2 PARTITION OF tip_part FOR VALUES FROM (10) TO (20) USING inplace;
INSERT INTO tip_part SELECT id, tip_text(9000, id) FROM generate_series(1, 5) id;
UPDATE tip_part SET a = 'p' || a;
UPDATE tip_part SET id = id + 10, a = 'q' || a WHERE id > 3;
UPDATE tip_part SET a = 'r' || a;
SELECT tableoid::regclass, id, a = CASE WHEN id > 10 THEN 'rqp' ELSE 'rp' END || tip_text(9000, id % 10) AS same FROM tip_part ORDER BY id;
CREATE MATERIALIZED VIEW tip_mv USING inplace AS SELECT id, a FROM tip_part;
UPDATE tip_part SET a = 's' || a;
REFRESH MATERIALIZED VIEW tip_mv;
SELECT (SELECT md5(string_agg(a, ',' ORDER BY id)) FROM tip_mv) = (SELECT md5(string_agg(a, ',' ORDER BY id)) FROM tip_part);
-- indexes on large values, and on what is computed of them
CREATE TABLE tip_ix (id int, a text, doc jsonb) USING inplace;
ALTER TABLE tip_ix ALTER a SET STORAGE EXTERNAL;
INSERT INTO tip_ix SELECT id, repeat(chr(64 + id), 2500), tip_doc(300, id) FROM generate_series(1, 20) id;
CREATE INDEX ON tip_ix (md5(a));
CREATE INDEX ON tip_ix ((doc ->> 'key5'));
CREATE INDEX ON tip_ix USING gin (doc);
UPDATE tip_ix SET a = overlay(a PLACING id::text FROM 2100), doc = jsonb_set(doc, '{key5}', to_jsonb(id));
UPDATE tip_ix SET a = overlay(a PLACING 'x' FROM 1) WHERE id > 10;
SET enable_seqscan = off;
SELECT id FROM tip_ix WHERE md5(a) = md5(overlay(repeat('C', 2500) PLACING '3' FROM 2100));
SELECT id FROM tip_ix WHERE doc ->> 'key5' = '7';
SELECT id FROM tip_ix WHERE doc @> '{"key5": 9}';
RESET enable_seqscan;
VACUUM tip_ix;
-- a function of an index changes the row while its value is being replaced
CREATE TABLE tip_self (id int, n int, a text) USING inplace;
ALTER TABLE tip_self ALTER a SET STORAGE EXTERNAL;
CREATE FUNCTION tip_change() RETURNS void LANGUAGE sql AS $$ UPDATE tip_self SET a = 'nested' || a WHERE id = 1 $$;
CREATE FUNCTION tip_key(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF n = 2 AND current_setting('tip.off', true) IS DISTINCT FROM 'yes' THEN
        PERFORM set_config('tip.off', 'yes', false), tip_change();
    END IF;
    RETURN n;
END $$;
CREATE INDEX ON tip_self (tip_key(n));
INSERT INTO tip_self VALUES (1, 1, tip_text(6000, 1));
UPDATE tip_self SET n = 2, a = overlay(a PLACING 'outer' FROM 3000);
SELECT n, a = tip_text(6000, 1) AS same FROM tip_self;
UPDATE tip_self SET n = 3, a = overlay(a PLACING 'outer' FROM 3000);
SELECT n, a = overlay(tip_text(6000, 1) PLACING 'outer' FROM 3000) AS same FROM tip_self;
-- a heap TOAST table with a file of ours, as after pg_upgrade, is refused
CREATE TABLE tip_mistaken USING inplace AS SELECT tip_text(9000, 1) AS a;
CREATE FUNCTION tip_refused(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'not refused';
EXCEPTION WHEN data_corrupted THEN
    RETURN regexp_replace(sqlerrm, '\d+', 'N', 'g');
END $$;
UPDATE pg_class SET relam = (SELECT oid FROM pg_am WHERE amname = 'heap') WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'tip_mistaken');
SELECT tip_refused(s) FROM unnest(ARRAY['SELECT a FROM tip_mistaken', 'UPDATE tip_mistaken SET a = a || 1',
    'INSERT INTO tip_mistaken SELECT a FROM tip_mistaken', 'ANALYZE tip_mistaken', 'REINDEX TABLE tip_mistaken']) s;
SELECT inplace.after_upgrade();
SELECT a = tip_text(9000, 1) AS same FROM tip_mistaken;
-- columns dropped
ALTER TABLE tip_ix DROP COLUMN a;
UPDATE tip_ix SET id = id + 1;
VACUUM FULL tip_ix;
SELECT count(*), bool_and(doc ->> 'key6' = md5((id - 1) || ' 6')) FROM tip_ix;
-- the server compares values with a page of a BRIN index locked
CREATE TABLE tip_brin (id int, v text) USING inplace;
ALTER TABLE tip_brin ALTER v SET STORAGE EXTERNAL;
CREATE INDEX tip_brin_v ON tip_brin USING brin (id, v);
INSERT INTO tip_brin VALUES (1, repeat('m', 3000)), (2, repeat('a', 3000));
UPDATE tip_brin SET id = id + 10;
SET enable_seqscan = off;
SELECT id, length(v) FROM tip_brin WHERE v >= 'a' AND v < 'b';
SELECT id, length(v) FROM tip_brin WHERE v > (SELECT max(v) FROM tip_brin WHERE v < 'b');
RESET enable_seqscan;
-- values that get shorter and longer by chunks stay where they are, without VACUUM
CREATE TABLE tip_waves (id int, a text) USING inplace WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off);
ALTER TABLE tip_waves ALTER a SET STORAGE EXTERNAL;
INSERT INTO tip_waves SELECT n, tip_text(7000, n) FROM generate_series(1, 40) n;
CREATE TEMP TABLE tip_waves_size AS SELECT pg_relation_size(reltoastrelid) AS bytes FROM pg_class WHERE relname = 'tip_waves';
DO $$
BEGIN
    FOR i IN 1 .. 20 LOOP
        UPDATE tip_waves SET a = tip_text(2500 + 2250 * ((id + i) % 3), id + i);
        COMMIT;
    END LOOP;
END $$;
SELECT bool_and(a = tip_text(2500 + 2250 * ((id + 20) % 3), id + 20)) AS same, count(DISTINCT length(a)) FROM tip_waves;
SELECT pg_relation_size(reltoastrelid) - bytes AS grown FROM pg_class, tip_waves_size WHERE relname = 'tip_waves';
-- chunks behind a value's end: kept ones are found again, all go with the value
UPDATE tip_waves SET a = left(tip_text(20000, id), 3000 + 14000 * (id % 2));
UPDATE tip_waves SET a = tip_text(17000, id);
UPDATE tip_waves SET a = tip_text(2100, id);
BEGIN;
UPDATE tip_waves SET a = tip_text(7900, id + 1);
SELECT count(DISTINCT length(a)) FROM tip_waves WHERE a = tip_text(7900, id + 1);
ROLLBACK;
SELECT count(*) FROM tip_waves WHERE a = tip_text(2100, id);
UPDATE tip_waves SET a = tip_text(7900, id);
SELECT count(*), count(DISTINCT substr(a, 7001, 50)) FROM tip_waves WHERE substr(a, 7001, 50) = substr(tip_text(7900, id), 7001, 50);
UPDATE tip_waves SET a = 'short' WHERE id % 2 = 0;
DELETE FROM tip_waves WHERE id % 2 = 1;
CREATE FUNCTION tip_waves_left() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    chunks bigint;
BEGIN
    EXECUTE (SELECT 'SELECT count(*) FROM pg_toast.' || t.relname FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.relname = 'tip_waves') INTO chunks;
    RETURN chunks;
END $$;
SELECT tip_waves_left();
-- the planner looks at the ends of an index, where versions may be that were rolled back
CREATE TABLE tip_ends USING inplace AS SELECT n, tip_text(6000, n) AS a, left(tip_text(6000, n), 2200) AS b FROM generate_series(1, 200) n;
ALTER TABLE tip_ends ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL;
CREATE INDEX ON tip_ends (md5(a));
CREATE INDEX ON tip_ends (b);
ANALYZE tip_ends;
BEGIN;
UPDATE tip_ends SET a = a || 'x';
ROLLBACK;
SELECT count(*) FROM tip_ends WHERE md5(a) > 'fff';
BEGIN;
UPDATE tip_ends SET b = 'x' || b;
ROLLBACK;
SELECT count(*) FROM tip_ends WHERE b > 'zzz';
RESET inplace.toast_in_place;

SELECT * FROM check_all();
