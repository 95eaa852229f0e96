"""A look at some rows of one row group on the driver: how many of them pass, and what testing one costs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from connectors.arrow_files import FilePart, Patience, open_file
from connectors.arrow_reader import Counts, KeyTest, ReadColumn, RowGroup
from connectors.arrow_tests import RowTester
from connectors.s3_access import S3Access
from pruning.intervals import BoolArray
from pruning.scan_cost import KeySample, Sample

# Of a core, for decoding one key column: millions of numbers, or some hundred thousand texts.
_SECONDS = 0.02
# The first rows, which decode alone, pay for all that is loaded but once; fewer than so many others tell no time.
_ENOUGH_ROWS = 1 << 12
_NANOSECONDS = 1e9


def sampled(
    part: FilePart,
    columns: Sequence[ReadColumn],
    tests: Sequence[KeyTest],
    stores: Mapping[str, S3Access],
    patience: Patience,
) -> Sample:
    """The first rows of the first row group of a part, of which the file is one that was listed.

    A key is not looked at where those before it leave no row. None that passes counts as a part of one: there may be
    one among the rows that were not looked at.
    """
    keys: list[KeySample | None] = []
    passing: BoolArray | None = None
    with open_file(part, stores, patience) as file:
        group = RowGroup(file, part.row_groups[0], part, columns, Counts())
        for each in tests:
            if passing is not None and not passing.any():
                keys.append(None)
                continue
            found, nanoseconds = _tested(each, group)
            keys.append(KeySample(_share(found), nanoseconds))
            passing = found if passing is None else passing[: len(found)] & found[: len(passing)]
    return Sample(1.0 if passing is None else _share(passing), tuple(keys))


def _share(found: BoolArray) -> float:
    return max(float(np.count_nonzero(found)), 0.5) / max(1, len(found))


def _tested(test: KeyTest, group: RowGroup) -> tuple[BoolArray, float | None]:
    """Whether each of the first rows passes, and nanoseconds for one of them.

    Time is that of this thread on its core: waiting for a disk, a store or other threads is not what tests cost.
    """
    tester = RowTester.of(test.type, test.rows)
    if group.part.leaves[test.column] is None:
        return np.full(group.rows, tester.matching(next(group.values(test.column)))[0]), None
    pieces = group.values(test.column)
    first = tester.matching(next(pieces))
    began = time.thread_time()
    rest = list(_for_a_while(pieces, began))
    rows = sum(map(len, rest))
    if not rows:
        return first, None
    found = np.concatenate([first, tester.matching(pa.concat_arrays(rest))])
    spent = time.thread_time() - began
    return found, spent / rows * _NANOSECONDS if rows >= _ENOUGH_ROWS else None


def _for_a_while(pieces: Iterator[pa.Array], began: float) -> Iterator[pa.Array]:
    for each in pieces:
        yield each
        if time.thread_time() - began > _SECONDS:
            return
