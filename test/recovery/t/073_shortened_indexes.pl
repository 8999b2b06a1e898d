# VACUUM makes the files of indexes shorter: pages at the end are moved to free ones before,
# and the end is cut off.  Nobody notices: sessions that know the index's root and its last
# page from before, a standby (from an archive: beside a connected one it is not done),
# predicate locks, a crash at any moment.
# Long: on one server of a run.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 1, has_archiving => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
});
$node->start;
# (keys of w are so long that few go on a page: the tree is deep)
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pg_walinspect;
	CREATE EXTENSION amcheck;
	CREATE FUNCTION wide(int) RETURNS text IMMUTABLE LANGUAGE sql
		AS $$ SELECT string_agg(md5($1 || ' ' || j), '') FROM generate_series(1, 50) j $$;
	CREATE TABLE t (id int PRIMARY KEY, k int, s text, n int, w text);});
my @indexes = qw(t_k t_s t_stock t_n t_w);
# What VACUUM does is replayed with all its checks; what others do has tests elsewhere,
# and would write gigabytes.
my $unchecked = "SET wal_consistency_checking = ''";

# Rows of which a fifth stays, and indexes that were as large as that needs.
sub fill
{
	my ($n, $kind) = @_;
	$n->safe_psql('postgres', qq{
		$unchecked;
		DROP TABLE t;
		CREATE $kind TABLE t (id int PRIMARY KEY, k int, s text, n int, w text);
		CREATE INDEX t_k ON t (k);
		CREATE UNIQUE INDEX t_s ON t USING inplace_btree (s, id);
		CREATE INDEX t_n ON t USING inplace_btree (id DESC) INCLUDE (n);
		CREATE INDEX t_w ON t (w);
		SET inplace.default_index_method = btree;
		CREATE INDEX t_stock ON t (n);
		INSERT INTO t SELECT i, i / 20, md5(i::text), i % 500, CASE WHEN i % 10 = 3 THEN wide(i) END
			FROM generate_series(1, 20000) i ORDER BY hashint4(i);
		ANALYZE t;});
}

sub delete_most
{
	my ($n, $seed) = @_;
	$n->safe_psql('postgres', "$unchecked; DELETE FROM t WHERE id % 10 <> 3 AND hashint4(id + $seed) % 7 <> 0 OR n < 400 OR w LIKE '%0'");
}

sub pages
{
	my ($n) = @_;
	my %pages = split /[|\n]/, $n->safe_psql('postgres',
		"SELECT indexrelid::regclass, pg_relation_size(indexrelid) / 8192 FROM pg_index WHERE indrelid = 't'::regclass");
	return \%pages;
}

sub vacuum
{
	my ($n, $options) = @_;
	$options //= 'PARALLEL 0';
	my ($rc, $out, $err) = $n->psql('postgres', "VACUUM (VERBOSE, INDEX_CLEANUP on, $options) t");
	is($rc, 0, "VACUUM ($options)") or diag $err;
	my %cut = $err =~ /index "(\w+)": \d+ pages moved, (\d+) removed from the end of the file/g;
	note join ', ', map { "$_: $cut{$_}" } sort keys %cut;
	return \%cut;
}

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET cursor_tuple_fraction = 1';

# by each index, in both directions, as a sequential scan has it
sub all_rows
{
	my ($n, $name) = @_;
	my ($sql, @ways) = ('');
	foreach my $what ([ 'k', 'k > 0' ], [ 's', q{s > ''} ], [ 'n', 'n >= 0' ], [ 'id', 'id > 0' ], [ 'w', q{w > ''} ])
	{
		my ($key, $where) = @$what;
		my $sum = "SELECT count(*), sum(id::bigint * 7), string_agg(DISTINCT right($key\::text, 1), '')";
		$sql .= "RESET ALL; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;\n$sum FROM t WHERE $where;\nRESET ALL; $by_index;\n";
		foreach my $dir ('ASC', 'DESC')
		{
			$sql .= "$sum FROM (SELECT * FROM t WHERE $where ORDER BY $key $dir OFFSET 0) x;\n";
		}
		push @ways, $key;
	}
	# one session, for there are many of these; an answer is a line
	my @got = split /\n/, $n->safe_psql('postgres', $sql);
	is(scalar(@got), 3 * @ways, "$name: all queries have answered");
	foreach my $key (@ways)
	{
		my ($want, $up, $down) = splice(@got, 0, 3);
		is($up, $want, "$name: by $key ASC");
		is($down, $want, "$name: by $key DESC");
	}
	check_clean($n, $name);
	# nbtree's own view of its own index
	is(one($n, q{SELECT bt_index_parent_check('t_stock', true)}), '', "$name: amcheck") unless $n->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	return;
}

