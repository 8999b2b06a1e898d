-- The traps of in-place updates: each scenario runs on heap tables and then on
-- inplace tables, notes what it sees, and both must have seen the same.
CREATE SCHEMA trap;
CREATE TABLE trap.log (n int GENERATED ALWAYS AS IDENTITY, m text, t text) USING heap;
CREATE FUNCTION trap.note(t text) RETURNS void LANGUAGE sql AS
$$ INSERT INTO trap.log (m, t) VALUES (current_setting('default_table_access_method'), t) $$;
-- Notes OLD and NEW of whatever fires it.
CREATE FUNCTION trap.audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM trap.note(concat_ws(' ', tg_name, tg_op, OLD::text, '->', NEW::text,
                                CASE WHEN tg_op = 'UPDATE' THEN OLD IS DISTINCT FROM NEW END));
    RETURN NULL;
END $$;
-- A scenario: its first part makes the tables, in a schema of its own; an
-- error is what it has seen, too.  (Which of its rows a statement comes to first
-- is open: any_order.)
CREATE FUNCTION trap.run(setup text, body text, any_order bool DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE m text; h text[]; i text[];
BEGIN
    TRUNCATE trap.log;
    FOREACH m IN ARRAY ARRAY['heap', 'inplace'] LOOP
        PERFORM set_config('default_table_access_method', m, true);
        CREATE SCHEMA trap_tables;
        SET LOCAL search_path = trap_tables, public;
        EXECUTE setup;
        IF EXISTS (SELECT FROM pg_class c JOIN pg_am a ON a.oid = c.relam
                   WHERE relnamespace = 'trap_tables'::regnamespace AND relkind = 'r' AND amname <> m) THEN
            RAISE 'not all tables are %', m;
        END IF;
        BEGIN
            EXECUTE body;
            SET CONSTRAINTS ALL IMMEDIATE;
        EXCEPTION WHEN others THEN
            PERFORM trap.note(format('error %s: %s', sqlstate, sqlerrm));
        END;
        SET CONSTRAINTS ALL DEFERRED;
        IF m = 'inplace' THEN
            PERFORM trap.note('check: ' || k::text)
            FROM pg_class c JOIN pg_am a ON a.oid = c.relam, inplace.check(c.oid) k
            WHERE relnamespace = 'trap_tables'::regnamespace AND relkind = 'r' AND amname = m;
        END IF;
        SET LOCAL client_min_messages = warning;
        DROP SCHEMA trap_tables CASCADE;
        RESET client_min_messages;
    END LOOP;
    RESET search_path;
    RESET default_table_access_method;
    SELECT array_agg(t ORDER BY CASE WHEN any_order THEN t END COLLATE "C", n) INTO h FROM trap.log WHERE log.m = 'heap';
    SELECT array_agg(t ORDER BY CASE WHEN any_order THEN t END COLLATE "C", n) INTO i FROM trap.log WHERE log.m = 'inplace';
    IF h IS DISTINCT FROM i THEN
        RETURN format('DIFFERS: heap %s inplace %s', h, i);
    END IF;
    RETURN format('same, %s lines; last: %s', cardinality(h), h[cardinality(h)]);
END $$;

-- An audit trigger at the statement's end and one at the transaction's, on a
-- row updated 400 times with subtransactions rolled back in between
SELECT trap.run($$
    CREATE TABLE t (id int PRIMARY KEY, v int, w text);
    INSERT INTO t VALUES (1, 0, ''), (2, 0, '');
    CREATE TRIGGER now AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION trap.audit();
    CREATE CONSTRAINT TRIGGER later AFTER INSERT OR UPDATE OR DELETE ON t DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION trap.audit();
$$, $$ DO $do$ BEGIN
    FOR i IN 1..400 LOOP
        UPDATE t SET v = i, w = repeat('x', i % 50) WHERE id = 1;
        IF i % 7 = 0 THEN
            BEGIN
                UPDATE t SET v = -i;
                UPDATE t SET w = repeat('y', 100) WHERE id = 1;
                IF i % 2 = 0 THEN DELETE FROM t WHERE id = 1; END IF;
                RAISE division_by_zero;
            EXCEPTION WHEN division_by_zero THEN NULL;
            END;
        END IF;
        IF i % 11 = 0 THEN
            BEGIN
                UPDATE t SET v = v + i WHERE id = 2;
            EXCEPTION WHEN division_by_zero THEN NULL;
            END;
        END IF;
    END LOOP;
    DELETE FROM t WHERE id = 1;
    INSERT INTO t VALUES (1, -1, 'again');
    UPDATE t SET v = -2 WHERE id = 1;
END $do$ $$);
-- Nested: triggers that update the row they fired for, and its neighbour
SELECT trap.run($$
    CREATE TABLE t (id int PRIMARY KEY, v int, w text);
    INSERT INTO t SELECT g, 0, 'w' FROM generate_series(1, 4) g;
    CREATE FUNCTION deeper() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
        PERFORM trap.note(format('%s %s: %s -> %s', tg_name, pg_trigger_depth(), OLD, NEW));
        IF pg_trigger_depth() < 6 AND tg_when = 'AFTER' THEN
            UPDATE t SET v = v + 1, w = w || pg_trigger_depth() WHERE id IN (NEW.id, NEW.id % 4 + 1);
        END IF;
        RETURN NEW;
    END $f$;
    CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION deeper();
    CREATE TRIGGER b BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION deeper();
    CREATE CONSTRAINT TRIGGER c AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trap.audit();
$$, $$ UPDATE t SET v = 1 WHERE id IN (1, 2); SELECT trap.note(t::text) FROM t ORDER BY id $$);
-- The row changes between the statement and its deferred events, and moves
SELECT trap.run($$
    CREATE TABLE t (id int PRIMARY KEY, k int, w text);
    CREATE INDEX ON t (k);
    INSERT INTO t SELECT g, g, 'w' FROM generate_series(1, 5) g;
    CREATE CONSTRAINT TRIGGER later AFTER INSERT OR UPDATE OR DELETE ON t DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION trap.audit();
$$, $$ DO $do$ BEGIN
    FOR i IN 1..60 LOOP
        -- (one by one: the order of a scan is not the same)
        UPDATE t SET w = 'in place ' || i WHERE id = 1;
        UPDATE t SET w = 'in place ' || i WHERE id = 2;
        UPDATE t SET k = k + 10 WHERE id = 1;
        UPDATE t SET w = repeat('z', i * 100) WHERE id = 2;
        UPDATE t SET id = -id WHERE abs(id) = 3;
    END LOOP;
    FOR i IN -3..5 LOOP
        DELETE FROM t WHERE id = i AND i <> 2;
    END LOOP;
    INSERT INTO t SELECT g, g, 'new' FROM generate_series(3, 9) g;
END $do$ $$);
-- Transition tables beside row triggers, of one statement with several CTEs
SELECT trap.run($$
    CREATE TABLE t (id int PRIMARY KEY, v int);
    INSERT INTO t SELECT g, g FROM generate_series(1, 6) g;
    CREATE FUNCTION pairs() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
        PERFORM trap.note(format('%s -> %s', o, n)) FROM o FULL JOIN n USING (id) ORDER BY id;
        RETURN NULL;
    END $f$;
    CREATE TRIGGER s AFTER UPDATE ON t REFERENCING OLD TABLE o NEW TABLE n FOR EACH STATEMENT EXECUTE FUNCTION pairs();
    CREATE TRIGGER r AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION trap.audit();
$$, $$ WITH a AS (UPDATE t SET v = v + 10 WHERE id < 4 RETURNING *), b AS (UPDATE t SET v = v + 100 WHERE id >= 4 RETURNING *)
    SELECT trap.note(x::text) FROM (TABLE a UNION ALL TABLE b UNION ALL TABLE t) x ORDER BY x;
    WITH a AS (UPDATE t SET v = 0 WHERE id < 4 RETURNING *) UPDATE t SET v = t.v + a.v FROM a WHERE a.id + 3 = t.id $$);

-- One row twice in a command: ON CONFLICT DO UPDATE, MERGE, UPDATE ... FROM,
-- and a function that changes the row that the command is about to change
SELECT trap.run($$ CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2) $$, body) FROM (VALUES
($$ INSERT INTO t VALUES (1, 10), (1, 11) ON CONFLICT (id) DO UPDATE SET v = excluded.v $$),
($$ INSERT INTO t VALUES (3, 10), (3, 11) ON CONFLICT (id) DO UPDATE SET v = excluded.v $$),
($$ INSERT INTO t VALUES (1, 10), (1, 11) ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE t.v < 5 $$),
($$ INSERT INTO t VALUES (1, 10), (5, 11) ON CONFLICT (id) DO UPDATE SET id = 5 $$),
($$ MERGE INTO t USING (VALUES (1, 5), (1, 6)) s (k, n) ON id = k WHEN MATCHED THEN UPDATE SET v = n $$),
($$ MERGE INTO t USING (VALUES (1, 5), (1, 6)) s (k, n) ON id = k WHEN MATCHED AND v = 1 THEN UPDATE SET v = n WHEN MATCHED THEN DELETE $$),
($$ MERGE INTO t USING (VALUES (1, 5), (1, 6)) s (k, n) ON id = k WHEN MATCHED THEN DELETE $$),
($$ MERGE INTO t USING (VALUES (3, 5), (3, 6)) s (k, n) ON id = k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k, n) $$),
($$ UPDATE t SET v = v + n FROM (VALUES (1, 5), (1, 5)) s (k, n) WHERE id = k; SELECT trap.note(t::text) FROM t ORDER BY id $$),
($$ DELETE FROM t USING (VALUES (1, 5), (1, 5)) s (k, n) WHERE id = k; SELECT trap.note(t::text) FROM t ORDER BY id $$),
($$ CREATE FUNCTION f(i int) RETURNS int LANGUAGE plpgsql AS $f$ BEGIN UPDATE t SET v = v + 100 WHERE id = i; RETURN i; END $f$;
    UPDATE t SET v = f(id); SELECT trap.note(t::text) FROM t ORDER BY id $$),
