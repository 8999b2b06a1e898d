"""The table of the hostile test: columns with few values, of kinds that make
trouble; a choice of indexes; and queries that the indexes can answer.
"""

# Operators with a comparison of their own: by absolute value, so that 3 and -3
# are equal but not identical.  Made once for a database.
SUPPORT = """
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE FUNCTION abs_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT
	RETURN sign(abs($1) - abs($2))::int;
CREATE FUNCTION abs_lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT RETURN abs($1) < abs($2);
CREATE FUNCTION abs_le(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT RETURN abs($1) <= abs($2);
CREATE FUNCTION abs_eq(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT RETURN abs($1) = abs($2);
CREATE FUNCTION abs_ge(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT RETURN abs($1) >= abs($2);
CREATE FUNCTION abs_gt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT RETURN abs($1) > abs($2);
CREATE OPERATOR |<| (leftarg = int, rightarg = int, function = abs_lt, restrict = scalarltsel, commutator = |>|);
CREATE OPERATOR |<=| (leftarg = int, rightarg = int, function = abs_le, restrict = scalarlesel, commutator = |>=|);
CREATE OPERATOR |=| (leftarg = int, rightarg = int, function = abs_eq, restrict = eqsel, commutator = |=|);
CREATE OPERATOR |>=| (leftarg = int, rightarg = int, function = abs_ge, restrict = scalargesel, commutator = |<=|);
CREATE OPERATOR |>| (leftarg = int, rightarg = int, function = abs_gt, restrict = scalargtsel, commutator = |<|);
CREATE OPERATOR CLASS abs_ops FOR TYPE int USING inplace_btree AS
	OPERATOR 1 |<|, OPERATOR 2 |<=|, OPERATOR 3 |=|, OPERATOR 4 |>=|, OPERATOR 5 |>|,
	FUNCTION 1 abs_cmp(int, int);
-- A large value begins with a checksum of what follows: bytes of two changes are noticed.
CREATE FUNCTION sealed(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN md5($1) || $1;
CREATE FUNCTION body(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN substr($1, 33);
CREATE FUNCTION checked(v text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF left(v, 32) <> md5(substr(v, 33)) THEN
		RAISE data_corrupted USING MESSAGE = format('bytes of more than one value: %s of %s', left(v, 40), length(v));
	END IF;
	RETURN left(v, 32) || length(v);
END $$;
CREATE FUNCTION third(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 / 3; END';
"""

# Operator classes of extensions.  Where the server has none of these, use_contrib(False) is called.
CONTRIB = """
CREATE SCHEMA more;
CREATE EXTENSION btree_gin SCHEMA more;
CREATE EXTENSION btree_gist SCHEMA more;
CREATE EXTENSION hstore SCHEMA more;
CREATE EXTENSION intarray SCHEMA more;
CREATE EXTENSION pg_trgm SCHEMA more;
"""
contrib = True

COLUMNS = ("id", "k", "s", "u", "n", "f", "ci", "j", "a", "pad", "p", "r", "w", "doc", "h", "ts", "checked(big)")

TABLE = """
CREATE TABLE t (
	id int PRIMARY KEY,
	k int,
	s text COLLATE "C",
	u int,
	n numeric,
	f float8,
	ci text COLLATE nocase,
	j int,
	a int[],
	pad text,
	p point,
	r int4range,
	w text COLLATE "C",
	doc jsonb,
	h {hstore},
	ts tsvector,
	big text
) USING inplace WITH (fillfactor = {fillfactor}, autovacuum_enabled = {autovacuum})
"""

