"""wal2json, in both of its formats and with most of its options: the same output of the
same statements, but for xids, LSNs and times.
"""
import itertools
import json
import random

from beside import BIN, METHODS, Server, check, main, one, run, same, sql

TABLES = """
    CREATE TABLE full_row (id int PRIMARY KEY, n numeric(12,2), t text, big text, a int[], j jsonb, ts timestamp, c char(5), b bytea, o bool);
    ALTER TABLE full_row REPLICA IDENTITY FULL, ALTER big SET STORAGE EXTERNAL;
    CREATE TABLE by_key (gone int, id int PRIMARY KEY, v int, w varchar(2000), big text);
    ALTER TABLE by_key DROP COLUMN gone, ALTER big SET STORAGE EXTERNAL;
    CREATE INDEX ON by_key (v);
    CREATE TABLE by_index (a int NOT NULL, b text NOT NULL, v int);
    CREATE UNIQUE INDEX by_index_ab ON by_index (a, b);
    ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_ab;
    CREATE TABLE no_key (v int, w text);
    CREATE TABLE parted (id int, k int, v int, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
    CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
    CREATE SCHEMA other;
    CREATE TABLE other."Odd ""Name" (id int PRIMARY KEY, "V" int)"""

OPTIONS = [
    {"format-version": 1},
    {"format-version": 2},
    {"format-version": 1, "include-types": "false", "include-pk": "true", "include-not-null": "true", "include-default": "true",
     "include-type-oids": "true", "include-typmod": "false", "include-column-positions": "true", "include-xids": "true",
     "include-timestamp": "true", "include-lsn": "true", "include-origin": "true"},
    {"format-version": 2, "include-xids": "true", "include-timestamp": "true", "include-lsn": "true", "include-pk": "true",
     "include-transaction": "true", "include-schemas": "true"},
    {"format-version": 2, "include-transaction": "false", "actions": "update,delete", "filter-tables": "public.no_key"},
    {"format-version": 1, "add-tables": 'public.by_*,other.Odd\\ "Name', "pretty-print": "true"},
    {"format-version": 2, "add-msg-prefixes": "seen", "add-tables": "public.parted*"},
    {"format-version": 1, "write-in-chunks": "true"},
]


def statements(r):
    """Transactions of a list of statements; the same for the same seed."""
    s = lambda n=10: "'" + "".join(r.choice("abc'\"\\é\n").replace("'", "''") for _ in range(r.randrange(n))) + "'"
    big = lambda: r.choice(["NULL", "repeat(md5('x'), 300)", f"repeat({s()}, 3)", "repeat('z', 9000)"])
    i = lambda n=30: r.randrange(n)
    make = [
        lambda: f"INSERT INTO full_row VALUES ({i()}, {i(1000)}.5, {s()}, {big()}, '{{1,{i()},NULL}}', '{{\"k\": {i()}}}', '2001-02-03 04:05:06', 'ab', '\\x00ff', {i() % 2 == 0}) ON CONFLICT (id) DO UPDATE SET t = excluded.t, n = full_row.n + 1",
        lambda: f"UPDATE full_row SET n = n + 1, o = NOT o WHERE id % 3 = {i(3)}",
        lambda: f"UPDATE full_row SET big = {big()}, id = id + 100 WHERE id = {i()} AND id < 100",
        lambda: f"DELETE FROM full_row WHERE id % 20 = {i(20)}",
        lambda: f"INSERT INTO by_key SELECT g, g, {s(30)}, {big()} FROM generate_series({i()}, {i(40)}) g ON CONFLICT DO NOTHING",
        lambda: f"UPDATE by_key SET w = {s(50)}, v = v + 1 WHERE id BETWEEN {i()} AND {i()}",
        lambda: f"UPDATE by_key SET big = {big()} WHERE id = {i()}",
        lambda: f"UPDATE by_key SET id = id + 1000 WHERE id = {i()} AND NOT EXISTS (SELECT FROM by_key WHERE id >= 1000)",
        lambda: f"DELETE FROM by_key WHERE v % 7 = {i(7)}",
        lambda: f"INSERT INTO by_index VALUES ({i()}, {s()}, 1) ON CONFLICT (a, b) DO UPDATE SET v = by_index.v + 1",
        lambda: f"UPDATE by_index SET b = b || 'x' WHERE a = {i()}",
        lambda: f"UPDATE by_index SET v = NULL WHERE a % 4 = {i(4)}",
        lambda: f"DELETE FROM by_index WHERE a = {i()}",
        lambda: f"INSERT INTO no_key VALUES ({i()}, {s()})",
        lambda: f"UPDATE no_key SET v = v + 1 WHERE v = {i()}",
        lambda: f"DELETE FROM no_key WHERE v = {i()}",
        lambda: f"INSERT INTO parted VALUES ({i()}, {1 + i(2)}, 0) ON CONFLICT DO NOTHING",
        lambda: f"UPDATE parted SET v = v + 1 WHERE id = {i()}",
        lambda: f"UPDATE parted SET k = 3 - k WHERE id = {i()} AND NOT EXISTS (SELECT FROM parted o WHERE o.id = parted.id AND o.k <> parted.k)",
        lambda: f"""INSERT INTO other."Odd ""Name" VALUES ({i()}, 1) ON CONFLICT (id) DO UPDATE SET "V" = "Odd ""Name"."V" + 1""",
        lambda: f"SELECT pg_logical_emit_message(true, 'seen', 'message {i()}')",
        lambda: f"SELECT pg_logical_emit_message(true, 'unseen', 'message {i()}')",
        lambda: "SAVEPOINT s",
        lambda: "TRUNCATE no_key",
    ]
    for _ in range(200):
        t, savepoint = ["BEGIN"], False
        for _ in range(r.randrange(1, 7)):
            x = r.choice(make)()
            t.append(x)
            savepoint |= x == "SAVEPOINT s"
            if savepoint and r.randrange(4) == 0:
                t.append("ROLLBACK TO s")
        yield t + [r.choice(["COMMIT"] * 5 + ["ROLLBACK"])]


