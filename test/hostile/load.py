"""What the sessions of the hostile test do."""

from compare import WrongAnswer, difference, key_value, null_key, settings
from table import (a_value, big_value, ci_value, doc_value, f_value, h_value, k_value, maybe_null, n_value, p_value, query, r_value,
                   row_values, s_value, ts_value, w_value)

# Errors that concurrency brings: none of them says that something is wrong.
EXPECTED = {
    "23505": "unique violation", "40001": "serialization failure", "40P01": "deadlock",
    "55P03": "lock not available", "25P02": "failed transaction", "57014": "canceled",
    "21000": "row changed twice", "42P07": "exists already", "42704": "does not exist",
    "3B001": "no such savepoint", "42P05": "name in use", "34000": "no such cursor",
    "55006": "in use", "55000": "not prerequisite state", "42809": "wrong object type",
}


def assignment(r, spread):
    """What an UPDATE sets."""
    return r.choice([
        lambda: f"k = {maybe_null(r, k_value(r))}",
        lambda: f"k = {k_value(r)}",
        lambda: f"k = k + {r.choice([-1, 1])}",
        lambda: "k = -k",
        lambda: "k = k",
        lambda: f"s = {maybe_null(r, repr(s_value(r)))}",
        lambda: f"s = '{s_value(r)}', k = {k_value(r)}",
        lambda: f"u = {maybe_null(r, r.randint(1, spread))}",
        lambda: f"u = {r.randint(1, spread)}, j = {r.randint(0, 10)}",
        lambda: f"n = {maybe_null(r, n_value(r))}",
        lambda: f"n = round(n, {r.randint(0, 3)})",
        lambda: f"n = {n_value(r)}, k = k + 1",
        lambda: f"f = {f_value(r)}",
        lambda: "f = -f",
        lambda: f"ci = {maybe_null(r, repr(ci_value(r)))}",
        lambda: "ci = CASE WHEN ci COLLATE \"C\" = upper(ci) THEN lower(ci) ELSE upper(ci) END",
        lambda: f"j = {maybe_null(r, r.randint(0, 10))}",
        lambda: "j = 10 - j",
        lambda: "s = CASE WHEN s < 's4' THEN 's6' ELSE 's2' END",
        lambda: "n = CASE WHEN n < 4 THEN n + 4 ELSE n - 4 END, u = u",
        lambda: f"a = '{a_value(r)}'",
        lambda: f"a = {maybe_null(r, repr(a_value(r)))}, j = {r.randint(0, 10)}",
        lambda: f"a = array_append(a, {r.randint(1, 6)})",
        lambda: f"p = {maybe_null(r, p_value(r))}",
        lambda: f"p = {p_value(r)}, a = '{a_value(r)}'",
        lambda: f"r = {maybe_null(r, r_value(r))}",
        lambda: f"r = {r_value(r)}, p = {p_value(r)}, k = {k_value(r)}",
        lambda: f"w = {maybe_null(r, w_value(r))}",
        lambda: f"doc = {maybe_null(r, doc_value(r))}",
        lambda: f"doc = doc || '{{\"a\": {r.randint(1, 4)}}}', a = '{a_value(r)}'",
        lambda: f"h = {maybe_null(r, h_value(r))}, w = {w_value(r)}",
        lambda: f"ts = {maybe_null(r, ts_value(r))}",
        lambda: f"ts = {ts_value(r)}, doc = {doc_value(r)}, h = {h_value(r)}, p = {p_value(r)}",
        lambda: f"pad = repeat('{r.choice('xyz')}', {r.choice([0, 3, 30, 60])})",
        lambda: f"big = {big_value(r)}",
        lambda: f"big = sealed(overlay(body(big) PLACING 'XYZ' FROM {r.randint(1, 15000)}))",
        lambda: f"big = sealed(body(big) || repeat('end', {r.choice([1, 100, 700])})), pad = 'x'",
        lambda: f"big = sealed('front' || left(body(big), {r.randint(3000, 12000)})), k = k + 1",
        lambda: f"pad = repeat('w', {r.choice([10, 300, 1500])})",
    ])()


