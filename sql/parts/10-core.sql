-- complain if the script is sourced in psql
\echo Use "CREATE EXTENSION inplace" to load this file. \quit

-- No table works without the preload, so say that first, and once.
-- (The schema is a member of the extension, so pg_dump leaves it to that.  One that
-- somebody has made before is taken over only if it is empty, and nobody but whoever
-- creates the extension can put anything there.)
DO $$
DECLARE
	there oid := (SELECT oid FROM pg_namespace WHERE nspname = 'inplace');
BEGIN
	IF there IS NULL THEN
		CREATE SCHEMA inplace;
	ELSIF EXISTS (SELECT FROM pg_namespace WHERE oid = there AND nspacl IS NULL
			AND nspowner = (SELECT oid FROM pg_authid WHERE rolname = current_user))
		AND NOT EXISTS (SELECT FROM pg_depend
			WHERE refclassid = 'pg_namespace'::regclass AND refobjid = there)
		AND NOT EXISTS (SELECT FROM pg_default_acl WHERE defaclnamespace = there) THEN
		ALTER EXTENSION inplace ADD SCHEMA inplace;
	ELSE
		RAISE duplicate_schema USING MESSAGE = 'schema "inplace" already exists',
			DETAIL = 'It is not empty, or others than ' || quote_ident(current_user) || ' may create objects in it.',
			HINT = 'Drop or rename the schema, then create the extension.';
	END IF;
END
$$;

CREATE FUNCTION inplace.require_preload() RETURNS void
LANGUAGE C VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_require_preload';

SELECT inplace.require_preload();

DROP FUNCTION inplace.require_preload();

GRANT USAGE ON SCHEMA inplace TO PUBLIC;

COMMENT ON SCHEMA inplace IS
'functions and views of extension inplace: tables that update in place';

-- The access methods.

CREATE FUNCTION inplace.table_handler(internal) RETURNS table_am_handler
LANGUAGE C STRICT
AS 'MODULE_PATHNAME', 'inplace_table_handler';

COMMENT ON FUNCTION inplace.table_handler(internal) IS
'handler of the table access method inplace';

CREATE ACCESS METHOD inplace TYPE TABLE HANDLER inplace.table_handler;

COMMENT ON ACCESS METHOD inplace IS
'tables whose rows are updated where they stand, with an undo log';

CREATE FUNCTION inplace.undo_handler(internal) RETURNS table_am_handler
LANGUAGE C STRICT
AS 'MODULE_PATHNAME', 'inplace_undo_handler';

COMMENT ON FUNCTION inplace.undo_handler(internal) IS
'handler of the access method of the undo relations';

CREATE ACCESS METHOD inplace_undo TYPE TABLE HANDLER inplace.undo_handler;

COMMENT ON ACCESS METHOD inplace_undo IS
'undo of inplace tables; not for tables of your own';

-- Undo itself.  In the database's own tablespace, whatever default_tablespace
-- says: it has to be there as long as any inplace table is.

SET LOCAL default_tablespace = '';

-- The one that is logged is called a materialized view, without data: were it a
-- table, CREATE PUBLICATION ... FOR ALL TABLES would publish it.

CREATE MATERIALIZED VIEW inplace.undo_log USING inplace_undo AS SELECT WITH NO DATA;

COMMENT ON MATERIALIZED VIEW inplace.undo_log IS
'older versions of the rows of inplace tables; closed to SQL, see the view inplace.undo';

CREATE UNLOGGED TABLE inplace.undo_log_unlogged () USING inplace_undo;

COMMENT ON TABLE inplace.undo_log_unlogged IS
'older versions of the rows of unlogged inplace tables; closed to SQL, see the view inplace.undo';

REVOKE ALL ON inplace.undo_log, inplace.undo_log_unlogged FROM PUBLIC;

-- How much undo there is, and who keeps it.

CREATE FUNCTION inplace.undo_stats(
    OUT kind text,
    OUT size_bytes bigint,
    OUT used_bytes bigint,
    OUT extents bigint,
    OUT free_extents bigint,
    OUT oldest_xid_needed xid,
    OUT discard_horizon xid,
    OUT extents_to_restore bigint,
    OUT rows_restored bigint,
    OUT worker_pid integer)
RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'inplace_undo_stats';

COMMENT ON FUNCTION inplace.undo_stats() IS
'the rows of the view inplace.undo';

CREATE VIEW inplace.undo AS
SELECT kind, size_bytes, used_bytes, extents, free_extents,
       oldest_xid_needed, discard_horizon, extents_to_restore, rows_restored,
       worker_pid
FROM inplace.undo_stats();

