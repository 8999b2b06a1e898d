# A page of an inplace_btree that is about to split gets rid of the entries of former keys
# first, of rows anywhere in the table, so that the index does not grow between two VACUUMs;
# and for that the table is not read from disk.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 20000;
my $scripts = 0;
my $seed = seed();
my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
synchronous_commit = off
# (nothing is replayed)
wal_consistency_checking = ''
shared_buffers = '64MB'
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

# Rows on some 500 pages; the entries of an index page are of rows on most of them.
sub fill
{
	my ($keys, $index) = @_;
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id int PRIMARY KEY, k int, w text);
		INSERT INTO t SELECT i, (hashint4(i) & 16777215) % $keys, repeat('x', 160) FROM generate_series(1, $rows) i;
		CREATE INDEX t_k ON t USING inplace_btree (k) $index;
		VACUUM ANALYZE t;});
	return pages();
}

sub pages
{
	return one($node, "SELECT pg_relation_size('t_k') / 8192");
}

sub run_updates
{
	my ($keys, $n, $key) = @_;
	$key //= "random(0, $keys - 1)";
	my $script = pgbench_script($node, 'updates' . $scripts++, qq{\\set id random(1, $rows)
\\set k $key
UPDATE t SET k = :k WHERE id = :id;
});
	$node->command_ok(
		[ 'pgbench', '-n', '--random-seed=' . ($seed + $scripts), '-M', 'prepared', '-c', '2', '-t', $n / 2, '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
		"$n updates");
	return;
}

sub look
{
	my ($name) = @_;
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(k::bigint * id) FROM t WHERE k >= 0'),
		$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(k::bigint * id) FROM t WHERE k >= 0'),
		"$name: rows by index");
	check_clean($node, $name);
	return;
}

# As many updates as rows.  Entries of a key in posting lists, of which a page has a
# thousand; entries of their own; and keys that nbtree is not to deduplicate.
foreach my $case ([ $rows / 20, '', 1.25 ], [ 20, '', 1.3 ], [ $rows * 10, '', 1.3 ], [ $rows / 20, 'WITH (deduplicate_items = off)', 1.3 ])
{
	my ($keys, $index, $most) = @$case;
	my $before = fill($keys, $index);
	run_updates($keys, $rows);
	my $after = pages();
	note "$keys keys $index: $before to $after pages";
	cmp_ok($after, '<=', $most * $before, "an index of $keys keys $index does not grow much");
	look("$keys keys $index");
}

# A unique index, and one with payload.
foreach my $index ('UNIQUE', 'INCLUDE')
{
	fill($rows, '');
	$node->safe_psql('postgres', 'DROP INDEX t_k; UPDATE t SET k = id * 10; VACUUM t; CREATE ' . ($index eq 'UNIQUE' ? 'UNIQUE INDEX t_k ON t USING inplace_btree (k)' : 'INDEX t_k ON t USING inplace_btree (k) INCLUDE (id)'));
	my $before = pages();
	run_updates('', $rows, ':id * 10 + random(0, 9)');
	note "$index: $before to ", pages(), ' pages';
	# (an entry's place among those of its neighbours stays)
	cmp_ok(pages(), '<=', 1.3 * $before, "$index: it does not grow much");
	look($index);
}

# Entries that an older snapshot needs stay.
{
	fill($rows / 20, '');
	my $sum = 'SELECT count(*), sum(k::bigint * id) FROM t WHERE k >= 0';
	my $old = psql_session($node);
	$old->query_safe($_) foreach 'SET enable_seqscan = off', 'SET enable_bitmapscan = off', 'BEGIN ISOLATION LEVEL REPEATABLE READ';
	my $want = $old->query_safe($sum);
	run_updates($rows / 20, $rows / 4);
	is($old->query_safe($sum), $want, 'an older snapshot finds what it found, by index');
	my $now = $node->safe_psql('postgres', $sum);
	isnt($now, $want, '... which is not what there is now');
	$old->query_safe('COMMIT');
	run_updates($rows / 20, $rows / 4);
	look('after an older snapshot');
}

# A temporary table, larger than its buffers.
is(one($node, qq{
	SET temp_buffers = '800kB';
	CREATE TEMP TABLE tt (id int PRIMARY KEY, k int, w text);
	INSERT INTO tt SELECT i, i % 500, repeat('x', 160) FROM generate_series(1, 10000) i;
	CREATE INDEX tt_k ON tt USING inplace_btree (k);
	DO \$\$
	BEGIN
		FOR i IN 1 .. 10000 LOOP
			UPDATE tt SET k = (i * 7919) % 500 WHERE id = 1 + (i * 104729) % 10000;
			IF i % 5 = 0 THEN COMMIT; END IF;
		END LOOP;
	END \$\$;
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	SELECT count(*), sum(k), (SELECT count(*) FROM inplace.check('tt')) FROM tt WHERE k >= 0}),
	'10000|' . eval { my $s = 0; my %k = map { $_ => $_ % 500 } 1 .. 10000; $k{1 + ($_ * 104729) % 10000} = ($_ * 7919) % 500 foreach 1 .. 10000; $s += $_ foreach values %k; $s } . '|0',
	'a temporary table');

# ---- a row with thousands of versions under an old snapshot

# An index page is locked while its entries are looked up: that must not take as
# long as all of them together.
$node->append_conf('postgresql.conf', 'inplace.squeeze_undo = off');
$node->reload;
is(one($node, q{
	CREATE TABLE hot (id int PRIMARY KEY, k int) USING inplace WITH (autovacuum_enabled = off);
	CREATE INDEX hot_k ON hot USING inplace_btree (k);
	INSERT INTO hot SELECT i, i * 5000 FROM generate_series(1, 200) i;
	CREATE PROCEDURE change_hot(n int, INOUT most bigint) LANGUAGE plpgsql AS $$
	DECLARE plan json;
	BEGIN
		most := 0;
		FOR i IN 1 .. n LOOP
			EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) UPDATE hot SET k = (random() * 1000000)::int WHERE id = 1' INTO plan;
			most := greatest(most, (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint);
			COMMIT;
		END LOOP;
	END $$}), '', 'a table with one hot row');
{
	my $old = psql_session($node);
	$old->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM hot';
	my $most = one($node, 'CALL change_hot(8000, NULL)');
	note "$most buffers at most for an update";
	cmp_ok($most, '<', 50000, 'no update looks at each version once for each entry of an index page');
	is($old->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT id FROM hot WHERE k = 5000'), '1',
		'the old snapshot finds its version by index');
	$old->query_safe('COMMIT');
	one($node, 'VACUUM (INDEX_CLEANUP on) hot');
	check_clean($node, 'a hot row');
}
$node->append_conf('postgresql.conf', 'inplace.squeeze_undo = on');
$node->reload;

# ---- a table that does not fit the buffers

my $before = fill($rows / 20, '');
$node->append_conf('postgresql.conf', "shared_buffers = '1MB'\n");
$node->restart;
my $reads = q{SELECT pg_stat_force_next_flush(), heap_blks_read FROM pg_statio_user_tables WHERE relname = 't'};
my $n = 10000;
my ($read_before) = one($node, $reads) =~ /(\d+)$/;
run_updates($rows / 20, $n);
my ($read_after) = one($node, $reads) =~ /(\d+)$/;
my $each = ($read_after - $read_before) / $n;
note "$each pages read an update, index $before to ", pages(), ' pages';
cmp_ok($each, '<', 2, 'the table is not read for it');
look('few buffers');

$node->stop;
check_log($node);
done_testing();
