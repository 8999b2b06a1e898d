# Large values in TOAST tables of ours: random changes of documents, beside the same ones in a
# heap table.  Each transaction changes both alike, so in every snapshot they are the same: in
# those that are held for long, on a standby, and after crashes.  Some transactions are rolled
# back, in part or as a whole.

use strict;
use warnings;

# a session that the standby ends must not end the test
$SIG{PIPE} = 'IGNORE';
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $rounds = $ENV{DOCUMENT_ROUNDS} // 3;
# (Heap's replay of a row lock may differ in what it does not check on its own pages.)
my $checking = pg_major() == 15 ? '' : 'inplace, btree';
my $between = $seed % 2 == 0 ? 'on' : 'off';
my $primary = new_node('primary', allows_streaming => 1, conf => qq{
default_table_access_method = 'inplace'
inplace.toast_in_place = on
inplace.prune_between_snapshots = $between
wal_consistency_checking = '$checking'
max_standby_streaming_delay = '30s'
hot_standby_feedback = off
autovacuum_naptime = 1s
});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE h (id int PRIMARY KEY, n int, ext text, cmp text, doc jsonb) USING heap;
	ALTER TABLE h ALTER ext SET STORAGE EXTERNAL;
	CREATE TABLE i (LIKE h INCLUDING ALL) USING inplace WITH (autovacuum_vacuum_threshold = 20, toast.autovacuum_vacuum_threshold = 20);

	CREATE FUNCTION random_text(len int) RETURNS text LANGUAGE sql AS $$
		SELECT left(string_agg(md5(random()::text), ''), len) FROM generate_series(0, len / 32) $$;
	-- what a value becomes
	CREATE FUNCTION changed(v text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		n int := greatest(1, length(v));
		at int := 1 + (random() * n)::int;
	BEGIN
		RETURN CASE (random() * 9)::int
			WHEN 0 THEN random_text((random() * 30000)::int)
			WHEN 1 THEN v || random_text((random() * 3000)::int)
			WHEN 2 THEN random_text((random() * 40)::int) || v
			WHEN 3 THEN left(v, at)
			WHEN 4 THEN left(v, at) || random_text((random() * 100)::int) || substr(v, at + 50)
			WHEN 5 THEN NULL
			WHEN 6 THEN right(v, at)
			ELSE overlay(v PLACING random_text(8) FROM at)
		END;
	END $$;
	CREATE PROCEDURE change(row_id int) LANGUAGE plpgsql AS $$
	DECLARE r h;
	BEGIN
		-- (the lock that counts)
		PERFORM FROM h WHERE id = row_id FOR UPDATE;
		SELECT * INTO r FROM h WHERE id = row_id;
		IF NOT FOUND OR random() < 0.05 THEN
			DELETE FROM h WHERE id = row_id;
			DELETE FROM i WHERE id = row_id;
			r := (row_id, 0, random_text(5000), random_text(12000),
				(SELECT jsonb_object_agg('k' || g, md5(random()::text)) FROM generate_series(1, 150) g));
			INSERT INTO h SELECT r.* ON CONFLICT DO NOTHING;
			IF FOUND THEN
				INSERT INTO i SELECT r.*;
			END IF;
			RETURN;
		END IF;
		FOR x IN 0 .. (random() * 3)::int LOOP
			BEGIN
				r.n := r.n + 1;
				CASE (random() * 3)::int
					WHEN 0 THEN r.ext := coalesce(changed(r.ext), r.ext, 'new');
					WHEN 1 THEN r.cmp := changed(r.cmp);
					WHEN 2 THEN r.doc := r.doc || jsonb_build_object('k' || (random() * 200)::int, md5(random()::text));
					ELSE r.doc := r.doc - ('k' || (random() * 200)::int);
				END CASE;
				UPDATE h SET n = r.n, ext = r.ext, cmp = r.cmp, doc = r.doc WHERE id = row_id;
				UPDATE i SET n = r.n, ext = r.ext, cmp = r.cmp, doc = r.doc WHERE id = row_id;
				IF random() < 0.2 THEN RAISE EXCEPTION 'back'; END IF;
			EXCEPTION WHEN raise_exception THEN
				SELECT * INTO r FROM i WHERE id = row_id;
			END;
		END LOOP;
		IF random() < 0.15 THEN
			ROLLBACK;
		END IF;
	END $$;
	CREATE FUNCTION differences() RETURNS bigint LANGUAGE sql AS $$
		SELECT count(*) FROM h FULL JOIN i USING (id)
		WHERE (h.n, h.ext, h.cmp, h.doc) IS DISTINCT FROM (i.n, i.ext, i.cmp, i.doc) $$;
	DO 'BEGIN FOR x IN 1 .. 20 LOOP CALL change(x); COMMIT; END LOOP; END';
});
is(one($primary, q{SELECT amname FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_am m ON m.oid = t.relam WHERE c.relname = 'i'}),
	'inplace', 'a TOAST table of ours');

