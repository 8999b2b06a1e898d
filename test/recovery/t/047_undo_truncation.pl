# The undo file becomes longer and shorter all the time (bursts, rollbacks, a
# worker that looks every 10 ms), while: the server stops at once, a base backup
# is taken, databases are made from ones with undo and dropped, a prepared
# transaction holds the file's end, a standby replays and is promoted.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $node = new_node('primary', allows_streaming => 1, conf => q{
default_table_access_method = 'inplace'
inplace.undo_worker_delay = 10
max_wal_senders = 5
wal_keep_size = '2GB'
autovacuum = off
});
$node->start;
my $schema = q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, f char(20));
	CREATE UNLOGGED TABLE u (id int PRIMARY KEY, n int NOT NULL);
	INSERT INTO t SELECT i, 100, 'a' FROM generate_series(1, 4000) i;
	INSERT INTO u SELECT i, 100 FROM generate_series(1, 1000) i;};
$node->safe_psql('postgres', $schema);

my $dir = $node->basedir;
append_to_file("$dir/load.pgb", q{
\set a random(1, 3999)
\set b random(:a + 1, 4000)
\set low random(1, 2500)
\set what random(1, 40)
BEGIN;
UPDATE t SET n = n - 1 WHERE id = :a;
UPDATE t SET n = n + 1 WHERE id = :b;
\if :what = 1
UPDATE t SET f = :what || 'x' || :a WHERE id IN (SELECT id FROM t WHERE id BETWEEN :low AND :low + 1500 ORDER BY id FOR UPDATE SKIP LOCKED);
COMMIT;
\elif :what < 4
SAVEPOINT s;
UPDATE t SET n = n + 7, f = repeat('r', :what) WHERE id IN (SELECT id FROM t WHERE id BETWEEN :low AND :low + 1500 ORDER BY id FOR UPDATE SKIP LOCKED);
ROLLBACK TO s;
COMMIT;
\elif :what < 6
UPDATE t SET n = n + 7 WHERE id IN (SELECT id FROM t WHERE id BETWEEN :low AND :low + 1500 ORDER BY id FOR UPDATE SKIP LOCKED);
ROLLBACK;
\else
UPDATE u SET n = n + 1 WHERE id = :a % 1000 + 1;
COMMIT;
\endif
});

append_to_file("$dir/little.pgb", q{
\set a random(1, 4000)
UPDATE t SET f = f || '.' WHERE id = :a AND length(f) < 15;
});

sub start_load { return start_pgbench($node, @_, '-T', '100') }

sub right
{
	my ($n, $what, $db) = @_;
	is(one($n, 'SELECT sum(n), count(*) FROM t', $db), '400000|4000', "$what: no change is lost, none is half there");
	check_clean($n, $what, $db) if one($n, 'SELECT pg_is_in_recovery()', $db) eq 'f';
}

sub stop_load
{
	my ($load) = @_;
	kill 'INT', $load->{h}->{KIDS}->[0]->{PID};
	end_pgbench($load);
}

# how often the WAL up to now says that a file was cut off: only that of undo is
sub truncations
{
	my @segments = sort grep { /^[0-9A-F]{24}$/ } slurp_dir($node->data_dir . '/pg_wal');
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'pg_waldump', '-r', 'Storage', '-p', $node->data_dir . '/pg_wal', $segments[0], $segments[-1] ], '>', \$out, '2>', \$err);
	return scalar(() = $out =~ /desc: TRUNCATE/g);
}

# ---- stops at once

# First much load, then little: about a second later the file is cut off.
# (Not each time on a busy machine: then there are more rounds.)
my $truncations = 0;
foreach my $round (1 .. 24)
{
	last if $round > 6 && $truncations >= 3;
	my $load = start_load('-c', '5', '-f', "$dir/load.pgb");
	usleep(800_000);
	stop_load($load);
	$node->safe_psql('postgres', 'CHECKPOINT') if $round % 3 == 0;
	$load = start_load('-c', '2', '-R', '30', '-f', "$dir/little.pgb");
	usleep(1_800_000 + int(rand(1_700_000)));
	$node->stop('immediate');
	end_pgbench($load);
	$node->start;
	right($node, "stop $round");
	is(one($node, 'SELECT count(*) FROM u'), '0', "stop $round: unlogged");
	$node->safe_psql('postgres', 'INSERT INTO u SELECT i, 100 FROM generate_series(1, 1000) i');
	$truncations = truncations() if $round >= 6;
}
cmp_ok($truncations, '>=', 3, "the undo file was cut off $truncations times");

# ---- a base backup and a standby; the end of the file held by a prepared transaction

my $load = start_load('-c', '5', '-f', "$dir/load.pgb");
$node->safe_psql('postgres', q{BEGIN; CREATE TABLE gone (id int, n int); INSERT INTO gone SELECT i, i FROM generate_series(1, 3000) i; UPDATE gone SET n = n + 1; UPDATE gone SET n = n + 1; PREPARE TRANSACTION 'p'});
usleep(500_000);
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;

# ---- databases, beside that load

foreach my $strategy ('file_copy', 'wal_log')
{
	$node->safe_psql('postgres', 'CREATE DATABASE source');
	$node->safe_psql('source', $schema);
	$node->safe_psql('source', q{BEGIN; UPDATE t SET n = n + 5; ROLLBACK});
	$node->safe_psql('source', q{UPDATE t SET f = f || 'b' WHERE id < 3000; UPDATE t SET f = f || 'c' WHERE id % 3 = 0});
	is(sqlstate_of($node, "CREATE DATABASE copy TEMPLATE source STRATEGY $strategy"), '', "$strategy: database made from one with undo");
	foreach my $db ('copy', 'source')
	{
		right($node, "$strategy, $db", $db);
		$node->safe_psql($db, q{UPDATE t SET n = n + 1 WHERE id = 1; UPDATE t SET n = n - 1 WHERE id = 2; UPDATE t SET f = 'd'});
		undo_floor_reached($node, "$strategy, $db", 60, $db);
		right($node, "$strategy, $db, later", $db);
	}
	$node->safe_psql('source', q{UPDATE t SET f = 'e'});
	is(sqlstate_of($node, "DROP DATABASE $_"), '', "$strategy: $_ with undo dropped") for 'source', 'copy';
}

# ---- promoted in the middle

right($standby, 'standby');
$standby->promote;
right($standby, 'promoted');
is(one($standby, q{SELECT count(*) FROM pg_prepared_xacts}), '1', 'promoted: prepared transaction');
$standby->safe_psql('postgres', q{ROLLBACK PREPARED 'p'; UPDATE t SET f = 'after'});
undo_floor_reached($standby, 'promoted', 60);
right($standby, 'promoted, later');

$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is(one($node, 'SELECT sum(n) FROM gone'), '4507500', 'prepared transaction');
stop_load($load);
undo_floor_reached($node, 'at the end', 60);
right($node, 'at the end');
$node->stop;
$standby->stop;
check_log($node);
check_log($standby);
done_testing();
