-- The operator classes of inplace_btree are those of btree, at all times.
-- (In a database of its own: dropping the extension or its methods locks all that would
-- go, in any order, and autovacuum may be at the tables of other tests.)
SELECT current_database() AS here \gset
CREATE DATABASE regress_opclasses TEMPLATE template0;
\c regress_opclasses
CREATE EXTENSION inplace;
CREATE SCHEMA oc;
CREATE SCHEMA oc2;
SET search_path = oc, public;
SET client_min_messages = warning;

-- What one method has and the other has not.
CREATE VIEW differences AS
WITH classes AS (
    SELECT a.amname, (opcname, opcnamespace, opcintype, opcdefault, opckeytype, opcfamily)::text AS what
    FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
)
SELECT 'btree only' AS method, what
FROM (SELECT what FROM classes WHERE amname = 'btree' EXCEPT ALL SELECT what FROM classes WHERE amname = 'inplace_btree') b
UNION ALL
SELECT 'inplace_btree only', what
FROM (SELECT what FROM classes WHERE amname = 'inplace_btree' EXCEPT ALL SELECT what FROM classes WHERE amname = 'btree') i;

CREATE VIEW ours AS
SELECT amname, n.nspname, opcname, opcdefault, opcintype::regtype
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod JOIN pg_namespace n ON n.oid = opcnamespace
WHERE opcname IN ('Backwards', 'bw', 'bw2') AND amname IN ('btree', 'inplace_btree')
ORDER BY amname, nspname, opcname;

TABLE differences;
SELECT count(*) > 40 AS many, bool_and(amvalidate(c.oid)) AS valid, bool_and(opcowner = 10) AS owner
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'inplace_btree';
-- no families, operators, functions of its own
SELECT count(*) FROM pg_opfamily f JOIN pg_am a ON a.oid = opfmethod WHERE amname = 'inplace_btree';
SELECT count(*) FROM pg_amop o JOIN pg_am a ON a.oid = amopmethod WHERE amname = 'inplace_btree';
SELECT inplace.mirror_opclasses();

-- A class follows: made, renamed, moved, dropped.
CREATE FUNCTION cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
DO $$ BEGIN
    CREATE OPERATOR CLASS "Backwards" FOR TYPE int USING btree AS
        OPERATOR 1 > , OPERATOR 2 >= , OPERATOR 3 = , OPERATOR 4 <= , OPERATOR 5 < ,
        FUNCTION 1 cmp(int, int);
END $$;
TABLE ours;
TABLE differences;
ALTER OPERATOR CLASS "Backwards" USING btree RENAME TO bw;
TABLE ours;
ALTER OPERATOR CLASS bw USING btree SET SCHEMA oc2;
TABLE ours;
TABLE differences;
BEGIN;
ALTER OPERATOR CLASS oc2.bw USING btree RENAME TO bw2;
ALTER OPERATOR CLASS oc2.bw2 USING btree SET SCHEMA oc;
SAVEPOINT s;
DROP OPERATOR CLASS bw2 USING btree;
TABLE ours;
ROLLBACK TO s;
TABLE ours;
ROLLBACK;
TABLE ours;

-- What the planner does with an index of it.
CREATE TABLE t (i int, u int, x text COLLATE "C") USING inplace;
CREATE INDEX t_i ON t USING inplace_btree (i oc2.bw);
CREATE INDEX t_u ON t USING inplace_btree (u int4_ops);
CREATE INDEX t_x ON t USING inplace_btree (x COLLATE "POSIX" text_pattern_ops);
SELECT pg_get_indexdef('t_i'::regclass), pg_get_indexdef('t_x'::regclass);
INSERT INTO t SELECT g, g, g FROM generate_series(1, 1000) g;
ANALYZE t;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT array_agg(i) FROM (SELECT i FROM t WHERE i > 990 ORDER BY i USING > LIMIT 3) s;

