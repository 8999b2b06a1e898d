# A large value in a TOAST table of ours is changed so often that the number of a change comes
# again, while a snapshot of a standby, which the primary does not know of, reads the first one.
# Its query is told to end before; it must not get another change's bytes.

use strict;
use warnings;

$SIG{PIPE} = 'IGNORE';
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Undo is not given back meanwhile, which standbys would be told of.
my $primary = new_node('primary', allows_streaming => 1, conf => q{
inplace.toast_in_place = on
inplace.undo_worker_delay = 60s
autovacuum = off
hot_standby_feedback = off
max_standby_streaming_delay = 0
});
$primary->start;
# One chunk, whose bytes move each time: then the records of its updates cannot tell.
$primary->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE FUNCTION value_of(n int) RETURNS text LANGUAGE sql IMMUTABLE AS
		$$ SELECT md5(n::text) || repeat('x', n % 32) || string_agg(md5('tail' || g), '') FROM generate_series(1, 30) g $$;
	CREATE TABLE t (id int, n int, p text, a text) USING inplace;
	ALTER TABLE t ALTER p SET STORAGE PLAIN, ALTER a SET STORAGE EXTERNAL;
	INSERT INTO t VALUES (1, 0, repeat('the row is large enough', 50), value_of(0));
	CREATE PROCEDURE change(k int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. k LOOP
			UPDATE t SET n = n + 1, a = value_of(n + 1);
			COMMIT;
		END LOOP;
	END $$});
is(one($primary, q{SELECT amname FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_am m ON m.oid = t.relam WHERE c.relname = 't'}),
	'inplace', 'a TOAST table of ours');
is(one($primary, q{SELECT pg_relation_size(reltoastrelid) / current_setting('block_size')::int FROM pg_class WHERE relname = 't'}), '1', '... with a chunk');
$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;

my $right = q{SELECT a = value_of(n) FROM t};
foreach my $changes (1, 31, 33, 70)
{
	$primary->wait_for_catchup($standby);
	my $s = psql_session($standby);
	$s->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($s->query($right), 't', "$changes changes: before");
	one($primary, "CALL change($changes)");
	$primary->wait_for_catchup($standby);
	my $answer = eval { $s->query($right) } // '';
	like($answer, qr/^t?$/, "$changes changes: right, or told to end");
	note "answer: '$answer'";
	eval { $s->quit };
	is(one($standby, $right), 't', "$changes changes: a new snapshot");
}
check_clean($primary, 'primary');
$standby->stop;
$primary->stop;
check_log($_) foreach $primary, $standby;

done_testing();
