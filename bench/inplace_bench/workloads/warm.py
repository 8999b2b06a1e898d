"""One of six indexes changes (WARM, 2016)."""

from __future__ import annotations

from typing import Any

from ..holder import Beside, repeat
from ..measure import Measured
from ..model import Params, Target, Workload
from ..server import Database
from .common import accounts, drive, same_by_index, using

SCRIPT = """\\set aid random(1, :naccounts)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
END;
"""
# the same, sent as one message: the client and the server wait for each other once, not four times
PIPELINED = SCRIPT.replace("BEGIN;", "\\startpipeline\nBEGIN;") + "\\endpipeline\n"
ABALANCE_PAGES = "SELECT pg_relation_size('accounts_abalance') / 8192"
UNCHANGED = ("accounts_aid", "accounts_filler1", "accounts_filler2", "accounts_filler3", "accounts_filler4")


class Warm(Workload):
    metrics = {
        "unchanged_growth": ("growth of the five indexes whose key did not change", "pages", "lower"),
        "changed_bloat": ("index on abalance, relative to its size when rebuilt", "", "lower"),
        "changed_bloat_load": ("... before the last VACUUM", "", "lower"),
    }
    setup_weight = 3.0
    max_rounds = 2
    autovacuum = True
    vacuum_last = False
    script = SCRIPT

    def __init__(self, name: str, fillfactor: int, wal: float, checkpoints: int = 0):
        self.name, self.fillfactor, self.checkpoints = name, fillfactor, checkpoints
        self.line = ("accounts with six indexes, the indexed abalance is updated; fillfactor "
                     f"{fillfactor}" + (f", a checkpoint every {checkpoints} s" if checkpoints else ""))
        self.published = ("WARM, scale 700: 1138 to 2017 TPS, 34967 to 18421 B of WAL per transaction"
                          if fillfactor == 100 else
                          "WARM, scale 700: 1357 to 3416 TPS, about 49000 to 14000 B of WAL per transaction")
        # (For changed_bloat there is one after 20 updates a row: WarmIndex.  Before, the index still has the
        # pages that it split into when keys which were all the same spread.)
        self.targets = (Target("tps", ">=", 1.5), Target("wal_total_per_tx", "<=", wal),
                        Target("unchanged_growth", "<=", 0, False))
        # What checkpoints cost shows with a larger table and more time; without them, the one image of each
        # page after the checkpoint at the start has to become small beside the rest: that takes four times as
        # many transactions as there are rows, or more.
        self.stretch = 4.0 if checkpoints else 12.0

    def rows(self, p: Params) -> int:
        # (In a short run it would be made for longer than it is used.)
        larger = 5 if p.seconds >= 10 else 2
        return accounts(p) * (larger if self.checkpoints else 1)

    def setup(self, db: Database, p: Params) -> None:
        fillers = ", ".join(f"filler{i} text DEFAULT md5(random()::text)" for i in range(1, 13))
        db.run(f"CREATE TABLE pgbench_accounts (aid bigint, bid bigint, abalance bigint, {fillers})"
               f" WITH (fillfactor = {self.fillfactor}, autovacuum_enabled = {self.autovacuum})",
               "INSERT INTO pgbench_accounts (aid, bid, abalance)"
               f" SELECT g, (g - 1) / 100000 + 1, 0 FROM generate_series(1, {self.rows(p)}) g",
               "CREATE UNIQUE INDEX accounts_aid ON pgbench_accounts (aid)",
               f"CREATE INDEX accounts_abalance ON pgbench_accounts {using(db)} (abalance)",
               *[f"CREATE INDEX accounts_filler{i} ON pgbench_accounts {using(db)} (filler{i})" for i in range(1, 5)],
               "VACUUM ANALYZE pgbench_accounts")

    def load(self, db: Database, p: Params) -> Measured:
        variables = {"naccounts": self.rows(p)}
        if not self.checkpoints:
            return drive(db, p, self.seconds(p), script=self.script, variables=variables)
        # Twice in a run too short for that.
        every = min(self.checkpoints, self.seconds(p) * 3 / 8)
        with Beside(db, repeat("CHECKPOINT", every)):
            return drive(db, p, self.seconds(p), script=self.script, variables=variables)

    def run(self, db: Database, p: Params) -> Measured:
        measured = self.load(db, p)
        before, after = measured.detail["relations_before"], measured.detail["relations_after"]
        measured.metrics["unchanged_growth"] = sum(after[i] - before[i] for i in UNCHANGED)
        same_by_index(db, "pgbench_accounts", "abalance")
        pages = after["accounts_abalance"]
        if self.vacuum_last:
            measured.metrics["changed_bloat_load"] = pages
            db.run("VACUUM pgbench_accounts")
            pages = db.value(ABALANCE_PAGES)
        db.run("REINDEX INDEX accounts_abalance")
        rebuilt = db.value(ABALANCE_PAGES)
        measured.metrics["changed_bloat"] = pages / rebuilt
        if self.vacuum_last:
            measured.metrics["changed_bloat_load"] /= rebuilt
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        same_by_index(db, "pgbench_accounts", "abalance")
        return db.value("SELECT count(*) FROM pgbench_accounts")


