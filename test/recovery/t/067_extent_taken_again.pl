# An undo extent that has room left is written to again by a later transaction: the undo worker
# must not take what it has then for older than what was written in between, or versions that a
# held snapshot needs are given back.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
inplace.undo_worker_delay = 100
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int, n int, v text);
	CREATE TABLE aux (n int);
	CREATE TABLE other (id int, v text);
	ALTER TABLE t ALTER v SET STORAGE plain;
	ALTER TABLE other ALTER v SET STORAGE plain;
	INSERT INTO aux VALUES (1);
	INSERT INTO t SELECT i, 0, repeat(md5(i::text), 45) FROM generate_series(1, 250) i;
	INSERT INTO other SELECT i, repeat(md5(i::text), 45) FROM generate_series(1, 250) i;});
my $look = q{SELECT md5(string_agg(id || v || n, ',' ORDER BY id)) FROM t};
my ($holder, $first, $second) = map { psql_session($node) } 1 .. 3;

$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $seen = $holder->query_safe($look);
# the extent of the second, handed back
$second->query_safe('UPDATE aux SET n = n + 1');
use_up_xids($node);
$first->query_safe($_) foreach ('BEGIN', 'SELECT pg_current_xact_id()');
# taken again, by a transaction with a younger xid than the first's
$second->query_safe($_) foreach ('BEGIN', 'UPDATE aux SET n = n + 1');
$first->query_safe($_) foreach (q{UPDATE t SET v = repeat(md5(v), 45)}, 'COMMIT');
# which leads to what the first has written, in an extent begun since
$second->query_safe('UPDATE t SET n = n + 1');
# several rounds of the worker; then somebody takes what it has given back
$node->safe_psql('postgres', 'SELECT pg_sleep(3)');
$node->safe_psql('postgres', q{UPDATE other SET v = repeat(md5(v), 45)});
is($holder->query($look), $seen, 'a held snapshot sees what it saw at first');
is($holder->{stderr}, '', 'without an error');
$second->query_safe('COMMIT');
is($holder->query($look), $seen, '... and afterwards');
$holder->query('COMMIT');
$_->quit foreach $holder, $first, $second;
check_clean($node, 'at the end');
check_log($node);
done_testing();
