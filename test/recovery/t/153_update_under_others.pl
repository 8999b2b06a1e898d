# Columns under GIN, hash and GiST indexes are updated in place: what a crash leaves
# behind, and what a standby does for a query that needs what VACUUM takes out.

use strict;
use warnings;

# a session that the standby ends must not end the test
$SIG{PIPE} = 'IGNORE';
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
max_standby_streaming_delay = '0'
inplace.update_under_other_indexes = on
inplace.former_keys_limit = 0
});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, a int[], h int, p point);
	INSERT INTO t SELECT i, ARRAY[i % 20, 20 + i % 7], i % 20, point(i % 20, i % 30) FROM generate_series(1, 4000) i;
	CREATE INDEX t_a ON t USING gin (a);
	CREATE INDEX t_slow ON t USING gin (a) WITH (fastupdate = off);
	CREATE INDEX t_h ON t USING hash (h);
	CREATE INDEX t_p ON t USING gist (p);
	CREATE VIEW stale AS SELECT count(*) FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b,
		LATERAL inplace.page_items('t', b) WHERE 'STALE' = ANY (flags);
	-- the GiST index is marked before there is a standby
	UPDATE t SET p = p + point(1, 0) WHERE id = 1;
	CREATE TABLE places AS SELECT id, ctid AS place FROM t;
	VACUUM (FREEZE) t;
});
$primary->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('s1', true)});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 's1'\nhot_standby_feedback = off\n");
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

my @conditions = ('a @> ARRAY[3]', 'a @> ARRAY[5, 22]', 'a && ARRAY[1, 26]', 'h = 3', 'h = 27', q{p <@ box '(2,3),(9,9)'}, q{p ~= point '(3,3)'});
my $sums = join ' UNION ALL ', map { "SELECT $_ AS n, count(*), sum(id) FROM t WHERE $conditions[$_]" } 0 .. $#conditions;
$sums .= ' ORDER BY n';
my $seq = "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $sums";

sub same_answers
{
	my ($node, $what) = @_;
	my $want = $node->safe_psql('postgres', $seq);
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_indexscan = off; $sums"), $want, "$what: bitmaps");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $sums"), $want, "$what: plain scans");
	is($node->safe_psql('postgres', q{SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
			SELECT md5(string_agg(d::text, ',')) FROM (SELECT p <-> point '(4,5)' AS d FROM t ORDER BY p <-> point '(4,5)') x}),
		$node->safe_psql('postgres', q{SELECT md5(string_agg(d::text, ',' ORDER BY d)) FROM (SELECT p <-> point '(4,5)' AS d FROM t) x}),
		"$what: by distance");
}

my $changes = q{
	UPDATE t SET a = ARRAY[3, 20 + id % 7, id % 5], h = (h + 7) % 30, p = p + point(1, 0) WHERE id % 3 = 0;
	UPDATE t SET a = a[1:2], h = (h + 1) % 30, p = point(3, 3) WHERE id % 5 = 0;
	UPDATE t SET p = point(id % 20, id % 30) WHERE id % 5 = 0;};

# A query of the standby from before the update that needs an entry, and one
# from after it that has read an entry: neither is told anything wrong.
for my $when ('before the update', 'after the update')
{
	$primary->safe_psql('postgres', $changes) if $when eq 'after the update';
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	my $want = $standby->safe_psql('postgres', $seq);
	my $session = psql_session($standby);
	$session->query_safe(q{SET enable_seqscan = off; SET cursor_tuple_fraction = 1;
		BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM places;});
	$primary->safe_psql('postgres', $changes) if $when eq 'before the update';
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	my ($out) = eval { $session->query("SELECT 'answer', x.* FROM ($sums) x") };
	$want =~ s/^/answer|/mg;
	ok(!defined $out || $out !~ /answer/ || $out eq $want, "$when: the standby's old snapshot gets its own answer, or none")
		or diag("$out instead of $want");
	eval { $session->quit };
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
	is($primary->safe_psql('postgres', 'SELECT * FROM stale'), '0', "$when: no row is marked any more");
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is($standby->safe_psql('postgres', 'SELECT * FROM stale'), '0', "$when: nor on the standby");
	same_answers($standby, "$when, standby");
	same_answers($primary, "$when, primary");
}

# With stale entries, the standby.
$primary->safe_psql('postgres', $changes);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
same_answers($standby, 'stale entries, standby');
is($primary->safe_psql('postgres', 'SELECT count(*) FROM t JOIN places USING (id) WHERE t.ctid <> place'), '0', 'no row has moved');

