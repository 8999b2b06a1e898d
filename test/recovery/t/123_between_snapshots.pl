# Rows that came after a held snapshot and have gone before any other was taken: pruning,
# VACUUM and index deletion take them away while it is held.  It sees what it saw, by
# whatever scan; and what it, or another one, may need stays.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 1, conf => q{
autovacuum = off
inplace.prune_between_snapshots = on
inplace.undo_worker_delay = 50
hot_standby_feedback = off
max_standby_streaming_delay = 0
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

# "rounds" times all rows of the queue are taken out, and as many put in
sub turn_over
{
	my ($rounds, $vacuum, $change) = @_;
	# (some xids more, so that bounds are read again)
	$node->safe_psql('postgres', join(";\n", (
		q{INSERT INTO q (k, pad) SELECT random() * 1e6, repeat('x', 100) FROM generate_series(1, 2000)},
		$change // 'SELECT',
		'DELETE FROM q WHERE id > 2000',
		'DO $$ BEGIN FOR i IN 1 .. 40 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$',
		$vacuum ? 'VACUUM ' . ($vacuum eq 1 ? '' : $vacuum) . ' q' : 'SET enable_seqscan = off; SELECT count(id) FROM q WHERE id > 0') x $rounds));
}

sub fill
{
	$node->safe_psql('postgres', join(";\n",
		'DROP TABLE IF EXISTS q',
		'CREATE TABLE q (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k int, pad text) USING inplace',
		'CREATE INDEX q_k ON q USING inplace_btree (k)',
		q{INSERT INTO q (k, pad) SELECT i, repeat('x', 100) FROM generate_series(1, 2000) i},
		'VACUUM ANALYZE q'));
}

sub rows { return one($node, q{SELECT count(*) FROM generate_series(0, pg_relation_size('q') / 8192 - 1) b,
	LATERAL inplace.page_items('q', b) WHERE xid IS NOT NULL}) }
sub sizes { return split /\|/, one($node, q{SELECT pg_relation_size('q'), pg_relation_size('q_pkey'), pg_relation_size('q_k')}) }

my %scans = (
	sequential => 'enable_indexscan = off; SET enable_bitmapscan = off; SET enable_seqscan = on',
	index => 'enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = on',
	bitmap => 'enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = on');
sub sees
{
	my ($session, $what) = @_;
	foreach my $scan (sort keys %scans)
	{
		$session->query_safe("SET $scans{$scan}");
		is($session->query_safe(q{SELECT count(*), sum(k), sum(length(pad)) FROM q WHERE k BETWEEN -10 AND 2000000}) =~ s/\s+$//r,
			'2000|2001000|200000', "$what: $scan scan");
	}
}

# ---- with and without VACUUM

foreach my $change (undef, 'UPDATE q SET k = k + 1, pad = md5(pad) WHERE id > 2000',
	'UPDATE q SET id = DEFAULT WHERE id > 2000')
{
	my $what = $change // 'no change';
	fill();
	my $old = psql_session($node);
	$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
	turn_over(1, 1, $change);
	is(rows(), 2000, "$what: rows that nobody sees are gone");
	# (nobody takes an xid meanwhile: the pages of an index that one VACUUM deletes are made free by the next)
	turn_over(2, 1, $change);
	my @before = sizes();
	turn_over(4, 1, $change);
	my @after = sizes();
	cmp_ok($after[$_], '<=', $before[$_] * 1.4, "$what: " . ('table', 'primary key', 'index')[$_] . ' grows no more') foreach (0 .. 2);
	sees($old, $what);

	# pages are full, so that readers prune them
	turn_over(3, 0, $change);
	cmp_ok(rows(), '<', 4000, "$what: readers prune");
	sees($old, $what);
	$old->query_safe('COMMIT');
	check_clean($node, $what);
	$old->quit;
}

# ---- pages of an index are used again at once, if others take xids meanwhile and no standby is there

# how many pages of the primary key were deleted by a VACUUM that made all deleted ones free?
sub freed_at_once
{
	turn_over(1, 0);
	my ($rc, $out, $err) = $node->psql('postgres', 'VACUUM (VERBOSE) q');
	my ($new, $deleted, $free) = $err =~ /"q_pkey": pages: \d+ in total, (\d+) newly deleted, (\d+) currently deleted, (\d+) reusable/
	  or die "no pages in: $err";
	return $free == $deleted ? $new : 0;
}

