-- Indexes with expressions and predicates: an update of what they are computed
-- from is in place, makes an entry only if the key is another, and every plan
-- finds what a sequential scan finds.
CREATE SCHEMA ck;
SET search_path = ck, inplace, public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (id int PRIMARY KEY, email text, status varchar(10), a int, b int, m mood, j jsonb, v text)
	USING inplace WITH (autovacuum_enabled = off, fillfactor = 60);
INSERT INTO t SELECT i, 'User' || i, CASE WHEN i % 5 = 0 THEN 'active' ELSE 'done' END, i, i % 7,
	(ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::mood, jsonb_build_object('k', i % 9), 'v' || i FROM generate_series(1, 300) i;
CREATE INDEX t_lower ON t USING inplace_btree (lower(email));
CREATE UNIQUE INDEX t_upper ON t USING inplace_btree (upper(email)) INCLUDE (v);
CREATE INDEX t_active ON t USING inplace_btree (a) INCLUDE (v) WHERE status = 'active';
CREATE UNIQUE INDEX t_one ON t USING inplace_btree (b, a) WHERE status IN ('active', 'waiting');
CREATE INDEX t_div ON t USING inplace_btree ((100 / (b + 1)), (a % 10));
CREATE INDEX t_json ON t USING inplace_btree (((j ->> 'k')::int), a) WHERE j ? 'k';
CREATE INDEX t_mood ON t USING inplace_btree (m, (a * 1.0)) WHERE m > 'sad';
CREATE INDEX t_null ON t USING inplace_btree (b) WHERE email IS NOT NULL;
ANALYZE t;

CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	plan text;
	expected text[];
	got text[];
BEGIN
	FOREACH q IN ARRAY ARRAY[
		'SELECT id, email FROM t WHERE lower(email) BETWEEN ''a'' AND ''user2''',
		'SELECT id, email, v FROM t WHERE upper(email) >= ''USER2''',
		'SELECT a, v FROM t WHERE status = ''active'' AND a BETWEEN 3 AND 2000',
		'SELECT id, status FROM t WHERE status = ''active'' AND a > 0',
		'SELECT a, b FROM t WHERE status = ''active'' AND b IN (1, 2, 5)',
		'SELECT id, b FROM t WHERE 100 / (b + 1) > 20 AND b <> -1',
		'SELECT id, j FROM t WHERE j ? ''k'' AND (j ->> ''k'')::int = 3',
		'SELECT id, m, a FROM t WHERE m = ''happy''',
		'SELECT b FROM t WHERE email IS NOT NULL AND b < 4']
	LOOP
		PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
			set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
		EXECUTE format('SELECT array_agg(x::text ORDER BY x::text) FROM (%s) x', q) INTO expected;
		PERFORM set_config('enable_seqscan', 'off', true);
		FOREACH plan IN ARRAY ARRAY['indexscan', 'indexonlyscan', 'bitmapscan'] LOOP
			PERFORM set_config('enable_indexscan', (plan <> 'bitmapscan')::text, true),
				set_config('enable_indexonlyscan', (plan = 'indexonlyscan')::text, true),
				set_config('enable_bitmapscan', (plan = 'bitmapscan')::text, true);
			EXECUTE format('SELECT array_agg(x::text ORDER BY x::text) FROM (%s) x', q) INTO got;
			IF got IS DISTINCT FROM expected THEN RETURN NEXT plan || ': ' || q; END IF;
		END LOOP;
	END LOOP;
END $$;
-- did the row stay, and is it marked?
CREATE FUNCTION upd(id int, assignment text, OUT stays bool, OUT marked bool) LANGUAGE plpgsql AS $$
DECLARE before tid; after tid;
BEGIN
	EXECUTE format('SELECT ctid FROM t WHERE id = %s', id) INTO before;
	EXECUTE format('UPDATE t SET %s WHERE id = %s RETURNING ctid', assignment, id) INTO after;
	stays := before = after;
	SELECT 'STALE' = ANY (flags) INTO marked FROM page_items('t', (after::text::point)[0]::bigint) WHERE item = (after::text::point)[1];
END $$;
SELECT count(*) FROM differences();

-- the same key: no mark, so no entry
SELECT c, (upd(1, c)).* FROM unnest(ARRAY['email = ''uSER1'', v = v', 'b = b', 'status = ''waived''', 'j = j || ''{"x": 1}''']) WITH ORDINALITY x(c, i) ORDER BY i;
-- another one, or none
SELECT c, (upd(2, c)).* FROM unnest(ARRAY['email = ''other''', 'email = NULL', 'email = ''User2''']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT c, (upd(3, c)).* FROM unnest(ARRAY['status = ''active''', 'status = ''done''', 'status = ''active''', 'a = 1003', 'status = ''waiting''', 'status = ''active''']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT c, (upd(4, c)).* FROM unnest(ARRAY['b = 99', 'b = 98', 'b = 4', 'j = ''{}''', 'j = ''{"k": "3"}''']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT c, (upd(5, c)).* FROM unnest(ARRAY['m = ''sad''', 'm = ''ok''', 'm = NULL', 'm = ''happy''']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT * FROM differences();
-- errors of an expression leave the row alone
UPDATE t SET b = -1 WHERE id = 6;
UPDATE t SET j = '{"k": "x"}' WHERE id = 6;
SELECT (upd(6, 'b = 1')).*;
-- uniqueness: of the versions that are there, not of entries
INSERT INTO t (id, email) VALUES (1000, 'OTHER'), (1001, 'uSER2');
INSERT INTO t (id, email) VALUES (1000, 'OTHER');
UPDATE t SET email = 'other' WHERE id = 2;
UPDATE t SET email = 'other' WHERE id = 1000;
INSERT INTO t (id, status, a, b) VALUES (1002, 'waiting', 10, 3);
UPDATE t SET status = 'done' WHERE id = 10;
INSERT INTO t (id, status, a, b) VALUES (1002, 'waiting', 10, 3);
UPDATE t SET status = 'active' WHERE id = 10;
DELETE FROM t WHERE id = 1002;
UPDATE t SET status = 'active' WHERE id = 10;
-- a statement does not meet what it has changed itself
UPDATE t SET status = 'done' WHERE status = 'active' AND a < 100;
UPDATE t SET email = email || 'x' WHERE lower(email) LIKE 'user%';
SELECT count(*) FROM t WHERE email LIKE '%xx';
SELECT * FROM differences();
SELECT * FROM inplace.check('t');
-- a cursor from before
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
DECLARE c CURSOR FOR SELECT id, a FROM t WHERE status = 'active' AND a BETWEEN 100 AND 130 ORDER BY a;
FETCH 2 FROM c;
UPDATE t SET status = 'done' WHERE id = 110;
SAVEPOINT s;
UPDATE t SET status = 'active', a = 111 WHERE id BETWEEN 112 AND 122;
ROLLBACK TO s;
UPDATE t SET a = 119 WHERE id = 120;
FETCH ALL FROM c;
SELECT id, a FROM t WHERE status = 'active' AND a BETWEEN 100 AND 130 ORDER BY a;
ROLLBACK;
SELECT * FROM differences();

-- Two VACUUMs take out entries and marks.
CREATE FUNCTION alone() RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)) LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
	RETURN true;
END $$;
CREATE FUNCTION marked() RETURNS bigint LANGUAGE sql AS
	$$ SELECT count(*) FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b, page_items('t', b) WHERE 'STALE' = ANY (flags) $$;
SELECT marked() > 0 AS marked;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) t;
SELECT * FROM differences();
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) t;
SELECT marked();
SELECT * FROM differences();
-- values in the TOAST table
ALTER TABLE t ALTER email SET STORAGE EXTERNAL;
CREATE INDEX t_len ON t USING inplace_btree (length(email)) WHERE left(email, 1) = 'L';
UPDATE t SET email = 'L' || repeat('l', 2400), a = a + 1 WHERE id = 7;
UPDATE t SET email = 'L' || repeat('m', 2300) WHERE id = 7;
DROP INDEX t_lower, t_upper, t_null;
UPDATE t SET email = 'L' || repeat('o', 3000) || id WHERE id BETWEEN 7 AND 9;
UPDATE t SET email = 'M' || repeat('p', 3000) || id WHERE id = 8;
UPDATE t SET email = 'M' WHERE id = 9;
SET enable_seqscan = off;
SELECT id, length(email) FROM t WHERE length(email) > 100 AND left(email, 1) = 'L' ORDER BY length(email);
RESET enable_seqscan;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) t;
SELECT alone() \gset
VACUUM (INDEX_CLEANUP on) t;
SET enable_seqscan = off;
SELECT id, length(email) FROM t WHERE length(email) > 100 AND left(email, 1) = 'L' ORDER BY length(email);
RESET enable_seqscan;
SELECT * FROM inplace.check('t');
DROP INDEX t_len;
UPDATE t SET email = 'user' || id;
CREATE INDEX t_lower ON t USING inplace_btree (lower(email));
CREATE UNIQUE INDEX t_upper ON t USING inplace_btree (upper(email)) INCLUDE (v);

