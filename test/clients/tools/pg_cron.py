"""pg_cron: its own tables, made where inplace is the default, live through changes and a
crash; and its jobs do the same in databases of both methods.
"""
from beside import METHODS, Server, check, main, methods_of, same, sql, wait_until

# name, command; each runs once a minute
JOBS = [
    ("count", "UPDATE counter SET n = n + 1"),
    ("log", "INSERT INTO log SELECT g, 'x' FROM generate_series(1, 100) g"),
    ("purge", "DELETE FROM t WHERE id % 3 = 0"),
    ("change", "UPDATE t SET v = -id, w = repeat('y', 3000) WHERE id % 3 = 1"),
    ("two statements", "UPDATE two SET v = 1; UPDATE two SET v = v + 1"),
    ("procedure", "CALL in_batches()"),
    ("vacuum", "VACUUM (ANALYZE) many"),
    ("vacuum full", "VACUUM FULL other"),
    ("view", "REFRESH MATERIALIZED VIEW CONCURRENTLY view"),
    ("error", "UPDATE other SET v = 1 / (v - v)"),
]
ROWS = ["SELECT id, v, md5(w) FROM t ORDER BY id", "SELECT v FROM two", "SELECT id, v FROM batches ORDER BY id", "SELECT sum(v), count(*) FROM many",
        "SELECT id, v FROM other ORDER BY id", "SELECT * FROM view ORDER BY k"]

# What a run came to, if the server was not too busy to begin it.
ANSWERED = """(r.status = 'succeeded' OR r.status = 'failed' AND return_message !~ 'restarted|timeout|connection')"""


def tables(server, m):
    server.sql(m, "CREATE TABLE counter (n int)", "INSERT INTO counter VALUES (0)",
               "CREATE TABLE log (id int, w text)",
               "CREATE TABLE t (id int PRIMARY KEY, v int, w text)", "INSERT INTO t SELECT g, g, 'w' FROM generate_series(1, 300) g",
               "CREATE INDEX ON t (v)",
               "CREATE TABLE two (v int)", "INSERT INTO two VALUES (0)",
               "CREATE TABLE batches (id int PRIMARY KEY, v int)", "INSERT INTO batches SELECT g, 0 FROM generate_series(1, 100) g",
               """CREATE PROCEDURE in_batches() LANGUAGE plpgsql AS $$ BEGIN
                    FOR i IN 0 .. 9 LOOP UPDATE batches SET v = i WHERE id % 10 = i; COMMIT; END LOOP; END $$""",
               "CREATE TABLE many (id int, v int)", "INSERT INTO many SELECT g, g FROM generate_series(1, 1000) g", "DELETE FROM many WHERE id % 2 = 0",
               "CREATE TABLE other (id int, v int)", "INSERT INTO other SELECT g, g FROM generate_series(1, 100) g", "UPDATE other SET v = v + 1",
               "CREATE MATERIALIZED VIEW view AS SELECT id % 5 AS k, count(*) FROM other GROUP BY 1", "CREATE UNIQUE INDEX ON view (k)",
               "DELETE FROM other WHERE id > 50")


def test():
    server = Server("cron", "inplace,pg_cron", "cron.database_name = 'jobs'\ncron.log_min_messages = warning")
    server.configure(f"cron.host = '{server.socket}'")
    server.restart()
    server.sql("postgres", "CREATE DATABASE jobs")
    server.sql("jobs", "CREATE EXTENSION inplace", "ALTER DATABASE jobs SET default_table_access_method = inplace")
    server.sql("jobs", "CREATE EXTENSION pg_cron")
    server.databases()
    for m in METHODS:
        tables(server, m)
    schedule = lambda job, command, db, when: ("SELECT cron.schedule_in_database(%s, %s, %s, %s)", (job, when, command, db))
    with server.connect("jobs") as c:
        check("its tables are heap's", methods_of(c, "c.relnamespace = 'cron'::regnamespace AND c.relkind = 'r'"), ["heap"])
        # what it writes by heap's functions
        for n in range(20):
            c.execute(*schedule(f"never {n}", "SELECT 1", METHODS[n % 2], "0 0 1 1 *"))
        sql(c, *(f"SELECT cron.unschedule('never {n}')" for n in range(10)))
        sql(c, "SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname IN ('never 10', 'never 11')",
            "SELECT cron.alter_job(jobid, schedule := '1 1 1 1 *', command := 'SELECT 2') FROM cron.job WHERE jobname IN ('never 12', 'never 13')",
            "SELECT cron.alter_job(jobid, active := false) FROM cron.job WHERE jobname = 'never 14'")
        for m in METHODS:
            c.execute(*schedule(f"before the crash {m}", "SELECT 1", m, "* * * * *"))
        jobs = "SELECT jobid, schedule, command, database, username, active, jobname FROM cron.job ORDER BY 1"
        before = sql(c, jobs)
    check("jobs", [(j[6], j[1], j[2], j[5]) for j in before],
          [(f"never {n}", "1 1 1 1 *" if n < 14 else "0 0 1 1 *", "SELECT 2" if n < 14 else "SELECT 1", n != 14) for n in range(12, 20)]
          + [(f"before the crash {m}", "* * * * *", "SELECT 1", True) for m in METHODS])
    server.crash()
    launcher = lambda: server.sql("postgres", "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_cron launcher'")
    wait_until("the launcher is there after a crash", launcher)
    pid = launcher()
    check("jobs after a crash", server.sql("jobs", jobs), before)

    with server.connect("jobs") as c:
        for m in METHODS:
            for name, command in JOBS:
                c.execute(*schedule(f"{name} {m}", command, m, "* * * * *"))
    names = [f"{n} {m}" for n in [j[0] for j in JOBS] + ["before the crash"] for m in METHODS]
    ended = f"""SELECT count(DISTINCT jobid) FROM cron.job_run_details r JOIN cron.job j USING (jobid)
                WHERE schedule = '* * * * *' AND {ANSWERED}"""
    wait_until("all jobs have run", lambda: server.sql("jobs", ended)[0][0] == len(names))
    with server.connect("jobs") as c:
        # no more of them; and those that run still end
        sql(c, "SELECT cron.alter_job(jobid, active := false) FROM cron.job")
        wait_until("none runs any more", lambda: not sql(c, "SELECT 1 FROM cron.job_run_details WHERE status NOT IN ('succeeded', 'failed')"))
        answers = lambda m: sorted(set(sql(c, f"""
            SELECT replace(jobname, ' ' || database, ''), r.status, left(return_message, 60)
            FROM cron.job_run_details r JOIN cron.job j USING (jobid, database) WHERE database = '{m}' AND {ANSWERED}""")))
        same("what the runs of jobs say", answers)
        check("and which failed", [a[0] for a in answers("inplace") if a[1] != "succeeded"], ["error"])
        for m in METHODS:
            runs = c.execute("SELECT count(*) FROM cron.job_run_details r JOIN cron.job USING (jobid) WHERE r.status = 'succeeded' AND jobname = %s", (f"count {m}",)).fetchone()[0]
            check(f"a job's effects are as many as its runs, {m}", server.sql(m, "SELECT n FROM counter"), [(runs,)])
        sql(c, "SELECT cron.unschedule(jobid) FROM cron.job", "DELETE FROM cron.job_run_details")
        check("nothing is left", sql(c, jobs), [])
    for q in ROWS:
        same(f"{q}", lambda m: server.sql(m, q))
    check("one launcher all the time", launcher(), pid)
    server.end("inplace")


main(test)
