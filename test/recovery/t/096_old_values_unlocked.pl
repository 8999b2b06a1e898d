# With REPLICA IDENTITY FULL an update or a delete fetches the old row's values from the
# TOAST table, which may have to wait for somebody who has that locked.  It waits with
# nothing locked: others come to the row's page, and it can be cancelled.  (Heap waits with
# the page locked, and nothing ends it; so heap is asked only what is decoded.)

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('old_values', conf => q{
wal_level = logical
autovacuum = off
});
$node->start;
one($node, 'CREATE EXTENSION inplace');
one($node, q{SELECT pg_create_logical_replication_slot('s', 'test_decoding')});

my @statements = (
	[ update => q{UPDATE %s SET n = n + 1 WHERE id = 1} ],
	[ value => q{UPDATE %s SET v = repeat('w', 3000) WHERE id = 1} ],
	[ move => q{UPDATE %s SET k = k + 1 WHERE id = 1} ],
	[ delete => q{DELETE FROM %s WHERE id = 1} ]);

# A statement that needs the old row's values, while they cannot be had.
sub waits_unlocked
{
	my ($what, $sql, $t, $toast) = @_;
	my $holder = psql_session($node);
	$holder->query_safe($_) foreach ('BEGIN', "REINDEX TABLE $toast");

	like(sqlstate_of($node, "SET statement_timeout = '1s'; $sql"), qr/57014/, "$what: cancelled by the timeout");
	my $waiter = psql_session($node);
	my $pid = $waiter->query_safe('SELECT pg_backend_pid()');
	$waiter->query_until(qr/begins/, "\\echo begins\n$sql;\n");
	ok(defined poll_value($node, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid", 60), "$what: waits");
	is(one($node, "SET statement_timeout = '60s'; SELECT count(*) FROM $t"), '2', "$what: others read");
	is(one($node, "SET statement_timeout = '60s'; UPDATE $t SET n = n + 1 WHERE id = 2"), '', "$what: others write");
	one($node, "SELECT pg_terminate_backend($pid)");
	ok(defined poll_value($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)", 60), "$what: terminated");
	eval { $waiter->quit };

	$holder->query_safe('COMMIT');
	$holder->quit;
	return;
}

my %decoded;
foreach my $am (qw(heap inplace))
{
	my $t = "t_$am";
	one($node, $_) foreach ("CREATE TABLE $t (id int, n int, k int, v text) USING $am",
		"ALTER TABLE $t ALTER v SET STORAGE external",
		"CREATE INDEX ON $t USING btree (k)",
		"ALTER TABLE $t REPLICA IDENTITY FULL",
		"INSERT INTO $t VALUES (1, 1, 1, repeat('v', 3000)), (2, 2, 2, 'short')");
	my $toast = one($node, "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = '$t'");
	one($node, q{SELECT count(*) FROM pg_logical_slot_get_changes('s', NULL, NULL)});

	foreach my $s (@statements)
	{
		my ($what, $sql) = ($s->[0], sprintf($s->[1], $t));
		waits_unlocked($what, $sql, $t, $toast) if $am eq 'inplace';
		one($node, "UPDATE $t SET n = n + 1 WHERE id = 2") if $am eq 'heap';
		is(one($node, $sql), '', "$am, $what: done");
	}
	$decoded{$am} = one($node, q{SELECT string_agg(regexp_replace(replace(data, 't_inplace', 't_heap'), '(vvv|www)[vw]*', '\1*', 'g'), E'\n')
		FROM pg_logical_slot_get_changes('s', NULL, NULL, 'include-xids', '0') WHERE data !~ '^(BEGIN|COMMIT)'});
}
is($decoded{inplace}, $decoded{heap}, 'decoded as on heap');
like($decoded{heap}, qr/old-key: .*vvv\*/, 'with the old values');

check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
