# Deleted rows, and moved ones, that a held snapshot still wants give up their space: their
# values go to undo when somebody needs the room.  The snapshot sees what it saw, by
# whatever scan, here and on standbys, and after whatever is done to the table.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('primary', allows_streaming => 1, conf => q{
autovacuum = off
inplace.undo_worker_delay = 50
max_standby_streaming_delay = -1
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

my $rows = 3000;
my $part = 600;

# rows of several shapes: aligned, with nulls, with values in the TOAST table
sub fill
{
	my ($persistence) = @_;
	$node->safe_psql('postgres', join(";\n",
		'DROP TABLE IF EXISTS q',
		'CREATE ' . ($persistence // '') . ' TABLE q (id int PRIMARY KEY, k int, i interval, n text, big text, pad text) USING inplace',
		'ALTER TABLE q ALTER big SET STORAGE EXTERNAL',
		'CREATE INDEX q_k ON q USING inplace_btree (k)',
		q{INSERT INTO q SELECT i, i, CASE WHEN i % 3 = 0 THEN make_interval(days => i) END, CASE WHEN i % 5 = 0 THEN 'n' || i END,
			CASE WHEN i % 500 = 0 THEN repeat(md5(i::text), 100) END, repeat('x', 100 + i % 90) FROM generate_series(1, } . "$rows) i",
		# chains, stale entries, and versions of other lengths
		q{UPDATE q SET pad = pad || 'longer', n = NULL WHERE id % 7 = 0},
		'UPDATE q SET k = k + 100000 WHERE id % 11 = 0',
		'VACUUM ANALYZE q'));
}

sub pages { return one($node, q{SELECT pg_relation_size('q') / 8192}) }
sub evicted
{
	my ($at) = @_;
	return one($at // $node, q{SELECT count(*) FROM generate_series(0, pg_relation_size('q') / 8192 - 1) b,
		LATERAL inplace.page_items('q', b) WHERE 'EVICTED' = ANY (flags)});
}

my %scans = (
	sequential => 'enable_indexscan = off; SET enable_bitmapscan = off; SET enable_seqscan = on; SET enable_tidscan = off',
	index => 'enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = on',
	bitmap => 'enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = on',
	tid => 'enable_seqscan = on; SET enable_tidscan = on');
my $all = q{count(*) || ' ' || md5(string_agg(q::text, ',' ORDER BY id)) FROM q};

# what a session sees, by each kind of scan, and backwards
sub digests
{
	my ($session) = @_;
	my %seen;
	foreach my $scan (sort keys %scans)
	{
		$session->query_safe("SET $scans{$scan}");
		my $where = $scan eq 'tid' ? q{ctid >= '(0,0)'} : 'k > 0';
		$seen{$scan} = $session->query_safe("SELECT $all WHERE $where");
	}
	$session->query_safe("SET $scans{index}");
	$session->query_safe('DECLARE b SCROLL CURSOR FOR SELECT id FROM q ORDER BY id; MOVE ALL IN b');
	$seen{backwards} = $session->query_safe('FETCH BACKWARD ALL FROM b');
	$session->query_safe('CLOSE b');
	return \%seen;
}
sub sees
{
	my ($session, $expected, $what) = @_;
	my $now = digests($session);
	is($now->{$_}, $expected->{$_}, "$what: $_") foreach sort keys %$now;
}

sub held
{
	my ($level, $at) = @_;
	my $session = psql_session($at // $node);
	$session->query_safe("BEGIN ISOLATION LEVEL $level");
	return ($session, digests($session));
}

# all rows are deleted, and inserted anew, in five parts
sub turn_over
{
	my ($between, $how) = @_;
	for (my $from = 0; $from < $rows; $from += $part)
	{
		my $range = "id > $from AND id <= $from + $part";
		$node->safe_psql('postgres', $_) foreach (
			$how // "DELETE FROM q WHERE $range",
			$between // 'SELECT',
			$how ? 'SELECT' : qq{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('y', 100 + i % 90)
				FROM generate_series($from + 1, $from + $part) i});
	}
}

my ($old, $expected);

# others may hold rows back for a moment: the undo worker, autovacuum's ANALYZE
sub vacuumed
{
	foreach my $round (1 .. 100)
	{
		$node->safe_psql('postgres', 'VACUUM q');
		return 1 if evicted() == 0;
		usleep(100_000);
	}
	return 0;
}
sub settings
{
	$node->safe_psql('postgres', $_) foreach ((map { "ALTER SYSTEM $_" } @_), 'SELECT pg_reload_conf()', 'SELECT pg_sleep(0.2)');
}

# the version in the meta page of undo (7 and more with large values; src/inplace.h)
sub format_version
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	return unpack('V', pack('H*', one($node, q{SELECT encode(pg_read_binary_file(pg_relation_filepath('inplace.undo_log'), 8188, 4), 'hex')})));
}
fill();
$node->safe_psql('postgres', 'DELETE FROM q WHERE id < 1000; VACUUM q');
is(format_version(), 7, 'a database without evicted rows');

# ---- the table grows by what is left of the rows

foreach my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	foreach my $between (undef, 'VACUUM q')
	{
		my $what = $level . ($between ? ', with VACUUM' : '');
		fill();
		my $before = pages();
		($old, $expected) = held($level);
		turn_over($between);
		cmp_ok(pages(), '<=', $before * 1.2, "$what: growth");
		cmp_ok(evicted(), '>', $rows * 0.7, "$what: rows are evicted");
		sees($old, $expected, $what);
		is(one($node, 'SELECT count(*) FROM q WHERE k < 0'), $rows, "$what: the new rows");
		check_clean($node, $what);
		$old->query_safe('COMMIT');
		$old->quit;
		ok(defined poll_value($node, q{SELECT undo_floor_reached FROM (SELECT (SELECT sum(pg_relation_size(oid)) FROM pg_class
			WHERE relname = 'undo_log') <= 33 * 4 * 8192 AS undo_floor_reached) x}, 60), "$what: undo is given back");
		ok(vacuumed(), "$what: nothing is left of the old rows");
		check_clean($node, "$what, at the end");
	}
}

