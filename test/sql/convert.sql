-- inplace.convert: a table moves with everything that belongs to it.
\set SHOW_CONTEXT never
CREATE SCHEMA cv;
CREATE TABLE cv.parent (id int PRIMARY KEY, code text NOT NULL);
CREATE UNIQUE INDEX parent_code ON cv.parent (code);
INSERT INTO cv.parent SELECT g, 'c' || g FROM generate_series(1, 50) g;
CREATE TABLE cv.t (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    code text REFERENCES cv.parent (code),
    n int CHECK (n >= 0) DEFAULT 7,
    big text,
    EXCLUDE USING btree (n WITH =) WHERE (n > 1000000)
) WITH (fillfactor = 80, autovacuum_enabled = off);
CREATE INDEX t_expr ON cv.t (lower(code || ' USING btree '), n DESC NULLS LAST) INCLUDE (id) WHERE n > 3;
CREATE INDEX t_pattern ON cv.t (code text_pattern_ops) WITH (fillfactor = 70);
CREATE UNIQUE INDEX t_ident ON cv.t (id, n);
ALTER TABLE cv.t ALTER n SET NOT NULL;
ALTER TABLE cv.t REPLICA IDENTITY USING INDEX t_ident;
ALTER TABLE cv.t CLUSTER ON t_pattern;
ALTER INDEX cv.t_expr ALTER COLUMN 1 SET STATISTICS 77;
ALTER TABLE cv.t ALTER COLUMN n SET STATISTICS 55;
CREATE STATISTICS cv.t_stat ON id, n FROM cv.t;
COMMENT ON TABLE cv.t IS 'a table';
COMMENT ON COLUMN cv.t.n IS 'a column';
COMMENT ON INDEX cv.t_expr IS 'an index';
GRANT SELECT ON cv.t TO PUBLIC;
GRANT UPDATE (n) ON cv.t TO PUBLIC;
CREATE VIEW cv.v AS SELECT id, n FROM cv.t;
CREATE RULE r AS ON INSERT TO cv.v DO INSTEAD NOTHING;
CREATE FUNCTION cv.trig() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER trig BEFORE UPDATE ON cv.t FOR EACH ROW EXECUTE FUNCTION cv.trig();
ALTER TABLE cv.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON cv.t USING (true);
INSERT INTO cv.t (code, n, big) SELECT 'c' || (g % 50 + 1), g, repeat(md5(g::text), g % 300) FROM generate_series(1, 500) g;
UPDATE cv.t SET n = n + 1 WHERE id % 3 = 0;
DELETE FROM cv.t WHERE id % 7 = 0;
ANALYZE cv.t;

-- All that the catalogs say about the table and its indexes, but for the files
-- and access methods.
CREATE FUNCTION cv.all_of(rel regclass) RETURNS SETOF text LANGUAGE sql AS $$
WITH rels AS (
    SELECT rel::oid AS oid UNION SELECT indexrelid FROM pg_index WHERE indrelid = rel
)
SELECT 'class ' || (to_jsonb(c) - '{relfilenode,relam,relfrozenxid,relminmxid,relpages,reltuples,relallvisible,relallfrozen,reltoastrelid}'::text[])::text
FROM pg_class c WHERE oid IN (SELECT oid FROM rels)
UNION ALL SELECT 'attribute ' || to_jsonb(a)::text FROM pg_attribute a WHERE attrelid IN (SELECT oid FROM rels)
UNION ALL SELECT 'index ' || replace(pg_get_indexdef(indexrelid), ' USING inplace_btree ', ' USING btree ') || (to_jsonb(i) - '{indcheckxmin,indclass}'::text[])::text FROM pg_index i WHERE indrelid = rel
UNION ALL SELECT 'constraint ' || to_jsonb(k)::text FROM pg_constraint k WHERE conrelid = rel OR confrelid = rel
UNION ALL SELECT 'trigger ' || to_jsonb(g)::text FROM pg_trigger g WHERE tgrelid = rel
UNION ALL SELECT 'policy ' || to_jsonb(p)::text FROM pg_policy p WHERE polrelid = rel
UNION ALL SELECT 'default ' || to_jsonb(d)::text FROM pg_attrdef d WHERE adrelid = rel
UNION ALL SELECT 'extended statistics ' || to_jsonb(s)::text FROM pg_statistic_ext s WHERE stxrelid = rel
UNION ALL SELECT 'column statistics ' || to_jsonb(s)::text FROM pg_stats s WHERE schemaname = 'cv' AND tablename IN (SELECT relname FROM pg_class WHERE oid IN (SELECT oid FROM rels))
UNION ALL SELECT 'comment ' || to_jsonb(d)::text FROM pg_description d WHERE objoid IN (SELECT oid FROM rels) AND classoid = 'pg_class'::regclass
UNION ALL SELECT 'dependency ' || to_jsonb(d)::text FROM pg_depend d
    WHERE (objid IN (SELECT oid FROM rels) OR refobjid IN (SELECT oid FROM rels))
      AND refclassid NOT IN ('pg_am'::regclass, 'pg_opclass'::regclass) AND classid <> 'pg_type'::regclass
      AND NOT (classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_class WHERE oid = objid AND relkind = 't'))