fill();
my $holder = psql_session($node);
$holder->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
my $takers = start_pgbench($node, '-T', '60', '-c', '2', '-f', pgbench_script($node, 'xids', 'SELECT pg_current_xact_id();'));
my $freed = 0;
for (my $tries = 0; $tries < 50 && $freed == 0; $tries++) { $freed = freed_at_once() }
cmp_ok($freed, '>', 0, 'pages that VACUUM has deleted are free when it ends');
sees($holder, 'pages used at once');
$takers->{h}->signal('TERM');
end_pgbench($takers);
$holder->quit;

# ---- with parallel workers

fill();
$node->safe_psql('postgres', $_) foreach ('ALTER SYSTEM SET min_parallel_index_scan_size = 0', 'SELECT pg_reload_conf()');
my $beside = psql_session($node);
$beside->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
turn_over(3, '(PARALLEL 2)');
my @before_parallel = sizes();
turn_over(4, '(PARALLEL 2)');
my @after_parallel = sizes();
cmp_ok($after_parallel[$_], '<=', $before_parallel[$_] * 1.4, 'parallel: ' . ('table', 'primary key', 'index')[$_] . ' grows no more') foreach (0 .. 2);
sees($beside, 'parallel');
$beside->quit;
$node->safe_psql('postgres', $_) foreach ('ALTER SYSTEM RESET min_parallel_index_scan_size', 'SELECT pg_reload_conf()');

# ---- a cursor has read where its scan goes on: that page is not used for others

foreach my $column ('id', 'k')
{
	fill();
	$beside = psql_session($node);
	$beside->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ',
		'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off',
		"DECLARE c NO SCROLL CURSOR FOR SELECT id, length(pad) FROM q ORDER BY $column", 'FETCH 1 FROM c');
	is(scalar(split /\n/, $beside->query_safe('MOVE 1994 FROM c; FETCH 1 FROM c')), 1, "by $column: a row near the end");
	turn_over(6, 1);
	is($beside->query_safe('FETCH ALL FROM c') =~ s/\s+/ /gr =~ s/ $//r, '1997|100 1998|100 1999|100 2000|100', '... and those that follow');
	my $grown = (sizes())[1];
	$beside->query_safe('CLOSE c');
	turn_over(2, 1);
	my $then = (sizes())[1];
	turn_over(4, 1);
	cmp_ok((sizes())[1], '<=', $then * 1.3, 'without the cursor the primary key grows no more');
	cmp_ok($grown, '>', 10 * 8192, '... as it did with it') if $column eq 'id';
	sees($beside, "after a cursor by $column");
	$beside->quit;
	check_clean($node, "a cursor by $column");
}

# ---- a transaction that is open, with an xid, in another database

$node->safe_psql('postgres', 'CREATE DATABASE other');
fill();
$beside = psql_session($node);
my $open = psql_session($node, 'other');
$open->query_safe($_) foreach ('BEGIN', 'SELECT pg_current_xact_id()');
$beside->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
use_up_xids($node);
$node->safe_psql('postgres', $_) foreach (q{INSERT INTO q (k, pad) SELECT i, 'x' FROM generate_series(2001, 3000) i},
	'DELETE FROM q WHERE k > 2000');
foreach (1 .. 20)
{
	use_up_xids($node);
	$node->safe_psql('postgres', 'VACUUM q');
	last if rows() == 2000;
}
is(rows(), 2000, 'rows that nobody sees, beside an open transaction');
sees($beside, 'beside an open transaction');
$_->quit foreach ($beside, $open);

# ---- what logical decoding takes for a catalog is left alone

fill();
$node->safe_psql('postgres', 'ALTER TABLE q SET (user_catalog_table = true)');
$beside = psql_session($node);
$beside->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
turn_over(1, 1);
is(rows(), 4000, 'rows of a catalog table stay');
$beside->quit;

# ---- what may be needed stays

