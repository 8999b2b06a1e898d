"""An index whose keys wander: the time of the last change."""

from __future__ import annotations

from typing import Any

from ..holder import Beside, repeat
from ..measure import Measured
from ..model import Params, Target, Workload
from ..server import Database
from .common import drive, same_by_index, using

SCRIPT = """\\set id random(1, :nrows)
UPDATE sessions SET seen = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, hits = hits + 1 WHERE id = :id;
"""


class Wandering(Workload):
    name = "wandering"
    line = "rows get the time of their last change, which is indexed, with VACUUM again and again: what becomes of the index?"
    published = "none: nbtree gives a page back when its last entry has gone"
    metrics = {
        "index_bloat": ("index on the time, relative to its size when rebuilt", "", "lower"),
        "seen_growth": ("growth of that index in the second half", "pages", "lower"),
    }
    targets = (Target("tps", ">=", 1.0), Target("index_bloat", "<=", 1.0))
    stretch = 3.0
    max_rounds = 3

    def rows(self, p: Params) -> int:
        return p.scale * p.unit // 5

    def setup(self, db: Database, p: Params) -> None:
        db.run("CREATE TABLE sessions (id int PRIMARY KEY, seen bigint, hits bigint, note text)"
               " WITH (autovacuum_enabled = off)",
               "INSERT INTO sessions SELECT g, g, 0, repeat('n', 50)"
               f" FROM generate_series(1, {self.rows(p)}) g",
               f"CREATE INDEX sessions_seen ON sessions {using(db)} (seen)",
               "VACUUM ANALYZE sessions")

    def run(self, db: Database, p: Params) -> Measured:
        seconds = self.seconds(p)
        with Beside(db, repeat("VACUUM sessions", seconds / 20)):
            measured = drive(db, p, seconds, script=SCRIPT, variables={"nrows": self.rows(p)})
        m, samples = measured.metrics, measured.sampler.samples
        half = [s["relations"]["sessions_seen"] for t, s in samples if t >= samples[-1][0] / 2]
        m["seen_growth"] = half[-1] - half[0]
        same_by_index(db, "sessions", "seen")
        if db.value("SELECT sum(hits) FROM sessions") != m["transactions"]:
            raise RuntimeError(f"{db.method}: rows say {db.value('SELECT sum(hits) FROM sessions')}, "
                               f"pgbench {m['transactions']}")
        db.run("REINDEX INDEX sessions_seen")
        rebuilt = db.value("SELECT pg_relation_size('sessions_seen') / 8192")
        m["index_bloat"] = measured.detail["relations_after"]["sessions_seen"] / rebuilt
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        same_by_index(db, "sessions", "seen")
        return db.value("SELECT count(*) FROM sessions")
