-- Without inplace.update_under_other_indexes indexes of other methods are treated as on heap,
-- also where rows have former keys in an inplace_btree.
CREATE SCHEMA om;
SET search_path = om, inplace, public;
SHOW inplace.update_under_other_indexes;
CREATE TABLE t (id int PRIMARY KEY, p point, c circle, n int) USING inplace WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, point(g, g), circle(point(g, g), 1), g FROM generate_series(1, 1000) g;
CREATE INDEX ON t USING inplace_btree (n);
CREATE INDEX ON t USING gist (p);
CREATE INDEX ON t USING gist (c);
VACUUM ANALYZE t;
UPDATE t SET n = n + 1;
SELECT count(*) > 0 AS stale FROM page_items('t', 0) WHERE 'STALE' = ANY (flags);

-- rows by distance have all that belongs to a row
SET enable_sort = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id, n FROM t ORDER BY p <-> point(1, 1) LIMIT 2;
SELECT id, n, ctid = (SELECT ctid FROM t WHERE id = o.id) AS in_place, xmin::text <> '0' AS has_xmin
	FROM t o ORDER BY p <-> point(1, 1) LIMIT 2;
SELECT pg_relation_size('t') AS size \gset
SELECT id FROM t ORDER BY p <-> point(1, 1) LIMIT 1 FOR UPDATE SKIP LOCKED;
UPDATE t SET n = 0 WHERE ctid = (SELECT ctid FROM t ORDER BY p <-> point(1, 1) LIMIT 1) RETURNING id;

-- by distances that the index knows by approximation the executor may lose the place
SELECT id FROM t ORDER BY c <-> point(-50, -300) LIMIT 1 FOR UPDATE SKIP LOCKED;
SELECT pg_relation_size('t') = :size AS as_large;
RESET enable_sort;
RESET enable_seqscan;
DROP SCHEMA om CASCADE;

-- of a class whose distance is no number in floating point
SELECT current_database() AS here \gset
CREATE DATABASE regress_other_methods TEMPLATE template0;
\c regress_other_methods
CREATE EXTENSION inplace;
CREATE EXTENSION btree_gist;
CREATE TABLE t (id int PRIMARY KEY, i int, n int) USING inplace;
CREATE INDEX ON t USING inplace_btree (n);
CREATE INDEX ON t USING gist (i);
INSERT INTO t SELECT g, g, g FROM generate_series(1, 1000) g;
UPDATE t SET n = n + 1;
SET enable_sort = off;
SELECT id FROM t ORDER BY i <-> 500 LIMIT 1;
\c :here
DROP DATABASE regress_other_methods;