# name, what follows CREATE INDEX ... ON t
INDEXES = [
    ("t_k", "USING inplace_btree (k)"),
    ("t_k_plain", "USING inplace_btree (k) WITH (deduplicate_items = off, fillfactor = 60)"),
    ("t_k_desc", "USING inplace_btree (k DESC NULLS LAST)"),
    ("t_k_first", "USING inplace_btree (k NULLS FIRST, s DESC)"),
    ("t_s_k", "USING inplace_btree (s, k)"),
    ("t_k_incl", "USING inplace_btree (k) INCLUDE (j, pad)"),
    ("t_s_incl", "USING inplace_btree (s) INCLUDE (n)"),
    ("t_n", "USING inplace_btree (n)"),
    ("t_n_k", "USING inplace_btree (n, k DESC)"),
    ("t_f", "USING inplace_btree (f)"),
    ("t_ci", "USING inplace_btree (ci)"),
    ("t_ci_s", "USING inplace_btree (ci, s)"),
    ("t_k_part", "USING inplace_btree (k) WHERE j > 5"),
    ("t_j_part", "USING inplace_btree (j, k) WHERE s < 's3'"),
    ("t_k_expr", "USING inplace_btree ((k % 7))"),
    ("t_s_expr", "USING inplace_btree ((upper(s)), k)"),
    ("t_j_div", "USING inplace_btree ((60 / (j + 1)), k) WHERE k IS NOT NULL"),
    ("t_ci_lower", "USING inplace_btree ((lower(ci COLLATE \"C\")), j)"),
    ("t_n_round", "USING inplace_btree ((round(n)), s)"),
    ("t_part_incl", "USING inplace_btree (s) INCLUDE (j, k) WHERE k BETWEEN 2 AND 9"),
    ("t_pad_len", "USING inplace_btree ((length(pad))) WHERE left(pad, 1) = 'w'"),
    ("t_k_half", "USING inplace_btree ((coalesce(k, 0) / 4), (j > 5))"),
    ("t_k_third", "USING inplace_btree ((third(k)), s)"),
    ("t_j_third", "USING inplace_btree (s) INCLUDE (id) WHERE third(j) = 1"),
    ("t_k_abs", "USING inplace_btree (k abs_ops)"),
    ("t_big", "USING inplace_btree ((left(big, 1)), k)"),
    ("t_big_md5", "USING inplace_btree ((md5(big))) INCLUDE (k) WHERE j > 3"),
    ("t_big_btree", "USING btree ((left(big, 1)))"),
    ("t_a", "USING inplace_btree (a)"),
    ("t_j_btree", "USING btree (j)"),
    ("t_k_btree", "USING btree (k)"),
    ("t_k_btree_third", "USING btree ((k / 3), s)"),
    ("t_j_btree_part", "USING btree (s) WHERE j > 5"),
    ("t_k_hash", "USING hash (k)"),
    ("t_n_hash", "USING hash (n)"),
    ("t_s_hash", "USING hash (s)"),
    ("t_j_hash_part", "USING hash (j) WHERE k > 3"),
    ("t_k_hash_expr", "USING hash ((k % 7))"),
    ("t_a_gin", "USING gin (a)"),
    ("t_a_gin_slow", "USING gin (a) WITH (fastupdate = off)"),
    ("t_a_gin_part", "USING gin (a) WHERE j > 5"),
    ("t_p_gist", "USING gist (p)"),
    ("t_p_gist_part", "USING gist (p) WHERE j > 5"),
    ("t_p_gist_expr", "USING gist (box(p, p)) WHERE k IS NOT NULL"),
    ("t_r_gist", "USING gist (r)"),
    ("t_r_gist_incl", "USING gist (r) INCLUDE (j, pad)"),
    ("t_r_p_gist", "USING gist (r, p)"),
    ("t_r_spgist", "USING spgist (r)"),
    ("t_j_brin", "USING brin (j)"),
    ("t_doc_gin", "USING gin (doc)"),
    ("t_doc_gin_path", "USING gin (doc jsonb_path_ops) WITH (fastupdate = off)"),
    ("t_doc_gin_part", "USING gin (a, doc) WHERE j > 5"),
    ("t_doc_gin_expr", "USING gin ((doc -> 'b'))"),
    ("t_ts_gin", "USING gin (ts)"),
    ("t_ts_gist", "USING gist (ts)"),
    ("t_r_gist_low", "USING gist (r) INCLUDE (pad) WITH (fillfactor = 10)"),
]
CONTRIB_INDEXES = [
    ("t_w_gin_trgm", "USING gin (w more.gin_trgm_ops)"),
    ("t_w_gin_trgm_slow", "USING gin (w more.gin_trgm_ops) WITH (fastupdate = off)"),
    ("t_w_gist_trgm", "USING gist (w more.gist_trgm_ops)"),
    ("t_h_gin", "USING gin (h more.gin_hstore_ops)"),
    ("t_h_gist", "USING gist (h more.gist_hstore_ops)"),
    ("t_a_gin_int", "USING gin (a more.gin__int_ops)"),
    ("t_a_gist_int", "USING gist (a more.gist__int_ops)"),
    ("t_k_s_gin", "USING gin (k more.int4_ops, s more.text_ops)"),
    ("t_n_gin", "USING gin (n more.numeric_ops)"),
    ("t_k_gist", "USING gist (k more.gist_int4_ops)"),
    ("t_s_n_gist", "USING gist (s more.gist_text_ops, n more.gist_numeric_ops)"),
    # (btree_gist of 15 compares NaN as C does, and misses rows, on heap too)
    ("t_f_gist", "USING gist (f more.gist_float8_ops, p) WHERE f <> 'nan'"),
]
INDEXES += CONTRIB_INDEXES
OTHERS = [i for i in INDEXES if any(f"USING {method} " in i[1] for method in ("gin", "hash", "gist"))]
COMPUTED = [i for i in INDEXES if " WHERE " in i[1] or "((" in i[1]]
UNIQUE_INDEXES = [
    ("t_u", "USING inplace_btree (u)"),
    ("t_u_nulls", "USING inplace_btree (u) NULLS NOT DISTINCT"),
    ("t_u_part", "USING inplace_btree (u) WHERE j > 5"),
    ("t_u_incl", "USING inplace_btree (u) INCLUDE (k)"),
    ("t_u_desc", "USING inplace_btree (u DESC NULLS FIRST)"),
    ("t_un", "USING inplace_btree (n, u)"),
    ("t_uci", "USING inplace_btree (ci, u)"),
    ("t_u_expr", "USING inplace_btree ((-u))"),
    ("t_u_queue", "USING inplace_btree (u) WHERE s IN ('s1', 's2', 's3')"),
    ("t_u_num", "USING inplace_btree ((u * 10 + n), (j > 5)) INCLUDE (k) WHERE n < 4"),
    ("t_u_lower", "USING inplace_btree ((lower(ci COLLATE \"C\")), u)"),
    ("t_u_third", "USING inplace_btree (u) WHERE third(j) < 2"),
]

