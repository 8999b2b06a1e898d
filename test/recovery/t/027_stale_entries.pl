# VACUUM takes stale index entries out and clears the mark of their rows: what of
# that a crash leaves behind, and what a standby does for a query that has read
# the entries, or needs the versions that are cut off.

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
});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, k int, s text);
	CREATE INDEX t_k ON t USING inplace_btree (k);
	CREATE INDEX t_id ON t USING inplace_btree (id) INCLUDE (k);
	INSERT INTO t SELECT i, i % 100, 'x' FROM generate_series(1, 5000) i;
	CREATE VIEW stale AS SELECT count(*) FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b,
		LATERAL inplace.page_items('t', b) WHERE 'STALE' = ANY (flags);
	VACUUM (FREEZE) t;
});
$primary->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('s1', true)});
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 's1'\nhot_standby_feedback = off\n");
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

my $q = q{SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(k), sum(id) FROM t WHERE k BETWEEN 10 AND 60};
my $seq = q{SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(k), sum(id) FROM t WHERE k BETWEEN 10 AND 60};

sub same_answers
{
	my ($node, $what) = @_;
	is($node->safe_psql('postgres', $q), $node->safe_psql('postgres', $seq), "$what: index and table agree");
	is($node->safe_psql('postgres', q{SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT sum(k * id) FROM (SELECT id, k FROM t WHERE id > 0 OFFSET 0) x}),
		$node->safe_psql('postgres', 'SELECT sum(k * id) FROM t'), "$what: so do INCLUDE columns");
}

# A query of the standby from before the update that needs an entry, and one
# from after it that has read an entry: neither is told anything wrong.
my $changes = q{UPDATE t SET k = k + 50 WHERE id % 3 = 0; UPDATE t SET k = k - 20 WHERE id % 5 = 0;};
for my $when ('before the update', 'after the update')
{
	$primary->safe_psql('postgres', $changes) if $when eq 'after the update';
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	my $want = $standby->safe_psql('postgres', $seq);
	my $session = psql_session($standby);
	$session->query_safe(q{SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		DECLARE c CURSOR FOR SELECT k, id FROM t WHERE k BETWEEN 10 AND 60 ORDER BY k; FETCH 5 FROM c;});
	$primary->safe_psql('postgres', $changes) if $when eq 'before the update';
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
	is($primary->safe_psql('postgres', 'SELECT * FROM stale'), '0', "$when: no row is marked any more");
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	my ($out) = eval { $session->query(q{SELECT 'answer ' || count(*) || '|' || sum(k) || '|' || sum(id) FROM t WHERE k BETWEEN 10 AND 60}) };
	ok(!defined $out || $out !~ /answer/ || $out =~ /answer \Q$want\E/, "$when: the standby's old snapshot gets its own answer, or none")
		or diag("$out instead of $want");
	eval { $session->quit };
	is($standby->safe_psql('postgres', 'SELECT * FROM stale'), '0', "$when: nor on the standby");
	same_answers($standby, "$when, standby");
	same_answers($primary, "$when, primary");
}

# Crash after each of the steps.
my $n = 0;
for my $steps (['VACUUM (INDEX_CLEANUP on) t'], ['VACUUM (INDEX_CLEANUP on) t', 'VACUUM t'],
	['VACUUM (INDEX_CLEANUP on) t', 'UPDATE t SET k = k + 1 WHERE id % 2 = 0', 'VACUUM t'],
	['CHECKPOINT', 'VACUUM (INDEX_CLEANUP on) t', 'CHECKPOINT', q{DO 'BEGIN UPDATE t SET k = 20; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END'}, 'VACUUM t'])
{
	$n++;
	$primary->safe_psql('postgres', 'UPDATE t SET k = (k * 7 + 3) % 100');
	$primary->safe_psql('postgres', $_) for @$steps;
	my $before = contents($primary, 't');
	crash_and_restart($primary);
	is(contents($primary, 't'), $before, "crash $n: contents");
	same_answers($primary, "crash $n");
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
	same_answers($primary, "crash $n, VACUUM");
	$primary->safe_psql('postgres', 'VACUUM t');
	same_answers($primary, "crash $n, VACUUM again");
	is($primary->safe_psql('postgres', 'SELECT * FROM stale'), '0', "crash $n: no row is marked any more");
	is($primary->safe_psql('postgres', q{SELECT count(*) FROM inplace.check('t')}), '0', "crash $n: check");
}

# Marks that go and marks that come on a page are one record; and those that are to
# go do so although the few rows that come are not worth going through the indexes.
sub records_by_page
{
	my ($from, $to) = @_;
	my ($file) = one($primary, q{SELECT pg_relation_filepath('t')}) =~ m{/(\d+)$};
	my ($out, $err) = run_command([ 'pg_waldump', '-p', $primary->data_dir . '/pg_wal', '-s', $from, '-e', $to ]);
	my %n;
	# (a hint may have made an image of a page, as a record of the server's)
	$n{$1}++ while $out =~ m{^rmgr: custom.* rel \d+/\d+/$file (?:fork main )?blk (\d+)}gm;
	return \%n;
}
my $marked = q{SELECT count(*) FILTER (WHERE 'STALE' = ANY (flags)) || ' ' || count(*) FILTER (WHERE 'UNCHANGED' = ANY (flags))
	FROM generate_series(0, pg_relation_size('t') / 8192 - 1) b, LATERAL inplace.page_items('t', b)};
$primary->safe_psql('postgres', $_) for 'UPDATE t SET k = k + 1', 'VACUUM (INDEX_CLEANUP on) t',
	'UPDATE t SET k = k - 1 WHERE id % 5 = 0', 'CHECKPOINT';
is(one($primary, $marked), '5000 4000', 'all rows are marked, a fifth of them has been changed since');
$primary->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_xmin IS NOT NULL});
my $from = $primary->lsn('insert');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
my $records = records_by_page($from, $primary->lsn('insert'));
is(one($primary, $marked), '1000 1000', 'those that were swept are free, the others are swept');
is(scalar keys %$records, one($primary, q{SELECT pg_relation_size('t') / 8192}), 'all pages were changed');
is_deeply([ grep { $records->{$_} != 1 } keys %$records ], [], 'by one record each');
$primary->safe_psql('postgres', 'UPDATE t SET k = k + 1 WHERE id = 1');
$primary->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_xmin IS NOT NULL});
$primary->safe_psql('postgres', 'VACUUM t');
is(one($primary, $marked), '1 1', 'they are free of it too, but for one row for which no index is gone through');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', $marked) =~ s/ .*//r, '1', 'so it is on the standby');
same_answers($primary, 'marks come and go');
same_answers($standby, 'marks come and go, standby');
$primary->safe_psql('postgres', $_) for 'VACUUM (INDEX_CLEANUP on) t', 'VACUUM t';

# A promoted standby goes on with what it has been told.
$primary->safe_psql('postgres', 'UPDATE t SET k = k + 1');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) t');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$standby->promote;
$standby->safe_psql('postgres', 'VACUUM t');
same_answers($standby, 'promoted');
is($standby->safe_psql('postgres', 'SELECT * FROM stale'), '0', 'promoted: no row is marked any more');
check_clean($standby, 'standby');
check_clean($primary, 'primary');
check_log($primary);
check_log($standby);
done_testing();
