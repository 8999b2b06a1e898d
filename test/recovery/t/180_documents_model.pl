# Large values in TOAST tables of ours beside a model that is kept outside of the server: the
# test knows each value byte by byte, computes itself what a change makes of it, and keeps the
# state of each snapshot.  Three sessions change rows of their own, with savepoints, rollbacks
# and cursors, and copy values between rows and columns.  A deferred trigger writes down what
# it is given as OLD and NEW.  Others hold snapshots, on a standby too, which replays with
# wal_consistency_checking = all, or without.  A load beside changes values with a seal.  Then the server is
# killed, and has what was committed.  At the end the standby is promoted.
# DOCUMENT_STEPS says how many steps a round has (as 10000 for a long run).

use strict;
use warnings;

$SIG{PIPE} = 'IGNORE';
use Digest::MD5 qw(md5_hex);
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = seed();
my $steps = $ENV{DOCUMENT_STEPS} // 170;
my $feedback = $seed % 2 ? 'on' : 'off';
# (updates have other records with it)
my $checking = $seed % 3 && pg_major() > 15 ? 'all' : '';
my $first = new_node('primary', allows_streaming => 1, conf => qq{
default_table_access_method = 'inplace'
inplace.toast_in_place = on
wal_consistency_checking = '$checking'
max_standby_streaming_delay = '30s'
hot_standby_feedback = $feedback
autovacuum_naptime = 1s
shared_buffers = '16MB'
});
$first->start;
my $primary = $first;
my $lz4 = one($primary, q{SELECT enumvals::text LIKE '%lz4%' FROM pg_settings WHERE name = 'default_toast_compression'}) eq 't';
note $lz4 ? 'with lz4' : 'without lz4';
my @columns = qw(ext pg lz mn);
$primary->safe_psql('postgres', q{
	CREATE EXTENSION inplace;
	CREATE TABLE d (id int PRIMARY KEY, n int, ext text, pg text COMPRESSION pglz, lz text, mn text)
		WITH (autovacuum_vacuum_threshold = 20, toast.autovacuum_vacuum_threshold = 20);
	ALTER TABLE d ALTER ext SET STORAGE EXTERNAL;
	ALTER TABLE d ALTER mn SET STORAGE MAIN;
	CREATE TABLE log (id int, o text, n text);
	CREATE FUNCTION value(kind int, seed int, len int) RETURNS text LANGUAGE sql AS $$
		SELECT left(string_agg(CASE kind WHEN 0 THEN md5(seed || ':' || g)
			WHEN 1 THEN 'line ' || g || ' of ' || seed || ' ' || md5(g::text) || E'\n'
			ELSE 'words of ' || seed || ' are the same, ' END, '' ORDER BY g), len)
		FROM generate_series(1, len / 16 + 1) g $$;
	CREATE FUNCTION digest(r d) RETURNS text LANGUAGE sql AS $$
		SELECT md5(coalesce(md5(r.ext), '-') || coalesce(md5(r.pg), '-') || coalesce(md5(r.lz), '-') || coalesce(md5(r.mn), '-')) $$;
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO log VALUES (NEW.id, digest(OLD), digest(NEW));
		RETURN NULL;
	END $$;
	CREATE CONSTRAINT TRIGGER note AFTER UPDATE ON d DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();

	-- the load beside: bytes of two changes do not agree with the seal
	CREATE TABLE sealed (id int PRIMARY KEY, v text);
	ALTER TABLE sealed ALTER v SET STORAGE EXTERNAL;
	INSERT INTO sealed SELECT g, md5(x) || x FROM generate_series(1, 8) g, value(g % 2, g, 6000 * g) x;
	CREATE PROCEDURE change(row_id int) LANGUAGE plpgsql AS $$
	DECLARE
		x text;
	BEGIN
		SELECT substr(v, 33) INTO x FROM sealed WHERE id = row_id FOR UPDATE;
		x := CASE WHEN length(x) > 50000 THEN left(x, 3000)
			WHEN random() < 0.2 THEN value(1, (random() * 1000)::int, 9000) || x
			ELSE overlay(x PLACING md5(random()::text) FROM 1 + (random() * length(x))::int FOR (random() * 50)::int) END;
		UPDATE sealed SET v = md5(x) || x WHERE id = row_id;
		IF random() < 0.2 THEN ROLLBACK; END IF;
	END $$;
});
one($primary, 'ALTER TABLE d ALTER lz SET COMPRESSION lz4') if $lz4;
is(one($primary, q{SELECT count(*) FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_am m ON m.oid = t.relam
	WHERE c.relname IN ('d', 'sealed') AND amname = 'inplace'}), '2', 'TOAST tables of ours');

