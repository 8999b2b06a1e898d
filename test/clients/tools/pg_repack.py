"""pg_repack, of tables of both methods, whatever the default is, beside writers.

Each writer has rows of its own, and keeps a model of them; and all change some rows that
they share, of which the model has the sums.  A reader looks for sums that never were.
"""
import random

import psycopg
from psycopg import errors

from beside import BIN, METHODS, Background, Server, check, check_tables, main, methods_of, one, run, sql, wait_until

WRITERS, OWN, SHARED = 3, 400, 10
RETRY = (errors.DeadlockDetected, errors.SerializationFailure)


def make(c, table, method):
    sql(c, f"""
        CREATE TABLE {table} (gone int, id int PRIMARY KEY, k int, v int, w text, big text, c char(8)) USING {method}""",
        f"ALTER TABLE {table} ALTER big SET STORAGE EXTERNAL",
        f"CREATE INDEX {table}_k ON {table} (k)",
        f"CREATE UNIQUE INDEX {table}_kid ON {table} (k, id) INCLUDE (v) WHERE v >= 0",
        f"CREATE INDEX {table}_gin ON {table} USING gin (to_tsvector('simple', w))",
        # rows for pg_repack to get rid of, those of the writers, those that are shared
        f"""INSERT INTO {table} SELECT 0, g, g % 97, g, 'w' || g, CASE WHEN g % 50 = 0 THEN repeat('b', 5000) END, 'c'
            FROM generate_series(100000, 110000) g""",
        f"INSERT INTO {table} SELECT 0, -g, g, 100, 'shared', NULL, 'c' FROM generate_series(1, {SHARED}) g",
        f"ALTER TABLE {table} DROP COLUMN gone",
        f"ALTER TABLE {table} ADD COLUMN later int DEFAULT 7",
        f"DELETE FROM {table} WHERE id >= 100000 AND id % 3 > 0",
        f"UPDATE {table} SET v = v + 1, w = w || 'x' WHERE id > 0 AND id % 4 = 0")


class Writer:
    def __init__(self, server, table, n, seed):
        self.server, self.table, self.n = server, table, n
        self.model, self.transactions, self.stop = {}, 0, False
        self.random = random.Random(seed)

    def statement(self, c, model):
        r, t = self.random, self.table
        i = self.n * 10000 + r.randrange(OWN)
        k, v, w = r.randrange(50), r.randrange(1000), r.choice(["", "short", "y" * 200])
        big = r.choice([None, None, "z" * 4000])
        if i not in model:
            c.execute(f"INSERT INTO {t} (id, k, v, w, big, c) VALUES (%s, %s, %s, %s, %s, 'c')", (i, k, v, w, big))
            model[i] = (k, v, w, big)
            return
        old = model[i]
        what = r.randrange(6)
        if what == 0:
            c.execute(f"DELETE FROM {t} WHERE id = %s", (i,))
            del model[i]
        elif what == 1:
            c.execute(f"UPDATE {t} SET k = %s WHERE id = %s", (k, i))
            model[i] = (k, *old[1:])
        elif what == 2:
            c.execute(f"UPDATE {t} SET w = %s, big = %s WHERE id = %s", (w, big, i))
            model[i] = (*old[:2], w, big)
        elif what == 3:
            c.execute(f"SELECT 1 FROM {t} WHERE id = %s FOR UPDATE", (i,))
        else:
            c.execute(f"UPDATE {t} SET v = %s WHERE id = %s", (v, i))
            model[i] = (old[0], v, *old[2:])

    def transaction(self, c):
        r, model = self.random, dict(self.model)
        abort = r.randrange(5) == 0
        try:
            with c.transaction():
                for _ in range(r.randrange(1, 5)):
                    self.statement(c, model)
                # from one shared row to another, in an order that makes no circle of waits
                a, b = sorted(r.sample(range(1, SHARED + 1), 2))
                c.execute(f"UPDATE {self.table} SET v = v - 1 WHERE id = %s", (-b,))
                if r.randrange(4) == 0:
                    with c.transaction():
                        self.statement(c, dict(model))
                        raise psycopg.Rollback
                c.execute(f"UPDATE {self.table} SET v = v + 1 WHERE id = %s", (-a,))
                if abort:
                    raise psycopg.Rollback
        except RETRY:
            return
        if not abort:
            self.model = model
        self.transactions += 1

    def __call__(self):
        with self.server.connect("mixed") as c:
            while not self.stop:
                self.transaction(c)


