"""Which ranges of which columns storage gets as predicates: the fewest that skip what the keys could."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pruning.byte_strings import IntArray
from pruning.compaction import Evidence, compact
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.ranges import RangeSet
from pruning.reasons import Reason, ReasonCode
from pruning.scan_abilities import ScanAbilities
from pruning.skipping import Cause, column_causes
from pruning.statistics import ColumnStatistics, Containers

_LEAST_INT, _GREATEST_INT = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Push:
    """Ranges of one column that storage gets as a predicate."""

    column: str
    ranges: RangeSet
    containers_skipped: int
    bytes_skipped: int


@dataclass(frozen=True, slots=True, eq=False)
class PushPlan:
    """What is pushed, why the rest is not, and the row groups as their reader sees them through that."""

    pushes: tuple[Push, ...]
    reasons: tuple[Reason, ...]
    readable: Containers | None


def plan_pushes(
    files: Containers | None,
    row_groups: Containers | None,
    domains: Mapping[str, Domain],
    abilities: ScanAbilities,
    most: int,
) -> PushPlan:
    """At most `most` ranges a column that skip what can be skipped of `files`, None if they need none, and row groups.

    What is pushed may hide row groups from their reader, so that fewer ranges are worth pushing.
    """
    wide: set[str] = set()
    while True:
        readable = None if row_groups is None else row_groups.seen_by_reader(abilities.file_only, wide)
        levels = [level for level in (files, readable) if level is not None]
        pushes, reasons = _best_pushes(levels, domains, _with_hidden(abilities, row_groups, readable), most)
        found = _wide(pushes, readable) - wide
        if not found:
            return PushPlan(pushes, reasons, readable)
        wide |= found


def _best_pushes(
    levels: Sequence[Containers], domains: Mapping[str, Domain], abilities: ScanAbilities, most: int
) -> tuple[tuple[Push, ...], tuple[Reason, ...]]:
    """Greedy: the column whose ranges skip most bytes first, then only what it leaves to skip."""
    if not any(len(level) for level in levels):
        return (), ()
    left = [_weights(level) for level in levels]
    reasons: list[Reason] = []
    pushes: list[Push] = []
    total = list(left)
    waiting = {name: Domain(abilities.widen(name, each.ranges), each.null, each.nan) for name, each in domains.items()}
    while waiting:
        worth = {name: _bytes_skipped(domain, name, levels, left) for name, domain in waiting.items()}
        name = max(worth, key=lambda each: worth[each])
        domain = waiting.pop(name)
        alone = worth[name] or _bytes_skipped(domain, name, levels, total)
        refused = _why_not_pushed(name, domain, worth[name], alone, levels, abilities)
        if refused is not None:
            reasons.append(refused)
        elif not domain.is_none:
            push = _push(name, domain.ranges, levels, left, most)
            if push.containers_skipped:
                pushes.append(push)
            else:
                detail = f"as far as {most} ranges can tell"
                reasons.append(Reason(ReasonCode.UNCLUSTERED, name, detail))
    return tuple(pushes), tuple(reasons)


def _weights(level: Containers) -> IntArray:
    """What skipping each container is worth; one that is never read anyway is worth nothing."""
    return np.where(level.rows == 0, 0, np.maximum(level.sizes, 1))


def skips(level: Containers, name: str, domain: Domain) -> BoolArray:
    """For each container, whether the statistics of one column skip it."""
    if name not in level.columns:
        return np.zeros(len(level), bool)
    out: BoolArray = column_causes(level.columns[name], level, domain) != Cause.KEPT
    return out


def _bytes_skipped(domain: Domain, name: str, levels: Sequence[Containers], left: Sequence[IntArray]) -> int:
    return sum(int(left[at][skips(level, name, domain)].sum()) for at, level in enumerate(levels))


def _why_not_pushed(  # noqa: PLR0913, PLR0917 - the evidence for each reason
    name: str, domain: Domain, worth: int, alone: int, levels: Sequence[Containers], abilities: ScanAbilities
) -> Reason | None:
    """`worth` is what the column skips beside those that are pushed, `alone` what it would without them."""
    columns = [level.columns[name] for level in levels if name in level.columns]
    known = any(_has_bounds(each) for each in columns)
    if domain.is_none:
        return None
    if abilities.push_refusal is not None:
        return Reason(abilities.push_refusal, name)
    if domain.nan or domain.null:
        return Reason(ReasonCode.NAN_KEYS if domain.nan else ReasonCode.NULL_KEYS, name)
    if not known:
        return Reason(ReasonCode.NO_READER_FILTER if name in abilities.file_only else ReasonCode.NO_STATISTICS, name)
    detail = "but for those that other columns skip" if alone else ""
    return Reason(ReasonCode.UNCLUSTERED, name, detail) if worth == 0 else None


def _push(name: str, keys: RangeSet, levels: Sequence[Containers], left: list[IntArray], most: int) -> Push:
    """The compacted ranges, with the bytes they skip taken off `left`."""
    found = [(level.columns[name], left[at]) for at, level in enumerate(levels) if name in level.columns]
    ranges = compact(keys, [Evidence(column, weights) for column, weights in found], most)
    skipped, size = 0, 0
    for at, level in enumerate(levels):
        out = skips(level, name, Domain(ranges)) & (left[at] > 0)
        skipped, size = skipped + int(out.sum()), size + int(left[at][out].sum())
        left[at] = np.where(out, 0, left[at])
    return Push(name, ranges, skipped, size)


def _with_hidden(abilities: ScanAbilities, known: Containers | None, seen: Containers | None) -> ScanAbilities:
    """The abilities, with the columns of which the reader sees no bounds of any row group."""
    if known is None or seen is None:
        return abilities
    hidden = {
        name
        for name, each in known.columns.items()
        if _has_bounds(each) and not (name in seen.columns and _has_bounds(seen.columns[name]))
    }
    return replace(abilities, file_only=abilities.file_only | hidden)


def _wide(pushes: Sequence[Push], row_groups: Containers | None) -> set[str]:
    """The columns with a range beyond 32 bits, which undoes the whole predicate where a row group is `int_only`."""
    columns = row_groups.columns if row_groups is not None else {}
    marks = {name: each.int_only for name, each in columns.items()}
    found = {name for name, mark in marks.items() if mark is not None and mark.any()}
    return {push.column for push in pushes if push.column in found and _reaches_beyond_ints(push.ranges)}


def _reaches_beyond_ints(ranges: RangeSet) -> bool:
    lows, highs = np.asarray(ranges.lows), np.asarray(ranges.highs)
    return bool(((lows > _GREATEST_INT) | (highs < _LEAST_INT)).any())


def _has_bounds(column: ColumnStatistics) -> bool:
    return bool((column.has_low | column.has_high).any())
