-- inplace.default_index_method: which statements make an inplace_btree index.
\set SHOW_CONTEXT never
CREATE SCHEMA di;
SET search_path = di, public;
CREATE VIEW methods AS
SELECT c.relname, a.amname, i.indisvalid AS valid
FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = 'di'::regnamespace;
-- a unique index is one of them from PostgreSQL 18 on
CREATE FUNCTION unique_method() RETURNS name LANGUAGE sql AS $$
SELECT CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'inplace_btree' ELSE 'btree' END::name $$;

SHOW inplace.default_index_method;
CREATE TABLE t (id int PRIMARY KEY, a int, s text, u int UNIQUE, EXCLUDE USING btree (a WITH =) WHERE (a < 0)) USING inplace;
INSERT INTO t SELECT g, g, 's' || g, g FROM generate_series(1, 100) g;
CREATE INDEX t_implied ON t (a);
CREATE INDEX t_written ON t USING btree (a DESC NULLS LAST, s COLLATE "C") INCLUDE (u) WITH (fillfactor = 70, deduplicate_items = off) WHERE a > 3;
CREATE INDEX t_opclass ON t (s text_pattern_ops);
CREATE INDEX t_expr ON t (lower(s), (a + 1));
CREATE INDEX IF NOT EXISTS t_expr ON t (a);
CREATE INDEX CONCURRENTLY t_conc ON t (a);
CREATE INDEX t_hash ON t USING hash (a);
CREATE INDEX t_said ON t USING inplace_btree (a);
DO $$ BEGIN EXECUTE 'CREATE INDEX t_do ON t (a)'; END $$;
CREATE FUNCTION mk() RETURNS void LANGUAGE sql AS 'CREATE INDEX t_sql ON di.t (a)';
SELECT mk();
PREPARE nothing AS SELECT 1;
SELECT * FROM methods ORDER BY 1;
SELECT indexdef FROM pg_indexes WHERE indexname = 't_written';
CREATE UNIQUE INDEX t_unique ON t (u, a);
SELECT amname = unique_method() AS right FROM methods WHERE relname = 't_unique';
SELECT * FROM inplace.check('t');
-- they keep it
REINDEX INDEX t_implied;
REINDEX INDEX CONCURRENTLY t_written;
CLUSTER t USING t_implied;
ALTER TABLE t CLUSTER ON t_expr;
ALTER TABLE t ALTER a TYPE bigint;
SELECT relname, amname FROM methods WHERE relname IN ('t_implied', 't_written') ORDER BY 1;
SELECT * FROM inplace.check('t');
-- switched off
SET inplace.default_index_method = btree;
CREATE INDEX t_off ON t (a);
CREATE INDEX t_off_said ON t USING inplace_btree (a);
RESET inplace.default_index_method;
ALTER TABLE t ALTER a TYPE int;
SELECT relname, amname FROM methods WHERE relname LIKE 't_off%' ORDER BY 1;
SET inplace.default_index_method = hash;
-- what the server says of mistakes is what it says otherwise
CREATE INDEX ON no_such_table (a);
CREATE INDEX ON t (no_such_column);
CREATE INDEX ON t (s no_such_ops);
CREATE INDEX ON t (point(a, a));
CREATE INDEX ON methods (relname);
CREATE INDEX t_implied ON t (a);
BEGIN;
CREATE INDEX CONCURRENTLY ON t (a);
ROLLBACK;
BEGIN READ ONLY;
CREATE INDEX ON t (a);
ROLLBACK;

-- heap tables: nothing changes
CREATE TABLE h (a int, b int) USING heap;
CREATE INDEX h_a ON h (a);
CREATE INDEX h_b ON h USING btree (b);
CREATE INDEX h_said ON h USING inplace_btree (a);
INSERT INTO h SELECT g, g FROM generate_series(1, 1000) g;
ANALYZE h;
UPDATE h SET a = a + 1;
SET enable_seqscan = off;
SET enable_sort = off;
DROP INDEX h_a;
EXPLAIN (COSTS OFF) SELECT a FROM h WHERE a < 5 ORDER BY a;
SELECT a FROM h WHERE a < 5 ORDER BY a;
RESET enable_seqscan;
RESET enable_sort;
SELECT relname, amname FROM methods WHERE relname LIKE 'h\_%' ORDER BY 1;
-- back to heap: the indexes stay what they are
CREATE TABLE back (a int) USING inplace;
CREATE INDEX back_a ON back (a);
INSERT INTO back SELECT generate_series(1, 100);
UPDATE back SET a = -a WHERE a % 3 = 0;
ALTER TABLE back SET ACCESS METHOD heap;
SELECT relname, amname FROM methods WHERE relname LIKE 'back%';
SET enable_seqscan = off;
SELECT count(*), sum(a) FROM back WHERE a BETWEEN -20 AND 20;
RESET enable_seqscan;
ALTER TABLE back SET ACCESS METHOD inplace;
SELECT * FROM inplace.check('back');

