-- Keys that are equal without being identical: updates to another key are in
-- place, those to an equal one move the row, and every plan shows the key that
-- the row has.
CREATE SCHEMA eq;
SET search_path = eq, inplace, public;
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t (id int PRIMARY KEY, n numeric, f float8, c text COLLATE ci, a numeric[], j jsonb, nm name) USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO t SELECT i, i, i, 'c' || i, ARRAY[i], to_jsonb(i), 'n' || i FROM generate_series(1, 200) i;
CREATE INDEX t_n ON t USING inplace_btree (n);
CREATE INDEX t_f ON t USING inplace_btree (f, n DESC);
CREATE INDEX t_c ON t USING inplace_btree (c);
CREATE INDEX t_a ON t USING inplace_btree (a);
CREATE INDEX t_j ON t USING inplace_btree (j);
CREATE INDEX t_nm ON t USING inplace_btree (nm);
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	col text;
	expected text;
	got text;
BEGIN
	FOREACH col IN ARRAY ARRAY['n', 'f', 'c', 'a', 'j', 'nm'] LOOP
		SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;
		EXECUTE format('SELECT string_agg(%1$I::text, '','' ORDER BY %1$I::text COLLATE "C") FROM t WHERE %1$I IS NOT NULL', col) INTO expected;
		SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = on;
		EXECUTE format('SELECT string_agg(%1$I::text, '','' ORDER BY %1$I::text COLLATE "C") FROM (SELECT %1$I FROM t WHERE %1$I IS NOT NULL ORDER BY %1$I OFFSET 0) x', col) INTO got;
		IF got IS DISTINCT FROM expected THEN RETURN NEXT 'index-only scan of ' || col; END IF;
		SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = off;
		EXECUTE format('SELECT string_agg(%1$I::text, '','' ORDER BY %1$I::text COLLATE "C") FROM (SELECT * FROM t WHERE %1$I IS NOT NULL ORDER BY %1$I OFFSET 0) x', col) INTO got;
		IF got IS DISTINCT FROM expected THEN RETURN NEXT 'index scan of ' || col; END IF;
	END LOOP;
	SET LOCAL enable_seqscan = on;
