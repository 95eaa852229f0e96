"""`is_lossless`, `probed_column`: the casts that keys of a join are taken back through."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pruning.keys.summary import values_at_least, values_at_most
from pruning.query.expressions import is_lossless, probed_column
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
        # Of two neighbours beyond 2**53, or 2**24, one is the other's double, or float.
        ("bigint", "double", False),
        ("int", "float", False),
        ("decimal(5,2)", "double", False),
        ("date", "timestamp", True),
        ("date", "timestamp_ntz", True),
        # A day is no key for its instants.
        ("timestamp", "date", False),
        ("timestamp_ntz", "date", False),
        ("timestamp", "timestamp_ntz", False),
        ("date", "string", False),
        ("boolean", "int", False),
    ],
)
def test_a_cast_passes_where_it_only_makes_wider(inner, outer, passes):
    assert (7 if passes else None) == probed_column(call("Cast", column(7, inner), type_=outer))


def test_casts_of_casts_pass_where_each_does():
    wider = call("Cast", call("Cast", column(7, "smallint"), type_="int"), type_="decimal(12,2)")
    assert probed_column(wider) == 7
    narrower = call("Cast", call("Cast", column(7, "bigint"), type_="int"), type_="bigint")
    assert probed_column(narrower) is None


# 66: Spark puts them around both sides of an equality.
def test_normal_zeros_and_nan_are_the_values_themselves():
    normal = call("org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero", column(7, "double"))
    assert probed_column(call("KnownFloatingPointNormalized", normal)) == 7
    single = call("Cast", column(7, "float"), type_="double")
    assert probed_column(call("KnownFloatingPointNormalized", call("NormalizeNaNAndZero", single))) == 7
    assert probed_column(call("KnownNullable", column(7, "double"))) is None
    assert ("k", "k") == (str(normal), PlanNames(Plans().table("x")).expression(normal))


def test_a_cast_of_what_is_computed_is_no_column():
    assert probed_column(call("Cast", call("Add", column(7, "int"), literal(1), type_="int"), type_="bigint")) is None


def midnights(day: int, target: ValueType) -> list[int]:
    """The midnight of a day, of an instant by the clock of any zone, where a timestamp can hold it."""
    offsets = OFFSETS if target.name == "timestamp" else (0,)
    return [day * DAY + offset for offset in offsets if abs(day * DAY + offset) < 1 << 63]


def column_values(keys: Domain, column: ValueType) -> Domain:
    found = coerce(keys, column, "`k`")
    assert isinstance(found, Coerced)
    return found.domain


def neighbours(type_: ValueType, value: Any) -> list[Any]:
    """Integers next to each other are the first to fall together."""
    half = 1 << (INTEGER_BITS.get(type_.name, 1) - 1)
    return [each for each in (value - 1, value + 1) if -half <= each < half] if type_.is_integer else []


# Seen red with `bigint` to `double`, and with decimals that lose a digit before or after the point.
@pytest.mark.parametrize(("source", "target"), LOSSLESS, ids=str)
@given(data=st.data())
@FEW
def test_each_value_is_found_again_and_no_other_with_it(source, target, data):
    """A number stands for its cast, since it is one of the wider type, too."""
    value, other = data.draw(values(source)), data.draw(values(source))
    if source.name == "date":
        assert all(column_values(Domain.of(target, each), source).contains(value) for each in midnights(value, target))
        return
    found = column_values(Domain.of(target, value), source)
    assert found.contains(value)
    for each in (other, *neighbours(source, value)):
        assert found.contains(each) is (value == each)


# Seen red where ends of other digits were rounded the wrong way, and where dates had no margin for zones.
@pytest.mark.parametrize(("source", "target"), LOSSLESS, ids=str)
@given(data=st.data())
@FEW
def test_a_value_whose_cast_is_on_one_side_of_a_key_is_found(source, target, data):
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
