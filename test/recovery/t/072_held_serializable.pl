# SERIALIZABLE transactions whose snapshot is held while rows are updated again and
# again: versions are dropped, or passed over by links, and the conflicts with
# those who wrote them are found all the same, as on heap.
# Long: on one server of a run.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = seed();
my $node = new_node('primary', conf => q{
default_transaction_isolation = 'serializable'
autovacuum = off
# there is room for so many that have committed, times ten, before they are summed up;
# after that conflicts are missed, on heap too
max_connections = 400
inplace.undo_worker_delay = 100
# (nothing is replayed)
wal_consistency_checking = ''
});
$node->start;
heap_beside_inplace($node);

# ---- outcomes, beside heap

sub run
{
	my ($db, @statements) = @_;
	$node->safe_psql($db, join("\n", map { "$_;" } @statements));
}

# So that later updates of other rows want the room of entries of index x_k.
sub churn
{
	my ($db) = @_;
	run($db, map { my $n = $_; map { "UPDATE x SET k = 1020 + ($n * 7 + id * 13) % 90 WHERE id = $_" } 10 .. 20 } 1 .. 80);
}

my $reads_y = 'SELECT n FROM y WHERE id = 1';
my $hit = 'UPDATE x SET hits = hits + 1 WHERE id = 1';
my $brin = 'CREATE INDEX x_brin ON x USING brin (k)';
my @ways = (
	[ 'index scan', 'enable_seqscan', 'enable_bitmapscan' ],
	[ 'seqscan', 'enable_indexscan', 'enable_bitmapscan', 'enable_indexonlyscan' ],
	[ 'bitmap scan', 'enable_indexscan', 'enable_seqscan', 'enable_indexonlyscan' ]);

