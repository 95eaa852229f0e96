"""`key_path`: the column below the functions of a key, where the functions are in the table of `FunctionKind`.

A key of any other function reaches no column: nothing tells which of its values are keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pruning.query.expressions import is_lossless, is_null, literal_value
from pruning.query.plan import Expression
from pruning.values.coercion import DAY_MICROS
from pruning.values.date_texts import days_in
from pruning.values.functions import ARGUMENT, Function, FunctionKind, Functions
from pruning.values.types import INTEGER_BITS, Physical, ValueType

_HOUR = DAY_MICROS // 24
_DAYS_OF = MappingProxyType(
    {
        "WEEK": 7,
        **dict.fromkeys(("MON", "MONTH", "MM"), 31),
        "QUARTER": 92,
        **dict.fromkeys(("YEAR", "YYYY", "YY"), 366),
    }
)
_MICROSECONDS_OF = MappingProxyType(
    {
        "MICROSECOND": 1,
        "MILLISECOND": 1_000,
        "SECOND": 1_000_000,
        "MINUTE": _HOUR // 60,
        "HOUR": _HOUR,
        **dict.fromkeys(("DAY", "DD"), DAY_MICROS),
        **{unit: days * DAY_MICROS for unit, days in _DAYS_OF.items()},
    }
)
_UNIX_TIMES = MappingProxyType(
    {
        "UnixTimestamp": ("unix_timestamp", 1_000_000),
        "ToUnixTimestamp": ("to_unix_timestamp", 1_000_000),
        "UnixSeconds": ("unix_seconds", 1_000_000),
        "UnixMillis": ("unix_millis", 1_000),
        "UnixMicros": ("unix_micros", 1),
    }
)
_DATE, _BIGINT, _INT, _STRING = map(ValueType, ("date", "bigint", "int", "string"))
_DATES, _INSTANTS, _MOMENTS, _STRINGS = ("date",), ("timestamp",), ("timestamp", "timestamp_ntz"), ("string",)
_INTEGERS = tuple(INTEGER_BITS)
_WHOLE = re.compile(r"-?[0-9]{1,19}")
# Literals beyond are left alone, so that sums of them have 64 bits.
_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class KeyPath:
    """The column of a key, the functions between both, the innermost first, and the type of the key.

    `type` is None for a column whose type is not pruned by.
    """

    column: int
    type: ValueType | None
    functions: Functions = ()

    def through(self, function: Function) -> KeyPath:
        """The path of a function of this key."""
        return replace(self, type=function.result, functions=(*self.functions, function))


def key_path(key: Expression) -> KeyPath | None:
    """The path from a key to its column; None where it is computed in any other way."""
    if key.column is not None:
        return KeyPath(key.column, ValueType.known(key.type))
    if key.is_normal_form:
        return key_path(key.children[0])
    if key.kind == "Cast":
        return _of_cast(key)
    return _of_moment(key) or _of_number(key) or _of_quotient(key) or _of_text(key) or _of_choice(key)


def probed_column(key: Expression) -> int | None:
    """The column to which keys can be converted back: the key itself, or the column below lossless casts."""
    path = key_path(key)
    return None if path is None or path.functions else path.column


def _of_cast(cast: Expression) -> KeyPath | None:
    inner, to = key_path(cast.children[0]), ValueType.known(cast.type)
    if inner is None or inner.type is None or to is None:
        return None
    if is_lossless(inner.type, to):
        return replace(inner, type=to)
    if to == _DATE and inner.type.name in _MOMENTS:
        return inner.through(Function(FunctionKind.TO_DATE, inner.type, _DATE))
    if to.name in _MOMENTS and inner.type.name in _MOMENTS and to != inner.type:
        return inner.through(Function(FunctionKind.SET_CLOCK, inner.type, to, unit=str(to).upper()))
    if to.is_integer and inner.type.is_integer and to != inner.type:
        return inner.through(Function(FunctionKind.SHORTEN, inner.type, to))
    if to == _STRING and inner.type.is_integer:
        return inner.through(Function(FunctionKind.TEXT, inner.type, _STRING))
    if to == _STRING and inner.type == _DATE:
        return inner.through(Function(FunctionKind.DATE_TEXT, _DATE, _STRING, 1, "yyyy-MM-dd"))
    return None


def _of_moment(key: Expression) -> KeyPath | None:
    match key.kind, key.children:
        case "TruncTimestamp", (Expression(kind="Literal") as unit, inner) if unit.text.upper() in _MICROSECONDS_OF:
            most = _MICROSECONDS_OF[unit.text.upper()]
            return _of(inner, _INSTANTS, FunctionKind.TRUNCATE_TIMESTAMP, None, most, unit.text)
        case "TruncDate", (inner, Expression(kind="Literal") as unit) if unit.text.upper() in _DAYS_OF:
            return _of(inner, _DATES, FunctionKind.TRUNCATE_DATE, None, _DAYS_OF[unit.text.upper()], unit.text)
        case "DateFormatClass", (inner, Expression(kind="Literal") as pattern) if days := days_in(pattern.text):
            path = _of(inner, _INSTANTS, FunctionKind.TO_DATE, _DATE)
            return path and path.through(Function(FunctionKind.DATE_TEXT, _DATE, _STRING, days, pattern.text))
        case "Year", (inner,):
            return _of(inner, _DATES, FunctionKind.YEAR, _INT)
        case ("UnixTimestamp" | "ToUnixTimestamp" | "UnixSeconds" | "UnixMillis" | "UnixMicros") as kind, (inner, *_):
            name, micros = _UNIX_TIMES[kind]
            return _of(inner, _INSTANTS, FunctionKind.UNIX_TIME, _BIGINT, micros, name)
        case "LastDay", (inner,):
            return _of(inner, _DATES, FunctionKind.LAST_DAY, None)
        case "DateAdd" | "DateSub", (inner, days):
            return _of(inner, _DATES, FunctionKind.ADD_DAYS, None, _integer(days, is_negative=key.kind == "DateSub"))
        case "TimestampAddInterval" | "TimeAdd", (inner, interval):
            return _of(inner, _MOMENTS, FunctionKind.ADD_MICROSECONDS, None, _integer(interval))
        case _:
            return None


def _of_number(key: Expression) -> KeyPath | None:
    match key.kind, key.children:
        case "Add", (Expression(kind="Literal") as number, inner):
            return _of(inner, _INTEGERS, FunctionKind.ADD, None, _integer(number))
        case "Subtract", (Expression(kind="Literal") as number, inner):
            path, added = _of(inner, _INTEGERS, FunctionKind.NEGATE, None), _integer(number)
            if path is None or path.type is None or added is None:
                return None
            return path.through(Function(FunctionKind.ADD, path.type, path.type, added))
        case "Add" | "Subtract", (inner, number):
            added = _integer(number, is_negative=key.kind == "Subtract")
            return _of(inner, _INTEGERS, FunctionKind.ADD, None, added)
        case "Multiply", (Expression(kind="Literal") as number, inner) | (inner, number):
            return _of(inner, _INTEGERS, FunctionKind.MULTIPLY, None, _positive(number))
        case "UnaryMinus", (inner,):
            return _of(inner, _INTEGERS, FunctionKind.NEGATE, None)
        case _:
            return None


def _of_quotient(key: Expression) -> KeyPath | None:
    match key.kind, key.children:
        case "IntegralDivide", (inner, number):
            return _of(inner, _INTEGERS, FunctionKind.DIVIDE, _BIGINT, _positive(number))
        case (
            ("Floor" | "Ceil") as kind,
            (Expression(kind="Divide", children=(Expression(kind="Cast", type="double") as cast, number)),),
        ):
            divided = FunctionKind.FLOOR_DIVIDE if kind == "Floor" else FunctionKind.CEIL_DIVIDE
            return _of(cast.children[0], _INTEGERS, divided, _BIGINT, _positive_double(number))
        case ("Floor" | "Ceil") as kind, (inner,):
            return _of_decimal(inner, FunctionKind.FLOOR if kind == "Floor" else FunctionKind.CEIL)
        case _:
            return None


def _of_decimal(inner: Expression, kind: FunctionKind) -> KeyPath | None:
    """The path of the integer below or above a decimal, whose type has a digit more before the point."""
    path = key_path(inner)
    if path is None or path.type is None or path.type.name != "decimal" or path.type.physical is not Physical.INT64:
        return None
    if not path.type.scale:
        return path
    result = ValueType("decimal", path.type.precision - path.type.scale + 1, 0)
    return path.through(Function(kind, path.type, result, 10**path.type.scale))


def _of_text(key: Expression) -> KeyPath | None:
    match key.kind, key.children:
        case "Substring", (inner, first, number) if _integer(first) in (0, 1):
            return _of(inner, _STRINGS, FunctionKind.PREFIX, None, _positive(number))
        case _:
            return None


def _of_choice(key: Expression) -> KeyPath | None:
    """The path of an expression that chooses between one key and constants."""
    match key.kind, key.children:
        case "Coalesce", values:
            return _or_constant(key, values)
        case "If", (_, first, second):
            return _or_constant(key, (first, second))
        case "CaseWhen", parts:
            # Conditions and values alternate; an ELSE comes last.
            return _or_constant(key, (*parts[1::2], *parts[len(parts) - len(parts) % 2 :]))
        case _:
            return None


def _or_constant(key: Expression, values: Sequence[Expression]) -> KeyPath | None:
    literals = [each for each in values if each.kind == "Literal"]
    others = [each for each in values if each.kind != "Literal"]
    paths = {*map(key_path, others)}
    path = paths.pop() if len(paths) == 1 else None
    if path is None or path.type is None:
        return None
    # NULL is no key.
    constants = [literal_value(each, str(path.type)) for each in literals if not is_null(each)]
    if None in constants:
        return None
    text = _with_argument(key, others[0], path.column)
    kind = FunctionKind.OR_CONSTANT
    return path.through(Function(kind, path.type, path.type, constants=tuple(constants), text=text))


def _with_argument(key: Expression, inner: Expression, column: int) -> str:
    """The text of a choice, with a place for that of what it chooses, a function of a column."""
    of_key, of_inner = (each.sql({column: ARGUMENT}) for each in (key, inner))
    return of_key.replace(of_inner, ARGUMENT)


def _of(  # noqa: PLR0913, PLR0917 - the fields of a function
    inner: Expression,
    types: Collection[str],
    kind: FunctionKind,
    result: ValueType | None,
    number: float | None = 0,
    unit: str = "",
) -> KeyPath | None:
    """The path of a function of a key of one of these types; without `result`, it gives values of the same type."""
    path = key_path(inner)
    if path is None or path.type is None or path.type.name not in types or number is None:
        return None
    return path.through(Function(kind, path.type, result or path.type, number, unit))


def _positive(literal: Expression) -> int | None:
    number = _integer(literal)
    return number if number is not None and number > 0 else None


def _positive_double(literal: Expression) -> float | None:
    if literal.kind != "Literal" or literal.type != "double":
        return None
    number = float(literal.text)
    return number if 0.0 < number < float("inf") else None


def _integer(literal: Expression, *, is_negative: bool = False) -> int | None:
    """The value of a literal of a whole number, or of the microseconds of an interval, which may be subtracted."""
    text = literal.text if literal.kind == "Literal" else ""
    number = int(text) if _WHOLE.fullmatch(text) else _MOST
    return None if abs(number) >= _MOST else -number if is_negative else number
