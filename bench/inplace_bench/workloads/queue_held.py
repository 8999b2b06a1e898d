"""A queue beside one snapshot that is held all the time.  The snapshot is older than all
rows, so each comes and goes between that one and all others."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import Any

from .. import pgbench
from ..holder import Beside, hold_snapshot, repeat
from ..measure import Measured, measuring
from ..model import Params, Target, Workload
from ..server import Database
from .common import accounts, using
from .queue import SCRIPT

LAST = 10           # seconds of which the rate is compared
UNDO_BACK = 5.0     # seconds after the end of the snapshot
VACUUM_EVERY = 1.0


def last_seconds_tps(run: pgbench.Run, seconds: int) -> float:
    """Transactions a second near the end, of pgbench's count for each second."""
    last = [tps for _, tps in run.series][-min(LAST, max(1, seconds // 2)):]
    return sum(last) / len(last) if last else run.tps


class QueueHeld(Workload):
    name = "queue-held"
    line = "insert at the tail, delete at the head, VACUUM each second, while one snapshot is held all the time"
    published = "none: all published engines keep the rows, and their index entries"
    metrics = {
        "turns": ("times its rows have gone through", "", "higher"),
        "tps_last": (f"transactions/s in the last {LAST} s", "", "higher"),
        "table_times": ("table at the end, by that at the beginning", "", "lower"),
        "index_times": ("indexes at the end, by those at the beginning", "", "lower"),
        "undo_left": (f"undo {UNDO_BACK:g} s after the snapshot's end", "pages", "lower"),
    }
    targets = (Target("tps_last", ">=", 1.5), Target("table_times", "<=", 1.3, False),
               Target("index_times", "<=", 1.3, False), Target("undo_left", "<=", 256, False))
    stretch = 3.0
    max_rounds = 3

    def rows(self, p: Params) -> int:
        return max(200, accounts(p) // 30)

    def setup(self, db: Database, p: Params) -> None:
        db.run("CREATE TABLE queue (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
               " key int NOT NULL, payload text NOT NULL) WITH (autovacuum_enabled = off)",
               f"CREATE INDEX queue_key ON queue {using(db)} (key)",
               "VACUUM ANALYZE queue")

    def fill(self, db: Database, p: Params) -> None:
        db.run("INSERT INTO queue (key, payload)"
               f" SELECT random() * 1000000, 'x' FROM generate_series(1, {self.rows(p)})",
               "ANALYZE queue")

    def run(self, db: Database, p: Params) -> Measured:
        seconds = self.seconds(p)
        held = threading.Event()

        def snapshot(conn: Any, beside: Beside) -> None:
            hold_snapshot(conn, beside, "SELECT count(*), sum(id), sum(key) FROM queue",
                          86400, held)

        with ExitStack() as beside:
            beside.enter_context(Beside(db, snapshot, autocommit=False))
            held.wait(60)
            self.fill(db, p)
            with measuring(db, min(1.0, seconds / 20)) as measured:
                with Beside(db, repeat("VACUUM queue", min(VACUUM_EVERY, seconds / 5))):
                    run = pgbench.load(db, seconds, p.clients, script=SCRIPT)
                end = measured.sampler.elapsed()
                beside.close()
                measured.pgbench(run)
                time.sleep(min(UNDO_BACK, seconds / 2))
        m = measured.metrics
        first, last = measured.sampler.samples[0][1], measured.sampler.at(end)
        m["turns"] = run.transactions / self.rows(p)
        m["tps_last"] = last_seconds_tps(run, seconds)
        for what in ("table", "index"):
            m[f"{what}_times"] = last[what] / max(1, first[what])
        m["undo_left"] = measured.sampler.samples[-1][1]["undo"]
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        count = db.value("SELECT count(*) FROM queue")
        # Each transaction inserts one and deletes one.
        if count != self.rows(p):
            raise RuntimeError(f"{db.method}: {count} rows in the queue, not {self.rows(p)}")
        return count
