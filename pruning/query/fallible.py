"""Expressions that may raise an error: all but a whitelist of those that raise on no value of their types.

A pruned plan may show an expression rows that the query does not have without pruning: a part of a group, a row that an
outer join pads. The error of such a row would be new. The mode of each expression
decides, not the session's conf: `try_` functions, and views made under another mode, have their own.

Guards count by their form alone: a divisor that is a literal other than 0, `nullif(x, 0)`, or a branch of `CASE` or
`IF` that a comparison of the divisor with 0 leads to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

from pruning.query.expressions import is_lossless_cast
from pruning.query.plan import Expression

# Kinds that raise on no value, if their children raise on none. `TruncTimestamp` is none of them: the second, hour or
# year of the least timestamps (290308 BC) begins before them, which is a "long overflow" in every mode.
INFALLIBLE = frozenset(
    {
        "Alias",
        "And",
        "AttributeReference",
        "CaseWhen",
        "Ceil",
        "Coalesce",
        "Contains",
        "CreateArray",
        "CreateNamedStruct",
        "CumeDist",
        "CurrentRow$",
        "DateAdd",
        "DateDiff",
        "DateSub",
        "DayOfMonth",
        "DayOfWeek",
        "DenseRank",
        "EndsWith",
        "EqualNullSafe",
        "EqualTo",
        "Floor",
        "GetMapValue",
        "GetStructField",
        "GreaterThan",
        "GreaterThanOrEqual",
        "Greatest",
        "If",
        "In",
        "InSet",
        "IsNaN",
        "IsNotNull",
        "IsNull",
        "LastDay",
        "Least",
        "Length",
        "LessThan",
        "LessThanOrEqual",
        "Literal",
        "Lower",
        "Month",
        "NTile",
        "NaNvl",
        "Not",
        "Or",
        "PercentRank",
        "Quarter",
        "Rank",
        "RowNumber",
        "SortOrder",
        "StartsWith",
        "StringTrim",
        "Substring",
        "UnboundedFollowing$",
        "UnboundedPreceding$",
        "UnixMicros",
        "UnixMillis",
        "UnixSeconds",
        "UnscaledValue",
        "Upper",
        "WindowExpression",
        "WindowSpecDefinition",
        "Year",
        "aggregate.AggregateExpression",
        "aggregate.CollectList",
        "aggregate.CollectSet",
        "aggregate.Count",
        "aggregate.First",
        "aggregate.HyperLogLogPlusPlus",
        "aggregate.Last",
        "aggregate.Max",
        "aggregate.MaxBy",
        "aggregate.Min",
        "aggregate.MinBy",
        "aggregate.StddevPop",
        "aggregate.StddevSamp",
        "aggregate.VariancePop",
        "aggregate.VarianceSamp",
    }
)
_CALLS = frozenset({"aggregate.AggregateExpression", "WindowExpression"})
_WHOLE_FRAME = frozenset({"CurrentRow$", "UnboundedFollowing$", "UnboundedPreceding$"})
_NAMES = MappingProxyType(
    {
        "Add": "an addition",
        "Cast": "a cast",
        "Divide": "a division",
        "ElementAt": "an access to an element",
        "GetArrayItem": "an access to an element",
        "IntegralDivide": "a division",
        "Multiply": "a multiplication",
        "Pmod": "a remainder",
        "RaiseError": "raise_error",
        "Remainder": "a remainder",
        "ScalarSubquery": "a subquery that may give several rows",
        "Subtract": "a subtraction",
        "aggregate.Average": "an average",
        "aggregate.Sum": "a sum",
    }
)
# The classes of types in the traits of an expression: floats, integers, decimals of at most 28, 37 and 38 digits.
_FLOAT, _INTEGER, _SHORT, _LONG, _LONGEST = "f", "i", "n", "m", "N"
_EXACT = _SHORT + _LONG
_DECIMAL = _EXACT + _LONGEST
_NUMBERS = _FLOAT + _INTEGER + _DECIMAL
_TEXT, _DATE, _TIMESTAMP, _BOOLEAN = "s", "d", "t", "b"
_ATOMIC = _NUMBERS + _TEXT + _DATE + _TIMESTAMP + _BOOLEAN
_RAISES, _TRIES, _LEGACY = "A", "T", "L"


def first_fallible(expressions: Sequence[Expression], traits: str) -> str:
    """The first expression that may raise an error, for people; empty if none may.

    `traits` has two letters for each expression and its children, parents first: A, T or L where its mode says that it
    raises, gives NULL, or follows the rules without ANSI, and the class of its type. Traits of another number of
    expressions say nothing, so all that has a mode may raise.
    """
    if all(map(_is_infallible, expressions)):
        return ""
    count = sum(_size(each) for each in expressions)
    letters = iter(traits if len(traits) == 2 * count else "--" * count)
    return next(filter(None, (_first(_typed(each, letters), frozenset()) for each in expressions)), "")


@dataclass(frozen=True, slots=True)
class _Typed:
    """An expression with the letters of its mode and of the class of its type."""

    expression: Expression
    mode: str
    type: str
    children: tuple[_Typed, ...]

    @property
    def kind(self) -> str:
        return self.expression.kind


def _is_infallible(expression: Expression) -> bool:
    """True where no kind in an expression may raise, whatever its mode and type: the usual case, and a quick answer."""
    return (expression.kind in INFALLIBLE or expression.is_normal_form) and all(
        map(_is_infallible, expression.children)
    )


def _size(expression: Expression) -> int:
    return 1 + sum(map(_size, expression.children))


def _typed(expression: Expression, letters: Iterator[str]) -> _Typed:
    mode, type_ = next(letters), next(letters)
    return _Typed(expression, mode, type_, tuple(_typed(each, letters) for each in expression.children))


def _first(each: _Typed, nonzero: frozenset[Expression]) -> str:
    """The first expression that may raise where the expressions in `nonzero` are not 0."""
    if each.kind == "TryEval":
        return ""
    if not (each.expression.is_normal_form or each.kind in INFALLIBLE or _is_safe(each, nonzero)):
        return f"{_NAMES[each.kind]}, {each.expression}" if each.kind in _NAMES else str(each.expression)
    return next(filter(None, (_first(child, known) for child, known in _guarded(each, nonzero))), "")


def _guarded(each: _Typed, nonzero: frozenset[Expression]) -> Iterator[tuple[_Typed, frozenset[Expression]]]:
    """The children of an expression, each with what is not 0 where it is evaluated."""
    if each.kind not in {"If", "CaseWhen"}:
        yield from ((child, nonzero) for child in each.children)
        return
    waiting = list(each.children)
    while len(waiting) > 1:
        condition, branch, *waiting = waiting
        yield condition, nonzero
        yield branch, nonzero | _nonzero_if(condition, holds=True)
        nonzero |= _nonzero_if(condition, holds=False)
    yield from ((child, nonzero) for child in waiting)


def _nonzero_if(condition: _Typed, *, holds: bool) -> frozenset[Expression]:
    """The expressions that are not 0 where a comparison with 0 holds, or does not."""
    match condition.kind, condition.children:
        case "Not", (inner,):
            return _nonzero_if(inner, holds=not holds)
        case "EqualTo" | "EqualNullSafe", (first, second) if not holds:
            pairs = ((first, second), (second, first))
            return frozenset(_uncast(one).expression for one, other in pairs if _is_zero(_uncast(other)))
        case "GreaterThan" | "LessThan", (first, second) if holds:
            pairs = ((first, second), (second, first))
            return frozenset(_uncast(one).expression for one, other in pairs if _is_zero(_uncast(other)))
        case _:
            return frozenset()


def _is_safe(each: _Typed, nonzero: frozenset[Expression]) -> bool:
    """True where an expression with rules of its own raises on no value, if its children raise on none."""
    match each.kind:
        case "IntegralDivide" | "Pmod" | "Remainder" if any(child.type in _DECIMAL for child in each.children):
            # In every mode, where the quotient has more digits than a decimal.
            return False
        case (
            "Abs" | "Add" | "Divide" | "IntegralDivide" | "Multiply" | "Pmod" | "Remainder" | "Subtract" | "UnaryMinus"
        ):
            return _gives_null(each) or _computes(each, nonzero)
        case "Cast":
            return _casts(each)
        case "Concat":
            return each.type == _TEXT
        case "GetArrayItem":
            return each.mode == _LEGACY
        case "Round":
            return each.type == _FLOAT and each.children[1].kind == "Literal"
        case "aggregate.Sum" | "aggregate.Average":
            return _adds_up(each)
        case "MakeDecimal":
            return _is_sum_of_unscaled(each.children[0])
        case "SpecifiedWindowFrame":
            return all(child.kind in _WHOLE_FRAME for child in each.children)
        case _:
            return _tells_time(each)


def _tells_time(each: _Typed) -> bool:
    """True for functions of moments that raise on none of them."""
    match each.kind, each.children:
        case "ToUnixTimestamp" | "UnixTimestamp", (moment, *_):
            # A text may be no moment, and the midnight of a date far from now none that 64 bits hold.
            return moment.type == _TIMESTAMP
        case "TruncDate", (_, unit):
            # Other units than quarters wrap around where they begin before the least date.
            return unit.kind == "Literal" and not unit.expression.text.upper().startswith("Q")
        case _:
            return False


def _computes(each: _Typed, nonzero: frozenset[Expression]) -> bool:
    """True for arithmetic that raises on no value of its types, although its mode would let it."""
    match each.kind:
        case "UnaryMinus" | "Abs":
            return each.type in _FLOAT + _DECIMAL
        case "Divide":
            return each.type in _FLOAT + _EXACT and _is_nonzero(each.children[1], nonzero)
        case "Remainder" | "Pmod":
            return each.type in _FLOAT + _INTEGER and _is_nonzero(each.children[1], nonzero)
        case "IntegralDivide":
            return _divides_by_literal(each)
        case _:
            return each.type in _FLOAT + _EXACT


def _gives_null(each: _Typed) -> bool:
    """True for arithmetic of numbers that gives NULL, or wraps, where it would raise under ANSI."""
    return each.mode == _TRIES or (each.mode == _LEGACY and each.type in _NUMBERS)


def _is_nonzero(divisor: _Typed, nonzero: frozenset[Expression]) -> bool:
    """True for a divisor that is not 0 wherever it is evaluated; it may be NULL."""
    inner = _uncast(divisor)
    if inner.kind == "Literal":
        return inner.expression.text == "None" or _number(inner) not in {None, 0}
    return inner.expression in nonzero or _is_nullif(inner)


def _is_nullif(each: _Typed) -> bool:
    """True for `nullif(x, 0)`, which the optimiser writes as `if(x = 0, NULL, x)`."""
    if each.kind != "If" or each.children[1].kind != "Literal" or each.children[1].expression.text != "None":
        return False
    condition, _, value = each.children
    return _uncast(value).expression in _nonzero_if(condition, holds=False)


def _uncast(each: _Typed) -> _Typed:
    """The expression below casts that give 0 only for 0.

    A cast to a decimal with fewer digits may round to 0, and one to a shorter integer may keep digits that are all 0.
    """
    while each.kind == "Cast":
        (inner,) = each.children
        is_exact = inner.type in _INTEGER + _DECIMAL and each.type == _FLOAT
        is_exact |= inner.type == _INTEGER and (
            each.type in _DECIMAL or (each.type == _INTEGER and each.mode != _LEGACY)
        )
        if not is_exact and not is_lossless_cast(inner.expression.type, each.expression.type):
            break
        each = inner
    return each


def _number(literal: _Typed) -> Decimal | None:
    try:
        return Decimal(literal.expression.text)
    except InvalidOperation:
        return None


def _is_zero(each: _Typed) -> bool:
    return each.kind == "Literal" and _number(each) == 0


def _divides_by_literal(each: _Typed) -> bool:
    """True for the division of an integer by a literal; the least integer divided by -1 is no integer."""
    value, divisor = each.children
    known = _number(divisor) if divisor.kind == "Literal" else None
    return value.type == _INTEGER and known is not None and known not in {0, -1}


def _casts(each: _Typed) -> bool:
    (value,) = each.children
    if each.mode == _TRIES or (each.type in _FLOAT and value.type in _NUMBERS + _BOOLEAN):
        return True
    if each.type == _TEXT and value.type in _ATOMIC:
        return True
    if each.type == _DATE and value.type == _TIMESTAMP:
        return True
    if each.mode == _LEGACY:
        return each.type in _NUMBERS + _TEXT + _DATE + _BOOLEAN and value.type in _NUMBERS + _TEXT + _BOOLEAN
    if _is_average_of_unscaled(value):
        return True
    # The midnight of a date far from now is no timestamp.
    return each.type in _NUMBERS and is_lossless_cast(value.expression.type, each.expression.type)


def _adds_up(each: _Typed) -> bool:
    """True where a sum does not overflow: floats, and decimals with ten digits more than those of their values.

    Ten digits are enough for 10 billion rows of the greatest value.
    """
    if _gives_null(each):
        return True
    (value,) = each.children
    if each.type == _FLOAT and value.type in _NUMBERS:
        return True
    return value.type == _SHORT or value.kind == "UnscaledValue"


def _is_sum_of_unscaled(each: _Typed) -> bool:
    """True for the sum of short decimals that Spark adds as whole numbers (`DecimalAggregates`)."""
    call = each.children[0] if each.kind in _CALLS else each
    call = call.children[0] if call.kind in _CALLS else call
    return call.kind == "aggregate.Sum" and call.children[0].kind == "UnscaledValue"


def _is_average_of_unscaled(each: _Typed) -> bool:
    """True for the average of short decimals that Spark computes as that of whole numbers, before it is cast back."""
    if each.kind != "Divide" or each.children[1].kind != "Literal":
        return False
    call = each.children[0]
    while call.kind in _CALLS:
        call = call.children[0]
    return call.kind == "aggregate.Average" and call.children[0].kind == "UnscaledValue"
