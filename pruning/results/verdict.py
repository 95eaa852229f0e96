"""One line that says what pruning did to a read or a query, the first of each explanation and report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pruning.reasons import WITHOUT_BOUNDS, Reason, size
from pruning.results.table_explanation import FilterExplanation, TableExplanation
from pruning.scan.key_filter import KeyFilter
from pruning.scan.scan_plan import RowFilter, ScanPlan
from pruning.scan.statistics import Containers

NOTHING_TO_PRUNE = "nothing to prune: no join, and no limit over an order"
# More are left out of the line.
_NAMED = 3
# A smaller share of rows to skip is no reason to write a table anew.
_WORTH_CLUSTERING = 0.5


def verdict_of_scans(tables: Sequence[TableExplanation], *, has_run: bool) -> str:
    """The line for scans that were planned with keys.

    It names the files and bytes that they read of all, and the keys; or why nothing is skipped, and what would help.
    """
    listed = [each for each in tables if each.files_total is not None and each.files_kept is not None]
    if not listed:
        return f"the files of {_listed([_name(each) for each in tables])} are not known"
    kept, total = (sum(getattr(each, name) or 0 for each in listed) for name in ("files_kept", "files_total"))
    if not total:
        return (
            f"nothing to read: no file of {_listed([_name(each) for each in listed])} meets the conditions of the query"
        )
    read, whole = (sum(getattr(each, name) or 0 for each in listed) for name in ("bytes_kept", "bytes_total"))
    if kept == total and read == whole:
        return _nothing_skipped(listed)
    keys = [_by(f"{_name(each)}.", one) for each in listed for one in each.filters]
    verb = "read" if has_run else "reads"
    return f"{verb} {_counted((kept, total), (read, whole))}: {_listed(keys)}"


def verdict_of_scan(plan: ScanPlan, files: Containers, groups: Containers | None, *, has_conditions: bool) -> str:
    """The line for one scan, from what was read to decide on it: bytes are those of whole files.

    The query's own conditions may skip further files, so with them the numbers are bounds. Empty for a scan that is
    read as it is, or whose files are not known.
    """
    kept = plan.files.kept
    if not (plan.acts and files.is_listed and kept.any()):
        return ""
    kept_groups = _row_groups(plan, groups)
    keys = _listed([_by("", each.filter) for each in plan.decisions])
    if kept.all() and not kept_groups:
        tested = any(each.test is not RowFilter.NONE for each in plan.decisions)
        return f"skips no file{', but drops rows without a key early' if tested else ''}: {keys}"
    counted = _counted((plan.files.kept_count, len(files)), (int(files.sizes[kept].sum()), int(files.sizes.sum())))
    return f"reads {'at most ' if has_conditions else ''}{counted}{kept_groups}: {keys}"


def _row_groups(plan: ScanPlan, groups: Containers | None) -> str:
    """The part about row groups of files that are read; empty if none of these is skipped, or if none is known."""
    if plan.row_groups is None or groups is None or groups.parents is None:
        return ""
    of_read = plan.files.kept[groups.parents]
    kept, total = (int(np.count_nonzero(each)) for each in (plan.row_groups.kept & of_read, of_read))
    return f", of these {kept:,} of {total:,} row groups" if kept < total else ""


def _counted(files: tuple[int, int], nbytes: tuple[int, int]) -> str:
    """Files that are read of all, and their bytes."""
    return f"{files[0]:,} of {_files(files[1])} ({size(nbytes[0])} of {size(nbytes[1])})"


def _by(table: str, filter_: FilterExplanation | KeyFilter) -> str:
    return f"{table}{', '.join(filter_.columns)} by {filter_.source.removeprefix('rows of ')}"


def verdict_to_come(filters: Sequence[str]) -> str:
    """The line for filters of which no build has run."""
    return f"keys are still to come: {_listed(filters)}"


def verdict_of_rows(builds: int) -> str:
    """The line for a query in which only the rows of builds stand in the places of their plans."""
    return f"nothing skipped: the query joins the rows of {builds} build{'' if builds == 1 else 's'} that ran before it"


def _nothing_skipped(tables: Sequence[TableExplanation]) -> str:
    found = [(_name(each), one) for each in tables for one in each.filters]
    tested = any(one.row_test != "none" for _, one in found)
    rows = ", but rows without a key are dropped early" if tested else ""
    if (blind := _without_bounds(tables)) is not None:
        return f"nothing skipped{rows}: {blind}; try: {blind.remedy}"
    columns = _listed([", ".join(one.columns) for _, one in found])
    line = f"nothing skipped: every file may hold a key of {columns}{rows}"
    if not found:
        return line
    share, table, column = min((_passing(one), name, one.columns[0]) for name, one in found)
    if 1 - share < _WORTH_CLUSTERING:
        return line
    return f"{line}; {table} clustered by {column} would let it skip about {1 - share:.0%}"


def _without_bounds(tables: Sequence[TableExplanation]) -> Reason | None:
    """The reason why nothing is known of the columns of all filters; None where bounds of one are known."""
    reasons = [{why.subject: why for why in each.reasons if why.code in WITHOUT_BOUNDS} for each in tables]
    wanted = [(own, column) for own, each in zip(reasons, tables, strict=True) for column in _columns(each)]
    return wanted[0][0][wanted[0][1]] if wanted and all(column in own for own, column in wanted) else None


def _columns(table: TableExplanation) -> list[str]:
    return [column for each in table.filters for column in each.columns]


def _passing(filter_: FilterExplanation) -> float:
    return 1.0 if filter_.pass_ratio is None else filter_.pass_ratio


def _name(table: TableExplanation) -> str:
    """The last part of a path, which is enough to tell the tables of one query apart."""
    return table.table.rstrip("/").rpartition("/")[2]


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    """The first different names, and how many more there are."""
    different = list(dict.fromkeys(names))
    more = len(different) - _NAMED
    return "; ".join(different[:_NAMED]) + (f"; {more} more" if more > 0 else "")
