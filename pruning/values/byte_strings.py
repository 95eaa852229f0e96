"""`ByteStrings`: many byte strings in two flat arrays, selected, concatenated and sorted without a Python object each.

Comparisons and sorts read eight bytes of each string at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]

# Copying needs an index for each byte; a block of this size keeps the indexes in the CPU cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class ByteStrings:
    """Concatenated byte strings: string `i` is `data[offsets[i]:offsets[i + 1]]`.

    They compare by unsigned bytes, a prefix before its extensions, as in Spark's collation UTF8_BINARY.
    """

    data: ByteArray
    offsets: IntArray

    @staticmethod
    def of(items: Iterable[bytes]) -> ByteStrings:
        """The strings of `items`, in their order."""
        parts = tuple(items)
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return ByteStrings(np.frombuffer(b"".join(parts), np.uint8), offsets)

    @staticmethod
    def of_fixed_width(rows: ByteArray) -> ByteStrings:
        """One string for each row of a two-dimensional byte array."""
        count, width = rows.shape
        return ByteStrings(rows.reshape(-1), np.arange(count + 1, dtype=np.int64) * width)

    @staticmethod
    def concat(parts: Iterable[ByteStrings]) -> ByteStrings:
        """All strings of `parts`, one part after the other."""
        packed = tuple(part.packed() for part in parts)
        lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths() for part in packed)])
        data = [part.data for part in packed] or [np.zeros(0, np.uint8)]
        return ByteStrings(np.concatenate(data), np.cumsum(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        position = range(len(self))[index]
        return self.data[self.offsets[position] : self.offsets[position + 1]].tobytes()

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes."""
        return int(self.data.nbytes + self.offsets.nbytes)

    def lengths(self) -> IntArray:
        """Length of each string in bytes."""
        return np.diff(self.offsets)

    def packed(self) -> ByteStrings:
        """Copies of the strings without unused bytes; the first begins at offset 0."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        if first == 0 and last == len(self.data):
            return self
        return ByteStrings(self.data[first:last], self.offsets - first)

    def take(self, indices: npt.NDArray[np.integer]) -> ByteStrings:
        """The strings at `indices`, in that order."""
        width = self._width()
        if width:
            rows = self.data[self.offsets[0] : self.offsets[-1]].reshape(-1, width)
            return ByteStrings.of_fixed_width(rows.take(indices, axis=0))
        return self._gathered(self.offsets[:-1][indices], self.lengths()[indices])

    def _width(self) -> int:
        """The length in bytes of every string; 0 if lengths differ or there are no strings."""
        count, size = len(self), int(self.offsets[-1] - self.offsets[0])
        width = size // count if count else 0
        return width if width * count == size and (self.lengths() == width).all() else 0

    def truncated(self, width: int) -> ByteStrings:
        """Each string cut to its first `width` bytes."""
        return self._gathered(self.offsets[:-1], np.minimum(self.lengths(), width))

    def _gathered(self, starts: IntArray, lengths: IntArray) -> ByteStrings:
        """The strings at `starts` with `lengths`, copied in blocks, since copying needs an index for each byte."""
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        for begin in range(0, len(starts), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            first, last = offsets[begin], offsets[min(begin + _BLOCK, len(starts))]
            positions = np.repeat(starts[block] - offsets[:-1][block], lengths[block]) + np.arange(first, last)
            data[first:last] = self.data[positions]
        return ByteStrings(data, offsets)


BoolArray: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]

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
    """The rank of each string, from 0; equal strings have the same rank."""
    order, first = _ordered(strings)
    found = np.empty(len(order), np.int64)
    found[order] = first
    return found


def places(ordered: ByteStrings, strings: ByteStrings) -> tuple[IntArray, BoolArray]:
    """For each string the number of `ordered` strings below it, and True where one of these equals it.

    `ordered` is ascending and distinct. Each step compares the next eight bytes with the strings of `ordered` that
    have the same bytes before.
    """
    below, ends = np.zeros(len(strings), np.int64), np.full(len(strings), len(ordered))
    if not len(ordered) or not len(strings):
        return below, np.zeros(len(strings), bool)
    ours, theirs = _Words(ordered), _Words(strings)
    shared = _common(ordered[0], ordered[len(ordered) - 1])
    undecided, depth, longest = np.arange(len(strings)), 0, max(ours.longest, theirs.longest)
    while len(undecided) and depth < longest:
        wanted = theirs.at(undecided, depth)
        if depth + _WORD <= shared:
            undecided = _beside_all(below, ends, undecided, wanted, ours.at(np.zeros(1, np.int64), depth))
        else:
            undecided = _narrowed(below, ends, undecided, wanted, partial(ours.at, depth=depth))
        depth += _WORD
    # The remaining strings differ only by trailing NUL bytes.
    wanted = theirs.lengths[undecided].astype(np.uint64)
    _narrowed(below, ends, undecided, wanted, lambda members: ours.lengths[members].astype(np.uint64))
    return below, below < ends


def above(first: ByteStrings, second: ByteStrings) -> BoolArray:
    """An array: True where the first string of a pair is greater than the second."""
    found = np.zeros(len(first), bool)
    ours, theirs = _Words(first), _Words(second)
    undecided, depth = np.arange(len(first)), 0
    while len(undecided) and depth < max(ours.longest, theirs.longest):
        mine, other = ours.at(undecided, depth), theirs.at(undecided, depth)
        found[undecided] = mine > other
        undecided = undecided[mine == other]
        depth += _WORD
    found[undecided] = ours.lengths[undecided] > theirs.lengths[undecided]
    return found


def _beside_all(below: IntArray, ends: IntArray, undecided: IntArray, wanted: Words, word: Words) -> IntArray:
    """The undecided strings that go on with `wanted`, if all members have the same next word."""
    is_above, is_below = wanted > word, wanted < word
    below[undecided[is_above]], ends[undecided[is_below]] = ends[undecided[is_above]], 0
    found: IntArray = undecided[~is_above & ~is_below]
    return found


def _narrowed(
    below: IntArray, ends: IntArray, undecided: IntArray, wanted: Words, words: Callable[[IntArray], Words]
) -> IntArray:
    """Narrows `[below, ends)` of the strings `undecided`, in place, to members whose word is the wanted one.

    Returns the strings with members left; the `words` of the members of one range ascend.
    """
    if not len(undecided):
        return undecided
    begin, end = below[undecided], ends[undecided]
    if (begin == begin[0]).all() and (end == end[0]).all():
        every = words(np.arange(begin[0], end[0]))
        left, right = (
            begin[0] + np.searchsorted(every, wanted, "left"),
            begin[0] + np.searchsorted(every, wanted, "right"),
        )
    else:
        left, right = (_searched(words, begin, end, wanted, each) for each in (np.less, np.less_equal))
    below[undecided], ends[undecided] = left, right
    found: IntArray = undecided[left < right]
    return found


def _searched(
    words: Callable[[IntArray], Words], begin: IntArray, end: IntArray, wanted: Words, is_passed: np.ufunc
) -> IntArray:
    """The first member of each range `[begin, end)` that is not passed on the way to the wanted word."""
    begin, end = begin.copy(), end.copy()
    some = np.flatnonzero(begin < end)
    while len(some):
        middle = (begin[some] + end[some]) >> 1
        passed = is_passed(words(middle), wanted[some])
        begin[some[passed]] = middle[passed] + 1
        end[some[~passed]] = middle[~passed]
        some = some[begin[some] < end[some]]
    return begin


def _ordered(strings: ByteStrings) -> tuple[IntArray, IntArray]:
    """Indexes that sort the strings, and for each sorted position the first position of an equal string."""
    words = _Words(strings)
    undecided = np.arange(len(strings))
    order, first = undecided.copy(), np.zeros(len(strings), np.int64)
    depth = words.common_prefix()
    # Each pass sorts the undecided strings by their next bytes; strings that became unique are done.
    while len(undecided) and depth < words.longest:
        undecided = _refine(order, first, undecided, words.at(order[undecided], depth))
        depth += _WORD
    # The remaining strings differ only by trailing NUL bytes.
    _refine(order, first, undecided, words.lengths[order[undecided]].astype(np.uint64))
    return order, first


def _refine(order: IntArray, first: IntArray, undecided: IntArray, keys: npt.NDArray[np.uint64]) -> IntArray:
    """Sorts the positions `undecided` with the same `first` by key, in place; returns the positions still undecided."""
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
    """Eight bytes of each string, from any offset, as big-endian numbers."""

    def __init__(self, strings: ByteStrings) -> None:
        self.strings, self.lengths = strings, strings.lengths()
        self.longest = int(self.lengths.max(initial=0))
        self._shortest = int(self.lengths.min(initial=self.longest))
        self._end = len(strings.data)
        padded = np.append(strings.data, np.zeros(_WORD, np.uint8))
        self._numbers = np.ndarray((self._end + 1,), ">u8", padded, 0, (1,))

    def at(self, members: IntArray, depth: int) -> npt.NDArray[np.uint64]:
        """The 8 bytes of each member that begin at `depth`; bytes beyond its end are zero."""
        starts = self.strings.offsets[members] + depth
        if depth + _WORD <= self._shortest:
            return self._numbers[starts].astype(np.uint64)
        left = np.clip(self.lengths[members] - depth, 0, _WORD)
        return self._numbers[np.minimum(starts, self._end)].astype(np.uint64) & _LEADING[left]

    def common_prefix(self) -> int:
        """The length of the common prefix of all strings, which is that of the least and the greatest."""
        if len(self.lengths) == 0:
            return 0
        return _common(*(self.strings[_extreme(self, greatest=which)] for which in (False, True)))


def _common(first: bytes, last: bytes) -> int:
    differing = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return next(differing, min(len(first), len(last)))
