#!/usr/bin/env python3
"""The load of ./demo and its report; see there.  Not run by hand."""

import argparse
import html
import io
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from demo_lib import METHODS, SCRIPTS, Load, Server, accounts, documents, human, say  # noqa: E402

# Okabe and Ito's palette: told apart by colour-blind readers too.
COLOUR = {"heap": "#D55E00", "inplace": "#0072B2", "undo": "#009E73"}


def progress(load):
    if len(load.tps) % 10 == 0:
        _, table, index, undo, _ = load.samples[-1]
        held = load.snap_from <= load.elapsed() < load.snap_to
        say(f"{load.method:8s} {load.tps[-1][0]:3.0f} s {load.tps[-1][1]:7.0f} TPS   "
            f"tables {human(table)}, indexes {human(index)}, undo {human(undo)}"
            + ("   (snapshot held)" if held else ""))


def mean(values):
    return sum(values) / len(values)


def means(rounds):
    """Column by column, of rows of equal length."""
    return [mean(column) for column in zip(*rounds)]


def table_rows(loads):
    """[(measure, method, before, during, after)], as text: means of the rounds; the ratio rows too."""
    columns = {m: [means(phases) for phases in zip(*([load.phase(a, b) for (_, a, b) in load.phases()]
                                                     for load in rounds))]
               for m, rounds in loads.items()}
    start = {m: means([load.samples[0] for load in rounds]) for m, rounds in loads.items()}
    rows = []

    def ratio(i):
        return ["-" if not columns["heap"][p][i] else
                f"{columns['inplace'][p][i] / columns['heap'][p][i]:.2f}" for p in range(3)]

    for i, (name, show) in enumerate((
            ("transactions/s", lambda v: f"{v:.0f}"), ("WAL bytes/transaction", lambda v: f"{v:.0f}"),
            ("size of the tables", human), ("size of the indexes", human), ("undo size", human))):
        for m in METHODS:
            if name == "undo size" and m == "heap":
                continue
            begin = "" if i < 2 else show(start[m][i - 1])
            rows.append((name, m, begin, *[show(columns[m][p][i]) for p in range(3)]))
        if name != "undo size":
            begin = "" if i < 2 else f"{start['inplace'][i - 1] / start['heap'][i - 1]:.2f}"
            rows.append((name, "inplace/heap", begin, *ratio(i)))
    return rows


def print_table(rows):
    line = "{:<22} {:<13} {:>11} {:>11} {:>11} {:>11}"
    print(line.format("", "", "at start", "before", "during", "after"))
    print(line.format("", "", "", "snapshot", "snapshot", "snapshot"))
    last = None
    for name, *cells in rows:
        print(line.format(name if name != last else "", *cells))
        last = name


def kind_rows(loads):
    """[(measure, heap, inplace, inplace/heap)], as text: times in ms, means of the rounds."""
    kinds = [(f"update of {name}, ms", lambda load, name=name: load.latency[name]) for name in SCRIPTS]
    kinds.append(("reading the hot rows under the snapshot, ms", lambda load: load.read))
    rows = []
    for label, ms in kinds:
        heap, inplace = (mean([ms(load) for load in loads[m]]) for m in METHODS)
        rows.append((label, f"{heap:.2f}", f"{inplace:.2f}", f"{inplace / heap:.2f}"))
    return rows


def print_kinds(rows):
    line = "{:<44} {:>10} {:>10} {:>13}"
    print(line.format("", *METHODS, "inplace/heap"))
    for row in rows:
        print(line.format(*row))


def growth(load):
    first, last = load.samples[0], load.samples[-1]
    return (last[1] + last[2]) - (first[1] + first[2])


def summary(loads):
    gh, gi = (mean([growth(load) for load in loads[m]]) for m in METHODS)
    peak = max(s[3] for load in loads["inplace"] for s in load.samples)
    left = max(load.samples[-1][3] for load in loads["inplace"])
    tps = {m: mean([load.total_tps for load in rounds]) for m, rounds in loads.items()}
    wal = {m: mean([(load.samples[-1][4] - load.samples[0][4]) / load.transactions for load in rounds])
           for m, rounds in loads.items()}
    each = " in each round" if len(loads["heap"]) > 1 else ""
    return [
        f"Tables and indexes grew by {human(gh)} with heap and by {human(gi)} with inplace{each}.",
        f"inplace's undo grew to {human(peak)} at most, and was {human(left)} at the end.",
        f"{tps['heap']:.0f} transactions/s with heap, {tps['inplace']:.0f} with inplace "
        f"({tps['inplace'] / tps['heap']:.2f} of heap's).",
        f"{wal['heap']:.0f} bytes of WAL per transaction with heap, {wal['inplace']:.0f} with "
        f"inplace ({wal['inplace'] / wal['heap']:.2f}), full page images included.",
    ]


