# VACUUM packs leaf pages of an inplace_btree of which no two fit one page: entries at the
# end of a page go to its right sibling, and one page of some is given back.  Scans of a
# standby keep their place meanwhile, and a crash leaves an index as it should be.
# Long: on one server of a run.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 20000;
my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
});
$node->start;
# (keys of many lengths, so that those in parent pages grow and shrink)
$node->safe_psql('postgres', qq{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pg_walinspect;
	SET wal_consistency_checking = '';
	CREATE TABLE t (id int PRIMARY KEY, at int, s text, k int, n int);
	CREATE SEQUENCE now START 100000;
	CREATE FUNCTION long_key(int) RETURNS text IMMUTABLE LANGUAGE sql
		AS \$\$ SELECT md5(\$1::text) || repeat('x', abs(hashint4(\$1)) % 300) \$\$;
	INSERT INTO t SELECT i, i, long_key(i), i % 97, i FROM generate_series(1, $rows) i;
	CREATE INDEX t_at ON t USING inplace_btree (at);
	CREATE INDEX t_s ON t USING inplace_btree (s);
	CREATE INDEX t_k ON t USING inplace_btree (k DESC NULLS LAST);
	CREATE INDEX t_n ON t USING inplace_btree (at DESC, k) INCLUDE (n);
	ANALYZE t;});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 1s\nhot_standby_feedback = off\n");
$standby->start;

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET cursor_tuple_fraction = 1';
my $round = 0;
my $take_xids = PostgreSQL::Test::Utils::tempdir() . '/take_xids.sql';
append_to_file($take_xids, "SELECT pg_current_xact_id();\n");

# (Replay of this is checked elsewhere.)
# Leaves pages of the indexes with two thirds of their entries, and some stale ones.
sub make_sparse
{
	my ($n) = @_;
	$round++;
	$n->safe_psql('postgres', qq{
		SET wal_consistency_checking = '';
		SET inplace.merge_index_pages = off;
		UPDATE t SET at = nextval('now'), s = long_key(id + $round * $rows), k = CASE WHEN id % 50 = 0 THEN NULL ELSE (id + $round) % 97 END
			WHERE (id + $round) % 3 = 0;
		VACUUM (INDEX_CLEANUP on) t;
		UPDATE t SET at = nextval('now'), s = 'a' || s, k = k + 1 WHERE id % 6 = 0;});
}

# (Files stay as long as they are: that would be in conflict with a standby's scans, 073.)
# How many pages were merged, and how often entries moved to the right beside that.
sub vacuum
{
	my ($n, $table) = @_;
	$table //= 't';
	my $from = $n->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
	# (pages are packed if others take xids meanwhile)
	my $takers = IPC::Run::start([ 'pgbench', '-n', '-t', 100000, '-f', $take_xids, $n->connstr('postgres') ], '<', \'', '>', \my $done, '2>', \my $said);
	my $began = $n->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
	ok(defined poll_value($n, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint > $began + 10", 60), 'xids are taken');
	my ($rc, $out, $err) = $n->psql('postgres', "VACUUM (VERBOSE, INDEX_CLEANUP on, TRUNCATE off, PARALLEL 0) $table");
	$takers->kill_kill;
	is($rc, 0, 'VACUUM') or diag $err;
	my %merged = $err =~ /index "(\w+)": (\d+) pages merged/g;
	note join ', ', map { "$_: $merged{$_}" } sort keys %merged;
	# (so that something follows $from, and has been written)
	$n->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '')});
	my $shifts = $n->safe_psql('postgres', qq{
		SELECT count(*) FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
		WHERE description LIKE 'index entries to the right%'});
	note "$shifts times entries moved to the right";
	return (\%merged, $shifts);
}

# by each index, in both directions, as a sequential scan has it
sub all_rows
{
	my ($n, $name) = @_;
	foreach my $what ([ 'at', 'at > 0' ], [ 's', q{s > ''} ], [ 'k', 'k >= 0' ], [ 'at', 'at > 0 AND n > 0' ])
	{
		my ($key, $where) = @$what;
		my $sum = "SELECT count(*), sum(id::bigint * 7), string_agg(DISTINCT right($key\::text, 1), '')";
		my $want = $n->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $sum FROM t WHERE $where");
		foreach my $dir ('ASC', 'DESC')
		{
			my $order = $key eq 'k' ? "k $dir NULLS " . ($dir eq 'ASC' ? 'FIRST' : 'LAST') : "$key $dir";
			is($n->safe_psql('postgres', "$by_index; $sum FROM (SELECT * FROM t WHERE $where ORDER BY $order OFFSET 0) x"), $want, "$name: by $order");
		}
	}
}

