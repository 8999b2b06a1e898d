"""A server, reached by a connection string, and the databases that we make there.

A database is dropped, or used, only if it has the comment that we gave it when we
made it (or the user said --i-know): see database()."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from typing import Any

import psycopg2
from psycopg2.extensions import make_dsn, parse_dsn

MARK = "made by bench/run of inplace; may be dropped"

# What is recorded with each result: whatever changes how fast a server is.
SETTINGS = (
    "autovacuum_naptime", "autovacuum_vacuum_cost_delay", "bgwriter_lru_maxpages",
    "checkpoint_completion_target", "checkpoint_timeout", "debug_assertions", "fsync",
    "full_page_writes", "huge_pages", "io_method", "jit", "maintenance_work_mem",
    "max_parallel_maintenance_workers", "max_parallel_workers_per_gather", "max_wal_size",
    "shared_buffers", "shared_preload_libraries", "synchronous_commit", "wal_buffers",
    "wal_compression", "wal_consistency_checking", "wal_level", "work_mem", "data_checksums",
    "block_size",
)


def say(text: str) -> None:
    print(time.strftime("[%H:%M:%S] ") + text, file=sys.stderr, flush=True)


class Refused(Exception):
    """Something that must not be done, or cannot; the text says what."""


class Database:
    """A database and how to reach it; statements in transactions of their own."""

    def __init__(self, server: "Server", name: str, method: str):
        self.server = server
        self.name = name
        self.method = method

    def connect(self, autocommit: bool = True) -> Any:
        conn = psycopg2.connect(self.server.dsn_of(self.name))
        conn.autocommit = autocommit
        return conn

    def row(self, query: str, *args: Any) -> Any:
        """The first row, or None."""
        conn = self.connect()
        try:
            with conn.cursor() as cur:
                cur.execute(query, args or None)
                return cur.fetchone() if cur.description else None
        finally:
            conn.close()

    def value(self, query: str, *args: Any) -> Any:
        row = self.row(query, *args)
        return row[0] if row else None

    def rows(self, query: str, *args: Any) -> list[tuple]:
        conn = self.connect()
        try:
            with conn.cursor() as cur:
                cur.execute(query, args or None)
                return cur.fetchall()
        finally:
            conn.close()

    def run(self, *statements: str) -> None:
        """Runs statements one after the other in one session."""
        conn = self.connect()
        try:
            with conn.cursor() as cur:
                for s in statements:
                    cur.execute(s)
        finally:
            conn.close()

    def can_index(self, method: str) -> bool:
        """Can an index of the method be built?  (It may be there and refuse.)"""
        conn = self.connect(autocommit=False)
        try:
            with conn.cursor() as cur:
                cur.execute("CREATE TABLE probe (a int)")
                cur.execute(f'CREATE UNIQUE INDEX ON probe USING "{method}" (a)')
            return True
        except (psycopg2.errors.UndefinedObject, psycopg2.errors.FeatureNotSupported):
            return False
        finally:
            conn.rollback()
            conn.close()


class Server:
    def __init__(self, dsn: str, bindir: str | None, private: bool, i_know: bool, keep: bool):
        self.dsn = dsn
        self.keep = keep            # the databases of the last workload stay
        self.bindir = bindir
        self.private = private      # may its settings be changed?
        self.i_know = i_know
        self.made: set[str] = set()

    def dsn_of(self, database: str) -> str:
        return make_dsn(self.dsn, dbname=database, application_name="inplace_bench")

    @property
    def maintenance(self) -> Database:
        return Database(self, parse_dsn(self.dsn).get("dbname", "postgres"), "heap")

    # ------------------------------------------------------------- databases

    def database(self, name: str, method: str, settings: dict[str, str]) -> Database:
        """A fresh database whose tables are of the method."""
        self.drop(name)
        main = self.maintenance
        main.run(f'CREATE DATABASE "{name}" TEMPLATE template0')
        self.made.add(name)
        main.run(f"COMMENT ON DATABASE \"{name}\" IS '{MARK}'")
        db = Database(self, name, method)
        self._extension(db, method)
        main.run(f'ALTER DATABASE "{name}" SET default_table_access_method = \'{method}\'')
        for setting, value in settings.items():
            main.run(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'")
        if db.value("SHOW default_table_access_method") != method:
            raise Refused(f"default_table_access_method does not become '{method}'")
        return db

    def _extension(self, db: Database, method: str) -> None:
        """The method, where it is not built in: from the extension that it comes from in
        another database, as it was made there, or from the extension of its name."""
        exists = "SELECT count(*) FROM pg_am WHERE amname = %s AND amtype = 't'"
        if db.value(exists, method):
            return
        for other in (self.maintenance, Database(self, "template1", "heap")):
            row = other.row(
                "SELECT e.extname, a.amhandler::regproc::text FROM pg_am a"
                " LEFT JOIN pg_depend d ON d.classid = 'pg_am'::regclass AND d.objid = a.oid"
                " AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass"
                " LEFT JOIN pg_extension e ON e.oid = d.refobjid"
                " WHERE a.amname = %s AND a.amtype = 't'", method)
            if row is None:
                continue
            if row[0] is not None:
                db.run(f'CREATE EXTENSION "{row[0]}" CASCADE')
            elif db.value("SELECT to_regproc(%s) IS NULL", row[1]):
                raise Refused(f"table access method '{method}' is of no extension, and the new"
                              f" database has no function {row[1]} to make it of")
            else:
                db.run(f'CREATE ACCESS METHOD "{method}" TYPE TABLE HANDLER {row[1]}')
            return
        if not db.value("SELECT count(*) FROM pg_available_extensions WHERE name = %s", method):
            raise Refused(f"this server has no table access method '{method}', and no extension"
                          " of that name")
        db.run(f'CREATE EXTENSION "{method}"')
        if not db.value(exists, method):
            raise Refused(f"extension '{method}' has no table access method of its name")

    def may_drop(self, name: str) -> bool:
        """Is there such a database?  An error if it is not ours."""
        row = self.maintenance.row(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", name)
        if row is not None and row[0] != MARK and not self.i_know:
            raise Refused(f"database '{name}' exists and was not made by bench/run;"
                          " --i-know drops it all the same")
        return row is not None

    def drop(self, name: str) -> None:
        if self.may_drop(name):
            self.maintenance.run(f'DROP DATABASE "{name}" WITH (FORCE)')
        self.made.discard(name)

    def drop_made(self) -> None:
        for name in sorted(self.made):
            self.drop(name)

    # -------------------------------------------------------------- programs

    def command(self, program: str, *args: str) -> list[str]:
        return [os.path.join(self.bindir, program) if self.bindir else program, *args]

    def pgbench(self, db: Database, *args: str) -> subprocess.Popen:
        return subprocess.Popen(
            self.command("pgbench", *args, self.dsn_of(db.name)), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    # ----------------------------------------------------------------- facts

    def set_system(self, **settings: str | None) -> None:
        """ALTER SYSTEM, on a private server only; None resets."""
        if not self.private:
            raise Refused("settings are changed on a private server only")
        for name, value in settings.items():
            self.maintenance.run(f"ALTER SYSTEM RESET {name}" if value is None
                                 else f"ALTER SYSTEM SET {name} = '{value}'")
        self.maintenance.run("SELECT pg_reload_conf()")
        time.sleep(0.3)

    def version_num(self) -> int:
        return int(self.maintenance.value("SHOW server_version_num"))

    def facts(self) -> dict[str, Any]:
        main = self.maintenance
        return {
            "server": main.value("SELECT version()"),
            "inplace": main.value(
                "SELECT default_version FROM pg_available_extensions WHERE name = 'inplace'"),
            "commit": commit(),
            "private": self.private,
            "settings": dict(main.rows(
                "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY(%s)"
                " OR name LIKE 'inplace.%%' ORDER BY name", list(SETTINGS))),
            "machine": machine(),
            "time": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        }


def _first(path: str, key: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.startswith(key):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return None


def commit() -> str | None:
    """The commit of this checkout, with "-dirty" if there are changes; None without git."""
    try:
        return subprocess.run(
            ["git", "-C", os.path.dirname(__file__), "describe", "--always", "--dirty"],
            capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def machine() -> dict[str, Any]:
    """The machine that this runs on (and the server, if it is private).  No host name."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name") or platform.machine(),
        "cpus": os.cpu_count(),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 2),
    }
