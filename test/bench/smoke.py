"""Usage: smoke.py BINDIR DSN

Runs all workloads of bench/run, tiny, and checks that the results are complete; prints
"ok|FAIL <tab> test" lines.  How fast anything was does not matter here."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import psycopg2

BINDIR, DSN = sys.argv[1:3]
BENCH = [sys.executable, "-m", "inplace_bench", "--bindir", BINDIR, "--dsn", DSN]
LATENCIES = ("latency_p50", "latency_p95", "latency_p99")
ALWAYS = ("wal_total", "pages_read", "pages_written", "cpu", "table_pages", "index_pages", "undo_pages")
failed = False


def report(name: str, good: bool, why: str = "") -> None:
    global failed
    failed = failed or not good
    print(f"{'ok' if good else 'FAIL'}\t{name}", flush=True)
    if not good:
        print(why, flush=True)


def bench(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run([*BENCH, *args], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def problems(result: dict) -> list[str]:
    got = [] if result["answers_equal"] else ["answers differ"]
    if set(result["variants"]) < {"heap", "inplace"}:
        got.append(f"variants {result['variants']}")
    for variant, rounds in result["rounds"].items():
        for r in rounds:
            m = r["metrics"]
            got += [f"{variant}: no {x}" for x in ALWAYS if x not in m]
            if "tps" not in m and "seconds" not in m:
                got.append(f"{variant}: neither tps nor seconds")
            got += [f"{variant}: no {x}" for x in LATENCIES if not m.get(x, 0) > 0]
            if "tps" in m and not ("wal_records_per_tx" in m and m["transactions"] > 0):
                got.append(f"{variant}: no WAL records or transactions")
            if not m.get("loop", 0) > 0:
                got.append(f"{variant}: nothing about the machine's speed")
            if len(r["series"].get("sizes", ())) < 2:
                got.append(f"{variant}: no sizes over time")
            if variant == "heap" and m.get("undo_peak"):
                got.append("heap has undo")
    got += [f"target {t['metric']} has no value" for t in result["targets"] if t["value"] is None and not t["ratio"]
            and t["metric"] != "early_unsets"]    # (without adaptive freezing)
    return got


def databases(conn: object) -> list[str]:
    with conn.cursor() as cur:
        cur.execute("SELECT datname FROM pg_database WHERE datname LIKE 'inplace_bench%' ORDER BY 1")
        return [r[0] for r in cur.fetchall()]


def main() -> None:
    conn = psycopg2.connect(DSN)
    conn.autocommit = True
    names = [line.split()[0] for line in bench("--list").stdout.splitlines()]
    report("list", len(names) >= 18)
    with tempfile.TemporaryDirectory() as tmp:
        done = bench("--scale", "1", "--unit", "2000", "--seconds", "1", "--rounds", "1", "--clients", "2",
                     "--json", f"{tmp}/r.json", "--report", tmp)
        report("exit status", done.returncode == 0, done.stdout[-3000:])
        if done.returncode != 0:
            return
        with open(f"{tmp}/r.json", encoding="utf-8") as f:
            document = json.load(f)
        if shutil.which("sysbench") is None:
            names.remove("sysbench")
        for name in names:
            found = problems(document["workloads"][name]) if name in document["workloads"] else ["left out"]
            report(name, not found, "\n".join(found))
        facts = document["facts"]
        report("facts", bool(facts["server"] and facts["settings"]["synchronous_commit"] and facts["machine"]["cpu"]))
        with open(f"{tmp}/report.html", encoding="utf-8") as f:
            page = f.read()
        report("report: nothing from elsewhere", not re.search(r"(src|href)\s*=\s*[\"']?https?:", page))
        sections = re.findall(r'<h2 id="([^"]*)">(.*?)(?=<h2|$)', page, re.S)
        plain = [n for n, text in sections if "<svg" not in text]
        report("report: plots of each workload", [n for n, _ in sections] == names and not plain, str(plain))
    report("databases are dropped", not databases(conn), str(databases(conn)))
    with conn.cursor() as cur:
        cur.execute("CREATE DATABASE inplace_bench_heap")
    done = bench("seqscan", "--scale", "1", "--rounds", "1")
    report("a database of others is refused",
           done.returncode == 1 and "--i-know" in done.stdout and databases(conn) == ["inplace_bench_heap"], done.stdout)
    with conn.cursor() as cur:
        cur.execute("ALTER DATABASE inplace_bench_heap RENAME TO inplace_bench_inplace")
    done = bench("seqscan", "--scale", "1", "--rounds", "1")
    report("... before anything has run", done.returncode == 1 and "round 1" not in done.stdout, done.stdout)
    with conn.cursor() as cur:
        cur.execute("DROP DATABASE inplace_bench_inplace")
    kept = bench("copy", "seqscan", "--scale", "1", "--unit", "1000", "--rounds", "1", "--keep")
    report("--keep", databases(conn) == ["inplace_bench_heap", "inplace_bench_inplace"], kept.stdout)
    bench("copy", "--scale", "1", "--unit", "1000", "--rounds", "1")
    report("... and what was kept is dropped by the next", not databases(conn), str(databases(conn)))
    # A part of --private would let it change any server's settings.
    for wrong in (["--priv"], ["--seconds", "x"], ["--scale", "0"], ["nosuch"], ["--json", "/proc/no/such"],
                  ["--against", "inplace"], ["--check-only", "--report", "/dev/null"]):
        done = bench(*wrong)
        report(f"refused: {' '.join(wrong)}", done.returncode == 2 and "round" not in done.stdout, done.stdout)
    with tempfile.TemporaryDirectory() as tmp:
        done = bench("--check-only", "--json", f"{tmp}/no/r.json")
        report("refused: --json in a directory that is not there, before anything",
               done.returncode == 2 and "no directory" in done.stdout and not os.listdir(tmp), done.stdout)
    done = bench("seqscan", "--against", "nosuch", "--rounds", "1")
    report("refused: --against nosuch", done.returncode == 1 and "'nosuch'" in done.stdout and not databases(conn), done.stdout)
    # a method that is of no extension, but another database has it
    with conn.cursor() as cur:
        cur.execute("CREATE ACCESS METHOD second_heap TYPE TABLE HANDLER heap_tableam_handler")
    done = bench("seqscan", "--against", "second_heap", "--scale", "1", "--unit", "1000", "--rounds", "1")
    report("--against a method without extension", done.returncode == 0 and "second_heap" in done.stdout, done.stdout)


if __name__ == "__main__":
    main()
    sys.exit(1 if failed else 0)
