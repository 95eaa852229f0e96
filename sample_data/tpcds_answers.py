"""When stock Spark, pruned Spark and DuckDB agree on a query of TPC-DS.

Rows are multisets, and `disorder` looks at their order. Where ORDER BY leaves ties at a LIMIT, rows of the tie are as
good as each other, so those of Spark only have to be among the rows without the LIMIT. Values are equal by the types of
their columns:

- whole numbers, decimals, dates, strings: equal, NULL to NULL; decimals as numbers, since `1.50` is `1.5`
- a decimal of scale s beside a double: DuckDB divides and averages decimals as doubles, of which Spark keeps s digits.
  They differ by at most half of the last digit (by more where `ROUNDED_TWICE` says why), beside the double's own error
- two doubles: equal but for the double's own error, since sums of doubles depend on the order of their rows

Other engines have types of their own for averages and quotients. By the `lenient_rule()`, doubles and decimals of
different scales are equal where they differ by no more than the last digit of the coarser decimal, or by a
thousand-millionth of their size; all else is equal by `==`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import duckdb

from benchmarks.tpcds_rounding import ROUNDED_TWICE
from benchmarks.tpcds_workload import Answer, Query, by_duckdb

_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_DUCKDB_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
# Four units in the last place of a double.
_DOUBLE_ERROR = 2.0**-50
_ORDER_BY = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
# What may stand around the name of a column, or its number.
_PLAIN_ITEM = re.compile(r"(?:\w+\.)?(\w+)(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?", re.IGNORECASE)

Row = tuple[Any, ...]
Same = Callable[[Any, Any], bool]
# How values of two types are compared; None for by `==`.
Rule = Callable[[str, str], "Same | None"]
_LENIENT_ERROR = Decimal("1e-9")


def disagreement(query: Query, duck: duckdb.DuckDBPyConnection, stock: Answer, pruned: Answer) -> str:
    """How the three answers to a query differ; empty where they do not."""
    rule = spark_rule(query)
    return difference("pruned", pruned, "stock", stock, rule) or difference(
        "stock", stock, "DuckDB", by_duckdb(duck, query.text), rule
    )


def disagreement_beyond_ties(query: Query, duck: duckdb.DuckDBPyConnection, stock: Answer, pruned: Answer) -> str:
    """How they differ in more than which rows of a tie a LIMIT lets through; empty where they do not."""
    whole = by_duckdb(duck, query.unlimited)
    return difference_beyond_ties("stock", stock, whole, query.limit, spark_rule(query)) or difference_beyond_ties(
        "pruned", pruned, whole, query.limit, spark_rule(query)
    )


def disorder(query: Query, columns: Sequence[str], stock: Answer, pruned: Answer) -> str:
    """Where the rows of the two differ in the columns that ORDER BY names, one row after the other; empty for nowhere.

    `columns` are the names of the result. Rows that are equal in these columns may be in any order.
    """
    places = ordered_by(query, columns, stock.types)
    for number, (row, other) in enumerate(zip(pruned.rows, stock.rows, strict=False), start=1):
        if _part(row, places) != _part(other, places):
            return f"row {number}: {_part(row, places)} of pruned, {_part(other, places)} of stock"
    return ""


def ordered_by(query: Query, columns: Sequence[str], types: Sequence[str]) -> tuple[int, ...]:
    """The places of the columns that ORDER BY names, up to the first item that is no column of the result.

    None from a double on: sums of doubles differ in their last digits, and what comes after one is in any order.
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
    """What a query's own ORDER BY names; none where the last one belongs to a window or a subquery."""
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


def difference(name: str, answer: Answer, other_name: str, other: Answer, rule: Rule) -> str:
    """How two answers differ; empty where they do not."""
    left, unmatched = _unmatched(answer, other, rule)
    if not left and not unmatched:
        return ""
    return f"{len(left)} rows of {name} alone: {_few(left)}; {len(unmatched)} of {other_name} alone: {_few(unmatched)}"


def difference_beyond_ties(name: str, answer: Answer, whole: Answer, limit: int | None, rule: Rule) -> str:
    """How an answer is more than any `limit` rows of the whole one; empty where it is not."""
    expected = len(whole.rows) if limit is None else min(limit, len(whole.rows))
    if len(answer.rows) != expected:
        return f"{name}: {len(answer.rows)} rows, expected {expected}"
    left, _ = _unmatched(answer, whole, rule)
    return f"{name}: {len(left)} rows that the whole answer has not: {_few(left)}" if left else ""


def spark_rule(query: Query) -> Rule:
    """How Spark's values are compared with Spark's own or DuckDB's."""
    digits = ROUNDED_TWICE[query.number][0] if query.number in ROUNDED_TWICE else Decimal("0.5")
    return lambda spark, other: _rule(spark, other, digits)


def lenient_rule(first: str, second: str) -> Same | None:
    """How values of engines are compared that have types of their own for averages and quotients."""
    scales = (_scale(first), _scale(second))
    if None in scales or (scales[0] == scales[1] != math.inf):
        return None
    digits = [scale for scale in scales if scale is not None and 0 < scale < math.inf]
    return _within(Decimal(1).scaleb(-int(min(digits))) if digits else Decimal(0))


def _scale(type_: str) -> float | None:
    """Digits behind the point, of a double endlessly many; None for what is no number."""
    name, _, parameters = type_.lower().rstrip(")").partition("(")
    match name:
        case "decimal":
            return int(parameters.rpartition(",")[2])
        case "double" | "float":
            return math.inf
        case "tinyint" | "smallint" | "int" | "integer" | "bigint" | "hugeint":
            return 0
        case _:
            return None


def _unmatched(answer: Answer, other: Answer, rule: Rule) -> tuple[list[Row], list[Row]]:
    """The rows of each answer that have no partner in the other."""
    rules = [rule(*pair) for pair in zip(answer.types, other.types, strict=True)]
    exact = [at for at, same in enumerate(rules) if same is None]
    near = [(at, same) for at, same in enumerate(rules) if same is not None]
    waiting: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in _sorted(other.rows):
        waiting[_part(row, exact)].append(row)
    left = []
    for row in _sorted(answer.rows):
        candidates = waiting[_part(row, exact)]
        partner = next((each for each in candidates if _is_near(row, each, near)), None)
        if partner is None:
            left.append(row)
        else:
            candidates.remove(partner)
    return left, [row for rows in waiting.values() for row in rows]


def _rule(spark: str, other: str, digits: Decimal) -> Same | None:
    """How two values of these types are compared; None for by `==`. `ValueError` for types that are never alike."""
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
            return rounded is exact
        return abs(rounded - Decimal(exact)) <= most + abs(Decimal(exact)) * Decimal(_DOUBLE_ERROR)

    return same


def _within(digit: Decimal) -> Same:
    def same(first: Any, second: Any) -> bool:
        if first is None or second is None:
            return first is second
        one, other = Decimal(first), Decimal(second)
        return abs(one - other) <= max(digit, _LENIENT_ERROR * abs(other))

    return same


def _is_near(row: Row, other: Row, near: Sequence[tuple[int, Same]]) -> bool:
    return all(same(row[at], other[at]) for at, same in near)


def _part(row: Row, columns: Iterable[int]) -> Row:
    return tuple(row[at] for at in columns)


def _sorted(rows: Iterable[Row]) -> list[Row]:
    """In an order that puts partners in the same places wherever several are near to each other."""
    return sorted(rows, key=lambda row: [(value is not None, value if value is not None else 0) for value in row])


def _few(rows: Sequence[Row]) -> str:
    return ", ".join(repr(each)[:300] for each in rows[:3])
