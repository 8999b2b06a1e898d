"""WAL written between two moments, split into records and full-page images."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Iterator

import psycopg2

from .server import Database


def position(db: Database) -> int:
    """Where WAL ends now, all of it flushed."""
    conn = db.connect()
    try:
        with conn.cursor() as cur:
            # Whatever was written with synchronous_commit = off is flushed with this.
            cur.execute("SET synchronous_commit = 'local'")
            cur.execute("SELECT pg_logical_emit_message(true, 'inplace_bench', '')")
            cur.execute("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")
            return int(cur.fetchone()[0])
    finally:
        conn.close()


def prepare(db: Database) -> bool:
    """Is pg_walinspect there?"""
    available = db.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_walinspect'")
    if available:
        db.run("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
    return bool(available)


@contextmanager
def kept(db: Database) -> Iterator[None]:
    """Meanwhile checkpoints remove no WAL (where slots are to be had), so that it can be looked into.
    The slot is gone with its session, whatever happens, and holds nothing but WAL."""
    conn = db.connect()
    try:
        with conn.cursor() as cur:
            try:
                cur.execute("SELECT pg_create_physical_replication_slot(%s, true, true)",
                            (f"inplace_bench_{os.getpid()}",))
            except psycopg2.Error:
                pass
        yield
    finally:
        conn.close()


def between(db: Database, start: int, end: int) -> dict[str, Any]:
    """total (bytes of the log, its page headers included); records, images (bytes) and
    by_manager if WAL can be looked into and is still there."""
    got: dict[str, Any] = {"total": end - start}
    if end <= start:
        return got
    query = ("SELECT \"resource_manager/record_type\", record_size::bigint, fpi_size::bigint"
             " FROM pg_get_wal_stats('0/0'::pg_lsn + %s, '0/0'::pg_lsn + %s)"
             " WHERE count > 0")
    try:
        rows = db.rows(query, start, end)
    except psycopg2.Error as e:
        # Not there (another server), or a checkpoint has recycled it.
        got["why_not_split"] = str(e).strip().splitlines()[0]
        return got
    got["records"] = sum(r[1] for r in rows)
    got["images"] = sum(r[2] for r in rows)
    got["by_manager"] = {r[0]: {"records": r[1], "images": r[2]} for r in rows}
    return got
