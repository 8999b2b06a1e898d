# Index-only scans of a standby keep the page pinned whose entries they have copied, and
# look at the visibility map alone.  VACUUM on the primary moves the entries to the
# next page, removes them there and makes their pages all-visible: replay must not get
# there before the scan has left the page, nor may it wait for what waits for it.

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
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pageinspect;});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\nhot_standby_feedback = off\n");
$standby->start;

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET cursor_tuple_fraction = 1';
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0';
my $take_xids = PostgreSQL::Test::Utils::tempdir() . '/take_xids.sql';
append_to_file($take_xids, "SELECT pg_current_xact_id();\n");

# What a leaf page of the table's index has: keys of its entries, in order.
sub keys_of
{
	my ($t, $block) = @_;
	return split /\n/, $node->safe_psql('postgres', qq{
		SELECT at FROM bt_page_items(get_raw_page('${t}_at', $block)) i JOIN $t ON $t.ctid = i.htid
		WHERE i.htid IS NOT NULL ORDER BY at});
}

# A table with an index of which every page has the entries of some rows only, and dead
# rows at the low end, so that the next VACUUM goes through the index.  Returns the block
# of the leaf page in the middle.
sub make_sparse
{
	my ($t, $kept) = @_;
	$node->safe_psql('postgres', qq{
		CREATE TABLE $t (id int, at int);
		INSERT INTO $t SELECT i, i FROM generate_series(1, $rows) i;
		CREATE INDEX ${t}_at ON $t USING inplace_btree (at);
		SET inplace.merge_index_pages = off;
		DELETE FROM $t WHERE NOT ($kept);
		VACUUM ANALYZE $t;
		DELETE FROM $t WHERE id <= 1500;});
	foreach my $block (1 .. $node->safe_psql('postgres', "SELECT pg_relation_size('${t}_at') / 8192 - 1"))
	{
		my @keys = keys_of($t, $block);
		return $block if @keys > 20 && $keys[0] < $rows / 2 && $keys[-1] >= $rows / 2;
	}
	die 'no such page';
}

# (Pages are packed if others take xids meanwhile; files stay as long as they are: that would be
# in conflict with a standby's scans, 073.)
sub vacuum
{
	my ($t) = @_;
	my $takers = IPC::Run::start([ 'pgbench', '-n', '-t', 100000, '-f', $take_xids, $node->connstr('postgres') ], '<', \'', '>', \my $done, '2>', \my $said);
	my $began = $node->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
	ok(defined poll_value($node, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint > $began + 10", 60), 'xids are taken');
	my ($rc, $out, $err) = $node->psql('postgres', "SET vacuum_cost_delay = 5; SET vacuum_cost_limit = 5; VACUUM (VERBOSE, INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) $t");
	$takers->kill_kill;
	is($rc, 0, 'VACUUM') or diag $err;
	note $err;
	return $err =~ /index "${t}_at": (\d+) pages merged/ ? $1 : 0;
}

# A cursor that has read some rows of an index-only scan, and those that it has not read.
sub open_cursor
{
	my ($t, $dir, $where_read) = @_;
	my $s = psql_session($standby);
	$s->query_safe($_) foreach 'SET enable_indexscan = off', 'SET enable_indexonlyscan = off', 'SET enable_bitmapscan = off', 'BEGIN ISOLATION LEVEL REPEATABLE READ';
	my @left = split /\n/, $s->query_safe("SELECT at FROM $t WHERE NOT ($where_read) ORDER BY at $dir");
	my $read = $s->query_safe("SELECT count(*) FROM $t WHERE $where_read");
	$s->query_safe($_) foreach 'SET enable_indexscan = on', 'SET enable_indexonlyscan = on', split(/; /, $by_index);
	my $query = "SELECT at FROM $t WHERE at > 0 ORDER BY at $dir";
	like($s->query_safe("EXPLAIN (COSTS off) $query"), qr/^Index Only Scan/, 'an index-only scan');
	$s->query_safe($_) foreach "DECLARE c CURSOR FOR $query", "MOVE $read FROM c";
	return { session => $s, left => join("\n", @left) };
}

sub replay_waits
{
	my ($event) = @_;
	return ok(defined poll_value($standby, "SELECT wait_event = '$event' FROM pg_stat_activity WHERE backend_type = 'startup'", 20), "replay waits: $event");
}

sub replay_has_caught_up
{
	# (VACUUM may not have flushed what it has written)
	my $lsn = $node->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '')});
	return ok(defined poll_value($standby, "SELECT pg_last_wal_replay_lsn() >= '$lsn'", 60), 'replay has caught up');
}

# ---- rows are deleted, their entries moved, and then removed at their new place

