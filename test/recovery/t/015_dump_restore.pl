# Dump and restore: converted tables come back with the same access methods,
# and operator classes that were mirrored later come back at all.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";

use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('dump');
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
	# a class of our own, for a type that the server has
	'CREATE FUNCTION cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$SELECT btint4cmp($2, $1)$$',
	'CREATE OPERATOR CLASS backwards FOR TYPE int USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 cmp(int, int)');

is(one($node, "SELECT inplace.convert('p') + inplace.convert('t') + inplace.convert('part') + inplace.convert('mv')"),
	5, 'five tables converted');
is(one($node, 'SELECT inplace.mirror_opclasses()'), 2, 'a family and a class mirrored');

my $methods = q{
	SELECT string_agg(c.relname || ' ' || coalesce(a.amname, '-'), ', ' ORDER BY c.relname)
	FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam
	WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'm', 'i')};
my $classes = q{
	SELECT count(*) || ' ' || string_agg(n.nspname || '.' || c.opcname || ' ' || c.opcdefault || ' ' || c.opcintype::regtype
		|| ' ' || amvalidate(c.oid), ', ' ORDER BY n.nspname, c.opcname)
	FROM pg_opclass c JOIN pg_namespace n ON n.oid = c.opcnamespace JOIN pg_am a ON a.oid = c.opcmethod
	WHERE a.amname = 'inplace_btree'};
my %before = map { $_ => one($node, $_) } ($methods, $classes);
like($before{$methods}, qr/\bmv inplace\b.*\bp inplace\b.*\bpart_1 inplace\b.*\bpart_2 inplace\b.*\bstays heap\b.*\bt inplace\b.*\bt_n btree\b/,
	'methods after the conversion');
like($before{$classes}, qr/public\.backwards false integer true/, 'the mirrored class is there');

foreach my $format ('plain', 'custom')
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
		$node->command_ok([ 'pg_restore', '--exit-on-error', '--dbname', $db, $file ], 'restored by pg_restore');
	}
	is(one($node, $methods, $db), $before{$methods}, "$format: same access methods");
	is(one($node, $classes, $db), $before{$classes}, "$format: same operator classes, all valid");
	is(contents($node, $_, $db), contents($node, $_), "$format: same rows in $_") foreach qw(p t part mv stays);
	check_clean($node, "$format: restored", $db);
}

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
