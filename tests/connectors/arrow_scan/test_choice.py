"""`_is_dense`: keys whose test the choice of a reader estimates as fast."""

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
def test_keys_with_a_lookup_table_are_dense(type_, keys, expected):
    assert expected is _is_dense(Domain.of(type_, *keys), LIMITS)
