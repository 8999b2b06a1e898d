# Where a page was last found in shared buffers is tried first when somebody comes to a row.
# The page may have gone meanwhile, or the buffer have one with the same number, of another
# table or of the same file of another database: each answer must be the right one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

# 64 buffers in the first part, for tables of some 600 pages and their indexes.
my $node = new_node('primary', conf => q{
default_table_access_method = 'inplace'
shared_buffers = '512kB'
max_connections = 20
autovacuum_naptime = '1s'
});
$node->start;
$node->safe_psql('postgres', q{CREATE EXTENSION inplace; CREATE EXTENSION amcheck;});

my @tables = qw(a b c);

sub make
{
	my ($table, $rows) = @_;
	return qq{
		CREATE TABLE $table (id int, owner text, k int, w text);
		INSERT INTO $table SELECT i, current_database() || '.$table', 0, repeat('x', 300) FROM generate_series(1, $rows) i;
		CREATE INDEX ${table}_id ON $table (id);
		CREATE INDEX ${table}_k ON $table (k);};
}

# A table's rows are its own, all there, and the same by either index.
sub look
{
	my ($db, $rows, @which) = @_;
	foreach my $table (@which)
	{
		my $whole = one($node, "SELECT count(*), min(id), max(id), min(owner), max(owner), sum(k) FROM $table", $db);
		like($whole, qr/^$rows\|1\|$rows\|$db\.$table\|$db\.$table\|/, "$db.$table has its rows");
		foreach my $condition ('id BETWEEN 0 AND 1000000000', 'k BETWEEN -1000000000 AND 1000000000')
		{
			is( one($node, "SET enable_seqscan = off; SET enable_bitmapscan = off;
				SELECT count(*), min(id), max(id), min(owner), max(owner), sum(k) FROM $table WHERE $condition", $db),
				$whole, "$db.$table where $condition");
		}
		is(one($node, "SELECT count(*) FROM inplace.check('$table')", $db), '0', "$db.$table is sound");
	}
	return;
}

# By index, here and there; each answer is looked at.  The pages change their places.
sub script
{
	my ($db, $rows) = @_;
	return join('', map { qq{\\set id random(1, $rows)
\\set other random(1, $rows)
UPDATE $_ SET k = k + :other WHERE id = :id;
SELECT 1 / (owner = '$db.$_' AND id = :other)::int FROM $_ WHERE id = :other;
SELECT 1 / bool_and(owner = '$db.$_' AND k = :id)::int FROM $_ WHERE k = :id HAVING count(*) > 0;
} } @tables);
}

sub load
{
	my ($transactions, $rows, @dbs) = @_;
	my @running;
	foreach my $db (@dbs)
	{
		my $file = $node->basedir . "/$db.sql";
		append_to_file($file, script($db, $rows)) unless -e $file;
		push @running, IPC::Run::start(
			[ 'pgbench', '-n', '-M', 'prepared', '-c', 3, '-t', $transactions, '-f', $file, '-h', $node->host, '-p', $node->port, $db ],
			'>', \my $out, '2>&1');
	}
	foreach my $i (0 .. $#dbs)
	{
		ok($running[$i]->finish, "load in $dbs[$i]");
	}
	return;
}

my $small = 10_000;
$node->safe_psql('postgres', make($_, $small)) foreach @tables;
load(1500, $small, 'postgres');
look('postgres', $small, @tables);

# New files, of other tables too, in the buffers of those that went.
$node->safe_psql('postgres', 'VACUUM FULL a; CLUSTER b USING b_id; TRUNCATE c; DROP TABLE c;' . make('c', $small));
load(700, $small, 'postgres');
look('postgres', $small, @tables);

# Two databases whose files have the same numbers, with room for all of them.
$node->append_conf('postgresql.conf', "shared_buffers = '64MB'");
$node->restart;
my $few = 300;
$node->safe_psql('postgres', 'CREATE DATABASE one');
$node->safe_psql('one', 'CREATE EXTENSION inplace');
$node->safe_psql('one', make($_, $few)) foreach @tables;
$node->safe_psql('postgres', 'CREATE DATABASE two TEMPLATE one');
$node->safe_psql('two', join('', map { "UPDATE $_ SET owner = 'two.$_';" } @tables));
is( one($node, q{SELECT pg_relation_filenode('a')}, 'two'), one($node, q{SELECT pg_relation_filenode('a')}, 'one'),
	'files of the same number');
load(1500, $few, 'one', 'two');
look($_, $few, @tables) foreach 'one', 'two';

check_log($node);
$node->stop;
done_testing();
