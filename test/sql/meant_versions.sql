-- Which version a fetch by TID means is told by who asks, not by the command
-- that is run: one statement can have an UPDATE, an INSERT, and triggers.
SET default_table_access_method = inplace;
CREATE SCHEMA meant;
SET search_path = meant, public;

-- a deferred trigger, fired by SET CONSTRAINTS, updates a row that the
-- transaction has updated before
CREATE TABLE d (id int PRIMARY KEY, v int);
CREATE TABLE e (id int PRIMARY KEY, v int, w int, x int);
CREATE FUNCTION touch_e() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN UPDATE e SET w = w + 1 WHERE id = 1; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON d DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION touch_e();
INSERT INTO e VALUES (1, 0, 0, 0);
BEGIN;
UPDATE e SET v = 1;
UPDATE e SET v = 2;
UPDATE e SET x = 9;
INSERT INTO d VALUES (1, 1);
UPDATE d SET v = 2;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT * FROM e;
COMMIT;
SELECT * FROM e;
BEGIN;
UPDATE e SET v = 3;
UPDATE d SET v = 3;
COMMIT;
SELECT * FROM e;

-- OLD and NEW of an update in a WITH query of an INSERT
CREATE TABLE a (id int PRIMARY KEY, v int);
CREATE TABLE seen (n serial, o int, nw int);
CREATE TABLE copy (id int, v int);
INSERT INTO a VALUES (1, 0), (2, 0);
CREATE FUNCTION log_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO seen (o, nw) VALUES (old.v, new.v); RETURN NULL; END $$;
CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW EXECUTE FUNCTION log_rows();
BEGIN ISOLATION LEVEL REPEATABLE READ;
WITH x AS (UPDATE a SET v = v + 1 WHERE id = 1 RETURNING *) INSERT INTO copy SELECT * FROM x;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
WITH x AS (UPDATE a SET v = v + 1 WHERE id = 1 RETURNING *) INSERT INTO copy SELECT * FROM x;
COMMIT;
WITH x AS (UPDATE a SET v = v + 1 WHERE id = 1 RETURNING *) INSERT INTO copy SELECT * FROM x;
DROP TRIGGER t ON a;
CREATE FUNCTION log_tables() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO seen (o, nw) SELECT o.v, n.v FROM ot o JOIN nt n USING (id); RETURN NULL; END $$;
CREATE TRIGGER t AFTER UPDATE ON a REFERENCING OLD TABLE AS ot NEW TABLE AS nt
	FOR EACH STATEMENT EXECUTE FUNCTION log_tables();
BEGIN ISOLATION LEVEL REPEATABLE READ;
WITH x AS (UPDATE a SET v = v + 1 WHERE id = 1 RETURNING *) INSERT INTO copy SELECT * FROM x;
INSERT INTO a VALUES (1, 50) ON CONFLICT (id) DO UPDATE SET v = a.v + excluded.v;
INSERT INTO a VALUES (1, 50) ON CONFLICT (id) DO NOTHING;
COMMIT;
SELECT o, nw FROM seen ORDER BY n;
SELECT * FROM copy;

-- a foreign key whose parent is updated so
CREATE TABLE pk (id int PRIMARY KEY, k int);
CREATE UNIQUE INDEX ON pk (k);
\set VERBOSITY terse
CREATE TABLE ck (id int PRIMARY KEY, pid int REFERENCES pk (k));
INSERT INTO pk VALUES (1, 10), (2, 20);
INSERT INTO ck VALUES (1, 10);
BEGIN ISOLATION LEVEL REPEATABLE READ;
WITH x AS (UPDATE pk SET k = 999 WHERE id = 1 RETURNING *) INSERT INTO copy SELECT * FROM x;
COMMIT;
SELECT * FROM pk ORDER BY id;

-- the ctid that RETURNING shows and compares, in subqueries, too
DROP TRIGGER t ON a;
CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW EXECUTE FUNCTION log_rows();
TRUNCATE a;
INSERT INTO a VALUES (1, 0);
CREATE TABLE r AS SELECT ctid AS r, 'found' AS x FROM a;
UPDATE a SET v = 1 WHERE id = 1
	RETURNING ctid, (SELECT a.ctid), ARRAY(SELECT a.ctid), (SELECT x FROM r WHERE r.r = a.ctid),
		(SELECT (SELECT x FROM r WHERE r.r = a.ctid AND r.ctid IS NOT NULL));

