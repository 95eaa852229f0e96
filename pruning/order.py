"""Which results of a group of rows do not depend on the order in which these arrive, which differs from run to run."""

from __future__ import annotations

from collections.abc import Iterator

from pruning.query_plan import Expression

_CALL, _FRAME = "aggregate.AggregateExpression", "WindowExpression"
_ANY_VALUES = frozenset({"aggregate.Count", "aggregate.CountIf", "aggregate.Max", "aggregate.Min"})
# Sums of floats are rounded at each step.
_EXACT_VALUES = frozenset({"aggregate.Sum"})
_TYPED = frozenset({"AttributeReference", "Cast", "Literal"})
# A quotient of integers is one of doubles that they are cast to.
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
    """True where an output of an aggregate is surely the same for any order of the rows of a group."""
    return all(_is_call_order_free(each) for each in _all(output) if each.kind == _CALL)


def is_frame_order_free(output: Expression) -> bool:
    """The same of a window: its rank, or what an aggregate makes of the whole partition."""
    return all(_is_one_frame_order_free(each) for each in _all(output) if each.kind == _FRAME)


def is_rank(function: Expression) -> bool:
    """True for a function under which rows that tie have one rank."""
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
    """True where nothing that is added up can be a float: leaves have types, and what is between them adds none."""
    inside = [each for child in function.children for each in _all(child)]
    typed = [each.type for each in inside if each.kind in _TYPED]
    known = all(each.kind in _TYPED or each.kind in _EXACT_KINDS for each in inside)
    return known and all(type_ and type_ not in ("float", "double") for type_ in typed)


def _all(expression: Expression) -> Iterator[Expression]:
    yield expression
    for child in expression.children:
        yield from _all(child)
