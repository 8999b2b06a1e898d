"""Documents, larger than a page's worth: part of one is changed in each transaction.  First
values that are compressed, then values that are not.  --doc-kb says how large they are,
--held has a snapshot held all the time.  inplace has toast_in_place on."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import Any

from .. import pgbench, wal
from ..holder import Beside, hold_snapshot
from ..measure import Measured, measuring
from ..model import Params, Target, Variant, Workload
from ..server import Database, Refused
from .common import accounts

UNDO_BACK = 5.0     # seconds after the end of the snapshot

KEY_BYTES = 45      # of a key of a document and its value
SCRIPTS = {
    "json": """\\set id random(1, :docs)
\\set key random(1, :keys)
UPDATE documents_json SET doc = jsonb_set(doc, ARRAY['key' || :key], to_jsonb(md5(random()::text))) WHERE id = :id;
""",
    "text": """\\set id random(1, :docs)
\\set at random(1, :bytes)
UPDATE documents_text SET doc = overlay(doc PLACING md5(random()::text) FROM :at) WHERE id = :id;
""",
}
TOAST = """SELECT (sum(pg_relation_size(c.reltoastrelid)) / 8192)::int, (sum(pg_indexes_size(c.reltoastrelid)) / 8192)::int
           FROM pg_class c WHERE relname IN ('documents_json', 'documents_text')"""


class Documents(Workload):
    name = "documents"
    line = "part of a large document (--doc-kb) is changed, compressed or not; --held: beside a snapshot"
    published = "none: the published engines keep TOAST tables of heap"
    metrics = {
        **{f"tps_{n}": (f"transactions/s, {what}", "", "higher") for n, what in
           (("json", "compressed"), ("text", "not compressed"))},
        **{f"wal_{n}": (f"WAL of an update, full-page images aside, {what}", "B", "lower") for n, what in
           (("json", "compressed"), ("text", "not compressed"))},
        "toast_before": ("TOAST tables as loaded", "pages", "lower"),
        "toast_times": ("TOAST tables at the end, by those loaded", "", "lower"),
        "toast_index_times": ("their indexes at the end, by those loaded", "", "lower"),
        "undo_left": (f"undo {UNDO_BACK:g} s after the end", "pages", "lower"),
    }
    targets = (Target("tps_json", ">=", 1.0), Target("tps_text", ">=", 1.0), Target("wal_json", "<=", 0.35),
               Target("wal_text", "<=", 0.1), Target("toast_before", "<=", 1.0),
               Target("toast_times", "<=", 1.0, ratio=False))
    stretch = 2.0
    max_rounds = 3

    def documents(self, p: Params) -> int:
        """As many as make the same size, whatever they are."""
        return max(20, accounts(p) // 50 // p.doc_kb)

    def variants(self, methods: list[str], server_has: Any) -> list[Variant]:
        return [Variant(m, m, {"inplace.toast_in_place": "on"} if m == "inplace" else {}) for m in methods]

    def setup(self, db: Database, p: Params) -> None:
        keys = p.doc_kb * 1024 // KEY_BYTES
        db.run("CREATE TABLE documents_json (id int PRIMARY KEY, doc jsonb)",
               "CREATE TABLE documents_text (id int PRIMARY KEY, doc text)",
               "ALTER TABLE documents_text ALTER doc SET STORAGE EXTERNAL",
               "INSERT INTO documents_json SELECT g, (SELECT jsonb_object_agg('key' || k, md5((g * 10000 + k)::text))"
               f" FROM generate_series(1, {keys}) k) FROM generate_series(1, {self.documents(p)}) g",
               "INSERT INTO documents_text SELECT g, (SELECT string_agg(md5((g * 10000 + k)::text), '')"
               f" FROM generate_series(1, {p.doc_kb * 32}) k) FROM generate_series(1, {self.documents(p)}) g",
               "VACUUM ANALYZE documents_json, documents_text")

    def run(self, db: Database, p: Params) -> Measured:
        each = max(1, self.seconds(p) // 2)
        held = threading.Event()

        def snapshot(conn: Any, beside: Beside) -> None:
            hold_snapshot(conn, beside, "SELECT md5(string_agg(md5(j.doc::text) || md5(t.doc), '' ORDER BY id))"
                          " FROM documents_json j JOIN documents_text t USING (id)", 86400, held)

        total = pgbench.Run()
        got: dict[str, float] = {}
        before = db.rows(TOAST)[0]
        with ExitStack() as beside:
            if p.held:
                beside.enter_context(Beside(db, snapshot, autocommit=False))
                held.wait(60)
            with measuring(db, min(1.0, each / 10)) as measured:
                for name, script in SCRIPTS.items():
                    start = wal.position(db)
                    run = pgbench.load(db, each, p.clients, script=script, variables={
                        "docs": self.documents(p), "keys": p.doc_kb * 1024 // KEY_BYTES, "bytes": p.doc_kb * 1000})
                    written = wal.between(db, start, wal.position(db))
                    got[f"tps_{name}"] = run.tps
                    got[f"wal_{name}"] = written.get("records", written["total"]) / max(1, run.transactions)
                    total.transactions += run.transactions
                    total.tps += run.tps / len(SCRIPTS)
                    total.latency = run.latency
                beside.close()
                measured.pgbench(total)
                time.sleep(min(UNDO_BACK, each / 2))
        after = db.rows(TOAST)[0]
        got["toast_before"] = float(before[0])
        got["toast_times"] = float(after[0] / before[0])
        got["toast_index_times"] = float(after[1] / before[1])
        got["undo_left"] = measured.sampler.samples[-1][1]["undo"]
        measured.metrics.update(got)
        return measured

    def answer(self, db: Database, p: Params) -> Any:
        wrong = db.value(f"SELECT count(*) FROM documents_text WHERE length(doc) < {p.doc_kb * 1024}")
        if wrong:
            raise Refused(f"{db.method}: {wrong} documents have become shorter")
        return db.value("SELECT sum((SELECT count(*) FROM jsonb_object_keys(doc)))::bigint FROM documents_json")