$$;
CREATE TABLE cv.before_catalog AS SELECT * FROM cv.all_of('cv.t') AS x;
CREATE TABLE cv.before_rows AS SELECT * FROM cv.t;
CREATE FUNCTION cv.compare() RETURNS TABLE (what text, difference text) LANGUAGE sql AS $$
    SELECT 'lost', x FROM (SELECT x FROM cv.before_catalog EXCEPT ALL SELECT cv.all_of('cv.t')) a
    UNION ALL SELECT 'new', x FROM (SELECT cv.all_of('cv.t') AS x EXCEPT ALL SELECT x FROM cv.before_catalog) b
    UNION ALL SELECT 'row lost', x::text FROM (TABLE cv.before_rows EXCEPT ALL TABLE cv.t) x
    UNION ALL SELECT 'row new', x::text FROM (TABLE cv.t EXCEPT ALL TABLE cv.before_rows) x
$$;
SELECT count(*) > 60 AS many FROM cv.before_catalog;
-- a unique index is moved from PostgreSQL 18 on
CREATE VIEW cv.methods AS
SELECT i.indrelid::regclass AS on_table, i.indexrelid::regclass AS index,
       CASE WHEN i.indisunique AND c.oid IS NULL AND current_setting('server_version_num')::int < 180000 AND a.amname = 'btree'
            THEN CASE ta.amname WHEN 'heap' THEN 'btree' ELSE 'inplace_btree' END
            ELSE a.amname END AS method,
       c.contype
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am a ON a.oid = x.relam
     JOIN pg_class t ON t.oid = i.indrelid LEFT JOIN pg_am ta ON ta.oid = t.relam
     LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u', 'x')
WHERE x.relnamespace = 'cv'::regnamespace;

SELECT inplace.convert('cv.t');
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = 'cv.t'::regclass;
SELECT * FROM cv.compare();
SELECT * FROM cv.methods WHERE on_table = 'cv.t'::regclass ORDER BY 2;
SELECT * FROM inplace.check('cv.t');
SET enable_seqscan = off;
SELECT count(*) FROM cv.t WHERE code = 'c5';
SELECT count(*) FROM cv.t WHERE lower(code || ' USING btree ') = 'c5 using btree ' AND n > 3;
RESET enable_seqscan;
-- nothing to do
SELECT inplace.convert('cv.t', 'inplace');
UPDATE cv.t SET code = 'c' || (id % 50 + 1) WHERE id % 5 = 0;
UPDATE cv.before_rows b SET code = t.code FROM cv.t WHERE t.id = b.id;
SELECT inplace.convert('cv.t', 'heap');
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = 'cv.t'::regclass;
SELECT * FROM cv.compare();
SELECT * FROM cv.methods WHERE on_table = 'cv.t'::regclass ORDER BY 2;
SET enable_seqscan = off;
SELECT count(*) FROM cv.t WHERE code = 'c6';
RESET enable_seqscan;
-- indexes of a table that is there already: in its own transaction, and after a rollback
ALTER TABLE cv.t SET ACCESS METHOD inplace;
BEGIN;
SELECT inplace.convert('cv.t');
SAVEPOINT s;
SELECT inplace.convert('cv.t', 'heap');
ROLLBACK TO s;
SELECT count(DISTINCT method) FROM cv.methods WHERE on_table = 'cv.t'::regclass AND contype IS NULL;
UPDATE cv.t SET code = 'c7' WHERE id = 5;
SET LOCAL enable_seqscan = off;
SELECT count(*) FROM cv.t WHERE code = 'c7' AND id = 5;
SELECT * FROM inplace.check('cv.t');
ROLLBACK;
UPDATE cv.t SET code = 'c7' WHERE id = 10;
SELECT * FROM inplace.check('cv.t');
SELECT index, method FROM cv.methods WHERE on_table = 'cv.t'::regclass AND index IN ('cv.t_expr'::regclass, 'cv.t_pattern'::regclass) ORDER BY 1;
UPDATE cv.before_rows b SET code = t.code FROM cv.t WHERE t.id = b.id;
SELECT inplace.convert('cv.t', 'heap');

