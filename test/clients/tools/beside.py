"""What the tests of tools share: servers of their own, and two databases of which one
has heap tables and the other inplace tables.

Environment: PGBIN, the server's programs; TOOLS_DIR, a directory that nobody else
uses.  Output: a line for each check, the last is "N passed, N failed".
"""
import os
import random
import re
import subprocess
import sys
import threading
import time
import traceback

import psycopg

METHODS = ["heap", "inplace"]
BIN = os.environ["PGBIN"]
DIR = os.environ["TOOLS_DIR"]
# Nothing here is judged by time; this is when something does not come at all.
PATIENCE = int(os.environ.get("TOOLS_PATIENCE", 300))

results = []


def check(what, got, want=True):
    """One result.  What differs is shown where it begins to."""
    results.append(got == want)
    if got == want:
        print("ok   " + what, flush=True)
        return
    g, w = repr(got), repr(want)
    at = next((i for i, (a, b) in enumerate(zip(g, w)) if a != b), min(len(g), len(w)))
    at = max(at - 100, 0)
    print(f"FAIL {what}: {g[at:at + 300]}, not {w[at:at + 300]}", flush=True)


def same(what, f):
    """f(method) must return the same for both, and something to compare."""
    got = {m: f(m) for m in METHODS}
    check(what, got["inplace"], got["heap"])
    if not got["heap"]:
        check(f"{what}: something to compare", got["heap"], "rows")


def wait_until(what, f, failed=lambda: False):
    """Until f() is true; a failure if that never comes, or if failed() is."""
    end = time.monotonic() + PATIENCE
    while not f():
        if time.monotonic() > end or failed():
            check(what, False)
            return False
        time.sleep(0.1)
    return True


def run(*command, env=None, ok=(0,)):
    """A program: its output.  It must end with one of these statuses."""
    p = subprocess.run([str(c) for c in command], env=dict(os.environ, **(env or {})), stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if p.returncode not in ok:
        print(p.stdout[-3000:], file=sys.stderr)
        raise RuntimeError(f"status {p.returncode} of {' '.join(str(c) for c in command)}: {p.stdout[-500:]}")
    return p.stdout


class Server:
    """A cluster in TOOLS_DIR, which is started."""
    count = 0

    def __init__(self, name, preload="inplace", conf="", data=None):
        self.name, self.port = name, 5432
        self.data, self.log = data or f"{DIR}/{name}", f"{DIR}/{name}.log"
        # (the name of a socket has to be short)
        self.socket = f"{DIR}/s{Server.count}"
        Server.count += 1
        os.mkdir(self.socket)
        if not data:
            run(f"{BIN}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-N", "-k", "--encoding=UTF8", "--locale=C")
            self.configure(f"""
                shared_preload_libraries = '{preload}'
                listen_addresses = ''
                port = {self.port}
                fsync = off
                max_connections = 60
                max_worker_processes = 40
                max_wal_senders = 20
                max_replication_slots = 30
                max_prepared_transactions = 20
                shared_buffers = '32MB'
                autovacuum_naptime = '1s'
                log_line_prefix = '%m [%p] %b %q%a %d %e '
                restart_after_crash = off
                {conf}""")
        self.configure(f"unix_socket_directories = '{self.socket}'")
        self.start()

    def configure(self, text):
        with open(f"{self.data}/postgresql.conf", "a") as f:
            f.write("".join(line.strip() + "\n" for line in text.splitlines()))

    def ctl(self, *args):
        return run(f"{BIN}/pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", PATIENCE, "-s", *args)

    def start(self):
        self.ctl("start")

    def stop(self, mode="fast"):
        self.ctl("-m", mode, "stop")

    def crash(self):
        self.stop("immediate")
        self.start()

    def restart(self):
        self.stop()
        self.start()

    def connect(self, db, **options):
        return psycopg.connect(host=self.socket, port=self.port, user="postgres", dbname=db, autocommit=True, **options)

    def sql(self, db, *statements):
        """The rows of the last statement."""
        with self.connect(db) as c:
            return sql(c, *statements)

    def allow_plugins(self, *names):
        """Output plugins of others, which late minor releases want to be told of."""
        if self.sql("postgres", "SELECT 1 FROM pg_settings WHERE name = 'output_plugin_libraries'"):
            self.sql("postgres", f"ALTER SYSTEM SET output_plugin_libraries = {', '.join(('pgoutput', 'test_decoding') + names)}",
                     "SELECT pg_reload_conf()")

    def env(self, **more):
        return dict(PGHOST=self.socket, PGPORT=str(self.port), PGUSER="postgres", **more)

    def databases(self, prefix="", *extensions):
        """One for each method, whose tables are of that method."""
        for m in METHODS:
            self.sql("postgres", f"CREATE DATABASE {prefix}{m}")
            self.sql(prefix + m, "CREATE EXTENSION inplace",
                     f"ALTER DATABASE {prefix}{m} SET default_table_access_method = {m}")
            self.sql(prefix + m, *(f"CREATE EXTENSION {e}" for e in extensions))

    def end(self, *dbs):
        """Stops it; inplace.check of these databases' tables has no finding, nor the log."""
        for db in dbs:
            check_tables(self, db)
        self.stop()
        with open(self.log, errors="replace") as f:
            bad = [line for line in f if re.search(r"TRAP:|PANIC: |terminated by signal|WARNING: .* leak|not freed", line)]
        check(f"log of server {self.name}", bad, [])


def sql(c, *statements):
    rows = []
    for s in statements:
        cur = c.execute(s)
        rows = cur.fetchall() if cur.description else []
    return rows


def one(c, statement):
    return sql(c, statement)[0][0]


def check_tables(server, db):
    """inplace.check finds nothing, and there are tables for it to look at."""
    with server.connect(db, options="-c client_min_messages=error") as c:
        n = one(c, "SELECT count(*) FROM inplace.stat_tables")
        found = sql(c, "SELECT c.relid::text, k.* FROM inplace.stat_tables c, inplace.check(c.relid) k LIMIT 5")
    check(f"inplace.check of {db}", (n > 0, found), (True, []))


def methods_of(c, where):
    """The access methods of relations, tables' and indexes'."""
    return [r[0] for r in sql(c, f"""
        SELECT DISTINCT a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
        WHERE c.relkind IN ('r', 'i', 'm') AND {where} ORDER BY 1""")]


class Background:
    """A function in a thread; result() raises what it raised."""

    def __init__(self, f, *args):
        self.value = self.error = None
        self.thread = threading.Thread(target=self._run, args=(f, args), daemon=True)
        self.thread.start()

    def _run(self, f, args):
        try:
            self.value = f(*args)
        except BaseException as e:
            self.error = e

    def result(self):
        self.thread.join(PATIENCE)
        if self.thread.is_alive():
            raise RuntimeError("a thread that does not end")
        if self.error:
            raise self.error
        return self.value


def both(f):
    """f(method) for both at once."""
    threads = [Background(f, m) for m in METHODS]
    return [t.result() for t in threads]


def main(f):
    """The end of every one of these tests."""
    if len(sys.argv) > 1:
        random.seed(int(sys.argv[1]))
    try:
        f()
    except BaseException as e:
        traceback.print_exc()
        print(f"FAIL (does not come to its end): {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}")
        results.append(False)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed", flush=True)
    # (threads that still wait for something are not waited for)
    sys.stdout.flush()
    os._exit(0 if all(results) and results else 1)
