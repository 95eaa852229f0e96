"""`is_lossless` and `probed_column`: the casts through which keys of a join are traced to a column."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pruning.keys.summary import values_at_least, values_at_most
from pruning.query.expressions import is_lossless
from pruning.query.key_functions import probed_column
from pruning.query.plan import PlanNames
from pruning.values.coercion import Coerced, coerce
from pruning.values.domain import Domain
from pruning.values.types import INTEGER_BITS, ValueType
from tests.pruning.plans import Plans, call, column, literal
from tests.pruning.samples import ALL_TYPES
from tests.pruning.spark_equality import DAY, OFFSETS
from tests.pruning.strategies import values

TYPES = (*ALL_TYPES, *(ValueType("decimal", *digits) for digits in ((3, 0), (7, 4), (20, 0), (30, 15))))
FEW = settings(max_examples=max(20, settings().max_examples // 4))
LOSSLESS = tuple(pair for pair in product(TYPES, TYPES) if is_lossless(*pair))


@pytest.mark.parametrize(
    ("inner", "outer", "passes"),
    [
        ("int", "bigint", True),
        ("tinyint", "int", True),
        ("bigint", "int", False),
        ("int", "int", False),
        ("string", "bigint", False),
        ("", "bigint", False),
        ("int", "", False),
        ("decimal(7,2)", "decimal(9,2)", True),
        ("decimal(7,2)", "decimal(9,4)", True),
        ("decimal(7,2)", "decimal(9,5)", False),
        ("decimal(7,2)", "decimal(38,1)", False),
        ("decimal(7,2)", "decimal(7,2)", False),
        ("decimal(38,0)", "decimal(38,6)", False),
        ("int", "decimal(10,0)", True),
        ("int", "decimal(9,0)", False),
        ("int", "decimal(12,3)", False),
        ("bigint", "decimal(20,0)", True),
        ("bigint", "decimal(18,0)", False),
        ("decimal(5,0)", "bigint", False),
        ("float", "double", True),
        ("double", "float", False),
        ("int", "double", True),
        ("smallint", "float", True),
        # Beyond 2**53 (2**24 for float), two neighbouring integers round to the same double.
        ("bigint", "double", False),
        ("int", "float", False),
        ("decimal(5,2)", "double", False),
        ("date", "timestamp", True),
        ("date", "timestamp_ntz", True),
        # A date is no key for its instants.
        ("timestamp", "date", False),
        ("timestamp_ntz", "date", False),
        ("timestamp", "timestamp_ntz", False),
        ("date", "string", False),
        ("boolean", "int", False),
    ],
)
def test_only_widening_casts_are_traced(inner, outer, passes):
    assert (7 if passes else None) == probed_column(call("Cast", column(7, inner), type_=outer))


def test_nested_casts_are_traced_if_each_is_lossless():
    wider = call("Cast", call("Cast", column(7, "smallint"), type_="int"), type_="decimal(12,2)")
    assert probed_column(wider) == 7
    narrower = call("Cast", call("Cast", column(7, "bigint"), type_="int"), type_="bigint")
    assert probed_column(narrower) is None


# Failure catalogue 66: Spark normalizes both sides of an equality of floats.
def test_float_normalization_is_traced():
    normal = call("org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero", column(7, "double"))
    assert probed_column(call("KnownFloatingPointNormalized", normal)) == 7
    single = call("Cast", column(7, "float"), type_="double")
    assert probed_column(call("KnownFloatingPointNormalized", call("NormalizeNaNAndZero", single))) == 7
    assert probed_column(call("KnownNullable", column(7, "double"))) is None
    assert ("k", "k") == (str(normal), PlanNames(Plans().table("x")).expression(normal))


def test_cast_of_a_computed_value_is_not_traced():
    assert probed_column(call("Cast", call("Add", column(7, "int"), literal(1), type_="int"), type_="bigint")) is None


def midnights(day: int, target: ValueType) -> list[int]:
    """The midnights of a day that a timestamp can hold: one per time zone for an instant."""
    offsets = OFFSETS if target.name == "timestamp" else (0,)
    return [day * DAY + offset for offset in offsets if abs(day * DAY + offset) < 1 << 63]


def column_values(keys: Domain, column: ValueType) -> Domain:
    found = coerce(keys, column, "`k`")
    assert isinstance(found, Coerced)
    return found.domain


def neighbours(type_: ValueType, value: Any) -> list[Any]:
    """Neighbouring integers, which a lossy cast would merge first."""
    half = 1 << (INTEGER_BITS.get(type_.name, 1) - 1)
    return [each for each in (value - 1, value + 1) if -half <= each < half] if type_.is_integer else []


# Fails if `bigint` to `double` counts as lossless, or decimals that lose a digit before or after the point.
@pytest.mark.parametrize(("source", "target"), LOSSLESS, ids=str)
@given(data=st.data())
@FEW
def test_lossless_cast_maps_each_value_to_itself(source, target, data):
    """A number is used as its own cast, because it is a value of the wider type, too."""
    value, other = data.draw(values(source)), data.draw(values(source))
    if source.name == "date":
        assert all(column_values(Domain.of(target, each), source).contains(value) for each in midnights(value, target))
        return
    found = column_values(Domain.of(target, value), source)
    assert found.contains(value)
    for each in (other, *neighbours(source, value)):
        assert found.contains(each) is (value == each)


# Fails if bounds with other digits are rounded inward, or if dates have no margin for time zones.
@pytest.mark.parametrize(("source", "target"), LOSSLESS, ids=str)
@given(data=st.data())
@FEW
def test_bounds_match_values_by_their_casts(source, target, data):
    value = data.draw(values(source))
    is_date = source.name == "date"
    near = st.integers(-DAY, DAY).map(lambda apart: min(max(value * DAY + apart, 1 - (1 << 63)), (1 << 63) - 1))
    key = data.draw(st.one_of(values(target), near if is_date else values(source)))
    at_least = column_values(values_at_least(Domain.of(target, key)), source)
    at_most = column_values(values_at_most(Domain.of(target, key)), source)
    for made in midnights(value, target) if is_date else [value]:
        assert at_least.contains(value) or not made >= key
        assert at_most.contains(value) or not made <= key
    assert is_date or (at_least.contains(value), at_most.contains(value)) == (value >= key, value <= key)