sub kept
{
	my ($what, $expected, $begin, $before_delete) = @_;
	fill();
	my $old = psql_session($node);
	$old->query_safe($_) foreach @$begin;
	$node->safe_psql('postgres', q{INSERT INTO q (k, pad) SELECT i, 'x' FROM generate_series(2001, 3000) i});
	my $between = $before_delete->() if defined $before_delete;
	$node->safe_psql('postgres', $_) foreach ('DELETE FROM q WHERE k > 2000',
		'DO $$ BEGIN FOR i IN 1 .. 1100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$', 'VACUUM q');
	is(rows(), $expected, $what);
	return ($old, $between);
}

my ($old) = kept('a SERIALIZABLE transaction is to be in conflict with who made the rows', 3000,
	[ 'BEGIN ISOLATION LEVEL SERIALIZABLE', 'SELECT count(*) FROM q WHERE k > 2000' ]);
$old->query_safe('COMMIT');
$old->quit;
foreach my $level ('REPEATABLE READ', 'READ COMMITTED')
{
	# a cursor of READ COMMITTED has its snapshot, of an idle session
	my @begin = ("BEGIN ISOLATION LEVEL $level", 'DECLARE c CURSOR FOR SELECT k FROM q ORDER BY id', 'FETCH 1 FROM c');
	my ($first, $second) = kept("$level: another snapshot saw the rows", 3000, \@begin, sub {
		my $s = psql_session($node);
		$s->query_safe($_) foreach @begin;
		return $s;
	});
	is(scalar(split /\n/, $second->query_safe('FETCH ALL FROM c')), 2999, '... and sees them');
	$second->query_safe('COMMIT');
	$node->safe_psql('postgres', 'VACUUM q');
	# (a cursor of READ COMMITTED may be asked for where a row was moved: nothing goes)
	is(rows(), $level eq 'READ COMMITTED' ? 3000 : 2000, '... until it has gone');
	is(scalar(split /\n/, $first->query_safe('FETCH ALL FROM c')), 1999, 'the first saw none of them');
	$first->query_safe('COMMIT');
	$_->quit foreach ($first, $second);
}

# Rows made by a transaction that was running when the snapshot was taken.
fill();
my $maker = psql_session($node);
$maker->query_safe($_) foreach ('BEGIN', q{INSERT INTO q (k, pad) SELECT i, 'x' FROM generate_series(2001, 3000) i});
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
$maker->query_safe('COMMIT');
$node->safe_psql('postgres', $_) foreach ('DELETE FROM q WHERE k > 2000', 'SELECT pg_current_xact_id()', 'VACUUM q');
sees($old, 'a transaction in progress');
$old->query_safe('COMMIT');
$_->quit foreach ($old, $maker);

# A row that the snapshot sees, changed since and deleted; one it does not see, whose
# delete was rolled back; one deleted under a savepoint.
fill();
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
$node->safe_psql('postgres', $_) foreach (
	'UPDATE q SET pad = upper(pad) WHERE id <= 500',
	'UPDATE q SET k = -k WHERE id <= 250',
	'DELETE FROM q WHERE id <= 500',
	q{INSERT INTO q (k, pad) SELECT i, 'y' FROM generate_series(3001, 3100) i},
	'BEGIN; DELETE FROM q WHERE k > 3000; ROLLBACK',
	'BEGIN; SAVEPOINT s; DELETE FROM q WHERE k > 3000; ROLLBACK TO s; DELETE FROM q WHERE k > 3050; COMMIT',
	'SELECT pg_current_xact_id()', 'VACUUM q');
sees($old, 'seen rows');
is(one($node, 'SELECT count(*) FROM q WHERE k > 3000'), 50, 'rows whose delete was rolled back');
is(rows(), 2050, 'what is left on pages');
$old->query_safe('COMMIT');
$old->quit;
check_clean($node, 'at the end');

# ---- a long query of READ COMMITTED, for whose plan the end of an index was looked at

fill();
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN', 'SELECT 1');
$node->safe_psql('postgres', 'SELECT pg_current_xact_id()');
$old->query_until(qr/running/, "\\echo running\nSELECT count(*), pg_sleep(60) FROM q WHERE id > 1990;\n");
poll_value($node, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}, 60);
$node->safe_psql('postgres', $_) foreach (q{INSERT INTO q (k, pad) SELECT i, 'x' FROM generate_series(2001, 3000) i},
	'DELETE FROM q WHERE k > 2000',
	'DO $$ BEGIN FOR i IN 1 .. 1100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$', 'VACUUM q');
