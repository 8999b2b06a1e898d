-- Index expressions of functions that are called immutable, but look at settings:
-- others than who made an entry compute another key.  As on heap, the entries are
-- there for whoever has the same settings.
CREATE TABLE sk (id int PRIMARY KEY, ts timestamptz, f float8, b bytea, q text, p point)
	USING inplace WITH (autovacuum_enabled = off);
CREATE INDEX sk_ts ON sk USING inplace_btree ((ts AT TIME ZONE 'IST'));
CREATE INDEX sk_f ON sk USING inplace_btree ((f::text));
CREATE INDEX sk_b ON sk USING inplace_btree ((b::text));
CREATE UNIQUE INDEX sk_q ON sk USING inplace_btree (quote_ident(q));
CREATE INDEX sk_p ON sk USING inplace_btree ((p::text)) WHERE p IS NOT NULL;

SET timezone_abbreviations = 'India';
SET extra_float_digits = 0;
SET bytea_output = 'escape';
SET quote_all_identifiers = on;
INSERT INTO sk SELECT g, '2024-01-01 00:00+00'::timestamptz + g * interval '1 hour', 1.0 / g, '\x00', 'x' || g,
	point(1.0 / g, 0) FROM generate_series(1, 50) g;
UPDATE sk SET ts = ts + interval '30 days', f = f + 0.1, b = '\x01', q = q || 'y', p = p + point(0.1, 0);
SET enable_seqscan = off;
SET enable_bitmapscan = off;

CREATE VIEW sk_found AS SELECT
	(SELECT count(*) FROM sk WHERE ts AT TIME ZONE 'IST' > '2000-01-01') AS ts,
	(SELECT count(*) FROM sk WHERE f::text > '') AS f,
	(SELECT count(*) FROM sk WHERE b::text > '') AS b,
	(SELECT count(*) FROM sk WHERE quote_ident(q) > '') AS q,
	(SELECT count(*) FROM sk WHERE p IS NOT NULL AND p::text > '') AS p;
SELECT * FROM sk_found;

-- somebody with other settings
RESET timezone_abbreviations;
RESET extra_float_digits;
RESET bytea_output;
RESET quote_all_identifiers;
SELECT * FROM sk_found;
VACUUM (INDEX_CLEANUP on) sk;
VACUUM sk;

SET timezone_abbreviations = 'India';
SET extra_float_digits = 0;
SET bytea_output = 'escape';
SET quote_all_identifiers = on;
SELECT * FROM sk_found;
SELECT id FROM sk WHERE quote_ident(q) = '"x7y"';
INSERT INTO sk (id, q) VALUES (100, 'x7y');
SELECT * FROM inplace.check('sk');
-- what leaves the key as it is, leaves the row where it is
BEGIN;
SELECT ctid AS before FROM sk WHERE id = 7 \gset
UPDATE sk SET q = q, id = id, f = f WHERE id = 7;
SELECT ctid = :'before' AS same FROM sk WHERE id = 7;
ROLLBACK;
RESET timezone_abbreviations;
RESET extra_float_digits;
RESET bytea_output;
RESET quote_all_identifiers;

-- age() of two timestamptz counts the days of the session's time zone.
SET timezone = 'Asia/Tokyo';
CREATE TABLE sk_age (id int PRIMARY KEY, a timestamptz, b timestamptz) USING inplace;
INSERT INTO sk_age SELECT i, '2024-02-29 23:30+00', timestamptz '2024-03-31 22:30+00' + i * interval '1h' FROM generate_series(1, 20) i;
CREATE INDEX ON sk_age USING inplace_btree (age(b, a));
UPDATE sk_age SET b = '2024-03-31 22:30+00' WHERE id = 7;
SET timezone = 'UTC';
VACUUM (INDEX_CLEANUP on) sk_age;
VACUUM (INDEX_CLEANUP on) sk_age;
SET timezone = 'Asia/Tokyo';
SELECT id FROM sk_age WHERE age(b, a) = age('2024-03-31 22:30+00'::timestamptz, '2024-02-29 23:30+00'::timestamptz);
RESET timezone;
-- Unique: what is in the index is in the way of whoever finds it, as on heap.
CREATE TABLE sk_unique (id int PRIMARY KEY, a timestamptz, b timestamptz, pad int) USING inplace WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX ON sk_unique USING inplace_btree (age(b, a));
CREATE INDEX ON sk_unique USING inplace_btree (pad);
SET timezone = 'Asia/Tokyo';
INSERT INTO sk_unique VALUES (1, '2024-02-29 23:30+00', '2024-03-31 22:30+00', 1);
UPDATE sk_unique SET pad = 2 RETURNING ctid;
SET timezone = 'UTC';
-- (what it is there, and not here)
INSERT INTO sk_unique VALUES (2, '2024-03-01 00:00+00', '2024-03-31 23:00+00', 1);
SELECT age(b, a) FROM sk_unique;
RESET timezone;

-- A time zone that is named, by an abbreviation or a place: settings and files say what it means,
-- and the row moves.  One that is a difference means the same to all.
CREATE TABLE sk_place (id int PRIMARY KEY, ts timestamptz) USING inplace;
CREATE INDEX sk_place_ts ON sk_place USING inplace_btree ((ts AT TIME ZONE interval '01:00'));
INSERT INTO sk_place SELECT g, '2024-01-01 00:00+00'::timestamptz + g * interval '1 hour' FROM generate_series(1, 3) g;
UPDATE sk_place SET ts = ts + interval '30 days' RETURNING ctid;
SELECT id FROM sk_place WHERE ts AT TIME ZONE interval '01:00' > '2000-01-01' ORDER BY ts AT TIME ZONE interval '01:00';
CREATE INDEX ON sk_place USING inplace_btree (((ts AT TIME ZONE 'Europe/Berlin')::date));
-- (within a day it stays)
UPDATE sk_place SET ts = ts + interval '1 minute' WHERE id = 1 RETURNING ctid;
UPDATE sk_place SET ts = ts + interval '30 days' WHERE id = 1 RETURNING ctid;
SELECT id FROM sk_place WHERE (ts AT TIME ZONE 'Europe/Berlin')::date > '2000-01-01' ORDER BY id;
SELECT * FROM inplace.check('sk_place');

-- Keys passed by value that are shorter than a Datum: a function may leave anything above them.
CREATE TABLE sk_short (id int PRIMARY KEY, url text, v bigint) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO sk_short SELECT i, 'u' || i, 3000000000 + i FROM generate_series(1, 10) i;
CREATE INDEX ON sk_short USING inplace_btree (hashtext(url));
CREATE INDEX ON sk_short USING inplace_btree ((v::oid));
UPDATE sk_short SET url = 'w' || id, v = v + 100;
SELECT count(*) FROM sk_short t WHERE EXISTS (SELECT 1 FROM sk_short u WHERE hashtext(u.url) = hashtext('w' || t.id));
VACUUM (INDEX_CLEANUP on) sk_short;
SELECT count(*) FROM sk_short t WHERE EXISTS (SELECT 1 FROM sk_short u WHERE hashtext(u.url) = hashtext('w' || t.id));
SELECT count(*) FROM sk_short WHERE v::oid > 3000000100;
SELECT * FROM inplace.check('sk_short');
DROP VIEW sk_found;
DROP TABLE sk, sk_age, sk_unique, sk_place, sk_short;
