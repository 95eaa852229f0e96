"""The decisions about a query as values that compare: of two flows, two versions, or two runs."""

from __future__ import annotations

from pruning.results.prune_report import PruneReport


def decided(told: PruneReport) -> tuple[list[object], list[object], list[object]]:
    """The files that each pruned scan reads and had before, the filters that did it, and the builds."""
    filters: list[object] = [
        (each.planned.table, one.columns, one.source, one.kind, one.keys, dict(one.ranges), one.row_test)
        for each in told.tables
        for one in each.planned.filters
    ]
    builds: list[object] = [(each.keys, each.level, each.reads) for each in told.builds]
    files: list[object] = [
        (each.planned.table, each.planned.files_kept, each.planned.files_total) for each in told.tables
    ]
    return sorted(files, key=str), sorted(filters, key=str), sorted(builds, key=str)
