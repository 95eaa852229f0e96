"""The page `results/contest.md` and its charts, made from every `results/contest-*.json` by `make readme`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.contest import targets
from benchmarks.contest.pool import DOOR, LIMIT, PRUNE, SESSION
from benchmarks.contest.ratios import geometric_mean, saved
from benchmarks.markdown import markdown_table

Row = Mapping[str, Any]
RESULTS = Path(__file__).resolve().parents[1] / "results"
_GROWTH = "contest-growth.svg"
# The layout whose growth is drawn.
_GROWN = "delta"
_SUMMARY = (
    *("layout", "queries", "bytes to stock", "to DuckDB", "to DataFusion", "to the limit"),
    *("times faster than stock", "bytes saved", "seconds saved", "slowest to stock", "rows"),
)
_OTHERS = ("stock", "duckdb", "datafusion", LIMIT)
_QUERIES = ("query", "contender", "MiB", "seconds", "CPU seconds", "peak MiB", "rows")
_REQUESTS = "requests"
_SERVED_MEGABYTE = 1e6
# A chart of more queries would be too wide to read.
_MOST_DRAWN = 20


def recorded(results: Path = RESULTS) -> Mapping[str, Sequence[Row]]:
    """The recorded rows by the name of their file; TPC-DS without a label on the local disk first, then by scale."""
    paths = results.glob("contest-*.json")
    found = {path.stem: record.recorded(path) for path in paths}
    names = sorted((name for name in found if found[name]), key=lambda name: _order(found[name][0]))
    return {name: found[name] for name in names}


def page(found: Mapping[str, Sequence[Row]]) -> str:
    """Markdown: for each file a summary of layouts, the chart, and a table of queries for each layout."""
    parts = [
        _HEAD,
        markdown_table(targets.HEADER, iter(targets.lines(found))),
        *(part for name, rows in found.items() for part in _of_file(name, rows)),
    ]
    if _is_growth(found):
        parts.append(f"## Growth\n\n![Bytes and seconds over scales]({_GROWTH})\n")
    return "\n".join(parts)


def overview(found: Mapping[str, Sequence[Row]]) -> str:
    """Markdown: the summaries of all files in one table."""
    lines = (
        (_where(rows[0]), *line)
        for rows in found.values()
        for layout in _layouts(rows)
        for line in _summaries(layout, rows)
    )
    return markdown_table(("where", *_SUMMARY), lines)


def pictures(found: Mapping[str, Sequence[Row]]) -> Mapping[str, str]:
    """The SVG text of each chart by the name of its file."""
    from benchmarks.contest.charts import bars, growth  # noqa: PLC0415 - the page's text needs no matplotlib

    drawn = {f"{name}.svg": bars(_drawn(rows)) for name, rows in found.items()}
    if _is_growth(found):
        local = (row for rows in found.values() for row in rows if _grows(row) and row["contender"] != LIMIT)
        drawn[_GROWTH] = growth([row for row in local if row["layout"] == _GROWN])
    return drawn


def _drawn(rows: Sequence[Row]) -> Sequence[Row]:
    """All rows, or those of the selective queries if a chart of all would be too wide to read."""
    selective = [row for row in rows if row["query"] in targets.TEN]
    return selective if selective and len({row["query"] for row in rows}) > _MOST_DRAWN else rows


def _order(row: Row) -> tuple[str, bool, str, str, float]:
    return row.get("workload", ""), row.get("once", False), row.get("label", ""), row.get("place", ""), row["scale"]


def _is_growth(found: Mapping[str, Sequence[Row]]) -> bool:
    """True if there are results of several scales on the local disk."""
    return sum(_grows(rows[0]) for rows in found.values()) > 1


def _grows(row: Row) -> bool:
    # Rows without a door are of before there was a choice.
    by_prune = row.get(DOOR, PRUNE) == PRUNE
    return by_prune and not any(row.get(each) for each in ("workload", "once", "place", "label"))


_HEAD = """# Pruned Spark, stock Spark, DuckDB and DataFusion

Made from `contest-*.json` by `make readme`; `benchmarks/README.md` says what is compared, and how.

- to stock, to DuckDB, to DataFusion: geometric means over queries of pruned Spark's number by theirs; below 1 is less;
  none where they were not asked all of these queries
- to the limit: likewise, by the bytes of row groups that hold a row which all filters of the query let pass
  (`contest/limit.py`); the numerator has footers, logs and whatever else a process reads
- times faster than stock: the geometric mean of stock Spark's seconds by pruned Spark's
- bytes saved, seconds saved: the share of what stock Spark takes for all queries together that pruned Spark does not
- slowest: the query with the largest ratio of pruned Spark's seconds to stock Spark's
- selective: the ten queries of `SELECTIVE` in `sample_data/tpcds_queries.py`
- rows: whether every answer of every run was DuckDB's from tables of its own

## Targets

