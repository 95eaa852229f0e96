"""Charts of planned against actual seconds: queries, savings and builds, one chart beside each recording of `model`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.model_error import AT_STAKE, LEAST_SAVING, PLACES, Pair, builds, queries, relative, savings

Row = Mapping[str, Any]
RESULTS = Path(__file__).resolve().parent / "results"
PREFIX = "model-"
_INCHES = (13.0, 4.6)
_COLOURS = {"driver": "#4393c3", "job": "#d6604d"}
_PLAIN = "#1b7837"
# Points farther from the line than this are named, in all but the panel of builds.
_FAR = 1.0
_LEAST_SECONDS = 1e-3


def recorded(results: Path) -> Sequence[Row]:
    """The recorded rows, one for each query; empty if there is no recording."""
    return json.loads(results.read_text(encoding="utf-8"))["rows"] if results.exists() else ()


def picture(rows: Sequence[Row]) -> str:
    """SVG with three panels, planned seconds over actual ones; savings may be negative, so their axes go through 0."""
    import matplotlib as mpl  # noqa: PLC0415 - reading the results needs no matplotlib
    from matplotlib.figure import Figure  # noqa: PLC0415

    from benchmarks.contest.charts import STYLE, svg  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=_INCHES, layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        _points(left, queries(rows), "seconds of stock queries")
        _points(middle, savings(rows), "seconds saved", least=LEAST_SAVING)
        for where, colour in _COLOURS.items():
            _dots(right, builds(rows, where), colour, PLACES[where])
        _frame(right, builds(rows), "seconds of builds")
        if builds(rows):
            right.legend(frameon=False, loc="upper left")
        return svg(figure)


def _points(chart: Any, found: Mapping[str, Pair], title: str, least: float = 0.0) -> None:
    _dots(chart, list(found.values()), _PLAIN)
    for name, pair in found.items():
        if relative(pair, least) > _FAR and max(map(abs, pair)) > AT_STAKE:
            planned, actual = pair
            chart.annotate(name, (actual, planned), xytext=(3, 2), textcoords="offset points", fontsize=6)
    _frame(chart, list(found.values()), title, least)


def _dots(chart: Any, found: Sequence[Pair], colour: str, label: str | None = None) -> None:
    if found:
        planned, actual = zip(*found, strict=True)
        chart.scatter(actual, planned, s=12, color=colour, alpha=0.7, linewidths=0, label=label)


def _frame(chart: Any, found: Sequence[Pair], title: str, least: float = 0.0) -> None:
    """Axes of equal scale with the line where planned is actual; linear within `least`, where it is not 0."""
    values = [each for pair in found for each in pair] or [1.0]
    if least:
        low, high = min(*values, -least), max(*values, least)
        ends = (low * 1.5, high * 1.5)
        scale: dict[str, Any] = {"value": "symlog", "linthresh": least}
    else:
        positive = [max(each, _LEAST_SECONDS) for each in values]
        ends, scale = (min(positive) / 1.5, max(positive) * 1.5), {"value": "log"}
    chart.set_xscale(**scale)
    chart.set_yscale(**scale)
    chart.plot(ends, ends, color="#888888", linewidth=0.8, zorder=0)
    if least:
        for line in (chart.axhline, chart.axvline):
            line(0.0, color="#cccccc", linewidth=0.8, zorder=0)
    chart.set_xlim(*ends)
    chart.set_ylim(*ends)
    chart.set_title(title, loc="left")
    chart.set_xlabel("actual")
    chart.set_ylabel("planned")
    chart.xaxis.set_major_formatter("{x:g}")
    chart.yaxis.set_major_formatter("{x:g}")
    chart.grid(alpha=0.3)


def main(folder: Path = RESULTS) -> None:
    """Writes the chart of each recording."""
    for results in sorted(folder.glob(f"{PREFIX}*.json")):
        if rows := recorded(results):
            results.with_suffix(".svg").write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
