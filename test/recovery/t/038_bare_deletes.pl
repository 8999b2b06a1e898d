# Deletes without an undo record (the old header is in the new one): crashes
# before and after commit, prepared transactions, old snapshots on a standby,
# and freezing past a delete that was rolled back.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int, v text);
	INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 1000) i;
	CREATE VIEW without_undo AS
		SELECT count(*) AS n FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b,
			LATERAL inplace.page_items('t', b) i WHERE 'DELETED' = ANY (i.flags) AND i.undo IS NULL;
});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
$standby->start;
$primary->wait_for_catchup($standby);

# In progress when the server dies, with and without an image of the page.
foreach my $when ('after a checkpoint', 'without images')
{
	$primary->safe_psql('postgres', 'CHECKPOINT') if $when =~ /checkpoint/;
	my $before = contents($primary, 't');
	my $s = psql_session($primary);
	$s->query_safe('BEGIN');
	$s->query_safe('DELETE FROM t WHERE id % 3 = 0');
	$s->query_safe('SAVEPOINT a');
	$s->query_safe('DELETE FROM t WHERE id % 3 = 1');
	$s->query_safe('ROLLBACK TO a');
	cmp_ok(one($primary, 'SELECT n FROM without_undo'), '>', 600, "$when: deletes are bare");
	# the WAL is flushed by another transaction
	$primary->safe_psql('postgres', 'CREATE TABLE IF NOT EXISTS flushed ()');
	kill9_all($primary);
	eval { $s->quit };
	$primary->start;
	is(contents($primary, 't'), $before, "$when: all rows are back after a crash");
	is(one($primary, 'SELECT n FROM without_undo'), 0, "$when: on their pages, too");
	check_clean($primary, $when);
}

# A standby's snapshot from before keeps seeing the rows; a new one does not.
$primary->wait_for_catchup($standby);
my $rows = contents($primary, 't');
my $old = psql_session($standby);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $sum = $old->query_safe('SELECT count(*), sum(id) FROM t');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 2 = 0');
$primary->wait_for_catchup($standby);
is($old->query_safe('SELECT count(*), sum(id) FROM t'), $sum, 'standby: old snapshot');
is(contents($standby, 't'), contents($primary, 't'), 'standby: new snapshot');
isnt(contents($primary, 't'), $rows, 'rows have gone');
$old->query_safe('COMMIT');
$old->quit;

# Committed, then a crash.
my $left = contents($primary, 't');
$primary->safe_psql('postgres', 'UPDATE t SET v = v || id WHERE id < 100; DELETE FROM t WHERE id < 50');
$left = contents($primary, 't');
crash_and_restart($primary);
is(contents($primary, 't'), $left, 'committed deletes after a crash');

# Prepared, over restarts of either kind.
$primary->safe_psql('postgres', q{
	BEGIN; DELETE FROM t WHERE id < 300; PREPARE TRANSACTION 'p1';
	BEGIN; DELETE FROM t WHERE id > 700; PREPARE TRANSACTION 'p2'});
crash_and_restart($primary);
is(contents($primary, 't'), $left, 'prepared deletes are not seen');
$primary->safe_psql('postgres', q{ROLLBACK PREPARED 'p1'; COMMIT PREPARED 'p2'});
is(one($primary, 'SELECT count(*), min(id), max(id) FROM t'), one($primary, 'SELECT count(*), 51, 699 FROM t'), 'one back, one gone');
$left = contents($primary, 't');
check_clean($primary, 'prepared');

# Rolled back: one record a page, by whoever comes first, and a crash after it.
$primary->safe_psql('postgres', q{
	CREATE EXTENSION pg_walinspect;
	CREATE TABLE many (id int, v text);
	INSERT INTO many SELECT i, repeat('v', i % 70) FROM generate_series(1, 20000) i;
	UPDATE many SET v = v || 'w' WHERE id % 5 = 0;
	CREATE INDEX ON many (id);
	ALTER SYSTEM SET wal_consistency_checking = '';
	SELECT pg_reload_conf()});
my $all = contents($primary, 'many');
my $pages = one($primary, q{SELECT pg_relation_size('many') / 8192});
my @firsts = (
	[ 'VACUUM', 'VACUUM many' ],
	[ 'VACUUM FREEZE', 'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) many' ],
	[ 'scan', 'SELECT count(*) FROM many' ],
	[ 'index scan', 'SET enable_seqscan = off; SET enable_bitmapscan = off; DELETE FROM many WHERE id BETWEEN 1 AND 20000; UPDATE many SET v = v WHERE id = -1' ]);
foreach my $first (@firsts)
{
	my ($name, $sql) = @$first;
	$primary->safe_psql('postgres', 'CHECKPOINT') if $name ne 'VACUUM FREEZE';
	$primary->safe_psql('postgres', 'BEGIN; DELETE FROM many WHERE id % 7 <> 3; ROLLBACK');
	my $from = one($primary, 'SELECT pg_current_wal_insert_lsn()');
	$primary->safe_psql('postgres', "BEGIN; $sql; ROLLBACK") if $name eq 'index scan';
	$primary->safe_psql('postgres', $sql) if $name ne 'index scan';
	my $to = one($primary, 'SELECT pg_current_wal_insert_lsn()');
	# flushes it
	$primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, 'flush', '')});
	my ($records, $bytes) = split /\|/, one($primary, qq{SELECT count(*), sum(record_length - fpi_length)
		FROM pg_get_wal_records_info('$from', '$to') WHERE resource_manager = 'inplace' AND record_type = 'RESTORE'});
	cmp_ok($records, '<=', $pages, "$name: at most one record a page takes deletes back");
	cmp_ok($records, '>', $pages / 2, "$name: there are such records");
	cmp_ok($bytes, '<', 4 * 20000, "$name: a few bytes a row");
	is(contents($primary, 'many'), $all, "$name: all rows are back");
	crash_and_restart($primary);
	is(contents($primary, 'many'), $all, "$name: ... and after a crash");
	check_clean($primary, $name);
}
$primary->safe_psql('postgres', q{ALTER SYSTEM RESET wal_consistency_checking; SELECT pg_reload_conf()});
$primary->wait_for_catchup($standby);
is(contents($standby, 'many'), $all, 'rolled back: the same on the standby');

# Rolled back, frozen past it.
$primary->safe_psql('postgres', 'BEGIN; DELETE FROM t; ROLLBACK; VACUUM (FREEZE, INDEX_CLEANUP off) t');
is(one($primary, 'SELECT n FROM without_undo'), 0, 'VACUUM brought the rows back');
is(one($primary, q{SELECT age(relfrozenxid) < 10 FROM pg_class WHERE relname = 't'}), 't', 'relfrozenxid is past the rollback');
is(contents($primary, 't'), $left, 'no row was lost');
check_clean($primary, 'frozen');
$primary->wait_for_catchup($standby);
is(contents($standby, 't'), $left, 'the same on the standby');

check_log($primary);
check_log($standby);
$standby->stop;
$primary->stop;
done_testing();
