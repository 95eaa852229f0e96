"""The page `results/tpcds_queries.md`, a table of the 99 TPC-DS queries, made from its JSON by `make readme`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.markdown import markdown_table
from sample_data.tpcds_answers import ROUNDED_TWICE

RESULTS = Path(__file__).resolve().parent / "results" / "tpcds_queries.json"
PAGE = RESULTS.with_suffix(".md")
_HEADER = (
    "query",
    "scans",
    "pruned",
    "reached",
    "filters",
    "files",
    "planned MiB",
    "MiB of the whole query",
    "stock / pruned",
    "rows",
)
SUMMED = (
    *("scans", "scans_pruned", "reached_alone", "reached", "filters_alone", "filters", "files_stock", "files"),
    *("bytes_planned_stock", "bytes_planned", "query_bytes_stock", "query_bytes_pruned", "rows"),
)


def recorded() -> Sequence[Mapping[str, Any]]:
    """The recorded rows, one for each query."""
    rows: Sequence[Mapping[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    return rows


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: the meaning of the columns, then a line for each query, then the sums."""
    (scale,) = {row["scale"] for row in rows}
    whole = {"query": "all", **{name: sum(row[name] for row in rows) for name in SUMMED}}
    table = markdown_table(_HEADER, map(_cells, [*rows, whole]))
    wrong = [row["query"] for row in rows if not row["rows_equal"]]
    tied = [row["query"] for row in rows if row["rows_equal"] and row["differs"]]
    return f"""# The {len(rows)} queries of TPC-DS at scale {scale:g} by `prune()`

Made from `tpcds_queries.json` by `make readme`; `tpcds_queries.py` says what is counted, and how.

- reached: pairs of keys and columns of scans in the join graph, without → with global equivalence
- filters: those of them that are worth their builds, before any build ran, likewise
- pruned, files, planned MiB: scans with a filter, and what is planned of these, without → with their filters
- MiB of the whole query: measured, stock Spark → pruned with all of its builds
- Rows of stock Spark, pruned Spark and DuckDB differ in: {", ".join(wrong) or "no query"}. In ties at a LIMIT alone:
  {", ".join(tied) or "no query"}
- Spark and DuckDB read these differently, so decimals are compared with a margin (of Spark's last digit): {_margins()}

{table}"""


def _margins() -> str:
    return "; ".join(f"q{query}, since {why} ({most:,})" for query, (most, why) in ROUNDED_TWICE.items())


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["query"],
        f"{row['scans']:,}",
        str(row["scans_pruned"]),
        _pair(row, "reached_alone", "reached", str),
        _pair(row, "filters_alone", "filters", str),
        _pair(row, "files_stock", "files", str),
        _pair(row, "bytes_planned_stock", "bytes_planned", _mebibytes),
        _pair(row, "query_bytes_stock", "query_bytes_pruned", _mebibytes),
        f"{row['query_bytes_stock'] / row['query_bytes_pruned']:.1f}" if row["query_bytes_pruned"] else "-",
        f"{row['rows']:,}",
    )


def _pair(row: Mapping[str, Any], before: str, after: str, shown: Any) -> str:
    return f"{shown(row[before])} → {shown(row[after])}"


def _mebibytes(count: int) -> str:
    """Mebibytes with one digit after the point.

    >>> _mebibytes(21 << 20), _mebibytes(300_000)
    ('21.0', '0.3')
    """
    return f"{count / (1 << 20):,.1f}"


def main() -> None:
    """Writes the page if there is a recording."""
    if RESULTS.exists():
        PAGE.write_text(page(recorded()), encoding="utf-8")


if __name__ == "__main__":
    main()