is(rows(), 2000, 'rows after the snapshot of a long query of READ COMMITTED');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
eval { $old->quit };

# ---- a row that the snapshot sees, and that has been moved twice since (hash indexes take
# no updates in place): who sees the first place follows it to the last one

foreach my $case (
	[ 'row locks of a cursor', 'BEGIN', [ 'DECLARE c CURSOR FOR SELECT id, k FROM q WHERE id = 1 FOR UPDATE' ],
		'FETCH ALL FROM c', qr/^1\|31$/m ],
	[ 'WHERE CURRENT OF', 'BEGIN', [ 'DECLARE c CURSOR FOR SELECT id, k FROM q WHERE id = 1', 'FETCH 1 FROM c' ],
		'UPDATE q SET k = -1 WHERE CURRENT OF c RETURNING id, k', qr/^1\|-1$/m ],
	[ 'FOR KEY SHARE of a cursor', 'BEGIN', [ 'DECLARE c CURSOR FOR SELECT id FROM q WHERE id = 1 FOR KEY SHARE' ],
		'FETCH ALL FROM c', qr/^1$/m ],
	[ 'FOR KEY SHARE', 'BEGIN ISOLATION LEVEL REPEATABLE READ', [ 'SELECT count(*) FROM q' ],
		'SELECT id FROM q WHERE id = 1 FOR KEY SHARE', undef ])
{
	my ($what, $begin, $before, $statement, $expected) = @$case;
	foreach my $reused (0, 1)
	{
		fill();
		$node->safe_psql('postgres', 'CREATE INDEX q_hash ON q USING hash (k)');
		$old = psql_session($node);
		$old->query_safe($_) foreach ($begin, @$before);
		$node->safe_psql('postgres', $_) foreach (
			(map { "UPDATE q SET k = ${_}1 WHERE id = 1" } 1 .. 3),
			'DO $$ BEGIN FOR i IN 1 .. 1100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$', 'VACUUM q');
		$node->safe_psql('postgres', q{INSERT INTO q (k, pad) SELECT i, 'z' FROM generate_series(5001, 5300) i}) if $reused;
		my $out = $old->query($statement);
		if (defined $expected)
		{
			like($out, $expected, "$what finds the row, " . ($reused ? 'places used again' : 'places empty'));
		}
		else
		{
			# either it fails or the lock holds
			my $rc = $node->psql('postgres', q{SET lock_timeout = '100ms'; DELETE FROM q WHERE id = 1});
			my $ok = $old->query('SELECT 1');
			ok($rc != 0 || $ok !~ /1/, "$what locks the row or fails, " . ($reused ? 'places used again' : 'places empty'));
		}
		if ($what =~ /KEY SHARE of a cursor/)
		{
			my $rc = $node->psql('postgres', q{SET lock_timeout = '100ms'; DELETE FROM q WHERE id = 1});
			isnt($rc, 0, '... and locks it where it is');
		}
		$old->quit;
	}
}
# ... and the same by a session that has imported the snapshot since: what has gone had to be
# seen by another session only.
foreach my $reused (0, 1)
{
	fill();
	$node->safe_psql('postgres', 'CREATE INDEX q_hash ON q USING hash (k)');
	$old = psql_session($node);
	$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
	$node->safe_psql('postgres', $_) foreach (
		(map { "UPDATE q SET k = ${_}1 WHERE id = 1" } 1 .. 3),
		'DO $$ BEGIN FOR i IN 1 .. 1100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$', 'VACUUM q');
	$node->safe_psql('postgres', q{INSERT INTO q (k, pad) SELECT i, 'z' FROM generate_series(5001, 5300) i}) if $reused;
	# (it is known to have others from then on)
	my $snapshot = $old->query_safe('SELECT pg_export_snapshot()');
	chomp $snapshot;
	my $importer = psql_session($node);
	$importer->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', "SET TRANSACTION SNAPSHOT '$snapshot'");
	$importer->query('SELECT id FROM q WHERE id = 1 FOR KEY SHARE');
	# either it fails or the lock holds
	my $rc = $node->psql('postgres', q{SET lock_timeout = '100ms'; DELETE FROM q WHERE id = 1});
	my $ok = $importer->query('SELECT 1');
	ok($rc != 0 || $ok !~ /1/, 'an imported snapshot locks the row or fails, ' . ($reused ? 'places used again' : 'places empty'));
	$_->quit foreach ($importer, $old);
}
check_clean($node, 'moved rows');

