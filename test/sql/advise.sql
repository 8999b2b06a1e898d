-- inplace.advise: who would gain.
CREATE SCHEMA ad;
CREATE TABLE ad.hot (id int PRIMARY KEY, n int, filler text) WITH (autovacuum_enabled = off, fillfactor = 50);
CREATE TABLE ad.cold (id int PRIMARY KEY, n int, filler text) WITH (autovacuum_enabled = off);
CREATE INDEX cold_n ON ad.cold (n);
CREATE INDEX cold_hash ON ad.cold USING hash (n);
CREATE TABLE ad.quiet (id int PRIMARY KEY) WITH (autovacuum_enabled = off);
CREATE TABLE ad."Already" (id int PRIMARY KEY, n int) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO ad.hot SELECT g, 0, repeat('x', 50) FROM generate_series(1, 2000) g;
INSERT INTO ad.cold SELECT g, 0, repeat('x', 50) FROM generate_series(1, 2000) g;
INSERT INTO ad.quiet SELECT g FROM generate_series(1, 2000) g;
INSERT INTO ad."Already" SELECT g, 0 FROM generate_series(1, 2000) g;
UPDATE ad.hot SET n = 1 WHERE id % 10 = 0;
UPDATE ad.cold SET n = n + 1;
UPDATE ad.cold SET n = n + 1;
UPDATE ad.cold SET n = n + 1;
UPDATE ad."Already" SET n = 1;
ANALYZE ad.hot, ad.cold, ad.quiet, ad."Already";
SELECT pg_stat_force_next_flush();

-- cold has grown to four times its size, its key index by all versions
SELECT object, kind, on_table, updates, hot_updates, hot_share, dead_rows > 0 AS dead,
       size_bytes = pg_relation_size(object) AS size,
       bloat_bytes BETWEEN 0.5 * size_bytes AND 0.85 * size_bytes AS bloated,
       bloat_bytes < 0.2 * size_bytes AS lean,
       wal_bytes > 0 AS wal, statement
FROM inplace.advise() WHERE on_table::text LIKE 'ad.%' AND object <> 'ad.cold_n'::regclass ORDER BY kind DESC, object::text;
SELECT object FROM inplace.advise() WHERE on_table::text LIKE 'ad.%' AND kind = 'table' ORDER BY rank;
SELECT count(*) = count(DISTINCT rank) AS ranked, min(rank), max(rank) = count(*) AS all_ranks FROM inplace.advise();
SELECT bool_and((newpage_updates IS NULL) = (current_setting('server_version_num')::int < 160000)) AS newpage FROM inplace.advise();

-- the statement does what it says, and the table is not listed any more
SELECT statement FROM inplace.advise() WHERE object = 'ad.cold'::regclass \gexec
SELECT count(*) FROM inplace.advise() WHERE on_table = 'ad.cold'::regclass;

-- what is only inserted into is not listed, what is not converted neither
CREATE TABLE ad.log (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off);
INSERT INTO ad.log SELECT g, g FROM generate_series(1, 2000) g;
DELETE FROM ad.log WHERE id <= 1000;

