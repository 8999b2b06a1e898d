-- What a statement keeps in memory does not grow with its rows.
CREATE FUNCTION used_memory() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT max(used_bytes) FROM pg_backend_memory_contexts WHERE name = 'ExecutorState' $$;
-- the value, having complained if the statement has used 1 MB by now
CREATE FUNCTION looked_at(v anyelement, what text) RETURNS anyelement LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF used_memory() > 1000000 THEN
        RAISE NOTICE '%: more than 1 MB', what;
    END IF;
    RETURN v;
END $$;

-- the statement looks at what it has used at its last row
CREATE FUNCTION last_row(i int, what text) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN CASE WHEN i % 3000 = 0 THEN looked_at(i, what) ELSE i END;
END $$;
CREATE FUNCTION as_it_is() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.n = new.n + 1; RETURN new; END';


CREATE PROCEDURE memory_of(am text) LANGUAGE plpgsql AS $$
DECLARE
    s text;
BEGIN
    EXECUTE format('SET LOCAL default_table_access_method = %I', am);
    CREATE TABLE mem (id int, n int, pad text, big text, t text, c char(1000));
    ALTER TABLE mem ALTER pad SET STORAGE plain, ALTER big SET STORAGE external;
    EXECUTE format('CREATE INDEX mem_lower ON mem (lower(t)); CREATE INDEX mem_part ON mem (n) WHERE t LIKE %L', 't%');
    FOREACH s IN ARRAY ARRAY[
        'INSERT INTO mem SELECT last_row(g, $1), g, repeat(''p'', 1000), repeat(''b'', 2500), ''t'' || g, ''c'' FROM generate_series(1, 3000) g',
        'UPDATE mem SET n = last_row(id, $1)',
        'UPDATE mem SET t = ''t'' || last_row(id, $1) + 10000',
        'UPDATE mem SET t = CASE WHEN last_row(id, $1) > 0 THEN upper(t) END',
        'UPDATE mem SET t = repeat(''t'' || last_row(id, $1), 100)',
        'UPDATE mem SET c = last_row(id, $1)::text',
        'UPDATE mem SET big = repeat(''x'', 2500 + last_row(id, $1) % 2)',
        'SELECT count(last_row(id, $1)) FROM (SELECT id FROM mem FOR UPDATE) x',
        'UPDATE mem SET n = last_row(g, $1) FROM generate_series(1, 3000) g WHERE id = 1',
        'DELETE FROM mem WHERE id % 2 = 0 AND last_row(id, $1) > 0',
        'INSERT INTO mem SELECT last_row(g, $1), g, repeat(''p'', 1000), NULL, ''u'' || g, ''c'' FROM generate_series(1, 3000) g',
        'CREATE TRIGGER as_it_is BEFORE INSERT OR UPDATE ON mem FOR EACH ROW EXECUTE FUNCTION as_it_is()',
        'UPDATE mem SET n = last_row(id, $1)',
        'INSERT INTO mem SELECT last_row(g, $1), g, repeat(''p'', 1000), NULL, ''v'' || g, ''c'' FROM generate_series(1, 3000) g',
        'CREATE TRIGGER changed BEFORE INSERT OR UPDATE ON mem FOR EACH ROW EXECUTE FUNCTION changed()',
        'UPDATE mem SET n = last_row(id, $1)',
        'INSERT INTO mem SELECT last_row(g, $1), g, repeat(''p'', 1000), NULL, ''w'' || g, ''c'' FROM generate_series(1, 3000) g'
    ] LOOP
        IF s LIKE 'CREATE%' THEN
            EXECUTE s;
        ELSE
            EXECUTE s USING am || ': ' || left(s, 40);
        END IF;
    END LOOP;
    RAISE NOTICE '%: % rows', am, (SELECT count(*) FROM mem);
    DROP TABLE mem;
END $$;
CALL memory_of('heap');
CALL memory_of('inplace');
DROP PROCEDURE memory_of;
DROP FUNCTION used_memory, looked_at, last_row, as_it_is, changed;

-- Nor does a session keep what it has found out about indexes that are gone.
CREATE PROCEDURE forget_indexes(n int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..n LOOP
        CREATE TEMP TABLE gone (a int, b text) USING inplace;
        CREATE UNIQUE INDEX ON gone USING inplace_btree (lower(b)) WHERE a > 0;
        INSERT INTO gone VALUES (1, 'a'), (2, 'b');
        UPDATE gone SET b = 'c' WHERE a = 1;
        DROP TABLE gone;
        COMMIT;
    END LOOP;
END $$;
CALL forget_indexes(20);
SELECT count(*) < 10 AS few FROM pg_backend_memory_contexts WHERE name = 'inplace index key';
DROP PROCEDURE forget_indexes;