-- CREATE SCHEMA, LIKE
CREATE SCHEMA di_inner CREATE TABLE own (a int PRIMARY KEY, b int) CREATE INDEX own_b ON own (b);
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relnamespace = 'di_inner'::regnamespace ORDER BY 1;
SET default_table_access_method = inplace;
CREATE SCHEMA di_inner2 CREATE TABLE own (a int PRIMARY KEY, b int) CREATE INDEX own_b ON own (b);
RESET default_table_access_method;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relnamespace = 'di_inner2'::regnamespace ORDER BY 1;
CREATE TABLE like_h (LIKE t INCLUDING INDEXES) USING heap;
CREATE TABLE like_i (LIKE h INCLUDING INDEXES) USING inplace;
SELECT split_part(relname, '_', 2) AS t, amname, count(*) FROM methods WHERE relname LIKE 'like\_%' AND relname !~ 'like_h_u' GROUP BY 1, 2 ORDER BY 1, 2;

-- partitions: one method for the whole tree
CREATE TABLE p (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10) USING heap;
CREATE INDEX p_a ON p (a);
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (10) TO (20) PARTITION BY LIST (b);
CREATE TABLE p_2_1 PARTITION OF p_2 FOR VALUES IN (1) USING inplace;
CREATE INDEX p_b ON p (b);
CREATE INDEX p_1_own ON p_1 (b, a);
CREATE TABLE p_3 PARTITION OF p FOR VALUES FROM (20) TO (30) USING heap;
CREATE INDEX p_ab ON ONLY p (a, b);
CREATE INDEX p_1_ab ON p_1 (a, b);
CREATE INDEX p_2_ab ON p_2 (a, b);
CREATE INDEX p_3_ab ON p_3 (a, b);
ALTER INDEX p_ab ATTACH PARTITION p_1_ab;
ALTER INDEX p_ab ATTACH PARTITION p_2_ab;
ALTER INDEX p_ab ATTACH PARTITION p_3_ab;
SELECT * FROM methods WHERE relname LIKE 'p\_%' ORDER BY 1;
-- one that is attached brings an index that fits
CREATE TABLE p_4 (a int, b int) USING inplace;
CREATE INDEX p_4_b ON p_4 (b);
ALTER TABLE p ATTACH PARTITION p_4 FOR VALUES FROM (30) TO (40);
SELECT relname, amname FROM methods WHERE relname LIKE 'p\_4%' ORDER BY 1;
INSERT INTO p SELECT g % 40, 1 FROM generate_series(1, 200) g;
UPDATE p SET b = 1 + b WHERE a < 10 OR a > 20;
SET enable_seqscan = off;
SELECT count(*), sum(a) FROM p WHERE b = 2;
RESET enable_seqscan;
-- without partitions it is those to come that count
CREATE TABLE empty_p (a int) PARTITION BY RANGE (a);
CREATE INDEX empty_p_a ON empty_p (a);
SET default_table_access_method = inplace;
CREATE TABLE empty_q (a int) PARTITION BY RANGE (a);
CREATE INDEX empty_q_a ON empty_q (a);
RESET default_table_access_method;
SELECT relname, amname FROM methods WHERE relname LIKE 'empty%' ORDER BY 1;

