-- adaptive freezing
CREATE TABLE fz (id int PRIMARY KEY, t text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO fz SELECT g, repeat('f', 400) FROM generate_series(1, 2000) g;
SELECT all_visible_sets, pages_frozen FROM inplace.stat_freeze WHERE relname = 'fz';
-- off: as heap, nothing has to be frozen yet
SET inplace.adaptive_freezing = off;
CALL wait_for_others();
VACUUM fz;
SELECT all_visible_sets > 100 AS visible, all_frozen_sets, pages_frozen, observations
FROM inplace.stat_freeze WHERE relname = 'fz';
-- VACUUM FREEZE freezes all
CALL wait_for_others();
VACUUM (FREEZE) fz;
SELECT all_frozen_sets = all_visible_sets AS all_frozen, pages_frozen = all_frozen_sets AS counted
FROM inplace.stat_freeze WHERE relname = 'fz';
RESET inplace.adaptive_freezing;
-- on: nothing is known, all is frozen
CREATE TABLE fz2 (id int PRIMARY KEY, t text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO fz2 SELECT g, repeat('f', 380) FROM generate_series(1, 2000) g;
CALL wait_for_others();
VACUUM fz2;
SELECT all_frozen_sets = all_visible_sets AS all_frozen, pages_frozen = all_frozen_sets AS counted,
    threshold_seconds, target_seconds
FROM inplace.stat_freeze WHERE relname = 'fz2';
-- each kind of change is counted once a page
UPDATE fz2 SET t = repeat('g', 380) WHERE id = 1;
UPDATE fz2 SET t = repeat('h', 380) WHERE id = 2;
DELETE FROM fz2 WHERE id = 1000;
SELECT all_visible_unsets, all_frozen_unsets, early_unsets, early_frozen_unsets, observations
FROM inplace.stat_freeze WHERE relname = 'fz2';
-- a lock on the row takes all-frozen only
BEGIN;
SELECT id FROM fz2 WHERE id = 500 FOR SHARE;
COMMIT;
SELECT all_visible_unsets, all_frozen_unsets, early_unsets, early_frozen_unsets, observations
FROM inplace.stat_freeze WHERE relname = 'fz2';
-- an insert unsets as well
CALL wait_for_others();
VACUUM (FREEZE) fz2;
INSERT INTO fz2 VALUES (3000, 'x');
SELECT all_visible_unsets, all_frozen_unsets, early_unsets, early_frozen_unsets, observations
FROM inplace.stat_freeze WHERE relname = 'fz2';
SELECT fill_observations, fill_probability FROM inplace.stat_freeze WHERE relname = 'fz2';
-- pages by age; what is in no WAL has none
SELECT sum(pages) = pg_relation_size('fz2') / current_setting('block_size')::int AS all_pages,
    sum(all_visible) = (SELECT all_visible_sets - all_visible_unsets FROM inplace.stat_freeze WHERE relname = 'fz2') AS visible,
    sum(all_frozen) = (SELECT all_frozen_sets - all_frozen_unsets FROM inplace.stat_freeze WHERE relname = 'fz2') AS frozen,
    sum(pages) FILTER (WHERE age_from >= '1 hour' OR age_from IS NULL) AS old
FROM inplace.visibility_summary('fz2');
CREATE UNLOGGED TABLE fzu USING inplace AS SELECT 1 AS x;
CALL wait_for_others();
VACUUM fzu;
SELECT extract(epoch FROM age_from)::int AS age_from, extract(epoch FROM age_to)::int AS age_to, pages, all_visible, all_frozen
FROM inplace.visibility_summary('fzu');
SELECT * FROM inplace.visibility_summary('pg_class');
DROP TABLE fzu;
-- the model: normal, all changed at about 100 s
CREATE FUNCTION fz_p(d float8[], sets float8, age float8, target float8) RETURNS numeric
LANGUAGE sql AS 'SELECT round(inplace.freeze_probability(d, sets, age, target)::numeric, 3)';
SELECT fz_p(array_agg(100 + g), 50, 0, 1000) AS young, fz_p(array_agg(100 + g), 50, 1000, 1000) AS old,
    fz_p(array_agg(100 + g), 5000, 0, 1000) AS mostly_kept, fz_p(array_agg(100 + g), 50, 0, 10) AS short_target
FROM generate_series(-24, 25) g;
-- two kinds of changes, at once and near the target: what lies between is not
-- safe, what lies beyond is
SELECT fz_p(d, 400, 0, 100) AS new, fz_p(d, 400, 40, 100) AS between, fz_p(d, 400, 120, 100) AS beyond
FROM (SELECT array_agg(CASE WHEN g % 2 = 0 THEN 1 ELSE 90 END::float8) AS d FROM generate_series(1, 200) g) s;
-- ... and if the second is far off, pages in between can be frozen for a while
SELECT fz_p(d, 400, 0, 100) AS new, fz_p(d, 400, 40, 100) AS between, fz_p(d, 400, 900, 100) AS before
FROM (SELECT array_agg(CASE WHEN g % 2 = 0 THEN 1 ELSE 950 END::float8) AS d FROM generate_series(1, 200) g) s;
SELECT inplace.freeze_probability('{1,NULL}', 1, 1, 1);
SELECT inplace.freeze_probability('{1,-1}', 1, 1, 1);
SELECT inplace.freeze_probability('{1}', 1, 'NaN', 1);
-- few observations: all is frozen, unless they are of a large part of the pages;
-- then not until it has got older than those
CREATE FUNCTION fz_w(n int, sets float8, age float8) RETURNS boolean
LANGUAGE sql AS 'SELECT inplace.freeze_worthwhile(array_agg((9 + g % 3)::float8), sets, age, 100) FROM generate_series(1, n) g';
SELECT n, fz_w(n, 1000, 0) AS of_1000, fz_w(n, 4 * n, 0) AS quarter, fz_w(n, 4 * n + 1, 0) AS less, fz_w(n, n, 0) AS of_all,
    fz_w(n, 2 * n, 5) AS half_5_s, fz_w(n, 2 * n, 20) AS half_20_s, fz_w(n, 2 * n, 40) AS half_40_s
FROM unnest('{1,4,5,10,29,30,99}'::int[]) n;
SELECT fz_p('{10,10,10,10,10}', 5, 0, 10) AS new, fz_p('{10,10,10,10,10}', 5, 10, 10) AS old, fz_p('{0,0,0,0,0}', 5, 0, 0.25) AS at_once,
    fz_p('{}', 0, 0, 1) AS nothing;
SELECT inplace.freeze_worthwhile('{1,NULL}', 1, 1, 1);
SELECT inplace.freeze_worthwhile('{1}', 1, 1, -1);
-- the weight of what was observed is capped, so the model follows a table that has changed
SELECT new, round(inplace.freeze_probability(array_fill(10.0::float8, ARRAY[2000]) || array_fill(900.0::float8, ARRAY[new]), 2000 + new, 0, 100)::numeric, 3) AS young,
    inplace.freeze_worthwhile(array_fill(10.0::float8, ARRAY[2000]) || array_fill(900.0::float8, ARRAY[new]), 2000 + new, 0, 100) AS frozen
FROM unnest('{1,250,500,1000,2000}'::int[]) new;
DROP FUNCTION fz_w;
DROP FUNCTION fz_p;
-- pages that were set all-visible only are looked at again, and frozen
CREATE TABLE fzr (id int, t text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO fzr SELECT g, repeat('f', 400) FROM generate_series(1, 2000) g;
SET inplace.adaptive_freezing = off;
CALL wait_for_others();
VACUUM fzr;
CALL wait_for_others();
VACUUM fzr;
SELECT all_visible_sets > 100 AS visible, all_frozen_sets FROM inplace.stat_freeze WHERE relname = 'fzr';
RESET inplace.adaptive_freezing;
CALL wait_for_others();
VACUUM fzr;
SELECT all_frozen_sets = all_visible_sets AS frozen, pages_frozen = all_frozen_sets AS counted, all_visible_unsets
FROM inplace.stat_freeze WHERE relname = 'fzr';
DROP TABLE fzr;
-- room that VACUUM makes is soon filled: from then on pages with room are not
-- frozen, full ones are
CREATE TABLE fzf (id int, t text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO fzf SELECT g, repeat('f', 400) FROM generate_series(1, 1000) g;
DELETE FROM fzf WHERE id % 3 = 0;
CALL wait_for_others();
VACUUM fzf;
SELECT all_visible_sets > 40 AS visible, pages_frozen = all_visible_sets AS all_frozen, fill_observations, fill_probability
FROM inplace.stat_freeze WHERE relname = 'fzf';
INSERT INTO fzf SELECT g, repeat('f', 400) FROM generate_series(1001, 1333) g;
SELECT observations, early_unsets, early_frozen_unsets > 40 AS vain, fill_observations = early_frozen_unsets AS by_inserts, fill_probability > 0.5 AS likely
FROM inplace.stat_freeze WHERE relname = 'fzf';
INSERT INTO fzf SELECT g, repeat('f', 400) FROM generate_series(2001, 3000) g;
DELETE FROM fzf WHERE id % 3 = 0 AND id > 2100;
CREATE TEMP TABLE fzf_before AS SELECT all_frozen_sets, pages_frozen FROM inplace.stat_freeze WHERE relname = 'fzf';
CALL wait_for_others();
VACUUM fzf;
SELECT s.pages_frozen - b.pages_frozen = s.all_frozen_sets - b.all_frozen_sets AS same, s.pages_frozen - b.pages_frozen BETWEEN 40 AND 60 AS full_ones,
    (SELECT sum(all_visible - all_frozen) FROM inplace.visibility_summary('fzf')) BETWEEN 30 AND 60 AS with_room
FROM inplace.stat_freeze s, fzf_before b WHERE s.relname = 'fzf';
-- pages without rows are all-frozen at no cost, so nothing is in vain
DELETE FROM fzf;
CALL wait_for_others();
VACUUM (TRUNCATE off) fzf;
SELECT sum(all_frozen) = sum(pages) AS all_frozen FROM inplace.visibility_summary('fzf');
UPDATE fzf_before SET (all_frozen_sets, pages_frozen) = (SELECT all_frozen_unsets, early_frozen_unsets FROM inplace.stat_freeze WHERE relname = 'fzf');
INSERT INTO fzf VALUES (1, 'x');
SELECT all_frozen_unsets - b.all_frozen_sets AS unset, early_frozen_unsets - b.pages_frozen AS in_vain
FROM inplace.stat_freeze s, fzf_before b WHERE s.relname = 'fzf';
DROP TABLE fzf, fzf_before;
-- options of single tables
CREATE TABLE fz3 (id int, t text) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO fz3 SELECT g, repeat('f', 400) FROM generate_series(1, 200) g;
SELECT inplace.set_freeze_options('fz3', adaptive_freezing => false, target_freeze_duration => 77);
SELECT label FROM pg_seclabels WHERE provider = 'inplace' AND objname = 'fz3';
CALL wait_for_others();
VACUUM fz3;
SELECT all_frozen_sets, target_seconds, adaptive_freezing, target_freeze_duration FROM inplace.stat_freeze WHERE relname = 'fz3';
ALTER TABLE fz3 RENAME TO fz4;
SELECT inplace.set_freeze_options('fz4', true);
SET inplace.adaptive_freezing = off;
SET inplace.target_freeze_duration = 55;
INSERT INTO fz4 SELECT g, repeat('f', 400) FROM generate_series(3001, 5000) g;
CALL wait_for_others();
VACUUM fz4;
SELECT all_frozen_sets > 0 AS frozen, target_seconds, adaptive_freezing, target_freeze_duration FROM inplace.stat_freeze WHERE relname = 'fz4';
SELECT inplace.set_freeze_options('fz4');
SELECT label FROM pg_seclabels WHERE provider = 'inplace';
SELECT * FROM inplace.freeze_options('fz4'::regclass);
RESET inplace.adaptive_freezing;
RESET inplace.target_freeze_duration;
SECURITY LABEL FOR inplace ON TABLE fz4 IS 'target_freeze_duration=2min';
SELECT target_freeze_duration FROM inplace.freeze_options('fz4'::regclass);
SECURITY LABEL FOR inplace ON TABLE fz4 IS ' adaptive_freezing=on , target_freeze_duration= 3 h ';
SELECT * FROM inplace.freeze_options('fz4'::regclass);
-- what is refused
SECURITY LABEL FOR inplace ON TABLE fz4 IS 'target_freeze_duration=2 parsecs';
SECURITY LABEL FOR inplace ON TABLE fz4 IS 'adaptive_freezing=on,';
SECURITY LABEL FOR inplace ON TABLE fz4 IS 'target=1';
SECURITY LABEL FOR inplace ON TABLE fz4 IS 'target_freeze_duration=-1';
SECURITY LABEL FOR inplace ON TABLE fz4 IS 'adaptive_freezing=perhaps';
SECURITY LABEL FOR inplace ON TABLE fz4 IS 'on';
SECURITY LABEL FOR inplace ON COLUMN fz4.t IS 'adaptive_freezing=on';
SELECT inplace.set_freeze_options('fz4', NULL, -1);
SELECT inplace.set_freeze_options(NULL, true);
SELECT inplace.set_freeze_options('pg_class', true);
BEGIN READ ONLY;
SELECT inplace.set_freeze_options('fz4', true);
ROLLBACK;
CREATE ROLE fz_nobody;
SET ROLE fz_nobody;
SELECT inplace.set_freeze_options('fz4', true);
RESET ROLE;
DROP ROLE fz_nobody;
DROP TABLE fz, fz2, fz4;
SELECT count(*) FROM pg_seclabel WHERE provider = 'inplace';
-- all pages of a large table are changed again and again: that they have not been
-- changed since they were set a moment ago says nothing
CREATE TABLE fzl (id int PRIMARY KEY, a int, t text) USING inplace WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO fzl SELECT g, g, repeat('f', 700) FROM generate_series(1, 12000) g;
CALL wait_for_others();
VACUUM fzl;
DO $$ BEGIN PERFORM pg_sleep(2); UPDATE fzl SET a = a + 1; END $$;
CALL wait_for_others();
VACUUM fzl;
DO $$ BEGIN PERFORM pg_sleep(2); UPDATE fzl SET a = a + 1; END $$;
CALL wait_for_others();
VACUUM fzl;
SELECT observations < 1000 AS few_remembered, threshold_seconds > 0.9 AS not_frozen_at_once FROM inplace.stat_freeze WHERE relname = 'fzl';
DROP TABLE fzl;
