# A command that comes to a row by its TID uses what scans know of the page's place in
# shared buffers.  With so few buffers that a scan's next page takes the place of
# one that was read before, each change has to find its own page all the same.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use Test::More;

my $node = new_node('primary', conf => q{
shared_buffers = '1MB'
max_connections = 20
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION inplace');

# four rows a page, 200 pages: twice as many as there are buffers
sub make
{
	my ($table, $method) = @_;
	$node->safe_psql('postgres', qq{
		CREATE TABLE $table (id int, v int, f text) USING $method;
		INSERT INTO $table SELECT g, 0, repeat('x', 1700) FROM generate_series(1, 800) g;
		VACUUM $table;
		CREATE FUNCTION bump_$table(t tid) RETURNS int LANGUAGE plpgsql VOLATILE AS \$\$
		DECLARE r int;
		BEGIN
			UPDATE $table SET v = v + 1 WHERE ctid = t RETURNING id INTO r;
			RETURN r;
		END \$\$;});
	return;
}

# Which rows have been changed, and what inplace.check says.  (A second change by the
# same TID finds nothing on heap, where the row has moved.)
sub outcome
{
	my ($table, $method) = @_;
	my $changed = one($node, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM $table WHERE v <> 0");
	my $found = $method eq 'heap' ? '0' : one($node, "SELECT count(*) FROM inplace.check('$table')");
	return "$changed; $found findings";
}

my %statement = (

	# Sampled pages are read row by row where few rows of each are wanted.
	'a sample scan that begins anew in the other mode' => q{
		DO $$
		BEGIN
			FOR j IN 0..198 LOOP
				PERFORM bump_@T('(199,1)')
				   FROM (VALUES (1, 100.0::float4), (2, 24.9::float4)) p(n, pct),
						LATERAL (SELECT ctid, id FROM @T TABLESAMPLE bernoulli (p.pct) REPEATABLE (j)) s
				  WHERE CASE WHEN n = 2 AND (s.ctid::text::point)[0] = j THEN true ELSE false END LIMIT 1;
			END LOOP;
		END $$},

	# Cursors of which each is moved between changes of the rows of the others.
	'cursors side by side' => q{
		DO $$
		DECLARE
			a CURSOR FOR SELECT ctid FROM @T ORDER BY ctid;
			b NO SCROLL CURSOR FOR SELECT ctid FROM @T;
			c CURSOR FOR SELECT ctid FROM @T WHERE ctid >= '(100,0)';
			d CURSOR FOR SELECT ctid FROM @T TABLESAMPLE system (100);
			x tid; y tid; z tid; w tid;
		BEGIN
			OPEN a; OPEN b; OPEN c; OPEN d;
			FOR i IN 1..390 LOOP
				FETCH a INTO x; FETCH b INTO y; FETCH c INTO z; FETCH d INTO w;
				PERFORM bump_@T(CASE i % 4 WHEN 0 THEN x WHEN 1 THEN y WHEN 2 THEN z ELSE w END);
				BEGIN
					FETCH b INTO y; FETCH d INTO w;
					PERFORM bump_@T(y), bump_@T('(199,2)');
					IF i % 3 = 0 THEN
						RAISE EXCEPTION 'rolled back';
					END IF;
				EXCEPTION WHEN raise_exception THEN
					PERFORM bump_@T('(198,3)');
				END;
			END LOOP;
			CLOSE c; CLOSE a;
			PERFORM bump_@T(y), bump_@T(z), bump_@T(w);
			CLOSE b; CLOSE d;
			PERFORM bump_@T(x), bump_@T(y), bump_@T(z), bump_@T(w);
		END $$},

	# Files that go, or come, while a scan of them was the last to read a page.
	'files replaced in the transaction' => q{
		DO $$
		DECLARE
			c CURSOR FOR SELECT ctid FROM @T WHERE id IN (401, 402) AND v = 0;
			x tid;
		BEGIN
			OPEN c; FETCH c INTO x; CLOSE c;
			BEGIN
				TRUNCATE @T;
				INSERT INTO @T SELECT g, 0, repeat('y', 1700) FROM generate_series(1, 800) g;
				OPEN c; FETCH c INTO x;
				PERFORM bump_@T(x);
				RAISE EXCEPTION 'rolled back';
			EXCEPTION WHEN raise_exception THEN
				PERFORM bump_@T(x);
			END;
			OPEN c; FETCH c INTO x;
			PERFORM bump_@T(x);
			CLOSE c;
			CREATE TEMP TABLE t ON COMMIT DROP AS SELECT * FROM @T;
			UPDATE t SET v = v + 1 WHERE ctid IN (SELECT ctid FROM @T WHERE id = 401);
			PERFORM bump_@T('(50,1)'), bump_@T('(150,1)');
		END $$},
);

foreach my $what (sort keys %statement)
{
	my %outcome;
	foreach my $method ('heap', 'inplace')
	{
		my $table = "t_$method";
		(my $sql = $statement{$what}) =~ s/\@T/$table/g;
		make($table, $method);
		one($node, "SET synchronize_seqscans = off; SET default_table_access_method = $method; $sql");
		$outcome{$method} = outcome($table, $method);
		$node->safe_psql('postgres', "DROP TABLE $table; DROP FUNCTION bump_$table");
	}
	isnt($outcome{heap}, '; 0 findings', "$what: something has been changed");
	is($outcome{inplace}, $outcome{heap}, "$what: the rows that heap changes, and no others");
}

check_log($node);
$node->stop;
done_testing();
