"""Random steps.  They are made while the schedule is played on heap, so that
the generator knows which sessions are in a transaction, have failed, or
wait; the other side then replays the same steps.

Two methods may keep rows in different physical order.  So statements that
change or lock more than one row must meet them in the order of the key:
either the session is restricted to index scans ("ordered"), or there is an
ORDER BY under the row locks.
"""

from schema import LARGE, text_value

PROFILES = {
    "index": "SET enable_seqscan = off; SET enable_bitmapscan = off; "
             "SET enable_hashjoin = off; SET enable_mergejoin = off",
    "seq": "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off",
    "bitmap": "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off",
    "plain": "SET enable_material = off",
    "parallel": "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
                "SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; "
                "SET max_parallel_workers_per_gather = 1",
}

LOCKS = ["FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE"]


class SessionState:
    def __init__(self):
        self.profile = "index"
        self.level = None
        self.savepoints = []
        self.cursors = {}           # name: (scrollable, for update, held)
        self.snapshot = False       # began REPEATABLE READ or higher


class Generator:
    def __init__(self, r, schema, locking=False, documents=False):
        self.r = r
        self.schema = schema
        self.locking = locking          # about row locks above all
        self.documents = documents      # about large values
        self.careful = schema.documents
        # An assertion of heap's (HEAP_XMAX_IS_LOCKED_ONLY in heap_update) fails for a row that
        # has a large value, was locked by its transaction as an update locks it, and then
        # updated by a subtransaction that was rolled back.  So such schedules do not lock so.
        self.locks = [x for x in LOCKS if x != "FOR NO KEY UPDATE" or not self.careful]
        self.count = r.choice([2, 2, 3, 3, 4])
        self.length = r.randint(12, 32)
        self.mode = r.choices(["mixed", "read committed", "repeatable read",
                               "serializable", "any"], [40, 22, 13, 15, 10])[0]
        self.sessions = [SessionState() for _ in range(self.count)]
        self.prepared = []
        self.gid = 0
        self.ddl = r.random() < 0.12
        self.vacuum_at_end = r.random() < 0.35
        self.last = None
        self.waiting = 0
        self.hot = r.randint(1, 3)      # everybody's favourite row
        if locking:
            self.count = r.choice([3, 4, 4])
            self.length = r.randint(16, 36)
            self.sessions = [SessionState() for _ in range(self.count)]

    @property
    def serializable(self):
        """May a transaction fail on one side alone, and rightly?"""
        return self.mode in ("serializable", "any")

    def opening(self):
        """Steps before the random ones."""
        for i, state in enumerate(self.sessions):
            state.profile = self.r.choices(list(PROFILES), [50, 15, 15, 17, 3])[0]
            sql = PROFILES[state.profile]
            if self.mode == "serializable":
                sql += "; SET default_transaction_isolation = 'serializable'"
            yield i, sql

    # ------------------------------------------------------------ choosing

    def next(self, side):
        """The next step: (session, SQL)."""
        r = self.r
        free = [i for i in range(self.count) if not side.sessions[i].busy]
        waiting = self.waiting = self.count - len(free)
        if not free:
            return None
        patience = (0.15, 0.35) if self.locking else (0.25, 0.7)
        if waiting and r.random() < patience[waiting >= 2]:
            # let the waiters go on before long
            holders = [i for i in free if side.sessions[i].status != "I"]
            if holders:
                i = r.choice(holders)
                return i, self._end(i, side.sessions[i].status)
        # stay with a session for a while now and then
        i = self.last if self.last in free and r.random() < 0.35 else r.choice(free)
        self.last = i
        return i, self._statement(i, side.sessions[i].status)

    def observe(self, i, status):
        """A session has answered, on heap."""
        if i < self.count and status == "I":
            state = self.sessions[i]
            state.savepoints = []
            state.level = None
            state.cursors = {n: c for n, c in state.cursors.items() if c[2]}

    def closing(self, side):
        """Steps that bring every session to an end, one at a time."""
        r = self.r
        for _ in range(200):
            open_ = [i for i in range(self.count)
                     if not side.sessions[i].busy and side.sessions[i].status != "I"]
            if open_:
                i = r.choice(open_)
                return i, self._end(i, side.sessions[i].status)
            free = [i for i in range(self.count) if not side.sessions[i].busy]
            if self.prepared:
                gid = self.prepared.pop(0)
                sql = f"{r.choice(['COMMIT', 'ROLLBACK'])} PREPARED '{gid}'"
                return (r.choice(free) if free else None), sql
            return None
        return None

    def _end(self, i, status):
        r = self.r
        state = self.sessions[i]
        state.cursors = {n: c for n, c in state.cursors.items() if c[2]}
        state.savepoints = []
        if status == "E":
            return "ROLLBACK"
        if self.mode != "serializable" and r.random() < 0.06:
            self.gid += 1
            gid = f"@@_{self.gid}"
            self.prepared.append(gid)
            return f"PREPARE TRANSACTION '{gid}'"
        return r.choices(["COMMIT", "ROLLBACK"], [65, 35])[0]

    def _statement(self, i, status):
        r = self.r
        state = self.sessions[i]
        if status == "E":
            if state.savepoints and r.random() < 0.7:
                return self._rollback_to(state)
            return "ROLLBACK"
        if status == "I":
            if r.random() < 0.65:
                return self._begin(state)
            if self.prepared and r.random() < 0.4:
                gid = self.prepared.pop(0)
                return f"{r.choice(['COMMIT', 'ROLLBACK'])} PREPARED '{gid}'"
            if r.random() < 0.08:
                return self._maintenance()
        else:
            kind = r.random()
            if kind < 0.08:
                return self._end(i, status)
            if kind < (0.22 if self.locking and not state.savepoints else 0.16):
                name = f"p{len(state.savepoints) + 1}"
                state.savepoints.append(name)
                return f"SAVEPOINT {name}"
            if kind < 0.23 and state.savepoints:
                return self._rollback_to(state)
            if kind < 0.25 and state.savepoints:
                name = state.savepoints[r.randrange(len(state.savepoints))]
                del state.savepoints[state.savepoints.index(name):]
                return f"RELEASE {name}"
            if self.schema.deferrable and kind < 0.27:
                return ("SET CONSTRAINTS ALL " + r.choice(["IMMEDIATE", "DEFERRED"]))
            if self.mode != "serializable" and kind < (0.29 if not state.cursors else 0.38):
                return self._cursor(state)
        if self.locking and r.random() < 0.75:
            return self._lock_hot()
        if self.documents and r.random() < 0.7:
            return self._document(state)
        if self.ddl and r.random() < 0.10:
            return self._ddl(status)
        choices = [(self._update, 40), (self._delete, 8), (self._insert, 12),
                   (self._conflict, 8), (self._merge, 4), (self._select, 20),
                   (self._lock, 14), (self._block, 4)]
        if self.schema.side:
            choices.append((self._side, 9))
        if self.schema.child:
            choices.append((self._child, 10))
        functions, weights = zip(*choices)
        return r.choices(functions, weights)[0](state)

    def _begin(self, state):
        r = self.r
        levels = {"mixed": ["READ COMMITTED", "REPEATABLE READ"],
                  "read committed": ["READ COMMITTED"],
                  "repeatable read": ["REPEATABLE READ"],
                  "serializable": ["SERIALIZABLE"],
                  "any": ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]}[self.mode]
        state.level = r.choice(levels)
        read_only = " READ ONLY" if r.random() < 0.02 else ""
        return f"BEGIN ISOLATION LEVEL {state.level}{read_only}"

    def _rollback_to(self, state):
        name = state.savepoints[self.r.randrange(len(state.savepoints))]
        del state.savepoints[state.savepoints.index(name) + 1:]
        return f"ROLLBACK TO {name}"

    # ------------------------------------------------------- building blocks

    def _id(self):
        if self.r.random() < 0.5:
            return self.hot
        return self.r.randint(1, 7)

    def _rows(self, state, alias=""):
        """A condition on id: one row, or several if met in order."""
        r = self.r
        dot = alias + "." if alias else ""
        if state.profile == "index" and r.random() < 0.35:
            lo = self._id()
            base = f"{dot}id BETWEEN {lo} AND {lo + r.randint(1, 4)}"
        else:
            base = f"{dot}id = {self._id()}"
        if r.random() < 0.25 and not self.careful:
            base += " AND " + r.choice([
                f"coalesce({dot}a, 0) + 0 > {r.randint(0, 4)}",
                f"{dot}a + 0 = {r.randint(0, 5)}",
                f"coalesce({dot}b, '') <> 'a'",
                f"({dot}a + 0) % 2 = 0"])
        return base

    def _assignment(self, column):
        r = self.r
        name = column.name
        kind = r.random()
        if column.kind == "text" and kind < 0.5:
            return f"{name} = " + r.choice([
                f"{name} || 'z'", f"left({name}, 3)", f"{name} || repeat('y', {r.choice([5, 100, 800])})",
                f"coalesce({name}, '') || 'q'"])
        if column.kind == "document" and kind < 0.8:
            at = r.randint(1, 12000)
            return f"{name} = " + r.choice([
                f"overlay({name} PLACING '{r.choice(['changed', 'other'])}' FROM {at})",
                f"{name} || repeat('appended', {r.choice([1, 40, 400])})", f"'front' || {name}",
                f"left({name}, {at})", f"substr({name}, {at // 4})", f"coalesce({name}, '') || {column.value(r, 0)}"])
        if column.kind == "mixed" and kind < 0.85:
            return f"{name} = {self._changed(name, column)}"
        if column.kind == "keyed" and kind < 0.85:
            key = r.randint(1, 220)
            return f"{name} = " + r.choice([
                f"{name} || jsonb_build_object('k{key}', md5('{key}'))", f"{name} - 'k{key}'",
                f"jsonb_set({name}, '{{k{key}}}', to_jsonb(repeat('v', {r.choice([1, 32, 900])})))",
                f"{name} || jsonb_build_object('new{key}', {key}, 'a{key}', '')"])
        if column.kind in ("int", "smallint", "bigint", "numeric") and kind < 0.5:
            return f"{name} = " + r.choice([f"{name} + 1", f"coalesce({name}, 0) + 1", f"{name} - 1"])
        if kind < 0.56:
            return f"{name} = {name}"
        if kind < 0.60:
            return f"{name} = DEFAULT"
        return f"{name} = {column.value(r)}"

    def _changed(self, name, column):
        """A large text with a part of it changed."""
        r = self.r
        at = r.choice([1, r.randint(1, 4000), r.randint(1, 60000)])
        word = r.choice(["changed", "other", "0", "x" * 40])
        return r.choice([
            f"overlay({name} PLACING '{word}' FROM {at})",
            f"overlay({name} PLACING '{word}' FROM {at})",
            f"overlay({name} PLACING '{word}' FROM {at} FOR {r.choice([0, 1, 100, 3000])})",
            f"overlay(overlay({name} PLACING '{word}' FROM {at} FOR 3) PLACING 'second' FROM {at + 2500} FOR 1)",
            f"{name} || repeat('{word}', {r.choice([1, 40, 400])})",
            f"'{word}' || {name}", f"{column.value(r, 0)} || {name}",
            f"left({name}, {at})", f"substr({name}, {at // 4 + 1})", f"reverse({name})",
            f"coalesce({name}, '') || {column.value(r, 0)}", column.value(r, 0), "NULL",
            f"coalesce({name}, {column.value(r, 0)})"])

    def _document(self, state):
        """Of large values: they are changed, copied, taken away, put back, and read."""
        r = self.r
        columns = [c for c in self.schema.columns if c.kind in LARGE]
        column = r.choice(columns)
        name, row = column.name, f"id = {self._id()}"
        kind = r.random()
        if kind < 0.30:
            return f"UPDATE t SET {self._assignment(column)} WHERE {self._rows(state)}" + r.choice(
                ["", "", f" RETURNING t.id, md5({name}::text)"])
        if kind < 0.36:
            return f"UPDATE t SET {', '.join(self._assignment(c) for c in columns)} WHERE {self._rows(state)}"
        if kind < 0.42:
            # of another row
            return f"UPDATE t SET {name} = (SELECT x.{name} FROM t x WHERE x.id = {self._id()}) WHERE {row}"
        if kind < 0.46 and len({c.kind for c in columns}) == 1:
            # of another column
            return f"UPDATE t SET doc = doc2, doc2 = {r.choice(['doc', 'doc', 'doc2', 'NULL'])} WHERE {row}"
        if kind < 0.50:
            return (f"INSERT INTO t (id, doc, doc2) SELECT {self._new_id()}, doc, doc2 FROM t WHERE {row}"
                    + r.choice(["", " ON CONFLICT DO NOTHING"] if not self.schema.deferrable else [""]))
        if kind < 0.54:
            return self._block(state)
        if kind < 0.58 and state.level and self.mode != "serializable":
            held = r.random() < 0.6
            cursor = f"c{len(state.cursors) + 1}"
            if cursor not in state.cursors and len(state.cursors) < 3:
                state.cursors[cursor] = (True, False, held)
                return (f"DECLARE {cursor} SCROLL CURSOR {'WITH HOLD ' if held else ''}FOR "
                        "SELECT id, md5(doc), substr(doc, 3000, 20), md5(doc2::text) FROM t ORDER BY id")
        if kind < 0.66 and state.cursors and self.mode != "serializable":
            return self._cursor(state)
        at = r.choice([1, 1990, r.randint(1, 9000), r.randint(1, 60000)])
        return r.choice([
            "SELECT id, length(doc), md5(doc), md5(doc2::text) FROM t ORDER BY id",
            "SELECT id, length(doc), md5(doc), md5(doc2::text) FROM t ORDER BY id",
            f"SELECT id, substr(doc, {at}, {r.choice([1, 40, 5000])}) FROM t ORDER BY id",
            f"SELECT id, left(doc, 20), right(doc, 20), pg_column_size(doc) > 0 FROM t WHERE {row}",
            f"SELECT x.id, y.id FROM t x JOIN t y ON x.doc = y.doc AND x.id < y.id ORDER BY 1, 2"])

    def has_documents(self):
        return any(c.name == "doc" for c in self.schema.columns)

    def _assignments(self):
        r = self.r
        columns = self.schema.columns
        kind = r.uniform(0.24, 1) if self.careful else r.random()
        if kind < 0.06:
            picks = columns
            return ", ".join(f"{c.name} = NULL" for c in picks)
        if kind < 0.12:
            return f"id = {r.choice(['id + 10', str(r.randint(1, 12)), 'id'])}"
        if kind < 0.24 and self.schema.unique:
            return f"u = {r.choice(['u + 1', str(r.randint(1, 12)), 'NULL', 'u'])}"
        picks = r.sample(columns, min(len(columns), r.choice([1, 1, 1, 2, 3])))
        if r.random() < 0.5 and columns[0] not in picks:
            picks[0] = columns[0]       # a: small and same size
        return ", ".join(self._assignment(c) for c in picks)

    def _returning(self):
        r = self.r
        if r.random() < 0.4:
            return " RETURNING " + r.choice(["*", "t.id", "t.id, t.a, t.b", "t.tableoid::regclass::text, t.a"])
        return ""

    def _new_id(self):
        return self._id() if self.r.random() < 0.3 else self.r.randint(8, 16)

    def _insert_head(self, rows=1):
        r = self.r
        names, values = self.schema.row(r, self._new_id())
        lists = [f"({', '.join(values)})"]
        for _ in range(rows - 1):
            other = {}
            for _ in range(20):
                n, v = self.schema.row(r, self._new_id())
                other = dict(zip(n, v))
                if set(names) <= set(n):
                    break
            lists.append("(" + ", ".join(other.get(n, "NULL") for n in names) + ")")
        return f"INSERT INTO t ({', '.join(names)}) VALUES {', '.join(lists)}"

    # ------------------------------------------------------------ statements

    def _update(self, state):
        r = self.r
        kind = r.random()
        if kind < 0.10 and self.schema.side:
            if state.profile == "index" and r.random() < 0.5:
                where = f"t.id BETWEEN {self._id()} AND {self._id() + 2}"
            else:
                where = f"t.id = {self._id()}"
            return (f"UPDATE t SET a = {r.choice(['s.v', 't.a + s.v', 's.v + 1'])}, "
                    f"b = {r.choice(['s.w', 't.b', 'left(s.w, 5)'])} FROM s "
                    f"WHERE s.k = t.{r.choice(['id', 'id', 'a'])} AND {where}" + self._returning())
        if kind < 0.15:
            return (f"UPDATE t SET a = x.a + 1 FROM t x WHERE x.id = {self._id()} "
                    f"AND t.id = {self._id()}" + self._returning())
        if kind < 0.18 and self.schema.side:
            return (f"UPDATE t SET (a, b) = (SELECT v, w FROM s WHERE k = {self._id()}) "
                    f"WHERE {self._rows(state)}" + self._returning())
        if kind < 0.21:
            return (f"WITH c AS (UPDATE t SET a = coalesce(a, 0) + 1 WHERE id = {self._id()} RETURNING *) "
                    "SELECT id, a, (SELECT count(*) FROM t) FROM c")
        if kind < 0.25:
            return (f"UPDATE t SET {self._assignments()} WHERE id IN (SELECT id FROM t "
                    f"WHERE {self._rows(state)} ORDER BY id FOR UPDATE LIMIT 1)" + self._returning())
        return f"UPDATE t SET {self._assignments()} WHERE {self._rows(state)}" + self._returning()

    def _delete(self, state):
        r = self.r
        if r.random() < 0.15 and self.schema.side:
            return f"DELETE FROM t USING s WHERE s.k = t.id AND t.id = {self._id()} AND s.v + 0 < 2" + self._returning()
        return f"DELETE FROM t WHERE {self._rows(state)}" + self._returning()

    def _insert(self, state):
        r = self.r
        if r.random() < 0.12:
            return (f"INSERT INTO t (id, a, b) SELECT g, g % 4, repeat('i', g * 10) "
                    f"FROM generate_series({self._new_id()}, {self._new_id()}) g" + self._returning())
        return self._insert_head(r.choice([1, 1, 1, 2, 3])) + self._returning()

    def _conflict(self, state):
        r = self.r
        head = self._insert_head(r.choice([1, 1, 2]))
        targets = [""] if not self.schema.deferrable or r.random() < 0.1 else []
        if "t_pkey" not in self.schema.deferrable:
            targets += ["(id)", "(id)"]
        if self.schema.unique_arbiter:
            targets += ["(u)", "(u)"]
        target = r.choice(targets or [""])
        if not target or r.random() < 0.35:
            return f"{head} ON CONFLICT {target} DO NOTHING" + self._returning()
        sets = r.choice(["a = coalesce(t.a, 0) + 1", "b = excluded.b", "a = excluded.a, b = t.b || '+'",
                         "a = excluded.a", "id = excluded.id"])
        where = r.choice(["", "", " WHERE t.a IS DISTINCT FROM 3", " WHERE excluded.a < 3"])
        if self.careful:
            sets = sets.replace("id = excluded.id", "doc = t.doc || '+', b = 'up'")
            where = ""
        return f"{head} ON CONFLICT {target} DO UPDATE SET {sets}{where}" + self._returning()

    def _merge(self, state):
        r = self.r
        rows = [f"({self._new_id()}, {r.randint(0, 5)})"]
        if state.profile == "index" and r.random() < 0.5:
            rows.append(f"({self._new_id() + 5}, {r.randint(0, 5)})")
        clauses = r.sample(["WHEN MATCHED AND t.a > 2 THEN DELETE",
                            "WHEN MATCHED AND v.x = 1 THEN DO NOTHING",
                            "WHEN MATCHED THEN UPDATE SET a = v.x, b = coalesce(t.b, '') || 'm'",
                            "WHEN MATCHED AND t.a + 0 <> v.x THEN UPDATE SET a = v.x",
                            "WHEN NOT MATCHED THEN INSERT (id, a, b) VALUES (v.k, v.x, 'merged')"],
                           r.choice([1, 2, 3]))
        # an unconditional clause must come last of its kind
        clauses.sort(key=lambda c: "MATCHED THEN" in c)
        return (f"MERGE INTO t USING (VALUES {', '.join(rows)}) v (k, x) ON t.id = v.k "
                + " ".join(clauses))

    def _condition(self):
        r = self.r
        column = r.choice(self.schema.columns)
        if column.kind in ("jsonb",):
            return f"{column.name} @> '{{\"k\": {r.randint(0, 3)}}}'"
        if column.kind == "intarray":
            return f"{column.name} && '{{{r.randint(1, 4)}}}'"
        if column.kind == "range":
            return f"{column.name} && int4range({r.randint(0, 6)}, 9)"
        if column.kind == "point":
            return f"{column.name} <@ box '((0,0),(2,2))'"
        if not column.btree or r.random() < 0.1:
            return f"{column.name} IS {r.choice(['NULL', 'NOT NULL'])}"
        return f"{column.name} {r.choice(['=', '=', '<', '>', '>='])} {column.value(r, 0)}"

    def _select(self, state):
        r = self.r
        queries = [
            "SELECT * FROM t ORDER BY id",
            "SELECT * FROM t ORDER BY id",
            f"SELECT id, a, b FROM t WHERE {self._condition()} ORDER BY id",
            f"SELECT * FROM t WHERE {self._condition()} ORDER BY id",
            f"SELECT id FROM t WHERE {self._rows(state)}",
            "SELECT count(*), count(a), sum(a), min(id), max(id) FROM t",
            "SELECT min(a), max(a) FROM t",
            f"SELECT a FROM t WHERE a >= {r.randint(0, 3)} ORDER BY a",
            f"SELECT id, a + 1 FROM t WHERE a > 2 AND {self._condition()}",
            f"SELECT count(*) FROM t x JOIN t y ON x.a = y.a",
            f"SELECT * FROM t WHERE id = {self._id()}",
        ]
        if self.has_documents():
            queries += ["SELECT id, length(doc), md5(doc) FROM t ORDER BY id",
                        f"SELECT id, substr(doc, {r.randint(1, 9000)}, 40) FROM t ORDER BY id"]
        if self.schema.unique:
            queries += [f"SELECT u, a FROM t WHERE u = {r.randint(1, 12)}",
                        "SELECT u FROM t WHERE u > 0 ORDER BY u"]
        if self.schema.side:
            queries += ["SELECT t.id, t.a, s.v FROM t JOIN s ON t.a = s.k ORDER BY 1, 2, 3",
                        "SELECT * FROM s ORDER BY k"]
        if self.schema.child:
            queries += ["SELECT ch.id, ch.v, t.a FROM ch LEFT JOIN t ON t.id = ch.tid ORDER BY 1"]
        if self.schema.log:
            queries += ["SELECT op, count(*) FROM log GROUP BY 1 ORDER BY 1"]
        return r.choice(queries)

    def _lock(self, state):
        r = self.r
        how = r.choice(self.locks)
        # (FOR KEY SHARE NOWAIT, which may wait on heap: see --locks)
        if self.mode != "serializable" and how != "FOR KEY SHARE":
            how += r.choices(["", " NOWAIT", " SKIP LOCKED"], [70, 15, 15])[0]
        where = r.choice([f"id = {self._id()}", f"id = {self._id()}",
                          f"id BETWEEN {self._id()} AND {self._id() + 3}",
                          f"{self._condition()} AND id < {self._id()}"])
        limit = r.choice(["", "", "", " LIMIT 2"])
        if self.schema.side and r.random() < 0.2:
            what = how.replace("FOR UPDATE", "FOR UPDATE OF t") if how.startswith("FOR UPDATE") else how
            return (f"SELECT t.id, t.a, s.k, s.v FROM t JOIN s ON s.k = t.id WHERE t.id < {self._id()} "
                    f"ORDER BY t.id{limit} {what}")
        return f"SELECT id, a, b FROM t WHERE {where} ORDER BY id{limit} {how}"

    def _lock_hot(self):
        """The favourite row is locked, or changed: in place, moved, its key,
        deleted, referenced."""
        r = self.r
        row = f"id = {self.hot}"
        kind = r.random()
        if kind < 0.55:
            wait = ""
            if self.mode != "serializable":
                wait = r.choices(["", " NOWAIT", " SKIP LOCKED"], [70, 15, 15])[0]
            return f"SELECT id, a, b FROM t WHERE {row} {r.choice(self.locks)}{wait}"
        if kind < 0.80:
            column = r.choice(self.schema.columns + self.schema.columns[:2])
            return f"UPDATE t SET {self._assignment(column)} WHERE {row}" + self._returning()
        if kind < 0.86 and self.schema.unique:
            return f"UPDATE t SET u = {r.choice(['u + 20', 'u', str(r.randint(21, 40))])} WHERE {row}"
        if kind < 0.90:
            other = r.randint(17, 20)
            return r.choice([f"UPDATE t SET id = {other} WHERE {row}",
                             f"UPDATE t SET id = {self.hot} WHERE id = {other}"])
        if kind < 0.93:
            return f"DELETE FROM t WHERE {row}" + self._returning()
        if kind < 0.96:
            return (f"INSERT INTO t (id, a, b) VALUES ({self.hot}, 1, 'again') "
                    f"ON CONFLICT DO NOTHING")
        if self.schema.child:
            return r.choice([f"INSERT INTO ch VALUES ({r.randint(1, 9)}, {self.hot}, 1)",
                             f"UPDATE ch SET tid = {self.hot} WHERE id = {r.randint(1, 5)}"])
        return (f"DO $$ BEGIN PERFORM 1 FROM t WHERE {row} {r.choice(self.locks)}; "
                "RAISE EXCEPTION USING ERRCODE = 'P0001'; EXCEPTION WHEN SQLSTATE 'P0001' THEN NULL; END $$")

    def _block(self, state):
        r = self.r
        id_ = self._id()
        bodies = [
            f"BEGIN INSERT INTO t (id, a) VALUES ({id_}, 1); EXCEPTION WHEN unique_violation THEN "
            f"UPDATE t SET b = 'caught' WHERE id = {id_}; END",
            f"BEGIN UPDATE t SET a = 1, b = b || 'x' WHERE id = {id_}; RAISE EXCEPTION USING ERRCODE = 'P0001'; "
            f"EXCEPTION WHEN SQLSTATE 'P0001' THEN UPDATE t SET a = 2 WHERE id = {id_}; END",
            f"BEGIN FOR i IN 1..{r.choice([3, 20, 140])} LOOP UPDATE t SET a = i % 5 WHERE id = {id_}; END LOOP; END",
            f"BEGIN FOR i IN 1..4 LOOP BEGIN UPDATE t SET b = repeat('l', i * {r.choice([1, 90, 700])}) "
            f"WHERE id = {id_}; IF i % 2 = 0 THEN RAISE EXCEPTION USING ERRCODE = 'P0001'; END IF; "
            "EXCEPTION WHEN SQLSTATE 'P0001' THEN NULL; END; END LOOP; END",
            f"BEGIN DELETE FROM t WHERE id = {id_}; RAISE EXCEPTION USING ERRCODE = 'P0001'; "
            f"EXCEPTION WHEN SQLSTATE 'P0001' THEN PERFORM 1 FROM t WHERE id = {id_} FOR SHARE; END",
        ]
        if self.has_documents():
            change = f"UPDATE t SET doc = overlay(doc PLACING i::text FROM i * {r.choice([1, 400])}) WHERE id = {id_}"
            bodies += [
                f"BEGIN FOR i IN 1..{r.choice([2, 5, 40])} LOOP BEGIN {change}; "
                f"UPDATE t SET doc = doc || 'in block' WHERE id = {id_}; RAISE EXCEPTION USING ERRCODE = 'P0001'; "
                f"EXCEPTION WHEN SQLSTATE 'P0001' THEN NULL; END; {change}; END LOOP; END",
                f"BEGIN FOR i IN 1..{r.choice([5, 40])} LOOP {change}; END LOOP; END"] * 2
        return f"DO $$ {r.choice(bodies)} $$"

    def _side(self, state):
        r = self.r
        k = r.randint(1, 7)
        return r.choice([
            f"UPDATE s SET v = v + 1 WHERE k = {k}",
            f"UPDATE s SET v = v + 1 WHERE k = {k} RETURNING *",
            f"UPDATE s SET w = {text_value(r)} WHERE k = {k}",
            f"UPDATE s SET k = {r.randint(1, 9)} WHERE k = {k}",
            f"DELETE FROM s WHERE k = {k}",
            f"INSERT INTO s VALUES ({k}, {r.randint(0, 4)}, 'new')",
            f"INSERT INTO s VALUES ({k}, 1, 'up') ON CONFLICT (k) DO UPDATE SET v = s.v + 1 RETURNING v",
            f"SELECT * FROM s WHERE k = {k} {r.choice(self.locks)}",
            f"UPDATE s SET v = t.a FROM t WHERE t.id = s.k AND s.k = {k}",
        ])

    def _child(self, state):
        r = self.r
        return r.choice([
            f"INSERT INTO ch VALUES ({r.randint(1, 9)}, {self._id()}, 1)",
            f"INSERT INTO ch VALUES ({r.randint(1, 9)}, {self._id()}, 1) ON CONFLICT (id) DO UPDATE SET tid = excluded.tid",
            f"UPDATE ch SET tid = {self._id()} WHERE id = {r.randint(1, 5)}",
            f"UPDATE ch SET v = v + 1 WHERE id = {r.randint(1, 5)} RETURNING *",
            f"DELETE FROM ch WHERE id = {r.randint(1, 5)}",
            "SELECT * FROM ch ORDER BY id",
            f"SELECT * FROM ch WHERE id = {r.randint(1, 5)} {r.choice(self.locks)}",
        ])

    def _cursor(self, state):
        r = self.r
        if not state.cursors or (len(state.cursors) < 2 and r.random() < 0.2):
            name = f"c{len(state.cursors) + 1}"
            if name in state.cursors:
                name = "c9"
            kind = r.random()
            if kind < 0.4:
                state.cursors[name] = (False, True, False)
                return (f"DECLARE {name} CURSOR FOR SELECT id, a, b FROM t WHERE id > {r.randint(0, 3)} "
                        f"ORDER BY id FOR {r.choice(['UPDATE', 'SHARE', 'UPDATE' if self.careful else 'NO KEY UPDATE'])}")
            held = r.random() < 0.1
            scroll = r.random() < 0.5
            state.cursors[name] = (scroll, False, held)
            return (f"DECLARE {name} {'SCROLL' if scroll else 'NO SCROLL'} CURSOR "
                    f"{'WITH HOLD ' if held else ''}FOR SELECT * FROM t ORDER BY id")
        name = r.choice(list(state.cursors))
        scroll, update, _ = state.cursors[name]
        kind = r.random()
        if update and kind < 0.45:
            if r.random() < 0.3:
                return f"DELETE FROM t WHERE CURRENT OF {name}"
            return f"UPDATE t SET {self._assignments()} WHERE CURRENT OF {name}" + self._returning()
        if kind < 0.52:
            del state.cursors[name]
            return f"CLOSE {name}"
        if scroll and kind < 0.70:
            return f"FETCH {r.choice(['BACKWARD 1', 'PRIOR', 'FIRST', 'ABSOLUTE 2', 'BACKWARD ALL'])} FROM {name}"
        return f"FETCH {r.choice(['NEXT', 'FORWARD 2', 'FORWARD 2', 'ALL'])} FROM {name}"

    def _maintenance(self):
        r = self.r
        table = r.choice(self.schema.tables() + ["t", "t"])
        if self.waiting or any(s.cursors for s in self.sessions):
            # VACUUM may wait for the pins they hold, which pg_locks does not show
            return f"ANALYZE {table}"
        return r.choice([f"VACUUM {table}", f"VACUUM {table}", f"VACUUM (FREEZE) {table}",
                         f"ANALYZE {table}"])

    def _ddl(self, status):
        r = self.r
        schema = self.schema
        commands = ["REINDEX TABLE t", "TRUNCATE t CASCADE", "CREATE INDEX x_a ON t (a)",
                    "CREATE INDEX x_ab ON t (a, b)",
                    "ALTER TABLE t ADD COLUMN z int DEFAULT 7", "ALTER TABLE t ALTER COLUMN a TYPE bigint",
                    "ALTER TABLE t ADD COLUMN zz text DEFAULT 'added'", "LOCK TABLE t IN SHARE MODE"]
        if schema.indexes:
            commands.append(f"DROP INDEX {r.choice(schema.indexes)}")
        if not schema.partitioned:
            commands.append("CLUSTER t USING t_pkey")
        if status == "I":
            commands.append("VACUUM FULL t")
            if not schema.partitioned:
                commands += ["CREATE INDEX CONCURRENTLY x_c ON t (a)", "REINDEX TABLE CONCURRENTLY t"]
        else:
            commands += ["TRUNCATE t CASCADE"]
        return r.choice(commands)
