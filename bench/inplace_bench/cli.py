"""Arguments of bench/run and bench/table."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import traceback
from typing import Any

import psycopg2

from . import text
from .model import Params
from .plan import run_all
from .server import Refused, Server, say
from .workloads import WORKLOADS


def _positive(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"not a number from 1 on: '{value}'")
    return int(value)


def parser() -> argparse.ArgumentParser:
    # Nothing but whole names: a part of --private would have settings of any server changed.
    p = argparse.ArgumentParser(prog="bench/run", add_help=False, allow_abbrev=False,
                                usage="bench/run [WORKLOAD ...] [options]; see bench/run --help and --list")
    p.add_argument("workloads", nargs="*")
    p.add_argument("--against", default="heap")
    p.add_argument("--scale", type=_positive)
    p.add_argument("--seconds", type=_positive)
    p.add_argument("--rounds", type=_positive)
    p.add_argument("--clients", type=_positive, default=8)
    p.add_argument("--doc-kb", type=_positive, default=10)
    p.add_argument("--held", action="store_true")
    p.add_argument("--json")
    p.add_argument("--report")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--dsn", default="")
    p.add_argument("--bindir")
    p.add_argument("--private", action="store_true")
    p.add_argument("--i-know", action="store_true")
    p.add_argument("--keep", action="store_true")
    # To look at the arguments only.
    p.add_argument("--check-only", action="store_true")
    # For the test: rows for each of scale.
    p.add_argument("--unit", type=_positive, default=100000, help=argparse.SUPPRESS)
    return p


def writable(p: argparse.ArgumentParser, json_path: str | None, report: str | None) -> None:
    """They are written at the end: a bad path must show now."""
    for path, directory in ((report and os.path.join(report, "report.html"), report),
                            (json_path, os.path.dirname(json_path or "") or ".")):
        if not path:
            continue
        try:
            if path == json_path:
                # (a mistyped path, as a rule; DIR of --report is made)
                if not os.path.isdir(directory):
                    raise NotADirectoryError(f"--json: no directory '{directory}' for '{path}'")
            else:
                os.makedirs(directory, exist_ok=True)
            if os.path.isdir(path):
                raise IsADirectoryError(f"'{path}' is a directory")
            if not os.access(path if os.path.exists(path) else directory, os.W_OK):
                raise PermissionError(f"no permission to write '{path}'")
        except OSError as e:
            p.error(str(e))


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
    names = list(dict.fromkeys(a.workloads)) or list(WORKLOADS)
    for n in names:
        if n not in WORKLOADS:
            p.error(f"no workload '{n}'; there are: {' '.join(WORKLOADS)}")
    if a.against == "inplace":
        p.error("--against another method than inplace")
    params = Params(a.scale or (2 if a.quick else 10), a.seconds or (2 if a.quick else 20), a.clients,
                    a.unit, a.doc_kb, a.held)
    rounds = a.rounds or (2 if a.quick else 5)
    writable(p, a.json, a.report)
    if a.check_only:
        return 0
    if not a.bindir and shutil.which("pgbench") is None:
        p.error("no pgbench in the PATH")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:       # (as under nohup)
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    server = Server(a.dsn, a.bindir, a.private, a.i_know, a.keep)
    try:
        document = {"format": 1, "facts": server.facts(), "against": a.against,
                    "params": {"scale": params.scale, "seconds": params.seconds,
                               "clients": params.clients, "rounds": rounds,
                               "doc_kb": params.doc_kb, "held": params.held}, "workloads": {}}
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
    except (psycopg2.Error, RuntimeError) as e:
        # (a bad --dsn, or a role that may not do it, is no fault of the program)
        if a.private or getattr(e, "pgcode", "none") not in (None, "42501"):
            traceback.print_exc()
        say(f"bench/run: {str(e).strip()}")
        return 3 if a.private else 1
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
