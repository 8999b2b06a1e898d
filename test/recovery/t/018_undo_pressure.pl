# Undo under pressure: inplace.undo_limit, a file that cannot grow, more undo
# than shared buffers, a large rollback, a snapshot held over many updates.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('pressure', conf => q{
shared_buffers = '8MB'
# (what it restores itself is not in the undo worker's figures)
autovacuum = off
inplace.undo_worker_delay = 50
wal_consistency_checking = ''
inplace.squeeze_undo = off
});
$node->start;
$node->safe_psql('postgres', q{
	
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, v int, f text) USING inplace;
	INSERT INTO t SELECT g, 0, repeat('x', 40) FROM generate_series(1, 5000) g;
	CREATE TABLE big (id int, f text) USING inplace;
	INSERT INTO big SELECT g, repeat('a', 100) FROM generate_series(1, 200000) g;
});

# A snapshot, and every row updated 100 times.
my $reader = psql_session($node);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($reader->query_safe('SELECT sum(v) FROM t'), '0', 'snapshot taken');
my $size = one($node, q{SELECT pg_relation_size('t')});
$node->safe_psql('postgres', 'UPDATE t SET v = v + 1') for 1 .. 100;
is(one($node, q{SELECT pg_relation_size('t')}), $size, 'table has not grown');
is($reader->query_safe('SELECT sum(v), count(*) FROM t'), '0|5000', 'snapshot sees its rows');
is(one($node, 'SELECT min(v), max(v) FROM t'), '100|100', 'new rows');

# The limit, with undo well past it already.
my $log = -s $node->logfile;
$node->append_conf('postgresql.conf', "inplace.undo_limit = '4MB'");
$node->reload;
ok(defined poll_value($node, q{SELECT current_setting('inplace.undo_limit') = '4MB'}, 30), 'limit set');
my $rpid = $reader->query_safe('SELECT pg_backend_pid()');
# (What is left of the last extent may be enough for one more, or for some.)
my ($err, $n) = ('', 100);
for (1 .. 100)
{
	$err = sqlstate_of($node, 'UPDATE t SET v = v + 1');
	last if $err ne '';
	$n++;
}
like($err, qr/53400: undo of inplace tables has reached the limit of 4096 kB/, 'update past the limit');
like(sqlstate_of($node, 'DELETE FROM t'), qr/53400/, 'delete past the limit');
is(sqlstate_of($node, qq{INSERT INTO t VALUES (0, $n, '')}), '', 'insert needs no undo');
is(sqlstate_of($node, 'VACUUM t'), '', 'VACUUM needs no undo');
is(one($node, 'SELECT min(v), max(v), count(*) FROM t'), "$n|$n|5001", 'failed changes are not seen');
is($reader->query_safe('SELECT sum(v), count(*) FROM t'), '0|5000', 'nor by the snapshot');
like(slurp_file($node->logfile, $log), qr/reached "inplace.undo_limit" \(4096 kB\).*\n.*Process $rpid needs undo from transaction \d+ on \(age \d+\): /,
	'the log names the session');
$reader->query_safe('COMMIT');
undo_floor_reached($node, 'snapshot gone', 120);
is(sqlstate_of($node, 'UPDATE t SET v = v + 1'), '', 'updates go on');
$reader->quit;

# A single transaction hits it, and names itself.
like(sqlstate_of($node, q{UPDATE big SET f = repeat('b', 100)}), qr/53400/, 'one transaction past the limit');
is(one($node, q{SELECT count(*) FROM big WHERE f <> repeat('a', 100)}), '0', 'nothing of it is seen');
undo_floor_reached($node, 'failed transaction', 120);
is(sqlstate_of($node, 'UPDATE t SET v = v + 1'), '', 'updates go on');
$node->append_conf('postgresql.conf', "inplace.undo_limit = 0");
$node->reload;
ok(defined poll_value($node, q{SELECT current_setting('inplace.undo_limit') = '0'}, 30), 'limit off');

# More undo than shared buffers, rolled back; the table can be used at once.
my $writer = psql_session($node);
$writer->query_safe('BEGIN');
$writer->query_safe(q{UPDATE big SET f = repeat('b', 100)});
cmp_ok(one($node, q{SELECT used_bytes FROM inplace.undo WHERE kind = 'logged'}), '>', 16 * 1024 * 1024,
	'more undo than shared buffers');
is(one($node, q{SELECT count(*) FROM big WHERE f = repeat('a', 100)}), '200000', 'others see the old rows');
$writer->query_safe('ROLLBACK');
$writer->quit;
is(one($node, q{SELECT count(*) FROM big WHERE f = repeat('a', 100)}), '200000', 'old rows after rollback');
is(sqlstate_of($node, q{UPDATE big SET f = 'n' WHERE id <= 100}), '', 'update while restoring goes on');
undo_floor_reached($node, 'rollback', 180);
is(one($node, q{SELECT extents_to_restore FROM inplace.undo WHERE kind = 'logged'}), '0', 'nothing left to restore');
cmp_ok(one($node, q{SELECT rows_restored FROM inplace.undo WHERE kind = 'logged'}), '>=', 190000, 'progress is counted');
is(one($node, q{SELECT count(*) FROM big WHERE f = repeat('a', 100)}), '199900', 'contents');

# No room for the file to grow: a limit of file size, which no process of the
# server can pass, stands for a full disk.
SKIP:
{
	my ($pm) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my $limit = sub { system_log('prlimit', '--pid', $pm, "--fsize=$_[0]:") == 0 };
	skip 'LOUD: prlimit (util-linux) is not there, the full disk was NOT tested', 6
	  unless $limit->(40 * 1024 * 1024);
	like(sqlstate_of($node, q{BEGIN; UPDATE big SET f = repeat('c', 100); UPDATE big SET f = repeat('d', 100); COMMIT}),
		qr/ERROR: .*could not (extend|write)/, 'no room for undo: an error');
	is(one($node, q{SELECT count(*) FROM big WHERE f = repeat('a', 100)}), '199900', 'nothing lost');
	ok($limit->('unlimited'), 'room again');
	undo_floor_reached($node, 'after the failed transaction', 180);
	is(sqlstate_of($node, q{UPDATE big SET f = repeat('c', 100)}), '', 'goes on without a restart');
	is(one($node, q{SELECT count(*) FROM big WHERE f = repeat('c', 100)}), '200000', 'contents');
}

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