-- An index is dropped with its class, or keeps it.
\set VERBOSITY terse
DROP OPERATOR CLASS oc2.bw USING btree;
DROP OPERATOR CLASS oc2.bw USING inplace_btree;
DROP OPERATOR FAMILY "Backwards" USING btree;
REINDEX INDEX CONCURRENTLY t_i;
DROP OPERATOR CLASS oc2.bw USING btree;
SELECT inplace.set_index_method('t_i', 'btree');
DROP OPERATOR CLASS oc2.bw USING btree;
SELECT inplace.set_index_method('t_i', 'inplace_btree');
DROP OPERATOR CLASS oc2.bw USING btree;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 't_i'::regclass;
BEGIN;
DROP OPERATOR CLASS oc2.bw USING btree CASCADE;
SELECT to_regclass('t_i'), inplace.mirror_opclasses();
TABLE differences;
ROLLBACK;
DROP OPERATOR FAMILY "Backwards" USING btree CASCADE;
SELECT to_regclass('t_i');
TABLE ours;
TABLE differences;

-- Members of families: they are the same families.
CREATE FUNCTION eq(int, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN $1::text = $2; END';
CREATE FUNCTION cmp(int, text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN btint4cmp($1, $2::int); END';
CREATE OPERATOR ==== (FUNCTION = eq, LEFTARG = int, RIGHTARG = text);
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 ==== (int, text), FUNCTION 1 (int, text) cmp(int, text);
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE u ==== '3';
SELECT * FROM t WHERE u ==== '3';
ALTER OPERATOR FAMILY integer_ops USING btree DROP OPERATOR 3 (int, text), FUNCTION 1 (int, text);
DROP OPERATOR ==== (int, text);
SET enable_hashjoin = off;
SET enable_nestloop = off;
CREATE TABLE big (l bigint) USING inplace;
CREATE INDEX big_l ON big USING inplace_btree (l);
INSERT INTO big SELECT generate_series(1, 1000);
VACUUM ANALYZE big;
EXPLAIN (COSTS OFF) SELECT i, l FROM t JOIN big ON u = l ORDER BY l LIMIT 1;
RESET enable_hashjoin;
RESET enable_nestloop;

-- A class of its own that a user makes is left alone.
CREATE OPERATOR CLASS bw FOR TYPE int USING inplace_btree AS
    OPERATOR 1 > , OPERATOR 2 >= , OPERATOR 3 = , OPERATOR 4 <= , OPERATOR 5 < , FUNCTION 1 cmp(int, int);
CREATE INDEX t_own ON t USING inplace_btree (i bw);
SELECT inplace.mirror_opclasses();
CREATE OPERATOR CLASS bw FOR TYPE int USING btree AS OPERATOR 3 =, FUNCTION 1 cmp(int, int);
TABLE ours;
DROP OPERATOR CLASS bw USING btree;
TABLE ours;
ALTER OPERATOR CLASS bw USING inplace_btree RENAME TO bw2;
SET enable_sort = off;
SELECT array_agg(i) FROM (SELECT i FROM t WHERE i > 990 ORDER BY i USING > LIMIT 3) s;
RESET enable_sort;
DROP OPERATOR FAMILY bw USING inplace_btree CASCADE;
-- Mirrors are not.
CREATE OPERATOR CLASS pg_catalog.int4_ops FOR TYPE int USING inplace_btree AS OPERATOR 3 =, FUNCTION 1 cmp(int, int);
ALTER OPERATOR CLASS int4_ops USING inplace_btree RENAME TO int4_our_ops;
ALTER OPERATOR CLASS int4_ops USING inplace_btree SET SCHEMA oc;
DROP OPERATOR CLASS int4_ops USING inplace_btree;
CREATE INDEX t_no ON t USING inplace_btree (i no_such_ops);
CREATE ROLE regress_inplace_opclasses;
GRANT USAGE ON SCHEMA inplace TO regress_inplace_opclasses;
SET ROLE regress_inplace_opclasses;
SELECT inplace.mirror_opclasses();
RESET ROLE;
REVOKE USAGE ON SCHEMA inplace FROM regress_inplace_opclasses;
DROP ROLE regress_inplace_opclasses;

-- Extensions.
CREATE EXTENSION citext;
CREATE EXTENSION ltree SCHEMA oc2;
TABLE differences;
SELECT count(*) FROM pg_depend d JOIN pg_opclass c ON d.classid = 'pg_opclass'::regclass AND d.objid = c.oid
    JOIN pg_am a ON a.oid = opcmethod JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE amname = 'inplace_btree' AND (d.deptype <> 'e' OR e.extname <> 'inplace');
CREATE TABLE c (c citext, d citext, p oc2.ltree) USING inplace;
CREATE INDEX c_c ON c USING inplace_btree (c);
CREATE INDEX c_d ON c (d, p);
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname LIKE 'c\__%' ORDER BY 1;
INSERT INTO c SELECT 'A' || g, 'B' || g, ('p.q' || g)::oc2.ltree FROM generate_series(1, 100) g;
UPDATE c SET d = 'D5' WHERE c = 'a5' RETURNING *;
EXPLAIN (COSTS OFF) SELECT c FROM c WHERE c = 'a7';
SELECT c FROM c WHERE c = 'a7';
CREATE INDEX c_pattern ON c (c citext_pattern_ops);
SELECT d FROM c WHERE d > 'b99' ORDER BY d LIMIT 2;
SELECT count(*) FROM inplace.check('c');
ALTER EXTENSION citext SET SCHEMA oc2;
ALTER EXTENSION ltree SET SCHEMA public;
TABLE differences;
DROP EXTENSION citext;
DROP EXTENSION citext CASCADE;
DROP EXTENSION ltree CASCADE;
SELECT count(*) FROM pg_attribute WHERE attrelid = 'c'::regclass AND attnum > 0 AND NOT attisdropped;
TABLE ours;
TABLE differences;

-- A type changes to one of another class; copies of definitions; partitions.
CREATE EXTENSION citext;
CREATE TABLE p (k text, v text) PARTITION BY LIST (k);
CREATE INDEX p_v ON p USING inplace_btree (v);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN ('1') USING inplace;
CREATE TABLE p2 (k text, v citext) USING inplace;
CREATE INDEX p2_v ON p2 USING inplace_btree (v);
ALTER TABLE p ALTER v TYPE citext;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN ('2');
CREATE TABLE l (LIKE p INCLUDING ALL);
SELECT indexrelid::regclass, indclass[0] = (SELECT oid FROM pg_opclass WHERE opcname = 'citext_ops'
    AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'inplace_btree')) AS mirror
FROM pg_index WHERE indrelid IN ('p'::regclass, 'p1'::regclass, 'p2'::regclass, 'l'::regclass) ORDER BY indexrelid::regclass::text COLLATE "C";
DROP TABLE p, l;

-- A mirror that is not there, as after CREATE EXTENSION citext in a transaction that
-- did not see the other extension yet, is made by the first CREATE INDEX.
CREATE TABLE lost (a citext, b citext) USING inplace;
CREATE FUNCTION lose(name) RETURNS void LANGUAGE sql AS $$
    WITH gone AS (DELETE FROM pg_opclass WHERE opcname = $1
                  AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'inplace_btree') RETURNING oid)
    DELETE FROM pg_depend USING gone WHERE classid = 'pg_opclass'::regclass AND objid = gone.oid $$;
