# wal_level = minimal: what is made or truncated in its own transaction is not
# logged, but is there after a crash.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_node('minimal', conf => q{
wal_level = minimal
max_wal_senders = 0
wal_skip_threshold = 0
autovacuum = off
wal_log_hints = on
});
$node->start;
$node->safe_psql('postgres', q{CREATE EXTENSION inplace});
is(one($node, 'SHOW wal_level'), 'minimal', 'wal_level');

# name => statements between BEGIN and COMMIT, with %T as table
my @cases = (
	[ 'insert', 'CREATE TABLE %T (id int, n int, v text) USING %A; INSERT INTO %T SELECT i, i, i FROM generate_series(1, 3000) i' ],
	[ 'changes', q{CREATE TABLE %T (id int PRIMARY KEY, n int, v text) USING %A; INSERT INTO %T SELECT i, i, i FROM generate_series(1, 3000) i;
		UPDATE %T SET v = 'in place' WHERE id % 2 = 0; UPDATE %T SET id = id + 10000 WHERE id % 3 = 0; DELETE FROM %T WHERE id % 7 = 0;
		SELECT count(*) FROM (SELECT * FROM %T WHERE id < 10 FOR UPDATE) x} ],
	[ 'savepoints', q{CREATE TABLE %T (id int PRIMARY KEY, n int, v text) USING %A; INSERT INTO %T SELECT i, i, i FROM generate_series(1, 3000) i;
		SAVEPOINT a; UPDATE %T SET v = 'lost'; DELETE FROM %T WHERE id < 1000; INSERT INTO %T VALUES (0, 0, 'lost'); ROLLBACK TO a;
		SAVEPOINT b; UPDATE %T SET n = n + 1; RELEASE b; UPDATE %T SET n = n - 1 WHERE id < 100} ],
	[ 'truncate', q{TRUNCATE %T; INSERT INTO %T SELECT i, i, 'again' FROM generate_series(1, 500) i; UPDATE %T SET v = v || '!'},
		'CREATE TABLE %T (id int PRIMARY KEY, n int, v text) USING %A; INSERT INTO %T SELECT i, i, i FROM generate_series(1, 3000) i' ],
	[ 'truncate in a savepoint', q{UPDATE %T SET v = 'before'; SAVEPOINT a; TRUNCATE %T; INSERT INTO %T VALUES (1, 1, 'lost'); ROLLBACK TO a; UPDATE %T SET n = n + 1 WHERE id < 1000},
		'CREATE TABLE %T (id int PRIMARY KEY, n int, v text) USING %A; INSERT INTO %T SELECT i, i, i FROM generate_series(1, 3000) i' ],
	[ 'copy freeze', q{TRUNCATE %T; COPY %T FROM PROGRAM 'seq 1 2000 | sed "s/.*/&,&,copied/"' WITH (FORMAT csv, FREEZE); UPDATE %T SET v = 'after copy' WHERE id < 100},
		'CREATE TABLE %T (id int PRIMARY KEY, n int, v text) USING %A' ],
	[ 'rewrite', q{ALTER TABLE %T ALTER n TYPE bigint, ADD x int DEFAULT 3; UPDATE %T SET x = 4 WHERE id % 2 = 0; CLUSTER %T},
		'CREATE TABLE %T (id int PRIMARY KEY, n int, v text) USING %A; INSERT INTO %T SELECT i, i, i FROM generate_series(1, 3000) i; ALTER TABLE %T CLUSTER ON %T_pkey' ],
	[ 'create as', q{CREATE TABLE %T USING %A AS SELECT i AS id, i AS n, repeat('long', i) AS v FROM generate_series(1, 800) i; CREATE INDEX ON %T (id); UPDATE %T SET n = 0 WHERE id = 5} ],
	[ 'toast', q{CREATE TABLE %T (id int, v text) USING %A; ALTER TABLE %T ALTER v SET STORAGE EXTERNAL; INSERT INTO %T SELECT i, repeat('toast', 2000) FROM generate_series(1, 30) i; UPDATE %T SET v = v || v WHERE id < 10} ],
	[ 'set access method', q{ALTER TABLE %T SET ACCESS METHOD heap; ALTER TABLE %T SET ACCESS METHOD %A; UPDATE %T SET n = n + 5},
		'CREATE TABLE %T (id int PRIMARY KEY, n int, v text) USING %A; INSERT INTO %T SELECT i, i, i FROM generate_series(1, 3000) i' ],
);
# Both ways of making it durable at commit: by fsync and by whole pages in WAL.
foreach my $threshold ('0', '1GB')
{
	my $n = 0;
	my (%want, %before);
	$node->append_conf('postgresql.conf', "wal_skip_threshold = $threshold\n");
	$node->reload;
	foreach my $case (@cases)
	{
		my ($name, $sql, $setup) = @$case;
		$n++;
		foreach my $am ('heap', 'inplace')
		{
			my $table = "${am}_${n}_" . lc($threshold);
			my $fill = sub { $_[0] =~ s/%T/$table/gr =~ s/%A/$am/gr };
			$node->safe_psql('postgres', $fill->($setup)) if $setup;
			my $got = one($node, 'BEGIN; ' . $fill->($sql) . '; COMMIT');
			unlike($got, qr/ERROR/, "$name, $am, threshold $threshold") or diag $got;
			$want{$table} = contents($node, $table);
		}
		is($want{"inplace_${n}_" . lc($threshold)}, $want{"heap_${n}_" . lc($threshold)}, "$name, threshold $threshold: as heap");

		# The same by a transaction that is rolled back, and by one that a crash ends.
		if ($setup)
		{
			my $table = "inplace_${n}_" . lc($threshold) . '_r';
			my $fill = sub { $_[0] =~ s/%T/$table/gr =~ s/%A/inplace/gr };
			$node->safe_psql('postgres', $fill->($setup));
			$want{$table} = contents($node, $table);
			$node->safe_psql('postgres', 'BEGIN; ' . $fill->($sql) . '; ROLLBACK');
			is(contents($node, $table), $want{$table}, "$name, threshold $threshold: rollback");
		}
	}
	my $s = psql_session($node);
	$s->query('BEGIN; CREATE TABLE open_one (i int) USING inplace; INSERT INTO open_one SELECT generate_series(1, 3000); UPDATE open_one SET i = i + 1;'
		. ' TRUNCATE inplace_1_0; INSERT INTO inplace_1_0 VALUES (7); UPDATE inplace_1_0 SET id = 8; UPDATE inplace_2_0 SET n = -1');
	$node->stop('immediate');
	eval { $s->quit };
	$node->start;
	is(contents($node, $_), $want{$_}, "$_ after the crash") foreach (sort keys %want);
	check_clean($node, "threshold $threshold");
	foreach my $table (grep { /^inplace_[23]_/ } sort keys %want)
	{
		is(one($node, "UPDATE $table SET n = n + 1; UPDATE $table SET n = n - 1; SELECT 1"), '1', "$table can be changed");
		is(contents($node, $table), $want{$table}, "$table after changes");
	}
}

