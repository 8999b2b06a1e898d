# A session whose inplace.check has failed, in a subtransaction, goes on to say which snapshot
# it has: undo between that one and the last few is given back.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use Test::More;

my $node = new_node('primary', conf => "inplace.undo_worker_delay = 50\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (id int PRIMARY KEY, n int) USING inplace;
	INSERT INTO t SELECT g, g FROM generate_series(1, 100) g;});

my $session = psql_session($node);
my $blocker = psql_session($node);
$blocker->query_safe('BEGIN; REINDEX INDEX t_pkey');
like($session->query(q{
	SET lock_timeout = '100ms';
	DO $$ BEGIN
		PERFORM inplace.check('t');
		PERFORM set_config('test.failed', 'no', false);
	EXCEPTION WHEN lock_not_available THEN
		PERFORM set_config('test.failed', 'yes', false);
	END $$;
	SELECT current_setting('test.failed')}), qr/yes/, 'inplace.check has failed');
$blocker->query_safe('ROLLBACK');

$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$node->safe_psql('postgres', q{
	DO $$ BEGIN
		FOR i IN 1 .. 3000 LOOP UPDATE t SET n = n + 1 WHERE id <= 20; COMMIT; END LOOP;
	END $$});
ok(defined poll_value($node, q{SELECT used_bytes < 1000000 FROM inplace.undo WHERE kind = 'logged' AND used_bytes < 1000000}, 20),
	'its snapshot is known')
  or note one($node, q{SELECT used_bytes FROM inplace.undo WHERE kind = 'logged'});
is($session->query_safe('SELECT sum(n) FROM t') =~ s/\s+$//r, '5050', '... and sees what it did');
$_->quit foreach $session, $blocker;
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
