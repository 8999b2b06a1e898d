"""Medians, spread, ratios and targets; the JSON document.

{"format": 1, "facts": {...}, "params": {...}, "against": "heap",
 "workloads": {NAME: {"line", "published", "variants": [...],
     "rounds": {VARIANT: [{"metrics", "series", "detail", "answer"}]},
     "summary": [{"metric", "label", "unit", "better", "values": {VARIANT:
                 {"median", "min", "max", "rounds"}}, "ratio"}],
     "targets": [{"metric", "text", "value", "met"}], "answers_equal": true}}}"""

from __future__ import annotations

import statistics
from typing import Any

from .model import METRICS, Variant, Workload


def spread(values: list[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "rounds": len(values)}


def ratio(ours: float, theirs: float) -> float | None:
    if theirs:
        return ours / theirs
    return 1.0 if not ours else None


def summarize(w: Workload, against: str, variants: list[Variant],
              rounds: dict[str, list[dict]]) -> dict[str, Any]:
    labels = {**METRICS, **w.metrics}
    per_tx = any("transactions" in r["metrics"] for rs in rounds.values() for r in rs)
    summary, ratios = [], {}
    for name, (label, unit, better) in labels.items():
        if per_tx and name in ("wal_total", "wal_records", "wal_images"):
            continue
        values = {v: spread([r["metrics"][name] for r in rs])
                  for v, rs in rounds.items() if rs and all(name in r["metrics"] for r in rs)}
        if not values:
            continue
        r = None
        if "inplace" in values and against in values:
            r = ratio(values["inplace"]["median"], values[against]["median"])
        ratios[name] = r
        summary.append({"metric": name, "label": label, "unit": unit, "better": better,
                        "values": values, "ratio": r})
    medians = {s["metric"]: s["values"].get("inplace", {}).get("median") for s in summary}
    targets = []
    for t in w.targets:
        value = ratios.get(t.metric) if t.ratio else medians.get(t.metric)
        if t.than is not None:
            values = next((s["values"] for s in summary if s["metric"] == t.metric), {})
            value = (ratio(values["inplace"]["median"], values[t.than]["median"])
                     if t.than in values else None)
        targets.append({"metric": t.metric, "label": labels[t.metric][0], "text": t.text(),
                        "ratio": t.ratio, "value": value,
                        "met": None if value is None else t.met(value)})
    answers = [[r["answer"] for r in rs] for rs in rounds.values()]
    return {"line": w.line, "published": w.published, "variants": [v.name for v in variants],
            "rounds": rounds, "summary": summary, "targets": targets,
            "answers_equal": all(a == answers[0] for a in answers)}
