# Undo records that are damaged so that a row's versions lead back to themselves:
# whoever walks along them gets an answer or an error, and comes to an end, also
# if he does it with a page locked.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Nobody restores or discards undo.
my $node = new_node('circle', extra => pg_major() >= 18 ? ['--no-data-checksums'] : [], conf => q{
autovacuum = off
wal_consistency_checking = ''
max_worker_processes = 0
restart_after_crash = off
default_table_access_method = inplace
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

# What a prepared transaction has done to row 1 of T.
my @kinds = (
	[ 'update', q{UPDATE T SET v = 'two' WHERE id = 1} ],
	[ 'updates', map { "UPDATE T SET v = 'two $_' WHERE id = 1" } 1 .. 3 ],
	[ 'change of a key', 'UPDATE T SET k = 2 WHERE id = 1' ],
	[ 'move', q{UPDATE T SET v = repeat('long', 2000) WHERE id = 1} ],
	[ 'deletion', 'DELETE FROM T WHERE id = 1' ],
	[ 'lock', q{SELECT FROM T WHERE id = 1 FOR UPDATE} ],
	[ 'lock on a change', q{UPDATE T SET v = 'two' WHERE id = 1}, 'SAVEPOINT a', 'SELECT FROM T WHERE id = 1 FOR UPDATE' ],
	[ 'update of a locked row', 'SELECT FROM T WHERE id = 1 FOR KEY SHARE', q{UPDATE T SET v = 'two' WHERE id = 1} ]);
my @tables;
# a snapshot for which the versions before are kept
my $old = psql_session($node);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$old->query_safe('SELECT pg_current_xact_id()');
foreach my $kind (@kinds)
{
	my ($what, @sql) = @$kind;
	my $t = 't' . @tables;
	s/\bT\b/$t/ foreach @sql;
	$node->safe_psql('postgres', qq{
		CREATE TABLE $t (id int PRIMARY KEY, k int, v text);
		ALTER TABLE $t ALTER v SET STORAGE PLAIN;
		CREATE UNIQUE INDEX ON $t USING inplace_btree (k);
		INSERT INTO $t SELECT i, i * 10, 'zero' FROM generate_series(1, 5) i;
		SELECT pg_current_xact_id();
		UPDATE $t SET v = 'one' WHERE id = 1;});
	$node->safe_psql('postgres', join(';', 'BEGIN', @sql, "PREPARE TRANSACTION '$t'"));
	push @tables, { name => $t, what => $what };
}

# The record that the row's newest change or lock leads to: block and offset.
my $undo_file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('inplace.undo_log')});
foreach my $t (@tables)
{
	$t->{file} = $node->data_dir . '/' . one($node, "SELECT pg_relation_filepath('$t->{name}')");
	$t->{at} = one($node, "SELECT lp_off FROM inplace.page_items('$t->{name}', 0) WHERE item = 1");
	$t->{undo} = one($node, "SELECT undo FROM inplace.page_items('$t->{name}', 0) WHERE item = 1");
}
$old->quit;
$node->stop;

my @circles;
foreach my $t (@tables)
{
	my ($block, $offset) = $t->{undo} =~ m{^(\d+)/(\d+)$} or next;
	open(my $fh, '<', $t->{file}) or die;
	binmode $fh;
	seek($fh, $t->{at}, 0);
	read($fh, my $header, 10);	# xid and undo pointer
	close $fh;
	open($fh, '<', $undo_file) or die;
	binmode $fh;
	seek($fh, $block * 8192 + $offset, 0);
	read($fh, my $record, 4);
	close $fh;
	# (a short record has no room for an undo pointer)
	next if ord(substr($record, 3, 1)) & 0x01;
	# in place of those in the record's old header
	overwrite_file($undo_file, $block * 8192 + $offset + 26, $header);
	push @circles, $t;
}
is(@circles, @tables, 'circles made');
$node->start;

my @statements = (
	'SELECT * FROM T', 'SELECT * FROM T WHERE k BETWEEN 5 AND 15',
	map({ "SELECT * FROM T WHERE id = 1 FOR $_" } 'UPDATE NOWAIT', 'KEY SHARE', 'KEY SHARE NOWAIT', 'SHARE NOWAIT', 'NO KEY UPDATE SKIP LOCKED', 'KEY SHARE SKIP LOCKED'),
	map({ "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM T WHERE id = 1 FOR $_" } 'UPDATE', 'KEY SHARE'),
	'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM T; ROLLBACK',
	q{UPDATE T SET v = 'x' WHERE id = 1}, 'UPDATE T SET k = 7 WHERE id = 1', 'DELETE FROM T WHERE id = 1',
	q{INSERT INTO T VALUES (1, 10, 'again')}, q{INSERT INTO T VALUES (9, 20, 'again')},
	'VACUUM T', 'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) T', 'ANALYZE T', 'VACUUM FULL T', 'CREATE INDEX ON T (v)',
	q{SELECT count(*) FROM inplace.check('T')}, q{SELECT count(*) FROM inplace.versions('T', '(0,1)')},
	q{SELECT count(*) FROM inplace.row_locks('T')}, q{SELECT count(*) FROM inplace.page_items('T', 0)});
my $gone = 0;
foreach my $t (@circles)
{
	my @wrong;
	foreach my $statement (@statements)
	{
		my $sql = $statement =~ s/\bT\b/$t->{name}/r;
		my ($rc, $out, $err) = eval { $node->psql('postgres',
			"\\set VERBOSITY verbose\nSET statement_timeout = '60s'; SET lock_timeout = '300ms';\n$sql", timeout => 180) };
		my $died = $@;
		push @wrong, "$statement: $died" if $died;
		push @wrong, "$statement: $err" if ($err // '') =~ /57014|XX000|server closed/;
		note "$t->{what}: $statement: $err" if $err;
		if ($died || ($err // '') =~ /server closed/)
		{
			kill9_all($node);
			$node->start;
		}
	}
	is(join("\n", @wrong), '', "$t->{what}: every statement has an end");
}
$node->safe_psql('postgres', "ROLLBACK PREPARED '$_->{name}'") foreach @tables;
$node->stop;
check_log($node);
done_testing();
