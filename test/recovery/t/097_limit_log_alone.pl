# The message of inplace.undo_limit that names holders has the text of their queries.  That is
# for the log: who makes the message need not be allowed to see it.  It is cut between
# characters.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('log_alone', conf => q{
default_table_access_method = 'inplace'
wal_consistency_checking = ''
autovacuum = off
inplace.undo_limit = '2MB'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE big (id int, v text);
	INSERT INTO big SELECT i, repeat('a', 100) FROM generate_series(1, 30000) i;
	CREATE ROLE nobody LOGIN;
	GRANT UPDATE ON big TO nobody});

# 300 bytes of characters of three bytes, which 200 does not divide
my $holder = psql_session($node);
$holder->query_safe($_) foreach ('BEGIN ISOLATION LEVEL REPEATABLE READ',
	qq{SELECT 'secret words', '} . ("\xe2\x82\xac" x 100) . q{'});

my $from = -s $node->logfile;
my ($rc, $out, $err) = $node->psql('postgres', q{
	SET SESSION AUTHORIZATION nobody;
	SET client_min_messages = log;
	UPDATE big SET v = repeat('b', 100)}, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($err, qr/LOG: .*has reached "inplace\.undo_limit"/, 'the client gets the message');
like($err, qr/ERROR:  53400/, 'and the error');
unlike($err, qr/secret|DETAIL|needs undo/, 'but not the text of another session');

my $log = slurp_file($node->logfile, $from);
like($log, qr/Process \d+ needs undo from transaction \d+ on \(age \d+\): SELECT 'secret words'/, 'the log has it');
my ($text) = $log =~ /: (SELECT 'secret words'.*)/;
cmp_ok(length($text), '<=', 200, 'cut');
cmp_ok(length($text), '>', 190, '... but not by more than a character');
ok($text =~ /\A[\x00-\x7f]*(\xe2\x82\xac)+\z/, '... between characters');
$holder->quit;

check_clean($node, 'at the end');
$node->stop;
check_log($node);
done_testing();
