"""What ./demo is made of: a server, pgbench on it, and samples of
sizes while it runs.  Needs psycopg2 and the pgbench of the server."""

import re
import subprocess
import sys
import threading
import time

import psycopg2

METHODS = ("heap", "inplace")


def say(text):
    print(time.strftime("[%H:%M:%S] ") + text, file=sys.stderr, flush=True)


class Server:
    """A running private server, reached through its socket directory."""

    def __init__(self, bindir, sock):
        self.bindir = bindir
        self.sock = sock

    def connect(self, db="postgres", autocommit=True):
        conn = psycopg2.connect(host=self.sock, port=5432, user="postgres", dbname=db)
        conn.autocommit = autocommit
        return conn

    def sql(self, db, query, *args):
        """Runs one statement; its first column of its first row, or None."""
        conn = self.connect(db)
        try:
            with conn.cursor() as cur:
                cur.execute(query, args or None)
                return cur.fetchone()[0] if cur.description and cur.rowcount else None
        finally:
            conn.close()

    def new_database(self, db, method):
        """A fresh database whose tables are of the given access method."""
        self.sql("postgres", f'DROP DATABASE IF EXISTS "{db}"')
        self.sql("postgres", f'CREATE DATABASE "{db}"')
        if method != "heap":
            self.sql(db, f"CREATE EXTENSION IF NOT EXISTS {method}")
        self.sql("postgres",
                 f"ALTER DATABASE \"{db}\" SET default_table_access_method = '{method}'")

    def init(self, db, method, scale, fillfactor=100):
        """A fresh database with pgbench's tables."""
        self.new_database(db, method)
        self.run("pgbench", "-i", "-q", "-s", str(scale), "-F", str(fillfactor), db)
        got = self.sql(db, "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
                           " WHERE c.oid = 'pgbench_accounts'::regclass")
        if got != method:
            raise RuntimeError(f"pgbench_accounts is {got}, not {method}")

    def command(self, program, *args):
        return [f"{self.bindir}/{program}", "-h", self.sock, "-p", "5432", "-U", "postgres", *args]

    def run(self, program, *args):
        """Runs a client program to its end; its output."""
        done = subprocess.run(self.command(program, *args), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(args)} failed:\n{done.stdout[-2000:]}")
        return done.stdout

    def tps(self, db, *args, clients=8, seconds=10):
        """Transactions per second of one pgbench run."""
        out = self.run("pgbench", "-n", "-M", "prepared", "-c", str(clients),
                       "-j", str(min(clients, 2)), "-T", str(seconds), *args, db)
        if re.search(r"number of failed transactions: [1-9]|aborted", out):
            raise RuntimeError("transactions failed:\n" + out[-2000:])
        return float(re.search(r"^tps = ([0-9.]+)", out, re.M).group(1))


SAMPLE = """SELECT pg_relation_size('pgbench_accounts'),
                   pg_indexes_size('pgbench_accounts'), {undo},
                   pg_current_wal_lsn() - '0/0'::pg_lsn"""


