-- Columns under GiST and hash indexes are updated in place: each index gets the new key
-- at the row's TID, and VACUUM takes out the former ones.
CREATE SCHEMA us;
SET search_path = us, inplace, public;
SET inplace.former_keys_limit = 0;
CREATE TABLE t (id int PRIMARY KEY, p point, r int4range, h int, s text, n int, pad text)
	USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO t SELECT i, point(i % 100, i / 100), int4range(i, i + 10), i % 50, 's' || i % 40, i % 10, 'p' FROM generate_series(1, 1000) i;
CREATE INDEX t_n ON t USING inplace_btree (n);
CREATE INDEX t_p ON t USING gist (p);
CREATE INDEX t_r ON t USING gist (r) INCLUDE (n);
CREATE INDEX t_two ON t USING gist (r, p);
CREATE INDEX t_part ON t USING gist (p) WHERE n > 5;
CREATE INDEX t_expr ON t USING gist ((CASE WHEN n > 3 THEN r END));
CREATE INDEX t_part_h ON t USING gist (p) INCLUDE (h, s) WHERE n > 6;
CREATE INDEX t_expr_h ON t USING gist (p, (CASE WHEN n > 3 THEN r END)) INCLUDE (h);
CREATE INDEX t_h ON t USING hash (h);
CREATE INDEX t_s ON t USING hash (s);
CREATE INDEX t_h_part ON t USING hash (h) WHERE n > 5;
CREATE INDEX t_h_expr ON t USING hash ((h / 2));
VACUUM ANALYZE t;

CREATE TABLE places AS SELECT id, ctid AS place FROM t;
CREATE FUNCTION moved() RETURNS bigint LANGUAGE sql AS
	'SELECT count(*) FROM us.t JOIN us.places USING (id) WHERE t.ctid <> place';
CREATE FUNCTION stale() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM generate_series(0, pg_relation_size('us.t') / 8192 - 1) b, inplace.page_items('us.t', b)
	WHERE 'STALE' = ANY (flags) $$;
CREATE FUNCTION alone() RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)) LOOP
		PERFORM pg_sleep(0.01);
		PERFORM pg_stat_clear_snapshot();
	END LOOP;
	RETURN true;
END $$;

-- The same question by each kind of scan and by a sequential scan.
CREATE TABLE questions (columns text, q text, ordered bool DEFAULT false);
INSERT INTO questions (columns, q) VALUES ('id', $$p <@ box '(10,2),(40,5)'$$), ('p', $$p <@ box '(10,2),(40,5)'$$), ('id', $$p ~= point '(500,500)'$$),
	('id', $$p <@ circle '<(500,500),30>'$$), ('p', $$p << point '(20,0)'$$), ('id', $$p <@ box '(0,0),(600,600)' AND n > 5$$), ('p', $$p <@ box '(10,2),(40,5)' AND n > 6$$),
	('id', $$r && int4range(100, 120)$$), ('r, n', $$r && int4range(100, 120)$$), ('r', $$r @> 2005$$), ('r, n', $$r @> 2005$$), ('id', $$r && int4range(1, 3000) AND p <@ box '(0,0),(50,5)'$$),
	('id', $$r -|- int4range(2000, 2001)$$), ('r, p', $$r && int4range(1, 900) AND p >> point '(80,0)'$$),
	('id', '(CASE WHEN n > 3 THEN r END) && int4range(100, 120)'), ('id', $$p <@ box '(10,2),(40,5)' OR r @> 2005$$), ('id', $$r @> 2005 AND h = 7$$),
	('id', 'h = 7'), ('id', 'h = 107'), ('id', $$s = 's7'$$), ('id', $$s = 'new'$$), ('id', 'h = 7 AND n > 5'), ('id', 'h / 2 = 3'), ('id', 'h / 2 = 53'),
	('p, h, s', $$p <@ box '(10,2),(40,5)' AND n > 6$$), ('h, s', $$p IS NULL AND n > 6$$), ('h, s', $$p <@ box '(0,0),(600,600)' AND n > 6$$),
	('p, h', $$p <@ box '(10,2),(40,5)'$$), ('id', $$(CASE WHEN n > 3 THEN r END) && int4range(100, 120) AND p <@ box '(0,0),(600,600)'$$),
	('id', $$h = 107 OR s = 'new'$$), ('id', $$h IN (7, 8, 107)$$), ('id', $$p IS NULL$$), ('r', $$r IS NULL$$);
