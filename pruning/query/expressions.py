"""Rules about expressions: casts that keys pass, aggregates that do not depend on the order of rows, static domains.

- A cast passes keys back to a column if every value keeps its place in the order of the wider type.
- Functions whose result does not depend on the order of a group's rows give the same in every run.
- `static_domains()` gives a `Domain` for each column from comparisons with literals. A condition that is not
  understood bounds nothing, so a domain holds every value of the rows that fulfil the conditions.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache, reduce

from pruning.query.plan import Expression
from pruning.values.coercion import ZONE_MARGIN
from pruning.values.domain import Domain
from pruning.values.types import INTEGER_BITS, ValueType

# Comparisons that hold for equal values; Spark joins by their operands as keys.
EQUALITIES = frozenset({"EqualTo", "EqualNullSafe"})
_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
# The widest integers that each float type holds exactly.
_EXACT_BITS = {"float": 16, "double": 32}
_MICROSECONDS = re.compile(r"-?[0-9]{1,18}")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_SECOND = 1_000_000


def is_lossless_cast(from_type: str, to_type: str) -> bool:
    """`is_lossless` by the SQL names of two types; False where one is no type of keys."""
    from_, to = ValueType.known(from_type), ValueType.known(to_type)
    return from_ is not None and to is not None and is_lossless(from_, to)


def is_lossless(from_type: ValueType, to_type: ValueType) -> bool:
    """True for a cast to another type that maps different values to different values in the same order.

    A date becomes the instant of its midnight. Two dates share an instant only where a time zone has left out a day,
    which the margin for zones of `pruning.values.coercion` covers.
    """
    match from_type, to_type:
        case ValueType(name="float"), ValueType(name="double"):
            return True
        case ValueType(name="date"), ValueType(name="timestamp" | "timestamp_ntz"):
            return True
        case _ if from_type.is_integer and to_type.is_integer:
            return INTEGER_BITS[from_type.name] < INTEGER_BITS[to_type.name]
        case _ if from_type.is_integer and to_type.is_float:
            return INTEGER_BITS[from_type.name] <= _EXACT_BITS[to_type.name]
        case _ if from_type.is_exact_number and to_type.name == "decimal" and from_type != to_type:
            return from_type.scale <= to_type.scale and _whole_digits(from_type) <= _whole_digits(to_type)
        case _:
            return False


def _whole_digits(type_: ValueType) -> int:
    return _WHOLE_DIGITS.get(type_.name, type_.precision - type_.scale)


_CALL, _FRAME = "aggregate.AggregateExpression", "WindowExpression"
_ANY_VALUES = frozenset({"aggregate.Count", "aggregate.CountIf", "aggregate.Max", "aggregate.Min"})
# Sums of floats are rounded at each step.
_EXACT_VALUES = frozenset({"aggregate.Sum"})
_TYPED = frozenset({"AttributeReference", "Cast", "Literal"})
# `Divide` of integers casts them to double first, so the cast shows the float.
_EXACT_KINDS = frozenset(
    {
        "Abs",
        "Add",
        "And",
        "CaseWhen",
        "Coalesce",
        "Divide",
        "EqualNullSafe",
        "EqualTo",
        "GreaterThan",
        "GreaterThanOrEqual",
        "If",
        "In",
        "InSet",
        "IntegralDivide",
        "IsNotNull",
        "IsNull",
        "LessThan",
        "LessThanOrEqual",
        "Multiply",
        "Not",
        "Or",
        "Remainder",
        "Subtract",
        "UnaryMinus",
        "UnscaledValue",
    }
)
_RANKS = frozenset({"DenseRank", "Rank"})
_WHOLE = frozenset({"UnboundedPreceding$", "UnboundedFollowing$"})


def is_order_free(output: Expression) -> bool:
    """True where an output of an aggregate is proved not to depend on the order of the rows of a group."""
    return all(_is_call_order_free(each) for each in _all(output) if each.kind == _CALL)


def is_frame_order_free(output: Expression) -> bool:
    """True where a window's output does not depend on the order of rows: ranks, aggregates of the whole partition."""
    return all(_is_one_frame_order_free(each) for each in _all(output) if each.kind == _FRAME)


def is_rank(function: Expression) -> bool:
    """True for a function that gives tied rows the same rank."""
    return function.kind in _RANKS


def _is_one_frame_order_free(frame: Expression) -> bool:
    function = frame.children[0]
    if function.kind == _CALL:
        return {each.kind for each in _all(frame)} >= _WHOLE and _is_call_order_free(function)
    return is_rank(function)


def _is_call_order_free(call: Expression) -> bool:
    function = call.children[0]
    return function.kind in _ANY_VALUES or (function.kind in _EXACT_VALUES and _is_exact(function))


