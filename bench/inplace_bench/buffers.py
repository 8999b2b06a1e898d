"""Pages that the server has read and written."""

from __future__ import annotations

from .server import Database

IO_18 = """SELECT coalesce(sum(read_bytes), 0) / 8192,
                  coalesce(sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0)), 0) / 8192
           FROM pg_stat_io WHERE object IN ('relation', 'temp relation')"""
IO_16 = """SELECT coalesce(sum(reads * op_bytes), 0) / 8192,
                  coalesce(sum((coalesce(writes, 0) + coalesce(extends, 0)) * op_bytes), 0) / 8192
           FROM pg_stat_io"""
IO_15 = """SELECT (SELECT sum(blks_read) FROM pg_stat_database),
                  (SELECT buffers_checkpoint + buffers_clean + buffers_backend
                   FROM pg_stat_bgwriter)"""


def counts(db: Database, version: int) -> tuple[int, int]:
    """(read, written), in pages, of the whole server since it started."""
    query = IO_18 if version >= 180000 else IO_16 if version >= 160000 else IO_15
    row = db.row(query)
    return int(row[0]), int(row[1])
