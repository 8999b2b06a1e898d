# The same statements, on heap and on inplace tables, must print the same: what
# newer versions have, privileges and row level security, options of COPY, counters
# of the statistics, publications, and plans.  All of it beside an open snapshot.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $major = pg_major();
my $node = new_node('node', allows_streaming => 'logical', conf => q{
autovacuum = off
inplace.default_index_method = 'btree'
});
$node->start;
my @methods = qw(heap inplace);
heap_beside_inplace($node, 'btree_gist');
one($node, 'CREATE ROLE alice; CREATE ROLE bob; CREATE ROLE carol');

my %holder;
foreach my $am (@methods)
{
	$holder{$am} = psql_session($node, $am);
	$holder{$am}->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
}

same_as_heap($node, 'merge', q{
CREATE TABLE m (id int PRIMARY KEY, v int, w text);
CREATE TABLE s (id int, v int);
INSERT INTO m SELECT g, g, 'w' FROM generate_series(1, 20) g;
INSERT INTO s SELECT g, g * 10 FROM generate_series(15, 25) g;
MERGE INTO m USING s ON m.id = s.id WHEN MATCHED AND s.v > 180 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, w = w || '!' WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, 'new');
SELECT * FROM m ORDER BY id;
MERGE INTO m USING (SELECT 1 AS id UNION ALL SELECT 1) s ON m.id = s.id WHEN MATCHED THEN UPDATE SET v = 0;
SELECT * FROM m WHERE id = 1;
});
same_as_heap($node, 'merge, of 17', q{
MERGE INTO m USING s ON m.id = s.id WHEN MATCHED THEN UPDATE SET v = m.v + 1 WHEN NOT MATCHED BY SOURCE AND m.id < 3 THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (s.id, s.v, 'merged') RETURNING merge_action(), m.*, s.v;
WITH c AS (MERGE INTO m USING s ON m.id = s.id WHEN MATCHED THEN UPDATE SET w = 'cte' RETURNING merge_action() AS a, m.id) SELECT a, count(*) FROM c GROUP BY a;
CREATE VIEW mv AS SELECT id, v FROM m WHERE v < 1000;
MERGE INTO mv USING s ON mv.id = s.id WHEN MATCHED THEN UPDATE SET v = mv.v * 2 RETURNING merge_action(), mv.*;
SELECT * FROM m ORDER BY id;
}) if $major >= 17;
same_as_heap($node, 'returning old and new', q{
INSERT INTO m VALUES (100, 1, 'a'), (101, 2, 'b') RETURNING old.id, new.id;
UPDATE m SET v = v + 1 WHERE id >= 100 RETURNING old.v, new.v, old.*, new.*;
INSERT INTO m VALUES (100, 7, 'c') ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING old.v, new.v;
UPDATE m SET id = id + 100 WHERE id >= 100 RETURNING old.id, new.id;
DELETE FROM m WHERE id >= 200 RETURNING WITH (OLD AS o, NEW AS n) o.id, n.id;
}) if $major >= 18;

