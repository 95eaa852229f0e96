"""The ablation of numbers of decisions: what counts as a change of a plan, and the table of changes."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from benchmarks.ablation import Change, Plan, Scan, Settings, numbers, page, row_of
from pruning.limits import LIMITS

BY_DAY, BY_ITEM = ("day", "days.day"), ("item", "items.item")
WHOLE = Plan({}, frozenset())


def plan(*scans: Scan, joined: tuple[int, ...] = ()) -> Plan:
    return Plan(dict(enumerate(scans)), frozenset(joined))


def test_a_number_of_the_work_is_no_rule_and_each_rule_can_be_left_out():
    assert "report_wait_seconds" not in numbers()
    assert "costs" not in numbers()
    assert {"list_span", "few_matches", "tuple_ranges"} <= {*numbers()}
    assert all(LIMITS != LIMITS.without(each) for each in numbers())


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        pytest.param(plan(Scan({BY_DAY: "none"}, 10, 100)), Change(0, 0, 0, 0, 10, 10), id="same"),
        pytest.param(WHOLE, Change(1, 0, 0, 0, 10, 100), id="lost"),
        pytest.param(plan(Scan({BY_ITEM: "none"}, 40, 100)), Change(1, 1, 0, 0, 10, 40), id="another"),
        pytest.param(plan(Scan({BY_DAY: "bloom"}, 10, 100)), Change(0, 0, 1, 0, 10, 10), id="form"),
        pytest.param(plan(Scan({BY_DAY: "none"}, 10, 100), joined=(7,)), Change(0, 0, 0, 1, 10, 10), id="joined"),
        pytest.param(
            plan(Scan({BY_DAY: "none"}, 10, 100), Scan({BY_ITEM: "none"}, 5, 50)),
            Change(0, 1, 0, 0, 60, 15),
            id="other-scan",
        ),
        pytest.param(plan(joined=(0,)), Change(1, 0, 0, 1, 0, 0), id="read-by-a-build"),
    ],
)
def test_changes_are_counted_by_filter_side_and_bytes(without, expected):
    found = Change.of(plan(Scan({BY_DAY: "none"}, 10, 100)), without)
    assert expected == found
    assert found.is_none == (asdict(found) == asdict(Change(0, 0, 0, 0, 10, 10)))


def test_the_table_names_the_queries_that_change_most_and_counts_unchanged_ones():
    settings = Settings("tpcds", 1.0, ("q1", "q2", "q3", "q4"), ("list_span", "few_matches"))
    changed = {"q1": Change(1, 0, 0, 0, 99, 199), "q3": Change(0, 0, 2, 1, 99, 99)}
    rows = [row_of("list_span", changed, settings), row_of("few_matches", {}, settings)]
    assert [(2, 1, 0, 2, 1), (0, 0, 0, 0, 0)] == [
        tuple(row[name] for name in ("changed", "lost", "more", "formed", "joined")) for row in rows
    ]
    # One of four queries reads twice as much.
    assert [pytest.approx(2**0.25), 1.0] == [row["bytes"] for row in rows]
    lines = page(rows).splitlines()
    assert "| list_span | 0.9 | 2 of 4 | 1 | 0 | 2 | 1 | 1.189 | q1 2.00, q3 1.00 |" in lines
    assert "| few_matches | 20 | 0 of 4 | 0 | 0 | 0 | 0 | 1.000 |  |" == lines[-1]