-- tags do not come round to that of the version before the transaction
CREATE TABLE p (id int PRIMARY KEY, k int NOT NULL, v int DEFAULT 0);
CREATE UNIQUE INDEX ON p (k);
CREATE TABLE c (id int PRIMARY KEY, pk int REFERENCES p (k) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE olds (n serial, o int, nw int);
CREATE FUNCTION log_old() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO olds (o, nw) VALUES (old.v, new.v); RETURN NULL; END $$;
CREATE PROCEDURE bump(n int, own boolean) LANGUAGE plpgsql AS $$
BEGIN FOR i IN 1 .. n LOOP UPDATE p SET v = v + 1; IF own THEN COMMIT; END IF; END LOOP; END $$;
INSERT INTO p VALUES (1, 1);
INSERT INTO c VALUES (1, 1);
CALL bump(125, true);
BEGIN;
UPDATE p SET k = 2;
CALL bump(124, false);
COMMIT;
SELECT * FROM p;
DELETE FROM c;
CREATE CONSTRAINT TRIGGER t AFTER UPDATE ON p DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION log_old();
BEGIN;
CALL bump(130, false);
COMMIT;
CALL bump(119, true);
BEGIN;
CALL bump(260, false);
COMMIT;
SELECT count(*), min(o), max(nw), bool_and(nw = o + 1), count(DISTINCT o) FROM olds;

-- ... from wherever they stand, after rollbacks, too.  A row stays where it is if transactions
-- update it a few times each, wherever the tags come round
CREATE TABLE place (id int PRIMARY KEY, v int);
CREATE TABLE seen_at (start int, what text, o int, nw int);
CREATE FUNCTION log_place() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO seen_at VALUES (current_setting('meant.start')::int, TG_ARGV[0], old.v, new.v); RETURN NULL; END $$;
CREATE TRIGGER t AFTER UPDATE ON place FOR EACH ROW EXECUTE FUNCTION log_place('now');
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON place DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION log_place('late');
CREATE PROCEDURE go_round(n int) LANGUAGE plpgsql AS $$
BEGIN FOR i IN 1 .. n LOOP UPDATE place SET v = v + 1; END LOOP; END $$;
CREATE PROCEDURE from_each(n int, back int) LANGUAGE plpgsql AS $$
BEGIN
	FOR start IN 0 .. 126 LOOP
		PERFORM set_config('meant.start', start::text, false);
		DELETE FROM place;
		INSERT INTO place VALUES (1, 0);
		COMMIT;
		ALTER TABLE place DISABLE TRIGGER ALL;
		FOR i IN 1 .. start LOOP
			UPDATE place SET v = v + 1;
			COMMIT;
		END LOOP;
		ALTER TABLE place ENABLE TRIGGER ALL;
		COMMIT;
		CALL go_round(n - back);
		BEGIN
			CALL go_round(back);
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN
			CALL go_round(back);
		END;
		COMMIT;
	END LOOP;
END $$;
CALL from_each(130, 40);
SELECT what, count(*), bool_and(nw = o + 1), count(DISTINCT (start, o)), bool_and(o >= start), max(nw - start)
	FROM seen_at GROUP BY what ORDER BY what;
DROP TRIGGER t ON place;
DROP TRIGGER late ON place;
DELETE FROM place;
INSERT INTO place VALUES (1, 0);
SELECT ctid AS was FROM place \gset
DO $$ BEGIN
	FOR n IN 1 .. 62 LOOP
		FOR i IN 1 .. 250 / n + 1 LOOP
			CALL meant.go_round(n);
			COMMIT;
		END LOOP;
	END LOOP;
END $$;
SELECT ctid = :'was' AS still_there, v FROM place;

-- the command that replaced the version, not one of a function it called
CREATE TABLE twice (id int PRIMARY KEY, v int, w int DEFAULT 0);
INSERT INTO twice SELECT g, 0 FROM generate_series(1, 5) g;
CREATE FUNCTION touch(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN IF n = 2 THEN UPDATE twice SET w = w + 100 WHERE id = 1; END IF; RETURN n; END $$;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
WITH u AS (UPDATE twice t SET v = v + touch(s.n)
	FROM (SELECT * FROM (VALUES (1, 1), (2, 2), (3, 1)) s (n, id) ORDER BY n OFFSET 0) s
	WHERE s.id = t.id RETURNING 1)
SELECT count(*) FROM u;
SELECT * FROM twice ORDER BY id;
RESET enable_hashjoin;
RESET enable_mergejoin;

SET client_min_messages = warning;
DROP SCHEMA meant CASCADE;
RESET default_table_access_method;
