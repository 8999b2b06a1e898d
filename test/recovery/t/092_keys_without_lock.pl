# What a unique check has to compute, or to fetch from a TOAST table, is computed and fetched
# with no page locked: others use the index meanwhile, and it can be cancelled.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('n', conf => "autovacuum = off\n");
$node->start;
one($node, 'CREATE EXTENSION inplace');

# Runs a statement in a session of its own; the end of its output tells how it ended.
sub begin_statement
{
	my ($sql) = @_;
	my $s = psql_session($node);
	$s->query_until(qr/begun/, "\\echo begun\n\\set VERBOSITY sqlstate\n$sql;\n\\echo :SQLSTATE\n");
	return $s;
}

# ... with the error "canceled", when it has been
sub cancelled
{
	my ($s, $query, $what) = @_;
	one($node, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '$query%' AND state = 'active'");
	ok(defined poll_value($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE '$query%' AND state = 'active'", 60),
		"$what: it ends");
	like($s->query('SELECT 1'), qr/57014/, "$what: it was cancelled");
	$s->quit;
}

my $active = "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO %' AND state = 'active'";

# A row that may have stale entries (it has, in another index), and a key that takes seconds to
# compute.  (Each time it is computed it takes as long as the first.)
one($node, q{
	CREATE TABLE slow (k int, f bigint, pad int) USING inplace;
	CREATE INDEX ON slow (pad);
	INSERT INTO slow VALUES (1, 32000, 1), (2, 3, 1);
	UPDATE slow SET pad = 2;
	CREATE UNIQUE INDEX slow_key ON slow USING inplace_btree ((k + scale(factorial(f) * 0) + scale(factorial(f - 1) * 0)))});
is(one($node, 'SELECT am.amname FROM pg_class c JOIN pg_am am ON am.oid = relam WHERE relname = \'slow_key\''), 'inplace_btree', 'an inplace_btree');

my $s = begin_statement('INSERT INTO slow VALUES (1, 3, 1)');
ok(defined poll_value($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO slow%' AND state = 'active' AND now() - query_start > '0.2 s'", 30),
	'an insertion computes the key of another row');
# the same page
is(one($node, 'INSERT INTO slow VALUES (3, 3, 1); SELECT count(*) FROM slow'), 3, 'somebody else inserts into the index');
is(one($node, 'CHECKPOINT; SELECT 1'), 1, '... and writes it');
is(one($node, $active), 't', '... and that computes yet');
cancelled($s, 'INSERT INTO slow', 'a computation');

like(sqlstate_of($node, "SET statement_timeout = '200ms'; INSERT INTO slow VALUES (1, 3, 1)"), qr/57014/, 'a timeout ends it');
like(sqlstate_of($node, 'INSERT INTO slow VALUES (2, 3, 1)'), qr/23505/, 'a key that is computed in no time is violated at once');
# (Before 18 ON CONFLICT knows btree alone.)
like(sqlstate_of($node, "SET statement_timeout = '200ms'; INSERT INTO slow VALUES (1, 3, 1) ON CONFLICT DO NOTHING"), qr/57014/, 'a timeout ends ON CONFLICT')
  if pg_major() >= 18;

# The same of a value that is in the TOAST table, which somebody has locked.
one($node, q{
	CREATE TABLE wide (a text, b int, pad text) USING inplace;
	ALTER TABLE wide ALTER a SET STORAGE EXTERNAL, ALTER pad SET STORAGE EXTERNAL;
	CREATE UNIQUE INDEX wide_key ON wide USING inplace_btree (a, b) NULLS NOT DISTINCT;
	INSERT INTO wide VALUES (repeat('x', 1500), NULL, NULL);
	UPDATE wide SET a = repeat('y', 1500), pad = repeat('p', 1400)});
is(one($node, 'SELECT ctid FROM wide'), '(0,1)', 'a row with another key, in the TOAST table');
my $toast = one($node, q{SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'wide'});
isnt(one($node, "SELECT count(*) FROM $toast"), '0', '... really');

my $locker = psql_session($node);
$locker->query("BEGIN; REINDEX TABLE $toast");
$s = begin_statement(q{INSERT INTO wide VALUES (repeat('x', 1500), NULL, 'z')});
waits_for_lock($node, 'an insertion waits for the TOAST table', 'INSERT INTO wide');
is(one($node, q{INSERT INTO wide VALUES ('z', 1, NULL); SELECT b FROM wide WHERE a = 'z'}), 1, 'somebody else inserts into the index');
cancelled($s, 'INSERT INTO wide', 'a wait');
$locker->query('ROLLBACK');
$locker->quit;

is(one($node, q{INSERT INTO wide VALUES (repeat('x', 1500), NULL, 'z')}), '', 'the former key is free');
like(sqlstate_of($node, q{INSERT INTO wide VALUES (repeat('y', 1500), NULL, 'z')}), qr/23505/, 'the present one is not');
like(sqlstate_of($node, q{INSERT INTO wide VALUES (repeat('x', 1500), NULL, 'z')}), qr/23505/, 'nor that one now');

check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
