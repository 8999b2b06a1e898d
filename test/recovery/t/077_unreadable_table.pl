# A rolled-back transaction cannot be restored, for the table's file cannot be read: undo of
# other tables is given back all the same, by a worker that stays, and the rows come back when the
# file does.  Neither does a timeout meant for sessions end the worker.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('unreadable', conf => "max_prepared_transactions = 5\ninplace.undo_worker_delay = 50\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE bad (id int PRIMARY KEY, n int, f text) USING inplace;
	CREATE TABLE good (id int PRIMARY KEY, n int, f text) USING inplace;
	INSERT INTO bad SELECT g, 0, repeat('x', 100) FROM generate_series(1, 60000) g;
	INSERT INTO good SELECT g, 0, repeat('x', 100) FROM generate_series(1, 2000) g;
	BEGIN;
	UPDATE bad SET n = n + 1, f = repeat('y', 100);
	PREPARE TRANSACTION 'p';
	CHECKPOINT;});
my $file = $node->data_dir . '/' . one($node, q{SELECT pg_relation_filepath('bad')});
$node->stop;
rename $file, "$file.away" or die "$file: $!";
$node->start;

my $begin = -s $node->logfile;
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
ok(defined poll_value($node, q{SELECT extents_to_restore > 16 FROM inplace.undo WHERE kind = 'logged'}, 10),
	'more extents than a few are to be restored');

# more undo than there can be if nothing is given back
my $size = one($node, q{SELECT size_bytes FROM inplace.undo WHERE kind = 'logged'});
my $worker = q{SELECT worker_pid FROM inplace.undo WHERE kind = 'logged'};
my %pids;
foreach my $i (1 .. 40)
{
	$node->safe_psql('postgres', "UPDATE good SET n = n + 1, f = repeat(n::text || '$i', 50)");
	$pids{$_} = 1 foreach grep { $_ ne '' } one($node, $worker);
	select(undef, undef, undef, 0.1);
}
cmp_ok(one($node, q{SELECT size_bytes FROM inplace.undo WHERE kind = 'logged'}), '<', $size + 4 * 1024 * 1024,
	"undo of another table is given back");
is(scalar(keys %pids), 1, 'by one worker') or diag(join(' ', keys %pids));
my $log = slurp_file($node->logfile, $begin);
like($log, qr/could not open file/, 'what is wrong is in the log');
my $errors = () = $log =~ /ERROR:  could not open file/g;
cmp_ok($errors, '<', 200, '... not again and again');

# the table's own rows are there again with the file
$node->stop;
rename "$file.away", $file or die "$file: $!";
$node->start;
ok(defined poll_value($node, q{SELECT extents_to_restore = 0 FROM inplace.undo WHERE kind = 'logged'}, 30), 'restored in the end');
is(one($node, 'SELECT count(*), sum(n), min(f) = max(f) FROM bad'), '60000|0|t', 'all rows are as before');
check_clean($node, 'restored');
ok(defined undo_floor_reached($node, 'all of it', 20), 'no undo is left');

# ---- a timeout that is meant for sessions
SKIP:
{
	skip 'no transaction_timeout before 17', 2 if pg_major($node) < 17;

	# (our own queries may take longer)
	local $ENV{PGOPTIONS} = '-c transaction_timeout=0';
	$begin = -s $node->logfile;
	$node->append_conf('postgresql.conf', "transaction_timeout = 20\n");
	$node->reload;
	$node->safe_psql('postgres', q{
		BEGIN;
		UPDATE bad SET n = n + 1, f = repeat('y', 100);
		ROLLBACK;});
	ok(defined poll_value($node, q{SELECT extents_to_restore = 0 FROM inplace.undo WHERE kind = 'logged'}, 30), 'restored beside transaction_timeout');
	unlike(slurp_file($node->logfile, $begin), qr/terminating (connection|background worker) due to transaction timeout/, 'the worker knows none');
}

$node->stop;
done_testing();
