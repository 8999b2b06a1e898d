"""A sequential scan, and building an index."""

from __future__ import annotations

import statistics
from typing import Any

from .. import pgbench
from ..measure import Measured, measuring, timed_again
from ..model import Params, Target, Workload
from ..server import Database


class Scan(Workload):
    targets = (Target("seconds", "<=", 1.0),)
    fresh = False

    def __init__(self, name: str, line: str, times: int, statements: tuple[str, ...], before: str | None = None):
        self.name, self.line, self.times, self.statements, self.before = name, line, times, statements, before

    def setup(self, db: Database, p: Params) -> None:
        pgbench.init(db, p.scale)
        db.run("VACUUM ANALYZE")

    def run(self, db: Database, p: Params) -> Measured:
        if self.before:
            db.run(self.before)
        with measuring(db, 0.5) as measured:
            took = timed_again(db, self.times, *self.statements, between=self.before)
            measured.metrics["seconds"] = statistics.median(took)
            measured.statements(took)
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        return [int(x) for x in db.row("SELECT count(*), sum(aid), sum(abalance) FROM pgbench_accounts")]


SUM = "SELECT sum(abalance) FROM pgbench_accounts"
ALL = (Scan("seqscan", "sum() over a sequential scan of accounts, in memory, no workers", 9,
            ("SET max_parallel_workers_per_gather = 0", SUM, SUM)),
       Scan("index-build", "CREATE INDEX on accounts (bid, aid), no workers", 1,
            ("SET max_parallel_maintenance_workers = 0", "CREATE INDEX built ON pgbench_accounts (bid, aid)"),
            before="DROP INDEX IF EXISTS built"))