SELECT lose('citext_ops');
CREATE INDEX lost_a ON lost (a);
TABLE differences;
DROP INDEX lost_a;
SELECT lose('citext_ops'), lose('citext_pattern_ops');
CREATE INDEX lost_a ON lost USING inplace_btree ((lower(a)::citext), b citext_pattern_ops);
TABLE differences;
SELECT pg_get_indexdef('lost_a'::regclass);
DROP TABLE lost;
SELECT lose('citext_ops');
-- one that was missed, one that is left of a class that was renamed or dropped
UPDATE pg_opclass SET opcname = 'was' WHERE opcname = 'citext_pattern_ops' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'inplace_btree');
SELECT inplace.mirror_opclasses();
TABLE differences;

-- Temporary ones, owners, schemas, both at once.
BEGIN;
CREATE TEMP TABLE make_schema ();
CREATE FUNCTION pg_temp.cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS pg_temp.bw FOR TYPE int USING btree AS OPERATOR 3 =, FUNCTION 1 pg_temp.cmp(int, int);
SELECT count(*) FROM ours WHERE opcname = 'bw';
COMMIT;
DISCARD ALL;
SET search_path = oc, public;
SET client_min_messages = warning;
DROP OPERATOR CLASS pg_temp.bw USING btree;
SELECT count(*) FROM ours WHERE opcname = 'bw';
CREATE ROLE regress_inplace_opclasses SUPERUSER;
SET ROLE regress_inplace_opclasses;
CREATE OPERATOR CLASS oc2.bw FOR TYPE int USING btree AS OPERATOR 3 =, FUNCTION 1 cmp(int, int);
RESET ROLE;
SELECT count(*) FROM ours WHERE opcname = 'bw';
DROP OWNED BY regress_inplace_opclasses;
DROP ROLE regress_inplace_opclasses;
SELECT count(*) FROM ours WHERE opcname = 'bw';
CREATE OPERATOR CLASS oc2.bw FOR TYPE int USING btree AS OPERATOR 3 =, FUNCTION 1 cmp(int, int);
BEGIN;
DROP SCHEMA oc2 CASCADE;
CREATE SCHEMA oc2;
CREATE OPERATOR CLASS oc2.bw FOR TYPE int USING btree AS OPERATOR 3 =, FUNCTION 1 cmp(int, int);
COMMIT;
TABLE differences;
DROP SCHEMA oc2 CASCADE;
TABLE differences;

