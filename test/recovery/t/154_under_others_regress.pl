# Updates under GIN, hash and GiST indexes: what VACUUM, autovacuum and the log see of them, when
# rows move all the same, and which indexes are marked.  And the SQL tests of test/others_off, which
# need the setting off when the server starts.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('node', conf => q{
inplace.update_under_other_indexes = off
autovacuum_naptime = '1d'
max_connections = 30
});
$node->start;
my $input = "$FindBin::RealBin/../../others_off";
my $output = PostgreSQL::Test::Utils::tempdir();
my $passed = run_log([ $ENV{PG_REGRESS}, '--bindir=' . $node->config_data('--bindir'), '--host=' . $node->host,
	'--port=' . $node->port, "--inputdir=$input", "--outputdir=$output", '--dbname=contrib_regression',
	'--load-extension=inplace', "--schedule=$input/schedule" ]);
ok($passed, 'with the setting off');
diag(slurp_file("$output/regression.diffs")) if !$passed && -e "$output/regression.diffs";
# In the order of a distance that is not in floating point a scan may begin again.  Then one that is
# not exact is refused here as GiST refuses it.
my $by_index = 'SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;';
sub lossy
{
	my ($lock) = @_;
	return sqlstate_of($node, "$by_index SELECT * FROM lossy ORDER BY v <-> interval '1 day', c <-> point (0, 0) $lock");
}
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION btree_gist;
	CREATE TABLE lossy (id int, v interval, c circle) USING inplace;
	INSERT INTO lossy VALUES (1, '1 day', NULL), (2, '2 days', '<(5,5),1>');
	CREATE INDEX ON lossy USING gist (v, c);});
like(lossy($_), qr/XX000/, "setting off: a distance that is not exact is refused, \"$_\"") foreach ('', 'FOR UPDATE');
$node->append_conf('postgresql.conf', "inplace.update_under_other_indexes = on\ninplace.former_keys_limit = 0");
$node->restart;
$node->safe_psql('postgres', q{UPDATE lossy SET v = v + interval '1 second'});
like(lossy($_), qr/XX000/, "a distance that is not exact is refused, \"$_\"") foreach ('', 'FOR UPDATE');
$node->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = off');
$node->restart;
like(lossy($_), qr/XX000/, "setting off again: a distance that is not exact is refused, \"$_\"") foreach ('', 'FOR UPDATE');
$node->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = on');
$node->restart;

# An index-only scan in such an order that runs when the index is marked: the index waits for it.
$node->safe_psql('postgres', $_) foreach (q{
	CREATE TABLE waited (id int, i int) USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
	INSERT INTO waited SELECT i, i FROM generate_series(1, 1000) i;
	CREATE INDEX ON waited USING gist (i)}, 'VACUUM ANALYZE waited');
my $reader = psql_session($node);
$reader->query($by_index);
$reader->query('BEGIN; DECLARE c CURSOR FOR SELECT i FROM waited ORDER BY i <-> 500; MOVE 5 FROM c');
my $waited_moved = q{SELECT count(*) FROM waited WHERE ctid <> (SELECT place FROM waited_places w WHERE w.id = waited.id)};
$node->safe_psql('postgres', 'CREATE TABLE waited_places AS SELECT id, ctid AS place FROM waited');
$node->safe_psql('postgres', 'UPDATE waited SET i = i + 300 WHERE id BETWEEN 510 AND 520');
is(one($node, $waited_moved), 11, 'rows move while a scan runs');
my @seen = split /\n/, $reader->query('FETCH ALL FROM c');
is(join(',', sort { $a <=> $b } @seen), join(',', grep { $_ < 498 || $_ > 502 } 1 .. 1000), 'it returns each row once');
$reader->query('COMMIT');
$node->safe_psql('postgres', q{DELETE FROM waited_places; INSERT INTO waited_places SELECT id, ctid FROM waited; UPDATE waited SET i = i + 300 WHERE id BETWEEN 610 AND 620});
is(one($node, $waited_moved), 0, 'none moves then');
$reader->quit;
# Each such update counts for autovacuum, and rows with former keys do not stay for ever.
sub dead_after
{
	my ($change) = @_;
	$node->safe_psql('postgres', qq{
		SET client_min_messages = warning; DROP TABLE IF EXISTS hot;
		CREATE TABLE hot (id int PRIMARY KEY, p point, a int[]) USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
		INSERT INTO hot SELECT i, point(i, i), ARRAY[i] FROM generate_series(1, 100) i;
		CREATE INDEX hot_p ON hot USING gist (p);
		CREATE INDEX hot_a ON hot USING gin (a);
		UPDATE hot SET p = p + point(0, 1) WHERE id = 100;	-- the index has its mark
		CREATE TABLE IF NOT EXISTS hot_places (id int, place tid);
		TRUNCATE hot_places;
		INSERT INTO hot_places SELECT id, ctid FROM hot;
		VACUUM hot});
	$node->safe_psql('postgres', "SET inplace.former_keys_limit = $_->[0]; " . $_->[1]) for @$change;
	return $node->safe_psql('postgres', q{SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'hot'});
}
my $moved = q{SELECT count(*) FROM hot JOIN hot_places USING (id) WHERE hot.ctid <> place};
my $one = 'UPDATE hot SET p = p + point(0.5, 0) WHERE id = 7';
cmp_ok(dead_after([ map { [ 0, $one ] } 1 .. 20 ]), '>=', 20, 'one row updated 20 times counts 20 times');
is($node->safe_psql('postgres', $moved), '0', 'no limit: no row has moved');
dead_after([ map { [ 24, $one ] } 1 .. 20 ]);
is($node->safe_psql('postgres', $moved), '0', 'limit: a row that has not been updated so often stays');
dead_after([ map { [ 3, $one ] } 1 .. 60 ]);
is($node->safe_psql('postgres', $moved), '1', 'limit: the row has moved');

