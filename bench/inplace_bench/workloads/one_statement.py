"""One statement that updates a whole table: the worst case found for bottom-up deletion."""

from __future__ import annotations

from typing import Any

from ..measure import Measured, measuring, timed
from ..model import Params, Target, Workload
from ..server import Database
from .common import accounts, using


class OneStatement(Workload):
    name = "one-statement"
    line = "one statement updates every row of a table with three indexes (the worst case)"
    published = "5 million rows: 12-13 % slower"
    metrics = {"seconds_indexed": ("time, an indexed column changed", "s", "lower")}
    targets = (Target("seconds", "<=", 1.0), Target("seconds_indexed", "<=", 1.0))

    def setup(self, db: Database, p: Params) -> None:
        db.run("CREATE TABLE t (id int, a int, b int, c int, filler text)",
               "INSERT INTO t SELECT g, g::bigint * 7919 % 1000003, g % 1000, 0, repeat('x', 40)"
               f" FROM generate_series(1, {accounts(p)}) g",
               "CREATE UNIQUE INDEX t_id ON t (id)", f"CREATE INDEX t_a ON t {using(db)} (a)",
               f"CREATE INDEX t_b ON t {using(db)} (b)", "VACUUM ANALYZE t")

    def run(self, db: Database, p: Params) -> Measured:
        with measuring(db, 0.2) as measured:
            measured.metrics["seconds"] = timed(db, "UPDATE t SET c = c + 1")
            measured.statements([measured.metrics["seconds"]])
            measured.metrics["seconds_indexed"] = timed(db, "VACUUM t", "UPDATE t SET b = b + 1")
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        return [int(v) for v in db.row("SELECT count(*), sum(a), sum(b), sum(c) FROM t")]
