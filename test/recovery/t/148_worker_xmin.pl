# The undo worker goes through undo of a table that is not there any more.  It must not keep the
# rest of the database back meanwhile: it looks into catalogs with a snapshot, and has to let that
# go at once.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
autovacuum = off
inplace.undo_worker_delay = 10
wal_consistency_checking = ''
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int);
	CREATE TABLE seen (looks bigint, old bigint);
	-- Looks at the worker, while it does not wait for work, until that is to end.  Each look takes
	-- an xid, so a snapshot's xmin is as many xids behind a new one's as there were looks meanwhile.
	CREATE TABLE ends ();
	CREATE PROCEDURE watch() LANGUAGE plpgsql AS $$
	DECLARE until timestamptz := clock_timestamp() + interval '120 s'; behind int; looks bigint := 0; old bigint := 0;
	BEGIN
		LOOP
			PERFORM pg_current_xact_id(), pg_stat_clear_snapshot(), set_config('application_name', 'looks ' || looks, false);
			SELECT max(coalesce(age(backend_xmin) - age(pg_snapshot_xmin(pg_current_snapshot())::xid), 0))
				INTO behind FROM pg_stat_activity
				WHERE backend_type LIKE 'inplace undo worker%' AND wait_event_type IS DISTINCT FROM 'Extension';
			IF behind IS NOT NULL THEN
				looks := looks + 1;
				old := old + (behind > 2)::int;
			END IF;
			EXIT WHEN clock_timestamp() > until OR EXISTS (SELECT FROM ends);
			COMMIT;
		END LOOP;
		INSERT INTO seen VALUES (looks, old);
	END $$;});

my $watcher = psql_session($node);
$watcher->query_until(qr/begun/, qq{\\echo begun\nCALL watch();\n});
my $looks_now = q{SELECT split_part(application_name, ' ', 2)::bigint FROM pg_stat_activity WHERE application_name LIKE 'looks %'};
poll_value($node, "SELECT EXISTS ($looks_now)", 60);
# on a busy machine the watcher may not run while the worker does
my $rounds = 0;
while ($rounds < 4 || ($rounds < 40 && $node->safe_psql('postgres', $looks_now) <= 30))
{
	$rounds++;
	$node->safe_psql('postgres', q{
		CREATE TABLE gone (id int, n int, v text);
		INSERT INTO gone SELECT i, 0, repeat('x', 50) FROM generate_series(1, 100000) i;
		BEGIN; UPDATE gone SET n = 1, v = repeat('y', 50); ROLLBACK;
		DROP TABLE gone;});
	poll_value($node, 'SELECT sum(extents_to_restore) = 0 FROM inplace.undo', 60);
}
$node->safe_psql('postgres', 'INSERT INTO ends DEFAULT VALUES');
$watcher->query_safe('SELECT 1');
$watcher->quit;
my ($looks, $old) = split /\|/, $node->safe_psql('postgres', 'SELECT looks, old FROM seen');
note("$rounds rounds; $old of $looks times the worker had a snapshot from more than two looks before");
cmp_ok($looks, '>', 30, 'the worker was looked at while it worked');
cmp_ok($old, '<', $looks / 8, 'it does not keep a snapshot');
undo_floor_reached($node, 'at the end', 20);
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
