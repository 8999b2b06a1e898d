# The same tables on two servers, of heap on one and inplace on the other, that
# both are written to: each takes from the other what was not taken from itself
# (origin = none, from 16 on; before that from one to the other only).  One
# table has no key: its rows are found by all their columns, with the help of an
# index if the server knows how (18: an inplace_btree too).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $major = pg_major();
my $both = $major >= 16;
my %am = (one => 'heap', other => 'inplace');
my %node;
foreach my $name (qw(one other))
{
	$node{$name} = new_node($name, conf => "wal_level = logical\nwal_retrieve_retry_interval = '100ms'\n",
		allows_streaming => 'logical');
	$node{$name}->start;
	is(one($node{$name}, qq{
		CREATE EXTENSION inplace;
		SET default_table_access_method = $am{$name};
		CREATE TABLE k (id int PRIMARY KEY, who text, n int, v text);
		CREATE TABLE f (who text, n int, v text);
		ALTER TABLE f REPLICA IDENTITY FULL;
		CREATE INDEX ON k (n);
		CREATE INDEX f_n ON f (n);
		CREATE PUBLICATION p FOR TABLE k, f}), '', "$name: $am{$name} tables");
}
my ($one, $other) = @node{qw(one other)};
one($one, q{
	INSERT INTO k SELECT i, CASE i % 2 WHEN 0 THEN 'one' ELSE 'other' END, i, 'first' FROM generate_series(1, 400) i;
	INSERT INTO f SELECT CASE i % 2 WHEN 0 THEN 'one' ELSE 'other' END, i, nullif('first' || i % 3, 'first0') FROM generate_series(1, 5000) i;
});
my $origin = $both ? ', origin = none' : '';
sub subscribe
{
	my ($to, $from, $copy) = @_;
	my $connstr = $node{$from}->connstr . ' dbname=postgres';
	unlike(one($node{$to}, "SET client_min_messages = error;
		CREATE SUBSCRIPTION s_$to CONNECTION '$connstr' PUBLICATION p WITH (copy_data = $copy$origin)"), qr/ERROR/, "$to takes from $from");
	$node{$to}->wait_for_subscription_sync($node{$from}, "s_$to");
}
subscribe('other', 'one', 'true');
subscribe('one', 'other', 'false') if $both;

sub same
{
	my ($what) = @_;
	# what comes of what was taken has to be through as well
	foreach (1 .. 2)
	{
		$one->wait_for_catchup('s_other');
		$other->wait_for_catchup('s_one') if $both;
	}
	foreach my $t (qw(k f))
	{
		my $q = "SELECT count(*), md5(string_agg(x::text, ';' ORDER BY x::text)) FROM $t x";
		is(one($other, $q), one($one, $q), "$what: $t");
	}
}
same('copied');

# each changes its own rows, both at the same time
foreach my $round (1 .. 4)
{
	my $id = 1000 * $round;
	foreach my $name ($both ? qw(one other) : 'one')
	{
		my $first = $id + ($name eq 'one' ? 0 : 500);
		is(one($node{$name}, qq{
			INSERT INTO k SELECT i, '$name', i, 'new' FROM generate_series($first, $first + 20) i;
			UPDATE k SET n = n + 1, v = repeat('$name', $round) WHERE who = '$name' AND id % 3 = $round % 3;
			BEGIN;
			UPDATE k SET v = repeat(md5(id::text), 100) WHERE who = '$name' AND id % 50 = $round;
			SAVEPOINT a;
			DELETE FROM k WHERE who = '$name';
			ROLLBACK TO a;
			UPDATE k SET id = id + 100000 WHERE who = '$name' AND id % 40 = $round;
			COMMIT;
			DELETE FROM k WHERE who = '$name' AND id % 37 = $round;
			UPDATE f SET v = 'v$round' WHERE who = '$name' AND n % 500 < 4;
			UPDATE f SET n = n + 1 WHERE who = '$name' AND n % 1000 < 4;
			DELETE FROM f WHERE who = '$name' AND n % 700 = $round;
			INSERT INTO f SELECT '$name', i, NULL FROM generate_series(1, 3) i;
		}), '', "$name: changes, round $round");
	}
	same("round $round");
}

my $errors = 'SELECT coalesce(sum(apply_error_count + sync_error_count), 0) FROM pg_stat_subscription_stats';
is(one($_, $errors), '0', $_->name . ': no error in applying') foreach $one, $other;
is(one($other, q{SELECT am.amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.relname = 'f_n'}), 'inplace_btree', 'the index is an inplace_btree');
if ($major >= 18)
{
	ok($other->poll_query_until('postgres', q{SELECT idx_scan > 0 FROM pg_stat_user_indexes WHERE indexrelname = 'f_n'}),
		'rows without a key are found by it');
}
check_clean($other, 'at the end');
check_log($_) foreach $one, $other;
$_->stop foreach $one, $other;
done_testing();
