"""Comparison of results of TPC-DS queries by its rules."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import duckdb
import pytest

from sample_data.dsdgen import load_tpcds
from sample_data.tpcds_answers import disagreement, disagreement_beyond_ties, disorder, ordered_by
from sample_data.tpcds_queries import Answer, Query, by_duckdb, queries

SPARK = ("bigint", "decimal(7,2)", "string", "date")
ROW = (1, Decimal("1.50"), "a", date(2000, 1, 2))
DUCK = "SELECT 1::HUGEINT, 1.5::DECIMAL(38,1), 'a', DATE '2000-01-02'"


@pytest.fixture
def agree(duck):
    """A function that returns True if two results of Spark agree with DuckDB's result of a text."""

    def compare(stock: Answer, pruned: Answer, text: str, compared=disagreement) -> bool:
        return not compared(Query(1, text), duck, stock, pruned)

    return compare


@pytest.fixture
def agrees(agree):
    """A function that returns True if a value of a Spark type agrees with DuckDB's."""

    def compare(type_: str, value: object, text: str) -> bool:
        answer = Answer((type_,), ((value,),))
        return agree(answer, answer, f"SELECT {text}")

    return compare


def test_rows_agree_in_any_order_and_decimal_scale(agree):
    two = Answer(SPARK, (ROW, (2, *ROW[1:])))
    other = Answer(SPARK, two.rows[::-1])
    assert agree(two, other, f"{DUCK} UNION ALL SELECT 2, 1.5, 'a', DATE '2000-01-02'")


@pytest.mark.parametrize("at", range(4))
def test_different_value_or_null_is_a_disagreement(agree, at):
    right = Answer(SPARK, (ROW,))
    assert agree(right, right, DUCK)
    for value in (None, (2, Decimal("1.51"), "b", date(2000, 1, 3))[at]):
        wrong = Answer(SPARK, ((*ROW[:at], value, *ROW[at + 1 :]),))
        assert not agree(right, wrong, DUCK)
        assert not agree(wrong, wrong, DUCK)


def test_different_row_count_is_a_disagreement(agree):
    once, twice = Answer(SPARK, (ROW,)), Answer(SPARK, (ROW, ROW))
    assert agree(twice, twice, f"{DUCK} UNION ALL {DUCK}")
    assert not agree(once, twice, DUCK)
    assert not agree(once, once, f"{DUCK} UNION ALL {DUCK}")
    assert not agree(twice, twice, DUCK)


def test_decimal_agrees_with_a_double_within_rounding(agrees):
    assert agrees("decimal(11,6)", Decimal("0.333333"), "1::DOUBLE / 3")
    assert not agrees("decimal(11,6)", Decimal("0.333334"), "1::DOUBLE / 3")
    assert not agrees("decimal(11,6)", None, "1::DOUBLE / 3")


def test_decimal_agrees_only_within_the_precision_of_a_double(agrees):
    assert agrees("decimal(38,20)", Decimal("0.33333333333333333333"), "1::DOUBLE / 3")
    assert not agrees("decimal(38,20)", Decimal("0.33333333333333300000"), "1::DOUBLE / 3")


def test_doubles_agree_within_rounding_error(agrees):
    assert agrees("double", 0.1 + 0.2, "0.3::DOUBLE")
    assert not agrees("double", 0.300000001, "0.3::DOUBLE")
    assert not agrees("double", None, "0.3::DOUBLE")


def test_types_without_a_rule_are_refused(agrees):
    with pytest.raises(ValueError, match="no rule says how"):
        agrees("string", "1", "1")


def test_tied_rows_at_a_limit_are_interchangeable(agree):
    text = "SELECT * FROM (VALUES (1), (2), (3)) rows(x) ORDER BY x > 1 LIMIT 2"
    first, other = Answer(("int",), ((1,), (2,))), Answer(("int",), ((1,), (3,)))
    assert not agree(first, other, text)
    assert agree(first, other, text, disagreement_beyond_ties)
    for wrong in (((1,),), ((1,), (4,)), ((1,), (1,))):
        assert not agree(first, Answer(("int",), wrong), text, disagreement_beyond_ties)


def test_only_the_final_limit_is_removed():
    query = Query(1, "SELECT * FROM (SELECT 1 LIMIT 5) ORDER BY 1\nLIMIT 100;\n")
    assert 100 == query.limit
    assert "SELECT * FROM (SELECT 1 LIMIT 5) ORDER BY 1" == query.unlimited.strip()
    assert Query(2, "SELECT 1 LIMIT 5) x").limit is None


ORDER_COLUMNS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("SELECT * FROM t ORDER BY a, b", (0, 1)),
        ("SELECT * FROM t order by t.C DESC NULLS LAST, 2 NULLS FIRST LIMIT 100;", (2, 1)),
        ("SELECT * FROM t ORDER BY a, b - a, c", (0,)),
        ("SELECT * FROM t ORDER BY d, a", ()),
        ("SELECT * FROM t ORDER BY substr(b, 1, 2), a", ()),
        ("SELECT a, rank() OVER (ORDER BY b) FROM t", ()),
        ("SELECT a, rank() OVER (ORDER BY b) FROM t ORDER BY c", (2,)),
        ("SELECT a FROM t", ()),
    ],
)
def test_order_is_checked_by_leading_plain_columns(text, places):
    assert places == ordered_by(Query(1, text), ORDER_COLUMNS, ("int", "string", "date"))


def test_order_check_stops_at_a_double():
    assert (0,) == ordered_by(Query(1, "SELECT * ORDER BY a, b, c"), ORDER_COLUMNS, ("int", "double", "date"))


def test_order_check_needs_unique_column_names():
    assert () == ordered_by(Query(1, "SELECT * ORDER BY a"), ("a", "A"), ("int", "int"))


def test_disorder_is_found_except_among_ties():
    query, types = Query(1, "SELECT * ORDER BY a"), ("int", "int")
    stock = Answer(types, ((1, 1), (1, 2), (2, 3)))
    assert not disorder(query, ("a", "b"), stock, Answer(types, ((1, 2), (1, 1), (2, 3))))
    assert "row 1: (2,) of pruned, (1,) of stock" == disorder(
        query, ("a", "b"), stock, Answer(types, ((2, 3), (1, 1), (1, 2)))
    )


def test_most_queries_have_a_checkable_order():
    with duckdb.connect() as connection:
        load_tpcds(connection)
        connection.execute("CALL dsdgen(sf=0)")
        described = {each: connection.execute(f"DESCRIBE {each.text}").fetchall() for each in queries()}
    found = {
        query.number: ordered_by(query, *zip(*((name, type_.lower()) for name, type_, *_ in columns), strict=True))
        for query, columns in described.items()
    }
    assert (2, 3, 0, 1) == found[98]
    assert sum(map(bool, found.values())) >= 70


def test_there_are_99_queries_with_and_without_a_limit():
    every = queries()
    assert [*range(1, 100)] == [each.number for each in every]
    assert {100, None} == {each.limit for each in every}


def test_duckdb_result_has_type_names():
    with duckdb.connect() as connection:
        assert Answer(("DECIMAL(3,1)", "VARCHAR"), ((Decimal("1.0"), None),)) == by_duckdb(
            connection, "SELECT 1.0::DECIMAL(3,1), NULL::VARCHAR"
        )