COMMENT ON VIEW inplace.undo IS
'undo of this database, a row for each kind: logged, unlogged, and temporary (this session''s)';
COMMENT ON COLUMN inplace.undo.kind IS
'kind of the tables that the undo is for';
COMMENT ON COLUMN inplace.undo.size_bytes IS
'size of the file';
COMMENT ON COLUMN inplace.undo.used_bytes IS
'bytes of the pages in use; null on a standby, as all that follows';
COMMENT ON COLUMN inplace.undo.extents IS
'extents (of 32 blocks) that the file has';
COMMENT ON COLUMN inplace.undo.free_extents IS
'extents that can be used again';
COMMENT ON COLUMN inplace.undo.oldest_xid_needed IS
'the next extent is given back once this xid precedes the horizon';
COMMENT ON COLUMN inplace.undo.discard_horizon IS
'horizon when undo was last looked through: undo of older transactions can be given back';
COMMENT ON COLUMN inplace.undo.extents_to_restore IS
'extents that may have changes of aborted transactions not restored yet';
COMMENT ON COLUMN inplace.undo.rows_restored IS
'rows that the undo worker has restored after rollbacks, since the server started';
COMMENT ON COLUMN inplace.undo.worker_pid IS
'process that gives undo back, if one is running';

GRANT SELECT ON inplace.undo TO PUBLIC;

CREATE FUNCTION inplace.undo_size() RETURNS bigint
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'inplace_undo_size';

COMMENT ON FUNCTION inplace.undo_size() IS
'bytes of the undo files of this database, and of this session''s temporary undo';

CREATE FUNCTION inplace.undo_records_read() RETURNS bigint
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'inplace_undo_records_read';

COMMENT ON FUNCTION inplace.undo_records_read() IS
'undo records that this session has read since it began, its parallel workers not counted';

CREATE VIEW inplace.undo_holders AS
WITH holders AS (
    -- A session's own query does not count unless it is part of a transaction
    -- that began before it.  VACUUM has a snapshot that holds nothing back.
    SELECT 'session' AS kind, a.pid, a.usename::text AS name,
           a.backend_xmin AS xmin, a.backend_xid AS xid,
           a.xact_start AS since, a.query
    FROM pg_catalog.pg_stat_activity a
    WHERE a.datid = (SELECT d.oid FROM pg_catalog.pg_database d
                     WHERE d.datname = pg_catalog.current_database())
      AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
      AND a.backend_type NOT IN ('walsender', 'inplace undo worker')
      AND NOT (a.pid = pg_catalog.pg_backend_pid()
               AND a.xact_start >= a.query_start)
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_vacuum v
                      WHERE v.pid = a.pid)
    UNION ALL
    SELECT 'prepared transaction', NULL, p.gid, NULL, p.transaction,
           p.prepared, NULL
    FROM pg_catalog.pg_prepared_xacts p
    WHERE p.database = pg_catalog.current_database()
    UNION ALL
    SELECT 'replication slot', s.active_pid, s.slot_name::text, s.xmin, NULL,
           NULL, NULL
    FROM pg_catalog.pg_replication_slots s
    WHERE s.xmin IS NOT NULL
    UNION ALL
    SELECT 'standby feedback (walsender)', r.pid, r.application_name,
           r.backend_xmin, NULL, r.backend_start, NULL
    FROM pg_catalog.pg_stat_replication r
    WHERE r.backend_xmin IS NOT NULL
), aged AS (
    SELECT h.*, greatest(pg_catalog.age(h.xmin), pg_catalog.age(h.xid)) AS age
    FROM holders h
)
SELECT kind, pid, name, xmin, xid, age, since, query,
       age = max(age) OVER () AS holds_back
FROM aged
ORDER BY age DESC, since;

COMMENT ON VIEW inplace.undo_holders IS
'who keeps undo of this database from being given back, oldest first';
COMMENT ON COLUMN inplace.undo_holders.kind IS
'session, prepared transaction, replication slot, or standby feedback (walsender)';
COMMENT ON COLUMN inplace.undo_holders.pid IS
'process, if there is one';
COMMENT ON COLUMN inplace.undo_holders.name IS
'role, name of the prepared transaction, of the slot, or of the standby';
COMMENT ON COLUMN inplace.undo_holders.xmin IS
'oldest transaction that its snapshots need';
COMMENT ON COLUMN inplace.undo_holders.xid IS
'its own transaction';
COMMENT ON COLUMN inplace.undo_holders.age IS
'transactions since the older of the two';
COMMENT ON COLUMN inplace.undo_holders.since IS
'when the transaction began, was prepared, or the standby connected';
COMMENT ON COLUMN inplace.undo_holders.query IS
'its current or last query';
COMMENT ON COLUMN inplace.undo_holders.holds_back IS
'is it the one (or one of those) whose end would let undo go?';

GRANT SELECT ON inplace.undo_holders TO pg_monitor;
