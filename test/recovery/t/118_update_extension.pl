# Tables that an older version's library has made are right under the new library,
# before and after ALTER EXTENSION UPDATE, whether the server was stopped in between
# or has crashed.  INPLACE_RELEASES has the older versions (scripts/build-releases).

use strict;
use warnings;
use File::Basename qw(basename dirname);
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @versions = map { basename($_) } grep { -f "$_/inplace.so" } glob(($ENV{INPLACE_RELEASES} // '') . '/*');
plan skip_all => 'no library of an older version (a checkout without history)' unless @versions;

my %dir;
foreach my $what (qw(bindir pkglibdir sharedir))
{
	chomp($dir{$what} = `pg_config --$what`);
}
# (bin, lib and share of such a server are in three places; the copy was not tried there.)
plan skip_all => 'a server of Debian packages' if $dir{sharedir} =~ m{^/usr/share/};
my $objects = slurp_file("$FindBin::RealBin/../../extension_objects.sql");

# A copy of the server with a place for a library of its own: a server finds its
# files relative to its program.
sub copy_of_server
{
	my ($root) = @_;
	my $prefix = $dir{bindir};
	$prefix = dirname($prefix) until !grep { index($_, "$prefix/") != 0 } values %dir;
	my %copy = map { $_ => $root . substr($dir{$_}, length $prefix) } keys %dir;
	system('mkdir', '-p', values %copy, "$copy{sharedir}/extension") == 0 or die;
	foreach my $file (glob("$dir{bindir}/*"))
	{
		# these look for one another beside them
		if (basename($file) =~ /^(postgres|initdb|pg_ctl|pg_config)$/)
		{
			system('cp', '-L', $file, "$copy{bindir}/") == 0 or die;
		}
		else
		{
			symlink($file, "$copy{bindir}/" . basename($file)) or die;
		}
	}
	foreach ([ $dir{pkglibdir}, $copy{pkglibdir} ], [ $dir{sharedir}, $copy{sharedir} ], [ "$dir{sharedir}/extension", "$copy{sharedir}/extension" ])
	{
		my ($from, $to) = @$_;
		foreach my $file (glob("$from/*"))
		{
			my $name = basename($file);
			symlink($file, "$to/$name") or die "$to/$name: $!" unless $name =~ /^inplace\b/ || $name eq 'extension';
		}
	}
	return %copy;
}

sub install_library
{
	my ($copy, $library, @files) = @_;
	unlink glob("$copy->{sharedir}/extension/inplace*"), "$copy->{pkglibdir}/inplace.so";
	system('cp', $library, "$copy->{pkglibdir}/") == 0 or die;
	system('cp', @files, "$copy->{sharedir}/extension/") == 0 or die;
}

sub install_old
{
	my ($copy, $from) = @_;
	install_library($copy, "$from/inplace.so", glob("$from/inplace.control"), glob("$from/inplace--*.sql"));
}

sub install_new
{
	my ($copy) = @_;
	install_library($copy, "$dir{pkglibdir}/inplace.so", glob("$dir{sharedir}/extension/inplace*"));
}

# ---- what the old library makes

my @made = (
	'CREATE EXTENSION inplace',
	'CREATE TABLE t (id int PRIMARY KEY, a int, v text, c char(30), j jsonb, p point, d date) USING inplace WITH (fillfactor = 90)',
	q{INSERT INTO t SELECT i, i, 'v' || i, 'c' || i, jsonb_build_object('k', i % 50), point(i % 40, i), date '2020-01-01' + i FROM generate_series(1, 3000) i},
	'CREATE INDEX t_a ON t (a) INCLUDE (v)',
	'CREATE INDEX t_computed ON t ((a % 100), lower(v)) WHERE a > 10',
	'CREATE INDEX t_v ON t USING hash (v)',
	'CREATE INDEX t_j ON t USING gin (j)',
	'CREATE INDEX t_p ON t USING gist (p)',
	'CREATE INDEX t_d ON t USING brin (d)',
	'CREATE UNIQUE INDEX t_btree ON t USING btree (a, id)',
	kinds_of_tables(),
	'CREATE TABLE conv (id int PRIMARY KEY, v text) USING heap',
	q{INSERT INTO conv SELECT i, 'h' || i FROM generate_series(1, 500) i},
	q{SELECT inplace.convert('conv')},
	'CREATE INDEX h_v ON h USING inplace_btree (v)',
	'CREATE TABLE child (id int REFERENCES t) USING inplace',
	'INSERT INTO child SELECT generate_series(1, 3000, 3)',
	q{SELECT inplace.set_freeze_options('short', true)},
	'CREATE DATABASE second',
	'VACUUM (FREEZE) t',
	'VACUUM t',
	'CHECKPOINT');

# Nobody restores or gives back anything from here on.
my @changed = (
	kinds_of_changes(),
	'UPDATE t SET a = a + 1 WHERE id % 5 = 0',
	"UPDATE t SET j = j || '{\"new\": 1}' WHERE id % 9 = 1",
	'DELETE FROM child WHERE id % 17 = 0',
	"UPDATE conv SET v = v || '.' WHERE id % 2 = 0",
	"UPDATE h SET v = v || '.' WHERE id % 2 = 0",
	"BEGIN; UPDATE t SET v = 'lost', a = -1 WHERE id % 7 = 0; INSERT INTO t (id, a) SELECT i, i FROM generate_series(5000, 5500) i; DELETE FROM child; ROLLBACK",
	'BEGIN; DELETE FROM conv WHERE id > 400; ROLLBACK',
	"BEGIN; UPDATE t SET v = 'prepared', a = -id WHERE id BETWEEN 200 AND 260; DELETE FROM conv WHERE id < 20; SELECT count(*) FROM (SELECT FROM big WHERE id < 9 FOR UPDATE) x; PREPARE TRANSACTION 'p1'");

my @tables = qw(t big p m conv h short child);

# Every index finds what a sequential scan finds.
my $by_index = q{
	SET enable_seqscan = off;
	SELECT (SELECT count(*) FROM t WHERE a > -100000), (SELECT count(v) FROM t WHERE a BETWEEN 10000 AND 20000),
		(SELECT count(*) FROM t WHERE a > 10 AND a % 100 = 7), (SELECT count(*) FROM t WHERE v = 'v7'),
		(SELECT count(*) FROM t WHERE j @> '{"k": 7}'), (SELECT count(*) FROM t WHERE j ? 'new'),
		(SELECT count(*) FROM t WHERE p <@ box '((0,0),(20,1500))'), (SELECT count(*) FROM t WHERE d < date '2021-01-01'),
		(SELECT count(*) FROM h WHERE v LIKE 'h1%'), (SELECT count(*) FROM conv WHERE id > 30)};
my $by_scan = $by_index =~ s/enable_seqscan = off/enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off/r;

sub check_all
{
	my ($node, $what, $expected, @names) = @_;
	like($expected->{$_}, qr/^\d+ /, "$what: $_ can be read") foreach @names;
	is(contents($node, $_), $expected->{$_}, "$what: $_") foreach @names;
	my $found = one($node, $by_index);
	like($found, qr/^(\d+\|){9}\d+$/, "$what: indexes answer");
	is($found, one($node, $by_scan), "$what: indexes");
	check_clean($node, $what);
}

sub update_from
{
	my ($version, $how) = @_;
	my $name = "from_${version}_$how" =~ tr/./_/r;
	my %copy = copy_of_server(PostgreSQL::Test::Utils::tempdir() . "/$name");
	my $what = "$version, $how";

	install_old(\%copy, "$ENV{INPLACE_RELEASES}/$version");
	# without GiST, whose own replay of a DELETE marks a page that the server did not mark
	my $checking = pg_major() == 15 ? '' : 'heap2, heap, btree, gin, hash, brin, inplace';
	my $node = new_node($name, install_path => dirname($copy{bindir}), conf => "autovacuum = off\nwal_consistency_checking = '$checking'\n");
	$node->start;
	$node->safe_psql('postgres', $_) foreach @made;
	$node->safe_psql('second', 'CREATE EXTENSION inplace; CREATE TABLE t (id int, n int) USING inplace; INSERT INTO t SELECT i, i FROM generate_series(1, 500) i; UPDATE t SET n = n + 1');
	is(one($node, q{SELECT extversion FROM pg_extension WHERE extname = 'inplace'}), $version, "$what: version");
	$node->append_conf('postgresql.conf', "max_worker_processes = 0\n");
	$node->restart;
	$node->safe_psql('postgres', $_) foreach @changed;
	my %before = map { $_ => contents($node, $_) } @tables, 'u';
	like(one($node, "SELECT pg_read_file('/proc/' || pg_backend_pid() || '/maps')"), qr/\Q$copy{pkglibdir}\E\/inplace\.so/, "$what: its own library");
	$node->stop($how);

	# ---- the new library
	install_new(\%copy);
	$node->start;
	$before{u} = contents($node, 'u') if $how eq 'immediate';
	check_all($node, "$what, new library", \%before, @tables, 'u');
	is(one($node, 'SELECT count(*) FROM u'), $how eq 'immediate' ? 0 : 500, "$what: unlogged table");
	is(one($node, q{SELECT extversion FROM pg_extension WHERE extname = 'inplace'}), $version, "$what: objects of the old version");
	like(one($node, 'SELECT count(*) FROM inplace.undo, inplace.stat_tables'), qr/^\d+$/, "$what: views");

	# ---- updated
	$node->safe_psql('postgres', 'ALTER EXTENSION inplace UPDATE');
	$node->safe_psql('postgres', 'CREATE DATABASE fresh TEMPLATE template0');
	$node->safe_psql('fresh', 'CREATE EXTENSION inplace');
	my $ask = "$objects SELECT object || E'\\n' || definition FROM pg_temp.extension_objects() ORDER BY 1";
	my $found = one($node, $ask);
	like($found, qr/^view inplace\.undo$/m, "$what: objects");
	is($found, one($node, $ask, 'fresh'), "$what: the objects are those of CREATE EXTENSION");
	check_all($node, "$what, updated", \%before, @tables, 'u');

	# The other database still has the old version's objects.
	is(one($node, 'UPDATE t SET n = n + 1; SELECT count(*), sum(n - id) FROM t', 'second'), '500|1000', "$what: second database");
	check_clean($node, "$what, second database", 'second');
	$node->safe_psql('second', 'ALTER EXTENSION inplace UPDATE');

	# ---- on from here: what was rolled back is restored, what was prepared committed
	$node->append_conf('postgresql.conf', "max_worker_processes = 8\n");
	$node->restart;
	$node->safe_psql('postgres', q{COMMIT PREPARED 'p1'});
	is(one($node, q{SELECT count(*) FROM t WHERE v = 'prepared' AND a = -id}), 61, "$what: prepared transaction");
	is(one($node, 'SELECT count(*) FROM conv WHERE id < 20'), 0, "$what: its deletes");
	ok(defined poll_value($node, q{SELECT bool_and(extents_to_restore = 0) FROM inplace.undo WHERE kind = 'logged'}, 60), "$what: rollbacks are restored");
	$node->safe_psql('postgres', $_) foreach (
		"UPDATE t SET v = v || ' again', a = a + 1",
		'UPDATE child SET id = id WHERE id % 2 = 0',
		'UPDATE big SET v = v || id',
		'UPDATE short SET a = a + 1',
		"INSERT INTO conv SELECT i, 'new' FROM generate_series(1000, 1500) i",
		'VACUUM (FREEZE)');
	my %after = map { $_ => contents($node, $_) } @tables;
	check_all($node, "$what, changed", \%after, @tables);
	crash_and_restart($node);
	check_all($node, "$what, after a crash", \%after, @tables);
	check_log($node);
	$node->stop;
}

foreach my $version (@versions)
{
	update_from($version, 'fast');
	update_from($version, 'immediate');
}

done_testing();
