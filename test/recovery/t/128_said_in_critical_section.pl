# The server says something to the client in a critical section: that it makes a new WAL segment,
# for the record of a change.  It is kept until the page is unlocked, with no memory context
# asked for room, and then sent.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Small segments, none of which is there before; and nobody but who makes a record writes WAL.
my $node = new_node('said', extra => ['--wal-segsize=1'], conf => q{
	wal_buffers = '32kB'
	wal_writer_delay = '10s'
	wal_recycle = off
	autovacuum = off
	wal_consistency_checking = ''
	log_min_messages = warning
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE t (n int, s text) USING inplace;
	INSERT INTO t SELECT i, repeat('x', 900) FROM generate_series(1, 5000) i;
});

my ($ret, $out, $err) = $node->psql('postgres', q{
	SET client_min_messages = debug2;
	UPDATE t SET s = repeat('y', 900) || n;
	UPDATE t SET s = repeat('z', 910) || n;
	UPDATE t SET s = repeat('w', 920) || n;
	SELECT count(*) FROM t WHERE s LIKE 'w%';
});
is($ret, 0, 'the session goes on');
is($out, '5000', '... and its updates are done');
my $made = () = $err =~ /creating and filling new WAL file/g;
cmp_ok($made, '>', 3, 'it is told of WAL segments');
$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP/, 'no failed assertion');
done_testing();