END $$;
-- did the row stay?
CREATE FUNCTION stays(id int, assignment text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE before tid; after tid;
BEGIN
	EXECUTE format('SELECT ctid FROM t WHERE id = %s', id) INTO before;
	EXECUTE format('UPDATE t SET %s WHERE id = %s RETURNING ctid', assignment, id) INTO after;
	RETURN before = after;
END $$;
-- another key; an equal one; the one before but one, and one that equals that
SELECT c, stays(1, c) FROM unnest(ARRAY['n = 2.5', 'n = 2.50', 'n = 1', 'n = 2.500', 'n = 77', 'n = 2.500']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT c, stays(2, c) FROM unnest(ARRAY['f = 0', 'f = ''-0''', 'f = ''nan''', 'f = 0', 'f = NULL', 'f = 7']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT c, stays(3, c) FROM unnest(ARRAY['c = ''Abc''', 'c = ''aBC''', 'c = ''other''', 'c = ''Other''', 'c = ''x''', 'c = ''OTHER''']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT c, stays(4, c) FROM unnest(ARRAY['a = ''{1,2}''', 'a = ''{1.0,2}''', 'a = ''{}''', 'a = ''{1.0,2}''']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT c, stays(5, c) FROM unnest(ARRAY['j = ''{"k": 1}''', 'j = ''{"k": 1.0}''', 'j = ''2''', 'j = ''{"k": 1}''']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT c, stays(6, c) FROM unnest(ARRAY['nm = ''one''', 'nm = ''two''', 'nm = ''one''', 'nm = NULL', 'nm = ''''']) WITH ORDINALITY x(c, i) ORDER BY i;
SELECT * FROM differences();
SELECT id, n, f, c, a, j, nm FROM t WHERE id <= 6 ORDER BY id;
-- a unique index of that kind takes it, too
CREATE UNIQUE INDEX t_un ON t USING inplace_btree (n, id);
SELECT stays(7, 'n = 1000');
INSERT INTO t (id, n) VALUES (1000, 50.0);
UPDATE t SET n = 6.0 WHERE id = 1000;
DROP INDEX t_un;
-- a comparison of one's own
CREATE FUNCTION cmp(text, text) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT pg_catalog.bttextcmp(pg_catalog.lower($1), pg_catalog.lower($2)) $$;
CREATE OPERATOR CLASS lower_ops FOR TYPE text USING inplace_btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cmp(text, text);
CREATE TABLE l (id int, s text) USING inplace;
INSERT INTO l VALUES (1, 'a'), (2, 'b');
CREATE INDEX l_s ON l USING inplace_btree (s lower_ops);
UPDATE l SET s = 'A' WHERE id = 1 RETURNING ctid, s;
UPDATE l SET s = 'z' WHERE id = 2 RETURNING ctid, s;
UPDATE l SET s = 'B' WHERE id = 2 RETURNING ctid, s;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT s FROM l ORDER BY s USING <;
RESET enable_seqscan; RESET enable_bitmapscan;
-- random, with rollbacks and VACUUM
DO $$
BEGIN
	PERFORM setseed(0.75);
	FOR i IN 1 .. 1500 LOOP
		BEGIN
			CASE (random() * 5)::int
				WHEN 0 THEN UPDATE t SET n = round((random() * 5)::numeric, (random() * 2)::int) WHERE id = (random() * 50)::int;
				WHEN 1 THEN UPDATE t SET c = CASE WHEN random() < 0.5 THEN upper(c) ELSE 'c' || (random() * 5)::int END WHERE id = (random() * 50)::int;
				WHEN 2 THEN UPDATE t SET a = ARRAY[round((random() * 5)::numeric, (random() * 2)::int)] WHERE id = (random() * 50)::int;
				WHEN 3 THEN UPDATE t SET j = to_jsonb(round((random() * 5)::numeric, (random() * 2)::int)) WHERE id = (random() * 50)::int;
				WHEN 4 THEN UPDATE t SET f = CASE WHEN random() < 0.5 THEN -f ELSE 0 END WHERE id = (random() * 50)::int;
				ELSE UPDATE t SET nm = 'n' || (random() * 5)::int WHERE id = (random() * 50)::int;
			END CASE;
			IF random() < 0.3 THEN RAISE division_by_zero; END IF;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
		IF i % 250 = 0 AND EXISTS (SELECT FROM differences()) THEN
			RAISE EXCEPTION 'differences after step %', i;
		END IF;
	END LOOP;
END $$;
VACUUM (INDEX_CLEANUP on) t;
SELECT * FROM differences();
UPDATE t SET n = n + 1, c = upper(c), f = -f WHERE id % 2 = 0;
VACUUM (INDEX_CLEANUP on) t;
VACUUM (INDEX_CLEANUP on) t;
SELECT * FROM differences();
SELECT problem FROM inplace.check('t');

-- classes that compare bytes do not go with such collations
CREATE TABLE pat_h (c text COLLATE ci, v varchar COLLATE ci, b char(5) COLLATE ci, plain text) USING heap;
CREATE TABLE pat_i (LIKE pat_h) USING inplace;
CREATE INDEX ON pat_h (c text_pattern_ops);
CREATE INDEX ON pat_i (c text_pattern_ops);
CREATE INDEX ON pat_i USING inplace_btree (plain, c text_pattern_ops);
CREATE INDEX ON pat_h USING inplace_btree (v varchar_pattern_ops);
CREATE INDEX ON pat_i (b bpchar_pattern_ops) WHERE plain > 'a';
CREATE UNIQUE INDEX CONCURRENTLY ON pat_i USING inplace_btree ((c || 'x') text_pattern_ops);
CREATE INDEX pat_plain ON pat_i (plain text_pattern_ops) INCLUDE (c);
ALTER TABLE pat_i ALTER plain TYPE text COLLATE ci;
SELECT indexdef FROM pg_indexes WHERE tablename = 'pat_i';
DROP SCHEMA eq CASCADE;
