-- Index expressions are recomputed by other sessions: an update of what they are
-- computed from is in place if all they consist of is known to come out the same
-- there (safe_functions.c).  Else it is if the key stays what it was, or the row moves.
CREATE SCHEMA sf;
SET search_path = sf, inplace, public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE FUNCTION shapes(expr text, OUT stays bool, OUT finds bigint) LANGUAGE plpgsql AS $$
DECLARE before tid; after tid;
BEGIN
	DROP TABLE IF EXISTS g;
	CREATE TABLE g (a int, big bigint, f float8, n numeric, b text, vc varchar(20), c char(5), nm name, by bytea, d date, tm time, ts timestamp, tz timestamptz, iv interval,
		j jsonb, js json, u uuid, ip inet, arr int[], r int4range, m mood, m2 money, bits bit(4), p point, l pg_lsn, vec tsvector) USING inplace;
	INSERT INTO g VALUES (1, 2, 1.5, 2.5, 'One', 'vc', 'c', 'nm', '\x01', '2020-01-01', '10:00', '2020-01-01 10:00', '2020-01-01 10:00+00', '1 day',
		'{"a": 1}', '{"a": "x"}', '00000000-0000-0000-0000-000000000001', '10.0.0.1', '{1,2}', '[1,5)', 'sad', '1.00', '1010', '(1,2)', '0/1000000', 'one:1');
	EXECUTE format('CREATE INDEX ON g USING inplace_btree ((%s))', expr);
	SELECT ctid INTO before FROM g;
	UPDATE g SET a = 2, big = 5, f = 2.25, n = 7.25, b = 'Two', vc = 'cv', c = 'cc', nm = 'mn', by = '\x0203', d = '2021-02-02', tm = '20:00', ts = '2021-02-02 20:00', tz = '2021-02-02 20:00+00', iv = '2 days',
		j = '{"a": 2}', js = '{"a": "y"}', u = '00000000-0000-0000-0000-000000000002', ip = '10.0.1.2', arr = '{3,4,5}', r = '[3,9)', m = 'happy', m2 = '2.00', bits = '0101', p = '(3,4)', l = '0/3000000', vec = 'one:1 two:2'
		RETURNING ctid INTO after;
	stays := before = after;
	SET LOCAL enable_seqscan = off;
	EXECUTE format('SELECT count(*) FROM g WHERE (%1$s) = (SELECT %1$s FROM g)', expr) INTO finds;
	SET LOCAL enable_seqscan = on;
END $$;
SET client_min_messages = warning;
-- in place
SELECT e, s.* FROM unnest(ARRAY['a + 1', 'a * big', '-f', 'f / 2', 'round(n)', 'n * 3', 'trunc(n, 1)', 'a::numeric', 'n::int', 'f::numeric', 'a::text', 'b::varchar(2)', 'lower(b)', 'upper(b COLLATE "C")', 'initcap(vc)',
	'left(b, 2)', 'substr(b, 1, 2)', 'b || vc', 'length(b)', 'replace(b, ''o'', ''0'')', 'md5(b)', 'split_part(b, ''w'', 1)', 'btrim(c)', 'reverse(b)', 'strpos(b, ''o'')', 'regexp_replace(b, ''[a-z]'', '''')', 'b LIKE ''T%''', 'b ~ ''^T''',
	'starts_with(b, ''T'')', 'nm::text', 'hashtext(b)', 'big::oid', 'd + 7', 'd - date ''2000-01-01''', 'extract(year FROM d)', 'date_trunc(''month'', ts)', 'ts::date', 'ts - interval ''1 day''', 'tz AT TIME ZONE interval ''1 hour''',
	'tz > ''2021-01-01 00:00+00''', 'iv * 2', 'make_date(a, 1, 1)', 'age(ts, ''2000-01-01'')', 'tz - ''2000-01-01 00:00+00''::timestamptz', 'j -> ''a''', 'j ->> ''a''', 'j #>> ''{a}''', '(j ->> ''a'')::int', 'j @> ''{"a": 2}''', 'j ? ''b''',
	'js ->> ''a''', 'jsonb_typeof(j)', 'j[''a'']', 'encode(by, ''hex'')', 'length(by)', 'arr[1]', 'array_length(arr, 1)', 'arr || 1', 'a = ANY (arr)', 'lower(r)', 'r && ''[8,20)''', 'host(ip)', 'ip << ''10.0.0.0/24''',
	'u', 'm', 'm = ANY (''{sad,ok}'')', 'greatest(a, 2)', 'coalesce(a, 0)', 'nullif(a, 1)', 'CASE WHEN a > 1 THEN b ELSE vc END', '(a, b) < (2, ''x'')', 'a IS DISTINCT FROM 1', 'bits | B''0001''', 'l - ''0/0''::pg_lsn'])
	WITH ORDINALITY x(e, i), LATERAL shapes(e) s ORDER BY i;
