# A snapshot ends while CLUSTER writes versions of rows for its sake, or an index is built with
# them.  Undo of their large values is given back meanwhile, that of the rows is not.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
inplace.toast_in_place = on
inplace.default_index_method = btree
inplace.undo_worker_delay = 100
autovacuum = off
});
$node->start;
# Who holds lock 7 has the functions wait.
one($node, q{
	CREATE EXTENSION inplace;
	CREATE FUNCTION slow(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN n; END $$;
	CREATE FUNCTION slow(n int, a text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN md5(a); END $$;
	CREATE FUNCTION random_text(len int, seed int) RETURNS text LANGUAGE sql AS
		$$ SELECT left(string_agg(md5(seed || ' ' || g), ''), len) FROM generate_series(0, len / 32) g $$});
my ($old, $between, $writer, $holder, $maker) = map { psql_session($node) } 1 .. 5;
my $free = 'SELECT coalesce(sum(free_extents), 0) FROM inplace.undo';

# What needs undo of the value is the old snapshot.  Then comes the row's own undo, and that of
# another change, in an extent that a later snapshot needs.
sub gone_meanwhile
{
	my ($change, $command, $what) = @_;
	one($node, q{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id int, n int, a text) USING inplace;
		ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
		INSERT INTO t SELECT g, g, random_text(CASE g WHEN 1 THEN 3000000 ELSE 3000 END, g) FROM generate_series(1, 3) g;
		CREATE INDEX t_slow ON t (slow(n))});
	$old->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
	$writer->query_safe($change);
	$between->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
	$writer->query_safe('UPDATE t SET a = a || 1 WHERE id = 2');
	my $file = one($node, q{SELECT relfilenode FROM pg_class WHERE relname = 't'});
	$holder->query_safe('SELECT pg_advisory_lock(7)');
	$maker->query_until(qr/sent/, "\\echo sent\n$command;\n");
	waits_for_lock($node, "$what is under way", $command);
	my $before = one($node, $free);
	$old->query_safe('COMMIT');
	ok(defined poll_value($node, "SELECT ($free) >= $before + 5", 60), "$what: undo of the value is given back");
	$holder->query_safe('SELECT pg_advisory_unlock(7)');
	eval { $maker->query('SELECT 1') };
	is(one($node, "SELECT count(*) FROM pg_class WHERE relname = 't_brin' OR (relname = 't' AND relfilenode <> $file)"), '1', "$what: no error");
	$between->query_safe('COMMIT');
	check_clean($node, $what);
}

# (CLUSTER is to sort, and so to wait, after it has read the table)
$maker->query_safe('SET enable_indexscan = off');
my $changed = q{UPDATE t SET a = reverse(a) WHERE id = 1};
gone_meanwhile($changed, 'CLUSTER t USING t_slow', 'CLUSTER');
is(one($node, 'SELECT count(*) FROM t WHERE a = CASE id WHEN 1 THEN reverse(random_text(3000000, 1)) WHEN 2 THEN random_text(3000, 2) || 1 ELSE random_text(3000, id) END'),
	'3', 'all rows are there');
gone_meanwhile("BEGIN; $changed; DELETE FROM t WHERE id = 1; COMMIT", 'CLUSTER t USING t_slow', 'CLUSTER with a deleted row');
is(one($node, 'SELECT count(*) FROM t WHERE id > 1'), '2', 'all other rows are there');
gone_meanwhile($changed, 'CREATE INDEX t_brin ON t USING brin (slow(n, a))', 'CREATE INDEX');
is(one($node, q{SET enable_seqscan = off; SELECT count(*) FROM t WHERE slow(n, a) = md5(reverse(random_text(3000000, 1)))}),
	'1', 'the index is right');

$_->quit foreach $old, $between, $writer, $holder, $maker;
check_log($node);
$node->stop;
done_testing();
