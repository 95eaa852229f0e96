"""Files of a scan by pyarrow, and their distribution over tasks, without Spark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as st

from connectors.arrow_scan.files import FilePart
from connectors.arrow_scan.partition import becomes, chunk_bytes, dealt, elsewhere, file_part
from connectors.parquet.row_groups import FileLayout, FileRef, FooterCache, FooterColumn, file_layouts
from connectors.spark.files import LocalStorage
from pruning.limits import Limits
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import ContainerKind, Containers
from pruning.values.types import ValueType

COLUMNS = {"k": st.LongType(), "v": st.StringType()}


def stored(path, **options) -> FileLayout:
    pq.write_table(pa.table({"k": range(40), "v": ["x" * at for at in range(40)]}), path, row_group_size=10, **options)
    wanted = [FooterColumn("k", ("k",), ValueType("bigint")), FooterColumn("v", ("v",), None)]
    reference = FileRef(str(path), path.stat().st_size, path.stat().st_mtime_ns // 1_000_000)
    found = file_layouts([reference], wanted, LocalStorage(), FooterCache(), case_sensitive=False)
    assert not isinstance(found, Reason)
    return found[0]


def test_file_part_describes_the_listed_file(tmp_path):
    path = tmp_path / "t.parquet"
    file = stored(path)
    part = file_part(file, [1, 3], COLUMNS, others_are_gregorian=False)
    assert isinstance(part, FilePart)
    assert (str(path), (1, 3), (0, 1), path.stat().st_size) == (part.path, part.row_groups, part.leaves, part.size)
    group = pq.read_metadata(path).row_group
    expected = [sum(group(at).column(leaf).total_compressed_size for leaf in (0, 1)) for at in (1, 3)]
    assert expected == chunk_bytes(file, [1, 3]).tolist()


@pytest.mark.parametrize(
    ("change", "options", "why"),
    [
        ({"uri": "hdfs://host/t.parquet"}, {}, "neither a local file nor in an S3 store"),
        ({}, {"compression": "brotli"}, "(compressed by BROTLI)"),
        ({"uri": "/nowhere/t.parquet"}, {}, "FileNotFoundError"),
    ],
)
def test_files_that_pyarrow_must_not_read_are_refused(tmp_path, change, options, why):
    found = file_part(
        replace(stored(tmp_path / "t.parquet", **options), **change), [0], COLUMNS, others_are_gregorian=True
    )
    assert isinstance(found, Reason)
    assert ReasonCode.NOT_READ_BY_ARROW is found.code
    assert why in str(found)


def test_kept_file_on_another_file_system_refuses_the_table():
    names = ("file:///a.parquet", "gs://bucket/b.parquet", "s3a://bucket/c.parquet", "hdfs://host/d.parquet")
    files = Containers(ContainerKind.FILE, names, np.ones(4, np.int64), np.ones(4, np.int64), {})
    assert elsewhere(files, np.array([True, False, True, False])) is None
    found = elsewhere(files, np.array([True, False, True, True]))
    assert Reason(ReasonCode.NOT_READ_BY_ARROW, names[3], "it is neither a local file nor in an S3 store") == found


def test_object_store_file_is_accepted_by_its_footer(tmp_path):
    file = replace(stored(tmp_path / "t.parquet"), uri="s3a://bucket/a%20b.parquet")
    part = file_part(file, [0], COLUMNS, others_are_gregorian=True)
    assert isinstance(part, FilePart)
    assert "s3a://bucket/a%20b.parquet" == part.path


def test_column_without_chunk_metadata_is_refused(tmp_path):
    """An encrypted column with a supported codec has such a footer."""
    file = stored(tmp_path / "t.parquet")
    chunks = file.footer.chunks.copy()
    chunks[2, 1] = -1
    hidden = replace(file, footer=replace(file.footer, chunks=chunks))
    assert isinstance(file_part(hidden, [0, 1, 3], COLUMNS, others_are_gregorian=True), FilePart)
    found = file_part(hidden, [2], COLUMNS, others_are_gregorian=True)
    assert Reason(ReasonCode.NOT_READ_BY_ARROW, "v", "a footer does not describe all of its chunks") == found


def test_differently_read_values_have_their_own_reason(tmp_path):
    found = file_part(
        stored(tmp_path / "t.parquet"), [0], {**COLUMNS, "k": st.IntegerType()}, others_are_gregorian=True
    )
    assert Reason(ReasonCode.OTHER_VALUES_BY_ARROW, "k", "int from INT64") == found


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        (pa.int8(), pa.int32(), True),
        (pa.int64(), pa.int32(), False),
        (pa.uint32(), pa.int64(), False),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), True),
        (pa.dictionary(pa.int32(), pa.int64()), pa.string(), False),
        (pa.decimal128(5, 2), pa.decimal128(9, 2), True),
        (pa.decimal128(5, 2), pa.decimal128(9, 3), False),
        (pa.decimal256(5, 2), pa.decimal128(9, 2), False),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC"), True),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"), False),
        (pa.binary(), pa.string(), True),
        (pa.string(), pa.binary(), False),
        (pa.float32(), pa.float64(), False),
        (pa.date64(), pa.date32(), False),
    ],
    ids=str,
)
def test_types_that_keep_values_are_accepted(found, wanted, expected):
    assert expected == becomes(found, wanted)


def test_row_groups_are_distributed_by_bytes():
    parts = [FilePart(name, tuple(range(10)), (0,), (None,)) for name in ("a", "b")]
    tasks = dealt(parts, [np.full(10, 1 << 20)] * 2, 4)
    assert [5, 5, 5, 5] == [sum(len(part.row_groups) for part in task) for task in tasks]
    found = sorted((part.path, group) for task in tasks for part in task for group in part.row_groups)
    assert [(name, at) for name in ("a", "b") for at in range(10)] == found
    (large,), small = dealt(parts[:1], [np.array([*[1 << 19] * 9, 9 << 19])], 2)
    assert ((9,), [tuple(range(9))]) == (large.row_groups, [part.row_groups for part in small])
    assert 1 == len(dealt(parts[:1], [np.zeros(10, np.int64)], 1))


def test_footers_over_the_task_limit_are_read_again():
    few = Limits(arrow_footers_bytes=3)
    parts = [FilePart("a", (0,), (0,), (None,), footer=b"ab"), FilePart("b", (0,), (0,), (None,), footer=b"ab")]
    assert [None, None] == [part.footer for task in dealt(parts, [np.ones(1, np.int64)] * 2, 1, few) for part in task]
