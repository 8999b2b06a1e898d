-- Columns under GIN indexes are updated in place: each index gets the new keys at the
-- row's TID, and VACUUM takes out the former ones.
CREATE SCHEMA ug;
SET search_path = ug, inplace, public;
SET inplace.former_keys_limit = 0;
CREATE TABLE t (id int PRIMARY KEY, tags text[], doc jsonb, n int, pad text)
	USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO t SELECT i, ARRAY['a' || i % 7, 'b' || i % 5], jsonb_build_object('k', i % 11, 'x', i),
	i % 10, 'p' FROM generate_series(1, 1000) i;
CREATE INDEX t_n ON t USING inplace_btree (n);
CREATE INDEX t_tags ON t USING gin (tags);
CREATE INDEX t_tags_slow ON t USING gin (tags) WITH (fastupdate = off);
CREATE INDEX t_doc ON t USING gin (doc jsonb_path_ops);
CREATE INDEX t_doc_all ON t USING gin (doc) WITH (fastupdate = off);
CREATE INDEX t_two ON t USING gin (tags, doc) WITH (fastupdate = off);
CREATE INDEX t_part ON t USING gin (tags) WHERE n > 5;
CREATE INDEX t_expr ON t USING gin ((doc -> 'l')) WITH (fastupdate = off);
VACUUM ANALYZE t;

-- The places of rows; those that have moved since.
CREATE TABLE places AS SELECT id, ctid AS place FROM t;
CREATE FUNCTION moved() RETURNS bigint LANGUAGE sql AS
	'SELECT count(*) FROM ug.t JOIN ug.places USING (id) WHERE t.ctid <> place';
CREATE FUNCTION stale() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM generate_series(0, pg_relation_size('ug.t') / 8192 - 1) b, inplace.page_items('ug.t', b)
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

-- The same question by each index and by a sequential scan.
CREATE TABLE questions (q text);
INSERT INTO questions VALUES ($$tags @> '{a3}'$$), ($$tags && '{a1,c1,d2}'$$), ($$tags <@ '{a1,b1,c1,d1}'$$), ($$tags = '{c1}'$$), ($$tags @> '{}'$$),
	($$tags @> '{c1,b2}'$$), ($$tags @> '{d1}' AND n > 5$$), ($$tags @> '{a1}' AND n > 6$$), ($$tags && '{c1,a2}' AND doc @> '{"k": 3}'$$), ($$tags @> '{c1}' OR doc @> '{"k": 99}'$$),
	($$doc @> '{"k": 3}'$$), ($$doc @> '{"k": 99}'$$), ($$doc ? 'l'$$), ($$doc -> 'l' @> '[3]'$$), ($$doc -> 'l' @> '[4]'$$), ($$doc @? '$.k ? (@ == 99)'$$),
	($$doc @> '{"k": 99}' AND tags @> '{c1}'$$), ($$n = 4 AND tags && '{a2,c1}'$$);