# A VACUUM without dead rows gives back what former keys had of a GIN index.
$node->safe_psql('postgres', q{
	CREATE TABLE days (id int PRIMARY KEY, day int[]) USING inplace WITH (autovacuum_enabled = off, fillfactor = 60);
	INSERT INTO days SELECT i, ARRAY[0] FROM generate_series(1, 20000) i;
	CREATE INDEX days_day ON days USING gin (day);
	VACUUM days});
sub after_days
{
	my ($first, $last, $options) = @_;
	my $vacuum = "VACUUM (INDEX_CLEANUP on, $options) days";
	$node->safe_psql('postgres', "SET min_parallel_index_scan_size = 0; UPDATE days SET day = ARRAY[$_]; $vacuum; $vacuum") for $first .. $last;
	return $node->safe_psql('postgres', q{SELECT pg_relation_size('days_day') / 8192});
}
my $pages = after_days(1, 2, 'PARALLEL 0');
cmp_ok(after_days(3, 5, 'PARALLEL 0'), '<=', $pages + 12, 'of keys that pass by GIN keeps three pages each');
$pages = after_days(6, 6, 'PARALLEL 2');
cmp_ok(after_days(7, 9, 'PARALLEL 2'), '<=', $pages + 12, 'with workers, too');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM days WHERE day @> ARRAY[9]'), '20000', 'they are all there');

# A hash index is not searched without bound, nor by what counts as a scan.
$node->safe_psql('postgres', q{
	CREATE TABLE alike (id int PRIMARY KEY, h int) USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
	INSERT INTO alike SELECT i, 1 FROM generate_series(1, 60000) i;
	CREATE INDEX alike_h ON alike USING hash (h);
	CREATE TABLE alike_places AS SELECT id, ctid AS place FROM alike});
my $alike_moved = q{SELECT count(*) FROM alike JOIN alike_places USING (id) WHERE alike.ctid <> place};
$node->safe_psql('postgres', 'UPDATE alike SET h = 2 WHERE id % 200 = 0');
is($node->safe_psql('postgres', $alike_moved), '0', 'hash: a first other key');
$node->safe_psql('postgres', 'UPDATE alike SET h = 1 WHERE id % 400 = 0; UPDATE alike SET h = 3 WHERE id % 400 = 200');
cmp_ok($node->safe_psql('postgres', $alike_moved), '>', 0, 'hash: some entries are not found');
cmp_ok($node->safe_psql('postgres', $alike_moved), '<=', 150, 'hash: others are sure to be missing');
is($node->safe_psql('postgres', q{SELECT pg_stat_force_next_flush(); SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'alike_h'}) =~ s/^\s+//r, '0', 'hash: no scan is counted');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM alike WHERE h = $_->[0]"), $_->[1], "hash: rows with $_->[0]")
	for [ 1, 59850 ], [ 2, 0 ], [ 3, 150 ];

# A row's new key takes its TID to WAL, not all those of the key; a key that it has takes nothing.
$node->safe_psql('postgres', q{
	CREATE TABLE topics (id int PRIMARY KEY, a int[]) USING inplace WITH (autovacuum_enabled = off, fillfactor = 50);
	INSERT INTO topics SELECT i, ARRAY[i % 20, 20 + i % 11, 40 + i % 13] FROM generate_series(1, 6000) i;
	CREATE INDEX topics_a ON topics USING gin (a);
	VACUUM topics;
	UPDATE topics SET a = ARRAY[1, 21, 41] WHERE id = 1;
	CHECKPOINT;
	UPDATE topics SET a = ARRAY[(id + 1) % 20, 20 + id % 11, 40 + id % 13] WHERE id % 3 = 1});
my $wal = $node->safe_psql('postgres', q{
	SET wal_consistency_checking = '';
	SELECT pg_current_wal_insert_lsn() AS before \gset
	UPDATE topics SET a = ARRAY[(id + 1) % 20, 20 + id % 11, 40 + id % 13] WHERE id % 3 = 2;
	SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), :'before') / 2000});
