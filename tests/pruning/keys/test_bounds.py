"""`values_at_least`, `values_at_most` and `bounded`: the domain of a column in a comparison with the keys of a range
join.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import Bound, KeySummary, bounded, values_at_least, values_at_most
from pruning.reasons import Reason, ReasonCode
from pruning.scan.key_filter import KeyFilter, key_filter
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.keys.test_summary import AMPLE, keys
from tests.pruning.samples import ALL_TYPES, NAN, Spec, order
from tests.pruning.strategies import LAW, of_one_type, values

BIGINT, DOUBLE, STRING = ValueType("bigint"), ValueType("double"), ValueType("string")
FEW = KeyLimits(1, 1 << 20, 0.01)


class Probe:
    """A probe column of a type that can be pruned."""

    name = "k"
    refusal: Reason | None = None

    def __init__(self, type_: ValueType) -> None:
        self.type: ValueType | None = type_


def is_nan(value: Any) -> bool:
    return bool(value != value)  # noqa: PLR0124  only NaN differs from itself


def is_at_least(type_: ValueType, value: Any, other: Any) -> bool:
    """Spark's `value >= other` for two values that are not NULL; NaN is above all numbers."""
    if is_nan(value) or is_nan(other):
        return is_nan(value)
    return bool(order(type_, value) >= order(type_, other))


def members(spec: Spec) -> list[Any]:
    """Bounds of the ranges of a set, including its least and greatest value, and NaN if the set has it."""
    pairs = [pair for pair in spec.pairs if order(spec.type, pair[0]) <= order(spec.type, pair[1])]
    return [*(end for pair in pairs for end in pair), *[NAN] * spec.nan]


def closed(specs: tuple[Spec, ...]) -> bool:
    return all(None not in pair for spec in specs for pair in spec.pairs)


# A mutant that left NaN out of the greatest key fails here, and so does one that ranked NaN below numbers.
@LAW
@given(of_one_type(1).filter(closed))
def test_value_passes_iff_it_is_on_that_side_of_some_key(specs):
    (spec,) = specs
    ends, (low, high) = members(spec), (values_at_least(spec.domain()), values_at_most(spec.domain()))
    for value in [*spec.probes(), *[NAN] * spec.type.is_float]:
        assert low.contains(value) is any(is_at_least(spec.type, value, key) for key in ends), value
        assert high.contains(value) is any(is_at_least(spec.type, key, value) for key in ends), value
    assert not low.null
    assert not high.null


@LAW
@given(of_one_type(1))
def test_bounds_contain_the_keys_and_are_idempotent(specs):
    keys_ = specs[0].domain()
    for widen in (values_at_least, values_at_most):
        wider = widen(keys_)
        assert wider.contains_all(keys_.without_null())
        assert wider == widen(wider)
        assert wider.is_none is keys_.without_null().is_none


@pytest.mark.parametrize(
    ("type_", "given_keys", "least", "most"),
    [
        pytest.param("int", (7, 3), "{[3, ...)}", "{(..., 7]}", id="numbers"),
        pytest.param("int", (), "{}", "{}", id="no-key"),
        pytest.param("int", (None,), "{}", "{}", id="null-alone"),
        pytest.param("double", (1.5, NAN), "{[1.5, ...)} or NaN", "{(..., ...)} or NaN", id="nan-is-above-all"),
        pytest.param("double", (NAN,), "{} or NaN", "{(..., ...)} or NaN", id="nan-alone"),
        pytest.param("double", (2.5,), "{[2.5, ...)} or NaN", "{(..., 2.5]}", id="no-nan"),
        pytest.param("string", ("b", "ab"), "{[ab, ...)}", "{[, b]}", id="text"),
        pytest.param("decimal(38,2)", (1, 2), "{[1.00, ...)}", None, id="decimal-of-bytes"),
    ],
)
def test_bounds_of_keys(type_, given_keys, least, most):
    keys_ = Domain.of(ValueType.parse(type_), *given_keys)
    assert least == str(values_at_least(keys_))
    assert most in {None, str(values_at_most(keys_))}


# -0.0 equals 0.0, so either passes for either key.
@pytest.mark.parametrize("key", [-0.0, 0.0])
def test_both_zeros_give_one_bound(key):
    for widen in (values_at_least, values_at_most):
        assert [True, True] == [widen(Domain.of(DOUBLE, key)).contains(zero) for zero in (-0.0, 0.0)]


def filtered(summary: KeySummary, bound: Bound, type_: ValueType) -> KeyFilter:
    return key_filter([Probe(type_)], bounded(summary, bound))


SIDES: dict[Bound, Callable[[Domain], Domain]] = {Bound.AT_LEAST: values_at_least, Bound.AT_MOST: values_at_most}
_KEYS = {type_: st.lists(st.one_of(st.none(), values(type_)), max_size=6) for type_ in ALL_TYPES}


# A mutant that kept the bloom filter of the keys fails here: rows between the keys no longer passed.
@LAW
@given(
    st.sampled_from(ALL_TYPES).flatmap(lambda type_: st.tuples(st.just(type_), _KEYS[type_])),
    st.sampled_from(list(Bound)),
    st.sampled_from([AMPLE, FEW]),
)
def test_bounded_summary_filters_by_ranges_only(example, bound, limits):
    type_, items = example
    exact = keys(type_, items, AMPLE)
    found = filtered(keys(type_, items, limits), bound, type_)
    assert SIDES[bound](exact.domains[0]) == found.domains["k"]
    assert (False, False, None) == (found.is_exact, found.has_bloom, found.distinct)
    assert found.is_empty is all(item is None for item in items)
    assert found.rows == len(items)


def test_bounded_summary_ignores_keys_over_limit():
    summary = keys(BIGINT, [1, 5, 9], FEW)
    assert ReasonCode.KEYS_OVER_LIMIT in {each.code for each in summary.reasons}
    assert () == bounded(summary, Bound.AT_MOST).reasons


def test_bounded_summary_describes_itself():
    found = filtered(keys(BIGINT, [1, 5, 9]), Bound.AT_LEAST, BIGINT)
    assert ("ranges", "at least one of test") == (found.kind, found.source)
