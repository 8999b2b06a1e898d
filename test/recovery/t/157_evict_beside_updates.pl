# Values of evicted rows have extents of undo of their own: where transactions that update the same
# rows over and over evict others now and then, undo stays small under a held snapshot, and is right,
# with rollbacks, and after a crash.  Near the limit of undo changes go where such values are before
# they fail.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = seed();
my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
inplace.undo_worker_delay = 100
});
$node->start;
$node->safe_psql('postgres', join(";\n",
	'CREATE EXTENSION inplace',
	'CREATE TABLE hot (id int PRIMARY KEY, n int, v text)',
	q{INSERT INTO hot SELECT i, 0, repeat(md5(i::text), 10) FROM generate_series(1, 20) i},
	'CREATE TABLE q (id int PRIMARY KEY, k int, pad text)',
	q{INSERT INTO q SELECT i, i, repeat('x', 150) FROM generate_series(1, 6000) i},
	'CREATE TABLE wide (id int PRIMARY KEY, pad text)',
	q{INSERT INTO wide SELECT i, repeat('x', 1000) FROM generate_series(1, 900) i},
	'VACUUM hot, q, wide'));

my $look = q{SELECT (SELECT md5(string_agg(hot::text, '|' ORDER BY id)) FROM hot WHERE id > 0),
	(SELECT md5(string_agg(q::text, '|' ORDER BY id)) FROM q WHERE id > 0), (SELECT count(*) FROM wide WHERE pad LIKE 'x%')};
my @ways = ($look, "SET enable_seqscan = off; SET enable_bitmapscan = off; $look; RESET ALL");
my $used = q{SELECT used_bytes FROM inplace.undo WHERE kind = 'logged'};

sub hold
{
	my $session = psql_session($node);
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	return ($session, $session->query_safe($look));
}
sub sees
{
	my ($session, $expected, $what) = @_;
	is($session->query_safe($_), $expected, "$what: the snapshot sees what it saw (seed $seed)") foreach @ways;
}
sub evicted
{
	return one($node, q{SELECT count(*) FROM generate_series(0, pg_relation_size('q') / 8192 - 1) b,
		LATERAL inplace.page_items('q', b) WHERE 'EVICTED' = ANY (flags)});
}
sub undo_is_empty
{
	my ($what) = @_;
	ok(defined poll_value($node, q{SELECT used_bytes = 0 FROM inplace.undo WHERE kind = 'logged'}, 60), "$what: undo is empty")
	  or diag(one($node, 'SELECT * FROM inplace.undo'));
}

# ---- one transaction in 400 evicts rows, so that most extents with changes would have values, too

my $load = pgbench_script($node, 'load', q{
\set a random(1, 20)
\set k random(1, 1000000000)
\set i :i + 1
\set from :client_id * 1500 + :done
BEGIN;
UPDATE hot SET n = n + 1, v = repeat(md5(:k::text), 10) WHERE id = :a;
\if :i % 400 = 200
DELETE FROM q WHERE id > :from AND id <= :from + 40;
\elif :i % 800 = 0
SAVEPOINT s;
INSERT INTO q SELECT j, -j, repeat('z', 150) FROM generate_series(:from + 1, :from + 40) j;
ROLLBACK TO s;
INSERT INTO q SELECT j, -j, repeat('y', 150) FROM generate_series(:from + 1, :from + 40) j;
\set done :done + 40
\elif :i % 400 = 0
INSERT INTO q SELECT j, -j, repeat('y', 150) FROM generate_series(:from + 1, :from + 40) j;
\set done :done + 40
\endif
UPDATE hot SET n = n - 1 WHERE id = :a;
\if :i % 90 = 45
ROLLBACK;
\else
COMMIT;
\endif
});

undo_is_empty('at first');
my ($held, $expected) = hold();
my $out = unchecked { end_pgbench(start_pgbench($node, '-c', 2, '-j', 2, '-t', 7700, '-D', 'i=0', '-D', 'done=0', '-f', $load)) };
unlike($out, qr/aborted/, 'the load has had no error') or diag($out);
is(one($node, 'SELECT sum(n) FROM hot'), 0, 'all of it has been done, or nothing');
is(one($node, 'SELECT count(*) FROM q WHERE k < 0'), 2 * 19 * 40, 'rows have been replaced');
my $evicted = evicted();
cmp_ok($evicted, '>', 500, 'rows have been evicted');
sees($held, $expected, 'the load');

# The updates have written more than 10 MB, and rows were evicted in each 300 kB of them.  What is
# needed are some 80 versions of each row at most, and the values, which is less than 2 MB.
my $limit = 4 * 1024 * 1024;
ok(defined poll_value($node, "SELECT used_bytes < $limit FROM inplace.undo WHERE kind = 'logged'", 60),
	'what nobody needs of the updates is given back');
