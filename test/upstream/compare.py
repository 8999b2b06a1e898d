#!/usr/bin/env python3
"""Compares the output of PostgreSQL's own tests with what it should be.

Usage: compare.py RESULTS EXPECTED REVIEWED ACTUAL [HEAP HEAP_VERDICTS] <NAMES

For each NAME of a test on standard input RESULTS/NAME.out must match one of
EXPECTED/NAME.out, NAME_1.out, ...  REVIEWED/NAME.patch, which need not exist, is a
reviewed difference; if there are several possible outcomes the others are
NAME_1.patch and so on, as PostgreSQL does it with its expected files.

HEAP are the results of the same tests with heap on the same server, and
HEAP_VERDICTS what this program said of them: a test that differs here, and that
heap does not pass either, is compared with what heap printed.

The output is the same if every line is, white space aside (pg_regress compares
with diff -w too), except that the rows of one result may come in another
order if SQL leaves it open: the result is that of a SELECT, TABLE, WITH, INSERT,
UPDATE, DELETE, MERGE or VALUES statement which is seen in the output right before it
and has no ORDER BY anywhere.  Plans are never reordered.  To compare that way the rows of
such results are sorted in both outputs; nothing moves from one result to another.

What differs after that must be, line by line, the reviewed patch: a reason in
one or more lines that begin with '#', then the unified diff.  Line numbers are not
compared, lines and their order are.  A patch must be needed: a test whose
output is as expected does not pass if it has only patches (so that no patch
outlives its cause), unless one of these is marked '# sometimes: REASON'.

Prints for each test same, order or patch; or differs (the diff is then in
ACTUAL/NAME.actual) or obsolete, and the exit status is 1 if there are such.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

RULE = re.compile(r"^-+(\+-+)*$")
COUNT = re.compile(r"^\(\d+ rows?\)$")
OPEN_ORDER = re.compile(r"^(select|table|with|insert|update|delete|merge|values)\b", re.I)
MESSAGE = re.compile(r"^(ERROR|DETAIL|HINT|NOTICE|WARNING|INFO|CONTEXT|LINE \d+|QUERY):|^ *\^$|^\\")
STEP = re.compile(r"^step \w+: ?", re.I)


def read(name):
    with open(name, encoding="utf-8", errors="surrogateescape") as f:
        return [line.rstrip("\n") for line in f]


def statement_before(lines, header):
    """The statement whose result has its first line at this index, or ''."""
    text = []
    i = header - 1
    while i >= 0 and not COUNT.match(lines[i]):
        line = re.sub(r"--.*", "", lines[i])
        # The end of the statement before, or what it printed.
        if text and (line.rstrip().endswith(";") or MESSAGE.match(line)):
            break
        step = STEP.match(line)
        text.append(line[step.end():] if step else line)
        if step:
            break
        i -= 1
    return " ".join(reversed(text)).strip()


def rows_of(lines):
    """Groups the lines of rows whose values have line breaks ('+' at the end)."""
    rows = []
    whole = True
    for line in lines:
        if whole:
            rows.append([line])
        else:
            rows[-1].append(line)
        whole = not line.endswith("+")
    return rows


def canonical(lines):
    """Without white space differences, and rows sorted where order is open."""
    out = []
    i = 0
    while i < len(lines):
        out.append(lines[i])
        i += 1
        # lines[i - 1] is a header if a rule follows.
        if i >= len(lines) or not RULE.match(lines[i]):
            continue
        end = i + 1
        while end < len(lines) and not COUNT.match(lines[end]):
            # A result without a count (\pset footer off, QUIET): left alone.
            if RULE.match(lines[end]) or end - i > 20000:
                end = len(lines)
                break
            end += 1
        if end >= len(lines):
            continue
        statement = statement_before(lines, i - 1)
        rows = lines[i + 1:end]
        if (OPEN_ORDER.match(statement)
                and not re.search(r"order\s+by", statement, re.I)
                and lines[i - 1].strip() != "QUERY PLAN"):
            rows = [line for row in sorted(rows_of(rows)) for line in row]
        out.append(lines[i])
        out.extend(rows)
        i = end
    return [" ".join(line.split()) for line in out]


def diff(old, new):
    files = []
    for lines in (old, new):
        f = tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape")
        f.writelines(line + "\n" for line in lines)
        f.flush()
        files.append(f)
    out = subprocess.run(["diff", "-U2", files[0].name, files[1].name],
                         stdout=subprocess.PIPE, check=False).stdout
    lines = out.decode("utf-8", "surrogateescape").splitlines()[2:]
    return ["@@" if line.startswith("@@ ") else line for line in lines]


def variants(directory, name, suffix):
    base = os.path.join(glob.escape(directory), glob.escape(name))
    return sorted(glob.glob(base + suffix) + glob.glob(base + "_[0-9]" + suffix))


def read_patch(name):
    lines = read(name)
    reason = [line for line in lines if line.startswith("#")]
    body = lines[len(reason):]
    if not reason or not body:
        sys.exit("%s: a reason and a diff are needed" % name)
    return reason, body


def verdict(result, wanted, expected_files, patches):
    """same, order, patch, obsolete, or differs; and the smallest difference."""
    best = None
    for expected_file in expected_files:
        expected = read(expected_file)
        d = diff(canonical(expected), wanted)
        if not d:
            if patches and not any(r.startswith("# sometimes:") for p in patches for r in p[0]):
                return "obsolete", None
            strip = lambda lines: ["".join(line.split()) for line in lines]
            return "same" if strip(expected) == strip(result) else "order", None
        if any(d == body for _, body in patches):
            return "patch", None
        if best is None or len(d) < len(best):
            best = d
    return "differs", best


def main():
    results, expected, reviewed, actual = sys.argv[1:5]
    heap = sys.argv[5] if len(sys.argv) > 5 else None
    heap_failed = set()
    if heap:
        heap_failed = {line.split()[1] for line in read(sys.argv[6]) if line.startswith("differs ")}
    bad = False
    for name in sys.stdin.read().split():
        result_file = os.path.join(results, name + ".out")
        v, best = "differs", None
        if os.path.exists(result_file):
            result = read(result_file)
            wanted = canonical(result)
            patches = [read_patch(p) for p in variants(reviewed, name, ".patch")]
            v, best = verdict(result, wanted, variants(expected, name, ".out"), patches)
            if v == "differs" and name in heap_failed:
                printed = variants(heap, name, ".out")
                again, best_heap = verdict(result, wanted, printed, patches)
                # A patch for the expected output need not be one for heap's.
                v = "same" if again == "obsolete" else again
                best = best_heap or best
        if v == "differs":
            os.makedirs(actual, exist_ok=True)
            with open(os.path.join(actual, name + ".actual"), "w",
                      encoding="utf-8", errors="surrogateescape") as f:
                f.writelines(line + "\n" for line in best or ["(no output)"])
        bad = bad or v in ("differs", "obsolete")
        print(v, name, flush=True)
    sys.exit(1 if bad else 0)


main()
