# Backups beside the plain one: from a standby, incremental (from 17 on); checksums
# put on and taken off an existing cluster; pages torn by a crash.  Each time with
# changes in progress, whose old versions are in undo.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $conf = q{
default_table_access_method = 'inplace'
wal_keep_size = '500MB'
hot_standby_feedback = on
autovacuum = off
};
$conf .= "summarize_wal = on\n" if pg_major() >= 17;
my $primary = new_node('primary', allows_streaming => 1, conf => $conf,
	extra => [ pg_major() >= 18 ? '--no-data-checksums' : () ]);
$primary->start;
one($primary, 'CREATE EXTENSION inplace');
is(one($primary, q{
	CREATE TABLE t (id int PRIMARY KEY, a int, w text);
	CREATE INDEX t_a ON t (a);
	INSERT INTO t SELECT g, g, repeat('w', g % 100) FROM generate_series(1, 20000) g;
	CREATE TABLE still (id int PRIMARY KEY, w text);
	INSERT INTO still SELECT g, repeat('s', 50) FROM generate_series(1, 20000) g;
	CREATE TABLE other (x int);
	SELECT 1}), '1', 'set up');
one($primary, 'VACUUM (FREEZE) still');

# Changes in progress on a server, and what is to be there when they are gone.
sub open_changes
{
	my ($node) = @_;
	my $before = contents($node, 't');
	my $holder = psql_session($node);
	my $writer = psql_session($node);
	$holder->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other');
	one($node, 'UPDATE t SET a = a + 1, w = left(w, -1) WHERE id % 3 = 0; UPDATE t SET a = a - 1 WHERE id % 3 = 0');
	my $committed = contents($node, 't');
	$writer->query(q{BEGIN; UPDATE t SET a = -a, w = w || 'new' WHERE id % 4 = 0; DELETE FROM t WHERE id % 50 = 1; INSERT INTO t VALUES (0, 0, 'new')});
	return { holder => $holder, writer => $writer, before => $before, committed => $committed };
}

sub close_changes
{
	my ($c) = @_;
	$c->{writer}->query('ROLLBACK');
	$c->{holder}->query('COMMIT');
	$_->quit foreach $c->{writer}, $c->{holder};
}

