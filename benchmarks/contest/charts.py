"""Charts of a contest as SVG: bytes and seconds of each query, contenders side by side, and growth over scales."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter

Row = Mapping[str, Any]
# Text stays text instead of paths, and a fixed salt makes the file reproducible.
STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "scanprune", "font.size": 8.0, "axes.axisbelow": True}
_COLOURS = {
    "pruned": "#1b7837",
    "always": "#7fbf7b",
    "stock": "#d6604d",
    "duckdb": "#e0b000",
    "datafusion": "#4393c3",
    "limit": "#bababa",
}
_LABELS = {
    "pruned": "pruned Spark",
    "always": "pruned Spark, option `always`",
    "stock": "stock Spark",
    "duckdb": "DuckDB",
    "datafusion": "DataFusion",
    "limit": "row-group limit",
}
# The field, the title of its axis, and the divisor that converts the field to the unit of the axis.
_MEASURES = (("bytes", "MiB read", float(1 << 20)), ("seconds", "seconds, median", 1.0))
_INCHES_PER_QUERY, _INCHES_PER_LAYOUT, _INCHES_AT_LEAST = 0.55, 2.1, 4.5
_SHARE_OF_BARS = 0.8


def bars(rows: Sequence[Row]) -> str:
    """Bar charts of the rows of one scale, a line for each layout; axes are logarithmic to compare ratios."""
    with mpl.rc_context(STYLE):
        return svg(_bars(rows))


def growth(rows: Sequence[Row]) -> str:
    """Chart of sums over scales, for one layout and the queries that every contender answered at every scale."""
    with mpl.rc_context(STYLE):
        return svg(_growth(rows))


def _bars(rows: Sequence[Row]) -> Figure:
    layouts, names = _distinct(rows, "layout"), _distinct(rows, "query")
    width = 2 * max(_INCHES_AT_LEAST, _INCHES_PER_QUERY * len(names))
    figure = Figure(figsize=(width, 0.6 + _INCHES_PER_LAYOUT * len(layouts)), layout="constrained")
    charts = figure.subplots(len(layouts), len(_MEASURES), squeeze=False)
    for layout, line in zip(layouts, charts, strict=True):
        for (field, axis, unit), chart in zip(_MEASURES, line, strict=True):
            _bars_of(chart, [row for row in rows if row["layout"] == layout], names, field, unit)
            chart.set_title(f"{layout}: {axis}", loc="left")
    _legend(figure, rows)
    return figure


def _growth(rows: Sequence[Row]) -> Figure:
    figure = Figure(figsize=(2 * _INCHES_AT_LEAST, 3.0), layout="constrained")
    common = _answered_by_all(rows)
    for chart, (field, axis, unit) in zip(figure.subplots(1, len(_MEASURES)), _MEASURES, strict=True):
        for contender in _distinct(rows, "contender"):
            sums: dict[float, float] = {}
            for row in rows:
                if row["contender"] == contender and row["query"] in common:
                    sums[row["scale"]] = sums.get(row["scale"], 0.0) + row[field] / unit
            chart.loglog(list(sums), list(sums.values()), marker="o", color=_COLOURS[contender])
        chart.set_title(f"{len(common)} queries: {axis}", loc="left")
        chart.set_xlabel("scale")
        chart.grid(alpha=0.3)
    _legend(figure, rows)
    return figure


def _bars_of(chart: Axes, rows: Sequence[Row], names: Sequence[str], field: str, unit: float) -> None:
    contenders = _distinct(rows, "contender")
    wide = _SHARE_OF_BARS / len(contenders)
    for at, contender in enumerate(contenders):
        found = {row["query"]: row[field] / unit for row in rows if row["contender"] == contender and row.get(field)}
        left = wide * (at - (len(contenders) - 1) / 2)
        # A contender without an answer has no bar.
        places = [names.index(name) + left for name in found]
        chart.bar(places, list(found.values()), wide, color=_COLOURS[contender])
    chart.set_xticks(range(len(names)), names)
    chart.set_yscale("log")
    # Keeps the smallest bar visible.
    smallest = min((row[field] / unit for row in rows if row.get(field)), default=1.0)
    chart.set_ylim(bottom=smallest / 2)
    chart.yaxis.set_major_formatter("{x:g}")
    chart.yaxis.set_minor_formatter(NullFormatter())
    chart.grid(axis="y", alpha=0.3)


def _answered_by_all(rows: Sequence[Row]) -> set[str]:
    count = len(_distinct(rows, "scale")) * len(_distinct(rows, "contender"))
    names = [row["query"] for row in rows if row.get("seconds")]
    return {name for name in names if names.count(name) == count}


def _legend(figure: Figure, rows: Sequence[Row]) -> None:
    found = _distinct(rows, "contender")
    patches = [Patch(color=_COLOURS[each], label=_LABELS[each]) for each in found]
    figure.legend(handles=patches, loc="outside upper center", ncols=len(found), frameon=False)


def _distinct(rows: Sequence[Row], field: str) -> list[Any]:
    return list(dict.fromkeys(row[field] for row in rows))


def svg(figure: Figure) -> str:
    """The SVG text of a figure."""
    found = io.StringIO()
    figure.savefig(found, format="svg", metadata={"Date": None})
    # No trailing spaces, which editors would remove.
    return "".join(f"{line.rstrip()}\n" for line in found.getvalue().splitlines())