same_as_heap($node, 'generated columns', q{
CREATE TABLE g (id int PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (b < 1000));
CREATE INDEX g_b ON g (b);
INSERT INTO g (id, a) SELECT g, g FROM generate_series(1, 50) g;
UPDATE g SET a = a + 1 WHERE id % 2 = 0;
UPDATE g SET b = 1 WHERE id = 1;
UPDATE g SET a = 600 WHERE id = 1;
UPDATE g SET b = DEFAULT WHERE id = 1 RETURNING *;
SELECT sum(b), count(*) FROM g WHERE b > 50;
ALTER TABLE g ADD COLUMN c text GENERATED ALWAYS AS (a::text || 'x') STORED;
SELECT * FROM g WHERE b = 22;
ALTER TABLE g ALTER COLUMN b DROP EXPRESSION;
UPDATE g SET b = -1, a = 3 WHERE id = 5 RETURNING *;
});
same_as_heap($node, 'virtual generated columns', q{
CREATE TABLE gv (id int PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2) VIRTUAL, c int, CHECK (b < 1000), d text NOT NULL);
INSERT INTO gv (id, a, c, d) SELECT g, g, g, 'd' FROM generate_series(1, 50) g;
UPDATE gv SET a = a + 1, c = c - 1 WHERE id % 2 = 0 RETURNING old.b, new.b;
UPDATE gv SET a = 600 WHERE id = 1;
SELECT sum(b), min(b), max(b) FROM gv WHERE b > 50;
ALTER TABLE gv ADD COLUMN e int GENERATED ALWAYS AS (c + 1) VIRTUAL;
UPDATE gv SET d = d || e WHERE b < 10 RETURNING *;
CREATE TABLE gv_part (id int, a int, b int GENERATED ALWAYS AS (a + 1)) PARTITION BY RANGE (id);
CREATE TABLE gv_part1 PARTITION OF gv_part (b GENERATED ALWAYS AS (a + 100)) FOR VALUES FROM (0) TO (10);
CREATE TABLE gv_part2 PARTITION OF gv_part FOR VALUES FROM (10) TO (20);
INSERT INTO gv_part (id, a) VALUES (1, 1), (11, 1);
UPDATE gv_part SET id = 12 WHERE id = 1 RETURNING *;
SELECT tableoid::regclass, * FROM gv_part ORDER BY id;
COPY gv TO STDOUT;
}) if $major >= 18;
same_as_heap($node, 'temporal keys', q{
CREATE TABLE tp (id int, valid daterange, v int, CONSTRAINT tp_pk PRIMARY KEY (id, valid WITHOUT OVERLAPS));
CREATE TABLE tc (id int, valid daterange, pid int, CONSTRAINT tc_pk PRIMARY KEY (id, valid WITHOUT OVERLAPS), CONSTRAINT tc_fk FOREIGN KEY (pid, PERIOD valid) REFERENCES tp (id, PERIOD valid));
INSERT INTO tp VALUES (1, '[2020-01-01,2021-01-01)', 1), (1, '[2021-01-01,2022-01-01)', 2), (2, '[2020-01-01,2020-06-01)', 3);
INSERT INTO tp VALUES (1, '[2020-05-01,2020-07-01)', 9);
INSERT INTO tp VALUES (1, 'empty', 9);
INSERT INTO tc VALUES (1, '[2020-03-01,2021-03-01)', 1);
INSERT INTO tc VALUES (2, '[2020-03-01,2020-09-01)', 2);
UPDATE tp SET v = v + 10 WHERE id = 1 RETURNING *;
UPDATE tp SET valid = '[2020-01-01,2020-02-01)' WHERE v = 11;
UPDATE tp SET valid = '[2019-01-01,2021-01-01)' WHERE v = 11;
UPDATE tp SET id = 5 WHERE id = 2;
DELETE FROM tp WHERE v = 12;
DELETE FROM tc;
DELETE FROM tp WHERE v = 12 RETURNING *;
SELECT * FROM tp ORDER BY id, valid;
}) if $major >= 18;

