from __future__ import annotations

import numpy as np
import pytest

from pruning.domain import Domain
from pruning.selectivity import pass_ratio
from pruning.statistics import ColumnStatistics
from pruning.value_type import ValueType

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
        ([(-(2**63), 2**63 - 1)], Domain.all(BIGINT), 1.0),
        ([(0, 9), (100, 109)], Domain.between(BIGINT, 0, 9), 0.5),
    ],
    ids=["sparse", "whole", "half", "ends", "outside", "unknown bounds", "extremes", "two containers"],
)
def test_density_of_keys_gives_the_share(bounds, domain, expected):
    assert pytest.approx(expected) == ratio(bounds, domain)


def test_only_kept_containers_count_by_their_rows():
    assert pytest.approx(0.75) == ratio(
        [(0, 9), (100, 109), (50, 59)], Domain.between(BIGINT, 0, 9), rows=[3, 1, 9], kept=[True, True, False]
    )
    assert 1.0 == ratio([(0, 9)], Domain.of(BIGINT, 1), kept=[False])


def test_strings_count_keys_against_rows():
    string = ValueType("string")
    assert pytest.approx(0.2) == ratio([("a", "m")], Domain.of(string, "b", "c", "z"), type_=string)
