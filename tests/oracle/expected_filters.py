"""Filters that the plan of a random query must have, derived only from the tables and from DuckDB's results."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pruning.reasons import ReasonCode
from pruning.results.explanation import Explanation
from pruning.results.table_explanation import TableExplanation
from tests.oracle.random_lakes import EXACT, Table

# Reasons that allow no filter on a scan although some files have no key.
EXCUSES = {
    ReasonCode.NOT_WORTH,
    ReasonCode.RISKY,
    ReasonCode.READ_BY_BUILD,
    ReasonCode.UNREPEATABLE_KEYS,
    ReasonCode.UNSELECTIVE_BUILD,
}


@dataclass(frozen=True, slots=True)
class Must:
    """An equality whose keys may filter the clustered column of `table`; `keys` is the SQL that selects them.

    - `is_sure`: the build is filtered, and smaller than any part that the query may read of the table
    - `is_exact`: additionally, nothing else filters the table
    """

    table: Table
    keys: str
    is_sure: bool = False
    is_exact: bool = False


def check_filter(plan: Explanation, must: Must, sql: str, keys: Collection[Any]) -> None:
    """The keys reach the scan; if some of its files have no key, it is filtered or has an accepted reason."""
    table = must.table
    scans = scans_of(plan, table)
    if len(scans) < mentions(sql, table):
        # Spark knows without reading that some scans have no rows.
        return
    columns = {f"{scan}.{table.sorted_by}" for scan in scans}
    assert columns & {each for edge in plan.edges for each in edge.reaches}, f"no keys reach {table.sorted_by!r}"
    if table.kinds[table.sorted_by] not in (*EXACT, "day"):
        # Bounds of other kinds may be wider than the values.
        return
    kept, total = files_with(table, keys)
    if kept == total:
        return
    left = {each.reason.code for each in plan.unused if f"{each.scan}.{each.column}" in columns}
    excuses = {ReasonCode.READ_BY_BUILD} if must.is_sure else EXCUSES
    filtered = columns & {each.probe for each in plan.filters}
    assert filtered or left & excuses, f"no filter, though {total - kept} of {total} files hold no key: {plan.reasons}"
    if not must.is_sure or ReasonCode.READ_BY_BUILD in left:
        # The query no longer reads the smaller side.
        return
    (found,) = [each for each in plan.tables if each.table in scans]
    check_files(found, must, kept, total, is_alone=len(plan.tables) == 1)


def check_files(found: TableExplanation, must: Must, kept: int, total: int, *, is_alone: bool) -> None:
    """Files without a key are skipped, and no others."""
    assert found.files_kept is not None
    assert found.files_total is not None
    # A condition on the key, which Spark applies to both sides, prunes the other files statically.
    assert found.files_total <= total, f"{found.files_total} files are counted, and {total} were written"
    assert found.files_kept <= kept, f"{found.files_kept} of {total} files are kept, and {kept} hold a key"
    # The fact may filter the other side first, which then has fewer keys for the fact.
    assert not (must.is_exact and is_alone) or kept == found.files_kept


def mentions(sql: str, table: Table) -> int:
    """The number of times that a query names a table."""
    return len(re.findall(rf"\b{table.name}\b", sql))


def scans_of(plan: Explanation, table: Table) -> set[str]:
    """The names of the scans of a table; a table that is read several times is numbered."""
    return {each for each in plan.scans if each.partition("#")[0] == table.name}


def files_with(table: Table, keys: Iterable[Any]) -> tuple[int, int]:
    """The number of files with a key within the bounds of the clustered column, and the number of all files."""
    wanted = {day_of(key) if table.kinds[table.sorted_by] == "day" else key for key in keys} - {None}
    files = files_of(table, table.sorted_by)
    kept = 0
    for values in files:
        known = [each for each in values if each is not None]
        kept += any(min(known) <= key <= max(known) for key in wanted) if known else 0
    return kept, len(files)


def files_without_values(table: Table, columns: Iterable[str]) -> int:
    """The number of files in which one of the columns is all NULL: Delta has no statistics for it and keeps the
    file.
    """
    empty = [[all(value is None for value in values) for values in files_of(table, each)] for each in columns]
    return sum(map(any, zip(*empty, strict=True)))


def files_of(table: Table, column: str) -> Sequence[Sequence[Any]]:
    """The values of a column in each file, including deleted rows, but without files whose rows are all deleted."""
    rows, count = table.written, len(table.rows)
    parts = rows.column(table.partition_by).to_pylist() if table.partition_by else [None] * len(rows)
    files: dict[Any, list[Any]] = {}
    left = {(at // table.file_rows, parts[at]) for at in range(count)}
    for at, value in enumerate(rows.column(column).to_pylist()):
        files.setdefault((at // table.file_rows, parts[at]), []).append(value)
    return [values for file, values in files.items() if file in left]


def day_of(key: Any) -> Any:
    """The day that equals a key, None if there is none, as for noon."""
    if not isinstance(key, datetime):
        return key
    return key.date() if key.time() == datetime.min.time() else None