def where(r, rows):
    a = r.randint(1, rows)
    return r.choice([
        f"id = {a}", f"id = {a}", f"id BETWEEN {a} AND {a + r.randint(1, 20)}",
        f"k = {k_value(r)} AND id % 3 = {r.randint(0, 2)}", f"k > {r.randint(10, 30)}",
        f"u BETWEEN {a} AND {a + 5}", f"s = '{s_value(r)}' AND id % 5 = 0",
    ])


def change(r, rows, spread):
    """A statement that changes something."""
    a = r.randint(1, rows)
    b, c = k_value(r), k_value(r)
    return r.choices([
        lambda: f"UPDATE t SET {assignment(r, spread)} WHERE {where(r, rows)}",
        # there and back
        lambda: f"UPDATE t SET k = {b} WHERE id = {a}; UPDATE t SET k = {c} WHERE id = {a}; "
                f"UPDATE t SET k = {b} WHERE id = {a}",
        lambda: f"UPDATE t SET u = NULL WHERE id = {a}; UPDATE t SET u = {r.randint(1, spread)} WHERE id = {a}; "
                f"UPDATE t SET u = NULL WHERE id = {a}",
        lambda: f"UPDATE t SET u = -u WHERE id = {a}; UPDATE t SET u = -u WHERE id = {a}",
        lambda: f"UPDATE t SET p = point(1, 1), a = '{{1}}', r = '[1,2)', n = 1 WHERE id = {a}; "
                f"UPDATE t SET p = point(5, 5), a = '{{2,3}}', r = '[7,9)', n = 2 WHERE id = {a}; "
                f"UPDATE t SET p = point(1, 1), a = '{{1}}', r = '[1,2)', n = 1.0 WHERE id = {a}",
        lambda: f"UPDATE t SET w = 'maple oak', doc = '{{\"a\": 1}}', h = 'a=>1', f = 1 WHERE id = {a}; "
                f"UPDATE t SET w = 'pine', doc = '{{\"b\": [1]}}', h = 'b=>2', f = 2 WHERE id = {a}; "
                f"UPDATE t SET w = 'maple oak', doc = '{{\"a\": 1.0}}', h = 'a=>1', f = 1 WHERE id = {a}",
        # out of predicates, and in again
        lambda: f"UPDATE t SET s = 's7', j = 3, k = 1 WHERE id BETWEEN {a} AND {a + 3}; "
                f"UPDATE t SET s = 's{r.randint(1, 4)}', j = 8, k = 5 WHERE id BETWEEN {a} AND {a + 3}",
        lambda: f"DELETE FROM t WHERE id = {a}",
        lambda: f"INSERT INTO t VALUES {row_values(r, a, spread)} ON CONFLICT DO NOTHING",
        lambda: f"INSERT INTO t VALUES {row_values(r, a, spread)} ON CONFLICT (id) DO UPDATE SET {assignment_excluded(r)}",
        lambda: f"INSERT INTO t VALUES {row_values(r, a, spread)}",
        lambda: f"DELETE FROM t WHERE id = {a}; INSERT INTO t VALUES {row_values(r, a, spread)}",
        lambda: f"SELECT FROM t WHERE {where(r, rows)} FOR {r.choice(['UPDATE', 'SHARE', 'NO KEY UPDATE', 'KEY SHARE'])}",
        lambda: f"UPDATE t x SET k = y.k, s = y.s FROM t y WHERE y.id = x.id + 1 AND x.id BETWEEN {a} AND {a + 5}",
        lambda: f"MERGE INTO t USING (VALUES ({a}), ({a + 1})) v(id) ON t.id = v.id "
                f"WHEN MATCHED AND k > 10 THEN DELETE WHEN MATCHED THEN UPDATE SET {assignment(r, spread)}",
    ], [34, 6, 3, 3, 4, 4, 6, 5, 8, 4, 3, 3, 6, 3, 3])[0]()


def assignment_excluded(r):
    return r.choice(["k = excluded.k", "u = excluded.u, k = t.k + 1", "n = excluded.n", "s = excluded.s, j = excluded.j"])


