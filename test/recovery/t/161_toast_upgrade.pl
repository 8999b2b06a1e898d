# pg_upgrade does not take over TOAST tables of ours: it says so, before anything is done.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $bin = `pg_config --bindir`);
my $conf = "autovacuum = off\nwal_consistency_checking = ''\n";
my $old = new_node('old', conf => $conf);
my $new = new_node('new', conf => "$conf\ninplace.toast_in_place = on\n");
$old->start;
$old->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	SET inplace.toast_in_place = on;
	CREATE TABLE t (a text) USING inplace;
	ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
	INSERT INTO t VALUES (repeat('large', 2000));
	UPDATE t SET a = a || 'r'});
my $before = contents($old, 't');
$old->stop('fast');

sub upgrade
{
	my ($out, $err);
	my $rc = run_log([ 'pg_upgrade', '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $bin, '-B', $bin,
			'-s', $new->host, '-p', $old->port, '-P', $new->port, @_ ], '>', \$out, '2>', \$err);
	note $out, $err;
	return ($rc, $out . $err);
}

chdir ${PostgreSQL::Test::Utils::tmp_check};
my ($ok, $said) = upgrade('--check');
ok(!$ok, 'refused');
$said .= slurp_file($_) foreach glob($new->data_dir . '/pg_upgrade_output.d/*/log/*');
$said .= slurp_file($old->logfile);
like($said, qr/pg_upgrade cannot take over TOAST table/, 'and told why');

$old->start;
$old->safe_psql('postgres', q{SET inplace.toast_in_place = off; SELECT inplace.convert('t', 'heap'); SELECT inplace.convert('t')});
$old->stop('fast');
($ok, $said) = upgrade();
ok($ok, 'with a heap TOAST table it goes');
$new->start;
is(contents($new, 't'), $before, 'and the value is there');
is(one($new, q{UPDATE t SET a = 'new' || a RETURNING length(a)}), '10004', 'and can be changed');
check_clean($new, 'upgraded');
$new->stop;
check_log($_) foreach $old, $new;

done_testing();
