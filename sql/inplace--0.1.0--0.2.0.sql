-- complain if the script is sourced in psql
\echo Use "ALTER EXTENSION inplace UPDATE TO '0.2.0'" to load this file. \quit

-- Every other object of 0.2.0 is as 0.1.0 made it.  What one of sql/parts/ changes from
-- now on has to be done here, too (test/sql/update_extension.sql compares).

CREATE FUNCTION inplace.after_upgrade() RETURNS bigint
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_after_upgrade';

COMMENT ON FUNCTION inplace.after_upgrade() IS
'after pg_upgrade, in each database with inplace tables: gives their TOAST tables back the access method that their files are of, and says how many';

REVOKE ALL ON FUNCTION inplace.after_upgrade() FROM PUBLIC;