note 'undo has ' . one($node, $used) . ' bytes';
is(evicted(), $evicted, '... beside the values of evicted rows');
sees($held, $expected, 'after undo was given back');
check_clean($node, 'the load');

# ---- one transaction after the other in a session, with all kinds of ends, and a crash

$node->safe_psql('postgres', 'DELETE FROM q WHERE id > 3000 AND id % 2 = 0');
my $session = psql_session($node);
foreach my $i (1 .. 5)
{
	$session->query_safe($_) foreach ('BEGIN', 'UPDATE hot SET n = n + 1', 'SAVEPOINT s',
		"INSERT INTO q SELECT 10000 * $i + j, -j, repeat('w', 150) FROM generate_series(1, 100) j", ($i == 3 ? 'ROLLBACK TO s' : 'RELEASE s'),
		'UPDATE hot SET n = n - 1', ($i == 4 ? 'ROLLBACK' : $i == 5 ? q{PREPARE TRANSACTION 'p'} : 'COMMIT'));
}
cmp_ok(evicted(), '>', $evicted, 'rows are evicted between changes');
sees($held, $expected, 'changes and evictions');
is(one($node, 'SELECT sum(n) FROM hot'), 0, '... others see all of each transaction');
my $rows = contents($node, 'q');
$session->quit;
kill9_all($node);
eval { $held->quit };
$node->start;
is(contents($node, 'q'), $rows, 'after a crash');
check_clean($node, 'after a crash');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is(one($node, q{SELECT (SELECT sum(n) FROM hot) || ' ' || (SELECT count(*) FROM q WHERE id > 50000)}), '0 100', 'what was prepared');
check_clean($node, 'the prepared transaction');
undo_floor_reached($node, 'after the snapshot', 60);

# ---- undo_limit allows four extents.  One has values of evicted rows, and three have places for
# 672 updates of the wide rows: the others are put beside the values.

$node->safe_psql('postgres', $_) foreach ('TRUNCATE q', q{INSERT INTO q SELECT i, i, repeat('x', 150) FROM generate_series(1, 3000) i}, 'VACUUM q');
undo_is_empty('before the limit');
$node->safe_psql('postgres', $_) foreach (q{ALTER SYSTEM SET inplace.undo_limit = '1MB'}, 'SELECT pg_reload_conf()');
ok(defined poll_value($node, q{SELECT current_setting('inplace.undo_limit') = '1MB'}, 20), 'the limit is set');
($held, $expected) = hold();
$node->safe_psql('postgres', $_) foreach ('DELETE FROM q WHERE id <= 100',
	q{INSERT INTO q SELECT 20000 + j, -j, repeat('u', 150) FROM generate_series(1, 150) j});
cmp_ok(evicted(), '>', 0, 'the limit: rows are evicted');
cmp_ok(one($node, $used), '<', 10 * 8192, '... to few pages');
my (undef, undef, $err) = $node->psql('postgres', q{DO $$ BEGIN
	FOR i IN 1 .. 900 LOOP UPDATE wide SET pad = repeat('y', 1000) WHERE id = i; COMMIT; END LOOP; END $$});
like($err, qr/undo of inplace tables has reached the limit/, 'changes fail in the end');
cmp_ok(one($node, q{SELECT count(*) FROM wide WHERE pad LIKE 'y%'}), '>', 690, '... but not before all of undo has been used');
sees($held, $expected, 'the limit');
$held->quit;

# the same for the values that a transaction has put there itself
undo_is_empty('before the limit again');
$node->safe_psql('postgres', 'VACUUM q');
($held, $expected) = hold();
$node->safe_psql('postgres', 'DELETE FROM q WHERE id BETWEEN 1001 AND 1100');
(undef, my $out2, $err) = $node->psql('postgres', q{BEGIN;
	INSERT INTO q SELECT 30000 + j, -j, repeat('u', 150) FROM generate_series(1, 150) j;
	CREATE TABLE done (n int);
	DO $$ BEGIN FOR i IN 1 .. 900 LOOP
		BEGIN UPDATE wide SET pad = repeat('z', 1000) WHERE id = i;
		EXCEPTION WHEN configuration_limit_exceeded THEN INSERT INTO done VALUES (i); EXIT; END;
	END LOOP; END $$;
	SELECT n FROM done; COMMIT});
cmp_ok($out2, '>', 690, 'a transaction uses all of its own undo before a change fails') or diag($err);
sees($held, $expected, 'the limit again');
$node->safe_psql('postgres', $_) foreach ('ALTER SYSTEM RESET inplace.undo_limit', 'SELECT pg_reload_conf()');
$held->quit;
check_clean($node, 'the limit');
undo_floor_reached($node, 'at the end', 60);
check_log($node);
done_testing();
