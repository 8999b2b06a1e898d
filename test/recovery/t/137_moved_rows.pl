# The record of an update that moves its row, in each of its forms (wal/log_move.c): to
# the same page, to another, and with undo and header whole.  With and without
# wal_consistency_checking, which keeps a reference to the undo page in each record.  What a
# standby shows to a snapshot from before is made from the undo that replay has made.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pg_walinspect;
	CREATE TABLE t (id int PRIMARY KEY, p point, n int, v text);
	CREATE INDEX ON t USING spgist (p);
	CREATE INDEX ON t (n)});
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nwal_receiver_status_interval = '1s'\n");
$standby->start;

# Moves of rows first .. first + 99.  The pages are full at first.
sub moves
{
	my ($first, $gid) = @_;
	my $rows = sub { "id BETWEEN " . ($first + $_[0]) . " AND " . ($first + $_[1]) };
	my $moved = 'p = point(n, random()), n = n + 1000';
	return (
		# new rows and frozen ones, to other pages and to the room that is left
		'UPDATE t SET p = point(id, 1) WHERE ' . $rows->(0, 19),
		'UPDATE t SET p = NULL, v = NULL WHERE ' . $rows->(20, 29),
		'UPDATE t SET p = point(0, id), v = v || v WHERE ' . $rows->(30, 39),
		"UPDATE t SET $moved WHERE " . $rows->(0, 9),
		(map { "UPDATE t SET p = point(id, $_ + 1) WHERE id = $first + $_" } 0 .. 19),
		'VACUUM t',
		(map { "UPDATE t SET p = point(id, $_ + 2) WHERE id = $first + $_" } 0 .. 19),
		# a later command, whose number is logged; a row of this very transaction
		"BEGIN; UPDATE t SET n = -1 WHERE id = $first + 40; UPDATE t SET $moved WHERE " . $rows->(40, 44) . '; COMMIT',
		# the key
		'UPDATE t SET id = id + 100000, p = point(1, 1) WHERE ' . $rows->(50, 54),
		# rolled back, in part
		"BEGIN; UPDATE t SET $moved WHERE " . $rows->(60, 64) . "; SAVEPOINT a; UPDATE t SET $moved WHERE " . $rows->(65, 69) . '; ROLLBACK TO a; COMMIT',
		"BEGIN; UPDATE t SET $moved WHERE " . $rows->(70, 74) . '; ROLLBACK',
		# a lock that is kept, and a row that has been changed in place
		"BEGIN; SELECT FROM t WHERE id = $first + 80 FOR KEY SHARE; PREPARE TRANSACTION '$gid'",
		"UPDATE t SET $moved WHERE id = $first + 80",
		"COMMIT PREPARED '$gid'",
		'UPDATE t SET v = upper(v) WHERE ' . $rows->(90, 94),
		"UPDATE t SET $moved WHERE " . $rows->(90, 94),
		# values in the TOAST table go along
		"UPDATE t SET $moved WHERE " . $rows->(95, 97),
		# and what is open, over the crash
		"BEGIN; UPDATE t SET $moved WHERE " . $rows->(75, 79) . "; PREPARE TRANSACTION 'open $gid'");
}

foreach my $round ([ '', 'on' ], [ 'inplace', 'on' ], [ '', 'off' ])
{
	my ($checking, $images) = @$round;
	my $what = ($checking ? 'checked' : 'not checked') . ", full_page_writes $images";
	$node->append_conf('postgresql.conf', "wal_consistency_checking = '$checking'\nfull_page_writes = $images\n");
	$node->reload;
	$node->safe_psql('postgres', q{
		TRUNCATE t;
		INSERT INTO t SELECT g, point(g, g), g, repeat('v', 60) FROM generate_series(1, 100) g;
		VACUUM (FREEZE) t;
		INSERT INTO t SELECT g, point(g, g), g, repeat('w', 60) FROM generate_series(101, 200) g;
		UPDATE t SET v = (SELECT string_agg(md5(i::text), '') FROM generate_series(id, id + 200) i) WHERE id % 100 BETWEEN 96 AND 99});
	$node->wait_for_catchup($standby);
	my $before = contents($node, 't');
	my $reader = psql_session($standby);
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $query = q{SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, E'\n' ORDER BY t::text COLLATE "C")), '') FROM t};
	is($reader->query_safe($query), $before, "$what: the standby before");
	# its feedback
	poll_value($node, 'SELECT count(*) > 0 FROM pg_stat_replication WHERE backend_xmin IS NOT NULL', 60);

	my $lsn = one($node, 'SELECT pg_current_wal_insert_lsn()');
	$node->safe_psql('postgres', $_) foreach 'CHECKPOINT', moves(1, 'a'), moves(101, 'b');
	my $forms = one($node, qq{
		SELECT count(*) FILTER (WHERE compact AND same) > 5, count(*) FILTER (WHERE compact AND NOT same) > 5,
			count(*) FILTER (WHERE NOT compact) > 5, count(*) FILTER (WHERE compact AND NOT undo) > 5
		FROM (SELECT description LIKE '%compact%' AS compact, block_ref NOT LIKE '%#2%' AS same,
				block_ref LIKE '%#1%' AS undo
			FROM pg_get_wal_records_info('$lsn', pg_current_wal_flush_lsn())
			WHERE resource_manager = 'inplace' AND record_type = 'MOVE') r});
	is($forms, 't|t|t|' . ($checking ? 'f' : 't'), "$what: all forms");

	$node->wait_for_catchup($standby);
	my $after = contents($node, 't');
	isnt($after, $before, "$what: rows have changed");
	is($reader->query_safe($query), $before, "$what: the standby's snapshot of before");
	is(contents($standby, 't'), $after, "$what: the standby now");
	check_clean($standby, "$what: the standby");
	$reader->query_safe('COMMIT');
	$reader->quit;

	crash_and_restart($node);
	is(contents($node, 't'), $after, "$what: after a crash");
	check_clean($node, "$what: after a crash");
	$node->safe_psql('postgres', "ROLLBACK PREPARED 'open $_'") foreach 'a', 'b';
	is(contents($node, 't'), $after, "$what: what was open is taken back");
	check_clean($node, "$what: and then");
	$node->wait_for_catchup($standby);
}

check_log($_) foreach $node, $standby;
$standby->stop;
$node->stop;
done_testing();
