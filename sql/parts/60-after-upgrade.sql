CREATE FUNCTION inplace.after_upgrade() RETURNS bigint
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_after_upgrade';

COMMENT ON FUNCTION inplace.after_upgrade() IS
'after pg_upgrade, in each database with inplace tables: gives their TOAST tables back the access method that their files are of, and says how many';

REVOKE ALL ON FUNCTION inplace.after_upgrade() FROM PUBLIC;
