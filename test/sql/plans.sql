-- Plans with inplace_btree indexes are those with btree indexes.
\set SHOW_CONTEXT never
CREATE SCHEMA pl;
SET search_path = pl, public;
CREATE TABLE b (id int PRIMARY KEY, a int, c int, s text, n numeric, d date, z text, p int, u int, f boolean) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO b SELECT g, g % 1000, g % 37, 's' || g % 500, g / 10.0, date '2020-01-01' + g % 700,
	CASE WHEN g % 10 = 0 THEN NULL ELSE md5(g::text) END, g % 13, g, g % 3 = 0 FROM generate_series(1, 10000) g;
CREATE TABLE i (LIKE b INCLUDING ALL) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO i SELECT * FROM b;
CREATE TABLE o (id int PRIMARY KEY, a int, k int) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO o SELECT g, g % 100, g FROM generate_series(1, 300) g;

-- The same indexes on both, of either method.  (A unique one of another method
-- than btree keeps ON CONFLICT from being used up to PostgreSQL 17.)
SET inplace.default_index_method = btree;
DO $$
DECLARE
	def text;
	t text;
	n int := 0;
BEGIN
	FOREACH def IN ARRAY ARRAY[
		'INDEX %s ON %s USING %s (a, c)',
		'INDEX %s ON %s USING %s (s DESC NULLS LAST, a)',
		'INDEX %s ON %s USING %s (s text_pattern_ops)',
		'INDEX %s ON %s USING %s (n) INCLUDE (id)',
		'INDEX %s ON %s USING %s (d NULLS FIRST)',
		'INDEX %s ON %s USING %s (lower(z), p)',
		'INDEX %s ON %s USING %s (z COLLATE "C")',
		'INDEX %s ON %s USING %s (p) WHERE a > 900',
		'INDEX %s ON %s USING %s (f, c)',
		'INDEX %s ON %s USING %s (c, id)',
		'UNIQUE INDEX %s ON %s USING %s (u)']
	LOOP
		n := n + 1;
		FOREACH t IN ARRAY ARRAY['b', 'i'] LOOP
			EXECUTE 'CREATE ' || format(def, t || '_' || n, t,
				CASE t WHEN 'i' THEN 'inplace_btree' ELSE 'btree' END);
		END LOOP;
	END LOOP;