($$ CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN UPDATE t SET v = v + 100 WHERE id = OLD.id; RETURN OLD; END $f$;
    CREATE TRIGGER f BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION f(); DELETE FROM t $$),
($$ CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
        IF pg_trigger_depth() = 1 THEN UPDATE t SET v = v + 100 WHERE id = OLD.id; END IF; RETURN NEW; END $f$;
    CREATE TRIGGER f BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
    INSERT INTO t VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET v = 7 $$),
($$ WITH a AS (UPDATE t SET v = 5 WHERE id = 1 RETURNING *), b AS (UPDATE t SET v = 6 WHERE id = 1 RETURNING *)
    SELECT trap.note(x::text) FROM (TABLE a UNION ALL TABLE b) x; SELECT trap.note(t::text) FROM t ORDER BY id $$)
) AS s (body);

-- Optimistic locking on system columns; cmin and cmax within a transaction
SELECT trap.run($$ CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2) $$, $$ DO $do$
DECLARE x xid; c tid; n int; r record;
BEGIN
    SELECT xmin, ctid INTO x, c FROM t WHERE id = 1;
    BEGIN
        UPDATE t SET v = 2 WHERE id = 1 AND xmin = x;
        GET DIAGNOSTICS n = ROW_COUNT;
        PERFORM trap.note('first ' || n);
        UPDATE t SET v = 3 WHERE id = 1 AND xmin = x;
        GET DIAGNOSTICS n = ROW_COUNT;
        PERFORM trap.note('stale ' || n);
        UPDATE t SET v = 3 WHERE id = 1 AND xmin = (SELECT xmin FROM t WHERE id = 1) AND ctid = (SELECT ctid FROM t WHERE id = 1);
        GET DIAGNOSTICS n = ROW_COUNT;
        PERFORM trap.note('fresh ' || n);
        FOR r IN SELECT id, xmin = x AS same, xmax = 0 AS live FROM t ORDER BY id LOOP
            PERFORM trap.note(r::text);
        END LOOP;
        RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    -- rolled back: the version read at first is the newest again
    UPDATE t SET v = 4 WHERE id = 1 AND xmin = x AND ctid = c;
    GET DIAGNOSTICS n = ROW_COUNT;
    PERFORM trap.note('after rollback ' || n);
    INSERT INTO t VALUES (3, 3);
    UPDATE t SET v = 5 WHERE id = 2;
    PERFORM trap.note(format('%s %s', id, rank() OVER (ORDER BY cmin::text::int))) FROM t ORDER BY id;
