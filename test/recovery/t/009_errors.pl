# Not preloaded, and damaged files: errors that say what is wrong, no crash.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# (Checksums, the default since 18, would find it all.)
my $node = new_node('errors', extra => pg_major() >= 18 ? ['--no-data-checksums'] : [], conf => "autovacuum = off\nwal_consistency_checking = ''\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, v text) USING inplace;
	INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 1000) i;
	CREATE TABLE h (id int); INSERT INTO h VALUES (1);
	CREATE TABLE w (id int) USING heap; CREATE INDEX ON w USING inplace_btree (id); INSERT INTO w VALUES (1);
});
my $whole = contents($node, 't');
$node->stop;

# ---- not preloaded
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nwal_consistency_checking = ''\n");
$node->start;
my $error = qr/ERROR:  55000: inplace must be loaded through "shared_preload_libraries".*HINT:  Add inplace to "shared_preload_libraries"/s;
foreach my $sql (
	'SELECT * FROM t', 'SELECT * FROM t WHERE id = 1', 'SET enable_seqscan = off; SELECT * FROM t WHERE id = 1',
	"INSERT INTO t VALUES (0, '')", "UPDATE t SET v = ''", 'DELETE FROM t', 'TRUNCATE t', 'VACUUM t', 'ANALYZE t',
	'CREATE TABLE n (i int) USING inplace', 'COPY t TO stdout', 'SELECT * FROM t FOR UPDATE', 'CREATE INDEX ON t (v)',
	'ALTER TABLE t ADD x int DEFAULT 5, ALTER v TYPE varchar(50)', 'ALTER TABLE h SET ACCESS METHOD inplace', 'CLUSTER t USING t_pkey',
	'SET enable_seqscan = off; SELECT * FROM w WHERE id = 1', 'INSERT INTO w VALUES (2)', 'REINDEX TABLE w', 'VACUUM w',
	'CREATE UNLOGGED TABLE n (i int); CREATE INDEX ON n USING inplace_btree (i)',
	'VACUUM FULL t', 'REINDEX TABLE t', 'SELECT inplace.undo_size()', 'SELECT * FROM inplace.undo', "SELECT * FROM inplace.check('t')",
	"SELECT * FROM inplace.page_items('t', 0)", "SELECT * FROM inplace.versions('t', '(0,1)')",
	"SELECT * FROM inplace.row_locks('t')", "SELECT * FROM inplace.visibility_summary('t')", 'SELECT * FROM inplace.stat_freeze',
	"SELECT inplace.set_freeze_options('t', true)", "SELECT inplace.freeze_options('t'::regclass)",
	"SELECT inplace.set_index_method('t_pkey', 'inplace_btree')", "SELECT inplace.convert('t', 'heap')", "SELECT inplace.convert('h')")
{
	like(sqlstate_of($node, $sql), $error, "not preloaded: $sql");
}
# What docs/functions.md says to answer all the same.
foreach my $sql ('SELECT count(*) FROM inplace.undo_holders', 'SELECT count(*) FROM inplace.stat_tables', 'SELECT count(*) FROM inplace.advise()',
	"SELECT inplace.convert('t')", 'SELECT inplace.mirror_opclasses()', 'SELECT inplace.undo_records_read()',
	"SELECT inplace.freeze_probability('{1,2}', 10, 5, 5)", "SELECT inplace.freeze_worthwhile('{1,2}', 10, 5, 5)",
	"SELECT count(*) FROM inplace.lock_convertible('t')", "SELECT count(*) FROM inplace.convertible_indexes('t', 'inplace_btree')")
{
	unlike(one($node, $sql), qr/^rc|^$/, "not preloaded: $sql answers");
}
is(one($node, 'SELECT * FROM h'), '1', 'not preloaded: a heap table');
is(one($node, 'SELECT count(*) FROM h a JOIN h b ON a.id = b.id AND a.id <= b.id WHERE a.id > 0'), '1',
	'not preloaded: operators that our operator classes have');
is(one($node, 'CREATE DATABASE d'), '', 'not preloaded: another database');
like(sqlstate_of($node, 'CREATE EXTENSION inplace', 'd'), $error, 'not preloaded: CREATE EXTENSION');
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'inplace'\n");
$node->start;
is(contents($node, 't'), $whole, 'preloaded again: nothing has happened');

