# VACUUM merges sparse pages of an inplace_btree.  A scan that stands on one of them
# must not lose or repeat rows: on a primary nothing is merged before it ends; on a
# standby it finds its place again, and replay waits for parallel ones.  An interrupted
# VACUUM and a crash leave an index that the next VACUUM finishes.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 20000;
my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION inplace;
	SET wal_consistency_checking = '';
	CREATE TABLE t (id int PRIMARY KEY, at int);
	CREATE SEQUENCE now START 100000;
	-- it does not return before there is a file
	CREATE FUNCTION slow(int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE COST 10000
		AS \$\$ BEGIN PERFORM pg_sleep(0.005); WHILE (pg_stat_file('go_on', true)).size IS NULL LOOP PERFORM pg_sleep(0.005); END LOOP; RETURN true; END \$\$;
	INSERT INTO t SELECT i, i FROM generate_series(1, $rows) i;
	CREATE INDEX t_at ON t USING inplace_btree (at);
	ANALYZE t;});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 1s\nhot_standby_feedback = off\n");
$standby->start;

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET cursor_tuple_fraction = 1';

# Leaves many pages of the index with a quarter of their entries, and some stale ones,
# so that the next VACUUM goes through it.
my $round = 0;

sub make_sparse
{
	$round++;
	$node->safe_psql('postgres', qq{
		SET wal_consistency_checking = '';
		SET inplace.merge_index_pages = off;
		UPDATE t SET at = nextval('now') WHERE id % 5 <> $round % 5;
		VACUUM t;
		UPDATE t SET at = nextval('now') WHERE id % 30 = 0;});
	$node->wait_for_catchup($standby);
}

# Returns how many pages were merged.  (Files stay as long as they are: that would be in conflict
# with a standby's scans, 073.)
sub vacuum
{
	my ($rc, $out, $err) = $node->psql('postgres', "VACUUM (VERBOSE, INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) t");
	is($rc, 0, 'VACUUM') or diag $err;
	my $n = $err =~ /index "t_at": (\d+) pages merged/ ? $1 : 0;
	note "$n pages merged";
	return $n;
}

# A cursor that stands somewhere in the index; returns what it has not read yet.
sub open_cursor
{
	my ($where, $dir, $read) = @_;
	my $s = psql_session($where);
	$s->query_safe($_) foreach (split(/; /, $by_index), 'BEGIN', "DECLARE c CURSOR FOR SELECT id FROM t WHERE at > 0 ORDER BY at $dir");
	$s->query_safe("MOVE $read FROM c");
	return { session => $s, left => $rows - $read, name => "$dir, $read rows read" };
}

