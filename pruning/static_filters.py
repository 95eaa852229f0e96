"""What the conditions of a query alone say of a column: a `Domain` for each, from comparisons with literals.

Whatever is not understood says nothing, so a domain holds every value of the rows for which the conditions hold.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

from pruning.domain import Domain
from pruning.errors import UnsupportedTypeError
from pruning.query_plan import Expression
from pruning.value_type import INTEGER_BITS, ValueType

_FLIPPED = {
    "EqualTo": "EqualTo",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
# What stands in the text of a plan for bytes that are no text.
_LOST = "\ufffd"


def static_domains(conditions: Iterable[Expression]) -> dict[int, Domain]:
    """What each column holds where all conditions do, by the column's id; absent ones may hold anything.

    >>> kind = Expression("AttributeReference", (), 7, "int", "kind")
    >>> wanted = Expression("In", (kind, *(Expression("Literal", (), None, "int", text) for text in "35")))
    >>> print(static_domains([wanted])[7])
    {3, 5}
    """
    found: dict[int, Domain] = {}
    for condition in conditions:
        found = _both(found, _domains(condition))
    return found


def _both(first: Mapping[int, Domain], second: Mapping[int, Domain]) -> dict[int, Domain]:
    shared = {column: first[column].intersect(second[column]) for column in first.keys() & second.keys()}
    return {**first, **second, **shared}


def _domains(condition: Expression) -> dict[int, Domain]:
    match condition.kind:
        case "And":
            return static_domains(condition.children)
        case "Or":
            first, second = map(_domains, condition.children)
            return {column: first[column].union(second[column]) for column in first.keys() & second.keys()}
        case "IsNotNull" | "IsNull":
            return _of_null(condition.children[0], is_null=condition.kind == "IsNull")
        case "In":
            return _listed(condition.children[0], condition.children[1:])
        case kind if kind in _FLIPPED:
            left, right = condition.children
            return _compared(left, kind, right) or _compared(right, _FLIPPED[kind], left)
        case _:
            return {}


def _type_of(column: Expression) -> ValueType | None:
    if column.column is None:
        return None
    try:
        return ValueType.parse(column.type)
    except UnsupportedTypeError:
        return None


def _of_null(column: Expression, *, is_null: bool) -> dict[int, Domain]:
    type_ = _type_of(column)
    if type_ is None or column.column is None:
        return {}
    everything = Domain.all(type_)
    return {column.column: Domain.only_null(type_) if is_null else Domain(everything.ranges, nan=everything.nan)}


def _listed(column: Expression, literals: Iterable[Expression]) -> dict[int, Domain]:
    type_ = _type_of(column)
    values = [_value(each, column) for each in literals]
    if type_ is None or column.column is None or any(value is None for value in values):
        return {}
    return {column.column: Domain.of(type_, *values)}


def _compared(column: Expression, kind: str, literal: Expression) -> dict[int, Domain]:
    type_, value = _type_of(column), _value(literal, column)
    if type_ is None or column.column is None or value is None:
        return {}
    if kind == "EqualTo":
        return {column.column: Domain.of(type_, value)}
    if isinstance(value, float) and math.isnan(value):
        return {}
    if kind in ("LessThan", "GreaterThan"):
        value = _next(type_, value, -1 if kind == "LessThan" else 1)
    if kind in ("GreaterThan", "GreaterThanOrEqual"):
        # NaN is greater than every number.
        return {column.column: Domain(Domain.between(type_, value, None).ranges, nan=type_.is_float)}
    return {column.column: Domain.between(type_, None, value)}


def _next(type_: ValueType, value: object, step: int) -> object:
    """The value beside a whole number; others are left in their range, which is closed."""
    if not type_.is_integer or not isinstance(value, int):
        return value
    most = 1 << (INTEGER_BITS[type_.name] - 1)
    return value + step if -most <= value + step < most else value


def _value(literal: Expression, column: Expression) -> object | None:
    """The Python value of a literal of the column's own type; None where its text does not tell."""
    if literal.kind != "Literal" or literal.type != column.type:
        return None
    text = literal.text
    try:
        match literal.type.partition("(")[0]:
            case "tinyint" | "smallint" | "int" | "bigint":
                return int(text)
            case "float" | "double":
                return float(text)
            case "decimal":
                return Decimal(text)
            case "date":
                return dt.date.fromisoformat(text)
            case "boolean":
                return {"true": True, "false": False}.get(text)
            case "string":
                return None if _LOST in text else text
            case _:
                return None
    except (ValueError, InvalidOperation):
        return None
