"""Tables and plots for docs/performance.md from the figures of benchmarks/gpu_all.py.

    python benchmarks/gpu_report.py [FOLDER]        FOLDER is gpu_figures by default

Prints tables in Markdown, and writes a plot beside each file of figures: `membound.svg`, `tensorcore.svg`. A bar is
the ratio of cutile to the best of the others; the line is at 1.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path

SIDES = ("cuda.tile", "cutile", "torch", "compile")
BAR, GAP, LABEL, SCALE = 14, 5, 290, 300  # height and distance of bars, width of names, width of the ratio 1, in pixels


def membound(figures: dict) -> list[str]:
    machine = ", ".join(f"{k} {v:.0f}" if isinstance(v, float) else f"{k} {v}" for k, v in figures["machine"].items())
    lines = [machine, "", f"| kernel | {' | '.join(SIDES)} | / cuda.tile | / best |", "|---" * 7 + "|"]
    for r in figures["rows"]:
        rates = [f"{r[s]:,.0f}" if s in r else "" for s in SIDES]
        ratios = [f"{r[k]:.2f}" if k in r else "" for k in ("cutile / cuda.tile", "cutile / best")]
        lines.append(f"| {' | '.join([r['case'], *rates, *ratios])} |")
    lines += ["", *(f"- {name}: geometric mean {v['geometric mean']:.3f} over {v['rows']} rows, least {v['least']:.3f}"
                    for name, v in figures["summary"].items())]
    return lines


def tensorcore(figures: dict) -> list[str]:
    lines = [figures["machine"], "", "| kernel | unit | cutile | cuda.tile | the library | / cuda.tile | / library |",
             "|---" * 7 + "|"]
    for r in figures["rows"]:
        rates, ratios = r["rates"], r["ratios"]
        official = [f"{rates['official']:.0f}", f"{ratios['official']:.2f}"] if "official" in ratios else ["", ""]
        lines.append(f"| {r['case']} | {r['unit']} | {rates['ours']:.0f} | {official[0]} | {rates[r['library']]:.0f} "
                     f"({r['library']}) | {official[1]} | {ratios['library']:.2f} |")
    means = (f"- {group}: geometric mean " + ", ".join(f"{v:.3f} of {k}" for k, v in values.items())
             for group, values in figures["means"].items())
    return [*lines, "", *means]


def plot(ratios: list[tuple[str, float]]) -> str:
    """An SVG of horizontal bars."""
    width, height = LABEL + int(SCALE * max(1.2, *(r for _, r in ratios))) + 60, (BAR + GAP) * len(ratios) + GAP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           f'font-size="11"><rect width="{width}" height="{height}" fill="white"/>']
    for k, (name, ratio) in enumerate(ratios):
        y = GAP + k * (BAR + GAP)
        fill = "#4a7ebb" if ratio >= 1 else "#c0504d" if ratio < 0.9 else "#a5a5a5"
        out += [f'<text x="{LABEL - 6}" y="{y + BAR - 3}" text-anchor="end">{escape(name)}</text>',
                f'<rect x="{LABEL}" y="{y}" width="{SCALE * ratio:.0f}" height="{BAR}" fill="{fill}"/>',
                f'<text x="{LABEL + SCALE * ratio + 4:.0f}" y="{y + BAR - 3}">{ratio:.2f}</text>']
    out.append(f'<line x1="{LABEL + SCALE}" y1="0" x2="{LABEL + SCALE}" y2="{height}" stroke="black"/></svg>')
    return "\n".join(out) + "\n"


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "gpu_figures")
    tables = {"membound": (membound, lambda r: r.get("cutile / best")),
              "tensorcore": (tensorcore, lambda r: r["ratios"].get("library"))}
    for name, (table, ratio_of) in tables.items():
        file = folder / f"{name}.json"
        if not file.is_file():
            print(f"there is no {file}", file=sys.stderr)
            continue
        figures = json.loads(file.read_text())
        print("\n".join(["", *table(figures)]))
        ratios = [(r["case"], ratio) for r in figures["rows"] if (ratio := ratio_of(r)) is not None]
        file.with_suffix(".svg").write_text(plot(ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
