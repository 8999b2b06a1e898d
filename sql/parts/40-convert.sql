
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
