from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys.membership import Bitmap, Flags, MembershipTest, is_searched
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, LEAST
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType

BIGINT = ValueType("bigint")
NUMBERS = st.one_of(st.integers(-50, 50), st.integers(LEAST, GREATEST))


@given(st.lists(NUMBERS, max_size=30), st.lists(NUMBERS, max_size=30))
def test_row_passes_iff_its_value_is_a_key(keys, values):
    rows = MembershipTest.of(Domain.of(BIGINT, *keys))
    assert [each in keys for each in values] == rows.contains(np.array(values, np.int64)).tolist()


@pytest.mark.parametrize(
    ("keys", "form"),
    [
        (range(0, 100, 3), Flags),
        (range(0, 3 << 20, 3), Bitmap),
        ([LEAST, LEAST + 2, LEAST + 4], Bitmap),
        ([GREATEST - 4, GREATEST - 2, GREATEST], Bitmap),
        ([1, 10**6, 10**12], RangeSet),
        (range(100), RangeSet),
        ([LEAST, 0, GREATEST], RangeSet),
        ([], RangeSet),
    ],
)
def test_dense_keys_use_flags_or_a_bitmap(keys, form):
    domain = Domain.of(BIGINT, *keys)
    rows = MembershipTest.of(domain)
    assert form is type(rows.values)
    # Up to two ranges are compared without a search.
    assert is_searched(domain) is (form is RangeSet and len(domain.ranges) > 2)
    assert [*[True] * len(keys), False] == rows.contains(np.array([*keys, 10**15], np.int64)).tolist()


@pytest.mark.parametrize("width", ["i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("keys", [[-3, 5, 9], [-128, 0, 127], [5], [-(2**40), 0, 2**40], range(-128, 128, 3)])
def test_narrow_integers_do_not_wrap(width, keys):
    """Failure catalogue 75, 78: neither a difference nor a bound may wrap around in the width of the values."""
    info = np.iinfo(width)
    values = np.array([info.min, info.min + 1, -3, -1, 0, 5, 9, info.max - 1, info.max], width)
    rows = MembershipTest.of(Domain.of(BIGINT, *keys))
    assert [each in keys for each in values.tolist()] == rows.contains(values).tolist()


def test_too_many_values_to_list_stay_ranges():
    wide = Domain.between(BIGINT, 0, 10**8)
    parts = [wide, Domain.of(BIGINT, 10**8 + 5), Domain.of(BIGINT, 10**8 + 9)]
    rows = MembershipTest.of(parts[0].union(parts[1]).union(parts[2]))
    assert isinstance(rows.values, RangeSet)
    assert [True, False, True] == rows.contains(np.array([7, 10**8 + 4, 10**8 + 5])).tolist()


def test_floats_and_strings_are_searched():
    double, text = ValueType("double"), ValueType("string")
    floats = MembershipTest.of(Domain.of(double, 0.0, 1.5, float("nan")))
    assert (RangeSet, True) == (type(floats.values), floats.nan)
    assert [True, True, False] == floats.contains(Domain.of(double, -0.0, 1.5, 2.5).ranges.points()).tolist()
    texts = MembershipTest.of(Domain.of(text, "a", "\U0001f600"))
    assert [True, False, True] == texts.contains(Domain.of(text, "a", "b", "\U0001f600").ranges.points()).tolist()
