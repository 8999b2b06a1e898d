"""Rows that many clients want at the same time: counters, stock, balances.

Each workload runs with 1, 8, 64 and 1,000 rows, one after the other, each for a
quarter of the time.  The number of clients is that of --clients."""

from __future__ import annotations

from typing import Any

from .. import pgbench
from ..measure import Measured, measuring
from ..model import Params, Target, Workload
from ..server import Database

SIZES = (1, 8, 64, 1000)

UPDATE = """\\set id random(1, :nrows)
UPDATE hot SET v = v + 1 WHERE id = :id;
"""
UPSERT = """\\set id random(1, :nrows)
INSERT INTO hot VALUES (:id, 1) ON CONFLICT (id) DO UPDATE SET v = hot.v + 1;
"""
LOCK = """\\set id random(1, :nrows)
BEGIN;
SELECT v FROM hot WHERE id = :id FOR UPDATE;
UPDATE hot SET v = v + 1 WHERE id = :id;
END;
"""


class Hot(Workload):
    published = "none"
    stretch = 4.0
    metrics = {
        **{f"tps_{n}": (f"transactions/s, rows: {n}", "", "higher") for n in SIZES},
        **{f"p99_{n}": (f"latency, 99 %, rows: {n}", "ms", "lower") for n in SIZES},
        "slowest": ("slowest client's part of the mean, one row", "", "higher"),
    }
    targets = (*(Target(f"tps_{n}", ">=", 1.0) for n in SIZES), *(Target(f"p99_{n}", "<=", 1.0) for n in SIZES),
               Target("slowest", ">=", 0.5, False))

    def __init__(self, name: str, script: str, line: str):
        self.name, self.script, self.line = name, script, line

    def setup(self, db: Database, p: Params) -> None:
        db.run("CREATE TABLE hot (id int PRIMARY KEY, v bigint)")

    def run(self, db: Database, p: Params) -> Measured:
        each = max(1, self.seconds(p) // len(SIZES))
        total = pgbench.Run()
        got: dict[str, float] = {}
        with measuring(db, min(1.0, each / 5)) as measured:
            for n in SIZES:
                db.run("TRUNCATE hot", f"INSERT INTO hot SELECT g, 0 FROM generate_series(1, {n}) g",
                       "VACUUM ANALYZE hot")
                run = pgbench.load(db, each, p.clients, script=self.script, variables={"nrows": n}, log_all=True)
                done = db.value("SELECT sum(v) FROM hot")
                if done != run.transactions:
                    raise RuntimeError(f"{db.method}: rows say {done}, pgbench {run.transactions}")
                got[f"tps_{n}"], got[f"p99_{n}"] = run.tps, run.latency["p99"]
                if n == 1:
                    got["slowest"] = min(run.by_client) * len(run.by_client) / sum(run.by_client)
                    total.latency = run.latency
                total.transactions += run.transactions
                total.tps += run.tps / len(SIZES)
            measured.pgbench(total)
        measured.metrics.update(got)
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        return db.value("SELECT count(*) FROM hot")


ALL = (Hot("hot-update", UPDATE, "many clients update the same few rows, a statement a transaction"),
       Hot("hot-upsert", UPSERT, "many clients upsert the same few rows"),
       Hot("hot-lock", LOCK, "many clients lock a row of the same few, then update it"))
