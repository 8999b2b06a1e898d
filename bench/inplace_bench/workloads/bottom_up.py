"""Version churn in indexes (bottom-up index deletion, 2020-2021)."""

from __future__ import annotations

from typing import Any

from .. import pgbench
from ..measure import Measured
from ..model import Params, Target, Workload
from ..server import Database
from .common import drive, same_by_index, using

SCRIPT = """\\set aid1 random_gaussian(1, :naccounts, 2.0)
\\set aid2 random_gaussian(1, :naccounts, 2.0)
\\set aid3 random_gaussian(1, :naccounts, 2.0)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid1;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid2;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid3;
END;
"""


class BottomUp(Workload):
    targets: tuple[Target, ...] = (
        Target("table_growth", "<=", 0, False), Target("index_growth", "<=", 0, False),
        Target("tps", ">=", 1.15), Target("wal_total_per_tx", "<=", 0.35))
    setup_weight = 1.5

    def __init__(self, name: str, line: str, published: str, indexes: dict[str, str]):
        self.name, self.line, self.published, self.indexes = name, line, published, indexes

    def setup(self, db: Database, p: Params) -> None:
        # Without the primary keys.
        pgbench.init(db, p.scale, steps="dtgv")
        db.run(f"CREATE UNIQUE INDEX accounts_aid ON pgbench_accounts {using(db)} (aid) INCLUDE (abalance)",
               *[f"CREATE INDEX {n} ON pgbench_accounts {using(db)} ({key})" for n, key in self.indexes.items()],
               "VACUUM ANALYZE pgbench_accounts")

    def run(self, db: Database, p: Params) -> Measured:
        return drive(db, p, self.seconds(p), script=SCRIPT, variables={"naccounts": 100000 * p.scale})

    def answer(self, db: Database, p: Params) -> Any:
        same_by_index(db, "pgbench_accounts", "aid")
        return db.row("SELECT count(*), sum(aid)::bigint FROM pgbench_accounts")


ALL = (
    BottomUp("bottom-up", "accounts with UNIQUE (aid) INCLUDE (abalance) and two more indexes on aid,"
             " one gaussian aid updated, two read",
             "scale 1500, 2 h: 11124 to 18989 TPS; 411289 pages an index, unchanged, instead of 770-784 thousand",
             {"accounts_aid_2": "aid", "accounts_aid_3": "aid"}),
    BottomUp("low-cardinality", "the same with indexes on aid - aid % 5, % 10 and % 20",
             "no page split at all",
             {"accounts_5": "(aid - aid % 5)", "accounts_10": "(aid - aid % 10)", "accounts_20": "(aid - aid % 20)"}),
)
