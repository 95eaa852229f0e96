"""`static_domains`: the domain of a column under the conditions of a query, never narrower than the matching values."""

from __future__ import annotations

import datetime as dt
import math
import operator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.query.expressions import static_domains
from pruning.query.plan import Expression
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.plans import both, call, column

UTC = dt.timezone.utc
# The widest offsets of zones, in which Spark may write the text of an instant.
ZONES = [UTC, dt.timezone(dt.timedelta(hours=18)), dt.timezone(dt.timedelta(hours=-18))]
VALUES: dict[str, list[Any]] = {
    "int": [-(2**31), -1, 0, 3, 2**31 - 1],
    "bigint": [-(2**63), 0, 7, 2**63 - 1],
    "double": [-math.inf, -0.0, 0.0, 1.5, math.inf, math.nan],
    "decimal(5,2)": [Decimal("-999.99"), Decimal("0.00"), Decimal("12.50")],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2020, 2, 29)],
    "boolean": [False, True],
    "timestamp": [
        dt.datetime(1500, 1, 1, tzinfo=UTC),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        dt.datetime(2024, 3, 10, 12, 34, 56, 120_000, tzinfo=UTC),
        dt.datetime(2024, 3, 11, tzinfo=UTC),
    ],
    "timestamp_ntz": [-1, 0, 1_710_074_096_120_000],
    "string": ["", "None", "a'b", "ä", "😀", "z" * 50],
}
COMPARISONS = {
    "EqualTo": operator.eq,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
}


def text_of(value: Any, zone: dt.tzinfo = UTC) -> str:
    """A literal as Spark writes it into the text of a plan; instants in the zone of a session."""
    match value:
        case dt.datetime():
            text = value.astimezone(zone).replace(tzinfo=None).isoformat(sep=" ")
            return text.rstrip("0") if "." in text else text
        case bool():
            return str(value).lower()
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case float() if math.isnan(value):
            return "NaN"
        case _:
            return str(value)


def literal(type_: str, value: Any, zone: dt.tzinfo = UTC) -> Expression:
    return Expression("Literal", (), None, type_, "None" if value is None else text_of(value, zone))


def ranked(value: Any) -> Any:
    """A sort key in Spark's order: NaN above every number, strings by their bytes."""
    match value:
        case float():
            return (math.isnan(value), 0.0 if math.isnan(value) else value)
        case str():
            return value.encode()
        case _:
            return value


def holds(condition: Expression, values: dict[int, Any], literals: dict[int, Any]) -> bool | None:
    """Three-valued logic; `literals` maps the identity of each literal to its value."""
    match condition.kind:
        case "And" | "Or":
            found = [holds(each, values, literals) for each in condition.children]
            decisive = condition.kind == "Or"
            return decisive if decisive in found else (None if None in found else not decisive)
        case "Not":
            inner = holds(condition.children[0], values, literals)
            return None if inner is None else not inner
        case "IsNull" | "IsNotNull":
            return (values[condition.children[0].column] is None) is (condition.kind == "IsNull")
        case "In":
            found = [
                holds(call("EqualTo", condition.children[0], each), values, literals) for each in condition.children[1:]
            ]
            return True if True in found else (None if None in found else False)
        case kind:
            sides = [
                values[each.column] if each.column is not None else literals[id(each)] for each in condition.children
            ]
            return None if None in sides else COMPARISONS[kind](*map(ranked, sides))


@st.composite
def cases(draw):
    types = {at: draw(st.sampled_from(sorted(VALUES))) for at in (1, 2)}
    literals: dict[int, Any] = {}
    kept: list[Expression] = []
    zone = draw(st.sampled_from(ZONES))

    def a_literal(type_):
        value = draw(st.sampled_from([*VALUES[type_], *VALUES[type_], None]))
        made = literal(type_, value, zone)
        literals[id(made)] = value
        kept.append(made)
        return made

    def leaf():
        at = draw(st.sampled_from((1, 2)))
        own = column(at, types[at])
        match draw(st.sampled_from([*COMPARISONS, "In", "IsNull", "IsNotNull", "flipped"])):
            case "In":
                return call("In", own, *(a_literal(types[at]) for _ in range(draw(st.integers(1, 3)))))
            case "IsNull" | "IsNotNull" as kind:
                return call(kind, own)
            case "flipped":
                return call(draw(st.sampled_from(sorted(COMPARISONS))), a_literal(types[at]), own)
            case kind:
                return call(kind, own, a_literal(types[at]))

    def tree(depth):
        kind = draw(st.sampled_from(["leaf", "And", "Or", "Not"])) if depth else "leaf"
        match kind:
            case "leaf":
                return leaf()
            case "Not":
                return call("Not", tree(depth - 1))
            case _:
                return call(kind, tree(depth - 1), tree(depth - 1))

    conditions = [tree(draw(st.integers(0, 3))) for _ in range(draw(st.integers(1, 2)))]
    return types, conditions, literals


