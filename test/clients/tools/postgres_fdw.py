"""Shards on two servers, tables of postgres_fdw's on a third: one database of it has shards
with heap tables, another one with inplace tables.

Money is moved between shards by transactions that are prepared on both; servers crash in
between, and what had been decided is done afterwards.
"""
import random

import psycopg

from beside import METHODS, Server, both, check, main, methods_of, same, sql

ACCOUNTS, STEPS, CRASHES = 200, 60, 10


def make(coordinator, shards, m):
    for s in shards:
        s.sql(m, "CREATE TABLE accounts (id int PRIMARY KEY, shard int, balance int, note text, tags int[] DEFAULT '{}')", "CREATE INDEX ON accounts (balance)",
              "CREATE TABLE log (id serial PRIMARY KEY, gid text, account int, delta int)")
    c = [f"CREATE TABLE accounts (id int, shard int, balance int, note text, tags int[] DEFAULT '{{}}') PARTITION BY LIST (shard)",
         "CREATE TABLE decided (gid text PRIMARY KEY, shards int[], done bool)",
         "CREATE TABLE rates (shard int PRIMARY KEY, rate numeric)", "INSERT INTO rates VALUES (0, 1.5), (1, 2.5), (2, 0.5)"]
    for n, s in enumerate(shards):
        c += [f"CREATE SERVER shard{n} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{s.socket}', port '{s.port}', dbname '{m}', use_remote_estimate '{['false', 'true'][n]}', async_capable 'true', batch_size '10')",
              f"CREATE USER MAPPING FOR postgres SERVER shard{n} OPTIONS (user 'postgres')",
              f"CREATE FOREIGN TABLE accounts_{n} PARTITION OF accounts FOR VALUES IN ({n}) SERVER shard{n} OPTIONS (table_name 'accounts')",
              f"CREATE SCHEMA remote{n}", f"IMPORT FOREIGN SCHEMA public LIMIT TO (log) FROM SERVER shard{n} INTO remote{n}"]
    # one that is here, of the method itself
    c += ["CREATE TABLE accounts_2 PARTITION OF accounts FOR VALUES IN (2)", "CREATE UNIQUE INDEX ON accounts_2 (id)"]
    coordinator.sql(m, *c)
    coordinator.sql(m, f"INSERT INTO accounts SELECT g, g % 3, 100, 'n' || g FROM generate_series(1, {ACCOUNTS}) g")


# What is asked, and done, through the coordinator; the same on both.
STATEMENTS = [
    "SELECT shard, count(*), sum(balance) FROM accounts GROUP BY 1 ORDER BY 1",
    "UPDATE accounts SET note = note || '!' WHERE balance > 90 AND id % 7 = 1 RETURNING id, note",
    "UPDATE accounts a SET balance = balance + rate::int FROM rates r WHERE a.shard = r.shard AND id % 11 = 0 RETURNING a.id, a.balance",
    "UPDATE accounts SET tags = tags || id, balance = balance - 1 WHERE id BETWEEN 30 AND 40",
    "INSERT INTO accounts SELECT g, g % 3, 0, 'many' FROM generate_series(1001, 1060) g RETURNING id",
    "UPDATE accounts SET shard = (shard + 1) % 3 WHERE id IN (1001, 1002, 1003) AND shard = 2 RETURNING id, shard",
    "SELECT a.id, b.id FROM accounts a JOIN accounts b ON a.id + 1 = b.id AND a.shard = 0 WHERE a.balance < 100 ORDER BY 1",
    "SELECT id FROM accounts WHERE balance = ANY ('{99,100}') AND id < 50 ORDER BY id FOR UPDATE",
    "DELETE FROM accounts WHERE id > 1050 RETURNING id",
    "SELECT id, balance, rate FROM accounts NATURAL JOIN rates ORDER BY balance DESC, id LIMIT 15",
    "SELECT shard, array_agg(id ORDER BY id) FROM accounts WHERE id % 17 = 0 GROUP BY shard ORDER BY shard",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY balance) FROM accounts",
    "DELETE FROM accounts WHERE id > 1000",
    "ANALYZE accounts",
    "SELECT count(*), sum(balance) FROM accounts_0 WHERE id > 10",
    "SELECT * FROM accounts WHERE shard = 3",
    "INSERT INTO accounts VALUES (5000, 7, 1)",
    "INSERT INTO accounts VALUES (3, 0, 1)",
]


def through_coordinator(coordinator, m):
    said = []
    with coordinator.connect(m) as c:
        for s in STATEMENTS:
            try:
                said.append(sorted(sql(c, s)))
            except psycopg.Error as e:
                said.append((e.sqlstate, str(e).splitlines()[0]))
        # shards follow savepoints and the end of the coordinator's transaction
        for end in ("COMMIT", "ROLLBACK"):
            sql(c, "BEGIN", "UPDATE accounts SET balance = balance - 5 WHERE id = 3", "SAVEPOINT a", "UPDATE accounts SET balance = 0 WHERE id < 100",
                "ROLLBACK TO a", "UPDATE accounts SET balance = balance + 5 WHERE id = 4", "SAVEPOINT b", "UPDATE accounts SET note = 'b' WHERE id % 50 = 0", "RELEASE b", end)
        # it cannot be prepared on the coordinator
        sql(c, "BEGIN", "UPDATE accounts SET balance = 0 WHERE id = 3")
        try:
            sql(c, "PREPARE TRANSACTION 'x'")
        except psycopg.Error as e:
            said.append((e.sqlstate, str(e).splitlines()[0]))
        sql(c, "ROLLBACK") if c.info.transaction_status else None
        said.append(sql(c, "SELECT id, shard, balance, note, tags FROM accounts ORDER BY id"))
    return said


