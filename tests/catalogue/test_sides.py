"""Joins of each type, with and without NULL: only a side whose rows need a match is filtered."""

from __future__ import annotations

import pytest

from tests.catalogue.facts import FILES, files, refusal_codes
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

DIM = "(SELECT * FROM dims WHERE grp = 2)"


def case(name: str, query: str, *expected):
    return pytest.param(query.replace("{dim}", DIM), *expected, id=name)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        # Failure catalogue 15, 23: the join remains, with the rest of its condition.
        case(
            "semi-join-with-a-residual",
            """SELECT f.id FROM facts f WHERE EXISTS (
                SELECT 1 FROM dims d WHERE d.k = f.k AND d.grp = 2 AND f.item >= d.item)""",
            1,
        ),
        case("in", "SELECT f.id FROM plain f WHERE f.k IN (SELECT k FROM dims WHERE grp IN (2, 5))", 2),
        case(
            "in-within-a-semi-join",
            """SELECT count(*) FROM facts f WHERE f.k IN (
                SELECT d.k FROM dims d WHERE d.item IN (SELECT item FROM dims WHERE grp = 2 AND k < 43) AND d.grp = 2)
            """,
            1,
        ),
        # Failure catalogue 14: the side without a match of its own.
        case("left", "SELECT d.k, f.id, f.maybe FROM {dim} d LEFT JOIN facts f ON f.k = d.k AND f.item > 2", 1),
        case("right", "SELECT d.k, f.id, f.maybe FROM plain f RIGHT JOIN {dim} d ON f.k = d.k AND f.item > 2", 1),
        # Failure catalogue 14: conditions above that make an outer join an inner one.
        case("left-made-inner", "SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.k WHERE d.grp = 2", 1),
        case(
            "full-made-inner",
            "SELECT f.id FROM facts f FULL JOIN dims d ON f.k = d.k WHERE d.grp = 2 AND f.item = 3",
            1,
        ),
        case("full-made-right", "SELECT f.id, d.k FROM facts f FULL JOIN dims d ON f.k = d.k WHERE d.grp = 2", 1),
        case(
            "anti", "SELECT k FROM {dim} d WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.k = d.k AND f.item = 3)", 1
        ),
        case(
            "existence-in-an-or",
            "SELECT k FROM {dim} d WHERE item = 1 OR EXISTS (SELECT 1 FROM facts f WHERE f.k = d.k AND f.item = 4)",
            1,
        ),
        # Failure catalogue 13.
        case(
            "in-in-an-or",
            "SELECT kind FROM keys x WHERE kind = 'one' AND (x.k IN (SELECT maybe FROM facts) OR x < 0)",
            1,
        ),
        # Failure catalogue 11: the correlated subquery of each row is filtered by its own key, which is not NULL.
        case(
            "not-in-of-a-correlated-subquery",
            "SELECT d.k FROM {dim} d WHERE d.k NOT IN (SELECT maybe FROM facts f WHERE f.k = d.k)",
            1,
        ),
        case(
            "counts-of-correlated-subqueries",
            "SELECT d.k, (SELECT count(*) FROM facts f WHERE f.k = d.k AND f.item = 3) AS n FROM {dim} d",
            1,
        ),
        case(
            "rows-without-any-partner",
            "SELECT d.k FROM {dim} d WHERE (SELECT count(*) FROM facts f WHERE f.k = d.k AND f.item = 3) = 0",
            1,
        ),
        # Failure catalogue 10: no key is NULL.
        case(
            "null-safe-without-null",
            "SELECT f.id FROM facts f JOIN keys x ON f.maybe IS NOT DISTINCT FROM x.k WHERE kind = 'one'",
            1,
        ),
        # Failure catalogue 26, 38: NULL equals nothing.
        case("null-on-both-sides", "SELECT f.id FROM facts f JOIN keys x ON f.maybe = x.k WHERE kind = 'both'", 1),
        case("null-alone", "SELECT f.id FROM plain f JOIN keys x ON f.maybe = x.k WHERE kind = 'null'", 0),
        case(
            "no-row-has-the-key",
            "SELECT f.id FROM facts f RIGHT JOIN (SELECT * FROM keys WHERE kind = 'gone') x ON f.k = x.k",
            0,
        ),
        # Failure catalogue 66, 67.
        case("the-zeros-are-one", "SELECT f.id FROM facts f JOIN keys x ON f.weight = x.x WHERE kind = 'zero'", 1),
        case(
            "the-zeros-are-one-either-way",
            "SELECT f.id FROM facts f JOIN keys x ON f.weight = x.x WHERE kind = 'minus'",
            1,
        ),
        # Failure catalogue 60, 61: NaN equals NaN, and no bound tells which file has it; the row filter finds it.
        case("nan", "SELECT f.id FROM facts f JOIN keys x ON f.weight = x.x WHERE kind = 'nan'", 8),
    ],
)
def test_side_that_needs_a_match_is_filtered(agreed, query, kept):
    _, result = agreed(query)
    assert [kept] == list(files(result).values())