# Block of an index's fast root, by its meta page.
sub fast_root
{
	my ($n, $index) = @_;
	$n->safe_psql('postgres', 'CHECKPOINT');
	my $path = $n->data_dir . '/' . $n->safe_psql('postgres', "SELECT pg_relation_filepath('$index')");
	return unpack 'x24 x16 L', slurp_file($path);
}

# Moved pages in WAL, by level, and moves of roots.
sub moves
{
	my ($n, $from) = @_;
	return $n->safe_psql('postgres', qq{
		SELECT count(*) FILTER (WHERE description LIKE '%level: 0,%') > 100,
			count(*) FILTER (WHERE description ~ 'level: [1-9]') > 5,
			count(*) FILTER (WHERE block_ref ~ 'blkref #5: [^;]*?blk 0') > 0
		FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
		WHERE description LIKE 'index page moved%'});
}

# An interrupted VACUUM leaves half-dead pages, where two of nbtree's own assertions fail (the
# same on heap with btree, and right without assertions): VACUUM comes to one, and the page right
# of it is empty (_bt_pagedel() goes on with that, without a stack); or a backward scan ends with
# one, as there is none left of it (_bt_readnextpage(), since 18).  Such an index is built anew.
sub rebuild_what_nbtree_asserts
{
	my ($n) = @_;
	$n->safe_psql('postgres', 'CHECKPOINT');
	foreach my $index ('t_pkey', @indexes)
	{
		my $file = slurp_file($n->data_dir . '/' . $n->safe_psql('postgres', "SELECT pg_relation_filepath('$index')"));
		my $page = sub {
			my ($block) = @_;
			my ($lower, $upper, $special) = unpack 'S3', substr($file, $block * 8192 + 12, 6);
			my ($prev, $next, $level, $flags) = unpack 'L3 S', substr($file, $block * 8192 + $special, 14);
			return { prev => $prev, next => $next, flags => $flags, items => ($lower - 24) / 4 - ($next ? 1 : 0) };
		};
		foreach my $block (1 .. length($file) / 8192 - 1)
		{
			next if substr($file, $block * 8192 + 12, 2) eq "\0\0";
			my $p = $page->($block);
			# (BTP_LEAF, BTP_HALF_DEAD)
			next if ($p->{flags} & 17) != 17 || ($p->{prev} && $page->($p->{next})->{items} > 0);
			note "$index: block $block is half-dead, and " . ($p->{prev} ? 'the one right of it empty' : 'the first');
			$n->safe_psql('postgres', "REINDEX INDEX $index");
			last;
		}
	}
	return;
}

my $standby;

# The standby has replayed, from the archive, all that there is.
sub replayed
{
	my $lsn = $node->safe_psql('postgres', q{SELECT pg_create_restore_point('replayed')});
	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	ok(defined poll_value($standby, "SELECT pg_last_wal_replay_lsn() >= '$lsn'", 180), 'the standby has replayed all');
	return;
}

fill($node, '');
$node->backup('b');
$standby = PostgreSQL::Test::Cluster->new('standby');
# (VACUUM does not see one that replays from an archive, beside others it leaves files alone)
$standby->init_from_backup($node, 'b', has_restoring => 1);
$standby->append_conf('postgresql.conf', "max_standby_archive_delay = 1s\nwal_retrieve_retry_interval = 100ms\n");
$standby->start;

# ---- files become shorter, and everybody goes on

