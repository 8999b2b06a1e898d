# What nbtree's scans are promised while VACUUM merges pages of an inplace_btree on a
# primary (src/btree/README.md): whatever kind of scan is in progress, no page is merged
# before it ends; a page that has been merged is not used anew while a snapshot is left
# from before; who knows the rightmost page goes on there; and a sweep leaves the entries
# of deleted rows to those who wait for scans.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 10000;
my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pageinspect;
	CREATE SEQUENCE now START 100000;
	-- it does not return before there is a file
	CREATE FUNCTION slow(int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE COST 10000
		AS $$ BEGIN PERFORM pg_sleep(0.005); WHILE (pg_stat_file('go_on', true)).size IS NULL LOOP PERFORM pg_sleep(0.005); END LOOP; RETURN true; END $$;});

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET cursor_tuple_fraction = 1';
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0';

# Leaves many pages of the index with a quarter of their entries, and some stale ones, so that
# the next VACUUM sweeps it.  (nbtree has no reason to go through it, which would wait for
# scans that have a page pinned.)
my $round = 0;

sub make_sparse
{
	my ($t, $kind) = @_;
	$node->safe_psql('postgres', qq{
		CREATE $kind TABLE $t (id int, at int);
		INSERT INTO $t SELECT i, i FROM generate_series(1, $rows) i;
		CREATE INDEX ${t}_at ON $t USING inplace_btree (at);
		ANALYZE $t;}) if defined $kind;
	$round++;
	$node->safe_psql('postgres', qq{
		SET inplace.merge_index_pages = off;
		UPDATE $t SET at = nextval('now') WHERE id % 5 <> $round % 5;
		VACUUM $t;
		SELECT pg_current_xact_id();
		VACUUM $t;});
	stale_entries($t);
}

sub stale_entries
{
	my ($t) = @_;
	$node->safe_psql('postgres', qq{UPDATE $t SET at = nextval('now') WHERE id % 30 = 0; SELECT pg_current_xact_id()});
}

sub vacuum
{
	my ($t) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "VACUUM (VERBOSE, INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) $t");
	is($rc, 0, 'VACUUM') or diag $err;
	my %said = (merged => $err =~ /index "${t}_at": (\d+) pages merged/ ? $1 : 0);
	@said{qw(pages deleted reusable)} = ($1, $2, $3) if $err =~ /index "${t}_at": pages: (\d+) in total, \d+ newly deleted, (\d+) currently deleted, (\d+) reusable/;
	return \%said;
}

# A VACUUM that is to wait for a scan.
sub start_vacuum
{
	my ($t) = @_;
	my %v = (text => '', out => '', err => '');
	$v{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "VACUUM (INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) $t" ],
		'<', \$v{text}, '>', \$v{out}, '2>', \$v{err}, IPC::Run::timer(180));
	ok(defined poll_value($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'VACUUM (INDEX%' AND wait_event = 'BufferPin'}, 60), 'VACUUM waits for the scan');
	return \%v;
}

sub end_vacuum
{
	my ($v) = @_;
	$v->{run}->finish;
	is("$v->{out}$v->{err}", '', 'VACUUM ends');
}

sub sorted
{
	return join("\n", sort { $a <=> $b } split /\n/, $_[0]);
}

