# What the modules that look into tables do with inplace tables, with changes in
# progress and undo behind them: those that can serve them do, those that know heap
# pages only say so, and none changes or crashes anything.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('contrib', extra => ['--data-checksums'], conf => q{
shared_preload_libraries = 'inplace, pg_prewarm'
pg_prewarm.autoprewarm_interval = 0
default_table_access_method = 'inplace'
autovacuum = off
});
$node->start;
one($node, 'CREATE EXTENSION ' . $_) foreach qw(inplace amcheck pgstattuple pg_visibility pg_freespacemap
	pageinspect pg_prewarm pg_buffercache pg_surgery pgrowlocks postgres_fdw);
is(one($node, q{
	CREATE TABLE t (id int PRIMARY KEY, a int, b int, u int UNIQUE, w text);
	CREATE INDEX t_a ON t (a);
	SET inplace.default_index_method = 'btree';
	CREATE INDEX t_b ON t (b);
	RESET inplace.default_index_method;
	CREATE INDEX t_h ON t USING hash (b);
	CREATE INDEX t_gin ON t USING gin (string_to_array(w, ' '));
	INSERT INTO t SELECT g, g, g, g, 'w ' || g FROM generate_series(1, 3000) g;
	CREATE TABLE wide (id int PRIMARY KEY, w text);
	ALTER TABLE wide ALTER w SET STORAGE EXTERNAL;
	INSERT INTO wide SELECT g, repeat('w', 9000) FROM generate_series(1, 20) g;
	-- nothing but zeros behind the headers: a hint bit of heap's would show
	CREATE TABLE zeros (a int, b int, c int, d int, e int);
	INSERT INTO zeros SELECT 0, 0, 0, 0, 0 FROM generate_series(1, 500);
	CREATE TABLE heap_too (id int PRIMARY KEY, v int) USING heap;
	INSERT INTO heap_too SELECT g, g FROM generate_series(1, 500) g;
	SELECT 1}), '1', 'set up');
one($node, $_) foreach ('VACUUM (FREEZE) zeros', 'VACUUM (FREEZE) heap_too',
	'DELETE FROM t WHERE id % 10 = 0', 'UPDATE t SET a = a + 1 WHERE id % 3 = 0',
	'UPDATE t SET b = -b WHERE id % 7 = 0', 'VACUUM t');
my %before = map { $_ => contents($node, $_) } qw(t wide zeros heap_too);

# A snapshot, and changes in progress, while all of this goes on.
my $holder = psql_session($node);
$holder->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
one($node, 'UPDATE t SET a = a + 10, w = w || id WHERE id % 5 = 1');
one($node, 'UPDATE t SET a = a - 10, w = left(w, -length(id::text)) WHERE id % 5 = 1');
my $writer = psql_session($node);
$writer->query(q{BEGIN; UPDATE t SET a = -a WHERE id < 500; DELETE FROM t WHERE id BETWEEN 501 AND 600;
	UPDATE t SET b = b + 5, u = -u WHERE id BETWEEN 601 AND 700; INSERT INTO t VALUES (10000, 1, 1, 10000, 'x');
	SELECT * FROM t WHERE id = 801 FOR UPDATE; UPDATE wide SET w = w || 'x' WHERE id < 5});

# ---- amcheck
is(one($node, "SELECT count(bt_index_check('$_', true)) FROM generate_series(1, 1)"), '1', "bt_index_check of $_")
	foreach qw(t_pkey t_u_key t_b wide_pkey);
my $ix = one($node, q{SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am m ON m.oid = c.relam
	WHERE indrelid = 't'::regclass AND amname = 'inplace_btree'});
like($ix, qr/\bt_a\b/, "inplace_btree: $ix");
foreach my $i (split / /, $ix)
{
	like(sqlstate_of($node, "SELECT bt_index_check('$i', true)"), qr/ERROR:  (0A000|42809|22023): /, "bt_index_check refuses $i");
}
like(sqlstate_of($node, q{SELECT * FROM verify_heapam('t')}), qr/ERROR:  (0A000|42809): only heap AM is supported/, 'verify_heapam refuses');
like(sqlstate_of($node, q{SELECT * FROM verify_heapam('inplace.undo_log')}), qr/ERROR:  (0A000|42809): only heap AM is supported/, '... the undo too');
$node->command_ok([ 'pg_amcheck', '--heapallindexed', '-d', 'postgres' ], 'pg_amcheck of the database');
$node->command_ok([ 'pg_amcheck', '-a' ], 'pg_amcheck of all databases');
$node->command_ok([ 'pg_amcheck', '-d', 'postgres', '-i', 't_pkey', '--heapallindexed' ], 'pg_amcheck of a primary key');

