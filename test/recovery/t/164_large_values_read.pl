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

# One chunk a value, four on a page.  (The rows are large enough for that with another column.)
one($node, q{
	CREATE TABLE t (id int, p text, a text) USING inplace;
	ALTER TABLE t ALTER p SET STORAGE PLAIN, ALTER a SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, repeat('p', 200), random_text(1950, g) FROM generate_series(1, 40) g});
my $hinted = q{SELECT count(*) FILTER (WHERE 'COMMITTED' = ANY (flags)) FROM toast_items('t') WHERE state = 'normal'};
is(one($node, $hinted), '0', 'nobody knows yet that the chunks are committed');
is(one($node, 'SELECT count(*) FROM t WHERE a = random_text(1950, id)'), '40', 'a reader');
is(one($node, $hinted), '40', '... says so on their pages');

one($node, 'DELETE FROM t WHERE id % 2 = 0');
my $dead = q{SELECT count(*) FROM toast_items('t') WHERE state = 'dead'};
is(one($node, $dead), '0', 'deleted values are there');
ok(defined poll_value($node, qq{SELECT bool_and(a = random_text(1950, id)) AND (SELECT count(*) FROM ($dead) d(n) WHERE n = 20) > 0 FROM t}, 60),
	'readers take them away, if nobody needs them');

# Lengths that change: a last chunk moves once, and without VACUUM nothing grows any more.
one($node, q{
	CREATE TABLE l (id int, a text) USING inplace;
	ALTER TABLE l ALTER a SET STORAGE EXTERNAL;
	INSERT INTO l SELECT g, random_text(3000, g) FROM generate_series(1, 100) g});
my $size = q{SELECT pg_relation_size(toast_of('l'))};
my $small = one($node, $size);
foreach my $i (1 .. 40)
{
	one($node, "UPDATE l SET a = random_text(2000 + (id * $i * 37) % 1990, id + $i)");
	next if $i % 10 > 0;
	is(one($node, "SELECT count(*) FROM l WHERE a = random_text(2000 + (id * $i * 37) % 1990, id + $i)"), '100', "lengths changed $i times");
}
cmp_ok(one($node, $size), '<', 2 * $small, 'the TOAST table has not grown much');
one($node, q{UPDATE l SET a = random_text(2500, id); UPDATE l SET a = left(a, 2100) || 'tail'});
is(one($node, q{SELECT count(*) FROM l WHERE a = left(random_text(2500, id), 2100) || 'tail' AND substr(a, 2090) = substr(left(random_text(2500, id), 2100) || 'tail', 2090)}),
	'100', 'shorter values have no more bytes than that');

# A slice of chunks that have not been changed takes one scan of the index, without chunk 0.
# (Of text in UTF8 the server fetches all before it.)
one($node, q{
	CREATE TABLE s (id int, b bytea) USING inplace;
	ALTER TABLE s ALTER b SET STORAGE EXTERNAL;
	CREATE FUNCTION bytes(v text) RETURNS bytea LANGUAGE sql AS $$ SELECT convert_to(v, 'UTF8') $$;
	INSERT INTO s VALUES (1, bytes(random_text(200000, 1)))});
my $value = 'random_text(200000, 1)';
sub change_value
{
	my ($how) = @_;
	(my $new = $how) =~ s/VALUE/convert_from(b, 'UTF8')/;
	one($node, "UPDATE s SET b = bytes($new)");
	$how =~ s/VALUE/$value/;
	$value = $how;
}
sub scans_of_slice
{
	my ($what, $at, $expected) = @_;
	my $scans = q{SELECT sum(idx_scan) FROM pg_stat_all_indexes WHERE relid = toast_of('s')};
	one($node, 'SELECT b IS NULL FROM s; SELECT pg_stat_force_next_flush()');
	my $before = one($node, $scans);
	is(one($node, "SELECT substr(b, $at, 10) = substr(bytes($value), $at, 10) FROM s; SELECT pg_stat_force_next_flush()"), "t\n", "$what: right");
	cmp_ok(one($node, $scans) - $before, '<=', $expected, "$what: scans");
}
scans_of_slice('a new value', 150000, 1);
change_value(q{overlay(VALUE PLACING 'changed' FROM 50000)});
scans_of_slice('unchanged chunks', 150000, 1);
scans_of_slice('changed chunks', 49995, 3);
scans_of_slice('at the front', 1, 1);
change_value(q{overlay(VALUE PLACING 'altered' FROM 50100)});
change_value('left(VALUE, 100000)');
change_value(q{VALUE || repeat('longer', 10000)});
scans_of_slice('chunks inserted again', 150000, 3);
one($node, q{VACUUM FULL s});
scans_of_slice('a copy', 150000, 1);
is(one($node, qq{
	BEGIN;
	UPDATE s SET b = overlay(b PLACING 'own' FROM 150003);
	SELECT substr(b, 150000, 10) = substr(overlay(bytes($value) PLACING 'own' FROM 150003), 150000, 10) FROM s;
	ROLLBACK;
	SELECT substr(b, 150000, 10) = substr(bytes($value), 150000, 10) FROM s}), "t\nt", 'a change of our own, and rolled back');