# what he reads, and should see; whether he then fails when he changes what one of the
# others has read; what they do after his snapshot; and what is done before
my @cases = (
	[ 'replaced', 'SELECT hits FROM x WHERE id = 1', 0, 'fails', sub {
		run($_[0], 'BEGIN', $reads_y, $hit, 'COMMIT', ($hit) x 300) } ],
	[ 'replaced, then by one transaction', 'SELECT hits FROM x WHERE id = 1', 0, 'fails', sub {
		run($_[0], 'BEGIN', $reads_y, $hit, 'COMMIT', 'BEGIN', ($hit) x 60, 'COMMIT', ($hit) x 200) } ],
	[ 'replaced in a subtransaction', 'SELECT hits FROM x WHERE id = 1', 0, 'fails', sub {
		run($_[0], 'BEGIN', 'SAVEPOINT s', $hit, 'ROLLBACK TO s', $reads_y, 'SAVEPOINT t', $hit, 'RELEASE t', 'COMMIT', ($hit) x 300) } ],
	[ 'replaced by somebody who has read nothing', 'SELECT hits FROM x WHERE id = 1', 0, 'does not', sub {
		run($_[0], ($hit) x 300) } ],
	[ 'replaced by somebody who is rolled back', 'SELECT hits FROM x WHERE id = 1', 0, 'does not', sub {
		run($_[0], 'BEGIN', $reads_y, $hit, 'ROLLBACK', ($hit) x 300) } ],
	[ 'made', 'SELECT count(*) FROM x WHERE id = 5', 0, 'fails', sub {
		run($_[0], 'BEGIN', $reads_y, 'INSERT INTO x VALUES (5, 50, 0)', 'COMMIT', ('UPDATE x SET hits = hits + 1 WHERE id = 5') x 300) } ],
	[ 'made, key', 'SELECT count(*) FROM x WHERE k BETWEEN 41 AND 59', 0, 'fails', sub {
		run($_[0], 'BEGIN', $reads_y, 'INSERT INTO x VALUES (5, 50, 0)', 'COMMIT', ('UPDATE x SET hits = hits + 1 WHERE id = 5') x 300) } ],
	[ 'made and deleted', 'SELECT count(*) FROM x WHERE id = 5', 0, 'fails', sub {
		run($_[0], 'BEGIN', $reads_y, 'INSERT INTO x VALUES (5, 50, 0)', 'COMMIT', ('UPDATE x SET hits = hits + 1 WHERE id = 5') x 300, 'DELETE FROM x WHERE id = 5') } ],
	[ 'deleted', 'SELECT hits FROM x WHERE id = 1', 0, 'fails', sub {
		run($_[0], 'BEGIN', $reads_y, $hit, 'COMMIT', ($hit) x 300, 'DELETE FROM x WHERE id = 1') } ],
	( map { my $how = $_;
		[ "replaced, then rewritten by $how", 'SELECT hits FROM x WHERE id = 1', 0, 'fails', sub {
			run($_[0], 'BEGIN', $reads_y, $hit, 'COMMIT', ($hit) x 300, $how) } ] }
		'VACUUM FULL x', 'CLUSTER x USING x_pkey', 'REINDEX TABLE x'),
	# X has seen the row in the range, and not what the reader changes: he came
	# before the reader, and the reader should have seen it, too
	[ 'key there and back', 'SELECT count(*) FROM x WHERE k BETWEEN 1000 AND 1010', 0, 'fails', sub {
		run($_[0], 'UPDATE x SET k = 1005 WHERE id = 1',
			'BEGIN', 'SELECT count(*) FROM x WHERE k BETWEEN 1000 AND 1010', $reads_y, 'COMMIT',
			'UPDATE x SET k = 10 WHERE id = 1', ($hit) x 300);
		churn($_[0]) } ],
	[ 'key there and back, later', 'SELECT count(*) FROM x WHERE k BETWEEN 1000 AND 1010', 0, 'fails', sub {
		run($_[0], ($hit) x 200, 'UPDATE x SET k = 1005 WHERE id = 1', ($hit) x 100,
			'BEGIN', 'SELECT count(*) FROM x WHERE k BETWEEN 1000 AND 1010', $reads_y, 'COMMIT',
			($hit) x 100, 'UPDATE x SET k = 10 WHERE id = 1', ($hit) x 300);
		churn($_[0]);
		run($_[0], ($hit) x 100) } ],
	[ 'key of a new row there and back', 'SELECT count(*) FROM x WHERE k BETWEEN 1000 AND 1010', 0, 'fails', sub {
		run($_[0], 'INSERT INTO x VALUES (6, 60, 0)', 'UPDATE x SET k = 1005 WHERE id = 6',
			'BEGIN', 'SELECT count(*) FROM x WHERE k BETWEEN 1000 AND 1010', $reads_y, 'COMMIT',
			'UPDATE x SET k = 10 WHERE id = 6', ('UPDATE x SET hits = hits + 1 WHERE id = 6') x 300);
		churn($_[0]) } ],
	# (what a summary is made of on heap depends on whether updates were HOT)
	( map { my ($before, $later, $what) = @$_;
		[ "key there and back, $what", 'SELECT count(*) FROM x WHERE k BETWEEN 1000 AND 1010', 0, 'fails', sub {
			run($_[0], 'UPDATE x SET k = 1005 WHERE id = 1',
				'BEGIN', 'SELECT count(*) FROM x WHERE k BETWEEN 1000 AND 1010', $reads_y, 'COMMIT',
				'UPDATE x SET k = 10 WHERE id = 1', ($hit) x 300, @$later) }, @$before ] }
		([ [ 'DROP INDEX x_k' ], [ $brin ], 'then BRIN' ],
		[ [ 'DROP INDEX x_k' ], [ 'SET min_parallel_table_scan_size = 0', $brin ], 'then BRIN by several' ],
		[ [ 'DROP INDEX x_k' ], [ $brin, 'VACUUM FULL x' ], 'then BRIN and a rewrite' ],
		[ [ 'DROP INDEX x_k' ], [ $brin, 'SET min_parallel_table_scan_size = 0', 'REINDEX INDEX x_brin' ], 'then BRIN, and again by several' ],
		[ [ 'DROP INDEX x_k', $brin ], [ 'REINDEX INDEX x_brin' ], 'BRIN built again' ],
		[ [ 'DROP INDEX x_k', $brin ], [ q{SELECT brin_desummarize_range('x_brin', 0)}, q{SELECT brin_summarize_new_values('x_brin')} ], 'BRIN summarized again' ]) ));

sub outcome
{
	my ($db, $read, $others, $before, @off) = @_;
	run($db, 'SET client_min_messages = warning', 'DROP TABLE IF EXISTS x, y',
		'CREATE TABLE x (id int PRIMARY KEY, k int, hits int)',
		'CREATE INDEX x_k ON x (k)',
		'CREATE TABLE y (id int PRIMARY KEY, n int)',
		'INSERT INTO x SELECT i, i * 10, 0 FROM generate_series(1, 20) i WHERE i NOT BETWEEN 5 AND 7',
		'INSERT INTO y SELECT i, 0 FROM generate_series(1, 2) i',
		'ANALYZE x, y', @$before);
	my $r = psql_session($node, $db);
	$r->query_safe("SET $_ = off") foreach @off;
	$r->query_safe('BEGIN');
	$r->query_safe('SELECT count(*) FROM y WHERE id = 2');
	$others->($db);
	my $saw = $r->query($read);
	$r->query('UPDATE y SET n = n + 1 WHERE id = 1');
	$r->query('COMMIT');
	my $failed = $r->{stderr} =~ /could not serialize access due to read\/write dependencies/ ? 'fails' : $r->{stderr} || 'does not';
	$r->{stderr} = '';
	$r->quit;
	return "saw $saw, $failed";
}

