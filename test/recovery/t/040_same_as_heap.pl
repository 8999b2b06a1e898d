# The same statements, on heap and on inplace tables, must print the same: what
# newer versions have, privileges and row level security, options of COPY, counters
# of the statistics, and publications.  All of it beside an open snapshot.

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
foreach my $am (@methods)
{
	one($node, "CREATE DATABASE $am");
	one($node, 'CREATE EXTENSION inplace; CREATE EXTENSION btree_gist', $am);
	one($node, "ALTER DATABASE $am SET default_table_access_method = $am; ALTER DATABASE $am SET client_min_messages = notice");
}
one($node, 'CREATE ROLE alice; CREATE ROLE bob; CREATE ROLE carol');

my %holder;
foreach my $am (@methods)
{
	$holder{$am} = psql_session($node, $am);
	$holder{$am}->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
}

# Statements, what they print and their errors, on both.  Rows without an order may
# come in any.
sub same
{
	my ($what, $sql) = @_;
	my %out;
	foreach my $am (@methods)
	{
		# errors do not end it, and are part of what is compared
		my ($rc, $out, $err) = $node->psql($am, $sql, extra_params => [ '-v', 'ON_ERROR_STOP=0' ]);
		$err =~ s/^psql:<stdin>:\d+: //mg;
		$err =~ s/^(HINT|CONTEXT):  .*\n?//mg;
		$out{$am} = join("\n", sort(split /\n/, $out)) . "\n-- stderr\n$err";
	}
	is($out{inplace}, $out{heap}, $what);
	cmp_ok(length($out{heap}), '>', 20, "$what: there is something to compare");
	unlike($out{heap}, qr/syntax error|does not exist/, "$what: nothing misspelt");
	note $out{heap};
}

same('merge', q{
CREATE TABLE m (id int PRIMARY KEY, v int, w text);
CREATE TABLE s (id int, v int);
INSERT INTO m SELECT g, g, 'w' FROM generate_series(1, 20) g;
INSERT INTO s SELECT g, g * 10 FROM generate_series(15, 25) g;
MERGE INTO m USING s ON m.id = s.id WHEN MATCHED AND s.v > 180 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, w = w || '!' WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, 'new');
SELECT * FROM m ORDER BY id;
MERGE INTO m USING (SELECT 1 AS id UNION ALL SELECT 1) s ON m.id = s.id WHEN MATCHED THEN UPDATE SET v = 0;
SELECT * FROM m WHERE id = 1;
});
same('merge, of 17', q{
MERGE INTO m USING s ON m.id = s.id WHEN MATCHED THEN UPDATE SET v = m.v + 1 WHEN NOT MATCHED BY SOURCE AND m.id < 3 THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (s.id, s.v, 'merged') RETURNING merge_action(), m.*, s.v;
WITH c AS (MERGE INTO m USING s ON m.id = s.id WHEN MATCHED THEN UPDATE SET w = 'cte' RETURNING merge_action() AS a, m.id) SELECT a, count(*) FROM c GROUP BY a;
CREATE VIEW mv AS SELECT id, v FROM m WHERE v < 1000;
MERGE INTO mv USING s ON mv.id = s.id WHEN MATCHED THEN UPDATE SET v = mv.v * 2 RETURNING merge_action(), mv.*;
SELECT * FROM m ORDER BY id;
}) if $major >= 17;
same('returning old and new', q{
INSERT INTO m VALUES (100, 1, 'a'), (101, 2, 'b') RETURNING old.id, new.id;
UPDATE m SET v = v + 1 WHERE id >= 100 RETURNING old.v, new.v, old.*, new.*;
INSERT INTO m VALUES (100, 7, 'c') ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING old.v, new.v;
UPDATE m SET id = id + 100 WHERE id >= 100 RETURNING old.id, new.id;
DELETE FROM m WHERE id >= 200 RETURNING WITH (OLD AS o, NEW AS n) o.id, n.id;
}) if $major >= 18;

same('generated columns', q{
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
same('virtual generated columns', q{
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
same('temporal keys', q{
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

same('privileges', q{
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
same('row level security', q{
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

same('copy', q{
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
same('copy, errors passed over', q{
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
same('publications', q{
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