class Reader:
    def __init__(self, server, table):
        self.server, self.table, self.stop, self.bad, self.n = server, table, False, [], 0

    def __call__(self):
        queries = (f"SELECT sum(v) = 100 * {SHARED} AND count(*) = {SHARED} FROM {self.table} WHERE id < 0",
                   f"SELECT count(*) = 3333 AND sum(later) = 23331 AND count(big) = 67 FROM {self.table} WHERE id >= 100000")
        with self.server.connect("mixed") as c:
            while not self.stop:
                for q in queries:
                    if not one(c, q):
                        self.bad.append(q)
                    self.n += 1


ROWS = "SELECT id, k, v, w, big FROM {} WHERE id BETWEEN 0 AND 99999 ORDER BY id"
REST = "SELECT count(*), sum(hashtext(t::text)) FROM {} t WHERE id >= 100000"
INDEXES = """SELECT a.amname, replace(c.relname, '{0}', 't') FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON c.oid = indexrelid
             WHERE indrelid = '{0}'::regclass AND indisvalid ORDER BY 2, 1"""


def repack(server, c, seed, method, default):
    table = f"{method}_by_{default}"
    name = f"{method} table, default {default}"
    make(c, table, method)
    rest, indexes = (sql(c, q.format(table)) for q in (REST, INDEXES))
    file = one(c, f"SELECT pg_relation_filenode('{table}')")
    writers = [Writer(server, table, n, seed + n) for n in range(1, WRITERS + 1)]
    reader = Reader(server, table)
    threads = [Background(w) for w in [*writers, reader]]

    def go_on():
        now = [w.transactions for w in writers]
        return wait_until(f"{name}: writers go on",
                          lambda: all(w.transactions >= n + 20 for w, n in zip(writers, now)),
                          lambda: any(t.error for t in threads))

    go_on()
    env = server.env(PGOPTIONS=f"-c default_table_access_method={default}")
    # -T: when it begins to end sessions that are in its way
    run(f"{BIN}/pg_repack", "-d", "mixed", "-t", table, "-T", 600, "-j", 2, env=env)
    go_on()
    run(f"{BIN}/pg_repack", "-d", "mixed", "-t", table, "-T", 600, "-x", env=env)
    go_on()
    for w in [*writers, reader]:
        w.stop = True
    for t in threads:
        t.result()
    model = sorted((i, *row) for w in writers for i, row in w.model.items())
    check(f"{name}: rows of the writers", sql(c, ROWS.format(table)), model)
    c.execute("SET enable_seqscan = off")
    check(f"{name}: by an index", sql(c, ROWS.format(table)), model)
    check(f"{name}: by another", sorted(sql(c, ROWS.format(table).replace("BETWEEN 0 AND 99999 ORDER BY id", "> 0 AND id < 100000 AND k >= 0 AND v >= 0"))), model)
    c.execute("RESET enable_seqscan")
    check(f"{name}: the other rows", sql(c, REST.format(table)), rest)
    check(f"{name}: the reader", (reader.bad, reader.n > 0), ([], True))
    check(f"{name}: method", methods_of(c, f"c.oid = '{table}'::regclass"), [method])
    check(f"{name}: indexes", sql(c, INDEXES.format(table)), indexes)
    check(f"{name}: another file", one(c, f"SELECT pg_relation_filenode('{table}')") != file)
    check(f"{name}: nothing left behind", sql(c, "SELECT c.relname FROM pg_class c WHERE relnamespace = 'repack'::regnamespace AND relkind = 'r'"), [])
    # it can be gone on with
    sql(c, f"UPDATE {table} SET v = v + 1", f"DELETE FROM {table} WHERE id > 104000", f"VACUUM {table}",
        f"ALTER TABLE {table} ADD COLUMN more int DEFAULT 1", f"VACUUM FULL {table}")
    check(f"{name}: changed after it", sql(c, f"SELECT count(*), sum(more) FROM {table} WHERE id >= 100000"), [(1333, 1333)])


def test():
    server = Server("repack")
    server.sql("postgres", "CREATE DATABASE mixed")
    with server.connect("mixed") as c:
        sql(c, "CREATE EXTENSION inplace", "CREATE EXTENSION pg_repack")
        check("version of pg_repack", run(f"{BIN}/pg_repack", "--version").startswith("pg_repack 1."))
        for n, (method, default) in enumerate((m, d) for m in METHODS for d in METHODS):
            repack(server, c, 100 * n, method, default)
    check_tables(server, "mixed")
    server.crash()
    server.end("mixed")


main(test)