# rows that stay, the scan's direction, which end of the page has the deleted ones
my $n = 0;
foreach my $case ([ 'id % 5 = 0', 'ASC', 'last', 'merge' ], [ 'id % 5 = 0', 'DESC', 'first', 'merge' ], [ 'id % 3 <> 0', 'ASC', 'last', 'shift' ])
{
	my ($kept, $dir, $end, $what) = @$case;
	my $t = 't' . ++$n;
	my $block = make_sparse($t, $kept);
	my @keys = keys_of($t, $block);
	my @gone = $end eq 'last' ? @keys[ -10 .. -1 ] : @keys[ 0 .. 9 ];

	my $tids = join(',', map { "'$_'" } split /\n/, $node->safe_psql('postgres', "SELECT ctid FROM $t WHERE at IN (" . join(',', @gone) . ')'));

	# 1. an old snapshot, and a deletion that it does not see
	my $old = psql_session($node);
	$old->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
	$node->safe_psql('postgres', "DELETE FROM $t WHERE at IN (" . join(',', @gone) . ')');
	$node->wait_for_catchup($standby);

	# 2. the standby's scan sees it, and is on the first row of the page that stays
	my $c = open_cursor($t, $dir, $dir eq 'ASC' ? "at <= $keys[0]" : "at >= $keys[-1]");

	# 3. the entries go to the right
	cmp_ok(vacuum($t), '>', 3, "$what, $dir: pages are merged");
	is($node->safe_psql('postgres', "SELECT count(*) FROM bt_page_items(get_raw_page('${t}_at', $block)) WHERE htid IN ($tids)"), 0, "$what, $dir: ... those of this one, too");

	# 4. ... and are removed there
	$old->query_safe('COMMIT');
	$old->quit;
	vacuum($t);
	is($node->safe_psql('postgres', "SELECT count(*) FROM $t WHERE at IN (" . join(',', @gone) . ')'), 0, 'they are gone');

	# 5. the scan goes on
	replay_waits('BufferPin');
	is($c->{session}->query('FETCH ALL FROM c'), $c->{left}, "$what, $dir: no deleted row") or diag $c->{session}->{stderr};
	replay_has_caught_up();
	is($c->{session}->query(q{SELECT count(*) FROM t1 WHERE at < 0}), 0, 'and nobody is cancelled');
	$c->{session}->quit;
}

# ---- who has the page pinned, and begins a parallel scan, does not wait for replay

my $block = make_sparse('p', 'id % 5 = 0');
my @keys = keys_of('p', $block);
$node->wait_for_catchup($standby);
my $c = open_cursor('p', 'ASC', "at <= $keys[0]");
cmp_ok(vacuum('p'), '>', 3, 'pages are merged');
replay_waits('BufferPin');
my $count = 'SELECT count(*) FROM p WHERE at > 0';
$c->{session}->query_safe($_) foreach split(/; /, $parallel);
like($c->{session}->query("EXPLAIN (COSTS off) $count"), qr/Parallel Index Only Scan using p_at/, 'a parallel plan');
is($c->{session}->query($count), 3700, 'the parallel scan ends');
is($c->{session}->query('FETCH ALL FROM c'), $c->{left}, '... and the first one');
$c->{session}->quit;
replay_has_caught_up();

# ---- nor does somebody for whom the leader of a parallel scan waits

make_sparse('q', 'id % 5 = 0');
$node->wait_for_catchup($standby);
$count =~ s/ p / q /;
my $s = psql_session($standby);
$s->query_safe($_) foreach split(/; /, "$by_index; $parallel"), 'BEGIN', 'SELECT pg_advisory_lock(1)';
my ($in, $out, $err) = ('', '', '');
my $leader = IPC::Run::start([ 'psql', '-XAtq', '-d', $standby->connstr('postgres'), '-c', "$by_index; $parallel; SELECT c, pg_advisory_lock(1) FROM ($count OFFSET 0) x(c)" ],
	'<', \$in, '>', \$out, '2>', \$err, IPC::Run::timer(180));
waits_for_lock($standby, 'the leader waits', 'SET enable');
cmp_ok(vacuum('q'), '>', 3, 'pages are merged');
replay_waits('RecoveryConflictSnapshot');
is($s->query($count), 3700, 'another parallel scan begins, and ends');
$s->query_safe('SELECT pg_advisory_unlock(1)');
$s->quit;
$leader->finish;
is("$out$err", "3700|\n", 'the first one ends');
replay_has_caught_up();

# ---- replay waits no longer than it may

$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 1s');
$standby->reload;
foreach my $kept ('id % 5 = 0', 'id % 3 <> 0')
{
	my $t = 'x' . ++$n;
	$block = make_sparse($t, $kept);
	@keys = keys_of($t, $block);
	$node->wait_for_catchup($standby);
	$c = open_cursor($t, 'ASC', "at <= $keys[0]");
	my $log = -s $standby->logfile;
	cmp_ok(vacuum($t), '>', 3, 'pages are merged');
	replay_has_caught_up();
	# (the session may have ended, as it was idle)
	like(slurp_file($standby->logfile, $log), qr/due to conflict with recovery\n.*User was holding shared buffer pin for too long/, 'the scan is cancelled');
	eval { $c->{session}->quit };
}
check_clean($standby, 'on the standby');

$_->stop foreach $standby, $node;
check_log($_) foreach $node, $standby;
done_testing();
