"""A second job queue, of another design: PgQueuer, with slots and heartbeats.

    workload.py              runs the workload and checks what came out
    workload.py worker       (one worker, started by the former)

Workers claim jobs with FOR UPDATE SKIP LOCKED, and a partial unique index on
slots bounds how many of a kind are picked at a time; they move a job between
partial indexes with each change of its status, and send notifications from a
trigger.  Every job must be done exactly once, those that fail must be kept,
and the jobs of a killed worker go to others once its heartbeats stop.
Database: the PG* environment.
"""
import asyncio
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import psycopg
from pgqueuer import PgQueuer
from pgqueuer.types import QueueExecutionMode

ADD, LIMITED, BROKEN, HANG = 400, 12, 20, 3


async def connect():
    return await psycopg.AsyncConnection.connect("", autocommit=True)


async def worker():
    db, side = await connect(), await connect()
    pgq = PgQueuer.from_psycopg_connection(db)

    async def record(what, job):
        # one row that all jobs update, in a transaction with the job's own
        async with side.transaction():
            await side.execute("INSERT INTO seen (what, n) VALUES (%s, %s)", (what, int(job.payload)))
            await side.execute("UPDATE total SET n = n + 1")

    busy = asyncio.Lock()       # (the side connection has one transaction at a time)

    @pgq.entrypoint("add")
    async def add(job):
        async with busy:
            await record("add", job)

    @pgq.entrypoint("limited", concurrency_limit=1)
    async def limited(job):
        async with busy:
            await record("begin", job)
        await asyncio.sleep(0.002)
        async with busy:
            await record("end", job)

    @pgq.entrypoint("broken", on_failure="hold")
    async def broken(job):
        async with busy:
            await record("broken", job)
        raise ValueError("as it should")

    @pgq.entrypoint("hang")
    async def hang(job):
        async with busy:
            await record("hang", job)
        if os.environ.get("HANG"):
            await asyncio.sleep(3600)

    for s in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(s, pgq.shutdown.set)
    await pgq.run(dequeue_timeout=timedelta(milliseconds=100), batch_size=5,
                  mode=QueueExecutionMode.continuous, heartbeat_timeout=timedelta(seconds=10),
                  log_aggregation_interval=timedelta(seconds=1))


def start(**env):
    return subprocess.Popen([sys.executable, __file__, "worker"], env=dict(os.environ, **env),
                            stdout=subprocess.DEVNULL)


checks = []


def check(what, got, want):
    checks.append(got == want)
    print(("ok   " if got == want else "FAIL ") + what + ("" if got == want else f": {got!r}, not {want!r}"))


def wait_for(db, query, want, seconds):
    for _ in range(seconds * 10):
        if db.execute(query).fetchone()[0] == want:
            break
        time.sleep(0.1)


async def main():
    db = psycopg.connect("", autocommit=True)
    one = lambda q: db.execute(q).fetchone()[0]
    acon = await connect()
    pgq = PgQueuer.from_psycopg_connection(acon)
    queries = pgq.qm.queries
    await queries.install()
    await queries.upgrade()
    db.execute("CREATE TABLE seen (id bigserial PRIMARY KEY, what text, n int)")
    db.execute("CREATE TABLE total (n bigint)")
    db.execute("INSERT INTO total VALUES (0)")

    # A worker is killed with jobs in its hands.
    await queries.enqueue(["hang"] * HANG, [str(i).encode() for i in range(HANG)], [0] * HANG)
    victim = start(HANG="1")
    wait_for(db, "SELECT count(*) FROM seen WHERE what = 'hang'", HANG, 60)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    check("the killed worker's jobs are still picked", one("SELECT count(*) FROM pgqueuer WHERE status = 'picked'"), HANG)

    for what, n in (("add", ADD), ("limited", LIMITED), ("broken", BROKEN)):
        await queries.enqueue([what] * n, [str(i).encode() for i in range(n)], [i % 3 for i in range(n)])
    # What waits twice is refused.
    await queries.enqueue(["add"], [b"-1"], [0], dedupe_key=["only one"], execute_after=[timedelta(hours=1)])
    try:
        await queries.enqueue(["add"], [b"-2"], [0], dedupe_key=["only one"])
        check("a second job with the same key is refused", False, True)
    except Exception as e:
        check("a second job with the same key is refused", type(e).__name__, "DuplicateJobError")

    workers = [start() for _ in range(3)]
    wait_for(db, "SELECT count(*) FROM pgqueuer WHERE status <> 'failed'", 1, 150)
    for w in workers:
        w.send_signal(signal.SIGTERM)
    check("workers end well", [w.wait(timeout=60) for w in workers], [0] * 3)
    check("one job is left, for later", one("SELECT string_agg(dedupe_key, ',') FROM pgqueuer WHERE status <> 'failed'"), "only one")
    check("failed jobs are held", one("SELECT count(*) FROM pgqueuer WHERE status = 'failed'"), BROKEN)
    check("all others are logged as successful",
          one("SELECT count(DISTINCT job_id) FROM pgqueuer_log WHERE status = 'successful'"), ADD + LIMITED + HANG)
    for what, n, times in (("add", ADD, 1), ("begin", LIMITED, 1), ("end", LIMITED, 1), ("broken", BROKEN, 1), ("hang", HANG, 2)):
        check(f"{what}: each {times} times",
              one(f"SELECT count(*) FROM (SELECT n FROM seen WHERE what = '{what}' GROUP BY n HAVING count(*) = {times}) s"), n)
    check("nothing else was done", one("SELECT count(*) FROM seen"), ADD + 2 * LIMITED + BROKEN + 2 * HANG)
    check("one of the limited kind at a time", one("""
        SELECT count(*) FROM (SELECT what, n, lag(what) OVER w AS lw, lag(n) OVER w AS ln FROM seen
            WHERE what IN ('begin', 'end') WINDOW w AS (ORDER BY id)) s
        WHERE what = 'end' AND (lw <> 'begin' OR ln <> n)"""), 0)
    check("no update was lost", one("SELECT n FROM total"), one("SELECT count(*) FROM seen"))
    check("no tables but inplace ones", one("""
        SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND amname <> current_setting('default_table_access_method')"""), 0)
    if one("SHOW default_table_access_method") == "inplace":
        check("inplace.check finds nothing", one("""
            SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam, inplace.check(c.oid)
            WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND amname = 'inplace'"""), 0)
    await acon.close()
    print(f"{sum(checks)} passed, {len(checks) - sum(checks)} failed")
    sys.exit(not all(checks))


asyncio.run(worker() if sys.argv[1:2] == ["worker"] else main())
