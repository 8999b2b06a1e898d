# A new page of undo wants a buffer, and what is in that cannot be written.  That is an
# error of the command.  What it has begun must not stay with the transaction, which may go
# on from a savepoint.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('victim', conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
shared_buffers = '1MB'
bgwriter_lru_maxpages = 0
inplace.undo_worker_delay = 60000
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, v text);
	ALTER TABLE t ALTER v SET STORAGE PLAIN;
	INSERT INTO t VALUES (1, repeat('x', 4000));
	CREATE TABLE other (v text) USING heap;
	ALTER TABLE other ALTER v SET STORAGE PLAIN;
});
my $other = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('other')});

my $update = q{DO $$ BEGIN FOR i IN 1 .. 120 LOOP UPDATE t SET v = repeat(chr(65 + i % 20), 4000); END LOOP; END $$};

# What it needs of the catalogs it has looked up.
my $s = psql_session($node);
$s->query_safe($update) for 1 .. 3;
$s->query_safe(q{BEGIN; UPDATE t SET v = repeat('y', 4000)});
# a page each, so that none has been used often
$node->safe_psql('postgres', q{INSERT INTO other SELECT repeat('x', 5000) FROM generate_series(1, 200)});
# by others: this session must not have the file open
one($node, 'SELECT count(*) FROM t WHERE v IS NOT NULL') for 1 .. 5;
chmod 0, $other or die "chmod: $!";
$s->query_safe('SAVEPOINT s');
$s->query($update);
like($s->{stderr}, qr/could not open file/, 'the page in the buffer cannot be written');
$s->{stderr} = '';
chmod 0600, $other or die "chmod: $!";
$s->query_safe('ROLLBACK TO s');
is(sqlstate_of($node, q{SET statement_timeout = '20s'; CHECKPOINT}), '', 'others can write it');
is($s->query_safe('SELECT left(v, 1) FROM t'), 'y', 'the row');
$s->query_safe(q{UPDATE t SET v = repeat('z', 4000)});
$s->query_safe('COMMIT');
is(one($node, 'SELECT left(v, 1) FROM t'), 'z', 'a change after that');
$s->quit;
is(one($node, q{SELECT count(*) FROM inplace.check('t')}), '0', 'check()');
done_testing();