# Which pairs may not be there twice, whatever indexes there are.
UNIQUE_RULES = {
    "t_u": "SELECT u FROM t WHERE u IS NOT NULL GROUP BY u HAVING count(*) > 1",
    "t_u_nulls": "SELECT u FROM t GROUP BY u HAVING count(*) > 1",
    "t_u_part": "SELECT u FROM t WHERE j > 5 AND u IS NOT NULL GROUP BY u HAVING count(*) > 1",
    "t_u_incl": "SELECT u FROM t WHERE u IS NOT NULL GROUP BY u HAVING count(*) > 1",
    "t_u_desc": "SELECT u FROM t WHERE u IS NOT NULL GROUP BY u HAVING count(*) > 1",
    "t_un": "SELECT n, u FROM t WHERE n IS NOT NULL AND u IS NOT NULL GROUP BY n, u HAVING count(*) > 1",
    "t_uci": "SELECT ci, u FROM t WHERE ci IS NOT NULL AND u IS NOT NULL GROUP BY ci, u HAVING count(*) > 1",
    "t_u_expr": "SELECT u FROM t WHERE u IS NOT NULL GROUP BY u HAVING count(*) > 1",
    "t_u_queue": "SELECT u FROM t WHERE s IN ('s1', 's2', 's3') AND u IS NOT NULL GROUP BY u HAVING count(*) > 1",
    "t_u_num": "SELECT u * 10 + n FROM t WHERE n < 4 AND u IS NOT NULL AND j IS NOT NULL GROUP BY u * 10 + n, j > 5 HAVING count(*) > 1",
    "t_u_lower": "SELECT lower(ci COLLATE \"C\"), u FROM t WHERE ci IS NOT NULL AND u IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 1",
    "t_u_third": "SELECT u FROM t WHERE third(j) < 2 AND u IS NOT NULL GROUP BY u HAVING count(*) > 1",
}


