-- An UPDATE opens indexes only when rows are moved, or summarizing indexes told:
-- statements within statements, several tables, partitions, unique violations.
CREATE TABLE late (id int, moved int, taken int, note text) USING inplace;
CREATE UNIQUE INDEX late_id ON late (id);
CREATE INDEX late_moved ON late USING btree (moved);
CREATE INDEX late_taken ON late USING inplace_btree (taken);
CREATE INDEX late_brin ON late USING brin (taken);
INSERT INTO late SELECT i, i, i, 'n' FROM generate_series(1, 200) i;

-- each index and the table have the same rows
CREATE FUNCTION late_agree() RETURNS TABLE (what text, n bigint, total numeric)
LANGUAGE plpgsql AS $$
DECLARE
	col text;
	seq text;
BEGIN
	FOREACH col IN ARRAY '{id,moved,taken}'::text[] LOOP
		FOREACH seq IN ARRAY '{on,off}'::text[] LOOP
			PERFORM set_config('enable_seqscan', seq, true);
			PERFORM set_config('enable_bitmapscan', 'off', true);
			PERFORM set_config('enable_indexscan', CASE seq WHEN 'on' THEN 'off' ELSE 'on' END, true);
			PERFORM set_config('enable_indexonlyscan', 'off', true);
			what := col || CASE seq WHEN 'on' THEN ', table' ELSE ', index' END;
			EXECUTE format('SELECT count(*), sum(%I) FROM late WHERE %1$I > -1000', col) INTO n, total;
			RETURN NEXT;
		END LOOP;
	END LOOP;
END $$;

UPDATE late SET note = 'in place';
UPDATE late SET moved = -moved WHERE id % 3 = 0;
UPDATE late SET taken = taken + 1000 WHERE id % 5 = 0;
SELECT * FROM late_agree();

-- a statement within one: the inner one moves rows, the outer one does not, and
-- the other way round
CREATE FUNCTION late_inner(i int, set_moved boolean) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	IF set_moved THEN
		UPDATE late SET moved = moved + 1 WHERE id = i;
	ELSE
		UPDATE late SET note = 'inner' WHERE id = i;
	END IF;
	RETURN 'outer';
END $$;
UPDATE late SET note = late_inner(id + 1, true) WHERE id IN (10, 20, 30);
UPDATE late SET moved = moved + 1, note = late_inner(id + 1, false) WHERE id IN (40, 50, 60);
UPDATE late SET moved = moved + 1, note = late_inner(id + 1, true) WHERE id IN (70, 80, 90);
SELECT id, moved, note FROM late WHERE id IN (10, 11, 40, 41, 70, 71) ORDER BY id;
SELECT * FROM late_agree();

-- an error in between, and on with the next
DO $$
BEGIN
	UPDATE late SET id = id + 1 WHERE id = 100;
EXCEPTION WHEN unique_violation THEN
	RAISE NOTICE '%', SQLERRM;
	UPDATE late SET moved = moved + 1 WHERE id = 100;
END $$;
UPDATE late SET id = 101 WHERE id = 102;
UPDATE late SET id = id + 1000, moved = id WHERE id > 195;
WITH w AS (UPDATE late SET moved = 5 WHERE id = 5 RETURNING id)
UPDATE late SET moved = 6 WHERE id = 6 AND EXISTS (SELECT FROM w);
MERGE INTO late USING (VALUES (7, 70), (300, 300)) v (i, m) ON id = i
	WHEN MATCHED THEN UPDATE SET moved = m
	WHEN NOT MATCHED THEN INSERT VALUES (i, m, m, 'merged');
INSERT INTO late VALUES (8, 80, 80, 'c') ON CONFLICT (id) DO UPDATE SET moved = excluded.moved;
SELECT * FROM late_agree();

-- a trigger that changes the row, or rebuilds an index, which is refused
CREATE FUNCTION late_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	new.moved := CASE WHEN new.id < 150 THEN new.moved + 100 ELSE new.moved END;
	IF new.id IN (150, 180) THEN
		REINDEX INDEX late_taken;
	END IF;
	RETURN new;
END $$;
CREATE TRIGGER late_before BEFORE UPDATE ON late FOR EACH ROW EXECUTE FUNCTION late_before();
UPDATE late SET taken = taken + 7 WHERE id BETWEEN 140 AND 160;
UPDATE late SET taken = taken + 7 WHERE id = 180;
SELECT * FROM late_agree();
DROP TRIGGER late_before ON late;
SELECT * FROM inplace.check('late');