same_as_heap($node, 'privileges', q{
CREATE TABLE p (id int PRIMARY KEY, open text, hidden text);
INSERT INTO p VALUES (1, 'o1', 'h1'), (2, 'o2', 'h2');
GRANT SELECT (id, open), UPDATE (open), INSERT (id, open) ON p TO alice;
GRANT DELETE ON p TO bob;
GRANT SELECT ON p TO bob;
GRANT TRUNCATE, REFERENCES, TRIGGER ON p TO carol;
SET ROLE alice;
SELECT id, open FROM p ORDER BY id;
SELECT * FROM p;
SELECT ctid FROM p;
UPDATE p SET open = 'by alice' WHERE id = 1;
UPDATE p SET hidden = 'x' WHERE id = 1;
UPDATE p SET open = hidden;
INSERT INTO p (id, open) VALUES (3, 'new') RETURNING id;
INSERT INTO p (id, open) VALUES (3, 'newer') ON CONFLICT (id) DO UPDATE SET open = excluded.open RETURNING id, open;
INSERT INTO p (id, open) VALUES (3, 'newer') ON CONFLICT (id) DO UPDATE SET open = p.hidden;
INSERT INTO p VALUES (4, 'x', 'y');
DELETE FROM p;
TRUNCATE p;
SELECT id FROM p FOR UPDATE;
LOCK TABLE p IN ACCESS EXCLUSIVE MODE;
COPY p (id, open) TO STDOUT;
COPY p TO STDOUT;
SET ROLE bob;
DELETE FROM p WHERE id = 2 RETURNING *;
UPDATE p SET open = 'x';
SET ROLE carol;
SELECT 1 FROM p;
TRUNCATE p;
RESET ROLE;
SELECT count(*) FROM p;
});
same_as_heap($node, 'row level security', q{
CREATE TABLE r (id int PRIMARY KEY, owner name, v int);
INSERT INTO r SELECT g, (ARRAY['alice', 'bob'])[g % 2 + 1], g FROM generate_series(1, 10) g;
ALTER TABLE r ENABLE ROW LEVEL SECURITY;
CREATE POLICY sel ON r FOR SELECT USING (owner = current_user OR v > 8);
CREATE POLICY upd ON r FOR UPDATE USING (owner = current_user) WITH CHECK (v < 100);
CREATE POLICY ins ON r FOR INSERT WITH CHECK (owner = current_user);
CREATE POLICY del ON r FOR DELETE USING (owner = current_user AND v < 5);
GRANT ALL ON r TO alice, bob;
SET ROLE alice;
SELECT * FROM r ORDER BY id;
UPDATE r SET v = v + 1 RETURNING *;
UPDATE r SET v = 1000;
UPDATE r SET owner = 'bob' WHERE id = 2;
INSERT INTO r VALUES (20, 'bob', 1);
INSERT INTO r VALUES (21, 'alice', 1) ON CONFLICT (id) DO UPDATE SET v = 2 RETURNING *;
INSERT INTO r VALUES (21, 'alice', 1) ON CONFLICT (id) DO UPDATE SET v = 3 RETURNING *;
INSERT INTO r VALUES (1, 'alice', 1) ON CONFLICT (id) DO UPDATE SET v = 2;
DELETE FROM r RETURNING *;
SELECT id FROM r ORDER BY id FOR UPDATE;
MERGE INTO r USING (VALUES (4), (5)) s (id) ON r.id = s.id WHEN MATCHED THEN UPDATE SET v = 50 WHEN NOT MATCHED THEN INSERT VALUES (s.id + 100, 'alice', 0);
COPY r TO STDOUT;
RESET ROLE;
SELECT * FROM r ORDER BY id;
});

