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
-- Looking into tables: what is in a page, the versions of a row, checking a
-- table, and how updates were done.  See docs/functions.md.

CREATE FUNCTION inplace.page_items(
    rel regclass,
    block bigint,
    OUT item integer,
    OUT lp_off integer,
    OUT lp_len integer,
    OUT state text,
    OUT xid xid,
    OUT undo text,
    OUT cid cid,
    OUT flags text[],
    OUT natts integer,
    OUT tag integer,
    OUT lock_mode text,
    OUT locker xid,
    OUT multi xid,
    OUT null_bits text,
    OUT data bytea)
RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'inplace_page_items';

COMMENT ON FUNCTION inplace.page_items(regclass, bigint) IS
'the items of one page of an inplace table, a row for each line pointer; lp_off and lp_len in bytes, undo as block/offset in the undo relation, data without header and padding; error if rel is not an inplace table or block is past its end';

CREATE FUNCTION inplace.versions(
    rel regclass,
    ctid tid,
    OUT version integer,
    OUT xid xid,
    OUT cid cid,
    OUT operation text,
    OUT status text,
    OUT tag integer,
    OUT visible boolean,
    OUT undo text,
    OUT changed text[],
    OUT contents text,
    OUT lock_mode text,
    OUT moved_to tid)
RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'inplace_versions';

COMMENT ON FUNCTION inplace.versions(regclass, tid) IS
'the versions of the row at a TID, newest first (version 0), back to the one that everybody sees; changed names the columns that differ from the version before, contents is the row as text, null if deleted; no rows if there is no row at the TID; error if rel is not an inplace table, the block is past its end, or the row is corrupt';

CREATE FUNCTION inplace.check(
    rel regclass,
    check_indexes boolean DEFAULT true,
    OUT block bigint,
    OUT item integer,
    OUT index regclass,
    OUT severity text,
    OUT problem text)
RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_check';

COMMENT ON FUNCTION inplace.check(regclass, boolean) IS
'verifies pages, rows, undo links, visibility map, TOAST values and (if check_indexes) index agreement of an inplace table; a row for each finding, none if all is well; reads everything, locks out nothing but exclusive use; error if rel is not an inplace table';

CREATE FUNCTION inplace.row_locks(
    rel regclass,
    OUT locked_row tid,
    OUT locker xid,
    OUT multi boolean,
    OUT xids xid[],
    OUT modes text[],
    OUT pids integer[])
RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_row_locks';

COMMENT ON FUNCTION inplace.row_locks(regclass) IS
'the rows of an inplace table that are locked, or being changed by other transactions, and by whom (what pgrowlocks shows of a heap table); reads the whole table; for those who may SELECT from it and members of pg_stat_scan_tables; error if rel is not an inplace table';

