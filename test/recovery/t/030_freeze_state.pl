# What adaptive freezing has learnt: kept over a restart, forgotten after a
# crash, not taken from a file that is not of the last shutdown, not known to
# standbys, gone with its table or database.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('freezing', allows_streaming => 1, conf => "autovacuum = off\nrestart_after_crash = on\n");
$node->start;
my $file = $node->data_dir . '/pg_stat/inplace_freeze.stat';
# (What follows from them changes with the time that pages stay as they are.)
my $figures = q{SELECT string_agg((to_jsonb(s) - 'threshold_seconds' - 'fill_probability')::text, ' ' ORDER BY relname) FROM inplace.stat_freeze s};

# Learn something about a table: all of its pages set, some unset.
sub learn
{
	my ($table, $db) = @_;
	$node->safe_psql($db // 'postgres', $_)
	  foreach ("CREATE TABLE $table (id int, t text) USING inplace",
		"INSERT INTO $table SELECT g, repeat('x', 1000) FROM generate_series(1, 400) g",
		"VACUUM $table", "UPDATE $table SET t = repeat('y', 1000) WHERE id % 10 = 0");
}

sub known
{
	my ($table, $db) = @_;
	return one($node, "SELECT observations FROM inplace.stat_freeze WHERE relname = '$table'", $db);
}

$node->safe_psql('postgres', 'CREATE EXTENSION inplace');
learn('kept');
learn('other');
cmp_ok(known('kept'), '>', 10, 'something is known');
my $before = one($node, $figures);

# Restarts.
ok(!-e $file, 'no file while the server runs');
$node->stop('fast');
ok(-s $file, 'a file after the shutdown');
ok(!-e "$file.tmp", 'under its own name only');
my $saved = slurp_file($file);
$node->start;
ok(!-e $file, 'the file is taken up');
is(one($node, $figures), $before, 'the figures are back');
$node->stop('smart');
$node->start;
is(one($node, $figures), $before, 'and once more');

# The timeline: pages changed before the restarts are known to be so old.
my $sleep = 3;
$node->safe_psql('postgres', "SELECT pg_sleep($sleep)");
$node->restart;
$node->safe_psql('postgres', q{UPDATE kept SET t = repeat('z', 1000) WHERE id % 10 = 5});
cmp_ok(one($node, q{SELECT mean_seconds * observations FROM inplace.stat_freeze WHERE relname = 'kept'}),
	'>', $sleep * 10, 'age of pages that were changed before the restart');

# With less room the tables vacuumed last stay.
learn("t$_") foreach (1 .. 12);
$node->append_conf('postgresql.conf', 'inplace.max_freeze_stats_tables = 10');
$node->restart;
is(one($node, q{SELECT count(*) FROM inplace.stat_freeze WHERE observations > 0}), '10', 'room for 10');
is(one($node, q{SELECT count(*) FROM inplace.stat_freeze WHERE observations IS NULL AND relname IN ('kept', 'other', 't1', 't2')}), '4',
	'those vacuumed longest ago are forgotten');
is(one($node, q{VACUUM kept}), '', 'one more');
is(one($node, q{SELECT count(*) FROM inplace.stat_freeze WHERE all_visible_sets IS NOT NULL}), '10', 'takes the place of another');
is(known('t3'), '', '... the oldest one');
$node->append_conf('postgresql.conf', 'inplace.max_freeze_stats_tables = 1000');
$node->safe_psql('postgres', 'DROP TABLE ' . join(', ', map { "t$_" } 1 .. 12));

# Crashes.
$node->restart;
is(known('kept'), '0', 'known before the crash');
crash_and_restart($node);
is(known('kept'), '', 'forgotten after an immediate shutdown');
learn('again');
kill9_all($node);
$node->start;
is(known('again'), '', 'forgotten after a crash');
learn('again2');
{
	my $session = psql_session($node);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	kill 'KILL', $pid;
	# an empty query has nothing to write to a server that is not there
	ok($node->poll_query_until('postgres', undef, ''), 'the server is up again');
	is(known('again2'), '', 'forgotten after a backend has crashed');
}

# Files that must not be believed.  $saved is of an earlier shutdown.
sub refused
{
	my ($what, $content, $why) = @_;
	learn('again3');
	$node->stop('fast');
	$content->() if ref $content;
	overwrite_whole($content) unless ref $content;
	my $log = -s $node->logfile;
	$node->start;
	is(known('again3'), '', "$what: nothing is taken");
	like(slurp_file($node->logfile, $log), qr/LOG: .*ignoring file "pg_stat\/inplace_freeze.stat"\n.*DETAIL: .*$why/, "$what: the log says so");
	ok(!-e $file, "$what: the file is removed");
	$node->safe_psql('postgres', 'DROP TABLE again3');
}

sub overwrite_whole
{
	my ($content) = @_;
	open my $fh, '>:raw', $file or die;
	print $fh $content;
	close $fh;
}

refused('file of an earlier shutdown', $saved, 'not of the last shutdown');
refused('empty file', '', 'too short');
refused('one bit', sub {
	my $c = slurp_file($file);
	substr($c, length($c) / 2, 1) ^= "\x04";
	overwrite_whole($c);
}, 'checksum');
refused('truncated file', sub { truncate $file, (-s $file) - 100 }, 'checksum');

# pg_resetwal has shut the cluster down in another way.
refused('pg_resetwal', sub {
	system_or_bail('pg_resetwal', '-l', '00000001000000000000007F', '-D', $node->data_dir);
}, 'not of the last shutdown');

# Standbys.
learn('more');
$node->backup('b');
ok(!-e $node->backup_dir . '/b/pg_stat/inplace_freeze.stat', 'not in a base backup');
my $standby = PostgreSQL::Test::Cluster->new('freezing_standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
my $unknown = q{SELECT count(observations) FROM inplace.stat_freeze};
is(one($standby, $unknown), '0', 'a standby knows nothing');
$standby->restart;
is(one($standby, $unknown), '0', 'nor after a restart');
ok(!-e $standby->data_dir . '/pg_stat/inplace_freeze.stat', 'and has no file');
$standby->promote;
is(one($standby, $unknown), '0', 'nor when promoted');
is(one($standby, 'VACUUM (DISABLE_PAGE_SKIPPING) kept'), '', 'VACUUM after that');
is(one($standby, $unknown), '1', 'and then it learns');
$standby->stop;

# A primary that comes back as a standby does not believe its own file.
ok(one($node, $unknown) > 0, 'the primary knows something');
$node->stop('fast');
ok(-e $file, 'file of the old primary');
$node->set_standby_mode;
$node->start;
is(one($node, $unknown), '0', 'an old primary as a standby knows nothing');
ok(!-e $file, 'and its file is gone');
$node->promote;

# DROP.
learn($_) foreach ('d1', 'd2', 'd3', 'd4');
my %oid = map { $_ => one($node, "SELECT '$_'::regclass::oid") } 'd1', 'd2', 'd3', 'd4';
my $sets = sub { one($node, "SELECT all_visible_sets IS NOT NULL FROM inplace.freeze_stats($oid{$_[0]})") };
is($sets->('d1'), 't', 'd1 is known');
$node->safe_psql('postgres', 'DROP TABLE d1');
is($sets->('d1'), 'f', 'DROP TABLE');
$node->safe_psql('postgres', 'BEGIN; DROP TABLE d2; ROLLBACK');
is($sets->('d2'), 't', 'DROP TABLE rolled back');
$node->safe_psql('postgres', 'BEGIN; SAVEPOINT s; DROP TABLE d2; ROLLBACK TO s; DROP TABLE d3; COMMIT');
is($sets->('d2') . $sets->('d3'), 'tf', 'one DROP TABLE rolled back, one committed');
$node->safe_psql('postgres', q{BEGIN; DROP TABLE d4; PREPARE TRANSACTION 'p'});
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is($sets->('d4'), 'f', 'DROP TABLE in a prepared transaction');

$node->safe_psql('postgres', 'CREATE DATABASE gone OID = 77777');
$node->safe_psql('gone', 'CREATE EXTENSION inplace');
learn('t', 'gone');
my $oid = one($node, q{SELECT 't'::regclass::oid}, 'gone');
$node->safe_psql('postgres', 'DROP DATABASE gone');
$node->safe_psql('postgres', 'CREATE DATABASE gone OID = 77777');
$node->safe_psql('gone', 'CREATE EXTENSION inplace');
is(one($node, "SELECT all_visible_sets FROM inplace.freeze_stats($oid)", 'gone'), '', 'DROP DATABASE');
$node->restart;
is(one($node, "SELECT all_visible_sets FROM inplace.freeze_stats($oid)", 'gone'), '', 'DROP DATABASE, after a restart');

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
