# Logical decoding of random statements: the same ones in a database of heap
# tables and in one of inplace tables.  Two sessions in each, whose transactions
# overlap; all replica identities, values in the TOAST table in and out of keys,
# savepoints, prepared transactions, ON CONFLICT, MERGE, COPY, TRUNCATE, rewrites,
# columns added and dropped in the middle of transactions, a crash.  test_decoding
# and pgoutput must say the same of both, whole transactions as well as streamed.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $libdir = `pg_config --pkglibdir`;
chomp $libdir;
plan skip_all => 'test_decoding is not installed'
  unless -e "$libdir/test_decoding.so";

my $major = pg_major();
my $seed = seed();
my $bursts = $ENV{DECODE_BURSTS} // 60;
# What is spilled to disk, 18 looks at first to see whether it has been aborted; if so, and
# it has subtransactions, an assertion of the server's fails (with heap tables too).
my $work_mem = $major >= 18 ? '64MB' : '64kB';
# With and without old bytes in the records of updates (wal_consistency_checking).
my $checking = $seed % 3 == 0 ? 'all' : '';
# Large values in heap's TOAST tables, and in ours.
my $toast = $seed % 2 == 0 ? 'on' : 'off';
my $node = new_node('decode', conf => qq{
wal_level = logical
max_replication_slots = 10
max_prepared_transactions = 100
logical_decoding_work_mem = '$work_mem'
wal_consistency_checking = '$checking'
inplace.toast_in_place = $toast
full_page_writes = @{[ $seed % 5 == 0 ? 'off' : 'on' ]}
autovacuum = off
# (waits that are none on heap, for the undo worker, must not take as long)
lock_timeout = '2s'
enable_seqscan = off
enable_bitmapscan = off
});
$node->start;
# A row of the catalogs that a savepoint's rollback left may be written over by the
# same transaction; the decoder's assertions do not expect that.
my $assertions = one($node, 'SHOW debug_assertions') eq 'on';
my @methods = qw(heap inplace);
my $stored = $major >= 18 ? 'publish_generated_columns = stored, ' : '';
foreach my $am (@methods)
{
	one($node, "CREATE DATABASE $am");
	one($node, "ALTER DATABASE $am SET default_table_access_method = $am");
	one($node, 'CREATE EXTENSION inplace', $am);
	one($node, q{
		CREATE FUNCTION longer() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.n % 10 = 3 THEN NEW.a := NEW.a || 'by the trigger'; END IF;
			RETURN NEW;
		END $$}, $am);
	foreach my $t (1, 2)
	{
		is(one($node, qq{
			CREATE TABLE t$t (id int PRIMARY KEY, u int NOT NULL, k text NOT NULL, a text, c text, b char(30), n numeric,
				gone int DEFAULT 5, g int GENERATED ALWAYS AS (u * 2) STORED);
			ALTER TABLE t$t ALTER k SET STORAGE EXTERNAL, ALTER a SET STORAGE EXTERNAL;
			CREATE UNIQUE INDEX t${t}_uk ON t$t (u, k);
			CREATE INDEX t${t}_n ON t$t (n);
			INSERT INTO t$t SELECT i, i, 'k' || i, 'a', 'c', 'b', i FROM generate_series(1, 60) i;
			ALTER TABLE t$t DROP gone, ADD added int DEFAULT 7, ADD "default" text DEFAULT repeat('missing', 10);
			CREATE TRIGGER longer BEFORE UPDATE ON t$t FOR EACH ROW EXECUTE FUNCTION longer();
			CREATE TABLE p$t (id int, v text, w int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
			CREATE TABLE p${t}_1 PARTITION OF p$t FOR VALUES FROM (0) TO (100);
			CREATE TABLE p${t}_2 (w int, v text, id int NOT NULL);
			ALTER TABLE p$t ATTACH PARTITION p${t}_2 FOR VALUES FROM (100) TO (200);
			}, $am), '', "$am: tables");
	}
	is(one($node, qq{
		CREATE PUBLICATION whole FOR ALL TABLES WITH (${stored}publish = 'insert, update, delete, truncate');
		CREATE PUBLICATION parts FOR TABLE t1 WHERE (id % 3 <> 0), p1 (id, w), p2 WHERE (id % 2 = 0) WITH (publish_via_partition_root = true)}, $am),
		'', "$am: publications");
	one($node, "SELECT pg_create_logical_replication_slot('$_->[0]_$am', '$_->[1]', false, $_->[2])", $am)
	  foreach [ 'td', 'test_decoding', 'false' ], [ 'two', 'test_decoding', 'true' ], [ 'out', 'pgoutput', 'false' ];
}

# ---- statements

sub pick { return $_[ int(rand(@_)) ] }

# a value short, long, or so long that it goes to the TOAST table
my $serial = 0;
sub text
{
	$serial++;
	return pick("'s$serial'", "repeat('m$serial ', 40)", "repeat('x$serial ', 600)");
}
sub key { $serial++; return pick("'k$serial'", "'k$serial'", "repeat('k$serial', 2400 / length('k$serial'))") }
sub id { return 1 + int(rand(80)) }

sub change
{
	my ($n) = @_;
	my $t = "t$n";
	my $id = id();
	my $new = 100 + $serial++;
	my $to = $id + int(rand(6));
	return pick(
		"INSERT INTO $t (id, u, k, a, c, b, n) VALUES ($id, $id, @{[ key() ]}, @{[ text() ]}, @{[ text() ]}, 'b', $new)",
		"INSERT INTO $t (id, u, k, a, n) VALUES ($new, $new, @{[ key() ]}, @{[ text() ]}, 1), (@{[ $new + 1000 ]}, $new, @{[ key() ]}, NULL, 2)",
		"INSERT INTO $t (id, u, k, a) VALUES ($id, $new, @{[ key() ]}, @{[ text() ]}) ON CONFLICT (id) DO UPDATE SET a = excluded.a, n = $t.n + 1",
		"INSERT INTO $t (id, u, k, a) VALUES ($id, $new, @{[ key() ]}, @{[ text() ]}) ON CONFLICT DO NOTHING",
		"INSERT INTO $t (id, u, k, a) SELECT i, i, 'many', @{[ text() ]} FROM generate_series($new, $new + 30) i ON CONFLICT DO NOTHING",
		"UPDATE $t SET n = n + 1 WHERE id = $id",
		"UPDATE $t SET n = n WHERE id = $id",
		"UPDATE $t SET a = @{[ text() ]} WHERE id BETWEEN $id AND $to",
		"UPDATE $t SET c = @{[ text() ]}, a = NULL WHERE id = $id",
		"UPDATE $t SET c = NULL, b = 'x' WHERE id = $id",
		"UPDATE $t SET b = repeat('b', 1 + $id % 30), added = $id WHERE id = $id",
		"UPDATE $t SET k = @{[ key() ]} WHERE id = $id",
		"UPDATE $t SET k = @{[ key() ]}, a = @{[ text() ]}, c = @{[ text() ]} WHERE id = $id",
		"UPDATE $t SET u = u + 1 WHERE id BETWEEN $id AND $to",
		"UPDATE $t SET id = $new WHERE id = $id",
		"UPDATE $t SET id = id WHERE id = $id",
		"DELETE FROM $t WHERE id = $id",
		"DELETE FROM $t WHERE id > 1000 AND id < 1000 + $new",
		"MERGE INTO $t USING (VALUES ($id, 1), ($to + 1, 2), ($new, 3)) AS s (id, w) ON $t.id = s.id
			WHEN MATCHED AND w = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET n = w, a = @{[ text() ]}
			WHEN NOT MATCHED THEN INSERT (id, u, k) VALUES (s.id, s.id, 'merged')",
		"COPY $t (id, u, k, a) FROM PROGRAM 'seq $new @{[ $new + 25 ]} | awk ''{ print \$1 \"\\t\" \$1 \"\\tcopied\\t\" sprintf(\"%@{[ pick(5, 3000) ]}s\", \$1) }'''",
		"SELECT id FROM $t WHERE id BETWEEN $id AND $to ORDER BY id FOR @{[ pick('UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE') ]}",
		"INSERT INTO p$n VALUES ($id, @{[ text() ]}, 1), (@{[ $id + 100 ]}, @{[ text() ]}, 2) ON CONFLICT DO NOTHING",
		"UPDATE p$n SET id = (id + 100) % 200, v = v || '!' WHERE id = $id",
		"UPDATE p$n SET w = w + 1 WHERE id IN ($id, @{[ $id + 100 ]})",
		"DELETE FROM p$n WHERE id = $id",
		# The server has a message of a transaction at the end of its record, so a change
		# of another subtransaction that begins there may come before it: not here.
		"SELECT pg_logical_emit_message(@{[ pick('true', 'false') ]}, 'test', 'message $new') IS NULL,
			pg_logical_emit_message(false, 'test', 'after $new') IS NULL",
	);
}

# what needs the table for itself; may be in a transaction
sub ddl
{
	my ($n) = @_;
	my $t = "t$n";
	my $col = 'x' . $serial++;
	return pick(
		"ALTER TABLE $t REPLICA IDENTITY DEFAULT",
		"ALTER TABLE $t REPLICA IDENTITY FULL",
		"ALTER TABLE $t REPLICA IDENTITY FULL",
		# (t1 is published with a filter, p1 with a column list)
		$n == 1 ? () : ("ALTER TABLE $t REPLICA IDENTITY NOTHING",
			"ALTER TABLE $t REPLICA IDENTITY USING INDEX ${t}_uk",
			"ALTER TABLE $t REPLICA IDENTITY USING INDEX ${t}_uk",
			"ALTER TABLE p2_1 REPLICA IDENTITY FULL",
			"ALTER TABLE p2_2 REPLICA IDENTITY FULL"),
		"ALTER TABLE $t ADD $col text DEFAULT 'constant $col'",
		"ALTER TABLE $t ADD $col int DEFAULT (random() * 0 + 4)::int",
		"DO \$\$ DECLARE c text; BEGIN
			SELECT attname INTO c FROM pg_attribute WHERE attrelid = '$t'::regclass AND attname ~ '^x[0-9]' ORDER BY attnum LIMIT 1;
			IF c IS NOT NULL THEN EXECUTE 'ALTER TABLE $t DROP ' || c; END IF; END \$\$",
		"ALTER TABLE $t ALTER added TYPE @{[ pick('int', 'bigint') ]}",
		"ALTER TABLE $t ALTER c SET STORAGE @{[ pick('EXTERNAL', 'EXTENDED', 'MAIN') ]}",
		"CLUSTER $t USING ${t}_pkey",
		"TRUNCATE @{[ pick($t, qq{p$n}) ]}",
		"REINDEX TABLE $t");
}

my @open = (0, 0, 0);			# in a transaction?
my @ddl = (0, 0, 0);			# ... which has changed catalogs?
my @prepared = ([], [], []);
my $gid = 0;

# a handful of statements for session n
sub burst
{
	my ($n) = @_;
	my @s;
	foreach (1 .. 4 + int(rand(8)))
	{
		my $r = rand();
		if (!$open[$n])
		{
			if ($r < 0.45) { push @s, 'BEGIN', change($n); $open[$n] = 1; $ddl[$n] = 0 }
			elsif ($r < 0.52) { push @s, ddl($n) }
			elsif ($r < 0.54) { push @s, pick("VACUUM FULL t$n", "VACUUM t$n", "VACUUM FREEZE t$n", 'CHECKPOINT') }
			elsif ($r < 0.62 && @{ $prepared[$n] })
			{
				push @s, pick('COMMIT', 'COMMIT', 'ROLLBACK') . " PREPARED '" . shift(@{ $prepared[$n] }) . "'";
			}
			else { push @s, change($n) }
		}
		else
		{
			if ($r < 0.14)
			{
				push @s, pick('COMMIT', 'COMMIT', 'COMMIT', 'ROLLBACK');
				$open[$n] = 0;
			}
			elsif ($r < 0.17)
			{
				# (it may have failed before: then this is a ROLLBACK)
				my $name = "DB_$n" . $gid++;
				push @s, "PREPARE TRANSACTION '$name'";
				push @{ $prepared[$n] }, $name;
				$open[$n] = 0;
			}
			elsif ($r < 0.24) { push @s, "SAVEPOINT s" . pick(1, 2) }
			elsif ($r < 0.30) { push @s, "ROLLBACK TO s" . pick(1, 2) unless $ddl[$n] && $assertions }
			elsif ($r < 0.32) { push @s, "RELEASE s" . pick(1, 2) }
			elsif ($r < 0.36) { push @s, ddl($n); $ddl[$n] = 1 }
			else
			{
				# an error is undone at once, or the transaction is lost
				push @s, rand() < 0.8 ? ('SAVEPOINT e', change($n), "\\if :ERROR\nROLLBACK TO e;\n\\else\nRELEASE e;\n\\endif\n") : change($n);
			}
		}
	}
	return join ";\n", @s;
}

# ---- what the slots say

# Transactions are numbered, positions left out.
sub decoded
{
	my ($am, $slot, %opt) = @_;
	my $options = join '', map { ", '$_', '$opt{$_}'" } sort keys %opt;
	my $out = one($node, "SELECT data FROM pg_logical_slot_peek_changes('${slot}_$am', NULL, NULL$options)", $am);
	my (%xid, $count);
	$out =~ s/\b((?:BEGIN|COMMIT|TXN|'?txn|transaction) )(\d+)/$1 . ($xid{$2} \/\/= ++$count)/gie;
	$out =~ s/(PREPARE TRANSACTION|COMMIT PREPARED|ROLLBACK PREPARED) '${am}_(\w+)', txid (\d+)/"$1 $2 " . ($xid{$3} \/\/= ++$count)/ge;
	$out =~ s/'${am}_(\d+)', txid (\d+)/"'$1', " . ($xid{$2} \/\/= ++$count)/ge;
	return $out;
}

# Two-phase: what a slot says of a transaction that has been rolled back by the time it is
# decoded ends where the decoder next reads a catalog after having come by an entry of the
# top-level transaction itself, which other databases' DDL adds to.  So only that such a
# transaction was prepared and rolled back is to be the same of both.
sub without_rolled_back
{
	my ($out) = @_;
	my %gone = map { $_ => 1 } $out =~ /^ROLLBACK PREPARED \S+ (\d+)$/mg;
	my $in = 0;
	return join "\n", grep {
		$in = $1 if /^BEGIN (\d+)$/;
		$in = 0 if /^(?:PREPARE TRANSACTION|COMMIT) /;
		!$in || !$gone{$in} || /^BEGIN /
	} split /\n/, $out;
}

# pgoutput's messages without positions, times and OIDs.  It tells again what a
# relation is like after any invalidation: those that say nothing new do not count.
sub published
{
	my ($am, $publications) = @_;
	my $protocol = $major >= 16 ? 4 : 3;
	my $out = one($node, qq{
		SELECT chr(get_byte(data, 0)) || replace(CASE
			WHEN get_byte(data, 0) IN (ascii('I'), ascii('U'), ascii('D')) THEN encode(substr(data, 6), 'escape')
			WHEN get_byte(data, 0) = ascii('T') THEN encode(substr(data, 2, 5), 'escape')
			WHEN get_byte(data, 0) = ascii('R') THEN encode(substr(data, 6), 'escape')
			WHEN get_byte(data, 0) = ascii('M') THEN encode(substr(data, 11), 'escape')
			ELSE '' END, chr(10), ' ')
		FROM pg_logical_slot_peek_binary_changes('out_$am', NULL, NULL, 'proto_version', '$protocol',
			'publication_names', '$publications', 'messages', 'true')}, $am);
	my %said;
	return join "\n", grep { !/^R(\w+\\000\w+)\\000/ || ($said{$1} // '') ne $_ && ($said{$1} = $_) } split /\n/, $out;
}

# What is left of streamed transactions for a subscriber, who takes back the
# changes of a subtransaction when he is told that it was aborted.
my $immediately = '';
sub streamed
{
	my ($am) = @_;
	my $set = "SET logical_decoding_work_mem = '64kB';" . ($immediately ? "SET $immediately;" : '');
	my $out = one($node, qq{$set SELECT encode(data, 'hex') FROM pg_logical_slot_peek_binary_changes('str_$am', NULL, NULL,
		'proto_version', '2', 'publication_names', 'whole', 'messages', 'true', 'streaming', 'on')}, $am);
	my (%changes, %relation, @done, $block, $streamed);
	return $out if $out =~ /^rc/;
	foreach my $message (map { pack 'H*', $_ } split /\n/, $out)
	{
		my ($type, $rest) = unpack 'a a*', $message;
		if ($type eq 'S') { $block = unpack 'N', $rest; $streamed++; next }
		if ($type eq 'E') { undef $block; next }
		if ($type eq 'A')
		{
			my ($xid, $sub) = unpack 'N N', $rest;
			@{ $changes{$xid} } = $xid == $sub ? () : grep { $_->[0] != $sub } @{ $changes{$xid} };
			next;
		}
		if ($type eq 'c')
		{
			push @done, "streamed", map { $_->[1] } @{ $changes{ unpack 'N', $rest } };
			next;
		}
		# (a message has the xid of the whole transaction: it cannot be taken back)
		next if $type =~ /[BCOYM]/;
		my $xid = 0;
		($xid, $rest) = unpack 'N a*', $rest if defined $block;
		my $what;
		if ($type eq 'R')
		{
			my ($oid, $schema, $name) = unpack 'N Z* Z*', $rest;
			$relation{$oid} = $name;
			next;
		}
		elsif ($type eq 'T')
		{
			my ($n, $options, @oids) = unpack 'N C N*', $rest;
			$what = "T $options @relation{@oids}";
		}
		else
		{
			my ($oid, $row) = unpack 'N a*', $rest;
			$what = "$type $relation{$oid} $row";
		}
		$what =~ s/[^ -~]/./g;
		if (defined $block) { push @{ $changes{$block} }, [ $xid, $what ] }
		else { push @done, $what }
	}
	cmp_ok($streamed, '>', 0, "$am: transactions were streamed");
	return join "\n", @done;
}

sub compare
{
	my ($what, $of) = @_;
	my %out = map { $_ => $of->($_) } @methods;
	my $same = $out{heap} eq $out{inplace};
	ok($same, "$what: " . length($out{heap}) . ' bytes');
	if (!$same)
	{
		my @h = split /\n/, $out{heap};
		my @i = split /\n/, $out{inplace};
		my $shown = 0;
		for my $n (0 .. ($#h > $#i ? $#h : $#i))
		{
			next if ($i[$n] // '') eq ($h[$n] // '');
			diag substr("line $n\nheap:    " . ($h[$n] // ''), 0, 1500);
			diag substr('inplace: ' . ($i[$n] // ''), 0, 1500);
			last if ++$shown > 1;
		}
	}
	unlike($out{heap}, qr/^rc \d/, "$what: no error");
}

# ---- the run

my %session;
sub connect_all
{
	foreach my $am (@methods)
	{
		$session{$am}[$_] = psql_session($node, $am) foreach 1, 2;
	}
}
connect_all();
my $crash_at = int($bursts / 2);
for my $b (1 .. $bursts)
{
	my $n = pick(1, 2);
	my $sql = burst($n);
	my %printed;
	note "-- burst $b, session $n\n$sql";
	foreach my $am (@methods)
	{
		(my $q = $sql) =~ s/DB_/${am}_/g;
		$q =~ s/\n;\n/\n/g;
		$printed{$am} = $session{$am}[$n]->query("$q;");
	}
	if ($printed{heap} ne $printed{inplace})
	{
		is($printed{inplace}, $printed{heap}, "burst $b: prints the same");
		last;
	}
	if ($b == $crash_at)
	{
		# (a message of no transaction waits for no WAL)
		one($node, 'CREATE TABLE so_far()');
		$node->stop('immediate');
		eval { $_->quit } foreach map { @{ $session{$_} }[ 1, 2 ] } @methods;
		$node->start;
		connect_all();
		@open = (0, 0, 0);
	}
}
foreach my $am (@methods)
{
	eval { $_->query('ROLLBACK'); $_->quit } foreach @{ $session{$am} }[ 1, 2 ];
}
foreach my $t (qw(t1 t2 p1 p2))
{
	is(contents($node, $t, 'inplace'), contents($node, $t, 'heap'), "$t: same rows");
}
sub all_slots
{
	my ($when) = @_;
	my @opt = ('skip-empty-xacts', 1);
	compare("$when, test_decoding", sub { decoded($_[0], 'td', @opt) });
	compare("$when, two-phase", sub { without_rolled_back(decoded($_[0], 'two', @opt, 'include-timestamp', 0)) });
	compare("$when, pgoutput", sub { published($_[0], 'whole') });
	compare("$when, pgoutput with filters", sub { published($_[0], 'parts') });
}
all_slots('at the end');

# Streamed: transactions that commit, but not all of their subtransactions.  (18's
# assertions do not like large ones that it finds rolled back, of heap tables either.)
foreach my $left (split /\n/, one($node, "SELECT database || ' ' || gid FROM pg_prepared_xacts"))
{
	my ($am, $name) = split / /, $left;
	one($node, "COMMIT PREPARED '$name'", $am);
}
foreach my $am (@methods)
{
	is(one($node, "SELECT slot_name FROM pg_create_logical_replication_slot('str_$am', 'pgoutput')", $am), "str_$am", "$am: slot to stream from");
	$session{$am}[$_] = psql_session($node, $am) foreach 1, 2;
	$_->query('BEGIN') foreach @{ $session{$am} }[ 1, 2 ];
}
foreach my $b (1 .. 12)
{
	my $n = pick(1, 2);
	my $sql = '';
	foreach (1 .. 12)
	{
		$sql .= 'SAVEPOINT e;' . (rand() < 0.1 && !$assertions ? ddl($n) : change($n)) . ";\n" .
		  (rand() < 0.15 ? "ROLLBACK TO e;\n" : "\\if :ERROR\nROLLBACK TO e;\n\\else\nRELEASE e;\n\\endif\n");
	}
	note "-- streamed, session $n\n$sql";
	$session{$_}[$n]->query($sql) foreach @methods;
}
foreach my $am (@methods)
{
	$session{$am}[1]->query("PREPARE TRANSACTION '${am}_streamed'");
	$session{$am}[2]->query('COMMIT');
	$session{$am}[1]->query("COMMIT PREPARED '${am}_streamed'");
	$_->quit foreach @{ $session{$am} }[ 1, 2 ];
}
foreach my $t (qw(t1 t2 p1 p2))
{
	is(contents($node, $t, 'inplace'), contents($node, $t, 'heap'), "streamed, $t: same rows");
}
compare('streamed', \&streamed);
if ($major >= 16)
{
	$immediately = 'debug_logical_replication_streaming = immediate';
	compare('streamed, every change at once', \&streamed);
}
is(one($node, "SELECT count(*) > 0 FROM pg_stat_replication_slots WHERE spill_count > 0"), 't', 'some transaction was spilled')
  if $major < 18;

check_clean($node, 'at the end', 'inplace');
$node->stop;
check_log($node);
done_testing();
