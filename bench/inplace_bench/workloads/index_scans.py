"""Reading by an index on a table that was never updated, and on one whose indexed column has been
updated again and again (both asked for of inplace_btree beside btree; nobody has published it).

Each kind of scan has a query of its own; the plan must be the one wanted.  Times are those of the
execution, a median of several."""

from __future__ import annotations

import json
import statistics
from typing import Any

from ..measure import Measured, measuring
from ..model import Params, Target, Workload
from ..server import Database, Refused
from .common import accounts, plan_nodes, using

UPDATES = 10        # of every row, in statements of a fifth of the rows, VACUUM after the first half
EXECUTIONS = 7
TABLES = {"still": "never updated", "moved": "after updates", "vacuumed": "after updates and VACUUM"}
SETTINGS = ("SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off; SET enable_sort = off;"
            " SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;")
# name: (label, the plan's node, settings, query)
KINDS = {
    "range": ("index scan", "Index Scan", "SET enable_bitmapscan = off; SET enable_indexonlyscan = off",
              "SELECT sum(b) FROM {t} WHERE k BETWEEN {low} AND {high}"),
    "only": ("index-only scan", "Index Only Scan", "SET enable_bitmapscan = off",
             "SELECT count(k) FROM {t} WHERE k BETWEEN {low} AND {high}"),
    "bitmap": ("bitmap scan", "Bitmap Heap Scan", "SET enable_indexscan = off; SET enable_indexonlyscan = off",
               "SELECT sum(b) FROM {t} WHERE k BETWEEN {low} AND {high}"),
    "lookup": ("rows one by one", "Index Scan", "SET enable_bitmapscan = off; SET enable_indexonlyscan = off",
               "SELECT sum(t.b) FROM generate_series(0, {high} - {low}) g CROSS JOIN LATERAL"
               " (SELECT b FROM {t} WHERE k = (g * 6151) % {n}) t"),
}


def _metric(table: str, kind: str) -> str:
    return f"{table}_{kind}"


class IndexScans(Workload):
    name = "index-scan"
    line = "reading by an index: index, index-only and bitmap scans, single rows; never updated, updated 10 times a row, and after VACUUM"
    published = "none (the plans of btree, at its speed)"
    metrics = {_metric(t, k): (f"{KINDS[k][0]}, {TABLES[t]}", "s", "lower") for t in TABLES for k in KINDS}
    targets = tuple(Target(_metric(t, k), "<=", 1.02 if t == "still" else 1.0) for t in TABLES for k in KINDS)
    fresh = False
    setup_weight = 3.0

    def rows(self, p: Params) -> int:
        return accounts(p) // 5

    def setup(self, db: Database, p: Params) -> None:
        n = self.rows(p)
        for t in TABLES:
            db.run(f"CREATE TABLE {t} (id int PRIMARY KEY, k int, b bigint, filler text) WITH (autovacuum_enabled = off)",
                   f"INSERT INTO {t} SELECT g, (g * 7919::bigint) % {n}, g, md5(g::text) FROM generate_series(0, {n - 1}) g",
                   f"CREATE INDEX {t}_k ON {t} {using(db)} (k)",
                   f"VACUUM ANALYZE {t}")
            if t == "still":
                continue
            for i in range(UPDATES):
                db.run(*[f"UPDATE {t} SET k = (k * 7919::bigint + {i}) % {n} WHERE id % 5 = {part}" for part in range(5)])
                if i == UPDATES // 2:
                    db.run(f"VACUUM {t}")
        db.run("VACUUM still, vacuumed", "VACUUM vacuumed", *[f"ANALYZE {t}" for t in TABLES])

    def run(self, db: Database, p: Params) -> Measured:
        last: list[float] = []
        with measuring(db) as measured:
            for kind in KINDS:
                for t in TABLES:
                    last = self._query(db, t, kind, self.rows(p))
                    measured.metrics[_metric(t, kind)] = statistics.median(last)
            measured.metrics["seconds"] = statistics.median(last)
            measured.statements(last)
        return measured

    def _query(self, db: Database, table: str, kind: str, n: int) -> list[float]:
        _, node, settings, query = KINDS[kind]
        query = query.format(t=table, n=n, low=n // 4, high=n // 4 + n // 2 - 1)
        conn = db.connect()
        took = []
        try:
            with conn.cursor() as cur:
                cur.execute(SETTINGS + settings)
                cur.execute(query)
                for _ in range(EXECUTIONS):
                    cur.execute("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + query)
                    got = cur.fetchone()[0]
                    got = (json.loads(got) if isinstance(got, str) else got)[0]
                    nodes = [x["Node Type"] for x in plan_nodes(got["Plan"])]
                    if node not in nodes:
                        raise Refused(f"index-scan: not the plan wanted: {nodes}")
                    took.append(got["Execution Time"] / 1000)
        finally:
            conn.close()
        return took

    def answer(self, db: Database, p: Params) -> Any:
        n = self.rows(p)
        return [[str(x) for x in db.row(f"SELECT count(*), sum(b), sum(k) FROM {t} WHERE k BETWEEN {n // 4} AND {n // 2}")]
                for t in TABLES]
