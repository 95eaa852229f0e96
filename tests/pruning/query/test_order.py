"""`is_order_free`: aggregates with the same result for any order of rows. Other results may differ between runs."""

from __future__ import annotations

import pytest

from pruning.query.expressions import is_order_free
from pruning.query.plan import Expression
from tests.pruning.plans import call, column


def summed(inside: Expression, function: str = "Sum") -> Expression:
    return call("aggregate.AggregateExpression", call(f"aggregate.{function}", inside))


INT, DOUBLE = column(1, "int"), column(2, "double")


@pytest.mark.parametrize(
    "inside",
    [
        INT,
        call("Cast", INT, type_="bigint"),
        call("Multiply", INT, call("Cast", INT, type_="decimal(10,0)")),
        call("CaseWhen", call("GreaterThan", INT, INT), INT),
        call("UnscaledValue", column(3, "decimal(7,2)")),
    ],
    ids=str,
)
def test_sums_of_integers_and_decimals_are_order_free(inside):
    assert is_order_free(summed(inside))


# Failure catalogue 41: the last bit of a sum of doubles depends on the order in which rows arrive.
@pytest.mark.parametrize(
    "inside",
    [
        DOUBLE,
        call("Add", INT, DOUBLE),
        call("Cast", INT, type_="double"),
        call("MonthsBetween", column(3, "timestamp"), column(4, "timestamp")),
        call("ScalaUDF", INT),
        column(5, ""),
    ],
    ids=str,
)
def test_sums_of_floats_are_not_order_free(inside):
    assert not is_order_free(summed(inside))


@pytest.mark.parametrize(
    ("function", "expected"),
    [("Count", True), ("Max", True), ("Min", True), ("First", False), ("Last", False), ("Average", False)],
)
def test_other_aggregates_of_doubles(function, expected):
    assert expected == is_order_free(summed(DOUBLE, function))


# Failure catalogue 41: an average of integers is a sum of doubles, and several rows may have the greatest value.
@pytest.mark.parametrize("function", ["Average", "First", "MaxBy", "CollectList", "Percentile", "StddevSamp"])
def test_order_dependent_aggregates_of_integers(function):
    assert not is_order_free(summed(INT, function))
