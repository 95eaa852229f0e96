"""`ArrowReader`, the code of Python workers in a scan by pyarrow, without Spark."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.arrow_scan.files import FilePart
from connectors.arrow_scan.reader import ArrowReader, KeyTest, ReadColumn
from pruning.keys.membership import MembershipTest
from pruning.limits import Limits
from pruning.values.domain import Domain
from pruning.values.types import ValueType

INT, ROWS, PER_GROUP = ValueType("int"), 1000, 100


@pytest.fixture
def facts(tmp_path) -> FilePart:
    """Ten row groups: `day` ascends through them; `item` is spread over all and sometimes NULL."""
    numbers = np.arange(ROWS)
    items = [None if at % 7 == 0 else at % 50 for at in range(ROWS)]
    table = pa.table(
        {
            "day": pa.array(numbers // 10, pa.int32()),
            "item": pa.array(items, pa.int32()),
            "amount": pa.array([Decimal(at) / 100 for at in range(ROWS)], pa.decimal128(9, 2)),
            "note": pa.array(["é" * (at % 3) for at in range(ROWS)]),
        }
    )
    path = tmp_path / "facts.parquet"
    pq.write_table(table, path, row_group_size=PER_GROUP)
    return FilePart(str(path), tuple(range(ROWS // PER_GROUP)), (0, 1, 2, 3), (None,) * 4)


COLUMNS = [
    ReadColumn("day", pa.int32()),
    ReadColumn("item", pa.int32()),
    ReadColumn("amount", pa.decimal128(9, 2)),
    ReadColumn("note", pa.string()),
]


# The row groups and leaves that keys of days 3, 4 and 55 need.
CHUNKS = [(range(10), (0,)), ((0, 5), (1, 2, 3))]


def key_test(column: int, *keys: int) -> KeyTest:
    return KeyTest(column, INT, MembershipTest.of(Domain.of(INT, *keys)))


def rows(reader: ArrowReader, *parts: FilePart) -> list[dict[str, Any]]:
    batches = [batch for part in parts for batch in reader.read(part)]
    assert all(batch.schema == reader.schema for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def whole_footer(part: FilePart) -> bytes:
    data = Path(part.path).read_bytes()
    length = int.from_bytes(data[-8:-4], "little") + 8
    return data[:4] + data[-length:]


def test_rows_with_all_keys_are_returned_whole(facts):
    reader = ArrowReader(COLUMNS, [key_test(0, 3, 4, 55), key_test(1, 30, 31, 42, 49)])
    table = pq.read_table(facts.path).to_pylist()
    expected = [row for row in table if row["day"] in {3, 4, 55} and row["item"] in {30, 31, 42, 49}]
    assert expected == rows(reader, facts)
    assert len(expected) == reader.counts.rows_passed > 0


def test_other_columns_are_read_only_with_survivors(facts):
    reader = ArrowReader(COLUMNS, [key_test(0, 3, 4, 55)])
    assert 30 == len(rows(reader, facts))
    metadata = pq.read_metadata(facts.path)
    size = {
        (group, leaf): metadata.row_group(group).column(leaf).total_compressed_size
        for group in range(10)
        for leaf in range(4)
    }
    keys, others = (sum(size[g, leaf] for g in groups for leaf in leaves) for groups, leaves in CHUNKS)
    counts = reader.counts
    assert keys + others + metadata.serialized_size == counts.bytes
    assert (10, 2, ROWS, {facts.path}) == (counts.row_groups, counts.row_groups_used, counts.rows, counts.files)


def test_only_selected_row_groups_are_read(facts):
    reader = ArrowReader(COLUMNS[:1], [])
    some = FilePart(facts.path, (2, 9), (0,), (None,))
    assert [*range(20, 30), *range(90, 100)] == sorted({row["day"] for row in rows(reader, some)})
    assert 2 * PER_GROUP == reader.counts.rows == reader.counts.rows_passed


def test_most_selective_key_test_comes_first(facts):
    reader = ArrowReader(COLUMNS, [key_test(1, *range(49)), key_test(0, 95)])
    assert 8 == len(rows(reader, facts))
    assert [0, 1] == [each.test.column for each in reader._watched]
    assert reader._watched[1].asked < ROWS == reader._watched[0].asked


def test_key_test_that_drops_nothing_is_skipped(facts):
    reader = ArrowReader(COLUMNS, [key_test(0, *range(200))], limits=Limits(observed_rows=2 * PER_GROUP))
    assert ROWS == len(rows(reader, facts))
    assert 2 * PER_GROUP == reader._watched[0].asked


def test_null_passes_only_if_null_is_a_key(facts):
    reader = ArrowReader(COLUMNS, [key_test(1, 0, 1, 2, 5)])
    assert {0, 1, 2, 5} == {row["item"] for row in rows(reader, facts)}
    reader = ArrowReader(COLUMNS, [KeyTest(1, INT, MembershipTest.of(Domain.of(INT, 0, 1, 2, 5, None)))])
    assert {0, 1, 2, 5, None} == {row["item"] for row in rows(reader, facts)}


def test_replaced_file_is_not_read(facts):
    """Row groups of the listed file would be other rows of the new one."""
    found = Path(facts.path).stat()
    listed = replace(facts, size=found.st_size, modified=found.st_mtime_ns // 1_000_000)
    assert ROWS == len(rows(ArrowReader(COLUMNS, []), listed))
    with pytest.raises(OSError, match="it does not exist"):
        rows(ArrowReader(COLUMNS, []), replace(listed, path=f"{facts.path}.gone"))
    for other in (replace(listed, size=found.st_size - 1), replace(listed, modified=1)):
        with pytest.raises(OSError, match="it was replaced"):
            rows(ArrowReader(COLUMNS, []), other)


def test_rows_of_many_batches_keep_their_values(facts):
    """Key columns are read whole, other columns in batches."""
    limits = Limits(batch_rows=7)
    table = pq.read_table(facts.path).to_pylist()
    expected = [row for row in table if row["item"] in {3, 30, 31, 49}]
    reader = ArrowReader(COLUMNS, [key_test(1, 3, 30, 31, 49)], limits=limits)
    assert expected == rows(reader, facts)
    alone = ArrowReader(COLUMNS[1:2], [key_test(0, 3, 30, 31, 49)], limits=limits)
    part = replace(facts, leaves=(1,), constants=(None,))
    assert [row["item"] for row in expected] == [row["item"] for row in rows(alone, part)]


WIDE, WIDE_ROWS = 1000, 6000


@pytest.fixture(params=["as text", "as a dictionary"])
def wide(tmp_path, request) -> FilePart:
    """One row group of long strings, of which the file has one copy each."""
    texts = pa.array([f"{at:{WIDE}}" for at in range(3)])
    numbers = pa.array(np.arange(WIDE_ROWS) % 3, pa.int32())
    table = pa.table({"k": numbers, "text": pa.DictionaryArray.from_arrays(numbers, texts)})
    path = tmp_path / "wide.parquet"
    pq.write_table(table, path, store_schema=request.param == "as a dictionary")
    return FilePart(str(path), (0,), (0, 1), (None, None))


TEXT = ValueType("string")
WIDE_COLUMNS = [ReadColumn("k", pa.int32()), ReadColumn("text", pa.string())]


@pytest.mark.parametrize("tested", [0, 1])
def test_batch_size_is_limited_by_decoded_bytes(wide, tested):
    """A footer gives the size of the dictionary, a thousandth of the decoded rows."""
    limits = Limits(batch_bytes=1 << 20, first_batch_rows=100)
    tests = [
        key_test(0, 0, 1, 2),
        KeyTest(1, TEXT, MembershipTest.of(Domain.of(TEXT, *(f"{at:{WIDE}}" for at in range(3))))),
    ]
    batches = list(ArrowReader(WIDE_COLUMNS, tests[tested : tested + 1], limits=limits).read(wide))
    assert WIDE_ROWS == sum(len(each) for each in batches)
    assert max(each.nbytes for each in batches) < 1.1 * (1 << 20)
    # Batches grow to the limit.
    assert len(batches) <= WIDE_ROWS * WIDE / (1 << 20) + 4


def test_key_columns_over_the_memory_limit_are_read_again(wide):
    tests = [key_test(0, 1, 2), KeyTest(1, TEXT, MembershipTest.of(Domain.of(TEXT, f"{1:{WIDE}}", f"{0:{WIDE}}")))]
    sizes = [pq.read_metadata(wide.path).row_group(0).column(leaf).total_compressed_size for leaf in (0, 1)]
    found = []
    for kept, times in ((1 << 30, (1, 1)), (1 << 20, (1, 2)), (0, (2, 2))):
        reader = ArrowReader(WIDE_COLUMNS, tests, limits=Limits(kept_key_bytes=kept))
        found.append(rows(reader, replace(wide, footer=whole_footer(wide))))
        assert sum(size * each for size, each in zip(sizes, times, strict=True)) == reader.counts.bytes
    assert [{"k": 1, "text": f"{1:{WIDE}}"}] * (WIDE_ROWS // 3) == found[0] == found[1] == found[2]


def test_missing_columns_have_a_constant_value(facts):
    columns = [ReadColumn("day", pa.int32()), ReadColumn("year", pa.int32()), ReadColumn("lost", pa.string())]
    part = FilePart(facts.path, (0,), (0, None, None), (None, pa.scalar(2001, pa.int32()), None))
    tested = KeyTest(1, INT, MembershipTest.of(Domain.of(INT, 2001)))
    found = rows(ArrowReader(columns, [tested, key_test(0, 4)]), part)
    assert [{"day": 4, "year": 2001, "lost": None}] * 10 == found
    assert [] == rows(ArrowReader(columns, [key_test(1, 1999)]), part)
    assert [] == rows(
        ArrowReader(columns, [KeyTest(2, ValueType("string"), MembershipTest.of(Domain.of(ValueType("string"), "a")))]),
        part,
    )


def test_given_footer_is_not_read_again(facts):
    given = replace(facts, row_groups=(1,), footer=whole_footer(facts))
    reader = ArrowReader(COLUMNS, [])
    assert PER_GROUP == len(rows(reader, given))
    group = pq.read_metadata(facts.path).row_group(1)
    assert sum(group.column(leaf).total_compressed_size for leaf in range(4)) == reader.counts.bytes


def test_nan_and_both_zeros_match(tmp_path):
    double = ValueType("double")
    path = str(tmp_path / "floats.parquet")
    pq.write_table(pa.table({"x": [0.0, -0.0, float("nan"), 1.5, None]}), path)
    part = FilePart(path, (0,), (0,), (None,))
    column = [ReadColumn("x", pa.float64())]
    zeros = ArrowReader(column, [KeyTest(0, double, MembershipTest.of(Domain.of(double, 0.0)))])
    assert ["0.0", "-0.0"] == [str(row["x"]) for row in rows(zeros, part)]
    nan = ArrowReader(column, [KeyTest(0, double, MembershipTest.of(Domain.of(double, float("nan"))))])
    assert ["nan"] == [str(row["x"]) for row in rows(nan, part)]


def test_narrow_integers_and_binary_are_converted(tmp_path):
    path = str(tmp_path / "narrow.parquet")
    table = pa.table({"k": pa.array([1, 2], pa.int32()), "b": pa.array([b"a", b"\xff"], pa.binary())})
    pq.write_table(table, path)
    columns = [ReadColumn("k", pa.int64()), ReadColumn("b", pa.string())]
    part = FilePart(path, (0,), (0, 1), (None, None))
    batch = next(ArrowReader(columns, []).read(part))
    assert [1, 2] == batch.column(0).to_pylist()
    assert [b"a", b"\xff"] == batch.column(1).view(pa.binary()).to_pylist()
