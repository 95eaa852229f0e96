"""Proofs from the counts of a log, which hold for every writer, with deleted rows and without."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType

from connectors.delta.bounds import StoredBounds
from connectors.delta.statistics import LogColumn, column_statistics, deleted_counts, flaws_of, row_counts
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import UNKNOWN, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.types import ValueType

DELETED = 3
# The log says of ten rows, with three deleted ones or without, and the NULLs that it proves.
PROOFS = {
    "no vector, all NULL": (False, 10, 10, None, 10),
    "no vector, some NULL": (False, 10, 4, None, 4),
    "no vector, none": (False, 10, 0, None, 0),
    "no vector, more than rows": (False, 10, 11, None, UNKNOWN),
    "all NULL": (True, 10, 10, None, UNKNOWN),
    "all NULL, tight": (True, 10, 10, False, UNKNOWN),
    "all NULL, wide": (True, 10, 10, True, 10),
    "visible rows, all NULL": (True, 7, 7, None, UNKNOWN),
    "visible rows, more NULL": (True, 7, 9, None, UNKNOWN),
    "some NULL": (True, 10, 4, None, UNKNOWN),
    # The protocol gives such a number no meaning.
    "some NULL, wide": (True, 10, 4, True, UNKNOWN),
    "none": (True, 10, 0, None, 0),
    "none, wide": (True, 10, 0, True, 0),
    "visible rows, none": (True, 7, 0, None, 0),
}


def column(name: str) -> LogColumn:
    type_, spark_type = ValueType(name), BinaryType() if name == "binary" else LongType()
    return LogColumn("i", ("i",), type_, spark_type, StoredBounds(type_), is_partition=False)


@pytest.mark.parametrize(("has_vector", "rows", "nulls", "wide", "proved"), PROOFS.values(), ids=PROOFS)
@pytest.mark.parametrize("name", ["bigint", "binary"])
def test_counts_of_null_that_hold_for_all_writers(has_vector, rows, nulls, wide, proved, name):
    absent = pa.array([None], pa.int64())
    table = pa.table(
        {
            "vector": pa.array(["v" if has_vector else None], pa.string()),
            "deleted": pa.array([DELETED if has_vector else None], pa.int64()),
            "rows": pa.array([rows], pa.int64()),
            "wide": pa.array([wide], pa.bool_()),
            "l0": absent,
            "h0": absent,
            "n0": pa.array([nulls], pa.int64()),
        }
    )
    found = column_statistics(table, 0, column(name))
    assert [proved] == found.null_count.tolist()
    assert [DELETED * has_vector] == deleted_counts(table).tolist()
    value = Domain.of(ValueType(name), b"x" if name == "binary" else 5)
    files = Containers(ContainerKind.FILE, ("f",), row_counts(table), row_counts(table), {"i": found})
    assert (proved != rows) is bool(prune_containers(files, {"i": value}).kept[0])
    # Delta skips a file with as many NULLs as rows by any predicate on the column.
    misleads = has_vector and nulls >= rows and wide is not True
    flaws = flaws_of(table, 0, column(name))
    assert misleads is flaws.miscounted
    assert misleads is StoredBounds(ValueType(name)).comparable(value.ranges, flaws).is_all