class Load:
    """One run of 'pgbench -N' with a snapshot held from second snap_from to
    snap_to, and a sample of the sizes each second.

    samples: [(second, table bytes, index bytes, undo bytes, wal position)]
    tps:     [(second, transactions per second)]
    """

    def __init__(self, server, db, method, seconds, clients, snap_from, snap_to):
        self.server, self.db, self.method = server, db, method
        self.seconds, self.clients = seconds, clients
        self.snap_from, self.snap_to = snap_from, snap_to
        self.samples, self.tps = [], []
        self.total_tps = self.transactions = None
        self._start = None
        self._stop = threading.Event()
        self._errors = []

    def elapsed(self):
        return time.monotonic() - self._start

    def _sample_query(self):
        # heap has no undo of its own
        undo = "0::bigint" if self.method == "heap" else "inplace.undo_size()"
        return SAMPLE.format(undo=undo)

    def _sampler(self):
        try:
            conn = self.server.connect(self.db)
            cur = conn.cursor()
            query = self._sample_query()
            while not self._stop.is_set():
                cur.execute(query)
                self.samples.append((self.elapsed(), *map(int, cur.fetchone())))
                self._stop.wait(1 - self.elapsed() % 1)
            conn.close()
        except Exception as e:  # told in run(), a thread cannot raise
            self._errors.append(e)

    def _holder(self):
        try:
            if self._stop.wait(max(0, self.snap_from - self.elapsed())):
                return
            conn = self.server.connect(self.db, autocommit=False)
            conn.set_session(isolation_level="REPEATABLE READ")
            cur = conn.cursor()
            query = "SELECT count(*), sum(bbalance) FROM pgbench_branches"
            cur.execute(query)
            first = cur.fetchone()
            self.snap_from = self.elapsed()
            self._stop.wait(max(0, self.snap_to - self.elapsed()))
            cur.execute(query)
            if cur.fetchone() != first:
                raise RuntimeError("the held snapshot changed")
            conn.rollback()
            conn.close()
            self.snap_to = self.elapsed()
        except Exception as e:
            self._errors.append(e)

    def run(self, also=None):
        """also: a function called about once a second with this object."""
        self.server.sql(self.db, "VACUUM ANALYZE pgbench_accounts")
        self.server.sql(self.db, "CHECKPOINT")
        self._start = time.monotonic()
        threads = [threading.Thread(target=self._sampler), threading.Thread(target=self._holder)]
        pgbench = subprocess.Popen(
            self.server.command("pgbench", "-n", "-N", "-M", "prepared",
                                "-c", str(self.clients), "-j", str(min(self.clients, 2)),
                                "-T", str(self.seconds), "-P", "1", self.db),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for t in threads:
            t.start()
        other = []
        try:
            for line in pgbench.stdout:
                m = re.match(r"progress: ([0-9.]+) s, ([0-9.]+) tps", line)
                if m:
                    self.tps.append((float(m.group(1)), float(m.group(2))))
                    if also:
                        also(self)
                    continue
                other.append(line)
                m = re.match(r"tps = ([0-9.]+)", line)
                if m:
                    self.total_tps = float(m.group(1))
                m = re.match(r"number of transactions actually processed: ([0-9]+)", line)
                if m:
                    self.transactions = int(m.group(1))
            if pgbench.wait() != 0 or not self.total_tps:
                raise RuntimeError("pgbench failed:\n" + "".join(other[-20:]))
        finally:
            if pgbench.poll() is None:
                pgbench.terminate()
            self._stop.set()
            for t in threads:
                t.join()
        if self._errors:
            raise self._errors[0]
        # One sample more: the state when the load has ended.
        conn = self.server.connect(self.db)
        with conn.cursor() as cur:
            cur.execute(self._sample_query())
            self.samples.append((self.elapsed(), *map(int, cur.fetchone())))
        conn.close()
        return self

    def at(self, second):
        """The last sample not later than that second."""
        before = [s for s in self.samples if s[0] <= second + 0.05]
        return before[-1] if before else self.samples[0]

    def phases(self):
        """(name, from, to) before, during and after the snapshot."""
        end = self.samples[-1][0]
        return (("before", 0, self.snap_from), ("during", self.snap_from, self.snap_to),
                ("after", self.snap_to, end))

    def phase(self, begin, end):
        """Transactions per second, WAL bytes per transaction, and at its end the
        sizes of table, index and undo."""
        tps = [v for (t, v) in self.tps if begin < t - 0.5 <= end]
        mean = sum(tps) / len(tps) if tps else float("nan")
        a, b = self.at(begin), self.at(end)
        span = b[0] - a[0]
        wal = (b[4] - a[4]) / (mean * span) if tps and span > 0 and mean > 0 else float("nan")
        return mean, wal, b[1], b[2], b[3]


def human(n):
    n = float(n)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(n) < 1024 or unit == "GB":
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1024
    return None
