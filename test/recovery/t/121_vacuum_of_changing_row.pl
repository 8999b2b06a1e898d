# VACUUM looks at what a rollback of a row's change would bring back.  Nobody waits for
# VACUUM's snapshot: the change may be committed meanwhile, and its undo given back.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => "autovacuum = off\ninplace.undo_worker_delay = 100");
my $lib = build_module($node, 'hold_page');
my $release = $node->basedir . '/release';
$node->start;
one($node, qq{
	CREATE EXTENSION inplace;
	CREATE FUNCTION hold_page(regclass, int, text) RETURNS void LANGUAGE C STRICT AS '$lib';
	CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace;
	CREATE TABLE other (id int, filler text) USING inplace;
	INSERT INTO t VALUES (1, 0);
	INSERT INTO other SELECT g, repeat('a', 200) FROM generate_series(1, 2000) g});

# VACUUM is stopped when it is about to read the record of the change
my ($writer, $holder, $vacuum) = map { psql_session($node) } 1 .. 3;
$writer->query_safe($_) foreach 'BEGIN', 'UPDATE t SET n = 1';
my ($block) = split m{/}, one($node, q{SELECT undo FROM inplace.page_items('t', 0)});
$holder->query_until(qr/sent/, "\\echo sent\nSELECT hold_page('inplace.undo_log', $block, '$release');\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT hold_page%'}),
	'the page of its undo is locked');
my $pid = $vacuum->query_safe('SELECT pg_backend_pid()');
$vacuum->query_until(qr/sent/, "\\echo sent\nVACUUM t;\n");
ok($node->poll_query_until('postgres', "SELECT wait_event = 'BufferContent' FROM pg_stat_activity WHERE pid = $pid"),
	'VACUUM is about to read it');
kill 'STOP', $pid;
append_to_file($release, '');
$holder->query_safe('SELECT 1');

$writer->query_safe('COMMIT');
ok(defined poll_value($node, q{SELECT free_extents = extents FROM inplace.undo WHERE kind = 'logged'}, 60),
	'the undo is given back');
one($node, q{UPDATE other SET filler = repeat('b', 200)});
kill 'CONT', $pid;

my ($out, $failed) = $vacuum->query(q{SELECT 'done'});
ok($out eq 'done' && !$failed, 'VACUUM has ended well');
$_->quit foreach $writer, $holder, $vacuum;
is(one($node, 'SELECT * FROM t'), '1|1', 'the row is as it was left');
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