-- Functions of one's own: the row moves, and nobody runs them by reading.
CREATE TABLE f (id int PRIMARY KEY, a int, b text) USING inplace;
INSERT INTO f VALUES (1, 1, 'one'), (2, 2, 'two');
CREATE FUNCTION noisy(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'run for %', $1; RETURN -$1; END $$;
CREATE FUNCTION inlined(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
CREATE INDEX f_noisy ON f USING inplace_btree (noisy(a));
CREATE INDEX f_b ON f USING inplace_btree (b);
UPDATE f SET b = 'uno' WHERE id = 1 RETURNING ctid;
UPDATE f SET a = 3 WHERE id = 1 RETURNING ctid;
SET enable_seqscan = off;
SELECT * FROM f WHERE b > '' ORDER BY b;
DROP INDEX f_noisy;
CREATE INDEX f_inlined ON f USING inplace_btree (inlined(a));
UPDATE f SET a = 4 WHERE id = 1 RETURNING ctid;
SELECT * FROM f WHERE inlined(a) = 5;
DROP INDEX f_inlined;

-- ... but stays if the key does.
CREATE TABLE k (id int PRIMARY KEY, a int, b text, c int, pad text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO k SELECT i, i, 'row ' || i, i, 'x' FROM generate_series(1, 20) i;
CREATE FUNCTION tens(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 / 10; END';
CREATE FUNCTION is_odd(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 % 2 = 1; END';
CREATE FUNCTION word(k) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN left($1.b, 1) || $1.c; END $$;
CREATE INDEX k_tens ON k USING inplace_btree (tens(a), c) INCLUDE (pad);
CREATE UNIQUE INDEX k_odd ON k USING inplace_btree (c) WHERE is_odd(a);
CREATE INDEX k_word ON k USING inplace_btree (word(k));
CREATE INDEX k_b ON k USING inplace_btree (id, b);
CREATE FUNCTION kept(id int, assignment text, OUT stays bool, OUT marked bool) LANGUAGE plpgsql AS $$
DECLARE before tid; after tid;
BEGIN
	EXECUTE format('SELECT ctid FROM k WHERE id = %s', id) INTO before;
	EXECUTE format('UPDATE k SET %s WHERE id = %s RETURNING ctid', assignment, id) INTO after;
	stays := before = after;
	SELECT 'STALE' = ANY (flags) INTO marked FROM page_items('k', (after::text::point)[0]::bigint) WHERE item = (after::text::point)[1];
END $$;
-- (marked: for the entry in k_b)
SELECT c, (kept(3, c)).* FROM unnest(ARRAY['a = 5', 'a = 3', 'a = 9, b = ''rows''', 'a = 13', 'a = 12', 'a = 14', 'a = 15', 'c = 33', 'pad = ''y''',
	'b = ''ant''', 'a = NULL', 'a = NULL, b = ''a''', 'a = 10, b = NULL', 'a = 12']) WITH ORDINALITY x(c, i) ORDER BY i;
CREATE FUNCTION k_differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q text;
	plan text;
	expected text;
	got text;
BEGIN
	FOREACH q IN ARRAY ARRAY['SELECT id FROM k WHERE tens(a) = 0 AND c < 8', 'SELECT id FROM k WHERE is_odd(a) AND c BETWEEN 1 AND 40',
		'SELECT id FROM k WHERE word(k) >= ''a''', 'SELECT tens(a), c, pad FROM k WHERE tens(a) = 1', 'SELECT b FROM k WHERE id > 0']
	LOOP
		PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
			set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
		EXECUTE format('SELECT array_agg(x::text ORDER BY x::text) FROM (%s) x', q) INTO expected;
		PERFORM set_config('enable_seqscan', 'off', true);
		FOREACH plan IN ARRAY ARRAY['indexscan', 'indexonlyscan', 'bitmapscan'] LOOP
			PERFORM set_config('enable_indexscan', (plan <> 'bitmapscan')::text, true),
				set_config('enable_indexonlyscan', (plan = 'indexonlyscan')::text, true),
				set_config('enable_bitmapscan', (plan = 'bitmapscan')::text, true);
			EXECUTE format('SELECT array_agg(x::text ORDER BY x::text) FROM (%s) x', q) INTO got;
			IF got IS DISTINCT FROM expected THEN RETURN NEXT plan || ': ' || q; END IF;
		END LOOP;
	END LOOP;
END $$;
UPDATE k SET a = a + 2 WHERE a % 10 < 7;
SELECT * FROM k_differences();
BEGIN;
UPDATE k SET a = a - 1, b = b || 'z';
SAVEPOINT s;
UPDATE k SET a = a + 1;
ROLLBACK TO s;
SELECT * FROM k_differences();
ROLLBACK;
SELECT * FROM k_differences();
SELECT * FROM inplace.check('k');
-- unique
INSERT INTO k VALUES (30, 1, 'x', 100), (31, 2, 'x', 100);
UPDATE k SET a = 3 WHERE id = 31;
SELECT (kept(30, 'a = 3, b = ''xx''')).*;
UPDATE k SET a = 4 WHERE id = 30;
UPDATE k SET a = 5 WHERE id = 31;
UPDATE k SET a = 7 WHERE id = 30;
-- a column of the table that changes moves the row by itself: nothing is computed before that
CREATE TABLE k2 (a int, b int) USING inplace;
INSERT INTO k2 VALUES (1, 1);
CREATE INDEX k2_noisy ON k2 USING inplace_btree (noisy(a / 10), b);
UPDATE k2 SET a = 2 RETURNING ctid;
UPDATE k2 SET a = 3, b = 2 RETURNING ctid;
-- the function fails; is another one now; may not be run
CREATE OR REPLACE FUNCTION tens(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN IF $1 = 77 THEN RAISE ''seventy-seven''; END IF; RETURN $1 / 10; END';
UPDATE k SET a = 77 WHERE id = 5;
CREATE OR REPLACE FUNCTION tens(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN -$1 / 10; END';
SELECT (kept(19, 'a = 17')).*;
SELECT id, a FROM k WHERE tens(a) = -1 AND c = 19;
CREATE ROLE ck_writer;
GRANT USAGE ON SCHEMA ck TO ck_writer;
GRANT ALL ON k TO ck_writer;
REVOKE EXECUTE ON FUNCTION tens(int) FROM PUBLIC;
SET ROLE ck_writer;
UPDATE k SET a = 16 WHERE id = 19;
UPDATE k SET b = 'rest' WHERE id = 19;
RESET ROLE;
GRANT EXECUTE ON FUNCTION tens(int) TO PUBLIC;
REVOKE ALL ON k FROM ck_writer;
REVOKE ALL ON SCHEMA ck FROM ck_writer;
DROP ROLE ck_writer;
REINDEX INDEX k_tens;
SELECT * FROM inplace.check('k');
RESET enable_seqscan;
SELECT * FROM k_differences();
SET enable_seqscan = off;
-- So it does under a btree, if that is computed by the server's own functions alone.
SET inplace.default_index_method = btree;
CREATE TABLE jobs (id int PRIMARY KEY, status text, lock text, n int, d numeric) USING inplace WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX jobs_lock ON jobs (lock) WHERE status IN ('todo', 'waiting');
CREATE INDEX jobs_tens ON jobs ((n / 10), id) INCLUDE (lock) WHERE n IS NOT NULL;
CREATE INDEX jobs_d ON jobs ((d * 2));
RESET inplace.default_index_method;
SELECT amname, count(*) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relnamespace = 'ck'::regnamespace AND relname LIKE 'jobs\__%' GROUP BY 1;
INSERT INTO jobs SELECT i, CASE i % 2 WHEN 0 THEN 'done' ELSE 'todo' END, 'l' || i, i, i FROM generate_series(1, 20) i;
CREATE FUNCTION stays(id int, assignment text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE before tid; after tid;
BEGIN
	EXECUTE format('SELECT ctid FROM jobs WHERE id = %s', id) INTO before;
	EXECUTE format('UPDATE jobs SET %s WHERE id = %s RETURNING ctid', assignment, id) INTO after;
	RETURN before = after;
END $$;
SELECT c, stays(2, c) FROM unnest(ARRAY['status = ''failed''', 'n = 3', 'n = 3, status = ''done''', 'n = 13', 'status = ''todo''', 'status = ''waiting''', 'status = ''done''',
	'lock = ''x''', 'n = NULL', 'n = NULL, status = NULL', 'n = 1', 'd = d', 'd = 2.00', 'd = 3']) WITH ORDINALITY x(c, i) ORDER BY i;
UPDATE jobs SET status = 'waiting' WHERE status = 'todo' AND id > 10;
UPDATE jobs SET n = n + 1, status = CASE WHEN id % 3 = 0 THEN 'done' ELSE status END;
BEGIN;
UPDATE jobs SET n = n - 1;
UPDATE jobs SET n = n + 5, status = 'todo';
ROLLBACK;
SELECT id FROM jobs WHERE n / 10 = 1 AND n IS NOT NULL ORDER BY id;
SELECT lock FROM jobs WHERE status IN ('todo', 'waiting') ORDER BY lock COLLATE "C";
INSERT INTO jobs VALUES (21, 'todo', 'l1', 1);
INSERT INTO jobs VALUES (21, 'todo', 'l2', 1);
SELECT * FROM inplace.check('jobs');
-- a reader needs no privilege on the functions of an index
CREATE INDEX f_abs ON f USING inplace_btree (abs(a), b);
UPDATE f SET a = -5 WHERE id = 1 RETURNING ctid;
CREATE ROLE ck_reader;
GRANT USAGE ON SCHEMA ck TO ck_reader;
GRANT SELECT ON f TO ck_reader;
REVOKE EXECUTE ON FUNCTION abs(int) FROM PUBLIC;
\c
SET search_path = ck, inplace, public;
SET enable_seqscan = off;
SET ROLE ck_reader;
SELECT id, a FROM f WHERE b = 'uno';
RESET ROLE;
GRANT EXECUTE ON FUNCTION abs(int) TO PUBLIC;
REVOKE ALL ON f FROM ck_reader;
REVOKE ALL ON SCHEMA ck FROM ck_reader;
DROP ROLE ck_reader;
-- All kinds of expressions: does the row stay?  Those at the end are not the
-- server's own.
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (x int, y int);
CREATE FUNCTION shapes(expr text, OUT stays bool, OUT finds bool) LANGUAGE plpgsql AS $$
DECLARE before tid; after tid; cond text := expr; pred text := '';
BEGIN
	IF expr LIKE 'WHERE %' THEN
		pred := expr;
		cond := 'g.a';
	END IF;
	DROP TABLE IF EXISTS g;
	CREATE TABLE g (a int, b text, d date, ts timestamp, arr int[], j jsonb, m mood, vc varchar(20), c char(5), n numeric, u uuid, dom positive, p pair) USING inplace;
	INSERT INTO g VALUES (1, 'One', '2020-01-01', '2020-01-01 10:00', '{1,2}', '{"a": 1}', 'sad', 'vc', 'c', 1.5, '00000000-0000-0000-0000-000000000001', 1, '(1,2)');
	EXECUTE format('CREATE INDEX ON g USING inplace_btree ((%s)) %s', replace(cond, 'g.a', 'a'), pred);
	SELECT ctid INTO before FROM g;
	UPDATE g SET a = 2, b = 'Two', d = '2021-02-02', ts = '2021-02-02 20:00', arr = '{3,4,5}', j = '{"a": 2}', m = 'happy', vc = 'cv', c = 'cc', n = 2.25,
		u = '00000000-0000-0000-0000-000000000002', dom = 2, p = '(3,4)' RETURNING ctid INTO after;
	stays := before = after;
	SET LOCAL enable_seqscan = off;
	EXECUTE format('SELECT count(*) = 1 FROM g WHERE (%1$s) = (SELECT %1$s FROM g) %2$s', replace(cond, 'g.a', 'a'), replace(pred, 'WHERE', 'AND')) INTO finds;
	SET LOCAL enable_seqscan = on;
END $$;
SET client_min_messages = warning;
SELECT e, s.* FROM unnest(ARRAY['lower(b COLLATE "C")', 'a + 1', 'b || vc', 'coalesce(a, 0)', 'greatest(a, arr[1])', 'CASE WHEN a > 1 THEN b ELSE vc END', 'extract(year FROM d)',
	'date_trunc(''month'', ts)', 'arr[2]', 'j ->> ''a''', '(j ->> ''a'')::int', 'j #>> ''{a}''', 'm', 'm = ANY (''{sad,ok}'')', 'vc::text', 'rtrim(c)', 'n::int', 'nullif(a, 1)', 'a IS NULL', 'u',
	'(a, b) < (2, ''x'')', 'md5(b)', 'dom + 1', 'lpad(b, 10)', 'left(b, 1)', 'array_length(arr, 1)', 'b LIKE ''T%''', 'ARRAY[a, 2]', 'make_date(year => a, month => 1, day => 1)', 'hashtext(b)', 'a IS DISTINCT FROM 1',
	'WHERE m IN (''ok'', ''happy'')', 'WHERE vc IN (''cv'', ''x'')', 'WHERE d > ''2020-06-01''', 'WHERE b IS NOT NULL AND NOT a < 0', 'WHERE j @> ''{"a": 2}''',
	'inlined(a)', 'noisy(a)', '(p).x', 'a::positive']) WITH ORDINALITY x(e, i), LATERAL shapes(e) s ORDER BY i;
RESET client_min_messages;
-- unique, with keys that may be equal without being identical
CREATE TABLE n (id int PRIMARY KEY, n numeric, f float8, a int[]) USING inplace;
INSERT INTO n SELECT i, i, i, ARRAY[i] FROM generate_series(1, 5) i;
CREATE UNIQUE INDEX n_n ON n USING inplace_btree (n);
CREATE UNIQUE INDEX n_f ON n USING inplace_btree ((f / 2)) WHERE f < 100;
CREATE UNIQUE INDEX n_a ON n USING inplace_btree (a);
UPDATE n SET n = n + 10 RETURNING ctid, n;
INSERT INTO n VALUES (6, 11.0);
INSERT INTO n VALUES (6, 1.0);
UPDATE n SET n = 1 WHERE id = 1;
UPDATE n SET n = 1.5 WHERE id = 6 RETURNING ctid;
UPDATE n SET n = 1 WHERE id = 1 RETURNING ctid;
UPDATE n SET n = 1.00 WHERE id = 6;
UPDATE n SET f = 0 WHERE id = 1 RETURNING ctid;
UPDATE n SET f = '-0' WHERE id = 2;
UPDATE n SET f = '-0' WHERE id = 1 RETURNING ctid;
UPDATE n SET f = 200, a = '{}' WHERE id IN (1, 2);
UPDATE n SET f = 200, a = NULL WHERE id IN (1, 2) RETURNING ctid;
SELECT n, f, a FROM n WHERE n > 0 ORDER BY n;
SELECT * FROM inplace.check('n');
RESET enable_seqscan;

-- Keys and predicates without a column: no update concerns them.
CREATE TABLE ck.const (id int PRIMARY KEY, a int) USING inplace;
CREATE INDEX ON ck.const ((1));
CREATE FUNCTION ck.one() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE INDEX ON ck.const ((ck.one()));
CREATE INDEX const_a ON ck.const (a) WHERE 1 = 1;
INSERT INTO ck.const VALUES (1, 1);
UPDATE ck.const SET a = 2 RETURNING ctid;
SELECT * FROM inplace.check('ck.const');
DROP INDEX ck.const_a;
CREATE INDEX ON ck.const (a) WHERE ck.one() = 1;
UPDATE ck.const SET a = a RETURNING ctid;
UPDATE ck.const SET a = 3 RETURNING ctid;
SELECT * FROM inplace.check('ck.const');

-- A text search configuration has code of its own: the row moves.
CREATE TABLE ck.ts (id int PRIMARY KEY, v text) USING inplace;
CREATE INDEX ON ck.ts ((length(to_tsvector('english', v))));
INSERT INTO ck.ts VALUES (1, 'one');
UPDATE ck.ts SET v = 'cats dogs' RETURNING ctid;

-- Random changes, with aborts and VACUUM.
SELECT setseed(0.125);
\set ECHO none
SELECT CASE (random() * 10)::int
	WHEN 0 THEN 'VACUUM (INDEX_CLEANUP on) t'
	WHEN 1 THEN format('UPDATE t SET status = ''active'' WHERE id %% 7 = %s', n % 7)
	WHEN 2 THEN format('UPDATE t SET status = ''done'' WHERE id %% 5 = %s', n % 5)
	WHEN 3 THEN format('UPDATE t SET b = (b + 1) %% 4, a = a + 1 WHERE id %% 6 = %s', n % 6)
	WHEN 4 THEN format('UPDATE t SET email = CASE WHEN id %% 2 = 0 THEN upper(email) ELSE ''u'' || id || %s END WHERE id %% 9 = %s', n % 3, n % 9)
	WHEN 5 THEN format('DO $x$ BEGIN UPDATE t SET status = ''active'', a = -a, b = 2, m = ''ok'' WHERE id %% 7 = %s; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $x$', n % 7)
	WHEN 6 THEN format('UPDATE t SET m = (ARRAY[''sad'', ''ok'', ''happy''])[1 + (id + %s) %% 3]::ck.mood WHERE id %% 4 = %s', n, n % 4)
	WHEN 7 THEN format('UPDATE t SET j = CASE WHEN j ? ''k'' THEN ''{}'' ELSE ''{"k": 3}'' END::jsonb WHERE id %% 8 = %s', n % 8)
	WHEN 8 THEN format('UPDATE t SET v = v || ''.'' WHERE id %% 10 = %s', n % 10)
	WHEN 9 THEN format('DELETE FROM t WHERE id %% 97 = %s', n % 97)
	ELSE 'VACUUM t' END AS step,
	format('DO $x$ DECLARE d text; BEGIN FOR d IN SELECT ck.differences() LOOP RAISE WARNING ''step %s: %%'', d; END LOOP; END $x$', n)
FROM generate_series(1, 60) n \gexec
\set ECHO all
SELECT * FROM inplace.check('t');
SET client_min_messages = warning;
DROP SCHEMA ck CASCADE;
