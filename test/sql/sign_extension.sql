-- Keys of pass-by-value types whose upper bytes differ, depending on how they
-- came about: what a function returns is zero-extended, what is read from an
-- entry sign-extended.  (Before 18.4, 17.10, 16.14 and 15.18 the server's own
-- comparison of datums looked at those bytes, too.)
CREATE TABLE th (id int PRIMARY KEY, url text, v bigint, s smallint) USING inplace;
INSERT INTO th SELECT i, 'u' || i, 3000000000 + i, i
	FROM generate_series(1, 10) i;
CREATE INDEX th_hash ON th USING inplace_btree (hashtext(url));
CREATE INDEX th_oid ON th USING inplace_btree ((v::oid));
CREATE INDEX th_small ON th USING inplace_btree ((-s));
CREATE UNIQUE INDEX th_both ON th USING inplace_btree (hashtext(url), (v::oid));
UPDATE th SET url = 'w' || id, v = v + 100, s = s + 1;
VACUUM (INDEX_CLEANUP on) th;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM th t
	WHERE EXISTS (SELECT 1 FROM th u WHERE hashtext(u.url) = hashtext('w' || t.id));
SELECT count(*) FROM th t
	WHERE EXISTS (SELECT 1 FROM th u WHERE u.v::oid = (3000000100 + t.id)::oid);
SELECT count(*) FROM th t
	WHERE EXISTS (SELECT 1 FROM th u WHERE -u.s = -t.id - 1);
SELECT * FROM inplace.check('th');
-- and back, past entries that are there already
UPDATE th SET url = 'u' || id, v = v - 100, s = s - 1;
UPDATE th SET url = 'w' || id, v = v + 100, s = s + 1;
VACUUM (INDEX_CLEANUP on) th;
SELECT count(*) FROM th t
	WHERE EXISTS (SELECT 1 FROM th u WHERE hashtext(u.url) = hashtext('w' || t.id));
\set VERBOSITY sqlstate
INSERT INTO th SELECT 13, url, v FROM th WHERE id = 3;
\set VERBOSITY default
SELECT * FROM inplace.check('th');
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE th;
