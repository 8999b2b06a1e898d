"""pgbackrest: a full backup and incremental ones, each taken while tables of both methods are
written to; restored to a point in time, and to the end over the cluster that is there
(--delta).  Tables of both methods come back the same.
"""
import json
import os

from beside import DIR, METHODS, Background, Server, both, check, main, run, same, sql, wait_until

ROWS = {"t": "SELECT id, v, md5(w) FROM t ORDER BY id", "n": "SELECT sum(n), count(*) FROM counters", "u": "SELECT count(*) FROM unlogged"}


class Writer:
    """In both databases the same counters are raised, one after the other."""

    def __init__(self, server):
        self.server, self.stop, self.n = server, False, 0

    def __call__(self):
        with self.server.connect("heap") as h, self.server.connect("inplace") as i:
            while not self.stop:
                for c in (h, i):
                    sql(c, f"UPDATE counters SET n = n + 1 WHERE id = {self.n % 50}", f"UPDATE t SET w = repeat('{self.n % 7}', 200), v = v + 1 WHERE id < 2800 AND id % 50 = {self.n % 50}")
                self.n += 1


def test():
    conf = f"{DIR}/pgbackrest.conf"
    server = Server("source", conf=f"""
        wal_level = replica
        archive_mode = on
        archive_command = 'pgbackrest --config={conf} --stanza=main archive-push %p'
        archive_timeout = 30s""")
    with open(conf, "w") as f:
        f.write(f"""[global]
repo1-path={DIR}/repo
repo1-retention-full=2
log-path={DIR}/backrest-log
lock-path={DIR}/lock
spool-path={DIR}/spool
log-level-console=warn
start-fast=y
compress-level=1
process-max=2
archive-timeout=300

[main]
pg1-path={server.data}
pg1-socket-path={server.socket}
pg1-port={server.port}
pg1-user=postgres
""")
    for d in ("repo", "backrest-log", "lock", "spool"):
        os.mkdir(f"{DIR}/{d}")
    backrest = lambda *args: run("pgbackrest", f"--config={conf}", "--stanza=main", *args)
    server.databases()
    both(lambda m: server.sql(m, "CREATE TABLE t (id int PRIMARY KEY, v int, w text)", "CREATE INDEX ON t (v)",
                              "INSERT INTO t SELECT g, g, 'w' || g FROM generate_series(1, 3000) g",
                              "CREATE TABLE counters (id int PRIMARY KEY, n int)", "INSERT INTO counters SELECT g, 0 FROM generate_series(0, 49) g",
                              "CREATE UNLOGGED TABLE unlogged (id int)", "INSERT INTO unlogged VALUES (1)"))
    backrest("stanza-create")
    backrest("check")

    def backup(kind):
        """While rows are changed, and a transaction is open that is rolled back later."""
        w = Writer(server)
        t = Background(w)
        with server.connect("inplace") as c:
            sql(c, "BEGIN", "UPDATE t SET v = -1 WHERE id > 2900", "DELETE FROM t WHERE id BETWEEN 2800 AND 2900")
            wait_until("rows are changed", lambda: w.n > 5, lambda: t.error)
            check(f"{kind} backup says nothing", backrest("backup", f"--type={kind}"), "")
            n = w.n
            wait_until("rows go on being changed", lambda: w.n > n + 5, lambda: t.error)
            sql(c, "ROLLBACK")
        w.stop = True
        t.result()

    rows = lambda s, m: {t: s.sql(m, q) for t, q in ROWS.items() if t != "u"}
    all_rows = lambda s: {m: rows(s, m) for m in METHODS}
    backup("full")
    both(lambda m: server.sql(m, "DELETE FROM t WHERE id % 10 = 3", "VACUUM t", "UPDATE t SET v = v + 1000"))
    backup("incr")
    # a point in time to come back to
    both(lambda m: server.sql(m, "UPDATE t SET v = 0", "INSERT INTO t SELECT g, g, 'later' FROM generate_series(10001, 10100) g"))
    at_time = all_rows(server)
    time = server.sql("postgres", "SELECT clock_timestamp()::text")[0][0]
    with server.connect("inplace") as i, server.connect("heap") as h:
        # (what is committed at that very time may or may not be)
        for c in (i, h):
            sql(c, "SELECT pg_sleep(0.05)", "DELETE FROM t WHERE id % 2 = 0", "UPDATE t SET w = 'end' WHERE id % 3 = 0")
    both(lambda m: server.sql(m, "VACUUM FULL counters", "CREATE INDEX t_w ON t (w)", "UPDATE t SET v = 7 WHERE id % 5 = 0"))
    backup("incr")
    at_end = all_rows(server)
    # one that a crash of the restored server would have to undo
    c = server.connect("inplace")
    sql(c, "BEGIN", "UPDATE t SET v = 8", "SELECT pg_switch_wal()")
    wait_until("all WAL is archived", lambda: server.sql("postgres", """
        SELECT 1 FROM pg_stat_archiver WHERE last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1)"""))
    server.stop("immediate")
    check("both methods have the same", at_end["inplace"], at_end["heap"])
    backups = json.loads(run("pgbackrest", f"--config={conf}", "--stanza=main", "info", "--output=json"))[0]["backup"]
    check("backups", [b["type"] for b in backups], ["full", "incr", "incr"])
    check("no page with a wrong checksum", [b["label"] for b in backups if b.get("error")], [])

    def restored(name, want, *args, over=None):
        data = over or f"{DIR}/restored"
        if not over:
            os.mkdir(data, 0o700)
        backrest("restore", f"--pg1-path={data}", *(["--target-action=promote"] if args else []), *args, *(["--delta"] if over else []))
        with open(f"{data}/postgresql.conf", "a") as f:
            f.write("archive_mode = off\n")
        s = Server(name.replace(" ", "-"), data=data)
        wait_until(f"{name} is over", lambda: not s.sql("postgres", "SELECT pg_is_in_recovery()")[0][0])
        got = all_rows(s)
        for m in METHODS:
            check(f"{name}, {m}", got[m], want[m])
        check(f"{name}: unlogged tables are empty", [s.sql(m, ROWS["u"]) for m in METHODS], [[(0,)], [(0,)]])
        # by indexes; and it can be gone on with
        for m in METHODS:
            check(f"{name}, {m}, by an index", s.sql(m, "SET enable_seqscan = off", "SET enable_bitmapscan = off", "SELECT id, v, md5(w) FROM t WHERE id > 0 ORDER BY id"), want[m]["t"])
        both(lambda m: s.sql(m, "UPDATE t SET v = v + 1 WHERE id % 2 = 1", "DELETE FROM t WHERE id < 100", "VACUUM t"))
        same(f"{name}: changed after it", lambda m: s.sql(m, ROWS["t"]))
        s.end("inplace")

    restored("restore to a time", at_time, "--type=time", f"--target={time}")
    # over the cluster that crashed; the last segment of WAL is in the repository
    restored("restore to the end", at_end, over=server.data)


main(test)
