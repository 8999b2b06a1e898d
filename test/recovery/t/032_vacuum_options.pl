# VACUUM's options, messages, progress and costs: as on a heap table of the
# same history.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('vacuum_options', conf => q{
autovacuum = off
min_parallel_index_scan_size = 0
max_parallel_maintenance_workers = 4
max_worker_processes = 16
autovacuum_freeze_max_age = 100000
track_io_timing = on
});
$node->start;
my $pg = pg_major();
my %am = (i => 'inplace', h => 'heap');

# What VACUUM VERBOSE says about one table, with its TOAST table or not.
sub vacuum
{
	my ($table, $options, $before) = @_;
	my @options = ('VERBOSE', $options ? $options : ());
	my ($out, $err) = run_command([ 'psql', '-X', '-d', $node->connstr('postgres'),
		($before ? ('-c', $before) : ()), '-c', 'VACUUM (' . join(', ', @options) . ") $table" ]);
	return $err;
}

# The report on that table alone.
sub report
{
	my ($text, $table) = @_;
	my ($part) = $text =~ /finished vacuuming "postgres\.public\.$table": (.*?)(?=^INFO|\z)/ms;
	return $part // "no report in: $text";
}

sub number
{
	my ($text, $table, $pattern) = @_;
	my ($n) = report($text, $table) =~ $pattern;
	return $n // -1;
}

sub make
{
	my ($rows) = @_;
	foreach my $t (sort keys %am)
	{
		$node->safe_psql('postgres', $_) foreach ("DROP TABLE IF EXISTS $t",
			"CREATE TABLE $t (id int, a int, f text) USING $am{$t}",
			"INSERT INTO $t SELECT g, g % 100, repeat('f', 100) FROM generate_series(1, $rows) g",
			map { "CREATE INDEX ${t}_$_ ON $t ($_)" } 'id', 'a');
	}
}

$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

# Nothing to do.
make(50000);
vacuum($_, 'FREEZE') foreach ('h', 'i');
my %idle = map { $_ => vacuum($_) } 'h', 'i';
foreach my $what (qr/(\d+) scanned/, qr/buffer usage: (\d+) hits/, qr/hits, (\d+)/, qr/(\d+) dirtied/, qr/WAL usage: (\d+) records/)
{
	my ($h, $i) = map { number($idle{$_}, $_, $what) } 'h', 'i';
	ok($i >= 0 && $i <= $h + 2, "nothing to do: $what is $i, of heap $h");
}
is(number($idle{i}, 'i', qr/(\d+) scanned/), 1, 'one page is read, the last one');

# The form of the report (but for lines that heap has not).
sub form
{
	my ($text, $table) = @_;
	my $report = report($text, $table);
	$report =~ s/"${table}_(\w+)"/"T_$1"/g;
	$report =~ s/\d+(\.\d+)?/N/g;
	return join("\n", grep { !/^new rel|^frozen:|^visibility map|pages merged$|removed from the end of the file$/ } split /\n/, $report) . "\n"
	  . join("\n", sort grep { /^frozen:|^visibility map/ } split /\n/, $report);
}
$node->safe_psql('postgres', "DELETE FROM $_ WHERE id % 3 = 0") foreach ('h', 'i');
my %busy = map { $_ => vacuum($_, 'PARALLEL 0') } 'h', 'i';
is(form($busy{i}, 'i'), form($busy{h}, 'h'), 'VERBOSE: the report has heap\'s form');
like($busy{i}, qr/^INFO: .*(aggressively )?vacuuming "postgres.public.i"/m, 'VERBOSE: the beginning');
foreach my $what (qr/tuples: (\d+) removed/, qr/removed, (\d+) remain, \d+ are dead/, qr/had (\d+) dead item identifiers removed/, qr/index scans: (\d+)/)
{
	is(number($busy{i}, 'i', $what), number($busy{h}, 'h', $what), "VERBOSE: $what as heap");
}

