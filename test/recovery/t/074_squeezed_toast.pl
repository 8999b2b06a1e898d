# Versions that nobody needs any more may still be on the way to older ones, or at its end,
# where others between them have been dropped; VACUUM takes away what they had in the TOAST
# table.  Rewrites and index builds leave them alone.

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
$node->safe_psql('postgres', 'CREATE EXTENSION inplace; CREATE TABLE other (id int)');
my $step = pgbench_script($node, 'step', 'UPDATE t SET n = n + 1 WHERE id = 1;');

foreach my $index ('', 'inplace_btree (md5(big))', 'inplace_btree (left(big, 20))', 'inplace_btree (big)', 'brin (md5(big))', q{gin (string_to_array(left(big, 50), ' '))})
{
	my $name = $index || 'no index';
	$node->safe_psql('postgres', q{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id int PRIMARY KEY, n int, big text);
		ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
		INSERT INTO t SELECT 1, 0, repeat('a', 2500);});
	$node->safe_psql('postgres', "CREATE INDEX t_i ON t USING $index") if $index;
	my ($old, $open) = map { psql_session($node) } 1 .. 2;
	$old->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT * FROM t');
	$node->safe_psql('postgres', q{UPDATE t SET big = repeat('b', 2500)});
	# it has an xid, and does not need what was before
	$open->query_safe($_) foreach ('BEGIN', 'INSERT INTO other VALUES (1)');
	$node->command_ok([ 'pgbench', '-n', '-c', 1, '-t', 1300, '-f', $step, '-d', $node->connstr('postgres') ], "$name: updates");
	is($old->query_safe('SELECT n, length(big), left(big, 1) FROM t'), '0|2500|a', "$name: the old snapshot");
	$old->query_safe('COMMIT');
	my $toast = $node->safe_psql('postgres', q{SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 't'::regclass});
	my $chunks = "SELECT count(DISTINCT chunk_id) FROM $toast";
	$node->safe_psql('postgres', 'VACUUM t');
	is($node->safe_psql('postgres', $chunks), 1, "$name: VACUUM takes the old value away") unless $index;
	my @statements = ('VACUUM t', 'REINDEX TABLE t', 'CREATE INDEX t_late ON t USING inplace_btree (md5(big))', 'DROP INDEX t_late',
		'VACUUM FULL t', 'CLUSTER t USING t_pkey', 'ALTER TABLE t ADD x timestamptz DEFAULT clock_timestamp()', q{UPDATE t SET big = repeat('c', 2500)}, 'VACUUM t');
	foreach my $sql (@statements)
	{
		my ($rc, $out, $err) = $node->psql('postgres', $sql);
		is($err, '', "$name: $sql");
	}
	is($node->safe_psql('postgres', 'SELECT n, length(big), left(big, 1) FROM t'), '1300|2500|c', "$name: the row");
	check_clean($node, $name);
	is($open->query_safe('SELECT n, length(big), left(big, 1) FROM t'), '1300|2500|c', "$name: the row for the open transaction");
	$_->quit foreach $old, $open;
	$node->safe_psql('postgres', 'VACUUM t');
	check_clean($node, "$name, all ended");
}
check_log($node);
$node->stop;
done_testing();