cmp_ok($wal, '<', 350, 'WAL of an update that adds one key');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM topics WHERE a @> ARRAY[7, 41]}),
	$node->safe_psql('postgres', q{SET enable_bitmapscan = off; SELECT count(*) FROM topics WHERE a @> ARRAY[7, 41]}), 'rows are found by their new keys');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) topics; VACUUM (INDEX_CLEANUP on) topics');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM topics WHERE a @> ARRAY[7]}),
	$node->safe_psql('postgres', q{SET enable_bitmapscan = off; SELECT count(*) FROM topics WHERE a @> ARRAY[7]}), 'and by no other ones');
check_log($node);

# Where the setting was never on VACUUM does not go through these indexes.
sub swept
{
	my ($in) = @_;
	my $from = -s $in->logfile;
	$in->safe_psql('postgres', 'UPDATE t SET n = n + 1; VACUUM (INDEX_CLEANUP on) t');
	return slurp_file($in->logfile, $from) =~ /deleted \d+ stale entries/ ? 1 : 0;
}
my $off = new_node('off', conf => q{
log_min_messages = debug2
autovacuum = off
default_table_access_method = 'inplace'
inplace.update_under_other_indexes = off
});
$off->start;
$off->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, a int[], n int);
	CREATE INDEX ON t USING inplace_btree (n);
	INSERT INTO t SELECT i, ARRAY[i], i FROM generate_series(1, 1000) i;
	CREATE INDEX ON t USING gin (a);
});
is(swept($off), 0, 'never on');
$off->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = on');
$off->restart;
# not even with the setting on, as long as no key of theirs changes, or of a temporary table alone
is(swept($off), 0, 'on, but no such update');
$off->safe_psql('postgres', q{
	CREATE TEMP TABLE tt (id int, a int[]);
	CREATE INDEX ON tt USING gin (a);
	INSERT INTO tt VALUES (1, ARRAY[1]);
	UPDATE tt SET a = ARRAY[2]});
is(swept($off), 0, 'an update of a temporary table');
# the row moves all the same
$off->safe_psql('postgres', q{
	CREATE TABLE moves (id int, a int[], ts tsvector);
	CREATE INDEX ON moves USING gin (a);
	CREATE INDEX ON moves USING gin (ts);
	INSERT INTO moves VALUES (1, ARRAY[1], 'a');
	UPDATE moves SET a = ARRAY[2], ts = 'b'});
is(swept($off), 0, 'an update that moves the row');
$off->safe_psql('postgres', 'UPDATE t SET a = ARRAY[id + 1] WHERE id < 10');
is(swept($off), 1, 'updated with the setting on');
$off->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = off');
$off->stop('immediate');
$off->start;
is(swept($off), 1, 'off again');

# An index is marked, not a database.
$off->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = on');
$off->restart;
$off->safe_psql('postgres', 'ALTER TABLE t ADD b int[]; CREATE INDEX t_b ON t USING gin (b)');
sub swept_indexes
{
	my $from = -s $off->logfile;
	$off->safe_psql('postgres', 'UPDATE t SET n = n + 1 WHERE id > 100; VACUUM (INDEX_CLEANUP on) t');
	my @swept = slurp_file($off->logfile, $from) =~ /index "(\w+)": deleted \d+ stale entries/g;
	return join ' ', sort @swept;
}
is(swept_indexes(), 't_a_idx', 'the one whose keys were updated');
$off->safe_psql('postgres', 'UPDATE t SET b = ARRAY[id] WHERE id < 10');
is(swept_indexes(), 't_a_idx t_b', 'and another one');

# A few rows that are updated often have it swept, too.
$off->safe_psql('postgres', q{
	CREATE TABLE spot (id int PRIMARY KEY, a int[]);
	INSERT INTO spot SELECT i, ARRAY[i] FROM generate_series(1, 20000) i;
	CREATE INDEX spot_a ON spot USING gin (a);
	VACUUM ANALYZE spot;
	SET inplace.former_keys_limit = 0;
	DO $$ BEGIN
		FOR i IN 1 .. 500 LOOP
			UPDATE spot SET a = ARRAY[-i] WHERE id = 7;
			COMMIT;
		END LOOP;
	END $$});