is(format_version(), 8, 'a database with evicted rows is refused by older versions');

# ---- the same beside snapshots that no session says more of than that it has them; a
# transaction finds that out after some rows

my %holders = (
	'a cursor' => [ 'BEGIN' ],
	'a cursor, with an xid' => [ 'BEGIN', 'SELECT pg_current_xact_id()' ],
	'a cursor, SERIALIZABLE' => [ 'BEGIN ISOLATION LEVEL SERIALIZABLE' ]);
foreach my $holder (sort keys %holders)
{
	fill();
	my $before = pages();
	$expected = one($node, 'SELECT md5(string_agg(q::text, \',\' ORDER BY id)) FROM q');
	$old = psql_session($node);
	$old->query_safe($_) foreach (@{ $holders{$holder} },
		'DECLARE c CURSOR FOR SELECT md5(string_agg(q::text, \',\' ORDER BY id)) FROM q');
	turn_over();
	cmp_ok(pages(), '<=', $before * 1.35, "$holder: growth");
	cmp_ok(evicted(), '>', $rows * 0.6, "$holder: rows are evicted");
	is($old->query_safe('FETCH c'), $expected, "$holder: sees what it saw");
	check_clean($node, $holder);
	$old->quit;
	ok(vacuumed(), "$holder: nothing is left of the old rows");
}

# ---- unlogged tables, and rows that were moved

fill('UNLOGGED');
($old, $expected) = held('REPEATABLE READ');
turn_over();
cmp_ok(evicted(), '>', $rows * 0.7, 'unlogged: rows are evicted');
sees($old, $expected, 'unlogged');
check_clean($node, 'unlogged');
$old->quit;

