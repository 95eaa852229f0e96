"""The size of the star schema of these tests, and the files that a pruned query read."""

from __future__ import annotations

from pruning import report
from tests.costs import FREE_BUILDS

FILES, DAYS_PER_FILE, ROWS_PER_DAY, ITEMS = 8, 20, 25, 50
OPTIONS = FREE_BUILDS
# Without it the builds over the small dimensions take no job.
BY_JOB = OPTIONS.with_limits(driver_scan_files=0)


def files(df) -> dict[str, tuple[int, int, int]]:
    """The files that each pruned scan read, those it was planned to read, and all."""
    return {
        each.planned.table: (each.measured.files_read, each.planned.files_kept, each.planned.files_total)
        for each in report(df).tables
    }
