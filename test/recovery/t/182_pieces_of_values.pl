# Large values whose changes move what is behind them, by different lengths: jsonb with a key
# more or less, and values that lz4 has compressed.  WAL and undo have little more than what is new.
# Values that fit their row when they are compressed, and those that only nearly do.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', conf => "autovacuum = off\nwal_level = replica\nwal_consistency_checking = ''\n");
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
# Rows that fit when they are compressed, beside a snapshot: no more WAL than on heap, and no
# locks.  Some have a value in the TOAST table as well, which the updates leave as it is.
sub wal_of_update
{
	my ($table, $change) = @_;
	my $start = one($node, 'SELECT pg_current_wal_insert_lsn()');
	$node->safe_psql('postgres', "UPDATE $table SET doc = $change");
	return split /\|/, one($node, qq{WITH flushed AS MATERIALIZED (SELECT pg_logical_emit_message(true, '', '') AS x)
		SELECT sum(record_length - fpi_length), count(*) FILTER (WHERE record_type ~ 'LOCK')
		FROM flushed, pg_get_wal_records_info('$start', pg_current_wal_flush_lsn())
		WHERE resource_manager IN ('inplace', 'Heap', 'Heap2')});
}
my $same = q{SELECT count(*) FROM compressed_heap h JOIN compressed i USING (id, kind, other, doc)
	WHERE h.main IS NOT DISTINCT FROM i.main};
foreach my $am ('heap', 'inplace')
{
	my $table = $am eq 'heap' ? 'compressed_heap' : 'compressed';
	$node->safe_psql('postgres', qq{
		CREATE TABLE $table (id int PRIMARY KEY, kind text, other text, doc jsonb COMPRESSION pglz, main text COMPRESSION pglz)
			USING $am WITH (fillfactor = 10);
		ALTER TABLE $table ALTER other SET STORAGE EXTERNAL, ALTER main SET STORAGE MAIN;
		INSERT INTO $table SELECT g, 'in line', 'short', (SELECT jsonb_object_agg('key' || k, repeat(md5((g * 100 + k)::text), 2))
			FROM generate_series(1, 39) k), CASE WHEN g % 3 = 0 THEN repeat('main', 20) END FROM generate_series(1, 30) g;
		UPDATE $table SET kind = 'with external', other = repeat('x', 3000) WHERE id > 20});
} ## end foreach my $am ('heap', 'inplace')
$node->safe_psql('postgres', 'VACUUM compressed, compressed_heap');
$held->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $held_before = $held->query("SELECT md5(string_agg(t::text, ' ' ORDER BY id)) FROM compressed t");
foreach my $change ([ 'equal length', q{jsonb_set(doc, '{key9}', to_jsonb(repeat(md5('9'), 2)))} ],
	[ 'another length', q{jsonb_set(doc, '{key19}', '"another value"')} ],
	[ 'a key behind all', q{doc || jsonb_build_object('appended', repeat(md5('a'), 2))} ],
	[ 'a key at the front', q{doc || jsonb_build_object('a', repeat(md5('b'), 2))} ],
	[ 'a key less', q{doc - 'key7'} ])
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	my ($on_heap) = wal_of_update('compressed_heap', $change->[1]);
	my ($here, $locks) = wal_of_update('compressed', $change->[1]);
	cmp_ok($here, '<=', 1.05 * $on_heap, "compressed in line, $change->[0]: no more WAL than on heap");
	is($locks, '0', '... and no locks');
	is(one($node, $same), '30', '... the same values');
}
is($held->query("SELECT md5(string_agg(t::text, ' ' ORDER BY id)) FROM compressed t"), $held_before, '... and those of before');
$held->query('COMMIT');

# What does not fit when all is compressed goes to the TOAST table, and comes back.
foreach my $change ('SET doc = doc || jsonb_build_object(\'long\', (SELECT string_agg(md5((id * 1000 + k)::text), \'\') FROM generate_series(1, 70) k))',
	'SET main = (SELECT string_agg(md5((id * 7000 + k)::text), \'\') FROM generate_series(1, 400) k)',
	'SET main = repeat(\'short\', 1000)', 'SET other = md5(id::text)', 'SET doc = doc - \'long\'',
	'SET doc = (SELECT jsonb_object_agg(k, repeat(\'x\', 100)) FROM generate_series(1, 100) k)', 'SET main = NULL, doc = \'{}\'')
{
	$node->safe_psql('postgres', "UPDATE compressed_heap $change; UPDATE compressed $change");
	is(one($node, $same), '30', "as on heap: $change");
	is(one($node, q{SELECT count(*) FROM compressed_heap h JOIN compressed i USING (id)
		WHERE (pg_column_size(h.doc), pg_column_size(h.main), pg_column_size(h.other)) IS NOT DISTINCT FROM
			(pg_column_size(i.doc), pg_column_size(i.main), pg_column_size(i.other))}), '30', '... of the same size');
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
