"""Rounds, their order, and the time left."""

from __future__ import annotations

import shutil
import time
from typing import Any, Iterator

from .model import Params, Variant, Workload
from .results import summarize
from .server import Refused, Server, say

PREFIX = "inplace_bench_"


class Clock:
    """The time left, from guesses that are corrected by the time they took so far."""

    def __init__(self, guesses: float):
        self.total, self.done, self.start = guesses, 0.0, time.monotonic()

    def step(self, guess: float) -> None:
        self.done += guess

    def left(self) -> str:
        spent = time.monotonic() - self.start
        scale = spent / self.done if self.done else 1.0
        s = max(0.0, (self.total - self.done) * scale)
        return f"about {s / 60:.0f} min left" if s >= 90 else f"about {s:.0f} s left"


def guess(w: Workload, p: Params) -> float:
    """Seconds of one round of one side."""
    return w.seconds(p) + 2 + 0.6 * p.scale * w.setup_weight


def rounds_of(w: Workload, rounds: int) -> int:
    return min(rounds, w.max_rounds or rounds)


def database_of(v: Variant) -> str:
    return PREFIX + v.name.replace(" ", "_").replace(",", "")


def run_all(server: Server, workloads: list[Workload], against: str, p: Params,
            rounds: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(workload name, result), as they come."""
    for name in {database_of(v) for w in workloads for v in w.variants([against, "inplace"], server)}:
        server.may_drop(name)   # and not when half of it is done
    clock = Clock(sum(guess(w, p) * rounds_of(w, rounds) * 2 for w in workloads))
    for w in workloads:
        if w.private_only and not server.private:
            say(f"{w.name}: left out, it changes settings of the server")
            continue
        if w.program and shutil.which(w.program) is None:
            say(f"{w.name}: left out, {w.program} is not installed")
            continue
        w.begin(server)
        try:
            result = _one(server, w, against, p, rounds_of(w, rounds), clock)
        finally:
            w.end(server)
        yield w.name, result


def _one(server: Server, w: Workload, against: str, p: Params, rounds: int,
         clock: Clock) -> dict[str, Any]:
    variants = w.variants([against, "inplace"], server)
    got: dict[str, list[dict]] = {v.name: [] for v in variants}
    databases: dict[str, Any] = {}
    server.drop_made()
    for i in range(rounds):
        # Which goes first alternates.
        for v in variants if i % 2 == 0 else reversed(variants):
            if w.fresh or v.name not in databases:
                databases[v.name] = server.database(database_of(v), v.method, v.settings)
                w.setup(databases[v.name], p)
            db = databases[v.name]
            measured = w.run(db, p)
            answer = w.answer(db, p)
            got[v.name].append({"metrics": measured.metrics, "series": measured.series,
                                "detail": measured.detail, "answer": answer})
            clock.step(guess(w, p) * 2 / len(variants))
            m = measured.metrics
            what = (f"{m['tps']:.0f} TPS" if "tps" in m else
                    f"{m['seconds']:.3f} s" if "seconds" in m else "done")
            say(f"{w.name}, round {i + 1} of {rounds}, {v.name}: {what}; {clock.left()}")
    if not server.keep:
        server.drop_made()
    result = summarize(w, against, variants, got)
    if not result["answers_equal"]:
        raise Refused(f"{w.name}: the answers differ: "
                      + "; ".join(f"{v}: {[r['answer'] for r in rs]}" for v, rs in got.items()))
    return result