# ---- functions for heap pages
foreach my $q (q{pgstattuple('t')}, q{pgstattuple('inplace.undo_log')}, q{pgrowlocks('t')}, q{pgstattuple_approx('t')},
	q{heap_force_kill('t', ARRAY['(0,1)'::tid])}, q{heap_force_freeze('t', ARRAY['(0,1)'::tid])})
{
	like(sqlstate_of($node, "SELECT * FROM $q"), qr/ERROR:  (0A000|42809): (only heap AM is supported|.*not supported|.*is not a (heap )?table)/, "$q refuses");
}
# These two do not ask whose the table is, and set heap's hint bits.
one($node, q{
	SET inplace.toast_in_place = off;
	CREATE TABLE old_toast (w text) USING inplace;
	ALTER TABLE old_toast ALTER w SET STORAGE EXTERNAL;
	INSERT INTO old_toast VALUES (repeat('x', 9000))});
foreach my $f (qw(pg_check_visible pg_check_frozen))
{
	like(sqlstate_of($node, "SELECT * FROM $f('zeros')"), qr/ERROR:  0A000: function "$f" cannot be used on relation "zeros"/, "$f refuses");
	like(sqlstate_of($node, "SELECT $f(oid) FROM pg_class WHERE relname IN ('heap_too', 'zeros')"), qr/ERROR:  0A000: function "$f" cannot/, "$f refuses in a target list");
	is(one($node, "DO \$\$ BEGIN PERFORM * FROM $f('zeros'); EXCEPTION WHEN feature_not_supported THEN NULL; END \$\$;
		SELECT count(*) FROM $f('heap_too')"), '0', "$f serves heap, after an error too");
	is(one($node, "SELECT count(*) FROM $f((SELECT reltoastrelid FROM pg_class WHERE relname = 'old_toast'))"), '0', "$f serves a heap TOAST table");
	like(sqlstate_of($node, "SELECT * FROM $f((SELECT reltoastrelid FROM pg_class WHERE relname = 'wide'))"), qr/ERROR:  0A000: function "$f" cannot be used on relation "pg_toast_\d+"/, "$f refuses one of ours");
	is(one($node, "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0;
		SELECT sum(a), count(*) FROM zeros"), '0|500', "scans are served after $f");
}
is(contents($node, 'zeros'), $before{zeros}, 'no byte of the table has changed');

# ---- what serves any table
is(one($node, q{SELECT all_visible = relpages AND all_frozen = relpages FROM pg_visibility_map_summary('zeros'), pg_class WHERE relname = 'zeros'}), 't', 'pg_visibility_map_summary');
is(one($node, q{SELECT bool_and(all_visible AND all_frozen AND pd_all_visible) FROM pg_visibility('zeros')}), 't', 'pg_visibility');
is(one($node, q{SELECT count(*) = (SELECT pg_relation_size('t') / 8192), sum(avail) > 0 FROM pg_freespace('t')}), 't|t', 'pg_freespace');
is(one($node, q{SELECT pg_truncate_visibility_map('zeros'); SELECT all_visible FROM pg_visibility_map_summary('zeros')}), "\n0", 'pg_truncate_visibility_map');
is(one($node, q{SELECT lower < upper AND special <= pagesize, flags & 4 FROM page_header(get_raw_page('t', 0))}), 't|0', 'page_header');
is(one($node, q{SELECT page_checksum(get_raw_page('zeros', 0), 0) <> 0}), 't', 'page_checksum');
is(one($node, q{SELECT count(*) > 10 FROM heap_page_items(get_raw_page('t', 0))}), 't', 'heap_page_items does not crash');
is(one($node, q{SELECT magic, version FROM bt_metap('t_pkey')}), '340322|4', 'bt_metap of the primary key');
like(sqlstate_of($node, "SELECT * FROM bt_metap('t_a')"), qr/ERROR:  \w+: "t_a" is not a btree index/, 'bt_metap refuses inplace_btree');
is(one($node, q{SELECT leaf_pages > 0 FROM pgstatindex('t_pkey')}), 't', 'pgstatindex');
like(sqlstate_of($node, "SELECT * FROM pgstatindex('t_a')"), qr/ERROR:  \w+: relation "t_a" is not a btree index/, 'pgstatindex refuses inplace_btree');
is(one($node, q{SELECT bool_and(pg_relation_size('t', f) > 0) FROM unnest('{main,fsm}'::text[]) f}), 't', 'pg_relation_size of the forks');
is(one($node, q{SELECT pg_table_size('wide') = pg_relation_size('wide') + pg_relation_size('wide', 'fsm') + pg_relation_size('wide', 'vm') + pg_total_relation_size(reltoastrelid),
	pg_total_relation_size('wide') = pg_table_size('wide') + pg_indexes_size('wide') FROM pg_class WHERE relname = 'wide'}), 't|t', 'pg_table_size, pg_total_relation_size');
is(one($node, q{SELECT pg_prewarm('t') = pg_relation_size('t') / 8192, pg_prewarm('t', 'read') > 0, pg_prewarm('t_a', 'prefetch') > 0, pg_prewarm('inplace.undo_log') > 0}), 't|t|t|t', 'pg_prewarm');

# ---- postgres_fdw: a foreign table on an inplace table
is(one($node, sprintf(q{
	CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER loopback;
	CREATE FOREIGN TABLE ft (id int, v int) SERVER loopback OPTIONS (table_name 'fdw_t', batch_size '10');
	CREATE TABLE fdw_t (id int PRIMARY KEY, v int);
	CREATE TABLE fdw_local (id int, n text);
	INSERT INTO fdw_local SELECT g, 'n' || g FROM generate_series(1, 5) g;
	INSERT INTO ft SELECT g, g FROM generate_series(1, 100) g;
	UPDATE ft SET v = v + 1 WHERE id <= 50;
	UPDATE ft SET v = v + l.id FROM fdw_local l WHERE l.id = ft.id AND random() >= 0;
	DELETE FROM ft WHERE id > 90 AND random() >= 0;
	SELECT count(*), sum(v) FROM ft}, $node->host, $node->port)), '90|' . (90 * 91 / 2 + 50 + 15), 'postgres_fdw: changes, direct and by ctid');
is(one($node, q{BEGIN; SELECT id FROM ft WHERE id = 3 FOR UPDATE; UPDATE ft SET v = -1 WHERE id = 3; SAVEPOINT a; DELETE FROM ft; ROLLBACK TO a; SELECT sum(v) FROM ft WHERE id < 4; COMMIT;
	SELECT sum(v) FROM fdw_t WHERE id < 4}), "3\n7\n7", 'postgres_fdw: transactions');

# ---- the changes in progress come to an end
$writer->query('ROLLBACK');
$holder->query('COMMIT');
$_->quit foreach $writer, $holder;
is(contents($node, $_), $before{$_}, "$_ is as before") foreach qw(t wide zeros heap_too);
is(one($node, "SELECT count(bt_index_parent_check('$_', true, true)) FROM generate_series(1, 1)"), '1', "bt_index_parent_check of $_")
	foreach qw(t_pkey t_u_key t_b wide_pkey fdw_t_pkey);
is(one($node, q{SELECT count(gin_index_check('t_gin')) FROM generate_series(1, 1)}), '1', 'gin_index_check') if pg_major() >= 18;
$node->command_ok([ 'pg_amcheck', '--heapallindexed', '--parent-check', '-a' ], 'pg_amcheck of all, with parents');
check_clean($node, 'at the end');

# ---- autoprewarm: what was in shared buffers, undo too, is there after a restart
is(one($node, q{SELECT count(*) > 0 FROM pg_prewarm('t')}), 't', 'in shared buffers');
cmp_ok(one($node, 'SELECT autoprewarm_dump_now()'), '>', 10, 'autoprewarm_dump_now');
$node->restart;
ok(defined poll_value($node, q{SELECT count(DISTINCT relblocknumber) = pg_relation_size('t') / 8192 FROM pg_buffercache b, pg_class c
	WHERE c.relname = 't' AND b.relfilenode = pg_relation_filenode(c.oid) AND relforknumber = 0
		AND reldatabase = (SELECT oid FROM pg_database WHERE datname = 'postgres') GROUP BY c.oid}, 30), 'autoprewarm has read the table again');
is(contents($node, $_), $before{$_}, "$_ is as before the restart") foreach qw(t wide zeros heap_too);

$node->stop;
check_log($node);
done_testing();
