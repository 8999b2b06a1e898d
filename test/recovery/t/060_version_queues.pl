# Somebody waits for a FOR KEY SHARE of a row, to delete it, while others go on to
# update it, waiting for each other, so often that version tags come again several
# times: they do not get stuck behind him, as they would not on heap, and he gets
# the row in the end.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => q{
autovacuum = off
fsync = off
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

foreach my $am (qw(heap inplace))
{
	$node->safe_psql('postgres', qq{
		CREATE TABLE $am (id int PRIMARY KEY, n int NOT NULL) USING $am;
		INSERT INTO $am VALUES (1, -1);
		UPDATE $am SET n = 0;	-- a row's first version has a tag of its own
	});
	my $holder = psql_session($node);
	$holder->query("BEGIN");
	$holder->query("SELECT id FROM $am WHERE id = 1 FOR KEY SHARE");

	my ($in, $out) = ('', '');
	my $delete = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "DELETE FROM $am WHERE id = 1 RETURNING n" ],
		'<', \$in, '>', \$out, '2>&1');
	waits_for_lock($node, "$am: the delete waits", "DELETE FROM $am");

	# (who still means the version that he waits for would be behind him on heap, too)
	$node->safe_psql('postgres', "UPDATE $am SET n = n + 1 WHERE id = 1");

	# four at a time, so that there is nearly always somebody in a queue
	my $script = pgbench_script($node, "count_$am", "BEGIN;\nUPDATE $am SET n = n + 1 WHERE id = 1;\nEND;\n");
	my ($stdout, $stderr);
	ok(IPC::Run::run([ 'pgbench', '-n', '-c', '4', '-t', '500', '-f', $script, $node->connstr('postgres') ],
			'>', \$stdout, '2>', \$stderr, init => sub { $ENV{PGOPTIONS} = '-c lock_timeout=60s' }),
		"$am: nobody is stuck behind it") or diag($stderr);
	is(one($node, "SELECT n FROM $am"), 2001, "$am: 2001 updates");
	is(one($node, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DELETE FROM $am%' AND wait_event_type = 'Lock'"), 1,
		"$am: it still waits");

	$holder->query("COMMIT");
	$delete->finish;
	is($out, "2001\n", "$am: it deletes the newest version");
	is(one($node, "SELECT count(*) FROM $am"), 0, "$am: the row is gone");
	$holder->quit;
}
check_clean($node, 'queues of versions');
check_log($node);
$node->stop;
done_testing();
