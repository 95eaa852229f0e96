"""Hostile names and layouts: columns, nested fields, partitions, folders."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from connectors.columns import quoted
from pruning import explain, pruned_read
from pruning.errors import ColumnNotFoundError
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from sample_data.nasty import COLUMN_NAMES, PARTITION_VALUES, tables
from tests.oracle.answers import Keys
from tests.oracle.lakes import Layout, write
from tests.oracle.oracle import skips

pytestmark = pytest.mark.spark

ROW_PER_FILE = Layout(file_rows=1, group_rows=1)
MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture(params=["delta", "parquet"])
def named(request, shared_lake):
    options = MAPPED if request.param == "delta" else {}
    return shared_lake("names", request.param, lambda: tables()["hostile_names"], ROW_PER_FILE, options=options)


@pytest.fixture(params=["delta", "parquet"])
def nested(request, shared_lake):
    options = MAPPED if request.param == "delta" else {}
    return shared_lake("nested", request.param, lambda: tables()["nested"], ROW_PER_FILE, options=options)


# The nth column has n, n + 1 and n + 2 in its three files, so a swapped column would read other files and rows.
@pytest.mark.parametrize("name", COLUMN_NAMES)
def test_hostile_column_name_filters_its_column(oracle, named, name):
    keys = Keys.of(quoted(name), pa.array([COLUMN_NAMES.index(name) + 1], pa.int32()))
    oracle.check(named, keys, exact=[True], expected=skips((1, 3), (1, 3)))


def test_all_hostile_column_names_in_one_read(oracle, named):
    entries = [Keys.of(quoted(name), pa.array([at + 2], pa.int32())) for at, name in enumerate(COLUMN_NAMES)]
    # One column skips Delta's files, so that the others have none left to skip.
    reasons = (ReasonCode.UNCLUSTERED,) if named.format == "delta" else ()
    oracle.check(named, *entries, expected=skips((1, 3), (1, 3), *reasons))


# Failure catalogue 128: a column name with dots is not a path of fields, nor the reverse.
@pytest.mark.parametrize(
    ("name", "type_", "keys", "files"),
    [
        ("outer.inner.k", pa.int32(), [2], 1),
        ("OUTER.Inner.K", pa.int32(), [1], 1),
        ("`outer.inner.k`", pa.int32(), [20, 40], 2),
        ("outer.inner.k", pa.int32(), [20, 40], 0),
        ("outer.inner.`x.y`", pa.string(), ["one", "none"], 1),
    ],
)
def test_struct_fields_and_dotted_column_names(oracle, nested, name, type_, keys, files):
    if name == "OUTER.Inner.K":
        name_in_schema = "outer.inner.k"
        answer = oracle.answer(nested, [Keys.of(name_in_schema, pa.array(keys, type_))])
        read = pruned_read(oracle.spark, nested.source, keys={name: keys}, exact=True)
        assert len(answer.matching) == read.count() == 1
        assert files == explain(read).tables[0].files_kept
        return
    oracle.check(nested, Keys.of(name, pa.array(keys, type_)), expected=skips((files, 5), (files, 5)))


def test_struct_field_and_flat_column_of_one_name(oracle, nested):
    entries = [Keys.of("outer.inner.k", pa.array([1, 2], pa.int32())), Keys.of("`outer.inner.k`", pa.array([50, 20]))]
    oracle.check(nested, *entries, expected=skips((1, 5), (1, 5)))


# Failure catalogue 129: one name in two cases.
def test_columns_that_differ_only_by_case(oracle, spark, tmp_path):
    rows = pa.table({"id": [0, 1, 2], "k": [10, 20, 30], "K": [20, 30, 10]})
    with conf(spark, {"spark.sql.caseSensitive": "true"}):
        lake = write(spark, tmp_path / "cased", "parquet", rows, ROW_PER_FILE)
        oracle.check(lake, Keys.of("k", pa.array([20, 30])), Keys.of("K", pa.array([30])), expected=skips((1, 3)))
        with pytest.raises(ColumnNotFoundError, match="No column 'ID'"):
            pruned_read(spark, lake.source, keys={"ID": [1]})


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_hostile_partition_values(oracle, shared_lake, format_):
    layout = Layout(file_rows=1, group_rows=1, partition_by=("part",))
    lake = shared_lake("partitions", format_, lambda: tables()["partitions"], layout)
    values = [value for value in PARTITION_VALUES if value is not None]
    sets = [Keys.of("part", pa.array([*values[at::6], None, "nowhere"])) for at in range(6)]
    oracle.prepare(lake, sets)
    for at, keys in enumerate(sets):
        found = len(keys.table) - 2
        oracle.check(lake, keys, exact=[at % 2 == 0], expected=skips((found, len(PARTITION_VALUES))))


def typed_partitions() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "number": pa.array([None, -1, 0, 7, 7, 10], pa.int32()),
            "day": pa.array([date(1969, 12, 31), date(2024, 2, 29), None] * 2, pa.date32()),
            "price": pa.array([Decimal("1.50"), Decimal("-0.01"), None] * 2, pa.decimal128(7, 2)),
        }
    )


@pytest.mark.parametrize(
    ("column", "keys", "files"),
    [
        ("number", pa.array([7, 10, 3_000_000_000], pa.int64()), 3),
        ("number", pa.array([None], pa.int64()), 0),
        ("day", pa.array([date(1969, 12, 31)], pa.date32()), 2),
        ("price", pa.array([Decimal("1.5000")], pa.decimal128(9, 4)), 2),
    ],
)
def test_partition_keys_of_other_types(oracle, shared_lake, column, keys, files):
    layout = Layout(file_rows=1, group_rows=1, partition_by=("number", "day", "price"))
    lake = shared_lake("typed_partitions", "delta", typed_partitions, layout)
    oracle.check(lake, Keys.of(column, keys), expected=skips((files, 6), (files, 6)))


def test_key_tuple_of_a_partition_and_a_data_column(oracle, shared_lake):
    layout = Layout(file_rows=1, group_rows=1, partition_by=("number", "day", "price"))
    lake = shared_lake("typed_partitions", "delta", typed_partitions, layout)
    pairs = Keys.of(("id", "number"), pa.array([3, 4, 5]), pa.array([7, 8, 10], pa.int32()))
    # Column by column, the values 4 and 7 keep the row that has both, although no key has.
    oracle.check(lake, pairs, expected=skips((3, 6), (3, 6), ReasonCode.UNCLUSTERED))


@pytest.mark.parametrize("format_", ["delta", "parquet"])
@pytest.mark.parametrize("folder", ["a b%20c", "it's [1]*{x}?", "new\nline", "p=1", "\u00e4\U0001f600#$&;"])
def test_hostile_folder_names(oracle, spark, tmp_path, format_, folder):
    lake = write(spark, tmp_path / folder / "t", format_, pa.table({"id": range(4)}), ROW_PER_FILE)
    oracle.check(lake, Keys.of("id", pa.array([1, 2])), exact=[True], expected=skips((2, 4), (2, 4)))
