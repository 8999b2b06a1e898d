"""Random schemas: a few tables, indexes, foreign keys and triggers.

Values come from tiny domains, so that sessions keep meeting each other's
rows and keys, and equal keys that are not identical (1.0 and 1.00) occur.
"""


def quoted(s):
    return "'" + s.replace("'", "''") + "'"


def text_value(r):
    kind = r.random()
    if kind < 0.55:
        return quoted(r.choice(["", "a", "b", "Aa", "aa", "bb", "abc", "x y"]))
    if kind < 0.80:
        return f"repeat('{r.choice('abcxyz')}', {r.choice([7, 20, 60, 127, 200])})"
    if kind < 0.94:
        return f"repeat('{r.choice('abcxyz')}', {r.choice([400, 900, 1500])})"
    if kind < 0.98:
        return f"repeat('{r.choice('abcxyz')}', {r.choice([2500, 9000])})"
    # hard to compress: leaves the row for the TOAST table
    return ("(SELECT string_agg(md5(g::text), '') "
            f"FROM generate_series({r.randint(1, 9)}, 300) g)")


def document_value(r):
    """3 to 20 kB"""
    first = r.randint(1, 9)
    return ("(SELECT string_agg(md5(g::text), '') "
            f"FROM generate_series({first}, {first + r.randint(90, 600)}) g)")


def mixed_document(r):
    """1 to 60 kB; lz4 and pglz make half of the first, a tenth of the second, nothing of the third"""
    size = r.choice([1, 2, 3, 4, 8, 10, 10, 20, 60]) * r.randint(700, 1024)
    first = r.randint(1, 9)
    return r.choice([
        f"(SELECT string_agg('line ' || g || md5(g::text), ' ') FROM generate_series({first}, {first + size // 44}) g)",
        f"(SELECT string_agg('the same words in each line ' || g, ' ') FROM generate_series({first}, {first + size // 32}) g)",
        f"(SELECT string_agg(translate(encode(sha512(g::text::bytea), 'base64'), E'\\n', ''), '') "
        f"FROM generate_series({first}, {first + size // 88}) g)"])


def keyed_document(r):
    """a jsonb of 1 to 30 kB"""
    return ("(SELECT jsonb_object_agg('k' || g, md5(g::text)) "
            f"FROM generate_series(1, {r.choice([20, 60, 200, 700])}) g)")


def blank_padded(r):
    return quoted(r.choice(["", "a", "b", "blank    ", "abcdefghijkl", "x  y"]))


TYPES = {
    # name: (SQL type, value, btree-indexable)
    "int": ("int", lambda r: str(r.randint(0, 6)), True),
    "smallint": ("smallint", lambda r: f"{r.randint(-2, 3)}::smallint", True),
    "bigint": ("bigint", lambda r: r.choice(["0", "1", "2", "3000000000"]), True),
    "numeric": ("numeric", lambda r: r.choice(
        ["1.0", "1.00", "1", "2.5", "2.50", "-0.001", "'NaN'", "1e30"]), True),
    "float8": ("float8", lambda r: r.choice(["0", "'-0'", "1.5", "'NaN'", "1e-300"]), True),
    "bool": ("boolean", lambda r: r.choice(["true", "false"]), True),
    "text": ("text", text_value, True),
    "varchar": ("varchar(300)", lambda r: quoted(r.choice("abcd") * r.choice([0, 1, 5, 130, 300])), True),
    "char20": ("char(20)", blank_padded, True),
    "char1": ('"char"', lambda r: quoted(r.choice("abc")), False),
    "name": ("name", lambda r: quoted(r.choice(["n1", "n2", "longer name"])), False),
    "bytea": ("bytea", lambda r: quoted(r.choice(["\\x", "\\x00", "\\x0102"])), True),
    "timestamptz": ("timestamptz", lambda r: quoted(f"2024-01-0{r.randint(1, 4)} 00:00:00+00"), True),
    "date": ("date", lambda r: quoted(f"2024-02-0{r.randint(1, 4)}"), True),
    "interval": ("interval", lambda r: quoted(r.choice(["1 day", "24 hours", "2 mon"])), True),
    "uuid": ("uuid", lambda r: quoted(f"00000000-0000-0000-0000-00000000000{r.randint(1, 4)}"), True),
    "inet": ("inet", lambda r: quoted(f"10.0.0.{r.randint(1, 3)}"), True),
    "jsonb": ("jsonb", lambda r: quoted('{"k": %d, "l": "%s"}' % (r.randint(0, 3), "j" * r.choice([1, 50, 300]))), False),
    "intarray": ("int[]", lambda r: quoted("{%s}" % ",".join(str(r.randint(1, 4)) for _ in range(r.randint(0, 4)))), False),
    "range": ("int4range", lambda r: "int4range(%d, %d)" % ((lo := r.randint(0, 8)), lo + r.randint(1, 4)), False),
    # in a TOAST table of the table's own method
    "document": ("text", document_value, False),
    "mixed": ("text", mixed_document, False),
    "keyed": ("jsonb", keyed_document, False),
    "point": ("point", lambda r: quoted(f"({r.randint(0, 3)},{r.randint(0, 3)})"), False),
}

