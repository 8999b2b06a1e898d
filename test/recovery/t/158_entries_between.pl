# Index entries that lead only to versions between a held snapshot and all others: they go
# when their page is full, and in VACUUM.  Held snapshots find by the index what they see,
# standbys wait or are told, and serializable transactions keep the entries.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 1, conf => q{
autovacuum = off
wal_consistency_checking = all
inplace.undo_worker_delay = 50
hot_standby_feedback = off
max_standby_streaming_delay = -1
});
$node->start;
$node->safe_psql('postgres', $_) foreach ('CREATE EXTENSION inplace', q{
CREATE PROCEDURE change(rounds int, step int, back boolean) LANGUAGE plpgsql AS $$
BEGIN
	FOR r IN 1 .. rounds LOOP
		FOR i IN 1 .. (SELECT max(id) FROM t) BY step LOOP
			UPDATE t SET at = nextval('s') WHERE id >= i AND id < i + step;
			IF back AND i % 7 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
		END LOOP;
	END LOOP;
END $$});

sub fill
{
	my ($rows) = @_;
	$node->safe_psql('postgres', join(";\n",
		'DROP TABLE IF EXISTS t', 'DROP SEQUENCE IF EXISTS s', 'CREATE SEQUENCE s START 1000000',
		'CREATE TABLE t (id int PRIMARY KEY, at bigint) USING inplace',
		"INSERT INTO t SELECT i, i FROM generate_series(1, $rows) i",
		'CREATE INDEX t_at ON t (at)', 'VACUUM ANALYZE t'));
}

sub pages { return one($node, q{SELECT pg_relation_size('t_at') / 8192}) }
sub change { $node->safe_psql('postgres', "CALL change($_[0], $_[1], " . ($_[2] ? 'true' : 'false') . ')') }

my %scans = (
	sequential => 'enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SET enable_seqscan = on',
	index => 'enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = on',
	bitmap => 'enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = on');
sub sees
{
	my ($session, $rows, $what) = @_;
	my %seen;
	foreach my $scan (sort keys %scans)
	{
		$session->query_safe("SET $scans{$scan}");
		$seen{$scan} = $session->query_safe(q{SELECT count(*), sum(id * at), sum(id * id * at) FROM t WHERE at > -5}) =~ s/\s+$//r;
	}
	like($seen{sequential}, qr/^$rows\|/, "$what: all rows");
	is($seen{$_}, $seen{sequential}, "$what: by $_ scan") foreach ('index', 'bitmap');
	return $seen{sequential};
}

