"""Where byte strings lie beside sorted ranges of them, as integers on one line, without sorting either of them again.

| place | integer |
|---|---|
| before range `i` | `4 i - 1` |
| the low end of range `i` | `4 i` |
| within range `i` | `4 i + 1` |
| the high end of range `i`, where it is another | `4 i + 2` |

Strings that lie between the same two ends share an integer, so their own order does not show.
"""

from __future__ import annotations

import numpy as np

from pruning.byte_strings import ByteStrings, IntArray
from pruning.intervals import Intervals
from pruning.string_order import above, places


def line_of(lows: ByteStrings, highs: ByteStrings, *others: ByteStrings) -> tuple[Intervals, tuple[IntArray, ...]]:
    """The ranges `[lows[i], highs[i]]`, sorted and disjoint, and other strings on their line."""
    at = np.arange(len(lows), dtype=np.int64) * 4
    line = (at, at if highs is lows else at + 2 * _differs(lows, highs))
    # An array that comes twice, as both ends of single values, is placed once.
    known = {id(each): each for each in others}
    placed = {key: _placed(lows, highs, each) for key, each in known.items()}
    return line, tuple(placed[id(each)] for each in others)


def _placed(lows: ByteStrings, highs: ByteStrings, strings: ByteStrings) -> IntArray:
    below_lows, is_low = places(lows, strings)
    if highs is lows:
        return 4 * below_lows - 1 + is_low
    below_highs, is_high = places(highs, strings)
    return 2 * (below_lows + below_highs) - 1 + (is_low | is_high)


def _differs(first: ByteStrings, second: ByteStrings) -> IntArray:
    # Of sorted ends the second is never below the first.
    return above(second, first).astype(np.int64)
