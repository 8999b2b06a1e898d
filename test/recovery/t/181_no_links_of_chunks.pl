# Large values beside a snapshot that is held: their chunks get no links in undo, which nobody
# would follow, and which have the bytes of a chunk once more.  Rows get links.

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
my $value = q{(SELECT string_agg(md5(g || ' ' || id || random()), '') FROM generate_series(1, 150) g)};
$node->safe_psql('postgres', qq{
	CREATE EXTENSION inplace;
	CREATE EXTENSION pg_walinspect;
	CREATE TABLE big (id int PRIMARY KEY, v text) USING inplace;
	ALTER TABLE big ALTER v SET STORAGE EXTERNAL;
	CREATE TABLE small (id int PRIMARY KEY, v text) USING inplace;
	INSERT INTO big SELECT id, $value FROM generate_series(1, 10) id;
	INSERT INTO small SELECT id, repeat('v', 1500) FROM generate_series(1, 10) id;
});
is(one($node, q{SELECT amname FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_am m ON m.oid = t.relam WHERE c.relname = 'big'}),
	'inplace', 'a TOAST table of ours');
my $s = psql_session($node);
$s->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $before = $s->query(q{SELECT string_agg(md5(v), ' ' ORDER BY id) FROM big});

# The longest record of undo alone, which links are, of some changes.
sub longest
{
	my ($what) = @_;
	my $start = one($node, 'SELECT pg_current_wal_insert_lsn()');
	$node->safe_psql('postgres', join(";\n", ($what) x 60));
	return one($node, qq{SELECT pg_logical_emit_message(true, '', '') IS NOT NULL AND coalesce(max(record_length), 0) IS NOT NULL,
		coalesce(max(record_length), 0) FROM pg_get_wal_records_info('$start', pg_current_wal_flush_lsn())
		WHERE resource_manager = 'inplace' AND record_type = 'UNDO'}) =~ s/^t\|//r;
}
cmp_ok(longest("UPDATE small SET v = repeat(chr(97 + (random() * 25)::int), 750) || repeat(chr(65 + (random() * 25)::int), 750)"), '>', 1000,
	'rows get links');
cmp_ok(longest("UPDATE big SET v = $value"), '<', 1000, 'chunks do not');
is($s->query(q{SELECT string_agg(md5(v), ' ' ORDER BY id) FROM big}), $before, 'the snapshot sees what it saw');
$s->quit;
check_clean($node, 'all');
check_log($node);
$node->stop;
done_testing();
