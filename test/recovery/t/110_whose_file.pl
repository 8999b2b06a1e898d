# A table with the file of another access method: whatever is done with it is an error
# that names the relation and the block, within a time limit, and changes nothing.  The
# files are given to the wrong table in the catalog, by method or by file number, as
# programs that know only heap do, and on disk.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('whose', conf => q{
autovacuum = off
statement_timeout = '60s'
});
$node->start;
one($node, 'CREATE EXTENSION inplace');
foreach my $am (qw(heap inplace))
{
	my $t = substr($am, 0, 1);
	is(one($node, qq{
		CREATE TABLE $t (id int PRIMARY KEY, v int, w text) USING $am;
		CREATE INDEX ${t}_v ON $t USING btree (v);
		INSERT INTO $t SELECT g, g, repeat('w', g % 30) FROM generate_series(1, 3000) g;
		UPDATE $t SET w = w || 'x' WHERE id % 7 = 0;
		DELETE FROM $t WHERE id % 10 = 0;
		SELECT count(*) FROM $t}), '2700', "$am: set up");
	one($node, "VACUUM (ANALYZE) $t");
	one($node, "UPDATE $t SET v = v WHERE id < 50; SELECT count(*) FROM $t");
}
my %before = map { $_ => contents($node, $_) } qw(h i);
is($before{h}, $before{i}, 'the same rows in both');

my @statements = (
	'SELECT count(*), sum(v), max(w) FROM %s',
	'SET enable_seqscan = off; SELECT * FROM %s WHERE id = 77',
	'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT id FROM %s WHERE id BETWEEN 900 AND 950',
	'SET enable_seqscan = off; SET enable_indexscan = off; SELECT * FROM %s WHERE v BETWEEN 5 AND 50',
	q{SELECT * FROM %s WHERE ctid = '(0,3)'},
	q{SELECT * FROM %s WHERE ctid < '(1,0)'},
	'SELECT * FROM %s ORDER BY id LIMIT 5 FOR UPDATE',
	'UPDATE %s SET v = v + 1 WHERE id = 77',
	'UPDATE %s SET v = v + 1',
	'DELETE FROM %s WHERE id = 78',
	'DELETE FROM %s',
	q{INSERT INTO %s VALUES (10000, 1, 'new')},
	q{INSERT INTO %s SELECT 20000 + g, g, 'new' FROM generate_series(1, 200) g},
	q{INSERT INTO %s VALUES (77, 1, 'new') ON CONFLICT (id) DO UPDATE SET v = excluded.v},
	q{MERGE INTO %s t USING (VALUES (77)) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE},
	q{WITH x AS (INSERT INTO %s VALUES (10001, 1, 'new') RETURNING id) SELECT * FROM x},
	'VACUUM %s', 'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) %s', 'VACUUM FULL %s', 'ANALYZE %s',
	'CREATE INDEX ON %s (w)', 'CREATE INDEX CONCURRENTLY ON %s (w)', 'REINDEX TABLE %s',
	'CLUSTER %s USING %s_pkey',
	'SELECT * FROM %s TABLESAMPLE SYSTEM (50)', 'SELECT * FROM %s TABLESAMPLE BERNOULLI (50)',
	'COPY %s TO STDOUT', "COPY %s FROM STDIN;\n10002\t1\tnew\n\\.\n", 'COPY (SELECT * FROM %s) TO STDOUT',
	'CREATE TABLE copied AS SELECT * FROM %s',
	'ALTER TABLE %s ALTER v TYPE bigint', 'ALTER TABLE %s ADD CHECK (v > -5)',
	'ALTER TABLE %s SET ACCESS METHOD %o');

# Every statement on table $t fails as it should.
sub all_fail
{
	my ($what, $t) = @_;
	my $heap = one($node, "SELECT amname = 'heap' FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = '$t'") eq 't';
	my $is = $heap ? qr/is one of an inplace table/ : qr/is (one of a heap table|not one of an inplace table)/;
	my @wrong;
	foreach my $statement (@statements)
	{
		my ($o, $sql) = ($heap ? 'inplace' : 'heap', $statement);
		$sql =~ s/%s/$t/g;
		$sql =~ s/%o/$o/g;
		my $err = sqlstate_of($node, $sql);
		push @wrong, "$sql: $err" unless $err =~ /ERROR:  XX001: page in block \d+ of relation "$t" $is/;
	}
	is(join("\n", @wrong), '', "$what, table $t: all statements fail, with the relation and the block");
	return;
}

sub as_before
{
	my ($what) = @_;
	is(contents($node, $_), $before{$_}, "$what: table $_ is as it was") foreach qw(h i);
	check_clean($node, $what);
	return;
}

# Changes rows of the catalog, as those programs do.
sub change_catalog
{
	my ($sql) = @_;
	one($node, "SET allow_system_table_mods = on; $sql; SELECT 1");
	return;
}

my $swap_files = q{
	UPDATE pg_class c SET relfilenode = o.relfilenode FROM pg_class o
	WHERE (c.relname, o.relname) IN (('h', 'i'), ('i', 'h'))};
my $swap_methods = q{
	UPDATE pg_class c SET relam = o.relam FROM pg_class o
	WHERE (c.relname, o.relname) IN (('h', 'i'), ('i', 'h'))};

# ---- in a session that has used them, with plans
my $session = psql_session($node);
$session->query(q{SET plan_cache_mode = force_generic_plan; PREPARE h AS SELECT count(v) FROM h WHERE id > 0; PREPARE i AS SELECT count(v) FROM i WHERE id > 0;
	PREPARE hi AS INSERT INTO h VALUES (30000, 1, 'new'); BEGIN; EXECUTE hi; ROLLBACK});
