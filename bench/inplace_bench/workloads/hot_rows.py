"""A few rows, updated over and over again under one snapshot: an hour's worth of
versions in a minute."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from .. import pgbench
from ..holder import Beside
from ..measure import Measured, measuring
from ..model import Params, Target, Workload
from ..server import Database

ROWS = 100
SCRIPT = """\\set id random(1, :nrows)
UPDATE hot SET v = v + 1 WHERE id = :id;
"""
READ = "SELECT sum(v), count(*) FROM hot"


class HotRows(Workload):
    name = "hot-rows"
    line = f"{ROWS} rows updated again and again under one snapshot: do its reads get slower, does anything grow?"
    published = "none: all published engines keep each version, or read them one by one"
    metrics = {
        "read_first": ("reading the rows under the snapshot, at the beginning", "ms", "lower"),
        "read_last": ("... at the end", "ms", "lower"),
        "size_early": ("table, index and undo after a fifth of the time", "pages", "lower"),
        "size_last": ("... at the end", "pages", "lower"),
        "size_growth": ("growth in between", "pages", "lower"),
    }
    # Space for undo is handed out in extents of 32 pages to each backend.
    targets = (Target("tps", ">=", 1.0), Target("size_growth", "<=", 256, False),
               Target("read_last", "<=", 1.0))
    stretch = 3.0
    max_rounds = 3

    def setup(self, db: Database, p: Params) -> None:
        db.run("CREATE TABLE hot (id int PRIMARY KEY, v bigint, filler text)",
               f"INSERT INTO hot SELECT g, 0, repeat('x', 100) FROM generate_series(1, {ROWS}) g",
               "VACUUM ANALYZE hot")

    def run(self, db: Database, p: Params) -> Measured:
        seconds = self.seconds(p)
        reads: list[float] = []

        def hold(conn: Any, beside: Beside) -> None:
            conn.set_session(isolation_level="REPEATABLE READ")
            with conn.cursor() as cur:
                cur.execute(READ)
                first = cur.fetchall()
                while True:
                    stop = beside.wait(min(1.0, seconds / 20))
                    start = time.monotonic()
                    cur.execute(READ)
                    if cur.fetchall() != first:
                        raise RuntimeError("the held snapshot changed")
                    reads.append(1000 * (time.monotonic() - start))
                    if stop:
                        break
            conn.rollback()

        with measuring(db, min(1.0, seconds / 20)) as measured:
            with Beside(db, hold, autocommit=False):
                run = pgbench.load(db, seconds, p.clients, script=SCRIPT, variables={"nrows": ROWS})
                # while the snapshot is there
                end = measured.sampler.elapsed()
            measured.pgbench(run)
        m, s = measured.metrics, measured.sampler
        few = max(1, len(reads) // 10)
        m["read_first"], m["read_last"] = median(reads[:few]), median(reads[-few:])
        total = [(t, x["table"] + x["index"] + x["undo"]) for t, x in s.samples if t <= end]
        m["size_early"] = max(n for t, n in total if t <= max(end / 5, total[0][0]))
        m["size_last"] = total[-1][1]
        m["size_growth"] = m["size_last"] - m["size_early"]
        if db.value("SELECT sum(v) FROM hot") != run.transactions:
            raise RuntimeError(f"{db.method}: rows say {db.value('SELECT sum(v) FROM hot')}, "
                               f"pgbench {run.transactions}")
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        return db.value("SELECT count(*) FROM hot")
