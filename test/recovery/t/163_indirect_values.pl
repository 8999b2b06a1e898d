# Values that are pointers to memory come to a TOAST table of ours, by INSERT, UPDATE and a rewrite.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', conf => "inplace.toast_in_place = on\n");
my $lib = build_module($node, 'indirect');
$node->start;
one($node, qq{
	CREATE EXTENSION inplace;
	CREATE FUNCTION indirect(text) RETURNS text LANGUAGE C STRICT AS '$lib';
	CREATE TABLE t (id int, a text, b text) USING inplace;
	ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
	INSERT INTO t SELECT g, indirect(repeat(g::text, 5000)), indirect(repeat(md5(g::text), 300)) FROM generate_series(1, 9) g});
is(one($node, q{SELECT count(*) FROM t WHERE a = repeat(id::text, 5000) AND b = repeat(md5(id::text), 300)}), '9', 'inserted');
one($node, q{UPDATE t SET a = indirect(overlay(a PLACING 'new' FROM 3000))});
is(one($node, q{SELECT count(*) FROM t WHERE a = overlay(repeat(id::text, 5000) PLACING 'new' FROM 3000)}), '9', 'updated');
one($node, q{UPDATE t SET a = indirect('short'), b = indirect(a)});
is(one($node, q{SELECT count(*) FROM t WHERE a = 'short' AND b = overlay(repeat(id::text, 5000) PLACING 'new' FROM 3000)}), '9', 'shortened');
one($node, q{ALTER TABLE t ALTER a TYPE text USING indirect(b)});
is(one($node, q{SELECT count(*) FROM t WHERE a = b AND length(a) = 5000}), '9', 'rewritten');
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
