-- The operator classes of inplace_btree are those of btree.
CREATE TYPE oc_pair AS (a int, b text);
CREATE SCHEMA oc;
CREATE FUNCTION oc.cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS oc."Backwards" FOR TYPE int USING btree AS
    OPERATOR 1 > , OPERATOR 2 >= , OPERATOR 3 = , OPERATOR 4 <= , OPERATOR 5 < ,
    FUNCTION 1 oc.cmp(int, int);

CREATE VIEW oc.classes AS
SELECT c.opcmethod, c.opcname, c.opcnamespace, c.opcintype, c.opcdefault,
       c.opckeytype, f.opfname, f.opfnamespace, c.oid, a.amname
FROM pg_opclass c JOIN pg_opfamily f ON f.oid = c.opcfamily
     JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname IN ('btree', 'inplace_btree');

-- What one method has and the other has not.
CREATE VIEW oc.differences AS
WITH classes AS (
    SELECT amname, 'class ' || (opcname, opcnamespace, opcintype, opcdefault, opckeytype, opfname, opfnamespace)::text AS what
    FROM oc.classes
), operators AS (
    SELECT a.amname, 'operator ' || (f.opfname, f.opfnamespace, o.amoplefttype, o.amoprighttype, o.amopstrategy, o.amopopr, o.amoppurpose, o.amopsortfamily)::text
    FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am a ON a.oid = f.opfmethod AND a.oid = o.amopmethod
), functions AS (
    SELECT a.amname, 'function ' || (f.opfname, f.opfnamespace, p.amproclefttype, p.amprocrighttype, p.amprocnum, p.amproc::oid)::text
    FROM pg_amproc p JOIN pg_opfamily f ON f.oid = p.amprocfamily JOIN pg_am a ON a.oid = f.opfmethod
), families AS (
    SELECT a.amname, 'family ' || (f.opfname, f.opfnamespace)::text
    FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod
), everything AS (
    TABLE classes UNION ALL TABLE operators UNION ALL TABLE functions UNION ALL TABLE families
)
SELECT 'btree only' AS method, what FROM (SELECT what FROM everything WHERE amname = 'btree' EXCEPT ALL SELECT what FROM everything WHERE amname = 'inplace_btree') b
UNION ALL
SELECT 'inplace_btree only', what FROM (SELECT what FROM everything WHERE amname = 'inplace_btree' EXCEPT ALL SELECT what FROM everything WHERE amname = 'btree') i;

-- Our own class is all that is missing: a family, a class, its five operators
-- and function.
SELECT method, split_part(what, ' ', 1) AS kind, count(*) FROM oc.differences GROUP BY 1, 2 ORDER BY 1, 2;
SELECT inplace.mirror_opclasses();
SELECT * FROM oc.differences;
SELECT inplace.mirror_opclasses();

-- There are as many as there should be, and all are valid.
SELECT count(*) > 40 AS many, bool_and(amvalidate(oid)) AS valid FROM oc.classes WHERE amname = 'inplace_btree';

-- Something lost comes back.
ALTER OPERATOR FAMILY integer_ops USING inplace_btree DROP OPERATOR 3 (int4, int8);
SELECT method, split_part(what, ' ', 1) FROM oc.differences;
SELECT inplace.mirror_opclasses();
SELECT * FROM oc.differences;

-- Only those of the server are part of the extension.
SELECT count(*) FROM pg_depend d JOIN oc.classes c ON d.classid = 'pg_opclass'::regclass AND d.objid = c.oid
WHERE d.deptype = 'e' AND c.amname = 'inplace_btree' AND c.opcnamespace <> 'pg_catalog'::regnamespace;
SELECT count(*) FROM oc.classes c
WHERE amname = 'inplace_btree' AND opcnamespace = 'pg_catalog'::regnamespace
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_opclass'::regclass AND d.objid = c.oid AND d.deptype = 'e');

-- Names are found as for btree.
CREATE TABLE oc_t (i int, t text, a int[], p oc_pair, v varchar) USING inplace;
\set VERBOSITY sqlstate
CREATE INDEX oc_1 ON oc_t USING inplace_btree (i, t text_pattern_ops, a, p, v);
CREATE INDEX oc_2 ON oc_t USING inplace_btree (i no_such_ops);
CREATE ROLE regress_inplace_opclasses;
GRANT USAGE ON SCHEMA inplace TO regress_inplace_opclasses;
SET ROLE regress_inplace_opclasses;
SELECT inplace.mirror_opclasses();
RESET ROLE;
\set VERBOSITY default

DROP TABLE oc_t;
DROP TYPE oc_pair;
REVOKE USAGE ON SCHEMA inplace FROM regress_inplace_opclasses;
DROP ROLE regress_inplace_opclasses;
SET client_min_messages = warning;
DROP SCHEMA oc CASCADE;
RESET client_min_messages;
