-- A field of the row's header holds a command id, a speculative insertion's token, a
-- locker, the xid of a sweep or the way to undo: who reads it asks which.

-- What functions see of a row that their own INSERT ... ON CONFLICT puts there: the
-- command's snapshot nothing, a later command's the row.  Both access methods.
CREATE FUNCTION hc_nested() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE n int;
BEGIN
	SELECT count(*) INTO n FROM hc;
	RETURN n;
END $$;
CREATE FUNCTION hc_seen(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE n int;
BEGIN
	SELECT count(*) INTO n FROM hc;
	PERFORM set_config('hc.seen', concat_ws(' ', current_setting('hc.seen'), n || '/' || hc_nested()), false);
	RETURN $1;
END $$;
CREATE FUNCTION hc_insert(method text, commands int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('hc.seen', '', false);
	EXECUTE 'CREATE TABLE hc (id int PRIMARY KEY, v int) USING ' || method;
	CREATE INDEX ON hc (hc_seen(v));
	INSERT INTO hc VALUES (1, 1);
	FOR i IN 1 .. commands LOOP
		UPDATE hc SET v = 1 WHERE id = 1;
	END LOOP;
	INSERT INTO hc VALUES (2, 2) ON CONFLICT DO NOTHING;
	BEGIN
		INSERT INTO hc VALUES (3, 3) ON CONFLICT DO NOTHING;
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	INSERT INTO hc VALUES (4, 4) ON CONFLICT (id) DO UPDATE SET v = 0;
	INSERT INTO hc VALUES (1, 1) ON CONFLICT (id) DO NOTHING;
	INSERT INTO hc SELECT g, g FROM generate_series(5, 7) g ON CONFLICT DO NOTHING;
	PERFORM set_config('hc.seen', concat_ws(' ', current_setting('hc.seen'),
		(SELECT string_agg(id::text, ',' ORDER BY id) FROM hc)), false);
	DROP TABLE hc;
	RETURN current_setting('hc.seen');
END $$;
SELECT hc_insert('heap', 0) AS heap \gset
SELECT :'heap' AS heap, hc_insert('inplace', 0) = :'heap' AS same;
-- more commands than the length of a token that is small
SELECT hc_insert('heap', 100) AS heap \gset
SELECT right(:'heap', 60) AS heap, hc_insert('inplace', 100) = :'heap' AS same;
-- such a row cannot be changed before it is certain
CREATE TABLE hc (id int PRIMARY KEY, v int) USING inplace;
CREATE OR REPLACE FUNCTION hc_nested() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	UPDATE hc SET v = v + 1;
	RETURN 0;
END $$;
CREATE INDEX ON hc (hc_seen(v));
\set VERBOSITY terse
INSERT INTO hc VALUES (1, 1) ON CONFLICT DO NOTHING;
\set VERBOSITY default
SELECT * FROM hc;
-- a command id that does not fit beside the token: the row is seen when it is certain
CREATE OR REPLACE FUNCTION hc_nested() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT count(*)::int FROM hc';
CREATE TEMP TABLE hc_many (a int);
BEGIN;
DO $$ BEGIN FOR i IN 1 .. 65536 LOOP INSERT INTO hc_many VALUES (1); END LOOP; END $$;
SELECT set_config('hc.seen', '', false);
INSERT INTO hc VALUES (1, 1) ON CONFLICT DO NOTHING;
SELECT current_setting('hc.seen') AS seen, cmin::text::int > 65535 AS cmin, cmin = cmax AS cmax, hc.* FROM hc;
COMMIT;
DROP TABLE hc, hc_many;
DROP FUNCTION hc_insert, hc_seen, hc_nested;

-- cmin and cmax: those of the command, on either access method, while the transaction runs
CREATE FUNCTION hc_cids(method text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'CREATE TABLE hc (id int PRIMARY KEY, v int) USING ' || method;
	INSERT INTO hc VALUES (1, 1);
	INSERT INTO hc VALUES (2, 2) ON CONFLICT DO NOTHING;
	INSERT INTO hc VALUES (3, 3) ON CONFLICT (id) DO UPDATE SET v = 0;
	RETURN QUERY SELECT concat_ws(' ', 'inserted', id, cmin::text::int - (SELECT min(cmin::text::int) FROM hc), cmin = cmax) FROM hc ORDER BY id;
	PERFORM FROM hc WHERE id = 1 FOR UPDATE;
	UPDATE hc SET v = v + 1 WHERE id = 2;
	RETURN QUERY SELECT concat_ws(' ', 'updated', id, cmin::text::int - (SELECT min(cmin::text::int) FROM hc), cmin = cmax) FROM hc ORDER BY id;
	RETURN QUERY WITH u AS (UPDATE hc SET v = v + 1 RETURNING concat_ws(' ', 'returned', id, cmin::text::int > 1, cmin = cmax) AS l) SELECT l FROM u ORDER BY l;
	RETURN QUERY INSERT INTO hc VALUES (3, 3), (4, 4) ON CONFLICT (id) DO UPDATE SET v = 9 RETURNING concat_ws(' ', 'upserted', id, cmin::text::int > 1, cmin = cmax);
	DROP TABLE hc;
END $$;
CREATE TEMP TABLE hc_heap AS SELECT n, l FROM hc_cids('heap') WITH ORDINALITY AS c(l, n);
SELECT h.l AS heap, h.l = i.l AS same FROM hc_heap h FULL JOIN hc_cids('inplace') WITH ORDINALITY AS i(l, n) USING (n) ORDER BY n;
DROP TABLE hc_heap;
DROP FUNCTION hc_cids;

-- Swept rows have the xid of a sweep there.
CREATE TABLE hc (id int PRIMARY KEY, a int) USING inplace WITH (autovacuum_enabled = off);
CREATE INDEX hc_a ON hc USING inplace_btree (a);
INSERT INTO hc SELECT g, g FROM generate_series(1, 100) g;
VACUUM hc;
UPDATE hc SET a = a + 1000;
-- background workers may have snapshots
DO $$ BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)) LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
END $$;
VACUUM hc;
SELECT flags @> '{FRESH,UNCHANGED}' AS swept, cid FROM inplace.page_items('hc', 0) WHERE item = 1;
SELECT DISTINCT cmin, cmax, xmax FROM hc;
SELECT cid, operation, contents FROM inplace.versions('hc', '(0,1)');
SELECT cmin, cmax FROM hc WHERE id = 1 FOR UPDATE;
BEGIN;
UPDATE hc SET a = a + 1 WHERE id = 2;
ROLLBACK;
BEGIN;
DELETE FROM hc WHERE id = 3;
ROLLBACK;
SELECT DISTINCT cmin, cmax FROM hc;
CLUSTER hc USING hc_pkey;
SELECT DISTINCT cmin, cmax FROM hc;
SELECT cid FROM inplace.page_items('hc', 0) WHERE item = 1;
SELECT * FROM inplace.check('hc');
DROP TABLE hc;

-- What a transaction that was rolled back left behind may have columns that it had added
-- itself.  (A temporary table is restored when a transaction commits.)
CREATE TEMP TABLE hc (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO hc VALUES (1, 1), (2, 2);
BEGIN;
SELECT * FROM hc WHERE id = 2 FOR UPDATE;
SAVEPOINT a;
ALTER TABLE hc ADD COLUMN c int;
UPDATE hc SET c = 5;
SAVEPOINT b;
UPDATE hc SET c = 6;
INSERT INTO hc VALUES (3, 3, 3);
ROLLBACK TO a;
SELECT natts FROM inplace.page_items('hc', 0);
SELECT version, operation, status, visible, changed, contents FROM inplace.versions('hc', '(0,1)');
SELECT version, operation, status, visible, changed, contents FROM inplace.versions('hc', '(0,2)');
SELECT version, operation, status, visible, changed, contents FROM inplace.versions('hc', '(0,3)');
SELECT locked_row, modes FROM inplace.row_locks('hc');
SELECT * FROM inplace.check('hc');
-- ... and another one has the number now
ALTER TABLE hc ADD COLUMN c text;
SELECT version, status, contents FROM inplace.versions('hc', '(0,1)');
SELECT version, status, contents FROM inplace.versions('hc', '(0,3)');
SELECT * FROM inplace.check('hc');
SELECT * FROM hc;
COMMIT;
SELECT version, status, contents FROM inplace.versions('hc', '(0,1)');
UPDATE hc SET c = 'five';
SELECT version, status, contents FROM inplace.versions('hc', '(0,1)') WHERE version = 0;
-- a rolled back change of the columns that there are is shown
BEGIN;
UPDATE hc SET c = 'six' WHERE id = 1;
ROLLBACK;
SELECT version, status, changed, contents FROM inplace.versions('hc', '(0,1)') WHERE version = 0;
DROP TABLE hc;
-- of another table one knows what it was, restored or not
CREATE TABLE hc (id int PRIMARY KEY, v int) USING inplace;
INSERT INTO hc VALUES (1, 1);
BEGIN;
ALTER TABLE hc ADD COLUMN c int;
UPDATE hc SET c = 5;
ROLLBACK;
SELECT status, contents FROM inplace.versions('hc', '(0,1)') WHERE status = 'committed';
SELECT * FROM inplace.check('hc');
DROP TABLE hc;
