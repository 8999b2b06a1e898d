# CREATE DATABASE from a template with inplace tables, DROP DATABASE and DROP
# EXTENSION, while the undo workers are at work.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(time);

my $node = new_node('dbs', conf => "inplace.undo_worker_delay = 10\n");
$node->start;
my $load = q{
	UPDATE t SET n = n + 1;
	BEGIN; UPDATE t SET v = 'lost', n = 0; DELETE FROM t WHERE id % 2 = 0; ROLLBACK;
	UPDATE t SET v = v || 'x' WHERE id % 10 = 0;
};
$node->safe_psql('postgres', 'CREATE DATABASE src');
$node->safe_psql('src', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int, v text) USING inplace;
	CREATE INDEX ON t (n);
	CREATE UNLOGGED TABLE u (id int) USING inplace;
	INSERT INTO t SELECT i, 0, 'v' FROM generate_series(1, 6000) i;
	INSERT INTO u SELECT generate_series(1, 100);
});
my @made;
foreach my $strategy ('wal_log', 'file_copy', 'wal_log')
{
	my $db = 'copy' . (1 + @made);
	# One statement after the other, each of its own transaction.
	$node->safe_psql('src', $_) foreach split /;\n/, $load =~ s/^\s+//r;
	my $want = contents($node, 't', 'src');
	my $start = time();
	is(one($node, "CREATE DATABASE $db TEMPLATE src STRATEGY $strategy"), '', "$db: CREATE DATABASE by $strategy at work");
	note sprintf('%.1f s', time() - $start);
	push @made, $db;
	is(contents($node, 't', $db), $want, "$db: contents");
	is(one($node, 'SELECT count(*) FROM u', $db), '100', "$db: unlogged table");
	check_clean($node, $db, $db);
	is(one($node, 'UPDATE t SET n = n + 1; SELECT count(*) FROM t WHERE n > 0', $db), '6000', "$db: writing");
	undo_floor_reached($node, $db, 20, $db);
	check_clean($node, "$db after writing", $db);
}
# Rows of the template and its copies are not mixed up by a crash.
my %want = map { $_ => contents($node, 't', $_) } 'src', @made;
$node->safe_psql('src', "BEGIN; UPDATE t SET v = 'lost'; ROLLBACK");
is(one($node, 'CREATE DATABASE copy9 TEMPLATE src'), '', 'copy9: right after a rollback');
$node->stop('immediate');
$node->start;
is(contents($node, 't', $_), $want{$_}, "$_ after a crash") foreach (sort keys %want);
is(contents($node, 't', 'copy9'), $want{src}, 'copy9 after a crash');
check_clean($node, "$_ after a crash", $_) foreach (sort(keys %want), 'copy9');

# DROP right after a load; rename and move as well.
$node->safe_psql('copy1', q{UPDATE t SET n = n + 1; });
$node->safe_psql('copy1', q{BEGIN; UPDATE t SET v = 'lost'; ROLLBACK});
my $start = time();
is(one($node, 'ALTER DATABASE copy1 RENAME TO renamed'), '', 'ALTER DATABASE RENAME at work');
is(one($node, 'SELECT count(*) FROM t', 'renamed'), '6000', 'renamed');
foreach my $db ('renamed', 'copy2', 'copy3')
{
	$node->safe_psql($db, q{BEGIN; UPDATE t SET v = 'lost', n = n + 1; ROLLBACK});
	$node->safe_psql($db, q{UPDATE t SET n = n + 1});
	$start = time();
	is(one($node, "DROP DATABASE $db"), '', "DROP DATABASE $db at work");
	cmp_ok(time() - $start, '<', 15, "DROP DATABASE $db takes no time");
}
# Its name and files are used again.
$node->safe_psql('postgres', 'CREATE DATABASE copy2');
$node->safe_psql('copy2', q{CREATE EXTENSION inplace; CREATE TABLE t (id int, n int) USING inplace; INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i});
is(one($node, 'UPDATE t SET n = n + 1; SELECT sum(n) FROM t', 'copy2'), 1000 * 1001 / 2 + 1000, 'a new database of an old name');
undo_floor_reached($node, 'copy2', 20, 'copy2');

