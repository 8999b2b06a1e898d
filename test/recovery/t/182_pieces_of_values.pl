# Large values whose changes move what is behind them, by different lengths: jsonb with a key
# more or less, and values that lz4 has compressed.  WAL and undo have little more than what is new.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => "autovacuum = off\nwal_consistency_checking = ''\n");
$node->start;
my $lz4 = one($node, q{SELECT enumvals::text LIKE '%lz4%' FROM pg_settings WHERE name = 'default_toast_compression'}) eq 't';
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pg_walinspect;
	CREATE FUNCTION doc(id int) RETURNS jsonb LANGUAGE sql AS $$
		SELECT jsonb_object_agg('key' || k, md5((id * 10000 + k)::text)) FROM generate_series(1, 227) k $$;
	CREATE TABLE h (id int PRIMARY KEY, doc jsonb) USING heap;
	INSERT INTO h SELECT g, doc(g) FROM generate_series(1, 10) g;
});
my $held = psql_session($node);
foreach my $how ('STORAGE EXTERNAL', $lz4 ? 'COMPRESSION lz4' : ())
{
	my ($name) = lc($how) =~ /(\w+)$/;
	$node->safe_psql('postgres', qq{
		CREATE TABLE $name (id int PRIMARY KEY, doc jsonb) USING inplace;
		ALTER TABLE $name ALTER doc SET $how;
		INSERT INTO $name SELECT g, doc(g) FROM generate_series(1, 10) g;
		CHECKPOINT;
		UPDATE $name SET doc = jsonb_set(doc, '{key9}', '"a value"');
		UPDATE $name SET doc = doc(id)});
	$held->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $before = $held->query("SELECT md5(string_agg(doc::text, ' ' ORDER BY id)) FROM $name");
	$node->safe_psql('postgres', 'UPDATE h SET doc = doc(id)');
	foreach my $change ([ 'another length', q{jsonb_set(doc, '{key100}', '"another value"')} ],
		[ 'a key behind all', q{doc || '{"appended": "value"}'} ],
		[ 'a key among them', q{doc || '{"key10a": "value"}'} ],
		[ 'a key less', q{doc - 'key50'} ])
	{
		my $start = one($node, 'SELECT pg_current_wal_insert_lsn()');
		$node->safe_psql('postgres', "UPDATE $name SET doc = $change->[1]");
		my $got = one($node, qq{WITH flushed AS MATERIALIZED (SELECT pg_logical_emit_message(true, '', '') AS x)
			SELECT (SELECT sum(record_length - fpi_length) FROM pg_get_wal_records_info('$start', pg_current_wal_flush_lsn()) WHERE resource_manager = 'inplace') / 10
			FROM flushed});
		cmp_ok($got, '<', 4500, "$name, $change->[0]: WAL of a value of 10 kB");
		$node->safe_psql('postgres', "UPDATE h SET doc = $change->[1]");
		is(one($node, "SELECT count(*) FROM h JOIN $name USING (id, doc)"), '10', "$name, $change->[0]: the right values");
	}
	is($held->query("SELECT md5(string_agg(doc::text, ' ' ORDER BY id)) FROM $name"), $before, "$name: a snapshot from before");
	$held->query('COMMIT');
}
$held->quit;
my $contents = contents($node, $lz4 ? 'lz4' : 'external');
crash_and_restart($node);
is(contents($node, $lz4 ? 'lz4' : 'external'), $contents, 'the same after a crash');
is(one($node, "SELECT count(*) FROM h JOIN external USING (id, doc)"), '10', '... as on heap');
check_clean($node, 'all');
check_log($node);
$node->stop;
done_testing();
