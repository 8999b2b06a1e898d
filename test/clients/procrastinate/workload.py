"""A job queue under load: several worker processes, one of which is killed.

    workload.py              runs the workload and checks what came out
    workload.py worker N     (one worker, started by the former)

Every job must be done exactly once by those who finish, retried as often as
it asks, never two of one lock at a time, and a killed worker's jobs go to the
others once they are told to be retried.  Database: the PG* environment.
"""
import asyncio
import os
import signal
import subprocess
import sys
import time

import procrastinate
import psycopg

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo="", min_size=1, max_size=8))


@app.task(name="add", queue="fast")
async def add(n):
    await record("add", n)


@app.task(name="flaky", queue="fast", pass_context=True, retry=procrastinate.RetryStrategy(max_attempts=3))
async def flaky(context, n):
    await record("flaky", n)
    if context.job.attempts < 2:
        raise ValueError("not yet")


@app.task(name="locked", queue="fast")
async def locked(n, key):
    await record(f"begin {key}", n)
    await asyncio.sleep(0.005)
    await record(f"end {key}", n)


@app.task(name="hang", queue="slow")
async def hang(n):
    await record("hang", n)
    if os.environ.get("HANG"):
        await asyncio.sleep(3600)


async def record(what, n):
    await app.connector.execute_query_async(
        "INSERT INTO seen (what, n) VALUES (%(what)s, %(n)s)", what=what, n=n)
    # a row that all jobs update
    await app.connector.execute_query_async("UPDATE total SET n = n + 1")


async def worker():
    queues = ["slow"] if os.environ.get("HANG") else ["fast", "slow"]
    async with app.open_async():
        await app.run_worker_async(queues=queues, concurrency=4, fetch_job_polling_interval=0.1)


def start(**env):
    return subprocess.Popen([sys.executable, __file__, "worker"], env=dict(os.environ, **env),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def drain(db, n):
    """Workers until nothing is left to be done, or for two minutes."""
    workers = [start() for _ in range(n)]
    for _ in range(1200):
        if not db.execute("SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo'"
                          " OR status = 'doing' AND task_name <> 'hang'").fetchone()[0]:
            break
        time.sleep(0.1)
    for w in workers:
        w.send_signal(signal.SIGTERM)
    return [w.wait(timeout=60) for w in workers]


checks = []


def check(what, got, want):
    checks.append(got == want)
    print(("ok   " if got == want else "FAIL ") + what + ("" if got == want else f": {got!r}, not {want!r}"))


async def main():
    db = psycopg.connect("", autocommit=True)
    one = lambda q: db.execute(q).fetchone()[0]
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        db.execute("CREATE TABLE seen (id bigserial PRIMARY KEY, what text, n int)")
        db.execute("CREATE TABLE total (n bigint)")
        db.execute("INSERT INTO total VALUES (0)")
        await add.batch_defer_async(*[{"n": i} for i in range(300)])
        await flaky.batch_defer_async(*[{"n": i} for i in range(40)])
        for i in range(60):
            await locked.configure(lock=f"key{i % 3}").defer_async(n=i, key=i % 3)
        await hang.batch_defer_async(*[{"n": i} for i in range(4)])

        # A worker dies with four jobs in its hands; nobody else takes these.
        victim = start(HANG="1")
        for _ in range(600):
            # (with nothing else done so far; total comes after seen)
            if one("SELECT count(*) FROM seen WHERE what = 'hang'") == one("SELECT n FROM total") == 4:
                break
            time.sleep(0.1)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        check("jobs of the killed worker are still marked as running",
              one("SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing'"), 4)
        check("workers end well", drain(db, 4), [0] * 4)
        check("jobs left", one("SELECT count(*) FROM procrastinate_jobs WHERE status NOT IN ('succeeded', 'doing')"), 0)
        # They are handed out again.
        stalled = [r[0] for r in db.execute("SELECT id FROM procrastinate_jobs WHERE status = 'doing'")]
        for job in stalled:
            await app.job_manager.retry_job_by_id_async(job, retry_at=procrastinate.utils.utcnow())
        check("worker ends well", drain(db, 1), [0])

    check("all jobs succeeded", one("SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"), 404)
    check("each job once", one("SELECT count(*) FROM (SELECT n FROM seen WHERE what = 'add' GROUP BY n HAVING count(*) = 1) s"), 300)
    check("flaky jobs three times", one("SELECT count(*) FROM (SELECT n FROM seen WHERE what = 'flaky' GROUP BY n HAVING count(*) = 3) s"), 40)
    check("killed jobs twice", one("SELECT count(*) FROM (SELECT n FROM seen WHERE what = 'hang' GROUP BY n HAVING count(*) = 2) s"), 4)
    check("no two jobs of a lock at a time", one("""
        SELECT count(*) FROM (SELECT what, n, lag(what) OVER w AS lw, lag(n) OVER w AS ln FROM seen
            WHERE what ~ '^(begin|end)' WINDOW w AS (PARTITION BY right(what, 1) ORDER BY id)) s
        WHERE what LIKE 'end%' AND (lw NOT LIKE 'begin%' OR ln <> n)"""), 0)
    check("locked jobs", one("SELECT count(*) FROM seen WHERE what LIKE 'end%'"), 60)
    check("no update was lost", one("SELECT n FROM total"), one("SELECT count(*) FROM seen"))
    check("no tables but inplace ones", one("""
        SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND amname <> current_setting('default_table_access_method')"""), 0)
    if one("SHOW default_table_access_method") == "inplace":
        check("inplace.check finds nothing", one("""
            SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam, inplace.check(c.oid)
            WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND amname = 'inplace'"""), 0)
    print(f"{sum(checks)} passed, {len(checks) - sum(checks)} failed")
    sys.exit(not all(checks))


asyncio.run(worker() if sys.argv[1:2] == ["worker"] else main())
