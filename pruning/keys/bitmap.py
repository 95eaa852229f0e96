"""`Bitmap`: keys that lie near each other, as words in which the engine looks up the value of a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pruning.values.byte_strings import IntArray

_WORD = 64


def span_fits(low: int, high: int, max_bytes: int) -> bool:
    """True if a bitmap of codes from `low` to `high` takes at most `max_bytes`.

    >>> span_fits(0, 127, 16), span_fits(1, 128, 16)
    (True, False)
    """
    return (high // _WORD - low // _WORD + 1) * (_WORD // 8) <= max_bytes


@dataclass(frozen=True, slots=True)
class Bitmap:
    """A set of codes: bit `i` of the little-endian 64-bit `words` stands for `first + i`.

    `first` is a multiple of 64, so that a code shifted right by six bits is the number of a word.
    """

    first: int
    words: bytes

    @staticmethod
    def of(codes: IntArray) -> Bitmap:
        r"""The set of `codes`, in any order; `ValueError` if there are none.

        >>> Bitmap.of(np.array([72, 70]))
        Bitmap(first=64, words=b'@\x01\x00\x00\x00\x00\x00\x00')
        """
        if not len(codes):
            raise ValueError("Cannot make a bitmap without codes")
        first = int(codes.min()) // _WORD * _WORD
        bits = np.zeros(int(codes.max()) // _WORD * _WORD + _WORD - first, np.bool_)
        bits[codes - np.int64(first)] = True
        return Bitmap(first, np.packbits(bits, bitorder="little").tobytes())
