# Transaction ids go round, by jumps; no row is lost and nothing refuses.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('wrap', conf => q{
autovacuum_freeze_max_age = 100000
autovacuum_multixact_freeze_max_age = 10000
vacuum_freeze_min_age = 1000
vacuum_freeze_table_age = 50000
vacuum_multixact_freeze_min_age = 1000
autovacuum_naptime = '1s'
});
$node->start;
$node->safe_psql('postgres', q{
	ALTER DATABASE template0 ALLOW_CONNECTIONS true;
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int, v text) USING inplace;
	CREATE INDEX ON t (n);
	INSERT INTO t SELECT i, 0, 'v' || i FROM generate_series(1, 5000) i;
	CREATE TABLE ref (id int REFERENCES t) USING inplace;
	CREATE TABLE calm (id int, v text) USING inplace;
	INSERT INTO calm SELECT i, 'calm' FROM generate_series(1, 3000) i;
});
my $calm = contents($node, 'calm');

# A row keeps a multixact whose members have ended, as long as that costs nothing else.  Who looks at
# it asks about them, so the table's xids reach back to them.
$node->safe_psql('postgres', q{CREATE UNLOGGED TABLE m (id int) USING inplace; INSERT INTO m VALUES (1)});
$node->safe_psql('postgres', 'VACUUM (FREEZE) m');
my @lockers = map { psql_session($node) } 1, 2;
$_->query('BEGIN; SELECT * FROM m FOR KEY SHARE') foreach @lockers;
$_->query('COMMIT') foreach @lockers;
is(one($node, q{SELECT count(*) FROM inplace.page_items('m', 0) i, pg_get_multixact_members(i.multi)}), 2,
	'a row has a multixact with two members');
$node->safe_psql('postgres', 'SELECT pg_current_xact_id()') foreach 1 .. 3;
my $gone_past = q{SELECT count(*) FROM inplace.page_items('m', 0) i, pg_get_multixact_members(i.multi) x, pg_class c
	WHERE c.oid = 'm'::regclass AND x.xid::text::bigint < c.relfrozenxid::text::bigint};
$node->safe_psql('postgres', 'VACUUM m');
is(one($node, $gone_past), 0, '... none of which relfrozenxid has gone past');
# (not its age: transactions of autovacuum add to that)
my $frozenxid = q{SELECT relfrozenxid::text::bigint FROM pg_class WHERE oid = 'm'::regclass};
my $before = one($node, $frozenxid);
# (an ANALYZE of autovacuum may have a snapshot from before the lockers' end)
foreach (1 .. 100)
{
	$node->safe_psql('postgres', q{SET vacuum_freeze_table_age = 0; VACUUM m});
	last if one($node, $frozenxid) > $before;
	usleep(100_000);
}
is(one($node, $gone_past), 0, '... nor does it after an aggressive VACUUM');
cmp_ok(one($node, $frozenxid), '>', $before, '... which gets it on');
$_->quit foreach @lockers;
$node->safe_psql('postgres', 'DROP TABLE m');
my $n = 0;

# What a jump must not hurt: updated, moved, deleted, locked, rolled back rows.
sub work
{
	$n++;
	$node->safe_psql('postgres', $_) foreach (
		"UPDATE t SET v = v || 'x' WHERE id % 3 = 0",
		"UPDATE t SET n = n + 1 WHERE id % 5 = 0",
		'BEGIN; SELECT count(*) FROM (SELECT * FROM t WHERE id < 50 FOR KEY SHARE) x; SAVEPOINT a; UPDATE t SET v = v WHERE id < 50; COMMIT',
		"INSERT INTO ref SELECT i FROM generate_series(1, 100) i",
		"DELETE FROM ref WHERE id > 50",
		"BEGIN; UPDATE t SET v = 'lost' WHERE id % 7 = 0; DELETE FROM t WHERE id > 1000 AND id % 11 = 0; ROLLBACK",
		"UPDATE calm SET v = v WHERE id = $n",
	);
}

