# Updates whose WAL record leaves the old row to the page: which records do,
# their size beside heap's, and that the undo made from them in recovery leads
# back to the right rows, whatever of data and undo pages had been written.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_node('oldrow', allows_streaming => 1, conf => q{
autovacuum = off
wal_consistency_checking = ''
wal_log_hints = on
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace; CREATE EXTENSION pg_walinspect; CREATE EXTENSION pg_buffercache');

my $columns = 'id int, first int, name varchar(900), fixed char(100), middle text, last int';
$node->safe_psql('postgres', qq{
	CREATE TABLE t_$_ ($columns) USING $_ WITH (fillfactor = 40);
	INSERT INTO t_$_ SELECT g, g, repeat('n', 100 + g), 'f', repeat('m', 380), g FROM generate_series(1, 200) g;
	CREATE TABLE s_$_ (id int, n int, note text) USING $_ WITH (fillfactor = 40);
	INSERT INTO s_$_ SELECT g, g, 'short' FROM generate_series(1, 200) g}) foreach ('heap', 'inplace');

my @sets = (
	[ 't', 'first and last column', 'first = first + 1, last = last + 1' ],
	[ 't', 'part of a column', q{middle = overlay(middle placing repeat('q', 150) from 100 for 150)} ],
	[ 't', 'longer', q{name = name || 'longer', fixed = 'a'} ],
	[ 't', 'set to null', 'middle = NULL' ],
	[ 't', 'null to a value', q{middle = 'back'} ],
	[ 't', 'all columns null', 'first = NULL, name = NULL, fixed = NULL, middle = NULL, last = NULL' ],
	[ 't', 'all columns set', q{first = id, name = repeat('n', 500), fixed = 'g', middle = 'm', last = 7} ],
	[ 's', 'short row', 'n = n + 1' ],
	[ 's', 'short row, longer', q{note = note || id} ]);

sub position { return one($node, 'SELECT pg_current_wal_insert_lsn()') }

# Which records of UPDATE since then leave the old row to the page?
sub forms
{
	my ($from) = @_;
	return one($node, qq{
		SELECT string_agg(DISTINCT CASE WHEN description LIKE '%old row from page%' THEN 'page' ELSE 'record' END, ',')
		FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
		WHERE resource_manager = 'inplace' AND record_type = 'UPDATE'});
}

# ---- size, full-page images aside
$node->safe_psql('postgres', 'CHECKPOINT');
foreach my $set (@sets)
{
	my ($table, $name, $what) = @$set;
	my %bytes;
	foreach my $am ('heap', 'inplace')
	{
		my $from = position();
		$node->safe_psql('postgres', "SELECT txid_current(); UPDATE ${table}_$am SET $what");
		my $manager = $am eq 'heap' ? q{'Heap', 'Heap2'} : q{'inplace'};
		$bytes{$am} = one($node, qq{SELECT sum(record_length - fpi_length)
			FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
			WHERE resource_manager IN ($manager) AND record_type ~ 'UPDATE'});
		is(forms($from), 'page', "$name: the old row is left to the page") if $am eq 'inplace';
	}
	cmp_ok($bytes{inplace}, '<=', $bytes{heap}, "$name: at most heap's WAL");
	note "$name: heap $bytes{heap}, inplace $bytes{inplace}";
	is(contents($node, "${table}_inplace"), contents($node, "${table}_heap"), "$name: as heap");
}

# ---- recovery
# Data pages go to disk as they are now; the undo pages stay in memory.
sub write_data_pages
{
	if (pg_major() >= 17)
	{
		my $call = pg_major() >= 18 ? '(pg_buffercache_evict(bufferid)).buffer_evicted' : 'pg_buffercache_evict(bufferid)';
		my $n = one($node, qq{SELECT count(*) FILTER (WHERE $call) FROM pg_buffercache
			WHERE relfilenode IN (pg_relation_filenode('t_inplace'), pg_relation_filenode('s_inplace')) AND relforknumber = 0});
		cmp_ok($n, '>', 0, 'data pages written');
	}
	else
	{
		# (Not only these, then.)
		$node->safe_psql('postgres', 'CHECKPOINT');
	}
}

sub all_rows { return contents($node, 't_inplace') . ' ' . contents($node, 's_inplace') }

# All the changes, committed or not, then a crash.
sub crash_case
{
	my ($what, $prepare, $before_crash) = @_;
	foreach my $end ('committed', 'open')
	{
		$prepare->($end);
		my $before = all_rows();
		my $sql = join '; ', map { "UPDATE $_->[0]_inplace SET $_->[2]" . ($_->[1] =~ /all columns|null/ ? ' WHERE id % 3 = 0' : '') } @sets;
		my $session = psql_session($node);
		$session->query('BEGIN; ' . $sql);
		$session->query('COMMIT') if $end eq 'committed';
		my $after = $end eq 'committed' ? all_rows() : $before;
		$before_crash->();
		$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
		crash_and_restart($node);
		eval { $session->quit };
		is(all_rows(), $after, "$what, $end: rows");
		check_clean($node, "$what, $end");
	}
}

