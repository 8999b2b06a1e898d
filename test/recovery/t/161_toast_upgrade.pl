# pg_upgrade of TOAST tables of ours, of heap's, and of empty ones.  The new cluster makes them all
# heap tables; what is of ours is refused until inplace.after_upgrade() has been called.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

chomp(my $bin = `pg_config --bindir`);
my $conf = "autovacuum = off\nautovacuum_naptime = 1s\nwal_consistency_checking = ''\n";
my $old = new_node('old', conf => $conf);
my $new = new_node('new', conf => "$conf\ninplace.toast_in_place = on\n");
$old->start;
$old->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	SET inplace.toast_in_place = on;
	CREATE TABLE t (a text) USING inplace;
	ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
	INSERT INTO t VALUES (repeat('large', 2000));
	UPDATE t SET a = a || 'r';
	CREATE TABLE blank (a text) USING inplace;
	CREATE TABLE emptied (id int PRIMARY KEY, a text) USING inplace;
	ALTER TABLE emptied ALTER a SET STORAGE EXTERNAL;
	INSERT INTO emptied SELECT g, repeat('gone', 2000) FROM generate_series(1, 300) g;
	INSERT INTO emptied VALUES (301, repeat('last', 2000));
	DELETE FROM emptied WHERE id < 301;
	CREATE UNLOGGED TABLE u (a text) USING inplace;
	ALTER TABLE u ALTER a SET STORAGE EXTERNAL;
	INSERT INTO u VALUES (repeat('unlogged', 2000));
	CREATE MATERIALIZED VIEW m USING inplace AS SELECT a FROM u;
	SET inplace.toast_in_place = off;
	CREATE TABLE heaps (a text) USING inplace;
	ALTER TABLE heaps ALTER a SET STORAGE EXTERNAL;
	INSERT INTO heaps VALUES (repeat('large', 2000))});
$old->safe_psql('postgres', 'VACUUM emptied');
# (and what has been rolled back is still on the pages)
$old->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$old->restart;
one($old, "BEGIN; UPDATE t SET a = 'lost' || a; ROLLBACK");
my @tables = qw(t blank emptied u m heaps);
my %before = map { $_ => contents($old, $_) } @tables;
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
my ($ok, $said) = upgrade();
ok($ok, 'pg_upgrade');
$new->start;
my $of_toast = qr/ERROR:  XX001: page in block \d+ of relation "pg_toast_\d+" is one of an inplace table.*after_upgrade/s;
foreach my $statement ('SELECT a FROM t', "INSERT INTO t VALUES ('x')", "UPDATE t SET a = 'x' || a", 'DELETE FROM t', 'VACUUM t', 'VACUUM', 'VACUUM FULL t', 'ANALYZE t',
	'COPY t TO STDOUT', 'SELECT * FROM emptied WHERE id = 301')
{
	like(sqlstate_of($new, $statement), $of_toast, "refused: $statement");
}
is(contents($new, 'heaps'), $before{heaps}, 'a heap TOAST table is read at once');
# Autovacuum is kept away.
my $toast = one($new, q{SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'});
one($new, 'CREATE TABLE other (a int) USING heap WITH (autovacuum_vacuum_threshold = 1); INSERT INTO other SELECT generate_series(1, 1000); DELETE FROM other');
my $log_size = -s $new->logfile;
$new->append_conf('postgresql.conf', 'autovacuum = on');
$new->reload;
my $found = 0;
foreach (1 .. 300)
{
	last if $found = slurp_file($new->logfile, $log_size) =~ /ERROR: +(XX001: )?page in block \d+ of relation "pg_toast_\d+" is one of an inplace table/;
	usleep(100_000);
}
ok($found, 'autovacuum ends with the error');
is(one($new, q{SELECT inplace.after_upgrade()}), '3', 'TOAST tables that were mistaken');
my $writer = psql_session($new);
$writer->query_safe($_) foreach 'BEGIN', q{INSERT INTO t VALUES (repeat('of another', 2000))};
is(one($new, q{SET lock_timeout = '1s'; SELECT inplace.after_upgrade()}), '0', 'and now are not, which needs no strong lock');
$writer->query_safe('ROLLBACK');
$writer->quit;
is(contents($new, $_), $before{$_}, "contents of $_") foreach @tables;
ok(defined poll_value($new, q{SELECT count(*) > 0 FROM pg_stat_all_tables WHERE relname = 'other' AND autovacuum_count > 0}, 60), 'autovacuum goes on');
is(one($new, q{UPDATE t SET a = 'new' || a RETURNING length(a)}), '10004', 'and can be changed');
is(one($new, q{UPDATE heaps SET a = 'new' || a RETURNING length(a)}), '10003', 'heap TOAST, too');
is(one($new, q{INSERT INTO blank VALUES (repeat('now it is not', 2000)) RETURNING length(a)}), '26000', 'and an empty one');
one($new, 'VACUUM FULL t');
is(one($new, q{SELECT length(a) FROM t}), '10004', 'rewritten');
check_clean($new, 'upgraded');
$new->stop;

done_testing();
