from __future__ import annotations

import numpy as np
import pytest

from pruning.scan.skipping import fold_column, fold_rows, parents_of
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values.types import ValueType


def groups(parents: list[int], rows: list[int]) -> Containers:
    count = len(rows)
    names = [str(index) for index in range(count)]
    sizes = np.ones(count, np.int64)
    return Containers(ContainerKind.ROW_GROUP, names, np.array(rows, np.int64), sizes, {}, np.array(parents, np.int64))


def folded(type_: str, stats: list, *, parents: list[int], rows: list[int], files: int) -> list[str]:
    column = ColumnStatistics.of(ValueType.parse(type_), stats)
    containers = groups(parents, rows)
    found, totals = fold_column(column, containers, files), fold_rows(containers, files)
    return [str(found.domain(index, int(totals[index]))) for index in range(files)]


EVERYTHING = "{[-9223372036854775808, 9223372036854775807]}"
CASES = {
    "span of all": ("bigint", [(5, 9, 0), (1, 3, 0)], ["{[1, 9]}"]),
    "wide codes": ("bigint", [(-(2**63), 3, 0), (5, 2**63 - 1, 0)], [f"{{[{-(2**63)}, {2**63 - 1}]}}"]),
    "strings": ("string", [("b", "c", 0), ("a\0", "bb", 0)], ["{[a\0, c]}"]),
    "wide decimals": ("decimal(38,0)", [(-5, 1, 0), (10**30, 10**31, 0)], [f"{{[-5, {10**31}]}}"]),
    "nulls add up": ("bigint", [(5, 9, 1), (1, 3, 0)], ["{[1, 9]} or NULL"]),
    "unknown nulls stay unknown": ("bigint", [(5, 9, None), (1, 3, 0)], ["{[1, 9]} or NULL"]),
    # trinodb/trino#19052: bounds of other row groups do not cover a row group without bounds.
    "one group without bounds": ("bigint", [(5, 9, 0), (None, None, 0)], [EVERYTHING]),
    "null alone takes no bound away": ("bigint", [(5, 9, 0), (None, None, 2)], ["{[5, 9]} or NULL"]),
    "null alone everywhere": ("bigint", [(None, None, 2), (None, None, 2)], ["{} or NULL"]),
    "inverted bounds prove nothing": ("bigint", [(9, 5, 0), (1, 3, 0)], [EVERYTHING]),
    "one end": ("bigint", [(5, None, 0), (1, 3, 0)], ["{[1, 9223372036854775807]}"]),
    "NaN anywhere": ("double", [(5.0, 9.0, 0), (1.0, 3.0, 0)], ["{[1.0, 9.0]} or NaN"]),
}


@pytest.mark.parametrize(("type_", "stats", "expected"), CASES.values(), ids=CASES.keys())
def test_statistics_of_row_groups_are_merged_per_file(type_, stats, expected):
    assert expected == folded(type_, stats, parents=[0, 0], rows=[2, 2], files=1)


def test_row_groups_are_merged_by_file():
    stats = [(5, 6, 0), (1, 2, 1), (7, 8, 0), (3, 4, 0)]
    found = folded("bigint", stats, parents=[2, 0, 2, 3], rows=[2, 2, 2, 2], files=4)
    assert ["{[1, 2]} or NULL", "{}", "{[5, 8]}", "{[3, 4]}"] == found


def test_row_group_without_rows_keeps_bounds():
    assert ["{[5, 9]}"] == folded("bigint", [(5, 9, 0), (None, None, 0)], parents=[0, 0], rows=[2, 0], files=1)


def test_row_group_of_unknown_rows_makes_its_file_unknown():
    stats = [(5, 9, 0), (None, None, None), (1, 2, 0)]
    found = folded("bigint", stats, parents=[0, 0, 1], rows=[2, UNKNOWN, 2], files=2)
    assert ["all", "{[1, 2]}"] == found
    assert [UNKNOWN, 2] == fold_rows(groups([0, 0, 1], [2, UNKNOWN, 2]), 2).tolist()


def test_files_without_row_groups_have_no_rows():
    assert ["{}", "{}"] == folded("string", [], parents=[], rows=[], files=2)


def test_files_have_no_parents():
    files = Containers(ContainerKind.FILE, ["a"], np.ones(1, np.int64), np.ones(1, np.int64))
    with pytest.raises(ValueError, match="Cannot tell the files of 1 containers: they are files"):
        parents_of(files)