$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;

my $script = pgbench_script($primary, 'change', "\\set id random(1, 24)\nCALL change(:id);\n");
# (A standby that is far behind cancels a new query at once, too: then there is another one.)
sub held_snapshot
{
	my ($node) = @_;
	foreach (1 .. 100)
	{
		my $s = psql_session($node);
		my $answer = eval { $s->query('BEGIN ISOLATION LEVEL REPEATABLE READ'); $s->query('SELECT differences()') } // '';
		return ($s, $answer) if $answer ne '' || $node == $primary;
		eval { $s->quit };
		usleep(100_000);
	}
	return;
}

foreach my $round (1 .. $rounds)
{
	my $load = start_pgbench($primary, '-c', '4', '-j', '2', '-T', '15', '-f', $script);
	my @held;
	my $rewrite = ('REINDEX TABLE CONCURRENTLY i', 'VACUUM FULL i', 'CLUSTER i USING i_pkey')[ $round % 3 ];
	is(one($primary, $rewrite), '', "round $round: $rewrite");
	foreach my $n (1 .. 3)
	{
		foreach my $node ($primary, $standby)
		{
			my ($s, $differences) = held_snapshot($node);
			is($differences, '0', "round $round: no differences in a new snapshot");
			push @held, [ $s, $node ];
			# what a standby's query needed may be gone: then it is told so, or its session ends
			my @still;
			foreach my $h (@held)
			{
				my ($session, $where) = @$h;
				my $answer = eval { $session->query('SELECT differences()') };
				push @still, $h if defined $answer;
				like($answer // ($where == $standby ? '' : $@), $where == $standby ? qr/^0?$/ : qr/^0$/,
					"round $round: nor in one that is held");
			}
			@held = @still;
		}
		is(one($primary, 'SELECT differences()'), '0', "round $round: nor now");
	}
	if ($round % 2 == 1)
	{
		eval { $_->[0]->quit } foreach @held;
		crash_and_restart($primary);
		end_pgbench($load);
	}
	else
	{
		my $out = end_pgbench($load);
		unlike($out, qr/ERROR|FATAL/, "round $round: no errors in the load") or diag $out;
		eval { $_->[0]->quit } foreach @held;
	}
	is(one($primary, 'SELECT differences()'), '0', "round $round: nothing differs afterwards");
	one($primary, 'VACUUM i') if $round == 2;
	check_clean($primary, "round $round");
	is(one($primary, q{SELECT count(*) FROM pg_class c, inplace.check(c.reltoastrelid) WHERE c.relname = 'i'}), '0',
		"round $round: and of the TOAST table");
}
$primary->wait_for_catchup($standby);
is(one($standby, 'SELECT differences()'), '0', 'nothing differs on the standby');
$primary->stop('fast');
$standby->promote;
is(one($standby, 'SELECT differences()'), '0', 'nor when it is promoted');
one($standby, 'CALL change(3); CALL change(4);');
one($standby, 'VACUUM FULL i');
is(one($standby, 'SELECT differences()'), '0', 'nor after a rewrite');
check_clean($standby, 'promoted');
$standby->stop;
check_log($_) foreach $primary, $standby;

done_testing();
