# What readers and writers of large values do to the pages of a TOAST table of ours besides.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => "inplace.toast_in_place = on\nautovacuum = off\n");
$node->start;
one($node, q{
	CREATE EXTENSION inplace;
	CREATE FUNCTION toast_of(rel text) RETURNS regclass LANGUAGE sql AS
		$$ SELECT reltoastrelid::regclass FROM pg_class WHERE oid = rel::regclass $$;
	CREATE FUNCTION toast_items(rel text) RETURNS TABLE (blk bigint, state text, flags text[]) LANGUAGE sql AS
		$$ SELECT b, i.state, i.flags FROM generate_series(0, pg_relation_size(toast_of(rel)) / current_setting('block_size')::int - 1) b,
			inplace.page_items(toast_of(rel), b) i $$;
	CREATE FUNCTION random_text(len int, seed int) RETURNS text LANGUAGE sql AS
		$$ SELECT left(string_agg(md5(seed || ' ' || g), ''), len) FROM generate_series(0, len / 32) g $$});

# One chunk a value, four on a page.
one($node, q{
	CREATE TABLE t (id int, a text) USING inplace WITH (toast_tuple_target = 128);
	ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, random_text(1950, g) FROM generate_series(1, 40) g});
my $hinted = q{SELECT count(*) FILTER (WHERE 'COMMITTED' = ANY (flags)) FROM toast_items('t') WHERE state = 'normal'};
is(one($node, $hinted), '0', 'nobody knows yet that the chunks are committed');
is(one($node, 'SELECT count(*) FROM t WHERE a = random_text(1950, id)'), '40', 'a reader');
is(one($node, $hinted), '40', '... says so on their pages');

one($node, 'DELETE FROM t WHERE id % 2 = 0');
my $dead = q{SELECT count(*) FROM toast_items('t') WHERE state = 'dead'};
is(one($node, $dead), '0', 'deleted values are there');
ok(defined poll_value($node, qq{SELECT bool_and(a = random_text(1950, id)) AND (SELECT count(*) FROM ($dead) d(n) WHERE n = 20) > 0 FROM t}, 60),
	'readers take them away, if nobody needs them');

# A value read in a block that is rolled back becomes a parameter of queries with parallel workers.
one($node, q{
	CREATE TABLE p (a text) USING inplace;
	ALTER TABLE p ALTER a SET STORAGE EXTERNAL;
	INSERT INTO p VALUES (random_text(9000, 1));
	CREATE TABLE many USING heap AS SELECT g FROM generate_series(1, 2000) g;
	ANALYZE many;
	CREATE FUNCTION rolled_back() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
	DECLARE
		v text;
		was text;
	BEGIN
		BEGIN
			UPDATE p SET a = overlay(a PLACING 'changed' FROM 3000);
			SELECT a INTO v FROM p;
			was := md5(v);
			RAISE EXCEPTION 'back';
		EXCEPTION WHEN raise_exception THEN NULL;
		END;
		RETURN QUERY SELECT count(*) FROM many WHERE g > 0 AND md5(left(v || g, 9000)) = was;
	END $$});
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;';
like(one($node, "$parallel EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM many WHERE g > 0"), qr/Workers Launched: [1-9]/, 'a query with workers');
is(one($node, "$parallel SELECT rolled_back()"), '2000', '... finds the value as it was then');
one($node, 'CREATE FUNCTION explained() RETURNS SETOF text LANGUAGE plpgsql AS $$
	BEGIN
		BEGIN UPDATE p SET a = reverse(a); RAISE EXCEPTION \'back\'; EXCEPTION WHEN raise_exception THEN NULL; END;
		RETURN QUERY EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM many WHERE g > 0;
	END $$');
like(one($node, "$parallel SELECT * FROM explained()"), qr/Workers Launched: 0/, '... as it has none');

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