END $$;
RESET inplace.default_index_method;
SELECT left(c.relname, 1) AS t, a.amname, count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE c.relnamespace = 'pl'::regnamespace AND c.relkind = 'i' GROUP BY 1, 2 ORDER BY 1, 2;
VACUUM ANALYZE b;
VACUUM ANALYZE i;
VACUUM ANALYZE o;
-- The plan of a query with %T for one of the two, as of the other.
CREATE FUNCTION plan(query text, t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || replace(query, '%T', t) LOOP
		plan := plan || regexp_replace(line, '\m' || t || '(_\d+|_pkey|)\M', 'T\1', 'g') || E'\n';
	END LOOP;
	RETURN plan;
END $$;

CREATE TABLE queries (n serial, q text, needs text);
INSERT INTO queries (q) SELECT unnest(ARRAY[
	'SELECT * FROM %T WHERE a = 5',
	'SELECT * FROM %T WHERE a BETWEEN 5 AND 9 AND c > 3',
	'SELECT a, c FROM %T WHERE a = 5',
	'SELECT count(*) FROM %T WHERE a < 50',
	'SELECT * FROM %T ORDER BY a LIMIT 10',
	'SELECT * FROM %T ORDER BY a DESC, c DESC LIMIT 10',
	'SELECT * FROM %T ORDER BY a, c DESC LIMIT 10',
	'SELECT * FROM %T ORDER BY s LIMIT 10',
	'SELECT * FROM %T ORDER BY s DESC NULLS LAST, a LIMIT 10',
	'SELECT * FROM %T ORDER BY s NULLS FIRST, a DESC LIMIT 10',
	'SELECT * FROM %T ORDER BY d NULLS FIRST LIMIT 10',
	'SELECT * FROM %T ORDER BY d LIMIT 10',
	'SELECT * FROM %T ORDER BY d DESC NULLS LAST LIMIT 10',
	'SELECT min(a), max(a) FROM %T',
	'SELECT min(n) FROM %T WHERE n > 50',
	'SELECT max(d) FROM %T',
	'SELECT max(s), min(s) FROM %T',
	'SELECT * FROM %T WHERE a IN (1, 5, 900)',
	'SELECT * FROM %T WHERE a IN (1, 5, 900) ORDER BY a LIMIT 5',
	'SELECT * FROM %T WHERE a = ANY (ARRAY[3, 4]) AND c IN (3, 4)',
	'SELECT id FROM %T WHERE n BETWEEN 10 AND 12.5',
	'SELECT * FROM %T WHERE n = 10 OR a = 7',
	'SELECT * FROM %T WHERE n < 20 AND s = ''s7''',
	'SELECT * FROM %T WHERE s LIKE ''s12%%''',
	'SELECT * FROM %T WHERE s ~ ''^s12''',
	'SELECT * FROM %T WHERE s ~>=~ ''s3'' AND s ~<~ ''s31''',
	'SELECT * FROM %T WHERE z COLLATE "C" LIKE ''ab%%''',
	'SELECT * FROM %T WHERE lower(z) = ''abc''',
	'SELECT * FROM %T WHERE lower(z) = ''abc'' AND p = 4',
	'SELECT * FROM %T WHERE z COLLATE "C" IS NULL',
	'SELECT * FROM %T WHERE z COLLATE "C" IS NOT NULL ORDER BY z COLLATE "C" LIMIT 3',
	'SELECT * FROM %T WHERE d IS NULL',
	'SELECT * FROM %T WHERE p = 3 AND a > 950',
	'SELECT * FROM %T WHERE p = 3 AND a > 800',
	'SELECT * FROM %T WHERE f AND c = 4',
	'SELECT * FROM %T WHERE NOT f AND c < 4',
	'SELECT * FROM %T WHERE f IS TRUE ORDER BY c LIMIT 7',
	'SELECT a, count(*) FROM %T GROUP BY a',
	'SELECT a, c, count(*) FROM %T GROUP BY a, c ORDER BY a, c',
	'SELECT DISTINCT ON (a) a, c, s FROM %T ORDER BY a, c',
	'SELECT DISTINCT a FROM %T WHERE a < 20',
	'SELECT * FROM %T ORDER BY a, s LIMIT 5',
	'SELECT *, row_number() OVER (PARTITION BY a ORDER BY c) FROM %T WHERE a < 10',
	'SELECT * FROM %T x JOIN o ON o.a = x.a',
	'SELECT * FROM o LEFT JOIN %T x ON o.a = x.a AND x.c = 4',
	'SELECT * FROM o JOIN %T x ON o.k = x.u',
	'SELECT * FROM %T x JOIN %T y ON x.u = y.id ORDER BY x.u LIMIT 100',
	'SELECT * FROM %T x JOIN %T y USING (a, c) WHERE x.a < 40',
	'SELECT o.id FROM o LEFT JOIN %T x ON o.k = x.u',
	'SELECT * FROM o WHERE EXISTS (SELECT FROM %T x WHERE x.u = o.k)',
	'SELECT * FROM o WHERE NOT EXISTS (SELECT FROM %T x WHERE x.a = o.a AND x.c = 2)',
	'SELECT * FROM o WHERE o.k IN (SELECT u FROM %T)',
	'SELECT * FROM o, LATERAL (SELECT * FROM %T x WHERE x.a = o.a ORDER BY x.c DESC LIMIT 1) l',
	'SELECT * FROM %T x JOIN o ON x.a = o.a::bigint',
	'SELECT * FROM %T WHERE a = 5::bigint',
	'SELECT * FROM %T WHERE a > 998.5',
	'SELECT * FROM %T WHERE u = 1000000',
	'SELECT * FROM %T WHERE u > 9990',
	'SELECT * FROM %T WHERE c = 4 ORDER BY id LIMIT 4',
	'SELECT id FROM %T WHERE c = 4 AND id > 50 AND id < 60',
	'SELECT * FROM %T WHERE c = 7',
	'SELECT * FROM %T WHERE c > 30 AND id = 77',
	'UPDATE %T SET a = 5 WHERE u = 17',
	'DELETE FROM %T WHERE a = 3',
	'SELECT * FROM %T WHERE a = 6 FOR UPDATE',
	'MERGE INTO %T x USING o ON o.k = x.u WHEN MATCHED THEN UPDATE SET a = o.a',
	'SELECT * FROM %T TABLESAMPLE BERNOULLI (1) WHERE a = 4']);
-- where the server asks for btree
INSERT INTO queries (q, needs) SELECT unnest(ARRAY[
	'SELECT * FROM %T WHERE (a, c) > (990, 5)',
	'SELECT * FROM %T WHERE (a, c) < (3, 5) ORDER BY a, c LIMIT 3',
	'SELECT * FROM %T WHERE (c, id) >= (5, 100) AND c < 7',
	'INSERT INTO %T (id, u) VALUES (1, 1) ON CONFLICT (u) DO NOTHING',
	'INSERT INTO %T (id, u) VALUES (1, 1) ON CONFLICT (u) DO UPDATE SET a = 0']), '180000';

CREATE FUNCTION compare(settings text) RETURNS TABLE (query text, with_btree text, with_inplace_btree text) LANGUAGE plpgsql AS $$
DECLARE
	setting text;
BEGIN
	FOREACH setting IN ARRAY string_to_array(settings, ',') LOOP
		PERFORM set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), true);
	END LOOP;
	RETURN QUERY SELECT q, plan(q, 'b'), plan(q, 'i') FROM queries
		WHERE plan(q, 'b') <> plan(q, 'i') AND current_setting('server_version_num')::int >= coalesce(needs, '0')::int
		ORDER BY n;
