"""Which keys the choice of a reader takes to be tested fast."""

from __future__ import annotations

import pytest

from connectors.arrow_scan.choice import _is_dense
from pruning.limits import LIMITS
from pruning.values.domain import Domain
from pruning.values.types import ValueType


@pytest.mark.parametrize(
    ("type_", "keys", "expected"),
    [
        (ValueType("int"), (1, 3, 5), True),
        (ValueType("date"), (1, 3, 5), True),
        (ValueType("bigint"), (1, 1 << 60), True),
        (ValueType("bigint"), (1, 1 << 30, 1 << 60), False),
        (ValueType("string"), ("a",), False),
        (ValueType("decimal", 9, 2), (1, 2, 3), False),
        (ValueType("double"), (1.0,), False),
    ],
    ids=str,
)
def test_numbers_in_a_table_are_tested_fast(type_, keys, expected):
    assert expected is _is_dense(Domain.of(type_, *keys), LIMITS)
