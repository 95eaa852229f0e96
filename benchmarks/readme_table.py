"""The tables of measurements in README.md and benchmarks/README.md, made from `results` by `make readme`.

`make readme` also makes the page of the 99 queries, the page of the contest, and charts of phases, driver and model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import driver_chart, merge_table, model_chart, phases_chart, queries_table
from benchmarks.contest import page, targets
from benchmarks.contest.ratios import geometric_mean, saved
from benchmarks.markdown import markdown_table

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BENCHMARKS = ROOT / "benchmarks" / "README.md"
RESULTS = ROOT / "benchmarks" / "results" / "tpcds_bytes.json"
_FORMAT = "delta"
_HEADER = (
    "join of",
    "files",
    "MiB of the scan",
    "stock / pruned",
    "pruned / limit",
    "MiB of the whole query",
    "stock / pruned",
    "seconds",
)
_SUMMARY = (
    "queries",
    "bytes saved",
    "bytes to stock",
    "seconds saved",
    "speed-up",
    "slower by more than 5 % and 0.15 s",
)
# The recorded contests of the summary.
_CONTESTS: Sequence[tuple[str, str, frozenset[str]]] = (
    ("the 10 selective queries of TPC-DS, warm", "contest-sf10", targets.TEN),
    ("the 99 queries of TPC-DS, warm, by `prune()`", "contest-prune-sf10", frozenset()),
    ("the same, each once", "contest-once-sf10", frozenset()),
    ("the 13 queries of SSB, warm", "contest-ssb-sf5", frozenset()),
    ("20 queries over page views, warm", "contest-events-sf10", frozenset()),
    ("the same, each once", "contest-events-once-sf10", frozenset()),
    ("60 queries as analysts write them, warm", "contest-analyst-sf8", frozenset()),
)


def recorded() -> Sequence[Mapping[str, Any]]:
    """The recorded rows of `tpcds_bytes.json` for Delta tables, one for each star join."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if row["format"] == _FORMAT]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown table with a line for each join."""
    return markdown_table(_HEADER, map(_cells, rows))


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["join"],
        _pair(row["files_stock"], row["files"], str),
        _pair(row["bytes_stock"], row["bytes"], _mebibytes),
        _ratio(row["stock_to_pruned"]),
        f"{row['pruned_to_limit']:.2f}",
        _pair(row["query_bytes_stock"], row["query_bytes_pruned"], _mebibytes),
        _ratio(row["query_bytes_stock"] / row["query_bytes_pruned"]),
        _pair(row["seconds_stock"], row["seconds"], "{:.2f}".format),
    )


def _pair(before: Any, after: Any, shown: Any) -> str:
    return f"{shown(before)} → {shown(after)}"


def _mebibytes(count: int) -> str:
    """Mebibytes with at least two digits.

    >>> _mebibytes(21 << 20), _mebibytes(300_000)
    ('21.0', '0.29')
    """
    value = count / (1 << 20)
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def replaced(text: str, made: str) -> str:
    """The text with the table replaced that has the same first column; `ValueError` unless there is exactly one."""
    header = made.split("|")[1].strip()
    table_in_text = re.compile(rf"^\| {header} \|.*?\n(?!\|)", re.MULTILINE | re.DOTALL)
    if len(table_in_text.findall(text)) != 1:
        raise ValueError(f"Cannot replace the table of {header!r}: expected one in {README.name}")
    return table_in_text.sub(lambda _: made, text)


def summary(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Markdown table of pruned against stock Spark, over tables clustered by date: a line for each workload."""
    lines = []
    for name, contest, only in _CONTESTS:
        rows = [row for row in found[contest] if row["layout"] == _FORMAT and (not only or row["query"] in only)]
        lines.append(_summed(name, rows))
    return markdown_table(_SUMMARY, lines)


def _summed(name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    ratios = {row["query"]: row["seconds_to_stock"] for row in rows if row["contender"] == "pruned"}
    mean = geometric_mean(ratios.values())
    read = geometric_mean(row.get("read_to_stock") for row in rows if row["contender"] == "pruned")
    return (
        name,
        f"{saved(rows, 'bytes'):.1%}",
        "-" if read is None else f"{read:.2f}",
        f"{saved(rows, 'seconds'):.1%}",
        "-" if mean is None else f"{1 / mean:.2f}x",
        ", ".join(f"{query} ({ratio:.2f})" for query, ratio in targets.slower(rows).items()) or "none",
    )


def readme(text: str) -> str:
    """The text of README.md with the recorded summary."""
    return replaced(text, summary(page.recorded()))


def benchmarks_readme(text: str) -> str:
    """The text of benchmarks/README.md with the recorded joins, contests and MERGE statements."""
    for made in (table(recorded()), page.overview(page.recorded()), merge_table.table(merge_table.recorded())):
        text = replaced(text, made)
    return text


def main() -> None:
    """Writes the recorded tables into both READMEs, and the pages and charts beside the results."""
    for path, made in ((README, readme), (BENCHMARKS, benchmarks_readme)):
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")
    queries_table.main()
    page.main()
    phases_chart.main()
    driver_chart.main()
    model_chart.main()


if __name__ == "__main__":
    main()