fill();
my $before = pages();
($old, $expected) = held('REPEATABLE READ');
for (my $from = 0; $from < $rows; $from += $part)
{
	$node->safe_psql('postgres', "UPDATE q SET id = id + 1000000 WHERE id > $from AND id <= $from + $part");
}
cmp_ok(pages(), '<=', $before * 1.4, 'moved rows: growth');
cmp_ok(evicted(), '>', $rows * 0.6, 'moved rows are evicted');
sees($old, $expected, 'moved rows');
is(one($node, q{SELECT count(*) FROM generate_series(0, pg_relation_size('q') / 8192 - 1) b,
	LATERAL inplace.page_items('q', b) i, LATERAL inplace.versions('q', format('(%s,%s)', b, i.item)::tid) v
	WHERE 'EVICTED' = ANY (i.flags) AND v.moved_to IS NOT NULL}), evicted(), '... and inplace.versions knows where they have gone');
check_clean($node, 'moved rows');

# ---- what is done to the table meanwhile

foreach my $statement (
	'CREATE INDEX q_new ON q (pad)', 'CREATE INDEX q_new_ours ON q USING inplace_btree (pad, k)',
	'CREATE INDEX q_hash ON q USING hash (pad)', 'CREATE INDEX q_brin ON q USING brin (k)',
	'ANALYZE q', 'VACUUM q', 'VACUUM FREEZE q')
{
	$node->safe_psql('postgres', $statement);
	sees($old, $expected, $statement);
	check_clean($node, $statement);
}
$old->quit;

# an update that grows makes room on its page
fill();
($old, $expected) = held('REPEATABLE READ');
$node->safe_psql('postgres', 'DELETE FROM q WHERE id % 2 = 0');
my $tid = q{SELECT ctid FROM q WHERE id = 1001};
my $at = one($node, $tid);
$node->safe_psql('postgres', q{UPDATE q SET pad = repeat('w', 1500) WHERE id = 1001});
is(one($node, $tid), $at, 'a row that has grown is where it was');
cmp_ok(evicted(), '>', 5, '... in the place of others');
sees($old, $expected, 'a row that has grown');

# the setting off again
$node->safe_psql('postgres', $_) foreach ('ALTER SYSTEM SET inplace.evict_deleted_rows = off', 'SELECT pg_reload_conf()');
my $there = evicted();
$node->safe_psql('postgres', $_) foreach ('VACUUM q', q{INSERT INTO q SELECT i, -i FROM generate_series(900001, 901000) i});
is(evicted(), $there, 'with the setting off no row is evicted');
sees($old, $expected, 'with the setting off');
$old->quit;
$node->safe_psql('postgres', $_) foreach ('ALTER SYSTEM RESET inplace.evict_deleted_rows', 'SELECT pg_reload_conf()');

# a snapshot that has not locked the table
fill();
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
$before = contents($node, 'q');
turn_over();
cmp_ok(evicted(), '>', $rows * 0.7, 'rows are evicted');
foreach my $statement ('CREATE INDEX q_new_ours ON q USING inplace_btree (pad, k)', 'CREATE INDEX q_hash ON q USING hash (n)', 'REINDEX TABLE q',
	'VACUUM FULL q', 'CLUSTER q USING q_k')
{
	$node->safe_psql('postgres', $statement);
	check_clean($node, $statement);
}
$old->query_safe("SET $scans{$_}"), is($old->query_safe(q{SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, E'\n' ORDER BY t::text COLLATE "C")), '')
	FROM q t WHERE k > 0}), "$before", "the old snapshot, after a rewrite: $_") foreach ('sequential', 'index', 'bitmap');
$old->quit;

# the first rewrite of a table with evicted rows: in the order of a btree, with and without a
# sort, and of an index that has taken new keys since; and a GiST index, whose keys are of
# another type than the column
foreach my $statement ('CLUSTER q USING q_bt', 'SET enable_indexscan = off; CLUSTER q USING q_bt', 'CLUSTER q USING q_k', 'VACUUM FULL q',
	'CREATE INDEX q_gist ON q USING gist (p); REINDEX INDEX q_gist')
{
	fill();
	$node->safe_psql('postgres', 'CREATE INDEX q_bt ON q USING btree (k); ALTER TABLE q ADD p point; UPDATE q SET p = point(id, id); VACUUM q');
	$node->safe_psql('postgres', 'DROP INDEX q_bt') if $statement =~ /q_k/;
	$old = psql_session($node);
	$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
	$before = contents($node, 'q');
	$node->safe_psql('postgres', $_) foreach ('UPDATE q SET k = k + 500000 WHERE id % 5 = 0', 'DELETE FROM q WHERE id % 3 > 0', 'VACUUM q',
		q{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('y', 150) FROM generate_series(700001, 705000) i});
	cmp_ok(evicted(), '>', 1000, "rows are evicted before $statement");
	$node->safe_psql('postgres', $statement);
	check_clean($node, $statement);
	$old->query_safe("SET $scans{$_}"), is($old->query_safe(q{SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, E'\n' ORDER BY t::text COLLATE "C")), '')
		FROM q t WHERE k > 0}), $before, "the old snapshot, after $statement: $_") foreach ('sequential', 'index', 'bitmap');
	$old->quit;
}

