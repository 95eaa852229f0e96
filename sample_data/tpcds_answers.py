"""The rules by which answers of stock Spark, pruned Spark and DuckDB to a query agree.

Rows are compared as multisets; `disorder` compares their order. If ORDER BY leaves ties at a LIMIT, any rows of the tie
are correct, so Spark's rows only have to be among the rows without the LIMIT. Values are compared by the types of their
columns:

- integers, decimals, dates, strings: equal, NULL to NULL; decimals as numbers, so `1.50` equals `1.5`
- a decimal of scale s and a double: DuckDB divides and averages decimals as doubles, whereas Spark rounds to s digits.
  The values may differ by half of the last digit (by more for queries in `ROUNDED_TWICE`) plus the error of the double
- two doubles: equal except for the rounding error of doubles, because sums of doubles depend on the order of rows

`rows.py` compares columns of the first kind by `by_value`, the others as `near`. NaN is near to nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import duckdb

from sample_data.rows import Near, by_value, difference, few, ordered, unmatched
from sample_data.tpcds_queries import Answer, Query, by_duckdb

_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_DUCKDB_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
# Four units in the last place of a double.
_DOUBLE_ERROR = 2.0**-50
_ORDER_BY = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
# An item of ORDER BY that is the name or the number of a column, with optional qualifier and direction.
_PLAIN_ITEM = re.compile(r"(?:\w+\.)?(\w+)(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?", re.IGNORECASE)

# By query of TPC-DS: the tolerance in units of the last digit of Spark's decimals, if it exceeds half a digit, and why.
ROUNDED_TWICE: Mapping[int, tuple[Decimal, str]] = MappingProxyType(
    {
        58: (Decimal(10**6), "it divides by an average that Spark has rounded to six digits, and multiplies by 100"),
        66: (Decimal(1), "it adds two quotients, each of which Spark has rounded"),
    }
)
_ROUNDED_TWICE = {f"q{number}": digits for number, (digits, _) in ROUNDED_TWICE.items()}

Same = Callable[[Any, Any], bool]
# A function from two types to the comparison of their values; None means comparison by value.
Rule = Callable[[str, str], "Same | None"]


def disagreement(query: Query, duck: duckdb.DuckDBPyConnection, stock: Answer, pruned: Answer) -> str:
    """The difference between the three answers to a query; empty if they agree."""
    rule = spark_rule(query)
    return answers_difference("pruned", pruned, "stock", stock, rule) or answers_difference(
        "stock", stock, "DuckDB", by_duckdb(duck, query.in_duckdb.text), rule
    )


def disagreement_beyond_ties(query: Query, duck: duckdb.DuckDBPyConnection, stock: Answer, pruned: Answer) -> str:
    """The difference between the answers beyond the choice of rows among ties at a LIMIT; empty if there is none."""
    whole = by_duckdb(duck, query.in_duckdb.unlimited)
    return difference_beyond_ties("stock", stock, whole, query.limit, spark_rule(query)) or difference_beyond_ties(
        "pruned", pruned, whole, query.limit, spark_rule(query)
    )


def disorder(query: Query, columns: Sequence[str], stock: Answer, pruned: Answer) -> str:
    """The first row at which two answers differ in the columns of ORDER BY; empty if there is none.

    `columns` are the names of the result. Rows that are equal in the columns of ORDER BY may be in any order.
    """
    places = ordered_by(query, columns, stock.types)
    mine, others = (ordered(([row[at] for at in places] for row in each.rows), by_value) for each in (pruned, stock))
    for number, (row, other) in enumerate(zip(mine, others, strict=False), start=1):
        if row != other:
            return f"row {number}: {row} of pruned, {other} of stock"
    return ""


def ordered_by(query: Query, columns: Sequence[str], types: Sequence[str]) -> tuple[int, ...]:
    """The positions of the columns of ORDER BY, up to the first item that is not a column of the result.

    A double ends the list, too: sums of doubles differ in their last digits, so later columns have no fixed order.
    """
    names = [each.lower() for each in columns]
    places: list[int] = []
    for item in _order_items(query.unlimited):
        found = _PLAIN_ITEM.fullmatch(item)
        name = found[1].lower() if found else ""
        if not name.isdecimal() and names.count(name) != 1:
            break
        place = int(name) - 1 if name.isdecimal() else names.index(name)
        if types[place] == "double":
            break
        places.append(place)
    return tuple(places)


def _order_items(text: str) -> list[str]:
    """The items of the query's outermost ORDER BY; empty if the last ORDER BY belongs to a window or a subquery."""
    items = [""]
    depth = 0
    for character in _ORDER_BY.split(text.strip().rstrip(";"))[-1]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return []
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [each.strip() for each in items] if _ORDER_BY.search(text) else []