def k_value(r):
    return r.choice([r.randint(-6, 25), r.randint(0, 4), 1, 2])


def n_value(r):
    return f"{r.randint(0, 5)}{r.choice(['', '.0', '.00', '.5', '.50'])}"


def f_value(r):
    return r.choice(["'-0'", "'0'", "'1.5'", "'-2'", "'nan'", "'infinity'", "'3'"]) + "::float8"


def s_value(r):
    return f"s{r.randint(0, 7)}"


def ci_value(r):
    word = r.choice(["alpha", "beta", "gamma", "delta"])
    return r.choice([word, word.upper(), word.capitalize()])


def a_value(r):
    return "{" + ",".join(str(r.randint(1, 6)) for _ in range(r.randint(0, 3))) + "}"


def p_value(r):
    return f"point({r.randint(0, 6)}, {r.randint(0, 6)})"


def r_value(r):
    lo = r.randint(0, 20)
    return r.choice([f"int4range({lo}, {lo + r.randint(0, 5)})"] * 8 + ["int4range(NULL, 4)", "'empty'::int4range"])


def words(r):
    return [r.choice(["maple", "mapping", "oak", "oaken", "birch", "pine"]) for _ in range(r.randint(0, 3))]


def w_value(r):
    return "'" + " ".join(words(r)) + "'"


def ts_value(r):
    return w_value(r) + "::tsvector"


def doc_value(r):
    return (f"jsonb_build_object('a', {r.randint(1, 4)}, 'b', to_jsonb('{a_value(r)}'::int[]), "
            f"'{r.choice('cde')}', '{s_value(r)}')")


def h_value(r):
    return "'" + ", ".join(f"{key}=>{r.randint(1, 3)}" for key in r.sample("abcd", r.randint(0, 3))) + "'"


def use_contrib(there):
    """Are the extensions there?  (In their place h is a text.)"""
    global contrib
    contrib = there
    if not there:
        for index in CONTRIB_INDEXES:
            if index in INDEXES:
                INDEXES.remove(index)
                OTHERS.remove(index)


def big_value(r):
    """3 to 20 kB"""
    first = r.randint(1, 1000)
    return f"sealed((SELECT string_agg(md5(g::text), '') FROM generate_series({first}, {first + r.randint(90, 600)}) g))"


def maybe_null(r, text, chance=0.06):
    return "NULL" if r.random() < chance else text


def row_values(r, id, spread):
    """A row of VALUES for COLUMNS."""
    return "({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})".format(
        id, maybe_null(r, k_value(r)), maybe_null(r, f"'{s_value(r)}'"), maybe_null(r, r.randint(1, spread)),
        maybe_null(r, n_value(r)), maybe_null(r, f_value(r)), maybe_null(r, f"'{ci_value(r)}'"),
        maybe_null(r, r.randint(0, 10)), maybe_null(r, f"'{a_value(r)}'"), f"repeat('p', {r.randint(0, 40)})",
        maybe_null(r, p_value(r)), maybe_null(r, r_value(r)), maybe_null(r, w_value(r)), maybe_null(r, doc_value(r)),
        maybe_null(r, h_value(r)), maybe_null(r, ts_value(r)),
        maybe_null(r, big_value(r), 0.7))


