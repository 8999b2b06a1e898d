# Logical replication of tables whose replica identity is a unique inplace_btree,
# and of those with nothing but inplace_btree indexes and REPLICA IDENTITY FULL;
# and a subscriber that pg_createsubscriber (from 17 on) has made of a standby.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $conf = q{
wal_level = logical
default_table_access_method = inplace
max_replication_slots = 10
max_wal_senders = 10
max_logical_replication_workers = 8
max_worker_processes = 24
wal_retrieve_retry_interval = '100ms'
};
my $pub = new_node('publisher', conf => $conf, allows_streaming => 'logical');
my $sub = new_node('subscriber', conf => $conf, allows_streaming => 'logical');
$_->start, one($_, 'CREATE EXTENSION inplace') for $pub, $sub;

# of each table: indexes, identity
my %tables = (
	idx => [ 'CREATE UNIQUE INDEX idx_k ON idx USING inplace_btree (k)', 'USING INDEX idx_k' ],
	two => [ 'CREATE UNIQUE INDEX two_k ON two USING inplace_btree (b, k) INCLUDE (v)', 'USING INDEX two_k' ],
	all_of_it => [ 'CREATE INDEX all_k ON all_of_it USING inplace_btree (k)', 'FULL' ],
	all_unique => [ 'CREATE UNIQUE INDEX unique_k ON all_unique USING inplace_btree (k)', 'FULL' ]);
foreach my $node ($pub, $sub)
{
	foreach my $t (sort keys %tables)
	{
		my $index = $tables{$t}[0];
		# the apply worker of 16 and 17 knows no other method than btree and hash
		$index =~ s/inplace_btree/btree/ if $node == $sub && pg_major() =~ /^1[67]$/;
		is(one($node, "CREATE TABLE $t (k int NOT NULL, b text NOT NULL, v text); $index; ALTER TABLE $t REPLICA IDENTITY $tables{$t}[1]"),
			'', $node->name . ": $t");
	}
}
$pub->safe_psql('postgres', "INSERT INTO $_ SELECT i, 'b' || i % 7, 'v' || i FROM generate_series(1, 300) i") foreach sort keys %tables;
one($pub, 'CREATE PUBLICATION p FOR TABLE ' . join(', ', sort keys %tables));
one($sub, "CREATE SUBSCRIPTION s CONNECTION '" . $pub->connstr . q{ dbname=postgres' PUBLICATION p});
$sub->wait_for_subscription_sync($pub, 's');

sub same
{
	my ($what) = @_;
	$pub->wait_for_catchup('s');
	is(contents($sub, $_), contents($pub, $_), "$what: $_") foreach sort keys %tables;
}
sub on_each { my ($sql) = @_; foreach my $t (sort keys %tables) { is(one($pub, $sql =~ s/\bT\b/$t/gr), '', $sql =~ s/\bT\b/$t/gr) } }

same('copied');
on_each(q{UPDATE T SET v = 'w' || k WHERE k % 3 = 0});
same('other columns changed');
on_each('UPDATE T SET k = k + 1000 WHERE k % 5 = 0');
same('keys changed');
on_each(q{UPDATE T SET k = k - 1000, b = 'c' WHERE k > 1000});
same('keys changed back');
on_each(q{BEGIN; UPDATE T SET k = 5000, b = 'z' WHERE k = 7; SAVEPOINT a; DELETE FROM T WHERE k < 50; ROLLBACK TO a; UPDATE T SET k = 7 WHERE k = 5000; DELETE FROM T WHERE k = 8; INSERT INTO T VALUES (8, 'again', NULL); COMMIT});
same('a key that goes and comes back');
on_each('DELETE FROM T WHERE k % 4 = 0; VACUUM T; UPDATE T SET v = NULL WHERE k % 4 = 1');
same('deleted, vacuumed');
unlike(slurp_file($sub->logfile), qr/ERROR: /, 'no error on the subscriber');
# (the apply worker reports when it has nothing to do)
ok(defined poll_value($sub, q{SELECT sum(idx_scan) > 0 FROM pg_stat_user_indexes WHERE indexrelname IN ('idx_k', 'two_k')}, 60),
	'rows were found by the identity indexes');
check_clean($_, $_->name) foreach $pub, $sub;

# ---- a standby turned into a subscriber

SKIP:
{
	skip 'no pg_createsubscriber before 17', 8 if pg_major() < 17;
	one($pub, q{CREATE TABLE st (id int PRIMARY KEY, n int, v text); CREATE INDEX ON st (n);
		INSERT INTO st SELECT i, i, 'v' FROM generate_series(1, 2000) i});
	$pub->backup('b');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($pub, 'b', has_streaming => 1);
	$standby->start;
	# rows whose older versions, and rollback, are in undo when it is made one
	one($pub, q{UPDATE st SET n = n + 1; BEGIN; UPDATE st SET v = 'gone', n = -n WHERE id <= 500; DELETE FROM st WHERE id > 1900; ROLLBACK;});
	$pub->wait_for_catchup($standby);
	$standby->stop;
	command_ok([ 'pg_createsubscriber', '--verbose', '--pgdata', $standby->data_dir, '--publisher-server', $pub->connstr('postgres'),
			'--socketdir', $standby->host, '--subscriber-port', $standby->port, '--database', 'postgres', '--publication', 'made', '--subscription', 'made' ],
		'pg_createsubscriber');
	one($pub, q{UPDATE st SET v = 'after', n = n * 2 WHERE id % 3 = 0; DELETE FROM st WHERE id % 10 = 1; INSERT INTO st VALUES (5000, 1, 'new')});
	$standby->start;
	$pub->wait_for_catchup('made');
	is(contents($standby, 'st'), contents($pub, 'st'), 'its rows are those of the publisher');
	one($pub, 'UPDATE st SET n = n + 1');
	$pub->wait_for_catchup('made');
	is(contents($standby, $_), contents($pub, $_), "changes go on: $_") foreach 'st', 'idx';
	check_clean($standby, 'made a subscriber');
	undo_floor_reached($standby, 'made a subscriber', 30);
	unlike(slurp_file($standby->logfile), qr/ERROR: .*(inplace|undo|row)/, 'no error there');
	check_log($standby);
	$standby->stop;
}
$_->stop, check_log($_) foreach $sub, $pub;
done_testing();
