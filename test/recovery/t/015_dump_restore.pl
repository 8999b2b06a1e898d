# Dump and restore: tables and indexes come back with the same access methods,
# whatever inplace.default_index_method would make of CREATE INDEX, and operator classes that were made later have their mirrors.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";

use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

# (DROP EXTENSION may be in a deadlock with it: 056)
my $node = new_node('dump', conf => "autovacuum = off\n");
$node->start;

one($node, $_) foreach (
	'CREATE EXTENSION inplace',
	'CREATE TABLE p (id int PRIMARY KEY, code text UNIQUE)',
	q{INSERT INTO p SELECT g, 'c' || g FROM generate_series(1, 300) g},
	'CREATE TABLE t (id int PRIMARY KEY, code text REFERENCES p (code), n int)',
	q{CREATE INDEX t_n ON t (n DESC, (lower(code))) WHERE n > 1},
	q{INSERT INTO t SELECT g, 'c' || g, g % 7 FROM generate_series(1, 300) g},
	'CREATE TABLE part (a int, b int) PARTITION BY RANGE (a)',
	'CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (100)',
	'CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (100) TO (200)',
	'INSERT INTO part SELECT g, g FROM generate_series(0, 199) g',
	'CREATE MATERIALIZED VIEW mv AS SELECT n, count(*) FROM t GROUP BY n',
	'CREATE TABLE stays AS SELECT 1 AS a',
	# indexes of both methods, in every way that CREATE INDEX can be given
	'CREATE TABLE ix (a int PRIMARY KEY, b int UNIQUE, c text, d text) USING inplace',
	q{INSERT INTO ix SELECT g, g, 'c' || g % 5, 'd' || g FROM generate_series(1, 200) g},
	map({
		my ($set, $name) = @$_;
		my $options = 'WITH (fillfactor = 80, deduplicate_items = off)';
		("$set; CREATE INDEX ${name}_plain ON ix (b)",
			"$set; CREATE INDEX ${name}_expr ON ix (lower(c) DESC NULLS LAST, (a + b)) INCLUDE (d) $options WHERE a > 3",
			"$set; CREATE INDEX ${name}_opclass ON ix (c text_pattern_ops, d COLLATE \"C\")",
			"$set; CREATE UNIQUE INDEX ${name}_unique ON ix (b, a)",
			"$set; CREATE INDEX ${name}_said ON ix USING inplace_btree (b)",
			"$set; CREATE INDEX ${name}_heap ON stays (a)",
			"$set; CREATE TABLE ${name}_part (a int, b int) PARTITION BY RANGE (a)",
			"$set; CREATE TABLE ${name}_part_1 PARTITION OF ${name}_part FOR VALUES FROM (0) TO (10) USING inplace",
			"$set; CREATE TABLE ${name}_part_2 PARTITION OF ${name}_part FOR VALUES FROM (10) TO (20) USING heap",
			"$set; CREATE INDEX ${name}_part_b ON ${name}_part (b)",
			"$set; CREATE INDEX ${name}_part_1_own ON ${name}_part_1 (b, a)",
			"$set; CREATE INDEX ${name}_part_2_own ON ${name}_part_2 (b, a)",
			"$set; INSERT INTO ${name}_part SELECT g % 20, g FROM generate_series(1, 100) g")
	} ([ 'SELECT 1', 'mirror' ], [ 'SET inplace.default_index_method = btree', 'plain' ])),
	'CREATE INDEX stays_said ON stays USING inplace_btree (a)',
	'ALTER TABLE ix CLUSTER ON mirror_plain',
	# a class of our own, for a type that the server has
	'CREATE FUNCTION cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$SELECT btint4cmp($2, $1)$$',
	'CREATE OPERATOR CLASS backwards FOR TYPE int USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 cmp(int, int)',
	# one of each method with the same name, the other way round (pg_dump writes btree's first)
	'CREATE OPERATOR CLASS pair FOR TYPE int USING inplace_btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 cmp(int, int)',
	'CREATE OPERATOR CLASS pair FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int)',
	'CREATE EXTENSION citext',
	'CREATE TABLE own (a int, c citext) USING inplace',
	q{INSERT INTO own SELECT i, 'C' || i FROM generate_series(1, 100) i},
	# (not on ix, too: the two would be a deadlock in a parallel restore, of heap as well)
	'CREATE UNIQUE INDEX own_ident ON own (a)',
	'ALTER TABLE own ALTER a SET NOT NULL',
	'ALTER TABLE own REPLICA IDENTITY USING INDEX own_ident',
	'CREATE INDEX own_back ON own USING inplace_btree (a backwards)',
	'CREATE INDEX own_citext ON own USING inplace_btree (c)',
	'CREATE INDEX own_pair ON own USING inplace_btree (a pair)',
	'CREATE INDEX own_pair_btree ON own USING btree (a pair)',
	'CREATE INDEX own_pattern ON own USING inplace_btree (c citext_pattern_ops)');

is(one($node, "SELECT inplace.convert('p') + inplace.convert('t') + inplace.convert('part') + inplace.convert('mv')"),
	5, 'five tables converted');
