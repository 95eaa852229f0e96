"""A failing random query is made smaller, and its report still has the fault."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.oracle.draws import Draws, simplest
from tests.oracle.random_lakes import random_lake
from tests.oracle.random_queries import Query, random_query
from tests.oracle.reproductions import TRIES, Failure, shown, smaller

SEED = 1
FAULTS = (" LIMIT ", " OVER (", " IS NOT DISTINCT FROM ", " GROUP BY ")


@pytest.fixture(scope="module")
def lake():
    return random_lake(SEED)


def failure(lake, fault: str) -> Failure:
    """The longest of some queries with a fault, as if each of them lost a row."""
    longest: tuple[Query, list[int]] | None = None
    for number in range(200):
        draws = Draws(f"query {SEED} {number}")
        query = random_query(lake, draws)
        if fault in query.sql and (longest is None or len(query.sql) > len(longest[0].sql)):
            longest = query, draws.taken
    assert longest is not None
    query, taken = longest
    return Failure("SCANPRUNE_QUERY=7 pytest", query, AssertionError("lost 3 rows"), partial(random_query, lake), taken)


def problem_of(fault: str):
    return lambda query: AssertionError("lost 1 rows") if fault in query.sql else None


@pytest.mark.parametrize("fault", FAULTS)
def test_smaller_query_is_small_and_has_the_fault(lake, fault):
    found = failure(lake, fault)
    small = smaller(found, problem_of(fault))
    assert fault in small.sql
    assert small.sql.count("SELECT") <= 10 < found.query.sql.count("SELECT")


def test_report_has_command_and_tables_of_the_query(lake):
    found = failure(lake, FAULTS[0])
    text = shown(found, lake, problem_of(FAULTS[0]))
    small = smaller(found, problem_of(FAULTS[0]))
    first, again, query, smaller_line, says, *tables = text.split("\n")
    assert "AssertionError: lost 3 rows" == first
    assert "again: SCANPRUNE_QUERY=7 pytest" == again
    assert query == f"query: {found.query}"
    assert smaller_line == f"smaller: {small}"
    assert "which says: lost 1 rows" == says
    assert sorted(set(re.findall(r"FROM (t\d)", small.sql))) == [each.split(" ")[0] for each in tables]


def test_smaller_query_fails_with_the_same_error(lake):
    """A simpler query that fails for another reason explains nothing."""
    fault = FAULTS[0]
    found = failure(lake, fault)

    def problem(query: Query) -> Exception | None:
        return AssertionError("lost 1 rows") if fault in query.sql else ValueError("no such column")

    assert fault in smaller(found, problem).sql


def test_given_draws_reproduce_the_query(lake):
    draws = Draws("query 1 3")
    query = random_query(lake, draws)
    assert query == random_query(lake, Draws(given=draws.taken))


def test_no_draws_give_the_simplest_query(lake):
    assert [0] * 3 == [Draws(given=[]).below(9) for _ in range(3)]
    assert random_query(lake, Draws(given=[])).sql.count("SELECT") <= 4


def test_irrelevant_draws_are_removed():
    """The case fails if an 8 comes before a 3: both stay, the rest is removed."""

    def fails(given):
        taken = list(given)
        return taken if 8 in taken and 3 in taken[taken.index(8) :] else None

    assert [8, 3] == simplest([5, 1, 8, 4, 4, 9, 3, 7, 7], fails, tries=200)


def test_number_of_tries_is_bounded():
    tried = []

    def fails(given):
        tried.append(given)

    assert [4] * 40 == simplest([4] * 40, fails, TRIES)
    assert TRIES == len(tried)
