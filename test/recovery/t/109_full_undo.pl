# All places for undo (inplace.undo_extents) are taken.  What needs undo fails; what can do
# without goes on, VACUUM as well: a row whose last change was rolled back, and that is still
# locked, it leaves to others.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('full', conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
inplace.undo_extents = 256
inplace.undo_worker_delay = 50
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE big (id int, v text);
	INSERT INTO big SELECT i, repeat(md5(i::text), 60) FROM generate_series(1, 40000) i;
	CREATE TABLE small (id int PRIMARY KEY, n int);
	INSERT INTO small SELECT i, 0 FROM generate_series(1, 200) i;
	UPDATE small SET n = 1 WHERE id = 200});
# From now on the worker is asleep.
ok(defined poll_value($node, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'inplace undo worker'}, 60), 'there is a worker');
$node->append_conf('postgresql.conf', 'inplace.undo_worker_delay = 60000');
$node->reload;
# (a look takes no time; on a busy machine it may be some until it comes to that)
sleep 3;

# Of one row an older version is needed, so a lock that stays takes undo.
my $reader = psql_session($node);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM small');
$node->safe_psql('postgres', 'UPDATE small SET n = 5 WHERE id = 1');
my $locker = psql_session($node);
my $writer = psql_session($node);
$writer->query_safe('BEGIN; UPDATE small SET n = 7 WHERE id = 1');
$locker->query_safe('BEGIN; SELECT 1 FROM small WHERE id = 1 FOR KEY SHARE');
like(sqlstate_of($node, q{UPDATE big SET v = repeat(md5(v), 60)}), qr/53400: undo of inplace tables has reached the limit of 256 extents/, 'all places are taken');
$writer->query_safe('ROLLBACK');

# Extents that are not full have to be somebody's.
my @sessions;
for my $id (2 .. 30)
{
	my $s = psql_session($node);
	push @sessions, $s;
	$s->query('BEGIN');
	$s->query("UPDATE small SET n = 8 WHERE id = $id");
	last if $s->{stderr} =~ /has reached the limit/;
}
cmp_ok(scalar @sessions, '<', 29, 'until there is none');

like(sqlstate_of($node, 'UPDATE small SET n = 2 WHERE id = 100'), qr/53400/, 'UPDATE fails');
is(sqlstate_of($node, 'DELETE FROM small WHERE id = 101'), '', 'DELETE of a row that nobody needs takes no undo');
is(sqlstate_of($node, 'INSERT INTO small VALUES (201, 0)'), '', 'nor does INSERT');
is(sqlstate_of($node, 'VACUUM small'), '', 'VACUUM goes on');
is(one($node, 'SELECT n FROM small WHERE id = 1'), '5', 'the row that was rolled back');
is($reader->query('SELECT n FROM small WHERE id = 1'), '0', '... for a snapshot from before');

$_->query('COMMIT') foreach @sessions, $locker, $reader;
$_->quit foreach @sessions, $locker, $writer, $reader;
$node->append_conf('postgresql.conf', 'inplace.undo_worker_delay = 50');
$node->reload;
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'inplace undo worker'});
undo_floor_reached($node, 'at the end', 60);
is(sqlstate_of($node, 'UPDATE small SET n = 2 WHERE id = 1'), '', 'UPDATE goes on');
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
