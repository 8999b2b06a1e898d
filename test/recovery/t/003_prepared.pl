# Prepared transactions survive a crash: their changes and their row locks.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_node('prepared');
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, a int, v text) USING inplace;
	CREATE INDEX ON t (a);
	CREATE TABLE child (id int, ref int REFERENCES t) USING inplace;
	INSERT INTO t SELECT i, i, repeat('v', 50) FROM generate_series(1, 100) i;
});

# Row i x 10 + 1 and following belong to transaction i.
my $work = q{
	UPDATE t SET v = 'in place' WHERE id = %1$d1;
	UPDATE t SET a = a + 1000 WHERE id = %1$d2;
	DELETE FROM t WHERE id = %1$d3;
	INSERT INTO t VALUES (%1$d001, 1, 'new');
	SELECT * FROM t WHERE id = %1$d4 FOR UPDATE;
	SELECT * FROM t WHERE id = %1$d5 FOR KEY SHARE;
	SELECT * FROM t WHERE id = %1$d6 FOR SHARE;
	SELECT * FROM t WHERE id = %1$d7 FOR NO KEY UPDATE;
	INSERT INTO child VALUES (1, %1$d8);
	SAVEPOINT s;
	UPDATE t SET v = 'gone' WHERE id = %1$d9;
	ROLLBACK TO s;
};
foreach my $i (1 .. 4)
{
	$node->safe_psql('postgres', sprintf("BEGIN; $work; PREPARE TRANSACTION 'p%1\$d'", $i));
}
# Two lockers of one row: a multixact.
$node->safe_psql('postgres', "BEGIN; SELECT * FROM t WHERE id = 55 FOR KEY SHARE; PREPARE TRANSACTION 'm1'");
$node->safe_psql('postgres', "BEGIN; UPDATE t SET v = 'under a key share lock' WHERE id = 55; PREPARE TRANSACTION 'm2'");

my $before = contents($node, 't');
sub locked
{
	my ($i, $want, $what) = @_;
	my $got = '';
	foreach my $row (1, 2, 3, 4, 5, 6, 7, 8)
	{
		foreach my $mode ('FOR UPDATE', 'FOR NO KEY UPDATE', 'FOR SHARE', 'FOR KEY SHARE')
		{
			my ($rc, $out, $err) = $node->psql('postgres', "SELECT 1 FROM t WHERE id = $i$row $mode NOWAIT");
			$got .= $rc == 0 ? 'f' : $err =~ /could not obtain lock on row/ ? 'L' : "($err)";
		}
		$got .= ' ';
	}
	is($got, $want, $what);
}
# in place: no key update; move of a (not in a unique index): no key update;
# delete; update; key share; share; no key update; key share (foreign key).
my $held = 'LLLf LLLf LLLL LLLL Lfff LLff LLLf Lfff ';
my $free = 'ffff ' x 8;
locked(1, $held, 'locks before the crash');
is(contents($node, 't'), $before, 'locking did not change anything');

crash_and_restart($node);
is(contents($node, 't'), $before, 'contents after the crash');
locked($_, $held, "locks of p$_ after the crash") foreach (1 .. 4);
check_clean($node, 'prepared, after the crash');
is(one($node, "SELECT count(*) FROM inplace.undo_holders WHERE kind = 'prepared transaction' AND name = 'p1'"), '1',
	'undo_holders shows a prepared transaction');

# Once more, after a checkpoint has put them into files.
$node->safe_psql('postgres', 'CHECKPOINT');
crash_and_restart($node);
locked($_, $held, "locks of p$_ after a checkpoint and a crash") foreach (1 .. 4);
$node->safe_psql('postgres', 'VACUUM t');
is(contents($node, 't'), $before, 'contents after VACUUM');

$node->safe_psql('postgres', "COMMIT PREPARED 'p1'");
$node->safe_psql('postgres', "ROLLBACK PREPARED 'p2'");
my $row = q{SELECT string_agg(id || ' ' || a || ' ' || left(v, 8), ', ' ORDER BY id) FROM t WHERE id / 10 = %1$d OR id = %1$d001};
is(one($node, sprintf($row, 1)),
	'10 10 vvvvvvvv, 11 11 in place, 12 1012 vvvvvvvv, 14 14 vvvvvvvv, 15 15 vvvvvvvv, 16 16 vvvvvvvv, '
	. '17 17 vvvvvvvv, 18 18 vvvvvvvv, 19 19 vvvvvvvv, 1001 1 new', 'COMMIT PREPARED');
is(one($node, sprintf($row, 2)), join(', ', map { "$_ $_ vvvvvvvv" } 20 .. 29), 'ROLLBACK PREPARED');
# Row 3 is deleted, and cannot be locked.
locked(1, $free, 'locks are gone after COMMIT PREPARED');
locked(2, $free, 'locks are gone after ROLLBACK PREPARED');

# The others end right before a crash.
$node->safe_psql('postgres', "COMMIT PREPARED 'p3'; ");
$node->safe_psql('postgres', "ROLLBACK PREPARED 'p4'");
$node->safe_psql('postgres', "COMMIT PREPARED 'm1'");
$node->safe_psql('postgres', "COMMIT PREPARED 'm2'");
crash_and_restart($node);
is(one($node, 'SELECT v FROM t WHERE id = 55'), 'under a key share lock', 'update beside a lock');
is(one($node, sprintf($row, 3)), one($node, sprintf($row, 1)) =~ s/\b1(\d)\b/3$1/gr =~ s/\b1001/3001/r =~ s/\b1012/1032/r,
	'COMMIT PREPARED and a crash');
is(one($node, sprintf($row, 4)), join(', ', map { "$_ $_ vvvvvvvv" } 40 .. 49), 'ROLLBACK PREPARED and a crash');
locked($_, $free, "no locks of p$_") foreach (3, 4);
is(one($node, 'SELECT count(*) FROM child'), '2', 'rows of the child table');
is(one($node, 'DELETE FROM t WHERE id IN (28, 48); SELECT count(*) FROM t'), 100 - 2 + 2 - 2, 'keys are free again');
undo_floor_reached($node, 'after the last prepared transaction', 10);
check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
