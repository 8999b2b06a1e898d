# A large value is compressed with its row unlocked.  Sessions that lock the row all the time, for
# the sake of a foreign key, do not keep the update from coming to its end, nor from being cancelled.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use Test::More;

my $node = new_node('main', conf => "autovacuum = off\nwal_consistency_checking = ''\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION inplace;
CREATE TABLE p (id int PRIMARY KEY, v text, w text) USING inplace;
ALTER TABLE p ALTER w SET STORAGE EXTERNAL;
CREATE TABLE c (pid int REFERENCES p) USING inplace;
INSERT INTO p VALUES (1, repeat(md5('1'), 300000), repeat('w', 5000)), (2, '', '');
});

my $load = start_pgbench($node, '-c', '4', '-T', '240', '-f', pgbench_script($node, 'children', 'INSERT INTO c VALUES (1);'));
ok(defined poll_value($node, 'SELECT count(*) > 100 FROM c', 60), 'the load is on');
foreach my $value (q{repeat(md5(n::text), 300000)}, q{repeat(md5(n::text), 100)})
{
	foreach my $n (1 .. 3)
	{
		my ($rc, $out, $err) = $node->psql('postgres',
			"SET statement_timeout = '60s'; UPDATE p SET v = (SELECT $value FROM generate_series($n, $n) n) WHERE id = 1");
		is("$rc $err", '0 ', "$value: update $n comes to its end");
	}
}
is(one($node, q{SELECT v = repeat(md5('3'), 100) AND w = repeat('w', 5000) FROM p WHERE id = 1}), 't', 'the row has what was written last');
ok($load->{h}->pumpable, 'the load is still on');
my ($rc, $out, $err) = $node->psql('postgres',
	q{SET statement_timeout = '50ms'; UPDATE p SET v = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400000) i) WHERE id = 1});
like($err, qr/canceling statement due to statement timeout/, 'an update is cancelled');
$load->{h}->signal('TERM');
end_pgbench($load);
clients_are_gone($node, 'at the end');
check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
