# The undo of a row's last change has been given back, and the next thing that is written
# there is a lock of this very row.  The version still leads to the place, where all but the
# kind of record agrees.  The lock's record leads to the version, and so to itself; an update
# that looked how long the row's chain is, for there was an older snapshot, took that for
# damage.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', allows_streaming => 1, conf => 'autovacuum = off');
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE customer (id int PRIMARY KEY, name text) USING inplace;
	CREATE TABLE visit (customer int REFERENCES customer) USING inplace;
	INSERT INTO customer VALUES (1, 'Miller')});
$node->safe_psql('postgres', q{UPDATE customer SET name = 'Smith'});
sub place
{
	return one($node, "SELECT undo || ' ' || ('LOCK_INDIRECT' = ANY (flags))::text FROM inplace.page_items('customer', 0)");
}
my $place = place();
like($place, qr{^\d+/\d+ false$}, 'the change has a record');

# until its undo has been given back, and the worker has gone, which knew what standbys know
ok(defined poll_value($node, q{SELECT free_extents = extents AND NOT EXISTS
		(SELECT FROM pg_stat_activity WHERE backend_type LIKE 'inplace undo worker%')
	FROM inplace.undo WHERE kind = 'logged'}, 60), 'undo is at rest')
  or diag(one($node, 'SELECT * FROM inplace.undo'));

my $reader = psql_session($node);
$reader->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT * FROM customer';
$node->safe_psql('postgres', 'INSERT INTO visit VALUES (1)');
is(place(), $place =~ s/false/true/r, 'a lock has its record there');

# Now and then an update looks at the chain, by chance that depends on the xid.
my $updates = q{DO $$
	BEGIN
		FOR i IN 1 .. 200 LOOP
			BEGIN
				UPDATE customer SET name = name || ' and sons';
				RAISE EXCEPTION USING ERRCODE = 'INP01';
			EXCEPTION WHEN SQLSTATE 'INP01' THEN
				NULL;
			END;
		END LOOP;
	END $$};
my ($ret, $out, $err) = $node->psql('postgres', $updates);
is($err, '', 'updates that are rolled back');
($ret, $out, $err) = $node->psql('postgres', $updates =~ s/RAISE EXCEPTION/RAISE DEBUG/r);
is($err, '', 'updates');
is($node->safe_psql('postgres', 'SELECT length(name) FROM customer'), 5 + 200 * 9, 'none is lost');
is($reader->query_safe('SELECT * FROM customer'), '1|Smith', 'the snapshot of before');
check_clean($node, 'with the snapshot');
$reader->query_safe('COMMIT');
$reader->quit;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
