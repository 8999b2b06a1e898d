"""WAL and undo of an update of a large value, case by case: documents of some sizes, stored in
three ways, changed in six.  Full-page images are told apart; a checkpoint is before each case."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, Iterator

from .. import wal
from ..measure import Measured, measuring, timed
from ..model import Params, Target, Workload
from ..server import Database, Refused

CHANGES = 3             # of each document in each case; a snapshot sees the first version of all
KEY_BYTES = 45          # of a key of a document and its value, an md5
DOCUMENTS = {3: 60, 10: 40, 50: 20, 200: 10}
# pglz makes nothing of single md5 values, so its documents have each twice.
STORAGES = {"external": ("SET STORAGE EXTERNAL", 1), "pglz": ("SET COMPRESSION pglz", 2), "lz4": ("SET COMPRESSION lz4", 1)}
# name: (label, what the document becomes with the {n}th change; {key} is the name of one of its keys)
KINDS = {
    "equal": ("equal length", "jsonb_set(doc, ARRAY[{key}], to_jsonb(repeat(md5(id || ' {n}'), {times})))"),
    "other": ("other length", "jsonb_set(doc, ARRAY[{key}], to_jsonb(repeat('v', 20 + 7 * {n})))"),
    "appended": ("appended", "doc || jsonb_build_object('appended{n}', repeat(md5(id || ' {n}'), {times}))"),
    "front": ("at the front", "doc || jsonb_build_object(chr(96 + {n}), repeat(md5(id || ' {n}'), {times}))"),
    "added": ("keys added", "doc || jsonb_build_object(left({key}, -1) || chr(96 + {n}), repeat(md5(id || ' {n}'), {times}))"),
    "removed": ("keys removed", "doc - {key}"),
}
CASES = {f"{storage}_{kb}_{kind}": f"{kb} kB, {storage}, {KINDS[kind][0]}"
         for storage in STORAGES for kb in DOCUMENTS for kind in KINDS}


class DocumentsWal(Workload):
    name = "documents-wal"
    line = "bytes of WAL records, full-page images and undo of an update of a document of 3 to 200 kB, in 72 cases"
    published = "none: the published engines keep TOAST tables of heap"
    metrics = {
        **{f"wal_{n}": (f"WAL of an update: {what}", "B", "lower") for n, what in CASES.items()},
        **{f"images_{s}_{kb}": (f"full-page images of an update: {kb} kB, {s}", "B", "lower") for s in STORAGES for kb in DOCUMENTS},
        **{f"undo_{n}": (f"undo of an update: {what}", "B", "lower") for n, what in CASES.items()},
    }
    targets = tuple(Target(f"wal_{n}", "<=", 0.1 if n.startswith("external") and n.endswith("equal") else 1.05)
                    for n in CASES)
    max_rounds = 2      # (it is the same each time but for what else the server writes)
    setup_weight = 0.2

    def seconds(self, p: Params) -> int:
        return 20 if p.scale >= 10 else 5

    def tables(self, db: Database, p: Params) -> Iterator[tuple[str, str, int]]:
        """(name, storage, kB); the small ones only in a short run, and one in the test."""
        largest = 200 if p.scale >= 10 else 10 if p.unit == 100000 else 3
        lz4 = db.value("SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'")
        for storage in STORAGES:
            for kb in DOCUMENTS:
                if (storage != "lz4" or lz4) and kb <= largest:
                    yield f"{storage}_{kb}", storage, kb

    def setup(self, db: Database, p: Params) -> None:
        if not wal.prepare(db):
            raise Refused("documents-wal needs pg_walinspect")
        for name, storage, kb in self.tables(db, p):
            how, times = STORAGES[storage]
            db.run(f"CREATE TABLE {name} (id int PRIMARY KEY, doc jsonb) WITH (fillfactor = 10,"
                   " autovacuum_enabled = off, toast.autovacuum_enabled = off)",
                   f"ALTER TABLE {name} ALTER doc {how}",
                   f"INSERT INTO {name} SELECT g, (SELECT jsonb_object_agg('key' || k, repeat(md5((g * 10000 + k)::text), {times}))"
                   f" FROM generate_series(1, {keys(storage, kb)}) k) FROM generate_series(1, {DOCUMENTS[kb]}) g")
            db.run(f"VACUUM ANALYZE {name}")

    def run(self, db: Database, p: Params) -> Measured:
        took = []
        started = time.monotonic()
        with closing(db.connect()) as holder, measuring(db) as measured:
            # Undo is kept, and so what there is more of it is what the updates have made.
            holder.autocommit = True
            with holder.cursor() as cur:
                cur.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                cur.execute("SELECT count(*) FROM pg_class")
            for name, storage, kb in self.tables(db, p):
                images = 0
                for number, kind in enumerate(KINDS):
                    got = self.case(db, name, storage, kb, kind, number, took)
                    measured.detail[f"{name}_{kind}"] = got
                    updates = DOCUMENTS[kb] * CHANGES
                    measured.metrics[f"wal_{name}_{kind}"] = got["records"] / updates
                    if "undo" in got:
                        measured.metrics[f"undo_{name}_{kind}"] = got["undo"] / updates
                    images += got["images"]
                measured.metrics[f"images_{name}"] = images / updates / len(KINDS)
        measured.metrics["seconds"] = time.monotonic() - started
        measured.statements(took)
        return measured

    def case(self, db: Database, name: str, storage: str, kb: int, kind: str, number: int, took: list[float]) -> dict[str, Any]:
        db.run("CHECKPOINT")
        undo, start = undo_used(db), wal.position(db)
        for n in range(1, CHANGES + 1):
            # each change is of another key, and of others than those of the kinds before
            key = f"('key' || (id * 7919 + {number * CHANGES + n} * 11) % {keys(storage, kb)} + 1)"
            doc = KINDS[kind][1].format(key=key, n=n, times=STORAGES[storage][1])
            took.append(timed(db, f"UPDATE {name} SET doc = {doc}"))
        got = wal.between(db, start, wal.position(db))
        if "records" not in got:
            raise Refused(f"documents-wal: {got.get('why_not_split')}")
        if undo is not None:
            got["undo"] = undo_used(db) - undo
        return got

    def answer(self, db: Database, p: Params) -> Any:
        return [db.value(f"SELECT md5(string_agg(id || doc::text, ',' ORDER BY id)) FROM {n}") for n, _, _ in self.tables(db, p)]


def keys(storage: str, kb: int) -> int:
    return kb * 1024 // (KEY_BYTES + 32 * (STORAGES[storage][1] - 1))


def undo_used(db: Database) -> int | None:
    """Bytes of pages of undo that are in use; None of a method without undo."""
    if db.method != "inplace":
        return None
    return int(db.value("SELECT used_bytes FROM inplace.undo WHERE kind = 'logged'"))
