# VACUUM FULL by a function in a parallel worker, and in one that applies changes of a
# publisher: the server refuses it there.  These backends have no portal.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 'logical', conf => q{
restart_after_crash = off
max_worker_processes = 12
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, v text) USING inplace;
	CREATE FUNCTION vacuum_full(what text) RETURNS text LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
	BEGIN
		EXECUTE 'VACUUM FULL ' || what;
		RETURN 'done';
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLSTATE;
	END $$;
	CREATE FUNCTION vacuum_full_or_fail(what text) RETURNS text LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
	BEGIN
		EXECUTE 'VACUUM FULL ' || what;
		RETURN 'done';
	END $$});

foreach my $what ('', 't', 't, pg_class', 'inplace.undo_log')
{
	# (a worker may not begin a subtransaction)
	my ($rc, $out, $err) = $node->psql('postgres', qq{
		SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;
		SELECT vacuum_full_or_fail('$what') FROM pg_class WHERE oid < 2000 AND relname ~ 'pg_'});
	like($err, qr/ERROR:  .*(VACUUM cannot be executed|during a parallel operation).*\n.*(\n.*)*parallel worker/, "'$what' in a parallel worker is refused");
	is(one($node, "SELECT vacuum_full('$what')"), '25001', "'$what' in a function is refused");
}
is(one($node, q{SELECT count(*) FROM t}), '0', 'the server is there');

# (The worker that applies is found by its slot; publisher and subscriber are two databases.)
$node->safe_psql('postgres', q{
	CREATE TABLE s (id int PRIMARY KEY);
	CREATE PUBLICATION p FOR TABLE s;
	SELECT pg_create_logical_replication_slot('sub', 'pgoutput')});
$node->safe_psql('postgres', 'CREATE DATABASE subscriber');
$node->safe_psql('subscriber', q{
	CREATE EXTENSION inplace;
	CREATE TABLE s (id int PRIMARY KEY) USING inplace;
	CREATE TABLE said (what text) USING inplace;
	CREATE FUNCTION vacuum_full() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		BEGIN
			EXECUTE CASE NEW.id WHEN 1 THEN 'VACUUM FULL' ELSE 'VACUUM FULL public.s' END;
			INSERT INTO public.said VALUES ('done');
		EXCEPTION WHEN OTHERS THEN
			INSERT INTO public.said VALUES (SQLSTATE);
		END;
		RETURN NEW;
	END $$;
	CREATE TRIGGER v BEFORE INSERT ON s FOR EACH ROW EXECUTE FUNCTION vacuum_full();
	ALTER TABLE s ENABLE ALWAYS TRIGGER v;
	CREATE SUBSCRIPTION sub CONNECTION $c$} . $node->connstr('postgres') . q{$c$ PUBLICATION p
		WITH (create_slot = false, slot_name = 'sub', copy_data = false)});
$node->safe_psql('postgres', 'INSERT INTO s VALUES (1), (2)');
ok(defined poll_value($node, 'SELECT count(*) = 2 FROM s', 60, 'subscriber'), 'rows are applied');
is(one($node, 'SELECT string_agg(what, $$,$$) FROM said', 'subscriber'), '25001,25001', 'VACUUM FULL there is refused');
$node->safe_psql('subscriber', 'DROP SUBSCRIPTION sub');

check_log($node);
$node->stop;
done_testing();
