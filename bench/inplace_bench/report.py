"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
from typing import Any

from . import plots, text

STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
 color: #1a1a1a; background: #fff; } svg { max-width: 100%; height: auto; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } p.small { color: #555; font-size: .9rem; }"""


def _table(head: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"
    return ('<div class="wide"><table><thead>' + line(head, "th") + "</thead><tbody>"
            + "\n".join(line(r, "td") for r in rows) + "</tbody></table></div>")


def _workload(name: str, result: dict[str, Any], against: str) -> str:
    parts = [f'<h2 id="{name}">{html.escape(name)}</h2>', f"<p>{html.escape(result['line'])}</p>"]
    if result["published"]:
        parts.append(f'<p class="small">Published: {html.escape(result["published"])}</p>')
    parts.append(_table(["", *result["variants"], f"inplace/{against}", "better", "target"], text.rows(result)))
    parts += plots.of_workload(result)
    return "\n".join(parts)


def write(path: str, document: dict[str, Any]) -> None:
    against = document["against"]
    body = [f"<h1>inplace beside {html.escape(against)}</h1>",
            f'<p class="small">{html.escape(text.how(document))}</p>', plots.overview(document)]
    body += [_workload(n, r, against) for n, r in document["workloads"].items()]
    body.append("<h2>Server</h2><pre>" + html.escape(json.dumps(document["facts"], indent=1)) + "</pre>")
    with open(path, "w", encoding="utf-8") as f:
        f.write('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                f"<title>inplace beside {html.escape(against)}</title><style>{STYLE}</style></head><body>\n"
                + "\n".join(body) + "\n</body></html>\n")
