# A standby: logical decoding of inplace tables on it (from 16 on), and queries
# on it without hot_standby_feedback, which are cancelled or right, never wrong.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $p = new_node('primary', allows_streaming => 'logical', conf => "wal_level = logical\n");
$p->start;
$p->safe_psql('postgres', $_) foreach (
	'CREATE EXTENSION inplace',
	q{SELECT pg_create_physical_replication_slot('phys')},
	'CREATE TABLE t (id int PRIMARY KEY, n int, v text) USING inplace',
	'CREATE TABLE full_t (a int, v text) USING inplace',
	'ALTER TABLE full_t REPLICA IDENTITY FULL',
	q{INSERT INTO t SELECT i, 0, 'v' || i FROM generate_series(1, 500) i});
$p->backup('b');
my $s = PostgreSQL::Test::Cluster->new('standby');
$s->init_from_backup($p, 'b', has_streaming => 1, has_restoring => 0);
$s->append_conf('postgresql.conf', "primary_slot_name = 'phys'\nhot_standby_feedback = on\nmax_standby_streaming_delay = -1\nwal_receiver_status_interval = 1\n");
$s->start;
sub catch_up { $p->wait_for_catchup($s, 'replay', $p->lsn('insert')) }
catch_up();

# ---- decoding on the standby says what decoding on the primary says
SKIP:
{
	skip 'no logical slots on standbys before 16', 4 if pg_major() < 16;
	$p->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('on_primary', 'test_decoding')});
	catch_up();
	my $create = IPC::Run::start([ 'psql', '-XAtq', '-h', $s->host, '-p', $s->port, '-c',
			q{SELECT pg_create_logical_replication_slot('on_standby', 'test_decoding')}, 'postgres' ], '>', \my $out, '2>', \my $err);
	ok($s->poll_query_until('postgres', q{SELECT restart_lsn IS NOT NULL FROM pg_replication_slots WHERE slot_name = 'on_standby'}), 'slot on the standby begins');
	$p->safe_psql('postgres', 'SELECT pg_log_standby_snapshot()');
	$create->finish;
	$p->safe_psql('postgres', $_) foreach (
		"UPDATE t SET v = v || '!' WHERE id <= 3", 'UPDATE t SET n = n + 1 WHERE id = 4', 'UPDATE t SET id = 1000 WHERE id = 5',
		'DELETE FROM t WHERE id = 6', "INSERT INTO t VALUES (2000, 1, repeat('long', 1000))", "INSERT INTO full_t VALUES (1, 'one'), (2, 'two')",
		"UPDATE full_t SET v = 'ONE' WHERE a = 1", 'DELETE FROM full_t WHERE a = 2',
		"BEGIN; UPDATE t SET v = 'lost'; ROLLBACK", "BEGIN; UPDATE t SET n = 7 WHERE id = 8; SAVEPOINT a; UPDATE t SET n = 8 WHERE id = 9; ROLLBACK TO a; COMMIT",
		'ALTER TABLE t ADD x int DEFAULT 3', 'UPDATE t SET x = 4 WHERE id = 10', 'TRUNCATE full_t');
	catch_up();
	my $get = q{SELECT string_agg(data, E'\n') FROM pg_logical_slot_get_changes('%s', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1')};
	my $there = one($s, sprintf($get, 'on_standby'));
	is($there, one($p, sprintf($get, 'on_primary')), 'decoded on the standby as on the primary');
	like($there, qr/table public\.t: UPDATE: id\[integer\]:1 n\[integer\]:0 v\[text\]:'v1!'.*old-key: id\[integer\]:5.*DELETE: id\[integer\]:6.*old-key: a\[integer\]:1 v\[text\]:'one'/s, 'and that is what was done');
	unlike($there, qr/lost/, 'without what was rolled back');
}

# ---- a query on the standby whose snapshot the primary does not know of
my $sums = 'SELECT count(*) || \' \' || sum(n) || \' \' || md5(string_agg(v, \',\' ORDER BY id)) FROM t';
$s->safe_psql('postgres', $_) foreach ('ALTER SYSTEM SET hot_standby_feedback = off', 'SELECT pg_reload_conf()');
ok($p->poll_query_until('postgres', q{SELECT xmin IS NULL FROM pg_replication_slots WHERE slot_name = 'phys'}), 'no feedback any more');

sub churn
{
	$p->safe_psql('postgres', $_) foreach (
		map({ "UPDATE t SET n = n + 1, v = v || '$_' WHERE id % 3 = 0" } 1 .. 3), 'DELETE FROM t WHERE id % 50 = 0',
		"BEGIN; UPDATE t SET v = 'lost'; ROLLBACK", "INSERT INTO t SELECT max(id) + 1, 0, 'more' FROM t");
	# undo is given back, dead rows are vacuumed
	poll_value($p, 'SELECT sum(extents_to_restore) = 0 FROM inplace.undo', 30);
	$p->safe_psql('postgres', 'VACUUM t');
}

# replay waits as long as the snapshot is there, and the answer stays
my $q = psql_session($s);
$q->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $before = $q->query($sums);
churn();
my $lsn = $p->lsn('insert');
ok(defined poll_value($p, "SELECT write_lsn >= '$lsn' FROM pg_stat_replication", 30), 'the standby has the WAL');
ok($s->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event IN ('RecoveryConflictSnapshot', 'RecoveryConflict')}), 'replay waits for the query');
is($q->query($sums), $before, 'the waiting standby answers as before') foreach 1 .. 3;
is(one($s, "SELECT pg_last_wal_replay_lsn() < '$lsn'"), 't', 'and has not replayed all');
$q->query('COMMIT');
catch_up();
is(one($s, $sums), one($p, $sums), 'afterwards it answers as the primary');

# without patience the query is cancelled, and not answered wrongly
$s->safe_psql('postgres', $_) foreach ('ALTER SYSTEM SET max_standby_streaming_delay = 0', 'SELECT pg_reload_conf()');
$q->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
$before = $q->query($sums);
churn();
catch_up();
# (who is idle in its transaction is disconnected)
my $after = eval { $q->query($sums) } // '';
$after = '' if $after !~ /^\d+ \d+ \w{32}$/;
isnt($after, one($s, $sums), 'the old snapshot does not see the new rows');
ok($after eq '' || $after eq $before, 'cancelled, or the same answer');
eval { $q->quit };
# (the session counts it as it ends)
ok(defined poll_value($s, q{SELECT confl_snapshot > 0 FROM pg_stat_database_conflicts WHERE datname = 'postgres'}, 60), 'a conflict was counted');
is(one($s, $sums), one($p, $sums), 'the standby answers as the primary');
check_clean($s, 'standby');
check_log($p);
check_log($s);
$s->stop;
$p->stop;
done_testing();
