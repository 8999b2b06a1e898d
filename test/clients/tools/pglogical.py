"""pglogical: providers and subscribers of both methods.

By its own functions, which are heap's, it cannot change rows of a subscriber's inplace
table, and says so; with pglogical.use_spi it does the same as on heap.
"""
import random

import psycopg

from beside import METHODS, Server, check, main, methods_of, one, sql, wait_until

PAIRS = [(p, s) for p in METHODS for s in METHODS]
TABLES = ["""
    CREATE TABLE t (gone int, id int PRIMARY KEY, k int, v int, w text, big text, c char(6), n numeric)""",
    "ALTER TABLE t DROP COLUMN gone", "ALTER TABLE t ALTER big SET STORAGE EXTERNAL", "CREATE INDEX t_k ON t (k)", "CREATE INDEX t_kv ON t (k, v)",
    "CREATE TABLE two (a int, b text, v int, PRIMARY KEY (b, a))",
    "CREATE TABLE log (n int, w text)",
    "CREATE TABLE part (id int PRIMARY KEY, v int, hidden int)",
]
ROWS = {"t": "SELECT id, k, v, w, md5(big), c, n FROM t ORDER BY id", "two": "SELECT * FROM two ORDER BY b, a", "log": "SELECT * FROM log ORDER BY n, w",
        "part": "SELECT id, v FROM part WHERE id % 2 = 0 ORDER BY id"}


def transactions(r, n, inserts_only=False):
    i = lambda k=60: r.randrange(k)
    s = lambda: r.choice(["''", "'short'", "repeat('w', 300)", "NULL"])
    big = lambda: r.choice(["NULL", "repeat('z', 6000)", "repeat(md5('1'), 200)"])
    fresh = iter(range(1000000))
    inserts = [
        lambda: f"INSERT INTO t SELECT g, g % 7, 0, {s()}, {big()}, 'c', 1.50 FROM generate_series({i()}, {i()}) g ON CONFLICT DO NOTHING",
        lambda: f"INSERT INTO log VALUES ({next(fresh)}, {s()})",
        lambda: f"INSERT INTO two VALUES ({i(20)}, 'b{i(5)}', 0) ON CONFLICT DO NOTHING",
        lambda: f"INSERT INTO part VALUES ({i()}, {2 * i()}, 0) ON CONFLICT DO NOTHING",
    ]
    changes = [
        lambda: f"UPDATE t SET v = v + 1 WHERE id % 5 = {i(5)}",
        lambda: f"UPDATE t SET k = {i()}, n = n + 0.25 WHERE id = {i()}",
        lambda: f"UPDATE t SET w = {s()}, c = 'd' WHERE k = {i(7)}",
        lambda: f"UPDATE t SET big = {big()} WHERE id = {i()}",
        lambda: f"UPDATE t SET id = -id WHERE id = {i()} AND NOT EXISTS (SELECT FROM t o WHERE o.id = -t.id)",
        lambda: f"DELETE FROM t WHERE id = {i()} OR id = -{i()}",
        lambda: f"UPDATE two SET v = v + 1 WHERE a % 3 = {i(3)}",
        lambda: f"UPDATE two SET b = b || 'x' WHERE a = {i(20)} AND length(b) < 10",
        lambda: f"DELETE FROM two WHERE a = {i(20)}",
        lambda: f"UPDATE part SET v = v + 2, hidden = hidden + 1 WHERE id % 4 = {i(4)}",
        lambda: f"DELETE FROM part WHERE id = {i()}",
        lambda: "TRUNCATE log" if i(8) == 0 else "DELETE FROM t WHERE id < -50",
    ]
    for _ in range(n):
        t, savepoint = ["BEGIN"], False
        for _ in range(r.randrange(1, 6)):
            t.append(r.choice(inserts if inserts_only else inserts + changes * 2)())
            if r.randrange(5) == 0:
                t.append("SAVEPOINT s")
                savepoint = True
            elif savepoint and r.randrange(3) == 0:
                t.append("ROLLBACK TO s")
        yield t + [r.choice(["COMMIT"] * 5 + ["ROLLBACK"])]


class Pairs:
    def __init__(self, server):
        self.server = server

    def caught_up(self, pairs, what):
        """Until these subscribers have what the providers have now."""
        for p, s in pairs:
            slot = self.server.sql(f"s_{p}_to_{s}", "SELECT sub_slot_name FROM pglogical.subscription")[0][0]
            lsn = self.server.sql(f"p_{p}", "SELECT pg_current_wal_flush_lsn()")[0][0]
            wait_until(f"{what}: {s} has caught up with {p}", lambda: self.server.sql(f"p_{p}", f"""
                SELECT 1 FROM pg_replication_slots WHERE slot_name = '{slot}' AND confirmed_flush_lsn >= '{lsn}'"""))

    def work(self, n, inserts_only=False):
        for p in METHODS:
            r = random.Random(n)
            with self.server.connect(f"p_{p}") as c:
                for t in transactions(r, n, inserts_only):
                    sql(c, *t)

    def compare(self, pairs, what):
        for t, q in ROWS.items():
            check(f"{what}: {t} of the providers", self.server.sql("p_inplace", q), self.server.sql("p_heap", q))
        for p, s in pairs:
            got = [self.server.sql(f"s_{p}_to_{s}", q) for q in ROWS.values()]
            want = [self.server.sql(f"p_{p}", q) for q in ROWS.values()]
            check(f"{what}: {p} to {s}", got, want)
            check(f"{what}: {p} to {s} has rows", all(len(g) > 3 for g in got[:2]))


