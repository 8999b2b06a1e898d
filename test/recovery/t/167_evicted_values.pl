# Chunks of large values that were deleted, or moved, are evicted as other rows are: old
# snapshots read the values as they saw them, before and after what is done to the table.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 1, conf => q{
inplace.toast_in_place = on
autovacuum = off
max_standby_streaming_delay = -1
});
$node->start;
one($node, q{
	CREATE EXTENSION inplace;
	CREATE FUNCTION toast_of(rel text) RETURNS regclass LANGUAGE sql AS
		$$ SELECT reltoastrelid::regclass FROM pg_class WHERE oid = rel::regclass $$;
	CREATE FUNCTION evicted(rel regclass) RETURNS bigint LANGUAGE sql AS
		$$ SELECT count(*) FROM generate_series(0, pg_relation_size(rel) / current_setting('block_size')::int - 1) b,
			inplace.page_items(rel, b) i WHERE 'EVICTED' = ANY (i.flags) $$;
	CREATE FUNCTION random_text(len int, seed int) RETURNS text LANGUAGE sql AS
		$$ SELECT left(string_agg(md5(seed || ' ' || g), ''), len) FROM generate_series(0, len / 32) g $$;
	CREATE TABLE e (id int PRIMARY KEY, a text) USING inplace;
	ALTER TABLE e ALTER a SET STORAGE EXTERNAL;
	INSERT INTO e SELECT g, random_text(2500 + g * 20, g) FROM generate_series(1, 200) g});
# A library that knows of neither is to refuse the database.
sub undo_version
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	return unpack('V', substr(slurp_file($node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('inplace.undo_log')})), 8192 - 4, 4));
}
is(undo_version(), '7', 'the meta page of undo says that there are large values in place');
my $evicted = q{SELECT evicted(toast_of('e'))};
my $size = q{SELECT pg_relation_size(toast_of('e'))};

$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;

my $what_is_seen = q{SELECT count(*), md5(string_agg(id || a, ',' ORDER BY id)), md5(string_agg(id || substr(a, 2100, 50), ',' ORDER BY id)) FROM e};
my (@snapshots, @without_lock);
sub hold
{
	my ($at) = @_;
	$node->wait_for_catchup($standby);
	my $session = psql_session($at);
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $seen = $session->query_safe($what_is_seen);
	push @snapshots, [ $session, $seen ];
	return if $at == $standby;

	# the same, but for the lock of the table
	$session = psql_session($at);
	$session->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
	push @without_lock, [ $session, $seen ];
}
sub all_see
{
	my ($what) = @_;
	$node->wait_for_catchup($standby);
	foreach my $i (0 .. $#snapshots)
	{
		my ($session, $seen) = @{ $snapshots[$i] };
		is($session->query_safe($what_is_seen), $seen, "$what: snapshot $i");
	}
}

hold($node);
hold($standby);
one($node, q{UPDATE e SET a = overlay(a PLACING 'changed' FROM 2100) WHERE id % 3 = 0});
hold($node);
one($node, q{UPDATE e SET a = left(a, 1500) WHERE id % 4 = 0});
hold($node);
hold($standby);
# (these are moved, and leave deleted rows behind)
one($node, q{UPDATE e SET a = a || random_text(1900, -id) WHERE id % 5 = 1});
hold($node);
one($node, q{DELETE FROM e WHERE id % 2 = 0});
my $before = one($node, $size);
# (what is moved may have found room so already)
my $were = one($node, $evicted);
one($node, q{VACUUM e; INSERT INTO e SELECT g, random_text(2500 + g * 10, g) FROM generate_series(201, 300) g});
cmp_ok(one($node, $evicted), '>', 100 + $were, 'chunks have been evicted');
cmp_ok(one($node, $size), '<', 1.3 * $before, 'and the TOAST table has hardly grown');
is(undo_version(), '8', '... and that there are evicted rows');
all_see('evicted');
one($node, q{UPDATE e SET a = 'front' || a WHERE id % 3 > 0});
all_see('others changed');
one($node, q{VACUUM e});
all_see('vacuumed');
is(one($node, q{DO $$ BEGIN EXECUTE format('REINDEX TABLE %s', toast_of('e')); END $$}), '', 'REINDEX');
all_see('reindexed');
check_clean($node, 'before a rewrite');

$_->[0]->quit foreach @snapshots;
@snapshots = @without_lock;
my $here = one($node, $what_is_seen);
one($node, q{SET lock_timeout = '60s'; VACUUM FULL e});
is(one($node, $what_is_seen), $here, 'rewritten');
all_see('rewritten');
crash_and_restart($node);
is(one($node, $what_is_seen), $here, 'after a crash');
$node->wait_for_catchup($standby);
is(one($standby, $what_is_seen), $here, 'on a standby');
check_clean($node, 'at the end');
$_->stop, check_log($_) foreach $standby, $node;
done_testing();
