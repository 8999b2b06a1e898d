# Whatever a call has set in an index's relation cache entry outlasts an invalidation,
# and no longer than the call, however that ends (index/as_btree.c).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

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

SKIP:
{
	my ($rc) = $node->psql('postgres', 'SET debug_discard_caches = 1');
	skip 'only a server with assertions can discard its caches', 2 if $rc != 0;

	# (a second connection each, for it takes long to begin one so)
	$node->safe_psql('postgres', "SET debug_discard_caches = 1; $_") foreach
		'UPDATE t SET b = b + 1 WHERE a < 100',
		'UPDATE t SET a = a + 5000 WHERE a < 100',
		q{UPDATE t SET c = translate(c, 'x', 'y') WHERE a BETWEEN 300 AND 320},
		q{INSERT INTO t VALUES (310, 0, 'x310')},
		q{INSERT INTO t SELECT g, 3, 'z' || g FROM generate_series(10001, 10150) g},
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
