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

-- A time zone named by a place means the same to all: updates are in place.
CREATE TABLE sk_place (id int PRIMARY KEY, ts timestamptz) USING inplace;
CREATE INDEX sk_place_ts ON sk_place USING inplace_btree ((ts AT TIME ZONE 'Europe/Berlin'));
CREATE INDEX ON sk_place USING inplace_btree (((ts AT TIME ZONE 'Asia/Kolkata')::date)) WHERE ts AT TIME ZONE 'Europe/Paris' > '2020-01-01';
INSERT INTO sk_place SELECT g, '2024-01-01 00:00+00'::timestamptz + g * interval '1 hour' FROM generate_series(1, 3) g;
UPDATE sk_place SET ts = ts + interval '30 days' RETURNING ctid;
SELECT id, ts AT TIME ZONE 'Europe/Berlin' AS berlin FROM sk_place WHERE ts AT TIME ZONE 'Europe/Berlin' > '2000-01-01' ORDER BY 2;
SELECT * FROM inplace.check('sk_place');
-- ... by an abbreviation, or by another column: they move the row
CREATE INDEX ON sk_place USING inplace_btree ((ts AT TIME ZONE 'UTC'));
UPDATE sk_place SET ts = ts + interval '30 days' WHERE id = 1 RETURNING ctid;
DROP VIEW sk_found;
DROP TABLE sk, sk_place;
