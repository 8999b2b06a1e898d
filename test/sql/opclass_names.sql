-- A class of inplace_btree is the mirror of one of btree if it means the same, not
-- only is called the same; and what a class in use means does not change.
CREATE SCHEMA ocn;
CREATE SCHEMA ocn_first;
SET search_path = ocn, public;
SET client_min_messages = warning;
\set VERBOSITY terse
SET enable_seqscan = off;
SET enable_bitmapscan = off;

CREATE FUNCTION rcmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT pg_catalog.btint4cmp($2, $1)';
CREATE FUNCTION make(class text, method text, up boolean, family text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE OPERATOR CLASS %s FOR TYPE int USING %s %s AS ', class, method, 'FAMILY ' || family)
        || CASE WHEN up
                THEN 'OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int)'
                ELSE 'OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 rcmp(int, int)' END;
END $$;
CREATE VIEW classes AS
SELECT amname, opcname, opf.opfname AS family, opf.opfmethod = a.oid AS own
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod LEFT JOIN pg_opfamily opf ON opf.oid = opcfamily
WHERE opcnamespace = 'ocn'::regnamespace ORDER BY opcname, amname;
CREATE VIEW indexes AS
SELECT c.relname, amname, opcname, n.nspname
FROM pg_class c JOIN pg_am a ON a.oid = relam JOIN pg_index i ON indexrelid = c.oid
    JOIN pg_opclass o ON o.oid = indclass[0] JOIN pg_namespace n ON n.oid = opcnamespace
WHERE c.relnamespace = 'ocn'::regnamespace ORDER BY c.relname;

-- The user's own class is not the counterpart of btree's namesake for the same type.
SELECT make('same', 'inplace_btree', false), make('same', 'btree', true);
TABLE classes;
CREATE TABLE s (a int) USING heap;
INSERT INTO s SELECT generate_series(1, 1000);
CREATE INDEX s_a ON s (a same);
SELECT inplace.convert('s');
SELECT count(*) FROM s WHERE a = 5;
SELECT count(*) FROM inplace.check('s');
SELECT inplace.set_index_method('s_a', 'inplace_btree');
CREATE INDEX s_b ON s (a same);
TABLE indexes;
DROP INDEX s_a, s_b;
CREATE INDEX s_a ON s USING inplace_btree (a same);
SELECT count(*) FROM pg_depend d JOIN pg_opclass o ON o.oid = d.refobjid AND d.refclassid = 'pg_opclass'::regclass
WHERE d.classid = 'pg_class'::regclass AND d.objid = 's_a'::regclass;
SELECT inplace.set_index_method('s_a', 'btree');
SELECT inplace.convert('s', 'heap');
SELECT count(*) FROM s WHERE a = 5;
TABLE indexes;
DROP TABLE s;
-- One that comes first in the search path is not what btree's class meant.
SELECT make('ocn_first.found', 'inplace_btree', false), make('found', 'btree', true);
SET search_path = ocn_first, ocn, public;
CREATE TABLE ocn.s (a int) USING inplace;
CREATE INDEX s_a ON s (a found);
SET search_path = ocn, public;
TABLE indexes;
DROP TABLE s;
DROP OPERATOR FAMILY found USING btree CASCADE;
DROP OPERATOR FAMILY same USING inplace_btree CASCADE;
-- it is gone, and there is room for the mirror
CREATE TABLE s (a int) USING inplace;
CREATE INDEX s_a ON s (a same);
TABLE indexes;
TABLE classes;
DROP TABLE s;
DROP OPERATOR FAMILY same USING btree CASCADE;
TABLE classes;

-- A class is renamed to a name that is taken, or moved to where it is.
SELECT make('taken', 'inplace_btree', false), make('ocn_first.x', 'inplace_btree', false), make('x', 'btree', true);
CREATE TABLE r (a int) USING inplace;
INSERT INTO r SELECT generate_series(1, 1000);
CREATE INDEX r_a ON r (a x);
\set VERBOSITY default
ALTER OPERATOR CLASS x USING btree RENAME TO taken;
\set VERBOSITY terse
ALTER OPERATOR CLASS x USING btree SET SCHEMA ocn_first;
TABLE classes;
TABLE indexes;
-- in use no more
SELECT inplace.set_index_method('r_a', 'btree');
ALTER OPERATOR CLASS x USING btree RENAME TO taken;
TABLE classes;
CREATE OPERATOR FAMILY x2 USING btree;
SELECT make('x', 'btree', false, 'x2');
TABLE classes;
TABLE indexes;
SELECT count(*) FROM r WHERE a = 5;
SELECT inplace.mirror_opclasses();
DROP TABLE r;
DROP OPERATOR FAMILY x2 USING btree CASCADE;
DROP OPERATOR FAMILY x USING btree CASCADE;
TABLE classes;

-- What servers without the library have left behind: a mirror in use, whose original has another name.
SELECT make('y', 'btree', true);
CREATE TABLE r (a int) USING inplace;
INSERT INTO r SELECT generate_series(1, 1000);
CREATE INDEX r_a ON r (a y);
UPDATE pg_opclass SET opcname = 'taken' WHERE opcname = 'y' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree');
CREATE OPERATOR FAMILY y2 USING btree;
SELECT make('y', 'btree', false, 'y2');
TABLE classes;
\c -
SET search_path = ocn, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM r WHERE a = 5;
SELECT inplace.set_index_method('r_a', 'btree');
CREATE INDEX r_b ON r (a y);
TABLE indexes;
SELECT inplace.mirror_opclasses();
DROP OPERATOR CLASS y USING btree;
DROP INDEX r_b;
DROP OPERATOR CLASS y USING btree;
ALTER OPERATOR CLASS taken USING btree RENAME TO z;
SELECT inplace.mirror_opclasses();
TABLE classes;
SELECT count(*) FROM r WHERE a = 5;
SELECT inplace.set_index_method('r_a', 'btree');
TABLE indexes;
SELECT count(*) FROM r WHERE a = 5;
DROP TABLE r;
-- one that is not in use makes room
UPDATE pg_opclass SET opcname = 'w' WHERE opcname = 'z' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'inplace_btree');
SELECT make('w', 'btree', false);
SELECT inplace.mirror_opclasses();
TABLE classes;

-- A dump has the class of btree first.  Only there the other one takes the mirror's place.
SELECT make('ocn.w', 'inplace_btree', false);
BEGIN;
SET LOCAL check_function_bodies = off;
SET LOCAL row_security = off;
SELECT make('ocn.w', 'inplace_btree', true);
TABLE classes;
ROLLBACK;
CREATE TABLE r (a int) USING inplace;
CREATE INDEX r_a ON r (a w);
BEGIN;
SET LOCAL check_function_bodies = off;
SET LOCAL row_security = off;
SELECT make('ocn.w', 'inplace_btree', true);
ROLLBACK;
TABLE classes;

SET client_min_messages = warning;
DROP SCHEMA ocn, ocn_first CASCADE;
SELECT inplace.mirror_opclasses();