# What comes in at the front, or goes, is all that is written of the chunks behind.
one($node, q{
	CREATE TABLE f (id int, a text) USING inplace;
	ALTER TABLE f ALTER a SET STORAGE EXTERNAL;
	INSERT INTO f VALUES (1, random_text(3000000, 1)), (2, random_text(5000, 2)), (3, random_text(2100, 3))});
my $reader = psql_session($node);
$reader->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
my $in_use = 'SELECT sum(extents - free_extents) FROM inplace.undo';
my $were = one($node, $in_use);
one($node, q{UPDATE f SET a = 'x' || a});
cmp_ok(one($node, $in_use) - $were, '<=', 3, 'undo of a value shifted by a byte');
my @shifts = (q{'front' || V}, q{substr(V, 10)}, q{overlay(V PLACING 'longer than it was' FROM 1500 FOR 3)}, q{overlay(V PLACING '' FROM 1700 FOR 900)},
	q{overlay(V PLACING repeat('many', 490) FROM 2000 FOR 1)}, q{V || 'end'}, q{left(V, length(V) - 1995)}, q{repeat('two', 3000) || V}, q{overlay(V PLACING 'abc' FROM 1990 FOR 17)},
	q{reverse(V)}, q{repeat(left(V, 100), 50) || 'y' || V}, q{'z' || V}, q{overlay(V PLACING 'same' FROM 7 FOR 4)});
one($node, q{CREATE TABLE f_heap USING heap AS SELECT * FROM f});
foreach my $shift (@shifts)
{
	(my $new = $shift) =~ s/\bV\b/a/g;
	one($node, "UPDATE $_ SET a = $new WHERE id > 1") foreach qw(f f_heap);
	is(one($node, 'SELECT count(*) FROM f JOIN f_heap h USING (id) WHERE f.a = h.a'), '3', $shift);
	one($node, "BEGIN; UPDATE f SET a = 'back' || a WHERE id > 1; ROLLBACK");
}
is(one($node, 'SELECT count(*) FROM f JOIN f_heap h USING (id) WHERE f.a = h.a'), '3', 'after rollbacks');
is($reader->query_safe('SELECT count(*) FROM f WHERE a = random_text(CASE id WHEN 1 THEN 3000000 WHEN 2 THEN 5000 ELSE 2100 END, id)'), '3',
	'an old snapshot sees what was there before');
$reader->query_safe('COMMIT');
$reader->quit;
crash_and_restart($node);
is(one($node, 'SELECT count(*) FROM f JOIN f_heap h USING (id) WHERE f.a = h.a'), '3', 'after a crash');

