# Computed keys under a load: unique checks and deletion leave nbtree to have keys of other versions computed, beside
# rollbacks, savepoints and VACUUM.  Nothing is held on to by that, and no entry is missing or one too many.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

seed();
my $node = new_node('n', conf => "autovacuum = off\nfsync = off\n");
$node->start;
one($node, 'CREATE EXTENSION inplace');
one($node, q{
	CREATE TABLE t (id int PRIMARY KEY, k text, n int, v text) USING inplace WITH (fillfactor = 70);
	INSERT INTO t SELECT i, 'K' || i, i, 'v' FROM generate_series(1, 1000) i;
	CREATE UNIQUE INDEX t_lower ON t USING inplace_btree (lower(k));
	CREATE INDEX t_two ON t USING inplace_btree ((n % 50), (n / 3));
	CREATE UNIQUE INDEX t_part ON t USING inplace_btree (n) WHERE n % 3 = 0 AND lower(v) <> 'gone';
	CREATE UNIQUE INDEX t_wide ON t USING inplace_btree ((k || repeat(k, 20)), id)});
one($node, q{
	CREATE FUNCTION change(a int, b int, c int, e int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		BEGIN
			UPDATE t SET k = CASE WHEN e % 2 = 0 THEN 'k' ELSE 'K' END || b WHERE id = a;
		EXCEPTION WHEN unique_violation THEN NULL;
		END;
		BEGIN
			UPDATE t SET n = c, v = CASE WHEN e = 1 THEN 'Gone' ELSE 'v' END WHERE id = a;
		EXCEPTION WHEN unique_violation THEN NULL;
		END;
		IF e = 5 THEN
			DELETE FROM t WHERE id = a;
			INSERT INTO t VALUES (a, 'k' || b, c, 'v');
		ELSIF e = 6 AND current_setting('server_version_num')::int >= 180000 THEN
			INSERT INTO t VALUES (a, 'k' || b, c, 'v') ON CONFLICT DO NOTHING;
		ELSIF e = 7 THEN
			RAISE unique_violation;
		END IF;
	EXCEPTION WHEN unique_violation THEN NULL;
	END $$});
my $script = pgbench_script($node, 'change', q{
\set id random(1, 1000)
\set k random(1, 2000)
\set n random(1, 3000)
\set e random(1, 10)
SELECT change(:id, :k, :n, :e);
});

my $load = start_pgbench($node, '-f', $script, '-c', 5, '-T', 6, '-M', 'prepared');
my $end = time() + 5;
my $vacuums = 0;
while (time() < $end)
{
	one($node, 'VACUUM (INDEX_CLEANUP on) t');
	$vacuums++;
}
my $out = end_pgbench($load);
like($out, qr/number of failed transactions: 0|number of transactions actually processed: [1-9]/, 'a load has run');
unlike($out, qr/aborted|error/i, '... to its end');
cmp_ok($vacuums, '>', 0, 'VACUUM beside it');

check_clean($node, 'after the load');
is(one($node, 'SELECT count(*) FROM (SELECT lower(k) FROM t GROUP BY 1 HAVING count(*) > 1) x'), '0', 'unique');
is(one($node, q{SELECT count(*) FROM (SELECT n FROM t WHERE n % 3 = 0 AND lower(v) <> 'gone' GROUP BY 1 HAVING count(*) > 1) x}), '0', '... with a predicate');
is(one($node, q{
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	SELECT count(*) = (SELECT count(*) FROM t), count(DISTINCT id) = count(*) FROM t WHERE lower(k) > ''}), 't|t', 'an index scan finds each row once');
one($node, 'VACUUM (INDEX_CLEANUP on) t; VACUUM (INDEX_CLEANUP on) t');
check_clean($node, 'after VACUUM');
$node->stop;
check_log($node);
done_testing();