# ---- damage.  The page's second line pointer is the victim.
my $file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('t')});
my $dir = $node->basedir . '/saved';
$node->safe_psql('postgres', q{VACUUM (FREEZE) t; CHECKPOINT});
$node->safe_psql('postgres', q{UPDATE t SET v = 'new ' || id WHERE id < 20});
# A snapshot that needs undo is what makes somebody follow the pointer; a
# prepared transaction keeps it in progress after the restart.
$node->safe_psql('postgres', q{BEGIN; UPDATE t SET v = 'ROW ' || id WHERE id < 20; PREPARE TRANSACTION 'p'});
$whole = contents($node, 't');
my $item = one($node, q{SELECT lp_off || ' ' || lp_len FROM inplace.page_items('t', 0) WHERE item = 2});
my ($off, $len) = split / /, $item;
# An item that was updated is at the end of the transaction's row.
is(one($node, "SELECT count(*) FROM inplace.check('t')"), '0', 'sound before the damage');
$node->stop;
my $sound = slurp_file_binary($file);

sub slurp_file_binary
{
	my ($path) = @_;
	open(my $fh, '<', $path) or die "$path: $!";
	binmode $fh;
	local $/ = undef;
	my $data = <$fh>;
	close $fh;
	return $data;
}

my $lp = substr($sound, 24 + 4, 4);
# name, offset in the file, bytes
my @damage = (
	[ 'line pointer past the page', 28, pack('V', (8190 & 0x7fff) | (1 << 15) | (600 << 17)) ],
	[ 'line pointer into the header', 28, pack('V', 8 | (1 << 15) | (50 << 17)) ],
	[ 'line pointer of length 1', 28, pack('V', $off | (1 << 15) | (1 << 17)) ],
	[ 'redirected line pointer', 28, pack('V', 1 | (2 << 15)) ],
	[ 'line pointer of 4 times 0xff', 28, "\xff" x 4 ],
	[ 'undo pointer past the file', $off + 4, pack('vV', 100, 4_000_000) ],
	[ 'undo pointer to the meta page', $off + 4, pack('vV', 100, 0) ],
	[ 'undo pointer into the middle of a record', $off + 4, pack('vV', 31, 1) ],
	[ 'undo pointer past a page', $off + 4, pack('vV', 9000, 1) ],
	[ 'undo pointer of 6 times 0xff', $off + 4, "\xff" x 6 ],
	[ 'infomask all bits', $off + 10, "\xff\xff" ],
	[ 'infomask lock bits', $off + 10, pack('v', 0x0600) ],
	[ '2047 attributes', $off + 12, pack('v', 0x07ff) ],
	[ 'no attributes', $off + 12, pack('v', 0) ],
	[ 'version tag 255', $off + 14, "\xff" ],
	[ 'xid of the future', $off, pack('V', 3_000_000_000) ],
	[ 'padding 250 of a short item', $off + 10, pack('v', 0x8000) ],
	[ 'varlena header: long', $off + 15 + 4, "\xfc\xff\xff\x3f" ],
	[ 'varlena header: short', $off + 15 + 4, "\xff" ],
	[ 'varlena header: TOAST pointer', $off + 15 + 4, "\x01\x12" ],
	[ 'varlena header: unknown TOAST pointer', $off + 15 + 4, "\x01\x55" ],
	[ 'varlena header: trimmed', $off + 15 + 4, "\x01\x7b\xff\xff\xff\xff" ],
	[ 'header zeroes', $off, "\0" x 15 ],
	[ 'header random', $off, join('', map { chr(($_ * 37 + 11) % 256) } 1 .. 15) ],
	[ 'page header: lower', 12, pack('v', 9000) ],
	[ 'page of 0xff', 24, "\xff" x (8192 - 24) ],
);
my ($told, $crashes) = (0, 0);
$SIG{PIPE} = 'IGNORE';
foreach my $d (@damage)
{
	my ($name, $offset, $bytes) = @$d;
	overwrite_file($file, 0, substr($sound, 0, 8192));
	overwrite_file($file, $offset, $bytes);
	$node->start;
	my ($scan, $by_index, $update, $delete, $check, $lock) = map {
		my $sql = $_;
		# (psql's standard input breaks if the server is gone.)
		my ($rc, $out, $err) = eval { $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", timeout => 180) };
		$err // "server closed: $@"
	} $name =~ /^varlena/ ? () : ('SELECT count(*), max(v) FROM t', 'SET enable_seqscan = off; SELECT v FROM t WHERE id = 2',
		# (The row's owner is a prepared transaction: nothing waits for long.)
		q{SET lock_timeout = 200; UPDATE t SET v = 'x' WHERE id = 2}, 'SET lock_timeout = 200; BEGIN; DELETE FROM t WHERE id IN (1, 2, 3, 30); ROLLBACK',
		'SELECT 1', 'SET lock_timeout = 200; SELECT * FROM t WHERE id = 2 FOR SHARE NOWAIT');
	my $found = one($node, "SELECT string_agg(block || ' ' || coalesce(item::text, '-') || ' ' || problem, '; ') FROM inplace.check('t', false)");
	# Values are not looked at before they are used, as on heap: only check does.
	if ($name =~ /^varlena/)
	{
		note "$name\n  check: $found";
		like($found, qr/^0 |; 0 /, "$name: inplace.check finds it");
		is(one($node, 'SELECT 1'), '1', "$name: the server lives");
		$node->stop;
		next;
	}
	my ($rc, $out, $verr) = $node->psql('postgres', 'SELECT * FROM inplace.versions(' . q{'t', '(0,2)')}, timeout => 180);
	($rc, $out, my $items) = $node->psql('postgres', q{SELECT count(*) FROM inplace.page_items('t', 0)}, timeout => 180);
	($rc, $out, my $vacuum) = $node->psql('postgres', "\\set VERBOSITY verbose\nVACUUM (FREEZE) t; ANALYZE t", timeout => 180);
	my $errors = join("\n", grep { /ERROR|FATAL|PANIC/ } split /\n/, join("\n", $scan, $by_index, $update, $delete, $lock, $vacuum));
	note "$name\n  errors: $errors\n  check: $found";
	if (!is(one($node, 'SELECT 1'), '1', "$name: the server lives"))
	{
		$crashes++;
		# Past recovery, so that no full-page image mends the next damage.
		$node->stop('immediate', fail_ok => 1);
		overwrite_file($file, 0, substr($sound, 0, 8192));
		$node->start;
		$node->stop;
		next;
	}
	unlike($errors, qr/PANIC|server closed|invalid memory alloc|negative|XX000/, "$name: no crash, no internal error");
	my $any = "$errors\n$found";
	like($any, qr/"t"|^0 |; 0 /m, "$name: names the place") or diag $any;
	isnt($found, '', "$name: inplace.check finds it");
	foreach my $line (split /\n/, $errors)
	{
		next unless $line =~ /XX001/;
		$told++;
		like($line, qr/block 0|relation "t"|table "t"|page/, "$name: the error names the block");
	}
	# (Not immediately: recovery would mend the page by its full-page image.)
	$node->stop;
}
is($crashes, 0, 'no crash by damage');
cmp_ok($told, '>', 5, 'errors of class data_corrupted');
overwrite_file($file, 0, substr($sound, 0, 8192));
$node->start;

