"""What each kind of filter would leave of a scan: nothing but static filters, min-max, ranges, the list of all keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pruning.compaction import Evidence, compact
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.key_filter import KeyFilter
from pruning.skipping import prune
from pruning.statistics import Containers

NONE, MIN_MAX, RANGES, LIST = "none", "min-max", "ranges", "list"


@dataclass(frozen=True, slots=True)
class KindLine:
    """What a kind of filter keeps by itself: None where that is not known; row groups also where there are too many."""

    kind: str
    files: int | None
    row_groups: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Scanned:
    """The files of a scan, of which static filters leave those `left`, and the row groups of these, None if unread."""

    files: Containers
    row_groups: Containers | None
    left: BoolArray

    @staticmethod
    def whole(files: Containers, row_groups: Containers | None) -> Scanned:
        """A scan without static filters."""
        return Scanned(files, row_groups, np.ones(len(files), bool))


def kinds_of(filter_: KeyFilter, scanned: Scanned, most_ranges: int) -> tuple[KindLine, ...]:
    """A line for each kind. The list is not known where there were too many keys to keep each."""
    listed = filter_.is_empty or filter_.distinct is not None
    return (
        _line(NONE, {}, scanned),
        _line(MIN_MAX, {name: each.span() for name, each in filter_.domains.items()}, scanned, filter_),
        _line(RANGES, _compacted(filter_.domains, scanned, most_ranges), scanned, filter_),
        _line(LIST, filter_.domains, scanned, filter_) if listed else KindLine(LIST, None, None, None),
    )


def before_build(lines: tuple[KindLine, ...]) -> tuple[KindLine, ...]:
    """What is known without running the build: a filter that seems to leave out nothing may do so with its keys."""
    whole = lines[0]
    return (
        whole,
        *(
            each if each.kind != LIST and each.bytes != whole.bytes else KindLine(each.kind, None, None, None)
            for each in lines[1:]
        ),
    )


def _compacted(domains: Mapping[str, Domain], scanned: Scanned, most: int) -> dict[str, Domain]:
    """The fewest ranges that skip what the domains can, at most `most` a column."""
    levels = [level for level in (scanned.files, scanned.row_groups) if level is not None]
    return {
        name: Domain(
            compact(
                each.ranges,
                [Evidence(level.columns[name], level.sizes) for level in levels if name in level.columns],
                most,
            ),
            each.null,
            each.nan,
        )
        for name, each in domains.items()
    }


def _line(kind: str, domains: Mapping[str, Domain], scanned: Scanned, filter_: KeyFilter | None = None) -> KindLine:
    files, groups = scanned.files, scanned.row_groups
    some = filter_ is None or not filter_.is_empty
    kept = prune(files, domains).kept & scanned.left & some
    count = int(np.count_nonzero(kept)) if files.is_listed else None
    if groups is None or groups.parents is None:
        return KindLine(kind, count, None, int(files.sizes[kept].sum()) if files.is_listed else None)
    read = prune(groups, domains).kept & kept[groups.parents]
    return KindLine(kind, count, int(np.count_nonzero(read)), int(groups.sizes[read].sum()))
