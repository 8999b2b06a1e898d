# Options of adaptive freezing of single tables: dump and restore, names,
# rewrites, autovacuum.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('freeze_options', conf => "inplace.target_freeze_duration = 999\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE DATABASE copy;
});
$node->safe_psql('postgres', $_) foreach (q{CREATE EXTENSION inplace},
	q{CREATE TABLE a (id int) USING inplace; SELECT inplace.set_freeze_options('a', false, 60)},
	q{CREATE SCHEMA "S p"; CREATE TABLE "S p"."B b" (id int) USING inplace; SELECT inplace.set_freeze_options('"S p"."B b"', target_freeze_duration => 7)},
	q{CREATE MATERIALIZED VIEW m USING inplace AS SELECT 1 AS x; SELECT inplace.set_freeze_options('m', true)},
	q{CREATE TABLE none (id int) USING inplace});
my $all = q{SELECT string_agg(schemaname || '.' || relname || ' ' || adaptive_freezing || ' ' || target_freeze_duration, ', ' ORDER BY relname COLLATE "C")
	FROM inplace.stat_freeze};
my $want = 'S p.B b true 7, public.a false 60, public.m true 999, public.none true 999';
is(one($node, $all), $want, 'options of the tables');

my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-f', $dump, 'postgres' ], 'pg_dump');
$node->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'copy' ], 'restored');
is(one($node, $all, 'copy'), $want, 'options are in the dump');
is(one($node, 'SELECT count(*) FROM pg_seclabel', 'copy'), '3', 'and nothing else');

# One table alone.
$node->safe_psql('postgres', 'CREATE DATABASE part');
$node->safe_psql('part', 'CREATE EXTENSION inplace');
$node->command_ok([ 'pg_dump', '-t', 'a', '-f', $dump, 'postgres' ], 'pg_dump -t');
$node->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'part' ], 'restored');
is(one($node, $all, 'part'), 'public.a false 60', 'its options are in the dump');

# Rewrites, names, heap and back.
$node->safe_psql('postgres', $_) foreach (q{INSERT INTO a SELECT generate_series(1, 100)}, q{VACUUM FULL a},
	q{TRUNCATE a}, q{ALTER TABLE a ALTER id TYPE bigint}, q{SELECT inplace.convert('a', 'heap')});
$node->command_ok([ 'pg_dump', '-t', 'a', '-f', $dump, 'postgres' ], 'pg_dump as a heap table');
$node->safe_psql('part', 'DROP TABLE a');
$node->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'part' ], 'restored');
$node->safe_psql('postgres', $_) foreach (q{SELECT inplace.convert('a')}, q{ALTER TABLE a RENAME TO z}, q{ALTER TABLE z SET SCHEMA "S p"});
is(one($node, $all), 'S p.B b true 7, public.m true 999, public.none true 999, S p.z false 60', 'rewritten and renamed');
is(one($node, q{BEGIN; SELECT inplace.set_freeze_options('none', false, 1); ROLLBACK; SELECT target_freeze_duration FROM inplace.freeze_options('none'::regclass)}) =~ /(\d+)$/ && $1,
	'999', 'rolled back');

# Autovacuum goes by them.
$node->safe_psql('postgres', $_) foreach (
	q{CREATE TABLE auto (id int) USING inplace WITH (autovacuum_vacuum_insert_threshold = 10, autovacuum_vacuum_insert_scale_factor = 0)},
	q{SELECT inplace.set_freeze_options('auto', false, 4321)},
	q{INSERT INTO auto SELECT generate_series(1, 10000)});
ok(defined poll_value($node, q{SELECT coalesce((SELECT target_seconds = 4321 AND all_visible_sets > 10 AND all_frozen_sets = 0
	FROM inplace.stat_freeze WHERE relname = 'auto'), false)}, 120), 'autovacuum goes by the table\'s options');

$node->safe_psql('postgres', 'DROP SCHEMA "S p" CASCADE; DROP MATERIALIZED VIEW m; DROP TABLE auto');
is(one($node, 'SELECT count(*) FROM pg_seclabel'), '0', 'nothing is left of dropped tables');

check_log($node);
$node->stop;
done_testing();
