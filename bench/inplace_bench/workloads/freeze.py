"""Which pages VACUUM freezes (adaptive freezing, 2023): the heuristic on and off, and heap."""

from __future__ import annotations

from typing import Any

from ..holder import Beside, repeat
from ..measure import Measured
from ..model import Params, Target, Variant, Workload
from ..server import Database, Server
from .common import drive, using

SETTING = "inplace.adaptive_freezing"
OFF = "inplace, heuristic off"
DURATION = "inplace.target_freeze_duration"
# The rows a client has inserted shortly before: keys of a sequence, so near its end.
INSERT = "INSERT INTO work (key, note) VALUES (:v, 'x');\n"
RECENT = "(SELECT last_value FROM work_id_seq)"
# Rows in the queue: so many that none is taken out before the client that puts it in is done.
QUEUED = 1000
QUEUE = (
    "\\set v random(1, 1000000)\n\\set back random(0, 20)\n" + INSERT +
    # (one statement for both would find them in any order, and deadlock)
    f"UPDATE work SET key = key + 1 WHERE id = {RECENT} - :back;\n"
    f"UPDATE work SET key = key + 1 WHERE id = {RECENT} - :back - 1;\n"
)
SCRIPTS = {
    "c": "\\set v random(1, 1000000)\n\\set back random(0, 200)\n" + INSERT * 3 +
         f"UPDATE work SET key = key + 1 WHERE id = {RECENT} - :back;\n",
    "h": "\\set v random(1, 1000000)\n" + INSERT,
    # each row in turn, once
    "i": QUEUE + "DELETE FROM work WHERE id = (SELECT nextval('work_done'));\n",
    "b": "\\set v random(1, 1000000)\n\\set back random(0, 20)\n" + INSERT +
         f"UPDATE work SET key = key + 1 WHERE id = {RECENT} - :back;\n"
         "UPDATE work SET key = key + 1 WHERE id = (SELECT id FROM work WHERE at < now() - :old * interval '1 s'"
         " ORDER BY at DESC LIMIT 1);\n",
    # about a third of the rows are never hit
    "q": QUEUE + f"DELETE FROM work WHERE id = {RECENT} - :back - 30;\n",
}
PUBLISHED = {
    "c": "53.4 % of pages frozen against 0.1 %, WAL 193 against 207 GB, same TPS",
    "h": "87 % of pages frozen against 0 %",
    "i": "no page frozen early in either",
    "b": "(named as the model's weakness, without figures)",
    "q": "(not among the published ones)",
}
LINES = {
    "c": "a shifting hot set: rows are inserted, and those inserted shortly before updated; VACUUM again and again",
    "h": "append only; VACUUM again and again",
    "i": "a work queue: insert a row, update two nearby, delete the first one; VACUUM again and again",
    "b": "two kinds of changes: to rows just inserted, and to rows nearly as old as the target duration; VACUUM again and again",
    "q": "a queue some rows of which stay for ever: insert, update two nearby, delete one at random; VACUUM again and again",
}
# VACUUM marks a page without rows all-frozen too, which costs nothing.
TARGETS = {
    "c": (Target("frozen", ">=", 0.5, False), Target("early_unsets", "<=", 0.05, False)),
    "h": (Target("frozen", ">=", 0.85, False),),
    "i": (Target("rows_frozen", "<=", 0.05, False), Target("page_freezes", "<=", 0.05, False)),
    "b": (Target("early_unsets", "<=", 0.05, False),),
    "q": (),
}
# Pages with a row somebody can see.
WITH_ROWS = "(SELECT DISTINCT (ctid::text::point)[0]::bigint AS blkno FROM work) AS r"


def vacuum_io(db: Database) -> tuple[float, float]:
    """What VACUUM has done on the server so far; nothing is known up to PostgreSQL 15."""
    if not db.value("SELECT to_regclass('pg_stat_io') IS NOT NULL"):
        return 0.0, 0.0
    db.run("SELECT pg_stat_force_next_flush()")
    got = [db.value(f"SELECT coalesce(sum({what}), 0)::float8 FROM pg_stat_io WHERE context = 'vacuum'")
           for what in ("coalesce(hits, 0) + coalesce(reads, 0)", "coalesce(reads, 0) + coalesce(writes, 0)")]
    return got[0], got[1]


