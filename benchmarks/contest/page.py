"""`results/contest.md` and its pictures, made from every `results/contest-sf<scale>.json` by `make readme`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contest.ratios import geometric_mean

Row = Mapping[str, Any]
RESULTS = Path(__file__).resolve().parents[1] / "results"
_GROWTH = "contest-growth.svg"
# Of the layouts, the one whose growth is drawn.
_GROWN = "delta"
_SUMMARY = (
    *("layout", "queries", "bytes to stock", "to DuckDB", "to DataFusion"),
    *("times faster than stock", "slowest to stock", "rows"),
)
_QUERIES = ("query", "contender", "MiB", "seconds", "CPU seconds", "peak MiB", "rows")


def recorded(results: Path = RESULTS) -> Mapping[float, Sequence[Row]]:
    """Rows by scale, as they were measured."""
    found = (json.loads(path.read_text(encoding="utf-8"))["rows"] for path in results.glob("contest-sf*.json"))
    return {rows[0]["scale"]: rows for rows in sorted(found, key=lambda rows: rows[0]["scale"]) if rows}


def page(found: Mapping[float, Sequence[Row]]) -> str:
    """Markdown: for each scale a summary of layouts, the picture, and a table of queries for each layout."""
    parts = [_HEAD, *(part for scale, rows in found.items() for part in _of_scale(scale, rows))]
    if len(found) > 1:
        parts.append(f"## Growth\n\n![Bytes and seconds over scales]({_GROWTH})\n")
    return "\n".join(parts)


def pictures(found: Mapping[float, Sequence[Row]]) -> Mapping[str, str]:
    """SVG by name of the file."""
    from benchmarks.contest.charts import bars, growth  # noqa: PLC0415 - the page's text needs no matplotlib

    drawn = {_picture(scale): bars(rows) for scale, rows in found.items()}
    if len(found) > 1:
        drawn[_GROWTH] = growth([row for rows in found.values() for row in rows if row["layout"] == _GROWN])
    return drawn


_HEAD = """# Pruned Spark, stock Spark, DuckDB and DataFusion

Made from `contest-sf*.json` by `make readme`; `benchmarks/README.md` says what is compared, and how.

- to stock, to DuckDB, to DataFusion: geometric means over queries of pruned Spark's number by theirs; below 1 is less
- times faster than stock: the geometric mean of stock Spark's seconds by pruned Spark's; slowest: the query with the
  largest ratio of pruned Spark's seconds to stock Spark's
- rows: whether every answer of every run was DuckDB's from tables of its own
"""


def _of_scale(scale: float, rows: Sequence[Row]) -> Iterator[str]:
    layouts = list(dict.fromkeys(row["layout"] for row in rows))
    yield f"## Scale {scale:g}\n"
    if confs := sorted({row["conf"] for row in rows if row.get("conf")}):
        yield f"Both Sparks ran with `{'`, `'.join(confs)}`.\n"
    yield _table(_SUMMARY, (_summary(layout, [row for row in rows if row["layout"] == layout]) for layout in layouts))
    yield f"![Bytes and seconds of each query]({_picture(scale)})\n"
    for layout in layouts:
        yield f"### {layout}, scale {scale:g}\n"
        yield _table(_QUERIES, (_cells(row) for row in rows if row["layout"] == layout))


def _summary(layout: str, rows: Sequence[Row]) -> tuple[str, ...]:
    ours = [row for row in rows if row["contender"] == "pruned"]
    slower = {row["query"]: row["seconds_to_stock"] for row in ours if row.get("seconds_to_stock")}
    mean, worst = geometric_mean(slower.values()), max(slower, key=slower.__getitem__, default="")
    wrong = sorted({f"{row['contender']} {row['query']}" for row in rows if row.get("rows_equal") is False})
    return (
        layout,
        str(len(ours)),
        *(_ratio(geometric_mean(row[f"read_to_{to}"] for row in ours)) for to in ("stock", "duckdb", "datafusion")),
        _ratio(mean and 1 / mean),
        f"{worst}: {_ratio(slower[worst])}" if worst else "-",
        f"differ: {', '.join(wrong)}" if wrong else "equal",
    )


def _cells(row: Row) -> tuple[str, ...]:
    if row.get("failed"):
        return (row["query"], row["contender"], *["-"] * 4, row["failed"].replace("|", "\\|"))
    equal = f"{row['rows']:,} =" if row["rows_equal"] else f"{row['rows']:,} DIFFER"
    return (
        row["query"],
        row["contender"],
        f"{row['bytes'] / (1 << 20):,.2f}",
        f"{row['seconds']:.3f}",
        f"{row['cpu_seconds']:.2f}",
        f"{row['peak_bytes'] / (1 << 20):,.0f}",
        equal,
    )


def _table(header: tuple[str, ...], lines: Iterator[tuple[str, ...]]) -> str:
    every = (header, ("---",) * len(header), *lines)
    return "".join(f"| {' | '.join(line)} |\n".replace(" --- ", "---") for line in every)


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _picture(scale: float) -> str:
    return f"contest-sf{scale:g}.svg"


def main(results: Path = RESULTS) -> None:
    """Writes the page and the pictures of what is recorded, if anything is."""
    if found := recorded(results):
        (results / "contest.md").write_text(page(found), encoding="utf-8")
        for name, text in pictures(found).items():
            (results / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
