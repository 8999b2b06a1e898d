#!/usr/bin/env python3
"""The measurements of bench/figures; see there.  Not run by hand."""

import argparse
import json
import os
import random
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from demo_lib import METHODS, Load, Server, human, say  # noqa: E402

ROWS = []  # (what, heap, inplace, ratio), as text


def row(what, heap, inplace, show=lambda v: f"{v:.0f}"):
    ratio = f"{inplace / heap:.3f}" if heap else "-"
    ROWS.append((what, show(heap), show(inplace), ratio))
    say(f"{what}: heap {show(heap)}, inplace {show(inplace)}, ratio {ratio}")


def interleaved(rounds, measure):
    """The median of measure(method) for each method; which goes first alternates."""
    got = {m: [] for m in METHODS}
    for i in range(rounds):
        for m in METHODS if i % 2 == 0 else reversed(METHODS):
            got[m].append(measure(m))
    return [statistics.median(got[m]) for m in METHODS]


class Figures:
    def __init__(self, args):
        self.a = args
        self.server = Server(args.bindir, args.sock)

    def fresh(self, fillfactor=100):
        for m in METHODS:
            self.server.init(m, m, self.a.scale, fillfactor)

    def timed(self, db, *statements):
        """Seconds that the last statement takes."""
        conn = self.server.connect(db)
        with conn.cursor() as cur:
            for s in statements:
                start = time.monotonic()
                cur.execute(s)
                took = time.monotonic() - start
        conn.close()
        return took

    def pgbench(self, name, *args):
        def measure(m):
            self.server.sql("postgres", "CHECKPOINT")
            return self.server.tps(m, *args, clients=self.a.clients, seconds=self.a.seconds)
        row(f"{name} (TPS)", *interleaved(self.a.rounds, measure))

    # ------------------------------------------------------------ the figures

    def bloat(self):
        """Pages before and after, undo after the snapshot, and TPS."""
        seconds = self.a.bloat_seconds
        snap_from = 0.1 * seconds
        loads, undo = {}, {}

        for m in METHODS:
            say(f"bloat: {m} for {seconds} s")
            self.server.init(m, m, self.a.scale)
            load = Load(self.server, m, m, seconds, self.a.clients, snap_from,
                        snap_from + 0.8 * seconds)
            loads[m] = load.run()
            undo[m] = load.at(load.snap_to + 5)[3]
        for i, what in ((1, "table"), (2, "index")):
            for when, at in (("before", 0), ("after", -1)):
                row(f"bloat: {what} pages {when}", *[loads[m].samples[at][i] // 8192 for m in METHODS])
            row(f"bloat: {what} growth",
                *[loads[m].samples[-1][i] / loads[m].samples[0][i] for m in METHODS],
                show=lambda v: f"{v:.3f} x")
        peak = max(s[3] for s in loads["inplace"].samples)
        ROWS.append(("bloat: undo at its largest", "-", human(peak), "-"))
        ROWS.append(("bloat: undo 5 s after the snapshot", "-", human(undo["inplace"]), "-"))
        row("bloat: TPS", *[loads[m].total_tps for m in METHODS])
        row("bloat: WAL bytes per transaction",
            *[(loads[m].samples[-1][4] - loads[m].samples[0][4]) / loads[m].transactions
              for m in METHODS])

    def load_size(self):
        self.fresh()
        sizes = [self.server.sql(m, "SELECT pg_table_size('pgbench_accounts')") for m in METHODS]
        row("load: size of pgbench_accounts", *sizes, show=human)

    def tpcb(self):
        self.fresh()
        self.pgbench("tpcb-like")

    def simple_update(self):
        self.fresh()
        self.pgbench("simple-update", "-N")

    def select_only(self):
        self.fresh()
        for m in METHODS:
            self.server.sql(m, "VACUUM ANALYZE pgbench_accounts")
        self.pgbench("select-only", "-S")

    def insert_only(self):
        script = os.path.join(self.a.files, "insert.sql")
        with open(script, "w", encoding="utf-8") as f:
            f.write("\\set v random(1, 1000000)\n"
                    "INSERT INTO target (a, filler) VALUES (:v, 'x');\n")
        for m in METHODS:
            self.server.new_database(m, m)
            self.server.sql(m, "CREATE TABLE target (id bigint GENERATED ALWAYS AS IDENTITY"
                               " PRIMARY KEY, a int NOT NULL, filler char(84))")
        self.pgbench("insert-only", "-f", script)

    def copy(self):
        path = os.path.join(self.a.files, "copy.tsv")
        for m in METHODS:
            self.server.new_database(m, m)
        self.server.sql("heap", "COPY (SELECT g, g % 1000, md5(g::text), now()"
                                f" FROM generate_series(1, {self.a.copy_rows}) g) TO '{path}'")
        self.server.sql("heap", "CHECKPOINT")

        def measure(m):
            took = self.timed(m, "DROP TABLE IF EXISTS target",
                              "CREATE TABLE target (id int, a int, b text, c timestamptz)",
                              "CHECKPOINT", f"COPY target FROM '{path}'")
            if self.server.sql(m, "SELECT count(*) FROM target") != self.a.copy_rows:
                raise RuntimeError("COPY lost rows")
            return took
        row(f"copy of {self.a.copy_rows} rows (s)", *interleaved(min(self.a.rounds, 3), measure),
            show=lambda v: f"{v:.2f}")
        row("copy: size of the table",
            *[self.server.sql(m, "SELECT pg_table_size('target')") for m in METHODS], show=human)
        os.unlink(path)
        for m in METHODS:
            self.server.sql(m, "DROP TABLE target")

    def seq_scan(self):
        self.fresh()
        for m in METHODS:
            self.server.sql(m, "VACUUM ANALYZE pgbench_accounts")

        query = "SELECT sum(abalance) FROM pgbench_accounts"
        # The first of each connection finds the cache warm for the second.
        row("sum() over a sequential scan (s)",
            *interleaved(self.a.rounds, lambda m: self.timed(m, query, query)),
            show=lambda v: f"{v:.3f}")

    def index_build(self):
        self.fresh()
        for m in METHODS:
            self.server.sql(m, "VACUUM ANALYZE pgbench_accounts")

        def measure(m):
            return self.timed(m, "DROP INDEX IF EXISTS built", "CHECKPOINT",
                              "CREATE INDEX built ON pgbench_accounts (bid, aid)")
        row("create index (s)", *interleaved(self.a.rounds, measure), show=lambda v: f"{v:.3f}")

    def update_wal(self):
        """Bytes of WAL of one same-size update of one column, in a transaction of
        its own.  Without full page images; heap has room for HOT updates."""
        # Fillfactor is for heap's sake: all of its updates should be HOT.
        self.fresh(fillfactor=50)
        self.server.sql("postgres", "ALTER SYSTEM SET full_page_writes = off")
        self.server.sql("postgres", "SELECT pg_reload_conf()")
        time.sleep(1)
        updates = 2000

        def measure(m):
            self.server.sql(m, "VACUUM ANALYZE pgbench_accounts")
            self.server.sql(m, "CHECKPOINT")
            rng = random.Random(1)
            conn = self.server.connect(m)
            total = fpi = 0
            with conn.cursor() as cur:
                for _ in range(updates):
                    aid = rng.randint(1, self.a.scale * 100000)
                    cur.execute("EXPLAIN (ANALYZE, WAL, FORMAT JSON, TIMING OFF) UPDATE pgbench_accounts"
                                " SET abalance = abalance # 12345 WHERE aid = %s", (aid,))
                    plan = cur.fetchone()[0]
                    plan = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
                    total += plan.get("WAL Bytes", 0)
                    fpi += plan.get("WAL FPI", 0)
            conn.close()
            if fpi:
                say(f"update-wal: {m}: {fpi} full page images in it")
            return total / updates

        def transactions(m):
            """The same with all that the transaction and the background write."""
            script = os.path.join(self.a.files, "update.sql")
            with open(script, "w", encoding="utf-8") as f:
                f.write(f"\\set aid random(1, {self.a.scale * 100000})\n"
                        "UPDATE pgbench_accounts SET abalance = abalance # 12345 WHERE aid = :aid;\n")
            self.server.sql(m, "CHECKPOINT")
            lsn = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
            before = self.server.sql(m, lsn)
            self.server.run("pgbench", "-n", "-M", "prepared", "-t", "5000", "-f", script, m)
            return (float(self.server.sql(m, lsn)) - float(before)) / 5000

        try:
            rounds = min(self.a.rounds, 3)
            row("update-wal: bytes per update", *interleaved(rounds, measure),
                show=lambda v: f"{v:.1f}")
            row("update-wal: bytes per transaction, commit included",
                *interleaved(rounds, transactions), show=lambda v: f"{v:.1f}")
            hot = self.server.sql("heap", "SELECT round(100.0 * n_tup_hot_upd / nullif(n_tup_upd, 0), 1)"
                                          " FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts'")
            ROWS.append(("update-wal: HOT updates of heap", f"{hot} %", "-", "-"))
        finally:
            self.server.sql("postgres", "ALTER SYSTEM RESET full_page_writes")
            self.server.sql("postgres", "SELECT pg_reload_conf()")


# bloat first: the undo of others would count in its sizes.
NAMES = ("bloat", "load-size", "tpcb", "simple-update", "select-only", "insert-only", "copy", "seq-scan",
         "index-build", "update-wal")


def table(a, server):
    lines = [
        f"PostgreSQL {server.sql('postgres', 'SHOW server_version')}, {os.cpu_count()} CPUs, "
        f"synchronous_commit {server.sql('postgres', 'SHOW synchronous_commit')}; scale {a.scale}, "
        f"{a.clients} clients; medians of {a.rounds} interleaved rounds of {a.seconds} s "
        f"(copy, update-wal: {min(a.rounds, 3)}; bloat: one run of {a.bloat_seconds} s each).",
        "",
        "| what | heap | inplace | inplace/heap |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += ["| " + " | ".join(r) + " |" for r in ROWS]
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(prog="bench/figures")
    p.add_argument("--bindir", required=True)
    p.add_argument("--sock", required=True)
    p.add_argument("--files", required=True)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=int, default=10)
    p.add_argument("--scale", type=int, default=10)
    p.add_argument("--clients", type=int, default=8)
    p.add_argument("--bloat-seconds", type=int, default=150)
    p.add_argument("--copy-rows", type=int, default=5000000)
    p.add_argument("--only", default=",".join(NAMES))
    p.add_argument("--out")
    a = p.parse_args()
    names = [n for n in a.only.replace(" ", ",").split(",") if n]
    for n in names:
        if n not in NAMES:
            p.error(f"no measurement '{n}'; there are: {' '.join(NAMES)}")
    if a.rounds < 1 or a.seconds < 1:
        p.error("at least one round of one second")

    figures = Figures(a)
    for n in names:
        say(f"{n}: begins")
        getattr(figures, n.replace("-", "_"))()
    text = table(a, figures.server)
    print(text)
    if a.out:
        with open(a.out, "w", encoding="utf-8") as f:
            f.write(text + "\n")


if __name__ == "__main__":
    main()
