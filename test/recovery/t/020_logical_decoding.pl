# Logical decoding: the same statements on a heap and on an inplace table give
# the same output of test_decoding, byte for byte, for each replica identity.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $libdir = `pg_config --pkglibdir`;
chomp $libdir;
plan skip_all => 'test_decoding is not installed'
  unless -e "$libdir/test_decoding.so";

my $node = new_node('decode', conf => q{
wal_level = logical
max_replication_slots = 10
logical_decoding_work_mem = '64kB'
});
$node->start;
one($node, 'CREATE EXTENSION inplace');

# What the slot has to say, without xids.
sub decoded
{
	my ($slot, @options) = @_;
	my $opt = join '', map { ", '$_'" } 'include-xids', '0', 'skip-empty-xacts', '1', @options;
	return one($node, "SELECT data FROM pg_logical_slot_get_changes('$slot', NULL, NULL$opt)");
}

# A row that fits no page is refused as on heap, before it is prepared for decoding.
one($node, 'CREATE TABLE wide (a text) USING inplace; ALTER TABLE wide ALTER a SET STORAGE PLAIN');
like(one($node, "INSERT INTO wide VALUES (repeat('x', 9000))"), qr/row is too big/, 'a row that is too big');
like(one($node, "INSERT INTO wide SELECT repeat('x', 9000) FROM generate_series(1, 3)"), qr/row is too big/, 'many of them');
like(one($node, "COPY wide FROM PROGRAM 'printf %09000d 1'"), qr/row is too big/, 'by COPY');
one($node, 'DROP TABLE wide');

my $definition = q{
	DROP TABLE IF EXISTS part, t;
	CREATE TABLE t (id int PRIMARY KEY, u int NOT NULL, a text, b char(40), n numeric, gone int) USING AM;
	CREATE UNIQUE INDEX t_u ON t (u);
	CREATE INDEX t_n ON t (n);
	INSERT INTO t SELECT i, i + 1000, 'old ' || i, 'blank', i, i FROM generate_series(1, 20) i;
	ALTER TABLE t DROP COLUMN gone, ADD COLUMN added int DEFAULT 7;
	CREATE TABLE part (id int, v text) PARTITION BY RANGE (id);
	CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100) USING AM;
	CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (100) TO (200) USING AM;
};

# (Rows in index order: where they stand after an update differs.)
my $script = q{
	SET enable_seqscan = off; SET enable_bitmapscan = off;
	INSERT INTO t VALUES (101, 1101, 'one', 'x', 1.5), (102, 1102, NULL, NULL, NULL);
	UPDATE t SET a = 'changed' WHERE id = 101;
	UPDATE t SET a = 'a longer value than there was before ' || id WHERE id IN (1, 2);
	UPDATE t SET id = id + 500 WHERE id = 3;
	UPDATE t SET u = u + 5000 WHERE id = 4;
	UPDATE t SET n = n + 1 WHERE id = 5;
	UPDATE t SET b = NULL, added = 8 WHERE id = 6;
	DELETE FROM t WHERE id IN (7, 102);
	BEGIN;
	INSERT INTO t VALUES (110, 1110, 'kept', 'y', 1);
	SAVEPOINT s;
	UPDATE t SET a = 'never' WHERE id = 110;
	INSERT INTO t VALUES (111, 1111, 'never', 'y', 1);
	ROLLBACK TO s;
	UPDATE t SET a = 'twice' WHERE id = 110;
	UPDATE t SET a = 'thrice' WHERE id = 110;
	COMMIT;
	BEGIN; DELETE FROM t; ROLLBACK;
	INSERT INTO t VALUES (1, 1001, 'conflict') ON CONFLICT (id) DO UPDATE SET a = 'upserted';
	INSERT INTO t VALUES (120, 1120, 'new') ON CONFLICT (id) DO UPDATE SET a = 'upserted';
	INSERT INTO t VALUES (120, 1120, 'new') ON CONFLICT DO NOTHING;
	MERGE INTO t USING (VALUES (8, 'm'), (9, 'd'), (130, 'i')) AS s (id, what) ON t.id = s.id
		WHEN MATCHED AND what = 'd' THEN DELETE
		WHEN MATCHED THEN UPDATE SET a = 'merged'
		WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.id + 1000, 'merged in');
	SELECT count(*) FROM (SELECT * FROM t ORDER BY id FOR UPDATE) x;
	COPY t (id, u, a) FROM PROGRAM 'seq 200 400 | awk ''{ print $1 "\t" $1 + 1000 "\t" "copied" }''';
	ALTER TABLE t ALTER COLUMN a SET STORAGE EXTERNAL;
	INSERT INTO t VALUES (140, 1140, repeat('toasted', 1000), 'z', 1),
		(141, 1141, repeat('second', 1000), 'z', 1);
	UPDATE t SET n = 2 WHERE id = 140;
	UPDATE t SET a = repeat('again', 1000) WHERE id = 141;
	COPY t (id, u, a) FROM PROGRAM 'seq 500 502 | awk ''{ s = sprintf("%5000s", $1); print $1 "\t" $1 + 1000 "\t" s }''';
	DELETE FROM t WHERE id = 140;
	VACUUM FULL t;
	UPDATE t SET a = 'after rewrite' WHERE id = 10;
	BEGIN;
	UPDATE t SET a = 'before type' WHERE id = 11;
	ALTER TABLE t ALTER COLUMN added TYPE bigint;
	UPDATE t SET a = 'after type' WHERE id = 11;
	COMMIT;
	CLUSTER t USING t_pkey;
	UPDATE t SET a = 'after cluster' WHERE id = 12;
	BEGIN;
	INSERT INTO t SELECT i, i + 10000, 'large transaction ' || i FROM generate_series(1000, 3000) i;
	SAVEPOINT s;
	UPDATE t SET a = 'large' WHERE id > 2500;
	ROLLBACK TO s;
	UPDATE t SET a = 'larger' WHERE id > 2900;
	COMMIT;
	BEGIN;
	UPDATE t SET a = 'prepared' WHERE id = 13;
	INSERT INTO t VALUES (150, 1150, 'prepared');
	PREPARE TRANSACTION 'p';
	COMMIT PREPARED 'p';
	BEGIN;
	DELETE FROM t WHERE id = 14;
	PREPARE TRANSACTION 'p';
	ROLLBACK PREPARED 'p';
	INSERT INTO part VALUES (1, 'one'), (150, 'other');
	UPDATE part SET id = id + 100 WHERE id = 1;
	UPDATE t SET b = repeat('b', 40), n = NULL WHERE id BETWEEN 1 AND 20;
	TRUNCATE t;
	INSERT INTO t VALUES (1, 1, 'last');
};

