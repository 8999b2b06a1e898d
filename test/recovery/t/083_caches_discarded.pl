# Invalidations.  What a call has set in an index's relation cache entry outlasts them, but
# not the call, however that ends (index/as_btree.c).  And nobody looks into a catalog,
# and waits for who has locked that, with a page locked (undo/undorel.c, index/key.c).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('primary', conf => 'autovacuum = off');
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (a int, b int, c text) USING inplace;
	CREATE INDEX t_a ON t USING inplace_btree (a);
	CREATE INDEX t_b ON t USING inplace_btree (b);
	CREATE INDEX t_lower ON t USING inplace_btree (lower(c)) WHERE a > 0;
	CREATE UNIQUE INDEX t_c ON t USING inplace_btree (c);
	INSERT INTO t SELECT g, g % 10, 'x' || g FROM generate_series(1, 2000) g;});

# who waits in the index's code is terminated, and what his transaction has changed in
# the catalog is undone
my ($first, $second) = map { psql_session($node) } 1 .. 2;
$first->query_safe($_) foreach 'BEGIN', q{INSERT INTO t VALUES (0, 0, 'same')};
$second->query_until(qr/sent/, q{BEGIN; ALTER INDEX t_c RENAME TO renamed;
	\echo sent
	INSERT INTO t VALUES (0, 1, 'same');
});
waits_for_lock($node, 'an insertion waits in a unique index', 'INSERT INTO t VALUES (0, 1');
is($node->safe_psql('postgres', q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t VALUES (0, 1%'}), '1', '... and is terminated');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t VALUES (0, 1%'}), '... without harm to anybody else');
$first->query_safe('COMMIT');
$first->quit;
eval { $second->quit };
check_clean($node, 'after that');

# a session that has read by a unique index is to insert a key with which a row has been
# before, and must find out what equal keys are
$node->safe_psql('postgres', q{
	CREATE TABLE k (k int, v int) USING inplace;
	CREATE UNIQUE INDEX k_k ON k USING inplace_btree (k);
	INSERT INTO k SELECT g, g FROM generate_series(1, 100) g;});
$node->safe_psql('postgres', 'UPDATE k SET k = k + 1000 WHERE k < 10');
my ($locker, $inserter) = map { psql_session($node) } 1 .. 2;
# (the server lets nobody else in who needs these catalogs)
my $waits = q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO k VALUES (3%' AND wait_event_type = 'Lock'};
my $cancel = q{SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO k VALUES (3%'};
is($locker->query_safe($_), '0', 'nobody waits yet') foreach $waits, $cancel;
$_->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT v FROM k WHERE k = 30') foreach $locker, $inserter;
$locker->query_safe($_) foreach 'BEGIN', 'LOCK TABLE pg_amproc IN ACCESS EXCLUSIVE MODE';
$inserter->query_until(qr/sent/, "\\echo sent\nINSERT INTO k VALUES (3, 0);\n");
my $waiting = 0;
for (my $i = 0; $i < 600 && !$waiting; $i++)
{
	usleep(100_000);
	$waiting = $locker->query_safe($waits);
}
is($waiting, '1', 'it waits for the catalog');
is($locker->query_safe('SELECT v FROM k WHERE k = 50'), '50', '... with no page locked');
is($locker->query_safe($cancel), '1', '... and can be cancelled');
$locker->query_safe('ROLLBACK');
$inserter->query('SELECT 1');
$inserter->{stderr} = '';	# (that it was cancelled)
is($inserter->query_safe('INSERT INTO k VALUES (3, 1); SELECT v FROM k WHERE k = 3'), '1', '... and do it again');

# what a session knows of the undo relation is invalidated
$inserter->query_safe($_) foreach 'PREPARE u AS UPDATE k SET v = v + 1 WHERE k = 50', 'SET plan_cache_mode = force_generic_plan', ('EXECUTE u') x 2;
$node->safe_psql('postgres', 'CREATE ROLE reader; GRANT SELECT ON inplace.undo_log TO reader');
$locker->query_safe($_) foreach 'BEGIN', 'LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE', q{SET LOCAL lock_timeout = '20s'};
$inserter->query_until(qr/sent/, "\\echo sent\nEXECUTE u;\n");
like($locker->query_safe('SELECT v FROM k WHERE k = 50'), qr/^5[23]$/, 'the row is read meanwhile');
$locker->query_safe('ROLLBACK');
is($inserter->query_safe('SELECT v FROM k WHERE k = 50'), '53', '... and updated');
$_->quit foreach $locker, $inserter;
check_clean($node, 'after that, too', 'postgres');

SKIP:
{
	my ($rc) = $node->psql('postgres', 'SET debug_discard_caches = 1');
	skip 'only a server with assertions can discard its caches', 2 if $rc != 0;

	# (a second connection each, for it takes long to begin one so)
	$node->safe_psql('postgres', "SET debug_discard_caches = 1; $_") foreach
		'UPDATE t SET b = b + 1 WHERE a < 30',
		'UPDATE t SET a = a + 5000 WHERE a < 30',
		q{UPDATE t SET c = translate(c, 'x', 'y') WHERE a BETWEEN 300 AND 310},
		q{INSERT INTO t VALUES (310, 0, 'x310')},
		q{INSERT INTO t SELECT g, 3, 'z' || g FROM generate_series(10001, 10050) g},
		'DELETE FROM t WHERE a BETWEEN 400 AND 1900',
		'VACUUM t',
		'REINDEX INDEX t_lower';
	check_clean($node, 'after changes with no cache');
	is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*), sum(b) FROM t WHERE lower(c) > 'x' AND a > 0}),
		$node->safe_psql('postgres', q{SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(b) FROM t WHERE lower(c) > 'x' AND a > 0}),
		'an index answers as the table does');
}
check_log($node);
$node->stop;
done_testing();
