# The nine cases of "Less WAL for updates" (2012), each followed by an
# immediate shutdown.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_node('cases');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

my @cases = (
	[ 'integer changed', 'a int, b int, c text', q{SELECT i, i, repeat('c', 200) FROM generate_series(1, 100) i},
		'UPDATE %s SET b = b + 100000' ],
	[ 'char and varchar changed', 'a int, b char(200), c varchar(300)',
		q{SELECT i, 'char ' || i, repeat('varchar', i % 40) FROM generate_series(1, 100) i},
		q{UPDATE %s SET b = 'new ' || repeat('x', a), c = c || 'longer', a = a + 1} ],
	[ 'set to null', 'a int, b int, c text, d bigint', q{SELECT i, i, repeat('c', 150), i FROM generate_series(1, 100) i},
		'UPDATE %s SET b = NULL' ],
	[ 'row with nulls', 'a int, b int, c text, d bigint, e text',
		q{SELECT i, NULL, repeat('c', 150), NULL, 'e' FROM generate_series(1, 100) i},
		q{UPDATE %s SET a = -a, e = 'changed'} ],
	[ 'all columns null', 'a int, b char(20), c text, d bigint', q{SELECT i, i, repeat('c', 150), i FROM generate_series(1, 100) i},
		'UPDATE %s SET a = NULL, b = NULL, c = NULL, d = NULL' ],
	[ 'table with a TOAST table', 'a int, b text, c text',
		q{SELECT i, (SELECT string_agg(md5((i * 1000 + j)::text), '') FROM generate_series(1, 200) j), 'c' FROM generate_series(1, 50) i},
		q{UPDATE %s SET a = a + 1, b = CASE WHEN a %% 2 = 0 THEN b || md5(a::text) || b ELSE b END, c = 'd'} ],
	[ 'row under 128 bytes', 'a int, b int', q{SELECT i, i FROM generate_series(1, 100) i}, 'UPDATE %s SET b = 7' ],
	[ 'BEFORE trigger that changes the row', 'a int, b text, c text',
		q{SELECT i, 'b', repeat('c', 150) FROM generate_series(1, 100) i}, 'UPDATE %s SET a = a + 1',
		q{NEW.b := 'by trigger ' || NEW.a; RETURN NEW;} ],
	[ 'BEFORE trigger that returns null', 'a int, b text, c text',
		q{SELECT i, 'b', repeat('c', 150) FROM generate_series(1, 100) i}, 'UPDATE %s SET a = a + 1',
		q{RETURN NULL;} ],
);

my $n = 0;
foreach my $case (@cases)
{
	my ($name, $columns, $rows, $update, $trigger) = @$case;
	my (%before, %after);

	$n++;
	foreach my $am ('heap', 'inplace')
	{
		$node->safe_psql('postgres', "CREATE TABLE ${am}_$n ($columns) USING $am; INSERT INTO ${am}_$n $rows");
		$node->safe_psql('postgres', qq{
			CREATE FUNCTION ${am}_f$n() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN $trigger END';
			CREATE TRIGGER t BEFORE UPDATE ON ${am}_$n FOR EACH ROW EXECUTE FUNCTION ${am}_f$n()} =~ s/'by trigger '/''by trigger ''/r)
		  if $trigger;
	}
	# Full-page images hide the deltas: once with them, once without.
	foreach my $when ('after a checkpoint', 'without full-page images')
	{
		foreach my $am ('heap', 'inplace')
		{
			$before{$am} = contents($node, "${am}_$n");
			$node->safe_psql('postgres', 'CHECKPOINT') if $when =~ /checkpoint/;
			# A rollback of the same first.
			my $sql = sprintf($update, "${am}_$n");
			$node->safe_psql('postgres', "BEGIN; $sql; ROLLBACK; $sql");
			$after{$am} = contents($node, "${am}_$n");
		}
		crash_and_restart($node);
		is(contents($node, "inplace_$n"), $after{inplace}, "$name, $when: as before the crash");
		is($after{inplace}, $after{heap}, "$name, $when: as heap");
		if ($name =~ /returns null/)
		{
			is($after{inplace}, $before{inplace}, "$name: nothing has changed");
		}
		elsif ($when =~ /checkpoint/)
		{
			isnt($after{inplace}, $before{inplace}, "$name: changed");
		}
		# And a change that had not committed.
		my $s = psql_session($node);
		$s->query("BEGIN; " . sprintf($update, "inplace_$n"));
		$node->safe_psql('postgres', 'CHECKPOINT');
		crash_and_restart($node);
		eval { $s->quit };
		is(contents($node, "inplace_$n"), $after{inplace}, "$name, $when: an open transaction is undone");
	}
}
check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
