# A leaf page of a GiST index that is full is rid of entries of former keys before it would be
# split: the index stays small without VACUUM, and nobody misses an entry that is needed.

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
	CREATE TABLE t (id int PRIMARY KEY, n int, p point) WITH (fillfactor = 80);
	INSERT INTO t SELECT i, 0, point((i * 7919) % 1000, (i * 104729) % 997) FROM generate_series(1, 3000) i;
	CREATE INDEX t_p ON t USING gist (p);
	-- the index has its mark from here on
	UPDATE t SET p = p + point(1, 0) WHERE id = 1;
	VACUUM (FREEZE) t;
});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = off\n");
$standby->start;

my $sum = q{SELECT count(*), sum(id), md5(string_agg(id || ' ' || p::text, ',' ORDER BY id)) FROM t WHERE p <@ box '(-9,-9),(600,600)'};
my %scan = (
	table => 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET enable_seqscan = on;',
	bitmaps => 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = on;',
	plain => 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = on;');
my $points = q{SELECT count(*), md5(string_agg(p::text, ',' ORDER BY p::text)) FROM t WHERE p <@ box '(-9,-9),(600,600)'};

sub same_answers
{
	my ($node, $what) = @_;
	my $want = $node->safe_psql('postgres', "$scan{table} $sum");
	is($node->safe_psql('postgres', "$scan{$_} $sum"), $want, "$what: $_") foreach 'bitmaps', 'plain';
	is($node->safe_psql('postgres', "$scan{plain} SET enable_indexonlyscan = on; $points"),
		$node->safe_psql('postgres', "$scan{table} $points"), "$what: index only");
	return $want;
}

sub size { return $primary->safe_psql('postgres', q{SELECT pg_relation_size('t_p')}) }

my $script = pgbench_script($primary, 'move', q{
\set id random(1, 3000)
\set roll random(1, 10)
BEGIN;
UPDATE t SET p = p + point(random() * 4 - 2, random() * 4 - 2) WHERE id = :id;
\if :roll = 1
ROLLBACK;
\elif :roll = 2
SAVEPOINT s;
UPDATE t SET p = p + point(1, 1) WHERE id = :id;
ROLLBACK TO s;
COMMIT;
\else
COMMIT;
\endif
});

sub move
{
	my ($n) = @_;
	my $out = unchecked { end_pgbench(start_pgbench($primary, '-c', 4, '-t', $n / 4, '-f', $script)) };
	unlike($out, qr/ERROR|aborted/, "$n updates");
}

my $size = size();
move(12000);
# (with all former keys it would be five times as large)
cmp_ok(size(), '<=', 2.5 * $size, 'few pages of the index have been split without VACUUM');
same_answers($primary, 'after updates');

# A snapshot that needs older versions.
my $session = psql_session($primary);
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $seen = $session->query_safe("$scan{table} $sum");
move(6000);
is($session->query_safe("$scan{$_} $sum"), $seen, "an old snapshot: $_") foreach 'table', 'bitmaps', 'plain';
same_answers($primary, 'beside an old snapshot');
$session->query_safe('COMMIT');
$session->quit;

# One of the standby, for which the primary keeps nothing.
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
same_answers($standby, 'standby');
$session = psql_session($standby);
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$seen = $session->query_safe("$scan{table} $sum");
move(6000);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my ($out) = eval { $session->query("$scan{plain} SELECT 'answer', x.* FROM ($sum) x") };
ok(!defined $out || $out !~ /answer/ || $out eq "answer|$seen", "the standby's old snapshot gets its own answer, or none")
	or diag("$out instead of $seen");
eval { $session->quit };
my $want = same_answers($primary, 'primary');
is(same_answers($standby, 'standby, later'), $want, 'the standby has the same rows');

# VACUUM beside it, a crash, and VACUUM once more.
my $load = start_pgbench($primary, '-c', 3, '-T', 4, '-f', $script);
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t') foreach 1 .. 5;
unlike(end_pgbench($load), qr/ERROR|aborted/, 'updates beside VACUUM');
$want = same_answers($primary, 'beside VACUUM');
crash_and_restart($primary);
is(same_answers($primary, 'crash'), $want, 'contents after a crash');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t') foreach 1 .. 2;
is(same_answers($primary, 'VACUUM'), $want, 'contents after VACUUM');
is($primary->safe_psql('postgres', q{SELECT count(*) FROM inplace.check('t')}), '0', 'check');
is($primary->safe_psql('postgres', q{SELECT count(*) FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b,
	LATERAL inplace.page_items('t', b) WHERE 'STALE' = ANY (flags)}), '0', 'no row is marked any more');

done_testing();
