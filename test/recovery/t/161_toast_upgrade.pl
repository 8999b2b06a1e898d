# pg_upgrade of TOAST tables of ours, of heap's, and of empty ones.  The new cluster makes them all
# ours; whatever touches values in them is refused until inplace.after_upgrade() has been called, or
# an undo worker has come, for which statements wait.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $bin = `pg_config --bindir`);
# (Undo workers would do it.)
my $conf = "autovacuum = off\nautovacuum_naptime = 1s\nwal_consistency_checking = ''\n";
my $old = new_node('old', conf => $conf);
my $new = new_node('new', conf => "$conf\ninplace.toast_in_place = on\nmax_worker_processes = 0\n");
$old->start;
my $tables = q{
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
	CREATE TABLE p (id int, a text) PARTITION BY RANGE (id);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) USING inplace;
	SET inplace.toast_in_place = off;
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20) USING inplace;
	ALTER TABLE p1 ALTER a SET STORAGE EXTERNAL;
	ALTER TABLE p2 ALTER a SET STORAGE EXTERNAL;
	INSERT INTO p SELECT g, repeat('part' || g, 2000) FROM generate_series(5, 14) g;
	CREATE TABLE heaps (id int PRIMARY KEY, a text) USING inplace;
	ALTER TABLE heaps ALTER a SET STORAGE EXTERNAL;
	INSERT INTO heaps SELECT g, repeat('gone', 2000) FROM generate_series(1, 300) g;
	INSERT INTO heaps VALUES (301, repeat('last', 2000));
	DELETE FROM heaps WHERE id < 301};
$old->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(second third);
foreach my $db (qw(postgres second third))
{
	$old->safe_psql($db, $_) foreach $tables, 'VACUUM emptied', 'VACUUM heaps';
}
$old->safe_psql('postgres', 'ALTER DATABASE second SET inplace.toast_in_place = off');

# In others, what is damaged.
my $damaged = q{
	CREATE EXTENSION inplace;
	SET inplace.toast_in_place = on;
	CREATE TABLE gone (a text) USING inplace;
	CREATE TABLE bad (a text) USING inplace;
	ALTER TABLE bad ALTER a SET STORAGE EXTERNAL;
	INSERT INTO bad VALUES (repeat('bad', 10000));
	SET inplace.toast_in_place = off;
	CREATE TABLE last (a text) USING inplace;
	ALTER TABLE last ALTER a SET STORAGE EXTERNAL;
	INSERT INTO last VALUES (repeat('last', 10000))};
my %file;
foreach my $db (qw(fourth fifth))
{
	$old->safe_psql('postgres', "CREATE DATABASE $db");
	one($old, $damaged, $db);
	$file{"$db.$_"} = one($old, qq{SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = '$_'}, $db) foreach qw(gone bad);
}

# (and what has been rolled back is still on the pages)
$old->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$old->restart;
one($old, "BEGIN; UPDATE t SET a = 'lost' || a; ROLLBACK", $_) foreach qw(postgres second third);
my @tables = qw(t blank emptied u m p1 p2 heaps);
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

# Its first page looks like one of heap's.
sub damage_first_page
{
	my ($file) = @_;
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	seek($fh, 12, 0);
	read($fh, my $lower, 2);
	seek($fh, 12, 0);
	print $fh pack('S', unpack('S', $lower) & ~3);
	close $fh or die "$file: $!";
}

chdir ${PostgreSQL::Test::Utils::tmp_check};
my ($ok, $said) = upgrade();
ok($ok, 'pg_upgrade');
foreach my $db (qw(fourth fifth))
{
	damage_first_page($new->data_dir . '/' . $file{"$db.bad"});
	unlink $new->data_dir . '/' . $file{"$db.gone"} or die "cannot remove a file: $!";
}
$new->start;
my $methods = q{SELECT string_agg(c.relname || ' ' || m.amname, ', ' ORDER BY c.relname) FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid
	JOIN pg_am m ON m.oid = t.relam JOIN pg_am o ON o.oid = c.relam WHERE o.amname = 'inplace' AND c.relkind IN ('r', 'm')};
