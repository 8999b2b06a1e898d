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
