# What is on a page when its record is replayed: an update may leave the old row to it
# only if the first record since the redo pointer has its image.  Three pages have an
# LSN after the redo pointer, and no such record: copies that the server makes with
# wal_level = minimal (SET TABLESPACE, CREATE DATABASE), which keep the LSNs of the originals;
# and one that VACUUM has left a hint on while full_page_writes was off.  Here such a page
# comes to the disk with an open update (before 17 nothing evicts it, so that it does not), and
# a crash follows: that update must be undone, and what was committed must be there.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('copies', conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
wal_level = minimal
# (small copies would have their pages' images in the WAL)
wal_skip_threshold = 0
max_wal_senders = 0
wal_log_hints = on
autovacuum = off
});
my $dir = PostgreSQL::Test::Utils::tempdir();
my $flushed = 0;
$node->start;
$node->safe_psql('postgres', $_) foreach (
	"CREATE TABLESPACE one LOCATION '$dir'", 'CREATE EXTENSION inplace',
	'CREATE EXTENSION pg_walinspect', 'CREATE EXTENSION pg_buffercache', 'CREATE DATABASE d1');
$node->safe_psql('d1', 'CREATE EXTENSION inplace');

# An open update, whose data pages come to the disk, and all WAL, and then a crash.
sub open_update_and_crash
{
	my ($what, $db, $table, @sql) = @_;
	my $before = contents($node, $table, $db);
	my $file = one($node, "SELECT pg_relation_filenode('$table')", $db);
	my $lsn = one($node, 'SELECT pg_current_wal_insert_lsn()');
	my $s = psql_session($node, $db);
	$s->query_safe($_) foreach @sql;
	$flushed++;
	$node->safe_psql('postgres', "CREATE TABLE flushed_$flushed (i int) USING heap");
	if (pg_major() >= 17)
	{
		my $call = pg_major() >= 18 ? '(pg_buffercache_evict(bufferid)).buffer_evicted' : 'pg_buffercache_evict(bufferid)';
		cmp_ok(one($node, qq{SELECT count(*) FILTER (WHERE $call) FROM pg_buffercache WHERE relfilenode = $file AND relforknumber = 0
			AND reldatabase = (SELECT oid FROM pg_database WHERE datname = '$db')}), '>', 0, "$what: data pages written");
	}
	my $form = one($node, qq{SELECT string_agg(DISTINCT CASE WHEN description LIKE '%old row from page%' THEN 'page' ELSE 'record' END, ',')
		FROM pg_get_wal_records_info('$lsn', pg_current_wal_flush_lsn())
		WHERE resource_manager = 'inplace' AND record_type = 'UPDATE' AND block_ref LIKE '%/$file fork main%'});
	is($form, 'record', "$what: the record has the old row");
	$node->stop('immediate');
	eval { $s->quit };
	$node->start;
	is(contents($node, $table, $db), $before, "$what: contents after the crash");
	check_clean($node, $what, $db);
	is(one($node, "UPDATE $table SET n = n + 1; SELECT count(*) > 0 FROM $table", $db), 't', "$what: all can be changed");
}

# ---- copies

my $table = q{CREATE TABLE t (id int, n int, v text); INSERT INTO t SELECT i, 0, 'abcdefgh' FROM generate_series(1, 100) i};
my $update = q{UPDATE t SET n = n + 1, v = 'ijklmnop'};
$node->safe_psql('postgres', $_) foreach ($table, 'CHECKPOINT', 'UPDATE t SET n = 1', 'ALTER TABLE t SET TABLESPACE one');
open_update_and_crash('SET TABLESPACE', 'postgres', 't', 'BEGIN', $update);

$node->safe_psql('d1', $_) foreach ($table, 'CHECKPOINT', 'UPDATE t SET n = 1');
$node->safe_psql('postgres', 'CREATE DATABASE d2 TEMPLATE d1 STRATEGY wal_log');
open_update_and_crash('CREATE DATABASE', 'd2', 't', 'BEGIN', $update);

# ---- a hint

$node->append_conf('postgresql.conf', "wal_level = replica\n");
$node->restart;

# Row 1 has a stale entry in the index, and VACUUM notes that it has seen it.
$node->safe_psql('postgres', $_) foreach (q{
	CREATE TABLE h (id int, n int, k int, v text) WITH (fillfactor = 80);
	CREATE INDEX h_k ON h USING inplace_btree (k);
	INSERT INTO h SELECT i, 0, i, repeat('x', 100) FROM generate_series(1, 14000) i;
	CREATE TABLE other (id int, v text);
	INSERT INTO other VALUES (1, 'a'), (2, 'b')},
	'VACUUM h, other', 'UPDATE h SET k = -1 WHERE id = 1');
# (the hints of visibility, first)
one($node, 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM h WHERE k < 10');
$node->safe_psql('postgres', $_) foreach 'VACUUM h', 'CHECKPOINT';
set_full_page_writes($node, 'off');
my $from = one($node, 'SELECT pg_current_wal_insert_lsn()');
$node->safe_psql('postgres', 'VACUUM h');
$node->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '')});
note one($node, "SELECT flags FROM inplace.page_items('h', 0) WHERE item = 1");
my $file = one($node, q{SELECT pg_relation_filenode('h')});
is(one($node, qq{SELECT string_agg(DISTINCT resource_manager || ' ' || record_type, ',') FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
	WHERE (resource_manager = 'inplace' OR record_type = 'FPI_FOR_HINT') AND block_ref LIKE '%/$file fork main%'}), 'XLOG FPI_FOR_HINT', 'VACUUM leaves a hint, and no more');
set_full_page_writes($node, 'on');
open_update_and_crash('a hint', 'postgres', 'h',
	q{UPDATE other SET v = 'c'}, q{UPDATE other SET v = 'd'}, 'BEGIN', q{UPDATE h SET n = 1, v = repeat('y', 90) WHERE id BETWEEN 2 AND 20});
$node->stop;
check_log($node);
done_testing();
