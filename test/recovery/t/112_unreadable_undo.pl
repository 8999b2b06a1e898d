# The page of undo that a transaction would append to cannot be read.  That is an error of
# the one that finds out, not of all that come after it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('unreadable', extra => ['--data-checksums'], conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
shared_buffers = '1MB'
inplace.undo_worker_delay = 60000
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int);
	INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i;
	SELECT format('CREATE TABLE other_%1$s (v text) USING heap; INSERT INTO other_%1$s SELECT repeat(%2$L, 1000) FROM generate_series(1, 150)', i, 'x')
	FROM generate_series(1, 30) i \gexec
});
my $undo = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('inplace.undo_log')});

my $reader = psql_session($node);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
my $s = psql_session($node);
$s->query_safe('UPDATE t SET n = 1 WHERE id <= 50');
my $place = one($node, q{SELECT split_part(undo, '/', 1) FROM inplace.page_items('t', 0) WHERE item = 50});
note "block $place";
$node->safe_psql('postgres', 'CHECKPOINT');
one($node, join('; ', map { "SELECT count(v) FROM other_$_" } 1 .. 30)) for 1 .. 3;
overwrite_file($undo, $place * 8192 + 4096, join('', map { chr(($_ * 37 + 11) % 256) } 0 .. 4095));

my $failed = sqlstate_of($node, 'UPDATE t SET n = 2 WHERE id = 60');
like($failed, qr/ERROR:  XX001: invalid page in block/, 'the page is found to be unreadable');
is(sqlstate_of($node, "UPDATE t SET n = 2 WHERE id = $_"), '', "a change after that: row $_") foreach 61 .. 63;
$s->query_safe('UPDATE t SET n = 2 WHERE id = 64');
is(one($node, 'SELECT count(*) FROM t WHERE n = 2'), '4', 'they are there');

# In a transaction that goes on, from a savepoint.
$s->query_safe('UPDATE t SET n = 3 WHERE id = 51');
$place = one($node, q{SELECT split_part(undo, '/', 1) FROM inplace.page_items('t', 0) WHERE item = 51});
note "block $place";
$node->safe_psql('postgres', 'CHECKPOINT');
one($node, join('; ', map { "SELECT count(v) FROM other_$_" } 1 .. 30)) for 1 .. 3;
overwrite_file($undo, $place * 8192 + 4096, join('', map { chr(($_ * 37 + 11) % 256) } 0 .. 4095));
$s->query('BEGIN; SAVEPOINT s; UPDATE t SET n = 3 WHERE id = 65');
like($s->{stderr}, qr/invalid page in block/, 'in a subtransaction');
$s->{stderr} = '';
$s->query_safe('ROLLBACK TO s');
$s->query_safe('UPDATE t SET n = 3 WHERE id = 66');
$s->query_safe('COMMIT');
is(sqlstate_of($node, 'UPDATE t SET n = 3 WHERE id = 67'), '', 'a change after that');
is(one($node, 'SELECT string_agg(id::text, $$ $$ ORDER BY id) FROM t WHERE n = 3'), '51 66 67', 'they are there');
$_->quit foreach $s, $reader;
$node->stop;
done_testing();