END $do$ $$);

-- WHERE CURRENT OF after the row was updated in place, moved, deleted, rolled back
SELECT trap.run($$ CREATE TABLE t (id int PRIMARY KEY, v int, w text); INSERT INTO t SELECT g, g, 'w' FROM generate_series(1, 8) g $$, $$ DO $do$
DECLARE c CURSOR FOR SELECT * FROM t; u CURSOR FOR SELECT * FROM t WHERE id > 4 FOR UPDATE; r t; n int;
BEGIN
    OPEN c;
    FETCH c INTO r;
    FOR i IN 1..150 LOOP
        UPDATE t SET v = v + 1, w = repeat('w', i % 30) WHERE CURRENT OF c;
        GET DIAGNOSTICS n = ROW_COUNT;
        IF n <> 1 THEN PERFORM trap.note(format('%s: %s', i, n)); END IF;
    END LOOP;
    FETCH c INTO r;
    UPDATE t SET id = 20 WHERE id = 2;
    UPDATE t SET v = -1 WHERE CURRENT OF c;
    GET DIAGNOSTICS n = ROW_COUNT;
    PERFORM trap.note(format('moved: %s', n));
    FETCH c INTO r;
    BEGIN
        UPDATE t SET w = repeat('q', 3000) WHERE CURRENT OF c;
        DELETE FROM t WHERE CURRENT OF c;
        RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    UPDATE t SET v = -3 WHERE CURRENT OF c;
    DELETE FROM t WHERE id = 4;
    FETCH c INTO r;
    PERFORM trap.note(r::text);
    UPDATE t SET v = -4 WHERE CURRENT OF c;
    GET DIAGNOSTICS n = ROW_COUNT;
    PERFORM trap.note(format('deleted: %s', n));
    CLOSE c;
    OPEN u;
    LOOP
        FETCH u INTO r;
        EXIT WHEN NOT FOUND;
        UPDATE t SET v = r.v * 10, w = r.w || r.id WHERE CURRENT OF u;
        UPDATE t SET v = v + 1 WHERE CURRENT OF u;
    END LOOP;
    CLOSE u;
    PERFORM trap.note(t::text) FROM t ORDER BY id;
END $do$ $$);

