# Compact records that name their undo page without referring to it: the size
# of WAL beside heap's, checkpoints that come in between, incremental backup.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('byname', allows_streaming => 1, conf => q{
autovacuum = off
wal_consistency_checking = ''
} . (pg_major() >= 17 ? "summarize_wal = on\n" : ''));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace; CREATE EXTENSION pg_walinspect');

# ---- bytes of WAL, in whole records without alignment, no full-page images
$node->safe_psql('postgres', q{
	CREATE TABLE wal_heap (id int PRIMARY KEY, small int, balance int, ts timestamptz,
		word text, flag bool, amount numeric, filler char(84)) WITH (fillfactor = 40);
	CREATE TABLE wal_inplace (LIKE wal_heap INCLUDING ALL) USING inplace;
	INSERT INTO wal_heap SELECT i, 1, 0, '2026-01-01', 'abcdef', true, 1234.56, '' FROM generate_series(1, 2000) i;
	INSERT INTO wal_inplace SELECT * FROM wal_heap;
	VACUUM FREEZE wal_heap; VACUUM FREEZE wal_inplace; CHECKPOINT;
	UPDATE wal_heap SET filler = 'x'; UPDATE wal_inplace SET filler = 'x'});

sub wal_bytes
{
	my ($table, $change) = @_;
	$change =~ s/TABLE/$table/;
	my $from = one($node, 'SELECT pg_current_wal_insert_lsn()');
	$node->safe_psql('postgres', qq{DO \$\$ BEGIN FOR i IN 1..1000 LOOP $change; END LOOP; END \$\$});
	my $manager = $table eq 'wal_heap' ? q{'Heap', 'Heap2'} : q{'inplace'};
	return one($node, qq{SELECT sum(record_length - fpi_length)
		FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
		WHERE resource_manager IN ($manager)
		AND record_type !~ 'PRUNE|VISIBLE|UNDO'});
}
foreach my $set ('small = small + 1', 'balance = balance + 4711 * i', 'balance = balance - 1',
	q{ts = ts + i * interval '1 hour'}, q{word = 'ghijkl'}, 'flag = NOT flag', 'amount = amount + 1')
{
	my $change = "UPDATE TABLE SET $set WHERE id = i";
	my $heap = wal_bytes('wal_heap', $change);
	my $inplace = wal_bytes('wal_inplace', $change);
	cmp_ok($inplace, '<=', $heap, "$set: at most heap's WAL");
	note "$set: heap $heap, inplace $inplace";
}
my $heap = wal_bytes('wal_heap', 'DELETE FROM TABLE WHERE id = i');
my $inplace = wal_bytes('wal_inplace', 'DELETE FROM TABLE WHERE id = i');
cmp_ok($inplace, '<=', $heap, "delete: at most heap's WAL");
note "delete: heap $heap, inplace $inplace";
my $from = one($node, 'SELECT pg_current_wal_insert_lsn()');
# (The first of two may begin an undo page, and then refers to it.)
$node->safe_psql('postgres', 'UPDATE wal_inplace SET small = -1 WHERE id IN (1499, 1500)');
like(one($node, qq{SELECT description FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
	WHERE resource_manager = 'inplace' AND record_type = 'UPDATE' ORDER BY start_lsn DESC LIMIT 1}),
	qr/undo rel: \d+, blk: \d+, offset: \d+/, 'the description names the undo page');
$from = one($node, 'SELECT pg_current_wal_insert_lsn()');
$node->safe_psql('postgres', 'SET inplace.row_locks_in_memory = 0; SELECT FROM wal_inplace WHERE id = 1501 FOR NO KEY UPDATE');
like(one($node, qq{SELECT description FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
	WHERE resource_manager = 'inplace' AND record_type IN ('LOCK', 'HEADER')}),
	qr/flags: \[.*\bLOCK_(IN)?DIRECT\b.*\], natts: \d+, tag: \d+, lock mode: for no key update, (undo|locker): \d/, "... and a header's flags");
$from = one($node, 'SELECT pg_current_wal_insert_lsn()');
$node->safe_psql('postgres', 'DELETE FROM wal_inplace WHERE id = 1500');
like(one($node, qq{SELECT description FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
	WHERE resource_manager = 'inplace' AND record_type = 'DELETE'}),
	qr/without undo/, 'a delete has none');

# ---- checkpoints as fast as they come, then a crash
system_or_bail('pgbench', '-i', '-q', '-s', '1', '-h', $node->host, '-p', $node->port, 'postgres');
$node->safe_psql('postgres', 'ALTER TABLE pgbench_accounts SET ACCESS METHOD inplace;
	ALTER TABLE pgbench_tellers SET ACCESS METHOD inplace; ALTER TABLE pgbench_branches SET ACCESS METHOD inplace');
my $sums = q{SELECT (SELECT sum(abalance) FROM pgbench_accounts) = d, (SELECT sum(tbalance) FROM pgbench_tellers) = d,
	(SELECT sum(bbalance) FROM pgbench_branches) = d FROM (SELECT coalesce(sum(delta), 0) AS d FROM pgbench_history) h};
my $abort = $node->basedir . '/abort.sql';
append_to_file($abort, "\\set aid random(1, 100000)\nBEGIN;\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\nROLLBACK;\n");
foreach my $round (1 .. 5)
{
	my $pgbench = start_pgbench($node, '-c', '4', '-T', '60', '-b', 'tpcb-like@2', '-f', "$abort\@1");
	$node->psql('postgres', 'CHECKPOINT') foreach (1 .. 15 + $round);
	kill9_all($node);
	end_pgbench($pgbench);
	$node->start;
	is(one($node, $sums), 't|t|t', "crash $round: sums");
	check_clean($node, "crash $round");
}

# ---- incremental backup
SKIP:
{
	skip 'no incremental backup before 17', 5 if pg_major() < 17;

	my $full = $node->backup_dir . '/full';
	my $incr = $node->backup_dir . '/incr';
	my @where = ('-h', $node->host, '-p', $node->port, '--no-sync', '-c', 'fast');
	my $load = start_pgbench($node, '-c', '3', '-T', '6');
	command_ok([ 'pg_basebackup', @where, '-D', $full ], 'full backup');
	end_pgbench($load);
	my $session = psql_session($node);
	$session->query('BEGIN; UPDATE wal_inplace SET balance = -1, filler = NULL WHERE id > 1500');
	$load = start_pgbench($node, '-c', '3', '-T', '4');
	$node->psql('postgres', 'CHECKPOINT') foreach (1 .. 5);
	end_pgbench($load);
	command_ok([ 'pg_basebackup', @where, '-D', $incr, '-i', "$full/backup_manifest" ], 'incremental backup');
	my $whole = PostgreSQL::Test::Cluster->new('whole');
	$whole->init_from_backup($node, 'incr', combine_with_prior => ['full']);
	$whole->start;
	is(one($whole, $sums), 't|t|t', 'combined backup: sums');
	is(one($whole, 'SELECT count(*) FROM wal_inplace WHERE balance = -1 OR filler IS NULL'), '0',
		'combined backup: an open transaction is undone');
	check_clean($whole, 'combined backup');
	$session->query('ROLLBACK');
	$session->quit;
	$whole->stop;
	check_log($whole);
}
$node->stop;
check_log($node);
done_testing();