-- Updates that move the rows of an inplace table do so for its btree indexes;
-- those of constraints stay what they are.  A table without statistics, and
-- names that want quoting.
SET inplace.default_index_method = btree;
CREATE TABLE ad."Mixed Case" (id int PRIMARY KEY, n int, m int UNIQUE) USING inplace WITH (autovacuum_enabled = off);
CREATE INDEX "it's n" ON ad."Mixed Case" (n);
CREATE INDEX "Other" ON ad."Mixed Case" ((n + 1)) WHERE n > 0;
CREATE INDEX mixed_hash ON ad."Mixed Case" USING hash (n);
INSERT INTO ad."Mixed Case" SELECT g, 0, g FROM generate_series(1, 1000) g;
UPDATE ad."Mixed Case" SET n = n + 1;
-- partitions, of both methods
CREATE TABLE ad."Part" (id int, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE ad."Part 1" PARTITION OF ad."Part" FOR VALUES FROM (0) TO (1000) USING inplace WITH (autovacuum_enabled = off);
CREATE TABLE ad."Part 2" PARTITION OF ad."Part" FOR VALUES FROM (1000) TO (2000) USING heap WITH (autovacuum_enabled = off);
CREATE INDEX "Part n" ON ad."Part" (n);
INSERT INTO ad."Part" SELECT g, 0 FROM generate_series(0, 1999) g;
UPDATE ad."Part" SET n = 1;
RESET inplace.default_index_method;
-- a table that was never analyzed, then one without rows
CREATE TABLE ad.emptied (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off);
INSERT INTO ad.emptied VALUES (1, 1);
UPDATE ad.emptied SET n = 2;
DELETE FROM ad.emptied;
SELECT pg_stat_force_next_flush();
SELECT object, kind, on_table, index_entries, bloat_bytes IS NULL AS bloat_unknown, wal_bytes > 0 AS wal, statement
FROM inplace.advise() WHERE on_table::text LIKE 'ad.%' AND on_table <> 'ad.hot'::regclass ORDER BY kind DESC, object::text;
VACUUM ANALYZE ad.emptied;
SELECT object, bloat_bytes FROM inplace.advise() WHERE on_table = 'ad.emptied'::regclass ORDER BY 1;

-- all that is said can be done, and then there is nothing left to say
SELECT DISTINCT statement FROM inplace.advise() WHERE on_table::text LIKE 'ad.%' AND on_table <> 'ad.hot'::regclass ORDER BY 1 \gexec
SELECT object FROM inplace.advise() WHERE on_table::text LIKE 'ad.%' AND on_table <> 'ad.hot'::regclass;
SELECT c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE c.relnamespace = 'ad'::regnamespace AND c.relname ~ '(Part|Mixed|Other|it.s)' AND c.relkind IN ('r', 'i', 'I') ORDER BY c.relname COLLATE "C";
SELECT bool_and(c.n = 0) FROM (SELECT count(*) AS n FROM inplace.check('ad."Mixed Case"') UNION ALL SELECT count(*) FROM inplace.check('ad."Part 1"')) c;
-- in place from now on
SELECT ctid AS before FROM ad."Mixed Case" WHERE id = 7 \gset
DROP INDEX ad.mixed_hash, ad."Other";
UPDATE ad."Mixed Case" SET n = n + 1;
SELECT ctid = :'before' AS in_place FROM ad."Mixed Case" WHERE id = 7;

-- everybody sees his own tables
CREATE ROLE regress_inplace_advise;
GRANT USAGE ON SCHEMA inplace, ad TO regress_inplace_advise;
SET ROLE regress_inplace_advise;
SELECT count(*) FROM inplace.advise();
RESET ROLE;
ALTER TABLE ad.hot OWNER TO regress_inplace_advise;
SET ROLE regress_inplace_advise;
SELECT rank, object, kind, updates, statement FROM inplace.advise() WHERE kind = 'table';
RESET ROLE;

-- Virtual columns (18) take no space.  Tables that cannot be rewritten are not listed,
-- nor are their indexes: those whose row type is stored somewhere, also within an array
-- or a domain or a composite type, or as a key of an index; a view does not count.
CREATE TABLE ad.plain (id int, x int) USING heap WITH (autovacuum_enabled = off);
CREATE TABLE ad.virtual (id int, x int) USING heap WITH (autovacuum_enabled = off);
DO $$
BEGIN
	IF current_setting('server_version_num')::int >= 180000 THEN
		FOR i IN 1 .. 20 LOOP
			EXECUTE format('ALTER TABLE ad.virtual ADD COLUMN v%s text GENERATED ALWAYS AS (repeat(''x'', x)) VIRTUAL', i);
		END LOOP;
	END IF;
END $$;
INSERT INTO ad.plain SELECT g, 0 FROM generate_series(1, 2000) g;
INSERT INTO ad.virtual SELECT g, 0 FROM generate_series(1, 2000) g;
UPDATE ad.plain SET x = 1;
UPDATE ad.virtual SET x = 1;
ANALYZE ad.plain, ad.virtual;
DO $$
BEGIN
	FOR i IN 0 .. 5 LOOP
		EXECUTE format('CREATE TABLE ad.typed_%s (id int, x int) USING heap WITH (autovacuum_enabled = off)', i);
		EXECUTE format('CREATE INDEX ON ad.typed_%s (x)', i);
		EXECUTE format('INSERT INTO ad.typed_%s VALUES (1, 1)', i);
		EXECUTE format('UPDATE ad.typed_%s SET x = 2', i);
	END LOOP;
END $$;
CREATE VIEW ad.view_of AS SELECT t FROM ad.typed_0 t;
CREATE TABLE ad.user_of_0 (a int, t ad.typed_0);
ALTER TABLE ad.user_of_0 DROP t;
CREATE TABLE ad.user_of_1 (t ad.typed_1);
CREATE TABLE ad.user_of_2 (t ad.typed_2[]);
CREATE DOMAIN ad.domain_of AS ad.typed_3 CHECK (VALUE IS NOT NULL);
CREATE TYPE ad.type_of AS (d ad.domain_of[]);
CREATE TABLE ad.user_of_3 (a int, t ad.type_of) PARTITION BY RANGE (a);
CREATE TABLE ad.user_of_4 (a int);
CREATE INDEX ON ad.user_of_4 ((ROW(a, a)::ad.typed_4));
CREATE MATERIALIZED VIEW ad.user_of_5 AS SELECT t FROM ad.typed_5 t;
SELECT pg_stat_force_next_flush();
SELECT p.wal_bytes = v.wal_bytes AS wal, v.bloat_bytes >= p.bloat_bytes AS bloat
FROM inplace.advise() p, inplace.advise() v WHERE p.object = 'ad.plain'::regclass AND v.object = 'ad.virtual'::regclass;
SELECT object, statement FROM inplace.advise() WHERE on_table::text LIKE 'ad.typed%' ORDER BY object::text;
SELECT inplace.convert('ad.typed_0');
-- Those that are not listed cannot be converted.  (15.18 and 18.6 refuse it; 15.20 and
-- 17.12 let ALTER TABLE do it.)
DO $$
BEGIN
	FOR i IN 1 .. 5 LOOP
		BEGIN
			PERFORM inplace.convert(format('ad.typed_%s', i)::regclass);
		EXCEPTION WHEN feature_not_supported THEN
			NULL;
		END;
	END LOOP;
END $$;

SET client_min_messages = warning;
DROP SCHEMA ad CASCADE;
DROP OWNED BY regress_inplace_advise;
DROP ROLE regress_inplace_advise;
RESET client_min_messages;