sub hold
{
	my ($level, $on) = @_;
	my $session = psql_session($on // $node);
	$session->query_safe($_) foreach ("BEGIN ISOLATION LEVEL $level", 'SELECT count(*) FROM t');
	return $session;
}

# ---- few rows, changed very often

fill(100);
my $old = hold('REPEATABLE READ');
my $before = sees($old, 100, 'first');
change(30, 1);
my $second = hold('REPEATABLE READ');
my $before_second = sees($second, 100, 'second');
change(100, 1, 1);
# (without this some 13,000 entries, 400 a page)
cmp_ok(pages(), '<=', 14, 'the index stops growing');
my $size = pages();
change(60, 1, 1);
cmp_ok(pages(), '<=', $size + 1, '... for good');
is(sees($old, 100, 'first, afterwards'), $before, 'the first snapshot sees what it saw');
is(sees($second, 100, 'second, afterwards'), $before_second, 'the second, too');
check_clean($node, 'few rows');

# a cursor whose statement is older than others of its session
my $cursor = hold('READ COMMITTED');
$cursor->query_safe($_) foreach (
	'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off',
	'DECLARE c CURSOR FOR SELECT id FROM t WHERE at > 0 ORDER BY at', 'FETCH 1 FROM c');
change(40, 1);
$cursor->query_safe('SELECT count(*) FROM t');
change(40, 1);
is(scalar(split /\n/, $cursor->query_safe('FETCH ALL FROM c')), 99, 'a cursor finds all its rows');
$_->quit foreach ($old, $second, $cursor);

# ---- a replacer that is in doubt

fill(100);
$old = hold('REPEATABLE READ');
change(5, 1);
my $open = psql_session($node);
$open->query_safe($_) foreach ('BEGIN', 'UPDATE t SET at = -at - 10', 'SAVEPOINT a', q{UPDATE t SET at = nextval('s')},
	'ROLLBACK TO a', q{UPDATE t SET at = nextval('s')});
$node->safe_psql('postgres', q{INSERT INTO t SELECT 1000 + i, nextval('s') FROM generate_series(1, 3000) i});
use_up_xids($node, 100);
$node->safe_psql('postgres', q{INSERT INTO t SELECT 10000 + i, nextval('s') FROM generate_series(1, 3000) i; VACUUM t});
sees($old, 100, 'beside a change in progress');
my $new = hold('REPEATABLE READ');
sees($new, 6100, 'the newest, beside it');
$open->query_safe('ROLLBACK');
sees($new, 6100, 'the newest, after its rollback');
check_clean($node, 'in doubt');
$_->quit foreach ($old, $new, $open);

# ---- many rows: VACUUM

fill(5000);
$old = hold('REPEATABLE READ');
$before = sees($old, 5000, 'before VACUUM');
change(2, 10);
$node->safe_psql('postgres', 'VACUUM t');
my $entries = sub { one($node, q{SELECT count(*) FROM generate_series(1, pg_relation_size('t_at') / 8192 - 1) b, LATERAL bt_page_items(get_raw_page('t_at', b))}) };
$node->safe_psql('postgres', 'CREATE EXTENSION pageinspect');
change(4, 10);
$size = pages();
$node->safe_psql('postgres', 'VACUUM t');
cmp_ok($entries->(), '<=', 2.5 * 5000, 'VACUUM leaves the entries of what somebody sees');
is(sees($old, 5000, 'after VACUUM'), $before, 'the snapshot sees what it saw');
foreach my $round (1 .. 5)
{
	change(2, 10);
	$node->safe_psql('postgres', 'VACUUM t');
}
cmp_ok(pages(), '<=', 1.4 * $size, 'the index stops growing with VACUUM');
is(sees($old, 5000, 'at the end'), $before, 'the snapshot sees what it saw');
check_clean($node, 'VACUUM');
$old->quit;

# ---- a serializable transaction would have come to the row by the entry

fill(100);
my $reader = hold('SERIALIZABLE');
$reader->query_safe('CREATE TEMP TABLE mine (n bigint)');
my $writer = psql_session($node);
$writer->query_safe($_) foreach ('BEGIN ISOLATION LEVEL SERIALIZABLE', 'SELECT count(*) FROM t', 'UPDATE t SET at = 500 WHERE id = 50', 'COMMIT');
change(60, 1);
$node->safe_psql('postgres', 'VACUUM t');
cmp_ok(pages(), '>=', 15, 'the entries of what came after it stay');
is(sees($reader, 100, 'serializable'), one($node, q{SELECT 100 || '|' || sum(i * i) || '|' || sum(i * i * i) FROM generate_series(1, 100) i}),
	'it sees what it saw');
$_->quit foreach ($reader, $writer);

# ---- a standby

fill(100);
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
$old = hold('REPEATABLE READ');
change(10, 1);
$node->wait_for_catchup($standby);
my $there = hold('REPEATABLE READ', $standby);
$before = sees($there, 100, 'standby');
# (no versions are dropped yet, of which standbys are told anyway)
change(10, 1);
$node->safe_psql('postgres', 'VACUUM t');
# (replay waits as a rule; if not, it has come there)
my $end = $node->lsn('insert');
for (1 .. 20)
{
	last if one($standby, "SELECT pg_last_wal_replay_lsn() >= '$end'") eq 't';
	select(undef, undef, undef, 0.1);
}
is(sees($there, 100, 'standby, after VACUUM'), $before, 'entries go after those who need them');
change(60, 1, 1);
is(sees($there, 100, 'standby, afterwards'), $before, 'a query of the standby sees what it saw: replay waits for it');
$there->quit;
$node->wait_for_catchup($standby);
$there = hold('REPEATABLE READ', $standby);
$new = hold('REPEATABLE READ');
is(sees($there, 100, 'standby, later'), sees($new, 100, 'primary'), 'both see the same');
$_->quit foreach ($there, $new, $old);
$node->wait_for_catchup($standby);
check_log($_) foreach ($node, $standby);
$standby->stop;
$node->stop;

done_testing();
