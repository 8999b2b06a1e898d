# The SQL tests and specs of test/under_others, which need a setting that the server reads
# when it starts.

use strict;
use warnings;
use File::Basename qw(dirname);
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('node', conf => q{
inplace.update_under_other_indexes = on
autovacuum_naptime = '1d'
max_connections = 30
});
$node->start;
my $dir = "$FindBin::RealBin/../../under_others";
my $regress = $ENV{PG_REGRESS};
my $isolation = dirname(dirname($regress)) . '/isolation/pg_isolation_regress';
for (['sql', $regress, $dir], ['isolation', $isolation, "$dir/isolation"])
{
	my ($what, $program, $input) = @$_;
	my $output = PostgreSQL::Test::Utils::tempdir();
	my $bindir = $node->config_data('--bindir');
	my $passed = run_log([ $program, "--bindir=$bindir", '--host=' . $node->host, '--port=' . $node->port,
		"--inputdir=$input", "--outputdir=$output", '--dbname=contrib_regression', '--load-extension=inplace',
		"--schedule=$input/schedule" ]);
	ok($passed, $what);
	diag(slurp_file("$output/regression.diffs")) if !$passed && -e "$output/regression.diffs";
}
check_log($node);

# Where the setting was never on VACUUM does not go through these indexes.
sub swept
{
	my ($in) = @_;
	my $from = -s $in->logfile;
	$in->safe_psql('postgres', 'UPDATE t SET n = n + 1; VACUUM (INDEX_CLEANUP on) t');
	return slurp_file($in->logfile, $from) =~ /deleted \d+ stale entries/ ? 1 : 0;
}
my $off = new_node('off', conf => q{
log_min_messages = debug2
autovacuum = off
default_table_access_method = 'inplace'
});
$off->start;
$off->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, a int[], n int);
	CREATE INDEX ON t USING inplace_btree (n);
	INSERT INTO t SELECT i, ARRAY[i], i FROM generate_series(1, 1000) i;
	CREATE INDEX ON t USING gin (a);
});
is(swept($off), 0, 'never on');
$off->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = on');
$off->restart;
$off->safe_psql('postgres', 'SELECT count(*) FROM t');
is(swept($off), 1, 'updated with the setting on');
$off->append_conf('postgresql.conf', 'inplace.update_under_other_indexes = off');
$off->stop('immediate');
$off->start;
is(swept($off), 1, 'off again');
done_testing();