foreach my $case (@cases)
{
	my ($name, $read, $sees, $fails, $others, @before) = @$case;
	foreach my $way (@ways)
	{
		my ($scan, @off) = @$way;
		is(outcome('inplace', $read, $others, \@before, @off), "saw $sees, $fails", "inplace: $name, $scan");
		my $on_heap = outcome('heap', $read, $others, \@before, @off);
		if (@before) { note "heap: $name, $scan: $on_heap"; }
		else { is($on_heap, "saw $sees, $fails", "heap: $name, $scan"); }
	}
	is(one($node, q{SELECT k.* FROM inplace.check('x') k LIMIT 20}, 'inplace'), '', "$name: inplace.check has no finding");
}

# ---- size, and steps

$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	SET default_table_access_method = 'inplace';
	CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, v text);
	INSERT INTO t SELECT i, 0, 'v' FROM generate_series(1, 50) i;});
my $up = pgbench_script($node, 'up', q{
\set id random(1, 50)
UPDATE t SET n = n + 1 WHERE id = :id;
});
my $look = q{SELECT string_agg(t::text, '|' ORDER BY id) FROM t};
my $used = q{SELECT used_bytes FROM inplace.undo WHERE kind = 'logged'};
my %size;
foreach my $setting ('off', 'on')
{
	$node->append_conf('postgresql.conf', "inplace.squeeze_undo = $setting\n");
	$node->reload;
	undo_floor_reached($node, "before a load with squeeze_undo $setting", 30);
	my $holder = psql_session($node);
	$holder->query_safe('BEGIN READ ONLY');
	my $answer = $holder->query_safe($look);
	my $out = end_pgbench(start_pgbench($node, '-M', 'prepared', '-c', 2, '-t', 22000, '--max-tries=100', '-f', $up));
	unlike($out, qr/aborted/, 'pgbench has had no error') or diag($out);
	$size{$setting} = one($node, $used);
	is($holder->query_safe($look), $answer, "the snapshot sees the same with squeeze_undo $setting");
	$holder->query_safe('SET enable_seqscan = off');
	my $before = $holder->query_safe('SELECT inplace.undo_records_read()');
	$holder->query_safe('SELECT n FROM t WHERE id = 7');
	my $steps = $holder->query_safe('SELECT inplace.undo_records_read()') - $before;
	note "$steps steps";
	cmp_ok($steps, '<=', 80, "... in few steps with squeeze_undo $setting");
	$holder->query_safe('COMMIT');
	$holder->quit;
}
note "undo: $size{off} bytes without, $size{on} with";
cmp_ok($size{off}, '>', 1_700_000, 'undo grows with the updates without');
cmp_ok($size{on}, '<', $size{off} / 2, '... and does not with');
check_clean($node, 'after the loads');

# ---- a report of a batch that has been closed never becomes wrong

$node->safe_psql('postgres', q{
	SET default_table_access_method = 'inplace';
	CREATE TABLE control (id int PRIMARY KEY, batch int, hits int);
	INSERT INTO control VALUES (1, 1, 0);
	CREATE TABLE receipt (batch int);
	CREATE INDEX ON receipt (batch);
	CREATE TABLE report (batch int, total int);});
my %script = (
	hits => 'UPDATE control SET hits = hits + 1 WHERE id = 1;',
	close => q{
UPDATE control SET batch = batch + 1 WHERE id = 1;
\sleep 300 ms
},
	receipt => q{
\set ms random(20, 300)
BEGIN;
SELECT count(*) FROM t WHERE id = 1;
\sleep :ms ms
SELECT batch FROM control WHERE id = 1 \gset
INSERT INTO receipt VALUES (:batch);
COMMIT;
},
	report => q{
BEGIN;
SELECT batch - 1 AS batch FROM control WHERE id = 1 \gset
SELECT count(*) AS total FROM receipt WHERE batch = :batch \gset
INSERT INTO report VALUES (:batch, :total);
COMMIT;
\sleep 200 ms
});
my $wrong = q{SELECT count(*) FROM report r WHERE total <> (SELECT count(*) FROM receipt c WHERE c.batch = r.batch)};
my %path = map { $_ => pgbench_script($node, $_, $script{$_}) } keys %script;
# (not more hits in the time of a receipt than there is room for)
my @load = map { my ($name, @args) = @$_; start_pgbench($node, @args, '-T', 12, '--max-tries=1000', '-f', $path{$name}) }
	([ 'hits', '-R', 1000 ], [ 'close' ], [ 'receipt', '-c', 6 ], [ 'report' ]);
foreach my $load (@load)
{
	my $out = end_pgbench($load);
	unlike($out, qr/aborted/, 'pgbench has had no error') or diag($out);
}
note 'batches, receipts, reports: ' . one($node, 'SELECT (SELECT batch FROM control) || $$, $$ || (SELECT count(*) FROM receipt) || $$, $$ || (SELECT count(*) FROM report)');
cmp_ok(one($node, 'SELECT count(*) FROM receipt'), '>', 5, 'there are receipts');
cmp_ok(one($node, 'SELECT count(*) FROM report'), '>', 5, 'there are reports');
is(one($node, $wrong), 0, "no report has become wrong (seed $seed)");
check_clean($node, 'at the end');
check_log($node);
done_testing();
