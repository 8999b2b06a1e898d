# A row inserted by INSERT ... ON CONFLICT has a token, and a command id, where others have
# the latter alone.  That it has become an ordinary row is not logged: after a crash it
# may be committed and have them still.  Nobody is to take them for something else.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# (with checksums an image of the page would tell that a row is not speculative any more)
my $node = new_node('primary', conf => 'autovacuum = off', extra => pg_major() >= 18 ? ['--no-data-checksums'] : []);
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c int) USING inplace;
	CREATE TABLE other (x int) USING inplace;});

sub flags
{
	return $node->safe_psql('postgres', "SELECT array_to_string(flags, ' ') || ' ' || coalesce(cid::text, 'none') FROM inplace.page_items('t', 0) WHERE item = 2");
}

my ($first, $second) = map { psql_session($node) } 1 .. 2;
$first->query_safe($_) foreach 'BEGIN', 'INSERT INTO t VALUES (100, 7, 0)';
# The low byte of the command id looks like the mark of a swept row, that of the token
# like nothing in particular.  Its row waits for the first one's key.
$second->query_until(qr/sent/, q{BEGIN;
	DO $$ BEGIN FOR i IN 1 .. 257 LOOP INSERT INTO other VALUES (i); END LOOP; END $$;
	\echo sent
	INSERT INTO t VALUES (1, 7, 0) ON CONFLICT (a) DO NOTHING;
});
waits_for_lock($node, 'a speculative row waits', 'INSERT INTO t VALUES (1, 7, 0)');
like(flags(), qr/FRESH SPECULATIVE none$/, '... and shows neither token nor command');
is($node->safe_psql('postgres', "SELECT version, cid IS NOT NULL, operation, status FROM inplace.versions('t', '(0,2)')"),
	'0|t|insert|in progress', '... but the latter as one version');
$node->safe_psql('postgres', 'CHECKPOINT');
$first->query_safe('ROLLBACK');
$second->query_safe(q{PREPARE TRANSACTION 'p'});
$node->stop('immediate');
$node->start;
$_->quit foreach $first, $second;
like(flags(), qr/SPECULATIVE/, 'after the crash it is speculative');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '0', '... and nobody sees it');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});

is($node->safe_psql('postgres', 'SELECT cmin, cmax, xmax, a, b FROM t'), '0|0|0|1|7', 'it is committed, and has no command');
like(flags(), qr/SPECULATIVE/, '... though it is speculative');
$node->safe_psql('postgres', 'BEGIN; SELECT * FROM t FOR UPDATE; UPDATE t SET c = 1; UPDATE t SET c = 2; ROLLBACK');
is($node->safe_psql('postgres', 'SELECT cmin, cmax, a, b, c FROM t'), '0|0|1|7|0', 'a change is rolled back');
ok($node->poll_query_until('postgres', 'SELECT sum(extents_to_restore) = 0 FROM inplace.undo'), '... on its page, too');
is($node->safe_psql('postgres', 'SELECT cmin, cmax, a, b, c FROM t'), '0|0|1|7|0', '... and the row is as before');
unlike(flags(), qr/SPECULATIVE/, '... but an ordinary one');
is($node->safe_psql('postgres', q{SELECT version, operation, status, contents FROM inplace.versions('t', '(0,2)')}),
	'0|insert|committed|(1,7,0)', 'it is shown as one');
$node->safe_psql('postgres', 'UPDATE t SET c = 3');
check_clean($node, 'after an update');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT a, b, c FROM t'), '1|7|3', 'the change is there after another crash');
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
