-- Unique inplace_btree indexes: nulls that come back, and keys that are equal
-- but not identical, in rows that may have stale entries.
CREATE SCHEMA uk;
SET search_path = uk, inplace, public;
CREATE TABLE t (id int PRIMARY KEY, k int, u int, n numeric, f float8) USING inplace;
CREATE INDEX ON t USING inplace_btree (k);
CREATE UNIQUE INDEX t_u ON t USING inplace_btree (u);
CREATE UNIQUE INDEX t_n ON t USING inplace_btree (n);
CREATE UNIQUE INDEX t_f ON t USING inplace_btree (f);
INSERT INTO t VALUES (1, 1, NULL, 1.0, '-0'), (2, 2, NULL, 2, 5), (3, 3, 3, 3, 3);
-- null, a value, null again
UPDATE t SET u = 1 WHERE id = 1;
UPDATE t SET u = NULL WHERE id = 1;
UPDATE t SET u = 1 WHERE id = 2;
UPDATE t SET u = 1 WHERE id = 1;
UPDATE t SET u = NULL WHERE id = 2;
UPDATE t SET u = 1 WHERE id = 1;
SELECT id, u FROM t ORDER BY id;
-- the rows are marked by now
INSERT INTO t VALUES (4, 4, 4, 1.00, 7);
INSERT INTO t VALUES (4, 4, 4, 4, 0);
UPDATE t SET n = 1.000 WHERE id = 2;
UPDATE t SET n = 1.000 WHERE id = 1;
UPDATE t SET f = 0 WHERE id = 3;
SELECT id, n, f FROM t ORDER BY id;
-- NULLS NOT DISTINCT
DROP INDEX t_u;
UPDATE t SET u = id;
CREATE UNIQUE INDEX t_u ON t USING inplace_btree (u) NULLS NOT DISTINCT;
UPDATE t SET u = NULL WHERE id = 1;
UPDATE t SET u = NULL WHERE id = 2;
UPDATE t SET u = 1 WHERE id = 1;
UPDATE t SET u = NULL WHERE id = 2;
UPDATE t SET u = NULL WHERE id = 1;
SELECT id, u FROM t ORDER BY id;
SELECT * FROM inplace.check('t');

-- An operator class whose comparison inserts into another table with a unique
-- index while the first check is under way.
CREATE TABLE log (id int, v int) USING inplace;
CREATE UNIQUE INDEX log_v ON log USING inplace_btree (v);
CREATE INDEX ON log USING inplace_btree (id);
CREATE SEQUENCE s;
CREATE FUNCTION noting_cmp(int, int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO uk.log VALUES (1, nextval('uk.s'));
	UPDATE uk.log SET id = id + 1 WHERE v = currval('uk.s');
	RETURN btint4cmp($1, $2);
END $$;
CREATE OPERATOR CLASS noting_ops FOR TYPE int USING inplace_btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 noting_cmp(int, int);
CREATE TABLE n (id int, k int) USING inplace;
CREATE UNIQUE INDEX n_id ON n USING inplace_btree (id);
CREATE UNIQUE INDEX n_k ON n USING inplace_btree (k noting_ops);
INSERT INTO n SELECT i, i FROM generate_series(1, 5) i;
UPDATE n SET id = id + 10;
UPDATE n SET k = 3 WHERE id = 11;
INSERT INTO n VALUES (9, 5);
INSERT INTO n VALUES (9, 6);
SELECT * FROM n ORDER BY id;
SELECT count(*) > 0 AS noted FROM log;
SELECT * FROM inplace.check('n');

-- an index that is not valid any more, as while DROP INDEX CONCURRENTLY waits, has
-- entries of former keys all the same
CREATE TABLE uv (id int, u int) USING inplace;
CREATE UNIQUE INDEX uv_u ON uv USING inplace_btree (u);
INSERT INTO uv VALUES (1, 1), (2, 2);
UPDATE uv SET u = 100 WHERE u = 1;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'uv_u'::regclass;
INSERT INTO uv VALUES (3, 1);
INSERT INTO uv VALUES (4, 100);
UPDATE uv SET u = 5 WHERE u = 2;
INSERT INTO uv VALUES (5, 2), (6, 5);
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'uv_u'::regclass;
SELECT * FROM uv ORDER BY id;
SELECT * FROM inplace.check('uv');
SET client_min_messages = warning;
DROP SCHEMA uk CASCADE;