-- What they show is not subject to the privileges on rows; page_items and
-- versions moreover ask for SELECT on the table.
REVOKE ALL ON FUNCTION inplace.page_items(regclass, bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace.versions(regclass, tid) FROM PUBLIC;
REVOKE ALL ON FUNCTION inplace.check(regclass, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION inplace.page_items(regclass, bigint) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace.versions(regclass, tid) TO pg_stat_scan_tables;
GRANT EXECUTE ON FUNCTION inplace.check(regclass, boolean) TO pg_stat_scan_tables;

CREATE VIEW inplace.stat_tables AS
SELECT c.oid AS relid,
       n.nspname AS schemaname,
       c.relname,
       s.inserts,
       s.in_place AS in_place_updates,
       s.updates - s.in_place AS moved_updates,
       CASE WHEN s.updates > 0
            THEN pg_catalog.round(s.in_place::numeric / s.updates, 4)
       END AS in_place_share,
       s.deletes,
       s.live AS live_rows,
       s.dead AS dead_rows,
       pg_catalog.pg_table_size(c.oid) AS table_size
FROM pg_catalog.pg_class c
     JOIN pg_catalog.pg_am a ON a.oid = c.relam
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL (
         SELECT pg_catalog.pg_stat_get_tuples_inserted(c.oid) AS inserts,
                pg_catalog.pg_stat_get_tuples_updated(c.oid) AS updates,
                pg_catalog.pg_stat_get_tuples_hot_updated(c.oid) AS in_place,
                pg_catalog.pg_stat_get_tuples_deleted(c.oid) AS deletes,
                pg_catalog.pg_stat_get_live_tuples(c.oid) AS live,
                pg_catalog.pg_stat_get_dead_tuples(c.oid) AS dead
     ) s
WHERE a.amhandler = 'inplace.table_handler'::pg_catalog.regproc
  AND c.relkind IN ('r', 'm');

COMMENT ON VIEW inplace.stat_tables IS
'one row for each table and materialized view of access method inplace in this database: how its updates were done, since the statistics were last reset';
COMMENT ON COLUMN inplace.stat_tables.relid IS
'OID of the table';
COMMENT ON COLUMN inplace.stat_tables.schemaname IS
'schema of the table';
COMMENT ON COLUMN inplace.stat_tables.relname IS
'name of the table';
COMMENT ON COLUMN inplace.stat_tables.inserts IS
'rows inserted, rolled back ones included';
COMMENT ON COLUMN inplace.stat_tables.in_place_updates IS
'rows updated where they stand, so without a new TID; the server counts them as HOT updates';
COMMENT ON COLUMN inplace.stat_tables.moved_updates IS
'rows updated by moving them to a new TID, with new entries in all indexes';
COMMENT ON COLUMN inplace.stat_tables.in_place_share IS
'in-place updates as a fraction of all updates, 0 to 1; null if there were none';
COMMENT ON COLUMN inplace.stat_tables.deletes IS
'rows deleted, rolled back ones included';
COMMENT ON COLUMN inplace.stat_tables.live_rows IS
'live rows, estimated';
COMMENT ON COLUMN inplace.stat_tables.dead_rows IS
'rows that VACUUM can remove, estimated; in-place updates leave none, but those of columns of inplace_btree indexes one for each row, until former index entries are removed';
COMMENT ON COLUMN inplace.stat_tables.table_size IS
'bytes on disk of the table, its TOAST table, free space map and visibility map; null if it was dropped meanwhile';

GRANT SELECT ON inplace.stat_tables TO PUBLIC;

-- The index access method.

CREATE FUNCTION inplace.btree_handler(internal) RETURNS index_am_handler
LANGUAGE C STRICT
AS 'MODULE_PATHNAME', 'inplace_btree_handler';

COMMENT ON FUNCTION inplace.btree_handler(internal) IS
'handler of the index access method inplace_btree';

CREATE ACCESS METHOD inplace_btree TYPE INDEX HANDLER inplace.btree_handler;

COMMENT ON ACCESS METHOD inplace_btree IS
'B-tree indexes of inplace tables: an update of their columns leaves all other indexes alone';

CREATE FUNCTION inplace.set_index_method(index regclass, method name)
RETURNS boolean
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_set_index_method';

COMMENT ON FUNCTION inplace.set_index_method(regclass, name) IS
'makes an inplace_btree index of a btree index (without reading or writing it) or a btree of an inplace_btree (by building it anew if its table is an inplace table), under ACCESS EXCLUSIVE lock of the table; returns whether it was not that already; owners only';

-- Operator classes of inplace_btree: those of btree (src/ddl/opclass.c).

CREATE FUNCTION inplace.mirror_opclasses()
RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_mirror_opclasses';

COMMENT ON FUNCTION inplace.mirror_opclasses() IS
'creates for inplace_btree what it lacks of btree''s operator classes, and drops what is left of dropped ones, if no index uses it; returns the number of classes created; needed only after the server has run without inplace in shared_preload_libraries; superusers only';

REVOKE ALL ON FUNCTION inplace.mirror_opclasses() FROM PUBLIC;

SELECT inplace.mirror_opclasses();

-- Moving tables over, and which ones to move.

-- No setting of search_path: up to PostgreSQL 16 the rewrite evaluates index
-- expressions with the session's, as ALTER TABLE does.  So all is qualified, types
-- above all: of these the temporary schema comes first, whatever search_path says.
-- Operators too, and nothing is used that names one by itself (IN, CASE x WHEN,
-- IS DISTINCT FROM); arguments have the type of the parameter, so that no other
-- function of the name can fit better.
CREATE FUNCTION inplace.convert(rel regclass, method text DEFAULT 'inplace')
RETURNS integer
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
DECLARE
    member pg_catalog.record;
    name pg_catalog.text;
    total pg_catalog.int4;
    seen pg_catalog.int4 := 0;
    done pg_catalog.int4 := 0;
    to_heap CONSTANT pg_catalog.bool := method OPERATOR(pg_catalog.=) 'heap';
    -- (here and in other sessions)
    heap_is_default CONSTANT pg_catalog.bool := (SELECT s.setting OPERATOR(pg_catalog.=) 'heap' AND s.reset_val OPERATOR(pg_catalog.=) 'heap'
                                                 FROM pg_catalog.pg_settings s
                                                 WHERE s.name OPERATOR(pg_catalog.=) 'default_table_access_method');
BEGIN
    IF method OPERATOR(pg_catalog.<>) 'inplace' AND NOT to_heap THEN
        RAISE invalid_parameter_value USING
            MESSAGE = pg_catalog.format('cannot convert to access method "%s"', method),
            HINT = 'Use "inplace" or "heap".';
    END IF;

    -- From here on no partition comes or goes, and none is renamed.
    SELECT pg_catalog.count(*) INTO total
    FROM inplace.lock_convertible(rel) m
    WHERE m.relkind OPERATOR(pg_catalog.<>) 'p' AND (m.amname IS NULL OR m.amname OPERATOR(pg_catalog.<>) method);

    FOR member IN SELECT * FROM inplace.lock_convertible(rel)
    LOOP
        -- (late, for schemas are not locked; and it reads the catalogs as they are now)
        name := (pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass, member.relid, 0)).identity;
        IF member.relkind OPERATOR(pg_catalog.=) 'p' THEN
            -- A partitioned table has one from 17 on, for partitions to come; or none
            -- if that does as well, for that is what it had before.
            IF pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.<) 170000 THEN
                NULL;
            ELSIF to_heap AND heap_is_default THEN
                IF member.amname IS NOT NULL THEN
                    EXECUTE pg_catalog.format('ALTER TABLE %s SET ACCESS METHOD DEFAULT', name);
                END IF;
            ELSIF member.amname IS NULL OR member.amname OPERATOR(pg_catalog.<>) method THEN
                EXECUTE pg_catalog.format('ALTER TABLE %s SET ACCESS METHOD %I', name, method);
            END IF;
            CONTINUE;
        END IF;
        IF member.amname OPERATOR(pg_catalog.=) method THEN
            IF member.relid::pg_catalog.oid OPERATOR(pg_catalog.=) rel::pg_catalog.oid THEN
                RAISE NOTICE 'table "%" has access method % already', member.relname, method;
            END IF;
            CONTINUE;
        END IF;
        IF member.amname OPERATOR(pg_catalog.<>) 'heap' AND member.amname OPERATOR(pg_catalog.<>) 'inplace' THEN
            RAISE feature_not_supported USING
                MESSAGE = pg_catalog.format('cannot convert table "%s" of access method "%s"', member.relname, member.amname),
                DETAIL = 'Tables of the methods heap and inplace can be converted.';
        END IF;
        IF NOT to_heap AND member.catalog_table THEN
            RAISE feature_not_supported USING
                MESSAGE = pg_catalog.format('cannot convert table "%s": it is used as a user catalog table', member.relname),
                HINT = 'Reset its storage parameter user_catalog_table.';
        END IF;

        seen := seen OPERATOR(pg_catalog.+) 1;
        IF total OPERATOR(pg_catalog.>) 1 THEN
            RAISE NOTICE 'converting table "%" (% of %)', member.relname, seen, total;
        END IF;
        EXECUTE pg_catalog.format('ALTER %s %s SET ACCESS METHOD %I',
                                  CASE WHEN member.relkind OPERATOR(pg_catalog.=) 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END,
                                  name, method);
        done := done OPERATOR(pg_catalog.+) 1;
    END LOOP;

    -- The indexes afterwards: built by the rewrite, in parallel, they are what
    -- an index of the other method would be, so that only the catalogs change.
    PERFORM inplace.set_index_method(i.relid, i.amname)
    FROM inplace.convertible_indexes(rel, CASE WHEN to_heap THEN 'btree' ELSE 'inplace_btree' END::pg_catalog.name) i;
    RETURN done;