# how many different rows it reads
sub fetch_rest
{
	my ($c) = @_;
	my %rows;
	$rows{$_}++ foreach split /\n/, $c->{session}->query($c->{fetch} // 'FETCH ALL FROM c');
	is(scalar(grep { $_ > 1 } values %rows), 0, "$c->{name}: none twice");
	return scalar keys %rows;
}

# ---- on a primary

make_sparse();
my @cursors = map { my $read = $_; map { open_cursor($node, $_, $read) } qw(ASC DESC) } (5000, 15000);
is(vacuum(), 0, 'nothing is merged while cursors are open');
foreach my $c (@cursors)
{
	is(fetch_rest($c), $c->{left}, "primary: $c->{name}");
	$c->{session}->quit;
}
$node->safe_psql('postgres', q{UPDATE t SET at = nextval('now') WHERE id % 30 = 0});
cmp_ok(vacuum(), '>', 20, 'pages are merged afterwards');
check_clean($node, 'merged');
$node->wait_for_catchup($standby);
check_clean($standby, 'merged, on the standby');

# ---- on a standby

# Each is to read the rows that it has not read yet, once; the last ones go back to the
# beginning.  (Up to 16 one with an IN list that goes to the left is cancelled.)
make_sparse();
my $in = 'at IN (' . $standby->safe_psql('postgres', "SELECT string_agg(at::text, ',' ORDER BY at) FROM t WHERE id % 4 = 0") . ')';
my $in_rows = $rows / 4;
@cursors = map { my $read = $_; map { open_cursor($standby, $_, $read) } qw(ASC DESC) } (2000, 5000, 9000, 15000);
foreach my $dir (qw(ASC DESC))
{
	my $s = psql_session($standby);
	$s->query_safe($_) foreach (split(/; /, $by_index), 'BEGIN', "DECLARE c CURSOR FOR SELECT id FROM t WHERE $in ORDER BY at $dir", 'MOVE 2000 FROM c');
	push @cursors, { session => $s, left => $in_rows - 2000, name => "IN, $dir",
		may_be_cancelled => $dir eq 'DESC' && pg_major() < 17 };
	$s = psql_session($standby);
	$s->query_safe($_) foreach (split(/; /, $by_index), 'BEGIN', "DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE at > 0 ORDER BY at $dir", 'MOVE 8001 FROM c');
	push @cursors, { session => $s, left => 8000, name => "SCROLL, $dir", fetch => 'FETCH BACKWARD ALL FROM c' };
}
cmp_ok(vacuum(), '>', 20, 'pages are merged whatever a standby does');
$node->wait_for_catchup($standby);
my $cancelled = 0;
foreach my $c (@cursors)
{
	my $n = fetch_rest($c);
	if ($c->{may_be_cancelled} && $n == 0)
	{
		like($c->{session}->{stderr}, qr/canceling statement due to conflict with recovery/, "standby: $c->{name} is cancelled");
		$cancelled++;
	}
	else { is($n, $c->{left}, "standby: $c->{name}") or diag $c->{session}->{stderr} }
	$c->{session}->quit;
}
note "$cancelled cancelled";
is($standby->safe_psql('postgres', "$by_index; SELECT count(*), sum(id) FROM (SELECT id FROM t WHERE at > 0 ORDER BY at OFFSET 0) x"),
	"$rows|" . $rows * ($rows + 1) / 2, 'the standby has all rows');

# A page is split after the scan has read it, and what went to the right is merged with
# the page that the scan takes for the next one.  (Of the first pages every third is an
# eighth full, and all others are full, so that no others are merged.)
$node->safe_psql('postgres', qq{
	CREATE TABLE u (id int PRIMARY KEY, at int);
	INSERT INTO u SELECT i, i * 10 FROM generate_series(1, $rows) i;
	CREATE INDEX u_at ON u USING inplace_btree (at) WITH (fillfactor = 100);
	SET inplace.merge_index_pages = off;
	UPDATE u SET at = at + 10000000 WHERE (id / 406) % 3 = 2 AND id / 406 < 22 AND id % 8 <> 0;
	VACUUM u;
	UPDATE u SET at = at + 1 WHERE at > 10000000 AND id < 816;});
$node->wait_for_catchup($standby);
my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM u WHERE at < 42000');
my $s = psql_session($standby);
$s->query_safe($_) foreach (split(/; /, $by_index), 'BEGIN', 'DECLARE c CURSOR FOR SELECT id FROM u WHERE at > 0 ORDER BY at', "MOVE $before FROM c");
# (that keeps VACUUM from anything that would be in conflict with the scan's snapshot)
my $old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
$node->safe_psql('postgres', 'INSERT INTO u SELECT 100000 + i, 40900 + i * 20 + 5 FROM generate_series(1, 120) i');
my ($rc, undef, $said) = $node->psql('postgres', "VACUUM (VERBOSE, INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) u");
like($said, qr/index "u_at": [1-4] pages merged/, 'what has been split off is merged');
$node->wait_for_catchup($standby);
is(fetch_rest({ session => $s, name => 'split and merged' }), $rows - $before, 'split and merged: all rows');
$_->quit foreach $s, $old;

# ---- a parallel scan on a standby
my $go_on = $standby->data_dir . '/go_on';

my $parallel = "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
	SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;";
my $query = "SELECT count(*) FROM t WHERE at > 0 AND slow(id)";
like($standby->safe_psql('postgres', "$parallel EXPLAIN (COSTS off) $query"), qr/Parallel Index.* Scan using t_at/, 'a parallel plan');
make_sparse();
my ($in_text, $out, $err) = ('', '', '');
my $scan = IPC::Run::start([ 'psql', '-XAtq', '-d', $standby->connstr('postgres'), '-c', "$parallel $query" ],
	'<', \$in_text, '>', \$out, '2>', \$err, IPC::Run::timer(180));
ok(defined poll_value($standby, q{SELECT count(*) > 1 FROM pg_stat_activity WHERE query LIKE '%AND slow(id)' AND state = 'active' AND wait_event = 'PgSleep'}, 60),
	'the scan runs');
cmp_ok(vacuum(), '>', 20, 'pages are merged');
# (replay does not wait for longer; the scan finds out when it goes on)
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
append_to_file($go_on, '');
$scan->finish;
unlink $go_on;
like($err, qr/canceling statement due to conflict with recovery/, 'the parallel scan is cancelled') or diag "$out$err";
check_clean($standby, 'after the parallel scan');

# ... which replay waits for if it may
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = -1');
$standby->reload;
make_sparse();
$query = "SELECT count(*) FROM t WHERE at > 0 AND (id % 20 > 0 OR slow(id))";
($in_text, $out, $err) = ('', '', '');
$scan = IPC::Run::start([ 'psql', '-XAtq', '-d', $standby->connstr('postgres'), '-c', "$parallel $query" ],
	'<', \$in_text, '>', \$out, '2>', \$err, IPC::Run::timer(180));
ok(defined poll_value($standby, q{SELECT count(*) > 1 FROM pg_stat_activity WHERE query LIKE '%OR slow(id))' AND state = 'active' AND wait_event = 'PgSleep'}, 60),
	'the scan runs');
cmp_ok(vacuum(), '>', 20, 'pages are merged');
ok(defined poll_value($standby, q{SELECT wait_event = 'RecoveryConflictSnapshot' FROM pg_stat_activity WHERE backend_type = 'startup'}, 60),
	'replay waits');
append_to_file($go_on, '');
$scan->finish;
unlink $go_on;
is("$out$err", "$rows\n", 'the parallel scan is not cancelled');
$node->wait_for_catchup($standby);
check_clean($standby, 'after a parallel scan that was waited for');

# One that is about to begin while replay waits for another waits, too; and nobody waits
# for what has failed in a subtransaction.
make_sparse();
my @scans = map { { text => '', out => '', err => '' } } 1 .. 2;
my $start = sub {
	my ($i, $every) = @_;
	my $s = $scans[$i];
	$s->{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $standby->connstr('postgres'), '-c', "$parallel SELECT count(*) FROM t WHERE at > 0 AND (id % $every > 0 OR slow(id)) /* $i */" ],
		'<', \$s->{text}, '>', \$s->{out}, '2>', \$s->{err}, IPC::Run::timer(180));
};
$start->(0, 15);
ok(defined poll_value($standby, q{SELECT count(*) > 1 FROM pg_stat_activity WHERE query LIKE '%/* 0 */' AND wait_event = 'PgSleep'}, 60), 'the first scan runs');
cmp_ok(vacuum(), '>', 20, 'pages are merged');
ok(defined poll_value($standby, q{SELECT wait_event = 'RecoveryConflictSnapshot' FROM pg_stat_activity WHERE backend_type = 'startup'}, 60), 'replay waits for it');
$start->(1, 100);
ok(defined poll_value($standby, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%/* 1 */' AND state = 'active'}, 60), 'the second one begins');
append_to_file($go_on, '');
$_->{run}->finish foreach @scans;
is($_->{out} . $_->{err}, "$rows\n", 'none of two is cancelled') foreach @scans;
$node->wait_for_catchup($standby);
make_sparse();
my $failed = psql_session($standby);
$failed->query($_) foreach (split(/; */, $parallel =~ s/\n//gr), 'BEGIN', 'SAVEPOINT a', 'SELECT count(*) FROM t WHERE at > 0 AND 1 / (id - 777) < 5', 'ROLLBACK TO a', 'RELEASE a');
like($failed->{stderr}, qr/division by zero/, 'a parallel query fails in a subtransaction');
cmp_ok(vacuum(), '>', 20, 'pages are merged');
$node->wait_for_catchup($standby);
is($failed->query('SELECT 1'), '1', 'replay does not wait for it');
$failed->quit;

# ---- to the left, from a page that has been deleted, and back and forth over a place

# (every third of the first pages is sparse, page 12 is full; the lower half of that is split off, and
# emptied, and the sparse page before it merged with the other half)
my $lo = 12 * 406;
$node->safe_psql('postgres', qq{
	SET wal_consistency_checking = '';
	CREATE TABLE w (id int PRIMARY KEY, at int);
	INSERT INTO w SELECT i, i * 10 FROM generate_series(1, $rows) i;
	CREATE INDEX w_at ON w USING inplace_btree (at) WITH (fillfactor = 100);
	SET inplace.merge_index_pages = off;
	UPDATE w SET at = at + 10000000 WHERE (id / 406) % 3 = 2 AND id / 406 < 22 AND id % 8 <> 0;
	VACUUM w;
	DELETE FROM w WHERE id >= $lo AND id < $lo + 260;});
$node->wait_for_catchup($standby);
$s = psql_session($standby);
$s->query_safe($_) foreach (split(/; /, $by_index), 'BEGIN ISOLATION LEVEL REPEATABLE READ');
my @order = split /\n/, $s->query_safe('SELECT id FROM w WHERE at > 0 ORDER BY at DESC');
my ($pos) = grep { $order[$_] == $lo + 330 } 0 .. $#order;
$s->query_safe($_) foreach ('DECLARE c CURSOR FOR SELECT id FROM w WHERE at > 0 ORDER BY at DESC', 'MOVE ' . ($pos + 1) . ' FROM c');
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
$node->safe_psql('postgres', "INSERT INTO w SELECT 100000 + i, ($lo + 300 + i) * 10 + 5 FROM generate_series(1, 60) i");
($rc, undef, $said) = $node->psql('postgres', 'VACUUM (VERBOSE, INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) w');
like($said, qr/index "w_at": [0-9]+ pages merged/, 'pages are merged');
$node->wait_for_catchup($standby);
is($s->query('FETCH ALL FROM c'), join("\n", @order[ $pos + 1 .. $#order ]), 'to the left from a deleted page: all rows') or diag $s->{stderr};
$_->quit foreach $s, $old;

make_sparse();
$s = psql_session($standby);
$s->query_safe($_) foreach (split(/; /, $by_index), 'BEGIN ISOLATION LEVEL REPEATABLE READ');
@order = split /\n/, $s->query_safe('SELECT id FROM t WHERE at > 0 ORDER BY at DESC');
$pos = int($rows * 7 / 8);
$s->query_safe($_) foreach ('DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE at > 0 ORDER BY at DESC', "MOVE $pos FROM c");
cmp_ok(vacuum(), '>', 20, 'pages are merged');
$node->wait_for_catchup($standby);
# "pos" rows are before the place; whether the cursor stands on the last of them or
# beyond all makes no difference to what comes next
srand(seed());
my $wrong = 0;
foreach my $step (1 .. 400)
{
	my $k = 1 + int(rand 150);
	if (rand() < 0.55)
	{
		my $last = $pos + $k > @order ? $#order : $pos + $k - 1;
		my $want = join("\n", @order[ $pos .. $last ]);
		$wrong++ if $s->query("FETCH FORWARD $k FROM c") ne $want;
		$pos = $pos + $k > @order ? @order + 1 : $pos + $k;
	}
	else
	{
		my $first = $pos - 1 - $k < 0 ? 0 : $pos - 1 - $k;
		my $want = $pos < 2 ? '' : join("\n", reverse @order[ $first .. $pos - 2 ]);
		$wrong++ if $s->query("FETCH BACKWARD $k FROM c") ne $want;
		$pos = $pos - $k < 0 ? 0 : $pos - $k;
	}
}
is($wrong, 0, 'a cursor back and forth over merged pages: the same rows in the same order') or diag $s->{stderr};
$s->quit;

# ---- equal keys, posting lists, a merge join

$node->safe_psql('postgres', qq{
	SET wal_consistency_checking = '';
	CREATE TABLE d (id int PRIMARY KEY, k int, n int);
	INSERT INTO d SELECT i, i % 50, i % 50 FROM generate_series(1, $rows) i;
	CREATE INDEX d_k ON d USING inplace_btree (k);
	VACUUM ANALYZE d;
	SET inplace.merge_index_pages = off;
	UPDATE d SET k = 1000 + id WHERE id % 7 <> 0;
	VACUUM d;
	UPDATE d SET k = k + 1 WHERE k > 1000 AND id % 9 = 0});
$node->wait_for_catchup($standby);
my $kept = $node->safe_psql('postgres', 'SELECT count(*) FROM d WHERE k < 1000');
@cursors = ();
foreach my $dir (qw(ASC DESC))
{
	foreach my $read (300, 1100, 2300)
	{
		my $s = psql_session($standby);
		$s->query_safe($_) foreach (split(/; /, $by_index), 'BEGIN', "DECLARE c CURSOR FOR SELECT id FROM d WHERE k < 1000 ORDER BY k $dir", "MOVE $read FROM c");
		push @cursors, { session => $s, left => $kept - $read, name => "equal keys, $dir, $read rows read" };
	}
}
# (each row with all of the same n)
my $joined = $standby->safe_psql('postgres', "$by_index; SELECT count(*) FROM d a JOIN d b ON a.k = b.k WHERE a.id % 7 = 0");
my $join = psql_session($standby);
$join->query_safe($_) foreach (split(/; /, $by_index), 'SET enable_hashjoin = off', 'SET enable_nestloop = off', 'SET enable_material = off', 'BEGIN',
	'DECLARE c CURSOR FOR SELECT a.id || $$ $$ || b.id FROM d a JOIN d b ON a.k = b.k WHERE a.id % 7 = 0', 'MOVE 3000 FROM c');
like($join->query("EXPLAIN (COSTS off) SELECT a.id || ' ' || b.id FROM d a JOIN d b ON a.k = b.k WHERE a.id % 7 = 0"), qr/^Merge Join.*\n.*\n *-> +Index Scan.*\n.*\n *-> +Index Scan/, 'a merge join of index scans');
push @cursors, { session => $join, left => $joined - 3000, name => 'merge join' };
($rc, undef, $said) = $node->psql('postgres', "VACUUM (VERBOSE, INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) d");
like($said, qr/index "d_k": [0-9]+ pages merged/, 'pages of equal keys are merged');
$node->wait_for_catchup($standby);
foreach my $c (@cursors)
{
	is(fetch_rest($c), $c->{left}, "standby: $c->{name}") or diag $c->{session}->{stderr};
	$c->{session}->quit;
}

# ---- VACUUM interrupted, and a crash

foreach my $i (1 .. 6)
{
	make_sparse();
	# (whatever it has come to by then)
	$node->psql('postgres', "SET statement_timeout = " . 15 * $i . "; SET vacuum_cost_delay = 1; SET vacuum_cost_limit = 20; VACUUM (INDEX_CLEANUP on, PARALLEL 0) t");
	check_clean($node, "interrupted, $i");
}
$node->stop('immediate');
$node->start;
check_clean($node, 'after a crash');
vacuum();
is($node->safe_psql('postgres', "$by_index; SELECT count(*), sum(id) FROM (SELECT id FROM t WHERE at > 0 ORDER BY at DESC OFFSET 0) x"),
	"$rows|" . $rows * ($rows + 1) / 2, 'all rows');
check_clean($node, 'in the end');
$node->wait_for_catchup($standby);
$node->stop('immediate');
$standby->promote;
check_clean($standby, 'promoted');
make_sparse_alone($standby);
check_clean($standby, 'promoted, with VACUUMs of its own');
$standby->stop;
check_log($_) foreach $node, $standby;
done_testing();

sub make_sparse_alone
{
	my ($n) = @_;
	$n->safe_psql('postgres', q{UPDATE t SET at = nextval('now') WHERE id % 3 <> 0; });
	$n->safe_psql('postgres', q{VACUUM t});
}
