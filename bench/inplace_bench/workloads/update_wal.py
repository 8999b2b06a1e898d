"""WAL of an update, case by case (less WAL for updates, 2012)."""

from __future__ import annotations

import time
from typing import Any

from .. import wal
from ..measure import Measured, measuring, timed
from ..model import Params, Target, Workload
from ..server import Database, Refused

ROWS = 500
SOME = "first int, name varchar(900), fixed char(100), middle text, last int"
WIDE = "SELECT g, g, repeat('n', 800), 'f', repeat('m', 880), g FROM generate_series(1, {n}) g"
AUDIT = ("CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
         " $$ BEGIN {body} END $$")

# name: (label, columns beside id, rows, trigger's body, what is set)
CASES: dict[str, tuple[str, str, str, str | None, str]] = {
    "both_ends": ("first and last column of 1800 bytes", SOME, WIDE, None, "first = first + 1, last = last + 1"),
    "part": ("250 of 1800 bytes", SOME, WIDE, None,
             "middle = overlay(middle placing repeat('q', 250) from 300 for 250)"),
    "integer": ("an integer", SOME, WIDE, None, "first = first + 1"),
    "varchar": ("a char and a varchar", SOME, WIDE, None, "fixed = 'g', name = repeat('o', 800)"),
    "to_null": ("set to null", SOME, WIDE, None, "middle = NULL"),
    "with_nulls": ("a row containing nulls", SOME,
                   "SELECT g, NULL, repeat('n', 800), NULL, repeat('m', 880), g FROM generate_series(1, {n}) g",
                   None, "last = last + 1"),
    "all_null": ("all columns set to null", SOME, WIDE, None,
                 "first = NULL, name = NULL, fixed = NULL, middle = NULL, last = NULL"),
    "toast": ("a row with a TOASTed value", "first int, big text",
              "SELECT g, g, (SELECT string_agg(md5((g * 1000 + i)::text), '') FROM generate_series(1, 100) i)"
              " FROM generate_series(1, {n}) g", None, "first = first + 1"),
    "short": ("a row under 128 bytes", "first int, note text",
              "SELECT g, g, 'short' FROM generate_series(1, {n}) g", None, "first = first + 1"),
    "trigger": ("a BEFORE trigger changes the row", SOME, WIDE,
                "NEW.last := NEW.last + 5; RETURN NEW;", "first = first + 1"),
    "trigger_null": ("a BEFORE trigger returns null", SOME, WIDE, "RETURN NULL;", "first = first + 1"),
}


class UpdateWal(Workload):
    name = "update-wal"
    line = "bytes of WAL records of an update, full-page images aside, in eleven cases; heap has room for HOT"
    published = "1800-byte rows, 250 bytes changed: 1.8 GB to 1.1 GB of WAL"
    metrics = {f"wal_{n}": (f"WAL of an update: {c[0]}", "B", "lower") for n, c in CASES.items()}
    targets = (Target("wal_both_ends", "<=", 0.5),
               *[Target(f"wal_{n}", "<=", 1.0) for n in CASES if n not in ("both_ends", "trigger_null")],
               Target("wal_trigger_null", "<=", 1.0))
    max_rounds = 3
    setup_weight = 0.2

    def seconds(self, p: Params) -> int:
        return 3

    def setup(self, db: Database, p: Params) -> None:
        if not wal.prepare(db):
            raise Refused("update-wal needs pg_walinspect")
        for name, (_, columns, rows, body, _) in CASES.items():
            db.run(f"CREATE TABLE {name} (id int PRIMARY KEY, {columns})"
                   " WITH (fillfactor = 40, autovacuum_enabled = off)",
                   f"INSERT INTO {name} " + rows.format(n=ROWS))
            if body:
                db.run(AUDIT.format(name=f"{name}_f", body=body),
                       f"CREATE TRIGGER t BEFORE UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION {name}_f()")
            db.run(f"VACUUM ANALYZE {name}")

    def run(self, db: Database, p: Params) -> Measured:
        with measuring(db) as measured:
            start_time = time.monotonic()
            took = []
            for name, case in CASES.items():
                start = wal.position(db)
                took.append(timed(db, f"UPDATE {name} SET {case[4]}"))
                got = wal.between(db, start, wal.position(db))
                if "records" not in got:
                    raise Refused(f"update-wal: {got.get('why_not_split')}")
                measured.metrics[f"wal_{name}"] = got["records"] / ROWS
                measured.detail[name] = got
            measured.metrics["seconds"] = time.monotonic() - start_time
            measured.statements(took)
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        return [db.value(f"SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM {n} t") for n in CASES]