def one_step(coordinator, shards, m, n, r, crash):
    """Money from an account on one shard to one on the other."""
    what = r.choice(["commit"] * 4 + ["rollback", "crash before", "crash between", "crash after"]) if crash else r.choice(["commit"] * 4 + ["rollback"])
    by_shard = [r.choice(range(s, ACCOUNTS + 1, 3)) if s else r.choice(range(3, ACCOUNTS + 1, 3)) for s in (0, 1)]
    amount, first, victim, order = r.randrange(1, 20), r.randrange(2), r.randrange(2), r.random() < 0.5
    gid = f"{m}_{n}"
    for s in (first, 1 - first):
        with shards[s].connect(m) as c:
            sql(c, "BEGIN", f"UPDATE accounts SET balance = balance + {amount if s == 0 else -amount} WHERE id = {by_shard[s]}",
                f"INSERT INTO log (gid, account, delta) VALUES ('{gid}', {by_shard[s]}, {amount if s == 0 else -amount})",
                f"SELECT * FROM accounts WHERE id = {by_shard[s]} + 3 FOR SHARE",
                "SAVEPOINT s", f"DELETE FROM accounts WHERE id % 20 = {by_shard[s] % 20}", "ROLLBACK TO s",
                f"PREPARE TRANSACTION '{gid}_{s}'")
        if what == "crash before" and s == first:
            # nothing has been decided: it is given up
            shards[victim].crash()
            break
    else:
        if what == "crash between":
            shards[victim].crash()
        if what != "rollback":
            coordinator.sql(m, f"INSERT INTO decided VALUES ('{gid}', '{{0,1}}', false)")
        if what == "crash after":
            shards[first].sql(m, f"COMMIT PREPARED '{gid}_{first}'")
            shards[victim].crash()
        elif what == "commit":
            # a reader is held up by neither, and sees all of it or nothing, on each shard
            for s in (first, 1 - first) if order else (1 - first, first):
                shards[s].sql(m, f"COMMIT PREPARED '{gid}_{s}'")
            coordinator.sql(m, f"UPDATE decided SET done = true WHERE gid = '{gid}'")
            return
    # what is left is done, or given up, as was decided
    decided = bool(coordinator.sql(m, f"SELECT 1 FROM decided WHERE gid = '{gid}'"))
    for s in shards:
        for (g,) in s.sql(m, f"SELECT gid FROM pg_prepared_xacts WHERE database = '{m}' AND gid LIKE '{gid}\\_%' ORDER BY 1"):
            s.sql(m, f"{'COMMIT' if decided else 'ROLLBACK'} PREPARED '{g}'")
    coordinator.sql(m, f"UPDATE decided SET done = true WHERE gid = '{gid}'")


def test():
    shards = [Server(f"shard{n}") for n in range(2)]
    coordinator = Server("coordinator")
    for s in shards:
        s.databases()
    coordinator.databases("", "postgres_fdw")
    both(lambda m: make(coordinator, shards, m))
    same("statements on the coordinator", lambda m: through_coordinator(coordinator, m))
    same("money at first", lambda m: coordinator.sql(m, "SELECT sum(balance) FROM accounts"))
    before = {m: coordinator.sql(m, "SELECT sum(balance) FROM accounts WHERE shard < 2") for m in METHODS}
    # (the first ones of both at once; those with crashes one after the other, for a crash is of both)
    rs = {m: random.Random(9) for m in METHODS}
    both(lambda m: [one_step(coordinator, shards, m, n, rs[m], False) for n in range(STEPS)])
    for n in range(STEPS, STEPS + CRASHES):
        for m in METHODS:
            one_step(coordinator, shards, m, n, rs[m], True)
    for m in METHODS:
        check(f"no money is lost, {m}", coordinator.sql(m, "SELECT sum(balance) FROM accounts WHERE shard < 2"), before[m])
        check(f"nothing is left prepared, {m}", [s.sql(m, "SELECT count(*) FROM pg_prepared_xacts") for s in shards], [[(0,)], [(0,)]])
        check(f"each transfer is on both or on none, {m}", coordinator.sql(m, """
            SELECT gid, count(*), sum(delta) FROM (SELECT * FROM remote0.log UNION ALL SELECT * FROM remote1.log) l
            GROUP BY gid HAVING count(*) <> 2 OR sum(delta) <> 0"""), [])
        check(f"those that were decided are there, {m}", coordinator.sql(m, """
            SELECT gid FROM decided FULL JOIN (SELECT DISTINCT gid FROM remote0.log) l USING (gid) WHERE decided.gid IS NULL OR l.gid IS NULL OR NOT done"""), [])
        with shards[0].connect(m) as c:
            check(f"method, {m}", methods_of(c, "c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'"), [m])
    for q in ("SELECT id, shard, balance, note, tags FROM accounts ORDER BY id", "SELECT replace(gid, current_database(), ''), done FROM decided ORDER BY 1",
              "SELECT account, delta FROM remote0.log UNION ALL SELECT account, delta FROM remote1.log ORDER BY 1, 2"):
        same(f"{q}", lambda m: coordinator.sql(m, q))
    for s in (*shards, coordinator):
        s.end("inplace")


main(test)