class Schema:
    def __init__(self, r):
        self.rows = r.choice([60, 200, 400])
        # after how many updates may a row that has former keys in other methods' indexes move?
        self.limit = r.choice([0, 0, 1, 2, 24])
        self.spread = self.rows + r.randint(20, 200)    # values of u
        self.indexes = r.sample(INDEXES, r.randint(4, 9))
        self.indexes += [i for i in r.sample(COMPUTED, 2) if i not in self.indexes]
        self.indexes += [i for i in r.sample(OTHERS, r.choice([0, 2, 4])) if i not in self.indexes]
        self.unique = r.sample(UNIQUE_INDEXES, r.choice([0, 1, 1, 2]))
        if not any(name == "t_k" for name, _ in self.indexes):
            self.indexes.insert(0, INDEXES[0])
        # so many entries alike that a search for one of them gives up
        self.alike = r.random() < 0.1
        if self.alike:
            self.rows = 1500
            if not any(name == "t_r_gist_low" for name, _ in self.indexes):
                self.indexes.append(next(i for i in INDEXES if i[0] == "t_r_gist_low"))
        self.table = TABLE.format(hstore="more.hstore" if contrib else "text", fillfactor=r.choice([50, 90, 100]), autovacuum=r.choice(["on", "off"]))

    def setup(self, r):
        """Statements; those that make unique indexes may fail."""
        yield "DROP TABLE IF EXISTS t"
        yield f"SET inplace.toast_in_place = {r.choice(['on', 'on', 'on', 'off'])}"
        yield self.table
        yield f"ALTER TABLE t ALTER big SET STORAGE {r.choice(['EXTERNAL', 'EXTERNAL', 'EXTENDED'])}"
        rows = [row_values(r, i, self.spread) for i in range(1, self.rows + 1)]
        yield f"INSERT INTO t VALUES {', '.join(rows)}"
        if self.alike:
            yield "UPDATE t SET r = '[1,2)', pad = repeat('p', 200) WHERE id % 10 <> 0"
        yield f"UPDATE t SET u = CASE WHEN id % 17 = 0 AND {r.randint(0, 1)} = 1 THEN NULL ELSE id END"
        if any(name == "t_u_nulls" for name, _ in self.unique):
            yield "UPDATE t SET u = id WHERE u IS NULL"
        for name, rest in self.indexes:
            yield f"CREATE INDEX {name} ON t {rest}"
        for name, rest in self.unique:
            yield f"CREATE UNIQUE INDEX {name} ON t {rest}"

    def index_sql(self, name, concurrently=""):
        for unique, pool in (("", INDEXES), ("UNIQUE ", UNIQUE_INDEXES)):
            for other, rest in pool:
                if other == name:
                    return f"CREATE {unique}INDEX {concurrently} {name} ON t {rest}"
        raise KeyError(name)


def contrib_query(r):
    word = r.choice(["maple", "map", "oak", "oaken", "pin", "birch", "pine oak"])
    key, other = r.choice("abcd"), r.choice("abcd")
    return r.choice([
        lambda: ("w", f"w LIKE '%{word}%'", None),
        lambda: ("w", f"w ILIKE '{word}%' AND w NOT LIKE '%oaken%'", None),
        lambda: ("w", f"w ~ '{word}.*(birch|pine)'", None),
        lambda: ("w", f"w OPERATOR(more.%) '{word}'", None),
        lambda: ("w", "w IS NOT NULL", f"w OPERATOR(more.<->) '{word}'"),
        lambda: ("h", f"h OPERATOR(more.@>) {h_value(r)}::more.hstore", None),
        lambda: ("h", f"h OPERATOR(more.?) '{key}' AND k > 2", None),
        lambda: ("h", f"h OPERATOR(more.?&) '{{{key},{other}}}'", None),
        lambda: ("h", f"h OPERATOR(more.?|) '{{{key},{other}}}' OR h OPERATOR(more.@>) 'a=>1'", None),
        lambda: ("a", f"a OPERATOR(more.@@) '{r.randint(1, 6)}&!{r.randint(1, 6)}'::more.query_int", None),
        lambda: ("a", f"a OPERATOR(more.@@) '!{r.randint(1, 6)}'::more.query_int", None),
        lambda: ("a", f"a OPERATOR(more.&&) '{{{r.randint(1, 6)},{r.randint(1, 6)}}}'", None),
        lambda: ("a", f"a OPERATOR(more.@>) '{{{r.randint(1, 6)}}}'", None),
        lambda: ("k, s", f"k = {k_value(r)} AND s >= '{s_value(r)}'", None),
        lambda: ("n", f"n BETWEEN {n_value(r)} AND {n_value(r)}", None),
        lambda: ("k", "k IS NOT NULL", f"k OPERATOR(more.<->) {k_value(r)}"),
        lambda: ("s, n", f"s <= '{s_value(r)}' AND n > {n_value(r)}", None),
        lambda: ("f, p", f"f < {r.randint(-2, 3)} AND f <> 'nan' AND p << {p_value(r)}", None),
    ])()


