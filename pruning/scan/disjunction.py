"""Filters of which a row has to pass one, as `a IN (...) OR b IN (...)`: a container that one of them keeps is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pruning.limits import Limits
from pruning.scan.compaction import Evidence, compact
from pruning.scan.key_filter import KeyFilter
from pruning.scan.pushdown import PushdownCapabilities, skips
from pruning.scan.skipping import weights
from pruning.scan.statistics import Containers
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray, RangeSet


def any_of(filters: Sequence[KeyFilter]) -> KeyFilter:
    """The filter that a row passes if it passes one of `filters`, each of one column and with keys."""
    counts = [each.distinct for each in filters]
    return KeyFilter(
        columns=tuple(dict.fromkeys(name for each in filters for name in each.columns)),
        domains={},
        rows=sum(each.rows for each in filters),
        distinct=None if None in counts else sum(filter(None, counts)),
        is_exact=False,
        is_empty=False,
        has_bloom=False,
        source=" or ".join(dict.fromkeys(each.source for each in filters)),
        reasons=tuple(reason for each in filters for reason in each.reasons),
        any_of=tuple(filters),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PushedDisjunction:
    """Ranges of columns that storage gets as one predicate: a value of one of the columns lies in its ranges.

    A column may be there twice.
    """

    operands: tuple[tuple[str, RangeSet], ...]
    containers_skipped: int
    bytes_skipped: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in the order of the operands."""
        return tuple(name for name, _ in self.operands)

    def __len__(self) -> int:
        return sum(len(ranges) for _, ranges in self.operands)

    def skips(self, level: Containers) -> BoolArray:
        """An array: True for each container that no range of any column overlaps."""
        return _skipped_by([(name, Domain(ranges)) for name, ranges in self.operands], level)


def plan_disjunctions(
    levels: Sequence[Containers],
    kept: Sequence[BoolArray],
    filters: Sequence[KeyFilter],
    capabilities: PushdownCapabilities,
    limits: Limits,
) -> tuple[PushedDisjunction, ...]:
    """The predicates by which filters of several columns skip containers that are otherwise `kept`, by level."""
    remaining = [np.where(each, weights(level), 0) for level, each in zip(levels, kept, strict=True)]
    every = (each.any_of for each in filters if each.any_of)
    pushed = (each for each in every if _may_push(each, levels, capabilities))
    found = [_predicate(levels, remaining, each, limits.max_ranges) for each in pushed]
    return tuple(each for each in found if each.containers_skipped and _is_comparable(each, capabilities))


def _is_comparable(predicate: PushedDisjunction, capabilities: PushdownCapabilities) -> bool:
    """True if storage compares its bounds soundly with every end of the ranges as it is."""
    return all(capabilities.widen(name, ranges) == ranges for name, ranges in predicate.operands)


def _may_push(operands: Sequence[KeyFilter], levels: Sequence[Containers], capabilities: PushdownCapabilities) -> bool:
    """True if storage takes a predicate on the column of each operand; it takes none on a partition column."""
    if capabilities.push_refusal is not None:
        return False
    partitions = {name for level in levels for name, column in level.columns.items() if column.is_partition}
    domains = [(name, domain) for each in operands for name, domain in each.domains.items()]
    return len(domains) == len(operands) and all(
        name not in capabilities.file_only | partitions and not (domain.nan or domain.null) for name, domain in domains
    )


def _predicate(
    levels: Sequence[Containers], remaining: Sequence[IntArray], operands: Sequence[KeyFilter], most: int
) -> PushedDisjunction:
    """The predicate of at most `most` ranges, as many for each operand, that skips most."""
    domains = [domain for each in operands for domain in each.domains.items()]
    share = max(1, most // len(domains))
    compacted = []
    for at, (name, domain) in enumerate(domains):
        others = [other for place, other in enumerate(domains) if place != at]
        evidence = [
            Evidence(level.columns[name], np.where(_skipped_by(others, level), weight, 0))
            for level, weight in zip(levels, remaining, strict=True)
            if name in level.columns
        ]
        compacted.append((name, compact(domain.ranges, evidence, share)))
    predicate = PushedDisjunction(tuple(compacted), 0, 0)
    gone = [(weight > 0) & predicate.skips(level) for level, weight in zip(levels, remaining, strict=True)]
    size = sum(int(weight[each].sum()) for weight, each in zip(remaining, gone, strict=True))
    return replace(predicate, containers_skipped=sum(int(each.sum()) for each in gone), bytes_skipped=size)


def _skipped_by(domains: Sequence[tuple[str, Domain]], level: Containers) -> BoolArray:
    """An array: True for each container that all these domains skip."""
    found = np.ones(len(level), bool)
    for name, domain in domains:
        found &= skips(level, name, domain)
    return found