# Makes zero-filled files so that the server finds the page of its next xid.
sub zero_segment
{
	my ($dir, $entries_per_page, $number) = @_;
	my $page = int($number / $entries_per_page);
	my $file = sprintf('%s/%s/%04X', $node->data_dir, $dir, int($page / 32));
	return if -e $file && -s $file >= 32 * 8192;
	open(my $fh, '>>', $file) or die "$file: $!";
	binmode $fh;
	print $fh "\0" x (32 * 8192 - (-s $file // 0));
	close $fh;
}

sub next_xid { return one($node, 'SELECT pg_current_xact_id()::text::numeric % 4294967296') }

sub jump
{
	my ($to, @before) = @_;
	$node->stop;
	keep_pages_of(@before);
	zero_segment('pg_xact', 8192 * 4, $to);
	zero_segment('pg_subtrans', 2048, $to);
	zero_segment('pg_commit_ts', 819, $to) if -d $node->data_dir . '/pg_commit_ts';
	command_ok([ 'pg_resetwal', '-x', $to, '-D', $node->data_dir ], "next xid is $to");
	$node->start;
}

# Vacuum of all databases, so that the next jump is allowed.
sub freeze_all
{
	my $ok = 1;
	foreach my $db ('template1', 'template0', 'postgres')
	{
		my $answer = one($node, 'VACUUM (FREEZE)', $db);
		$ok &&= $answer eq '';
		diag $answer if $answer ne '';
	}
	return $ok;
}

# Undo of the first round is still in the file, past what is in use, and is
# read back after a restart.  When its xids lie between the oldest and the next
# one again a server that had not jumped would have their pages of pg_xact.
sub keep_pages_of
{
	zero_segment('pg_xact', 8192 * 4, $_) foreach (@_);
}

my $jumps = 0;
my @before = ();
# Each is below 2^31 from the one before; the last ones are past 2^32.
foreach my $to (1_000_000_000, 2_000_000_000, 2_900_000_000, 3_900_000_000, 4_294_960_000, 900_000_000, 1_900_000_000)
{
	work();
	my $t = contents($node, 't');
	my $ref = contents($node, 'ref');
	ok(freeze_all(), "before $to: vacuum");
	jump($to, @before);
	push @before, $to, $to + 200_000;
	$jumps++;
	cmp_ok(next_xid(), '>=', $to, "jump to $to");
	is(contents($node, 't'), $t, "after $to: t");
	is(contents($node, 'ref'), $ref, "after $to: ref");
	is(contents($node, 'calm'), $calm, "after $to: calm");
	is(one($node, "UPDATE t SET v = v WHERE id = 1; DELETE FROM ref WHERE id = $n; SELECT count(*) FROM t"), '5000', "after $to: writing");
	check_clean($node, "after $to");

	# Subtransactions use up xids beyond autovacuum_freeze_max_age (and past
	# 2^32 from the fifth jump): autovacuum must bring relfrozenxid along.
	if ($to == 4_294_960_000 || $to == 1_000_000_000)
	{
		my $frozen = one($node, q{SELECT relfrozenxid FROM pg_class WHERE relname = 't'});
		$node->safe_psql('postgres', q{
			CREATE TEMP TABLE burned (i int) USING heap;
			CREATE OR REPLACE PROCEDURE burn(xids int) LANGUAGE plpgsql AS $$
			BEGIN
				FOR j IN 1 .. xids / 1000 LOOP
					FOR i IN 1 .. 1000 LOOP
						BEGIN
							INSERT INTO burned VALUES (i);
							UPDATE t SET n = n WHERE id = i AND i < 3;
						EXCEPTION WHEN division_by_zero THEN NULL;
						END;
					END LOOP;
					COMMIT;
				END LOOP;
			END $$;
			CALL burn(120000)});
		ok(defined poll_value($node, qq{SELECT age(relfrozenxid) < 100000 AND relfrozenxid <> '$frozen'::xid FROM pg_class WHERE relname = 't'}, 60),
			"after $to: autovacuum has advanced relfrozenxid of t");
		ok(defined poll_value($node, q{SELECT max(age(relfrozenxid)) < 100000 FROM pg_class WHERE relkind IN ('r', 't', 'm') AND relfrozenxid <> 0::text::xid}, 60),
			"after $to: ... and of every other table");
		note one($node, q{SELECT relname, age(relfrozenxid) FROM pg_class WHERE relkind IN ('r', 't') ORDER BY 2 DESC LIMIT 5});
	}
}
is($jumps, 7, 'all jumps');
work();
is(one($node, 'SELECT count(*), sum(n) FROM t'), '5000|' . 1000 * $n, 'rows at the end');

# Multixacts.
$node->stop;
my $multi = 2_200_000_000;
my $off_page = int($multi / 2048);
zero_segment('pg_multixact/offsets', 2048, $multi);
$node->start;
is(one($node, q{VACUUM (FREEZE) t; SELECT age(relfrozenxid) < 1000 AND mxid_age(relminmxid) < 1000 FROM pg_class WHERE relname = 't'}), 't',
	'VACUUM FREEZE advances relfrozenxid and relminmxid');
check_clean($node, 'at the end');
undo_floor_reached($node, 'at the end', 20);
$node->stop;
unlike(slurp_file($node->logfile), qr/database is not accepting commands|could not access status of transaction/, 'no refusal');
check_log($node);
done_testing();
