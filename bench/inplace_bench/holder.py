"""A thread that acts beside a load, and those made of it: sessions that hold
snapshots, that checkpoint, that vacuum."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from .server import Database


class Beside:
    """Runs function(connection, self) in a thread until it ends or stop() is called."""

    def __init__(self, db: Database, function: Callable[[Any, "Beside"], None],
                 autocommit: bool = True):
        self._db = db
        self._function = function
        self._autocommit = autocommit
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Beside":
        self.begin = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    def elapsed(self) -> float:
        return time.monotonic() - self.begin

    def wait(self, seconds: float) -> bool:
        """Waits; true if it is time to stop."""
        return self._stop.wait(max(0.0, seconds))

    def _run(self) -> None:
        try:
            conn = self._db.connect(self._autocommit)
            try:
                self._function(conn, self)
            finally:
                conn.close()
        except Exception as e:  # told when the context ends
            self._error = e


def hold_snapshot(conn: Any, beside: Beside, query: str, until: float,
                  held: threading.Event | None = None) -> bool:
    """Holds one snapshot up to a second of the thread's time, and sees to it that the
    answer to query does not change under it.  True if it is time to stop.  "held" is set
    when the snapshot is there."""
    conn.set_session(isolation_level="REPEATABLE READ")
    with conn.cursor() as cur:
        cur.execute(query)
        first = cur.fetchall()
        if held is not None:
            held.set()
        stop = beside.wait(until - beside.elapsed())
        cur.execute(query)
        if cur.fetchall() != first:
            raise RuntimeError(f"the held snapshot changed: {query}")
    conn.rollback()
    return stop


def repeat(statement: str, every: float) -> Callable[[Any, Beside], None]:
    """A function for Beside: the statement again and again."""
    def act(conn: Any, beside: Beside) -> None:
        with conn.cursor() as cur:
            while not beside.wait(every):
                cur.execute(statement)
    return act