# notes of a subtransaction that was rolled back, of a table that is gone then
$node->safe_psql('postgres', $_) foreach ('CREATE TABLE gone (id int, pad text) USING inplace',
	q{INSERT INTO gone SELECT i, repeat('x', 100) FROM generate_series(1, 1000) i});
($old) = held('REPEATABLE READ');
my $deleter = psql_session($node);
$deleter->query_safe($_) foreach ('BEGIN', 'SAVEPOINT s', 'DELETE FROM gone', 'ROLLBACK TO s');
$node->safe_psql('postgres', 'DROP TABLE gone');
$deleter->query_safe('COMMIT');
$node->safe_psql('postgres', 'CHECKPOINT');
$_->quit foreach ($deleter, $old);

# ---- transactions that write the undo, and are rolled back; savepoints; prepared ones

fill();
($old, $expected) = held('REPEATABLE READ');
$node->safe_psql('postgres', 'DELETE FROM q WHERE id <= 1500');
my $insert = q{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('y', 150) FROM generate_series(1, 700) i};
$node->safe_psql('postgres', $_) foreach ("BEGIN; $insert; ROLLBACK", "BEGIN; SAVEPOINT s; $insert; ROLLBACK TO s; SAVEPOINT t; $insert; COMMIT");
cmp_ok(evicted(), '>', 500, 'rows are evicted by who is rolled back');
sees($old, $expected, 'rolled back');
$node->safe_psql('postgres', $_) foreach ("BEGIN; DELETE FROM q WHERE id BETWEEN 1501 AND 2000; PREPARE TRANSACTION 'p'");
my $so_far = evicted();
$node->safe_psql('postgres', $_) foreach ('VACUUM q', q{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('z', 150) FROM generate_series(700001, 700400) i});
is(one($node, q{SELECT count(*) FROM q WHERE id BETWEEN 1501 AND 2000}), 500, 'a prepared delete');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
is(one($node, q{SELECT count(*) || ' ' || sum(length(pad)) FROM q WHERE id BETWEEN 1501 AND 2000}),
	one($node, q{SELECT count(*) || ' ' || sum(100 + i % 90 + CASE WHEN i % 7 = 0 THEN 6 ELSE 0 END) FROM generate_series(1501, 2000) i}), '... is rolled back');
sees($old, $expected, 'a prepared delete that was rolled back');
check_clean($node, 'rolled back');

# ---- undo is full: nothing is evicted, and nothing fails

$node->safe_psql('postgres', $_) foreach (q{ALTER SYSTEM SET inplace.undo_limit = '1MB'}, 'SELECT pg_reload_conf()');
$so_far = evicted();
$node->safe_psql('postgres', $_) foreach ('DELETE FROM q WHERE id BETWEEN 1501 AND 2500',
	q{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('z', 150) FROM generate_series(800001, 800900) i}, 'VACUUM q');
sees($old, $expected, 'undo is full');
$node->safe_psql('postgres', $_) foreach (q{ALTER SYSTEM RESET inplace.undo_limit}, 'SELECT pg_reload_conf()');
$old->quit;
check_clean($node, 'undo is full');

# ---- well before that eviction stops, so that changes do not fail because of it

