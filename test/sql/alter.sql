-- Columns added, dropped, changed: old rows stay as they were written.
CREATE TABLE al_h (id int PRIMARY KEY, a int, b text) USING heap;
CREATE TABLE al_i (LIKE al_h INCLUDING ALL) USING inplace;
SELECT do_both('al', $$INSERT INTO $T SELECT g, g * 2, 'b' || g FROM generate_series(1, 20) g$$);
SELECT do_both('al', $$ALTER TABLE $T ADD COLUMN c int DEFAULT 5$$);
SELECT do_both('al', $$ALTER TABLE $T ADD COLUMN d text DEFAULT 'a default text', ADD COLUMN e numeric$$);
SELECT twins('al');
SELECT do_both('al', $$UPDATE $T SET a = 0 WHERE id < 5 RETURNING *$$);
SELECT do_both('al', $$UPDATE $T SET c = NULL WHERE id BETWEEN 4 AND 8$$);
SELECT do_both('al', $$UPDATE $T SET c = 6, d = 'changed' WHERE id BETWEEN 8 AND 10$$);
SELECT do_both('al', $$UPDATE $T SET d = d WHERE id = 11$$);
SELECT twins('al');
SELECT * FROM al_i WHERE id IN (1, 4, 8, 10, 11, 20) ORDER BY id;
-- the default changes; that of the old rows does not
SELECT do_both('al', $$ALTER TABLE $T ALTER c SET DEFAULT 50$$);
SELECT do_both('al', $$INSERT INTO $T (id) VALUES (21)$$);
SELECT do_both('al', $$UPDATE $T SET b = repeat('longer', 20) WHERE id > 15$$);
SELECT twins('al');
-- dropped
SELECT do_both('al', $$ALTER TABLE $T DROP COLUMN a$$);
SELECT do_both('al', $$UPDATE $T SET b = 'after drop' WHERE id IN (2, 12, 20)$$);
SELECT do_both('al', $$ALTER TABLE $T ADD COLUMN a bool DEFAULT true$$);
SELECT do_both('al', $$UPDATE $T SET a = NOT a WHERE id % 2 = 0$$);
SELECT do_both('al', $$DELETE FROM $T WHERE id % 5 = 0 RETURNING *$$);
SELECT twins('al');
-- rolled back, and an update over it
BEGIN;
SELECT do_both('al', $$ALTER TABLE $T ADD COLUMN f text DEFAULT 'f', DROP COLUMN d$$);
SELECT do_both('al', $$UPDATE $T SET f = f || id, b = NULL$$);
SELECT twins('al');
ROLLBACK;
SELECT twins('al');
SELECT do_both('al', $$UPDATE $T SET b = coalesce(b, '') || '.'$$);
SELECT twins('al');
-- several versions of a row on both sides of ADD COLUMN, in one transaction
BEGIN;
SELECT do_both('al', $$UPDATE $T SET b = 'before' WHERE id = 1$$);
SAVEPOINT s;
SELECT do_both('al', $$ALTER TABLE $T ADD COLUMN g int DEFAULT 9$$);
SELECT do_both('al', $$UPDATE $T SET g = g + 1 WHERE id <= 2$$);
SELECT twins('al');
ROLLBACK TO s;
SELECT do_both('al', $$UPDATE $T SET b = b || '!' WHERE id <= 2$$);
COMMIT;
SELECT twins('al');
-- rewrites: type, volatile default, generated
SELECT do_both('al', $$ALTER TABLE $T ALTER c TYPE text USING 'c' || c$$);
SELECT do_both('al', $$ALTER TABLE $T ADD COLUMN h int DEFAULT length(md5(random()::text))$$);
SELECT do_both('al', $$ALTER TABLE $T ADD COLUMN i int GENERATED ALWAYS AS (id * 2) STORED$$);
SELECT twins('al');
SELECT do_both('al', $$UPDATE $T SET c = c || c$$);
SELECT do_both('al', $$ALTER TABLE $T ALTER b TYPE varchar(200)$$);
SELECT do_both('al', $$ALTER TABLE $T ALTER b TYPE varchar(5)$$);
SELECT do_both('al', $$ALTER TABLE $T RENAME COLUMN b TO bb$$);
SELECT do_both('al', $$UPDATE $T SET bb = left(bb, 3)$$);
SELECT do_both('al', $$ALTER TABLE $T ALTER bb TYPE varchar(5), ALTER bb SET NOT NULL$$);
SELECT twins('al');
SELECT * FROM al_i WHERE id < 5 ORDER BY id;
-- missing values of by-reference types, and many of them
SELECT do_both('al', $$ALTER TABLE $T ADD COLUMN p point DEFAULT '(1,2)', ADD COLUMN u uuid DEFAULT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', ADD COLUMN ar int[] DEFAULT '{1,2}', ADD COLUMN ch char(20) DEFAULT 'ch', ADD COLUMN bg text DEFAULT repeat('big', 100)$$);
SELECT do_both('al', $$UPDATE $T SET ar = ar || id WHERE id % 3 = 0$$);
SELECT do_both('al', $$UPDATE $T SET p = NULL, bg = NULL WHERE id % 4 = 0$$);
SELECT twins('al');
SELECT do_both('al', $$ALTER TABLE $T DROP COLUMN p, DROP COLUMN c, DROP COLUMN bg$$);
SELECT do_both('al', $$UPDATE $T SET h = h + 1$$);
SELECT twins('al');
CREATE INDEX ON al_i (ch);
VACUUM FULL al_i;
SELECT twins('al');
-- all columns dropped
CREATE TABLE al_none (a int, b text) USING inplace;
INSERT INTO al_none VALUES (1, 'x'), (2, 'y');
ALTER TABLE al_none DROP COLUMN a, DROP COLUMN b;
SELECT count(*) FROM al_none;
ALTER TABLE al_none ADD COLUMN c int DEFAULT 3;
UPDATE al_none SET c = c + 1;
SELECT * FROM al_none;
-- unsupported options of storage parameters
CREATE TABLE al_opt (a int) USING inplace WITH (fillfactor = 50, autovacuum_enabled = off);
ALTER TABLE al_opt SET (fillfactor = 90);
ALTER TABLE al_opt SET (no_such_option = 1);

SELECT * FROM check_all();