my @sessions = map { psql_session($_) } $node, $node, $standby;
foreach my $s (@sessions)
{
	$s->query_safe($_) foreach split /; /, $by_index;
	$s->query_safe('SET plan_cache_mode = force_generic_plan');
	$s->query_safe("PREPARE q$_ AS SELECT count(*), sum(id::bigint) FROM t WHERE $_ > \$1") foreach qw(k id n);
	$s->query_safe("EXECUTE q$_(0)") foreach qw(k id n);
}
# one knows the last page of each index, where ascending keys go
$sessions[0]->query_safe("INSERT INTO t SELECT i, i, 'z' || i, 1000 + i, 'z' || wide(i) FROM generate_series(30001, 30010) i");
my $before = pages($node);
delete_most($node, 1);
my $from = $node->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
my $cut = vacuum($node);
my $after = pages($node);
foreach my $index (@indexes)
{
	cmp_ok($cut->{$index} // 0, '>', 0, "$index is shorter");
	is($after->{$index}, $before->{$index} - ($cut->{$index} // 0), '... by that');
	# (nbtree's own pages are not merged)
	next if $index eq 't_stock';
	cmp_ok($after->{$index}, '<', $before->{$index} / 2, '... by half and more');
}
is(moves($node, $from), 't|t|t', 'leaves, inner pages and roots have been moved');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class c WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass) AND relpages <> pg_relation_size(oid) / 8192"), 0, 'relpages');
replayed();
is_deeply(pages($standby), $after, 'the files of the standby are as long');
foreach my $s (@sessions)
{
	foreach my $key (qw(k id n))
	{
		is($s->query_safe("EXECUTE q$key(0)"), $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(id::bigint) FROM t WHERE $key > 0"), "a session of before, by $key");
	}
}
$sessions[$_]->query_safe("INSERT INTO t SELECT i, i, 'z' || i, 1000 + i, 'z' || wide(i) FROM generate_series(30021 + $_ * 20, 30030 + $_ * 20) i") foreach 0, 1;
replayed();
all_rows($_, $_->name . ', shortened') foreach $node, $standby;
my $rebuilt = $node->safe_psql('postgres', q{
	CREATE TABLE rebuilt AS SELECT * FROM t;
	CREATE INDEX rebuilt_s ON rebuilt (s, id);
	SELECT pg_relation_size('rebuilt_s') / 8192});
cmp_ok(pages($node)->{t_s}, '<=', $rebuilt * 1.3 + 3, 'no larger than when rebuilt, nearly');

# ---- not while somebody has the index locked, nor if it is not wanted

$_->quit foreach @sessions;
$standby->stop;
fill($node, '');
my $holder = psql_session($node);
$holder->query_safe($_) foreach split(/; /, $by_index), 'BEGIN', 'SELECT count(*) FROM t WHERE k > 0', 'SAVEPOINT s';
delete_most($node, 2);
$before = pages($node);
is_deeply(vacuum($node), {}, 'indexes that an open transaction has read, or might, stay as they are');
$holder->query_safe('COMMIT');
delete_most($node, 3);
is_deeply(vacuum($node, 'TRUNCATE off'), {}, 'with TRUNCATE off, too');
is_deeply(pages($node), $before, '... to the page');
delete_most($node, 4);
$cut = vacuum($node, 'PARALLEL 2');
cmp_ok($cut->{$_} // 0, '>', 0, "with parallel workers $_ is shorter") foreach @indexes;
all_rows($node, 'after parallel VACUUM');
# former keys alone, which do not go by dead rows
foreach my $workers (0, 2)
{
	fill($node, '');
	$node->safe_psql('postgres', "$unchecked; UPDATE t SET k = -k - id % 20 * 1000, n = n + 1");
	$cut = vacuum($node, "PARALLEL $workers");
	cmp_ok($cut->{t_k} // 0, '>', 0, "t_k is shorter when former keys have gone, $workers workers");
	all_rows($node, "former keys, $workers workers");
}

# ---- a scan of the standby that is in progress is in conflict, others are not

$standby->start;
fill($node, '');
replayed();
my $cursor = psql_session($standby);
$cursor->query_safe($_) foreach split(/; /, $by_index), 'BEGIN', 'DECLARE c CURSOR FOR SELECT id FROM t WHERE k > 0 ORDER BY k', 'FETCH 10 FROM c';
my $other = psql_session($standby);
$other->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1 FROM pg_class LIMIT 1';
delete_most($node, 5);
ok(%{ vacuum($node) }, 'beside a scan on the standby it is done');
replayed();
# (the session counts it as it ends)
ok(defined poll_value($standby, 'SELECT confl_lock + confl_snapshot + confl_bufferpin > 0 FROM pg_stat_database_conflicts WHERE datname = current_database()', 60), 'which was told');
all_rows($standby, 'standby after a conflict');

# ---- a VACUUM that is rolled back when it has cut a file: all know of the new root

fill($node, '');
replayed();
my @old = map { psql_session($_) } $node, $standby;
foreach my $s (@old)
{
	$s->query_safe($_) foreach split /; /, $by_index;
	$s->query_safe("PREPARE q AS SELECT count(*), sum(id::bigint) FROM t WHERE w > \$1");
	$s->query_safe("EXECUTE q('')") foreach 1 .. 7;
}
$node->safe_psql('postgres', "$unchecked; DELETE FROM t WHERE id % 80 <> 3");
# (it waits for this before it writes the table's statistics, which comes last)
my $granter = psql_session($node);
$granter->query_safe($_) foreach 'BEGIN', 'GRANT SELECT ON t TO PUBLIC';
$before = pages($node)->{t_w};
my $root = fast_root($node, 't_w');
my $vacuumer = psql_session($node);
$vacuumer->query_until(qr//, "VACUUM (INDEX_CLEANUP on, PARALLEL 0) t;\n");
my $is_vacuum = "FROM pg_stat_activity WHERE query LIKE 'VACUUM%' AND wait_event_type = 'Lock'";
ok(defined poll_value($node, "SELECT count(*) = 1 $is_vacuum", 60), 'VACUUM waits in the end');
is($node->safe_psql('postgres', "SELECT count(pg_cancel_backend(pid)) $is_vacuum"), 1, '... and is cancelled');
$vacuumer->quit;
$granter->query_safe('COMMIT');
cmp_ok(pages($node)->{t_w}, '<', $before / 2, 'the file of t_w has been cut');
cmp_ok(pages($node)->{t_w}, '<=', $root, '... before where the root was');
replayed();
is($_->query("EXECUTE q('')"), $node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(id::bigint) FROM t WHERE w > \'\''), 'a session of before finds all by its index')
	foreach @old;
$_->quit foreach @old;

# ---- not while a standby is connected, whose queries it would cancel

$_->quit foreach $cursor, $other;
$standby->stop;
$standby->enable_streaming($node);
$standby->start;
ok(defined poll_value($node, 'SELECT count(*) = 1 FROM pg_stat_replication', 60), 'the standby is connected');
fill($node, '');
delete_most($node, 8);
is_deeply(vacuum($node), {}, 'nothing is cut off beside a standby that is connected');
$node->wait_for_catchup($standby);
all_rows($standby, 'merged only');
$standby->stop;
ok(defined poll_value($node, 'SELECT count(*) = 0 FROM pg_stat_replication', 60), 'the standby has gone');
$node->safe_psql('postgres', 'DELETE FROM t WHERE k % 32 = 2');
ok(%{ vacuum($node) }, '... but without one');

# ---- predicate locks go with their page

foreach my $moved (0, 1)
{
	fill($node, '');
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS o; CREATE TABLE o (id int PRIMARY KEY, x int); INSERT INTO o VALUES (1, 0); DELETE FROM t WHERE k BETWEEN 300 AND 310');
	delete_most($node, 6);
	# pages are merged, but stay where they are
	my $keeper = psql_session($node);
	$keeper->query_safe($_) foreach split(/; /, $by_index), 'BEGIN', "SELECT count(*) FROM t WHERE k > 0";
	is_deeply(vacuum($node), {}, 'merged only');
	$keeper->query_safe('COMMIT');
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 20 = 13');
	my ($reader, $writer) = map { psql_session($node) } 1 .. 2;
	foreach my $s ($reader, $writer)
	{
		$s->query_safe($_) foreach split(/; /, $by_index);
		$s->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE');
	}
	$writer->query_safe('SELECT x FROM o WHERE id = 1');
	$reader->query_safe('SELECT count(*) FROM t WHERE k BETWEEN 300 AND 310');
	$reader->query_safe('UPDATE o SET x = 1 WHERE id = 1');
	$reader->query_safe('COMMIT');
	if ($moved)
	{
		$cut = vacuum($node);
		cmp_ok($cut->{t_k} // 0, '>', 0, 'pages are moved');
	}
	$writer->query("INSERT INTO t VALUES (90001, 305, 'new', 1, NULL)");
	$writer->query('COMMIT');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id = 90001'), 0, 'the write skew is found, ' . ($moved ? 'pages moved' : 'pages where they were'));
}

# ---- unlogged and temporary tables, and one row, or none, that is left

fill($node, 'UNLOGGED');
delete_most($node, 7);
$cut = vacuum($node);
cmp_ok($cut->{$_} // 0, '>', 0, "$_ of an unlogged table") foreach @indexes;
all_rows($node, 'unlogged');
my ($rc, $out, $err) = $node->psql('postgres', q{
	CREATE TEMP TABLE tt (id int PRIMARY KEY, s text);
	INSERT INTO tt SELECT i, md5(i::text) FROM generate_series(1, 20000) i;
	CREATE INDEX tt_s ON tt (s);
	DELETE FROM tt WHERE id % 10 <> 0;
	VACUUM (VERBOSE) tt;
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	SELECT count(*), sum(id), pg_relation_size('tt_s') / 8192 FROM (SELECT id FROM tt WHERE s > '' ORDER BY s DESC OFFSET 0) x;
	SELECT count(*) FROM inplace.check('tt')});
like($err, qr/index "tt_s": \d+ pages moved/, 'a temporary table');
like($out, qr/^2000\|20010000\|[12]?\d\n0$/, '... and its rows');
foreach my $left ('id = 20000', 'false')
{
	fill($node, '');
	$node->safe_psql('postgres', "$unchecked; DELETE FROM t WHERE (n < 400 OR k > 500) AND NOT ($left)");
	vacuum($node);
	$node->safe_psql('postgres', "$unchecked; DELETE FROM t WHERE NOT ($left)");
	vacuum($node);
	# (a page of each level stays, as nbtree has it)
	cmp_ok(pages($node)->{t_k}, '<=', 12, "with what is left ($left) the file is short");
	all_rows($node, $left);
	$node->safe_psql('postgres', "$unchecked; INSERT INTO t SELECT i, i / 20, md5(i::text), i % 500 FROM generate_series(40000, 45000) i");
	all_rows($node, "$left, and filled again");
}

# ---- interrupted at any moment, and crashes

fill($node, '');
foreach my $i (1 .. 6)
{
	$node->safe_psql('postgres', $unchecked . '; SET inplace.merge_index_pages = off; INSERT INTO t SELECT i, i / 20, md5(i::text), i % 500, CASE WHEN i % 10 = 3 THEN wide(i) END FROM generate_series(1, 20000) i WHERE hashint4(i + ' . $i . ') % 2 = 0 AND NOT EXISTS (SELECT FROM t WHERE id = i)');
	delete_most($node, 7 + $i);
	# without the table's growth VACUUM would not hesitate
	$node->safe_psql('postgres', 'ANALYZE t');
	rebuild_what_nbtree_asserts($node);
	if ($i % 2)
	{
		$node->psql('postgres', 'SET statement_timeout = ' . 40 * $i . '; VACUUM (INDEX_CLEANUP on, PARALLEL 0) t');
	}
	else
	{
		my $vacuum = psql_session($node);
		$vacuum->query_until(qr//, "VACUUM (INDEX_CLEANUP on, PARALLEL 0) t;\n");
		Time::HiRes::usleep(20_000 * $i);
		kill9_all($node);
		$node->start;
	}
	rebuild_what_nbtree_asserts($node);
	all_rows($node, "interrupted, $i");
}
$node->safe_psql('postgres', 'CHECKPOINT');
delete_most($node, 30);
rebuild_what_nbtree_asserts($node);
vacuum($node);
$node->stop('immediate');
$node->start;
all_rows($node, 'after a crash');

# ---- promoted

$standby->start;
$node->wait_for_catchup($standby);
all_rows($standby, 'standby in the end');
is_deeply(pages($standby), pages($node), '... its files');
$node->stop('immediate');
$standby->promote;
fill($standby, '');
delete_most($standby, 31);
ok(%{ vacuum($standby) }, 'files become shorter on the promoted one, too');
all_rows($standby, 'promoted');
$standby->stop;
check_log($_) foreach $node, $standby;
done_testing();
