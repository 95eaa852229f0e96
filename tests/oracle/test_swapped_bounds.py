"""Inverted bounds in a Delta log or in footers lose no row."""

from __future__ import annotations

import pytest

from pruning import explain, pruned_read
from pruning.reasons import ReasonCode
from tests.connectors.hand_made import edit_footer, statistics
from tests.oracle.lakes import copied, data_files
from tests.oracle.oracle import check_rows, reason_codes
from tests.oracle.test_bad_input import KEYS, LAYOUT, rows, with_statistics

pytestmark = pytest.mark.spark

_MAX, _MIN = 5, 6


def _swap_in_log(lake):
    with_statistics(lake, lambda stats: {**stats, "minValues": stats["maxValues"], "maxValues": stats["minValues"]})


def _swap_in_footers(lake):
    """Swaps the bounds in the first row group of each file; the cache of footers is keyed by size and time."""
    column = [field.name for field in lake.whole().schema.fields].index("k")

    def swap(metadata):
        found = statistics(metadata, column)
        found[_MAX], found[_MIN] = found[_MIN], found[_MAX]

    for path in data_files(lake):
        edit_footer(path, swap)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


# Failure catalogue 72, 119: pruning treats inverted bounds as unknown, but storage compares pushed ranges with the
# stored bounds.
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("format_", "swap"), [("delta", _swap_in_log), ("parquet", _swap_in_footers)], ids=["log", "footers"]
)
def test_inverted_bounds_lose_no_row(oracle, shared_lake, tmp_path, format_, swap, exact):
    lake = copied(shared_lake("bad_input", format_, rows, LAYOUT), tmp_path / "t")
    swap(lake)
    answer = oracle.answer(lake, [KEYS])
    assert answer.matching
    read = pruned_read(lake.spark, lake.source, keys=dict([KEYS.entry]), exact=exact)
    check_rows(read, answer, exact=exact)
    assert ReasonCode.STATISTICS_FAILED in reason_codes(explain(read).tables[0])
