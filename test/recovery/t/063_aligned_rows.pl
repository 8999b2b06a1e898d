# A value of more than 126 bytes has its row aligned on the page (IP_ALIGNED), and the
# row's place stays so when an update makes the row short, for the rollback needs
# it.  A lock on such a row must not forget that: or others take the room and the
# rollback has none, and replay of a DELETE leaves another header than the
# DELETE did.  A rewrite under an older snapshot pushes versions of both kinds, each of
# which must find room.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('aligned', conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace; CREATE EXTENSION pageinspect');

# (Hints are not replayed.)
sub items { return one($node, "SELECT item, lp_off, lp_len, state, array_remove(flags, 'COMMITTED'), tag, lock_mode FROM inplace.page_items('$_[0]', 0) ORDER BY item") }
sub flags { return one($node, "SELECT flags FROM inplace.page_items('$_[0]', 0) WHERE item = $_[1]") }

# What another session does is told by what it returns: its statements are over then.
sub does
{
	my ($s, $sql) = @_;
	my $got = eval { $s->query($sql) };
	is($s->{stderr}, '', $sql);
	$s->{stderr} = '';
	return $got;
}

# ---- a rollback after others have taken what room there is

$node->safe_psql('postgres', q{
	CREATE TABLE r (id int, v text);
	INSERT INTO r VALUES (1, repeat('a', 61)), (2, repeat('b', 101)), (3, repeat('r', 1000)), (4, repeat('c', 30));
	INSERT INTO r SELECT 99 + i, repeat('x', 100) FROM generate_series(1, 53) i;
	DELETE FROM r WHERE id = 2});
my ($t1, $t2, $t3) = map { psql_session($node) } 1 .. 3;
does($t2, 'BEGIN; SELECT id FROM r WHERE id = 3 FOR KEY SHARE');
does($t1, q{BEGIN; UPDATE r SET v = repeat('s', 20) WHERE id = 3});
like(flags('r', 3), qr/ALIGNED/, 'updated: aligned as before');
# a second locker makes the lock one of several, in a record of its own
does($t3, 'BEGIN; SELECT id FROM r WHERE id = 3 FOR KEY SHARE');
like(flags('r', 3), qr/ALIGNED/, 'locked: aligned as before');
$node->safe_psql('postgres', 'VACUUM r');
# Rows grow until the page is full.
$node->safe_psql('postgres', q{
	DO $$ DECLARE f int;
	BEGIN
		FOR i IN 100 .. 152 LOOP
			SELECT upper - lower INTO f FROM page_header(get_raw_page('r', 0));
			EXIT WHEN f = 0;
			UPDATE r SET v = repeat('x', 100 + least(26, f)) WHERE id = i;
		END LOOP;
	END $$});
is(one($node, q{SELECT upper - lower FROM page_header(get_raw_page('r', 0))}), '0', 'the page is full');
does($t1, 'ROLLBACK');
is(one($node, 'SELECT id, length(v) FROM r WHERE id < 5 ORDER BY id'), "1|61\n3|1000\n4|30", 'rolled back');
foreach my $s ($t2, $t3) { does($s, 'COMMIT'); $s->quit }
$t1->quit;
$node->safe_psql('postgres', 'VACUUM r');
check_clean($node, 'rolled back');

# ---- replay of a DELETE of a row that has been locked

$node->safe_psql('postgres', q{
	CREATE TABLE d (id int, v text);
	INSERT INTO d VALUES (1, repeat('a', 61)), (3, repeat('r', 1000)), (4, repeat('c', 30))});
($t1, $t2, $t3) = map { psql_session($node) } 1 .. 3;
does($t1, 'BEGIN; SELECT txid_current()');
does($t2, 'BEGIN; SELECT id FROM d WHERE id = 3 FOR KEY SHARE');
does($t1, q{UPDATE d SET v = repeat('s', 20) WHERE id = 3; COMMIT});
does($t3, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_am');
like(flags('d', 2), qr/ALIGNED/, 'updated while it is locked: aligned as before');
does($t2, 'COMMIT');
$node->safe_psql('postgres', 'DELETE FROM d WHERE id = 3');
my $deleted = items('d');
crash_and_restart($node);
eval { $_->quit } foreach $t1, $t2, $t3;
is(items('d'), $deleted, 'replay of the DELETE comes to the same page');
is(one($node, 'SELECT string_agg(id::text, $$,$$ ORDER BY id) FROM d'), '1,4', 'deleted');
check_clean($node, 'deleted');

# ---- a rewrite that pushes versions which are aligned onto rows which are not

$node->safe_psql('postgres', q{
	CREATE TABLE p (id int, v text) WITH (fillfactor = 40);
	INSERT INTO p SELECT i, repeat('a', 30 + i % 17) FROM generate_series(1, 30000) i});
my $before = contents($node, 'p');
my $query = q{SELECT count(*) || ' ' || md5(string_agg(t::text, E'\n' ORDER BY t::text COLLATE "C")) FROM p t};
my $old = psql_session($node);
# (which has no lock on the table yet)
does($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_am');
$node->safe_psql('postgres', q{UPDATE p SET v = repeat('b', 128 + id % 23) WHERE id % 3 = 0; ALTER TABLE p SET (fillfactor = 100)});
my $now = contents($node, 'p');
is(one($node, 'VACUUM FULL p'), '', 'VACUUM FULL');
is(contents($node, 'p'), $now, 'VACUUM FULL: all rows');
is(does($old, $query), $before, 'VACUUM FULL: the old snapshot sees what it saw');
$old->quit;
check_clean($node, 'VACUUM FULL');
crash_and_restart($node);
is(contents($node, 'p'), $now, 'VACUUM FULL and a crash: all rows');
check_clean($node, 'VACUUM FULL and a crash');
$node->stop;
check_log($node);
done_testing();
