from __future__ import annotations

import numpy as np
import pytest

from pruning.scan.estimates import pass_ratio, span_ratio
from pruning.scan.statistics import ColumnStatistics
from pruning.values.domain import Domain
from pruning.values.types import ValueType

BIGINT = ValueType("bigint")


def ratio(bounds, domain, *, rows=None, kept=None, type_=BIGINT):
    column = ColumnStatistics.of(type_, [(low, high, 0) for low, high in bounds])
    return pass_ratio(column, np.array(rows or [10] * len(bounds)), np.array(kept or [True] * len(bounds)), domain)


@pytest.mark.parametrize(
    ("bounds", "domain", "expected"),
    [
        ([(0, 99)], Domain.of(BIGINT, *range(0, 100, 10)), 0.1),
        ([(0, 9)], Domain.between(BIGINT, 0, 9), 1.0),
        ([(0, 9)], Domain.between(BIGINT, 5, 100), 0.5),
        ([(10, 19)], Domain.of(BIGINT, 9, 10, 19, 20), 0.2),
        ([(0, 9)], Domain.of(BIGINT, 50), 0.0),
        ([(None, None)], Domain.of(BIGINT, 50), 1.0),
        ([(0, 9), (9, 0)], Domain.of(BIGINT, 5), 0.55),
        ([(-(2**63), 2**63 - 1)], Domain.all(BIGINT), 1.0),
        ([(0, 9), (100, 109)], Domain.between(BIGINT, 0, 9), 0.5),
        ([(0, 9), (100, 109)], Domain.between(BIGINT, 5, None), 0.75),
        ([(0, 9), (100, 109)], Domain.between(BIGINT, None, 4), 0.25),
        ([(0, 9)], Domain.between(BIGINT, 10, None), 0.0),
    ],
    ids=[
        *(
            "sparse",
            "whole",
            "half",
            "ends",
            "outside",
            "unknown bounds",
            "contradiction",
            "extremes",
            "two containers",
        ),
        *("open above", "open below", "beyond"),
    ],
)
def test_pass_ratio_is_the_density_of_keys(bounds, domain, expected):
    assert pytest.approx(expected) == ratio(bounds, domain)


def test_pass_ratio_weighs_kept_containers_by_rows():
    assert pytest.approx(0.75) == ratio(
        [(0, 9), (100, 109), (50, 59)], Domain.between(BIGINT, 0, 9), rows=[3, 1, 9], kept=[True, True, False]
    )
    assert 1.0 == ratio([(0, 9)], Domain.of(BIGINT, 1), kept=[False])


def test_pass_ratio_of_strings_is_keys_per_row():
    string = ValueType("string")
    assert pytest.approx(0.2) == ratio([("a", "m")], Domain.of(string, "b", "c", "z"), type_=string)


@pytest.mark.parametrize(
    ("bounds", "keys", "expected"),
    [
        ([(0, 99)], [0, 99], 1.0),
        ([(0, 99)], [10, 19], 0.1),
        ([(0, 99), (100, 199)], [0, 99], 0.5),
        ([("a", "m"), ("n", "z")], ["a", "m"], 0.5),
        ([("b", "m"), ("n", "y")], ["a", "z"], 1.0),
        ([("a", "m")], ["b", "z"], 0.0),
        ([(None, None)], ["b"], 1.0),
    ],
    ids=str,
)
def test_span_ratio_ignores_gaps_between_keys(bounds, keys, expected):
    type_ = BIGINT if isinstance(keys[0], int) else ValueType("string")
    column = ColumnStatistics.of(type_, [(low, high, 0) for low, high in bounds])
    rows, kept = np.full(len(bounds), 10), np.full(len(bounds), fill_value=True)
    assert pytest.approx(expected) == span_ratio(column, rows, kept, Domain.of(type_, *keys))
    assert 1.0 == span_ratio(column, rows, ~kept, Domain.of(type_, *keys))