END $$;
SELECT relpages, reltuples, relallvisible FROM pg_class WHERE oid = 'b'::regclass
EXCEPT SELECT relpages, reltuples, relallvisible FROM pg_class WHERE oid = 'i'::regclass;
SELECT * FROM compare('work_mem=4MB');
SELECT * FROM compare('enable_seqscan=off');
SELECT * FROM compare('enable_seqscan=off,enable_bitmapscan=off,enable_sort=off');
SELECT * FROM compare('enable_seqscan=off,enable_indexscan=off,enable_indexonlyscan=off');
SELECT * FROM compare('enable_hashjoin=off,enable_nestloop=off');
SELECT * FROM compare('parallel_setup_cost=0,parallel_tuple_cost=0,min_parallel_table_scan_size=0,min_parallel_index_scan_size=0,max_parallel_workers_per_gather=2,enable_seqscan=off');
SELECT * FROM compare('parallel_setup_cost=0,parallel_tuple_cost=0,min_parallel_table_scan_size=0,min_parallel_index_scan_size=0,max_parallel_workers_per_gather=2,enable_seqscan=off,enable_bitmapscan=off');
-- the plans have what they are about
SELECT needed, (SELECT count(*) > 0 FROM queries WHERE plan(q, 'i') LIKE '%' || needed || '%' AND needs IS NULL) AS seen
FROM unnest(ARRAY['Index Scan', 'Index Only Scan', 'Index Scan Backward', 'Bitmap Index Scan', 'InitPlan', 'Incremental Sort']) needed;
-- and the answers are the same
SET enable_seqscan = off;
DO $$
DECLARE
	query text;
	x text;
	y text;
	n int := 0;
BEGIN
	FOR query IN SELECT q FROM queries WHERE q LIKE 'SELECT%' AND q NOT LIKE '%FOR UPDATE' AND q NOT LIKE '%LIMIT%' AND q NOT LIKE '%TABLESAMPLE%' LOOP
		EXECUTE format('SELECT md5(string_agg(r::text, '','' ORDER BY r::text)) FROM (%s) r', replace(query, '%T', 'b')) INTO x;
		EXECUTE format('SELECT md5(string_agg(r::text, '','' ORDER BY r::text)) FROM (%s) r', replace(query, '%T', 'i')) INTO y;
		IF x IS DISTINCT FROM y THEN
			RAISE WARNING 'differs: %', query;
		END IF;
		n := n + 1;
	END LOOP;
	RAISE NOTICE 'more than 40: %', n > 40;
END $$;
RESET enable_seqscan;
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA pl CASCADE;
RESET client_min_messages;