same_as_heap($node, 'copy', q{
CREATE TABLE c (id int PRIMARY KEY, v int NOT NULL, w text);
BEGIN;
TRUNCATE c;
COPY c FROM STDIN (FREEZE);
1	1	a
2	2	b
\.
SELECT * FROM c ORDER BY id;
COMMIT;
COPY c FROM STDIN (FREEZE);
3	3	c
\.
COPY c FROM STDIN WHERE v > 4;
4	4	d
5	5	e
\.
COPY c FROM STDIN;
6	x	f
\.
COPY c FROM STDIN;
5	1	dup
\.
COPY c (v, id) FROM STDIN (FORMAT csv, HEADER match);
v,id
70,7
\.
SELECT * FROM c ORDER BY id;
COPY (UPDATE c SET v = v + 1 WHERE id < 3 RETURNING *) TO STDOUT (FORMAT csv);
CREATE TABLE cp (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE cp1 PARTITION OF cp FOR VALUES FROM (0) TO (10);
CREATE TABLE cp2 PARTITION OF cp FOR VALUES FROM (10) TO (20);
COPY cp FROM STDIN;
1	1
11	11
2	2
12	12
\.
COPY cp FROM STDIN;
3	3
30	30
\.
SELECT tableoid::regclass, * FROM cp ORDER BY id;
COPY (SELECT * FROM cp ORDER BY id) TO STDOUT;
COPY cp TO STDOUT;
COPY cp2 TO STDOUT;
});
same_as_heap($node, 'copy, errors passed over', q{
COPY c FROM STDIN (ON_ERROR ignore);
8	x	f
9	9	g
10	\N	h
11	11	i
\.
COPY c FROM STDIN (ON_ERROR ignore);
20	x	f
21	21	g
\.
SELECT * FROM c ORDER BY id;
}) if $major >= 17;

# What is planned, also in parallel: a line for each query.  (But for some whose
# plans cost nearly the same, so that the table's size, which is smaller, decides.)
same_as_heap($node, 'plans', q{
DROP TABLE g;
CREATE TABLE f (id int PRIMARY KEY, a int, b int, c text, d date, e numeric, arr int[], j jsonb);
INSERT INTO f SELECT g, g % 100, g % 7, 'c' || g % 500, date '2020-01-01' + g % 365, g / 7.0, ARRAY[g % 10, g % 20], jsonb_build_object('k', g % 50) FROM generate_series(1, 20000) g;
CREATE INDEX f_ab ON f (a, b);
CREATE INDEX f_c ON f (c);
CREATE INDEX f_d ON f (d) INCLUDE (e);
CREATE INDEX f_e ON f (e DESC) WHERE a < 50;
CREATE INDEX f_arr ON f USING gin (arr);
CREATE INDEX f_j ON f USING gin (j jsonb_path_ops);
CREATE INDEX f_hash ON f USING hash (c);
CREATE INDEX f_brin ON f USING brin (d);
CREATE INDEX f_expr ON f ((lower(c)), a);
CREATE TABLE g (id int PRIMARY KEY, fid int REFERENCES f, x int);
INSERT INTO g SELECT g, g, g % 10 FROM generate_series(1, 20000, 3) g;
CREATE INDEX g_fid ON g (fid);
CREATE INDEX g_x ON g (x);
VACUUM ANALYZE f, g;
CREATE FUNCTION plan_of(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE l text; p text := '';
BEGIN
	FOR l IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP p := p || ' / ' || l; END LOOP;
	RETURN q || p;
END $$;
CREATE TABLE q (q text);
INSERT INTO q SELECT unnest(ARRAY[
	'select * from f where a=5',
	'select * from f where a=5 and b=2',
	'select * from f where b=2',
	'select * from f where a in (1,2,3) and b=1',
	'select a,b from f where a=5',
	'select a,b from f',
	'select count(*) from f',
	'select * from f order by a,b limit 5',
	'select * from f order by a desc, b desc limit 5',
	'select * from f order by a, c limit 5',
	'select distinct a from f',
	'select distinct on (a) * from f order by a, b',
	'select min(a),max(e) from f',
	'select max(e) from f where a<50',
	'select * from f where e>100 and a<50',
	'select * from f where e>2000 and a=7',
	'select d,e from f where d=''2020-02-02''',
	'select sum(e) from f where d between ''2020-02-02'' and ''2020-02-09''',
	'select * from f where arr @> ''{3}'' and a=3',
	'select * from f where j @> ''{"k":3}''',
	'select * from f where c=''c3''',
	'select * from f where c like ''c3%''',
	'select * from f where lower(c)=''c3'' and a=3',
	'select * from f where a=1 or c=''c3''',
	'select * from f where a=1 and c=''c3''',
	'select * from f join g on f.id=g.fid where g.x=3',
	'select * from f join g on f.id=g.fid where f.a=3',
	'select * from f left join g on f.id=g.fid where f.a=3 and g.id is null',
	'select * from f where exists (select 1 from g where g.fid=f.id)',
	'select * from f where not exists (select 1 from g where g.fid=f.id)',
	'select * from f where id in (select fid from g where x=3)',
	'select f.*, (select max(id) from g where fid=f.id) from f where a=3',
	'select * from f, lateral (select * from g where fid=f.id order by id limit 2) l where a=3',
	'select * from f full join g on f.id=g.fid',
	'select * from f a join f b using (a) where a.id<10',
	'select * from f a join f b on a.a=b.a and a.b=b.b where a.id<100 and b.id<100',
	'select a, count(*) from f group by a',
	'select a,b,sum(e) from f group by rollup(a,b)',
	'select a, sum(e) over (partition by a order by b) from f',
	'select row_number() over (order by a,b) from f limit 10',
	'select a from f union select x from g',
	'select a from f intersect select x from g',
	'select * from f where id=5 for update',
	'select * from f where a=5 order by b limit 1 for update skip locked',
	'update f set e=e+1 where a=5',
	'update f set a=a+1 from g where g.fid=f.id and g.x=1',
	'delete from f where id in (select fid from g)',
	'insert into g select id,id,1 from f where a=3 on conflict (id) do update set x=excluded.x',
	'with w as (delete from g where x=1 returning *) select * from w join f on f.id=w.fid',
	'with recursive r as (select id, 1 n from f where id=1 union all select f.id, n+1 from f join r on f.id=r.id+1 where n<5) select * from r',
	'select * from f where ctid=''(0,1)''',
	'select * from f where ctid>''(5,0)''',
	'select * from f a join f b on a.ctid=b.ctid where a.id=1',
	'select * from f tablesample system(10)',
	'select * from f where (a,b) > (50,3) order by a,b limit 10',
	'select * from f where (a,b) in ((1,2),(3,4))',
	'select * from f where a = any(array(select x from g where id<10))',
	'select * from f where a is null',
	'select * from f where a is not null order by a limit 1',
	'select * from f where d = current_date',
	'select * from f where id=1 and false',
	'select * from f where a > 5 and a < 3',
	'select count(distinct a) from f',
	'select a, array_agg(b order by b) from f group by a',
	'select string_agg(c, '','') from f where a=3',
	'values (1),(2)',
	'select * from generate_series(1,3) s join f on f.id=s',
	'select * from f order by id desc limit 3',
	'select * from f where id>100 order by id limit 3 offset 5',
	'select id from f where id between 10 and 20',
	'select * from f where id = 3 or id = 5',
	'select * from f where b = 3 order by a limit 3',
	'select a,b from f where b = 3 order by a']);
SELECT plan_of(q) FROM q;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
SELECT plan_of(q) FROM q;
RESET ALL;
SET enable_hashjoin = off; SET enable_nestloop = off;
SELECT plan_of(q) FROM q;
RESET ALL;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
SELECT plan_of(q) FROM q WHERE q !~ 'e>100 and|j @>';
});

# Referential actions under audit triggers, nested and deferred.
same_as_heap($node, 'referential actions', q{
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	RAISE NOTICE '% % % % -> %', tg_name, tg_op, tg_table_name, CASE WHEN tg_op <> 'INSERT' THEN old::text END, CASE WHEN tg_op <> 'DELETE' THEN new::text END;
	RETURN CASE WHEN tg_op = 'DELETE' THEN old ELSE new END;
END $$;
CREATE TABLE ra_p (id int PRIMARY KEY, u int UNIQUE, v int);
CREATE TABLE ra_c (id int PRIMARY KEY, p int REFERENCES ra_p ON UPDATE CASCADE ON DELETE CASCADE,
	q int DEFAULT 0 REFERENCES ra_p (u) ON UPDATE SET NULL ON DELETE SET DEFAULT);
CREATE TABLE ra_d (id int PRIMARY KEY, c int REFERENCES ra_c ON DELETE SET NULL ON UPDATE CASCADE);
CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON ra_c FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER b BEFORE INSERT OR UPDATE OR DELETE ON ra_c FOR EACH ROW EXECUTE FUNCTION tell();
CREATE CONSTRAINT TRIGGER d AFTER INSERT OR UPDATE OR DELETE ON ra_c DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON ra_d FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO ra_p SELECT g, g, g FROM generate_series(0, 5) g;
INSERT INTO ra_c SELECT g, g, g FROM generate_series(1, 5) g;
INSERT INTO ra_d SELECT g, g FROM generate_series(1, 5) g;
BEGIN;
UPDATE ra_p SET id = id + 10 WHERE id = 1;
UPDATE ra_p SET u = u + 100 WHERE id = 2;
UPDATE ra_p SET id = id + 100, u = u + 100, v = 0 WHERE id = 3;
DELETE FROM ra_p WHERE id = 4;
UPDATE ra_c SET id = id + 50 WHERE id = 5;
SAVEPOINT a;
DELETE FROM ra_p WHERE id = 11;
ROLLBACK TO a;
UPDATE ra_p SET v = 3 WHERE id = 11;
UPDATE ra_p SET id = 1 WHERE id = 11;
COMMIT;
SELECT * FROM ra_c ORDER BY id;
SELECT * FROM ra_d ORDER BY id;
});

# Counters: an update in place counts as heap's HOT update, one that moves the row
# to another page as such.
foreach my $am (@methods)
{
	one($node, q{CREATE TABLE st (id int PRIMARY KEY, v int, k int, w text); CREATE INDEX ON st (k);
		INSERT INTO st SELECT g, g, g, 'w' FROM generate_series(1, 100) g;
		DELETE FROM st WHERE id > 90; UPDATE st SET v = v + 1 WHERE id <= 50; UPDATE st SET k = k + 1 WHERE id = 60;
		BEGIN; INSERT INTO st VALUES (200, 1, 1, 'no'); UPDATE st SET v = 0 WHERE id <= 10; DELETE FROM st WHERE id = 20; ROLLBACK;
		INSERT INTO st VALUES (1, 1, 1, 'c') ON CONFLICT (id) DO UPDATE SET v = 5;
		SELECT count(*) FROM st; SET enable_seqscan = off; SELECT v FROM st WHERE id = 7; SELECT pg_stat_force_next_flush()}, $am);
}
foreach my $column (qw(n_tup_ins n_tup_upd n_tup_del n_tup_hot_upd n_live_tup n_ins_since_vacuum n_mod_since_analyze seq_scan idx_scan))
{
	is(one($node, "SELECT $column FROM pg_stat_all_tables WHERE relname = 'st'", 'inplace'),
		one($node, "SELECT $column FROM pg_stat_all_tables WHERE relname = 'st'", 'heap'), "pg_stat_all_tables.$column");
}
if ($major >= 16)
{
	my $grow = q{CREATE TABLE np (id int PRIMARY KEY, w text); INSERT INTO np SELECT g, repeat('w', 400) FROM generate_series(1, 15) g;
		UPDATE np SET w = repeat('w', 1900) WHERE id = 3; UPDATE np SET id = 50 WHERE id = 1; SELECT pg_stat_force_next_flush()};
	one($node, $grow, $_) foreach @methods;
	is(one($node, "SELECT n_tup_upd, n_tup_newpage_upd > 0 FROM pg_stat_all_tables WHERE relname = 'np'", $_), '2|t', "n_tup_newpage_upd, $_") foreach @methods;
}

# Row filters, column lists, user_catalog_table.
same_as_heap($node, 'publications', q{
CREATE TABLE pub (id int PRIMARY KEY, a int, secret text);
CREATE PUBLICATION pub_some FOR TABLE pub (id, a) WHERE (id > 10);
CREATE TABLE cat (id int PRIMARY KEY, v text) WITH (user_catalog_table = true);
INSERT INTO cat VALUES (1, 'a');
UPDATE cat SET v = 'b';
SELECT reloptions, (SELECT v FROM cat) FROM pg_class WHERE relname = 'cat';
ALTER TABLE cat SET (user_catalog_table = false);
ALTER TABLE cat RESET (user_catalog_table);
SELECT pubname, tablename, attnames, rowfilter FROM pg_publication_tables;
});
foreach my $am (@methods)
{
	$holder{$am}->query('COMMIT');
	$holder{$am}->quit;
	one($node, "SELECT pg_create_logical_replication_slot('slot_$am', 'pgoutput')", $am);
	one($node, q{INSERT INTO pub SELECT g, g, 's' FROM generate_series(5, 15) g; UPDATE pub SET a = a + 1;
		UPDATE pub SET id = id + 60 WHERE id = 6; UPDATE pub SET id = id - 12 WHERE id = 15; DELETE FROM pub WHERE id IN (7, 13)}, $am);
}
# Type and row of each change (transactions and their positions are not the same).
my %changes;
foreach my $am (@methods)
{
	$changes{$am} = one($node, qq{
		SELECT string_agg(chr(get_byte(data, 0)) || encode(substr(data, 6), 'escape'), ' ' ORDER BY n)
		FROM (SELECT row_number() OVER () AS n, data
			FROM pg_logical_slot_get_binary_changes('slot_$am', NULL, NULL, 'proto_version', '1', 'publication_names', 'pub_some')) x
		WHERE get_byte(data, 0) IN (ascii('I'), ascii('U'), ascii('D'))}, $am);
}
is($changes{inplace}, $changes{heap}, 'row filters and column lists decide the same');
like($changes{heap}, qr/^I.* U.* D/s, '... about changes of each kind');

check_clean($node, 'at the end', 'inplace');
$node->stop;
check_log($node);
done_testing();
