-- Where values are in a row does not depend on whether their type is by value:
-- pg_upgrade makes dropped columns by reference.  Types of our own that have the
-- length and the alignment of int8 and of int4, and are by reference.
SET client_min_messages = warning;
CREATE TYPE ref8;
CREATE FUNCTION ref8_in(cstring) RETURNS ref8 AS 'macaddr8_in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION ref8_out(ref8) RETURNS cstring AS 'macaddr8_out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE ref8 (INPUT = ref8_in, OUTPUT = ref8_out, INTERNALLENGTH = 8, ALIGNMENT = double);
CREATE TYPE ref8i;
CREATE FUNCTION ref8i_in(cstring) RETURNS ref8i AS 'macaddr8_in' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION ref8i_out(ref8i) RETURNS cstring AS 'macaddr8_out' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE ref8i (INPUT = ref8i_in, OUTPUT = ref8i_out, INTERNALLENGTH = 8, ALIGNMENT = int4);

CREATE TABLE layout (a bool, r ref8, b "char", i int, s ref8i, t text) USING inplace;
INSERT INTO layout SELECT i % 2 = 0, ('08:00:2b:01:02:03:04:' || to_char(i, 'FM00'))::ref8, 'x', i,
	('08:00:2b:01:02:03:05:' || to_char(i, 'FM00'))::ref8i, repeat('t', i) FROM generate_series(1, 5) i;
SELECT * FROM layout ORDER BY i;
-- in place: the rows keep their places
UPDATE layout SET r = '01:02:03:04:05:06:07:08' WHERE i = 2;
UPDATE layout SET b = 'y', t = 'longer than before' WHERE i = 3;
BEGIN;
UPDATE layout SET r = NULL, s = '01:02:03:04:05:06:07:08';
SELECT ctid, * FROM layout ORDER BY i;
ROLLBACK;
SELECT ctid, * FROM layout ORDER BY i;
-- sorted, joined, aggregated: values that outlive their row
SELECT l.r, m.s FROM layout l JOIN layout m USING (i) ORDER BY l.i DESC;
SELECT array_agg(r ORDER BY i), array_agg(s ORDER BY i) FROM layout;

-- What pg_upgrade makes of dropped columns, done by hand.
ALTER TABLE layout DROP r, DROP i;
SELECT * FROM layout ORDER BY s::text;
SET allow_system_table_mods = on;
UPDATE pg_attribute SET attbyval = false WHERE attrelid = 'layout'::regclass AND attisdropped;
RESET allow_system_table_mods;
SELECT * FROM layout ORDER BY s::text;
UPDATE layout SET t = 'after' WHERE s::text LIKE '%:04';
INSERT INTO layout VALUES (true, 'z', NULL, 'new');
SELECT * FROM layout ORDER BY s::text;
SELECT * FROM inplace.check('layout');
DROP TABLE layout;
DROP TYPE ref8, ref8i CASCADE;