my $spot = -s $off->logfile;
$off->safe_psql('postgres', 'VACUUM spot');
like(slurp_file($off->logfile, $spot), qr/index "spot_a": deleted \d{3} stale entries/, 'one row that was updated 500 times');

# A GiST index does not wait for snapshots from before it was marked, but for scans.
sub gist_table
{
	my ($name) = @_;
	$off->safe_psql('postgres', qq{
		CREATE TABLE $name (id int PRIMARY KEY, p point) WITH (fillfactor = 50);
		INSERT INTO $name SELECT i, point(i, i) FROM generate_series(1, 100) i;
		CREATE INDEX ${name}_p ON $name USING gist (p)});
}
sub moves
{
	my ($name) = @_;
	return $off->safe_psql('postgres', qq{
		SELECT ctid AS old FROM $name WHERE id = 7 \\gset
		UPDATE $name SET p = p + point(1, 0) WHERE id = 7 RETURNING ctid <> :'old'::tid AS moved}) eq 't' ? 1 : 0;
}
my $scan = q{SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN;
	DECLARE c CURSOR FOR SELECT id FROM %s WHERE p <@ box '(0,0),(1000,1000)'; MOVE 5 FROM c; SELECT pg_backend_pid()};
gist_table($_) for qw(w w2 w3);
my $old = psql_session($off);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM w;');
is(moves('w'), 0, 'the first update is in place beside an older snapshot');
$old->query_safe('COMMIT');
my $pid = $old->query_safe(sprintf $scan, 'w2');
is(moves('w2'), 1, 'the first update moves the row beside a scan');
is(moves('w2'), 1, 'and so does the next');
is($off->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 60000)"), 't', '... whose session is terminated');
is(moves('w2'), 0, 'then it is in place');
eval { $old->quit };
my $other = psql_session($off);
$other->query_safe(sprintf $scan, 'w3');

# When there is no room for one more mark all indexes have one.
$off->safe_psql('postgres', q{
	CREATE TABLE n (id int PRIMARY KEY, a int[], n int);
	INSERT INTO n VALUES (1, ARRAY[1], 1);
	CREATE INDEX n_n ON n USING inplace_btree (n);
	CREATE INDEX n_a ON n USING gin (a);
	DO $$ BEGIN
		FOR i IN 1 .. 520 LOOP
			EXECUTE format('CREATE TABLE m%s (p point)', i);
			EXECUTE format('INSERT INTO m%s VALUES (point(1, 1))', i);
			EXECUTE format('CREATE INDEX ON m%s USING gist (p)', i);
			EXECUTE format('UPDATE m%s SET p = point(2, 2)', i);
			COMMIT;
		END LOOP;
	END $$});
$off->safe_psql('postgres', 'UPDATE m520 SET p = point(3, 3); UPDATE m520 SET p = point(4, 4)');
is($off->safe_psql('postgres', q{SET enable_seqscan = off; SELECT p FROM m520 WHERE p <@ box '(0,0),(9,9)'}), '(4,4)', 'the last of them');
$off->safe_psql('postgres', 'ALTER TABLE m520 ADD id int DEFAULT 7');
is(moves('m520'), 1, 'they wait for scans of any index');
is($other->query_safe('MOVE ALL FROM c; COMMIT'), '', 'one ends');
is(moves('m520'), 0, 'then they take updates in place');
$other->quit;
my $from = -s $off->logfile;
$off->safe_psql('postgres', 'UPDATE n SET n = 2; VACUUM (INDEX_CLEANUP on) n');
like(slurp_file($off->logfile, $from), qr/index "n_a": deleted \d+ stale entries/, 'more indexes than there is room for');
check_log($off);

# A session that has seen the mark of an extension whose creation is rolled back marks the
# next one, too.
my $again = new_node('again', conf => q{
log_min_messages = debug2
autovacuum = off
});
$again->start;
my $session = psql_session($again);
my $make = q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, a int[], n int) USING inplace WITH (fillfactor = 50);
	CREATE INDEX ON t USING inplace_btree (n);
	INSERT INTO t SELECT i, ARRAY[i], i FROM generate_series(1, 1000) i;
	CREATE INDEX ON t USING gin (a);
	UPDATE t SET a = ARRAY[id + 1] WHERE id < 10;};
$session->query_safe("BEGIN; $make ROLLBACK;");
$session->query_safe($make);
$session->quit;
$again->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = off');
$again->restart;
is(swept($again), 1, 'the second extension is marked, too');
is($again->safe_psql('postgres', 'SET enable_seqscan = off; SELECT id FROM t WHERE a @> ARRAY[9]'), '8', 'a row is found by its new key');
check_log($again);
done_testing();
