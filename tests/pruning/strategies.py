"""Hypothesis strategies for values and sets of every type; edge cases are drawn often."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from pruning.values.types import INTEGER_BITS, ValueType
from tests.pruning.samples import ALL_TYPES, Spec, decimal, nasty

# More examples than the profile asks for, because many types share one law.
LAW = settings(max_examples=settings().max_examples * 5 // 2)


@cache
def values(type_: ValueType) -> st.SearchStrategy[Any]:
    """Any value of the type except NULL and NaN; half of them are edge cases."""
    return st.one_of(st.sampled_from(nasty(type_)), _any_value(type_))


def _any_value(type_: ValueType) -> st.SearchStrategy[Any]:
    match type_.name:
        case name if name in INTEGER_BITS:
            half = 1 << (INTEGER_BITS[name] - 1)
            return st.integers(-half, half - 1)
        case "float" | "double":
            return st.floats(allow_nan=False, width=32 if type_.name == "float" else 64)
        case "decimal":
            most = 10**type_.precision - 1
            return st.integers(-most, most).map(lambda unscaled: decimal(type_, unscaled))
        case "date":
            return st.integers(-(1 << 31), (1 << 31) - 1)
        case "timestamp" | "timestamp_ntz":
            return st.integers(-(1 << 63), (1 << 63) - 1)
        case "boolean":
            return st.booleans()
        case "string":
            return st.text(max_size=12)
        case _:
            return st.binary(max_size=12)


# Cached, because making and checking a strategy costs more than drawing from it.
@cache
def specs(type_: ValueType, *, max_pairs: int = 4, open_ends: bool = True) -> st.SearchStrategy[Spec]:
    """Sets of single values, or of unordered ranges that may overlap or be empty."""
    value = values(type_)
    points = st.lists(value.map(lambda each: (each, each)), max_size=max_pairs)
    end = st.one_of(st.none(), value) if open_ends else value
    ranges = st.lists(st.tuples(end, end), max_size=max_pairs)
    nan = st.booleans() if type_.is_float else st.just(value=False)
    return st.builds(Spec, st.just(type_), st.one_of(points, ranges).map(tuple), st.booleans(), nan)


def of_one_type(count: int, types: tuple[ValueType, ...] = ALL_TYPES) -> st.SearchStrategy[tuple[Spec, ...]]:
    """Tuples of `count` sets of one type."""
    sets = {type_: st.tuples(*[specs(type_)] * count) for type_ in types}
    return st.sampled_from(types).flatmap(lambda type_: sets[type_])