# INDEX_CLEANUP.
my $dead = q{SELECT count(*) FROM generate_series(0, pg_relation_size('i') / 8192 - 1) b, inplace.page_items('i', b) WHERE state = 'dead'};
$node->safe_psql('postgres', "DELETE FROM i WHERE id % 4 = 1");
like(vacuum('i', 'INDEX_CLEANUP off'), qr/index scan bypassed: .* have \d+ dead item identifiers/, 'INDEX_CLEANUP off');
cmp_ok(one($node, $dead), '>', 5000, 'dead items stay');
like(vacuum('i', 'INDEX_CLEANUP on'), qr/index scan needed/, 'INDEX_CLEANUP on');
is(one($node, $dead), '0', 'dead items go');
$node->safe_psql('postgres', "DELETE FROM i WHERE id = 2");
like(vacuum('i', 'INDEX_CLEANUP auto'), qr/index scan bypassed/, 'INDEX_CLEANUP auto, little to do');
is(one($node, $dead), '1', 'a dead item stays');
$node->safe_psql('postgres', "ALTER TABLE i SET (vacuum_index_cleanup = on)");
like(vacuum('i'), qr/index scan needed/, 'vacuum_index_cleanup of the table');
is(one($node, $dead), '0', 'it goes');
$node->safe_psql('postgres', "ALTER TABLE i RESET (vacuum_index_cleanup)");
$node->safe_psql('postgres', "DELETE FROM i WHERE id % 4 = 2");
like(vacuum('i', 'INDEX_CLEANUP auto'), qr/index scan needed/, 'INDEX_CLEANUP auto, much to do');
check_clean($node, 'after INDEX_CLEANUP');

# PARALLEL.
$node->safe_psql('postgres', "DELETE FROM i WHERE id % 4 = 3");
my $parallel = vacuum('i', 'PARALLEL 2');
like($parallel, qr/launched [12] parallel vacuum workers? for index vacuuming \(planned: [12]\)/, 'PARALLEL 2 has workers');
unlike(vacuum('i', 'PARALLEL 0'), qr/parallel vacuum worker/, 'PARALLEL 0 has none');
is(one($node, $dead), '0', 'no dead items after parallel index vacuum');
check_clean($node, 'after PARALLEL');

# Sparse index pages that were merged.
foreach my $option ('PARALLEL 0', 'PARALLEL 2')
{
	make(20000);
	$node->safe_psql('postgres', "DELETE FROM i WHERE id % 10 <> 0");
	my $text = vacuum('i', $option);
	cmp_ok(number($text, 'i', qr/^index "i_$_": (\d+) pages merged$/m), '>', 5, "$option: merged pages of i_$_") foreach ('id', 'a');
	unlike(vacuum('i', $option), qr/pages merged/, "$option: none the next time");
}
make(20000);
$node->safe_psql('postgres', "DELETE FROM i WHERE id % 10 <> 0");
unlike(vacuum('i', undef, 'SET inplace.merge_index_pages = off'), qr/pages merged/, 'merge_index_pages = off');

# TRUNCATE.
make(20000);
$node->safe_psql('postgres', "DELETE FROM i WHERE id > 100");
my $size = one($node, q{SELECT pg_relation_size('i')});
vacuum('i', 'TRUNCATE off');
is(one($node, q{SELECT pg_relation_size('i')}), $size, 'TRUNCATE off');
$node->safe_psql('postgres', q{ALTER TABLE i SET (vacuum_truncate = off)});
vacuum('i');
is(one($node, q{SELECT pg_relation_size('i')}), $size, 'vacuum_truncate = off');
like(vacuum('i', 'TRUNCATE on'), qr/table "i": truncated \d+ to \d+ pages/, 'TRUNCATE on');
cmp_ok(one($node, q{SELECT pg_relation_size('i')}), '<', $size, 'is shorter');