is(one($node, 'SELECT inplace.mirror_opclasses()'), 0, 'all classes have mirrors');

my $methods = q{
	SELECT string_agg(c.relname || ' ' || coalesce(a.amname, '-'), ', ' ORDER BY c.relname)
	FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam
	WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'm', 'i', 'I')};
my $definitions = q{
	SELECT string_agg(indexdef, '; ' ORDER BY indexdef COLLATE "C") FROM pg_indexes WHERE schemaname = 'public'};
my $classes = q{
	SELECT count(*) || ' ' || string_agg(n.nspname || '.' || c.opcname || ' ' || c.opcdefault || ' ' || c.opcintype::regtype
		|| ' ' || amvalidate(c.oid) || CASE f.opfmethod WHEN a.oid THEN ' not a mirror' ELSE '' END, ', ' ORDER BY n.nspname, c.opcname)
	FROM pg_opclass c JOIN pg_namespace n ON n.oid = c.opcnamespace JOIN pg_am a ON a.oid = c.opcmethod
		JOIN pg_opfamily f ON f.oid = c.opcfamily
	WHERE a.amname = 'inplace_btree'};
my %before = map { $_ => one($node, $_) } ($methods, $definitions, $classes);
like($before{$methods}, qr/\bmv inplace\b.*\bp inplace\b.*\bpart_1 inplace\b.*\bpart_2 inplace\b.*\bstays heap\b.*\bt inplace\b.*\bt_n inplace_btree\b/,
	'methods after the conversion');
like($before{$methods}, qr/\bmirror_$_ inplace_btree\b.*\bplain_$_ btree\b/, "$_: one of each method")
  foreach qw(plain expr opclass part_b part_1_own part_2_own);
like($before{$methods}, qr/\bmirror_heap btree\b.*\bplain_said inplace_btree\b.*\bstays_said inplace_btree\b/, 'and the others');
like($before{$classes}, qr/public\.backwards false integer true, public\.citext_ops true citext true/, 'the mirrored classes are there');
like($before{$classes}, qr/public\.pair false integer true not a mirror/, 'and one of our own');
$node->command_ok([ 'pg_dump', '--schema-only', '--file', $node->basedir . '/dump.classes', 'postgres' ], 'pg_dump --schema-only');
unlike(slurp_file($node->basedir . '/dump.classes'), qr/OPERATOR (CLASS|FAMILY) (?!public\.pair\b)[^;]*USING inplace_btree/, 'mirrors are not in the dump');

foreach my $format ('plain', 'custom', 'directory')
{
	my $file = $node->basedir . "/dump.$format";
	my $db = "restored_$format";
	$node->command_ok([ 'pg_dump', "--format=$format", '--file', $file, 'postgres' ], "pg_dump, $format");
	one($node, "CREATE DATABASE $db TEMPLATE template0");
	if ($format eq 'plain')
	{
		$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $db, '-f', $file ], 'restored by psql');
	}
	else
	{
		my @jobs = $format eq 'directory' ? ('--jobs=2') : ();
		$node->command_ok([ 'pg_restore', @jobs, '--exit-on-error', '--dbname', $db, $file ], 'restored by pg_restore');
	}
	is(one($node, $methods, $db), $before{$methods}, "$format: same access methods");
	is(one($node, $definitions, $db), $before{$definitions}, "$format: same indexes");
	is(one($node, $classes, $db), $before{$classes}, "$format: same operator classes, all valid");
	is(contents($node, $_, $db), contents($node, $_), "$format: same rows in $_") foreach qw(p t part mv stays ix own mirror_part plain_part);
	check_clean($node, "$format: restored", $db);
}

# with heap tables in place of inplace ones
$node->command_ok([ 'pg_dump', '--no-table-access-method', '--file', $node->basedir . '/dump.heap', 'postgres' ], 'pg_dump --no-table-access-method');
one($node, 'CREATE DATABASE restored_heap TEMPLATE template0');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', 'restored_heap', '-f', $node->basedir . '/dump.heap' ], 'restored');
is(one($node, $definitions, 'restored_heap'), $before{$definitions}, 'heap tables: same indexes');
is(contents($node, 'ix', 'restored_heap'), contents($node, 'ix'), 'heap tables: same rows');

# and back to heap
is(one($node, "SELECT inplace.convert('t', 'heap')", 'restored_plain'), 1, 'converted back');
is(contents($node, 't', 'restored_plain'), contents($node, 't'), 'the rows are the same');

# nothing is left of the extension when it goes
is(one($node, 'SET client_min_messages = error; DROP EXTENSION inplace CASCADE', 'restored_custom'), '', 'extension dropped');
is(one($node, q{SELECT count(*) FROM pg_opclass c WHERE NOT EXISTS (SELECT FROM pg_am a WHERE a.oid = c.opcmethod)}, 'restored_custom'),
	0, 'no operator class is left behind');

crash_and_restart($node);
is(contents($node, 't', 'restored_plain'), contents($node, 't'), 'the rows are the same after a crash');
$node->stop;
check_log($node);
done_testing();
