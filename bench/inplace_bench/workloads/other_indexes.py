"""Columns under a stock GiST or GIN index that change all the time: positions and tags."""

from __future__ import annotations

from typing import Any

from ..holder import Beside, repeat
from ..measure import Measured
from ..model import Params, Target, Workload
from ..server import Database, Refused
from .common import accounts, drive, using

UNCHANGED = ("things_pkey", "things_owner", "things_made", "things_note")


class OtherIndex(Workload):
    published = "none: WARM named GIN and GiST as what was left to do"
    metrics = {
        "unchanged_growth": ("growth of the table and the other indexes", "pages", "lower"),
        "changed_bloat": ("the index that changes, relative to its size when rebuilt", "", "lower"),
    }
    max_rounds = 3
    stretch = 1.5
    column = ""
    index = ""
    value = ""
    change = ""
    condition = ""

    def rows(self, p: Params) -> int:
        return accounts(p) // 20 if p.seconds >= 10 else accounts(p) // 40

    def setup(self, db: Database, p: Params) -> None:
        db.run(f"CREATE TABLE things (id int PRIMARY KEY, owner int, made int, note text, {self.column})"
               " WITH (autovacuum_enabled = off, fillfactor = 90)",
               f"INSERT INTO things SELECT g, g % 1000, g, md5(g::text), {self.value}"
               f" FROM generate_series(1, {self.rows(p)}) g",
               *[f"CREATE INDEX things_{c} ON things {using(db)} ({c})" for c in ("owner", "made", "note")],
               f"CREATE INDEX things_changed ON things {self.index}",
               # a GiST index has its mark from here on, so that scans note rows
               self.change.replace(":id", "1"),
               "VACUUM ANALYZE things")

    def same(self, db: Database) -> None:
        got = []
        for off in ("enable_seqscan", "enable_bitmapscan"):
            conn = db.connect()
            try:
                with conn.cursor() as cur:
                    cur.execute(f"SET {off} = off; SET enable_indexscan = off")
                    cur.execute(f"SELECT count(*), sum(id) FROM things WHERE {self.condition}")
                    got.append(cur.fetchone())
            finally:
                conn.close()
        if got[0] != got[1]:
            raise Refused(f"{db.method}: things by the index: {got[0]}, without it: {got[1]}")

    def run(self, db: Database, p: Params) -> Measured:
        seconds = self.seconds(p)
        with Beside(db, repeat("VACUUM things", max(1.0, seconds / 15))):
            measured = drive(db, p, seconds, script="\\set id random(1, :nrows)\n" + self.change,
                             variables={"nrows": self.rows(p)})
        before, after = measured.detail["relations_before"], measured.detail["relations_after"]
        measured.metrics["unchanged_growth"] = sum(after[i] - before[i] for i in (*UNCHANGED, "things"))
        self.same(db)
        db.run("REINDEX INDEX things_changed")
        rebuilt = db.value("SELECT pg_relation_size('things_changed') / 8192")
        measured.metrics["changed_bloat"] = after["things_changed"] / rebuilt
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        self.same(db)
        return db.value("SELECT count(*) FROM things")


class Positions(OtherIndex):
    name = "positions"
    line = "points under a stock GiST index, with three more indexes, are moved a little"
    targets = (Target("tps", ">=", 1.3), Target("wal_total_per_tx", "<=", 0.6), Target("changed_bloat", "<=", 1.5, False),
               Target("unchanged_growth", "<=", 0.2))
    column = "p point"
    index = "USING gist (p)"
    value = "point(random() * 1000, random() * 1000)"
    change = "UPDATE things SET p = p + point(random() - 0.5, random() - 0.5) WHERE id = :id;\n"
    condition = "p <@ box '(100,100),(500,500)'"


class Tags(OtherIndex):
    name = "tags"
    line = "documents under a stock GIN index, with three more indexes, get other values of two of their keys"
    targets = (Target("tps", ">=", 1.1), Target("wal_total_per_tx", "<=", 0.8), Target("changed_bloat", "<=", 1.5, False),
               Target("unchanged_growth", "<=", 0.2))
    column = "doc jsonb"
    index = "USING gin (doc)"
    value = ("jsonb_build_object('a', g % 50, 'b', g % 1000, 'tags', jsonb_build_array('t' || g % 7, 't' || g % 90),"
             " 'name', md5((g % 5000)::text))")
    change = ("UPDATE things SET doc = doc || jsonb_build_object('b', (random() * 1000)::int,"
              " 'tags', jsonb_build_array('t' || :id % 7, 't' || (random() * 90)::int)) WHERE id = :id;\n")
    condition = "doc @> '{\"b\": 77}' OR doc @> '{\"tags\": [\"t5\"]}'"


ALL = (Positions(), Tags())
