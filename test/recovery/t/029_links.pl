# Rows updated many times under snapshots that are held, on the primary and on
# a standby: each goes on seeing what it saw at first, in a number of steps that
# does not grow with the number of updates; also after a rollback of any kind
# in the middle, and after a crash.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = seed();
my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
# most updates leave the old row to the page, but not with this setting
wal_consistency_checking = ''
wal_receiver_status_interval = '1s'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int, k int, m int, v text, big text, w numeric);
	ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
	CREATE INDEX ON t USING inplace_btree (k);
	CREATE INDEX ON t (m);
	INSERT INTO t SELECT i, 0, i, i, 'v', CASE WHEN i = 5 THEN repeat('b', 3000) END, i FROM generate_series(1, 6) i;
	CREATE UNLOGGED TABLE u (id int PRIMARY KEY, n int);
	INSERT INTO u VALUES (1, 0);
	SELECT pg_create_physical_replication_slot('s1', true)});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 's1'\nhot_standby_feedback = on\nmax_standby_streaming_delay = -1\n");
$standby->start;
$node->wait_for_catchup($standby);
# (from then on the primary keeps what snapshots of the standby need)
ok(defined poll_value($node, q{SELECT xmin IS NOT NULL FROM pg_replication_slots WHERE slot_name = 's1'}, 60), 'feedback');

# Row 1 is only ever updated in place, by one transaction a version.  All of
# the others have anything done to them.
my $value = 0;
sub change
{
	my ($id) = @_;
	my $what = int(rand(10));
	$value++;
	return "UPDATE t SET n = n + 1 WHERE id = $id;" if $what < 4;
	return "UPDATE t SET v = repeat('v', " . int(rand(60)) . ") || $value WHERE id = $id;" if $what == 4;
	return "UPDATE t SET w = CASE WHEN $value % 5 = 0 THEN NULL ELSE $value END WHERE id = $id;" if $what == 5;
	return "UPDATE t SET k = k % 7 + 1 WHERE id = $id;" if $what == 6;
	return "UPDATE t SET big = repeat('$value', 1000) WHERE id = 5;" if $what == 7;
	return "UPDATE t SET m = m + 1 WHERE id = 6;" if $what == 8;
	return "SELECT 1 FROM t WHERE id = $id FOR KEY SHARE;";
}

my $prepared = 0;
sub transaction
{
	my $id = 2 + int(rand(5));
	my $what = int(rand(20));
	return change($id) if $what < 12;
	return 'BEGIN;' . join('', map { change($id) } 1 .. 1 + rand(8)) . 'COMMIT;' if $what < 14;
	return 'BEGIN;' . change($id) . change($id) . 'ROLLBACK;' if $what == 14;
	return 'BEGIN;' . change($id) . 'SAVEPOINT a;' . change($id) . 'ROLLBACK TO a;' . change($id) . 'COMMIT;' if $what == 15;
	return 'BEGIN; SAVEPOINT a;' . change($id) . 'RELEASE a; SAVEPOINT b;' . change($id) . 'ROLLBACK TO b; COMMIT;' if $what == 16;
	$prepared++;
	return 'BEGIN;' . change($id) . change($id) . "PREPARE TRANSACTION 'p$prepared'; "
	  . ($what == 17 ? 'ROLLBACK' : 'COMMIT') . " PREPARED 'p$prepared';" if $what < 19;
	return "DELETE FROM t WHERE id = 4; INSERT INTO t VALUES (4, 0, 4, 4, 'again');";
}

sub batch
{
	my ($count) = @_;
	my $sql = '';
	foreach (1 .. $count)
	{
		$sql .= "UPDATE t SET n = n + 1 WHERE id = 1;\n" . transaction() . "\n";
		$sql .= "UPDATE u SET n = n + 1;\n" if $_ % 2;
	}
	my $file = $node->basedir . '/batch.sql';
	unlink $file;
	append_to_file($file, $sql);
	my ($out, $err);
	IPC::Run::run([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, $node->connstr('postgres') ],
		'>', \$out, '2>', \$err) or die "batch: $err";
}

my $look = "SELECT string_agg(t::text, '|' ORDER BY id) FROM t";
my @ways = ($look,
	"SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT string_agg(t::text, '|' ORDER BY id) FROM t WHERE id BETWEEN 1 AND 6; RESET ALL",
	"SET enable_seqscan = off; SET enable_indexscan = off; SELECT string_agg(t::text, '|' ORDER BY id) FROM t WHERE k BETWEEN 0 AND 100; RESET ALL");
