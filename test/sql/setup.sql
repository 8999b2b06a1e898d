-- The extension, and what the other files use.
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS inplace CASCADE;
RESET client_min_messages;
CREATE EXTENSION inplace;
SELECT amname, amtype FROM pg_am WHERE amname LIKE 'inplace%' ORDER BY 1;

-- Until nobody else has a snapshot, or an xid (autovacuum, the undo worker): then VACUUM
-- can do all that it is to do.
CREATE PROCEDURE wait_for_others() LANGUAGE plpgsql AS $$
BEGIN
    WHILE EXISTS (SELECT FROM pg_stat_activity
                  WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
                    AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL))
    LOOP
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP;
END $$;

-- The findings of inplace.check on every inplace table of the database.
CREATE FUNCTION check_all(OUT rel text, OUT block bigint, OUT item int,
                          OUT index text, OUT severity text, OUT problem text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE r regclass;
BEGIN
    FOR r IN SELECT c.oid FROM pg_class c JOIN pg_am a ON a.oid = c.relam
             WHERE a.amname = 'inplace' AND c.relkind IN ('r', 'm')
               AND NOT pg_is_other_temp_schema(c.relnamespace)
             ORDER BY c.oid::regclass::text
    LOOP
        RETURN QUERY SELECT r::text, k.block, k.item, k.index::text, k.severity, k.problem
                     FROM inplace.check(r) k;
    END LOOP;
END $$;

-- Runs a statement on the table NAME_h (heap) and then NAME_i (inplace), $T
-- standing for the table; complains if they do not do the same.  Statements
-- that return rows are compared row by row, sorted.
CREATE FUNCTION do_both(name text, stmt text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    res text[] := '{}';
    m text;
    q text;
    r record;
    out text;
    n bigint;
BEGIN
    FOREACH m IN ARRAY ARRAY['h', 'i'] LOOP
        q := replace(stmt, '$T', name || '_' || m);
        BEGIN
            IF stmt ~* '^\s*(select|values|table)\M' OR stmt ~* '\mreturning\M' THEN
                EXECUTE 'WITH s AS (' || q || ') SELECT string_agg(s::text, E''\n'' ORDER BY s::text COLLATE "C") FROM s' INTO out;
            ELSE
                EXECUTE q;
                GET DIAGNOSTICS n = ROW_COUNT;
                out := n;
            END IF;
        EXCEPTION WHEN others THEN
            out := sqlstate || ' ' || sqlerrm;
        END;
        res := res || replace(coalesce(out, 'null'), name || '_' || m, name);
    END LOOP;
    IF res[1] IS DISTINCT FROM res[2] THEN
        RETURN 'DIFFERS: heap ' || res[1] || ' inplace ' || res[2];
    END IF;
    RETURN 'same';
END $$;

-- Do the tables NAME_h and NAME_i have the same rows?
CREATE FUNCTION twins(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n bigint; m bigint; c bigint; d bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM (SELECT t::text FROM %I t EXCEPT ALL SELECT t::text FROM %I t) s', name || '_h', name || '_i') INTO n;
    EXECUTE format('SELECT count(*) FROM (SELECT t::text FROM %I t EXCEPT ALL SELECT t::text FROM %I t) s', name || '_i', name || '_h') INTO m;
    IF n = 0 AND m = 0 THEN RETURN 'equal'; END IF;
    RETURN format('%s rows in heap only, %s rows in inplace only', n, m);
END $$;

SELECT * FROM check_all();