my %identity = (
	default => '',
	index => 'ALTER TABLE t REPLICA IDENTITY USING INDEX t_u;',
	full => 'ALTER TABLE t REPLICA IDENTITY FULL;
		ALTER TABLE part1 REPLICA IDENTITY FULL; ALTER TABLE part2 REPLICA IDENTITY FULL;',
	nothing => 'ALTER TABLE t REPLICA IDENTITY NOTHING;');

foreach my $identity (sort keys %identity)
{
	my %out;
	foreach my $am (qw(heap inplace))
	{
		(my $ddl = $definition) =~ s/\bAM\b/$am/g;
		one($node, $ddl . $identity{$identity});
		my $two = $identity eq 'full' ? 'true' : 'false';
		one($node, "SELECT pg_create_logical_replication_slot('s', 'test_decoding', false, $two)");
		is($node->psql('postgres', $script, on_error_stop => 1), 0, "$identity, $am: script");
		one($node, 'VACUUM FREEZE t');
		$out{$am} = decoded('s', 'include-rewrites', '0');
		one($node, "SELECT pg_drop_replication_slot('s')");
	}
	ok(length $out{heap} > 100_000, "$identity: there is output");
	ok($out{inplace} eq $out{heap}, "$identity: same output")
	  or do
	{
		my @h = split /\n/, $out{heap};
		my @i = split /\n/, $out{inplace};
		for my $n (0 .. $#h)
		{
			next if ($i[$n] // '') eq $h[$n];
			diag substr("heap:    $h[$n]", 0, 400);
			diag substr('inplace: ' . ($i[$n] // ''), 0, 400);
			last;
		}
	};
}

# A speculative insertion that loses: the other session's row is there first.
foreach my $am (qw(heap inplace))
{
	one($node, "DROP TABLE IF EXISTS c; CREATE TABLE c (id int PRIMARY KEY, v text) USING $am;
		ALTER TABLE c ALTER v SET STORAGE EXTERNAL");
	one($node, "SELECT pg_create_logical_replication_slot('s', 'test_decoding')");
	one($node, q{
		CREATE OR REPLACE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
		BEGIN
			PERFORM pg_advisory_lock_shared(5); PERFORM pg_advisory_unlock_shared(5); RETURN $1;
		END $$;
		CREATE UNIQUE INDEX ON c (slow(id))});
	my $lock = psql_session($node);
	$lock->query('SELECT pg_advisory_lock(5)');
	my @s = map { psql_session($node) } 1 .. 2;
	$_->query_until(qr/go/, "\\echo go\nINSERT INTO c VALUES (1, repeat('v', 5000)) ON CONFLICT DO NOTHING;\n\\echo done\n") for @s;
	ok(defined poll_value($node, q{SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'advisory'}, 60),
		"$am: both insertions are under way");
	$lock->query('SELECT pg_advisory_unlock(5)');
	$_->quit for @s, $lock;
	my $out = decoded('s');
	my @rows = $out =~ /table public.c: (\w+): id\[integer\]:1/g;
	is("@rows", 'INSERT', "$am: one of two speculative insertions is decoded");
	one($node, "SELECT pg_drop_replication_slot('s')");
}

# Origins.
one($node, "SELECT pg_create_logical_replication_slot('s', 'test_decoding');
	SELECT pg_replication_origin_create('o')");
one($node, q{SELECT pg_replication_origin_session_setup('o');
	INSERT INTO c VALUES (10, 'from elsewhere') ON CONFLICT DO NOTHING;
	UPDATE c SET v = 'x' WHERE id = 10;
	DELETE FROM c WHERE id = 10});
one($node, q{INSERT INTO c VALUES (11, 'local')});
my $local = decoded('s', 'only-local', '1');
like($local, qr/INSERT: id\[integer\]:11/, 'a local change is decoded');
unlike($local, qr/:10\b/, 'with only-local, changes of an origin are not');

# After a crash the slot goes on.
one($node, q{UPDATE c SET v = 'before the crash' WHERE id = 11});
crash_and_restart($node);
one($node, q{UPDATE c SET v = 'after the crash' WHERE id = 11});
my @v = decoded('s') =~ /v\[text\]:'(\w+) the crash'/g;
is("@v", 'before after', 'decoding over a crash');

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
