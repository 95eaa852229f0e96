"""`coerce` compared with Spark's `=` value by value, for every pair of comparable types."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pruning.reasons import Reason
from pruning.values.coercion import coerce
from pruning.values.domain import Domain
from pruning.values.encoding import float_values
from pruning.values.types import ValueType
from tests.pruning.samples import DECIMALS, FLOATS, INTEGERS, MOMENTS, Spec, nasty
from tests.pruning.spark_equality import assert_matches_spark
from tests.pruning.strategies import LAW, specs

NUMBERS = (*INTEGERS, *FLOATS, *DECIMALS, ValueType("decimal", 30, 15))
NUMBER_PAIRS = tuple(permutations(NUMBERS, 2))
MOMENT_PAIRS = tuple(permutations(MOMENTS, 2))


def _keys_and_column(pairs: tuple[tuple[ValueType, ValueType], ...]) -> st.SearchStrategy[tuple[Spec, ValueType]]:
    sets = {pair: st.tuples(specs(pair[0], max_pairs=3, open_ends=False), st.just(pair[1])) for pair in pairs}
    return st.sampled_from(pairs).flatmap(lambda pair: sets[pair])


@LAW
@given(_keys_and_column(NUMBER_PAIRS))
def test_coerced_numbers_match_spark_equality(example):
    keys, column = example
    found = coerce(keys.domain(), column, "`k`")
    assume(not isinstance(found, Reason))
    assert_matches_spark(keys, column, found)


@LAW
@given(_keys_and_column(MOMENT_PAIRS))
def test_coerced_dates_and_timestamps_match_spark_equality(example):
    keys, column = example
    assert_matches_spark(keys, column, coerce(keys.domain(), column, "`k`"))


@LAW
@given(st.integers(24, 62), st.integers(-2, 2), st.sampled_from([1, -1]), st.sampled_from(["float", "double"]))
def test_integers_between_two_floats_match_spark_rounding(power, step, sign, name):
    # A number half way between two single-precision numbers, or just beside it.
    key = sign * ((1 << power) + (1 << max(power - 24, 0)) + step)
    keys, column = Spec(ValueType("bigint"), ((key, key),)), ValueType(name)
    assert_matches_spark(keys, column, coerce(keys.domain(), column, "`k`"))


@LAW
@given(st.integers(20, 62), st.integers(-2, 2), st.sampled_from([1.0, -1.0]), st.sampled_from(FLOATS))
def test_float_key_matches_every_integer_that_rounds_to_it(power, steps, sign, source):
    key = sign * (2.0**power + steps * 2.0 ** (power - (23 if source.name == "float" else 52)))
    keys, column = Spec(source, ((key, key),)), ValueType("bigint")
    assert_matches_spark(keys, column, coerce(keys.domain(), column, "`k`"))


@LAW
@given(_keys_and_column(NUMBER_PAIRS + MOMENT_PAIRS))
def test_more_keys_only_widen_the_coerced_domain(example):
    keys, column = example
    fewer = Spec(keys.type, keys.pairs[:1])
    found, found_fewer = (coerce(each.domain(), column, "`k`") for each in (keys, fewer))
    assume(not isinstance(found, Reason))
    assert found.domain.contains_all(found_fewer.domain)


@LAW
@given(_keys_and_column(tuple(pair for pair in NUMBER_PAIRS if pair[1].name == "float")))
def test_bounds_for_a_float_column_are_single_precision(example):
    # A bound between two values of the column cannot be written as its literal, and would be moved outward.
    keys, column = example
    found = coerce(keys.domain(), column, "`k`").domain
    ends = float_values(np.concatenate([found.ranges.lows, found.ranges.highs]))
    assert ends.tolist() == ends.astype(np.float32).tolist()


@LAW
@given(_keys_and_column(NUMBER_PAIRS + MOMENT_PAIRS))
def test_null_is_kept_and_nan_only_for_float_columns(example):
    keys, column = example
    found = coerce(keys.domain(), column, "`k`")
    assume(not isinstance(found, Reason))
    assert (keys.null, keys.nan and column.is_float) == (found.domain.null, found.domain.nan)


@pytest.mark.parametrize("pair", NUMBER_PAIRS + MOMENT_PAIRS, ids=lambda pair: f"{pair[0]} to {pair[1]}")
def test_unknown_keys_match_every_comparable_value(pair):
    # A build over its limits has no bounds. Open ends must stay wide, whatever code stands in for them.
    source, column = pair
    anything = Spec(source, ((min(nasty(source)), max(nasty(source))),), null=True, nan=source.is_float)
    everything = coerce(Domain.all(source), column, "`k`")
    if not isinstance(everything, Reason):
        assert_matches_spark(anything, column, everything)
        assert everything.domain.null