def words_query(r):
    """Of text search and jsonb."""
    one, two = r.choice(["maple", "oak", "birch", "pine"]), r.choice(["mapping", "oaken", "birch", "pine"])
    return r.choice([
        lambda: ("ts", f"ts @@ '{one} & !{two}'::tsquery", None),
        lambda: ("ts", f"ts @@ '!{one}'::tsquery", None),
        lambda: ("ts", f"ts @@ '{one} | {two[:3]}:*'::tsquery", None),
        lambda: ("doc", f"doc @> '{{\"a\": {r.randint(1, 4)}}}'", None),
        lambda: ("doc", f"doc @> '{{\"b\": [{r.randint(1, 6)}]}}' AND k > 2", None),
        lambda: ("doc", f"doc ? '{r.choice('cde')}' AND j > 5", None),
        lambda: ("doc", f"doc ?& '{{c,a}}' OR doc @@ '$.a == {r.randint(1, 4)}'", None),
        lambda: ("doc", f"doc @? '$.b[*] ? (@ > {r.randint(1, 6)})'", None),
        lambda: ("doc", f"doc -> 'b' @> '[{r.randint(1, 6)}]'", None),
        lambda: ("doc", f"doc @> '{{\"a\": 1}}' AND a @> '{{{r.randint(1, 6)}}}' AND j > 5", None),
    ])()