# ---------------- the model ----------------

my %committed;                  # id => values, in the order of @columns
my @log;
my @wrong;
my $changes = 0;
sub any { return int(rand $_[0]) }
sub digest { return md5_hex(join('', map { defined $_ ? md5_hex($_) : '-' } @{ $_[0] })) }
sub state_of { my ($s) = @_; return join ' ', map { "$_:" . digest($s->{$_}) } sort { $a <=> $b } keys %$s }
my $STATE = q{SELECT coalesce(string_agg(id || ':' || digest(d), ' ' ORDER BY id), '') FROM d};

# A value from nothing: what SQL calls it, and what it is.
sub new_value
{
	my ($kind, $number, $len) = (any(3), any(1000), int(exp(log(800) + rand(log(75)))));
	my $v = '';
	for (my $g = 1; length($v) < $len; $g++)
	{
		$v .= $kind == 0 ? md5_hex("$number:$g") : $kind == 1 ? "line $g of $number " . md5_hex($g) . "\n" : "words of $number are the same, ";
	}
	return ("value($kind, $number, $len)", substr($v, 0, $len));
}

# What column $c becomes; $rows is what the session sees.
sub changed
{
	my ($c, $row, $rows) = @_;
	my ($name, $v) = ($columns[$c], $row->[$c]);
	my $kind = any(20);
	return new_value() if $kind == 0 || !defined $v || length($v) < 100;
	return ('NULL', undef) if $kind == 1;
	my $len = length $v;
	my $at = $kind % 2 ? any($len - 80) : any($len < 4000 ? $len - 80 : 3900);
	my $word = substr(md5_hex(rand), 0, 1 + any(30));
	my $n = length $word;
	my $out = ($n, $n, 0, any(60), any($len - $at > 6000 ? 6000 : $len - $at))[ any(5) ];
	return ($name, $v) if $kind == 2;
	if ($kind == 3)
	{
		my $from = any(@columns);
		return ($columns[$from], $row->[$from]);
	}
	if ($kind == 4)
	{
		my $id = (sort keys %$rows)[ any(scalar keys %$rows) ];
		my $from = any(@columns);
		return ("(SELECT x.$columns[$from] FROM d x WHERE x.id = $id)", $rows->{$id}[$from]);
	}
	if ($kind == 5)
	{
		my ($sql, $more) = $len < 80000 ? new_value() : ("'more'", 'more');
		return any(2) ? ("$name || $sql", $v . $more) : ("$sql || $name", $more . $v);
	}
	return ("left($name, $at)", substr($v, 0, $at)) if $kind == 6;
	return ("substr($name, $at + 1)", substr($v, $at)) if $kind == 7;
	return ("$name || '$word'", $v . $word) if $kind == 8;
	return ("'$word' || $name", $word . $v) if $kind == 9;
	# (the function refuses to begin before the first byte)
	my $sql = "overlay($name PLACING '$word' FROM $at + 1 FOR $out)";
	substr($v, $at, $out) = $word;
	if ($kind < 13)
	{
		my $second = any(length($v) - 10 > 0 ? length($v) - 10 : 1);
		$sql = "overlay($sql PLACING 'two' FROM $second + 1 FOR 3)";
		substr($v, $second, 3) = 'two';
	}
	return ($sql, $v);
}

# ---------------- sessions ----------------

sub ask
{
	my ($s, $sql) = @_;
	my $out = $s->query($sql);
	return $out // '';
}

# An answer that must be the model's.  A standby's query may be cancelled, which is no answer.
sub agrees
{
	my ($s, $sql, $expected, $what, $lenient) = @_;
	my $out = ask($s, $sql);
	return if $out eq $expected || $lenient && $out eq '';
	push @wrong, "$what: '" . substr($out, 0, 300) . "' instead of '" . substr($expected, 0, 300) . "' for " . substr($sql, 0, 300)
		. ($s->{stderr} ? " ($s->{stderr})" : '');
}

sub slice_agrees
{
	my ($s, $rows, $what, $lenient) = @_;
	my @ids = sort keys %$rows or return;
	my ($id, $c) = ($ids[ any(scalar @ids) ], any(@columns));
	my $v = $rows->{$id}[$c];
	my ($at, $len) = defined $v ? (any(length($v) + 10), 1 + any(5000)) : (0, 10);
	my $part = defined $v ? md5_hex($at < length $v ? substr($v, $at, $len) : '') : '';
	agrees($s, "SELECT md5(substr($columns[$c], $at + 1, $len)) FROM d WHERE id = $id", $part, "$what, part of row $id", $lenient);
}

sub new_writer { return { number => $_[0], s => psql_session($primary) } }

