"""Columns by which a session's Parquet reader can skip row groups."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import DataType, DateType, DecimalType, LongType, StringType, TimestampType

from connectors.columns import Column
from connectors.parquet.table import ParquetTable
from connectors.scan.capabilities import capabilities_of
from pruning import explain, pruned_read, report
from sample_data.confs import conf
from tests.connectors.parquet_tables import in_files, numbered, opened

pytestmark = pytest.mark.spark

PUSHDOWN = "spark.sql.parquet.filterPushdown"
NESTED = "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources"
TYPES: dict[str, DataType] = {
    "day": DateType(),
    "price": DecimalType(7, 2),
    "at": TimestampType(),
    "word": StringType(),
    "number": LongType(),
}


@pytest.fixture
def table(spark, tmp_path) -> ParquetTable:
    return opened(spark, in_files(tmp_path / "files", *numbered(0)))


def file_only(spark, table) -> set[str]:
    columns = [Column((name,), type_, None, None) for name, type_ in TYPES.items()]
    columns += [
        Column(("top", "leaf"), LongType(), None, None),
        Column(("p",), DateType(), None, None, is_partition=True),
    ]
    return set(capabilities_of(spark, table, [], columns, exact=False).file_only)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (f"{PUSHDOWN}.date", "false", {"day"}),
        (f"{PUSHDOWN}.decimal", "false", {"price"}),
        (f"{PUSHDOWN}.timestamp", "FALSE", {"at"}),
        (f"{PUSHDOWN}.string.startsWith", "false", set()),
        (NESTED, "orc", {"top.leaf"}),
        (NESTED, "", {"top.leaf"}),
        (NESTED, "orc, Parquet", set()),
        (PUSHDOWN, "false", {*TYPES, "top.leaf"}),
    ],
)
def test_confs_that_disable_reader_pushdown(spark, table, name, value, expected):
    assert set() == file_only(spark, table)
    with conf(spark, {name: value}):
        assert expected == file_only(spark, table)


@pytest.fixture(scope="module")
def groups(tmp_path_factory) -> str:
    """A file with eight row groups, sorted by each column."""
    days = [dt.date(2024, 1, 1) + dt.timedelta(at) for at in range(400)]
    columns = {
        "day": days,
        "price": pa.array([Decimal(at) for at in range(400)], pa.decimal128(7, 2)),
        "at": pa.array([at * 1_000_000 for at in range(400)], pa.timestamp("us", "UTC")),
        "top": [{"leaf": at} for at in range(400)],
    }
    path = tmp_path_factory.mktemp("groups") / "rows.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=50)
    return str(path)


@pytest.mark.parametrize(
    ("column", "key", "name", "value"),
    [
        ("day", dt.date(2024, 1, 4), f"{PUSHDOWN}.date", "false"),
        ("price", Decimal(3), f"{PUSHDOWN}.decimal", "false"),
        ("at", dt.datetime(1970, 1, 1, 0, 0, 3, tzinfo=dt.UTC), f"{PUSHDOWN}.timestamp", "false"),
        ("top.leaf", 3, NESTED, "orc"),
    ],
)
def test_planned_row_groups_are_read(spark, groups, column, key, name, value):
    assert (1, 50, 1) == planned_and_read(spark, groups, column, key)
    with conf(spark, {name: value}):
        assert (8, 400, 1) == planned_and_read(spark, groups, column, key)


def planned_and_read(spark, source, column, key) -> tuple[int, int, int]:
    """The number of planned row groups, of scanned rows, and of found rows."""
    read = pruned_read(spark, source, keys={column: [key]}, exact=True)
    found = read.collect()
    return explain(read).tables[0].row_groups_kept, report(read).measured.rows_scanned, len(found)