CHURN = """
CREATE OR REPLACE PROCEDURE churn(seed float8, times int, nrows int, spread int) LANGUAGE plpgsql AS $$
DECLARE
	nrow int;
	what int;
BEGIN
	PERFORM setseed(seed);
	FOR i IN 1..times LOOP
		nrow := 1 + floor(random() * nrows);
		what := floor(random() * 27);
		BEGIN
			CASE what
			WHEN 0, 1 THEN UPDATE t SET k = floor(random() * 26) WHERE id = nrow;
			WHEN 2 THEN UPDATE t SET k = k + 1 WHERE id BETWEEN nrow AND nrow + 10;
			WHEN 3 THEN UPDATE t SET k = k - 1 WHERE id BETWEEN nrow AND nrow + 10;
			WHEN 4 THEN UPDATE t SET u = 1 + floor(random() * spread) WHERE id = nrow;
			WHEN 5 THEN UPDATE t SET s = 's' || floor(random() * 8) WHERE id = nrow;
			WHEN 6 THEN UPDATE t SET j = floor(random() * 11) WHERE id = nrow;
			WHEN 7 THEN UPDATE t SET pad = repeat('c', (random() * 80)::int) WHERE id = nrow;
			WHEN 8 THEN UPDATE t SET n = round(floor(random() * 6)::numeric, (random() * 3)::int) WHERE id = nrow;
			WHEN 9 THEN
				DELETE FROM t WHERE id = nrow;
			WHEN 10, 11 THEN
				INSERT INTO t VALUES (nrow, floor(random() * 26), 's' || floor(random() * 8), 1 + floor(random() * spread),
					round(floor(random() * 6)::numeric, (random() * 3)::int), 1, 'Alpha', floor(random() * 11), '{1,2}', '');
			WHEN 12 THEN UPDATE t SET k = 1 WHERE id = nrow; UPDATE t SET k = 2 WHERE id = nrow; UPDATE t SET k = 1 WHERE id = nrow;
			WHEN 13 THEN UPDATE t SET ci = CASE WHEN random() < 0.5 THEN upper(ci) ELSE lower(ci) END WHERE id = nrow;
			WHEN 14 THEN UPDATE t SET f = -f WHERE id = nrow;
			WHEN 16 THEN UPDATE t SET s = CASE WHEN s < 's4' THEN 's6' ELSE 's2' END WHERE id BETWEEN nrow AND nrow + 2;
			WHEN 17 THEN UPDATE t SET s = 's7', j = 2 WHERE id = nrow; UPDATE t SET s = 's1', j = 9 WHERE id = nrow;
			WHEN 18 THEN UPDATE t SET a = ARRAY[1 + floor(random() * 6), 3] WHERE id BETWEEN nrow AND nrow + 2;
			WHEN 19 THEN UPDATE t SET p = point(floor(random() * 7), 3) WHERE id BETWEEN nrow AND nrow + 2;
			WHEN 20 THEN UPDATE t SET r = int4range(nrow % 20, nrow % 20 + floor(random() * 5)::int), a = '{2}' WHERE id = nrow;
			WHEN 21 THEN UPDATE t SET w = CASE WHEN random() < 0.5 THEN 'maple' ELSE 'oak birch' END WHERE id BETWEEN nrow AND nrow + 2;
			WHEN 22 THEN UPDATE t SET doc = jsonb_build_object('a', floor(random() * 4), 'b', to_jsonb(a)), ts = 'pine' WHERE id BETWEEN nrow AND nrow + 2;
			WHEN 23 THEN UPDATE t SET h = 'a=>1, b=>2' WHERE id BETWEEN nrow AND nrow + 2; UPDATE t SET h = 'b=>3' WHERE id = nrow;
			WHEN 24 THEN UPDATE t SET big = sealed(overlay(body(big) PLACING 'churn' || i FROM 1 + (random() * 9000)::int)) WHERE id BETWEEN nrow AND nrow + 3;
			WHEN 25 THEN UPDATE t SET big = sealed(left(body(big), 3000 + (random() * 9000)::int) || i) WHERE id = nrow;
			WHEN 26 THEN
				UPDATE t SET big = sealed(body(big) || 'back') WHERE id = nrow;
				IF checked((SELECT big FROM t WHERE id = nrow)) <> '' THEN RAISE division_by_zero; END IF;
			WHEN 15 THEN UPDATE t SET k = 7 WHERE id = nrow; RAISE division_by_zero;
			END CASE;
		EXCEPTION
			WHEN unique_violation OR deadlock_detected OR serialization_failure OR lock_not_available
				OR division_by_zero THEN NULL;
		END;
		IF random() < 0.2 THEN ROLLBACK; ELSIF random() < 0.8 THEN COMMIT; END IF;
	END LOOP;
END $$
"""


