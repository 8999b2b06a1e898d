# Row locks in memory (row/memory_lock.c): where the header of the row does not tell that
# somebody was there; and when their session or the server comes to an end.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => "autovacuum = off\nmax_connections = 20");
my $lib = build_module($node, 'hold_page');
my $abort_fails = build_module($node, 'abort_fails');
my $release = $node->basedir . '/release';
$node->start;

# An update that moves its row lets go of the page while it looks for another.  Rows fill
# page 2, and page 1 has been emptied.
one($node, qq{
	CREATE EXTENSION inplace;
	CREATE FUNCTION hold_page(regclass, int, text) RETURNS void LANGUAGE C STRICT AS '$lib';
	CREATE TABLE t (id int PRIMARY KEY, n int, filler text) USING inplace;
	ALTER TABLE t ALTER filler SET STORAGE plain;
	SET inplace.default_index_method = btree;
	CREATE INDEX ON t (n);
	INSERT INTO t SELECT g, 0, repeat('f', 950) FROM generate_series(1, 24) g});
is(one($node, q{SELECT min(id) FROM t WHERE ctid >= '(2,1)'}), '17', 'rows on page 2');
$node->safe_psql('postgres', $_) foreach 'DELETE FROM t WHERE id BETWEEN 9 AND 16', 'VACUUM t';

my ($mover, $holder, $locker) = map { psql_session($node) } 1 .. 3;
$_->query_safe("SET enable_seqscan = off") foreach $mover, $locker;
$holder->query_until(qr/sent/, "\\echo sent\nSELECT hold_page('t', 1, '$release');\n");
ok(defined poll_value($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active' AND wait_event IS NULL AND query LIKE 'SELECT hold_page%'}, 60),
	'page 1 is locked');
my $pid = $mover->query_safe('SELECT pg_backend_pid()');
$mover->query_until(qr/sent/, "\\echo sent\nUPDATE t SET n = n + 1 WHERE id = 18;\n");
ok(defined poll_value($node, "SELECT wait_event = 'BufferContent' FROM pg_stat_activity WHERE pid = $pid", 60),
	'a row is about to be moved there');
$locker->query_safe('BEGIN');
my $n = $locker->query_safe('SELECT n FROM t WHERE id = 18 FOR UPDATE');
is($n, '0', 'another session locks it');
append_to_file($release, '');
$holder->query_safe('SELECT 1');
waits_for_lock($node, '... and the first one waits for it', 'UPDATE t SET n = n');
$locker->query_safe($_) foreach "UPDATE t SET n = $n + 100 WHERE id = 18", 'COMMIT';
$mover->query_safe('SELECT 1');
is(one($node, 'SELECT n FROM t WHERE id = 18'), '101', 'no update is lost');
$_->quit foreach $mover, $holder;

# A session that is terminated leaves none behind.
my $others = q{SELECT string_agg(id::text, ' ' ORDER BY id) FROM (SELECT id FROM t WHERE id BETWEEN 19 AND 22 FOR %s SKIP LOCKED) l};
$pid = $locker->query_safe('SELECT pg_backend_pid()');
$locker->query_safe($_) foreach 'BEGIN', 'SELECT id FROM t WHERE id = 20 FOR UPDATE', 'SAVEPOINT a', 'SELECT id FROM t WHERE id = 21 FOR UPDATE';
is(one($node, sprintf($others, 'UPDATE')), '19 22', 'locked by a session');
is(one($node, "SELECT pg_terminate_backend($pid, 60000)"), 't', '... that is terminated');
is(one($node, sprintf($others, 'UPDATE')), '19 20 21 22', '... and nothing is');
eval { $locker->quit };

# Nor does one whose rollback fails.  Another process gets its place, and must not take the
# locks for its own, and its undo is given back.  (The server's own assertions do not bear a
# second rollback.)
if (one($node, 'SHOW debug_assertions') eq 'off')
{
	one($node, qq{
		CREATE FUNCTION abort_fails() RETURNS void LANGUAGE C AS '$abort_fails';
		CREATE TABLE w (v text) USING inplace;
		INSERT INTO w SELECT repeat('w', 1000) FROM generate_series(1, 5000);
		BEGIN;
		UPDATE w SET v = repeat('v', 1000);
		SELECT abort_fails();
		SELECT id FROM t WHERE id BETWEEN 20 AND 22 FOR UPDATE;
		ROLLBACK});
	like(slurp_file($node->logfile), qr/FATAL:  a callback fails/, 'a rollback fails');
	my $watcher = psql_session($node);
	my @seen;
	foreach (1 .. 25)
	{
		my $next = psql_session($node);
		$next->query_safe($_) foreach 'BEGIN', 'SELECT id FROM t WHERE id = 20 FOR UPDATE';
		push @seen, $watcher->query_safe(sprintf($others, 'UPDATE'));
		$next->quit;
	}
	is(join('|', @seen), join('|', ('19 21 22') x 25), '... and leaves no locks behind');
	$watcher->quit;
	undo_floor_reached($node, '... and no undo', 30);
	is(one($node, 'SELECT DISTINCT v = repeat(chr(119), 1000) FROM w'), 't', '... and its changes are rolled back');
}

# Those of a prepared transaction are there again after a crash.
one($node, q{
	BEGIN;
	SELECT id FROM t WHERE id = 19 FOR NO KEY UPDATE;
	SAVEPOINT a;
	SELECT id FROM t WHERE id = 20 FOR UPDATE;
	UPDATE t SET n = 7 WHERE id = 19;
	ROLLBACK TO a;
	SELECT id FROM t WHERE id = 21 FOR UPDATE;
	PREPARE TRANSACTION 'p'});
crash_and_restart($node);
is(one($node, sprintf($others, 'UPDATE')), '20 22', 'a prepared transaction has its locks after a crash');
is(one($node, sprintf($others, 'KEY SHARE')), '19 20 22', '... as strong as they were');
one($node, q{ROLLBACK PREPARED 'p'});
is(one($node, sprintf($others, 'UPDATE')), '19 20 21 22', '... until it ends');

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
