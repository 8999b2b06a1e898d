# A crash, and a standby, right after a rewrite that had to push several versions of a
# row, because an older snapshot needs them: the record of the version that is the
# first thing on its page, and then those of the ones that take its place.  What replay
# makes of the rows must be what was there, to the room that is reserved for older
# versions: later changes go by it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

foreach my $checking ('', 'all')
{
	my $node = new_node("primary$checking", allows_streaming => 1, conf => qq{
default_table_access_method = 'inplace'
wal_consistency_checking = '$checking'
autovacuum = off
});
	$node->start;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION inplace;
		CREATE TABLE one (id int PRIMARY KEY, b text);
		CREATE TABLE many (id int PRIMARY KEY, k int, b text);
		CREATE INDEX many_k ON many USING inplace_btree (k);
		INSERT INTO one VALUES (1, repeat('b', 100));
		INSERT INTO many SELECT i, i, repeat('m', 10 + i % 300) FROM generate_series(1, 1000) i;});
	$node->backup('b');
	my $standby = PostgreSQL::Test::Cluster->new("standby$checking");
	$standby->init_from_backup($node, 'b', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\n");
	$standby->start;
	my $look = "SELECT string_agg(t::text, '|' ORDER BY id) FROM %s t";

	foreach my $rewrite ('VACUUM FULL %s', 'CLUSTER %s USING %s_pkey', 'ALTER TABLE %s ALTER b TYPE varchar(1000) USING b || chr(32)')
	{
		my $old = psql_session($node);
		$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
		$old->query_safe('SELECT 1');
		foreach my $t (qw(one many))
		{
			$node->safe_psql('postgres', "UPDATE $t SET b = 'short'; UPDATE $t SET b = b || id WHERE id % 2 = 1");
			$node->safe_psql('postgres', 'UPDATE many SET k = -k WHERE id % 3 = 0') if $t eq 'many';
			$node->safe_psql('postgres', $rewrite =~ s/%s/$t/gr);
			# header alone, a part of the row, more than there was
			$node->safe_psql('postgres', "BEGIN; SELECT count(*) FROM (SELECT FROM $t FOR UPDATE) x; COMMIT;
				UPDATE $t SET b = 'other' WHERE id % 5 = 1; UPDATE $t SET b = repeat('o', 200) WHERE id % 7 = 1");
		}
		my %now = map { $_ => $node->safe_psql('postgres', sprintf($look, $_)) } qw(one many);
		$node->wait_for_catchup($standby);
		is($standby->safe_psql('postgres', sprintf($look, $_)), $now{$_}, "$rewrite, standby: $_") foreach qw(one many);
		check_clean($standby, "$rewrite, standby");
		$node->stop('immediate');
		eval { $old->quit };
		$node->start;
		is($node->safe_psql('postgres', sprintf($look, $_)), $now{$_}, "$rewrite, crash: $_") foreach qw(one many);
		check_clean($node, "$rewrite, crash");
		$node->safe_psql('postgres', "UPDATE one SET b = repeat('b', 100); UPDATE many SET b = repeat('m', 10 + id % 300); VACUUM one, many; CHECKPOINT");
	}
	$node->wait_for_catchup($standby);
	$_->stop foreach $standby, $node;
	check_log($_) foreach $standby, $node;
}
done_testing();