# their values are stored in a TOAST table as a rule
LARGE = ("document", "mixed", "keyed")

ACTIONS = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"]


class Column:
    def __init__(self, name, kind):
        self.name = name
        self.kind = kind

    @property
    def sqltype(self):
        return TYPES[self.kind][0]

    @property
    def btree(self):
        return TYPES[self.kind][2]

    def value(self, r, nulls=0.12):
        if r.random() < nulls:
            return "NULL"
        return TYPES[self.kind][1](r)


class Schema:
    """setup: SQL that makes it; the rest is what the generator of steps needs."""

    def __init__(self, r, documents=False):
        self.setup = []
        self.about_documents = documents
        self.log = False
        self.child = False
        self.exclusion = False
        self.side = r.random() < 0.6
        self.partitioned = r.random() < 0.08
        self.documents = r.random() < 0.3 or documents
        self.deferrable = []        # names of deferrable constraints
        self.columns = []           # of t, without id and u
        self.unique = None          # name of the unique column
        self.unique_arbiter = False
        self.indexes = []           # names of secondary indexes of t
        self.unlogged = "UNLOGGED " if r.random() < 0.08 else ""
        self._main_table(r)
        if self.side:
            self._side_table(r)
        if r.random() < 0.25:
            self._child_table(r)
        if r.random() < 0.35:
            self._triggers(r)
        self._rows(r)
        if r.random() < 0.2:
            self._late_columns(r)
        if "t_pkey" in self.deferrable or "t_u" in self.deferrable:
            # A heap update that changes an indexed column checks deferrable keys
            # again although they are the same, and may have to wait; one that
            # is in place does not.  Let these rows move, as heap's do.
            self.setup.insert(0, "SET inplace.default_index_method = btree")
            self.setup.append("RESET inplace.default_index_method")
        if self.documents:
            self.setup.insert(0, "SET inplace.toast_in_place = on")
            self.setup.append("RESET inplace.toast_in_place")

    def tables(self):
        names = ["t"]
        if self.side:
            names.append("s")
        if self.child:
            names.append("ch")
        if self.log:
            names.append("log")
        return names

    def _options(self, r):
        options = ["autovacuum_enabled = off"]
        if r.random() < 0.4:
            options.append(f"fillfactor = {r.choice([10, 30, 70, 90])}")
        return "WITH (%s)" % ", ".join(options)

    def _main_table(self, r):
        kinds = [k for k in TYPES if k not in ("int", "text", "range") + LARGE]
        picks = ["int", "text"] + r.sample(kinds, r.choice([0, 1, 2, 2, 3, 5]))
        letters = "abcdefgh"
        self.columns = [Column(letters[i], k) for i, k in enumerate(picks)]
        parts = ["id int NOT NULL"]
        if r.random() < 0.5:
            self.unique = "u"
            parts.append("u int")
        if not self.partitioned and r.random() < 0.1:
            self.exclusion = True
            self.columns.append(Column("rg", "range"))
        if self.about_documents:
            self.columns = self.columns[:r.choice([2, 3])]
            self.columns += [Column("doc", "mixed"), Column("doc2", r.choice(["mixed", "mixed", "keyed"]))]
        elif self.documents:
            self.columns.append(Column("doc", "document"))
        for column in self.columns:
            parts.append(f"{column.name} {column.sqltype}")
        if r.random() < 0.12:
            parts.append("gen int GENERATED ALWAYS AS (a * 2) STORED")
        if r.random() < 0.5:
            r.shuffle(parts)
        if r.random() < 0.1:
            parts.append("CHECK (a <> 6)")
        if r.random() < 0.15:
            self.deferrable.append("t_pkey")
            deferrable = r.choice([" DEFERRABLE INITIALLY DEFERRED", " DEFERRABLE"])
        else:
            deferrable = ""
        parts.append(f"CONSTRAINT t_pkey PRIMARY KEY (id){deferrable}")
        if self.exclusion:
            parts.append("CONSTRAINT t_excl EXCLUDE USING gist (rg WITH &&)")
        by = f"PARTITION BY RANGE (id)" if self.partitioned else self._options(r)
        self.setup.append(f"CREATE {self.unlogged}TABLE t ({', '.join(parts)}) {by}")
        if self.partitioned:
            for name, bounds in (("t_low", "FROM (MINVALUE) TO (5)"),
                                 ("t_mid", "FROM (5) TO (9)"),
                                 ("t_high", "FROM (9) TO (MAXVALUE)")):
                self.setup.append(f"CREATE {self.unlogged}TABLE {name} PARTITION OF t "
                                  f"FOR VALUES {bounds} {self._options(r)}")
        if self.about_documents:
            for column in ("doc", "doc2"):
                self.setup.append(f"ALTER TABLE t ALTER {column} SET STORAGE "
                                  + r.choice(["EXTERNAL", "EXTENDED", "EXTENDED", "MAIN"]))
                # (not every server has lz4)
                self.setup.append(f"DO $$ BEGIN ALTER TABLE t ALTER {column} SET COMPRESSION "
                                  f"{r.choice(['lz4', 'pglz'])}; EXCEPTION WHEN OTHERS THEN NULL; END $$")
        elif self.documents and r.random() < 0.7:
            self.setup.append("ALTER TABLE t ALTER doc SET STORAGE EXTERNAL")
        if self.unique and not self.partitioned:
            if r.random() < 0.3:
                self.setup.append("ALTER TABLE t ADD CONSTRAINT t_u UNIQUE (u) "
                                  + r.choice(["DEFERRABLE INITIALLY DEFERRED", "DEFERRABLE"]))
                self.deferrable.append("t_u")
            else:
                self.unique_arbiter = True
                include = " INCLUDE (a)" if r.random() < 0.25 else ""
                nulls = ""
                self.setup.append(f"CREATE UNIQUE INDEX t_u ON t (u){include}{nulls}")
        for n in range(r.choice([0, 0, 1, 1, 2, 3])):
            self._index(r, f"t_i{n}")

    def _index(self, r, name):
        column = r.choice([c for c in self.columns if c.kind not in LARGE])
        kind = r.random()
        if column.kind == "intarray":
            definition = f"USING gin ({column.name})"
        elif column.kind == "jsonb":
            definition = f"USING gin ({column.name} jsonb_path_ops)"
        elif column.kind == "range":
            definition = f"USING {r.choice(['gist', 'spgist'])} ({column.name})"
        elif column.kind == "point":
            definition = f"USING {r.choice(['gist', 'spgist'])} ({column.name})"
        elif not column.btree:
            definition = f"({column.name}, a)"
        elif kind < 0.35:
            definition = f"({column.name})"
        elif kind < 0.50:
            definition = f"({column.name} DESC, a)"
        elif kind < 0.60 and column.kind not in ("bool",):
            definition = f"USING hash ({column.name})"
        elif kind < 0.70 and column.kind not in ("bool",):
            definition = f"USING brin ({column.name})"
        elif kind < 0.80:
            definition = f"({column.name}) WHERE a > 2"
        elif kind < 0.90:
            definition = f"(({column.name} IS NULL), (coalesce(a, 0) + 1))"
        else:
            definition = f"(a) INCLUDE ({column.name})"
        if r.random() < 0.06 and "USING" not in definition:
            definition = f"((a + 1)) INCLUDE ({column.name})"
        self.indexes.append(name)
        self.setup.append(f"CREATE INDEX {name} ON t {definition}")

    def _side_table(self, r):
        self.setup.append(f"CREATE {self.unlogged}TABLE s (k int PRIMARY KEY, v int, w text) "
                          + self._options(r))
        if r.random() < 0.4:
            self.setup.append("CREATE INDEX s_v ON s (v)")

    def _child_table(self, r):
        self.child = True
        deferrable = r.choice(["", "", " DEFERRABLE INITIALLY DEFERRED", " DEFERRABLE"])
        if deferrable:
            self.deferrable.append("ch_fk")
        target = "id"
        if "t_pkey" in self.deferrable:
            # a deferrable key cannot be referenced: use another
            self.setup.append("CREATE UNIQUE INDEX t_id2 ON t (id)" if not self.partitioned
                              else "ALTER TABLE t ADD CONSTRAINT t_id2 UNIQUE (id)")
        self.setup.append(
            f"CREATE {self.unlogged}TABLE ch (id int PRIMARY KEY, tid int DEFAULT 1, v int, "
            f"CONSTRAINT ch_fk FOREIGN KEY (tid) REFERENCES t ({target}) "
            f"ON DELETE {r.choice(ACTIONS)} ON UPDATE {r.choice(ACTIONS)}{deferrable}) "
            + self._options(r))
        if r.random() < 0.5:
            self.setup.append("CREATE INDEX ch_tid ON ch (tid)")

    def _triggers(self, r):
        self.log = True
        self.setup.append(f"CREATE {self.unlogged}TABLE log (op text, o text, n text) "
                          + self._options(r))
        kinds = ["audit", "before", "deferred", "statement"]
        if self.documents:
            kinds.remove("before")      # (see Generator.locks)
        for name in r.sample(kinds, r.choice([1, 1, 2])):
            if name == "audit":
                self.setup.append(
                    "CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    "INSERT INTO log VALUES (TG_OP, md5(OLD::text), md5(NEW::text)); RETURN NULL; END $$")
                self.setup.append("CREATE TRIGGER t_audit AFTER INSERT OR UPDATE OR DELETE ON t "
                                  "FOR EACH ROW EXECUTE FUNCTION audit()")
            elif name == "before":
                self.setup.append(
                    "CREATE FUNCTION before() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    "IF TG_OP = 'DELETE' THEN IF OLD.a = 5 THEN RETURN NULL; END IF; RETURN OLD; END IF; "
                    "IF NEW.a = 4 THEN RETURN NULL; END IF; "
                    "NEW.b := NEW.b || '.'; RETURN NEW; END $$")
                self.setup.append("CREATE TRIGGER t_before BEFORE UPDATE OR DELETE ON t "
                                  "FOR EACH ROW EXECUTE FUNCTION before()")
            elif name == "deferred":
                self.setup.append(
                    "CREATE FUNCTION deferred() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    "INSERT INTO log VALUES ('deferred', md5(OLD::text), md5(NEW::text)); "
                    "IF NEW.a = 6 AND OLD.a = 6 THEN RAISE EXCEPTION 'a is 6 twice'; END IF; "
                    "RETURN NULL; END $$")
                self.setup.append("CREATE CONSTRAINT TRIGGER t_deferred AFTER INSERT OR UPDATE OR DELETE ON t "
                                  "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION deferred()")
                self.deferrable.append("t_deferred")
            elif not self.partitioned:
                self.setup.append(
                    "CREATE FUNCTION statement() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    "INSERT INTO log SELECT 'statement', (SELECT md5(string_agg(x::text, '' ORDER BY x.id)) FROM o x), "
                    "(SELECT md5(string_agg(x::text, '' ORDER BY x.id)) FROM n x); RETURN NULL; END $$")
                self.setup.append("CREATE TRIGGER t_statement AFTER UPDATE ON t "
                                  "REFERENCING OLD TABLE AS o NEW TABLE AS n "
                                  "FOR EACH STATEMENT EXECUTE FUNCTION statement()")

    def row(self, r, id_):
        """column list and values of a new row of t"""
        names = ["id"]
        values = [str(id_)]
        if self.unique:
            names.append("u")
            values.append("NULL" if r.random() < 0.1 else str(r.randint(1, 12)))
        for column in self.columns:
            if column.name not in ("a", "b") and r.random() < 0.1:
                continue
            names.append(column.name)
            values.append(column.value(r))
        return names, values

    def _rows(self, r):
        for id_ in range(1, r.choice([4, 6, 8, 9])):
            names, values = self.row(r, id_)
            for i, name in enumerate(names):
                if name == "u":
                    values[i] = str(id_)
                elif name == "rg":
                    values[i] = f"int4range({id_ * 10}, {id_ * 10 + 3})"
                elif name == "a" and values[i] == "6":
                    values[i] = "5"
            self.setup.append(f"INSERT INTO t ({', '.join(names)}) VALUES ({', '.join(values)})")
        if self.side:
            self.setup.append("INSERT INTO s SELECT g, g % 3, repeat('s', g * 10) FROM generate_series(1, 6) g")
        if self.child:
            self.setup.append("INSERT INTO ch SELECT g, g, 0 FROM generate_series(1, 2) g")
        if r.random() < 0.3:
            self.setup.append("UPDATE t SET a = 3 - a WHERE id < 3")
        if r.random() < 0.15:
            self.setup.append("DELETE FROM t WHERE id = 3")

    def _late_columns(self, r):
        if r.random() < 0.6:
            self.setup.append("ALTER TABLE t ADD COLUMN late text DEFAULT 'late'")
            self.columns.append(Column("late", "text"))
        if r.random() < 0.4:
            self.setup.append("ALTER TABLE t ADD COLUMN late2 int DEFAULT 3")
            self.columns.append(Column("late2", "int"))
        if r.random() < 0.4 and len(self.columns) > 3:
            doomed = self.columns[2]
            if doomed.name != "rg":
                self.setup.append(f"ALTER TABLE t DROP COLUMN {doomed.name}")
                self.columns.remove(doomed)
