"""Choice of the ranges pushed to storage as predicates: the fewest that skip the containers that the keys could skip.

`PushdownCapabilities` describes the predicates and file lists that a scan can use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pruning.limits import Limits
from pruning.reasons import Reason, ReasonCode
from pruning.scan.compaction import Evidence, bridged, compact
from pruning.scan.skipping import SkipReason, column_causes, weights
from pruning.scan.statistics import Containers, why_missing
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray, RangeSet

# Ranges of a column that are pushed where no statistics are known.
_BLIND_RANGES = 8


@dataclass(frozen=True, slots=True)
class PushedPredicate:
    """Ranges of one column that storage gets as a predicate; NULL passes, too, if `null` is True."""

    column: str
    ranges: RangeSet
    containers_skipped: int
    bytes_skipped: int
    null: bool = False

    @property
    def domain(self) -> Domain:
        """The values that pass, without NaN."""
        return Domain(self.ranges, self.null)


_ALL_FILLED: Mapping[str, float] = MappingProxyType({})


def choose_pushdown(
    levels: Sequence[Containers],
    domains: Mapping[str, Domain],
    capabilities: PushdownCapabilities,
    limits: Limits,
    filled: Mapping[str, float] = _ALL_FILLED,
) -> tuple[tuple[PushedPredicate, ...], tuple[Reason, ...]]:
    """The pushed predicates, of at most `max_ranges` ranges, and why a column has none.

    `filled` is the share of the numbers between the keys of a column that are expected to be values of rows, 1 for
    columns that are not in it. The column that skips most bytes is chosen first. The limit counts the ranges of all
    columns together, since each row is compared with all of them, and a chosen column gets at least one.
    """
    if not any(len(level) for level in levels):
        return (), ()
    most = limits.max_ranges
    if capabilities.pushes_without_statistics and not any(level.is_listed for level in levels):
        return _blind_predicates(domains, capabilities, min(most, _BLIND_RANGES))
    remaining = [weights(level) for level in levels]
    reasons: list[Reason] = []
    predicates: list[PushedPredicate] = []
    total = list(remaining)
    evidence = _EvidenceOf(levels, limits, filled)
    waiting = {name: _widened(name, each, evidence.of(name, remaining), capabilities) for name, each in domains.items()}
    while waiting:
        worth = {name: _bytes_skipped(domain, name, levels, remaining) for name, domain in waiting.items()}
        name = max(worth, key=lambda each: worth[each])
        domain = waiting.pop(name)
        alone = worth[name] or _bytes_skipped(domain, name, levels, total)
        refused = _why_not_pushed(name, domain, worth[name], alone, levels, capabilities)
        if refused is not None:
            reasons.append(refused)
        elif not domain.is_none:
            predicate = _predicate(
                name, domain, evidence, remaining, max(1, most - sum(len(each.ranges) for each in predicates))
            )
            if predicate.containers_skipped:
                predicates.append(predicate)
            else:
                detail = f"with at most {most} ranges"
                reasons.append(Reason(ReasonCode.UNCLUSTERED, name, detail))
    return tuple(predicates), tuple(reasons)


def _widened(name: str, domain: Domain, evidence: Sequence[Evidence], capabilities: PushdownCapabilities) -> Domain:
    """A superset of a domain that storage can compare with its bounds soundly.

    Widening moves both ends of each range, and there may be millions, so gaps without a container are bridged first.
    """
    ranges = bridged(domain.ranges, evidence)
    return Domain(capabilities.widen(name, ranges), domain.null, domain.nan)


def _blind_predicates(
    domains: Mapping[str, Domain], capabilities: PushdownCapabilities, most: int
) -> tuple[tuple[PushedPredicate, ...], tuple[Reason, ...]]:
    """Predicates that leave the widest gaps between keys open: storage may skip files in them that are unknown here."""
    reasons: list[Reason] = []
    predicates: list[PushedPredicate] = []
    for name, domain in domains.items():
        if domain.is_none:
            continue
        ranges = capabilities.widen(name, domain.ranges).simplify(most)
        refused = _why_no_literals(name, domain, capabilities)
        if refused is not None:
            reasons.append(refused)
        elif name in capabilities.file_only:
            reasons.append(Reason(ReasonCode.NO_READER_FILTER, name))
        elif ranges.is_all:
            reasons.append(Reason(ReasonCode.NO_STATISTICS, name))
        else:
            predicates.append(PushedPredicate(name, ranges, 0, 0, domain.null))
    return tuple(predicates), tuple(reasons)


def skips(level: Containers, name: str, domain: Domain) -> BoolArray:
    """An array that is True for each container that the statistics of one column skip."""
    if name not in level.columns:
        return np.zeros(len(level), bool)
    out: BoolArray = column_causes(level.columns[name], level, domain) != SkipReason.KEPT
    return out


def _bytes_skipped(domain: Domain, name: str, levels: Sequence[Containers], remaining: Sequence[IntArray]) -> int:
    return sum(int(remaining[at][skips(level, name, domain)].sum()) for at, level in enumerate(levels))


def _why_not_pushed(  # noqa: PLR0913, PLR0917 - the evidence for each reason
    name: str, domain: Domain, worth: int, alone: int, levels: Sequence[Containers], capabilities: PushdownCapabilities
) -> Reason | None:
    """The reason why a column is not pushed; None if it is.

    `worth` are the bytes that it skips beyond the pushed columns, `alone` the bytes that it skips without them.
    """
    columns = [level.columns[name] for level in levels if name in level.columns]
    known = any(each.has_bounds for each in columns)
    if domain.is_none:
        return None
    refused = _why_no_literals(name, domain, capabilities)
    if refused is not None:
        return refused
    if not known:
        return Reason(ReasonCode.NO_READER_FILTER if name in capabilities.file_only else why_missing(columns), name)
    detail = "but for those that other columns skip" if alone else ""
    return Reason(ReasonCode.UNCLUSTERED, name, detail) if worth == 0 else None


def _why_no_literals(name: str, domain: Domain, capabilities: PushdownCapabilities) -> Reason | None:
    """The reason why ranges of a column cannot be pushed, whatever the statistics are; None if they can."""
    if capabilities.push_refusal is not None:
        return Reason(capabilities.push_refusal, name)
    return Reason(ReasonCode.NAN_KEYS, name) if domain.nan else None


@dataclass(frozen=True, slots=True)
class _EvidenceOf:
    """The statistics of the containers that ranges of each column could skip."""

    levels: Sequence[Containers]
    limits: Limits
    filled: Mapping[str, float]

    def of(self, name: str, remaining: Sequence[IntArray]) -> list[Evidence]:
        """Those of a column; `remaining` are the bytes of the containers of each level that are not skipped yet."""
        return [
            Evidence(
                level.columns[name],
                each,
                None if level.parents is None else level.rows,
                self.limits,
                self.filled.get(name, 1.0),
            )
            for level, each in zip(self.levels, remaining, strict=True)
            if name in level.columns
        ]


def _predicate(name: str, keys: Domain, evidence: _EvidenceOf, remaining: list[IntArray], most: int) -> PushedPredicate:
    """The predicate of the compacted ranges; the bytes of the containers that it skips become 0 in `remaining`."""
    ranges = compact(keys.ranges, evidence.of(name, remaining), most)
    skipped, size = 0, 0
    for at, level in enumerate(evidence.levels):
        out = skips(level, name, Domain(ranges, keys.null)) & (remaining[at] > 0)
        skipped, size = skipped + int(out.sum()), size + int(remaining[at][out].sum())
        remaining[at] = np.where(out, 0, remaining[at])
    return PushedPredicate(name, ranges, skipped, size, keys.null)


def file_only(row_groups: Containers | None, capabilities: PushdownCapabilities) -> frozenset[str]:
    """The columns by which the reader skips no row groups, also those that it ignores in all examined files."""
    columns = row_groups.columns.items() if row_groups is not None else ()
    hidden = {name for name, each in columns if each.has_bounds and not each.seen_by_reader().has_bounds}
    return capabilities.file_only | hidden


@dataclass(frozen=True, slots=True)
class PushdownCapabilities:
    """Capabilities of a scan: each is a fact about the format, the session or the request.

    - `accepts_file_list`: the reader gets the list of kept files, so that ranges need not skip files
    - `push_refusal`: why no literal predicate may reach storage statistics, None where one may
    - `tests_keys`: the engine can probe a bloom filter or a bitmap
    - `must_be_exact`: the caller asked for the semijoin, without false positives
    - `widen`: a column, ranges -> ranges with which storage, which compares bounds as stored, skips soundly
    - `file_only`: columns on which the reader of files takes no predicate, so that it skips no row groups by them
    - `pushes_without_statistics`: the files are unknown, so ranges are pushed without knowing how much they skip
    - `may_list`: a column -> True if other scans to which the engine copies a list of its values look for them in no
      bloom filter of a file
    """

    accepts_file_list: bool
    push_refusal: ReasonCode | None
    tests_keys: bool
    must_be_exact: bool
    widen: Callable[[str, RangeSet], RangeSet]
    file_only: frozenset[str] = frozenset()
    pushes_without_statistics: bool = False
    may_list: Callable[[str], bool] = lambda _: True
