"""Updates while a snapshot is held for most of the time (zheap, 2018)."""

from __future__ import annotations

import time

from .. import pgbench
from ..holder import Beside, hold_snapshot
from ..measure import Measured, measuring
from ..model import Params, Target, Workload
from ..server import Database


class Bloat(Workload):
    name = "bloat"
    line = "pgbench -N while a snapshot is held for 80 % of the time: does anything grow?"
    published = ("zheap, scale 1000, snapshot 15 of 25 min: heap 13 to 16-20 GB, zheap 11 GB throughout; "
                 "TPS up to 45 % better")
    metrics = {
        "tps_snapshot": ("transactions/s under the snapshot", "", "higher"),
        "undo_over_floor": ("undo 5 s after the snapshot, over the level before it", "pages", "lower"),
    }
    # Space for undo is handed out in extents of 32 pages to each backend.
    targets = (Target("table_pages_before", "<=", 0.82), Target("table_growth", "<=", 0, False),
               Target("index_growth", "<=", 0, False), Target("undo_over_floor", "<=", 128, False),
               Target("tps_snapshot", ">=", 1.1), Target("tps", ">=", 1.1))
    stretch = 6.0
    max_rounds = 3

    def setup(self, db: Database, p: Params) -> None:
        pgbench.init(db, p.scale)
        db.run("VACUUM ANALYZE")

    def run(self, db: Database, p: Params) -> Measured:
        seconds = self.seconds(p)
        begin, end = 0.1 * seconds, 0.9 * seconds
        with measuring(db, min(1.0, seconds / 40)) as measured:
            held: list[float] = []

            def hold(conn: object, beside: Beside) -> None:
                if not beside.wait(begin):
                    held.append(measured.sampler.elapsed())
                    hold_snapshot(conn, beside, "SELECT count(*), sum(bbalance) FROM pgbench_branches", end)
                    held.append(measured.sampler.elapsed())

            with Beside(db, hold, autocommit=False):
                run = pgbench.load(db, seconds, p.clients, "-N")
            measured.pgbench(run)
            # Five seconds after the snapshot, the load may have ended before.
            time.sleep(max(0.0, held[1] + 5.2 - measured.sampler.elapsed()))
        m, s = measured.metrics, measured.sampler
        during = [v for t, v in run.series if begin + 1 < t <= end]
        m["tps_snapshot"] = sum(during) / len(during) if during else run.tps
        # The history grows by what it is; the question is whether accounts do.
        before, after = (measured.detail[f"relations_{x}"] for x in ("before", "after"))
        m["table_pages_before"], m["table_pages"] = before["pgbench_accounts"], after["pgbench_accounts"]
        m["table_growth"] = after["pgbench_accounts"] - before["pgbench_accounts"]
        floor = max([x["undo"] for t, x in s.samples if t <= held[0]])
        m["undo_over_floor"] = max(0, s.at(held[1] + 5)["undo"] - floor)
        return measured

    def answer(self, db: Database, p: Params) -> object:
        return balanced(db)


def balanced(db: Database) -> bool:
    """Each delta of an account is in the history."""
    a, h = db.row("SELECT (SELECT sum(abalance) FROM pgbench_accounts),"
                  " (SELECT coalesce(sum(delta), 0) FROM pgbench_history)")
    if a != h:
        raise RuntimeError(f"{db.method}: balances {a}, history {h}")
    return True
