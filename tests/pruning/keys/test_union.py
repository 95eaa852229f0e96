"""`united()`: every key of several builds, and no fewer than any of them."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys.key_set import KeyLimits
from pruning.keys.union import united
from pruning.keys.xxhash64 import hash_codes
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.keys.test_summary import AMPLE, BIGINT, DOUBLE, NAN, STRING, keys, partition
from tests.pruning.strategies import ALL_TYPES, values

INT = ValueType("int")
FEW = KeyLimits(keys=2, nbytes=1 << 20, fpp=0.01)


def limited(items, keys=20):
    """A summary of more bigints than its limit allows to list."""
    limits = KeyLimits(keys, nbytes=1 << 20, fpp=0.01)
    return partition([BIGINT], [(each,) for each in items], limits).finish(1, source="rows")


@given(st.data())
def test_every_key_of_each_build_is_in_the_union(data):
    type_ = data.draw(st.sampled_from(ALL_TYPES))
    lists = data.draw(st.lists(st.lists(st.one_of(st.none(), values(type_)), max_size=6), min_size=1, max_size=4))
    limits = data.draw(st.sampled_from([AMPLE, FEW]))
    parts = [partition([type_], [(each,) for each in some], limits).finish(1, source="rows") for some in lists]
    found = united(parts)
    assert found.domains[0].contains_all(reduce(Domain.union, (each.domains[0] for each in parts)))
    assert (found.rows, found.null_rows) == (sum(map(len, lists)), sum(some.count(None) for some in lists))
    if all(each.exact for each in parts):
        wanted = Domain.of(type_, *(each for some in lists for each in some)).without_null()
        assert wanted == found.domains[0]
        assert found.exact


def test_keys_of_several_builds_count_once():
    found = united([keys(BIGINT, [1, 2, None]), keys(BIGINT, [2, 3, 9]), keys(BIGINT, [])])
    assert (4, 6, 1) == (found.distinct, found.rows, found.null_rows)
    assert Domain.of(BIGINT, 1, 2, 3, 9) == found.domains[0]
    found = united([keys(DOUBLE, [NAN, -0.0]), keys(DOUBLE, [0.0, NAN])])
    assert (2, Domain.of(DOUBLE, 0.0, NAN)) == (found.distinct, found.domains[0])
    found = united([keys(STRING, ["a", "é😀"]), keys(STRING, ["a" * 300, ""])])
    assert (4, Domain.of(STRING, "a", "é😀", "a" * 300, "")) == (found.distinct, found.domains[0])


def test_builds_without_rows_give_no_keys():
    assert united([keys(BIGINT, []), keys(BIGINT, [None])]).is_none


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (limited(range(0, 90, 3)), limited(range(1, 90, 3))),
        (limited(range(0, 300, 3), keys=60), limited(range(1, 90, 3))),
        (keys(BIGINT, range(-5, 5)), limited(range(1, 90, 3))),
    ],
    ids=["one size", "two sizes", "a list"],
)
def test_keys_that_are_not_listed_leave_a_bloom_filter_of_all(first, second):
    every = range(-5, 5) if first.exact else range(0, 3 * first.rows, 3)
    found = united([first, second])
    assert not found.exact
    assert (BIGINT,) == found.hashed_as
    assert found.bloom is not None
    assert found.bloom.might_contain(hash_codes(BIGINT, code.encode(BIGINT, [*every, *range(1, 90, 3)]))).all()
    none = hash_codes(BIGINT, code.encode(BIGINT, range(100_000, 101_000)))
    assert found.bloom.might_contain(none).mean() < 0.5


def test_bloom_filter_that_most_rows_would_pass_is_dropped():
    parts = [limited(range(at, 800, 7), keys=12) for at in range(7)]
    found = united(parts)
    assert all(each.bloom is not None for each in parts)
    assert (None, None, ()) == (found.distinct, found.bloom, found.hashed_as)
    assert found.domains[0].contains_all(Domain.between(BIGINT, 0, 799))


def test_nan_in_a_list_leaves_ranges():
    many = partition([DOUBLE], [(each / 4,) for each in range(90)], FEW).finish(1, source="rows")
    found = united([keys(DOUBLE, [NAN, 100.0]), many])
    assert (None, None) == (found.distinct, found.bloom)
    assert found.domains[0].contains_all(Domain.of(DOUBLE, NAN, 100.0, 22.25))


@pytest.mark.parametrize(
    ("parts", "found"),
    [((), "no keys"), ((keys(INT, [1]), keys(BIGINT, [1])), "bigint, int")],
    ids=["none", "types"],
)
def test_only_keys_of_one_type_are_united(parts, found):
    with pytest.raises(ValueError, match=f"Cannot unite keys: found {found}"):
        united(parts)
