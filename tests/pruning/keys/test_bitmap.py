from __future__ import annotations

import numpy as np
import pytest

from pruning.keys.bitmap import Bitmap, span_fits

LEAST, GREATEST = -(2**63), 2**63 - 1


def codes_of(bitmap: Bitmap) -> list[int]:
    words = np.frombuffer(bitmap.words, "<u8").tolist()
    return [bitmap.first + 64 * at + bit for at, word in enumerate(words) for bit in range(64) if word >> bit & 1]


@pytest.mark.parametrize(
    "codes", [[0], [63, 64], [70, 72], [-1], [-65, 130], [LEAST, LEAST + 70], [GREATEST - 200, GREATEST], [9, 500, 501]]
)
def test_words_begin_at_a_multiple_of_64_and_hold_the_codes(codes):
    bitmap = Bitmap.of(np.array(codes, np.int64))
    assert 0 == bitmap.first % 64
    assert codes == codes_of(bitmap)
    assert bitmap == Bitmap.of(np.array([*reversed(codes), *codes], np.int64))
    assert span_fits(codes[0], codes[-1], len(bitmap.words))
    assert not span_fits(codes[0], codes[-1], len(bitmap.words) - 1)


def test_random_codes():
    codes = np.unique(np.random.default_rng(0).integers(-100_000, 50_000, 5_000))
    assert codes.tolist() == codes_of(Bitmap.of(codes))


def test_span_of_all_numbers_does_not_fit():
    assert not span_fits(LEAST, GREATEST, 1 << 40)
    assert not span_fits(0, 0, 0)


def test_no_codes_are_refused():
    with pytest.raises(ValueError, match="without codes"):
        Bitmap.of(np.array([], np.int64))
