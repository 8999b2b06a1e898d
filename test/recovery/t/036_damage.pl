# Bytes of data pages and of undo pages overwritten at random, one or several at
# a time.  Whatever is then read, changed, vacuumed or looked into: an answer, or
# an error with an SQLSTATE, but no crash, no failed assertion, and an end.
#
# No column has a type with a structure of its own, such as an array: what its
# functions do with damaged contents is the same on heap.
#
# Every table is damaged once; TAP_SEED repeats a run, DAMAGE_TABLES sets how many
# tables there are of each kind (24), DAMAGE_SHOW prints each kind of error.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Always the same damage, unless another is asked for.
$ENV{TAP_SEED} //= 1;
my $seed = seed();
my $n = $ENV{DAMAGE_TABLES} // 24;
# Nobody restores or discards undo: readers follow it.  Checksums would find all of it.
my $conf = q{
autovacuum = off
wal_consistency_checking = ''
max_worker_processes = 0
full_page_writes = off
restart_after_crash = off
};
my $node = new_node('damage', conf => $conf, extra => pg_major() >= 18 ? ['--no-data-checksums'] : []);
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE PROCEDURE make(i int) LANGUAGE plpgsql AS $$
	DECLARE t text := 't' || i;
	BEGIN
		EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, n bigint, v text, c char(40), p interval, x float8, a bytea, s smallint) USING inplace', t);
		EXECUTE format('INSERT INTO %I SELECT g, g * 1000, repeat(md5(g::text), 1 + g %% 5), ''c'' || g, g * interval ''1 min'', g / 7.0, decode(md5(g::text), ''hex''), g FROM generate_series(1, 25) g', t);
		EXECUTE format('CREATE INDEX ON %I USING inplace_btree (n)', t);
		EXECUTE format('CREATE INDEX ON %I (s)', t);
		EXECUTE format('DELETE FROM %I WHERE id = 11', t);
	END $$;
	CREATE PROCEDURE work(i int) LANGUAGE plpgsql AS $$
	DECLARE t text := 't' || i;
	BEGIN
		-- several undo pages for each table: the last ones are needed
		FOR k IN 1 .. 4 LOOP
			EXECUTE format('UPDATE %I SET v = repeat(md5((id + %s)::text), 6), x = x + 1 WHERE id %% 3 = 0', t, k);
			EXECUTE format('UPDATE %I SET n = n + 1 WHERE id %% 5 = 0', t);
			EXECUTE format('UPDATE %I SET s = s + 100 WHERE id = 7', t);
		END LOOP;
		EXECUTE format('DELETE FROM %I WHERE id IN (4, 19)', t);
		EXECUTE format('INSERT INTO %I (id, v) SELECT g, ''new'' FROM generate_series(30, 33) g', t);
		EXECUTE format('SELECT count(*) FROM (SELECT FROM %I WHERE id IN (1, 2, 6) FOR SHARE) x', t);
	END $$;
});
# A third of the tables has changes in progress, a third rolled back ones, a
# third committed ones.
my @prepared;
foreach my $i (1 .. 2 * $n)
{
	my $how = $i % 3;
	$node->safe_psql('postgres', "CALL make($i)");
	$node->safe_psql('postgres', "BEGIN; CALL work($i); "
		. ($how == 0 ? ($#prepared < 17 ? "PREPARE TRANSACTION 'p$i'" : 'ROLLBACK') : $how == 1 ? 'ROLLBACK' : 'COMMIT'));
	push @prepared, $i if $how == 0 && $#prepared < 17;
}
my @files = ('', split /\n/, one($node, "SELECT pg_relation_filepath(('t' || i)::regclass) FROM generate_series(1, 2 * $n) i ORDER BY i"));
my $undo = one($node, q{SELECT pg_relation_filepath('inplace.undo_log')});
my $undo_blocks = one($node, q{SELECT pg_relation_size('inplace.undo_log') / 8192});
my $data = $node->data_dir;
$node->stop;
cmp_ok($undo_blocks, '>', 2, "$undo_blocks blocks of undo");

# Damage one page: a byte, a bit, a run of zeroes or of random bytes, a copied piece.
sub damage
{
	my ($file, $block, $from, $to) = @_;
	open(my $fh, '+<', $file) or die "$file: $!";
	binmode $fh;
	seek($fh, $block * 8192, 0);
	read($fh, my $page, 8192) == 8192 or die "$file: short block $block";
	my $kind = int(rand(6));
	# the page header only now and then
	my $at = sub { my $w = shift; return $from + int(rand($to - $from - $w)) };
	my @where;
	if ($kind == 0) { my $o = $at->(1); substr($page, $o, 1) = chr(int(rand(256))); @where = $o }
	elsif ($kind == 1) { my $o = $at->(1); substr($page, $o, 1) = chr(ord(substr($page, $o, 1)) ^ (1 << int(rand(8)))); @where = $o }
	elsif ($kind == 2) { foreach (1 .. 8) { my $o = $at->(1); substr($page, $o, 1) = chr(int(rand(256))); push @where, $o } }
	elsif ($kind == 3) { my $w = 1 + int(rand(16)); my $o = $at->($w); substr($page, $o, $w) = "\0" x $w; @where = $o }
	elsif ($kind == 4) { my $w = 1 + int(rand(64)); my $o = $at->($w); substr($page, $o, $w) = join('', map { chr(int(rand(256))) } 1 .. $w); @where = $o }
	else { my $w = 1 + int(rand(32)); my ($o, $p) = ($at->($w), $at->($w)); substr($page, $o, $w) = substr($page, $p, $w); @where = $o }
	seek($fh, $block * 8192, 0);
	print $fh $page;
	close $fh;
	return "kind $kind at @where";
}

my %done;
foreach my $i (1 .. $n)
{
	# line pointers and page header as often as rows
	my ($from, $to) = rand() < 0.3 ? (8, 24 + 31 * 4) : (24 + 31 * 4, 8192);
	$done{$i} = "data page: " . damage("$data/$files[$i]", 0, $from, $to);
}
# Undo pages: two of three, behind the meta page, and never the magic at their ends.
my @damaged = map { "undo block $_: " . damage("$data/$undo", $_, 24, 8184) } grep { $_ > 0 && rand() < 0.66 } 0 .. $undo_blocks - 1;
note join("\n", map { "t$_ $done{$_}" } sort { $a <=> $b } keys %done);
note join("\n", @damaged);

my @statements = (
	'SELECT count(*), sum(id), sum(length(v)), max(c), max(p), sum(x), count(a) FROM %s',
	'SET enable_seqscan = off; SELECT count(*), max(v) FROM %s WHERE n BETWEEN 0 AND 100000; RESET enable_seqscan',
	'SELECT xmin, xmax, cmin, ctid, * FROM %s ORDER BY id',
	q{SELECT count(*), count(DISTINCT problem) FROM inplace.check('%s')},
	q{SELECT count(*) FROM inplace.page_items('%s', 0)},
	q{SELECT count(*) FROM generate_series(1, 60) i, inplace.versions('%s', ('(0,' || i || ')')::tid)},
	'BEGIN; SELECT id FROM %s FOR UPDATE SKIP LOCKED; ROLLBACK',
	'SELECT id FROM %s WHERE id = 6 FOR NO KEY UPDATE NOWAIT',
	'BEGIN; UPDATE %s SET x = 0, v = v; ROLLBACK',
	'UPDATE %s SET n = n + 5, s = s + 5 WHERE id % 2 = 0',
	'UPDATE %s SET v = repeat(v, 3) WHERE id = 3',
	'DELETE FROM %s WHERE id < 4',
	q{INSERT INTO %s (id, v) VALUES (3, 'again') ON CONFLICT (id) DO UPDATE SET v = excluded.v},
	'ANALYZE %s', 'VACUUM %s', 'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) %s',
	'REINDEX TABLE %s', 'CREATE INDEX ON %s (v)', 'COPY %s TO STDOUT',
	q{SELECT count(*), count(DISTINCT problem) FROM inplace.check('%s', false)},
	'SELECT * FROM %s TABLESAMPLE SYSTEM (100)',
	'VACUUM FULL %s', 'CLUSTER %s USING %s_pkey', 'TRUNCATE %s');

# Takes what one table's statements have said; returns whether the server is
# still there.
my (%errors, %internal, $answers, $failures);
sub try_table
{
	my ($i) = @_;
	my $t = "t$i";
	my $sql = "\\set VERBOSITY verbose\nSET statement_timeout = '60s'; SET lock_timeout = '100ms';\n"
	  . join('', map { my $s = $_; $s =~ s/%s/$t/g; "$s;\n" } @statements) . "SELECT 'the end';\n";
	my ($rc, $out, $err) = eval { $node->psql('postgres', $sql, timeout => 600, on_error_stop => 0) };
	$err = "psql: $@" if !defined $err;
	while ($err =~ /^.*?ERROR:  (\w{5}): (.*)$/mg)
	{
		my ($state, $text) = ($1, $2);
		(my $kind = $text) =~ s/\d+/N/g;
		$errors{"$state $kind"}++;
		$internal{"$t: $state: $text"} = 1 if $state =~ /^(XX000|57014|53200)$/
			# (of ids that never were: what heap says, too)
			&& $text !~ /^could not access status of transaction|^MultiXactId \d+ has (not been created yet|no longer)/;
	}
	$answers++ if $err !~ /ERROR/;
	return $out =~ /the end/;
}

$node->start;
foreach my $i (1 .. 2 * $n)
{
	if (!try_table($i))
	{
		fail("t$i (seed $seed): the server is gone; " . ($done{$i} // 'undo is damaged'));
		$failures++;
		$node->stop('immediate', fail_ok => 1);
		$node->start;
	}
}
is($failures // 0, 0, "seed $seed: the server lives through " . 2 * $n . ' damaged tables');
is(join("\n", sort keys %internal), '', "seed $seed: no internal error, no statement without an end");
if ($ENV{DAMAGE_SHOW}) { diag "$errors{$_} x $_" foreach sort keys %errors }
cmp_ok(scalar(keys %errors), '>', 5, scalar(keys %errors) . ' kinds of errors');

# The undo worker meets the damaged pages too.
$node->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$node->restart;
$node->safe_psql('postgres', "ROLLBACK PREPARED 'p$_'") foreach @prepared;
is(one($node, q{CREATE TABLE fine (i int) USING inplace; INSERT INTO fine SELECT generate_series(1, 1000); UPDATE fine SET i = i + 1;
	SELECT sum(i) FROM fine}), '501500', 'a table without damage');
sleep 3;
cmp_ok(one($node, 'SELECT count(*) FROM inplace.undo'), '>=', 2, 'the view of undo');

# ---- errors name the row

# one row of each table has several entries in an index: readers compare them with its key
$node->safe_psql('postgres', q{
	CREATE TABLE named (id int, v text, n int) USING inplace;
	INSERT INTO named SELECT i, repeat('v', 20), i FROM generate_series(1, 10) i;
	CREATE UNIQUE INDEX named_n ON named USING inplace_btree (n);
	CREATE INDEX named_sum ON named USING inplace_btree ((n + 0));
	UPDATE named SET n = n + 100 WHERE id = 7;
	CREATE TABLE old_xid (LIKE named) USING inplace;
	INSERT INTO old_xid SELECT * FROM named;
	CREATE UNIQUE INDEX old_xid_n ON old_xid USING inplace_btree (n);
	UPDATE old_xid SET n = n + 200 WHERE id = 7;
	CHECKPOINT});
sub place
{
	my ($table) = @_;
	my $lp = one($node, "SELECT lp_off FROM inplace.page_items('$table', 0) WHERE item = 7");
	return ($data . '/' . one($node, "SELECT pg_relation_filepath('$table')"), $lp);
}
my ($file, $row) = place('named');
my ($xid_file, $xid_row) = place('old_xid');
$node->stop;
# a text without an end, behind the header and an integer; an xid of long ago, and no hints
overwrite_file($file, $row + 15 + 4, "\0\xfc\xff\xff\x7f");
overwrite_file($xid_file, $xid_row, pack('L', 3_000_000_000));
open(my $fh, '+<', $xid_file) or die;
binmode $fh;
seek($fh, $xid_row + 10, 0);
read($fh, my $mask, 2);
close $fh;
overwrite_file($xid_file, $xid_row + 10, pack('S', unpack('S', $mask) & ~0x0070));
$node->start;
foreach my $sql ('INSERT INTO %s VALUES (11, NULL, 7)', 'INSERT INTO %s VALUES (11, NULL, 107)', 'VACUUM (INDEX_CLEANUP on) %s', 'CLUSTER %s USING %s_n',
	'SET enable_seqscan = off; SELECT n FROM %s WHERE n BETWEEN 5 AND 8', 'UPDATE %s SET n = n + 1 WHERE id = 7', 'SELECT id FROM %s FOR UPDATE', q{SELECT * FROM inplace.check('%s')},
	'SELECT n FROM %s WHERE n + 0 = 7')
{
	foreach my $table ('named', 'old_xid')
	{
		(my $q = $sql) =~ s/%s/$table/g;
		my (undef, undef, $err) = $node->psql('postgres', $q, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
		unlike($err, qr/\ba row of relation/, "the row is named: $q");
	}
}
$node->stop;
check_log($node);
done_testing();