foreach my $when ('first change after a checkpoint', 'later ones')
{
	my $prepare = sub {
		$node->safe_psql('postgres', 'CHECKPOINT; UPDATE t_inplace SET first = 1; UPDATE s_inplace SET n = 1');
		$node->safe_psql('postgres', 'CHECKPOINT') if $when =~ /^first/;
	};
	crash_case("$when, nothing written", $prepare, sub { });
	crash_case("$when, data pages written", $prepare, \&write_data_pages);
	crash_case("$when, checkpoint", $prepare, sub { $node->safe_psql('postgres', 'CHECKPOINT') });
}

# ---- full_page_writes goes off and on again: no page is left to itself that
# may have been changed without an image since the redo pointer
my $from;
crash_case('full_page_writes off and on', sub {
	my ($end) = @_;

	set_full_page_writes($node, 'off');
	$node->safe_psql('postgres', 'CHECKPOINT');
	$from = position();
	$node->safe_psql('postgres', 'UPDATE t_inplace SET first = 3; UPDATE s_inplace SET n = 3');
	is(forms($from), 'record', "full_page_writes off, $end: old bytes are in the record");
	set_full_page_writes($node, 'on');
	$from = position();
	$node->safe_psql('postgres', 'UPDATE t_inplace SET first = 4; UPDATE s_inplace SET n = 4');
	is(forms($from), 'record', "on again, before a checkpoint, $end: the same");
}, \&write_data_pages);

# ... not even by a hint
crash_case('hints without images', sub {
	my ($end) = @_;

	set_full_page_writes($node, 'off');
	$node->safe_psql('postgres', 'UPDATE t_inplace SET first = 5; UPDATE s_inplace SET n = 5');
	$node->safe_psql('postgres', 'CHECKPOINT');
	$from = position();
	$node->safe_psql('postgres', q{SELECT count(*) FROM t_inplace; SELECT count(*) FROM s_inplace; SELECT pg_logical_emit_message(true, '', '')});
	cmp_ok(one($node, qq{SELECT count(*) FROM pg_get_wal_records_info('$from', pg_current_wal_flush_lsn())
		WHERE record_type = 'FPI_FOR_HINT'}), '>', 0, "$end: hints were logged");
	set_full_page_writes($node, 'on');
	$from = position();
	$node->safe_psql('postgres', 'UPDATE t_inplace SET first = 6; UPDATE s_inplace SET n = 6');
	is(forms($from), 'record', "hints without images, $end: old bytes are in the record");
}, \&write_data_pages);

# after that a checkpoint makes it possible again
$node->safe_psql('postgres', 'CHECKPOINT');
$from = position();
$node->safe_psql('postgres', 'SELECT txid_current(); UPDATE t_inplace SET first = 7');
is(forms($from), 'page', 'after a checkpoint: from the page again');


# ---- a standby: the undo that it makes leads back as far as the primary's
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'hot_standby_feedback = on');
$standby->start;
$node->wait_for_catchup($standby);
my $reader = psql_session($standby);
my $rows = q{SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM t_inplace t};
$reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $seen = $reader->query($rows);
ok(defined poll_value($node, 'SELECT backend_xmin IS NOT NULL FROM pg_stat_replication', 30), 'feedback');
foreach my $set (@sets)
{
	$node->safe_psql('postgres', "UPDATE $set->[0]_inplace SET $set->[2] WHERE id % 2 = 0");
}
$node->wait_for_catchup($standby);
is($reader->query($rows), $seen, 'standby: an old snapshot sees what it saw');
is(one($standby, $rows), one($node, $rows), 'standby: a new one sees what the primary does');
$reader->quit;

# Promoted with an open transaction of the primary's, and crashed at once.
my $before = contents($node, 't_inplace');
my $session = psql_session($node);
$session->query(q{BEGIN; UPDATE t_inplace SET middle = NULL, name = 'gone'});
$node->safe_psql('postgres', 'SELECT txid_current()');
$node->wait_for_catchup($standby);
$node->stop('immediate');
eval { $session->quit };
$standby->promote;
is(contents($standby, 't_inplace'), $before, 'promoted: the open transaction is undone');
$session = psql_session($standby);
$session->query(q{BEGIN; UPDATE t_inplace SET middle = 'x', name = NULL});
crash_and_restart($standby);
eval { $session->quit };
is(contents($standby, 't_inplace'), $before, 'promoted and crashed: rows');
check_clean($standby, 'promoted and crashed');
$standby->stop;
check_log($_) foreach ($node, $standby);
done_testing();