-- Referential actions that meet a row more than once
SELECT trap.run($$
    CREATE TABLE p (id int PRIMARY KEY, v int);
    CREATE TABLE c (id int PRIMARY KEY, a int REFERENCES p ON UPDATE CASCADE ON DELETE SET NULL,
                    b int REFERENCES p ON UPDATE CASCADE ON DELETE CASCADE, d int REFERENCES p DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER c AFTER INSERT OR UPDATE OR DELETE ON c FOR EACH ROW EXECUTE FUNCTION trap.audit();
    INSERT INTO p SELECT g, 0 FROM generate_series(1, 5) g;
$$, $$ INSERT INTO c VALUES (1, 1, 1, 9), (2, 2, 1, 1), (3, 1, 2, 2), (4, 4, 4, NULL);
    UPDATE c SET d = 2 WHERE d = 9;
    UPDATE p SET v = v + 1; UPDATE p SET v = v + 1;
    INSERT INTO p VALUES (9, 9);
    UPDATE c SET d = NULL WHERE id > 1;
    UPDATE p SET id = 101 WHERE id = 1;
    UPDATE p SET id = 104 WHERE id = 4;
    DELETE FROM p WHERE id = 101;
    SELECT trap.note(c::text) FROM c ORDER BY id;
    DELETE FROM p WHERE id = 2;
    SELECT trap.note(c::text) FROM c ORDER BY id $$, true);

-- Rows updated in place in a long transaction, seen by functions that keep
-- the snapshot of their command (STABLE) or take a new one (VOLATILE)
SELECT trap.run($$
    CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
    CREATE FUNCTION s() RETURNS bigint STABLE LANGUAGE plpgsql AS $f$ BEGIN RETURN (SELECT sum(v) FROM t); END $f$;
    CREATE FUNCTION v() RETURNS bigint VOLATILE LANGUAGE plpgsql AS $f$ BEGIN RETURN (SELECT sum(v) FROM t); END $f$;
$$, $$ WITH u AS (UPDATE t SET v = v + 10 + 0 * s() RETURNING id, s() AS s, v() AS v)
    SELECT trap.note(format('%s | %s %s', u, s(), v())) FROM u ORDER BY id;
    SELECT trap.note(format('%s %s', s(), v())) $$);

-- A parallel query sees what its own transaction has changed, and not what
-- has been rolled back
CREATE TABLE par_h (id int PRIMARY KEY, v int, w text) USING heap WITH (parallel_workers = 2, autovacuum_enabled = off);
CREATE TABLE par_i (id int PRIMARY KEY, v int, w text) USING inplace WITH (parallel_workers = 2, autovacuum_enabled = off);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
BEGIN;
SELECT do_both('par', $$INSERT INTO $T SELECT g, g % 100, repeat('w', 60) FROM generate_series(1, 5000) g$$);
SELECT do_both('par', $$SELECT count(*), sum(v), sum(length(w)) FROM $T$$);
UPDATE par_h SET v = v + 1 WHERE id % 3 = 0;
UPDATE par_i SET v = v + 1 WHERE id % 3 = 0;
SELECT do_both('par', $$SELECT count(*), sum(v), sum(length(w)) FROM $T$$);
SAVEPOINT a;
SELECT do_both('par', $$UPDATE $T SET v = -v, w = w || id$$);
SELECT do_both('par', $$DELETE FROM $T WHERE id % 5 = 0$$);
SELECT do_both('par', $$UPDATE $T SET id = id + 100000 WHERE id % 7 = 0$$);
SELECT count(*), sum(v), sum(length(w)) FROM par_h;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v), sum(length(w)) FROM par_i;
SELECT count(*), sum(v), sum(length(w)) FROM par_i;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT count(*), sum(v), sum(length(w)) FROM par_i WHERE id > 0;
ROLLBACK TO a;
SELECT count(*), sum(v), sum(length(w)) FROM par_h;
SELECT count(*), sum(v), sum(length(w)) FROM par_i;
COMMIT;
SELECT twins('par');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET min_parallel_index_scan_size;
RESET max_parallel_workers_per_gather;

SELECT * FROM check_all();
-- (a crash may advance its sequence, which must not show in a dump)
SET client_min_messages = warning;
DROP SCHEMA trap CASCADE;
