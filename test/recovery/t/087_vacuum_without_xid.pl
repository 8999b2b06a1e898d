# The xid of the sweep of stale index entries is none that VACUUM had before it; and
# VACUUM needs none where the server does not give any out, nor does the undo worker.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
wal_level = replica
inplace.undo_worker_delay = 60s
});
$node->start;
$node->safe_psql('postgres', q{CREATE EXTENSION inplace; CREATE DATABASE old});
$node->safe_psql('old', 'CREATE TABLE old (a int) USING heap');
my $stale = q{SELECT count(*) FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b,
	LATERAL inplace.page_items('t', b) WHERE 'STALE' = ANY (flags)};

# Rows with an even id are stale.  Row 1 has a version that "old" needs, the lock of
# "locker", and a change that was rolled back: restoring it takes undo, and so an xid.
sub rows_to_sweep
{
	$node->safe_psql('postgres', $_) foreach (
		'DROP TABLE IF EXISTS t',
		'CREATE TABLE t (id int PRIMARY KEY, k int, v int, pad text) WITH (fillfactor = 80)',
		'CREATE INDEX t_k ON t USING inplace_btree (k)',
		q{INSERT INTO t SELECT i, i, 0, repeat('x', 450) FROM generate_series(1, 1000) i},
		'VACUUM (FREEZE) t',
		'UPDATE t SET k = k + 1000000 WHERE id % 2 = 0');
	my ($old, $locker) = map { psql_session($node) } 1 .. 2;
	$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM t');
	$node->safe_psql('postgres', 'UPDATE t SET v = 1 WHERE id = 1');
	$locker->query_safe($_) foreach ('BEGIN', 'SELECT id FROM t WHERE id = 1 FOR KEY SHARE');
	return ($old, $locker);
}

# ---- VACUUM has an xid from its first page on, and a scan begins while it runs

my ($old, $locker) = rows_to_sweep();
# (the undo worker has begun, and does not come by for a minute: VACUUM is the first to restore the row)
ok(defined poll_value($node, q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE backend_type LIKE 'inplace undo worker%' AND datname = current_database() AND wait_event_type = 'Extension'}, 60),
	'the undo worker rests');
$node->safe_psql('postgres', 'BEGIN; UPDATE t SET v = 2 WHERE id = 1; ROLLBACK');
my $scan = psql_session($node);
$scan->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
my $vacuum = psql_session($node);
# (It rests for 0.4 s after each of some 75 pages, which is time enough on a machine with much to do.)
$vacuum->query_safe(q{SET vacuum_cost_delay = '100ms'; SET vacuum_cost_limit = 1; SET vacuum_cost_page_hit = 100});
my $pid = $vacuum->query_safe('SELECT pg_backend_pid()');
$vacuum->query_until(qr/go/, "\\echo go\nVACUUM (INDEX_CLEANUP on) t;\n");
ok(defined poll_value($node, "SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE pid = $pid", 60), 'VACUUM has an xid early');
$_->query_safe('COMMIT') foreach ($locker, $old);
$node->safe_psql('postgres', 'DO $$ BEGIN FOR i IN 1 .. 5 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$');
$scan->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT k, id FROM t WHERE k BETWEEN 1 AND 300 ORDER BY k');
is($scan->query_safe('FETCH 2 FROM c'), "1|1\n3|3", 'a scan has read entries');
is($node->safe_psql('postgres', 'SELECT phase FROM pg_stat_progress_vacuum'), 'scanning heap', '... before they are swept');
$vacuum->query_safe('RESET vacuum_cost_delay');
is($node->safe_psql('postgres', $stale), 500, 'VACUUM is over, and the rows have their mark');
$node->safe_psql('postgres', 'VACUUM t') foreach 1 .. 2;
is($node->safe_psql('postgres', $stale), 500, '... which stays while the scan goes on');
is(scalar(split /\n/, $scan->query_safe('FETCH ALL FROM c')), 148, 'the scan returns what it should');
$scan->query_safe('COMMIT');
$node->safe_psql('postgres', 'VACUUM t') foreach 1 .. 3;
is($node->safe_psql('postgres', $stale), 0, 'afterwards the marks go');
check_clean($node, 'a scan beside VACUUM');
$_->quit foreach ($old, $locker, $scan, $vacuum);

# ---- no xids any more, because of a table of another database that is locked

