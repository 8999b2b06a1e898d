"""What several workloads share."""

from __future__ import annotations

from typing import Any

from .. import pgbench
from ..measure import Measured, measuring
from ..model import Params
from ..server import Database, Refused


def accounts(p: Params) -> int:
    """Rows, where we make them; pgbench's own tables have 100,000 for each of scale."""
    return p.unit * p.scale


def drive(db: Database, p: Params, seconds: int, *options: str, script: str | None = None,
          variables: dict[str, int] | None = None, transactions: int | None = None) -> Measured:
    """Measures one run of pgbench."""
    with measuring(db, min(1.0, seconds / 20)) as measured:
        measured.pgbench(pgbench.load(db, seconds, p.clients, *options, script=script,
                                      variables=variables, transactions=transactions))
    return measured


def using(db: Database) -> str:
    """USING clause of an index that must take changes in place where that exists."""
    return "USING inplace_btree" if db.method == "inplace" and db.can_index("inplace_btree") else ""


def same_by_index(db: Database, table: str, column: str) -> None:
    """The index on column and the table must agree."""
    query = f"SELECT count(*), sum({column}) FROM {table}"
    got = []
    for no in ("enable_indexscan", "enable_seqscan"):
        conn = db.connect()
        try:
            with conn.cursor() as cur:
                cur.execute(f"SET {no} = off; SET enable_bitmapscan = off")
                if no == "enable_indexscan":
                    cur.execute("SET enable_indexonlyscan = off")
                where = "" if no == "enable_indexscan" else f" WHERE {column} >= -9000000000"
                cur.execute(query + where)
                got.append(cur.fetchone())
        finally:
            conn.close()
    if got[0] != got[1]:
        raise Refused(f"{db.method}: {table} by the index on {column}: {got[1]}, without it: {got[0]}")


def plan_nodes(plan: dict[str, Any]) -> Any:
    """The nodes of a plan that EXPLAIN (FORMAT JSON) gave."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from plan_nodes(child)
