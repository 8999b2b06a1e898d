# Tables that extensions make for themselves, where inplace is the default: what a
# script of an extension makes, what C code makes, and writes with heap's functions,
# and the copies that pg_repack makes.  And triggers in C, whose answers are heap's.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('others', conf => q{autovacuum = off});
$node->start;
heap_beside_inplace($node);
my $lib = build_module($node, 'heap_only');
foreach my $db (qw(heap inplace))
{
	one($node, qq{
		CREATE FUNCTION make_table(text, text) RETURNS regclass LANGUAGE C AS '$lib';
		CREATE FUNCTION heap_writes(regclass) RETURNS void LANGUAGE C AS '$lib';
		CREATE FUNCTION log_rows() RETURNS trigger LANGUAGE C AS '$lib';
		CREATE FUNCTION double_v() RETURNS trigger LANGUAGE C AS '$lib'}, $db);
}

sub am
{
	my ($table) = @_;
	return one($node, "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = '$table'::regclass", 'inplace');
}

# The method of a table is as told, and the same is the dependency on it.
sub is_of
{
	my ($table, $am, $what) = @_;
	is(am($table), $am, $what);
	is(one($node, "SELECT count(*) FROM pg_depend WHERE objid = '$table'::regclass AND refclassid = 'pg_am'::regclass", 'inplace'),
		$am eq 'heap' ? '0' : '1', "$what: what it depends on");
	return;
}

# ---- made by C code
one($node, q{SELECT make_table('c1', '')}, 'inplace');
is_of('c1', 'heap', 'a table made by C code');
is(one($node, q{SELECT heap_writes('c1'); SELECT heap_writes('c1'); SELECT id, v, w IS NULL FROM c1}, 'inplace'),
	"\n\n1|2|t\n1|2|t", 'it can be written with the functions of heap');
is(one($node, q{INSERT INTO c1 VALUES (3, 3, repeat('w', 100000)); UPDATE c1 SET v = v + 1; DELETE FROM c1 WHERE id = 1; VACUUM c1; SELECT id, v, length(w) FROM c1}, 'inplace'),
	'3|4|100000', 'and by statements');
is(one($node, q{BEGIN; SELECT make_table('c2', ''); SELECT heap_writes('c2'); ROLLBACK; SELECT to_regclass('c2') IS NULL}, 'inplace'),
	"c2\n\nt", 'rolled back');
is(one($node, q{DO $$ BEGIN PERFORM make_table('c1', ''); EXCEPTION WHEN duplicate_table THEN PERFORM make_table('c3', ''); END $$; SELECT 1}, 'inplace'), '1', 'in a subtransaction');
is_of('c3', 'heap', 'a table made after an error');
one($node, q{CREATE TABLE made_beside AS SELECT make_table('c4', '') AS made}, 'inplace');
is_of('c4', 'heap', 'a table made by C code that CREATE TABLE AS calls');
is_of('made_beside', 'inplace', 'what CREATE TABLE AS makes then');

# ---- a child of a user's table follows it
one($node, 'CREATE TABLE p (id int, v int, w text); CREATE TABLE ph (id int, v int, w text) USING heap', 'inplace');
one($node, q{SELECT make_table('ci', 'p'), make_table('ch', 'ph')}, 'inplace');
is_of('ci', 'inplace', 'a child of an inplace table, made by C code');
is_of('ch', 'heap', 'a child of a heap table, made by C code');
is(one($node, q{INSERT INTO ci VALUES (1, 1, repeat('w', 100000)); UPDATE p SET v = 2; SELECT id, v, length(w) FROM p}, 'inplace'), '1|2|100000', 'the child has rows');
one($node, q{BEGIN; SELECT make_table('cl', ''); SELECT heap_writes('cl'); ALTER TABLE cl INHERIT p; COMMIT}, 'inplace');
is_of('cl', 'heap', 'one that becomes a child later stays what it is');

# ---- what users make is as ever
one($node, $_, 'inplace') foreach ('CREATE TABLE u1 (id serial PRIMARY KEY, w text)', 'CREATE TABLE u2 AS SELECT 1 AS a',
	'SELECT 1 AS a INTO u3', 'CREATE MATERIALIZED VIEW u4 AS SELECT 1 AS a', 'EXPLAIN ANALYZE CREATE TABLE u5 AS SELECT 1 AS a',
	'PREPARE x AS SELECT 1 AS a; CREATE TABLE u6 AS EXECUTE x', 'CREATE SCHEMA s CREATE TABLE u7 (a int)', 'CREATE UNLOGGED TABLE u8 (a int)',
	q{DO $$ BEGIN CREATE TABLE u9 (a int); EXECUTE 'CREATE TABLE u10 AS SELECT 1 AS a'; END $$},
	q{CREATE TABLE pt (a int) PARTITION BY LIST (a); CREATE TABLE u11 PARTITION OF pt FOR VALUES IN (1)},
	q{CREATE TABLE u12 (LIKE u1 INCLUDING ALL)}, 'CREATE TABLE IF NOT EXISTS u1 (a int); CREATE TABLE u13 (a int)',
	'VACUUM FULL u1', 'REFRESH MATERIALIZED VIEW u4', 'ALTER TABLE u2 ALTER a TYPE bigint');
