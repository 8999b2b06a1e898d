# Large values in TOAST tables of ours: prepared transactions and unlogged tables after a crash,
# copies of a database, subscribers, and pg_rewind.  Records of WAL are as without checking.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $conf = q{
default_table_access_method = 'inplace'
inplace.toast_in_place = on
wal_level = logical
wal_log_hints = on
wal_consistency_checking = ''
autovacuum = off
};
my $functions = q{
	CREATE EXTENSION inplace;
	CREATE FUNCTION random_text(len int, seed int) RETURNS text LANGUAGE sql AS
		$$ SELECT left(string_agg(md5(seed || ' ' || g), ''), len) FROM generate_series(0, len / 32) g $$};
my $tables = q{
	CREATE TABLE t (id int PRIMARY KEY, n int, a text, c text);
	ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
	CREATE TABLE h (LIKE t INCLUDING ALL) USING heap};
my $rows = q{
	INSERT INTO t SELECT g, g, random_text(3000 * g, g), random_text(4000 * g, -g) FROM generate_series(1, 12) g;
	INSERT INTO h SELECT * FROM t};
my @changes = (q{a = overlay(a PLACING 'changed' FROM 2500)}, q{c = overlay(c PLACING 'changed' FROM 2500)}, q{a = a || random_text(2500, n)}, q{n = n + 1},
	q{a = 'front' || a}, q{a = left(a, 2600), c = c || 'end'}, q{a = reverse(a), n = n - 1}, q{a = random_text(9000, n)});

sub change_both
{
	my ($node, $what, $where, $db) = @_;
	one($node, "UPDATE $_ SET $what WHERE $where", $db) foreach qw(t h);
}

sub as_heap
{
	my ($node, $what, $db) = @_;
	is(contents($node, 't', $db), contents($node, 'h', $db), $what);
}

# ---- a subscriber; transactions that are prepared; a crash
my $pub = new_node('publisher', conf => $conf, allows_streaming => 'logical');
my $sub = new_node('subscriber', conf => $conf, allows_streaming => 'logical');
$_->start, one($_, $functions), one($_, $tables) foreach $pub, $sub;
one($pub, $rows);
one($pub, 'CREATE PUBLICATION p FOR TABLE t');
$sub->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '" . $pub->connstr . " dbname=postgres' PUBLICATION p");
$sub->wait_for_subscription_sync($pub, 's') if $sub->can('wait_for_subscription_sync');
foreach my $change (@changes)
{
	change_both($pub, $change, 'id % 3 > 0');
	one($pub, "BEGIN; UPDATE t SET $change; ROLLBACK");
	one($pub, "BEGIN; UPDATE t SET n = n WHERE id = 3; SAVEPOINT s; UPDATE t SET $change WHERE id = 3; ROLLBACK TO s; COMMIT");
}
change_both($pub, q{a = NULL}, 'id = 4');
as_heap($pub, 'publisher');
$pub->wait_for_catchup('s');
is(contents($sub, 't'), contents($pub, 't'), 'the subscriber has the same');
check_clean($sub, 'subscriber');

one($pub, "BEGIN; UPDATE t SET $changes[0] WHERE id = 6; UPDATE t SET $changes[4] WHERE id = 6; UPDATE t SET $changes[2] WHERE id = 7; PREPARE TRANSACTION 'committed'");
one($pub, "BEGIN; UPDATE t SET $changes[5] WHERE id = 8; DELETE FROM t WHERE id = 9; PREPARE TRANSACTION 'rolled back'");
one($pub, q{
	CREATE UNLOGGED TABLE u AS SELECT * FROM t WHERE id < 4;
	UPDATE u SET a = overlay(a PLACING 'unlogged' FROM 2100)});
as_heap($pub, 'beside prepared transactions');
crash_and_restart($pub);
as_heap($pub, '... after a crash');
is(one($pub, 'SELECT count(*) FROM u'), '0', 'an unlogged table is empty');
one($pub, q{INSERT INTO u SELECT * FROM t WHERE id = 1; UPDATE u SET a = overlay(a PLACING 'unlogged' FROM 100)});
is(one($pub, q{SELECT count(*) FROM u JOIN t USING (id) WHERE u.a = overlay(t.a PLACING 'unlogged' FROM 100)}), '1', '... and goes on');
one($pub, $_) foreach q{COMMIT PREPARED 'committed'}, q{ROLLBACK PREPARED 'rolled back'};
one($pub, "UPDATE h SET $changes[0] WHERE id = 6; UPDATE h SET $changes[4] WHERE id = 6; UPDATE h SET $changes[2] WHERE id = 7");
as_heap($pub, 'when they have ended');
change_both($pub, $changes[0], 'true');
as_heap($pub, 'and after other changes');
$pub->wait_for_catchup('s');
is(contents($sub, 't'), contents($pub, 't'), 'the subscriber has the same again');

# ---- copies of a database
one($pub, 'CREATE DATABASE source');
one($pub, $_, 'source') foreach $functions, $tables, $rows;
change_both($pub, $_, 'true', 'source') foreach @changes[0 .. 3];
one($pub, "BEGIN; UPDATE t SET $changes[6]; ROLLBACK", 'source');
foreach my $strategy (qw(file_copy wal_log))
{
	one($pub, "CREATE DATABASE $strategy TEMPLATE source STRATEGY $strategy");
	as_heap($pub, "$strategy: a copy", $strategy);
	change_both($pub, $_, 'true', $strategy) foreach @changes[4 .. 7];
	as_heap($pub, "$strategy: changed", $strategy);
	check_clean($pub, $strategy, $strategy);
	as_heap($pub, "$strategy: the source is as it was", 'source');
}
check_clean($pub, 'publisher');
$_->stop, check_log($_) foreach $sub, $pub;

# ---- pg_rewind
my $old = new_node('old', conf => $conf, allows_streaming => 1);
$old->start;
one($old, $_) foreach $functions, $tables, $rows;
$old->backup('b');
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init_from_backup($old, 'b', has_streaming => 1);
$new->start;
change_both($old, $_, 'id < 9') foreach @changes[0 .. 3];
$old->safe_psql('postgres', 'CHECKPOINT');
$old->wait_for_catchup($new);
$new->safe_psql('postgres', 'CHECKPOINT');
$new->promote;
$new->safe_psql('postgres', 'CHECKPOINT');
change_both($old, $_, 'id > 3') foreach @changes[5, 7];
change_both($new, $_, 'id > 6') foreach @changes[4, 0];
$old->stop('fast');
command_ok([ 'pg_rewind', '--target-pgdata', $old->data_dir, '--source-server', $new->connstr('postgres') ], 'pg_rewind');
my ($port, $host) = ($old->port, $old->host);
$old->append_conf('postgresql.conf', "port = $port\nunix_socket_directories = '$host'\nprimary_conninfo = '" . $new->connstr . "'\n");
append_to_file($old->data_dir . '/standby.signal', '');
$old->start;
change_both($new, $changes[2], 'true');
my $lsn = $new->lsn('insert');
ok($old->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'"), 'the rewound server follows');
as_heap($old, '... and has what it should');
is(contents($old, 't'), contents($new, 't'), '... as the new primary');
check_clean($new, 'new primary');
$_->stop, check_log($_) foreach $old, $new;

done_testing();