# The end of an insertion with ON CONFLICT is no record, and a hint where there is WAL.  Here it
# must reach the page, although a checkpoint has come between: the function waits after the row is there.
my $keeper = psql_session($node);
my $inserter = psql_session($node);
$node->safe_psql('postgres', q{CREATE FUNCTION waits(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN $1; END $$});
$node->append_conf('postgresql.conf', "wal_skip_threshold = 0\n");
$node->reload;
$keeper->query_safe('SELECT pg_advisory_lock(7)');
$inserter->query_safe($_) foreach ('BEGIN', 'CREATE TABLE spec (id int PRIMARY KEY, v int) USING inplace', 'CREATE INDEX ON spec (waits(v))');
$inserter->query_until(qr/go/, "\\echo go\nINSERT INTO spec VALUES (1, 10) ON CONFLICT DO NOTHING;\n");
waits_for_lock($node, 'an insertion is under way', 'INSERT INTO spec');
$node->safe_psql('postgres', 'CHECKPOINT');
$keeper->query_safe('SELECT pg_advisory_unlock(7)');
$inserter->query_safe('COMMIT');
$_->quit foreach ($keeper, $inserter);
$node->restart;
is(one($node, q{SELECT count(*) FILTER (WHERE 'SPECULATIVE' = ANY (flags)), count(*) FROM inplace.page_items('spec', 0)}), '0|1',
	'the end of an insertion with ON CONFLICT is on the page');
is(one($node, 'SELECT * FROM spec'), '1|10', '... and the row there');

undo_floor_reached($node, 'at the end', 20);
check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