fill();
ok(defined poll_value($node, q{SELECT sum(used_bytes) < 1000000 FROM inplace.undo}, 60), 'undo is empty');
settings(q{SET inplace.undo_limit = '4MB'});
($old, $expected) = held('REPEATABLE READ');
# (rows between two snapshots go, so each round has one)
my @others;
foreach (1 .. 8)
{
	turn_over();
	push @others, psql_session($node);
	$others[-1]->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
}
cmp_ok(evicted(), '>', 5000, 'near the limit of undo: rows were evicted');
is(($node->psql('postgres', q{UPDATE q SET pad = repeat('v', 100) WHERE id <= 2000}))[0], 0, '... and changes go on');
sees($old, $expected, 'near the limit of undo');
settings('RESET inplace.undo_limit');
$_->quit foreach ($old, @others);
check_clean($node, 'near the limit of undo');

# ---- VACUUM evicts nothing, and needs no xid for that it tells where room is to be had, with
# parallel workers, too; whatever holds the rows back

fill();
# (a snapshot that nobody knows of at first)
$old = psql_session($node);
$old->query_safe($_) foreach ('BEGIN', 'DECLARE c CURSOR FOR SELECT count(*), sum(length(pad)) FROM q');
$expected = one($node, q{SELECT count(*) || '|' || sum(length(pad)) FROM q});
# (in transactions too small to look for it)
$node->safe_psql('postgres', q{DO $$BEGIN
	FOR j IN 0 .. 49 LOOP DELETE FROM q WHERE id > j * 40 AND id <= j * 40 + 40; COMMIT; END LOOP; END$$});
# (no longer one that is about to end)
$node->safe_psql('postgres', 'SELECT pg_sleep(2.5)');
my $next_xid = q{SELECT pg_snapshot_xmax(pg_current_snapshot())};
my $next = one($node, $next_xid);
$before = pages();
$node->safe_psql('postgres', 'SET min_parallel_index_scan_size = 0; VACUUM (PARALLEL 2) q');
is(one($node, $next_xid), $next, 'VACUUM takes no xid');
is(evicted(), 0, '... and evicts no row');
$node->safe_psql('postgres', q{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('y', 100 + i % 90) FROM generate_series(1, 1500) i});
cmp_ok(evicted(), '>', 1500, 'inserts do, where it has said so');
cmp_ok(pages(), '<=', $before + 2, '... and the table does not grow');
is($old->query_safe('FETCH c'), $expected, '... which the snapshot does not see');
$old->quit;
ok(vacuumed(), '... in the end all are gone');
check_clean($node, 'VACUUM and inserts');

# the snapshot has ended before anybody wanted the room, and VACUUM has not come by yet

fill();
$before = pages();
($old) = held('REPEATABLE READ');
$node->safe_psql('postgres', 'DELETE FROM q WHERE id <= 2000');
$old->query_safe('COMMIT');
$old->quit;
$node->safe_psql('postgres', q{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('y', 100 + i % 90) FROM generate_series(1, 1500) i});
cmp_ok(pages(), '<=', $before + 2, 'room that the map has been told of is found after the snapshot, too');
check_clean($node, 'after the snapshot');

# ---- a commit does not make the map grow, which might fail

$node->safe_psql('postgres', q{CREATE TABLE unmapped USING inplace AS SELECT i, repeat('x', 100) AS pad FROM generate_series(1, 1000) i});
my $map = q{SELECT pg_relation_size('unmapped', 'fsm')};
is(one($node, $map), 0, 'a table without a map');
($old) = held('REPEATABLE READ');
$node->safe_psql('postgres', 'DELETE FROM unmapped');
is(one($node, $map), 0, '... has none after a delete');
$node->safe_psql('postgres', 'DROP TABLE unmapped');
$old->quit;

# ---- rows that are too short, or too few on their pages, are not worth it

$node->safe_psql('postgres', join(";\n", 'CREATE TABLE short (id int, k bigint, pad text) USING inplace',
	q{INSERT INTO short SELECT i, i, repeat('x', 16) FROM generate_series(1, 3000) i}));