-- the table that a foreign key refers to by a plain unique index
SELECT inplace.convert('cv.parent');
INSERT INTO cv.t (code) VALUES ('none');
DELETE FROM cv.parent WHERE code = 'c3';
SELECT * FROM inplace.check('cv.parent');

-- an aborted conversion leaves the table as it was
BEGIN;
SELECT inplace.convert('cv.t');
ROLLBACK;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = 'cv.t'::regclass;
SELECT * FROM cv.compare();

-- partitions, of several levels; one is there already
CREATE TABLE cv.part (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE cv.part_1 PARTITION OF cv.part FOR VALUES FROM (0) TO (10);
CREATE TABLE cv.part_2 PARTITION OF cv.part FOR VALUES FROM (10) TO (20) PARTITION BY LIST (b);
CREATE TABLE cv."part 2 1" PARTITION OF cv.part_2 FOR VALUES IN (1);
CREATE TABLE cv.part_2_2 PARTITION OF cv.part_2 FOR VALUES IN (2) USING inplace;
SET inplace.default_index_method = btree;
CREATE INDEX part_b ON cv.part (b);
INSERT INTO cv.part SELECT g % 20, 1 + g % 2 FROM generate_series(1, 100) g;
CREATE INDEX part_own ON cv."part 2 1" (a);
RESET inplace.default_index_method;
-- of one partition, but for what is part of a partitioned index
SELECT inplace.convert('cv."part 2 1"');
SELECT index, method FROM cv.methods WHERE on_table = 'cv."part 2 1"'::regclass ORDER BY 1;
SELECT inplace.convert('cv."part 2 1"', 'heap');
SELECT inplace.convert('cv.part');
SELECT index, method FROM cv.methods WHERE on_table::text LIKE '%part%' ORDER BY 1;
SELECT t.relid, a.amname FROM pg_partition_tree('cv.part') t JOIN pg_class c ON c.oid = t.relid LEFT JOIN pg_am a ON a.oid = c.relam WHERE t.isleaf ORDER BY 1;
SELECT a, b, count(*) FROM cv.part WHERE b = 2 GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 3;
SELECT inplace.convert('cv.part');
-- from 17 on what new partitions get goes with them
SELECT (count(relam) FILTER (WHERE relam <> 0) = 2) = (current_setting('server_version_num')::int >= 170000) AS set_for_new_ones
	FROM pg_class WHERE oid IN ('cv.part'::regclass, 'cv.part_2'::regclass);
SELECT inplace.convert('cv.part', 'heap');
SELECT index, method FROM cv.methods WHERE on_table::text LIKE '%part%' ORDER BY 1;
-- ... and back, to none
SELECT count(*) FROM pg_class WHERE oid IN ('cv.part'::regclass, 'cv.part_2'::regclass) AND relam <> 0;
SET default_table_access_method = inplace;
SELECT inplace.convert('cv.part', 'heap');
RESET default_table_access_method;
SELECT (count(relam) FILTER (WHERE relam <> 0) = 2) = (current_setting('server_version_num')::int >= 170000) AS set_for_new_ones
	FROM pg_class WHERE oid IN ('cv.part'::regclass, 'cv.part_2'::regclass);
SELECT inplace.convert('cv.part', 'heap');
SELECT count(*) FROM pg_class WHERE oid IN ('cv.part'::regclass, 'cv.part_2'::regclass) AND relam <> 0;

-- materialized views, temporary and unlogged tables
CREATE MATERIALIZED VIEW cv."M v" AS SELECT id, n FROM cv.t;
CREATE UNIQUE INDEX ON cv."M v" (id);
SELECT inplace.convert('cv."M v"');
REFRESH MATERIALIZED VIEW CONCURRENTLY cv."M v";
SELECT count(*) = (SELECT count(*) FROM cv.t) AS all_there FROM cv."M v";
CREATE TEMP TABLE cv_temp AS SELECT 1 AS a;
SELECT inplace.convert('cv_temp');
CREATE UNLOGGED TABLE cv.unlogged AS SELECT 1 AS a;
SELECT inplace.convert('cv.unlogged');
SELECT relname, amname, relpersistence FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname IN ('M v', 'cv_temp', 'unlogged') ORDER BY 1;

-- what cannot be
SELECT inplace.convert('cv.t', 'no_such_method');
\echo :LAST_ERROR_SQLSTATE
SELECT inplace.convert('cv.v');
\echo :LAST_ERROR_SQLSTATE
SELECT inplace.convert('cv.t_expr');
SELECT inplace.convert('pg_class');
\echo :LAST_ERROR_SQLSTATE
SELECT inplace.convert('inplace.undo_log');
\echo :LAST_ERROR_SQLSTATE
SELECT inplace.convert(0);
\echo :LAST_ERROR_SQLSTATE
SELECT inplace.convert(NULL);
CREATE TABLE cv.cat (a int) WITH (user_catalog_table = true);
SELECT inplace.convert('cv.cat');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cv.t;
FETCH 0 FROM c;
SELECT inplace.convert('cv.t');
ROLLBACK;
CREATE ROLE regress_inplace_convert;
GRANT USAGE ON SCHEMA cv, inplace TO regress_inplace_convert;
SET ROLE regress_inplace_convert;
SELECT inplace.convert('cv.t');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
CREATE TABLE cv.own AS SELECT 1 AS a;
ALTER TABLE cv.own OWNER TO regress_inplace_convert;
GRANT CREATE ON SCHEMA cv TO regress_inplace_convert;
SET ROLE regress_inplace_convert;
SELECT inplace.convert('cv.own');
RESET ROLE;
-- nothing is changed in a read-only transaction
SET inplace.default_index_method = btree;
CREATE TABLE cv.ro (a int) USING inplace;
CREATE INDEX ro_a ON cv.ro (a);
RESET inplace.default_index_method;
BEGIN READ ONLY;
SELECT inplace.convert('cv.ro');
ROLLBACK;
BEGIN READ ONLY;
SELECT inplace.set_index_method('cv.ro_a', 'inplace_btree');
ROLLBACK;
BEGIN READ ONLY;
SELECT inplace.mirror_opclasses();
ROLLBACK;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'ro_a';

-- what is done to the table in the same transaction (operator class options of indexes
-- were in memory given back)
CREATE TABLE cv.now (id int PRIMARY KEY, k int, s text) USING heap;
CREATE INDEX ON cv.now (k);
CREATE INDEX ON cv.now (s, k);
CREATE INDEX ON cv.now (lower(s), k);
INSERT INTO cv.now SELECT i, i, 's' FROM generate_series(1, 20) i;
DO $$
BEGIN
	FOR i IN 1 .. 5 LOOP
		PERFORM inplace.convert('cv.now');
		UPDATE cv.now SET k = k + 1, s = 'x' || k;
		UPDATE cv.now SET s = 's' WHERE id % 2 = i % 2;
		PERFORM inplace.convert('cv.now', 'heap');
		UPDATE cv.now SET k = k + 1;
	END LOOP;
END $$;
SELECT count(*), sum(k) FROM cv.now;

-- a change of method that is rolled back leaves no entries of new keys in what is a
-- btree again
SET inplace.default_index_method = btree;
CREATE TABLE cv.back (id int PRIMARY KEY, k int, n int) USING inplace;
INSERT INTO cv.back SELECT i, i, i % 3 FROM generate_series(1, 30) i;
CREATE INDEX back_k ON cv.back (k, n);
CREATE UNIQUE INDEX back_u ON cv.back (k);
CREATE FUNCTION cv.back_by_index(OUT n bigint, OUT distinct_n bigint, OUT sum bigint) LANGUAGE plpgsql
	SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexonlyscan = off
	AS $$ BEGIN SELECT count(*), count(DISTINCT id), sum(b.k) INTO n, distinct_n, sum FROM cv.back b WHERE k > 0 AND b.n >= 0; END $$;
BEGIN;
SELECT inplace.convert('cv.back', 'inplace');
UPDATE cv.back SET k = k + 100 WHERE id = 5;
ROLLBACK;
SELECT * FROM cv.back_by_index();
BEGIN;
SAVEPOINT a;
SELECT inplace.set_index_method('cv.back_k', 'inplace_btree');
UPDATE cv.back SET k = k + 100 WHERE id = 6;
ROLLBACK TO a;
UPDATE cv.back SET n = n + 1 WHERE id = 7;
COMMIT;
SELECT * FROM cv.back_by_index();
INSERT INTO cv.back VALUES (105, 105, 1), (106, 106, 1);
-- made by the same transaction
BEGIN;
DROP INDEX cv.back_k, cv.back_u;
CREATE INDEX back_k ON cv.back (k, n);
SAVEPOINT a;
SELECT inplace.set_index_method('cv.back_k', 'inplace_btree');
UPDATE cv.back SET k = k + 1000 WHERE id < 10;
ROLLBACK TO a;
COMMIT;
SELECT * FROM cv.back_by_index();
-- committed, it takes them
BEGIN;
SELECT inplace.set_index_method('cv.back_k', 'inplace_btree');
UPDATE cv.back SET k = k + 1000 WHERE id < 10;
COMMIT;
CREATE TABLE cv.places AS SELECT id, ctid AS place FROM cv.back;
UPDATE cv.back SET k = k - 1000 WHERE k > 1000;
SELECT count(*) AS moved FROM cv.back b JOIN cv.places p USING (id) WHERE b.ctid <> p.place;
SELECT * FROM cv.back_by_index();
SELECT * FROM inplace.check('cv.back');
RESET inplace.default_index_method;

-- not an index, but with a partitioned table above it
CREATE TABLE cv.ranges (a int) PARTITION BY RANGE (a);
CREATE TABLE cv.ranges_1 PARTITION OF cv.ranges FOR VALUES FROM (0) TO (10) USING inplace;
SELECT inplace.set_index_method('cv.ranges_1', 'btree');
SELECT inplace.set_index_method('cv.ranges', 'btree');

-- an index with an operator class that the other method lacks stays as it is
CREATE FUNCTION cv.cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT pg_catalog.btint4cmp($2, $1)';
CREATE OPERATOR CLASS cv.only_inplace FOR TYPE int USING inplace_btree AS
	OPERATOR 1 > (int, int), OPERATOR 2 >= (int, int), OPERATOR 3 = (int, int), OPERATOR 4 <= (int, int), OPERATOR 5 < (int, int), FUNCTION 1 cv.cmp(int, int);
-- (a name that is taken, for another type)
CREATE FUNCTION cv.cmp(bigint, bigint) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT pg_catalog.btint8cmp($2, $1)';
CREATE OPERATOR CLASS cv.only_inplace FOR TYPE bigint USING btree AS
	OPERATOR 1 > (bigint, bigint), OPERATOR 2 >= (bigint, bigint), OPERATOR 3 = (bigint, bigint), OPERATOR 4 <= (bigint, bigint), OPERATOR 5 < (bigint, bigint), FUNCTION 1 cv.cmp(bigint, bigint);
CREATE TABLE cv.classes (a int, b bigint, c int) USING inplace;
INSERT INTO cv.classes SELECT i, i % 10, i % 7 FROM generate_series(1, 100) i;
CREATE INDEX classes_a ON cv.classes USING inplace_btree (a cv.only_inplace);
CREATE INDEX classes_ca ON cv.classes USING inplace_btree (c, a cv.only_inplace);
CREATE INDEX classes_b ON cv.classes USING btree (b cv.only_inplace);
CREATE INDEX classes_c ON cv.classes (c) INCLUDE (a);
SELECT relid, amname FROM inplace.convertible_indexes('cv.classes', 'btree');
SELECT relid, amname FROM inplace.convertible_indexes('cv.classes', 'inplace_btree');
SELECT inplace.set_index_method('cv.classes_a', 'btree');
SELECT inplace.set_index_method('cv.classes_b', 'inplace_btree');
SELECT inplace.convert('cv.classes', 'heap');
SELECT c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relname LIKE 'classes%' ORDER BY 1;
SELECT inplace.convert('cv.classes');
SELECT c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relname LIKE 'classes%' ORDER BY 1;
SET enable_seqscan = off;
SELECT a FROM cv.classes WHERE a > 97 ORDER BY a USING >;
RESET enable_seqscan;
UPDATE cv.classes SET a = a + 1000, c = c + 1 WHERE a % 10 = 0;
SELECT * FROM inplace.check('cv.classes');

-- operators in the caller's search path are not called
CREATE TABLE cv.called (who name);
CREATE FUNCTION cv.trap(oid, regclass) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO cv.called VALUES (current_user); RETURN $1 OPERATOR(pg_catalog.=) $2::oid; END $$;
CREATE FUNCTION cv.trap(regclass, regclass) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO cv.called VALUES (current_user); RETURN $1::oid OPERATOR(pg_catalog.=) $2::oid; END $$;
CREATE FUNCTION cv.trap(oid, int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO cv.called VALUES (current_user); RETURN false; END $$;
CREATE FUNCTION cv.trap(oid, regnamespace) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO cv.called VALUES (current_user); RETURN false; END $$;
CREATE OPERATOR cv.= (FUNCTION = cv.trap, LEFTARG = oid, RIGHTARG = regclass);
CREATE OPERATOR cv.= (FUNCTION = cv.trap, LEFTARG = regclass, RIGHTARG = regclass);
CREATE OPERATOR cv.< (FUNCTION = cv.trap, LEFTARG = oid, RIGHTARG = int);
CREATE OPERATOR cv.= (FUNCTION = cv.trap, LEFTARG = oid, RIGHTARG = regnamespace);
CREATE TABLE cv.victim (a int) USING heap;
SET search_path = cv, public;
SELECT inplace.convert('victim');
SELECT inplace.convert('victim', 'heap');
SELECT count(*) >= 0 AS answered FROM inplace.advise();
RESET search_path;
SELECT * FROM cv.called;

-- nor types of the caller's temporary schema, which come first whatever the path is
CREATE FUNCTION cv.evil() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'called'; RETURN true; END $$;
CREATE FUNCTION cv.definer(rel regclass, method text) RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = '' AS 'SELECT inplace.convert(rel, method)';
CREATE TABLE cv.parts (a int) PARTITION BY RANGE (a);
CREATE TABLE cv.parts_1 PARTITION OF cv.parts FOR VALUES FROM (0) TO (10) USING heap;
CREATE INDEX ON cv.parts (a);
BEGIN;
DO $$
DECLARE r pg_catalog.record;
BEGIN
	-- (only base types can be the base of one of the same name)
	FOR r IN SELECT t.typname, t.typtype FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
		WHERE n.nspname = 'pg_catalog' AND t.typtype IN ('b', 'p', 'r') AND t.typname !~ '^_'
	LOOP
		EXECUTE pg_catalog.format('CREATE DOMAIN pg_temp.%I AS pg_catalog.%I CHECK (cv.evil())', r.typname,
			CASE r.typtype WHEN 'b' THEN r.typname ELSE 'text' END);
	END LOOP;
END $$;
SELECT 1::pg_catalog.oid::oid;
SELECT cv.definer('cv.parts', 'inplace');
SELECT cv.definer('cv.parts', 'heap');
SELECT cv.definer('cv.victim', 'inplace');
SELECT pg_catalog.count(*) >= 0 AS answered FROM inplace.advise();
SELECT pg_catalog.count(*) >= 0 AS answered FROM inplace.undo_holders;
SELECT pg_catalog.count(*) >= 0 AS answered FROM inplace.stat_tables;
SELECT pg_catalog.count(*) >= 0 AS answered FROM inplace.stat_freeze;
ROLLBACK;

-- The owner's privileges are not needed.  What is locked is the table, or the tree of a
-- partitioned one; not the children of a parent.
CREATE TABLE cv.parent_of (a int, b int) USING heap;
CREATE TABLE cv.child_of () INHERITS (cv.parent_of) USING heap;
CREATE INDEX parent_of_a ON cv.parent_of (a);
CREATE INDEX child_of_a ON cv.child_of (a);
ALTER TABLE cv.parent_of OWNER TO regress_inplace_convert;
REVOKE ALL ON cv.parent_of FROM regress_inplace_convert;
CREATE FUNCTION cv.exclusive(rels regclass[]) RETURNS SETOF regclass LANGUAGE sql AS $$
	SELECT DISTINCT relation::regclass FROM pg_locks
	WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' AND relation = ANY (rels) ORDER BY 1 $$;
SET ROLE regress_inplace_convert;
BEGIN;
SELECT inplace.convert('cv.parent_of');
SELECT cv.exclusive('{cv.parent_of,cv.child_of,cv.parent_of_a,cv.child_of_a}');
COMMIT;
BEGIN;
SELECT inplace.set_index_method('cv.parent_of_a', 'btree');
SELECT cv.exclusive('{cv.parent_of,cv.child_of,cv.parent_of_a,cv.child_of_a}');
COMMIT;
SELECT * FROM inplace.lock_convertible('cv.parts');
RESET ROLE;
BEGIN;
SELECT inplace.convert('cv.parts');
SELECT cv.exclusive('{cv.parts,cv.parts_1}');
ROLLBACK;

-- an index that its building makes valid, and another change in the same statement
CREATE TABLE cv.invalid (a int) USING inplace;
INSERT INTO cv.invalid VALUES (0), (1);
CREATE INDEX CONCURRENTLY invalid_a ON cv.invalid ((1 / a));
DELETE FROM cv.invalid WHERE a = 0;
VACUUM cv.invalid;
SELECT inplace.set_index_method('cv.invalid_a', 'btree'), inplace.set_index_method('cv.invalid_a', 'inplace_btree');
SELECT indisvalid FROM pg_index WHERE indexrelid = 'cv.invalid_a'::regclass;

SET client_min_messages = warning;
DROP SCHEMA cv CASCADE;
DROP OWNED BY regress_inplace_convert;
DROP ROLE regress_inplace_convert;
RESET client_min_messages;
-- The counts of changes begin anew, for they were of what another method did; not if
-- it is rolled back.
CREATE TABLE cs (id int PRIMARY KEY, v int) USING heap WITH (autovacuum_enabled = off, fillfactor = 100);
INSERT INTO cs SELECT g, g FROM generate_series(1, 500) g;
CREATE INDEX ON cs USING btree (v);
UPDATE cs SET v = v + 1;
DELETE FROM cs WHERE id % 10 = 0;
SELECT pg_stat_force_next_flush();
CREATE VIEW cs_counts AS
SELECT n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del, n_live_tup, n_dead_tup > 0 AS dead, n_mod_since_analyze
FROM pg_stat_user_tables WHERE relname = 'cs';
SELECT * FROM cs_counts;
BEGIN;
SELECT inplace.convert('cs');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT inplace.convert('cs');
ROLLBACK TO s;
COMMIT;
SELECT * FROM cs_counts;
SELECT inplace.convert('cs');
SELECT pg_stat_force_next_flush();
SELECT * FROM cs_counts;
SELECT inserts, in_place_updates, moved_updates, in_place_share, deletes, live_rows, dead_rows
FROM inplace.stat_tables WHERE relname = 'cs';
UPDATE cs SET v = v + 1 WHERE id < 10;
SELECT pg_stat_force_next_flush();
SELECT inserts, in_place_updates, moved_updates, in_place_share, deletes, live_rows
FROM inplace.stat_tables WHERE relname = 'cs';
-- what this session has not reported yet
UPDATE cs SET v = v + 1;
SELECT inplace.convert('cs', 'heap');
UPDATE cs SET v = v WHERE id = 1;
SELECT pg_stat_force_next_flush();
SELECT * FROM cs_counts;
DROP VIEW cs_counts;
DROP TABLE cs;
