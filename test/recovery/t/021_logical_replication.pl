# Logical replication between heap and inplace tables, in every direction:
# under a random load, with large transactions streamed, two-phase commit, a
# crash of the publisher, and conflicts; at the end the contents are equal.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

seed();
my $conf = q{
wal_level = logical
max_replication_slots = 10
max_wal_senders = 10
logical_decoding_work_mem = '64kB'
wal_retrieve_retry_interval = '100ms'
max_logical_replication_workers = 12
max_worker_processes = 24
};
my $pub = new_node('publisher', conf => $conf, allows_streaming => 'logical');
my $sub = new_node('subscriber', conf => $conf, allows_streaming => 'logical');
$_->start, one($_, 'CREATE EXTENSION inplace') for $pub, $sub;

# Access methods of a table on the publisher and on the subscriber, and the
# replica identity.
my %tables = (
	h_i => [ 'heap', 'inplace', '' ],
	i_h => [ 'inplace', 'heap', '' ],
	i_i => [ 'inplace', 'inplace', '' ],
	i_full => [ 'inplace', 'inplace', 'FULL' ],
	h_full => [ 'heap', 'inplace', 'FULL' ],
	i_idx => [ 'inplace', 'inplace', 'USING INDEX i_idx_u' ]);
my @names = sort keys %tables;