# A cursor that has read some rows of a query with the plan, and those that it has not read.
sub open_cursor
{
	my ($query, $plan, $settings, $read, $cursor) = @_;
	my $s = psql_session($node);
	$s->query_safe($_) foreach split(/; /, $settings), 'BEGIN ISOLATION LEVEL REPEATABLE READ';
	like($s->query_safe("EXPLAIN (COSTS off) $query"), $plan, $plan);
	my @all = split /\n/, $s->query_safe($query);
	$s->query_safe($_) foreach "DECLARE c $cursor FOR $query", "MOVE $read FROM c";
	return { session => $s, left => join("\n", @all[ $read .. $#all ]) };
}

# ---- kinds of scans

make_sparse('t', '');
make_sparse('u', 'UNLOGGED');
$node->safe_psql('postgres', q{VACUUM t; VACUUM u});
my @kinds = (
	[ 'SELECT at FROM t WHERE at > 0 ORDER BY at', qr/Index Only Scan using/, $by_index ],
	[ 'SELECT at FROM t WHERE at > 0 ORDER BY at DESC', qr/Index Only Scan Backward/, $by_index ],
	[ 'SELECT id FROM t WHERE at > 0 ORDER BY at', qr/Index Scan using/, $by_index ],
	[ 'SELECT id FROM t WHERE at > 0', qr/Bitmap Index Scan/, 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off' ],
	[ 'SELECT a.id FROM t a JOIN t b ON a.at = b.at WHERE a.at > 0', qr/^Merge Join/, "$by_index; SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off" ],
	[ 'SELECT id FROM u WHERE at > 0 ORDER BY at DESC', qr/Index Scan Backward/, $by_index ]);
foreach my $kind (@kinds)
{
	my ($query, $plan, $settings) = @$kind;
	my ($t) = $query =~ /FROM (\w)/;
	make_sparse($t);
	my $c = open_cursor($query, $plan, $settings, 2500, 'CURSOR');
	is(vacuum($t)->{merged}, 0, 'nothing is merged');
	is($c->{session}->query('FETCH ALL FROM c'), $c->{left}, 'the scan has all rows');
	$c->{session}->quit;
	stale_entries($t);
	cmp_ok(vacuum($t)->{merged}, '>', 8, 'pages are merged afterwards');
}

# rows that a scan of an unlogged index has found dead are marked as such on its page
make_sparse('u');
$node->safe_psql('postgres', 'DELETE FROM u WHERE id % 7 = 3');
my $c = open_cursor('SELECT id FROM u WHERE at > 0 ORDER BY at', qr/Index Scan using/, $by_index, 2500, 'CURSOR');
my $v = start_vacuum('u');
is($c->{session}->query('FETCH ALL FROM c'), $c->{left}, 'unlogged, with dead rows: the scan has all rows');
$c->{session}->quit;
end_vacuum($v);
check_clean($node, 'dead rows of an unlogged table');

# a parallel scan
make_sparse('t');
my ($in, $out, $err) = ('', '', '');
my $scan = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "$by_index; $parallel; SELECT count(*) FROM t WHERE at > 0 AND (id % 25 > 0 OR slow(id))" ],
	'<', \$in, '>', \$out, '2>', \$err, IPC::Run::timer(180));
ok(defined poll_value($node, q{SELECT count(*) > 1 FROM pg_stat_activity WHERE query LIKE '%OR slow(id))' AND state = 'active' AND wait_event = 'PgSleep'}, 60), 'a parallel scan runs');
is(vacuum('t')->{merged}, 0, 'nothing is merged');
append_to_file($node->data_dir . '/go_on', '');
$scan->finish;
is("$out$err", "$rows\n", 'the scan has all rows');

# what is held over the end of a transaction, or has failed in one that goes on, is no scan
$c = open_cursor('SELECT id FROM t WHERE at > 0 ORDER BY at', qr/Index Scan using/, $by_index, 2500, 'CURSOR WITH HOLD');
$c->{session}->query_safe('COMMIT');
my $failed = psql_session($node);
$failed->query($_) foreach split(/; /, $by_index), 'SELECT count(*) FROM t WHERE at > 0 AND 1 / (id - 777) < 5';
stale_entries('t');
cmp_ok(vacuum('t')->{merged}, '>', 8, 'pages are merged beside a held cursor, and after a query that failed');
is($c->{session}->query('FETCH ALL FROM c'), $c->{left}, 'the cursor has all rows');
$_->quit foreach $c->{session}, $failed;

# ---- an index-only scan, and rows that are deleted beside it (101 has it for standbys)

make_sparse('t');
my $old = psql_session($node);
$old->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 10 = 4');
$c = open_cursor('SELECT at FROM t WHERE at > 0 ORDER BY at', qr/Index Only Scan using/, $by_index, 2500, 'CURSOR');
is(vacuum('t')->{merged}, 0, 'nothing is merged beside the index-only scan');
$old->query_safe('COMMIT');
$v = start_vacuum('t');
is($c->{session}->query('FETCH ALL FROM c'), $c->{left}, 'no deleted row');
$c->{session}->quit;
end_vacuum($v);
check_clean($node, 'rows deleted beside a scan');

# ---- when a page is used anew

make_sparse('t');
$old->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM pg_class';
$node->safe_psql('postgres', 'SELECT pg_current_xact_id()');
my $said = vacuum('t');
cmp_ok($said->{merged}, '>', 8, 'pages are merged');
cmp_ok($said->{deleted} - $said->{reusable}, '>=', $said->{merged}, 'they are not free while there is a snapshot from before');
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, i * 3 FROM generate_series(1, 20000) i');
cmp_ok(vacuum('t')->{deleted}, '>=', $said->{merged}, '... and not used anew');
$old->query_safe('COMMIT');
$old->quit;
$said = vacuum('t');
is($said->{deleted} - $said->{reusable}, 0, 'then they are free');
check_clean($node, 'pages used anew');

# ---- who knows the rightmost page of a deep tree

$node->safe_psql('postgres', q{
	CREATE TABLE w (id int, at text);
	INSERT INTO w SELECT i, repeat('x', 500) || to_char(i, 'FM00000000') FROM generate_series(1, 4000) i;
	CREATE INDEX w_at ON w USING inplace_btree (at) WITH (deduplicate_items = off);});
my $s = psql_session($node);
my $insert = q{INSERT INTO w SELECT i, repeat('x', 500) || to_char(i, 'FM00000000') FROM generate_series((SELECT max(id) FROM w) + 1, (SELECT max(id) FROM w) + 10) i};
$s->query_safe($insert);
foreach my $part (4, 8, 16)
{
	$node->safe_psql('postgres', qq{DELETE FROM w WHERE id % $part <> 0 AND id < (SELECT max(id) - 5 FROM w)});
	cmp_ok(vacuum('w')->{merged}, '>', 0, 'pages are merged');
	$s->query_safe($insert) foreach 1 .. 5;
}
$s->quit;
check_clean($node, 'the rightmost page');
is($node->safe_psql('postgres', "$by_index; SELECT count(*) FROM (SELECT at FROM w WHERE at > '' ORDER BY at OFFSET 0) x"),
	$node->safe_psql('postgres', 'SELECT count(*) FROM w'), 'all rows by the index');

# ---- a sweep leaves the entries of rows that have gone

# (The sweep leaves empty pages of the first index.  These are deleted before it comes to the second
# one, which the scan of the first one keeps it from.)
$node->safe_psql('postgres', qq{
	CREATE TABLE d (id int, a int, b int);
	INSERT INTO d SELECT i, i, i FROM generate_series(1, $rows) i;
	CREATE INDEX d_a ON d USING inplace_btree (a);
	CREATE INDEX d_b ON d USING inplace_btree (b);
	VACUUM ANALYZE d;
	UPDATE d SET a = a + $rows, b = b + $rows WHERE id <= 2000;
	SELECT pg_current_xact_id();});
my $tid = $node->safe_psql('postgres', 'SELECT ctid FROM d WHERE id = 5');

sub entries_of_tid
{
	return $node->safe_psql('postgres', qq{
		SELECT count(*) FROM generate_series(1, pg_relation_size('d_b') / 8192 - 1) block,
			LATERAL bt_page_items(get_raw_page('d_b', block)) i
		WHERE '$tid' = ANY (coalesce(tids, ARRAY[htid])) AND NOT (data IS NULL)});
}
is(entries_of_tid(), 2, 'a row has two entries');
$c = open_cursor('SELECT a FROM d WHERE a > 0 ORDER BY a', qr/Index Only Scan using/, $by_index, 5000, 'CURSOR');
$v = start_vacuum('d');
$node->safe_psql('postgres', 'DELETE FROM d WHERE id = 5');
$c->{session}->quit;
end_vacuum($v);
is(entries_of_tid(), 2, 'it is deleted before the sweep comes to them');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) d');
is(entries_of_tid(), 0, '... and they go with the row');
check_clean($node, 'in the end');

$node->stop;
check_log($node);
done_testing();
