from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys.membership import MAX_BYTES, Bitmap, bytes_needed, span_fits

LEAST, GREATEST = -(2**63), 2**63 - 1


@st.composite
def dense_codes(draw: st.DrawFn) -> list[int]:
    """Distinct codes within a few hundred of each other, also at both ends of int64."""
    low = draw(st.one_of(st.sampled_from([LEAST, LEAST + 1, -9, 0, 7, 8, GREATEST - 300]), st.integers(-500, 500)))
    offsets = draw(st.sets(st.integers(0, 300), max_size=30))
    return sorted(low + offset for offset in offsets)


def bitmap(codes: list[int]) -> Bitmap:
    return Bitmap.of(np.array(codes, np.int64))


def neighbours(codes: list[int]) -> list[int]:
    near = {code + step for code in codes for step in (-9, -8, -7, -2, -1, 0, 1, 2, 7, 8, 9)}
    return sorted(
        code for code in near | {LEAST, LEAST + 1, -1, 0, GREATEST - 1, GREATEST} if LEAST <= code <= GREATEST
    )


@given(dense_codes())
def test_bitmap_contains_exactly_its_codes(codes):
    probes = neighbours(codes)
    assert [code in codes for code in probes] == bitmap(codes).contains(np.array(probes, np.int64)).tolist()
    assert len(codes) == bitmap(codes).count


@given(dense_codes(), dense_codes())
def test_merge_is_the_union(first, second):
    union = sorted({*first, *second})
    if union and not span_fits(union[0], union[-1], 1 << 20):
        return
    merged = bitmap(first).merge(bitmap(second))
    probes = neighbours(union)
    assert [code in union for code in probes] == merged.contains(np.array(probes, np.int64)).tolist()
    assert len(union) == merged.count


@given(dense_codes(), dense_codes())
def test_merging_again_takes_no_more_memory(first, second):
    if first and second and not span_fits(min(first[0], second[0]), max(first[-1], second[-1]), 1 << 20):
        return
    merged = bitmap(first).merge(bitmap(second))
    assert merged.nbytes == merged.merge(bitmap(second)).nbytes


@pytest.mark.parametrize(
    ("codes", "absent"),
    [
        ([LEAST], [LEAST + 1, 0, GREATEST]),
        ([GREATEST], [GREATEST - 1, 0, LEAST]),
        ([LEAST, LEAST + 9], [LEAST + 1, LEAST + 10, GREATEST, -1]),
        ([GREATEST - 9, GREATEST], [GREATEST - 1, GREATEST - 10, LEAST, LEAST + 1, -1]),
        ([0], [LEAST, GREATEST, 1, -1, 2**32]),
    ],
    ids=["least", "greatest", "low end", "high end", "zero"],
)
def test_differences_do_not_overflow_int64(codes, absent):
    assert bitmap(codes).contains(np.array(codes)).all()
    assert not bitmap(codes).contains(np.array(absent)).any()


def test_empty_bitmap_contains_nothing():
    assert [False] * 3 == bitmap([]).contains(np.array([LEAST, 0, GREATEST])).tolist()
    assert 0 == bitmap([]).count


def test_bitmap_of_several_segments_contains_all_codes():
    codes = np.unique(np.random.default_rng(0).integers(-2_000_000, 5_000_000, 50_000))
    made = Bitmap.of(codes)
    everything = np.arange(codes[0] - 20, codes[-1] + 20)
    assert codes.tolist() == everything[made.contains(everything)].tolist()
    assert len(codes) == made.count


def test_segments_without_codes_stay_empty():
    made = bitmap([0, 10_000_000])
    probes = np.array([0, 1, 9_999_999, 10_000_000, 10_000_001])
    assert [True, False, False, True, False] == made.contains(probes).tolist()


@pytest.mark.parametrize(
    "codes", [[0], [63, 64], [70, 72], [-1], [-65, 130], [LEAST, LEAST + 70], [GREATEST - 200, GREATEST], [9, 500, 501]]
)
def test_words_begin_at_a_multiple_of_64(codes):
    base, octets = bitmap(codes).words()
    words = np.frombuffer(octets, "<u8").tolist()
    assert 0 == base % 64
    assert codes == [base + 64 * at + bit for at, word in enumerate(words) for bit in range(64) if word >> bit & 1]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 0, 1), (0, 6, 1), (0, 7, 2), (7, 7, 2), (-1, 0, 2), (LEAST, GREATEST, 2**61 + 1)],
)
def test_memory_is_one_bit_per_number_of_the_span(low, high, expected):
    assert expected == bytes_needed(low, high)
    assert span_fits(low, high, expected) == (expected <= MAX_BYTES)
    assert not span_fits(low, high, expected - 1)
    if expected <= MAX_BYTES:
        assert expected == bitmap(sorted({low, high})).nbytes


def test_span_over_the_limit_is_refused():
    with pytest.raises(ValueError, match="ask `span_fits` first"):
        bitmap([LEAST, GREATEST])
    with pytest.raises(ValueError, match="ask `span_fits` first"):
        bitmap([LEAST]).merge(bitmap([GREATEST]))


def test_unsorted_codes_are_refused():
    with pytest.raises(ValueError, match="ascending order"):
        bitmap([3, 1])


def test_bitmap_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        bitmap([1]).octets[0] = 0


@pytest.mark.parametrize(
    ("low", "octets"), [(1, [1]), (0, []), (0, [1, 128])], ids=["unaligned", "no octets", "last bit set"]
)
def test_invalid_bitmaps_are_refused(low, octets):
    with pytest.raises(ValueError, match="Cannot make a bitmap"):
        Bitmap(low, np.array(octets, np.uint8))
