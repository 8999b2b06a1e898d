"""Plays a schedule: sends each step to its session and finds out, without
guessing, whether it has been answered or waits for another session.

A state is settled when every session has either answered or waits (says
pg_blocking_pids) for sessions that are idle or settled waiters themselves.
Deadlocks are recognised here, as cycles of waiters, and resolved by
cancelling the session whose step closed the cycle: the server's own detector
would pick its victim by timing.
"""

import os
import random
import select
import signal
import time

from wire import Connection, ServerGone

HANG_SECONDS = 20


class Hang(Exception):
    """A session neither answers nor waits for one of ours."""


class Side:
    """One table access method's sessions, working in a schema of its own."""

    def __init__(self, args, database, method, schema, sessions):
        self.method = method
        self.schema = schema
        options = (f"-c search_path={self.schema} "
                   f"-c default_table_access_method={method} "
                   "-c client_min_messages=error -c jit=off "
                   "-c deadlock_timeout=1h -c statement_timeout=0")

        def connect():
            return Connection(args.host, args.port, args.user, database, options)
        self.control = connect()
        self.sessions = [connect() for _ in range(sessions)]
        self.pids = {s.pid: i for i, s in enumerate(self.sessions)}
        self.gid_prefix = f"{database}_{schema}"    # these names are the cluster's
        self.local = args.host.startswith("/")
        self.shuffle = False        # is each of those let go by a step to be the last one at times?

    def close(self):
        for connection in self.sessions + [self.control]:
            connection.close()

    def begin(self, setup):
        """A fresh schema and fresh sessions; what the setup statements say."""
        for session in self.sessions:
            session.send("DISCARD ALL")
        for session in self.sessions:
            session.wait()
        self.control.rows(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE; "
                          f"CREATE SCHEMA {self.schema}")
        return [self._outcome(self.control.run(sql), False) for sql in setup]

    def step(self, number, sql):
        """Returns [(session, outcome)]: this step's and those it has released."""
        session = self.sessions[number]
        if session.busy:
            return [(number, ("skipped",))]
        waiters = [i for i, s in enumerate(self.sessions) if s.busy]
        late = self._stop_one(waiters) if self.shuffle and len(waiters) > 1 else None
        try:
            session.send(sql.replace("@@", self.gid_prefix))
        finally:
            if late is not None:
                time.sleep(0.03)
                os.kill(late, signal.SIGCONT)
        done = self._settle(number, waiters)
        first = done.pop(number, ("waiting",))
        return [(number, first)] + sorted(done.items())

    def _stop_one(self, waiters):
        """Stops one of the waiting backends, which sleep and so hold nothing that everybody
        needs.  None if it is on another machine, or not ours to stop."""
        pid = self.sessions[random.choice(waiters)].pid
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if not self.local or not f.read().startswith(b"postgres:"):
                    return None
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            return None
        return pid

    def release(self):
        """Let go whatever still waits."""
        for session in self.sessions:
            if session.busy:
                self.control.rows(f"SELECT pg_cancel_backend({session.pid})")
                session.wait()

    def waiting(self):
        return any(s.busy for s in self.sessions)

    def _settle(self, number, waiters):
        done = {}
        # The common case first: it is answered within a moment.
        if not waiters and self.sessions[number].wait(0.003):
            return {number: self._outcome(self.sessions[number].result, True)}
        deadline = time.monotonic() + HANG_SECONDS
        pause = 0.003 if number not in waiters else 0
        cancelled = None
        while True:
            busy = [i for i, s in enumerate(self.sessions) if s.busy]
            if busy:
                ready, _, _ = select.select([self.sessions[i] for i in busy], [], [], pause)
                pause = 0.001
                for session in ready:
                    session.wait(0)
            answered = [i for i in busy if not self.sessions[i].busy]
            for i in answered:
                if i == cancelled and self.sessions[i].result.error == "57014":
                    done[i] = ("deadlock",)
                else:
                    done[i] = self._outcome(self.sessions[i].result, True)
                if i == cancelled:
                    cancelled = None
            if answered:
                continue
            if not busy:
                return done
            graph = self._blockers(busy)
            if cancelled is None and self._settled(busy, graph):
                cycle = self._cycle(busy, graph)
                if not cycle:
                    return done
                cancelled = number if number in cycle else min(cycle)
                self.control.rows(f"SELECT pg_cancel_backend({self.sessions[cancelled].pid})")
            elif time.monotonic() > deadline:
                raise Hang(self._activity())

    def _blockers(self, busy):
        """{session: set of sessions it waits for}, -1 for a prepared transaction,
        None for anybody else."""
        pids = ", ".join(str(self.sessions[i].pid) for i in busy)
        graph = {}
        for pid, blockers in self.control.rows(
                f"SELECT p, pg_blocking_pids(p) FROM unnest(ARRAY[{pids}]) p"):
            graph[self.pids[int(pid)]] = {
                -1 if b == "0" else self.pids.get(int(b))
                for b in blockers.strip("{}").split(",") if b}
        return graph

    def _settled(self, busy, graph):
        for i in busy:
            if not graph[i] or None in graph[i]:
                return False
        # Nobody has answered while we asked?
        ready, _, _ = select.select([self.sessions[i] for i in busy], [], [], 0)
        return not ready

    @staticmethod
    def _cycle(busy, graph):
        for start in busy:
            reached = _reach(graph, start)
            if start in reached:
                return {j for j in reached if start in _reach(graph, j)}
        return None

    def _outcome(self, result, sort):
        if result.error:
            message = (result.message or "").replace(self.gid_prefix, "@@").replace(self.schema, "@")
            if result.error == "40001":
                # a row updated, then deleted: either may be what is told
                message = message.replace("concurrent delete", "concurrent update")
            return ("error", result.error, message)
        rows = result.rows
        if sort and not (result.tags and result.tags[-1].startswith("FETCH")):
            rows = sorted(rows, key=lambda row: tuple(("", v)[v is not None] for v in row))
        return ("ok", " ".join(result.tags), tuple(rows))

    def _activity(self):
        rows = self.control.rows(
            "SELECT pid, state, wait_event_type, wait_event, pg_blocking_pids(pid), query "
            "FROM pg_stat_activity WHERE backend_type = 'client backend' AND state <> 'idle'")
        return "\n".join(" | ".join(str(v) for v in row) for row in rows)

    def finish(self, tables, vacuum):
        """What the schedule has left, seen in every way there is."""
        found = [("contents", self._contents(tables))]
        if vacuum:
            for table in tables:
                found.append((f"VACUUM {table}", self._outcome(self.control.run(f"VACUUM {table}"), False)))
            found.append(("contents after VACUUM", self._contents(tables)))
        return found

    def _contents(self, tables):
        found = []
        control = self.control
        modes = {
            "seq": "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off",
            "index": "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_bitmapscan = off; "
                     "SET enable_hashjoin = off; SET enable_mergejoin = off",
            "bitmap": "SET enable_indexscan = off; SET enable_bitmapscan = on; SET enable_seqscan = off",
        }
        columns = control.rows(
            "SELECT attname FROM pg_attribute a JOIN pg_opclass o ON o.opcintype = a.atttypid "
            "AND o.opcdefault AND o.opcmethod = 403 "
            f"WHERE attrelid = to_regclass('{self.schema}.t') AND attnum > 0 AND NOT attisdropped ORDER BY attnum")
        for mode, setting in modes.items():
            control.rows(setting)
            for table in tables:
                if mode == "seq":
                    result = control.run(f"SELECT x::text FROM {table} x")
                else:
                    result = control.run(f"SELECT count(*) FROM {table}")
                found.append((mode, table, self._outcome(result, True)))
            if mode == "seq":
                continue
            for (column,) in columns:
                result = control.run(f'SELECT x.id, count(*) FROM t x JOIN t y ON x."{column}" = y."{column}" GROUP BY 1')
                found.append((mode, column, self._outcome(result, True)))
        control.rows("RESET ALL")
        return tuple(found)

    def check(self):
        """Findings of inplace.check about our tables; empty on heap."""
        if self.method != "inplace":
            return []
        return self.control.rows(
            "SELECT c.oid::regclass, f.* FROM pg_class c, LATERAL inplace.check(c.oid::regclass) f "
            f"WHERE c.relnamespace = '{self.schema}'::regnamespace AND c.relkind IN ('r', 'm') "
            "AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'inplace')")


def _reach(graph, start):
    reached = set()
    todo = [start]
    while todo:
        for j in graph.get(todo.pop(), ()):
            if j not in reached:
                reached.add(j)
                todo.append(j)
    return reached


__all__ = ["Side", "Hang", "ServerGone"]
