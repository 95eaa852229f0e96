"""The tables of measurements in README.md, of star joins and of contests, made from `results`: `make readme`.

That target makes the page of queries, that of the contest and the pictures of phases and of the driver, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import driver_chart, phases_chart, queries_table
from benchmarks.contest import page

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
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


def recorded() -> Sequence[Mapping[str, Any]]:
    """The joins that the README shows, as they were measured."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if row["format"] == _FORMAT]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown, a line for each join."""
    lines = (_HEADER, ("---",) * len(_HEADER), *map(_cells, rows))
    return "".join(f"| {' | '.join(line)} |\n".replace(" --- ", "---") for line in lines)


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
    """Two digits at least.

    >>> _mebibytes(21 << 20), _mebibytes(300_000)
    ('21.0', '0.29')
    """
    value = count / (1 << 20)
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def replaced(text: str, made: str) -> str:
    """The text with its table of the same first column replaced; `ValueError` where it has none, or several."""
    header = made.split("|")[1].strip()
    table_in_text = re.compile(rf"^\| {header} \|.*?\n(?!\|)", re.MULTILINE | re.DOTALL)
    if len(table_in_text.findall(text)) != 1:
        raise ValueError(f"Cannot replace the table of {header!r}: expected one in {README.name}")
    return table_in_text.sub(lambda _: made, text)


def readme(text: str) -> str:
    """The text with what is recorded."""
    return replaced(replaced(text, table(recorded())), page.overview(page.recorded()))


def main() -> None:
    """Writes the README with the tables of what is recorded, and the pages beside the results."""
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    queries_table.main()
    page.main()
    phases_chart.main()
    driver_chart.main()


if __name__ == "__main__":
    main()