# ---- damaged undo
my $undo = $node->data_dir . '/';
$undo .= one($node, q{SELECT pg_relation_filepath('inplace.undo_log')});
$node->safe_psql('postgres', "ROLLBACK PREPARED 'p'") if one($node, 'SELECT count(*) FROM pg_prepared_xacts') eq '1';
$node->safe_psql('postgres', q{DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text) USING inplace;
	INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 1000) i});
$node->safe_psql('postgres', q{BEGIN; UPDATE t SET v = 'ROW ' || id WHERE id < 20; PREPARE TRANSACTION 'q'});
my ($ublock, $uoff) = split m{/}, one($node, q{SELECT undo FROM inplace.page_items('t', 0) WHERE item = 2});
$node->stop;
my $usound = substr(slurp_file_binary($undo), $ublock * 8192, 8192);
foreach my $d ([ 'undo record: length', $uoff, "\xff\xff" ], [ 'undo record: length 0', $uoff, "\0\0" ], [ 'undo record: type', $uoff + 2, "\x09" ], [ 'undo record: flags', $uoff + 3, "\xff" ],
	[ 'undo record: xid', $uoff + 4, "\1\0\0\0" ], [ 'undo record: block', $uoff + 20, "\xff\xff\xff\0" ],
	[ 'undo record: line pointer', $uoff + 24, "\x77\x77" ], [ 'undo record: delta', $uoff + 30, "\xff" x 12 ], [ 'undo page: magic', 8184, "\0" x 8 ],
	[ 'undo page: zeroes', 0, "\0" x 8192 ], [ 'undo page: 0xff', 24, "\xff" x 8160 ])
{
	my ($name, $offset, $bytes) = @$d;
	overwrite_file($undo, $ublock * 8192, $usound);
	overwrite_file($undo, $ublock * 8192 + $offset, $bytes);
	$node->start;
	my $scan = sqlstate_of($node, 'SELECT v FROM t ORDER BY id LIMIT 25');
	my $found = one($node, "SET client_min_messages = error; SELECT string_agg(block || ' ' || coalesce(item::text, '-') || ' ' || problem, '; ') FROM inplace.check('t', false)");
	note "$name\n  scan: $scan\n  check: $found";
	like($scan, qr/ERROR:  XX001: .*("t".*|block 0)/, "$name: the error names table and block");
	isnt($found, '', "$name: inplace.check finds it");
	is(one($node, q{SELECT count(*) FROM t WHERE ctid > '(3,0)'}) =~ /^\d+$/ ? 1 : 0, 1, "$name: other pages can be read");
	is(one($node, 'SELECT 1'), '1', "$name: the server lives");
	$node->stop;
}
overwrite_file($undo, $ublock * 8192, $usound);
$node->start;
is(one($node, "ROLLBACK PREPARED 'q'; SELECT count(*) FILTER (WHERE v LIKE 'row%') FROM t"), '1000', 'repaired');

