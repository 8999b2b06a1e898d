# An in-place update that leaves an entry behind in an index makes its row count
# as dead, once, until VACUUM has taken the entry out; and then, if the table has come
# to rest, until a second one has taken off the row's mark; so autovacuum comes by
# twice, and then rests.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('stale_autovacuum', conf => q{
autovacuum = off
autovacuum_naptime = '1s'
autovacuum_vacuum_threshold = 100
autovacuum_vacuum_scale_factor = 0
autovacuum_vacuum_insert_threshold = -1
autovacuum_analyze_threshold = 1000000
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE k (id int PRIMARY KEY, n int, m int, p text) USING inplace;
	CREATE INDEX k_n ON k USING inplace_btree (n) INCLUDE (m);
	CREATE TABLE plain (id int PRIMARY KEY, n int) USING inplace;
	INSERT INTO k SELECT i, i, 0, repeat('x', 100) FROM generate_series(1, 5000) i;
	INSERT INTO plain SELECT i, 0 FROM generate_series(1, 5000) i;
	VACUUM k; VACUUM plain;
});

# what the statistics say when what the statements did has been counted
sub dead_after
{
	my ($statements, $expected, $what) = @_;
	$node->safe_psql('postgres', "$_; SELECT pg_stat_force_next_flush()") foreach @$statements;
	is(one($node, q{SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'k'}), $expected, $what);
}
my $visible = q{SELECT sum(all_visible) = sum(pages) FROM inplace.visibility_summary('k')};

dead_after([ q{UPDATE k SET p = repeat('y', 100)} ], 0, 'an update of no indexed column');
dead_after([ q{UPDATE k SET n = n + 10000 WHERE id <= 1000} ], 1000, 'updates of a key');
dead_after([ q{UPDATE k SET n = n + 10000 WHERE id <= 1000}, q{UPDATE k SET n = n - 20000 WHERE id <= 1000} ],
	1000, 'more of the same rows');
dead_after([ q{BEGIN; UPDATE k SET n = -n WHERE id BETWEEN 901 AND 1100; ROLLBACK} ], 1100, 'rolled back, with 100 others');
dead_after([ q{UPDATE k SET m = 1 WHERE id BETWEEN 1051 AND 1200} ], 1200, 'an INCLUDE column');
is(one($node, q{SELECT n_tup_upd = n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'k'}), 't', 'all of them in place');
dead_after(['ANALYZE k'], 1200, 'ANALYZE counts the same');
isnt(one($node, $visible), 't', 'their pages are not all-visible');
dead_after(['VACUUM k'], 1200, 'the entries are gone, not the marks');
dead_after(['ANALYZE k'], 1200, 'which ANALYZE counts, too');
dead_after(['VACUUM k'], 0, 'the marks are gone');
is(one($node, $visible), 't', 'all pages are all-visible');

# Under a load there is no sense in coming for the marks alone.
my $changes = psql_session($node);
dead_after([ q{UPDATE k SET n = n + 1 WHERE id % 3 = 0} ], 1666, 'rows of each page');
$changes->query_safe(q{BEGIN; UPDATE k SET n = n + 1 WHERE id % 30 = 1});
dead_after(['VACUUM k'], 0, 'swept rows do not count where others are being changed');
dead_after(['ANALYZE k'], 0, 'nor for ANALYZE');
dead_after([ q{UPDATE k SET n = n - 1 WHERE id % 300 = 0} ], 16, 'but those of them do that get another entry');
dead_after([ q{SELECT count(*) FROM (SELECT FROM k WHERE id % 300 = 3 FOR UPDATE) x}, q{UPDATE k SET n = n - 1 WHERE id % 300 = 3} ],
	33, 'after a lock, too');
dead_after([ q{UPDATE k SET p = repeat('w', 100) WHERE id % 300 = 6}, q{UPDATE k SET n = n - 1 WHERE id % 300 = 6} ],
	50, 'and after an update of another column, once');
$changes->query_safe(q{COMMIT; SELECT pg_stat_force_next_flush()});
$changes->quit;
dead_after(['SELECT 1'], 217, 'and those of the others');
dead_after(['ANALYZE k'], 217, 'which is what ANALYZE counts');
dead_after(['VACUUM k'], 217, 'these are swept, and alone on their pages');
dead_after(['VACUUM k'], 0, 'so VACUUM is done with them');
is(one($node, $visible), 't', 'all pages are all-visible again');
dead_after([ q{UPDATE k SET n = n + 1 WHERE id <= 2000}, 'VACUUM (INDEX_CLEANUP off) k' ],
	0, 'a VACUUM that leaves the entries does not ask for another one');
dead_after([ 'VACUUM k', 'VACUUM k', q{UPDATE k SET n = n + 1 WHERE id <= 50}, 'VACUUM k' ],
	0, 'nor one that finds too few pages to go through indexes');
# (50 rows of 5000, and a scan of indexes is for 2 % of the pages)

# Rows whose key was in the TOAST table are swept as others are. Those with such a value in
# an INCLUDE column are never swept, which does not make their pages busy.
for my $case (
	[ 'USING inplace_btree (left(big, 10))', 400, 'all of them are swept, not yet without marks' ],
	[ 'USING inplace_btree (n) INCLUDE (big)', 200, 'the swept ones count, as on pages of their own' ])
{
	my ($index, $after_one, $what) = @$case;
	$node->safe_psql('postgres', qq{
		CREATE TABLE ext (id int PRIMARY KEY, n int, big text) USING inplace;
		ALTER TABLE ext ALTER big SET STORAGE EXTERNAL;
		CREATE INDEX ext_n ON ext USING inplace_btree (n);
		CREATE INDEX ext_big ON ext $index;
		INSERT INTO ext SELECT i, i, CASE WHEN i % 10 = 0 THEN repeat('b', 2200) ELSE repeat('s', 300) END
			FROM generate_series(1, 2000) i;
		VACUUM ext;
		UPDATE ext SET n = n + 1 WHERE id % 10 IN (0, 1);
		SELECT pg_stat_force_next_flush();
	});
	my $dead = q{SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'ext'};
	is(one($node, $dead), 400, "$index: rows with large indexed values and others");
	is(one($node, q{SELECT n_tup_upd = n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'ext'}), 't', 'all updated in place');
	$node->safe_psql('postgres', 'VACUUM ext');
	is(one($node, $dead), $after_one, $what);
	$node->safe_psql('postgres', 'VACUUM ext');
	is(one($node, $dead), 0, 'and are done with');
	$node->safe_psql('postgres', 'DROP TABLE ext');
}

# now let it do that by itself
$node->safe_psql('postgres', q{
	UPDATE k SET n = n + 1 WHERE id <= 2000;
	UPDATE plain SET n = n + 1;
	ALTER SYSTEM SET autovacuum = on;
});
$node->reload;
ok(defined poll_value($node, $visible, 120), 'autovacuum makes the pages all-visible');
ok(defined poll_value($node, q{SELECT n_dead_tup = 0 FROM pg_stat_user_tables WHERE relname = 'k'}, 60), 'no dead rows are left');
my $runs = q{SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'k'};
my $before = one($node, $runs);
cmp_ok($before, '>=', 2, 'in two runs or more');
usleep(4_000_000);
is(one($node, $runs), $before, 'and then it rests');
is(one($node, q{SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'plain'}), '0', 'a table without such updates is left alone');
check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