sub as_expected
{
	my ($node, $committed, $what) = @_;
	is(contents($node, 't'), $committed, "$what: rows");
	is(one($node, 'SELECT count(*), sum(length(w)) FROM still'), '20000|1000000', "$what: rows of the table at rest");
	is(one($node, 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE a BETWEEN 1 AND 20000'),
		one($node, 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM t WHERE a BETWEEN 1 AND 20000'), "$what: index");
	is(one($node, "BEGIN; UPDATE t SET a = a + 1 WHERE id < 100; ROLLBACK; UPDATE t SET a = a + 1 WHERE id = 5; UPDATE t SET a = a - 1 WHERE id = 5; SELECT 1"), '1', "$what: writing");
	check_clean($node, $what);
}

# ---- from a standby
my $changes = open_changes($primary);
$primary->backup('b1', backup_options => ['--checkpoint=fast']);
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b1', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(contents($standby, 't'), $changes->{committed}, 'the standby sees what is committed');
one($primary, 'UPDATE other SET x = 1; CHECKPOINT');
one($standby, 'CHECKPOINT');
$standby->backup('of_standby', backup_options => ['--checkpoint=fast']);
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($standby, 'of_standby');
$copy->start;
is(contents($copy, 't'), $changes->{committed}, 'backup of a standby: read');
$copy->promote;
as_expected($copy, $changes->{committed}, 'backup of a standby');
undo_floor_reached($copy, 'backup of a standby', 30);
$copy->stop;
check_log($copy);
close_changes($changes);
$standby->stop;
check_log($standby);

# ---- incremental
SKIP:
{
	skip 'incremental backups are of 17 and later', 20 if pg_major() < 17;
	$primary->backup('full', backup_options => ['--checkpoint=fast']);
	my $path = $primary->backup_dir;
	$changes = open_changes($primary);
	one($primary, 'INSERT INTO still SELECT g, repeat(\'s\', 50) FROM generate_series(20001, 20500) g; DELETE FROM still WHERE id > 20000');
	$primary->backup('incr1', backup_options => [ '--checkpoint=fast', '--incremental', "$path/full/backup_manifest" ]);
	close_changes($changes);
	my $second = open_changes($primary);
	one($primary, $_) foreach 'VACUUM t', 'UPDATE t SET w = w || 1 WHERE id % 100 = 3', 'UPDATE t SET w = left(w, -1) WHERE id % 100 = 3';
	my $committed = $second->{committed};
	$primary->backup('incr2', backup_options => [ '--checkpoint=fast', '--incremental', "$path/incr1/backup_manifest" ]);

	my $file = one($primary, q{SELECT pg_relation_filepath('still')});
	my ($name) = $file =~ m{/(\d+)$};
	ok((grep { m{/INCREMENTAL\.$name$} } glob("$path/incr2/" . ($file =~ s{/\d+$}{}r) . '/*')), 'the table at rest is incremental there');

	my $n = 0;
	foreach my $chain ([ 'full', 'incr1', $changes->{committed} ], [ 'full', 'incr1', 'incr2', $committed ])
	{
		my $expected = pop @$chain;
		my $node = PostgreSQL::Test::Cluster->new('combined' . ++$n);
		my $what = 'combined of ' . join(', ', @$chain);
		$node->init_from_backup($primary, $chain->[-1], combine_with_prior => [ @$chain[ 0 .. $#$chain - 1 ] ]);
		$node->start;
		as_expected($node, $expected, $what);
		undo_floor_reached($node, $what, 30);
		$node->stop;
		check_log($node);
	}
	close_changes($second);
}

# ---- checksums
$changes = open_changes($primary);
$primary->stop('immediate');
$primary->start;		# recovery, aborted changes left to the undo worker
as_expected($primary, $changes->{committed}, 'recovered');
eval { $_->quit } foreach $changes->{writer}, $changes->{holder};
$primary->stop;
$primary->command_fails([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'there are no checksums');
$primary->command_ok([ 'pg_checksums', '--enable', '-D', $primary->data_dir ], 'pg_checksums --enable');
$primary->command_ok([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'pg_checksums --check');
$primary->start;
as_expected($primary, $changes->{committed}, 'with checksums');
$changes = open_changes($primary);
one($primary, 'CHECKPOINT');
$primary->stop;
eval { $_->quit } foreach $changes->{writer}, $changes->{holder};
$primary->command_ok([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'pg_checksums --check, with undo in use');

# ---- pages torn by a crash: full-page images put them right
$primary->append_conf('postgresql.conf', "full_page_writes = on\n");
$primary->start;
one($primary, 'CHECKPOINT');
$changes = open_changes($primary);
one($primary, 'CREATE EXTENSION pageinspect');
my $undo_path = one($primary, q{SELECT pg_relation_filepath('inplace.undo_log')});
my $table_path = one($primary, q{SELECT pg_relation_filepath('t')});
# Those written since the checkpoint, for only these have images.
my %written;
foreach my $r ('t', 'inplace.undo_log')
{
	$written{$r} = [ split /\n/, one($primary, qq{SELECT b FROM generate_series(1, pg_relation_size('$r') / 8192 - 1) b
		WHERE (SELECT lsn FROM page_header(get_raw_page('$r', b::int))) > (SELECT redo_lsn FROM pg_control_checkpoint()) ORDER BY b % 7, b LIMIT 10}) ];
}
one($primary, 'SELECT pg_switch_wal()');
$primary->stop('immediate');
eval { $_->quit } foreach $changes->{writer}, $changes->{holder};
my $garbage = join '', map { chr(($_ * 37 + 11) % 256) } 1 .. 4096;
my $torn = 0;
foreach my $f ([ $table_path, $written{t} ], [ $undo_path, $written{'inplace.undo_log'} ])
{
	my $file = $primary->data_dir . '/' . $f->[0];
	my $on_disk = int((-s $file) / 8192);
	foreach my $blk (grep { $_ < $on_disk } @{ $f->[1] })
	{
		overwrite_file($file, $blk * 8192 + 4096, $garbage);
		$torn++;
	}
}
cmp_ok($torn, '>=', 10, "$torn pages torn");
$primary->start;
as_expected($primary, $changes->{committed}, 'after a crash that tore pages');
$primary->stop;
$primary->command_ok([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'pg_checksums --check, after that');
$primary->command_ok([ 'pg_checksums', '--disable', '-D', $primary->data_dir ], 'pg_checksums --disable');
$primary->start;
as_expected($primary, $changes->{committed}, 'without checksums again');

# ---- a page damaged at rest is found by its checksum, and by nobody taken for rows
$primary->stop;
$primary->command_ok([ 'pg_checksums', '--enable', '-D', $primary->data_dir ], 'pg_checksums --enable again');
overwrite_file($primary->data_dir . '/' . $table_path, 3 * 8192 + 4096, $garbage);
$primary->command_fails([ 'pg_checksums', '--check', '-D', $primary->data_dir ], 'pg_checksums finds the damage');
$primary->start;
like(sqlstate_of($primary, 'SELECT sum(a) FROM t'), qr/ERROR:  XX001: invalid page in block 3/, 'so does a scan');
is(one($primary, 'SELECT count(*) FROM still'), '20000', 'other tables are served');
$primary->stop;
check_log($primary);
done_testing();
