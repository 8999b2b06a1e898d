"""TPC-H's Q6 over an index on l_shipdate, in parallel (parallel index scans, 2018).

The data is made here: columns, types and ranges of TPC-H's lineitem, values from a
multiplicative hash of the row's number, so always and everywhere the same."""

from __future__ import annotations

import json
import statistics
from typing import Any

from ..measure import Measured, measuring
from ..model import Params, Target, Workload
from ..server import Database, Refused
from .common import accounts, plan_nodes

LINEITEM = """CREATE TABLE lineitem (
    l_orderkey bigint NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL,
    l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL,
    l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL,
    l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL,
    l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL,
    l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL)"""
# h(k): 0..2^31-1, from the row's number and the column's.
ROWS = """INSERT INTO lineitem
SELECT g / 4, h1 % 200000 + 1, h2 % 10000 + 1, g % 4 + 1,
       h3 % 50 + 1, ((h3 % 50 + 1) * (90000 + h1 % 110000)) / 100.0, (h4 % 11) / 100.0, (h5 % 9) / 100.0,
       substr('ANR', (h1 % 3 + 1)::int, 1), substr('FO', (h2 % 2 + 1)::int, 1),
       date '1992-01-02' + (h6 % 2526)::int, date '1992-01-31' + (h6 % 2526)::int,
       date '1992-01-03' + (h6 % 2526 + h2 % 30)::int,
       (ARRAY['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[h4 % 4 + 1],
       (ARRAY['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'])[h5 % 7 + 1],
       substr(md5(g::text), 1, (10 + h3 % 22)::int)
FROM (SELECT g, {hashes} FROM generate_series(1, {n}::bigint) g) s"""
Q6 = """SELECT sum(l_extendedprice * l_discount) FROM lineitem
WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1 year'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"""
SETTINGS = """SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = {n}"""
WORKERS = (0, 1, 2)


class ParallelQ6(Workload):
    name = "parallel-q6"
    line = "TPC-H Q6 over an index on l_shipdate with 0, 1 and 2 workers, indexes of either method"
    published = "scale 20: 35.1 s to 15.5 s with two workers"
    metrics = {
        **{f"q6_{k}_{n}": (f"Q6, {n} workers, {'default' if k == 'own' else 'btree'} index", "s", "lower")
           for k in ("own", "btree") for n in WORKERS},
        **{f"speedup_{k}": (f"speed-up with 2 workers, {'default' if k == 'own' else 'btree'} index", "", "higher")
           for k in ("own", "btree")},
    }
    targets = (*[Target(f"q6_{k}_{n}", "<=", 1.0) for k in ("own", "btree") for n in WORKERS],
               Target("speedup_own", ">=", 1.0), Target("speedup_btree", ">=", 1.0))
    fresh = False
    setup_weight = 2.0

    def setup(self, db: Database, p: Params) -> None:
        hashes = ", ".join(f"((g * {1103515245 + 2 * k} + {k * 7919}) % 4294967291 * 48271 + g) % 2147483647 AS h{k}"
                           for k in range(1, 7))
        db.run(LINEITEM, ROWS.format(hashes=hashes, n=accounts(p) * 6 // 10), "VACUUM ANALYZE lineitem")

    def run(self, db: Database, p: Params) -> Measured:
        answers = []
        with measuring(db) as measured:
            for kind, using in (("own", ""), ("btree", "USING btree")):
                # Without the setting an inplace table takes btree, even written out, for its own method.
                db.run(*(["SET inplace.default_index_method = btree"] if using and db.method == "inplace" else []),
                       f"CREATE INDEX lineitem_shipdate ON lineitem {using} (l_shipdate)", "VACUUM lineitem")
                for n in WORKERS:
                    took, answer = self._query(db, n)
                    measured.metrics[f"q6_{kind}_{n}"] = statistics.median(took)
                    if kind == "own" and n == WORKERS[-1]:
                        measured.statements(took)
                    answers.append(str(answer))
                db.run("DROP INDEX lineitem_shipdate")
                m = measured.metrics
                m[f"speedup_{kind}"] = m[f"q6_{kind}_0"] / m[f"q6_{kind}_2"]
        if len(set(answers)) != 1:
            raise Refused(f"parallel-q6: {db.method} answers {answers}")
        measured.metrics["seconds"] = measured.metrics["q6_own_2"]
        measured.detail["answer"] = answers[0]
        return measured

    def _query(self, db: Database, workers: int) -> tuple[list[float], Any]:
        """Times of five executions, and the answer; the plan must be the one wanted."""
        conn = db.connect()
        took = []
        try:
            with conn.cursor() as cur:
                cur.execute(SETTINGS.format(n=workers))
                cur.execute(Q6)
                answer = cur.fetchone()[0]
                for _ in range(5):
                    cur.execute("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + Q6)
                    got = cur.fetchone()[0]
                    got = (json.loads(got) if isinstance(got, str) else got)[0]
                    nodes = list(plan_nodes(got["Plan"]))
                    took.append(got["Execution Time"] / 1000)
                    scan = [x["Node Type"] for x in nodes if x.get("Index Name") == "lineitem_shipdate"]
                    launched = sum(x.get("Workers Launched", 0) for x in nodes)
                    if not scan or launched > workers:
                        raise Refused(f"parallel-q6: not the plan wanted: {[x['Node Type'] for x in nodes]}")
                    if launched < workers and not any("Workers Planned" in x for x in nodes):
                        raise Refused("parallel-q6: the plan is not parallel")
        finally:
            conn.close()
        return took, answer

    def answer(self, db: Database, p: Params) -> Any:
        return str(db.value(Q6))
