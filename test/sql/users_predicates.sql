-- Partial indexes whose predicate is code of users that is called immutable and is not: it
-- says another thing now than when a row's entry was made.  What comes out is what heap has.
CREATE SCHEMA up;
SET search_path = up, inplace, public;
CREATE FUNCTION day_of(timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS 'SELECT $1::date';
CREATE FUNCTION least_of() RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 10; END';
CREATE FUNCTION is_large(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 > 10; END';
CREATE FUNCTION doubled(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2 * $1; END';
CREATE TABLE job_heap (id int PRIMARY KEY, at timestamptz, n int, a int, pad text) USING heap;
CREATE TABLE job_inplace (LIKE job_heap INCLUDING INDEXES) USING inplace WITH (autovacuum_enabled = off);
-- the statement of either table, or the query's rows
CREATE FUNCTION on_both(statement text, OUT heap text, OUT inplace text) LANGUAGE plpgsql AS $$
DECLARE
	am text;
	answer text;
BEGIN
	FOREACH am IN ARRAY ARRAY['heap', 'inplace'] LOOP
		BEGIN
			IF statement ~ '^SELECT' THEN
				EXECUTE format('SELECT coalesce(string_agg(q::text, '' '' ORDER BY q), ''none'') FROM (%s) q',
					replace(statement, 'job', 'job_' || am)) INTO answer;
			ELSE
				EXECUTE replace(replace(statement, 'job', 'job_' || am), 'USING tree', 'USING ' ||
					CASE am WHEN 'heap' THEN 'btree' ELSE 'inplace_btree' END);
				answer := 'done';
			END IF;
		EXCEPTION WHEN OTHERS THEN
			answer := sqlstate || ' ' || replace(sqlerrm, 'job_' || am, 'job');
		END;
		IF am = 'heap' THEN heap := answer; ELSE inplace := answer; END IF;
	END LOOP;
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- A setting that two sessions do not have in common.  (Up to 17 a unique index is a btree.)
SELECT * FROM on_both('CREATE UNIQUE INDEX job_day ON job (n) INCLUDE (pad) WHERE day_of(at) >= ''2024-01-01''');
SET timezone = 'Asia/Tokyo';
SELECT * FROM on_both('INSERT INTO job VALUES (1, ''2023-12-31 20:00:00+00'', 7)');
SET timezone = 'UTC';
SELECT * FROM on_both('UPDATE job SET at = ''2020-06-01 00:00:00+00'' WHERE id = 1');
SELECT * FROM on_both('SELECT id, at, n FROM job WHERE day_of(at) >= ''2024-01-01'' AND n = 7');
SELECT * FROM on_both('INSERT INTO job VALUES (2, ''2024-05-05 00:00:00+00'', 7)');
SELECT * FROM on_both('INSERT INTO job VALUES (3, ''2024-05-05 00:00:00+00'', 7)
	ON CONFLICT (n) WHERE day_of(at) >= ''2024-01-01'' DO UPDATE SET n = -7');
SELECT * FROM on_both('SELECT id, n FROM job');
SELECT * FROM inplace.check('job_inplace');
DROP INDEX job_heap_day, job_inplace_day;
TRUNCATE job_heap, job_inplace;

-- Another function by the same name.
SELECT * FROM on_both('CREATE UNIQUE INDEX job_least ON job (n) WHERE a > least_of()');
SELECT * FROM on_both('INSERT INTO job (id, a, n) VALUES (1, 15, 1), (2, 17, 2), (3, 5, 3)');
CREATE OR REPLACE FUNCTION least_of() RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 100; END';
\c
SET search_path = up, inplace, public;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT * FROM on_both('UPDATE job SET a = a + 1');
SELECT * FROM on_both('SELECT id, a, n FROM job WHERE a > least_of() AND n BETWEEN 1 AND 3');
SELECT * FROM on_both('INSERT INTO job (id, a, n) VALUES (5, 200, 1) ON CONFLICT (n) WHERE a > least_of() DO UPDATE SET a = -1');
SELECT * FROM on_both('SELECT id, a, n FROM job');
SELECT * FROM inplace.check('job_inplace');
DROP INDEX job_heap_least, job_inplace_least;
TRUNCATE job_heap, job_inplace;

-- The old version is none of the function's business: it may fail for it.
SELECT * FROM on_both('CREATE INDEX job_large ON job USING tree (n, id) WHERE is_large(a)');
SELECT * FROM on_both('INSERT INTO job (id, a, n) VALUES (1, 5, 1), (2, 5, 2), (3, 5, 3), (4, 15, 4)');
CREATE OR REPLACE FUNCTION is_large(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS
	'BEGIN IF $1 = 5 THEN RAISE ''five''; END IF; RETURN $1 > 10; END';
SELECT * FROM on_both('UPDATE job SET a = 6 WHERE id = 1');
SELECT * FROM on_both('UPDATE job SET a = 16 WHERE id = 2');
SELECT * FROM on_both('UPDATE job SET a = 5 WHERE id = 4');
SELECT * FROM on_both('SELECT id, a FROM job WHERE is_large(a) AND n > 0');
-- nor the expressions of a row outside of the predicate
SELECT * FROM on_both('UPDATE job SET a = 7 WHERE a = 5');
SELECT * FROM on_both('CREATE INDEX job_quotient ON job USING tree ((100 / n)) WHERE is_large(a)');
SELECT * FROM on_both('UPDATE job SET n = 0, a = 8 WHERE id = 3');
SELECT * FROM on_both('UPDATE job SET a = 9 WHERE id = 3');
SELECT * FROM on_both('UPDATE job SET a = 19 WHERE id = 3');
SELECT * FROM on_both('SELECT id, a, n FROM job');
-- where the predicate is the server's the row stays, whoever's the expression is
SELECT * FROM on_both('DROP INDEX job_quotient');
SELECT * FROM on_both('CREATE INDEX job_doubled ON job USING tree (doubled(a)) WHERE n IS NULL');
UPDATE job_inplace j SET a = a + 1 WHERE id = 1 RETURNING (SELECT b.ctid = j.ctid FROM job_inplace b WHERE b.id = 1) AS stays;
UPDATE job_inplace j SET n = NULL WHERE id = 1 RETURNING (SELECT b.ctid = j.ctid FROM job_inplace b WHERE b.id = 1) AS stays;
SELECT * FROM inplace.check('job_inplace');
SET client_min_messages = warning;
DROP SCHEMA up CASCADE;
