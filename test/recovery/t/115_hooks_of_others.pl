# Extensions with hooks of their own, preloaded before or after ours, or loaded by a
# session: what they see of the planner's indexes (pg_hint_plan compares the methods
# of a child's indexes with those of its parent's), and CREATE INDEX and VACUUM FULL
# where one of them executes it without asking us (as TimescaleDB does).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('hooks', conf => q{autovacuum = off});
my $lib = build_module($node, 'late_hooks');
$node->start;
one($node, q{
	CREATE EXTENSION inplace;
	SET default_table_access_method = inplace;
	CREATE TABLE plain (a int, b int);
	INSERT INTO plain SELECT g, g FROM generate_series(1, 10) g;
	CREATE INDEX plain_a ON plain (a);
	CREATE TABLE parent (a int, b int);
	CREATE INDEX parent_a ON parent (a);
	CREATE TABLE child () INHERITS (parent);
	INSERT INTO child SELECT g, g FROM generate_series(1, 10) g;
	CREATE INDEX child_a ON child (a);
	CREATE UNIQUE INDEX child_b ON child (b);
	CREATE TABLE parted (a int, b int) PARTITION BY RANGE (a);
	CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (100);
	INSERT INTO parted SELECT g, g FROM generate_series(1, 10) g;
	CREATE INDEX parted_a ON parted (a);
	SET inplace.default_index_method = btree;
	CREATE TABLE of_btree (a int, b int);
	CREATE INDEX of_btree_a ON of_btree (a);
	CREATE TABLE its_child () INHERITS (of_btree);
	INSERT INTO its_child SELECT g, g FROM generate_series(1, 10) g;
	RESET inplace.default_index_method;
	CREATE INDEX its_child_a ON its_child (a);
	ANALYZE});
my $unique = pg_major() < 18 ? 'btree' : 'inplace_btree';

# What statements print, notices too.
my $load;
sub printed
{
	my ($sql) = @_;
	my ($out, $err) = ('', '');
	$node->psql('postgres', "SET client_min_messages = warning; $load; SET client_min_messages = notice; SET enable_seqscan = off; $sql",
		stdout => \$out, stderr => \$err);
	$err =~ s/^psql:.*?: //mg;
	$err =~ s/^NOTICE: +//mg;
	return join(' | ', grep { $_ ne '' } $err, $out) =~ s/\n/, /gr;
}

sub made
{
	my ($index) = @_;
	my $am = one($node, "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = '$index'::regclass");
	one($node, "DROP INDEX $index");
	return $am;
}

sub all_of_it
{
	my ($how) = @_;

	is(printed('SELECT b FROM parent WHERE a = 5'), "parent_a is inplace_btree, child_b is $unique, child_a is inplace_btree | 5",
		"$how: a child's indexes are of the method that its parent's are");
	is(printed('SELECT b FROM parted WHERE a = 5'), 'part_a_idx is inplace_btree | 5', "$how: so are a partition's");
	is(printed('SELECT b FROM of_btree WHERE a = 5'), 'of_btree_a is btree, its_child_a is btree | 5', "$how: those of a parent with btrees are btrees");
	is(printed('SELECT b FROM plain WHERE a = 5'), 'plain_a is btree | 5', "$how: and so are those of other tables");
	is(printed('SELECT x.b FROM (SELECT * FROM plain UNION ALL SELECT * FROM plain) x WHERE x.a = 5'),
		'plain_a is btree, plain_a is btree | 5, 5', "$how: and of the parts of a UNION ALL");
	is(printed(q{SELECT b FROM parted WHERE (a, b) > (9, 9)}) =~ s/ is \w+//r, 'part_a_idx | 10', "$how: a row comparison");

	my $by = "executed by another extension";
	is(printed('CREATE INDEX made ON its_child (b)'), $by, "$how: another executes CREATE INDEX");
	is(made('made'), 'inplace_btree', "$how: it is inplace_btree");
	is(printed('CREATE INDEX made ON its_child (b, a); SELECT 1'), "$by | 1", "$how: again");
	is(made('made'), 'inplace_btree', "$how: it is inplace_btree again");
	is(printed(q{DO $$ BEGIN CREATE INDEX made ON its_child (b); EXECUTE 'CREATE INDEX made2 ON its_child (a)'; END $$}), "$by, $by", "$how: in a block");
	is(made($_), 'inplace_btree', "$how: $_ of the block") foreach qw(made made2);
	is(printed(q{CREATE SCHEMA s CREATE TABLE its_other (a int) USING inplace CREATE INDEX made ON its_other (a)}), $by, "$how: with a schema");
	is(made('s.made'), 'inplace_btree', "$how: that of the schema");
	is(printed('SET inplace.default_index_method = btree; CREATE INDEX made ON its_child (b)'), $by, "$how: where btree is wanted");
	is(made('made'), 'btree', "$how: it is btree");
	is(printed('CREATE INDEX made ON plain (b)'), '', "$how: a table that the other leaves alone");
	is(made('made'), 'inplace_btree', "$how: its index");
	is(printed($_) =~ s/^(one of its tables, )+//r, $by, "$how: another executes $_") foreach 'VACUUM FULL', 'VACUUM (FULL, ANALYZE) plain, inplace.undo_log', 'VACUUM plain', 'VACUUM FULL inplace.undo_log';
	is(printed('BEGIN; VACUUM FULL; COMMIT') =~ s/.*(cannot run inside a transaction block).*/$1/r, 'cannot run inside a transaction block', "$how: VACUUM in a transaction");
	one($node, 'DROP SCHEMA s CASCADE');
	return;
}

$load = "LOAD '$lib'";
all_of_it('loaded by the session');

$load = 'SELECT';
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'inplace, $lib'");
$node->restart;
all_of_it('preloaded after ours');

$node->append_conf('postgresql.conf', "shared_preload_libraries = '$lib, inplace'");
$node->restart;
all_of_it('preloaded before ours');

# one more library above those above which we are already
my @more = map { my $more = $lib . $_; system('cp', "$lib.so", "$more.so") == 0 or die; $more } 1 .. 2;
$load = join('; ', 'CREATE TEMP TABLE x (a int)', map { "LOAD '$_'; CREATE TEMP TABLE x$_ (a int)" =~ s{x/\S*/}{x_}r } @more);
is(printed('CREATE INDEX made ON its_child (b)'), 'executed by another extension', 'loaded one after the other');
is(made('made'), 'inplace_btree', 'the index then');

check_clean($node, 'all tables');
check_log($node);
done_testing();
