"""Inserts one by one, and COPY."""

from __future__ import annotations

import io
import time
from typing import Any

from ..measure import Measured, measuring
from ..model import Params, Target, Workload
from ..server import Database
from .common import accounts, drive

TABLE = "CREATE TABLE target (id int, a int, b text, c timestamptz)"


class Insert(Workload):
    name = "insert"
    line = "one insert a transaction into a table with a primary key"
    targets = (Target("tps", ">=", 1.0),)
    setup_weight = 0.1

    def setup(self, db: Database, p: Params) -> None:
        db.run("CREATE TABLE target (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
               " a int NOT NULL, filler char(84))")

    def run(self, db: Database, p: Params) -> Measured:
        measured = drive(db, p, self.seconds(p), script="\\set v random(1, 1000000)\n"
                         "INSERT INTO target (a, filler) VALUES (:v, 'x');\n")
        if db.value("SELECT count(*) FROM target") != measured.metrics["transactions"]:
            raise RuntimeError(f"{db.method}: inserts were lost")
        return measured


class Copy(Workload):
    name = "copy"
    line = "COPY into an empty table without indexes"
    targets = (Target("seconds", "<=", 1.0),)

    def setup(self, db: Database, p: Params) -> None:
        db.run(TABLE)

    def run(self, db: Database, p: Params) -> Measured:
        # By way of the client: a server elsewhere has no file of ours.
        data = io.StringIO("".join(f"{g}\t{g % 1000}\t{g * 2654435761 % 2**32:08x}{g:024x}\t2026-01-01\n"
                                   for g in range(1, accounts(p) + 1)))
        with measuring(db, 0.2) as measured:
            conn = db.connect()
            try:
                with conn.cursor() as cur:
                    start = time.monotonic()
                    cur.copy_expert("COPY target FROM STDIN", data, size=1 << 16)
                    measured.metrics["seconds"] = time.monotonic() - start
                    measured.statements([measured.metrics["seconds"]])
            finally:
                conn.close()
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        return [int(x) for x in db.row("SELECT count(*), sum(id), sum(a) FROM target")]


ALL = (Insert(), Copy())