-- DROP EXTENSION inplace leaves the originals and what uses them.
CREATE OPERATOR CLASS bw FOR TYPE int USING btree AS OPERATOR 3 =, FUNCTION 1 cmp(int, int);
CREATE TABLE h (i int, c citext) USING heap;
CREATE INDEX h_bt ON h USING btree (i bw, c);
CREATE INDEX h_i ON h USING inplace_btree (i bw, c);
BEGIN;
SELECT count(*) FROM pg_opclass c WHERE opcname IN ('bw', 'citext_ops');
DROP EXTENSION inplace CASCADE;
SELECT to_regclass('h_bt'), to_regclass('h_i');
SELECT amname, opcname FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE opcname IN ('bw', 'citext_ops') ORDER BY 1, 2;
ROLLBACK;
BEGIN;
DROP EXTENSION inplace, citext CASCADE;
SELECT to_regclass('h_bt'), to_regclass('h_i');
ROLLBACK;
BEGIN;
DROP EXTENSION citext, inplace CASCADE;
SELECT to_regclass('h_bt'), to_regclass('h_i');
ROLLBACK;
TABLE differences;

-- the access method stays under its indexes, whatever a superuser does to the extension
ALTER EXTENSION inplace DROP ACCESS METHOD inplace_btree;
BEGIN;
SET LOCAL allow_system_table_mods = on;
DELETE FROM pg_depend WHERE classid = 'pg_am'::regclass AND objid = (SELECT oid FROM pg_am WHERE amname = 'inplace_btree') AND deptype = 'e';
\set VERBOSITY terse
DROP ACCESS METHOD inplace_btree;
\set VERBOSITY default
ROLLBACK;

\c :here
DROP DATABASE regress_opclasses;
