"""The files of the target of a random MERGE, and the most that its search may read, from the rows alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.merge_keys import may_hold, order_of
from tests.oracle.random_merges import ITSELF, LIST, NO_BOUNDS, Cells, Merge


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the target: all of its rows, whose bounds Delta stores, and those that are not deleted."""

    rows: Sequence[Cells]
    live: Sequence[Cells]


def stored_files(merge: Merge) -> list[StoredFile]:
    """The files of the target before the MERGE: one for each slice and partition, unless all rows are deleted."""
    found = []
    for rows in merge.slices:
        parts = defaultdict[Any, list[Cells]](list)
        for each in rows:
            # The computed column follows the number.
            parts[getattr(each, merge.partitioned.replace("computed", "a"), None)].append(each)
        found += [
            StoredFile(each, [row for row in each if not merge.is_thinned or row.a != 3]) for each in parts.values()
        ]
    return [each for each in found if each.live]


@dataclass(frozen=True, slots=True)
class Expected:
    """The files of a target: all, the most that the search may read, and the texts of which one has to be a reason
    where it leaves out none; empty where it has to.
    """

    total: int
    most: int
    excuses: Sequence[str]


def expected_files(merge: Merge, held: int) -> Expected:
    """The demand of the rows on the search; `held` is the number of files that hold a match."""
    files = stored_files(merge)
    in_bounds = _in_bounds(merge, files)
    # A row of the target has to stay in an inner join, so that the source runs.
    most = min(len(files), in_bounds + (not merge.is_insert))
    if merge.alone:
        return Expected(len(files), len(files), (" below a RightOuter join", " below a FullOuter join"))
    if most == len(files):
        return Expected(len(files), most, ("",))
    if merge.is_insert and merge.kind == LIST:
        return Expected(len(files), len(files), ("may give other rows when it runs again",))
    excuses = []
    if not merge.is_insert and not held:
        excuses.append("no row of the files that hold keys passes its filters")
    if merge.is_narrowed:
        # Delta has left out the files that keys would.
        excuses.append("every container may hold one of the keys")
    return Expected(len(files), most, excuses)


def _in_bounds(merge: Merge, files: Sequence[StoredFile]) -> int:
    """The number of files whose bounds have room for the keys of the source; all where bounds cannot tell."""
    source = [row for file in files for row in file.live if row.grp == 3] if merge.kind == ITSELF else merge.source
    if not merge.is_insert and ("s.{a} > 2", "s") in merge.conditions:
        source = [each for each in source if each.a > 2]
    kept = [True] * len(files)
    for kind, name in zip(merge.shape.kinds, ("key", "second"), strict=False):
        keys = [getattr(each, name) for each in source]
        known = [each for each in keys if each is not None]
        # Bounds do not cover NULL, which a null-safe equality matches, nor NaN. A field of a struct is no column.
        is_covered = not (merge.equal != "=" and None in keys) and not any(order_of(each)[0] for each in known)
        is_column = name != "key" or not merge.shape.is_nested
        if kind.has_bounds and NO_BOUNDS not in merge.features and is_covered and is_column:
            held = (may_hold([getattr(each, name) for each in file.rows], known) for file in files)
            kept = [one and other for one, other in zip(kept, held, strict=True)]
    return sum(kept)