def without_places(x):
    """What is said is compared, where and when it was is not."""
    if isinstance(x, dict):
        return {k: k if k in ("xid", "lsn", "nextlsn", "timestamp") else without_places(v) for k, v in x.items()}
    if isinstance(x, list):
        return [without_places(v) for v in x]
    return x


def in_order(changes):
    """What one statement does to several rows of a table comes in the order in which these
    are in the table, which is up to the method."""
    key = lambda x: (x.get("kind", x.get("action")), x.get("schema"), x.get("table"))
    return [json.dumps(x) for _, g in itertools.groupby(changes, key) for x in sorted(g, key=json.dumps)]


def outputs(text, options):
    got = [without_places(x) for x in documents("\n".join(text))]
    if options["format-version"] == 2:
        return in_order(got)
    return [json.dumps({**x, "change": in_order(x["change"])}) for x in got]


def documents(text):
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text):
        x, at = decoder.raw_decode(text, at)
        found.append(x)
        while at < len(text) and text[at].isspace():
            at += 1
    return found


def test():
    server = Server("wal2json", conf="wal_level = logical\nautovacuum = off")
    server.allow_plugins("wal2json")
    server.databases()
    # The types of tables and of columns have numbers in some of the outputs; all are built in.
    rows = {}
    for m in METHODS:
        server.sql(m, *TABLES.split(";\n"))
        server.sql(m, *(f"SELECT pg_create_logical_replication_slot('{m}_{n}', 'wal2json')" for n in range(len(OPTIONS))),
                   f"SELECT pg_create_logical_replication_slot('{m}_received', 'wal2json')")
        r = random.Random(35)
        with server.connect(m) as c:
            for t in statements(r):
                sql(c, *t)
            end = one(c, "SELECT pg_current_wal_insert_lsn()")
            sql(c, "CHECKPOINT")
        got = []
        for n, options in enumerate(OPTIONS):
            args = ", ".join(f"'{k}', '{v}'" for k, v in options.items())
            changes = f"FROM pg_logical_slot_peek_changes('{m}_{n}', '{end}', NULL, {args})"
            got.append(outputs([r[0] for r in server.sql(m, f"SELECT data {changes}")], options))
        rows[m] = [got]
        received = run(f"{BIN}/pg_recvlogical", "-d", m, "-S", f"{m}_received", "--start", "-f", "-", "-n", "-o", "format-version=2",
                       f"--endpos={end}", env=server.env())
        rows[m].append(outputs([received], {"format-version": 2}))
    for n, options in enumerate(OPTIONS):
        same(f"{' '.join(f'{k}={v}' for k, v in options.items())}", lambda m: rows[m][0][n])
        check(f"output {n} says something", len(rows["heap"][0][n]) > 50)
    same("by pg_recvlogical", lambda m: rows[m][1])
    # in slots of both, after a crash
    server.crash()
    same("after a crash", lambda m: outputs([r[0] for r in server.sql(m, f"SELECT data FROM pg_logical_slot_get_changes('{m}_0', NULL, NULL)")], {"format-version": 1}))
    same("the tables", lambda m: [server.sql(m, f"SELECT t::text FROM {t} t ORDER BY 1") for t in
                                            ("full_row", "by_key", "by_index", "no_key", "parted", 'other."Odd ""Name"')])
    server.end("inplace")


main(test)
