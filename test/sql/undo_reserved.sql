-- The undo that is reserved for an update is enough if the row moves, though less of
-- it has changed than its new place takes to say, and others have locked it, at the
-- very end of an extent.  Servers with assertions see to it that no extent is taken
-- with the row's page locked.
SET default_table_access_method = inplace;
SET inplace.default_index_method = btree;
CREATE TABLE filler (v text);
ALTER TABLE filler ALTER v SET STORAGE PLAIN;
INSERT INTO filler VALUES ('x');
CREATE TABLE moving (id int, k int);
CREATE INDEX ON moving (k);
INSERT INTO moving VALUES (1, 1);
BEGIN;
SELECT id FROM moving FOR KEY SHARE;
PREPARE TRANSACTION 'undo_reserved';
-- where the record of the last change of filler's row begins
CREATE FUNCTION last_record(OUT block bigint, OUT off int) LANGUAGE sql AS
$$ SELECT split_part(undo, '/', 1)::bigint, split_part(undo, '/', 2)::int
   FROM inplace.page_items('filler', 0)
   WHERE undo IS NOT NULL AND 'DELETED' <> ALL (flags) $$;
CREATE FUNCTION change_filler(len int) RETURNS void LANGUAGE sql AS
$$ UPDATE filler SET v = repeat(CASE WHEN v LIKE 'a%' THEN 'b' ELSE 'a' END, len) $$;
-- an extent has 32 pages, and 8184 is the end of their records: how much is left for
-- the second move is tried byte by byte
DO $$
DECLARE
	r record;
	here int;
	ends_there int := 0;
BEGIN
	FOR spare IN 222..242 LOOP
		BEGIN
			-- the row is our own then, and its record has the whole header
			UPDATE moving SET k = 2;
			LOOP
				PERFORM change_filler(100);
				r := last_record();
				EXIT WHEN r.block % 32 = 0 AND r.off BETWEEN 6500 AND 7400;
				IF r.block % 32 <> 0 THEN
					PERFORM change_filler(6000);
				END IF;
			END LOOP;
			here := r.off;
			PERFORM change_filler(100);
			r := last_record();
			-- then come two more of as many bytes, and one with the value of this length
			PERFORM change_filler(8184 - r.off - 3 * (r.off - here) + 96 - spare);
			PERFORM change_filler(1);
			r := last_record();
			ends_there := ends_there + (r.block % 32 = 0)::int;
			UPDATE moving SET k = 3;
			RAISE EXCEPTION USING ERRCODE = 'P0001';
		EXCEPTION WHEN SQLSTATE 'P0001' THEN
			NULL;
		END;
	END LOOP;
	RAISE NOTICE '% of 21', ends_there;
END $$;
SELECT * FROM moving;
ROLLBACK PREPARED 'undo_reserved';
DROP TABLE filler, moving;
DROP FUNCTION last_record, change_filler;
RESET inplace.default_index_method;
