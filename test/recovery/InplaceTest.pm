# Helpers of the recovery tests.

package InplaceTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX ();
use Test::More;
use Time::HiRes qw(usleep time);

our @EXPORT = qw(new_node pg_major one check_clean check_log kill9_all seed
  contents poll_value waits_for_lock clients_are_gone undo_floor_reached start_pgbench end_pgbench
  begin_load load_is_on end_load answers_agree
  pgbench_script script_that_moves_n use_up_xids versions
  overwrite_file psql_session crash_and_restart sqlstate_of
  feedback_standbys compare_on_standbys unchecked heap_beside_inplace same_as_heap build_module set_full_page_writes stop_autovacuum
  versions_dropped kinds_of_tables kinds_of_changes);

# A psql that cannot connect ends before it has read what it is given, and the pipe breaks
# if it is quicker than the test.  Cluster::psql dies of that.  Here it is what it is on a
# slower machine: a connection that failed.
{
	no warnings 'redefine';
	my $psql = \&PostgreSQL::Test::Cluster::psql;
	*PostgreSQL::Test::Cluster::psql = sub {
		my ($self, $db, $sql, %params) = @_;
		my ($out, $err) = ('', '');
		$params{stdout} //= \$out if wantarray;
		$params{stderr} //= \$err if wantarray;
		my $rc = eval { $psql->($self, $db, $sql, %params) };
		if ($@)
		{
			die $@ if $@ !~ /Broken pipe/ || $params{on_error_die};
			$rc = 2;
		}
		return wantarray ? ($rc, ${ $params{stdout} }, ${ $params{stderr} }) : $rc;
	};
}

# A new cluster whose server is not started.  Options: those of init(), conf
# (text for postgresql.conf), extra (for initdb), install_path (another server's).
sub new_node
{
	my ($name, %opt) = @_;
	my $conf = delete $opt{conf} // '';
	my $extra = delete $opt{extra} // [];
	my @new = $opt{install_path} ? (install_path => delete $opt{install_path}) : ();
	my $node = PostgreSQL::Test::Cluster->new($name, @new);

	# updates have other records while replay is checked, and those have to be tested, too
	my $checking = pg_major() == 15 ? '' : 'all';

	# a standby may be far behind when a restart ends with a checkpoint
	my $keep = $opt{allows_streaming} ? '8GB' : '0';

	$node->init(%opt, extra => [ '--locale=C', '--encoding=UTF8', @$extra ]);
	$node->append_conf('postgresql.conf', qq{
shared_preload_libraries = 'inplace'
wal_consistency_checking = '$checking'
max_prepared_transactions = 20
max_connections = 40
shared_buffers = '32MB'
log_statement = 'none'
log_replication_commands = off
log_disconnections = off
log_connections = off
log_duration = off
autovacuum_naptime = '1s'
checkpoint_timeout = '1h'
max_wal_size = '4GB'
wal_keep_size = '$keep'
# (nothing is flushed, so a segment need not be written twice)
wal_init_zero = off
$conf
});
	return $node;
}

# Major version of the server under test.
sub pg_major
{
	my ($out) = IPC::Run::run([ 'pg_config', '--version' ], '>', \my $v);
	return $v =~ /PostgreSQL (\d+)/ ? $1 : die "no version in $v";
}

my $seed;

