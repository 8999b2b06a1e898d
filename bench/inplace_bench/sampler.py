"""Sizes of the tables, indexes and undo of a database, and the machine's speed, over time."""

from __future__ import annotations

import threading
import time
from typing import Any

from . import steady
from .server import Database

# Those of the extensions (undo, above all) are not the user's.
SIZES = """SELECT c.relname, c.relkind, pg_relation_size(c.oid) / 8192
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = 'public' AND c.relkind IN ('r', 'm', 'i')
           ORDER BY c.relname"""


def has_undo(db: Database) -> bool:
    return db.value("SELECT to_regprocedure('inplace.undo_size()') IS NOT NULL")


def sizes(cur: Any, undo: bool) -> dict[str, Any]:
    """Pages: table, index (sums), undo, and of each relation."""
    cur.execute(SIZES)
    rows = [r for r in cur.fetchall() if r[2] is not None]
    got = {
        "table": sum(int(r[2]) for r in rows if r[1] != "i"),
        "index": sum(int(r[2]) for r in rows if r[1] == "i"),
        "undo": 0,
        "relations": {r[0]: int(r[2]) for r in rows},
    }
    if undo:
        cur.execute("SELECT inplace.undo_size() / 8192")
        got["undo"] = int(cur.fetchone()[0])
    return got


class Sampler:
    """samples: [(seconds since the start, sizes)], the first at the start, the last at
    stop()."""

    def __init__(self, db: Database, interval: float):
        self.db = db
        self.interval = interval
        self.samples: list[tuple[float, dict[str, Any]]] = []
        self.loops: list[float] = []        # ms, see steady.py
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._conn = db.connect()
        self._undo = has_undo(db)
        self.start = time.monotonic()
        self._sample()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def _sample(self) -> None:
        with self._conn.cursor() as cur:
            got = sizes(cur, self._undo)
        # Once a second at most: it must not become a load itself.
        if len(self.loops) <= self.elapsed():
            self.loops.append(steady.loop())
        self.samples.append((round(self.elapsed(), 3), got))

    def _loop(self) -> None:
        try:
            while not self._stop.wait(self.interval):
                self._sample()
        except Exception as e:  # told by stop(): a thread cannot raise
            self._error = e

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        try:
            if self._error is None:
                self._sample()
        finally:
            self._conn.close()
        if self._error is not None:
            raise self._error

    def at(self, second: float) -> dict[str, Any]:
        """The last sample that is not later."""
        before = [s for t, s in self.samples if t <= second + 0.05]
        return before[-1] if before else self.samples[0][1]