PER_ROW = 20


class WarmIndex(Warm):
    """The same load, until each row has been updated 20 times on average, on a small table: what
    becomes of the index on abalance?  As on a large one, there is a VACUUM for each time that as
    many updates have been as there are rows, the last one when the load has ended."""
    autovacuum = False
    vacuum_last = True

    def __init__(self) -> None:
        super().__init__("warm-index", 100, 0.30)
        self.line = f"warm until there were {PER_ROW} updates a row, VACUUM after each: the size of the index on abalance"
        self.targets = (Target("unchanged_growth", "<=", 0, False), Target("changed_bloat", "<=", 1.3, False))

    def rows(self, p: Params) -> int:
        return accounts(p) // 10

    def seconds(self, p: Params) -> int:
        # (a guess, for the time that is left)
        return max(1, PER_ROW * self.rows(p) // 15000)

    def load(self, db: Database, p: Params) -> Measured:
        rows = self.rows(p)

        def vacuum(conn: Any, beside: Beside) -> None:
            done = 0
            with conn.cursor() as cur:
                while not beside.wait(0.05):
                    cur.execute("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts'")
                    updates = cur.fetchone()[0]
                    if updates >= done + rows:
                        cur.execute("VACUUM pgbench_accounts")
                        done = updates

        with Beside(db, vacuum):
            return drive(db, p, self.seconds(p), script=SCRIPT, variables={"naccounts": rows},
                         transactions=PER_ROW * rows)


class WarmPipeline(Warm):
    """What of the ratio is the server's: in the other runs half of the machine's time goes into
    the messages between pgbench and the server, the same for both sides."""
    script = PIPELINED

    def __init__(self) -> None:
        super().__init__("warm-pipeline", 100, 0.30)
        self.line = "warm, each transaction sent as one message"
        self.targets = (Target("tps", ">=", 1.5), Target("unchanged_growth", "<=", 0, False))
        self.stretch = 3.0


class WarmHot(Warm):
    """How much of what can be had: the other side has no index on abalance, and room on its
    pages, so that each of its updates is HOT; inplace has all six indexes."""
    max_rounds = 3

    def __init__(self) -> None:
        super().__init__("warm-hot", 100, 0.30)
        self.line = "warm, against a table without the index that changes: what can be had at most"
        self.published = ""
        self.targets = (Target("unchanged_growth", "<=", 0, False),)
        self.stretch = 3.0

    def setup(self, db: Database, p: Params) -> None:
        super().setup(db, p)
        if db.method != "inplace":
            db.run("DROP INDEX accounts_abalance",
                   "ALTER TABLE pgbench_accounts SET (fillfactor = 80)",
                   "VACUUM FULL pgbench_accounts", "VACUUM ANALYZE pgbench_accounts")

    def run(self, db: Database, p: Params) -> Measured:
        if db.method == "inplace":
            return super().run(db, p)
        return self.load(db, p)

    def answer(self, db: Database, p: Params) -> Any:
        return db.value("SELECT count(*) FROM pgbench_accounts")


ALL = (Warm("warm", 100, 0.30), Warm("warm-90", 90, 0.30), WarmPipeline(), WarmHot(),
       Warm("warm-checkpoints", 100, 0.45, 30), WarmIndex())