my $refused = qr/ERROR:  55000: TOAST table "pg_toast_\d+" has not been looked at since pg_upgrade.*after_upgrade/s;
foreach my $statement ('SELECT a FROM t', "INSERT INTO t VALUES (repeat('x', 9000))", "UPDATE t SET a = 'x' || a", 'DELETE FROM t', 'VACUUM t', 'VACUUM', 'VACUUM FULL t',
	'COPY t TO STDOUT', 'SELECT * FROM emptied WHERE id = 301', 'SELECT a FROM heaps', 'VACUUM heaps', q{INSERT INTO blank SELECT string_agg(md5(g::text), '') FROM generate_series(1, 500) g},
	q{INSERT INTO p VALUES (1, repeat('x', 9000))}, q{INSERT INTO p VALUES (11, repeat('x', 9000))}, 'UPDATE p SET id = 10 WHERE id = 9', 'UPDATE p SET id = 9 WHERE id = 10',
	"COPY p FROM STDIN;\n12\t" . ('x' x 9000) . "\n\\.\n", 'DELETE FROM p WHERE id = 12', 'VACUUM p', 'CREATE INDEX ON p (md5(a))', 'CLUSTER heaps USING heaps_pkey')
{
	like(sqlstate_of($new, $statement), $refused, "refused: $statement");
}
is(one($new, q{SELECT count(*) FROM heaps; INSERT INTO heaps VALUES (1, 'short'); UPDATE heaps SET id = 2 WHERE id = 1; DELETE FROM heaps WHERE id = 2}), '1',
	'what needs no large values is not');
is(one($new, $methods), join(', ', map { "$_ inplace" } sort @tables), 'TOAST tables are all ours');
is(one($new, q{SELECT inplace.after_upgrade()}), '2', 'TOAST tables that had to be heap tables');
my $after = join(', ', map { $_ . ($_ eq 'heaps' || $_ eq 'p2' ? ' heap' : ' inplace') } sort @tables);
is(one($new, $methods), $after, '... are so');
my $writer = psql_session($new);
$writer->query_safe($_) foreach 'BEGIN', q{INSERT INTO t VALUES (repeat('of another', 2000))};
is(one($new, q{SET lock_timeout = '1s'; SELECT inplace.after_upgrade()}), '0', 'and now nothing is to be done, which needs no strong lock');
$writer->query_safe('ROLLBACK');
$writer->quit;
is(contents($new, $_), $before{$_}, "contents of $_") foreach @tables;
is(one($new, q{UPDATE t SET a = 'new' || a RETURNING length(a)}), '10004', 'and can be changed');
is(one($new, q{UPDATE heaps SET a = 'new' || a RETURNING length(a)}), '8003', 'heap TOAST, too');
one($new, q{UPDATE p SET id = 10, a = 'new' || a WHERE id = 9});
is(one($new, q{SELECT length(a) FROM p2 WHERE a LIKE 'new%'}), '10003', 'and a row that moves to another partition');
is(one($new, q{INSERT INTO blank VALUES (repeat('now it is not', 2000)) RETURNING length(a)}), '26000', 'and an empty one');
one($new, 'VACUUM FULL t');
is(one($new, q{SELECT length(a) FROM t}), '10004', 'rewritten');
check_clean($new, 'upgraded');

# In a database whose setting is off what is empty becomes heap's.  (The materialized view's
# row is compressed, and in line.)
is(one($new, q{SELECT inplace.after_upgrade()}, 'second'), '4', 'a database with the setting off');
(my $off = $after) =~ s/\b(blank|m) inplace/$1 heap/g;
is(one($new, $methods, 'second'), $off, '... has empty heap TOAST tables');
is(contents($new, 't', 'second'), $before{t}, '... and one of ours');

# A page that is damaged makes no heap table of one of ours (without checksums that stays undecided), and
# a file that is missing does not stop those behind.
like(one($new, q{SELECT inplace.after_upgrade()}, 'fourth'), qr/^1$/m, 'with a damaged page, and without a file');
like(one($new, q{SELECT inplace.after_upgrade()}, 'fourth'), qr/^0$/m, '... once more');
my $decided = 'bad inplace, gone inplace, last heap';
is(one($new, $methods, 'fourth'), $decided, '... the TOAST table stays ours, and the last is settled');

# Undo workers do it by themselves.
$new->append_conf('postgresql.conf', 'max_worker_processes = 8');
$new->restart;
is(contents($new, $_, 'third'), $before{$_}, "contents of $_ as soon as the server is up") foreach qw(heaps t);
ok(defined poll_value($new, qq{SELECT ($methods) = '$after'}, 60, 'third'), 'TOAST tables are what they have to be');
is(contents($new, $_, 'third'), $before{$_}, "contents of $_") foreach @tables;
ok(defined poll_value($new, qq{SELECT ($methods) = '$decided'}, 60, 'fifth'), 'damage does not stop them');
one($new, q{UPDATE heaps SET a = 'new' || a; UPDATE t SET a = 'new' || a}, 'third');
check_clean($new, 'third database', 'third');
$new->stop;
check_log($new);

done_testing();
