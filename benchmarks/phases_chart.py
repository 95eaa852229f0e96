"""The chart `results/phases.svg` of the results of `bench_phases.py`, made by `make readme`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
RESULTS = Path(__file__).resolve().parent / "results" / "phases.json"
# Phases in the order in which they begin. They are defined here because `bench_phases` loads Spark.
PHASES = (
    *("analyse", "optimise", "read plan", "find filters", "open tables", "builds", "decide", "rewrite"),
    *("optimise again", "plan", "to first task"),
)
MEDIAN = "median"
_EVERY = 8
_INCHES_PER_BAR, _INCHES_WIDE = 0.22, 9.0
_WIDE = 0.8


def recorded(results: Path = RESULTS) -> Sequence[Row]:
    """The recorded rows of every eighth query, and of medians, one for each way; empty if there is no recording."""
    rows = json.loads(results.read_text(encoding="utf-8"))["rows"] if results.exists() else ()
    names = list(dict.fromkeys(row["query"] for row in rows))
    medians = [name for name in names if name.startswith(MEDIAN)]
    shown = {*medians, *names[: len(names) - len(medians)][::_EVERY]}
    return [row for row in rows if row["query"] in shown]


def picture(rows: Sequence[Row]) -> str:
    """SVG with a bar for each query and way: the phases until the first task."""
    import matplotlib as mpl  # noqa: PLC0415 - reading the results needs no matplotlib
    from matplotlib.figure import Figure  # noqa: PLC0415

    from benchmarks.contest.charts import STYLE, svg  # noqa: PLC0415

    phases = list(dict.fromkeys(phase for row in rows for phase in PHASES if phase in row))
    colours = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_INCHES_WIDE, 1.0 + _INCHES_PER_BAR * len(rows)), layout="constrained")
        chart = figure.subplots()
        begins = [0.0] * len(rows)
        for phase in sorted(phases, key=PHASES.index):
            lengths = [row.get(phase, 0.0) for row in rows]
            chart.barh(range(len(rows)), lengths, _WIDE, begins, label=phase, color=colours[PHASES.index(phase)])
            begins = [begin + length for begin, length in zip(begins, lengths, strict=True)]
        chart.set_yticks(range(len(rows)), [f"{row['query']} {row['way']}" for row in rows])
        chart.invert_yaxis()
        chart.set_xlabel("milliseconds until the first task of the query itself")
        chart.grid(axis="x", alpha=0.3)
        figure.legend(loc="outside upper center", ncols=6, frameon=False)
        return svg(figure)


def main(results: Path = RESULTS) -> None:
    """Writes the chart if there is a recording."""
    if rows := recorded(results):
        results.with_suffix(".svg").write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
