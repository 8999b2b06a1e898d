"""What ./demo is made of: a server, pgbench on it, and samples of
sizes while it runs.  Needs psycopg2 and the pgbench of the server."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
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

    def init(self, db, method, scale):
        """A fresh database with the tables of the load."""
        self.new_database(db, method)
        for statement in TABLES:
            self.sql(db, statement.replace("$accounts", str(accounts(scale)))
                     .replace("$documents", str(documents(scale))))
        got = self.sql(db, "SELECT string_agg(DISTINCT amname, ' ') FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
                           " WHERE c.oid IN ('accounts'::regclass, 'documents'::regclass, 'counters'::regclass)")
        if got != method:
            raise RuntimeError(f"the tables are {got}, not {method}")

    def command(self, program, *args):
        return [f"{self.bindir}/{program}", "-h", self.sock, "-p", "5432", "-U", "postgres", *args]

    def run(self, program, *args):
        """Runs a client program to its end; its output."""
        done = subprocess.run(self.command(program, *args), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(args)} failed:\n{done.stdout[-2000:]}")
        return done.stdout


def accounts(scale):
    return 100000 * scale


def documents(scale):
    return 10000 * scale


TABLES = (
    "CREATE TABLE accounts (id int PRIMARY KEY, owner int, balance int, changes int, note text)",
    "INSERT INTO accounts SELECT i, i % 1000, 0, 0, 'account ' || i FROM generate_series(1, $accounts) i",
    "CREATE INDEX accounts_owner ON accounts (owner)",
    "CREATE INDEX accounts_balance ON accounts (balance)",
    "CREATE TABLE documents (id int PRIMARY KEY, body jsonb)",
    """INSERT INTO documents SELECT i, jsonb_build_object('name', 'document ' || i, 'visits', 1000,
           'lines', (SELECT jsonb_agg(md5(i || ' ' || j)) FROM generate_series(1, 25) j))
       FROM generate_series(1, $documents) i""",
    "CREATE TABLE counters (id int PRIMARY KEY, n bigint)",
    "INSERT INTO counters SELECT i, 0 FROM generate_series(1, 100) i",
)

# What the clients do, each as often as the others.
SCRIPTS = {
    "an indexed column": """\\set id random(1, :accounts)
\\set delta random(-5000, 5000)
UPDATE accounts SET balance = balance + :delta, changes = changes + 1 WHERE id = :id;
""",
    "a document": """\\set id random(1, :documents)
UPDATE documents SET body = jsonb_set(body, '{visits}', to_jsonb((body->>'visits')::int + 1)) WHERE id = :id;
""",
    "a hot row": """\\set id random(1, 100)
UPDATE counters SET n = n + 1 WHERE id = :id;
""",
}

SAMPLE = """SELECT sum(pg_relation_size(t)), sum(pg_indexes_size(t)), {undo},
                   pg_current_wal_lsn() - '0/0'::pg_lsn
            FROM unnest('{{accounts,documents,counters}}'::regclass[]) t"""


class Load:
    """One run of pgbench with a snapshot held from second snap_from to snap_to, and
    a sample of the sizes each second.

    samples: [(second, bytes of tables, of indexes, of undo, wal position)]
    tps:     [(second, transactions per second)]
    latency: {name in SCRIPTS: ms}
    read:    ms that reading the hot rows under the snapshot takes at its end, median of 5
    """

    def __init__(self, server, db, method, scale, seconds, clients, snap_from, snap_to):
        self.server, self.db, self.method = server, db, method
        self.scale, self.seconds, self.clients = scale, seconds, clients
        self.latency, self.read = {}, None
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
            query = "SELECT count(*), sum(n) FROM counters"
            cur.execute(query)
            first = cur.fetchone()
            self.snap_from = self.elapsed()
            self._stop.wait(max(0, self.snap_to - self.elapsed()))
            reads = []
            for _ in range(5):
                begin = time.monotonic()
                cur.execute(query)
                reads.append(1000 * (time.monotonic() - begin))
                if cur.fetchone() != first:
                    raise RuntimeError("the held snapshot changed")
            self.read = statistics.median(reads)
            conn.rollback()
            conn.close()
            self.snap_to = self.elapsed()
        except Exception as e:
            self._errors.append(e)

    def _pgbench(self, directory):
        """pgbench with the scripts, which are written to that directory."""
        files = []
        for number, text in enumerate(SCRIPTS.values()):
            path = os.path.join(directory, f"{number}.sql")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            files += ["-f", path]
        return subprocess.Popen(
            self.server.command("pgbench", "-n", "-M", "prepared", *files,
                                "-D", f"accounts={accounts(self.scale)}", "-D", f"documents={documents(self.scale)}",
                                "-c", str(self.clients), "-j", str(min(self.clients, 2)),
                                "-T", str(self.seconds), "-P", "1", self.db),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, also=None):
        """also: a function called about once a second with this object."""
        self.server.sql(self.db, "VACUUM ANALYZE")
        self.server.sql(self.db, "CHECKPOINT")
        with tempfile.TemporaryDirectory() as directory:
            self._load(directory, also)
        self._check()
        # One sample more: the state when the load has ended.
        conn = self.server.connect(self.db)
        with conn.cursor() as cur:
            cur.execute(self._sample_query())
            self.samples.append((self.elapsed(), *map(int, cur.fetchone())))
        conn.close()
        return self

    def _check(self):
        """Is each committed update there, and no other?"""
        n = self.server.sql(self.db, "SELECT (SELECT sum(changes) FROM accounts) + (SELECT sum(n) FROM counters)"
                                     " + (SELECT sum((body->>'visits')::int - 1000) FROM documents)")
        if n != self.transactions:
            raise RuntimeError(f"{self.transactions} updates, but {n} are in the tables")

    def _load(self, directory, also):
        self._start = time.monotonic()
        threads = [threading.Thread(target=self._sampler), threading.Thread(target=self._holder)]
        pgbench = self._pgbench(directory)
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
        self._by_script("".join(other))

    def _by_script(self, output):
        """What pgbench says of each script."""
        parts = re.split(r"^SQL script \d+: ", output, flags=re.M)[1:]
        for name, part in zip(SCRIPTS, parts, strict=True):
            self.latency[name] = float(re.search(r"^ - latency average = ([0-9.]+) ms", part, re.M).group(1))

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
