"""`sample_row_group`: pass ratios and test costs of keys, from some rows of one row group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.arrow_scan.files import FilePart, OtherFileError
from connectors.arrow_scan.preflight import sample_row_group
from connectors.arrow_scan.reader import KeyTest, ReadColumn
from pruning.keys.membership import MembershipTest
from pruning.limits import LIMITS, Limits
from pruning.values.domain import Domain
from pruning.values.types import ValueType

INT, TEXT, ROWS = ValueType("int"), ValueType("string"), 100_000
COLUMNS = [ReadColumn("k", pa.int32()), ReadColumn("name", pa.string()), ReadColumn("year", pa.int32())]


@pytest.fixture(scope="module")
def part(tmp_path_factory) -> FilePart:
    """Two row groups: `k` has ten values, then ten others; `name` has four; `year` is a partition value."""
    path, numbers = tmp_path_factory.mktemp("sample") / "t.parquet", np.arange(2 * ROWS)
    table = pa.table({"k": pa.array(numbers % 10 + numbers // ROWS * 10, pa.int32()), "name": numbers % 4})
    table = table.set_column(1, "name", table.column("name").cast(pa.string()))
    pq.write_table(table, path, row_group_size=ROWS)
    return FilePart(str(path), (1,), (0, 1, None), (None, None, pa.scalar(2001)))


def ints(column: int, *keys: int) -> KeyTest:
    return KeyTest(column, INT, MembershipTest.of(Domain.of(INT, *keys)))


def texts(*keys: str) -> KeyTest:
    return KeyTest(1, TEXT, MembershipTest.of(Domain.of(TEXT, *keys)))


def sample(part: FilePart, *tests: KeyTest, limits: Limits = LIMITS):
    return sample_row_group(part, COLUMNS, tests, {}, limits)


def test_sample_counts_rows_with_all_keys(part):
    found = sample(part, ints(0, 10, 11), texts("0"), ints(2, 2001))
    assert pytest.approx((0.2, 0.25, 1.0), rel=0.02) == tuple(each.ratio for each in found.keys)
    # Only even numbers have the string, so half of the rows with `k` pass.
    assert pytest.approx(0.05, rel=0.02) == found.survivors
    numbers, names, constant = (each.nanoseconds for each in found.keys)
    assert 0 < numbers < 10_000 > names > 0
    assert constant is None


def test_keys_after_an_empty_result_are_not_sampled(part):
    """No sampled row passes, but one among the others may."""
    found = sample(part, ints(0, 3), texts("0"))
    assert (0.5 / ROWS, None) == (found.survivors, found.keys[1])
    assert 0.5 / ROWS == found.keys[0].ratio


def test_sample_ends_at_its_time_limit(part):
    """A time limit of zero leaves the first thousand rows and one batch, which suffice for the cost of a row."""
    found = sample(part, ints(0, 3), limits=Limits(sample_seconds=0.0))
    assert 0.5 / (1024 + 4096) == found.survivors
    assert found.keys[0].nanoseconds > 0


def test_too_few_rows_give_no_cost(part):
    assert sample(part, ints(0, 10), limits=Limits(sample_rows=ROWS)).keys[0].nanoseconds is None


def test_replaced_file_is_not_sampled(part):
    with pytest.raises(OtherFileError):
        sample(FilePart(part.path, (0,), part.leaves, part.constants, size=1), ints(0, 3))
