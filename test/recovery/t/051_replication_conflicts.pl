# Conflicts of logical replication (18): an inplace subscriber finds the same ones
# as a heap subscriber, says the same about them in its log, and counts the same in
# pg_stat_subscription_stats.  For that a row must tell which transaction, and so
# which origin, was the last to change it: after updates in place, after locks,
# rollbacks and freezing, whichever index led to it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'conflicts are detected from 18 on' if pg_major() < 18;

my $conf = q{
wal_level = logical
max_worker_processes = 24
max_logical_replication_workers = 12
wal_retrieve_retry_interval = '100ms'
wal_consistency_checking = ''
autovacuum = off
};
my $pub = new_node('publisher', conf => $conf, allows_streaming => 'logical');
my $sub = new_node('subscriber', conf => "$conf\ntrack_commit_timestamp = on\n", allows_streaming => 'logical');
$_->start, one($_, 'CREATE EXTENSION inplace') for $pub, $sub;

# Schemas: access methods of the tables on the publisher and on the subscriber.
my %am = (hh => [ 'heap', 'heap' ], hi => [ 'heap', 'inplace' ], ii => [ 'inplace', 'inplace' ]);
my @schemas = sort keys %am;

# Statements for the tables of each schema, on one of the servers.
sub all
{
	my ($node, $sql) = @_;
	foreach my $schema (@schemas)
	{
		is(one($node, "SET search_path = $schema; SET client_min_messages = error; $sql"), '', "$schema: " . substr($sql, 0, 60));
	}
}