def answers_difference(name: str, answer: Answer, other_name: str, other: Answer, rule: Rule) -> str:
    """A sentence with the rows that only one of two answers has; empty if the answers are equal."""
    return difference({name: answer.rows, other_name: other.rows}, by_value, _near(answer, other, rule))


def difference_beyond_ties(name: str, answer: Answer, whole: Answer, limit: int | None, rule: Rule) -> str:
    """The reason why an answer is not a choice of `limit` rows of the whole answer; empty if it is one."""
    expected = len(whole.rows) if limit is None else min(limit, len(whole.rows))
    if len(answer.rows) != expected:
        return f"{name}: {len(answer.rows)} rows, expected {expected}"
    left, _ = unmatched(answer.rows, whole.rows, by_value, _near(answer, whole, rule))
    return f"{name}: {len(left)} rows that the whole answer has not: {few(left)}" if left else ""


def _near(answer: Answer, other: Answer, rule: Rule) -> Near:
    rules = (rule(*pair) for pair in zip(answer.types, other.types, strict=True))
    return {at: same for at, same in enumerate(rules) if same is not None}


def pruned_difference(query: Query, pruned: Answer, stock: Answer, whole: Callable[[], Answer]) -> str:
    """The difference of a pruned answer beyond the choice of rows among ties at a LIMIT; empty if there is none.

    `whole` gives stock Spark's answer without the LIMIT.
    """
    rule = spark_rule(query)
    found = answers_difference("pruned", pruned, "stock", stock, rule)
    if not found or query.limit is None:
        return found
    return difference_beyond_ties("pruned", pruned, whole(), query.limit, rule)


def spark_rule(query: Query) -> Rule:
    """The rule that compares Spark's values with Spark's or DuckDB's values."""
    digits = _ROUNDED_TWICE.get(query.name, Decimal("0.5"))
    return lambda spark, other: _rule(spark, other, digits)


def _rule(spark: str, other: str, digits: Decimal) -> Same | None:
    """The comparison of values of two types; None means by value. Raises `ValueError` for incomparable types."""
    if spark == other == "double" or (spark, other) == ("double", "DOUBLE"):
        return _same_double
    if spark.startswith("decimal") and other == "DOUBLE":
        scale = int(spark.rstrip(")").rpartition(",")[2])
        return _rounded_to(digits.scaleb(-scale))
    same_kind = (
        spark == other
        or (spark in _INTEGERS and other in _DUCKDB_INTEGERS)
        or (spark.startswith("decimal") and other.startswith("DECIMAL"))
        or (spark, other) in {("string", "VARCHAR"), ("date", "DATE")}
    )
    if not same_kind:
        raise ValueError(f"Cannot compare a column of type {spark} with one of type {other}: no rule says how")
    return None


def _same_double(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return first == second or math.isclose(first, second, rel_tol=_DOUBLE_ERROR)


def _rounded_to(most: Decimal) -> Same:
    def same(rounded: Decimal | None, exact: float | None) -> bool:
        if rounded is None or exact is None:
            return rounded is None and exact is None
        return abs(rounded - Decimal(exact)) <= most + abs(Decimal(exact)) * Decimal(_DOUBLE_ERROR)

    return same