def make(server):
    for p in METHODS:
        server.sql("postgres", f"CREATE DATABASE p_{p}", *(f"CREATE DATABASE s_{p}_to_{s}" for s in METHODS))
        for db, m in [(f"p_{p}", p)] + [(f"s_{p}_to_{s}", s) for s in METHODS]:
            server.sql(db, "CREATE EXTENSION inplace", f"ALTER DATABASE {db} SET default_table_access_method = {m}")
            dsn = f"host={server.socket} port={server.port} user=postgres dbname={db}"
            server.sql(db, "CREATE EXTENSION pglogical", *TABLES, f"SELECT pglogical.create_node('{db}', '{dsn}')")
            with server.connect(db) as c:
                check(f"its tables in {db} are heap's", methods_of(c, "c.relnamespace = 'pglogical'::regnamespace AND c.relkind = 'r'"), ["heap"])
                check(f"the tables in {db}", methods_of(c, "c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'"), [m])
        server.sql(f"p_{p}", "SELECT pglogical.replication_set_add_table('default', t) FROM unnest('{t,two}'::regclass[]) t",
                   "SELECT pglogical.replication_set_add_table('default_insert_only', 'log')",
                   "INSERT INTO t SELECT g, g % 7, 0, 'first', repeat('f', 5000), 'c', 1 FROM generate_series(1, 40) g",
                   "INSERT INTO two SELECT g, 'b', 0 FROM generate_series(1, 20) g",
                   "UPDATE t SET v = 1, k = k + 1 WHERE id % 2 = 0", "DELETE FROM t WHERE id > 35")
    for p, s in PAIRS:
        dsn = f"host={server.socket} port={server.port} user=postgres dbname=p_{p}"
        server.sql(f"s_{p}_to_{s}", f"SELECT pglogical.create_subscription('{p}_to_{s}', '{dsn}', synchronize_structure := false, synchronize_data := true)")
    for p, s in PAIRS:
        wait_until(f"rows are copied, {p} to {s}", lambda: server.sql(f"s_{p}_to_{s}", """
            SELECT 1 FROM pglogical.local_sync_status HAVING count(*) > 0 AND bool_and(sync_status = 'r')"""))
    # One with a row filter, which it would copy by a function of heap's: its rows are those that come from now on.
    for p in METHODS:
        server.sql(f"p_{p}", "SELECT pglogical.replication_set_add_table('default', 'part', columns := '{id,v}', row_filter := 'id % 2 = 0')",
                   "INSERT INTO part SELECT g, g, 0 FROM generate_series(1, 20) g")
    refused = None
    try:
        server.sql("p_inplace", "SELECT * FROM pglogical.table_data_filtered(NULL::part, 'part', '{default}')")
    except psycopg.Error as e:
        refused = e.sqlstate
    check("a copy of an inplace table by a row filter is refused", refused, "0A000")


def refusals(server):
    with open(server.log) as f:
        return [line for line in f if "of access method \"inplace\" by functions of heap" in line]


def test():
    server = Server("pglogical", "inplace,pglogical", "wal_level = logical\ntrack_commit_timestamp = on")
    server.allow_plugins("pglogical_output")
    make(server)
    pairs = Pairs(server)
    pairs.caught_up(PAIRS, "copies")
    pairs.compare(PAIRS, "copies")
    pairs.work(40, inserts_only=True)
    pairs.caught_up(PAIRS, "inserts")
    pairs.compare(PAIRS, "inserts")

    # changes: heap's subscribers go on, the others say what they cannot do
    pairs.work(60)
    pairs.caught_up([x for x in PAIRS if x[1] == "heap"], "without SPI")
    pairs.compare([x for x in PAIRS if x[1] == "heap"], "without SPI")
    for p in METHODS:
        wait_until(f"{p} to inplace is refused", lambda: [r for r in refusals(server) if f" s_{p}_to_inplace 0A000 ERROR:" in r])
    check("no other is", [r for r in refusals(server) if "to_inplace 0A000" not in r], [])
    server.configure("pglogical.use_spi = on\npglogical.conflict_resolution = error")
    server.restart()
    pairs.caught_up(PAIRS, "with SPI")
    pairs.compare(PAIRS, "with SPI")
    pairs.work(120)
    pairs.caught_up(PAIRS, "more with SPI")
    pairs.compare(PAIRS, "more with SPI")
    n = len(refusals(server))
    server.crash()
    pairs.work(30)
    pairs.caught_up(PAIRS, "after a crash")
    pairs.compare(PAIRS, "after a crash")
    check("none is refused any more", len(refusals(server)), n)
    server.end("p_inplace", *(f"s_{p}_to_inplace" for p in METHODS))


main(test)