# (until it is autovacuum must not get at it)
my $file = $node->data_dir . '/' . $node->safe_psql('old', q{SELECT pg_relation_filepath('old')});
my ($oldest) = `pg_controldata @{[ $node->data_dir ]}` =~ /oldestXID: *(\d+)/;
my $next = $oldest + 2**31 - 1 - 3_000_000 - 400;
$node->append_conf('postgresql.conf', 'inplace.undo_worker_delay = 100ms');
$node->stop;
my $segment = sprintf('%s/pg_xact/%04X', $node->data_dir, int($next / 1048576));
rename($file, "$file.away") or die "$file: $!";
append_to_file($segment, "\0" x 262144) unless -e $segment;
command_ok([ 'pg_resetwal', '-x', $next, $node->data_dir ], "next xid $next");
$node->start;
$ENV{PGOPTIONS} = '-c client_min_messages=error';
my $holder = psql_session($node, 'old');
$holder->query_safe($_) foreach ('BEGIN', 'LOCK TABLE old IN SHARE UPDATE EXCLUSIVE MODE');
rename("$file.away", $file) or die "$file: $!";
is(one($node, 'VACUUM (FREEZE)', $_), '', "VACUUM of $_") foreach ('postgres', 'template1');

my $refused = qr/is not accepting commands/;
sub use_up_rest
{
	my $err = '';
	for (1 .. 50)
	{
		$err = ($node->psql('postgres', 'DO $$ BEGIN FOR i IN 1 .. 50 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$'))[2];
		last if $err =~ $refused;
	}
	like($err, $refused, 'xids are refused');
}

# Files that could be made shorter: standbys are told of the lock under an xid.
foreach my $t ('emptied', 'shorter')
{
	one($node, "CREATE TABLE $t (id int PRIMARY KEY, k int)");
	one($node, "CREATE INDEX ON $t USING inplace_btree (k)");
	one($node, "INSERT INTO $t SELECT i, i FROM generate_series(1, 30000) i");
}
one($node, 'DELETE FROM emptied WHERE id BETWEEN 100 AND 29900');
one($node, 'DELETE FROM shorter WHERE id > 10000');

($old, $locker) = rows_to_sweep();
my $change = psql_session($node);
$change->query('BEGIN; UPDATE t SET v = 2 WHERE id = 1;');
$change->query('UPDATE t SET v = 3 WHERE id BETWEEN 900 AND 950 AND id % 2 = 1;');
use_up_rest();
my $log = -s $node->logfile;
$change->query('ROLLBACK');
my $rows = q{SELECT count(*), sum(v), sum(k) FROM t};
my $want = '1000|1|' . (500500 + 500 * 1000000);
is(one($node, $rows), $want, 'reading');
unlike(one($node, "VACUUM ($_) t"), qr/ERROR/, "VACUUM ($_)") foreach ('INDEX_CLEANUP on', 'FREEZE', 'FREEZE, INDEX_CLEANUP on');
is(one($node, $rows), $want, 'reading after that');
$old->query_safe('COMMIT');
$locker->query_safe('COMMIT');
unlike(one($node, "VACUUM (INDEX_CLEANUP on) t"), qr/ERROR/, 'VACUUM without the others');
unlike(one($node, "VACUUM $_"), qr/ERROR/, "VACUUM of files that could be shorter: $_") foreach ('emptied', 'shorter');
is(one($node, $stale), 500, 'marks stay where nobody uses up xids');
unlike(one($node, 'VACUUM (FREEZE)', $_), qr/ERROR/, "VACUUM of $_") foreach ('postgres', 'template1');
sleep(5);
is(one($node, $rows), $want, 'reading after a while');
unlike(slurp_file($node->logfile, $log), qr/exited with exit code/, 'the undo worker goes on');

# ---- the way out

$holder->query_safe('COMMIT');
unlike(one($node, 'VACUUM (FREEZE)', $_), qr/ERROR/, "VACUUM of $_") foreach ('old', 'postgres', 'template1');
ok(defined poll_value($node, 'SELECT max(age(datfrozenxid)) < 1000000000 FROM pg_database', 120), 'all databases are young');
is(one($node, 'UPDATE t SET v = v WHERE id < 100; SELECT 1'), '1', 'xids are there again');
ok(defined poll_value($node, "VACUUM t; SELECT ($stale) < 500", 60), 'the marks go');
$_->quit foreach ($old, $locker, $change, $holder);
$node->restart;					# the worker leaves undo alone for a minute after an error
ok(defined poll_value($node, q{SELECT bool_and(extents = free_extents) FROM inplace.undo WHERE kind = 'logged'}, 120), 'undo is given back');
is(one($node, $rows), $want, 'reading in the end');
check_clean($node, 'in the end');
$node->stop;
check_log($node);
done_testing();