my @held;						# snapshots: session, how to look, first answer
sub hold
{
	my ($where, $how, @begin) = @_;
	my $s = psql_session($where);
	$s->query($_) foreach ("BEGIN ISOLATION LEVEL $how", @begin);
	my $name = $where->name . ", $how, n " . $s->query('SELECT n FROM t WHERE id = 1');
	push @held, { session => $s, name => $name, answer => $s->query($look), where => $where };
}

# Cursors that are not fetched from have as many snapshots in one transaction.
my $cursors = psql_session($node);
$cursors->query('BEGIN');
my @cursors;
sub hold_cursor
{
	my $c = 'c' . @cursors;
	$cursors->query("DECLARE $c SCROLL CURSOR FOR $look");
	push @cursors, [ $c, one($node, $look) ];
}

sub look_again
{
	my ($after) = @_;
	foreach my $h (@held)
	{
		foreach my $way (@ways)
		{
			is($h->{session}->query($way), $h->{answer}, "$h->{name} sees the same after $after (seed $seed)");
		}
		$h->{session}->query('SET enable_seqscan = off');
		my $before = $h->{session}->query('SELECT inplace.undo_records_read()');
		$h->{session}->query('SELECT n FROM t WHERE id = 1');
		my $steps = $h->{session}->query('SELECT inplace.undo_records_read()') - $before;
		$h->{session}->query('RESET enable_seqscan');
		note "$h->{name} after $after: $steps steps";
		cmp_ok($steps, '<=', 80, "$h->{name} takes few steps after $after");
	}
	$cursors->query("SAVEPOINT s");
	foreach my $c (@cursors)
	{
		is($cursors->query("FETCH ABSOLUTE 1 FROM $c->[0]"), $c->[1], "cursor $c->[0] sees the same after $after (seed $seed)");
	}
	$cursors->query("RELEASE s");
	check_clean($node, "after $after");
}

hold($node, 'REPEATABLE READ');
hold($node, 'SERIALIZABLE');
hold_cursor();
batch(10);
hold($node, 'REPEATABLE READ');
batch(120);
hold($standby, 'REPEATABLE READ');
hold($node, 'REPEATABLE READ');
# an imported snapshot, of the cursors' transaction
my $exported = $cursors->query('SELECT pg_export_snapshot()');
hold($node, 'REPEATABLE READ', "SET TRANSACTION SNAPSHOT '$exported'");
hold_cursor();
look_again('130 updates');
foreach my $n (1 .. 6)
{
	batch(60);
	hold_cursor();
	$node->wait_for_catchup($standby) if $n == 3;
	hold($standby, 'REPEATABLE READ') if $n == 3;
	hold($node, 'REPEATABLE READ') if $n == 5;
}
$node->wait_for_catchup($standby);
look_again('490 updates');
is(one($node, q{SELECT count(*) > 450 FROM inplace.versions('t', (SELECT ctid FROM t WHERE id = 1))}), 't',
	'all versions are there');

# The oldest go; the ones in the middle stay.
foreach my $h (splice(@held, 0, 3))
{
	$h->{session}->query('COMMIT');
	$h->{session}->quit;
}
$node->safe_psql('postgres', 'VACUUM t');
$node->append_conf('postgresql.conf', "wal_consistency_checking = 'all'\n");
$node->reload;
batch(550);
$node->wait_for_catchup($standby);
look_again('1040 updates');

is(one($standby, "$look"), one($node, $look), 'the standby has the same rows');
is(one($standby, q{SELECT k.* FROM inplace.check('t') k LIMIT 20}), '', 'standby: inplace.check has no finding');

# Crash, with a change open that is to be undone.
my $rows = one($node, $look);
my $open = psql_session($node);
$open->query("BEGIN; UPDATE t SET n = -1, v = 'open', k = 99");
eval { $_->{session}->quit } foreach @held;
eval { $_->quit } foreach ($cursors, $open);
@held = ();
crash_and_restart($node);
is(one($node, $look), $rows, 'after a crash: the rows are there');
check_clean($node, 'after a crash');
hold($node, 'REPEATABLE READ');
$cursors = psql_session($node);
$cursors->query('BEGIN');
@cursors = ();
hold_cursor();
$node->safe_psql('postgres', 'INSERT INTO u VALUES (1, 0)');
batch(150);
look_again('150 updates since the crash');
$held[0]->{session}->query('COMMIT');
$held[0]->{session}->quit;
$cursors->quit;
$node->wait_for_catchup($standby);
$standby->stop;
$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('s1')});
undo_floor_reached($node, 'at the end', 20);
check_log($node);
check_log($standby);
done_testing();