At scale 10, clustered by date unless said otherwise; `benchmarks/README.md` says what keeps from those that are missed.
"""


def _of_file(name: str, rows: Sequence[Row]) -> Iterator[str]:
    layouts = _layouts(rows)
    where = _where(rows[0])
    yield f"## {where.capitalize()}\n"
    if any(row.get("once") for row in rows):
        yield "Each query ran once in the session of each contender, in an order drawn by lot.\n"
    if any(row.get("apart") for row in rows):
        yield "Each contender had a process of its own.\n"
    if shapes := sorted({_shape(row) for row in rows if row.get("place")}):
        yield f"The store adds {' or '.join(shapes)}. Bytes and requests are those that it served.\n"
    if confs := sorted({row["conf"] for row in rows if row.get("conf")}):
        yield f"Both Sparks ran with `{'`, `'.join(confs)}`.\n"
    doors = {row["query"]: row.get(DOOR) for row in rows if row["contender"] == "pruned"}
    yield f"Pruned Spark is {_doors(doors)}.\n"
    yield markdown_table(_SUMMARY, (line for layout in layouts for line in _summaries(layout, rows)))
    each = "each query" if len(_drawn(rows)) == len(rows) else "each selective query"
    yield f"![Bytes and seconds of {each}]({name}.svg)\n"
    counted = any(_REQUESTS in row for row in rows)
    for layout in layouts:
        yield f"### {layout}, {where}\n"
        of_layout = [row for row in rows if row["layout"] == layout]
        yield from _versions(of_layout)
        header = (*_QUERIES, _REQUESTS) if counted else _QUERIES
        yield markdown_table(header, (_cells(row)[: len(header)] for row in of_layout))


def _doors(doors: Mapping[str, str | None]) -> str:
    """The doors by which queries were pruned; rows without one are of before there was a choice."""
    enabled = [name for name, door in doors.items() if door == SESSION]
    if not enabled or len(enabled) == len(doors):
        return "an enabled session" if enabled else "`prune()`"
    return f"an enabled session for {', '.join(enabled)}, and `prune()` for the others"


def _versions(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each commit, if there are several; the rows of one query may also be of several commits."""
    known = Counter(row.get("code") for row in rows)
    if len(known) == 1:
        return
    (most, _), *fewer = known.most_common()
    for code, _ in fewer:
        of: dict[str, list[str]] = {}
        for row in rows:
            if row.get("code") == code:
                of.setdefault(row["query"], []).append(row["contender"])
        every = Counter(row["query"] for row in rows)
        names = (it if len(by) == every[it] else f"{it} ({' and '.join(by)})" for it, by in of.items())
        yield f"Measured in another run, by version `{code}`: {', '.join(names)}.\n"
    yield f"All others were measured by version `{most}`.\n"


def _layouts(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["layout"] for row in rows))


def _where(row: Row) -> str:
    told = (
        row.get("workload", ""),
        f"scale {row['scale']:g}",
        "each query once" if row.get("once") else "",
        "object store" if row.get("place") else "",
        row.get("label", ""),
        "prune()" if row.get(DOOR) == PRUNE else "",
    )
    return ", ".join(filter(None, told))


def _shape(row: Row) -> str:
    """The latency and bandwidth of an object store, in words."""
    rate = row.get("bytes_per_second")
    cap = f" and serves {rate / _SERVED_MEGABYTE:g} MB/s in all" if rate else ""
    return f"{1e3 * row['latency']:g} ms to each request{cap}"


def _summaries(layout: str, rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """A line for all queries of a layout, preceded by a line for the selective queries if there are others."""
    of_layout = [row for row in rows if row["layout"] == layout]
    selective = [row for row in of_layout if row["query"] in targets.TEN]
    if 0 < len(selective) < len(of_layout):
        yield _summary(layout, "selective", selective)
    yield _summary(layout, "", of_layout)


def _summary(layout: str, which: str, rows: Sequence[Row]) -> tuple[str, ...]:
    ours = [row for row in rows if row["contender"] == "pruned"]
    slower = {row["query"]: row["seconds_to_stock"] for row in ours if row.get("seconds_to_stock")}
    mean, worst = geometric_mean(slower.values()), max(slower, key=slower.__getitem__, default="")
    wrong = sorted({f"{row['contender']} {row['query']}" for row in rows if row.get("rows_equal") is False})
    return (
        layout,
        f"{len(ours)} {which}".strip(),
        *(_ratio(_mean(ours, rows, to)) for to in _OTHERS),
        _ratio(mean and 1 / mean),
        *(_share(saved(rows, field)) for field in ("bytes", "seconds")),
        f"{worst}: {_ratio(slower[worst])}" if worst else "-",
        f"differ: {', '.join(wrong)}" if wrong else "equal",
    )


def _mean(ours: Sequence[Row], rows: Sequence[Row], other: str) -> float | None:
    """The mean ratio of bytes to another contender; None unless that contender ran every query of the line."""
    asked = {row["query"] for row in rows if row["contender"] == other}
    if any(row["query"] not in asked for row in ours):
        return None
    return geometric_mean(row.get(f"read_to_{other}") for row in ours)


def _cells(row: Row) -> tuple[str, ...]:
    if row.get("failed"):
        return (row["query"], row["contender"], *["-"] * 4, row["failed"].replace("|", "\\|"), "-")
    if row["contender"] == LIMIT:
        return (row["query"], LIMIT, f"{row['bytes'] / (1 << 20):,.2f}", *["-"] * 5)
    equal = f"{row['rows']:,} =" if row["rows_equal"] else f"{row['rows']:,} DIFFER"
    return (
        row["query"],
        row["contender"],
        f"{row['bytes'] / (1 << 20):,.2f}",
        f"{row['seconds']:.3f}",
        f"{row['cpu_seconds']:.2f}",
        f"{row['peak_bytes'] / (1 << 20):,.0f}",
        equal,
        f"{row.get(_REQUESTS, 0):,}",
    )


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def main(results: Path = RESULTS) -> None:
    """Writes the page and the charts if there is a recording."""
    if found := recorded(results):
        (results / "contest.md").write_text(page(found), encoding="utf-8")
        for name, text in pictures(found).items():
            (results / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