@pytest.mark.parametrize(
    ("query", "code"),
    [
        case("left", "SELECT f.id, d.item FROM facts f LEFT JOIN {dim} d ON f.k = d.k", "OUTER_SIDE"),
        case("right", "SELECT f.id, d.item FROM {dim} d RIGHT JOIN plain f ON f.k = d.k", "OUTER_SIDE"),
        case(
            "full-with-coalesced-keys",
            "SELECT coalesce(f.k, d.k), f.id FROM facts f FULL JOIN (SELECT * FROM dims WHERE grp > 5) d ON f.k = d.k",
            "OUTER_SIDE",
        ),
        case(
            "left-with-the-keys-of-no-row",
            "SELECT f.id, d.item FROM facts f LEFT JOIN (SELECT * FROM dims WHERE grp = 77) d ON f.k = d.k",
            "OUTER_SIDE",
        ),
        case("anti", "SELECT f.id FROM facts f WHERE NOT EXISTS (SELECT 1 FROM {dim} d WHERE f.k = d.k)", "OUTER_SIDE"),
        case(
            "anti-with-an-empty-right-side",
            "SELECT f.id FROM facts f WHERE NOT EXISTS (SELECT 1 FROM dims d WHERE f.k = d.k AND grp = 77)",
            "OUTER_SIDE",
        ),
        case(
            "existence-in-an-or",
            "SELECT f.id FROM facts f WHERE f.item = 1 OR EXISTS (SELECT 1 FROM dims d WHERE d.k = f.k AND grp = 2)",
            "KEYLESS_OPERAND",
        ),
        # Failure catalogue 13.
        case(
            "in-in-an-or-of-what-may-be-null",
            "SELECT f.id FROM facts f WHERE f.item = 1 OR f.maybe IN (SELECT k FROM keys WHERE kind = 'both')",
            "KEYLESS_OPERAND",
        ),
        # Failure catalogue 10: NULL equals NULL.
        case(
            "null-safe-with-null",
            "SELECT f.id FROM facts f JOIN keys x ON f.maybe IS NOT DISTINCT FROM x.k WHERE kind = 'both'",
            "NULL_SAFE",
        ),
        case("intersect", "SELECT maybe FROM facts INTERSECT SELECT k FROM keys WHERE kind = 'both'", "NULL_SAFE"),
        # Failure catalogue 30.
        case(
            "null-safe-above-an-outer-join",
            """SELECT d.k, f.id FROM facts f LEFT JOIN (SELECT k, CASE WHEN item > 0 THEN k END AS m FROM {dim}) d
               ON f.k = d.k WHERE f.maybe IS NOT DISTINCT FROM d.m""",
            "OUTER_SIDE",
        ),
        # Failure catalogue 16, 17: a value in the place of the missing row of an outer join.
        case(
            "coalesce-above-an-outer-join",
            """SELECT c.item, p.k, p.id FROM (SELECT * FROM dims WHERE grp = 0) c JOIN (
                SELECT d.k, f.k AS fk, f.id FROM dims d LEFT JOIN facts f ON f.k = d.k + 100
               ) p ON c.k = coalesce(p.fk, 0)""",
            "OUTER_SIDE",
        ),
        case(
            "ifnull-on-both-sides-of-an-outer-join",
            """SELECT d.k, f.id FROM {dim} d JOIN (
                SELECT a.item, b.maybe, b.id FROM keys x LEFT JOIN dims a ON a.k = x.k LEFT JOIN facts b ON b.k = a.k
               ) f ON ifnull(f.maybe, 41) = d.k""",
            "OUTER_SIDE",
        ),
    ],
)
def test_side_that_needs_no_match_is_not_filtered(agreed, query, code):
    df, result = agreed(query)
    # The dimension above the outer joins needs a match, so computed keys may filter it.
    assert {} == {name: kept for name, kept in files(result).items() if "ifnull" not in query or name != "dims#1"}
    assert code in refusal_codes(df, result)


