"""The table of recorded MERGE statements in benchmarks/README.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.markdown import markdown_table

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "merge.json"
_HEADER = (
    "layout",
    "key",
    "rows of the source",
    "deletion vectors",
    "MB of the search",
    "times fewer",
    "s of the search",
    "times faster",
    "MB of the whole MERGE",
    "s of it",
    "times faster",
)
_CASE = ("rows", "layout", "key", "share", "vectors")


def recorded() -> Sequence[Mapping[str, Any]]:
    """The recorded rows, two for each MERGE: of stock Spark, then of an enabled session."""
    return list(json.loads(RESULTS.read_text(encoding="utf-8"))["rows"])


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown table with a line for each MERGE."""
    ways: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        ways.setdefault(tuple(row[name] for name in _CASE), {})[row["way"]] = row
    return markdown_table(_HEADER, (_cells(found["stock"], found["enabled"]) for found in ways.values()))


def _cells(stock: Mapping[str, Any], enabled: Mapping[str, Any]) -> tuple[str, ...]:
    def megabytes(name: str) -> str:
        return f"{stock[name] / 1e6:.1f} → {enabled[name] / 1e6:.1f}"

    def seconds(name: str) -> str:
        return f"{stock[name]:.2f} → {enabled[name]:.2f}"

    return (
        stock["layout"],
        stock["key"],
        f"{stock['share']:.2%} of {stock['rows'] / 1e6:.0f} million",
        "yes" if stock["vectors"] else "no",
        megabytes("search_bytes"),
        f"{enabled['stock_to_enabled_search_bytes']:.1f}",
        seconds("search_seconds"),
        f"{enabled['stock_to_enabled_search_seconds']:.2f}",
        megabytes("bytes"),
        seconds("seconds"),
        f"{enabled['stock_to_enabled_seconds']:.2f}",
    )