foreach my $schema (@schemas)
{
	foreach my $node ($pub, $sub)
	{
		my $am = $am{$schema}[ $node == $pub ? 0 : 1 ];
		my $index = $am eq 'heap' ? 'btree' : 'inplace_btree';
		is(one($node, qq{
			CREATE SCHEMA $schema; SET search_path = $schema;
			CREATE TABLE t (id int PRIMARY KEY, u int, w int, v text) USING $am;
			CREATE UNIQUE INDEX t_u ON t USING $index (u);
			CREATE UNIQUE INDEX t_w ON t USING $index (w);
			CREATE TABLE f (a int, b text, n int) USING $am;
			CREATE INDEX f_a ON f USING $index (a);
			CREATE TABLE p (id int PRIMARY KEY, u int, v text, UNIQUE (id, u)) PARTITION BY RANGE (id);
			CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000) USING $am;
			ALTER TABLE f REPLICA IDENTITY FULL}), '', "$schema: tables");
	}
	is(one($pub, "CREATE PUBLICATION pub_$schema FOR TABLES IN SCHEMA $schema"), '', "$schema: publication");
}
my $connstr = $pub->connstr . ' dbname=postgres';
foreach my $schema (@schemas)
{
	is((one($sub, "SET client_min_messages = error; CREATE SUBSCRIPTION sub_$schema CONNECTION '$connstr'
		PUBLICATION pub_$schema WITH (disable_on_error = true)")), '', "$schema: subscription");
}
$sub->wait_for_subscription_sync($pub, "sub_$_") foreach @schemas;

sub caught_up { $pub->wait_for_catchup("sub_$_") foreach @schemas }

# (rows that were copied would be of another origin)
all($pub, q{INSERT INTO t SELECT i, i, i, 'there' FROM generate_series(1, 60) i;
	INSERT INTO f SELECT i, 'there', i FROM generate_series(1, 60) i; INSERT INTO p SELECT i, i, 'there' FROM generate_series(1, 20) i});
caught_up();

# What the log says about conflicts in a schema, without transactions, origins and
# times, which are different in any case.
sub conflicts
{
	my ($schema, $offset) = @_;
	my ($said, $on) = ('', 0);
	foreach my $line (split /\n/, slurp_file($sub->logfile, $offset))
	{
		if ($line =~ /^20\d\d-.*? ([A-Z]+):  (.*)/)
		{
			my ($kind, $text) = ($1, $2);
			$on = $text =~ /^conflict detected on relation "$schema\./ if $kind =~ /^(LOG|ERROR)$/;
			$said .= "$kind: $text\n" if $on;
		}
		elsif ($on) { $said .= "$line\n" }
	}
	$said =~ s/\b$schema\b/SCHEMA/g;
	$said =~ s/transaction \d+/transaction X/g;
	$said =~ s/"pg_\d+"/ORIGIN/g;
	$said =~ s/ at 20\d\d-[-0-9 :.]+\+\d+/ at TIME/g;
	$said =~ s/finished at [0-9A-F]+\/[0-9A-F]+/finished/g;
	return $said;
}

my @kinds = qw(confl_insert_exists confl_update_origin_differs confl_update_exists confl_update_missing
  confl_delete_origin_differs confl_delete_missing confl_multiple_unique_conflicts);
my %found;						# those that have been there
my $conflicts = 0;				# and how many of them

sub same
{
	my ($what, $offset, $lines) = @_;
	my %said = map { $_ => conflicts($_, $offset) } @schemas;
	my $n = () = $said{hh} =~ /conflict detected/g;
	is($n, $lines, "$what: conflicts with heap") or diag $said{hh};
	is($said{$_}, $said{hh}, "$what: $_ says the same as heap") foreach qw(hi ii);
	note $said{hh};
	# a worker's counters are sent when it is idle, or exits
	$conflicts += $n;
	my %counters;
	foreach my $schema (@schemas)
	{
		poll_value($sub, 'SELECT ' . join('+', @kinds) . " >= $conflicts FROM pg_stat_subscription_stats WHERE subname = 'sub_$schema'", 60);
		$counters{$schema} = one($sub, 'SELECT ' . join(" || ' ' || ", map { "'$_=' || $_" } @kinds, 'apply_error_count') . " FROM pg_stat_subscription_stats WHERE subname = 'sub_$schema'");
	}
	is($counters{$_}, $counters{hh}, "$what: $_ counts the same as heap") foreach qw(hi ii);
	$found{$1} = 1 while $counters{hh} =~ /(\w+)=[1-9]/g;
	foreach my $table (qw(t f p))
	{
		is(contents($sub, "$_.$table"), contents($sub, "hh.$table"), "$what: same rows in $table, $_") foreach qw(hi ii);
	}
}

# ---- conflicts that are passed over

# Rows that have, or not, a newest version that is not of the subscription: updated in
# place, moved, with changes and locks rolled back, in a subtransaction, prepared, frozen.
my $offset = -s $sub->logfile;
sub locked { my ($id, $how) = @_; return "DO \$\$ BEGIN PERFORM FROM t WHERE id = $id FOR $how; END \$\$;" }
my $local = join '; ', "UPDATE t SET v = 'local' WHERE id = 1",
  "UPDATE t SET v = 'local' WHERE id = 2; UPDATE t SET v = 'local again' WHERE id = 2",
  'UPDATE t SET u = 1003 WHERE id = 3', 'UPDATE t SET id = 1004 WHERE id = 4; UPDATE t SET id = 4 WHERE id = 1004',
  "BEGIN; UPDATE t SET v = 'no' WHERE id = 5; ROLLBACK",
  "BEGIN; UPDATE t SET v = 'yes' WHERE id = 6; SAVEPOINT s; UPDATE t SET v = 'no' WHERE id = 6; ROLLBACK TO s; COMMIT",
  "BEGIN; SAVEPOINT s; UPDATE t SET v = 'no' WHERE id = 7; ROLLBACK TO s; " . locked(7, 'UPDATE') . ' COMMIT',
  'BEGIN; ' . locked(8, 'KEY SHARE') . " UPDATE t SET v = 'locked first' WHERE id = 8; COMMIT",
  "UPDATE t SET v = repeat('longer', 400) WHERE id = 9", locked(10, 'SHARE'),
  "UPDATE f SET n = -1 WHERE a = 1; UPDATE p SET v = 'local' WHERE id = 1",
  "UPDATE f SET n = n WHERE a = 2";
all($sub, $local);
foreach my $schema (@schemas)
{
	one($sub, "BEGIN; UPDATE $schema.t SET v = 'prepared' WHERE id = 11; PREPARE TRANSACTION '$schema'");
	one($sub, "COMMIT PREPARED '$schema'");
}
all($pub, q{UPDATE t SET v = v || ' remote' WHERE id <= 12; UPDATE f SET n = 100 WHERE a <= 3; UPDATE p SET v = 'remote' WHERE id <= 2});
caught_up();
same('update_origin_differs', $offset, 11);

# the same rows again are the subscription's now; and frozen ones are still whose they were
$offset = -s $sub->logfile;
all($sub, "UPDATE t SET v = 'frozen' WHERE id BETWEEN 13 AND 15; VACUUM FREEZE t");
all($pub, "UPDATE t SET v = 'remote again' WHERE id <= 14");
caught_up();
same('frozen', $offset, 2);

$offset = -s $sub->logfile;
all($sub, q{DELETE FROM t WHERE id IN (20, 21); DELETE FROM f WHERE a = 20; DELETE FROM p WHERE id = 10;
	UPDATE t SET v = 'local' WHERE id = 22; BEGIN; UPDATE t SET v = 'no' WHERE id = 23; DELETE FROM t WHERE id = 24; ROLLBACK;
	UPDATE t SET u = 1025 WHERE id = 25; UPDATE p SET v = 'local' WHERE id = 12; UPDATE f SET b = 'other' WHERE a = 21});
all($pub, q{UPDATE t SET v = 'missing' WHERE id = 20; DELETE FROM t WHERE id BETWEEN 21 AND 25; UPDATE f SET n = 5 WHERE a IN (20, 21); DELETE FROM f WHERE a IN (20, 21, 22);
	UPDATE p SET v = 'missing' WHERE id = 10; DELETE FROM p WHERE id IN (10, 11, 12)});
caught_up();
same('missing rows, delete_origin_differs', $offset, 11);

# ---- conflicts that are errors: the subscription stops until they are skipped

sub stops
{
	my ($what, $lines, $there, $remote) = @_;
	my $begin = -s $sub->logfile;
	all($sub, $there);
	all($pub, $remote);
	ok(defined poll_value($sub, 'SELECT count(*) = 0 FROM pg_subscription WHERE subenabled', 60), "$what: the subscriptions stop");
	same($what, $begin, $lines);
	my $log = slurp_file($sub->logfile, $begin);
	foreach my $schema (@schemas)
	{
		my ($lsn) = $log =~ /relation "$schema\.\w+".* finished at ([0-9A-F]+\/[0-9A-F]+)/;
		is(one($sub, "ALTER SUBSCRIPTION sub_$schema SKIP (lsn = '$lsn')"), '', "$what: skipped in $schema");
		one($sub, "ALTER SUBSCRIPTION sub_$schema ENABLE");
	}
	caught_up();
}

stops('insert_exists', 1, q{INSERT INTO t VALUES (101, 101, 101, 'local'); UPDATE t SET v = 'in place' WHERE id = 101},
	q{INSERT INTO t VALUES (101, 1101, 1101, 'remote')});
stops('insert_exists in another index', 1, q{INSERT INTO t VALUES (102, 102, 102, 'local'); UPDATE t SET u = 2102 WHERE id = 102},
	q{INSERT INTO t VALUES (202, 2102, 1102, 'remote')});
stops('insert_exists, row of the subscription', 1, q{UPDATE t SET u = 2030 WHERE id = 33}, q{BEGIN; INSERT INTO t VALUES (2031, 2031, 2031, 'first'); INSERT INTO t VALUES (2032, 2030, 2032, 'remote'); COMMIT});
stops('update_exists', 1, q{INSERT INTO t VALUES (103, 103, 103, 'local')}, q{UPDATE t SET u = 103, v = 'remote' WHERE id = 30});
stops('update_exists, key', 1, q{INSERT INTO t VALUES (104, 104, 104, 'local'); VACUUM FREEZE t}, q{UPDATE t SET id = 104 WHERE id = 31});
stops('multiple_unique_conflicts of an insertion', 1, q{INSERT INTO t VALUES (105, 105, 105, 'a'), (106, 106, 106, 'b'), (107, 107, 107, 'c');
	UPDATE t SET u = 1106 WHERE id = 106}, q{INSERT INTO t VALUES (105, 1106, 107, 'remote')});
stops('multiple_unique_conflicts of an update', 1, q{UPDATE t SET w = 1107, v = 'in place' WHERE id = 107},
	q{UPDATE t SET u = 105, w = 1107 WHERE id = 32});
stops('multiple_unique_conflicts in a partition', 1, q{INSERT INTO p VALUES (55, 5, 'local')}, q{INSERT INTO p VALUES (55, 5, 'remote')});

# no conflict: an entry of a key that the row does not have any more, or not yet again
$offset = -s $sub->logfile;
all($sub, q{UPDATE t SET u = 3000 WHERE id = 40; UPDATE t SET u = 3001 WHERE id = 40; BEGIN; UPDATE t SET u = 3002 WHERE id = 41; ROLLBACK;
	DELETE FROM t WHERE id = 42});
all($pub, q{UPDATE t SET u = 4040 WHERE id = 40; INSERT INTO t VALUES (400, 40, 400, 'new'), (401, 3000, 401, 'new'), (402, 3002, 402, 'new'), (403, 3001, 403, 'new');
	DELETE FROM t WHERE id = 42; INSERT INTO t VALUES (42, 42, 42, 'again')});
caught_up();
same('keys of the past', $offset, 2);

is(join(' ', sort keys %found), join(' ', sort(@kinds, 'apply_error_count')), 'each kind of conflict has been there');
check_clean($_, $_->name) foreach $pub, $sub;
$_->stop foreach $sub, $pub;
check_log($_) foreach $pub, $sub;
done_testing();
