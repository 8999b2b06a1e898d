-- Triggers see the versions they were fired for.
CREATE TABLE tg (id int PRIMARY KEY, v int, t text) USING inplace;
CREATE TABLE tg_audit (n serial, op text, old text, new text) USING inplace;
CREATE FUNCTION tg_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tg_audit (op, old, new) VALUES (tg_op, OLD::text, NEW::text);
    RETURN NULL;
END $$;
CREATE TRIGGER tg_audit AFTER INSERT OR UPDATE OR DELETE ON tg FOR EACH ROW EXECUTE FUNCTION tg_audit();
INSERT INTO tg VALUES (1, 1, 'a'), (2, 2, NULL), (3, NULL, 'c');
UPDATE tg SET v = v + 10;
UPDATE tg SET t = 'longer than before ' || id WHERE id < 3;
UPDATE tg SET id = 20 WHERE id = 2;
DELETE FROM tg WHERE id = 3;
BEGIN;
UPDATE tg SET v = 0 WHERE id = 1;
ROLLBACK;
BEGIN;
UPDATE tg SET v = 100 WHERE id = 1;
UPDATE tg SET v = 200 WHERE id = 1;
DELETE FROM tg WHERE id = 1;
INSERT INTO tg VALUES (1, 300, 'again');
UPDATE tg SET v = 400 WHERE id = 1;
COMMIT;
WITH a AS (UPDATE tg SET v = 1 WHERE id = 1), b AS (UPDATE tg SET v = 2 WHERE id = 20) SELECT;
SELECT op, old, new FROM tg_audit ORDER BY n;
TRUNCATE tg_audit;

-- Deferred to the end of the transaction: a row updated 300 times, each
-- event gets its own OLD and NEW.
CREATE TABLE tg_def (id int PRIMARY KEY, v int, t text) USING inplace;
CREATE TABLE tg_seen (n serial, old_v int, new_v int, old_ok bool, new_ok bool) USING inplace;
CREATE FUNCTION tg_def() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tg_seen (old_v, new_v, old_ok, new_ok)
    VALUES (OLD.v, NEW.v, OLD.t = repeat('x', OLD.v % 40), NEW.t = repeat('x', NEW.v % 40));
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER tg_def AFTER INSERT OR UPDATE OR DELETE ON tg_def DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION tg_def();
BEGIN;
INSERT INTO tg_def VALUES (1, 0, ''), (2, 0, '');
DO $$
BEGIN
    FOR i IN 1..300 LOOP
        UPDATE tg_def SET v = i, t = repeat('x', i % 40) WHERE id = 1;
    END LOOP;
END $$;
SELECT count(*) FROM tg_seen;
COMMIT;
SELECT count(*), count(old_v), sum(old_v), sum(new_v), bool_and(new_v = old_v + 1) AS in_steps, bool_and(old_ok), bool_and(new_ok) FROM tg_seen;
SELECT count(DISTINCT new_v) FROM tg_seen;
TRUNCATE tg_seen;
-- ... of a row that was there before, with savepoints in between, then deleted
BEGIN;
DO $$
BEGIN
    FOR i IN 301..700 LOOP
        UPDATE tg_def SET v = i, t = repeat('x', i % 40) WHERE id = 1;
        IF i % 3 = 0 THEN
            BEGIN
                UPDATE tg_def SET v = -1, t = 'undone';
                RAISE 'undo';
            EXCEPTION WHEN raise_exception THEN NULL;
            END;
        END IF;
    END LOOP;
END $$;
DELETE FROM tg_def WHERE id = 1;
COMMIT;
SELECT count(*), sum(old_v), sum(new_v), bool_and(new_v = old_v + 1) AS in_steps, bool_and(old_ok), bool_and(new_ok) FROM tg_seen;
SELECT * FROM tg_def;
TRUNCATE tg_seen;
-- ... many rows, each a few times, one savepoint rolled back
INSERT INTO tg_def SELECT g, 0, '' FROM generate_series(3, 500) g;
TRUNCATE tg_seen;
BEGIN;
UPDATE tg_def SET v = v + 1, t = repeat('x', (v + 1) % 40);
SAVEPOINT s;
UPDATE tg_def SET v = v + 1, t = repeat('x', (v + 1) % 40);
ROLLBACK TO s;
UPDATE tg_def SET v = v + 1, t = repeat('x', (v + 1) % 40);
UPDATE tg_def SET v = v + 1, t = repeat('x', (v + 1) % 40);
DELETE FROM tg_def WHERE id % 2 = 0;
COMMIT;
SELECT old_v, new_v, count(*), bool_and(old_ok), bool_and(new_ok) FROM tg_seen GROUP BY 1, 2 ORDER BY 1, 2;
TRUNCATE tg_seen;
-- ... set immediate in the middle
BEGIN;
UPDATE tg_def SET v = 10, t = repeat('x', 10) WHERE id = 3;
UPDATE tg_def SET v = 11, t = repeat('x', 11) WHERE id = 3;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT old_v, new_v, old_ok, new_ok FROM tg_seen ORDER BY n;
UPDATE tg_def SET v = 12, t = repeat('x', 12) WHERE id = 3;
SELECT old_v, new_v, old_ok, new_ok FROM tg_seen ORDER BY n;
COMMIT;

-- BEFORE triggers: change, suppress, touch the row themselves
CREATE FUNCTION tg_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF tg_op = 'DELETE' THEN
        IF OLD.v = -7 THEN RETURN NULL; END IF;
        RETURN OLD;
    END IF;
    IF NEW.v = 7 THEN RETURN NULL; END IF;
    NEW.t := coalesce(NEW.t, '') || '!';
    RETURN NEW;
