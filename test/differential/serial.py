"""Is there a serial order that explains what a set of serializable
transactions has seen and left?  Looked for by playing orders on one session.
"""

import time


class Transaction:
    def __init__(self, session):
        self.session = session
        self.statements = []        # (SQL, outcome), the successful ones
        self.finished = None        # number of the step that committed it


def transactions(schedule, events):
    """The committed transactions of each session, in its order, or None if
    the schedule has statements that cannot be judged like this."""
    # The outcome of a step that had to wait comes with a later one.
    outcomes = {}
    pending = {}
    for n, ((i, sql), (_, done)) in enumerate(zip(schedule.steps, events[1:])):
        for j, outcome in done:
            if j == i and outcome[0] == "skipped":
                outcomes[n] = (outcome, n)
            elif outcome[0] == "waiting":
                pending[j] = n
            else:
                outcomes[pending.pop(j, n) if j != i or j in pending else n] = (outcome, n)
    committed = {}
    current = {}
    for n, (i, sql) in enumerate(schedule.steps):
        outcome, finished = outcomes.get(n, (("waiting",), None))
        word = sql.split(None, 1)[0]
        if word == "SET" and "CONSTRAINTS" not in sql or outcome[0] == "skipped":
            continue
        if word in ("VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "LOCK"):
            continue
        if word in ("TRUNCATE", "ALTER", "CREATE", "DROP", "PREPARE", "FETCH", "DECLARE"):
            return None
        if word == "BEGIN":
            current[i] = Transaction(i)
            continue
        if word == "COMMIT":
            done = current.pop(i, None)
            if done and outcome[0] == "ok" and outcome[1] == "COMMIT":
                done.finished = finished
                committed.setdefault(i, []).append(done)
            continue
        if word == "ROLLBACK" and not sql.startswith("ROLLBACK TO"):
            current.pop(i, None)
            continue
        if outcome[0] != "ok":
            continue
        if i in current:
            current[i].statements.append((sql, outcome))
        else:
            alone = Transaction(i)
            alone.statements.append((sql, outcome))
            alone.finished = finished
            committed.setdefault(i, []).append(alone)
    return committed


def serial_order(side, schedule, events, seconds=20):
    """True: found one.  False: there is none.  None: cannot tell."""
    committed = transactions(schedule, events)
    if committed is None:
        return None
    queues = [q for _, q in sorted(committed.items())]
    # the first kind of scan is enough
    wanted = tuple(f for f in events[-1][1][0][1] if f[0] == "seq")
    limit = time.monotonic() + seconds

    def play(order):
        """How many transactions of the order can be played with their results."""
        side.begin(schedule.setup)
        session = side.sessions[0]
        session.run("SET default_transaction_isolation = 'serializable'")
        for n, transaction in enumerate(order):
            session.run("BEGIN")
            for sql, outcome in transaction.statements:
                # plans may differ, answers may not
                if side._outcome(session.run(sql), True) != outcome:
                    session.run("ROLLBACK")
                    return n
            result = session.run("COMMIT")
            if result.error:
                return n
        return len(order)

    total = sum(len(q) for q in queues)

    def search(prefix, positions):
        if time.monotonic() > limit:
            raise TimeoutError
        if len(prefix) == total:
            play(prefix)
            found = tuple(f for f in side.finish(schedule.tables, False)[0][1] if f[0] == "seq")
            return found == wanted
        heads = [(q[p], n) for n, (q, p) in enumerate(zip(queues, positions)) if p < len(q)]
        # mostly it is the order in which they have ended
        for transaction, n in sorted(heads, key=lambda h: h[0].finished):
            order = prefix + [transaction]
            if play(order) == len(order):
                moved = list(positions)
                moved[n] += 1
                if search(order, moved):
                    return True
        return False

    try:
        return search([], [0] * len(queues))
    except TimeoutError:
        return None
