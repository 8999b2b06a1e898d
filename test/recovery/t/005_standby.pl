# A streaming standby under load: every record is checked against the primary's
# page, queries on it see consistent data, and it can be promoted.

use strict;
use warnings;

# a session that the standby ends must not end the test
$SIG{PIPE} = 'IGNORE';
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $seed = seed();
my $primary = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
# its truncation of tables takes locks that queries of the standby conflict with
autovacuum = off
wal_consistency_checking = 'all'
wal_receiver_status_interval = '1s'
max_standby_streaming_delay = '1s'
});
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION inplace');
system_or_bail('pgbench', '-i', '-q', '-s', '1', '-h', $primary->host, '-p', $primary->port, 'postgres');
$primary->safe_psql('postgres', q{
	CREATE TABLE moving (id int PRIMARY KEY, k int, n int, v text);
	CREATE INDEX ON moving (k);
	INSERT INTO moving SELECT i, i, 0, 'v' FROM generate_series(1, 2000) i;
	CREATE TABLE coming (id int, n int);
	CREATE INDEX ON coming (id);
	INSERT INTO coming SELECT i, 1 FROM generate_series(1, 1000) i;
	CREATE UNLOGGED TABLE unl (i int); INSERT INTO unl VALUES (1);
	VACUUM;
});
# (The server reads 'all' before it knows of our resource manager.)  The second change of
# a page needs no image of it but to be checked.
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_walinspect; UPDATE moving SET n = 1 WHERE id = 1; UPDATE moving SET n = 0 WHERE id = 1');
my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$primary->safe_psql('postgres', 'UPDATE moving SET n = n WHERE id = 1; UPDATE moving SET n = 0 WHERE id = 1');
is($primary->safe_psql('postgres', qq{SELECT bool_and(fpi_length > 0) FROM pg_get_wal_records_info('$lsn', pg_current_wal_flush_lsn())
	WHERE resource_manager = 'inplace' AND record_type = 'UPDATE'}), 't', 'records have what they are checked by');
$primary->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('s1', true)});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 's1'\nhot_standby_feedback = on\n");
$standby->start;
$primary->wait_for_catchup($standby);
is(sqlstate_of($standby, 'SELECT * FROM unl') =~ /0A000|55000|cannot access temporary or unlogged/ ? 'refused' : 'not refused',
	'refused', 'unlogged table on a standby');

# Keeps the sum of n (and the number of rows) of both tables in each transaction.
my $script = $primary->basedir . '/extra.sql';
append_to_file($script, q{
\set a random(1, 1000)
\set b random(1001, 2000)
\set d random(1, 100)
BEGIN;
UPDATE moving SET n = n + :d WHERE id = :a;
UPDATE moving SET n = n - :d, v = repeat('v', :d) WHERE id = :b;
UPDATE moving SET k = k + 1 WHERE id = :a;
DELETE FROM coming WHERE id = :a;
SAVEPOINT s;
UPDATE moving SET n = n + 1, v = 'to be rolled back' WHERE id = :b;
DELETE FROM moving WHERE id = :a;
ROLLBACK TO s;
INSERT INTO coming VALUES (:a, 1);
COMMIT;
BEGIN;
UPDATE moving SET n = n + 77, k = 0 WHERE id IN (:a, :b);
ROLLBACK;
});
# The second script of concurrent transactions may delete the same row of
# "coming" and insert it twice, so only its minimum is fixed.
my $query = q{
	SELECT (SELECT sum(abalance) FROM pgbench_accounts) = coalesce(sum(delta), 0)
		AND (SELECT sum(tbalance) FROM pgbench_tellers) = coalesce(sum(delta), 0)
		AND (SELECT sum(bbalance) FROM pgbench_branches) = coalesce(sum(delta), 0),
		(SELECT count(*) FROM pgbench_accounts), (SELECT sum(n) FROM moving), (SELECT count(*) FROM moving),
		(SELECT count(DISTINCT id) FROM coming),
		(SELECT count(*) FROM moving WHERE id IN (SELECT generate_series(1, 2000)))
	FROM pgbench_history};
my $want = 't|100000|0|2000|1000|2000';

