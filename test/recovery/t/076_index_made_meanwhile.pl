# What a session knows of a table's indexes, found out while CREATE INDEX CONCURRENTLY
# makes another one: its next transaction, which that does not wait for, has to know of it.

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
	CREATE TABLE t (id int PRIMARY KEY, a int, b int) USING inplace;
	CREATE INDEX ia ON t USING inplace_btree (a);
	INSERT INTO t SELECT g, g, g FROM generate_series(1, 100) g;
	CREATE FUNCTION slow(id int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
		IF id = 100 THEN PERFORM pg_advisory_lock_shared(42); END IF; RETURN true; END $$;});

my ($user, $builder, $holder, $keeper) = map { psql_session($node) } 1 .. 4;

# a plan that needs nothing of the index, and a relation cache entry that knows nothing yet
$user->query_safe($_) foreach 'SET plan_cache_mode = force_generic_plan', 'INSERT INTO t VALUES (1, 0, 0) ON CONFLICT (id) DO UPDATE SET a = 0 WHERE false',
	'PREPARE u AS UPDATE t SET a = a + 1000 WHERE id = $1', 'EXPLAIN EXECUTE u(1)';
$holder->query_safe($_) foreach 'BEGIN', 'ALTER INDEX ia SET TABLESPACE pg_default';
$keeper->query_safe($_) foreach 'BEGIN', 'SELECT pg_advisory_xact_lock(42)';
$user->query_until(qr/sent/, "BEGIN;\n\\echo sent\nEXECUTE u(1);\n");
waits_for_lock($node, 'the session waits for an index', 'EXECUTE u');
$builder->query_until(qr/sent/, "\\echo sent\nCREATE INDEX CONCURRENTLY ib ON t (b) WHERE slow(id);\n");
waits_for_lock($node, 'another index is in the catalog, and waits for the session', 'CREATE INDEX');
$holder->query_safe('COMMIT');
$user->query_safe('COMMIT');
ok(defined poll_value($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND wait_event = 'advisory'}, 60), '... and now in its build');
is($user->query_safe('UPDATE t SET b = 5000 WHERE id = 1 RETURNING b'), '5000', 'meanwhile a row changes');
$keeper->query_safe('COMMIT');
$builder->query_safe('SELECT 1');
is($node->safe_psql('postgres', q{SELECT indisvalid FROM pg_index WHERE indexrelid = 'ib'::regclass}), 't', 'the index is valid');
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT id, b FROM t WHERE slow(id) AND b';
is($node->safe_psql('postgres', "$by_index = 5000"), '1|5000', 'it finds the row');
is($node->safe_psql('postgres', "$by_index = 1"), '', '... and not by what it was');
$_->quit foreach $user, $builder, $holder, $keeper;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