# What a session notes of values of its subtransactions has a bound.  Beyond it values that were
# rolled back may be gone, but never are others.
my @columns = map { "a$_" } 1 .. 10;
one($node, 'CREATE UNLOGGED TABLE c (' . join(', ', map { "$_ text" } @columns) . ') USING inplace WITH (toast_tuple_target = 128)');
one($node, 'ALTER TABLE c ' . join(', ', map { "ALTER $_ SET STORAGE EXTERNAL" } @columns));
one($node, q{
	CREATE TABLE d (a text) USING inplace;
	ALTER TABLE d ALTER a SET STORAGE EXTERNAL;
	INSERT INTO d VALUES (random_text(9000, 1));
	CREATE FUNCTION many_back() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		v1 text; v20 text; v40 text;
		was1 text; was20 text; was40 text; was69 text;
		said text := '';
	BEGIN
		FOR i IN 1 .. 70 LOOP
			BEGIN
				UPDATE d SET a = overlay(a PLACING 'v' || lpad(i::text, 3) FROM 3000);
				IF i = 1 THEN SELECT a, md5(a) INTO v1, was1 FROM d; END IF;
				IF i = 20 THEN SELECT a, md5(a) INTO v20, was20 FROM d; END IF;
				IF i = 40 THEN SELECT a, md5(a) INTO v40, was40 FROM d; END IF;
				IF i = 69 THEN SELECT md5(a) INTO was69 FROM d; END IF;
				IF i % 3 > 0 THEN RAISE EXCEPTION 'back'; END IF;
			EXCEPTION WHEN raise_exception THEN NULL;
			END;
		END LOOP;
		BEGIN IF md5(v1) <> was1 THEN said := said || '1 '; END IF; EXCEPTION WHEN data_corrupted THEN NULL; END;
		BEGIN IF md5(v20) <> was20 THEN said := said || '20 '; END IF; EXCEPTION WHEN data_corrupted THEN NULL; END;
		BEGIN IF md5(v40) <> was40 THEN said := said || '40 '; END IF; EXCEPTION WHEN data_corrupted THEN NULL; END;
		RETURN said || (SELECT md5(a) = was69 FROM d);
	END $$});
is(one($node, q{
	BEGIN;
	SAVEPOINT s;
	INSERT INTO c SELECT v, v, v, v, v, v, v, v, v, v FROM generate_series(1, 16000) g, lpad(g::text, 250) v;
	SELECT sum(used_bytes) BETWEEN 3000000 AND 7500000 FROM pg_backend_memory_contexts WHERE name LIKE 'inplace % of subtransactions';
	RELEASE s;
	SELECT many_back();
	COMMIT}), "t\ntrue", 'memory for values of subtransactions is bounded');
is(one($node, 'SELECT many_back()'), 'true', '... and so it is with few');

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

# A chunk with a number that there cannot be.
one($node, q{
	CREATE TABLE broken (id int, a text) USING inplace;
	ALTER TABLE broken ALTER a SET STORAGE EXTERNAL;
	INSERT INTO broken SELECT g, random_text(9000, g) FROM generate_series(1, 2) g});
my $base = one($node, 'SELECT min(chunk_id) FROM ' . one($node, q{SELECT toast_of('broken')}));
my $file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath(toast_of('broken'))});
$node->stop;
my $bytes = slurp_file($file);
is($bytes =~ s/\Q${\ pack('LL', $base, 1)}\E/pack('LL', $base, 0x7fffffff)/eg, 1, 'a chunk is damaged');
open(my $fh, '>:raw', $file) or die "$file: $!";
print $fh $bytes;
close $fh or die "$file: $!";
$node->start;
my $ignore = 'SET ignore_checksum_failure = on; SET client_min_messages = error;';
my $invalid = qr/ERROR:  XX001: invalid chunk in row \(\d+,\d+\) of relation "pg_toast_\d+"/;
like(sqlstate_of($node, "$ignore $_"), $invalid, $_)
  foreach 'SELECT md5(a) FROM broken WHERE id = 1', q{UPDATE broken SET a = a || 'x' WHERE id = 1}, q{UPDATE broken SET a = 'x' || repeat('y', 8999) WHERE id = 1};
is(one($node, "$ignore SELECT a = random_text(9000, 2) FROM broken WHERE id = 2"), 't', 'another value is there');
like(one($node, "$ignore SELECT problem FROM inplace.check('broken')"), qr/chunk 1 of 5 is missing/, 'inplace.check() tells, and is not stopped');
one($node, "$ignore DELETE FROM broken WHERE id = 1; SELECT count(*) FROM broken");
is(one($node, 'SELECT count(*) FROM broken'), '1', 'and the row can be deleted');
one($node, 'DROP TABLE broken');

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