# (Without feedback queries may be cancelled at any time, which a psql in the
# background does not survive: see docs/limitations.md.)
foreach my $feedback ('on')
{
	$standby->append_conf('postgresql.conf', "hot_standby_feedback = $feedback\n");
	$standby->reload;
	ok(defined poll_value($primary, q{SELECT xmin IS NOT NULL FROM pg_replication_slots WHERE slot_name = 's1'}, 60), 'feedback');
	my $load = start_pgbench($primary, '-c', '4', '-T', '14', '-f', "$script\@1", '-b', 'tpcb-like@3');
	my $start = time();
	my ($asked, $conflicts, $bad) = (0, 0, '');

	# A snapshot held for most of the time, looked at again and again.
	my $s = psql_session($standby);
	$s->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $ask = sub {
		my $got = eval { $s->query(q{SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM moving t}
			  . q{; SELECT count(*), sum(delta) FROM pgbench_history; SELECT sum(abalance), sum(tid) FROM pgbench_accounts, (SELECT sum(tid) AS tid FROM pgbench_tellers) t}) };
		# (The server ended the session.)
		$s->{stderr} .= 'FATAL: terminating connection due to conflict with recovery' if !defined $got && $s->{stderr} !~ /ERROR|FATAL/;
		return $got // '';
	};
	my $long = $ask->();
	my $long_bad = 0;
	while (time() - $start < 13)
	{
		# The long one's turn.
		my $now = $ask->();
		my $error = $s->{stderr};
		if ($error =~ /ERROR|FATAL/)
		{
			# Hot standby may cancel queries, with this error alone.
			if ($error =~ /canceling statement due to conflict with recovery|terminating connection due to conflict with recovery/)
			{
				$conflicts++;
			}
			else
			{
				$bad .= $error;
			}
			$s->{stderr} = '';
			eval { $s->quit };
			$s = psql_session($standby);
			eval { $s->query('BEGIN ISOLATION LEVEL REPEATABLE READ') };
			$long = $ask->();
			$long = '' if $s->{stderr};
		}
		elsif ($long ne '' && $now ne $long)
		{
			$long_bad++;
		}
		elsif ($long eq '')
		{
			$long = $now;
		}
		# A new snapshot.
		my $got = one($standby, "BEGIN ISOLATION LEVEL REPEATABLE READ; $query; COMMIT");
		if ($got eq $want) { $asked++ }
		elsif ($got =~ /conflict with recovery/) { $conflicts++ }
		else { $bad .= "$got\n" }
	}
	eval { $s->quit };
	my $out = end_pgbench($load);
	like($out, qr/number of transactions actually processed: [1-9]/, "feedback $feedback: load ran");
	is($bad, '', "feedback $feedback: each snapshot of the standby is consistent (seed $seed)");
	is($long_bad, 0, "feedback $feedback: the long snapshot does not change");
	cmp_ok($asked, '>=', 3, "feedback $feedback: $asked queries of the standby, $conflicts conflicts");
	is($conflicts, 0, 'no conflicts with feedback') if $feedback eq 'on';
}

$primary->wait_for_catchup($standby);
foreach my $table (qw(pgbench_accounts pgbench_tellers pgbench_branches pgbench_history moving coming))
{
	is(contents($standby, $table), contents($primary, $table), "$table is the same on both");
}
check_clean($primary, 'primary');
is(one($standby, q{SELECT c.relname, k.* FROM inplace.stat_tables c, inplace.check(c.relid) k WHERE c.relname <> 'unl' LIMIT 20}),
	'', 'standby: inplace.check has no finding');

# Transactions open on the primary when it fails are undone on the new one.
my $s = psql_session($primary);
$s->query(q{BEGIN; UPDATE moving SET n = 5, v = repeat('w', 100); DELETE FROM coming; UPDATE pgbench_accounts SET abalance = 0 WHERE aid < 3000});
$primary->safe_psql('postgres', q{BEGIN; UPDATE moving SET n = n WHERE id = 0; INSERT INTO coming VALUES (0, 1); PREPARE TRANSACTION 'p'});
my $before = contents($primary, 'moving');
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
eval { $s->quit };
$standby->promote;
is(one($standby, $query), $want, 'promoted: sums');
is(contents($standby, 'moving'), $before, 'promoted: what was open on the primary is undone');
is(one($standby, "COMMIT PREPARED 'p'; SELECT count(*) FROM coming WHERE id = 0"), '1', 'promoted: COMMIT PREPARED');
is(one($standby, "UPDATE moving SET v = 'w', n = n + 1; UPDATE moving SET k = k + 1 WHERE id < 100; UPDATE moving SET n = n - 1; DELETE FROM coming WHERE id = 0;
	INSERT INTO unl VALUES (2); SELECT count(*) FROM unl"), '1', 'promoted: writing');
my $load = start_pgbench($standby, '-c', '4', '-T', '3', '-f', "$script\@1", '-b', 'tpcb-like@3');
end_pgbench($load);
is(one($standby, $query), $want, 'promoted: sums after more load');
$standby->safe_psql('postgres', 'VACUUM');
check_clean($standby, 'promoted');
undo_floor_reached($standby, 'promoted', 20);
$standby->stop;
check_log($primary);
check_log($standby);
done_testing();