class Freeze(Workload):
    metrics = {
        "frozen": ("share of pages all-frozen", "", None),
        "rows_frozen": ("pages with rows that are all-frozen, share of all pages", "", None),
        "early_unsets": ("early unsets of the heuristic, per page set all-visible", "", "lower"),
        "page_freezes": ("times that VACUUM froze a page, per page set all-visible", "", None),
        "vain": ("... and part of these after which the page was changed before the target duration", "", "lower"),
        "vacuum_buffers": ("buffers that VACUUM accessed, per page of the table", "", None),
        "vacuum_io": ("blocks that VACUUM read and wrote, per page of the table", "", "lower"),
    }
    max_rounds = 3
    setup_weight = 0.1
    stretch = 2.0

    def __init__(self, letter: str):
        self.letter = letter
        self.name, self.line = f"freeze-{letter}", LINES[letter]
        self.published = PUBLISHED[letter]
        self.targets = (*TARGETS[letter], Target("tps", ">=", 0.98, than=OFF))

    def variants(self, methods: list[str], server: Server) -> list[Variant]:
        got = [Variant(m, m) for m in methods]
        if server.maintenance.value("SELECT current_setting(%s, true) IS NOT NULL", SETTING):
            got.append(Variant(OFF, "inplace", {SETTING: "off"}))
        return got

    def target(self, p: Params) -> int:
        # In proportion to the length of the run, as a day is to weeks.
        return int(max(1, self.seconds(p) // 8))

    def setup(self, db: Database, p: Params) -> None:
        db.run("CREATE EXTENSION pg_visibility",
               "CREATE TABLE work (id bigserial PRIMARY KEY, key int NOT NULL, note text NOT NULL)"
               " WITH (autovacuum_enabled = off)",
               f"CREATE INDEX work_key ON work {using(db)} (key)")
        if self.letter == "b":
            db.run("ALTER TABLE work ADD at timestamptz NOT NULL DEFAULT clock_timestamp()",
                   f"CREATE INDEX work_at ON work {using(db)} (at)")
        if self.letter == "i":
            db.run("CREATE SEQUENCE work_done",
                   f"INSERT INTO work (key, note) SELECT i, 'x' FROM generate_series(1, {QUEUED}) i")
        if db.value("SELECT current_setting(%s, true) IS NOT NULL", DURATION):
            db.run(f'ALTER DATABASE "{db.name}" SET {DURATION} = {self.target(p)}')

    def run(self, db: Database, p: Params) -> Measured:
        seconds = self.seconds(p)
        before = vacuum_io(db)
        with Beside(db, repeat("VACUUM work", seconds / 10)):
            measured = drive(db, p, seconds, script=SCRIPTS[self.letter].replace(":old", str(0.9 * self.target(p))))
        db.run("VACUUM work")
        frozen = db.value("SELECT all_frozen FROM pg_visibility_map_summary('work')")
        pages = db.value("SELECT pg_relation_size('work') / 8192")
        measured.metrics["frozen"] = frozen / max(1, pages)
        held = db.value(f"SELECT count(*) FROM pg_visibility_map('work') v JOIN {WITH_ROWS} USING (blkno)"
                        " WHERE all_frozen")
        measured.metrics["rows_frozen"] = held / max(1, pages)
        after = vacuum_io(db)
        for metric, x, y in zip(("vacuum_buffers", "vacuum_io"), before, after):
            measured.metrics[metric] = (y - x) / max(1, pages)
        if db.value("SELECT to_regclass('inplace.stat_freeze') IS NOT NULL"):
            for metric, share in (("early_unsets", "early_unsets::float8 / greatest(all_visible_sets, 1)"),
                                  ("page_freezes", "pages_frozen::float8 / greatest(all_visible_sets, 1)"),
                                  ("vain", "early_frozen_unsets::float8 / greatest(pages_frozen, 1)")):
                got = db.value(f"SELECT {share} FROM inplace.stat_freeze WHERE relname = 'work'")
                measured.metrics[metric] = got or 0.0
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        return db.value("SELECT count(*) = count(DISTINCT id) FROM work")


ALL = tuple(Freeze(x) for x in "chibq")
