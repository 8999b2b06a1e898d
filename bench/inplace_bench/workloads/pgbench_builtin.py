"""pgbench's own scripts."""

from __future__ import annotations

from typing import Any

from .. import pgbench
from ..measure import Measured
from ..model import Params, Target, Workload
from ..server import Database
from .bloat import balanced
from .common import drive


class Builtin(Workload):
    targets = (Target("tps", ">=", 1.0),)
    fresh = False

    def __init__(self, name: str, line: str, *options: str):
        self.name, self.line, self.options = name, line, options

    def setup(self, db: Database, p: Params) -> None:
        pgbench.init(db, p.scale)
        db.run("VACUUM ANALYZE")

    def run(self, db: Database, p: Params) -> Measured:
        return drive(db, p, self.seconds(p), *self.options)

    def answer(self, db: Database, p: Params) -> Any:
        return balanced(db)


ALL = (Builtin("tpcb", "pgbench's TPC-B-like script", "-b", "tpcb-like"),
       Builtin("simple-update", "pgbench -N: update one account, read it, insert into the history", "-N"),
       Builtin("select-only", "pgbench -S: read one account", "-S"))