# Failure catalogue 11, 12: one NULL on either side changes the result of NOT IN for all rows; an empty side changes it
# for NULL.
@pytest.mark.parametrize(
    "query",
    [
        case("null-on-the-left", "SELECT f.id FROM facts f WHERE f.maybe NOT IN (SELECT k FROM dims WHERE grp = 2)"),
        case("null-on-the-right", "SELECT d.k FROM dims d WHERE d.k + 1000 NOT IN (SELECT maybe FROM facts)"),
        case(
            "null-in-a-small-right-side", "SELECT id FROM facts WHERE k NOT IN (SELECT k FROM keys WHERE kind = 'both')"
        ),
        case("empty-right-side", "SELECT id FROM facts f WHERE maybe NOT IN (SELECT k FROM dims WHERE grp = 77)"),
        case("null-against-many", "SELECT kind FROM keys x WHERE x.k NOT IN (SELECT k FROM facts WHERE item > 3)"),
        case("null-against-none", "SELECT kind FROM keys x WHERE x.k NOT IN (SELECT k FROM plain WHERE item > 30)"),
    ],
)
def test_not_in_filters_neither_side(agreed, query):
    df, result = agreed(query)
    assert is_unchanged(df, result)
    assert {} == files(result)
    # A computed key may raise where Spark moves it, whatever statistics tell of NULL.
    assert ("MAY_MOVE" if "+ 1000" in query else "NULL_AWARE") in refusal_codes(df, result)


# The column `k` of the facts has no NULL, and `maybe` has one in each file.
@pytest.mark.parametrize(
    ("query", "table"),
    [
        case(
            "both-without-null", "SELECT d.k FROM dims d WHERE d.grp = 2 AND d.k NOT IN (SELECT k FROM facts)", "facts"
        ),
        case(
            "tested-for-null",
            "SELECT d.k FROM dims d WHERE d.grp = 2 AND d.k NOT IN (SELECT maybe FROM facts WHERE maybe IS NOT NULL)",
            "facts",
        ),
        case(
            "compared",
            "SELECT d.k FROM dims d WHERE d.grp = 2 AND d.k NOT IN (SELECT maybe FROM plain WHERE maybe < 900)",
            "plain",
        ),
        case("wider", "SELECT d.k FROM dims d WHERE d.grp = 2 AND d.id NOT IN (SELECT k FROM facts)", "facts"),
        case(
            "correlated",
            "SELECT d.k FROM dims d WHERE d.grp = 2 AND d.k NOT IN (SELECT k FROM plain p WHERE p.item = d.item)",
            "plain",
        ),
        case(
            "two-columns",
            "SELECT d.k FROM dims d WHERE d.grp = 2 AND (d.k, d.item) NOT IN (SELECT k, item FROM facts)",
            "facts",
        ),
        case(
            "no-row-on-the-left",
            "SELECT d.k FROM dims d WHERE d.grp = 77 AND d.k NOT IN (SELECT k FROM facts)",
            "facts",
        ),
    ],
)
def test_not_in_without_null_is_an_anti_join(agreed, query, table):
    _, result = agreed(query)
    kept = files(result)
    assert kept.get(table, 0) <= 1 < FILES
    assert kept.keys() == {table} or "grp = 77" in query


# Failure catalogue 11: one NULL among the keys, or where statistics do not tell, lets no row pass.
@pytest.mark.parametrize(
    "query",
    [
        case("keys", "SELECT kind FROM keys x WHERE kind <> 'nan' AND x.k NOT IN (SELECT k FROM facts)"),
        case("rows", "SELECT d.k FROM dims d WHERE d.grp = 2 AND d.k NOT IN (SELECT maybe FROM plain)"),
        case(
            "padded",
            """SELECT d.k FROM dims d WHERE d.grp = 2 AND d.k NOT IN (
            SELECT f.k FROM dims e LEFT JOIN facts f ON e.k = f.k + 5)""",
        ),
    ],
)
def test_not_in_with_null_filters_nothing(agreed, query):
    df, result = agreed(query)
    assert not files(result).keys() & {"facts", "plain"}
    assert "NULL_AWARE" in refusal_codes(df, result)


# Failure catalogue 10, 12: a subquery without a row is NULL, which a null-safe equality matches.
@pytest.mark.parametrize("kind", ["one", "null", "absent"])
def test_null_safe_equality_with_a_subquery_filters_nothing(agreed, kind):
    subquery = f"(SELECT min(k) FROM keys WHERE kind = '{kind}')"
    df, result = agreed(f"SELECT f.id FROM facts f WHERE f.maybe IS NOT DISTINCT FROM {subquery}")
    assert {} == files(result)
    assert "NULL_AWARE" in refusal_codes(df, result)
