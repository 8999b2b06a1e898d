# A disk that is really full: the database is on a small file system, in a mount
# namespace of the test's own, which the user namespaces of Linux let
# everybody make.  Changes fail cleanly, nothing is lost, crash recovery needs no
# room, and all goes on when there is room again.

use strict;
use warnings;

my $small;

BEGIN
{
	require File::Temp;
	$small = $ENV{INPLACE_SMALL_FS};
	if (!defined $small)
	{
		require Test::More;
		my $dir = File::Temp::tempdir('inplace_small_XXXXXX', TMPDIR => 1, CLEANUP => 1);
		my $mount = 'mount -t tmpfs -o size=64m none "$0" || exit 1; ';
		my $inner = 'exec unshare -U --map-user="$1" --map-group="$2" ';
		my @id = ($>, $) + 0);
		Test::More::plan(skip_all => 'LOUD: no user namespaces (unshare of util-linux), the full disk was NOT tested')
		  if system("unshare -Urm sh -c '$mount $inner true' '$dir' @id >/dev/null 2>&1") != 0;
		my $rc = do { local $ENV{INPLACE_SMALL_FS} = $dir;
			system('unshare', '-Urm', 'sh', '-c', $mount . $inner . '"$3" "$4"', $dir, @id, $^X, $0) };
		exit($rc == 0 ? 0 : $rc >> 8 || 1);
	}
}

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('disk_full', conf => q{
inplace.undo_worker_delay = 50
autovacuum = off
temp_tablespaces = 'pg_default'
wal_consistency_checking = ''
});
$node->start;
mkdir "$small/space" or die;
append_to_file("$small/reserve", 'r' x (1024 * 1024));
$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$small/space'");
$node->safe_psql('postgres', 'CREATE DATABASE d TABLESPACE small');
my $rows = 50000;
$node->safe_psql('d', $_) foreach ('CREATE EXTENSION inplace',
	'CREATE TABLE t (id int PRIMARY KEY, v int, f text) USING inplace',
	"INSERT INTO t SELECT g, 0, repeat('a', 100) FROM generate_series(1, $rows) g",
	'CREATE TABLE log (v int) USING inplace');

sub try
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('d', "\\set VERBOSITY verbose\n$sql", extra_params => [ '-v', 'ON_ERROR_STOP=1' ]);
	return $rc == 0 ? '' : $err;
}

# One transaction fills the disk.
my $updates = join(';', map { "UPDATE t SET v = v + 1, f = repeat('$_', 100)" } ('b' .. 'z'));
my $before = contents($node, 't', 'd');
like(try("BEGIN; INSERT INTO log VALUES (-1); $updates; COMMIT"),
	qr/ERROR: +53100: could not (extend|write).*No space left on device/, 'one transaction: no space left on device');
is(contents($node, 't', 'd'), $before, 'one transaction: nothing has changed');
is(one($node, 'SELECT count(*) FROM log', 'd'), '0', 'one transaction: nothing of it is there');
undo_floor_reached($node, 'one transaction', 180, 'd');
is(one($node, q{SELECT extents_to_restore FROM inplace.undo WHERE kind = 'logged'}, 'd'), '0', 'one transaction: all restored');
is(try(q{UPDATE t SET v = v + 1}), '', 'one transaction: others go on');

# Committed ones fill it, because a snapshot needs what they replace.
my $reader = psql_session($node, 'd');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($reader->query_safe('SELECT sum(v), count(*) FROM t'), "$rows|$rows", 'snapshot taken');
my ($done, $error) = (1, '');
for my $i (1 .. 40)
{
	$error = try("BEGIN; UPDATE t SET v = v + 1, f = repeat(chr(97 + $i % 26), 100); INSERT INTO log VALUES ($i); COMMIT");
	last if $error;
	$done++;
}
like($error, qr/53100: .*No space left on device/, 'snapshot: no space left on device');
cmp_ok($done, '>', 2, 'snapshot: some transactions had room');
my $state = 'SELECT min(v), max(v), count(*), (SELECT max(v) + 1 FROM log) FROM t';
is(one($node, $state, 'd'), "$done|$done|$rows|$done", 'snapshot: all committed changes are there, and no other');
is($reader->query_safe('SELECT sum(v), count(*) FROM t'), "$rows|$rows", 'snapshot: sees its rows');
is(try('DELETE FROM t WHERE id < 0'), '', 'what needs no room works');

# A crash, with the disk as full as it is, but for the file that the first
# connection to a database makes after a restart (the server gives up without).
unlink "$small/reserve" or die;
$reader->{run}->kill_kill;
crash_and_restart($node);
is(one($node, $state, 'd'), "$done|$done|$rows|$done", 'crash: all committed changes are there, and no other');
undo_floor_reached($node, 'crash', 180, 'd');
is(try(q{UPDATE t SET v = v + 1}), '', 'crash: goes on');
is(one($node, $state, 'd'), ($done + 1) . '|' . ($done + 1) . "|$rows|$done", 'crash: contents');

# Somebody else fills the disk, and leaves.
$node->safe_psql('d', 'CHECKPOINT');
system("dd if=/dev/zero of='$small/other' bs=64k >/dev/null 2>&1");
like(try("INSERT INTO t SELECT g, 0, repeat('i', 100) FROM generate_series($rows + 1, 2 * $rows) g"), qr/53100/, 'insert: no space left on device');
like(try("UPDATE t SET v = v + 1, f = repeat('o', 100)"), qr/53100/, 'update: no space left on device');
is(one($node, $state, 'd'), ($done + 1) . '|' . ($done + 1) . "|$rows|$done", 'nothing has changed');
unlink "$small/other" or die;
is(try("UPDATE t SET v = v + 1, f = repeat('o', 100)"), '', 'room again: update');
is(try("INSERT INTO t SELECT g, 0, repeat('i', 100) FROM generate_series($rows + 1, $rows + 1000) g"), '', 'room again: insert');
undo_floor_reached($node, 'room again', 180, 'd');

check_clean($node, 'at the end', 'd');
check_log($node);
$node->stop;
done_testing();