# DROP EXTENSION
foreach my $i (1 .. 3)
{
	$node->safe_psql('copy2', q{BEGIN; UPDATE t SET n = 0; ROLLBACK});
	$node->safe_psql('copy2', q{UPDATE t SET n = n + 1});
	unlike(one($node, 'DROP EXTENSION inplace', 'copy2'), qr/^$/, "DROP EXTENSION needs CASCADE");
	is(one($node, 'SET client_min_messages = warning; DROP EXTENSION inplace CASCADE', 'copy2'), '', 'DROP EXTENSION CASCADE');
	is(one($node, q{SELECT count(*) FROM pg_class WHERE relname = 't'}, 'copy2'), '0', 'its tables are gone');
	if ($i == 2)
	{
		$node->stop('immediate');
		$node->start;
	}
	is(one($node, q{CREATE EXTENSION inplace; CREATE TABLE t (id int, n int) USING inplace; INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i}, 'copy2'),
		'', 'CREATE EXTENSION again');
	is(one($node, 'UPDATE t SET n = n + 1; SELECT sum(n) FROM t', 'copy2'), 1000 * 1001 / 2 + 1000, '... and used');
	check_clean($node, 'after CREATE EXTENSION', 'copy2');
}
# Sessions that knew the undo of the extension before find that of the new one, whatever
# they do first.
my @first = ('UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n', 'DELETE FROM t WHERE id = 2 RETURNING n - 1', 'SELECT n - 2 FROM t WHERE id = 3 FOR UPDATE',
	'SELECT n - 3 FROM t WHERE id = 4', q{DO $$ BEGIN BEGIN UPDATE t SET n = 0 WHERE id = 5; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END; END $$; SELECT n - 4 FROM t WHERE id = 5});
my @sessions = map { psql_session($node, 'copy2') } @first;
$_->query_safe('BEGIN; UPDATE t SET n = n + 1 WHERE id = 900; ROLLBACK; SELECT count(*) FROM t') foreach @sessions;
is(one($node, q{SET client_min_messages = warning; DROP EXTENSION inplace CASCADE; CREATE EXTENSION inplace; CREATE TABLE t (id int, n int) USING inplace; INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i}, 'copy2'),
	'', 'the extension goes and comes beside sessions that have used it');
my $other = psql_session($node, 'copy2');
$other->query_safe($_) foreach 'BEGIN', 'UPDATE t SET n = 0 WHERE id = 4';
is($sessions[$_]->query_safe($first[$_]), $_ == 0 ? '2' : '1', $first[$_]) foreach 0 .. $#first;
$other->query_safe('ROLLBACK');
$_->quit foreach $other, @sessions;
check_clean($node, 'after that', 'copy2');
is(one($node, q{TRUNCATE t; INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i}, 'copy2'), '', 'the table is filled again');
# DROP EXTENSION rolled back.
is(one($node, 'BEGIN; SET client_min_messages = warning; DROP EXTENSION inplace CASCADE; ROLLBACK; UPDATE t SET n = n + 1; SELECT count(*) FROM t', 'copy2'),
	'1000', 'DROP EXTENSION rolled back');
undo_floor_reached($node, 'copy2 at the end', 20, 'copy2');
check_clean($node, 'copy2 at the end', 'copy2');
# Who may not have the database leaves its worker alone.
$node->safe_psql('postgres', 'CREATE ROLE other CREATEDB');
$node->safe_psql('src', q{BEGIN; UPDATE t SET n = 0 WHERE id = 1; PREPARE TRANSACTION 'p'});
my $worker = q{SELECT pid FROM pg_stat_activity WHERE datname = 'src' AND backend_type = 'inplace undo worker'};
$node->poll_query_until('postgres', "SELECT EXISTS ($worker)");
my $pid = one($node, $worker);
foreach my $sql ('DROP DATABASE src', 'DROP DATABASE src WITH (FORCE)', 'ALTER DATABASE src RENAME TO mine',
	'ALTER DATABASE src SET TABLESPACE pg_default', 'CREATE DATABASE mine TEMPLATE src')
{
	like(sqlstate_of($node, "SET ROLE other;\n$sql"), qr/ERROR:  42501/, "$sql by another role");
	is(one($node, $worker), $pid, "$sql by another role: the undo worker stays");
}
# ... of whom that can be said.
like(sqlstate_of($node, 'DROP DATABASE src'), qr/ERROR:  55006/, 'DROP DATABASE with a prepared transaction');
isnt(one($node, $worker), $pid, 'DROP DATABASE by its owner: the undo worker goes');
$node->safe_psql('src', q{ROLLBACK PREPARED 'p'});
is(contents($node, 't', 'src'), $want{src}, 'src at the end');
check_clean($node, 'src at the end', 'src');
$node->stop;
check_log($node);
done_testing();