# DISABLE_PAGE_SKIPPING.
make(20000);
vacuum('i', 'FREEZE');
unlike(report(vacuum('i'), 'i'), qr/scanned \(100\.00%/, 'pages are skipped');
my $all = vacuum('i', 'DISABLE_PAGE_SKIPPING');
like($all, qr/aggressively vacuuming/, 'DISABLE_PAGE_SKIPPING is aggressive');
like(report($all, 'i'), qr/scanned \(100\.00%/, '... and reads all');

# Pages that are all-visible, but not frozen, are read for that.
SKIP:
{
	skip 'a setting of 18', 4 if $pg < 18;
	make(20000);
	vacuum('i', undef, 'SET inplace.adaptive_freezing = off');
	is(number(vacuum('i', undef, 'SET vacuum_max_eager_freeze_failure_rate = 0'), 'i', qr/(\d+) eagerly scanned/), 0,
		'vacuum_max_eager_freeze_failure_rate = 0');
	is(one($node, q{SELECT all_frozen_sets FROM inplace.stat_freeze WHERE relname = 'i'}), '1', 'only the last page is frozen, which is always read');
	cmp_ok(number(vacuum('i'), 'i', qr/(\d+) eagerly scanned/), '>', 100, 'by default pages are read');
	is(one($node, q{SELECT sum(all_frozen) = sum(pages) FROM inplace.visibility_summary('i')}), 't', 'and frozen');
}

# SKIP_LOCKED.
my $locker = psql_session($node);
$locker->query_safe('BEGIN; LOCK TABLE i');
like(vacuum('i', 'SKIP_LOCKED'), qr/WARNING: +skipping vacuum of "i" --- lock not available/, 'SKIP_LOCKED');
$locker->query_safe('ROLLBACK');
$locker->quit;

# The TOAST table, and it alone.
$node->safe_psql('postgres', q{ALTER TABLE i ALTER f SET STORAGE EXTERNAL; UPDATE i SET f = repeat('t', 5000) WHERE id = 1});
like(vacuum('i'), qr/finished vacuuming "postgres\.pg_toast\.pg_toast_\d+"/, 'TOAST table by default');
unlike(vacuum('i', 'PROCESS_TOAST off'), qr/pg_toast/, 'PROCESS_TOAST off');
SKIP:
{
	skip 'options of 16', 5 if $pg < 16;
	my $toast = vacuum('i', 'PROCESS_MAIN off');
	like($toast, qr/finished vacuuming "postgres\.pg_toast\.pg_toast_\d+"/, 'PROCESS_MAIN off: TOAST table');
	unlike($toast, qr/finished vacuuming "postgres\.public\.i"/, 'PROCESS_MAIN off: not the table');
	$node->safe_psql('postgres', 'VACUUM (ONLY_DATABASE_STATS)');
	pass('ONLY_DATABASE_STATS');
	$node->restart;
	my $reuses = q{SELECT sum(reuses) > 0 FROM pg_stat_io WHERE context = 'vacuum'};
	is(one($node, $reuses), 'f', 'no ring used yet');
	$node->safe_psql('postgres', q{VACUUM (BUFFER_USAGE_LIMIT '128kB', DISABLE_PAGE_SKIPPING) i});
	is(one($node, $reuses), 't', 'BUFFER_USAGE_LIMIT: a ring of buffers is used');
}

# Costs and progress: a VACUUM that rests after each page.
make(4000);
$node->safe_psql('postgres', 'DELETE FROM i WHERE id % 2 = 0 OR id > 3000');
$locker = psql_session($node);
$locker->query_safe('BEGIN; LOCK TABLE i IN ACCESS SHARE MODE');
my $slow = psql_session($node);
$slow->query_safe("SET vacuum_cost_delay = '3ms'; SET vacuum_cost_limit = 1");
my $pid = $slow->query_safe('SELECT pg_backend_pid()');
my $watcher = psql_session($node);
$watcher->query_safe(q{CREATE TEMP TABLE seen (phase text, event text, total bigint, scanned bigint, vacuumed bigint)});
$slow->query_until(qr//, "VACUUM (PARALLEL 0) i;\n\\echo over\n");
$watcher->query_safe(qq{
	DO \$\$
	DECLARE
		started bool := false;
		n int;
	BEGIN
		FOR i IN 1 .. 60000 LOOP
			PERFORM pg_stat_clear_snapshot();
			INSERT INTO seen
			SELECT p.phase, a.wait_event, p.heap_blks_total, p.heap_blks_scanned, p.heap_blks_vacuumed
			FROM pg_stat_progress_vacuum p JOIN pg_stat_activity a USING (pid)
			WHERE p.pid = $pid AND p.relid = 'i'::regclass;
			GET DIAGNOSTICS n = ROW_COUNT;
			started := started OR n > 0;
			EXIT WHEN started AND n = 0;
			PERFORM pg_sleep(0.001);
		END LOOP;
	END \$\$});
my $seen = sub { $watcher->query_safe("SELECT count(*) > 0 FROM seen WHERE $_[0]") };
is($seen->("phase = '$_'"), 't', "phase '$_'") foreach ('scanning heap', 'vacuuming indexes', 'vacuuming heap', 'truncating heap');
is($seen->("phase = 'scanning heap' AND event = 'VacuumDelay'"), 't', 'vacuum_cost_delay: rests in the first pass');
is($seen->("phase = 'vacuuming indexes' AND event = 'VacuumDelay'"), 't', '... at indexes');
is($seen->("phase = 'vacuuming heap' AND event = 'VacuumDelay'"), 't', '... in the second pass');
is($seen->("total <> 0 AND (scanned > total OR vacuumed > total)"), 'f', 'figures make sense');
is($seen->("phase = 'scanning heap' AND total > 0 AND scanned BETWEEN 1 AND total - 1"), 't', 'progress of the first pass');
$locker->query_safe('ROLLBACK');
$slow->quit;
$watcher->quit;
$locker->quit;

# Autovacuum's report in the log.
make(5000);
$node->safe_psql('postgres', "DELETE FROM $_ WHERE id % 2 = 0") foreach ('h', 'i');
my $log = -s $node->logfile;
$node->append_conf('postgresql.conf', "autovacuum = on\nlog_autovacuum_min_duration = 0\nautovacuum_vacuum_cost_delay = 0");
$node->reload;
ok(defined poll_value($node, q{SELECT min(autovacuum_count) > 0 FROM pg_stat_user_tables WHERE relname IN ('h', 'i')}, 120), 'autovacuum ran');
my $text = slurp_file($node->logfile, $log);
foreach my $t ('h', 'i')
{
	($text =~ /automatic (?:aggressive )?vacuum of table "postgres\.public\.$t": (index scans: .*?system usage: [^\n]*)/s) or diag "no report of $t";
	$busy{$t} = 'finished vacuuming "postgres.public.' . $t . '": ' . ($1 // $t);
	$busy{$t} =~ s/^\t//mg;
}
is(form($busy{i}, 'i'), form($busy{h}, 'h'), 'log_autovacuum_min_duration: heap\'s form');
stop_autovacuum($node);

# The failsafe: xids are used up, and deleted rows are there.  Autovacuum may be
# the first to notice; either says so.
make(1000);
$node->safe_psql('postgres', "DELETE FROM $_ WHERE id % 2 = 0") foreach ('h', 'i');
$node->append_conf('postgresql.conf', 'vacuum_failsafe_age = 0');
$node->reload;
$log = -s $node->logfile;
$node->safe_psql('postgres', q{
	DO $$ BEGIN
		FOR i IN 1 .. 106000 LOOP
			PERFORM pg_current_xact_id();
			COMMIT;
		END LOOP;
	END $$});
foreach my $t ('h', 'i')
{
	my $said = vacuum($t);
	my $logged = slurp_file($node->logfile, $log);
	ok($logged =~ qr/WARNING: +bypassing nonessential maintenance of table "postgres\.public\.$t" as a failsafe after 0 index scans/,
		"$t: vacuum_failsafe_age");
	ok("$said\n$logged" =~ qr/public\.$t": index scans: 0\n(?:[^\n]*\n){3,9}?[^\n]*index scan bypassed by failsafe: [^\n]* have 500 dead item identifiers/,
		"$t: indexes are left alone");
}
cmp_ok(one($node, q{SELECT age(relfrozenxid) FROM pg_class WHERE relname = 'i'}), '<', 1000, 'and xids are frozen');
vacuum('i', 'INDEX_CLEANUP on');
is(one($node, $dead), '0', 'the rest later');

check_clean($node, 'at the end');
check_log($node);
$node->stop;
done_testing();