class Cursor:
    """A scrollable cursor over an index, and what it must show.

    Of rows with equal keys nbtree gives those of one posting list in the same
    order in both directions, so what comes back need only have the same keys.
    """

    def __init__(self, r, spread):
        columns, self.where, order = query(r, spread)
        while columns.split(", ")[0] in ("p", "w", "doc", "h", "ts") or "<->" in (order or ""):
            columns, self.where, order = query(r, spread)
        self.order = order or columns.split(", ")[0]
        self.path = r.choice(["index", "index-only", "index", "bitmap"])
        first = self.order.split()[0]
        columns = r.choice([columns, "id, k, s, u"]).split(", ")
        self.columns = ", ".join([first] + [c for c in columns if c != first])
        self.seen = []
        self.expected = None
        self.ties = False
        self.turned = False
        self.at = 0                 # number of the current row
        self.complete = False

    def select(self):
        return f"SELECT {self.columns} FROM t WHERE {self.where}"

    def declare(self):
        order = "" if self.path == "bitmap" else f" ORDER BY {self.order}"
        return (f"{settings('seq')} {self.select()}; {settings(self.path)} "
                f"DECLARE c SCROLL CURSOR FOR {self.select()}{order}")

    def key(self, row):
        return key_value(self.order.split()[0], row[0])

    def declared(self, rows):
        self.expected = sorted(rows, key=null_key)
        keys = [self.key(row) for row in rows]
        self.ties = self.path != "bitmap" and any(keys.count(key) > 1 for key in keys)

    def wrong(self, context, what):
        raise WrongAnswer(f"{context}: cursor {self.select()} ORDER BY {self.order} by {self.path}: {what}")

    def same(self, rows, known, context, what):
        """Do rows come back as they were?"""
        a, b = (([self.key(row) for row in rows], [self.key(row) for row in known]) if self.ties else (rows, known))
        if a != b:
            n = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            self.wrong(context, f"{what} at {self.at} gave {len(rows)} rows instead of {len(known)}, "
                       f"the {n + 1}th {rows[n:n + 3]} instead of {known[n:n + 3]}")
        for row in rows:
            if row not in self.expected:
                self.wrong(context, f"{what} gave {row}, which a sequential scan does not")

    def moved(self, count, rows, context):
        """FETCH count (negative: backward) has given rows."""
        if count > 0:
            known = self.seen[self.at:self.at + count]
            self.same(rows[:len(known)], known, context, f"FETCH {count}")
            new = rows[len(known):]
            self.same(new, new, context, f"FETCH {count}")
            if self.complete and new:
                self.wrong(context, f"has more rows than before: {new[:5]}")
            self.seen += new
            self.at += len(rows)
            if len(rows) < count:
                self.complete = True
                self.at = len(self.seen) + 1
        else:
            self.turned = True
            last = max(self.at - 1, 0)
            known = self.seen[max(0, last + count):last][::-1]
            self.same(rows, known, context, f"FETCH {count}")
            self.at = max(0, self.at + count)
        if len(self.seen) > len(self.expected) or (
                self.complete and not (self.ties and self.turned) and
                sorted(self.seen, key=null_key) != self.expected):
            missing, extra = difference(self.expected, self.seen)
            self.wrong(context, f"missing {missing[:5]}, extra {extra[:5]}")
