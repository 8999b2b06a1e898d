-- Every built-in type, and every kind of type of one's own: a round trip, with
-- NULLs among them, updated one by one; heap is the measure.
CREATE TYPE ty_enum AS ENUM ('small', 'medium', 'large');
CREATE TYPE ty_comp AS (a int, b text);
CREATE DOMAIN ty_dom AS int CHECK (value > 0);
CREATE TYPE ty_range AS RANGE (subtype = float8);
CREATE TABLE ty_list (n serial, typ text, v1 text, v2 text);
INSERT INTO ty_list (typ, v1, v2) VALUES
('bool', 'true', 'false'),
('smallint', '-32768', '32767'),
('int', '-2147483648', '2147483647'),
('bigint', '-9223372036854775808', '9223372036854775807'),
('real', '1.5', '-0'),
('float8', '1e300', 'NaN'),
('numeric', '123456789012345678901234567890.000100', '-0.00'),
('numeric(10,3)', '1.5', 'NaN'),
('money', '12.34', '-99999.99'),
('"char"', 'a', 'z'),
('name', 'a_name', 'another_name_that_is_rather_long_for_a_name'),
('char(10)', 'ab', '0123456789'),
('varchar(20)', 'vc', ''),
('text', 'text', 'a much longer text, longer than the first one was, and even longer than a hundred and twenty-six bytes so that it has a header of four bytes'),
('bytea', '\x00ff', '\x'),
('date', '2024-02-29', 'infinity'),
('time', '12:34:56.789', '24:00:00'),
('timetz', '12:34:56+05:30', '00:00:00-08'),
('timestamp', '2024-02-29 12:34:56.789', '-infinity'),
('timestamptz', '2024-02-29 12:34:56+00', '4713-01-01 00:00:00+00 BC'),
('interval', '1 year 2 mons 3 days 04:05:06', '-1 days'),
('uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '00000000-0000-0000-0000-000000000000'),
('inet', '192.168.1.5/24', '::ffff:1.2.3.4/128'),
('cidr', '192.168.100.128/25', '2001:4f8:3:ba::/64'),
('macaddr', '08:00:2b:01:02:03', 'ff:ff:ff:ff:ff:ff'),
('macaddr8', '08:00:2b:01:02:03:04:05', 'ff:ff:ff:ff:ff:ff:ff:ff'),
('bit(3)', '101', '000'),
('varbit', '1', '10101010101010101010'),
('point', '(1,2)', '(-1e10,3.5)'),
('line', '{1,2,3}', '{0,1,-1}'),
('lseg', '[(0,0),(1,1)]', '[(5,5),(6,6)]'),
('box', '(3,3),(1,1)', '(0,0),(0,0)'),
('path', '((0,0),(1,1),(2,0))', '[(0,0),(1,1)]'),
('polygon', '((0,0),(1,1),(2,0))', '((0,0),(10,10),(20,0),(5,5))'),
('circle', '<(1,2),3>', '<(0,0),0>'),
('json', '{"a": [1, 2]}', '[]'),
('jsonb', '{"a": [1, 2], "b": null}', '"scalar"'),
('jsonpath', '$."a"[*]', 'strict $'),
('tsvector', '''a'':1 ''b'':2', '''word'''),
('tsquery', '''a'' & ''b''', '!''c'''),
('int4range', '[1,5)', 'empty'),
('int8range', '[1,)', '(,)'),
('numrange', '[1.1,2.2]', '(,0)'),
('daterange', '[2024-01-01,2024-02-01)', '(,)'),
('tsrange', '[2024-01-01 00:00,2024-02-01 00:00)', 'empty'),
('tstzrange', '[2024-01-01 00:00+00,)', 'empty'),
('int4multirange', '{[1,3),[5,7)}', '{}'),
('nummultirange', '{[1.5,2.5)}', '{(,)}'),
('datemultirange', '{[2024-01-01,2024-02-01)}', '{}'),
('oid', '42', '4294967295'),
('xid', '3', '4294967295'),
('xid8', '3', '18446744073709551615'),
('cid', '1', '4294967295'),
('tid', '(0,1)', '(4294967295,65535)'),
('pg_lsn', '0/16B3748', 'FFFFFFFF/FFFFFFFF'),
('pg_snapshot', '10:20:10,14', '1:1:'),
('txid_snapshot', '10:20:10,14', '1:1:'),
('regclass', 'pg_class', 'pg_type'),
('regtype', 'integer', 'text[]'),
('regproc', 'boolin', 'boolout'),
('regprocedure', 'abs(integer)', 'lower(text)'),
('regoper', '||/', '!!'),
('regoperator', '+(integer,integer)', '-(integer,integer)'),
('regrole', 'pg_monitor', 'pg_read_all_data'),
('regnamespace', 'pg_catalog', 'public'),
('regconfig', 'english', 'simple'),
('regdictionary', 'simple', 'english_stem'),
('regcollation', '"C"', '"POSIX"'),
('refcursor', 'cur', 'cursor two'),
('int2vector', '1 2 3', ''),
('oidvector', '1 2 3', '4'),
('aclitem', 'postgres=r/postgres', '=w/postgres'),
('int[]', '{1,2,NULL,4}', '{}'),
('text[]', '{a,"b c",NULL}', '{{1,2},{3,4}}'),
('numeric[]', '{1.5,NaN}', '[2:3]={1,2}'),
('point[]', '{"(1,2)","(3,4)"}', '{}'),
('bool[]', '{t,f,NULL}', '{t}'),
('jsonb[]', '{"{\"a\": 1}"}', '{}'),
('int8multirange', '{[1,3)}', '{}'),
('tsmultirange', '{[2024-01-01 00:00,2024-02-01 00:00)}', '{}'),
('tstzmultirange', '{[2024-01-01 00:00+00,2024-02-01 00:00+00)}', '{}'),
('ty_enum', 'small', 'large'),
('ty_comp', '(1,text)', '(,)'),
('ty_dom', '5', '7'),
('ty_comp[]', '{"(1,a)"}', '{}'),
('ty_range', '[1.5,2.5)', 'empty');
-- which are missing here?
SELECT t.typname FROM pg_type t
WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype IN ('b', 'r', 'm') AND t.typcategory <> 'A'
  AND t.oid NOT IN (SELECT typ::regtype FROM ty_list) AND t.typname NOT LIKE 'pg\_%' AND t.oid < 10000
  AND t.typname NOT IN ('xml', 'gtsvector')
ORDER BY 1;

-- A table of all of them, in rows of values 1, values 2, NULLs, and mixed.
DO $$
DECLARE r record; m text; cols text := '';
BEGIN
    FOR r IN SELECT * FROM ty_list ORDER BY n LOOP
        cols := cols || format(', c%s %s', r.n, r.typ);
    END LOOP;
    EXECUTE 'CREATE TABLE ty_h (id int PRIMARY KEY' || cols || ') USING heap';
    EXECUTE 'CREATE TABLE ty_i (id int PRIMARY KEY' || cols || ') USING inplace';
END $$;
CREATE FUNCTION ty_expr(n int, typ text, v text) RETURNS text LANGUAGE sql AS $$ SELECT format('%L::%s', v, typ) $$;
SELECT 'INSERT INTO $T VALUES (1, ' || string_agg(ty_expr(n, typ, v1), ', ' ORDER BY n) || '), (2, '
    || string_agg(ty_expr(n, typ, v2), ', ' ORDER BY n) || ')' AS ins,
    'INSERT INTO $T VALUES (4, ' || string_agg(CASE WHEN n % 2 = 0 THEN 'NULL' ELSE ty_expr(n, typ, v1) END, ', ' ORDER BY n) || '), (5, '
    || string_agg(CASE WHEN n % 3 = 0 THEN 'NULL' ELSE ty_expr(n, typ, v2) END, ', ' ORDER BY n) || ')' AS mixed
FROM ty_list \gset
SELECT do_both('ty', :'ins');
SELECT do_both('ty', 'INSERT INTO $T (id) VALUES (3)');
SELECT do_both('ty', :'mixed');
SELECT twins('ty');
-- the texts come back
DO $$
DECLARE r record; a text; b text; c text;
BEGIN
    FOR r IN SELECT * FROM ty_list ORDER BY n LOOP
        EXECUTE format('SELECT (SELECT c%s::text FROM ty_i WHERE id = 1), (SELECT c%s::text FROM ty_i WHERE id = 2), (SELECT c%s::text FROM ty_i WHERE id = 3)', r.n, r.n, r.n) INTO a, b, c;
        EXECUTE format('SELECT %L::%s::text, %L::%s::text', r.v1, r.typ, r.v2, r.typ) INTO r.v1, r.v2;
        IF a IS DISTINCT FROM r.v1 OR b IS DISTINCT FROM r.v2 OR c IS NOT NULL THEN
            RAISE NOTICE '%: % % %', r.typ, a, b, c;
        END IF;
    END LOOP;
END $$;
-- one column at a time, in each row, to each value
DO $$
DECLARE r record; res text; v text;
BEGIN
    FOR r IN SELECT * FROM ty_list ORDER BY n LOOP
        FOREACH v IN ARRAY ARRAY[ty_expr(r.n, r.typ, r.v2), 'NULL', ty_expr(r.n, r.typ, r.v1)] LOOP
            res := do_both('ty', format('UPDATE $T SET c%s = %s WHERE id <= 4', r.n, v));
            IF res <> 'same' OR twins('ty') <> 'equal' THEN
                RAISE NOTICE '% := %: % %', r.typ, v, res, twins('ty');
            END IF;
        END LOOP;
    END LOOP;
END $$;
SELECT twins('ty');
-- a shuffle: every column from another row, rolled back; then kept
BEGIN;
SELECT 'UPDATE $T t SET ' || string_agg(format('c%s = s.c%s', n, n), ', ') || ' FROM $T s WHERE s.id = t.id % 5 + 1' AS shuffle FROM ty_list \gset
SELECT do_both('ty', :'shuffle');
SELECT twins('ty');
ROLLBACK;
SELECT twins('ty');
SELECT do_both('ty', :'shuffle');
SELECT twins('ty');
-- as table of one column each, with an old snapshot reading back through undo
DO $$
DECLARE r record; c refcursor; a text; b text;
BEGIN
    FOR r IN SELECT * FROM ty_list ORDER BY n LOOP
        EXECUTE format('CREATE TABLE ty_one (id int, c %s, tail int) USING inplace', r.typ);
        EXECUTE format('INSERT INTO ty_one VALUES (1, %L, 7), (2, %L, 7), (3, NULL, NULL)', r.v1, r.v2);
        a := (SELECT string_agg(t::text, ',' ORDER BY id) FROM ty_one t);
        OPEN c NO SCROLL FOR EXECUTE 'SELECT string_agg(t::text, '','' ORDER BY id) FROM ty_one t';
        EXECUTE format('UPDATE ty_one SET c = CASE id WHEN 1 THEN %L::%s WHEN 3 THEN %L::%s END, tail = id', r.v2, r.typ, r.v1, r.typ);
        EXECUTE format('UPDATE ty_one SET c = NULL, tail = NULL');
        FETCH c INTO b;
        CLOSE c;
        IF a IS DISTINCT FROM b THEN RAISE NOTICE '%: % instead of %', r.typ, b, a; END IF;
        DROP TABLE ty_one;
    END LOOP;
END $$;

SELECT * FROM check_all();