# what a writer sees: all that is committed, and its own changes
sub seen { my ($w) = @_; return { (map { $_ => $committed{$_} } grep { $_ % 3 != $w->{number} } keys %committed), %{ $w->{rows} } } }

sub end_transaction
{
	my ($w, $commit) = @_;
	ask($w->{s}, $commit ? 'COMMIT' : 'ROLLBACK');
	if ($commit)
	{
		delete $committed{$_} foreach grep { $_ % 3 == $w->{number} } keys %committed;
		$committed{$_} = $w->{rows}{$_} foreach keys %{ $w->{rows} };
		push @log, @{ $w->{log} };
		# a cursor WITH HOLD goes on
		agrees($w->{s}, 'FETCH ALL FROM held', $w->{cursor}, 'cursor WITH HOLD') if defined $w->{cursor};
		ask($w->{s}, 'CLOSE held') if defined $w->{cursor};
	}
	delete @$w{qw(rows log savepoints cursor)};
}

sub change
{
	my ($w, $id) = @_;
	my $row = $w->{rows}{$id};
	my @new = @$row;
	my @sets;
	my $rows = seen($w);
	$changes++;
	foreach my $c (grep { rand() < 0.4 } 0 .. $#columns)
	{
		my ($sql, $v) = changed($c, $row, $rows);
		push @sets, "$columns[$c] = $sql";
		$new[$c] = $v;
	}
	ask($w->{s}, 'UPDATE d SET ' . join(', ', 'n = n + 1', @sets) . " WHERE id = $id");
	push @{ $w->{log} }, "$id " . digest($row) . ' ' . digest(\@new);
	$w->{rows}{$id} = \@new;
}

# more changes of a value than a transaction has numbers for
sub change_often
{
	my ($w, $id) = @_;
	my $row = $w->{rows}{$id};
	my $c = any(@columns);
	return if !defined $row->[$c] || length($row->[$c]) < 200;
	my ($at, $times) = (any(150), 5 + any(35));
	ask($w->{s}, "DO 'BEGIN FOR i IN 1 .. $times LOOP UPDATE d SET $columns[$c] = overlay($columns[$c] PLACING i::text FROM $at + 1) WHERE id = $id; END LOOP; END'");
	foreach my $i (1 .. $times)
	{
		my @new = @{ $w->{rows}{$id} };
		substr($new[$c], $at, length $i) = $i;
		push @{ $w->{log} }, "$id " . digest($w->{rows}{$id}) . ' ' . digest(\@new);
		$w->{rows}{$id} = \@new;
		$changes++;
	}
}

sub step
{
	my ($w) = @_;
	my $s = $w->{s};
	if (!$w->{rows})
	{
		ask($s, 'BEGIN');
		$w->{rows} = { map { $_ => $committed{$_} } grep { $_ % 3 == $w->{number} } keys %committed };
		$w->{log} = [];
		$w->{savepoints} = [];
	}
	my $id = $w->{number} + 3 * any(6);
	my $kind = rand;
	if (!$w->{rows}{$id})
	{
		my @v = map { [ new_value() ] } @columns;
		ask($s, "INSERT INTO d VALUES ($id, 0, " . join(', ', map { $_->[0] } @v) . ')');
		$w->{rows}{$id} = [ map { $_->[1] } @v ];
	}
	elsif ($kind < 0.02)
	{
		ask($s, "DELETE FROM d WHERE id = $id");
		delete $w->{rows}{$id};
	}
	elsif ($kind < 0.07) { change_often($w, $id) }
	elsif ($kind < 0.52) { change($w, $id) }
	elsif ($kind < 0.62)
	{
		ask($s, 'SAVEPOINT s' . @{ $w->{savepoints} });
		push @{ $w->{savepoints} }, [ { %{ $w->{rows} } }, scalar @{ $w->{log} }, $w->{cursor} ];
	}
	elsif ($kind < 0.70 && @{ $w->{savepoints} })
	{
		my $n = any(scalar @{ $w->{savepoints} });
		ask($s, "ROLLBACK TO s$n");
		my ($rows, $logged, $cursor) = @{ $w->{savepoints}[$n] };
		$#{ $w->{savepoints} } = $n;
		$w->{rows} = {%$rows};
		$#{ $w->{log} } = $logged - 1;
		$w->{cursor} = $cursor;
	}
	elsif ($kind < 0.75) { agrees($s, $STATE, state_of(seen($w)), 'own changes') }
	elsif ($kind < 0.78) { slice_agrees($s, seen($w), 'own changes') }
	elsif ($kind < 0.82 && !defined $w->{cursor})
	{
		ask($s, "DECLARE held CURSOR WITH HOLD FOR SELECT id || ':' || digest(d) FROM d WHERE id % 3 = $w->{number} ORDER BY id");
		$w->{cursor} = join "\n", map { "$_:" . digest($w->{rows}{$_}) } sort { $a <=> $b } keys %{ $w->{rows} };
	}
	elsif ($kind < 0.95) { end_transaction($w, 1) }
	elsif ($kind > 0.96) { end_transaction($w, 0) }
}

# ---------------- the test ----------------

$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
my $script = pgbench_script($primary, 'change', "\\set id random(1, 8)\nCALL change(:id);\n");
my $SEALS = q{SELECT count(*) FROM sealed WHERE left(v, 32) <> md5(substr(v, 33))};

sub hold
{
	my ($held, $node) = @_;
	$primary->wait_for_catchup($standby) if $node == $standby;
	my $s = psql_session($node);
	ask($s, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $h = { s => $s, rows => {%committed}, lenient => $node == $standby, name => $node->name };
	agrees($s, $STATE, state_of(\%committed), "new snapshot of $h->{name}", $h->{lenient});
	push @$held, $h;
}

foreach my $round (1 .. 3)
{
	my $load = start_pgbench($primary, '-c', '2', '-T', '600', '-R', '60', '-f', $script);
	my @writers = map { new_writer($_) } 0 .. 2;
	my @held;
	foreach my $n (1 .. $steps)
	{
		step($writers[ any(3) ]);
		my $kind = rand;
		if ($kind < 0.03) { hold(\@held, any(3) ? $primary : $standby) }
		elsif ($kind < 0.09 && @held)
		{
			my $h = $held[ any(scalar @held) ];
			if (any(2)) { slice_agrees($h->{s}, $h->{rows}, "held snapshot of $h->{name}", $h->{lenient}) }
			else { agrees($h->{s}, $STATE, state_of($h->{rows}), "held snapshot of $h->{name}", $h->{lenient}) }
		}
		elsif ($kind < 0.11 || @held > 4)
		{
			my $h = splice(@held, @held > 4 ? 0 : any(scalar @held), 1);
			$h->{s}->quit if $h;
		}
		elsif ($kind < 0.12) { one($primary, any(2) ? 'VACUUM d' : 'CHECKPOINT') }
		last if @wrong > 5;
	}
	agrees($_->{s}, $STATE, state_of($_->{rows}), "snapshot of $_->{name} at the end of round $round", $_->{lenient}) foreach @held;

	# with transactions open
	if ($round % 2) { kill9_all($primary) } else { $primary->stop('immediate') }
	foreach my $x (@writers, @held) { eval { $x->{s}->quit } }
	$primary->start;
	end_pgbench($load);
	is(one($primary, $STATE), state_of(\%committed), "round $round: what was committed is there");
	is(one($primary, $SEALS), '0', "round $round: and the values with a seal are whole");
	is(one($primary, q{SELECT coalesce(string_agg(l, ',' ORDER BY l COLLATE "C"), '') FROM (SELECT concat_ws(' ', id, o, n) AS l FROM log) x}),
		join(',', sort @log), "round $round: triggers got what the rows were");
	is(one($primary, ('VACUUM FULL d', 'CLUSTER d USING d_pkey', 'REINDEX TABLE CONCURRENTLY d')[ $round % 3 ]), '', "round $round: a rewrite");
	is(one($primary, $STATE), state_of(\%committed), "round $round: nothing is otherwise after it");
	check_clean($primary, "round $round");
	is(one($primary, q{SELECT count(*) FROM pg_class c, inplace.check(c.reltoastrelid) WHERE c.relname IN ('d', 'sealed')}), '0',
		"round $round: nor in the TOAST tables");
	is("@wrong", '', "round $round: all snapshots are as they were");
}
note "$changes changes";
cmp_ok($changes, '>', $steps, 'there were changes');
$primary->wait_for_catchup($standby);
is(one($standby, $STATE), state_of(\%committed), 'the standby has the same');
$primary->stop('fast');
$standby->promote;
is(one($standby, $STATE), state_of(\%committed), 'when it is promoted, too');
$primary = $standby;
@log = ();
my $w = new_writer(1);
step($w) foreach 1 .. 40;
end_transaction($w, 1) if $w->{rows};
$w->{s}->quit;
is(one($standby, 'VACUUM FULL d'), '', 'rewritten');
is(one($standby, $STATE), state_of(\%committed), 'and changed');
is(one($standby, $SEALS), '0', 'values with a seal are whole');
is("@wrong", '', 'all that was read agreed');
check_clean($standby, 'promoted');
check_log($_) foreach $first, $standby;
$standby->stop;
done_testing();