-- a constraint made of an index
CREATE TABLE k (a int NOT NULL, b int NOT NULL) USING inplace;
INSERT INTO k SELECT g, g FROM generate_series(1, 50) g;
CREATE UNIQUE INDEX k_a ON k USING btree (a);
SET client_min_messages = warning;
ALTER TABLE k ADD CONSTRAINT k_a PRIMARY KEY USING INDEX k_a;
CREATE UNIQUE INDEX k_b ON k USING inplace_btree (b);
COMMENT ON INDEX k_b IS 'kept';
UPDATE k SET b = b + 100 WHERE a < 20;
SELECT 'k_b'::regclass::oid AS k_b \gset
RESET client_min_messages;
ALTER TABLE k ADD CONSTRAINT k_b UNIQUE USING INDEX k_b DEFERRABLE;
SELECT relname, amname, obj_description('k_b'::regclass), :k_b = 'k_b'::regclass AS same FROM methods WHERE relname LIKE 'k\_%' ORDER BY 1;
SELECT * FROM inplace.check('k');
SET enable_seqscan = off;
SELECT count(*), min(b), max(b) FROM k WHERE b BETWEEN 10 AND 110;
RESET enable_seqscan;
INSERT INTO k VALUES (60, 101);
-- in one transaction with its index, and with a part of it rolled back
BEGIN;
CREATE TABLE k2 (a int, b int) USING inplace;
INSERT INTO k2 VALUES (1, 1), (2, 2);
CREATE UNIQUE INDEX k2_a ON k2 USING inplace_btree (a);
UPDATE k2 SET a = 3 WHERE a = 1;
SAVEPOINT s;
ALTER TABLE k2 ADD CONSTRAINT k2_a PRIMARY KEY USING INDEX k2_a;
UPDATE k2 SET a = 4 WHERE a = 2;
INSERT INTO k2 VALUES (7, 7);
ROLLBACK TO s;
UPDATE k2 SET a = 5 WHERE a = 2;
SET LOCAL enable_seqscan = off;
SELECT count(*) FROM k2 WHERE a IN (2, 4);
SELECT * FROM k2 WHERE a > 0 ORDER BY a;
SELECT * FROM inplace.check('k2');
ALTER TABLE k2 ADD CONSTRAINT k2_a PRIMARY KEY USING INDEX k2_a;
UPDATE k2 SET a = 6 WHERE a = 5;
SELECT * FROM k2 WHERE a > 0 ORDER BY a;
COMMIT;
SELECT relname, amname FROM methods WHERE relname LIKE 'k2%';
SELECT * FROM inplace.check('k2');

-- snapshots older than versions with other keys must not use the index that is built for it; all others may
CREATE TABLE k3 (a int NOT NULL, b int, c int) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO k3 SELECT g, g, g FROM generate_series(1, 20000) g;
CREATE UNIQUE INDEX k3_a ON k3 USING inplace_btree (a);
CREATE UNIQUE INDEX k3_b ON k3 USING inplace_btree (b);
CREATE UNIQUE INDEX k3_c ON k3 USING inplace_btree (c);
SET client_min_messages = warning;
SET min_parallel_table_scan_size = 0;
SET max_parallel_maintenance_workers = 2;
ALTER TABLE k3 ADD PRIMARY KEY USING INDEX k3_a;
BEGIN;
UPDATE k3 SET b = -b WHERE a = 15000;
ALTER TABLE k3 ADD UNIQUE USING INDEX k3_b;
SET LOCAL max_parallel_maintenance_workers = 0;
ALTER TABLE k3 ADD UNIQUE USING INDEX k3_c;
COMMIT;
RESET min_parallel_table_scan_size;
RESET max_parallel_maintenance_workers;
RESET client_min_messages;
SELECT indexrelid::regclass, indcheckxmin FROM pg_index WHERE indrelid = 'k3'::regclass ORDER BY 1;

-- what the server does with a unique index that is not a constraint
ALTER TABLE t ALTER u SET NOT NULL;
CREATE UNIQUE INDEX t_ident ON t (u);
ALTER TABLE t REPLICA IDENTITY USING INDEX t_ident;
CREATE TABLE refers (u int REFERENCES t (u));
CREATE UNIQUE INDEX t_s ON t (s);
INSERT INTO t VALUES (1000, 1, 's5', 1000) ON CONFLICT (s) DO UPDATE SET a = 5000 RETURNING id, a;
INSERT INTO t VALUES (1000, 1, 's5', 1000) ON CONFLICT DO NOTHING;
CREATE TABLE refers_s (s text);
ALTER TABLE refers_s ADD FOREIGN KEY (s) REFERENCES t (s);
INSERT INTO refers_s VALUES ('s7');
INSERT INTO refers_s VALUES ('none');
UPDATE t SET s = 'other' WHERE s = 's7';
CREATE MATERIALIZED VIEW mv USING inplace AS SELECT id, a FROM t;
CREATE UNIQUE INDEX mv_id ON mv (id);
UPDATE t SET a = a + 1 WHERE id < 10;
REFRESH MATERIALIZED VIEW CONCURRENTLY mv;
SELECT count(*) FROM (SELECT id, a FROM t EXCEPT TABLE mv) d;

