"""A queue under repeated snapshots (bottom-up index deletion, 2020-2021)."""

from __future__ import annotations

from typing import Any

from ..holder import Beside, hold_snapshot
from ..measure import Measured
from ..model import Params, Target, Workload
from ..server import Database
from .common import accounts, drive, using

# SKIP LOCKED: each client takes a row of its own.
SCRIPT = """\\set v random(1, 1000000)
BEGIN;
INSERT INTO queue (key, payload) VALUES (:v, 'x');
DELETE FROM queue WHERE id = (SELECT id FROM queue ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
END;
"""


class Queue(Workload):
    name = "queue"
    line = "insert at the tail, delete at the head, while snapshots are held one after the other"
    published = "300 million rows, snapshots of 5 min: indexes +0.4..0.5 % instead of +21..61 %"
    metrics = {"index_growth_per_1000": ("index growth in 1000 transactions", "pages", "lower")}
    # Who is faster puts more through the queue: growth is compared for as many rows.
    targets = (Target("index_growth_per_1000", "<=", 1.0), Target("table_growth", "<=", 1.0), Target("tps", ">=", 1.0))
    stretch = 2.0
    max_rounds = 3

    def rows(self, p: Params) -> int:
        return accounts(p) // 5

    def setup(self, db: Database, p: Params) -> None:
        db.run("CREATE TABLE queue (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
               " key int NOT NULL, entered timestamptz NOT NULL DEFAULT now(), payload text NOT NULL)",
               "INSERT INTO queue (key, payload)"
               f" SELECT g % 1000000, 'x' FROM generate_series(1, {self.rows(p)}) g",
               f"CREATE INDEX queue_key ON queue {using(db)} (key)",
               f"CREATE INDEX queue_entered ON queue {using(db)} (entered)",
               "VACUUM ANALYZE queue")

    def run(self, db: Database, p: Params) -> Measured:
        seconds = self.seconds(p)

        def snapshots(conn: Any, beside: Beside) -> None:
            n = 0
            while not hold_snapshot(conn, beside, "SELECT count(*) FROM queue", seconds * (n + 1) / 5):
                n += 1

        with Beside(db, snapshots, autocommit=False):
            measured = drive(db, p, seconds, script=SCRIPT)
        m = measured.metrics
        m["index_growth_per_1000"] = 1000 * m["index_growth"] / m["transactions"]
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        count = db.value("SELECT count(*) FROM queue")
        # Each transaction inserts one and deletes one.
        if count != self.rows(p):
            raise RuntimeError(f"{db.method}: {count} rows in the queue, not {self.rows(p)}")
        return count