# The seed of this run: TAP_SEED of the environment, or a random one.  A test that
# fails shows it at its end.
sub seed
{
	$seed = int($ENV{TAP_SEED} // (time() * 1000) % 1000000);
	srand($seed);
	note "TAP_SEED=$seed";
	return $seed;
}

END
{
	diag "TAP_SEED=$seed"
	  if defined $seed && ($? != 0 || !Test::More->builder->is_passing);
}

# The one value of a query (a failed query fails the test, with its message).
sub one
{
	my ($node, $sql, $db) = @_;
	my ($rc, $out, $err) = $node->psql($db // 'postgres', $sql,
		extra_params => [ '-v', 'ON_ERROR_STOP=1' ]);
	return $rc == 0 ? $out : "rc $rc: $err";
}

# No finding of inplace.check in any table of the database.
sub check_clean
{
	my ($node, $what, $db) = @_;
	my $found = one($node, q{
		SET client_min_messages = error;
		SELECT c.relname, k.* FROM inplace.stat_tables c, inplace.check(c.relid) k LIMIT 20}, $db);
	return is($found, '', "$what: inplace.check has no finding");
}

# What must not be in the log of any server.
sub check_log
{
	my ($node, $allowed) = @_;
	my @bad = grep { /TRAP:|PANIC: |inconsistent page found|terminated by signal (6|11)|WARNING: .*(leak|not freed)/ }
	  split /\n/, slurp_file($node->logfile);
	@bad = grep { $_ !~ $allowed } @bad if $allowed;
	is(join("\n", @bad[ 0 .. ($#bad > 9 ? 9 : $#bad) ]), '',
		$node->name . ': no failed assertion, panic, crash or inconsistent page');
}

sub _children
{
	my ($parent) = @_;
	my @pids;
	foreach my $f (glob '/proc/[0-9]*/stat')
	{
		open(my $fh, '<', $f) or next;
		my $line = <$fh>;
		close $fh;
		next unless defined $line && $line =~ /^(\d+) \(.*\) (\S) (\d+) /;
		push @pids, $1 if $3 == $parent && $2 ne 'Z';
	}
	return @pids;
}

# As a power failure, but for what the kernel has: postmaster and all of its
# children get SIGKILL.
sub kill9_all
{
	my ($node) = @_;
	my ($pid) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	# It must not start another child, nor see one die.
	kill 'STOP', $pid;
	my @pids = _children($pid);
	kill 'KILL', @pids, $pid;
	for (1 .. 1000)
	{
		last unless grep { _alive($_) } @pids, $pid;
		usleep(10_000);
	}
	# A zombie that nobody collects would pass for a running postmaster.
	for (1 .. 20)
	{
		last unless kill 0, $pid;
		usleep(10_000);
	}
	unlink $node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock'
	  if kill 0, $pid;
	$node->{_pid} = undef;
	return;
}

sub _alive
{
	my ($pid) = @_;
	open(my $fh, '<', "/proc/$pid/stat") or return 0;
	my $line = <$fh>;
	close $fh;
	return defined $line && $line !~ /^\d+ \(.*\) [ZX] /;
}

sub crash_and_restart
{
	my ($node) = @_;
	$node->stop('immediate');
	$node->start;
}

# All rows of a table in a comparable form.
sub contents
{
	my ($node, $table, $db) = @_;
	return one($node, qq{
		SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, E'\n' ORDER BY t::text COLLATE "C")), '')
		FROM $table t}, $db);
}

# Two standbys, with and without feedback: one holds up the primary, one is cancelled, or
# waits.
sub feedback_standbys
{
	my ($primary, $prefix) = @_;
	my %standby;
	$primary->backup('b');
	foreach my $feedback ('on', 'off')
	{
		my $s = PostgreSQL::Test::Cluster->new("${prefix}_$feedback");
		$s->init_from_backup($primary, 'b', has_streaming => 1);
		$s->append_conf('postgresql.conf', "hot_standby_feedback = $feedback\n");
		$s->start;
		$standby{$feedback} = $s;
	}
	return %standby;
}

# Statements that print what is wrong are asked of both under a load, again and again.
sub compare_on_standbys
{
	my ($standby, $compare, $seconds, $what) = @_;
	my %answers = (good => 0, cancelled => 0);
	my $wrong = '';
	foreach my $delay ('500ms', '-1')
	{
		$standby->{off}->append_conf('postgresql.conf', "max_standby_streaming_delay = $delay\n");
		$standby->{off}->reload;
		my $end = time() + $seconds;
		while (time() < $end)
		{
			foreach my $feedback ('on', 'off')
			{
				my ($rc, $out, $err) = $standby->{$feedback}->psql('postgres', $compare,
					extra_params => [ '-v', 'ON_ERROR_STOP=1' ]);
				if ($rc == 0 && $out eq '') { $answers{good}++; }
				elsif ($rc != 0 && $err =~ /conflict with recovery/) { $answers{cancelled}++; }
				else { $wrong .= "feedback $feedback, delay $delay: $out $err\n"; }
			}
			usleep(50_000);
		}
	}
	is($wrong, '', "$what: standbys give no wrong answer");
	cmp_ok($answers{good}, '>', 0, "$what: standbys answer");
	note "$what: $answers{good} answers of standbys, $answers{cancelled} cancelled";
	return;
}

# Statements that make tables of all kinds, and a view of a table t (id, a, v), which must
# be there.  Servers of other versions, or with other libraries, are to read them.
sub kinds_of_tables
{
	return (
		'CREATE TABLE big (id int PRIMARY KEY, v text) USING inplace',
		'ALTER TABLE big ALTER v SET STORAGE EXTERNAL',
		q{INSERT INTO big SELECT i, repeat(md5(i::text), 300) FROM generate_series(1, 50) i},
		'CREATE UNLOGGED TABLE u (id int PRIMARY KEY, v text) USING inplace',
		q{INSERT INTO u SELECT i, 'u' || i FROM generate_series(1, 500) i},
		'CREATE TABLE p (k int, v text) PARTITION BY LIST (k)',
		'CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) USING inplace',
		'CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) USING heap',
		q{INSERT INTO p SELECT 1 + i % 2, 'p' || i FROM generate_series(1, 500) i},
		'CREATE MATERIALIZED VIEW m USING inplace AS SELECT a % 10 AS x, count(*) AS n FROM t GROUP BY 1',
		'CREATE TABLE h (id int PRIMARY KEY, v text) USING heap',
		q{INSERT INTO h SELECT i, 'h' || i FROM generate_series(1, 500) i},
		# a table of another kind of row: columns added, dropped
		'CREATE TABLE short (a int, b int) USING inplace',
		'INSERT INTO short SELECT i, i FROM generate_series(1, 500) i',
		q{ALTER TABLE short ADD c text DEFAULT 'later'},
		'ALTER TABLE short DROP b');
}

# ... and that change those and t, in several ways.
sub kinds_of_changes
{
	return (
		"UPDATE t SET v = v || ' in place', a = a + 10000 WHERE id % 3 = 0",
		"BEGIN; SELECT count(*) FROM (SELECT FROM t WHERE id < 100 FOR KEY SHARE) x; SAVEPOINT a; UPDATE t SET v = v || '!' WHERE id < 50; COMMIT",
		"UPDATE big SET v = repeat(md5((id + 1)::text), 310) WHERE id % 2 = 0",
		"UPDATE short SET a = a + 1 WHERE a % 5 = 0",
		"UPDATE u SET v = v || 'x'",
		"BEGIN; SAVEPOINT a; UPDATE p SET v = 'lost'; ROLLBACK TO a; UPDATE p SET v = v || '.' WHERE v LIKE '%7'; COMMIT");
}

# Asks until the answer is true (t), or so many seconds have passed; returns
# the seconds, or undef.
# Asks until the answer is true (t), or time is up; returns the seconds, or undef.
# $seconds is what a busy machine takes at most.  Others are slower.
sub poll_value
{
	my ($node, $sql, $seconds, $db) = @_;
	my $start = time();
	$seconds *= 3;
	while (1)
	{
		my $answer = one($node, $sql, $db);
		return time() - $start if $answer eq 't';
		if (time() - $start > $seconds)
		{
			note "still '$answer' after $seconds s: $sql";
			return undef;
		}
		usleep(100_000);
	}
}

# A test: one session whose query begins so waits for a lock.
sub waits_for_lock
{
	my ($node, $name, $query) = @_;
	return ok(defined poll_value($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '$query%' AND wait_event_type = 'Lock'", 60), $name);
}

# A test: no session of a client is left.  A client that has been ended leaves its last
# statement behind, which the server goes on with: a VACUUM may yet cut the file.  It may
# wait for what the clients have prepared: $meanwhile is done again and again, if given.
sub clients_are_gone
{
	my ($node, $what, $meanwhile) = @_;
	my $gone = 0;
	for (my $tries = 0; $tries < 600 && !$gone; $tries++)
	{
		$meanwhile->($node) if $meanwhile;
		$gone = one($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}) eq 't';
		usleep(200_000) unless $gone;
	}
	return ok($gone, "$what: no client is left");
}

# A load for pgbench: four clients, until they are ended or their server is gone.
sub begin_load
{
	my ($node, $script, @options) = @_;
	my $file = $node->basedir . '/load.sql';
	append_to_file($file, $script) unless -e $file;
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-T', '3600', "--random-seed=$seed", @options,
			'-h', $node->host, '-p', $node->port, '-f', $file, 'postgres' ],
		'<', \undef, '>', \$out, '2>', \$err);
	return { node => $node, run => $run, err => \$err };
}

