"""Plots, as SVG text.  Okabe and Ito's palette, and another line style and marker for
each side, so that colour is never the only difference."""

from __future__ import annotations

import io
from typing import Any

import matplotlib

from .model import METRICS

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
LINES = ("--", "-", "-.", ":")
MARKERS = ("s", "o", "^", "D")

plt.rcParams.update({"svg.fonttype": "none", "font.size": 11, "axes.grid": True, "grid.alpha": 0.3,
                     "axes.spines.top": False, "axes.spines.right": False})


def _svg(fig: Any) -> str:
    out = io.StringIO()
    fig.savefig(out, format="svg", bbox_inches="tight")
    plt.close(fig)
    svg = out.getvalue()
    return svg[svg.index("<svg"):]


def overview(document: dict[str, Any]) -> str:
    """How many times better inplace is, in each workload's rate or time."""
    found = []
    for name, result in document["workloads"].items():
        for s in result["summary"]:
            if s["metric"] in ("tps", "seconds") and s["ratio"]:
                found.append((name, s["ratio"] if s["metric"] == "tps" else 1 / s["ratio"]))
    if not found:
        return ""
    fig, ax = plt.subplots(figsize=(9, 0.35 * len(found) + 1.2))
    for y, (_, value) in enumerate(reversed(found)):
        good = value >= 1
        ax.plot([1, value], [y, y], color="#999999", lw=1.5, zorder=1)
        ax.plot(value, y, MARKERS[1] if good else MARKERS[0], color=COLOURS[1] if good else COLOURS[0])
    ax.axvline(1, color="#000000", lw=1)
    ax.set_yticks(range(len(found)), [n for n, _ in reversed(found)])
    ax.set_xlabel(f"speed relative to {document['against']} (circle: no slower, square: slower)")
    return _svg(fig)


def of_rounds(result: dict[str, Any]) -> list[str]:
    """Every round: times, latencies and WAL, a dot each; a plot for each unit."""
    groups = []
    for unit, what in (("s", "seconds"), ("ms", "milliseconds"), ("B", "bytes of WAL")):
        rows = [s for s in result["summary"] if s["unit"] == unit and s["metric"] not in ("cpu", "loop")]
        # What a workload measures itself would vanish beside the sums.
        rows = [s for s in rows if s["metric"] not in METRICS] or rows if unit == "B" else rows
        if rows:
            groups.append((what, rows))
    got = []
    for what, rows in groups:
        fig, ax = plt.subplots(figsize=(9, 0.3 * len(rows) * max(2, len(result["variants"])) + 1.2))
        for i, v in enumerate(result["variants"]):
            # The sides beside each other: points that are equal must both be seen.
            shift = 0.5 * (i + 0.5) / len(result["variants"]) - 0.25
            points = [(r["metrics"][s["metric"]], y + shift) for y, s in enumerate(rows)
                      for r in result["rounds"][v] if s["metric"] in r["metrics"]]
            ax.plot([x for x, _ in points], [y for _, y in points], linestyle="", color=COLOURS[i % 4],
                    marker=MARKERS[i % 4], label=v)
        labels = [s["label"] for s in rows]
        for i, label in enumerate(labels):
            if label.startswith("... "):
                labels[i] = f"{labels[i - 1].split(' in ')[0]} {label[4:]}" if i else label[4:]
        ax.set_yticks(range(len(rows)), labels)
        ax.set(xlabel=what, xlim=(0, None), ylim=(len(rows) - 0.5, -0.5))
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        got.append(_svg(fig))
    return got


def of_workload(result: dict[str, Any]) -> list[str]:
    """The last round: the rate, and the sizes, over time.  Then what all rounds gave."""
    got = []
    last = {v: result["rounds"][v][-1]["series"] for v in result["variants"]}
    if any(len(s.get("tps", [])) > 1 for s in last.values()):
        fig, ax = plt.subplots(figsize=(9, 3.2))
        for i, (v, s) in enumerate(last.items()):
            points = s.get("tps", [])
            ax.plot([t for t, _ in points], [y for _, y in points], LINES[i % 4], color=COLOURS[i % 4],
                    marker=MARKERS[i % 4], markevery=max(1, len(points) // 10), label=v)
        ax.set(xlabel="seconds", ylabel="transactions per second", ylim=(0, None))
        ax.legend(frameon=False)
        got.append(_svg(fig))
    if any(len(s.get("sizes", [])) > 2 for s in last.values()):
        fig, axes = plt.subplots(1, 3, figsize=(12, 3.2))
        for k, what in enumerate(("table", "index", "undo")):
            for i, (v, s) in enumerate(last.items()):
                points = s.get("sizes", [])
                axes[k].plot([p[0] for p in points], [p[k + 1] for p in points], LINES[i % 4],
                             color=COLOURS[i % 4], marker=MARKERS[i % 4],
                             markevery=max(1, len(points) // 8), label=v)
            axes[k].set(xlabel="seconds", title=f"{what} pages", ylim=(0, None))
        axes[0].legend(frameon=False)
        got.append(_svg(fig))
    return got + of_rounds(result)