is_of($_ == 7 ? 's.u7' : "u$_", 'inplace', "a user's table $_") foreach 1 .. 13;
one($node, 'CREATE TABLE h1 (a int) USING heap', 'inplace');
is_of('h1', 'heap', "a user's table USING heap");

# ---- the script of an extension (from 18 on there may be one anywhere)
SKIP:
{
	skip 'extensions are in one place up to 17', 4 if pg_major() < 18;
	my $dir = $node->basedir . '/share/extension';
	system('mkdir', '-p', $dir) == 0 or die;
	append_to_file("$dir/has_tables.control", "default_version = '1.0'\nrelocatable = true\n");
	append_to_file("$dir/has_tables--1.0.sql", q{
		CREATE TABLE e1 (a int, w text);
		CREATE TABLE e2 AS SELECT 1 AS a;
		CREATE TABLE e3 (a int) USING inplace;
		CREATE MATERIALIZED VIEW e4 AS SELECT 1 AS a;
	});
	$node->append_conf('postgresql.conf', "extension_control_path = '\$system:" . $node->basedir . "/share'");
	$node->reload;
	one($node, 'CREATE EXTENSION has_tables', 'inplace');
	is(join(' ', map { am($_) } qw(e1 e2 e3 e4)), 'heap heap inplace heap', "an extension's tables");
	one($node, 'CREATE TABLE after (a int)', 'inplace');
	is(am('after'), 'inplace', 'a table made after that');
	is(one($node, q{SET default_table_access_method = heap; DROP EXTENSION has_tables; CREATE EXTENSION has_tables; SELECT 1}, 'inplace'), '1', 'with heap as the default');
	is(join(' ', map { am($_) } qw(e1 e2 e3 e4)), 'heap heap inplace heap', "an extension's tables, with heap as the default");
}

# ---- pg_repack: its schema is known by whose member it is
sub tables_of_repack
{
	my ($default) = @_;
	my $sql = "SET default_table_access_method = $default;";
	foreach my $t (qw(u1 h1))
	{
		my $oid = one($node, "SELECT '$t'::regclass::oid", 'inplace');
		$sql .= "CREATE TABLE repack.table_$oid AS SELECT * FROM $t WITH NO DATA; CREATE TABLE repack.log_$oid (id bigserial PRIMARY KEY, row $t);
			CREATE INDEX index_$oid ON repack.table_$oid USING btree ((1));";
	}
	one($node, "$sql SELECT 1", 'inplace');
	my $made = one($node, q{
		SELECT string_agg(regexp_replace(c.relname, '[0-9]+', (regexp_replace(c.relname, '\D*(\d+).*', '\1'))::oid::regclass::text) || ' ' || amname, ', ' ORDER BY c.relname ~ 'log', c.oid)
		FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relnamespace = 'repack'::regnamespace AND c.relname ~ '^(table|log|index)_\d+$'}, 'inplace');
	one($node, 'DROP SCHEMA repack CASCADE; CREATE SCHEMA repack', 'inplace');
	return $made;
}
one($node, 'CREATE SCHEMA repack', 'inplace');
is(tables_of_repack('heap'), 'table_u1 heap, index_u1 btree, table_h1 heap, index_h1 btree, log_u1 heap, log_h1 heap', "a user's schema of that name, default heap");
is(tables_of_repack('inplace'), 'table_u1 inplace, index_u1 inplace_btree, table_h1 inplace, index_h1 inplace_btree, log_u1 inplace, log_h1 inplace', "... default inplace");

# as if the extension were there
my $member = q{INSERT INTO pg_depend SELECT 'pg_namespace'::regclass, 'repack'::regnamespace, 0, 'pg_extension'::regclass, (SELECT oid FROM pg_extension WHERE extname = 'pg_repack'), 0, 'e'};
sub repack_is_there
{
	one($node, qq{SET allow_system_table_mods = on; $member}, 'inplace');
	return;
}
one($node, q{SET allow_system_table_mods = on;
	INSERT INTO pg_extension SELECT 90000, 'pg_repack', 10, 'public'::regnamespace, false, '1.5', NULL, NULL}, 'inplace');