CREATE FUNCTION ask(q text, setting text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('enable_seqscan', (setting = 'seqscan')::text, true), set_config('enable_bitmapscan', (setting = 'bitmapscan')::text, true),
		set_config('enable_indexscan', (setting = 'indexscan')::text, true);
	EXECUTE 'SELECT array_agg(id ORDER BY id)::text FROM t WHERE ' || q INTO answer;
	RETURN answer;
END $$;
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE sql AS
	$$ SELECT q FROM questions WHERE ask(q, 'seqscan') IS DISTINCT FROM ask(q, 'bitmapscan') $$;

-- In place, in each way that keys can change.
UPDATE t SET tags = ARRAY['c' || id % 3, 'd' || id % 4] WHERE id % 4 = 0;
UPDATE t SET doc = doc || '{"k": 99}' WHERE id % 5 = 0;
UPDATE t SET tags = NULL WHERE id % 50 = 1;
UPDATE t SET tags = '{}' WHERE id % 50 = 2;
UPDATE t SET n = 9 WHERE id % 20 = 3;		-- into the predicate
UPDATE t SET n = 1 WHERE id % 20 = 8;		-- out of it
UPDATE t SET doc = doc || '{"l": [3]}' WHERE id % 8 = 1;
UPDATE t SET doc = doc || '{"l": [4, 3]}' WHERE id % 16 = 1;
UPDATE t SET pad = 'q' WHERE id % 3 = 0;	-- of no index
SELECT moved(), stale() > 500 AS stale;
SELECT * FROM differences();
-- There and back.
UPDATE t SET tags = '{c1}' WHERE id % 7 = 0;
UPDATE t SET tags = '{a1}' WHERE id % 7 = 0;
UPDATE t SET tags = '{c1}' WHERE id % 7 = 0;
SELECT moved();
SELECT * FROM differences();

-- Rolled back, as a whole or to a savepoint.
BEGIN;
UPDATE t SET tags = '{d1}', doc = '{}' WHERE id < 100;
SELECT * FROM differences();
ROLLBACK;
SELECT * FROM differences();
BEGIN;
UPDATE t SET tags = '{d1,e1}' WHERE id < 50;
SAVEPOINT s;
UPDATE t SET tags = '{c1}', doc = '{"k": 99}' WHERE id < 100;
SELECT * FROM differences();
ROLLBACK TO s;
SELECT * FROM differences();
COMMIT;
SELECT * FROM differences();
SELECT moved();

-- A cursor goes by what it has seen, through entries that there were then.
BEGIN;
SET LOCAL enable_seqscan = off;
DECLARE c CURSOR FOR SELECT id, tags FROM t WHERE tags @> '{c1}' AND id < 60;
UPDATE t SET tags = '{f1}' WHERE tags @> '{c1}';
FETCH ALL FROM c;
SELECT count(*) FROM t WHERE tags @> '{c1}';
ROLLBACK;

-- VACUUM takes former keys out, and clears the marks in the next one.  Once the mark is
-- gone nothing is rechecked: an entry left over would show.
SELECT alone();
VACUUM t;
SELECT * FROM differences();
SELECT alone();
VACUUM t;
SELECT stale(), (SELECT relpages = relallvisible FROM pg_class WHERE oid = 't'::regclass) AS all_visible;
SELECT * FROM differences();
SELECT moved();

-- Many TIDs under one key stand in a tree of their own.
CREATE TABLE m (id int PRIMARY KEY, a int[], s text) USING inplace WITH (autovacuum_enabled = off, fillfactor = 60);
INSERT INTO m SELECT i, ARRAY[1, i % 3 + 2], 's' FROM generate_series(1, 20000) i;
CREATE INDEX m_a ON m USING gin (a);
UPDATE m SET a = ARRAY[7, id % 3 + 2] WHERE id % 3 > 0;
UPDATE m SET a = ARRAY[1, 2] WHERE id % 9 = 1;
SET enable_seqscan = off;
SELECT count(*) FROM m WHERE a @> '{1}';
SELECT count(*) FROM m WHERE a @> '{7}';
SELECT alone();
VACUUM m;
SELECT alone();
VACUUM m;
SELECT relpages = relallvisible AS all_visible FROM pg_class WHERE oid = 'm'::regclass;
SELECT count(*) FROM m WHERE a @> '{1}';
SELECT count(*) FROM m WHERE a @> '{7}';
SELECT count(*), sum(id) FROM m WHERE a @> '{1,2}';
RESET enable_seqscan;
SELECT count(*) FILTER (WHERE a @> '{1}'), count(*) FILTER (WHERE a @> '{7}'), count(*) FILTER (WHERE a @> '{1,2}'), sum(id) FILTER (WHERE a @> '{1,2}') FROM m;

-- Some keys of a row are pending, others in the tree.
CREATE TABLE pend (id int PRIMARY KEY, a int[]) USING inplace;
CREATE INDEX pend_a ON pend USING gin (a);
INSERT INTO pend VALUES (1, '{1,2}');
UPDATE pend SET a = '{2,3}';
SET enable_seqscan = off;
SELECT id FROM pend WHERE a @> '{2,3}';
UPDATE pend SET a = '{3,1,4}';
UPDATE pend SET a = '{4,2,1}';
SELECT id FROM pend WHERE a @> '{1,2,4}';
SELECT id FROM pend WHERE a @> '{3}';
SELECT gin_clean_pending_list('pend_a') > 0 AS cleaned;
UPDATE pend SET a = '{2,4,5}';
SELECT id FROM pend WHERE a @> '{2,4,5}';
SELECT id FROM pend WHERE a @> '{1}';
RESET enable_seqscan;

-- Values in the TOAST table are looked up for it.
CREATE TABLE big (id int PRIMARY KEY, a text[]) USING inplace WITH (autovacuum_enabled = off);
ALTER TABLE big ALTER a SET STORAGE EXTERNAL;
CREATE INDEX big_a ON big USING gin (a);
INSERT INTO big SELECT i, array_agg('e' || i || '-' || j) FROM generate_series(1, 20) i, generate_series(1, 400) j GROUP BY i;
UPDATE big SET a = a || 'more'::text WHERE id < 10;
UPDATE big SET a[1] = 'less' WHERE id < 5;
SELECT alone();
VACUUM (INDEX_CLEANUP on) big;
SELECT alone();
VACUUM (INDEX_CLEANUP on) big;
SELECT count(*) FROM generate_series(0, pg_relation_size('big') / 8192 - 1) b, page_items('big', b) WHERE 'STALE' = ANY (flags);
SET enable_seqscan = off;
SELECT count(*) FROM big WHERE a @> '{e3-1}';
SELECT count(*) FROM big WHERE a @> '{e7-1}';
SELECT count(*) FROM big WHERE a @> '{less,more}';
RESET enable_seqscan;

-- A key too many keeps a row out where a query has a NOT: its scan looks at the pages
-- that are not all-visible, too.
CREATE TABLE txt (id int PRIMARY KEY, ts tsvector, tags text[]) USING inplace;
CREATE INDEX txt_ts ON txt USING gin (ts);
CREATE INDEX txt_tags ON txt USING gin (tags);
INSERT INTO txt VALUES (1, 'old', '{a}'), (2, 'old', '{a}');
UPDATE txt SET ts = 'new' WHERE id = 1 RETURNING ctid;
UPDATE txt SET tags = '{b}' WHERE id = 2 RETURNING ctid;
SET enable_seqscan = off;
SELECT id FROM txt WHERE ts @@ '!old';
SELECT id FROM txt WHERE ts @@ '!new';
SELECT id FROM txt WHERE ts @@ 'old';
SELECT id FROM txt WHERE ts @@ 'new & !old';
PREPARE find(tsquery) AS SELECT id FROM txt WHERE ts @@ $1;
EXECUTE find('!old');
BEGIN;
DECLARE before CURSOR FOR SELECT id FROM txt WHERE ts @@ '!(new & later)' ORDER BY id;
UPDATE txt SET ts = 'new later' WHERE id = 1 RETURNING ctid;
FETCH ALL FROM before;
UPDATE txt SET ts = 'new' WHERE id = 1;
EXECUTE find('new & !later');
COMMIT;
RESET enable_seqscan;
DEALLOCATE find;

-- Classes of extensions: those of which it is known in what queries a key too many keeps a row
-- out take updates.
CREATE EXTENSION intarray SCHEMA ug;
CREATE EXTENSION pg_trgm SCHEMA ug;
CREATE EXTENSION hstore SCHEMA ug;
CREATE EXTENSION btree_gin SCHEMA ug;
CREATE TABLE e_int (v int[]) USING inplace;
CREATE TABLE e_trgm (v text) USING inplace;
CREATE TABLE e_hstore (v hstore) USING inplace;
CREATE TABLE e_btree (v numeric) USING inplace;
INSERT INTO e_int VALUES ('{1}');
INSERT INTO e_trgm VALUES ('former');
INSERT INTO e_hstore VALUES ('a=>1');
INSERT INTO e_btree VALUES (1);
CREATE INDEX ON e_int USING gin (v gin__int_ops);
CREATE INDEX ON e_trgm USING gin (v gin_trgm_ops);
CREATE INDEX ON e_hstore USING gin (v);
CREATE INDEX ON e_btree USING gin (v);
UPDATE e_int SET v = '{2}' RETURNING ctid;
UPDATE e_trgm SET v = 'present' RETURNING ctid;
UPDATE e_hstore SET v = 'b=>2' RETURNING ctid;
UPDATE e_btree SET v = 2 RETURNING ctid;
SET enable_seqscan = off;
SELECT v FROM e_int WHERE v @@ '!1';
SELECT v FROM e_trgm WHERE v LIKE '%ese%';
SELECT v FROM e_trgm WHERE v LIKE '%orm%';
SELECT v FROM e_hstore WHERE v ? 'b';
SELECT v FROM e_hstore WHERE v ? 'a';
SELECT v FROM e_btree WHERE v = 2;
SELECT v FROM e_btree WHERE v < 2;
RESET enable_seqscan;
DROP TABLE e_int, e_trgm, e_hstore, e_btree;
DROP EXTENSION intarray, pg_trgm, hstore, btree_gin;

-- A computed key may come out otherwise in another library: then an index whose expressions
-- are not known to come out the same loses nothing, and the row keeps its mark.  (All
-- indexes of temporary tables count as marked.)
CREATE TEMP TABLE un (id int, a int[], f float8) USING inplace;
INSERT INTO un VALUES (1, '{1}', 0.5);
CREATE INDEX un_a ON un USING gin (a);
CREATE INDEX un_f ON un USING gin ((ARRAY[sin(f)]));
CREATE INDEX un_h ON un USING hash (id) WHERE sin(f) > 0;
CREATE TEMP TABLE un_other (id int, a int[], f float8);
CREATE INDEX un_sin ON un_other USING gin ((ARRAY[sin(f)])) WHERE sin(f) > 0;
CREATE INDEX un_cos ON un_other USING gin ((ARRAY[cos(f)])) WHERE sin(f) > 2;
CREATE PROCEDURE change_to(indexid regclass) LANGUAGE sql AS $$
	UPDATE pg_index SET indexprs = (SELECT indexprs FROM pg_index WHERE indexrelid = indexid) WHERE indexrelid = 'un_f'::regclass;
	UPDATE pg_index SET indpred = (SELECT indpred FROM pg_index WHERE indexrelid = indexid) WHERE indexrelid = 'un_h'::regclass;
$$;
UPDATE un SET a = '{2}' RETURNING ctid;
CALL change_to('un_cos');
VACUUM (INDEX_CLEANUP on) un;
VACUUM (INDEX_CLEANUP on) un;
CALL change_to('un_sin');
SET enable_seqscan = off;
SELECT id FROM un WHERE ARRAY[sin(f)] @> ARRAY[sin(0.5)];
SELECT id FROM un WHERE id = 1 AND sin(f) > 0;
SELECT 'STALE' = ANY (flags) AS stale FROM inplace.page_items('un', 0);
VACUUM (INDEX_CLEANUP on) un;
VACUUM (INDEX_CLEANUP on) un;
SELECT 'STALE' = ANY (flags) AS stale FROM inplace.page_items('un', 0);
RESET enable_seqscan;
DROP TABLE un, un_other;
DROP PROCEDURE change_to;

DROP SCHEMA ug CASCADE;
