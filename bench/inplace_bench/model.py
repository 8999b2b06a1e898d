"""What a workload is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .measure import Measured
from .server import Database


@dataclass(frozen=True)
class Params:
    scale: int
    seconds: int
    clients: int
    unit: int = 100000      # rows for each of scale, where pgbench does not say
    doc_kb: int = 10        # of the workload "documents"
    held: bool = False


@dataclass(frozen=True)
class Variant:
    """One side of a comparison."""
    name: str
    method: str
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """metric, of inplace or as its ratio to the other method, against a limit."""
    metric: str
    op: str                 # ">=" or "<="
    limit: float
    ratio: bool = True
    than: str | None = None     # the variant it is a ratio to, if not the other method

    def met(self, value: float) -> bool:
        return value >= self.limit if self.op == ">=" else value <= self.limit

    def text(self) -> str:
        return f"{self.op} {self.limit:g}" + (" x" if self.ratio else "") + (f" {self.than}" if self.than else "")


# name: (label, unit, which is better)
METRICS: dict[str, tuple[str, str, str | None]] = {
    "tps": ("transactions/s", "", "higher"),
    "seconds": ("time", "s", "lower"),
    "latency_p50": ("latency, median", "ms", "lower"),
    "latency_p95": ("latency, 95 %", "ms", "lower"),
    "latency_p99": ("latency, 99 %", "ms", "lower"),
    "wal_total_per_tx": ("WAL per transaction", "B", "lower"),
    "wal_records_per_tx": ("... in records", "B", "lower"),
    "wal_images_per_tx": ("... in full-page images", "B", "lower"),
    "wal_total": ("WAL", "B", "lower"),
    "wal_records": ("... in records", "B", "lower"),
    "wal_images": ("... in full-page images", "B", "lower"),
    "cpu": ("CPU time of the server", "s", "lower"),
    "loop": ("a loop of the benchmark's own, the same for both", "ms", None),
    "pages_read": ("pages read", "", "lower"),
    "pages_written": ("pages written", "", "lower"),
    "table_pages_before": ("table pages before", "", "lower"),
    "table_pages": ("table pages after", "", "lower"),
    "index_pages_before": ("index pages before", "", "lower"),
    "index_pages": ("index pages after", "", "lower"),
    "undo_pages": ("undo pages after", "", None),
    "undo_peak": ("undo pages, largest", "", None),
    "table_growth": ("table growth", "pages", "lower"),
    "index_growth": ("index growth", "pages", "lower"),
}


class Workload:
    """One workload; a module of workloads/ has one or a few of these."""

    name = ""
    line = ""                           # for --list
    published = ""                      # their result
    targets: tuple[Target, ...] = ()
    metrics: dict[str, tuple[str, str, str | None]] = {}    # of its own
    fresh = True                        # are databases made anew for each round?
    stretch = 1.0                       # it runs for that many times --seconds
    max_rounds: int | None = None
    setup_weight = 1.0                  # guess of the set-up's time, see plan.py
    private_only = False
    program: str | None = None          # that has to be installed, or it is left out

    def seconds(self, p: Params) -> int:
        # Not in the test, which makes fewer rows and has no time.
        return max(1, round(p.seconds * (self.stretch if p.unit == 100000 else 1)))

    def variants(self, methods: list[str], server_has: "Any") -> list[Variant]:
        return [Variant(m, m) for m in methods]

    def begin(self, server: Any) -> None:
        """Settings of a private server, before the first round."""

    def end(self, server: Any) -> None:
        """Undoes begin()."""

    def setup(self, db: Database, p: Params) -> None:
        raise NotImplementedError

    def run(self, db: Database, p: Params) -> Measured:
        raise NotImplementedError

    def answer(self, db: Database, p: Params) -> Any:
        """What must be equal on both sides after the same round; raises if the data is
        not what it must be whatever the order of the transactions was."""
        return None
