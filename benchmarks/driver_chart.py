"""The chart `results/driver.svg` of the results of `bench_driver.py`, made by `make readme`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
RESULTS = Path(__file__).resolve().parent / "results" / "driver.json"
# The stage that is the sum of all stages of a scan.
ALL = "all of the driver"
# Stages in the order in which they run; see `driver_stages`.
STAGES = (
    *("keys of an array", "receive keys", "statistics of files", "decide by files", "decide by row groups"),
    *("bloom filter", "explain", "keys of statistics", ALL),
)
_TYPES = ("bigint", "string", "decimal(38,0)")
_BESIDE = 100_000
_SIZES = (("files", "keys"), ("keys", "files"))
_MEASURES: tuple[tuple[str, str, float], ...] = (
    ("cpu_seconds", "CPU seconds", 1.0),
    ("peak_bytes", "MiB above what was held", float(1 << 20)),
)
_LAYOUT = "unclustered"
_INCHES = (13.0, 10.0)


def recorded(results: Path = RESULTS) -> Sequence[Row]:
    """The recorded rows, one for each stage; empty if there is no recording."""
    return json.loads(results.read_text(encoding="utf-8"))["rows"] if results.exists() else ()


def picture(rows: Sequence[Row]) -> str:
    """SVG of each stage over the number of files and of keys, both axes logarithmic, a column for each type of key."""
    import matplotlib as mpl  # noqa: PLC0415 - reading the results needs no matplotlib
    from matplotlib.figure import Figure  # noqa: PLC0415

    from benchmarks.contest.charts import STYLE, svg  # noqa: PLC0415

    colours = mpl.colormaps["tab10"].colors  # type: ignore[attr-defined]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=_INCHES, layout="constrained")
        types = [each for each in _TYPES if any(row.get("type") == each for row in rows)]
        charts = figure.subplots(len(_SIZES) * len(_MEASURES), len(types), squeeze=False, sharey="row")
        lines = [(size, beside, measure) for size, beside in _SIZES for measure in _MEASURES]
        for row_of_charts, (size, beside, (field, axis, unit)) in zip(charts, lines, strict=True):
            for chart, type_ in zip(row_of_charts, types, strict=True):
                for at, stage in enumerate(STAGES):
                    _line(chart, *_curve(rows, type_, stage, size, beside, field, unit), stage, colours[at])
                chart.set_title(f"{type_}: {axis}", loc="left")
                chart.set_xlabel(f"{size}, beside {_BESIDE:,} {beside}")
                chart.grid(alpha=0.3)
        figure.legend(*charts[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
        return svg(figure)


def _line(chart: Any, sizes: Sequence[float], values: Sequence[float], stage: str, colour: Any) -> None:
    chart.loglog(sizes, values, marker="o", markersize=3, label=stage, color=colour)


def _curve(  # noqa: PLR0913, PLR0917 - the coordinates of one line
    rows: Sequence[Row], type_: str, stage: str, size: str, beside: str, field: str, unit: float
) -> tuple[list[float], list[float]]:
    wanted = {"type": type_, "layout": _LAYOUT, "stage": stage, beside: _BESIDE}
    some = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    # A logarithmic axis cannot show zero.
    found = sorted((row[size], row[field] / unit) for row in some if row[field] > 0)
    return [each[0] for each in found], [each[1] for each in found]


def main(results: Path = RESULTS) -> None:
    """Writes the chart if there is a recording."""
    if rows := recorded(results):
        results.with_suffix(".svg").write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