# A cursor of the standby that stands somewhere in an index.
sub open_cursor
{
	my ($key, $order, $where, $read) = @_;
	my $s = psql_session($standby);
	$s->query_safe($_) foreach (split(/; /, $by_index), 'BEGIN');
	my @all = split /\n/, $s->query_safe("SELECT id || ' ' || $key FROM t WHERE $where ORDER BY $order");
	$s->query_safe("DECLARE c CURSOR FOR SELECT id || ' ' || $key FROM t WHERE $where ORDER BY $order");
	$s->query_safe("MOVE $read FROM c");
	return { session => $s, name => "$order, $read rows read", left => [ @all[ $read .. $#all ] ] };
}

foreach (1 .. 2)
{
	make_sparse($node);
	$node->wait_for_catchup($standby);
	my @cursors = map {
		my $read = $_;
		(open_cursor('at', 'at', 'at > 0', $read), open_cursor('at', 'at DESC', 'at > 0', $read),
			open_cursor('s', 's', q{s > ''}, $read), open_cursor('s', 's DESC', q{s > ''}, $read),
			open_cursor('k', 'k', 'k >= 0', $read), open_cursor('k', 'k DESC', 'k >= 0', $read))
	} (1000, 9000);
	my ($merged, $shifts) = vacuum($node);
	cmp_ok($merged->{$_} // 0, '>', 2, "pages of $_ are given back") foreach qw(t_at t_s t_n);
	cmp_ok($shifts, '>', 10, 'entries moved to the right');
	$node->wait_for_catchup($standby);
	foreach my $c (@cursors)
	{
		is(join("\n", sort split(/\n/, $c->{session}->query('FETCH ALL FROM c'))), join("\n", sort @{ $c->{left} }), "standby: $c->{name}")
			or diag $c->{session}->{stderr};
		$c->{session}->quit;
	}
	check_clean($_, 'packed') foreach $node, $standby;
	all_rows($_, $_->name) foreach $node, $standby;
}

# ---- interrupted, and a crash

foreach my $i (1 .. 4)
{
	make_sparse($node);
	$node->psql('postgres', "SET statement_timeout = " . 20 * $i . "; SET vacuum_cost_delay = 1; SET vacuum_cost_limit = 20; VACUUM (INDEX_CLEANUP on, PARALLEL 0) t");
	check_clean($node, "interrupted, $i");
}
make_sparse($node);
$node->safe_psql('postgres', 'CHECKPOINT');
vacuum($node);
$node->stop('immediate');
$node->start;
check_clean($node, 'after a crash');
all_rows($node, 'after a crash');
make_sparse($node);
vacuum($node);
all_rows($node, 'in the end');
check_clean($node, 'in the end');
$node->wait_for_catchup($standby);
$node->stop('immediate');
$standby->promote;
make_sparse($standby);
my (undef, $shifts) = vacuum($standby);
cmp_ok($shifts, '>', 10, 'entries move on the promoted one, too');
check_clean($standby, 'promoted');
all_rows($standby, 'promoted');

# ---- with many parent pages: nothing moves between children of two of them

$standby->safe_psql('postgres', q{
	SET wal_consistency_checking = '';
	CREATE TABLE many (id int PRIMARY KEY, s text);
	INSERT INTO many SELECT i, md5(i::text) || repeat('x', abs(hashint4(i)) % 150) FROM generate_series(1, 60000) i;
	CREATE INDEX many_s ON many USING inplace_btree (s);
	DELETE FROM many WHERE id % 4 = 0;});
my $from = $standby->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
(my $merged, $shifts) = vacuum($standby, 'many');
cmp_ok($merged->{many_s} // 0, '>', 100, 'many pages are given back');
cmp_ok($shifts, '>', 200, 'entries move');
# A move is followed by one to the page that the entries came from, or by a merge into it.
# (That fails now and then because entries take more room on fewer pages.)  If it had to
# do with another parent's page, nothing has been done to this one's before.
is($standby->safe_psql('postgres', qq{
	WITH records AS (
		SELECT row_number() OVER (ORDER BY start_lsn) AS n, description LIKE 'index entries to the right%' AS is_move,
			(regexp_match(block_ref, 'blkref #0: [^;]*?blk (\\d+)'))[1] AS to_block,
			(regexp_match(block_ref, 'blkref #1: [^;]*?blk (\\d+)'))[1] AS from_block,
			(regexp_match(block_ref, 'blkref #2: [^;]*?blk (\\d+)'))[1] AS parent
		FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
		WHERE description LIKE 'index entries to the right%' OR description LIKE 'merge of index pages%'),
	steps AS (
		SELECT *, to_block IS DISTINCT FROM lag(from_block) OVER (ORDER BY n) AS begins,
			to_block IS DISTINCT FROM lag(from_block) OVER (ORDER BY n) AND lag(is_move) OVER (ORDER BY n) AS for_nothing,
			lag(parent) OVER (ORDER BY n) AS parent_before
		FROM records)
	SELECT count(*) FROM steps s
	WHERE for_nothing AND NOT EXISTS (
		SELECT FROM steps o WHERE o.parent = s.parent_before AND o.n < (SELECT max(b.n) FROM steps b WHERE b.begins AND b.n < s.n))}), 0,
	'... none for nothing');
check_clean($standby, 'many parents');

# ---- a table that grows: pages that were filled would split again

$standby->safe_psql('postgres', q{
	SET wal_consistency_checking = '';
	INSERT INTO many SELECT i, md5(i::text) || repeat('x', abs(hashint4(i)) % 150) FROM generate_series(60001, 72000) i;
	DELETE FROM many WHERE id % 16 = 1;});
($merged, $shifts) = vacuum($standby, 'many');
cmp_ok($merged->{many_s} // 0, '<', 5, 'no pages are merged in a table that has grown');
is($shifts, 0, '... and no entries move');
$standby->safe_psql('postgres', 'DELETE FROM many WHERE id % 16 IN (3, 5)');
($merged, $shifts) = vacuum($standby, 'many');
cmp_ok($merged->{many_s} // 0, '>', 20, 'later they are');
check_clean($standby, 'a table that grows');
$standby->stop;
check_log($_) foreach $node, $standby;
done_testing();
