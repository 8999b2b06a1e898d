"""Asks one question in every way there is, under one snapshot."""

from table import COLUMNS, join_query, query

# How an answer is got.  A path that cannot be had costs the planner too much
# to be taken where another will do; nothing says that it is taken.
PATHS = {
    "seq": dict(seqscan="on"),
    "index": dict(indexscan="on"),
    "index-only": dict(indexscan="on", indexonlyscan="on"),
    "bitmap": dict(bitmapscan="on"),
    "parallel": dict(indexscan="on", indexonlyscan="on", parallel="on"),
    "parallel bitmap": dict(bitmapscan="on", parallel="on"),
}
SWITCHES = ("seqscan", "indexscan", "indexonlyscan", "bitmapscan")


class WrongAnswer(Exception):
    pass


def settings(path):
    """SET LOCAL of a path."""
    on = PATHS[path]
    parallel = "parallel" in on
    return "".join(f"SET LOCAL enable_{s} = {on.get(s, 'off')}; " for s in SWITCHES) + (
        f"SET LOCAL max_parallel_workers_per_gather = {2 if parallel else 0}; ")


PARALLEL_COSTS = ("-c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c min_parallel_table_scan_size=0 "
                  "-c min_parallel_index_scan_size=0 -c parallel_leader_participation=on")


class Comparison:
    """A statement list to send in a REPEATABLE READ transaction, and the verdict on its answer."""

    def __init__(self, r, spread, paths=None):
        self.joins = r.random() < 0.12
        self.order = None
        if self.joins:
            self.what = join_query(r)
            selects = [self.what] * 3
        else:
            keys, where, self.order = query(r, spread)
            columns = r.choice([keys, keys, ", ".join(COLUMNS)])
            order = f" ORDER BY {self.order}" if self.order else ""
            if self.order and "<->" in self.order:
                columns = f"{self.order} AS distance" + r.choice(["", ", p", ", id", ", p, pad"])
            elif self.order:
                first = self.order.split()[0]
                columns = ", ".join([first] + [c for c in columns.split(", ") if c != first])
            self.what = f"SELECT {columns} FROM t WHERE {where}{order}"
            if not self.order and r.random() < 0.1:
                self.what = f"SELECT count(*) FROM t WHERE {where}"
        paths = paths or ["index", r.choice(["index-only", "bitmap"]), r.choice(list(PATHS)[1:])]
        self.paths = ["seq"] + sorted(set(paths), key=list(PATHS).index)

    def sql(self):
        return " ".join(f"{settings(path)} SELECT {n}, q.* FROM ({self.what}) q;"
                        for n, path in enumerate(self.paths))

    def judge(self, rows, context):
        """Raises WrongAnswer if the ways differ."""
        answers = [[] for _ in self.paths]
        for row in rows:
            answers[int(row[0])].append(row[1:])
        expected = sorted(answers[0], key=null_key)
        for path, answer in zip(self.paths[1:], answers[1:]):
            if sorted(answer, key=null_key) != expected:
                missing, extra = difference(expected, sorted(answer, key=null_key))
                raise WrongAnswer(f"{context}: {self.what}\n  by {path}: {len(answer)} rows instead of "
                                  f"{len(expected)}\n  missing {missing[:5]}\n  extra {extra[:5]}")
            if self.order:
                check_order(self.order, answer, f"{context}: {self.what} by {path}")


def null_key(row):
    return tuple(("", v)[v is not None] or "" if v is None else v for v in row), tuple(v is None for v in row)


def difference(expected, answer):
    missing, extra = list(expected), []
    for row in answer:
        if row in missing:
            missing.remove(row)
        else:
            extra.append(row)
    return missing, extra


def key_value(column, text):
    """What a column's values are compared by, None for null."""
    if text is None or column in ("a", "pad", "s", "r"):
        return text
    if column == "ci":
        return text.lower()
    value = float(text)
    return (1, 0.0) if value != value else (0, value)       # NaN is the largest


def check_order(order, answer, context):
    """Are the first columns in order?"""
    words = order.split()
    descending = "DESC" in words
    nulls_first = "FIRST" in words or (descending and "LAST" not in words)
    last = None
    for n, row in enumerate(answer):
        key = key_value(words[0], row[0])
        if key is None:
            key = (0 if nulls_first else 2, 0)
        else:
            key = (1, Reverse(key) if descending else key)
        if last is not None and key < last:
            raise WrongAnswer(f"{context}: row {n} is out of order: {answer[max(0, n - 2):n + 2]}")
        last = key


class Reverse:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return other.value < self.value

    def __eq__(self, other):
        return other.value == self.value
