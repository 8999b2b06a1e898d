# An update that stores values in the TOAST table, while others lock or update its row: the
# values are stored once, for a row that is ours to change, as on heap; logical decoding would
# choke on those of a change that did not come about.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
wal_level = logical
autovacuum = off
deadlock_timeout = 100ms
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE small (id int PRIMARY KEY, n int) USING inplace;
	INSERT INTO small SELECT g, 0 FROM generate_series(1, 20) g;});
my $has_decoding = $node->psql('postgres', q{SELECT pg_create_logical_replication_slot('s', 'test_decoding')}) == 0;

foreach my $am ('heap', 'inplace')
{
	foreach my $next ('DELETE FROM small WHERE id = 3', 'UPDATE small SET n = n + 1', q{UPDATE big SET f = 'short'}, 'INSERT INTO small VALUES (50, 1)')
	{
		$node->safe_psql('postgres', qq{
			DROP TABLE IF EXISTS big;
			CREATE TABLE big (id int PRIMARY KEY, v int, f text, g text) USING $am;
			ALTER TABLE big ALTER f SET STORAGE EXTERNAL;
			INSERT INTO big VALUES (1, 0, 'x', 'y'), (2, 0, repeat('o', 3000), 'y');
			UPDATE big SET v = 0;
			TRUNCATE small;
			INSERT INTO small SELECT g, 0 FROM generate_series(1, 20) g;});
		my $toast = $node->safe_psql('postgres', q{SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'big'::regclass});
		my $index = $node->safe_psql('postgres', "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '$toast'::regclass");
		my $size = $node->safe_psql('postgres', "SELECT pg_relation_size('$toast')");
		my ($keeper, $first, $second, $locker) = map { psql_session($node) } 1 .. 4;
		my $name = "$am, $next";

		# values cannot be stored meanwhile
		$keeper->query_safe($_) foreach 'BEGIN', "REINDEX INDEX $index";
		$first->query_safe($_) foreach 'BEGIN', 'INSERT INTO small VALUES (100, 1)';
		$first->query_until(qr/sent/, "\\echo sent\nUPDATE big SET f = repeat('a', 400000) WHERE id = 1 AND v = 0;\n");
		waits_for_lock($node, "$name: the update is about to store its value", 'UPDATE big SET f');
		$second->query_until(qr/sent/, "\\echo sent\nUPDATE big SET v = 1 WHERE id = 1;\n");
		waits_for_lock($node, "$name: another update waits for it", 'UPDATE big SET v = 1');
		foreach my $i (1 .. 3)
		{
			$locker->query_safe($_) foreach 'BEGIN', 'SELECT id FROM big WHERE id = 1 FOR KEY SHARE', $i == 2 ? 'ROLLBACK' : 'COMMIT';
		}
		$locker->query_safe($_) foreach 'BEGIN', 'SELECT id FROM big WHERE id = 1 FOR KEY SHARE';
		$keeper->query_safe('COMMIT');
		is($first->query_safe('SELECT v, length(f) FROM big WHERE id = 1'), '0|400000', "$name: it is done");
		cmp_ok($node->safe_psql('postgres', "SELECT pg_relation_size('$toast')") - $size, '<', 600000, "$name: ... and the value stored once");
		$first->query_safe($_) foreach $next, 'COMMIT';
		$locker->query_safe('COMMIT');
		is($second->query_safe('SELECT v, length(f) FROM big WHERE id = 1'), $next =~ /short/ ? '1|5' : '1|400000', "$name: the other one is, too");
		$_->quit foreach $keeper, $first, $second, $locker;

		# the value in vain: the row is another one when it has been waited for
		($first, $second) = map { psql_session($node) } 1 .. 2;
		$first->query_safe($_) foreach 'BEGIN', 'UPDATE big SET v = 2 WHERE id = 1';
		$second->query_safe($_) foreach 'BEGIN', 'INSERT INTO small VALUES (101, 1)';
		$second->query_until(qr/sent/, "\\echo sent\nUPDATE big SET f = repeat('b', 300000) WHERE id = 1 AND v = 1;\n");
		waits_for_lock($node, "$name: an update waits", 'UPDATE big SET f');
		$first->query_safe('COMMIT');
		is($second->query_safe('SELECT v FROM big WHERE id = 1'), 2, "$name: and does not find its row any more");
		$second->query_safe($_) foreach $next =~ s/50/51/r, 'COMMIT';
		$_->quit foreach $first, $second;
		check_clean($node, $name) if $am eq 'inplace';
	  SKIP:
		{
			skip 'test_decoding is not installed', 1 unless $has_decoding;
			my ($rc, $out, $err) = $node->psql('postgres', q{SELECT count(*) FILTER (WHERE data LIKE 'table%') > 4 FROM pg_logical_slot_get_changes('s', NULL, NULL)});
			is($out . $err, 't', "$name: it can be decoded");
		}
	}
}

# ---- a change of the key waits for those who have the key locked before it is the row's to change

foreach my $am ('heap', 'inplace')
{
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS big;
		CREATE TABLE big (id int PRIMARY KEY, v int, f text) USING $am;
		INSERT INTO big VALUES (1, 0, 'x');});
	my ($sharer, $changer) = map { psql_session($node) } 1 .. 2;
	$sharer->query_safe($_) foreach 'BEGIN', 'SELECT id FROM big FOR KEY SHARE';
	$changer->query_until(qr/sent/, "\\echo sent\nUPDATE big SET id = 5, f = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) i);\n");
	waits_for_lock($node, "$am: a change of the key waits", 'UPDATE big SET id = 5');
	is($sharer->query_safe('UPDATE big SET v = 7 RETURNING id, v'), '1|7', "$am: who has the key locked can change the row");
	$sharer->query_safe('COMMIT');
	is($changer->query_safe('SELECT id, v, length(f) FROM big'), '5|7|32000', "$am: then the key changes");
	$_->quit foreach $sharer, $changer;
}

# ---- functions in an index's expression may update, though they should not

$node->safe_psql('postgres', q{
	CREATE TABLE t (id int, x int, y int) USING inplace;
	CREATE TABLE lg (id int PRIMARY KEY, n int, pad text) USING inplace;
	INSERT INTO lg SELECT g, 0, 'log' FROM generate_series(1, 3) g;
	CREATE FUNCTION vol() RETURNS int LANGUAGE plpgsql VOLATILE AS $$ BEGIN UPDATE public.lg SET n = n + 1 WHERE id = 2; RETURN 1; END $$;
	CREATE FUNCTION f(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.vol(); RETURN i; END $$;
	INSERT INTO t SELECT g, g, 0 FROM generate_series(1, 3) g;
	CREATE INDEX tx ON t ((x + f(1)));});
my $session = psql_session($node);
$session->query_safe($_) foreach 'SET plan_cache_mode = force_generic_plan', 'PREPARE p AS UPDATE t SET y = y + 100 WHERE id = 3',
	'EXPLAIN (COSTS off) EXECUTE p', 'ALTER INDEX tx SET (fillfactor = 80)', 'EXECUTE p';
is($session->query_safe('SELECT * FROM t WHERE id = 3'), '3|3|100', 'the update of the row itself');
is($session->query_safe('SELECT id, pad, n > 0 FROM lg ORDER BY id'), "1|log|f\n2|log|t\n3|log|f", 'and those of the function');
$session->quit;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