-- a script of pg_dump means what it says
SET check_function_bodies = off;
SET row_security = off;
CREATE INDEX t_dump ON t USING btree (a);
RESET check_function_bodies;
RESET row_security;
SELECT relname, amname FROM methods WHERE relname = 't_dump';

-- an operator class of our own
CREATE FUNCTION cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS backwards FOR TYPE int USING btree AS
    OPERATOR 1 > , OPERATOR 2 >= , OPERATOR 3 = , OPERATOR 4 <= , OPERATOR 5 < , FUNCTION 1 cmp(int, int);
CREATE INDEX t_back ON t (a backwards);
SELECT relname, amname FROM methods WHERE relname = 't_back';

-- others' tables
CREATE ROLE regress_inplace_di;
GRANT USAGE ON SCHEMA di TO regress_inplace_di;
SET ROLE regress_inplace_di;
CREATE INDEX ON di.t (a);
SELECT inplace.set_index_method('di.t_implied', 'btree');
RESET ROLE;
DROP OWNED BY regress_inplace_di;
DROP ROLE regress_inplace_di;
-- set_index_method, directly
SELECT inplace.set_index_method('t_off', 'inplace_btree'), inplace.set_index_method('t_off', 'inplace_btree');
SELECT inplace.set_index_method('t_implied', 'btree');
SELECT relname, amname FROM methods WHERE relname IN ('t_off', 't_implied') ORDER BY 1;
SELECT * FROM inplace.check('t');
SELECT inplace.set_index_method('t_pkey', 'inplace_btree');
SELECT inplace.set_index_method('t_hash', 'btree');
SELECT inplace.set_index_method('t_off', 'hash');
SELECT inplace.set_index_method('t', 'btree');
SELECT inplace.set_index_method('pg_class_oid_index', 'inplace_btree');
-- a partitioned index, or any part of it: all of it
CREATE TABLE sp (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE sp_1 PARTITION OF sp FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (b);
CREATE TABLE sp_1_1 PARTITION OF sp_1 FOR VALUES FROM (0) TO (10) USING inplace;
CREATE TABLE sp_2 PARTITION OF sp FOR VALUES FROM (10) TO (20) USING heap;
INSERT INTO sp SELECT i, 1 FROM generate_series(0, 19) i;
CREATE INDEX sp_b ON sp (b);
UPDATE sp SET b = 2 WHERE a < 3;
SELECT relname, amname FROM methods WHERE relname ~ '^sp_.*b' ORDER BY 1;
SELECT inplace.set_index_method('sp_1_1_b_idx', 'btree');
SELECT relname, amname FROM methods WHERE relname ~ '^sp_.*b' ORDER BY 1;
SELECT * FROM inplace.check('sp_1_1');
SELECT inplace.set_index_method('sp_1_b_idx', 'inplace_btree'), inplace.set_index_method('sp_2_b_idx', 'inplace_btree');
SELECT relname, amname FROM methods WHERE relname ~ '^sp_.*b' ORDER BY 1;
SELECT relid, inplace.set_index_method(relid, 'btree') FROM pg_partition_tree('sp_b') ORDER BY 1;
-- and no part becomes btree alone (up to 17 such a unique index must be btree anyway)
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 180000 THEN RETURN; END IF;
	CREATE UNIQUE INDEX sp_ab ON sp USING inplace_btree (a, b);
	BEGIN
		ALTER TABLE sp_2 ADD CONSTRAINT sp_2_c UNIQUE USING INDEX sp_2_a_b_idx;
		RAISE 'a part of the index has become btree';
	EXCEPTION WHEN feature_not_supported THEN
	END;
	IF EXISTS (SELECT FROM methods WHERE relname ~ '^sp_.*a_?b' AND amname <> 'inplace_btree') THEN
		RAISE 'not one method';
	END IF;
END $$;
UPDATE sp SET b = 3 WHERE a < 3;
SET enable_seqscan = off;
SELECT count(*) FROM sp WHERE b = 3;
RESET enable_seqscan;
DROP TABLE sp;
CREATE TABLE used (a int) USING inplace;
CREATE INDEX used_a ON used (a);
INSERT INTO used VALUES (1), (2);
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT a FROM used WHERE a > 0;
FETCH 1 FROM c;
SELECT inplace.set_index_method('used_a', 'btree');
ROLLBACK;

RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA di, di_inner, di_inner2 CASCADE;
RESET client_min_messages;