@given(cases())
def test_domain_contains_every_value_that_satisfies_conditions(case):
    types, conditions, literals = case
    domains = static_domains(conditions)
    for first in [*VALUES[types[1]], None]:
        for second in [*VALUES[types[2]], None]:
            values = {1: first, 2: second}
            if all(holds(each, values, literals) is True for each in conditions):
                assert all(domain.contains(values[at]) for at, domain in domains.items())


def one(*conditions: Expression) -> Domain | None:
    return static_domains(conditions).get(1)


INT = ValueType("int")
TIMESTAMP, NTZ = ValueType("timestamp"), ValueType("timestamp_ntz")
NOON, MARGIN = 1_710_072_000_000_000, 18 * 3_600_000_000


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (call("EqualTo", column(1, "int"), literal("int", 3)), Domain.of(INT, 3)),
        (
            call("EqualTo", column(1, "timestamp"), literal("timestamp", dt.datetime(2024, 3, 10, 12, tzinfo=UTC))),
            Domain.between(TIMESTAMP, NOON - MARGIN, NOON + MARGIN),
        ),
        (
            call(
                "LessThan", column(1, "timestamp"), Expression("Literal", (), None, "timestamp", "2024-03-10 12:00:00")
            ),
            Domain.between(TIMESTAMP, None, NOON + MARGIN),
        ),
        (call("EqualTo", column(1, "timestamp_ntz"), literal("timestamp_ntz", NOON)), Domain.of(NTZ, NOON)),
        (
            call(
                "In",
                column(1, "timestamp_ntz"),
                literal("timestamp_ntz", NOON),
                literal("timestamp_ntz", NOON + MARGIN),
            ),
            Domain.of(NTZ, NOON, NOON + MARGIN),
        ),
        (call("LessThan", literal("int", 3), column(1, "int")), Domain.between(INT, 4, None)),
        (call("LessThanOrEqual", literal("int", 3), column(1, "int")), Domain.between(INT, 3, None)),
        (call("LessThan", column(1, "int"), literal("int", 3)), Domain.between(INT, None, 2)),
        (call("LessThan", column(1, "int"), literal("int", -(2**31))), Domain.between(INT, None, -(2**31))),
        (call("In", column(1, "int"), literal("int", 3), literal("int", 9)), Domain.of(INT, 3, 9)),
        (
            both(
                call("GreaterThanOrEqual", column(1, "int"), literal("int", 3)),
                call("LessThanOrEqual", column(1, "int"), literal("int", 9)),
            ),
            Domain.between(INT, 3, 9),
        ),
        (
            call(
                "Or",
                call("EqualTo", column(1, "int"), literal("int", 3)),
                call("EqualTo", column(1, "int"), literal("int", 9)),
            ),
            Domain.of(INT, 3, 9),
        ),
        (call("IsNull", column(1, "int")), Domain.only_null(INT)),
    ],
)
def test_supported_conditions_give_exact_domains(condition, expected):
    assert expected == one(condition)


@pytest.mark.parametrize(
    "condition",
    [
        call("Not", call("EqualTo", column(1, "int"), literal("int", 3))),
        call("EqualTo", column(1, "int"), literal("bigint", 3)),
        call("EqualTo", call("Cast", column(1, "int"), type_="bigint"), literal("bigint", 3)),
        call("EqualTo", column(1, "int"), column(2, "int")),
        call("EqualTo", column(1, "string collate UTF8_LCASE"), literal("string collate UTF8_LCASE", "a")),
        call("EqualTo", column(1, "string"), literal("string", "a\ufffd")),
        call("EqualTo", column(1, "timestamp"), literal("timestamp", "+12345-01-01 00:00:00")),
        call("EqualTo", column(1, "date"), literal("date", "+12345-01-01")),
        call("EqualTo", column(1, "int"), call("ScalarSubquery", type_="int")),
        call("EqualNullSafe", column(1, "int"), literal("int", 3)),
        call("Or", call("EqualTo", column(1, "int"), literal("int", 3)), call("IsNull", column(2, "int"))),
        call("In", column(1, "int"), literal("int", 3), column(2, "int")),
    ],
    ids=str,
)
def test_unsupported_conditions_give_no_domain(condition):
    assert one(condition) is None