fill();
($old, $expected) = held('REPEATABLE READ');
$node->safe_psql('postgres', $_) foreach ('DELETE FROM short WHERE id <= 2000', 'VACUUM short', q{INSERT INTO short SELECT i, i, repeat('x', 16) FROM generate_series(1, 1000) i},
	'DELETE FROM q WHERE id % 15 = 0', 'VACUUM q', q{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('y', 150) FROM generate_series(700001, 700400) i});
is(one($node, q{SELECT count(*) FROM generate_series(0, pg_relation_size('short') / 8192 - 1) b,
	LATERAL inplace.page_items('short', b) WHERE 'EVICTED' = ANY (flags)}), 0, 'rows that are short stay');
is(evicted(), 0, 'rows that are few stay');
$old->quit;

# ---- deletes of much in one transaction: all of the room is found, whoever looked for some before
# it had committed; and if there is none an insert does not look at all the pages

$node->safe_psql('postgres', join(";\n", 'CREATE TABLE much (id int, pad text) USING inplace', 'ALTER TABLE much ALTER pad SET STORAGE PLAIN',
	q{INSERT INTO much SELECT i, repeat('x', 3900) FROM generate_series(1, 9000) i}));
my $size = q{SELECT pg_relation_size('much') / 8192};
$before = one($node, $size);
($old) = held('REPEATABLE READ');
my $big = psql_session($node);
my $one_row = q{INSERT INTO much SELECT 0, repeat('y', 3900)};
$big->query_safe($_) foreach ('BEGIN', 'DELETE FROM much');
$node->safe_psql('postgres', $one_row);
$big->query_safe('COMMIT');
$big->quit;
settings(q{SET inplace.undo_limit = '64kB'});
sub looked_at
{
	my $plan = one($node, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF, FORMAT JSON) $one_row");
	my ($hit, $read) = map { $plan =~ /"Shared $_ Blocks": (\d+)/ ? $1 : die $plan } ('Hit', 'Read');
	return $hit + $read;
}
cmp_ok(looked_at(), '<', 200, 'an insert looks at few pages in vain');
settings('RESET inplace.undo_limit', 'SET inplace.evict_deleted_rows = off');
cmp_ok(looked_at(), '<', 200, '... with the setting off, too');
settings('RESET inplace.evict_deleted_rows');
$node->safe_psql('postgres', q{INSERT INTO much SELECT i, repeat('y', 3900) FROM generate_series(1, 8900) i});
cmp_ok(one($node, $size), '<=', $before + 50, 'the room of a large delete is found');
$node->safe_psql('postgres', 'DROP TABLE much, short');
$old->quit;

# ---- standbys: with the rows in the record, and left to the page

$node->backup('b');
my @standbys = map {
	my $standby = PostgreSQL::Test::Cluster->new("standby$_");
	$standby->init_from_backup($node, 'b', has_streaming => 1);
	$standby->append_conf('postgresql.conf', 'hot_standby_feedback = ' . ($_ ? 'on' : 'off'));
	$standby->start;
	$standby } (0, 1);

# a query of a standby with feedback is all that holds them
fill();
$node->wait_for_catchup($standbys[1]);
{
	my $before = pages();
	my ($reader, $seen) = held('REPEATABLE READ', $standbys[1]);
	ok(defined poll_value($node, 'SELECT count(backend_xmin) = 1 FROM pg_stat_replication', 60), 'the standby has told');
	# (that it stays is what tells it from the xmin of a standby without queries)
	$node->safe_psql('postgres', $_) foreach ('BEGIN; DELETE FROM q WHERE id <= 200; ROLLBACK', 'SELECT pg_sleep(2.5)');
	turn_over();
	cmp_ok(pages(), '<=', $before * 1.35, 'feedback: growth');
	cmp_ok(evicted(), '>', $rows * 0.6, 'feedback: rows are evicted');
	$node->wait_for_catchup($standbys[1]);
	sees($reader, $seen, 'feedback: the standby');
	$reader->quit;
}

