# A base backup taken under load, and pg_rewind of an old primary.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $conf = q{
default_table_access_method = 'inplace'
wal_log_hints = on
wal_keep_size = '500MB'
wal_consistency_checking = ''
};
my $a = new_node('a', allows_streaming => 1, extra => ['--data-checksums'], conf => $conf);
$a->start;
$a->safe_psql('postgres', 'CREATE EXTENSION inplace');
system_or_bail('pgbench', '-i', '-q', '-s', '1', '-h', $a->host, '-p', $a->port, 'postgres');
my $query = q{
	SELECT (SELECT sum(abalance) FROM pgbench_accounts) = coalesce(sum(delta), 0)
		AND (SELECT sum(tbalance) FROM pgbench_tellers) = coalesce(sum(delta), 0)
		AND (SELECT sum(bbalance) FROM pgbench_branches) = coalesce(sum(delta), 0),
		(SELECT count(*) FROM pgbench_accounts) FROM pgbench_history};

# ---- base backup under load, with a transaction open from before to after it
my $s = psql_session($a);
$a->safe_psql('postgres', q{CREATE TABLE mine (id int PRIMARY KEY, v text); INSERT INTO mine SELECT i, repeat('x', 50) FROM generate_series(1, 20000) i});
$s->query(q{BEGIN; UPDATE mine SET v = repeat('y', 40) WHERE id > 5000; DELETE FROM mine WHERE id < 1000; INSERT INTO mine VALUES (0, 'y')});
my $load = start_pgbench($a, '-c', '3', '-T', '8', '-N');
usleep(1_000_000);
$a->backup('b1', backup_options => ['--checkpoint=fast']);
end_pgbench($load);
# (-N changes neither tellers nor branches.)
$a->safe_psql('postgres', q{UPDATE pgbench_tellers SET tbalance = (SELECT sum(delta) FROM pgbench_history) WHERE tid = 1;
	UPDATE pgbench_tellers SET tbalance = 0 WHERE tid <> 1;
	UPDATE pgbench_branches SET bbalance = (SELECT sum(delta) FROM pgbench_history)});
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($a, 'b1');
$restored->start;
is(one($restored, q{SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history), count(*) FROM pgbench_accounts}),
	't|100000', 'restored backup: sums');
is(one($restored, q{SELECT count(*), count(*) FILTER (WHERE v LIKE 'y%') FROM mine}), '20000|0', 'restored backup: an open transaction is undone');
check_clean($restored, 'restored backup');
is(one($restored, 'UPDATE pgbench_accounts SET abalance = abalance + 1; SELECT (SELECT sum(abalance) - 100000 FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)'), 't', 'restored backup: writing');
undo_floor_reached($restored, 'restored backup', 20);
$restored->stop;
check_log($restored);
$s->query('ROLLBACK');
$s->quit;

# ---- a standby is promoted, the old primary goes on for a while, and is rewound
$a->safe_psql('postgres', 'CREATE TABLE extra (id int PRIMARY KEY, v text); INSERT INTO extra SELECT i, repeat(chr(65 + i % 26), i % 300) FROM generate_series(1, 2000) i');
$a->backup('b2', backup_options => ['--checkpoint=fast']);
my $b = PostgreSQL::Test::Cluster->new('b');
$b->init_from_backup($a, 'b2', has_streaming => 1);
$b->start;
end_pgbench(start_pgbench($a, '-c', '3', '-T', '2'));
$a->wait_for_catchup($b);
$b->promote;
end_pgbench(start_pgbench($b, '-c', '3', '-T', '2'));
end_pgbench(start_pgbench($a, '-c', '3', '-T', '2'));
$a->safe_psql('postgres', q{UPDATE extra SET v = v || ' only on a'; DELETE FROM extra WHERE id > 1500;
	BEGIN; UPDATE extra SET v = 'x'; ROLLBACK; CREATE TABLE only_a (i int); INSERT INTO only_a SELECT generate_series(1, 1000)});
$b->safe_psql('postgres', q{UPDATE extra SET v = v || ' on b' WHERE id % 2 = 0; INSERT INTO extra SELECT i, 'new' FROM generate_series(3000, 3500) i; VACUUM extra; CHECKPOINT});
$a->stop('fast');
$b->safe_psql('postgres', 'CHECKPOINT');
command_ok([ 'pg_rewind', '--target-pgdata', $a->data_dir, '--source-server', $b->connstr('postgres') ], 'pg_rewind');
# The configuration has come from b.
my $port = $a->port;
my $host = $a->host;
$a->append_conf('postgresql.conf', "port = $port\nunix_socket_directories = '$host'\n");
$a->append_conf('postgresql.conf', "primary_conninfo = '" . $b->connstr . "'\n");
append_to_file($a->data_dir . '/standby.signal', '');
$a->start;
end_pgbench(start_pgbench($b, '-c', '3', '-T', '2'));
$b->wait_for_catchup($a->name) if 0;
my $lsn = $b->lsn('insert');
ok($a->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'"), 'the rewound server follows');
is(contents($a, $_), contents($b, $_), "$_ is the same on both") foreach (qw(extra pgbench_accounts pgbench_history pgbench_tellers pgbench_branches));
is(one($a, $query), 't|100000', 'rewound: sums');
check_clean($a, 'rewound');
$a->promote;
is(one($a, "UPDATE extra SET v = v || '!'; UPDATE extra SET v = left(v, -1); SELECT 1"), '1', 'rewound and promoted: writing');
is(contents($a, 'extra'), contents($b, 'extra'), 'rewound and promoted: contents');
check_clean($a, 'rewound and promoted');
check_clean($b, 'new primary');
$a->stop;
$b->stop;
check_log($a);
check_log($b);
done_testing();