# A test: it is on.
sub load_is_on
{
	my ($l, $what) = @_;
	$l->{run}->pump_nb;
	return ok($l->{run}->pumpable, "$what: the load is on") || diag ${ $l->{err} };
}

# $meanwhile: see clients_are_gone
sub end_load
{
	my ($l, $what, $meanwhile) = @_;
	load_is_on($l, $what);
	$l->{run}->signal('TERM');
	eval { $l->{run}->finish };
	return clients_are_gone($l->{node}, $what, $meanwhile);
}

# A test: the query, which returns where indexes answer otherwise than a sequential scan, returns
# nothing; several times, for each time it asks something else.
sub answers_agree
{
	my ($node, $query, $what, $times) = @_;
	my $found = join "\n", map { one($node, $query) } 1 .. ($times // 5);
	$found =~ s/^\n+|\n+$//g;
	return is($found, '', "$what: all indexes answer as a sequential scan does");
}

# Has undo been given back, and its file cut down to what it is with nothing in
# it: a few extents of 32 blocks?
sub undo_floor_reached
{
	my ($node, $what, $seconds, $db) = @_;
	my $t = poll_value($node,
		q{SELECT sum(size_bytes) FILTER (WHERE kind = 'logged') <= 1024 * 1024 FROM inplace.undo},
		$seconds, $db);
	ok(defined $t, "$what: undo is back at its floor");
	if (defined $t) { note sprintf("%s: after %.1f s", $what, $t) }
	else { diag(one($node, 'SELECT * FROM inplace.undo', $db), "\nholders: ",
		one($node, 'SELECT * FROM inplace.undo_holders', $db)) }
	return $t;
}

# A pgbench in the background, with random numbers that depend on the seed of
# a test that has one.
sub start_pgbench
{
	my ($node, @args) = @_;
	my ($in, $out) = ('', '');
	my $h = IPC::Run::start(
		[ 'pgbench', '-n', '-h', $node->host, '-p', $node->port,
			defined $seed ? "--random-seed=$seed" : (), @args, 'postgres' ],
		'<', \$in, '>&', \$out, IPC::Run::timeout(900));
	return { h => $h, out => \$out };
}

sub end_pgbench
{
	my ($p) = @_;
	eval { $p->{h}->finish; };
	return ${ $p->{out} };
}

# What is begun in the block writes no images of pages into each record, which replay would
# be checked with: for loads that have to be large, and are about something else.
sub unchecked(&)
{
	my ($block) = @_;
	local $ENV{PGOPTIONS} = '-c wal_consistency_checking=';
	return $block->();
}

# A script for pgbench; returns its path.
sub pgbench_script
{
	my ($node, $name, $text) = @_;
	my $path = $node->basedir . "/$name.pgb";
	append_to_file($path, $text);
	return $path;
}

# Transactions, with rollbacks of all kinds, that move n between rows 1 to 8 of
# table t (id, n, k, v), so that its sum is constant.  $also: what else is set in
# the row that gets more, with the number "end" from 1 to 8.
sub script_that_moves_n
{
	my ($node, $also) = @_;
	$also = defined $also ? ", $also" : '';
	return pgbench_script($node, 'move', qq{
\\set a random(1, 7)
\\set b random(:a + 1, 8)
\\set k random(1, 20)
\\set end random(1, 8)
BEGIN;
UPDATE t SET n = n - 1, k = CASE WHEN :end < 3 THEN :k ELSE k END WHERE id = :a;
SAVEPOINT s;
UPDATE t SET n = n + 1000, v = repeat('x', :k) WHERE id = :b;
ROLLBACK TO s;
UPDATE t SET n = n + 1$also WHERE id = :b;
\\if :end = 8
ROLLBACK;
\\else
COMMIT;
\\endif
});
}

# Versions of a row of table t.
sub versions
{
	my ($node, $id) = @_;
	return one($node, "SELECT count(*) FROM inplace.versions('t', (SELECT ctid FROM t WHERE id = $id))");
}

# A test: fewer versions than that are left of row 1, after some more updates by the
# script if the undo worker is late.
sub versions_dropped
{
	my ($node, $limit, $script, $what) = @_;
	foreach (1 .. 100)
	{
		last if versions($node, 1) < $limit;
		end_pgbench(start_pgbench($node, '-c', 1, '-t', 10, '-f', $script));
		usleep(300_000);
	}
	return cmp_ok(versions($node, 1), '<', $limit, $what);
}

# Snapshots of READ COMMITTED transactions, and what all see, are looked at only
# if they are that many transactions old.
sub use_up_xids
{
	my ($node) = @_;
	$node->safe_psql('postgres',
		'DO $$ BEGIN FOR i IN 1 .. 1500 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$');
}

# Overwrites bytes of a file of a stopped server.
sub overwrite_file
{
	my ($path, $offset, $bytes) = @_;
	open(my $fh, '+<', $path) or die "$path: $!";
	binmode $fh;
	seek($fh, $offset, 0);
	print $fh $bytes;
	close $fh or die "$path: $!";
}

# A psql of its own that stays connected; errors do not end it.  The time limit is
# for each query: sessions are held while a load runs, which on a busy machine may
# alone take longer.
sub psql_session
{
	my ($node, $db) = @_;
	my $s = $node->background_psql($db // 'postgres', on_error_stop => 0, on_error_die => 0);
	$s->set_query_timer_restart();
	return $s;
}

# "SQLSTATE: message" of a statement that must fail; '' if it does not.
sub sqlstate_of
{
	my ($node, $sql, $db) = @_;
	my ($rc, $out, $err) = $node->psql($db // 'postgres', "\\set VERBOSITY verbose\n$sql",
		extra_params => [ '-v', 'ON_ERROR_STOP=1' ]);
	return $rc == 0 ? '' : $err;
}

# Sets full_page_writes, which must have been otherwise (needs pg_walinspect).  The
# checkpointer is who acts on it, and says so in the WAL.
sub set_full_page_writes
{
	my ($node, $value) = @_;
	my $lsn = one($node, 'SELECT pg_current_wal_insert_lsn()');
	$node->append_conf('postgresql.conf', "full_page_writes = $value\n");
	$node->reload;
	return ok(defined poll_value($node, qq{SELECT pg_logical_emit_message(true, '', '') IS NOT NULL AND count(*) > 0
		FROM pg_get_wal_records_info('$lsn', pg_current_wal_flush_lsn()) WHERE record_type = 'FPW_CHANGE'}, 60), "full_page_writes = $value");
}

# No worker of autovacuum is there any more, nor comes later.
sub stop_autovacuum
{
	my ($node) = @_;
	$node->safe_psql('postgres', 'ALTER SYSTEM SET autovacuum = off');
	$node->reload;
	return ok(defined poll_value($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%'}, 60), 'no autovacuum');
}

# Compiles modules/$name.c; returns what LANGUAGE C functions call it.
sub build_module
{
	my ($node, $name) = @_;
	my $lib = $node->basedir . "/$name";
	chomp(my $include = `pg_config --includedir-server`);
	system('cc', '-shared', '-fPIC', '-O1', "-I$include", '-D_GNU_SOURCE', '-o', "$lib.so", "modules/$name.c") == 0
	  or die "cannot compile modules/$name.c";
	return $lib;
}

# Makes databases heap and inplace, with the extensions, whose tables are of that method.
sub heap_beside_inplace
{
	my ($node, @extensions) = @_;
	foreach my $am (qw(heap inplace))
	{
		one($node, "CREATE DATABASE $am");
		one($node, "CREATE EXTENSION $_", $am) foreach 'inplace', @extensions;
		one($node, "ALTER DATABASE $am SET default_table_access_method = $am; ALTER DATABASE $am SET client_min_messages = notice");
	}
}

# What statements print, and their errors, must be the same in both.  Rows without an order
# may come in any.
sub same_as_heap
{
	my ($node, $what, $sql) = @_;
	my %out;
	foreach my $am (qw(heap inplace))
	{
		# errors do not end it, and are part of what is compared
		my ($rc, $out, $err) = $node->psql($am, $sql, extra_params => [ '-v', 'ON_ERROR_STOP=0' ]);
		$err =~ s/^psql:<stdin>:\d+: //mg;
		$err =~ s/^(HINT|CONTEXT):  .*\n?//mg;
		$out{$am} = join("\n", sort(split /\n/, $out)) . "\n-- stderr\n$err";
	}
	is($out{inplace}, $out{heap}, $what);
	cmp_ok(length($out{heap}), '>', 20, "$what: there is something to compare");
	unlike($out{heap}, qr/syntax error|does not exist|ERROR:  (relation|type|function) .* already exists/, "$what: nothing misspelt");
	note $out{heap};
}

1;
