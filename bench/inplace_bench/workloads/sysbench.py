"""sysbench's OLTP scripts, where that program is installed (Debian has it)."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from psycopg2.extensions import parse_dsn

from .. import pgbench
from ..measure import Measured, measuring
from ..model import Params, Target, Workload
from ..server import Database

SCRIPTS = ("point_select", "read_only", "update_index", "update_non_index", "read_write", "insert", "delete",
           "write_only")
RANDOM = ("special", "uniform")
TABLES = 4
CASES = [(s, r) for s in SCRIPTS for r in RANDOM]


def key(script: str, rand: str) -> str:
    return f"tps_{script}_{rand}"


def latencies(out: str) -> dict[str, float]:
    """Percentiles from sysbench's histogram, whose lines are "milliseconds |**** transactions"."""
    buckets = [(float(ms), int(n)) for ms, n in re.findall(r"^ *([0-9.]+) \|\**\s+([0-9]+)$", out, re.M)]
    total = sum(n for _, n in buckets)
    got = {}
    for percent in pgbench.PERCENTILES:
        seen = 0
        for ms, n in buckets:
            seen += n
            if seen * 100 >= total * percent:
                got[f"p{percent}"] = ms
                break
    return got


class Sysbench(Workload):
    name = "sysbench"
    line = "sysbench's OLTP scripts, special and uniform, if it is installed"
    published = "none"
    program = "sysbench"
    stretch = 16.0      # shared by the cases
    setup_weight = 0.5
    metrics = {key(s, r): (f"transactions/s, oltp_{s}, {r}", "", "higher") for s, r in CASES}
    targets = tuple(Target(key(s, r), ">=", 1.0) for s, r in CASES)

    def size(self, p: Params) -> int:
        return max(1000, p.unit * p.scale // 10 // TABLES)

    def sysbench(self, db: Database, p: Params, script: str, command: str, *options: str) -> str:
        dsn = parse_dsn(db.server.dsn_of(db.name))
        args = [self.program, f"oltp_{script}", "--db-driver=pgsql", f"--pgsql-db={db.name}",
                f"--pgsql-host={dsn.get('host', 'localhost')}", f"--pgsql-port={dsn.get('port', '5432')}",
                f"--pgsql-user={dsn.get('user', 'postgres')}", f"--pgsql-password={dsn.get('password', '')}",
                f"--tables={TABLES}", f"--table-size={self.size(p)}", f"--threads={p.clients}",
                "--histogram", *options, command]
        done = subprocess.run(args, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"sysbench oltp_{script} {command} failed:\n{done.stdout[-2000:]}")
        return done.stdout

    def setup(self, db: Database, p: Params) -> None:
        self.sysbench(db, p, "read_write", "prepare")
        db.run("VACUUM ANALYZE")

    def run(self, db: Database, p: Params) -> Measured:
        each = max(1, self.seconds(p) // len(CASES))
        total = pgbench.Run()
        got: dict[str, float] = {}
        with measuring(db) as measured:
            for script, rand in CASES:
                out = self.sysbench(db, p, script, "run", f"--time={each}", f"--rand-type={rand}")
                m = re.search(r"transactions: +([0-9]+) +\(([0-9.]+) per sec", out)
                if m is None:
                    raise RuntimeError(f"sysbench told no transactions:\n{out[-2000:]}")
                got[key(script, rand)] = float(m.group(2))
                total.transactions += int(m.group(1))
                total.tps += float(m.group(2)) / len(CASES)
                # of the script that is run last
                total.latency = latencies(out)
            measured.pgbench(total)
        measured.metrics.update(got)
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        return db.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'sbtest%' AND relkind = 'r'")
