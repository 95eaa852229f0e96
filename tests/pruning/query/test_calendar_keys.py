"""`year(ts) = y AND month(ts) = m` filters by months: which comparisons make a date, and which columns it reaches."""

from __future__ import annotations

import pytest

from pruning.query.edges import Edge
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import Expression, Join
from pruning.reasons import ReasonCode
from tests.pruning.plans import Plans, call, column

YEAR, MONTH, DAY = "Year", "Month", "DayOfMonth"


def joined(
    *kinds: str, type_: str = "Inner", compared: str = "EqualTo", of: str = "int", swapped: bool = False
) -> Join:
    """A join of times by parts of their dates with the columns of a calendar."""
    plans = Plans()
    times, calendar = plans.table("at", type_="timestamp"), plans.table(*map(str.lower, kinds), type_=of)
    date = call("Cast", column(times.output[0], "timestamp", "at"), type_="date")
    pairs = [(call(kind, date), column(at, of, kind.lower())) for kind, at in zip(kinds, calendar.output, strict=True)]
    parts = [call(compared, *(pair[::-1] if swapped else pair)) for pair in pairs]
    return plans.join(times, calendar, *parts, type_=type_)


def dates(root: Join) -> list[Edge]:
    return [each for each in JoinGraph.of(root).edges if each.build_side.key.kind == "MakeDate"]


def functions(edge: Edge) -> list[str]:
    return [each.kind.name for probe in edge.probes for each in probe.functions]


@pytest.mark.parametrize("swapped", [False, True])
def test_year_and_month_make_a_month(swapped):
    (edge,) = dates(joined(YEAR, MONTH, swapped=swapped))
    assert "make_date(year, month, 1)" == str(edge.build_side.key)
    assert [0] == [each.column for each in edge.probes]
    assert ["TO_DATE", "TRUNCATE_DATE"] == functions(edge)


def test_year_month_and_day_make_a_day():
    (edge,) = dates(joined(MONTH, DAY, YEAR))
    assert "make_date(year, month, dayofmonth)" == str(edge.build_side.key)
    assert ["TO_DATE"] == functions(edge)


def test_parts_of_a_date_are_not_refused_for_themselves():
    graph = JoinGraph.of(joined(YEAR, MONTH, DAY))
    assert () == graph.against(graph.relations[0])
    alone = JoinGraph.of(joined(MONTH))
    assert [ReasonCode.COMPUTED] == [each.code for each in alone.against(alone.relations[0])]


@pytest.mark.parametrize(
    "root",
    [
        joined(YEAR),
        joined(MONTH, DAY),
        joined(YEAR, MONTH, compared="LessThan"),
        joined(YEAR, MONTH, compared="EqualNullSafe"),
        joined(YEAR, MONTH, of="bigint"),
        joined(YEAR, MONTH, type_="LeftOuter"),
        joined(YEAR, MONTH, type_="LeftAnti"),
        joined(YEAR, MONTH, type_="FullOuter"),
    ],
    ids=["no month", "no year", "an order", "null-safe", "another type", "outer", "anti", "full"],
)
def test_other_joins_make_no_date(root):
    assert [] == dates(root)


def test_year_and_month_of_two_columns_make_no_date():
    plans = Plans()
    times, calendar = plans.table("a", "b", type_="date"), plans.table("y", "m", type_="int")
    parts = [
        call("EqualTo", call(kind, column(at, "date")), column(key, "int"))
        for kind, at, key in zip((YEAR, MONTH), times.output, calendar.output, strict=True)
    ]
    assert [] == dates(plans.join(times, calendar, *parts))


def test_computed_numbers_make_no_date():
    plans = Plans()
    times, calendar = plans.table("a", type_="date"), plans.table("y", "m", type_="int")
    date = column(times.output[0], "date")
    month: Expression = call("Add", column(calendar.output[1], "int"), column(calendar.output[1], "int"))
    parts = [
        call("EqualTo", call(YEAR, date), column(calendar.output[0], "int")),
        call("EqualTo", call(MONTH, date), month),
    ]
    assert [] == dates(plans.join(times, calendar, *parts))


def test_semi_join_filters_by_months():
    assert ["TO_DATE", "TRUNCATE_DATE"] == functions(*dates(joined(YEAR, MONTH, type_="LeftSemi")))
