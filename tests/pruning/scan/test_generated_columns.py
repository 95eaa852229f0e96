"""Statistics of a source and of the column generated from it: narrower bounds, counts of NULL, errors of writers."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pytest

from pruning.scan.generated_columns import GeneratedColumn, narrowed
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.functions import Function, FunctionKind
from pruning.values.types import ValueType

BIGINT, INT, STRING, DATE, NTZ = map(ValueType, ("bigint", "int", "string", "date", "timestamp_ntz"))
DAY = GeneratedColumn("day", "at", (Function(FunctionKind.TO_DATE, NTZ, DATE),))
LATER = GeneratedColumn("later", "id", (Function(FunctionKind.ADD, INT, INT, 5),))
PREFIX = GeneratedColumn("prefix", "code", (Function(FunctionKind.PREFIX, STRING, STRING, 2),))
FIRST, SECOND = dt.date(2024, 1, 1), dt.date(2024, 1, 2)
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc).replace(tzinfo=None)


def domains(found: ColumnStatistics | None, rows: int = UNKNOWN) -> list[str]:
    assert found is not None
    return [str(found.domain(index, rows)) for index in range(len(found))]


def test_days_bound_times_and_times_bound_days():
    days = ColumnStatistics.of(DATE, [(FIRST, SECOND, 0), (None, None, None)])
    assert ["{[2024-01-01T00:00:00.000000, 2024-01-02T23:59:59.999999]}", "all"] == domains(DAY.of_source(days, NTZ))
    times = ColumnStatistics.of(NTZ, [(NOON, NOON, 0), (None, NOON, 3)])
    assert ["{2024-01-01}", "{(..., 2024-01-01]} or NULL"] == domains(DAY.of_result(times, DATE))


def test_a_day_of_null_alone_has_times_of_null_alone():
    days = ColumnStatistics.of(DATE, [(None, None, 7)])
    assert ["{} or NULL"] == domains(DAY.of_source(days, NTZ), 7)
    times = ColumnStatistics.of(NTZ, [(None, None, 7)])
    assert ["{} or NULL"] == domains(DAY.of_result(times, DATE), 7)


def test_null_of_a_sum_may_be_one_that_overflows():
    """As `try_add` gives: a file of NULL alone may hold the greatest number."""
    sums = ColumnStatistics.of(INT, [(None, None, 7), (6, 6, 1), (6, 6, 0)])
    found = LATER.of_source(sums, INT)
    assert ["all", "all", "{1}"] == domains(found, 7)
    numbers = ColumnStatistics.of(INT, [(1, 1, 0), (1, (1 << 31) - 2, 0)])
    assert ["{6}", "all"] == domains(LATER.of_result(numbers, INT), 7)


def test_a_partition_of_null_may_hold_empty_bytes():
    binary = ValueType("binary")
    same = GeneratedColumn("part", "bytes", ())
    found = same.of_source(replace(ColumnStatistics.of(binary, [(None, None, 7)]), is_partition=True), binary)
    assert ["all"] == domains(found, 7)


def test_a_partition_of_null_may_hold_empty_texts():
    prefixes = ColumnStatistics.of(STRING, [(None, None, 7), ("ab", "ab", 0)])
    as_partition = PREFIX.of_source(replace(prefixes, is_partition=True), STRING)
    assert ["all", "{[ab, ac]}"] == domains(as_partition, 7)
    assert ["{} or NULL", "{[ab, ac]}"] == domains(PREFIX.of_source(prefixes, STRING), 7)


KNOWN_BOUNDS = [
    ((1, 9, 0), (3, 20, None), "{[3, 9]}"),
    ((3, 20, None), (1, 9, 0), "{[3, 9]}"),
    ((None, None, None), (3, 9, 0), "{[3, 9]}"),
    ((3, 9, 0), (None, None, None), "{[3, 9]}"),
    ((None, 9, 0), (3, None, 0), "{[3, 9]}"),
    ((None, None, None), (None, None, None), "all"),
]


@pytest.mark.parametrize(("own", "derived", "expected"), KNOWN_BOUNDS)
def test_the_narrower_bounds_count(own, derived, expected):
    found = narrowed(*(ColumnStatistics.of(INT, [each]) for each in (own, derived)))
    assert [expected] == domains(found)


@pytest.mark.parametrize(("own", "derived"), [each[:2] for each in KNOWN_BOUNDS])
def test_the_narrower_bounds_of_texts_count(own, derived):
    columns = [ColumnStatistics.of(STRING, [tuple(map(as_text, each[:2])) + each[2:]]) for each in (own, derived)]
    found = narrowed(*columns).domain(0)
    lows = [as_text(each[0]) for each in (own, derived) if each[0] is not None]
    highs = [as_text(each[1]) for each in (own, derived) if each[1] is not None]
    assert all(found.contains(each) for each in ([max(lows), min(highs)] if lows and highs else ["", "zz"]))
    assert found.contains("00") is not bool(lows)
    assert found.contains("99") is not bool(highs)


# A writer that does not keep to the expression, and one whose bounds are in the wrong order.
@pytest.mark.parametrize(("own", "derived"), [((1, 2, 0), (5, 6, 0)), ((9, 1, 0), (3, 4, 0))])
def test_bounds_that_contradict_each_other_skip_nothing(own, derived):
    found = narrowed(*(ColumnStatistics.of(INT, [each]) for each in (own, derived)))
    one = np.array([1], np.int64)
    containers = Containers(ContainerKind.FILE, ["a"], one, one, {"k": found})
    assert all(prune_containers(containers, {"k": Domain.of(INT, each)}).kept_count for each in range(12))


def as_text(number: int | None) -> str | None:
    return None if number is None else f"{number:02}"
