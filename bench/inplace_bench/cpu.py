"""CPU time of a server on this machine."""

from __future__ import annotations

import os

from .server import Database

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str] | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            # The name in parentheses may have blanks.
            return f.read().rpartition(")")[2].split()
    except OSError:
        return None


class Cpu:
    """Seconds that all processes of the server have used.  Those that have ended are
    in the postmaster's account of its children, so no process is missed."""

    def __init__(self, db: Database):
        conn = db.connect()
        try:
            with conn.cursor() as cur:
                cur.execute("SELECT pg_backend_pid(), inet_server_addr() IS NULL")
                pid, local = cur.fetchone()
            stat = _stat(pid) if local else None
            self.postmaster = int(stat[1]) if stat else None
        finally:
            conn.close()

    def seconds(self) -> float | None:
        """None if the server is on another machine."""
        if self.postmaster is None:
            return None
        # A child that ends while the others are looked at would be counted twice, or not at all.
        for _ in range(100):
            before = self._ended()
            running = self._running()
            if self._ended() == before:
                break
        return (before + running) / TICKS

    def _ended(self) -> int:
        return sum(map(int, (_stat(self.postmaster) or ["0"] * 15)[13:15]))

    def _running(self) -> int:
        """Ticks of the postmaster and of its children that have not been waited for."""
        total = 0
        for entry in os.listdir("/proc"):
            stat = _stat(int(entry)) if entry.isdigit() else None
            if stat and (int(entry) == self.postmaster or int(stat[1]) == self.postmaster):
                total += sum(map(int, stat[11:13]))
        return total