-- moved: settings, time zones, mathematics, what differs between releases, and what has not been looked at
SELECT e, s.* FROM unnest(ARRAY['f::text', 'by::text', 'age(tz, ''2000-01-01 00:00+00''::timestamptz)', 'tz AT TIME ZONE ''UTC''', 'ts AT TIME ZONE ''Europe/Berlin''', 'pg_walfile_name(l)', 'quote_ident(b)', 'm2 * 2',
	'sin(f)', 'n ^ 2', 'ln(n)', 'extract(day FROM iv)', 'b::"char"::text', 'pg_size_pretty(big)', 'jsonb_path_query_first(j, ''$.a'')', 'strip(vec)', 'p[0]'])
	WITH ORDINALITY x(e, i), LATERAL shapes(e) s ORDER BY i;
RESET client_min_messages;

-- The list is about the functions that it names, and whatever else the server has that
-- could be in an index has been looked at: a new release shows what is new.
CREATE FUNCTION safe_name(oid) RETURNS text LANGUAGE c STRICT AS '$libdir/inplace', 'inplace_safe_function_name';
SELECT oid, proname, safe_name(oid) FROM pg_proc WHERE safe_name(oid) <> proname;
-- (18.0 has its new json_strip_nulls as STABLE, so no index has it there)
SELECT oid::regprocedure FROM pg_proc WHERE safe_name(oid) IS NOT NULL AND provolatile <> 'i'
    AND NOT (proname LIKE 'json%_strip_nulls' AND provolatile = 's' AND pronargs = 2);
SELECT count(*) > 1000 AS many FROM pg_proc WHERE safe_name(oid) IS NOT NULL;
CREATE VIEW not_listed AS
	SELECT p.oid::regprocedure AS function, proname FROM pg_proc p
	WHERE provolatile = 'i' AND prolang IN (12, 14) AND p.oid < 10000 AND prokind = 'f' AND NOT proretset AND safe_name(p.oid) IS NULL
		-- types that are not on the list, and input and output
		AND NOT EXISTS (SELECT FROM unnest(array_prepend(prorettype, proargtypes::oid[])) t WHERE t::regtype::text NOT IN ('boolean', '"char"', 'smallint', 'integer', 'bigint', 'oid', 'xid8',
			'real', 'double precision', 'numeric', 'name', 'text', 'character varying', 'character', 'bytea', 'bit', 'bit varying', 'date', 'time without time zone', 'time with time zone',
			'timestamp without time zone', 'timestamp with time zone', 'interval', 'uuid', 'inet', 'cidr', 'macaddr', 'macaddr8', 'json', 'jsonb', 'pg_lsn', 'text[]', 'integer[]', 'bigint[]',
			'int4range', 'int8range', 'numrange', 'daterange', 'tsrange', 'tstzrange', '"any"', 'anyelement', 'anyarray', 'anyenum', 'anyrange', 'anymultirange', 'anynonarray',
			'anycompatible', 'anycompatiblearray', 'anycompatiblerange', 'anycompatiblenonarray', 'anycompatiblemultirange'))
		AND proname !~ '(send|typmodin|typmodout)$'
		-- parts of aggregates
		AND NOT EXISTS (SELECT FROM pg_aggregate WHERE p.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggmtransfn, aggminvtransfn, aggmfinalfn));
-- those refused have been looked at; see the head of safe_functions.c
CREATE TEMP TABLE refused AS SELECT unnest(string_to_array(
	'acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt cos cosd cosh cot cotd dcbrt degrees dexp dlog1 dlog10 dpow erf erfc exp gamma lgamma ln log log10 pow power radians sin sind sinh tan tand tanh '
	'numeric_exp numeric_ln numeric_log numeric_power numeric_sqrt '
	'normalize is_normalized unicode_assigned unicode_version icu_unicode_version to_ascii similar_escape similar_to_escape parse_ident quote_ident '
	'date_add date_subtract uuid_extract_timestamp pg_size_bytes pg_size_pretty pg_walfile_name pg_encoding_max_length pg_indexam_progress_phasename postgresql_fdw_validator '
	'satisfies_hash_partition acldefault pi in_range btequalimage btvarstrequalimage gist_translate_cmptype_common gin_cmp_tslexeme gin_compare_jsonb '
	'int4range_canonical int8range_canonical daterange_canonical int4range_subdiff int8range_subdiff numrange_subdiff daterange_subdiff tsrange_subdiff tstzrange_subdiff '
	'convert convert_from convert_to xml_is_well_formed_content xml_is_well_formed_document int4inc int8_sum numeric_inc', ' ')) AS name;
SELECT function FROM not_listed WHERE proname NOT IN (SELECT name FROM refused)
	AND function::text NOT IN ('"char"(text)', 'text("char")', 'bpchar("char")', 'sqrt(numeric)', 'age(timestamp with time zone,timestamp with time zone)', 'timezone(text,timestamp with time zone)',
		'timezone(text,timestamp without time zone)', 'date_trunc(text,timestamp with time zone,text)', 'date_trunc(text,interval)', 'date_part(text,interval)', '"extract"(text,interval)',
		'width_bucket(double precision,double precision,double precision,integer)', 'width_bucket(numeric,numeric,numeric,integer)', '"substring"(text,text,text)')
	ORDER BY function::text COLLATE "C";
DROP VIEW not_listed;
DROP TABLE refused;
SET client_min_messages = warning;
DROP SCHEMA sf CASCADE;
