-- A unique key that cannot be computed is no other key: the error is raised, as it is on heap when the
-- executor computes it.  Here it is the stack that is too deep for what a version of another row has.
CREATE FUNCTION deeper(n int, statement text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF n = 0 THEN EXECUTE statement; ELSE PERFORM deeper(n - 1, statement); END IF;
END $$;
-- nearer to the limit each time
CREATE FUNCTION from_any_depth(statement text) RETURNS TABLE (answer text) LANGUAGE plpgsql AS $$
BEGIN
	FOR n IN 1..400 BY 7 LOOP
		BEGIN
			PERFORM deeper(n, statement);
			answer := 'done';
		EXCEPTION
			WHEN unique_violation OR statement_too_complex THEN answer := sqlerrm;
		END;
		RETURN NEXT;
	END LOOP;
END $$;
CREATE TABLE fk_heap (id int, a text) USING heap;
CREATE TABLE fk_inplace (id int, a text) USING inplace WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX ON fk_heap (((a::jsonb) ->> 'k'));
CREATE UNIQUE INDEX ON fk_inplace USING inplace_btree (((a::jsonb) ->> 'k'));
INSERT INTO fk_heap VALUES (1, '{"k":"1","d":' || repeat('[', 6000) || repeat(']', 6000) || '}');
INSERT INTO fk_inplace TABLE fk_heap;
UPDATE fk_inplace SET a = replace(a, '"k":"1"', '"k":"2"');
UPDATE fk_inplace SET a = replace(a, '"k":"2"', '"k":"1"') RETURNING ctid;
SELECT count(*) FROM from_any_depth('INSERT INTO fk_heap VALUES (3, ''{"k":"1"}'')') WHERE answer = 'done';
SELECT count(*) FROM from_any_depth('INSERT INTO fk_inplace VALUES (3, ''{"k":"1"}'')') WHERE answer = 'done';
SELECT id FROM fk_inplace;
SELECT * FROM inplace.check('fk_inplace');

-- An expression that fails on a version that is not the row's any more, or was rolled back, is
-- nobody's concern.
CREATE TABLE fk_div (id int PRIMARY KEY, n int, pad int) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO fk_div VALUES (1, 0, 0), (2, 1, 0);
UPDATE fk_div SET n = 10 WHERE id = 1;
CREATE UNIQUE INDEX ON fk_div USING inplace_btree ((100 / n));
UPDATE fk_div SET n = 20 WHERE id = 1;
BEGIN;
UPDATE fk_div SET n = 25 WHERE id = 1;
ROLLBACK;
INSERT INTO fk_div VALUES (3, 10, 0);
INSERT INTO fk_div VALUES (4, 25, 0);
INSERT INTO fk_div VALUES (5, 20, 0);
UPDATE fk_div SET n = 0 WHERE id = 3;
SELECT id, n FROM fk_div ORDER BY id;
SELECT * FROM inplace.check('fk_div');
-- A char(n) of few bytes is equal to what had it before, though that row's present key has more
-- bytes, and is in the TOAST table.
CREATE TABLE fk_char (k char(7), pad text) USING inplace WITH (autovacuum_enabled = off);
ALTER TABLE fk_char ALTER k SET STORAGE external, ALTER pad SET STORAGE plain;
CREATE UNIQUE INDEX ON fk_char USING inplace_btree (k);
INSERT INTO fk_char VALUES ('ab', repeat('q', 2010));
UPDATE fk_char SET k = repeat(U&'\+01F600', 7) RETURNING ctid;
-- (in line it would take a byte for its length)
SELECT octet_length(k), pg_column_size(k) FROM fk_char;
INSERT INTO fk_char VALUES ('ab', 'new');
INSERT INTO fk_char VALUES ('ab', 'another');
INSERT INTO fk_char VALUES (repeat(U&'\+01F600', 7), 'another');
SELECT octet_length(k), length(pad) FROM fk_char ORDER BY 1;
SELECT * FROM inplace.check('fk_char');
DROP TABLE fk_heap, fk_inplace, fk_div, fk_char;
DROP FUNCTION from_any_depth, deeper;