INSERT INTO questions VALUES ('id, p <-> point (21,3) AS d', 'true ORDER BY p <-> point (21,3), id', true), ('p <-> point (21,3) AS d', 'true ORDER BY p <-> point (21,3)', true),
	('p <-> point (510,510) AS d', 'true ORDER BY p <-> point (510,510)', true), ('p <-> point (21,3) AS d', 'n > 5 ORDER BY p <-> point (21,3)', true),
	('p <-> point (21,3) AS d, pad', 'true ORDER BY p <-> point (21,3)', true), ('p <-> point (21,3) AS d, pad', 'r && int4range(100, 800) ORDER BY p <-> point (21,3)', true);
CREATE FUNCTION ask(columns text, q text, ordered bool, setting text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('enable_seqscan', (setting = 'seq')::text, true), set_config('enable_bitmapscan', (setting = 'bitmap')::text, true),
		set_config('enable_indexscan', (setting IN ('index', 'index-only'))::text, true), set_config('enable_indexonlyscan', (setting = 'index-only')::text, true),
		set_config('enable_sort', (setting IN ('seq', 'bitmap') OR NOT ordered)::text, true);
	IF ordered THEN
		EXECUTE format('SELECT array_agg(x::text ORDER BY o)::text FROM (SELECT row_number() OVER () AS o, * FROM (SELECT %s FROM t WHERE %s LIMIT 300) y) z, LATERAL (SELECT z.d) x', columns, q) INTO answer;
	ELSE
		EXECUTE format('SELECT array_agg(x::text ORDER BY x::text)::text FROM (SELECT %s FROM t WHERE %s) x', columns, q) INTO answer;
	END IF;
	RETURN answer;
END $$;
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT format('%s %s by %s', columns, q, setting) FROM questions, unnest(ARRAY['index', 'index-only', 'bitmap']) setting
	WHERE ask(columns, q, ordered, 'seq') IS DISTINCT FROM ask(columns, q, ordered, setting) $$;
SELECT * FROM differences();

-- In place, in each way that keys can change.
UPDATE t SET p = point(500 + id % 10, 500) WHERE id % 4 = 0;
UPDATE t SET p = p + point(3, 1) WHERE id % 5 = 0;
UPDATE t SET r = int4range(2000 + id % 7, 2010) WHERE id % 6 = 0;
UPDATE t SET p = NULL WHERE id % 50 = 1;
UPDATE t SET r = NULL WHERE id % 50 = 2;
UPDATE t SET r = 'empty' WHERE id % 50 = 3;
UPDATE t SET n = 9 WHERE id % 20 = 3;		-- into the predicates
UPDATE t SET n = 1 WHERE id % 20 = 8;		-- out of them
UPDATE t SET h = h + 100 WHERE id % 3 = 0;
UPDATE t SET s = 'new' WHERE id % 8 = 1;
UPDATE t SET h = NULL WHERE id % 50 = 4;
UPDATE t SET pad = 'q' WHERE id % 3 = 0;	-- of no index
SELECT moved(), stale() > 500 AS stale;
SELECT * FROM differences();
-- There and back.
UPDATE t SET p = point(510, 510), h = 107, r = int4range(1, 6) WHERE id % 7 = 0;
UPDATE t SET p = point(20, 3), h = 7, r = int4range(100, 101) WHERE id % 7 = 0;
UPDATE t SET p = point(510, 510), h = 107, r = int4range(1, 6) WHERE id % 7 = 0;
SELECT moved();
SELECT * FROM differences();

-- Rolled back, as a whole or to a savepoint.
BEGIN;
UPDATE t SET p = point(20, 3), h = 7, s = 's7', r = int4range(110, 120) WHERE id < 100;
SELECT * FROM differences();
ROLLBACK;
SELECT * FROM differences();
BEGIN;
UPDATE t SET p = point(30, 3), h = 8 WHERE id < 50;
SAVEPOINT s;
UPDATE t SET p = point(500, 503), h = 107, r = int4range(2005, 2006) WHERE id < 100;
SELECT * FROM differences();
ROLLBACK TO s;
SELECT * FROM differences();
COMMIT;
SELECT * FROM differences();
SELECT moved();

-- Cursors go by what they have seen, through entries that there were then.
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT count(*), sum(id) FROM t WHERE p <@ box '(505,500),(510,510)';
DECLARE d SCROLL CURSOR FOR SELECT id FROM t WHERE h = 107 AND id < 120;
DECLARE e CURSOR FOR SELECT p <-> point (20, 3) FROM t WHERE p <@ box '(0,0),(600,600)' ORDER BY p <-> point (20, 3) LIMIT 5;
FETCH FROM d;
FETCH FROM e;
UPDATE t SET p = point(1, 1) WHERE p <@ box '(505,500),(510,510)';
UPDATE t SET h = 7 WHERE h = 107;
FETCH ALL FROM c;
FETCH ALL FROM d;
FETCH BACKWARD ALL FROM d;
FETCH ALL FROM e;
SELECT count(*) FROM t WHERE p <@ box '(505,500),(510,510)';
SELECT count(*) FROM t WHERE h = 107;
ROLLBACK;

-- VACUUM takes former keys out, and clears the marks in the next one.  Once the mark is
-- gone nothing is rechecked: an entry left over would show.
UPDATE t SET p = point(id % 13, id % 17) WHERE id % 7 = 0;
UPDATE t SET r = int4range(id, id + 2) WHERE id % 7 = 0;
SELECT alone();
VACUUM t;
SELECT * FROM differences();
SELECT alone();
VACUUM t;
SELECT stale(), (SELECT relpages = relallvisible FROM pg_class WHERE oid = 't'::regclass) AS all_visible;
SELECT * FROM differences();
SELECT moved();
-- There and back gives no second entry of a key.
UPDATE t SET p = point(1, 2) WHERE id IN (70, 71);
UPDATE t SET p = CASE WHEN id = 71 THEN point(1, 3) END WHERE id IN (70, 71);
UPDATE t SET p = point(1, 2) WHERE id IN (70, 71);
UPDATE t SET p = CASE WHEN id = 71 THEN point(1, 3) END WHERE id IN (70, 71);
SELECT * FROM differences();
SELECT alone();
VACUUM (INDEX_CLEANUP on) t;
SELECT alone();
VACUUM (INDEX_CLEANUP on) t;
SELECT stale();
SELECT * FROM differences();

-- A null is no key of one byte, as a text without trigrams has: the entry of the former key goes.
CREATE EXTENSION pg_trgm;
CREATE TABLE nulls (id int, v text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO nulls SELECT i FROM generate_series(1, 100) i;
CREATE INDEX nulls_v ON nulls USING gist (v gist_trgm_ops);
SELECT alone();
UPDATE nulls SET v = 'the first one marks the index';
UPDATE nulls SET v = NULL;
UPDATE nulls SET v = '';
SELECT alone();
VACUUM (INDEX_CLEANUP on) nulls;
SELECT alone();
VACUUM (INDEX_CLEANUP on) nulls;
SELECT relpages = relallvisible AS all_visible FROM pg_class WHERE oid = 'nulls'::regclass;
DROP TABLE nulls;
DROP EXTENSION pg_trgm;

-- A scan that has returned a row comes to the row's new entry.
CREATE TABLE ahead (id int PRIMARY KEY, p point) USING inplace;
CREATE INDEX ahead_p ON ahead USING gist (p);
INSERT INTO ahead SELECT i, point(i, 0) FROM generate_series(1, 2000) i;
UPDATE ahead SET p = point(2001, 0) WHERE id = 2000;
UPDATE ahead SET p = point(2000, 0) WHERE id = 2000;

CREATE FUNCTION rest_of(c refcursor, OUT rows int, OUT different int) LANGUAGE plpgsql AS $$
DECLARE
	id int;
	ids int[];
BEGIN
	LOOP
		FETCH c INTO id;
		EXIT WHEN id IS NULL;
		ids := ids || id;
	END LOOP;
	SELECT count(*), count(DISTINCT x) INTO rows, different FROM unnest(ids) x;
END $$;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off;
SET LOCAL cursor_tuple_fraction = 0.001;
DECLARE c CURSOR FOR SELECT id FROM ahead WHERE p >> point(0, 0);
DECLARE d CURSOR FOR SELECT id FROM ahead ORDER BY p <-> point(0, 0);
MOVE 5 FROM c;
MOVE 5 FROM d;
UPDATE ahead SET p = p + point(3000.5, 0);
SELECT * FROM rest_of('c');
SELECT * FROM rest_of('d');
UPDATE ahead SET p = p + point(3000.5, 0) WHERE p >> point(0, 0);
SELECT count(*), min(p[0]), max(p[0]) FROM ahead;
ROLLBACK;

-- An index-only scan does not ask about rows of pages that are all-visible.  What cannot be
-- returned may have changed meanwhile.
CREATE TABLE w (id int, r int4range, c circle, pad text) USING inplace WITH (autovacuum_enabled = off);
CREATE FUNCTION rows_left(c refcursor) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	MOVE FORWARD ALL FROM c;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;
CREATE INDEX w_rc ON w USING gist (r, c);
CREATE INDEX w_c ON w USING gist (c);
INSERT INTO w SELECT g, int4range(g, g + 2), circle(point(g, 0), 1), repeat('x', 100) FROM generate_series(1, 2000) g;
-- A plan from before it is marked is not used after that.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
PREPARE q AS SELECT r FROM w WHERE r && int4range(1, 10);
EXPLAIN (COSTS OFF) EXECUTE q;

UPDATE w SET c = circle(point(id, 0), 2) WHERE id = 2000;
UPDATE w SET c = circle(point(id, 0), 1) WHERE id = 2000;

EXPLAIN (COSTS OFF) EXECUTE q;
DEALLOCATE q;
RESET enable_seqscan;
RESET enable_bitmapscan;

VACUUM ANALYZE w;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL cursor_tuple_fraction = 0.001;
DECLARE c CURSOR FOR SELECT r FROM w WHERE r && int4range(1, 5000);
DECLARE d CURSOR FOR SELECT 1 FROM w;
DECLARE e CURSOR FOR SELECT c <-> point(0, 0) FROM w ORDER BY c <-> point(0, 0);
MOVE 500 FROM c;
MOVE 500 FROM d;
MOVE 500 FROM e;
UPDATE w SET c = circle(point(2001 - id, 0), 1);
SELECT rows_left('c'), rows_left('d'), rows_left('e');
EXPLAIN (COSTS OFF) SELECT c FROM w ORDER BY c <-> point(0, 0) LIMIT 1;
ROLLBACK;
DROP TABLE w;

-- An entry that is not found on a number of pages may be there all the same: then the row moves.
CREATE TABLE deep (id int PRIMARY KEY, p point) USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
CREATE INDEX deep_p ON deep USING gist (p);
INSERT INTO deep SELECT g, point(1, 1) FROM generate_series(1, 20000) g;
UPDATE deep SET p = point(2, 2) WHERE id = 20000;

CREATE TABLE deep_places AS SELECT id, ctid AS place FROM deep;
SELECT alone();
VACUUM ANALYZE deep;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL cursor_tuple_fraction = 0.001;
DECLARE c CURSOR FOR SELECT p FROM deep WHERE p <@ box '(0,0),(2,2)';
MOVE 500 FROM c;
UPDATE deep SET p = point(3, 3) WHERE id % 10 = 0;
SELECT count(*) FROM deep JOIN deep_places USING (id) WHERE deep.ctid <> place;
UPDATE deep SET p = point(1, 1) WHERE id % 10 = 0;
SELECT count(*) > 0 AS some_moved FROM deep JOIN deep_places USING (id) WHERE deep.ctid <> place;
SELECT rows_left('c');
ROLLBACK;
DROP TABLE deep, deep_places;

-- Where all keys are boxes, what covers one is told by comparing numbers, which may be odd.
CREATE TABLE boxes (id int PRIMARY KEY, p point, b box, n int) USING inplace
  WITH (autovacuum_enabled = off, fillfactor = 50);
CREATE INDEX boxes_pb ON boxes USING gist (p, b) INCLUDE (n);
INSERT INTO boxes SELECT g, point(g % 70, g / 70), box(point(g % 9, g), point(0, 0)), g FROM generate_series(1, 6000) g;
UPDATE boxes SET n = 0 WHERE id = 1;
SELECT alone();
CREATE TABLE former_boxes AS SELECT id, p, b FROM boxes;
CREATE FUNCTION turn(odd boolean) RETURNS void LANGUAGE sql AS $$
  UPDATE boxes SET p = CASE WHEN NOT odd THEN f.p WHEN f.id % 4 = 0 THEN point('Infinity', f.id)
      WHEN f.id % 4 = 1 THEN point(f.id, '-Infinity') ELSE point(f.id, f.id) END,
    b = CASE WHEN odd AND f.id % 4 = 3 THEN box(point('NaN', f.id), point(0, 'NaN')) ELSE f.b END
  FROM former_boxes f WHERE f.id = boxes.id $$;
SELECT turn(true);
SELECT turn(false);
SELECT turn(true);
SELECT turn(false);
SELECT inplace.check('boxes');
SELECT alone();
VACUUM boxes;
SELECT alone();
VACUUM boxes;
-- (by the index alone, which would return a second entry of a row)
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT n FROM boxes WHERE p <@ box '(0,0),(100,100)';
SELECT count(*), count(DISTINCT n) FROM boxes WHERE p <@ box '(0,0),(100,100)';
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT turn(true);
SELECT inplace.check('boxes');
DROP TABLE boxes, former_boxes;
DROP FUNCTION turn;

-- An exclusion constraint is checked as on heap: its columns move the row.
CREATE TABLE x (id int PRIMARY KEY, r int4range, p point, EXCLUDE USING gist (r WITH &&)) USING inplace;
CREATE INDEX x_p ON x USING gist (p);
INSERT INTO x VALUES (9, '[90,91)', '(9,9)');
UPDATE x SET p = '(8,8)';
TRUNCATE x;

INSERT INTO x VALUES (1, '[1,5)', '(1,1)'), (2, '[10,15)', '(2,2)');
UPDATE x SET p = '(3,3)' WHERE id = 1;
UPDATE x SET p = '(4,4)' WHERE id = 1;
UPDATE x SET r = '[12,20)' WHERE id = 1;
UPDATE x SET r = '[20,30)' WHERE id = 1 RETURNING ctid;
INSERT INTO x VALUES (3, '[25,26)');
INSERT INTO x VALUES (3, '[1,5)') RETURNING ctid;

-- Classes that are not known to find an entry again, and other methods: rows move.
CREATE EXTENSION cube SCHEMA us;
CREATE EXTENSION ltree SCHEMA us;
CREATE TABLE cu (c cube, l ltree) USING inplace;
CREATE INDEX ON cu USING gist (c);
CREATE INDEX ON cu USING gist (l);
INSERT INTO cu VALUES ('(1)', 'a');
UPDATE cu SET l = 'b';
SELECT alone();
UPDATE cu SET l = 'c' RETURNING ctid;
UPDATE cu SET c = '(2)' RETURNING ctid;
UPDATE cu SET c = '(3)' RETURNING ctid;
DROP TABLE cu;
DROP EXTENSION cube, ltree;
CREATE TABLE sp (p point) USING inplace;
CREATE INDEX ON sp USING spgist (p);
INSERT INTO sp VALUES ('(1,1)');
UPDATE sp SET p = '(2,2)';
UPDATE sp SET p = '(3,3)' RETURNING ctid;
DROP TABLE sp;

-- Distances that are not in floating point.
CREATE EXTENSION btree_gist SCHEMA us;
CREATE TABLE bg (id int, i int, d date, v interval, p point) USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO bg SELECT i, i, date '2026-01-01' + i, i * interval '1 minute', point(i, 0) FROM generate_series(0, 999) i;
CREATE INDEX bg_i ON bg USING gist (i);
CREATE INDEX bg_d ON bg USING gist (d) INCLUDE (id);
CREATE INDEX bg_v ON bg USING gist (v, p);
UPDATE bg SET i = 1, d = date '2026-01-02', v = interval '1 minute' WHERE id = 0;
SELECT alone();
VACUUM ANALYZE bg;
CREATE TABLE bg_places AS SELECT id, ctid AS place FROM bg;
UPDATE bg SET i = 1000 - i, d = d + 300, v = v + interval '8 hours' WHERE id % 3 = 0;
UPDATE bg SET i = (i * 7) % 1000, d = d - 300, v = v - interval '8 hours' WHERE id % 6 = 0;
UPDATE bg SET p = point(id % 10, 1), i = 500 WHERE id % 10 = 5;
SELECT count(*) AS moved FROM bg JOIN bg_places USING (id) WHERE bg.ctid <> place;
CREATE FUNCTION nearest(columns text, ordering text, condition text, by_index bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('enable_seqscan', (NOT by_index)::text, true), set_config('enable_sort', (NOT by_index)::text, true),
		set_config('enable_bitmapscan', 'off', true), set_config('enable_indexscan', by_index::text, true), set_config('enable_indexonlyscan', by_index::text, true);
	EXECUTE format('SELECT string_agg(distance::text, '','' ORDER BY o) || count(DISTINCT id) FROM
		(SELECT id, distance, row_number() OVER () AS o FROM (SELECT %s AS id, row(%s) AS distance FROM bg WHERE %s ORDER BY %2$s) x) y',
		columns, ordering, condition) INTO answer;
	RETURN answer;
END $$;
SELECT ordering, condition FROM (VALUES ('id', 'i <-> 500'), ('i', 'i <-> 500'), ('id', 'd <-> date ''2026-06-01'''), ('d', 'd <-> date ''2026-06-01'''),
	('id', 'v <-> interval ''3 hours'''), ('id', 'v <-> interval ''8 hours'', p <-> point (3, 1)')) o (columns, ordering),
	(VALUES ('true'), ('i < 600'), ('d > date ''2026-03-01''')) c (condition)
	WHERE nearest(columns, ordering, condition, true) IS DISTINCT FROM nearest(columns, ordering, condition, false);
-- In the order of an expression.
CREATE TABLE be (s text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO be SELECT repeat('x', i) FROM generate_series(1, 20) i;
CREATE INDEX be_s ON be USING gist (s, (length(s)));
UPDATE be SET s = s || 'y' WHERE s < 'xxx';
SELECT alone();
UPDATE be SET s = s || 'y' WHERE s < 'xxx';
VACUUM ANALYZE be;
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off;
SELECT s FROM be ORDER BY length(s) <-> 6 LIMIT 1;
ROLLBACK;
DROP TABLE be;
-- In the order of another column, which could be returned, and of one that is included as well.
CREATE TABLE bi (a int) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO bi SELECT generate_series(1, 500);
CREATE INDEX ON bi USING gist (a) INCLUDE (a);
UPDATE bi SET a = a + 7 WHERE a = 1;
VACUUM ANALYZE bg, bi;
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off;
SELECT p FROM bg ORDER BY p <-> point (7, 1.5) LIMIT 1;
SELECT a FROM bi ORDER BY a <-> 400 LIMIT 1;
ROLLBACK;
DROP TABLE bi;
-- A distance that is not exact is refused beside one that is not in floating point, as GiST does.
CREATE TABLE bc (id int, v interval, c circle) USING inplace;
INSERT INTO bc VALUES (1, '1 day', NULL), (2, '2 days', '<(5,5),1>');
CREATE INDEX ON bc USING gist (v, c);
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off;
SELECT * FROM bc ORDER BY v <-> interval '1 day', c <-> point (0, 0) FOR UPDATE;
ROLLBACK;
DROP TABLE bc;
-- By another one at each turn, and counted once.
SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;
SELECT (SELECT i FROM bg ORDER BY i <-> x LIMIT 1) FROM (VALUES (0), (2), (499), (0)) v (x);
EXPLAIN (COSTS off) SELECT i FROM bg ORDER BY i <-> 500 LIMIT 1;
SELECT pg_stat_force_next_flush();
SELECT idx_scan AS scans FROM pg_stat_user_indexes WHERE indexrelid = 'bg_i'::regclass \gset
SELECT count(*) FROM (SELECT id FROM bg ORDER BY i <-> 500 LIMIT 20) x;
SELECT pg_stat_force_next_flush();
SELECT idx_scan - :scans AS scans FROM pg_stat_user_indexes WHERE indexrelid = 'bg_i'::regclass;
-- Rows that have not changed come first, and then get entries further on.
BEGIN;
DECLARE c CURSOR FOR SELECT i <-> 700 AS d FROM bg ORDER BY i <-> 700 LIMIT 20;
FETCH 3 FROM c;
UPDATE bg SET i = i + 20 WHERE i BETWEEN 690 AND 710;
FETCH ALL FROM c;
ROLLBACK;
RESET enable_seqscan; RESET enable_sort; RESET enable_bitmapscan;
VACUUM bg;
SELECT * FROM inplace.check('bg');
DROP TABLE bg, bg_places;
DROP EXTENSION btree_gist CASCADE;

DROP SCHEMA us CASCADE;
