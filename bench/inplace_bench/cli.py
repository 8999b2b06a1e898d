"""Arguments of bench/run and bench/table."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from typing import Any

import psycopg2

from . import text
from .model import Params
from .plan import run_all
from .server import Refused, Server, say
from .workloads import WORKLOADS


def _positive(value: str) -> int:
    n = int(value)
    if n < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return n


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="bench/run", add_help=False)
    p.add_argument("workloads", nargs="*")
    p.add_argument("--against", default="heap")
    p.add_argument("--scale", type=_positive)
    p.add_argument("--seconds", type=_positive)
    p.add_argument("--rounds", type=_positive)
    p.add_argument("--clients", type=_positive, default=8)
    p.add_argument("--json")
    p.add_argument("--report")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--dsn", required=True)
    p.add_argument("--bindir")
    p.add_argument("--private", action="store_true")
    p.add_argument("--i-know", action="store_true")
    p.add_argument("--keep", action="store_true")
    # For the test: rows for each of scale.
    p.add_argument("--unit", type=_positive, default=100000, help=argparse.SUPPRESS)
    return p


def listing() -> str:
    width = max(map(len, WORKLOADS))
    return "\n".join(f"{n.ljust(width)}  {w.line}" for n, w in WORKLOADS.items())


def save(path: str, document: dict[str, Any]) -> None:
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(document, f, indent=1)
    os.replace(path + ".new", path)


def main() -> int:
    if "--list" in sys.argv[1:]:
        print(listing())
        return 0
    p = parser()
    a = p.parse_args()
    names = a.workloads or list(WORKLOADS)
    for n in names:
        if n not in WORKLOADS:
            p.error(f"no workload '{n}'; there are: {' '.join(WORKLOADS)}")
    if a.against == "inplace":
        p.error("--against another method than inplace")
    params = Params(a.scale or (2 if a.quick else 10), a.seconds or (3 if a.quick else 20), a.clients,
                    a.unit)
    rounds = a.rounds or (2 if a.quick else 5)
    for path in filter(None, (a.json, a.report)):
        # They are written at the end: a bad path must show now.
        os.makedirs(path if path == a.report else os.path.dirname(path) or ".", exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    server = Server(a.dsn, a.bindir, a.private, a.i_know)
    try:
        document = {"format": 1, "facts": server.facts(), "against": a.against,
                    "params": {"scale": params.scale, "seconds": params.seconds,
                               "clients": params.clients, "rounds": rounds}, "workloads": {}}
        for name, result in run_all(server, [WORKLOADS[n] for n in names], a.against, params, rounds):
            document["workloads"][name] = result
            if a.json:
                # What is done is not lost when a later one fails.
                save(a.json, document)
    except Refused as e:
        say(f"bench/run: {e}")
        return 1
    except psycopg2.OperationalError as e:
        say(f"bench/run: {str(e).strip()}")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if not a.private and not a.keep:
            server.drop_made()
    print(text.terminal(document))
    print("\n" + text.how(document))
    if a.report:
        from . import report    # needs matplotlib
        path = os.path.join(a.report, "report.html")
        report.write(path, document)
        print(f"The report: {path}")
    return 0
