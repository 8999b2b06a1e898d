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
	my $query = 'SELECT count(*), sum(id * at), sum(id * id * at) FROM t WHERE at > -5';
	foreach my $scan (sort keys %scans)
	{
		$session->query_safe("SET $scans{$scan}");
		$seen{$scan} = $session->query_safe($query) =~ s/\s+$//r;
		like($session->query_safe("EXPLAIN $query"), qr/on t_at|using t_at/, "$what: $scan scan by the index") if $scan ne 'sequential';
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

# ---- a replacer that is in doubt: entries of the same pages come from another session

foreach my $how ('COMMIT', 'ROLLBACK', 'ROLLBACK TO a')
{
	fill(100);
	$old = hold('REPEATABLE READ');
	change(5, 1);
	my $open = psql_session($node);
	$open->query_safe($_) foreach ('BEGIN', 'UPDATE t SET at = -at - 10 WHERE id <= 50', 'SAVEPOINT a',
		q{UPDATE t SET at = nextval('s') WHERE id <= 50}, q{UPDATE t SET at = nextval('s') WHERE id <= 30});
	$node->safe_psql('postgres', q{DO $$ BEGIN FOR i IN 1 .. 30 LOOP UPDATE t SET at = nextval('s') WHERE id > 50; COMMIT; END LOOP; END $$});
	$node->safe_psql('postgres', 'VACUUM t');
	sees($old, 100, "$how: beside a change in progress");
	my $new = hold('REPEATABLE READ');
	my $seen = sees($new, 100, "$how: the newest, beside it");
	$open->query_safe($how);
	$node->safe_psql('postgres', q{DO $$ BEGIN FOR i IN 1 .. 30 LOOP UPDATE t SET at = nextval('s') WHERE id > 50; COMMIT; END LOOP; END $$});
	is(sees($new, 100, "$how: the newest, after it"), $seen, "$how: the snapshot sees what it saw");
	$open->query_safe('COMMIT') if $how eq 'ROLLBACK TO a';
	sees($old, 100, "$how: the oldest, after it");
	check_clean($node, $how);
	$_->quit foreach ($old, $new, $open);
}

# ---- keys that go and come again, NULL, INCLUDE, with predicates and expressions

srand(seed());
$node->safe_psql('postgres', join(";\n", 'DROP TABLE t', 'CREATE TABLE t (id int PRIMARY KEY, at bigint, b int, c text) USING inplace',
	q{INSERT INTO t SELECT i, i, i % 9, 'c' || i FROM generate_series(1, 60) i},
	'CREATE INDEX t_at ON t (at) INCLUDE (c)', 'CREATE INDEX t_b ON t (b)', 'CREATE UNIQUE INDEX t_c ON t (c)',
	'CREATE INDEX t_part ON t (at) WHERE b > 4', 'CREATE INDEX t_expr ON t ((at % 10))', 'VACUUM ANALYZE t'));
sub digests
{
	my ($session) = @_;
	my @digests;
	my @conditions = ('at < 1000000000', 'at IS NULL', 'b >= 0', 'b IS NULL', q{c >= ''}, 'at > 20 AND b > 4', 'at % 10 = 3');
	foreach my $on ('off', 'on')
	{
		my $other = $on eq 'on' ? 'off' : 'on';
		$session->query_safe("SET enable_seqscan = $other; SET enable_indexscan = $on; SET enable_bitmapscan = off; SET enable_indexonlyscan = $on");
		push @digests, join(' ', map { $session->query_safe("SELECT count(*), sum(id), sum(id * at), sum(b), md5(string_agg(c, ',' ORDER BY c)) FROM t WHERE $_") =~ s/\s+$//r } @conditions);
	}
	return @digests;
}
my @held;
my $differences = 0;
foreach my $round (1 .. 60)
{
	if (@held < 4 && rand() < 0.3)
	{
		my $session = hold('REPEATABLE READ');
		push @held, [$session, (digests($session))[0]];
	}
	my $end = rand() < 0.2 ? 'ROLLBACK' : 'COMMIT';
	my @changes = map { my $id = 1 + int(rand(60)); (
		"UPDATE t SET at = @{[ int(rand(12)) ]} WHERE id % 3 = $id % 3",
		"UPDATE t SET at = NULL, b = b + 1 WHERE id = $id", "UPDATE t SET b = nullif(@{[ int(rand(9)) ]}, 0) WHERE id % 5 = $id % 5",
		"UPDATE t SET c = 'd' || id || '@{[ int(rand(5)) ]}' WHERE id = $id", "UPDATE t SET at = id * 100 + @{[ int(rand(500)) ]} WHERE id % 2 = $id % 2")[int(rand(5))] } 1 .. 4;
	$node->safe_psql('postgres', join(";\n", 'BEGIN', $changes[0], 'SAVEPOINT a', $changes[1],
		rand() < 0.3 ? 'ROLLBACK TO a' : 'RELEASE a', @changes[2, 3], $end)) for (1 .. 4);
	$node->safe_psql('postgres', 'VACUUM t') if rand() < 0.3;
	next if $round % 5;
	foreach my $held (@held)
	{
		my ($by_index, $by_row) = digests($held->[0]);
		$differences++ if $by_index ne $by_row || $by_row ne $held->[1];
	}
	(shift @held)->[0]->quit if @held && rand() < 0.3;
}
is($differences, 0, 'held snapshots find the same rows by all indexes');
check_clean($node, 'all kinds of indexes');
$_->[0]->quit foreach (@held);

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

# ---- a serializable transaction would come to the row by the entry

$node->safe_psql('postgres', 'CREATE TABLE u (id int) USING inplace');
fill(100);
my $reader = hold('SERIALIZABLE');
my $writer = psql_session($node);
$writer->query_safe($_) foreach ('BEGIN ISOLATION LEVEL SERIALIZABLE', 'SELECT count(*) FROM u', 'UPDATE t SET at = 500 WHERE id = 50', 'COMMIT');
change(60, 1);
$node->safe_psql('postgres', 'VACUUM t');
cmp_ok(pages(), '>=', 15, 'the entries of what came after it stay');
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
is($reader->query_safe('SELECT count(*) FROM t WHERE at = 500') =~ s/\s+$//r, '0', 'it does not see the row');
$reader->query('INSERT INTO u VALUES (1)');
like(scalar($reader->query('COMMIT')) . $reader->{stderr}, qr/could not serialize access/, '... and is in conflict for that');
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

# ... or is cancelled
$standby->safe_psql('postgres', $_) foreach ('ALTER SYSTEM SET max_standby_streaming_delay = 0', 'SELECT pg_reload_conf()');
$there = hold('REPEATABLE READ', $standby);
sees($there, 100, 'standby, another');
change(10, 1);
$node->safe_psql('postgres', 'VACUUM t');
$node->wait_for_catchup($standby);
ok(defined poll_value($standby, q{SELECT confl_snapshot > 0 FROM pg_stat_database_conflicts WHERE datname = 'postgres'}, 20),
	'a query that would need the entries is cancelled');
eval { $there->quit };
$there = hold('REPEATABLE READ', $standby);
my $new = hold('REPEATABLE READ');
is(sees($there, 100, 'standby, later'), sees($new, 100, 'primary'), 'both see the same');
$_->quit foreach ($there, $new, $old);
$node->wait_for_catchup($standby);
check_log($_) foreach ($node, $standby);
$standby->stop;
$node->stop;

done_testing();