$session->query("EXECUTE $_") foreach qw(h i h i);

foreach ([ 'file numbers', $swap_files ], [ 'methods', $swap_methods ])
{
	my ($what, $sql) = @$_;
	change_catalog($sql);
	is(one($node, 'ALTER TABLE h SET (autovacuum_enabled = off); ALTER TABLE i SET (autovacuum_enabled = off); SELECT 1'), '1', "$what swapped: autovacuum can be told to leave them alone");
	$session->query('EXECUTE h');
	like($session->{stderr}, qr/page in block \d+ of relation "h" is /, "$what swapped: a prepared statement on h");
	$session->{stderr} = '';
	$session->query('EXECUTE hi');
	like($session->{stderr}, qr/page in block \d+ of relation "h" is /, "$what swapped: a prepared INSERT");
	$session->{stderr} = '';
	$session->query('EXECUTE i');
	like($session->{stderr}, qr/page in block \d+ of relation "i" is/, "$what swapped: a prepared statement on i");
	$session->{stderr} = '';
	all_fail("$what swapped", $_) foreach qw(h i);
	my $ours = $what eq 'methods' ? 'h' : 'i';
	like(one($node, "SELECT DISTINCT problem FROM inplace.check('$ours')"), qr/^(page is not one of an inplace table.*\n?)+$/,
		"$what swapped: inplace.check says so");
	like(sqlstate_of($node, 'VACUUM'), qr/XX001: page in block \d+ of relation "[hi]" is/, "$what swapped: VACUUM of the database");
	change_catalog($sql);
	as_before("$what swapped back");
}
$session->quit;

# ---- on disk
my %path = map { $_ => $node->data_dir . '/' . one($node, "SELECT pg_relation_filepath('$_')") } qw(h i);

sub swap_on_disk
{
	$node->stop;
	foreach my $fork ('', '_fsm', '_vm')
	{
		next unless -e "$path{h}$fork" && -e "$path{i}$fork";
		rename("$path{h}$fork", "$path{h}$fork.x") or die $!;
		rename("$path{i}$fork", "$path{h}$fork") or die $!;
		rename("$path{h}$fork.x", "$path{i}$fork") or die $!;
	}
	$node->start;
	return;
}

swap_on_disk();
all_fail('files swapped on disk', $_) foreach qw(h i);
swap_on_disk();
as_before('files swapped back on disk');

# ---- autovacuum of ours meets heap's pages: it fails, and goes on with other tables
my $h_is = sub { change_catalog("UPDATE pg_class SET relam = (SELECT oid FROM pg_am WHERE amname = '$_[0]') WHERE relname = 'h'") };
$h_is->('inplace');
one($node, 'CREATE TABLE busy (a int) USING inplace; INSERT INTO busy SELECT generate_series(1, 5000); DELETE FROM busy; SELECT 1');
$node->append_conf('postgresql.conf', "autovacuum = on\nautovacuum_vacuum_threshold = 1\nautovacuum_vacuum_scale_factor = 0");
$node->reload;
ok(defined poll_value($node, q{SELECT autovacuum_count > 0 FROM pg_stat_user_tables WHERE relname = 'busy'}, 120),
	'autovacuum comes to other tables');
$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->reload;
$h_is->('heap');
as_before('after autovacuum');

# ---- pages without the mark, as builds before version 3 of the format wrote them
$node->stop;
my $lower = sub { overwrite_file($path{i}, 8192 + 12, pack('S', unpack('S', substr(slurp_file($path{i}), 8192 + 12, 2)) + $_[0])) };
$lower->(-1);
$node->start;
my $ignore = 'SET ignore_checksum_failure = on; SET client_min_messages = error;';
is(one($node, "$ignore SET enable_seqscan = off; SELECT v FROM i WHERE id = 3"), '3', 'a row on another page');
foreach my $sql ('SELECT count(*) FROM i', 'SET enable_seqscan = off; SELECT count(w) FROM i WHERE id > 0', 'UPDATE i SET v = v',
	q{UPDATE i SET v = v WHERE ctid = '(1,2)'}, q{DELETE FROM i WHERE ctid = '(1,2)'}, 'VACUUM (DISABLE_PAGE_SKIPPING) i', 'ANALYZE i', 'VACUUM FULL i', 'CREATE INDEX ON i (w)')
{
	like(sqlstate_of($node, "$ignore $sql"), qr/XX001: page in block 1 of relation "i" is not one of an inplace table.*before version 3 of the format/s, "without mark: $sql");
}
like(one($node, "$ignore SELECT problem FROM inplace.check('i') WHERE block = 1"), qr/page is not one of an inplace table/, 'without mark: inplace.check');
$node->stop;
$lower->(1);
$node->start;
as_before('with the mark again');

# ---- undo of another version
my $undo = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('inplace.undo_log')});
my $version = sub { $node->stop; overwrite_file($undo, 8192 - 4, pack('L', $_[0])); $node->start };
# (4 to 10 have the bits of evicted rows, other indexes and large values in place; src/inplace.h)
foreach my $other (1, 2, 11, 12)
{
	$version->($other);
	like(sqlstate_of($node, "$ignore UPDATE i SET v = v + 1 WHERE id = 3"), qr/undo of this database has format version $other, this version of inplace reads versions 3 to 10\n.*HINT:  Dump the database/, "undo of version $other");
}
foreach my $known (4 .. 10)
{
	$version->($known);
	as_before("undo of version $known");
}
$version->(3);
as_before('undo of this version');

check_log($node);
done_testing();
