"""One run of pgbench: its rate, over time too, and its latencies."""

from __future__ import annotations

import glob
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field

from .server import Database

PERCENTILES = (50, 95, 99)


@dataclass
class Run:
    tps: float = 0.0
    transactions: int = 0
    latency: dict[str, float] = field(default_factory=dict)   # ms
    by_client: list[int] = field(default_factory=list)        # logged transactions
    series: list[tuple[float, float]] = field(default_factory=list)


def percentiles(values: list[int]) -> dict[str, float]:
    """Of microseconds, in milliseconds."""
    values = sorted(values)
    if not values:
        return {}
    return {f"p{p}": round(values[min(len(values) - 1, len(values) * p // 100)] / 1000, 3)
            for p in PERCENTILES}


def read_logs(prefix: str) -> tuple[list[int], list[int]]:
    """Microseconds of the transactions in pgbench's log files, and how many each client has there."""
    got = []
    clients: dict[str, int] = {}
    for path in glob.glob(glob.escape(prefix) + ".*"):
        with open(path, encoding="ascii") as f:
            for line in f:
                parts = line.split()
                # "failed" or "skipped" instead of the time
                if len(parts) >= 3 and parts[2].isdigit():
                    got.append(int(parts[2]))
                    clients[parts[0]] = clients.get(parts[0], 0) + 1
    return got, list(clients.values())


def load(db: Database, seconds: int, clients: int, *options: str, script: str | None = None,
         variables: dict[str, int] | None = None, transactions: int | None = None, log_all: bool = False) -> Run:
    """Runs pgbench for some seconds, or that many transactions: a built-in script told by
    options, or our own.  With log_all the log has every transaction, however long the run is."""
    with tempfile.TemporaryDirectory(prefix="inplace-bench-") as tmp:
        args = ["-n", "-M", "prepared", "-c", str(clients),
                "-j", str(max(1, min(clients, os.cpu_count() or 1))),
                *(["-T", str(seconds)] if transactions is None else ["-t", str(transactions // clients)]), "-P", "1",
                "--log", "--log-prefix", f"{tmp}/log"]
        # In a long run a tenth of the transactions is plenty for percentiles.
        if seconds >= 5 and not log_all:
            args += ["--sampling-rate", "0.1"]
        if script is not None:
            with open(f"{tmp}/script.sql", "w", encoding="utf-8") as f:
                f.write(script)
            args += ["-f", f"{tmp}/script.sql"]
        for name, value in (variables or {}).items():
            args += ["-D", f"{name}={value}"]
        child = db.server.pgbench(db, *args, *options)
        run = Run()
        other: list[str] = []
        try:
            _read(child, run, other)
            if child.wait() != 0 or not run.tps:
                raise RuntimeError("pgbench failed:\n" + "".join(other[-20:]))
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
        times, run.by_client = read_logs(f"{tmp}/log")
        run.latency = percentiles(times)
        # A client without any has no line.
        run.by_client += [0] * (clients - len(run.by_client))
    return run


def _read(child: subprocess.Popen, run: Run, other: list[str]) -> None:
    for line in child.stdout:
        if m := re.match(r"progress: ([0-9.]+) s, ([0-9.]+) tps", line):
            run.series.append((float(m.group(1)), float(m.group(2))))
            continue
        other.append(line)
        if m := re.match(r"tps = ([0-9.]+)", line):
            run.tps = float(m.group(1))
        elif m := re.match(r"number of transactions actually processed: ([0-9]+)", line):
            run.transactions = int(m.group(1))
        elif m := re.match(r"number of failed transactions: ([0-9]+)", line):
            if int(m.group(1)):
                raise RuntimeError(f"transactions failed: {line}")
        elif "aborted" in line:
            raise RuntimeError(f"pgbench: {line}")


def init(db: Database, scale: int, fillfactor: int = 100, steps: str | None = None) -> None:
    """pgbench's own tables."""
    args = ["-i", "-q", "-s", str(scale), "-F", str(fillfactor)]
    if steps:
        args += ["-I", steps]
    child = db.server.pgbench(db, *args)
    try:
        out, _ = child.communicate()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
    if child.returncode != 0:
        raise RuntimeError(f"pgbench -i failed:\n{out[-2000:]}")
