# pg_rewind of an old primary whose undo file has been cut and made longer again with pages
# that nobody has written to: pg_rewind goes by references in WAL and by lengths, but must bring
# what the new primary has there, the undo of a prepared transaction.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

foreach my $checking ('', 'all')
{
	my $how = $checking ? 'wal_consistency_checking' : 'plain';
	my $old = new_node($checking ? 'old_checking' : 'old', allows_streaming => 1, conf => qq{
default_table_access_method = 'inplace'
wal_consistency_checking = '$checking'
wal_log_hints = on
autovacuum = off
inplace.undo_worker_delay = 50
});
	$old->start;
	$old->safe_psql('postgres', q{
		CREATE EXTENSION inplace;
		CREATE TABLE t (id int PRIMARY KEY, n int, v text);
		INSERT INTO t SELECT i, i, repeat('v', 400) FROM generate_series(1, 6000) i;
		CREATE TABLE u (id int PRIMARY KEY, v text);
		INSERT INTO u SELECT i, '' FROM generate_series(1, 100) i;
		CREATE TABLE only_new (i int)});
	my $rows = contents($old, 't');
	$old->backup('b');
	my $new = PostgreSQL::Test::Cluster->new($checking ? 'new_checking' : 'new');
	$new->init_from_backup($old, 'b', has_streaming => 1);
	$new->start;

	# the undo that both have (the checkpoint: the old primary is rewound to it)
	$old->safe_psql('postgres', q{BEGIN; UPDATE t SET n = -n, v = upper(v); PREPARE TRANSACTION 'p'});
	$old->safe_psql('postgres', 'CHECKPOINT');
	my $file = one($old, q{SELECT pg_relation_filepath('inplace.undo_log')});
	my $length = -s $old->data_dir . "/$file";
	cmp_ok($length, '>', 2 * 1024 * 1024, "$how: there is undo");
	$old->wait_for_catchup($new);
	$new->safe_psql('postgres', 'CHECKPOINT');
	$new->promote;
	$new->safe_psql('postgres', 'CHECKPOINT');

	# The old primary goes on: cuts the file off, and each of many transactions takes an extent,
	# of which it uses a page.  They are open until it stops, so that nothing is cut off again.
	$old->safe_psql('postgres', q{COMMIT PREPARED 'p'});
	undo_floor_reached($old, "$how: old primary", 60);
	cmp_ok(-s $old->data_dir . "/$file", '<', $length / 2, "$how: the file has been cut off");
	my @writers;
	while (-s $old->data_dir . "/$file" < $length && @writers < 30)
	{
		my $s = psql_session($old);
		push @writers, $s;
		$s->query_safe($_) foreach ('BEGIN', 'UPDATE u SET v = v || 1 WHERE id = ' . @writers);
	}
	$old->stop('fast');
	foreach my $s (@writers)
	{
		eval { $s->quit };
	}
	cmp_ok(-s $old->data_dir . "/$file", '>=', $length, "$how: ... and is as long as before");

	$new->safe_psql('postgres', 'INSERT INTO only_new VALUES (1)');
	command_ok([ 'pg_rewind', '--target-pgdata', $old->data_dir, '--source-server', $new->connstr('postgres') ],
		"$how: pg_rewind");
	# The configuration has come from the new primary.
	my $port = $old->port;
	my $host = $old->host;
	$old->append_conf('postgresql.conf', "port = $port\nunix_socket_directories = '$host'\n");
	$old->append_conf('postgresql.conf', "primary_conninfo = '" . $new->connstr . "'\n");
	append_to_file($old->data_dir . '/standby.signal', '');
	$old->start;
	my $lsn = $new->lsn('insert');
	ok($old->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'"), "$how: the rewound server follows");
	is(one($old, 'SELECT count(*) FROM only_new'), 1, "$how: ... the new primary");
	is(contents($_, 't'), $rows, "$how: rows before the prepared transaction, on " . $_->name) foreach $new, $old;
	check_clean($_, "$how: " . $_->name) foreach $new, $old;

	$new->stop;
	$old->promote;
	is(contents($old, 't'), $rows, "$how: promoted");
	is(sqlstate_of($old, q{ROLLBACK PREPARED 'p'}), '', "$how: rolled back where it was committed");
	is(contents($old, 't'), $rows, "$how: ... at once");
	undo_floor_reached($old, "$how: rewound", 60);
	is(contents($old, 't'), $rows, "$how: ... and when restored");
	is(sqlstate_of($old, 'UPDATE t SET n = n + 1; UPDATE t SET n = n - 1'), '', "$how: it can be changed");
	is(contents($old, 't'), $rows, "$how: contents");
	check_clean($old, "$how: promoted");
	# what the cuts have logged is replayed
	crash_and_restart($old);
	is(contents($old, 't'), $rows, "$how: contents after a crash");
	check_clean($old, "$how: after a crash");

	# Replay reads none of the pages that have been cut off.
	$old->safe_psql('postgres', q{BEGIN; UPDATE t SET n = -n, v = upper(v); PREPARE TRANSACTION 'q'; CHECKPOINT});
	$length = -s $old->data_dir . "/$file";
	$old->safe_psql('postgres', q{COMMIT PREPARED 'q'});
	undo_floor_reached($old, "$how: cut again", 60);
	my $pages = ($length - -s $old->data_dir . "/$file") / 8192;
	cmp_ok($pages, '>', 200, "$how: the file has been cut off again");
	crash_and_restart($old);
	my ($passed_over) = one($old, 'SELECT skip_init FROM pg_stat_recovery_prefetch');
	cmp_ok($passed_over, '>=', $pages, "$how: pages that have been cut off are not prefetched");
	$old->stop;
	check_log($_) foreach $new, $old;
}
done_testing();