def _is_exact(function: Expression) -> bool:
    """True where no summed value can be a float: no typed leaf is one, and no operator in between makes one."""
    inside = [each for child in function.children for each in _all(child)]
    typed = [each.type for each in inside if each.kind in _TYPED]
    known = all(each.kind in _TYPED or each.kind in _EXACT_KINDS for each in inside)
    return known and all(type_ and type_ not in ("float", "double") for type_ in typed)


def _all(expression: Expression) -> Iterator[Expression]:
    yield expression
    for child in expression.children:
        yield from _all(child)


_FLIPPED = {
    "EqualTo": "EqualTo",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
# The replacement character, which stands in a plan's text for bytes that are not UTF-8.
_LOST = "\ufffd"


def static_domains(conditions: Iterable[Expression]) -> dict[int, Domain]:
    """The domain of each column in rows that fulfil all conditions, by column id; absent ones may hold anything.

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


# A choice of filters looks at the conditions of a query again and again.
@lru_cache(maxsize=256)
def _domains(condition: Expression) -> Mapping[int, Domain]:
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
    return ValueType.known(column.type)


def _of_null(column: Expression, *, is_null: bool) -> dict[int, Domain]:
    type_ = _type_of(column)
    if type_ is None or column.column is None:
        return {}
    everything = Domain.all(type_)
    return {column.column: Domain.only_null(type_) if is_null else Domain(everything.ranges, nan=everything.nan)}


def _listed(column: Expression, literals: Iterable[Expression]) -> dict[int, Domain]:
    type_ = _type_of(column)
    spans = [_span_of(each, column.type) for each in literals]
    if type_ is None or column.column is None or any(each is None for each in spans):
        return {}
    found = [each for each in spans if each is not None]
    if all(low is high for low, high in found):
        return {column.column: Domain.of(type_, *(low for low, _ in found))}
    return {column.column: reduce(Domain.union, (_of_span(type_, each) for each in found))}


def _compared(column: Expression, kind: str, literal: Expression) -> dict[int, Domain]:
    type_, span = _type_of(column), _span_of(literal, column.type)
    if type_ is None or column.column is None or span is None:
        return {}
    if kind == "EqualTo":
        return {column.column: _of_span(type_, span)}
    value = span[kind in ("LessThan", "LessThanOrEqual")]
    if isinstance(value, float) and math.isnan(value):
        return {}
    if kind in ("LessThan", "GreaterThan"):
        value = _next(type_, value, -1 if kind == "LessThan" else 1)
    if kind in ("GreaterThan", "GreaterThanOrEqual"):
        # NaN is greater than every number.
        return {column.column: Domain(Domain.between(type_, value, None).ranges, nan=type_.is_float)}
    return {column.column: Domain.between(type_, None, value)}


def _span_of(literal: Expression, type_: str) -> tuple[object, object] | None:
    """The least and the greatest value of this type that a literal may be; None where its text cannot be parsed.

    The text of an instant is that of a local time, in the time zone of the session.
    """
    match type_:
        case "timestamp" if literal.kind == "Literal" and literal.type == type_:
            seconds, _, fraction = literal.text.partition(".")
            try:
                local = dt.datetime.fromisoformat(f"{seconds}+00:00")
            except ValueError:
                return None
            micros = (local - _EPOCH) // dt.timedelta(microseconds=1)
            return micros - ZONE_MARGIN, micros + ZONE_MARGIN + (_SECOND if fraction else 0)
        case "timestamp_ntz" if literal.kind == "Literal" and literal.type == type_:
            return (int(literal.text),) * 2 if _MICROSECONDS.fullmatch(literal.text) else None
        case _:
            value = literal_value(literal, type_)
            return None if value is None else (value, value)


def _of_span(type_: ValueType, span: tuple[object, object]) -> Domain:
    low, high = span
    return Domain.of(type_, low) if low is high else Domain.between(type_, low, high)


def _next(type_: ValueType, value: object, step: int) -> object:
    """The next integer in the direction of `step`; any other value stays, which only makes the closed range wider."""
    if not type_.is_integer or not isinstance(value, int):
        return value
    most = 1 << (INTEGER_BITS[type_.name] - 1)
    return value + step if -most <= value + step < most else value


def is_null(literal: Expression) -> bool:
    """True for a literal NULL; the text of one that is a string could also be the word None, and counts as a value."""
    return literal.kind == "Literal" and literal.text == "None" and literal.type != "string"


def literal_value(literal: Expression, type_: str) -> object | None:
    """The Python value of a literal of exactly this SQL type; None where its text cannot be parsed."""
    if literal.kind != "Literal" or literal.type != type_:
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
