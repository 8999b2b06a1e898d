# What is found where something stood before.
#
# A row's lock that has ended may lead to undo whose space has been used again.  If that
# is for a row at the same place of another table, made by the same transaction, all but
# the table agrees; it was taken for the row's own, and its header put on the row.
#
# A row inserted by INSERT ... ON CONFLICT is speculative until it is known that nothing is in the
# way; that it is over is not logged.  After a crash a prepared transaction may have
# such a row: who waits for it waits for the transaction (and spun for ever).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# (with checksums an image of the page would tell that a row is not speculative any more)
my $node = new_node('primary', allows_streaming => 1, conf => 'autovacuum = off', extra => pg_major() >= 18 ? ['--no-data-checksums'] : []);
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE customer (id int PRIMARY KEY, visits int, name text) USING inplace;
	CREATE TABLE product (id int PRIMARY KEY, a text, b text, c text, d text, sold int) USING inplace;
	CREATE TABLE visit (customer int REFERENCES customer) USING inplace;
	CREATE TABLE sale (product int REFERENCES product) USING inplace;
	INSERT INTO customer VALUES (1, 0, 'Miller');
	INSERT INTO product VALUES (1, NULL, NULL, NULL, NULL, 0);});

# Until the undo has been given back and the undo worker has gone, and with it what is
# known of standbys.  Whoever uses some next begins where this began.
sub rest
{
	ok(defined poll_value($node, q{SELECT free_extents = extents AND NOT EXISTS
			(SELECT FROM pg_stat_activity WHERE backend_type LIKE 'inplace undo worker%')
		FROM inplace.undo WHERE kind = 'logged'}, 60), "undo is at rest: $_[0]")
	  or diag(one($node, 'SELECT * FROM inplace.undo'));
}

sub lock_of
{
	return $node->safe_psql('postgres', "SELECT undo FROM inplace.page_items('$_[0]', 0) WHERE 'LOCK_INDIRECT' = ANY (flags)");
}

$node->safe_psql('postgres', 'BEGIN; UPDATE customer SET visits = 1; UPDATE product SET sold = 1; COMMIT');
rest('both rows have been changed');
$node->safe_psql('postgres', 'INSERT INTO visit VALUES (1)');
rest('one has been locked');
my $reader = psql_session($node);
$reader->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM visit';
$node->safe_psql('postgres', 'INSERT INTO sale VALUES (1)');
my $place = lock_of('customer');
like($place, qr/^\d+\/\d+$/, 'the first row has a lock that has ended');
is(lock_of('product'), $place, '... whose record was where that of the other is now');
my $holder = psql_session($node);
$holder->query_safe($_) foreach 'BEGIN', 'SELECT * FROM product FOR KEY SHARE';
is($node->safe_psql('postgres', q{SET lock_timeout = '10s'; SELECT id FROM customer FOR UPDATE}), '1', 'the first row is not locked');
$holder->query_safe('COMMIT');
$node->safe_psql('postgres', 'BEGIN; UPDATE customer SET visits = 2 WHERE id = 1; ROLLBACK');
is($node->safe_psql('postgres', 'SELECT * FROM customer'), '1|1|Miller', 'a change of it is rolled back');
ok($node->poll_query_until('postgres', 'SELECT sum(extents_to_restore) = 0 FROM inplace.undo'), '... on its page, too');
is($node->safe_psql('postgres', 'SELECT * FROM customer'), '1|1|Miller', 'it is what it was');
check_clean($node, 'after a rollback');
$_->quit foreach $reader, $holder;

$node->safe_psql('postgres', 'CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE) USING inplace');
my ($first, $second) = map { psql_session($node) } 1 .. 2;
$first->query_safe($_) foreach 'BEGIN', 'INSERT INTO t VALUES (100, 7)';
# its row is on the page, and waits for the first one's key
$second->query_until(qr/sent/, "BEGIN;\n\\echo sent\nINSERT INTO t VALUES (1, 7) ON CONFLICT (a) DO NOTHING;\n");
waits_for_lock($node, 'a speculative row waits', 'INSERT INTO t VALUES (1, 7)');
# what follows is hint bits alone
$node->safe_psql('postgres', 'CHECKPOINT');
$first->query_safe('ROLLBACK');
$second->query_safe(q{PREPARE TRANSACTION 'p'});
$node->stop('immediate');
$node->start;
$_->quit foreach $first, $second;
my $third = psql_session($node);
$third->query_until(qr/sent/, "\\echo sent\nINSERT INTO t VALUES (1, 8);\n");
waits_for_lock($node, 'after the crash another waits for its key', 'INSERT INTO t VALUES (1, 8)');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
is($third->query_safe('SELECT * FROM t'), '1|8', '... until the prepared transaction has ended');
$third->quit;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