foreach my $side (0, 1)
{
	my $node = $side == 0 ? $pub : $sub;
	foreach my $t (@names)
	{
		my ($am, $identity) = ($tables{$t}[$side], $tables{$t}[2]);
		my $key = $identity eq 'FULL' ? '' : 'PRIMARY KEY';
		one($node, "CREATE TABLE $t (id int NOT NULL $key, u int NOT NULL, v text, n int, filler char(60) DEFAULT '') USING $am;
			ALTER TABLE $t ALTER v SET STORAGE EXTERNAL;
			CREATE UNIQUE INDEX ${t}_u ON $t (u)");
		one($node, "ALTER TABLE $t REPLICA IDENTITY $identity") if $identity;
	}

	# Row filter and column list; partitions with mixed methods, through the root.
	one($node, "CREATE TABLE filtered (id int PRIMARY KEY, v text, secret text) USING inplace;
		CREATE TABLE root (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
		CREATE TABLE root_a PARTITION OF root FOR VALUES FROM (0) TO (100) USING inplace;
		CREATE TABLE root_b PARTITION OF root FOR VALUES FROM (100) TO (1000) USING heap")
	  if $side == 0;
	one($node, "CREATE TABLE filtered (id int PRIMARY KEY, v text, secret text) USING inplace;
		CREATE TABLE root (id int PRIMARY KEY, v text) USING inplace") if $side == 1;
}
foreach my $t (@names)
{
	# what is there before is copied
	one($pub, "INSERT INTO $t SELECT i, i, 'initial ' || i, 0 FROM generate_series(1, 200) i");
}
my $list = join ', ', @names;
one($pub, "CREATE PUBLICATION p FOR TABLE $list, filtered (id, v) WHERE (id > 10), root
	WITH (publish_via_partition_root = true)");
my $connstr = $pub->connstr . ' dbname=postgres';
my $streaming = pg_major() >= 16 ? 'parallel' : 'on';
my ($rc, undef, $err) = $sub->psql('postgres',
	"CREATE SUBSCRIPTION s CONNECTION '$connstr' PUBLICATION p
	WITH (streaming = $streaming, two_phase = true)");
is($rc, 0, 'subscription is made') or diag $err;
$sub->wait_for_subscription_sync($pub, 's');
pass('initial contents are copied');
ok(defined poll_value($sub, q{SELECT subtwophasestate = 'e' FROM pg_subscription}, 60), 'two-phase commit is enabled');

sub same
{
	my ($what) = @_;
	$pub->wait_for_catchup('s');
	foreach my $t (@names)
	{
		is(contents($sub, $t), contents($pub, $t), "$what: $t is the same");
	}
}
same('after the copy');

# The load: each transaction works on one of the tables.
my $dir = PostgreSQL::Test::Utils::tempdir();
my @files;
foreach my $t (@names)
{
	my $file = "$dir/$t.sql";
	append_to_file($file, qq{
\\set id random(1, 200)
\\set new random(1000, 2000000000)
\\set len random(1, 4000)
BEGIN;
UPDATE $t SET n = n + 1 WHERE u = :id;
UPDATE $t SET v = repeat('x', :len) WHERE u = :id + 1;
INSERT INTO $t (id, u, v) VALUES (:new, :new, repeat('new', :len)) ON CONFLICT DO NOTHING;
SAVEPOINT s;
DELETE FROM $t WHERE u BETWEEN :id AND :id + 20;
ROLLBACK TO s;
UPDATE $t SET u = u + 1000000 WHERE u = :new;
UPDATE $t SET id = id + 1 WHERE u = :new + 1000000 AND id % 2 = 0;
DELETE FROM $t WHERE u > 1000 AND u % 7 = 0;
END;
});
	push @files, '-f', $file;
}
my $bench = start_pgbench($pub, '-c', 3, '-T', 4, '--max-tries=100', @files);
like(end_pgbench($bench), qr/number of failed transactions: 0 /, 'load');
same('after the load');

# Large transactions, streamed, with savepoints, one of them rolled back.
foreach my $t (@names)
{
	one($pub, "BEGIN;
		INSERT INTO $t (id, u, v) SELECT i, i, 'large ' || i FROM generate_series(100001, 101500) i;
		SAVEPOINT s;
		UPDATE $t SET v = 'gone' WHERE u > 101000 AND u < 102000;
		ROLLBACK TO s;
		UPDATE $t SET n = 9 WHERE u > 101400 AND u < 102000;
		COMMIT");
	one($pub, "BEGIN;
		INSERT INTO $t (id, u, v) SELECT i, i, 'never' FROM generate_series(200001, 201500) i;
		ROLLBACK");
}
same('after streamed transactions');
is(one($pub, 'SELECT stream_txns > 0 FROM pg_stat_replication_slots WHERE slot_name = \'s\''), 't',
	'transactions were streamed');

# After a crash the publisher decodes again from the slot's restart_lsn.  If that
# were before the load, 18 would meet transactions of it that it finds aborted
# before it has streamed them, and marks their subtransactions, and not
# themselves, as streamed: an assertion of the server's (heap or not) fails.
my $past = $pub->lsn('insert');
for (1 .. 200)
{
	one($pub, 'CHECKPOINT');
	$pub->wait_for_catchup('s');
	last if one($pub, "SELECT restart_lsn >= '$past' FROM pg_replication_slots WHERE slot_name = 's'") eq 't';
	usleep(100_000);
}

# Two-phase commit, with a crash of the publisher between the phases.
one($pub, "BEGIN; UPDATE $_ SET n = 77 WHERE u < 50; DELETE FROM $_ WHERE u = 60; PREPARE TRANSACTION '$_'") for @names;
$pub->wait_for_catchup('s');
is(one($sub, 'SELECT count(*) FROM pg_prepared_xacts'), scalar @names, 'prepared on the subscriber');
crash_and_restart($pub);
one($pub, $_ eq 'i_full' ? "ROLLBACK PREPARED '$_'" : "COMMIT PREPARED '$_'") for @names;
same('after two-phase commit over a crash');
is(one($sub, 'SELECT count(*) FROM pg_prepared_xacts'), '0', 'nothing is left prepared');

# Filters, and rows that move between partitions.
one($pub, "INSERT INTO filtered SELECT i, 'v' || i, 's' FROM generate_series(1, 20) i;
	UPDATE filtered SET id = 30, v = 'into the filter' WHERE id = 1;
	UPDATE filtered SET v = 'x' WHERE id IN (2, 13);
	UPDATE filtered SET id = 0 WHERE id = 14;
	INSERT INTO root SELECT i, 'r' FROM generate_series(1, 150) i;
	UPDATE root SET id = id + 300, v = 'moved' WHERE id <= 20;
	UPDATE root SET id = id - 400 + 350 WHERE id BETWEEN 101 AND 120;
	DELETE FROM root WHERE id BETWEEN 130 AND 140");
$pub->wait_for_catchup('s');
is(contents($sub, "(SELECT id, v FROM filtered)"),
	contents($pub, "(SELECT id, v FROM filtered WHERE id > 10)"), 'row filter');
is(one($sub, 'SELECT count(secret) FROM filtered'), '0', 'column list');
is(contents($sub, 'root'), contents($pub, 'root'), 'partitions with mixed methods, via the root');

# Rows that are not there, or locked, on the subscriber.
my $u = one($pub, 'SELECT min(u) FROM i_i');
one($sub, "DELETE FROM i_i WHERE u = $u; DELETE FROM i_full WHERE u = $u");
one($pub, "UPDATE i_i SET n = 5 WHERE u = $u; DELETE FROM i_full WHERE u = $u");
one($pub, "DELETE FROM i_i WHERE u = $u");
my $locker = psql_session($sub);
$locker->query('BEGIN; UPDATE i_i SET n = -1 WHERE u = (SELECT max(u) FROM i_i); SELECT id FROM i_full LIMIT 5 FOR UPDATE');
one($pub, 'UPDATE i_i SET n = 6; UPDATE i_full SET n = 6');
$locker->query('ROLLBACK');
$locker->quit;
same('after conflicts');

# TRUNCATE
one($pub, "TRUNCATE $list");
one($pub, "INSERT INTO $_ (id, u) VALUES (1, 1)") for @names;
same('after TRUNCATE');

check_clean($_, $_->name) for $pub, $sub;
check_log($_) for $pub, $sub;
$_->stop for $sub, $pub;
done_testing();