END $$;

COMMENT ON FUNCTION inplace.convert(regclass, text) IS
'moves a table or materialized view, or all partitions of a partitioned table, to access method inplace, or back to heap, with everything that belongs to it, and its indexes to inplace_btree or back to btree, but those of constraints; rewrites it under ACCESS EXCLUSIVE lock; returns the number of tables rewritten; owners only';

-- Locks a table and, if it is partitioned, all below it; says what they are now, but
-- for foreign tables.  (C, because a query's snapshot may be older than the lock.)
CREATE FUNCTION inplace.lock_convertible(
    rel regclass,
    OUT relid regclass,
    OUT relname name,
    OUT relkind "char",
    OUT amname name,
    OUT catalog_table boolean)
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_lock_convertible';

COMMENT ON FUNCTION inplace.lock_convertible(regclass) IS
'part of inplace.convert; owners only';

-- The indexes of a table, and of all below it, that can get the method, whole
-- trees of partitioned indexes or none of a tree.
CREATE FUNCTION inplace.convertible_indexes(
    rel regclass,
    method name,
    OUT relid regclass,
    OUT amname name)
RETURNS SETOF record
LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_convertible_indexes';

COMMENT ON FUNCTION inplace.convertible_indexes(regclass, name) IS
'part of inplace.convert';

CREATE FUNCTION inplace.advise(
    OUT rank bigint,
    OUT object regclass,
    OUT kind text,
    OUT on_table regclass,
    OUT updates bigint,
    OUT hot_updates bigint,
    OUT hot_share numeric,
    OUT newpage_updates bigint,
    OUT index_entries bigint,
    OUT dead_rows bigint,
    OUT size_bytes bigint,
    OUT bloat_bytes bigint,
    OUT wal_bytes bigint,
    OUT statement text)
RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS $$
WITH RECURSIVE tables AS (
    -- that are updated: heap tables, and inplace tables for their indexes
    SELECT c.oid, n.nspname, c.relname, a.amname = 'heap' AS heap, c.relpersistence = 'p' AS logged,
           c.reltuples::float8 AS rows,
           s.n_tup_upd AS updates, s.n_tup_hot_upd AS hot,
           greatest(s.n_tup_upd - s.n_tup_hot_upd, 0) AS moved,
           (to_jsonb(s) ->> 'n_tup_newpage_upd')::bigint AS newpage,
           s.n_dead_tup AS dead,
           pg_relation_size(c.oid) AS size,
           coalesce((SELECT o.option_value::float8
                     FROM pg_options_to_table(c.reloptions) o
                     WHERE o.option_name = 'fillfactor'), 100) / 100 AS fill
    FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_am a ON a.oid = c.relam
         JOIN pg_stat_all_tables s ON s.relid = c.oid
    WHERE a.amname IN ('heap', 'inplace') AND c.relkind IN ('r', 'm') AND c.oid >= 16384
      AND n.nspname NOT IN ('pg_catalog', 'pg_toast')
      AND c.relpersistence <> 't'
      AND pg_has_role(c.relowner, 'USAGE')
      AND s.n_tup_upd > 0
      AND NOT EXISTS (SELECT FROM pg_options_to_table(c.reloptions) o
                      WHERE o.option_name = 'user_catalog_table'
                        AND o.option_value::boolean)
), row_types AS (
    -- those of heap tables, and the types that are made of them
    SELECT t.oid AS table_oid, c.reltype AS type
    FROM tables t JOIN pg_class c ON c.oid = t.oid
    WHERE t.heap
    UNION
    SELECT r.table_oid, CASE WHEN d.classid = 'pg_type'::regclass THEN d.objid ELSE c.reltype END
    FROM row_types r
         JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
         LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                                 AND d.objsubid > 0 AND c.relkind NOT IN ('r', 'm', 'p')
    WHERE d.classid = 'pg_type'::regclass OR c.reltype <> 0
), stored AS (
    -- heap tables whose row type a column has, of a table or an index: these are not
    -- rewritten (an index depends on types as a whole)
    SELECT r.table_oid
    FROM row_types r
         JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = r.type
                             AND d.classid = 'pg_class'::regclass
         JOIN pg_class c ON c.oid = d.objid AND c.relkind IN ('r', 'm', 'p', 'i', 'I')
         JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
                                AND CASE WHEN d.objsubid > 0 THEN a.attnum = d.objsubid
                                         ELSE a.attnum > 0 AND a.atttypid = r.type END
), convertible AS (
    -- btree indexes of inplace tables that can be inplace_btree, with all of a
    -- partitioned index, for whoever owns all that is below it
    SELECT x.relid
    FROM (SELECT DISTINCT coalesce(pg_partition_root(t.oid), t.oid) AS root
          FROM tables t
          WHERE NOT t.heap AND t.moved > 0) r
         CROSS JOIN LATERAL inplace.convertible_indexes(r.root::regclass, 'inplace_btree'::name) x
    WHERE NOT EXISTS (SELECT FROM pg_partition_tree(pg_partition_root(x.relid)) p
                           JOIN pg_class c ON c.oid = p.relid
                      WHERE NOT pg_has_role(c.relowner, 'USAGE'))
), indexes AS (
    -- each gets an entry by every update that is not HOT
    SELECT i.indexrelid, i.indrelid, i.indkey::smallint[] AS keys, a.amname,
           c.relname, n.nspname, c.relispartition, c.reltuples::float8 AS rows,
           pg_relation_size(i.indexrelid) AS size,
           coalesce((SELECT o.option_value::float8
                     FROM pg_options_to_table(c.reloptions) o
                     WHERE o.option_name = 'fillfactor'), 90) / 100 AS fill
    FROM pg_index i
         JOIN tables t ON t.oid = i.indrelid
         JOIN pg_class c ON c.oid = i.indexrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_am a ON a.oid = c.relam
    WHERE i.indisvalid AND i.indrelid NOT IN (SELECT s.table_oid FROM stored s)
      AND CASE WHEN t.heap
               THEN a.amname <> 'brin' OR current_setting('server_version_num')::integer < 160000
               ELSE i.indexrelid IN (SELECT x.relid FROM convertible x) END
), widths AS (
    -- bytes of a column on average, nulls included; virtual ones are not stored
    SELECT a.attrelid, a.attnum,
           coalesce((SELECT (1 - st.null_frac) * st.avg_width
                     FROM pg_stats st
                     WHERE st.schemaname = n.nspname AND st.tablename = c.relname
                       AND st.attname = a.attname AND NOT st.inherited),
                    CASE WHEN a.attlen > 0 THEN a.attlen ELSE 32 END) AS width
    FROM pg_attribute a
         JOIN pg_class c ON c.oid = a.attrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'
      AND (c.oid IN (SELECT t.oid FROM tables t)
           OR c.oid IN (SELECT i.indexrelid FROM indexes i))
), blocks AS (
    SELECT current_setting('block_size')::float8 AS size
), estimates AS (
    SELECT t.oid AS object, 'table' AS kind, t.oid AS on_table, t.size,
           t.moved * (SELECT count(*) FROM indexes i WHERE i.indrelid = t.oid) AS entries,
           -- header 24, line pointer 4, page header 24
           CASE WHEN t.rows >= 0 THEN
               ceil(t.rows * (ceil((24 + w.width) / 8) * 8 + 4) / ((b.size - 24) * t.fill)) * b.size
           END AS ideal,
           CASE WHEN t.logged THEN t.updates * (70 + w.width) ELSE 0 END AS wal,
           format('SELECT inplace.convert(%L)', format('%I.%I', t.nspname, t.relname)) AS statement
    FROM tables t
         CROSS JOIN blocks b
         CROSS JOIN LATERAL (SELECT coalesce(sum(x.width), 0) AS width
                             FROM widths x WHERE x.attrelid = t.oid) w
    WHERE t.heap AND t.oid NOT IN (SELECT s.table_oid FROM stored s)
    UNION ALL
    SELECT i.indexrelid, 'index', i.indrelid, i.size,
           t.moved,
           -- header 8, line pointer 4, page header 24 and special space 16
           CASE WHEN i.amname = 'btree' AND t.rows >= 0 AND i.rows >= 0 THEN
               (1 + ceil(i.rows * (ceil((8 + w.width) / 8) * 8 + 4) / ((b.size - 40) * i.fill))) * b.size
           END,
           CASE WHEN t.logged THEN t.moved * (64 + w.width) ELSE 0 END,
           CASE WHEN t.heap THEN
               format('SELECT inplace.convert(%L)', format('%I.%I', t.nspname, t.relname))
           WHEN NOT i.relispartition THEN
               format('SELECT inplace.set_index_method(%L, %L)', format('%I.%I', i.nspname, i.relname), 'inplace_btree')
           ELSE
               format('SELECT inplace.set_index_method(relid, %L) FROM pg_catalog.pg_partition_tree(%L)', 'inplace_btree',
                      (SELECT format('%I.%I', n.nspname, c.relname)
                       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                       WHERE c.oid = pg_partition_root(i.indexrelid)))
           END
    FROM indexes i
         JOIN tables t ON t.oid = i.indrelid
         CROSS JOIN blocks b
         CROSS JOIN LATERAL (SELECT coalesce(sum(coalesce(tw.width, iw.width)), 0) AS width
                             FROM unnest(i.keys) WITH ORDINALITY k(attnum, n)
                                  JOIN widths iw ON iw.attrelid = i.indexrelid AND iw.attnum = k.n
                                  LEFT JOIN widths tw ON tw.attrelid = i.indrelid AND tw.attnum = k.attnum) w
), gains AS (
    SELECT e.object, e.kind, e.on_table, e.size, e.entries, e.statement,
           CASE WHEN e.ideal IS NOT NULL THEN greatest(e.size - e.ideal, 0)::bigint END AS bloat,
           e.wal::bigint AS wal
    FROM estimates e
)
-- an index that only changes its method is not built anew, and keeps its bloat
SELECT row_number() OVER (ORDER BY g.wal + CASE WHEN t.heap THEN coalesce(g.bloat, 0) ELSE 0 END DESC, g.object),
       g.object::regclass, g.kind, g.on_table::regclass, t.updates, t.hot,
       round(t.hot::numeric / t.updates, 4), t.newpage, g.entries, t.dead, g.size,
       g.bloat, g.wal, g.statement
FROM gains g JOIN tables t ON t.oid = g.on_table
WHERE g.kind = 'table' OR g.entries > 0 OR (t.heap AND g.bloat > 0)
ORDER BY 1
$$;

COMMENT ON FUNCTION inplace.advise() IS
'the caller''s heap tables that are updated, their indexes, and the btree indexes of inplace tables that make updates move rows: those that would gain most from access methods inplace and inplace_btree first, with the numbers that say so and the statement to run';

-- Adaptive freezing.

CREATE FUNCTION inplace.freeze_stats(
    rel oid,
    OUT all_visible_sets bigint,
    OUT all_visible_unsets bigint,
    OUT all_frozen_sets bigint,
    OUT all_frozen_unsets bigint,
    OUT early_unsets bigint,
    OUT early_frozen_unsets bigint,
    OUT pages_frozen bigint,
    OUT observations double precision,
    OUT mean_seconds double precision,
    OUT deviation_seconds double precision,
    OUT threshold_seconds double precision,
    OUT fill_observations double precision,
    OUT fill_probability double precision,
    OUT target_seconds integer)
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_stats';

COMMENT ON FUNCTION inplace.freeze_stats(oid) IS
'behind the view inplace.stat_freeze';

CREATE FUNCTION inplace.set_freeze_options(
    rel regclass,
    adaptive_freezing boolean DEFAULT NULL,
    target_freeze_duration integer DEFAULT NULL) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_set_freeze_options';

COMMENT ON FUNCTION inplace.set_freeze_options(regclass, boolean, integer) IS
'gives a table values of its own for inplace.adaptive_freezing and inplace.target_freeze_duration (seconds), or, if null, takes them away; for its owner';

CREATE FUNCTION inplace.freeze_options(
    rel oid,
    OUT adaptive_freezing boolean,
    OUT target_freeze_duration integer)
LANGUAGE C STRICT STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_options';

COMMENT ON FUNCTION inplace.freeze_options(oid) IS
'what a VACUUM of the table by this session would go by: the table''s own values, else the settings';

CREATE VIEW inplace.stat_freeze AS
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname, s.*, o.*
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amhandler = 'inplace.table_handler'::pg_catalog.regproc
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL inplace.freeze_stats(c.oid) s
CROSS JOIN LATERAL inplace.freeze_options(c.oid) o
WHERE c.relkind IN ('r', 'm');

COMMENT ON VIEW inplace.stat_freeze IS
'adaptive freezing: how long pages of each table stay unchanged';
COMMENT ON COLUMN inplace.stat_freeze.relid IS
'OID of the table';
COMMENT ON COLUMN inplace.stat_freeze.schemaname IS
'schema of the table';
COMMENT ON COLUMN inplace.stat_freeze.relname IS
'name of the table';
COMMENT ON COLUMN inplace.stat_freeze.all_visible_sets IS
'times that VACUUM, or COPY FREEZE, set a page all-visible';
COMMENT ON COLUMN inplace.stat_freeze.all_visible_unsets IS
'times that a change took that back';
COMMENT ON COLUMN inplace.stat_freeze.all_frozen_sets IS
'times that VACUUM, or COPY FREEZE, set a page all-frozen';
COMMENT ON COLUMN inplace.stat_freeze.all_frozen_unsets IS
'times that a change, or a row lock, took that back';
COMMENT ON COLUMN inplace.stat_freeze.early_unsets IS
'unsets by update, delete or lock that came sooner than the target duration after VACUUM''s work on the page';
COMMENT ON COLUMN inplace.stat_freeze.early_frozen_unsets IS
'unsets of all-frozen of pages with rows, by inserts as well, that came so early: freezing that was in vain';
COMMENT ON COLUMN inplace.stat_freeze.pages_frozen IS
'times that VACUUM froze rows of a page';
COMMENT ON COLUMN inplace.stat_freeze.observations IS
'weight of the observed durations, until rows were updated, deleted or locked; halved when there are too many';
COMMENT ON COLUMN inplace.stat_freeze.mean_seconds IS
'mean of the observed durations';
COMMENT ON COLUMN inplace.stat_freeze.deviation_seconds IS
'standard deviation of the observed durations';
COMMENT ON COLUMN inplace.stat_freeze.threshold_seconds IS
'youngest age at which VACUUM freezes a page without room; null if none';
COMMENT ON COLUMN inplace.stat_freeze.fill_observations IS
'weight of the observed durations until rows were inserted into a page with room';
COMMENT ON COLUMN inplace.stat_freeze.fill_probability IS
'chance that a page with room gets a row within the target duration; null if too little is known';
COMMENT ON COLUMN inplace.stat_freeze.target_seconds IS
'the target duration that the last VACUUM went by';
COMMENT ON COLUMN inplace.stat_freeze.adaptive_freezing IS
'what a VACUUM by this session would go by';
COMMENT ON COLUMN inplace.stat_freeze.target_freeze_duration IS
'what a VACUUM by this session would go by, in seconds';

GRANT SELECT ON inplace.stat_freeze TO PUBLIC;

CREATE FUNCTION inplace.freeze_probability(
    durations double precision[],
    sets double precision,
    age double precision,
    target double precision) RETURNS double precision
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_probability';

COMMENT ON FUNCTION inplace.freeze_probability(double precision[], double precision, double precision, double precision) IS
'chance that a page of this age is changed within the target duration, in seconds, if of so many pages set all-visible some were changed after these durations';

CREATE FUNCTION inplace.freeze_worthwhile(
    durations double precision[],
    sets double precision,
    age double precision,
    target double precision) RETURNS boolean
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_worthwhile';

COMMENT ON FUNCTION inplace.freeze_worthwhile(double precision[], double precision, double precision, double precision) IS
'whether adaptive freezing would freeze a page of this age, given the same: less than 5 % chance of a change, or too few observations';

CREATE FUNCTION inplace.visibility_summary(
    rel regclass,
    OUT age_from interval,
    OUT age_to interval,
    OUT pages bigint,
    OUT all_visible bigint,
    OUT all_frozen bigint)
RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'inplace_visibility_summary';

COMMENT ON FUNCTION inplace.visibility_summary(regclass) IS
'pages of an inplace table by the time since their last change, how many of these are all-visible and all-frozen; reads the whole table';

REVOKE ALL ON FUNCTION inplace.visibility_summary(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION inplace.visibility_summary(regclass) TO pg_stat_scan_tables;