# Crash after each of the steps.
my $n = 0;
for my $steps (['VACUUM (INDEX_CLEANUP on) t'], ['VACUUM (INDEX_CLEANUP on) t', 'VACUUM t'],
	['VACUUM (INDEX_CLEANUP on) t', 'UPDATE t SET h = h + 1, a = a || 3 WHERE id % 2 = 0', 'VACUUM t'],
	['CHECKPOINT', 'VACUUM (INDEX_CLEANUP on) t', 'CHECKPOINT', q{DO 'BEGIN UPDATE t SET h = 20, a = ARRAY[3], p = point(3, 3); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END'}, 'VACUUM t'])
{
	$n++;
	$primary->safe_psql('postgres', 'UPDATE t SET a = ARRAY[(id * 7 + 3) % 20, 20 + id % 7], h = (h * 7 + 3) % 30, p = point(id % 17, id % 13)');
	$primary->safe_psql('postgres', $_) for @$steps;
	my $before = $primary->safe_psql('postgres', $seq);
	crash_and_restart($primary);
	is($primary->safe_psql('postgres', $seq), $before, "crash $n: contents");
	same_answers($primary, "crash $n");
	$primary->safe_psql('postgres', 'UPDATE t SET p = p + point(100 + id, 0)');
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
	same_answers($primary, "crash $n, VACUUM");
	$primary->safe_psql('postgres', 'VACUUM t');
	same_answers($primary, "crash $n, VACUUM again");
	is($primary->safe_psql('postgres', 'SELECT * FROM stale'), '0', "crash $n: no row is marked any more");
	is($primary->safe_psql('postgres', q{SELECT count(*) FROM inplace.check('t')}), '0', "crash $n: check");
}

# A standby's scan that began before the index is marked has not noted what it has returned.  While a
# standby is connected the index waits for its feedback.
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nwal_receiver_status_interval = '1s'\n");
$standby->reload;
$primary->safe_psql('postgres', q{
	CREATE TABLE f (id int PRIMARY KEY, p point) WITH (fillfactor = 40);
	CREATE INDEX f_p ON f USING gist (p);
	INSERT INTO f SELECT i, point(i, 0) FROM generate_series(1, 2000) i});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
sub moves
{
	return $primary->safe_psql('postgres', q{
		SELECT ctid AS old FROM f WHERE id = 1 \gset
		UPDATE f SET p = p + point(3000, 0) WHERE id = 1 RETURNING ctid <> :'old'::tid}) eq 't' ? 1 : 0;
}
my $reader = psql_session($standby);
$reader->query_safe(q{SET enable_seqscan = off; SET enable_bitmapscan = off; SET cursor_tuple_fraction = 0.001; BEGIN;
	DECLARE c CURSOR FOR SELECT id FROM f WHERE p >> point(0, 0); MOVE 5 FROM c;});
my $xmin = $standby->safe_psql('postgres', q{SELECT min(backend_xmin::text::bigint) FROM pg_stat_activity WHERE state = 'idle in transaction'});
ok(defined poll_value($primary, "SELECT xmin::text = '$xmin' FROM pg_replication_slots WHERE slot_name = 's1'", 60), 'the standby tells of its snapshot');
is(moves(), 1, 'rows move beside an older scan of the standby') for 1 .. 2;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($reader->query_safe('FETCH ALL FROM c') =~ tr/\n// + 1, 1995, 'the scan goes on, and returns each row once');
$reader->query_safe('COMMIT');
my $moves = 1;
for (1 .. 100)
{
	last unless $moves = moves();
	usleep(200_000);
}
is($moves, 0, 'then rows are updated in place');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM places;');
is(moves(), 0, 'also beside a snapshot of the standby that is younger than the mark');
$reader->quit;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

# The standby as a primary.
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$standby->promote;
same_answers($standby, 'promoted');
$standby->safe_psql('postgres', $changes);
$standby->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
same_answers($standby, 'promoted, VACUUM');



# The setting off: what was changed before is read as it was, swept, and rows move.
$standby->safe_psql('postgres', $changes);
$standby->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = off');
$standby->restart;
same_answers($standby, 'off');
$standby->safe_psql('postgres', 'TRUNCATE places; INSERT INTO places SELECT id, ctid FROM t');
$standby->safe_psql('postgres', 'UPDATE t SET a = ARRAY[3] WHERE id = 7; UPDATE t SET h = 12345 WHERE id = 8; UPDATE t SET p = point(3, 3.5) WHERE id = 9');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t JOIN places USING (id) WHERE t.ctid <> place'), '3', 'off: rows move');
same_answers($standby, 'off, moved');
$standby->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
same_answers($standby, 'off, VACUUM');
$standby->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
is($standby->safe_psql('postgres', 'SELECT * FROM stale'), '0', 'off: no row is marked any more');
same_answers($standby, 'off, VACUUM again');
check_clean($_, $_->name) for ($standby, $primary);
check_log($_) for ($standby, $primary);
done_testing();
