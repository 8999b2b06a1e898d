"""Everything that is measured around one load."""

from __future__ import annotations

import statistics
import time
from contextlib import contextmanager
from typing import Any, Iterator

from . import buffers, cpu, pgbench, wal
from .sampler import Sampler
from .server import Database


class Measured:
    """metrics: {name: number}; series: what is plotted; detail: WAL by manager, ..."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.series: dict[str, list] = {}
        self.detail: dict[str, Any] = {}
        self.sampler: Sampler | None = None

    def pgbench(self, run: pgbench.Run) -> None:
        self.metrics["tps"] = run.tps
        self.metrics["transactions"] = run.transactions
        for name, value in run.latency.items():
            self.metrics[f"latency_{name}"] = value
        self.series["tps"] = run.series

    def statements(self, seconds: list[float]) -> None:
        """Latencies of a workload that is a few statements: those whose time is measured."""
        for name, value in pgbench.percentiles([round(s * 1e6) for s in seconds]).items():
            self.metrics[f"latency_{name}"] = value

    def finish(self) -> None:
        """What follows from the rest."""
        m, first, last = self.metrics, self.sampler.samples[0][1], self.sampler.samples[-1][1]
        for what in ("table", "index", "undo"):
            m[f"{what}_pages_before"] = first[what]
            m[f"{what}_pages"] = last[what]
        m["table_growth"] = last["table"] - first["table"]
        m["index_growth"] = last["index"] - first["index"]
        m["undo_peak"] = max(s["undo"] for _, s in self.sampler.samples)
        # (The mean: a machine that shares its cores with others has two speeds.)
        m["loop"] = statistics.fmean(self.sampler.loops)
        if m.get("transactions"):
            for what in ("wal_total", "wal_records", "wal_images"):
                if what in m:
                    m[f"{what}_per_tx"] = m[what] / m["transactions"]
        self.series["sizes"] = [(t, s["table"], s["index"], s["undo"])
                                for t, s in self.sampler.samples]
        self.detail["loops"] = self.sampler.loops
        self.detail["relations_before"] = first["relations"]
        self.detail["relations_after"] = last["relations"]


@contextmanager
def measuring(db: Database, interval: float = 1.0) -> Iterator[Measured]:
    """WAL, buffers, CPU time and sizes from here to the end of the block."""
    measured = Measured()
    wal.prepare(db)
    version = db.server.version_num()
    cpus = cpu.Cpu(db)
    with wal.kept(db):
        db.run("CHECKPOINT")
        # (Statistics of sessions that have ended just now are there after a moment.)
        time.sleep(0.1)
        start = wal.position(db)
        read, written = buffers.counts(db, version)
        used = cpus.seconds()
        measured.sampler = Sampler(db, interval)
        try:
            yield measured
        finally:
            measured.sampler.stop()
        m = measured.metrics
        if used is not None:
            m["cpu"] = cpus.seconds() - used
        time.sleep(0.1)
        read2, written2 = buffers.counts(db, version)
        m["pages_read"], m["pages_written"] = read2 - read, written2 - written
        log = wal.between(db, start, wal.position(db))
        for name in ("total", "records", "images"):
            if name in log:
                m[f"wal_{name}"] = log[name]
    measured.detail["wal"] = log
    measured.finish()


def timed(db: Database, *statements: str) -> float:
    """Seconds that the last statement takes; those before it prepare the session."""
    return timed_again(db, 1, *statements)[0]


def timed_again(db: Database, times: int, *statements: str, between: str | None = None) -> list[float]:
    """The same, executed several times; 'between' two of these, untimed."""
    took = []
    conn = db.connect()
    try:
        with conn.cursor() as cur:
            for s in statements[:-1]:
                cur.execute(s)
            for i in range(times):
                if between and i:
                    cur.execute(between)
                start = time.monotonic()
                cur.execute(statements[-1])
                took.append(time.monotonic() - start)
    finally:
        conn.close()
    return took
