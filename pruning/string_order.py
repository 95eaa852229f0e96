"""Order among byte strings: the least, the greatest and all in ascending order, found eight bytes at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pruning.byte_strings import ByteStrings, IntArray

_WORD = 8
_ALL_ONES = (1 << 64) - 1
# Masks that keep the first 0 to 8 bytes of a big-endian word.
_LEADING: npt.NDArray[np.uint64] = np.array(
    [_ALL_ONES - (_ALL_ONES >> (8 * kept)) for kept in range(_WORD + 1)], np.uint64
)


def least(strings: ByteStrings) -> int:
    """Index of a least string; there must be one."""
    return _extreme(_Words(strings), greatest=False)


def greatest(strings: ByteStrings) -> int:
    """Index of a greatest string; there must be one."""
    return _extreme(_Words(strings), greatest=True)


def sorted_distinct(strings: ByteStrings) -> ByteStrings:
    """The distinct strings in ascending order."""
    order, first = _ordered(strings)
    return strings.take(order[first == np.arange(len(order))])


def ranks(strings: ByteStrings) -> IntArray:
    """Numbers that compare as the strings do; equal strings share one."""
    order, first = _ordered(strings)
    found = np.empty(len(order), np.int64)
    found[order] = first
    return found


def _ordered(strings: ByteStrings) -> tuple[IntArray, IntArray]:
    """Indexes that put the strings in ascending order, and for each place the first place of an equal string."""
    words = _Words(strings)
    undecided = np.arange(len(strings))
    order, first = undecided.copy(), np.zeros(len(strings), np.int64)
    depth = words.common_prefix()
    # Each pass sorts what is undecided by its next bytes; what became unique is done.
    while len(undecided) and depth < words.longest:
        undecided = _refine(order, first, undecided, words.at(order[undecided], depth))
        depth += _WORD
    # Only trailing NUL bytes tell the rest apart.
    _refine(order, first, undecided, words.lengths[order[undecided]].astype(np.uint64))
    return order, first


def _refine(order: IntArray, first: IntArray, undecided: IntArray, keys: npt.NDArray[np.uint64]) -> IntArray:
    """Sorts the places `undecided` by key among those with one `first`, in place; gives those still undecided."""
    if len(undecided) == 0:
        return undecided
    groups = first[undecided]
    sorting = np.argsort(keys) if groups[0] == groups[-1] else np.lexsort((keys, groups))
    order[undecided] = order[undecided][sorting]
    keys, groups = keys[sorting], groups[sorting]
    starts = np.ones(len(keys), bool)
    starts[1:] = (keys[1:] != keys[:-1]) | (groups[1:] != groups[:-1])
    first[undecided] = undecided[np.maximum.accumulate(np.where(starts, np.arange(len(keys)), 0))]
    shared = np.flatnonzero(~starts | np.append(~starts[1:], [False]))
    return undecided.take(shared)


def _extreme(words: _Words, *, greatest: bool) -> int:
    candidates, depth = np.arange(len(words.lengths)), 0
    while len(candidates) > 1 and depth < words.lengths[candidates].max():
        found = words.at(candidates, depth)
        candidates = candidates[found == (found.max() if greatest else found.min())]
        depth += _WORD
    lengths = words.lengths[candidates]
    return int(candidates[lengths.argmax() if greatest else lengths.argmin()])


class _Words:
    """Strings read as big-endian numbers from any byte on."""

    def __init__(self, strings: ByteStrings) -> None:
        self.strings, self.lengths = strings, strings.lengths()
        self.longest = int(self.lengths.max(initial=0))
        self._end = len(strings.data)
        padded = np.append(strings.data, np.zeros(_WORD, np.uint8))
        self._numbers = np.ndarray((self._end + 1,), ">u8", padded, 0, (1,))

    def at(self, members: IntArray, depth: int) -> npt.NDArray[np.uint64]:
        """The 8 bytes from `depth` on of each member, zero beyond its end."""
        left = np.clip(self.lengths[members] - depth, 0, _WORD)
        starts = np.minimum(self.strings.offsets[members] + depth, self._end)
        return self._numbers[starts].astype(np.uint64) & _LEADING[left]

    def common_prefix(self) -> int:
        """How many bytes all strings begin with: those that the least and the greatest share."""
        if len(self.lengths) == 0:
            return 0
        first, last = (self.strings[_extreme(self, greatest=which)] for which in (False, True))
        differing = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
        return next(differing, min(len(first), len(last)))
