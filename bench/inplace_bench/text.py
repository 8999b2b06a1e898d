"""The results as text: in the terminal, and as a table in Markdown."""

from __future__ import annotations

import textwrap
from typing import Any

MAIN = {"tps", "seconds", "wal_total_per_tx", "table_growth", "index_growth", "undo_peak", "loop"}


def number(v: float | None) -> str:
    if v is None:
        return "-"
    if v == int(v) and abs(v) < 1e15:
        return f"{int(v)}"
    return f"{v:.0f}" if abs(v) >= 1000 else f"{v:.3g}" if abs(v) < 100 else f"{v:.1f}"


def _spread(s: dict[str, Any] | None) -> str:
    if s is None:
        return "-"
    if s["min"] == s["max"]:
        return number(s["median"])
    return f"{number(s['median'])} ({number(s['min'])}..{number(s['max'])})"


def _target(result: dict[str, Any], metric: str) -> str:
    got = [f"{t['text']} {'unknown' if t['met'] is None else 'met' if t['met'] else 'NOT MET'}"
           for t in result["targets"] if t["metric"] == metric]
    return ", ".join(got)


def rows(result: dict[str, Any]) -> list[list[str]]:
    """[measure, value of each variant..., ratio, better, target]"""
    got = []
    for s in result["summary"]:
        unit = f", {s['unit']}" if s["unit"] else ""
        got.append([s["label"] + unit, *[_spread(s["values"].get(v)) for v in result["variants"]],
                    "-" if s["ratio"] is None else f"{s['ratio']:.2f}",
                    s["better"] or "", _target(result, s["metric"])])
    return got


def terminal(document: dict[str, Any]) -> str:
    lines = []
    for name, result in document["workloads"].items():
        head = [name, *result["variants"], f"inplace/{document['against']}", "better", "target"]
        table = [head, *rows(result)]
        width = [max(len(r[i]) for r in table) for i in range(len(head))]
        lines.append("")
        for i, r in enumerate(table):
            lines.append("  ".join([r[0].ljust(width[0]), *[c.rjust(w) for c, w in
                                    zip(r[1:-2], width[1:-2])], r[-2].ljust(width[-2]), r[-1]]).rstrip())
            if i == 0:
                lines.append("-" * len(lines[-1]))
        if not result["answers_equal"]:
            lines.append("THE ANSWERS DIFFER")
    return "\n".join(lines)


def how(document: dict[str, Any]) -> str:
    f, p = document["facts"], document["params"]
    m = f["machine"]
    return (f"{f['server'].split(' on ')[0]}; {m['cpu']}, {m['cpus']} CPUs, {m['memory']}, {m['kernel']}; "
            f"scale {p['scale']}, {p['clients']} clients, {p['rounds']} interleaved rounds of "
            f"{p['seconds']} s; synchronous_commit {f['settings'].get('synchronous_commit')}, "
            f"shared_buffers {f['settings'].get('shared_buffers')}; {f['time']}; medians (min..max).")


def _ratios(result: dict[str, Any], metric: str, other: str) -> list[str]:
    """The least and the greatest ratio of two rounds that followed each other."""
    ours, theirs = (result["rounds"].get(v, []) for v in ("inplace", other))
    got = []
    for a, b in zip(ours, theirs):
        a, b = a["metrics"].get(metric), b["metrics"].get(metric)
        if a is None or b is None or (not b and a):
            return ["", ""]
        got.append(a / b if b else 1.0)
    return [f"{min(got):.2f}", f"{max(got):.2f}"] if len(got) > 1 else ["", ""]


def missed(document: dict[str, Any]) -> list[str]:
    """The targets that were missed, a row each, and how many there are."""
    lines, n = [], 0
    for name, result in document["workloads"].items():
        labels = {s["metric"]: s["label"] + (f", {s['unit']}" if s["unit"] else "") for s in result["summary"]}
        n += len(result["targets"])
        for t in result["targets"]:
            if t["met"] is False:
                spread = _ratios(result, t["metric"], document["against"]) if t["text"].endswith(" x") else ["", ""]
                cells = [f"`{name}`", labels[t["metric"]], t["text"], f"{t['value']:.2f}", *spread]
                lines.append("| " + " | ".join(cells) + " |")
    head = [f"Of {n} targets {len(lines)} are missed:" if lines else f"All {n} targets are met.", ""]
    if lines:
        head += ["| workload | what | target | reached | least | most |",
                 "| --- | --- | --- | ---: | ---: | ---: |"]
    return [*head, *lines, ""] if lines else head


def markdown(document: dict[str, Any], everything: bool = False) -> str:
    """As documents have it: no line over 120 columns, one number a cell without parentheses, what
    is no figure below the table.  Targets that are missed come first."""
    other = document["against"]
    published = []
    facts = how(document).replace("(min..max).", "of the rounds. Least and most are the ratio in a single round.")
    lines = [*textwrap.wrap(facts, 120, break_on_hyphens=False), "", *missed(document), "All figures:", "",
             f"| workload | what | {other} | inplace | ratio | least | most | target | met |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |"]
    for name, result in document["workloads"].items():
        with_target = {t["metric"] for t in result["targets"]}
        first = True
        for s in result["summary"]:
            if not everything and s["metric"] not in MAIN | with_target:
                continue
            target = [t for t in result["targets"] if t["metric"] == s["metric"]]
            cells = [f"`{name}`" if first else "", s["label"] + (f", {s['unit']}" if s["unit"] else ""),
                     *[number((s["values"].get(v) or {}).get("median")) for v in (other, "inplace")],
                     "" if s["ratio"] is None else f"{s['ratio']:.2f}",
                     *_ratios(result, s["metric"], other),
                     ", ".join(t["text"] for t in target),
                     ", ".join("?" if t["met"] is None else "yes" if t["met"] else "**no**"
                               for t in target)]
            lines.append("| " + " | ".join(cells) + " |")
            first = False
        if result["published"]:
            published += textwrap.wrap(f"- `{name}`: {result['published']}", 120, subsequent_indent="  ",
                                       break_on_hyphens=False)
    if published:
        lines += ["", "Published:", "", *published]
    return "\n".join(lines) + "\n"