-- what may be done to an index by a statement within an UPDATE, beside heap
CREATE TABLE late_use_heap (id int PRIMARY KEY, a int, b int) USING heap;
CREATE TABLE late_use_inplace (id int PRIMARY KEY, a int, b int) USING inplace;
INSERT INTO late_use_heap SELECT i, i, i FROM generate_series(1, 5) i;
INSERT INTO late_use_inplace SELECT i, i, i FROM generate_series(1, 5) i;
CREATE INDEX late_use_heap_a ON late_use_heap (a);
CREATE INDEX late_use_inplace_a ON late_use_inplace (a);
CREATE FUNCTION late_do() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('late.do') <> '' THEN
		EXECUTE current_setting('late.do');
	END IF;
	RETURN 1;
END $$;
CREATE FUNCTION late_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM late_do();
	RETURN new;
END $$;
CREATE FUNCTION late_try(method text, place text, what text, update text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	IF place <> 'WHERE' THEN
		EXECUTE format('CREATE TRIGGER tr %s UPDATE ON late_use_%s FOR EACH %s EXECUTE FUNCTION late_trigger()',
			split_part(place, ' ', 1), method, split_part(place, ' ', 2));
	END IF;
	PERFORM set_config('late.do', replace(what, '%', 'late_use_' || method), true);
	EXECUTE format('UPDATE late_use_%s SET b = b + 1 WHERE %s', method, update)
		|| CASE place WHEN 'WHERE' THEN ' AND late_do() = 1' ELSE '' END;
	RAISE division_by_zero USING message = 'done';
EXCEPTION WHEN OTHERS THEN
	RETURN replace(sqlerrm, 'late_use_' || method, 't');
END $$;
SELECT what, place, update, late_try('heap', place, what, update) AS heap, late_try('inplace', place, what, update) AS inplace
INTO TEMP late_answers
FROM unnest('{REINDEX INDEX %_a,REINDEX INDEX %_pkey,REINDEX TABLE %,DROP INDEX %_a,DROP TABLE %,CREATE INDEX ON % (b),ALTER TABLE % ADD c int,ALTER TABLE % DROP a,TRUNCATE %}'::text[]) what,
	unnest('{BEFORE STATEMENT,BEFORE ROW,AFTER ROW,AFTER STATEMENT,WHERE}'::text[]) place,
	unnest('{id = 3,id < 4,id < 0}'::text[]) update;
SELECT place, inplace FROM late_answers WHERE what = 'REINDEX INDEX %_a' AND update = 'id < 4' ORDER BY place;
SELECT * FROM late_answers WHERE inplace <> heap ORDER BY what, place, update;
DROP TABLE late_use_heap, late_use_inplace, late_answers;
-- what reads the table for an index that it does not build anew is none of these
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'amcheck') THEN
		CREATE EXTENSION amcheck;
	END IF;
END $$;
CREATE FUNCTION late_amcheck(index regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_extension WHERE extname = 'amcheck') THEN
		PERFORM bt_index_check(index, true);
		PERFORM bt_index_parent_check(index, true, true);
	END IF;