def plots(loads):
    """The two plots, as SVG text."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.fonttype": "none", "font.size": 11, "font.family": "sans-serif",
                         "axes.spines.top": False, "axes.spines.right": False,
                         "axes.grid": True, "grid.alpha": 0.3})

    def finish(fig, ax, ylabel):
        snap = loads["heap"][0]
        ax.axvspan(snap.snap_from, snap.snap_to, color="#000000", alpha=0.07, lw=0)
        ax.text((snap.snap_from + snap.snap_to) / 2, 1.01, "snapshot held", ha="center",
                va="bottom", transform=ax.get_xaxis_transform(), fontsize=10)
        ax.set_xlabel("seconds since the load began")
        ax.set_ylabel(ylabel)
        ax.set_ylim(bottom=0)
        ax.set_xlim(0, max(load.samples[-1][0] for rounds in loads.values() for load in rounds))
        # Below the plot, where it hides nothing.
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False, ncols=5,
                  fontsize=10)
        out = io.StringIO()
        fig.savefig(out, format="svg", bbox_inches="tight")
        plt.close(fig)
        svg = out.getvalue()
        return svg[svg.index("<svg"):]

    def line(ax, rounds, points, label, **style):
        """A line for each round, named once."""
        for load in rounds:
            x, y = zip(*points(load))
            ax.plot(x, y, label=label if load is rounds[0] else None, **style)

    mb = 1024 * 1024
    fig, ax = plt.subplots(figsize=(9, 4.2))
    for m in METHODS:
        line(ax, loads[m], lambda load: [(s[0], s[1] / mb) for s in load.samples], f"{m}: tables",
             color=COLOUR[m], lw=2)
        line(ax, loads[m], lambda load: [(s[0], s[2] / mb) for s in load.samples], f"{m}: indexes",
             color=COLOUR[m], lw=1.5, ls="--")
    line(ax, loads["inplace"], lambda load: [(s[0], s[3] / mb) for s in load.samples], "inplace: undo",
         color=COLOUR["undo"], lw=2, ls="-.")
    sizes = finish(fig, ax, "size (MB)")

    fig, ax = plt.subplots(figsize=(9, 3.6))
    for m, style in zip(METHODS, ("--", "-")):
        line(ax, loads[m], lambda load: load.tps, m, color=COLOUR[m], lw=1.8, ls=style)
    return sizes, finish(fig, ax, "transactions per second")


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>inplace beside heap</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff; }}
h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.2rem; margin-top: 2rem; }}
svg {{ width: 100%; height: auto; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: right; padding: .25rem .6rem; border-bottom: 1px solid #ddd; }}
th:nth-child(1), td:nth-child(1), th:nth-child(2), td:nth-child(2) {{ text-align: left; }}
tr.ratio td {{ font-weight: 600; border-bottom-color: #888; }}
p.small {{ color: #555; font-size: .9rem; }}
</style>
</head>
<body>
<h1>Updates under a long-lived snapshot: inplace beside heap</h1>
<h2>Size</h2>
{sizes}
<h2>Transactions per second</h2>
{tps}
<h2>In short</h2>
<ul>
{summary}
</ul>
<h2>Each kind of update</h2>
<div class="wide">
<table>
<thead><tr><th>mean time</th><th>heap</th><th>inplace</th><th>inplace/heap</th></tr></thead>
<tbody>
{kinds}
</tbody>
</table>
</div>
<h2>Figures</h2>
<div class="wide">
<table>
<thead><tr><th>measure</th><th></th><th>at start</th><th>before the snapshot</th><th>while it is held</th><th>after it</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<p class="small">Sizes are those of all tables at the end of each span; rates are means over it. A line for each of two rounds.
WAL includes full page images.</p>
<p class="small">{how}</p>
</body>
</html>
"""


def write_report(path, loads, rows, kinds, how):
    sizes, tps = plots(loads)
    cells = "\n".join(
        "<tr{}>{}</tr>".format(' class="ratio"' if row[1] == "inplace/heap" else "",
                               "".join(f"<td>{html.escape(c)}</td>" for c in row))
        for row in rows)
    kinds = "\n".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in kinds)
    items = "\n".join(f"<li>{html.escape(line)}</li>" for line in summary(loads))
    with open(path, "w", encoding="utf-8") as f:
        f.write(PAGE.format(summary=items, sizes=sizes, tps=tps, kinds=kinds, rows=cells, how=html.escape(how)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bindir", required=True)
    p.add_argument("--sock", required=True)
    p.add_argument("--seconds", type=int, required=True)
    p.add_argument("--clients", type=int, required=True)
    p.add_argument("--scale", type=int, required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--json")
    a = p.parse_args()

    server = Server(a.bindir, a.sock)
    version = server.sql("postgres", "SHOW server_version")
    snap_from, snap_to = 0.2 * a.seconds, 0.75 * a.seconds
    loads = {m: [] for m in METHODS}
    # What changes slowly on the machine meets both.
    for number, m in enumerate(METHODS + METHODS[::-1]):
        say(f"{m}: filling the tables: {accounts(a.scale)} accounts, {documents(a.scale)} documents, 100 counters")
        server.init(m, m, a.scale)
        say(f"{m}: updates by {a.clients} clients for {a.seconds} s, "
            f"a snapshot held from {snap_from:.0f} s to {snap_to:.0f} s (run {number + 1} of 4)")
        loads[m].append(Load(server, m, m, a.scale, a.seconds, a.clients, snap_from, snap_to).run(progress))

    how = (f"PostgreSQL {version}, {time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} CPUs. "
           f"For each access method: {accounts(a.scale)} accounts, {documents(a.scale)} documents of jsonb and "
           f"100 counters. {a.clients} clients of pgbench for {a.seconds} s update the indexed balance of an account, "
           f"a number in a document, and a counter, each as often as the others, while "
           f"another session holds a REPEATABLE READ snapshot from {loads['heap'][0].snap_from:.0f} s "
           f"to {loads['heap'][0].snap_to:.0f} s. Two rounds: heap, inplace, inplace, heap; same server, "
           f"same settings. The figures are means of both.")
    rows = table_rows(loads)
    print()
    print_table(rows)
    print()
    kinds = kind_rows(loads)
    print_kinds(kinds)
    print()
    for line in summary(loads):
        print(line)
    write_report(a.out, loads, rows, kinds, how)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({m: [{"samples": load.samples, "tps": load.tps, "latency": load.latency, "read": load.read}
                           for load in rounds]
                       for m, rounds in loads.items()}, f)


if __name__ == "__main__":
    main()
