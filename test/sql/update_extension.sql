-- ALTER EXTENSION inplace UPDATE leaves the objects that CREATE EXTENSION makes, from
-- whichever version it comes.  (Tables that an older library has made: TAP 118.)
\set here :DBNAME
\getenv abs_srcdir PG_ABS_SRCDIR
\set objects :abs_srcdir '/extension_objects.sql'
CREATE DATABASE regress_ip_update TEMPLATE template0;
\c regress_ip_update
\set ECHO none
\i :objects
\set ECHO all
CREATE EXTENSION inplace;
CREATE TEMP TABLE fresh USING heap AS SELECT * FROM pg_temp.extension_objects();
SELECT count(*) > 50 AS many, count(*) = count(definition) AS defined FROM fresh;
DROP EXTENSION inplace;

-- A statement for each older version, and what then differs.
CREATE FUNCTION pg_temp.updated_from(version text) RETURNS TABLE (what text, object text, definition text)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE EXTENSION inplace VERSION %L', version);
	ALTER EXTENSION inplace UPDATE;
	RETURN QUERY
		SELECT 'only when updated', u.* FROM (SELECT * FROM pg_temp.extension_objects() EXCEPT SELECT * FROM fresh) u
		UNION ALL
		SELECT 'only when made anew', f.* FROM (SELECT * FROM fresh EXCEPT SELECT * FROM pg_temp.extension_objects()) f;
	DROP EXTENSION inplace;
END $$;
SELECT version FROM pg_available_extension_versions v, pg_available_extensions a
WHERE v.name = 'inplace' AND a.name = 'inplace' AND version <> default_version ORDER BY 1;
SELECT v.version, d.* FROM pg_available_extension_versions v, pg_available_extensions a,
	LATERAL pg_temp.updated_from(v.version) d
WHERE v.name = 'inplace' AND a.name = 'inplace' AND v.version <> a.default_version ORDER BY 1, 2, 3;

-- It would be noticed.
CREATE EXTENSION inplace VERSION '0.1.0';
ALTER EXTENSION inplace UPDATE;
COMMENT ON COLUMN inplace.undo.kind IS 'another';
CREATE OR REPLACE FUNCTION inplace.undo_size() RETURNS bigint
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS '$libdir/inplace', 'inplace_undo_size';
REVOKE SELECT ON inplace.undo FROM PUBLIC;
SELECT object FROM (SELECT * FROM pg_temp.extension_objects() EXCEPT SELECT * FROM fresh) u ORDER BY 1;
\c :here
DROP DATABASE regress_ip_update;
