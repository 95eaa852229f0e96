"""The star that queries of these tests are over, and what a pruned one read of it."""

from __future__ import annotations

from pruning import PruningOptions, report

FILES, DAYS_PER_FILE, ROWS_PER_DAY, ITEMS = 8, 20, 25, 50
# Tables of tests are small.
OPTIONS = PruningOptions(min_probe_bytes=2000)


def files(df) -> dict[str, tuple[int, int, int]]:
    """For each pruned scan the files it read, those it was planned to read, and all."""
    return {
        each.planned.table: (each.measured.files_read, each.planned.files_kept, each.planned.files_total)
        for each in report(df).tables
    }