END $$;
CREATE TABLE late_use_heap (id int PRIMARY KEY, a int, b int, c int[]) USING heap;
CREATE TABLE late_use_inplace (id int PRIMARY KEY, a int, b int, c int[]) USING inplace;
CREATE INDEX late_use_heap_brin ON late_use_heap USING brin (a) WITH (pages_per_range = 1);
CREATE INDEX late_use_inplace_brin ON late_use_inplace USING brin (a) WITH (pages_per_range = 1);
CREATE INDEX late_use_heap_gin ON late_use_heap USING gin (c);
CREATE INDEX late_use_inplace_gin ON late_use_inplace USING gin (c);
CREATE INDEX late_use_heap_expr ON late_use_heap ((a + b));
CREATE INDEX late_use_inplace_expr ON late_use_inplace ((a + b));
INSERT INTO late_use_heap SELECT i, i, i, ARRAY[i] FROM generate_series(1, 1000) i;
INSERT INTO late_use_inplace SELECT i, i, i, ARRAY[i] FROM generate_series(1, 1000) i;
SELECT what, place, update, late_try('heap', place, what, update) AS heap, late_try('inplace', place, what, update) AS inplace
INTO TEMP late_answers
FROM unnest(ARRAY['SELECT brin_desummarize_range(''%_brin'', 0)',
		-- (a rollback leaves the summary)
		'SELECT brin_summarize_new_values(brin) FROM brin_desummarize_range(''%_brin'', 1), (VALUES (''%_brin''::regclass)) v(brin)',
		'SELECT brin_summarize_range(brin, 1) FROM brin_desummarize_range(''%_brin'', 1), (VALUES (''%_brin''::regclass)) v(brin)',
		'SELECT gin_clean_pending_list(''%_gin'')', 'SELECT late_amcheck(''%_pkey'')',
		'REINDEX INDEX %_brin', 'REINDEX INDEX %_gin', 'REINDEX INDEX %_expr', 'DROP INDEX %_brin', 'CLUSTER % USING %_pkey', 'CREATE INDEX ON % USING brin (b)',
		'ALTER INDEX %_expr RENAME TO %_other', 'ALTER INDEX %_expr ALTER COLUMN 1 SET STATISTICS 10', 'ALTER INDEX %_brin SET (pages_per_range = 2)',
		'ALTER TABLE % DROP CONSTRAINT %_pkey', 'ALTER TABLE % ALTER a SET STATISTICS 10', 'CREATE STATISTICS ON a, b FROM %', 'ANALYZE %',
		'COMMENT ON INDEX %_brin IS ''x''', 'CREATE RULE r AS ON UPDATE TO % DO NOTHING']) what,
	unnest('{BEFORE STATEMENT,BEFORE ROW,AFTER ROW,WHERE}'::text[]) place,
	unnest('{id = 3,id < 4,a < 0}'::text[]) update;
SELECT what, inplace, count(*) FROM late_answers WHERE what ~ 'brin_|gin_|amcheck' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT * FROM late_answers WHERE inplace <> heap ORDER BY what, place, update;
DROP TABLE late_use_heap, late_use_inplace, late_answers;
DROP FUNCTION late_do, late_trigger, late_try, late_amcheck;
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS amcheck;
RESET client_min_messages;

-- partitions: a row that goes from one to another, and one named directly
CREATE TABLE late_parts (id int, k int) PARTITION BY RANGE (k);
CREATE TABLE late_p1 PARTITION OF late_parts FOR VALUES FROM (0) TO (10) USING inplace;
CREATE TABLE late_p2 PARTITION OF late_parts FOR VALUES FROM (10) TO (20) USING inplace;
CREATE INDEX ON late_parts USING btree (id);
INSERT INTO late_parts SELECT i, i % 10 FROM generate_series(1, 30) i;
UPDATE late_parts SET k = k + 10, id = id + 100 WHERE id <= 10;
UPDATE late_p2 SET id = id + 1 WHERE id = 103;
SET enable_seqscan = off;
SELECT tableoid::regclass, id, k FROM late_parts WHERE id BETWEEN 100 AND 104 ORDER BY id, k;
RESET enable_seqscan;

DROP TABLE late, late_parts;
DROP FUNCTION late_agree, late_inner, late_before;

-- of an aborted UPDATE in a function in SQL nothing is left; ALTER INDEX
CREATE TABLE lo_fn (a int, b int) USING inplace;
INSERT INTO lo_fn SELECT i, i FROM generate_series(1, 5) i;
CREATE INDEX lo_fn_a ON lo_fn (a);
CREATE FUNCTION lo_fails() RETURNS int LANGUAGE sql AS
$$UPDATE lo_fn SET b = 1 / (b - 3); SELECT 1$$;
DO $$DECLARE x int;
BEGIN
	BEGIN x := lo_fails(); EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'caught'; END;
	REINDEX INDEX lo_fn_a;
	DROP INDEX lo_fn_a;
END$$;
CREATE INDEX lo_fn_a ON lo_fn (a);
CREATE FUNCTION lo_alters() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN ALTER INDEX lo_fn_a SET (fillfactor = 50); RETURN new; END$$;
CREATE TRIGGER alters AFTER UPDATE ON lo_fn FOR EACH ROW EXECUTE FUNCTION lo_alters();
UPDATE lo_fn SET b = 7;