END $$;
CREATE TRIGGER tg_before BEFORE INSERT OR UPDATE OR DELETE ON tg FOR EACH ROW EXECUTE FUNCTION tg_before();
INSERT INTO tg VALUES (30, 7, 'no'), (31, -7, 'yes'), (32, 3, 'yes');
UPDATE tg SET v = v + 4 WHERE id IN (31, 32);
DELETE FROM tg WHERE id IN (31, 32);
UPDATE tg SET v = -7 WHERE id = 31;
DELETE FROM tg WHERE id = 31;
SELECT * FROM tg ORDER BY id;
DROP TRIGGER tg_before ON tg;
CREATE FUNCTION tg_self() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() = 1 THEN
        UPDATE tg SET v = v + 1000 WHERE id = OLD.id;
    END IF;
    RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER tg_self BEFORE UPDATE OR DELETE ON tg FOR EACH ROW EXECUTE FUNCTION tg_self();
UPDATE tg SET t = 'x' WHERE id = 1;
DELETE FROM tg WHERE id = 1;
SELECT * FROM tg WHERE id = 1;
DROP TRIGGER tg_self ON tg;

-- Nested: an AFTER trigger that updates the same row, three levels
TRUNCATE tg_audit;
CREATE FUNCTION tg_nested() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.v < 4 THEN
        UPDATE tg SET v = NEW.v + 1, t = NEW.t || '+' WHERE id = NEW.id;
    END IF;
    INSERT INTO tg_audit (op, old, new) VALUES ('nested', OLD::text, NEW::text);
    RETURN NULL;
END $$;
CREATE TRIGGER tg_nested AFTER UPDATE ON tg FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION tg_nested();
UPDATE tg SET v = 1, t = 'n' WHERE id IN (1, 20);
SELECT * FROM tg ORDER BY id;
SELECT op, old, new FROM tg_audit ORDER BY n;
DROP TRIGGER tg_nested ON tg;
TRUNCATE tg_audit;

-- Statement triggers with transition tables; UPDATE OF; WHEN
CREATE FUNCTION tg_stmt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF tg_op = 'UPDATE' THEN
        RAISE NOTICE 'update: %', (SELECT string_agg(o::text || ' -> ' || n::text, '; ' ORDER BY o.id) FROM o JOIN n USING (id));
    ELSIF tg_op = 'INSERT' THEN
        RAISE NOTICE 'insert: %', (SELECT string_agg(n::text, '; ' ORDER BY id) FROM n);
    ELSE
        RAISE NOTICE 'delete: %', (SELECT string_agg(o::text, '; ' ORDER BY id) FROM o);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tg_su AFTER UPDATE ON tg REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION tg_stmt();
CREATE TRIGGER tg_si AFTER INSERT ON tg REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION tg_stmt();
CREATE TRIGGER tg_sd AFTER DELETE ON tg REFERENCING OLD TABLE AS o FOR EACH STATEMENT EXECUTE FUNCTION tg_stmt();
UPDATE tg SET v = v + 1;
INSERT INTO tg VALUES (40, 40, NULL), (41, 41, 'x') ON CONFLICT (id) DO UPDATE SET v = 0;
INSERT INTO tg VALUES (40, 40, NULL), (42, 42, 'x') ON CONFLICT (id) DO UPDATE SET v = 0;
DELETE FROM tg WHERE id >= 40;
UPDATE tg SET v = 0 WHERE false;
DROP TRIGGER tg_su ON tg;
DROP TRIGGER tg_si ON tg;
DROP TRIGGER tg_sd ON tg;
DROP TRIGGER tg_audit ON tg;
CREATE TRIGGER tg_of AFTER UPDATE OF t ON tg FOR EACH ROW WHEN (NEW.v > 100) EXECUTE FUNCTION tg_audit();
UPDATE tg SET v = 200;
UPDATE tg SET t = 'of' WHERE id = 1;
UPDATE tg SET t = 'of', v = 1 WHERE id = 20;
SELECT op, old, new FROM tg_audit ORDER BY n;
DROP TRIGGER tg_of ON tg;
TRUNCATE tg_audit;

-- Toasted values in OLD and NEW, and system columns
CREATE TABLE tg_toast (id int, big text) USING inplace;
ALTER TABLE tg_toast ALTER big SET STORAGE EXTERNAL;
CREATE FUNCTION tg_toast() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'old % % new % %', length(OLD.big), left(OLD.big, 1), length(NEW.big), left(NEW.big, 1);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER tg_toast AFTER UPDATE ON tg_toast DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tg_toast();
INSERT INTO tg_toast VALUES (1, repeat('a', 20000));
BEGIN;
UPDATE tg_toast SET big = repeat('b', 30000);
UPDATE tg_toast SET id = 2;
UPDATE tg_toast SET big = 'c';
UPDATE tg_toast SET big = repeat('d', 40000);
COMMIT;

-- INSTEAD OF, on a view
CREATE VIEW tg_view AS SELECT id, v FROM tg;
CREATE FUNCTION tg_instead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tg SET v = NEW.v, t = 'instead of ' || OLD.v WHERE id = OLD.id;
    RETURN NEW;
END $$;
CREATE TRIGGER tg_instead INSTEAD OF UPDATE ON tg_view FOR EACH ROW EXECUTE FUNCTION tg_instead();
UPDATE tg_view SET v = v + 1;
SELECT * FROM tg ORDER BY id;

SELECT * FROM check_all();