repack_is_there();
foreach my $default (qw(heap inplace))
{
	one($node, q{SET allow_system_table_mods = on; DELETE FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND refobjid = 90000; DROP SCHEMA repack CASCADE; CREATE SCHEMA repack}, 'inplace');
	repack_is_there();
	my $sql = "SET default_table_access_method = $default;";
	my %oid = map { $_ => one($node, "SELECT '$_'::regclass::oid", 'inplace') } qw(u1 h1);
	$sql .= "CREATE TABLE repack.table_$oid{$_} AS SELECT * FROM $_ WITH NO DATA; CREATE TABLE repack.log_$oid{$_} (id bigserial PRIMARY KEY, row $_);
		CREATE INDEX index_$oid{u1} ON repack.table_$oid{u1} USING btree ((1));" =~ s/CREATE INDEX.*//sr foreach qw(u1 h1);
	one($node, "$sql CREATE INDEX index_1 ON repack.table_$oid{u1} USING btree ((1)); CREATE INDEX index_2 ON repack.table_$oid{u1} USING inplace_btree ((1)); SELECT 1", 'inplace');
	is(am("repack.table_$oid{u1}"), 'inplace', "pg_repack's copy of an inplace table, default $default");
	is(am("repack.table_$oid{h1}"), 'heap', "pg_repack's copy of a heap table, default $default");
	is(am("repack.log_$oid{$_}"), 'heap', "its log of $_, default $default") foreach qw(u1 h1);
	is(am('repack.index_1'), 'btree', 'its copy of a btree index');
	is(am('repack.index_2'), 'inplace_btree', 'its copy of an inplace_btree index');
}
one($node, q{SET allow_system_table_mods = on; DELETE FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND refobjid = 90000; DELETE FROM pg_extension WHERE oid = 90000}, 'inplace');

# ---- triggers in C
foreach my $how (qw(modify_by_cols SPI_modifytuple copy over))
{
	same_as_heap($node, "triggers in C, row changed: $how", qq{
		CREATE TABLE t (id int, v int, w text, c char(20), big text, CHECK (v < 1000));
		CREATE UNIQUE INDEX ON t (id);
		CREATE INDEX ON t (v);
		ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
		CREATE TABLE log (n serial, id int, old t, new t);
		CREATE TRIGGER a BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION double_v('$how');
		CREATE TRIGGER b BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION double_v('$how');
		CREATE TRIGGER c BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION log_rows();
		CREATE TRIGGER d AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION log_rows();
		CREATE CONSTRAINT TRIGGER e AFTER INSERT OR UPDATE OR DELETE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_rows();
		INSERT INTO t SELECT g, g, 'w' || g, 'c' || g, CASE WHEN g % 3 = 0 THEN repeat('b', 5000) END FROM generate_series(1, 9) g;
		INSERT INTO t (id, v) VALUES (10, NULL), (11, 300);
		INSERT INTO t (id, v) VALUES (12, 5) RETURNING *;
		COPY t (id, v, w) FROM STDIN;
13	7	copied
14	8	copied
\\.
		UPDATE t SET v = v + 1 WHERE id < 5 RETURNING id, v, c;
		UPDATE t SET w = repeat('w', 50), big = NULL WHERE id = 3;
		UPDATE t SET w = w || 'x', big = big || 'x' WHERE id = 6;
		UPDATE t SET v = 1 WHERE id IN (7, 8);
		INSERT INTO t (id, v) VALUES (8, 2), (15, 3) ON CONFLICT (id) DO UPDATE SET v = excluded.v + 1;
		MERGE INTO t USING (VALUES (9), (16)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 3 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 4);
		DELETE FROM t WHERE id IN (1, 2) RETURNING *;
		SELECT id, v, w, c, length(big) FROM t ORDER BY id;
		SET enable_seqscan = off;
		SELECT id, v FROM t WHERE v >= 0 ORDER BY v, id;
		SELECT id, (old).id, (old).v, (old).w, (old).c, length((old).big), (new).id, (new).v, (new).w, (new).c, length((new).big), old IS NULL, new = new FROM log ORDER BY n;
		SELECT count(*), sum((l.new).v) FROM log l, LATERAL (SELECT (l.new).*) x;
		DROP TABLE t CASCADE});
	one($node, 'DROP TABLE IF EXISTS log, t CASCADE', $_) foreach qw(heap inplace);
}

check_clean($node, 'all tables', 'inplace');
check_log($node);
done_testing();