def query(r, spread):
    """(columns an index may give alone, condition, order or None)"""
    x = r.random()
    if x < 0.15 and contrib:
        return contrib_query(r)
    if x < 0.25:
        return words_query(r)
    lo = r.randint(-7, 24)
    hi = lo + r.choice([0, 1, 5, 30])
    ulo = r.randint(1, spread)
    order = r.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
    return r.choice([
        lambda: ("k", f"k BETWEEN {lo} AND {hi}", f"k{order}"),
        lambda: ("k", f"k = {k_value(r)}", None),
        lambda: ("k", f"k IN ({k_value(r)}, {k_value(r)}, {k_value(r)})", None),
        lambda: ("k", f"k > ANY ('{{{lo}, {hi}}}')", None),
        lambda: ("k", "k IS NULL", None),
        lambda: ("k", "k IS NOT NULL", f"k{order}"),
        lambda: ("k", f"k < {lo} OR k > {hi}", None),
        lambda: ("s, k", f"s = '{s_value(r)}' AND k >= {lo}", f"s{order}"),
        lambda: ("s, k", f"(s, k) > ('{s_value(r)}', {lo})", None),
        lambda: ("s, k", f"s IN ('{s_value(r)}', '{s_value(r)}') AND k IN ({lo}, {hi}, 2)", None),
        lambda: ("s", f"s BETWEEN '{s_value(r)}' AND '{s_value(r)}'", f"s{order}"),
        lambda: ("s, n", f"s = '{s_value(r)}'", None),
        lambda: ("k, j, pad", f"k BETWEEN {lo} AND {hi}", None),
        lambda: ("k, j, pad", f"k = {k_value(r)} AND j >= {r.randint(0, 10)}", None),
        lambda: ("u", f"u BETWEEN {ulo} AND {ulo + r.choice([0, 10, 100])}", f"u{order}"),
        lambda: ("u", f"u = {ulo}", None),
        lambda: ("u, k", f"u > {ulo}", None),
        lambda: ("u", "u IS NULL", None),
        lambda: ("u", f"u < {ulo} AND j > 5", None),
        lambda: ("u", f"-u > {-ulo}", None),
        lambda: ("n", f"n = {n_value(r)}", None),
        lambda: ("n, k", f"n >= {n_value(r)} AND k < {hi}", None),
        lambda: ("n, u", f"n = {n_value(r)} AND u > {ulo}", None),
        lambda: ("n", f"n <= {n_value(r)}", f"n{order}"),
        lambda: ("f", f"f = {f_value(r)}", None),
        lambda: ("f", f"f >= {f_value(r)}", f"f{order}"),
        lambda: ("ci", f"ci = '{ci_value(r)}'", None),
        lambda: ("ci, u", f"ci = '{ci_value(r)}' AND u < {ulo}", None),
        lambda: ("ci, s", f"ci > '{ci_value(r)}' AND s = '{s_value(r)}'", None),
        lambda: ("k", f"j > 5 AND k <= {hi}", f"k{order}"),
        lambda: ("j, k", f"s < 's3' AND j >= {r.randint(0, 10)}", None),
        lambda: ("j", f"j = {r.randint(0, 10)}", None),
        lambda: ("k", f"k % 7 = {r.randint(-3, 6)}", None),
        lambda: ("s, k", f"upper(s) = '{s_value(r).upper()}'", None),
        lambda: ("k", f"60 / (j + 1) = {r.choice([5, 6, 10, 12, 60])} AND k IS NOT NULL", None),
        lambda: ("k", f"60 / (j + 1) > 8 AND k > {lo}", "k"),
        lambda: ("j", f"lower(ci COLLATE \"C\") = '{ci_value(r).lower()}'", None),
        lambda: ("j, u", f"lower(ci COLLATE \"C\") >= '{ci_value(r).lower()}' AND u > {ulo}", None),
        lambda: ("n, s", f"round(n) = {r.randint(0, 6)}", None),
        lambda: ("s, j, k", f"k BETWEEN 2 AND 9 AND s = '{s_value(r)}'", f"s{order}"),
        lambda: ("s, j, k", f"k BETWEEN 3 AND 7 AND s > '{s_value(r)}'", None),
        lambda: ("pad", f"left(pad, 1) = 'w' AND length(pad) > {r.randint(0, 60)}", None),
        lambda: ("k", f"coalesce(k, 0) / 4 = {r.randint(-1, 6)}", None),
        lambda: ("k", f"coalesce(k, 0) / 4 < {r.randint(-1, 6)} AND j > 5", None),
        lambda: ("u", f"s IN ('s1', 's2', 's3') AND u > {ulo}", f"u{order}"),
        lambda: ("u", f"s = 's2' AND u < {ulo}", None),
        lambda: ("u, n", f"u * 10 + n > {ulo * 10} AND n < 4", None),
        lambda: ("k, s", f"third(k) = {r.randint(-2, 8)}", None),
        lambda: ("k, s", f"third(k) >= {r.randint(-2, 8)} AND s > '{s_value(r)}'", "third(k)"),
        lambda: ("k, s", f"k / 3 = {r.randint(-2, 8)}", None),
        lambda: ("s", f"j > 5 AND s <= '{s_value(r)}'", f"s{order}"),
        lambda: ("s, id", f"third(j) = 1 AND s BETWEEN '{s_value(r)}' AND '{s_value(r)}'", f"s{order}"),
        lambda: ("u", f"third(j) < 2 AND u > {ulo}", f"u{order}"),
        lambda: ("k", f"k |=| {k_value(r)}", None),
        lambda: ("k", f"k |<| {hi}", None),
        lambda: ("id, checked(big)", f"id BETWEEN {ulo - 30} AND {ulo}", None),
        lambda: ("k, checked(big)", f"left(big, 1) = '{r.randint(0, 9)}'", None),
        lambda: ("k, checked(big)", f"left(big, 1) > 'a' AND k > {lo}", None),
        lambda: ("k", f"md5(big) > '{r.randint(0, 9)}' AND j > 3", None),
        lambda: ("a", f"a = '{a_value(r)}'", None),
        lambda: ("a", f"a @> '{{{r.randint(1, 6)}}}' AND k BETWEEN {lo} AND {hi}", None),
        lambda: ("a", f"a && '{{{r.randint(1, 6)},{r.randint(1, 6)}}}'", None),
        lambda: ("a", f"a <@ '{{1,2,{r.randint(1, 6)}}}'", None),
        lambda: ("a", f"a @> '{{{r.randint(1, 6)}}}' AND j > 5", None),
        lambda: ("a", "a @> '{}'", None),
        lambda: ("a", f"a @> '{{{r.randint(1, 6)},{r.randint(1, 6)}}}'", None),
        lambda: ("n", f"n = {n_value(r)} OR a @> '{{{r.randint(1, 6)}}}'", None),
        lambda: ("j", f"j = {r.randint(0, 10)} AND k > 3", None),
        lambda: ("p", f"p <@ box(point(0, 0), {p_value(r)})", None),
        lambda: ("p", f"p ~= {p_value(r)}", None),
        lambda: ("p", f"p <@ box(point(0, 0), {p_value(r)}) AND j > 5", None),
        lambda: ("p", f"p << {p_value(r)} AND r && {r_value(r)}", None),
        lambda: ("p", f"box(p, p) && box({p_value(r)}, {p_value(r)}) AND k IS NOT NULL", None),
        lambda: ("r", f"r && {r_value(r)}", None),
        lambda: ("r, j", f"r @> {r.randint(0, 24)}", None),
        lambda: ("r, j, pad", f"r <@ {r_value(r)}", None),
        lambda: ("r", f"r = {r_value(r)}", None),
        lambda: ("r", f"r @> {r.randint(0, 24)} OR p ~= {p_value(r)}", None),
        lambda: ("p", "p IS NULL", None),
        lambda: ("p", "p IS NOT NULL", f"p <-> {p_value(r)}"),
        lambda: ("p", f"p <@ box(point(0, 0), {p_value(r)})", f"p <-> {p_value(r)}"),
        lambda: ("p", "j > 5", f"p <-> {p_value(r)}"),
        lambda: ("k", f"k = {k_value(r)} AND s = '{s_value(r)}' AND j > {r.randint(0, 10)}", None),
        lambda: ("k", f"k = {k_value(r)} OR u = {ulo} OR n = {n_value(r)} OR j = {r.randint(0, 10)}", None),
        lambda: ("k", f"k = {k_value(r)} OR (s = '{s_value(r)}' AND a @> '{{{r.randint(1, 6)}}}')", None),
        lambda: ("id", f"id BETWEEN {ulo - 30} AND {ulo}", None),
    ])()


def join_query(r):
    """Whole queries: merge joins, aggregates, and such."""
    return r.choice([
        "SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.u WHERE a.j < 5",
        "SELECT a.id, b.id, a.k FROM t a JOIN t b ON a.k = b.k AND a.id < b.id WHERE a.k BETWEEN 3 AND 9",
        "SELECT a.id, (SELECT count(*) FROM t b WHERE b.s = a.s AND b.k = a.k) FROM t a WHERE a.id < 20",
        "SELECT min(k), max(k), min(u), max(u), count(k) FROM t",
        "SELECT k, count(*), sum(id) FROM t GROUP BY k",
        "SELECT s, k, count(*) FROM t GROUP BY s, k",
        "SELECT DISTINCT s FROM t",
        "SELECT count(*) FROM t WHERE k >= 0",
        "SELECT id FROM t a WHERE EXISTS (SELECT FROM t b WHERE b.k = a.j)",
    ])