# ---- a damaged page that lost an insert: it is an error before anything is moved
$node->safe_psql('postgres', q{CREATE TABLE u (id int) USING inplace; INSERT INTO u VALUES (1), (2), (3)});
$node->safe_psql('postgres', q{BEGIN; SAVEPOINT a; INSERT INTO u VALUES (4); SAVEPOINT b; UPDATE u SET id = 5 WHERE id = 4; PREPARE TRANSACTION 'r'});
$file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('u')});
$node->stop;
# the second row is said to reach into the first
overwrite_file($file, 28, pack('V', unpack('V', substr(slurp_file_binary($file), 28, 4)) + (8 << 17)));
$node->start;
like(sqlstate_of($node, "ROLLBACK PREPARED 'r'; CREATE INDEX ON u (id)"), qr/ERROR:  XX001: invalid line pointer 2 in block 0 of relation "u"/, 'an aborted insert of a damaged page');
is(one($node, 'SELECT 1'), '1', 'an aborted insert of a damaged page: the server lives');

# ---- a damaged value: whoever comes to it names the row
$node->safe_psql('postgres', q{CREATE TABLE v (id int, v text) USING inplace; ALTER TABLE v ALTER v SET STORAGE EXTERNAL;
	INSERT INTO v SELECT i, repeat('v', 2400) FROM generate_series(1, 3) i});
($off) = one($node, q{SELECT lp_off FROM inplace.page_items('v', 0) WHERE item = 3});
$file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('v')});
$node->stop;
overwrite_file($file, $off + 15 + 4, "\x01\x55");
$node->start;
foreach my $sql ('SELECT count(v) FROM v', 'DELETE FROM v WHERE id = 3', q{UPDATE v SET v = 'new' WHERE id = 3}, 'VACUUM FULL v', 'ALTER TABLE v ALTER id TYPE bigint')
{
	like(sqlstate_of($node, $sql), qr/ERROR:  XX001: row \(0,3\) of relation "v" is damaged/, "a damaged value: $sql");
}

# ---- an xid that the commit log has forgotten: the server's error says of which row
$node->safe_psql('postgres', q{CREATE TABLE x (id int) USING inplace; INSERT INTO x VALUES (1), (2)});
($off) = one($node, q{SELECT lp_off FROM inplace.page_items('x', 0) WHERE item = 2});
$file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('x')});
$node->stop;
overwrite_file($file, $off, pack('V', 3_000_000_000));
my $mask = unpack('v', substr(slurp_file_binary($file), $off + 10, 2));
overwrite_file($file, $off + 10, pack('v', $mask & ~0x70));
$node->start;
foreach my $sql ('SELECT * FROM x', 'DELETE FROM x WHERE id = 2', 'UPDATE x SET id = 3', 'SELECT * FROM x FOR UPDATE', 'ANALYZE x', 'VACUUM x', 'VACUUM FULL x', 'CREATE INDEX ON x (id)')
{
	like(sqlstate_of($node, $sql), qr/ERROR:  58P01: .*while looking up transaction 3000000000 of row \(0,2\) of relation "x"/s, "an old xid: $sql");
}
$node->stop;
check_log($node);
done_testing();
