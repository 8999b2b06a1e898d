# A session imports a snapshot that does not see how it has changed its own temporary tables.
# Their undo is gone by then: the error says so, and does not speak of damage.

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
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');
my ($exporter, $importer) = map { psql_session($node) } 1 .. 2;
$importer->query_safe('CREATE TEMP TABLE t (id int, n int); INSERT INTO t VALUES (1, 0), (2, 0)');
my $snapshot = $exporter->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_export_snapshot()');
$importer->query_safe($_) foreach ('UPDATE t SET n = 1', 'UPDATE t SET n = 2 WHERE id = 1');
for my $sql ('SELECT * FROM t', 'UPDATE t SET n = 7')
{
	$importer->{stderr} = '';
	$importer->query("BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$snapshot'");
	$importer->query($sql);
	like($importer->{stderr}, qr/ERROR:  temporary table "t" has been changed since the snapshot in use was taken/, $sql);
	$importer->query('ROLLBACK');
}
$importer->{stderr} = '';
is($importer->query_safe('SELECT * FROM t ORDER BY id'), "1|2\n2|1", 'the table is as it was');
$_->quit foreach $importer, $exporter;
check_log($node);
$node->stop;
done_testing();
