-- VACUUM merges sparse pages of an inplace_btree, so that keys which wander do not
-- leave pages behind that a few entries keep from being given back.
-- Pages are counted below: no snapshot of autovacuum's may keep VACUUM from anything.
ALTER SYSTEM SET autovacuum = off;
SELECT pg_reload_conf() AS reloaded;
DO $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%') LOOP
		PERFORM pg_sleep(0.05), pg_stat_clear_snapshot();
	END LOOP;
END $$;
CREATE SCHEMA mg;
SET search_path = mg, inplace, public;
CREATE TABLE t (id int PRIMARY KEY, at int, s text, kind int) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i, 'key ' || i, i % 20 FROM generate_series(1, 20000) i;
CREATE INDEX t_at ON t USING inplace_btree (at);
CREATE UNIQUE INDEX t_s ON t USING inplace_btree (s);
CREATE INDEX t_include ON t USING inplace_btree (at DESC) INCLUDE (kind);
CREATE INDEX t_part ON t USING inplace_btree (at, id) WHERE kind < 10;
CREATE INDEX t_plain ON t USING inplace_btree (at) WITH (deduplicate_items = off);
CREATE INDEX t_kind ON t USING inplace_btree (kind);
CREATE SEQUENCE now START 100000;
-- pages at the start, to compare with
CREATE TABLE at_first AS SELECT c.oid::regclass AS index, pg_relation_size(c.oid) / 8192 AS pages
	FROM pg_class c WHERE relnamespace = 'mg'::regnamespace AND relam = (SELECT oid FROM pg_am WHERE amname = 'inplace_btree');

-- each time a third of the rows get new keys, and a tenth of them never
CREATE PROCEDURE changes(how_often int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. how_often LOOP
		UPDATE t SET at = nextval('now'), s = 'key ' || currval('now'), kind = (kind + 1) % 20
			WHERE hashint4(id + i) % 3 = 0 AND id % 10 <> 0;
		COMMIT;
	END LOOP;
END $$;
CREATE FUNCTION grown(factor float) RETURNS TABLE (index regclass, more_than_times float) LANGUAGE sql AS $$
	SELECT a.index, factor FROM at_first a WHERE pg_relation_size(a.index) / 8192 > a.pages * factor $$;
-- by each index in both directions
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	expected text;
	got text;
BEGIN
	FOREACH q IN ARRAY ARRAY['at > 0 ORDER BY at', 'at > 0 ORDER BY at DESC', 's > '''' ORDER BY s', 's > '''' ORDER BY s DESC',
		'kind >= 0 ORDER BY kind', 'kind >= 0 ORDER BY kind DESC', 'kind < 10 AND at > 0 ORDER BY at, id'] LOOP
		q := format('SELECT count(*) || '' '' || sum(hashint8(id * 17::bigint + n)::bigint) FROM (SELECT id, row_number() OVER () AS n FROM (SELECT id FROM t WHERE %s, id OFFSET 0) x) y',
			replace(q, 'at, id', 'at'));
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off;
		EXECUTE q INTO expected;
		SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on;
		EXECUTE q INTO got;
		IF got IS DISTINCT FROM expected THEN
			RETURN NEXT format('%s: %s instead of %s', q, got, expected);
		END IF;
		SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = on;
		EXECUTE q INTO got;
		IF got IS DISTINCT FROM expected THEN
			RETURN NEXT format('bitmap, %s: %s instead of %s', q, got, expected);
		END IF;
	END LOOP;
END $$;

SHOW inplace.merge_index_pages;
-- without, pages that are nearly empty stay
SET inplace.merge_index_pages = off;
CALL changes(1); VACUUM t; CALL changes(1); VACUUM t; CALL changes(1); VACUUM t;
CALL changes(1); VACUUM t; CALL changes(1); VACUUM t; CALL changes(1); VACUUM t;
CALL changes(1); VACUUM t; CALL changes(1); VACUUM t; CALL changes(1); VACUUM t;
SELECT index FROM grown(2.5) ORDER BY index::text;
REINDEX TABLE t;
SELECT * FROM grown(1.2);

SET inplace.merge_index_pages = on;
CALL changes(1); VACUUM t; CALL changes(1); VACUUM t; CALL changes(1); VACUUM t;
CALL changes(1); VACUUM t; CALL changes(1); VACUUM t; CALL changes(1); VACUUM t;
CALL changes(1); VACUUM t; CALL changes(1); VACUUM t; CALL changes(1); VACUUM t;
SELECT * FROM grown(3.5);
SELECT * FROM inplace.check('t');
SELECT * FROM differences();

-- all but a few rows deleted: what is left comes together
DELETE FROM t WHERE id % 50 <> 0;
VACUUM (INDEX_CLEANUP on) t;
SELECT * FROM inplace.check('t');
SELECT * FROM differences();
INSERT INTO t SELECT i, i, 'key ' || i, i % 20 FROM generate_series(100001, 110000) i;
SELECT * FROM inplace.check('t');
SELECT * FROM differences();

-- temporary and unlogged tables
CREATE TEMP TABLE tt (id int PRIMARY KEY, at int) USING inplace;
INSERT INTO tt SELECT i, i FROM generate_series(1, 5000) i;
CREATE INDEX tt_at ON tt USING inplace_btree (at);
UPDATE tt SET at = at + 100000 WHERE id % 5 <> 0;
VACUUM (INDEX_CLEANUP on) tt;
SELECT * FROM inplace.check('tt');
ALTER TABLE t SET UNLOGGED;
UPDATE t SET at = at + 1000000 WHERE id % 5 <> 0;
VACUUM (INDEX_CLEANUP on) t;
SELECT * FROM inplace.check('t');
SELECT * FROM differences();
-- beside parallel workers
ALTER TABLE t SET LOGGED;
SET min_parallel_index_scan_size = 0;
UPDATE t SET at = at + 1000000 WHERE id % 5 <> 0;
VACUUM (INDEX_CLEANUP on, PARALLEL 2) t;
UPDATE t SET at = at + 1000000 WHERE id % 5 <> 1;
DELETE FROM t WHERE id % 7 = 0;
VACUUM (INDEX_CLEANUP on, PARALLEL 2) t;
SELECT * FROM inplace.check('t');
SELECT * FROM differences();
ALTER SYSTEM RESET autovacuum;
SELECT pg_reload_conf() AS reloaded;
SET client_min_messages = warning;
DROP SCHEMA mg CASCADE;
