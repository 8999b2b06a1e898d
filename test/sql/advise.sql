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

SET client_min_messages = warning;
DROP SCHEMA ad CASCADE;
DROP OWNED BY regress_inplace_advise;
DROP ROLE regress_inplace_advise;
RESET client_min_messages;
