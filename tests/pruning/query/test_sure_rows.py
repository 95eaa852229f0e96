"""Files that surely have a row which passes the filters above a scan."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.query.expressions import static_domains
from pruning.query.plan import Expression
from pruning.query.sure_rows import first_sure, passing_domains
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.plans import Plans, call, equal

INT = ValueType("int")
LEAST, MOST = -(1 << 31), (1 << 31) - 1


@pytest.fixture
def plans() -> Plans:
    return Plans()


def typed(at: int, type_: str = "int") -> Expression:
    return Expression("AttributeReference", (), at, type_, "k")


def number(value: object, type_: str = "int") -> Expression:
    return Expression("Literal", (), None, type_, str(value))


def over(plans: Plans, *conditions: Expression):
    """The domains of a scan below a filter and a projection, on one side of a join."""
    table, other = plans.table("k"), plans.table("k")
    filtered = plans.filter(table, *[_at(each, table.output[0]) for each in conditions])
    root = plans.join(filtered, other, equal(*table.output, *other.output))
    found = passing_domains(root, table)
    return found if isinstance(found, Expression) else found.get(table.output[0])


def _at(condition: Expression, column: int) -> Expression:
    if condition.column is not None:
        return Expression(condition.kind, (), column, condition.type, condition.text)
    children = tuple(_at(each, column) for each in condition.children)
    return Expression(condition.kind, children, None, condition.type, condition.text)


def files(*rows: tuple[int | None, int | None, int | None], counts: list[int], deleted: list[int] | None = None):
    """Files with the least and the greatest value, the count of NULLs, and the count of rows."""
    return Containers(
        ContainerKind.FILE,
        [str(at) for at in range(len(rows))],
        np.array(counts, np.int64),
        np.array(counts, np.int64),
        {"k": ColumnStatistics.of(INT, rows)},
        deleted=None if deleted is None else np.array(deleted, np.int64),
    )


@pytest.mark.parametrize(
    ("condition", "inside", "outside"),
    [
        (call("IsNotNull", typed(0)), [LEAST, 0, MOST], [None]),
        (call("EqualTo", typed(0), number(3)), [3], [2, 4, None]),
        (call("In", typed(0), number(3), number(5)), [3, 5], [4, None]),
        (call("GreaterThanOrEqual", typed(0), number(3)), [3, MOST], [2, None]),
        (call("LessThanOrEqual", number(3), typed(0)), [3, MOST], [2, None]),
        (call("GreaterThan", typed(0), number(3)), [4], [3, None]),
        (call("LessThan", typed(0), number(-3)), [-4], [-3, None]),
    ],
)
def test_values_that_pass_are_exactly_those_of_the_condition(plans, condition, inside, outside):
    found = over(plans, condition)
    assert isinstance(found, Domain)
    assert ([True] * len(inside), [False] * len(outside)) == (
        [found.contains(each) for each in inside],
        [found.contains(each) for each in outside],
    )


def test_several_conditions_of_a_column_hold_together(plans):
    found = over(plans, call("IsNotNull", typed(0)), call("GreaterThan", typed(0), number(3)))
    assert found == over(plans, call("GreaterThan", typed(0), number(3)))


def test_a_scan_without_filters_lets_every_row_pass(plans):
    table, other = plans.table("k"), plans.table("k")
    assert {} == passing_domains(plans.join(table, other, equal(*table.output, *other.output)), table)


@pytest.mark.parametrize(
    "condition",
    [
        call("EqualTo", call("Remainder", typed(0), number(7)), number(1)),
        call("Or", call("EqualTo", typed(0), number(1)), call("EqualTo", typed(0), number(2))),
        call("Not", call("EqualTo", typed(0), number(1))),
        # The next number beside the end of a type is the end itself.
        call("GreaterThan", typed(0), number(MOST)),
        call("LessThan", typed(0), number(LEAST)),
        # Domains of strict comparisons of other types have the end, too.
        call("GreaterThan", typed(0, "date"), number("2024-01-01", "date")),
        call("EqualTo", typed(0, "double"), number("0.0", "double")),
        call("EqualTo", typed(0, "timestamp"), number("2024-03-10 12:00:00", "timestamp")),
        call("LessThan", typed(0, "timestamp"), number("2024-03-10 12:00:00", "timestamp")),
        call("LessThan", typed(0, "timestamp_ntz"), number("1710072000000000", "timestamp_ntz")),
        call("EqualTo", typed(0), typed(0)),
    ],
)
def test_other_conditions_prove_nothing(plans, condition):
    assert isinstance(over(plans, condition), Expression)


@given(st.integers(LEAST, MOST), st.sampled_from(["EqualTo", "GreaterThan", "LessThan", "GreaterThanOrEqual"]))
def test_a_value_of_the_domain_fulfils_the_condition(end, kind):
    """A strict comparison with the end of a type proves nothing: its domain has the end, too."""
    plans = Plans()
    found = over(plans, call(kind, typed(0), number(end)))
    if isinstance(found, Expression):
        assert kind in {"GreaterThan", "LessThan"}
        return
    holds = {"EqualTo": int.__eq__, "GreaterThan": int.__gt__, "LessThan": int.__lt__, "GreaterThanOrEqual": int.__ge__}
    for value in (LEAST, end - 1, end, end + 1, MOST):
        if LEAST <= value <= MOST:
            assert holds[kind](value, end) == found.contains(value)


def test_the_first_file_with_rows_that_all_pass_is_found():
    wanted = {"k": Domain.between(INT, 10, None)}
    known = files((0, 20, 0), (10, 20, 1), (10, 20, 0), (30, 40, 0), (None, None, None), counts=[5, 5, 0, 5, 5])
    # Some rows lie below; one is NULL; there is no row; all pass; nothing is known.
    assert 3 == first_sure(known, wanted, range(5))
    assert first_sure(known, wanted, [0, 1, 2, 4]) is None
    assert 3 == first_sure(known, {}, [2, 3])


def test_a_file_whose_rows_may_all_be_deleted_is_not_sure():
    known = files((10, 20, 0), (10, 20, 0), counts=[5, 5], deleted=[5, 4])
    assert 1 == first_sure(known, {"k": Domain.between(INT, 10, None)}, [0, 1])


def test_a_column_without_statistics_is_not_sure():
    assert first_sure(files((1, 2, 0), counts=[5]), {"other": Domain.between(INT, 1, None)}, [0]) is None


def test_dates_of_a_list_and_closed_ends_are_exact(plans):
    day = call("GreaterThanOrEqual", typed(0, "date"), number("2024-01-02", "date"))
    found = over(plans, day)
    assert isinstance(found, Domain)
    days = [dt.date(2024, 1, each) for each in (1, 2)]
    assert [False, True] == [found.contains(each) for each in days]
    assert static_domains([day])[0] == found