# ---- VACUUM has cut off the block that a row was moved to first

fill();
$node->safe_psql('postgres', $_) foreach ('CREATE INDEX q_hash ON q USING hash (k)', 'CREATE TABLE elsewhere (i int) USING inplace');
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM elsewhere');
$node->safe_psql('postgres', $_) foreach (
	q{INSERT INTO q (k, pad) SELECT i, repeat('y', 100) FROM generate_series(5001, 9000) i},
	'UPDATE q SET k = 11 WHERE id = 1',	# at the end
	'DELETE FROM q WHERE k > 5000 OR id = 1',
	'DO $$ BEGIN FOR i IN 1 .. 40 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$', 'VACUUM q', 'VACUUM q');
my $cut = (sizes())[0];
cmp_ok($cut, '<', 3000 * 130, 'the end of the table was cut off');
is($old->query('SELECT id FROM q WHERE id = 1 FOR KEY SHARE'), '', 'the row cannot be locked');
like($old->{stderr}, qr/could not serialize access/, '... as it has gone elsewhere') if exists $old->{stderr};
unlike(slurp_file($node->logfile), qr/could not read block/, '... and no block is missed');
$old->quit;

# ---- a crash

fill();
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
turn_over(6, 1);
my $contents = one($node, q{SELECT count(*), sum(id), sum(k) FROM q});
eval { $old->quit };
crash_and_restart($node);
is(one($node, q{SELECT count(*), sum(id), sum(k) FROM q}), $contents, 'after a crash');
turn_over(2, 1);
check_clean($node, 'after a crash');

# ---- a standby whose query sees the rows is told; with feedback they stay

$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
foreach my $feedback ('off', 'on')
{
	fill();
	$node->wait_for_catchup($standby);
	$standby->safe_psql('postgres', $_) foreach ("ALTER SYSTEM SET hot_standby_feedback = $feedback", 'SELECT pg_reload_conf()');
	$old = psql_session($node);
	$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
	$node->safe_psql('postgres', q{INSERT INTO q (k, pad) SELECT i, 'x' FROM generate_series(2001, 3000) i});
	$node->wait_for_catchup($standby);
	my $reader = psql_session($standby);
	$reader->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
	if ($feedback eq 'on')
	{
		my $xmin = $reader->query_safe('SELECT pg_snapshot_xmin(pg_current_snapshot())') =~ s/\s+$//r;
		ok(defined poll_value($node, "SELECT count(*) > 0 FROM pg_stat_replication WHERE backend_xmin::text::bigint <= $xmin", 60), 'feedback has come');
	}
	$node->safe_psql('postgres', $_) foreach ('DELETE FROM q WHERE k > 2000', 'SELECT pg_current_xact_id()', 'VACUUM q');
	is(rows(), $feedback eq 'on' ? 3000 : 2000, "feedback $feedback: rows left");
	$node->wait_for_catchup($standby);
	if ($feedback eq 'on')
	{
		is($reader->query_safe('SELECT count(*) FROM q') =~ s/\s+$//r, 3000, 'the reader on the standby sees them');
	}
	else
	{
		ok(defined poll_value($standby, 'SELECT sum(confl_snapshot) > 0 FROM pg_stat_database_conflicts', 60),
			'the reader on the standby is cancelled');
	}
	eval { $reader->quit };
	$old->quit;
}

# (pages of indexes, too; images are compared where replay is checked)
fill();
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM q');
turn_over(4, 1);
$node->wait_for_catchup($standby);
foreach my $scan (sort keys %scans)
{
	is(one($standby, "SET $scans{$scan}; SELECT count(*), sum(k) FROM q WHERE id > 0 AND k > -1000000"),
		one($node, 'SELECT count(*), sum(k) FROM q'), "the standby after pages were used again: $scan scan");
}
$old->quit;
$standby->stop;
check_log($node);
$node->stop;
done_testing();