foreach my $checking ('inplace', '')
{
	my $what = $checking ? 'whole records' : 'rows from the page';
	$node->safe_psql('postgres', $_) foreach ("ALTER SYSTEM SET wal_consistency_checking = '$checking'", 'SELECT pg_reload_conf()');
	fill();
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->wait_for_catchup($_) foreach @standbys;
	($old, $expected) = held('REPEATABLE READ');
	my @readers = map { (held('REPEATABLE READ', $_))[0] } @standbys;
	turn_over();
	$node->safe_psql('postgres', 'UPDATE q SET id = id + 1000000 WHERE id > 2900');
	$node->safe_psql('postgres', q{INSERT INTO q SELECT i, -i, NULL, NULL, NULL, repeat('z', 150) FROM generate_series(700001, 700100) i});
	cmp_ok(evicted(), '>', $rows * 0.7, "$what: rows are evicted");
	$node->wait_for_catchup($_) foreach @standbys;
	is(evicted($_), evicted(), "$what: on the standby") foreach @standbys;
	sees($old, $expected, "$what: the primary");
	sees($readers[$_], $expected, "$what: standby $_") foreach (0, 1);
	is(contents($_, 'q'), contents($node, 'q'), "$what: new snapshots on the standby") foreach @standbys;
	check_clean($_, "$what: standby") foreach @standbys;
	if ($checking)
	{
		$_->quit foreach (@readers);
		$old->quit;
		next;
	}

	# the standby is promoted, with a reader that goes on; a crash
	$before = contents($node, 'q');
	$standbys[1]->promote;
	sees($readers[1], $expected, 'after the promotion');
	$_->quit foreach (@readers, $old);
	check_clean($standbys[1], 'after the promotion');
	kill9_all($node);
	$node->start;
	is(contents($node, 'q'), $before, 'after a crash');
	check_clean($node, 'after a crash');
	$standbys[1]->safe_psql('postgres', 'VACUUM q');
	is(contents($standbys[1], 'q'), $before, 'the promoted standby');
}

# ---- a crash with evicted rows that are wanted by a prepared transaction's horizon

fill();
$node->safe_psql('postgres', q{BEGIN; CREATE TABLE other (i int) USING inplace; PREPARE TRANSACTION 'holds'});
($old, $expected) = held('REPEATABLE READ');
turn_over('CHECKPOINT');
sees($old, $expected, 'between checkpoints');
$old->quit;
$before = contents($node, 'q');
foreach my $round (1 .. 2)
{
	kill9_all($node);
	$node->start;
	is(contents($node, 'q'), $before, "crash $round");
	cmp_ok(evicted(), '>', $rows * 0.7, "crash $round: rows are still evicted");
	check_clean($node, "crash $round");
	$node->safe_psql('postgres', q{INSERT INTO q SELECT i, -i FROM generate_series(900001, 900010) i; DELETE FROM q WHERE id > 900000});
}
$node->safe_psql('postgres', $_) foreach (q{ROLLBACK PREPARED 'holds'}, 'VACUUM q');
ok(vacuumed(), 'all gone');
is(contents($node, 'q'), $before, 'at the end');

# ---- what the map had been told before a crash, of rows that a prepared transaction holds: no
# insert looks at all of it

$node->safe_psql('postgres', $_) foreach (q{CREATE TABLE much (id int, pad text) USING inplace}, 'ALTER TABLE much ALTER pad SET STORAGE PLAIN',
	q{INSERT INTO much SELECT i, repeat('x', 3900) FROM generate_series(1, 4000) i},
	q{BEGIN; CREATE TABLE other (i int) USING inplace; PREPARE TRANSACTION 'holds'}, 'DELETE FROM much',
	'DO $$ BEGIN FOR i IN 1 .. 1100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$', 'VACUUM much');
settings(q{SET inplace.evict_deleted_rows = off});
$node->safe_psql('postgres', 'CHECKPOINT');
kill9_all($node);
$node->start;
ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'inplace undo launcher' AND wait_event IS NOT NULL}),
	'the launcher has looked');
cmp_ok(looked_at(), '<', 200, 'after a crash an insert looks at few pages in vain');
settings('RESET inplace.evict_deleted_rows');
$node->safe_psql('postgres', $_) foreach (q{ROLLBACK PREPARED 'holds'}, 'DROP TABLE much');
check_clean($node, 'at the end');
check_log($node) if defined &check_log;
done_testing();
