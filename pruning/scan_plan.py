"""`ScanPlan`: what one scan reads and tests, decided from statistics before any data is read.

files, row groups --prune--> kept --compact--> pushed ranges --estimate--> row test per filter
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from pruning.byte_strings import IntArray
from pruning.compaction import Evidence, compact
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.key_filter import KeyFilter
from pruning.options import PruningOptions
from pruning.ranges import RangeSet
from pruning.reasons import Reason, ReasonCode
from pruning.selectivity import pass_ratio
from pruning.skipping import Cause, Pruned, column_causes, prune, skip_all
from pruning.statistics import ColumnStatistics, Containers
from pruning.storage_cost import list_spans_nearly_all, looking_pays


class RowTest(Enum):
    """How rows of kept containers are tested after the scan."""

    NONE = "none"
    RANGES = "ranges"
    IN_LIST = "IN list"
    BLOOM = "bloom filter"
    SEMI_JOIN = "semi join"


@dataclass(frozen=True, slots=True)
class ScanAbilities:
    """What the scan can do with a decision: each limit is a fact about the format, session or request.

    - `names_files`: kept files are named to the reader, so that ranges need not skip them
    - `push_refusal`: why no literal predicate may reach storage statistics, None where one may
    - `tests_bloom`: the engine can probe a bloom filter
    - `must_be_exact`: the caller asked for the semijoin, without false positives
    - `widen`: a column, ranges -> ranges under which storage, that compares bounds as stored, skips soundly
    - `file_only`: columns on which the reader of files takes no predicate, so that it skips none of their row groups
    """

    names_files: bool
    push_refusal: ReasonCode | None
    tests_bloom: bool
    must_be_exact: bool
    widen: Callable[[str, RangeSet], RangeSet]
    file_only: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Push:
    """Ranges of one column that storage gets as a predicate."""

    column: str
    ranges: RangeSet
    containers_skipped: int
    bytes_skipped: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one filter. `ratio` is the share of scanned rows expected to pass it.

    `is_pushed` is False for a test that storage should not see: it would read more for it, and skip nothing.
    """

    filter: KeyFilter
    test: RowTest
    ratio: float
    reasons: tuple[Reason, ...]
    is_pushed: bool = True


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The whole decision for one scan; `row_groups` are of kept files, None where no footer was read."""

    files: Pruned
    row_groups: Pruned | None
    pushes: tuple[Push, ...]
    decisions: tuple[Decision, ...]
    reasons: tuple[Reason, ...]


def no_row_matches(filters: Sequence[KeyFilter], domains: Mapping[str, Domain]) -> bool:
    """True where a filter has no keys, or two of them share none on a column."""
    return any(each.is_empty for each in filters) or any(domain.is_none for domain in domains.values())


def column_domains(filters: Sequence[KeyFilter]) -> dict[str, Domain]:
    """What each column must hold under all filters together."""
    domains: dict[str, Domain] = {}
    for each in filters:
        for name, domain in each.domains.items():
            domains[name] = domains[name].intersect(domain) if name in domains else domain
    return domains


def plan_scan(
    files: Containers,
    row_groups: Containers | None,
    filters: Sequence[KeyFilter],
    abilities: ScanAbilities,
    options: PruningOptions,
) -> ScanPlan:
    """Decide what to read of `files` and of the `row_groups` of those that are kept."""
    domains = column_domains(filters)
    abilities = replace(abilities, file_only=_file_only(row_groups, abilities))
    readable = None if row_groups is None else row_groups.seen_by_reader(abilities.file_only)
    levels = [level for level in (None if abilities.names_files else files, readable) if level is not None]
    pushes, refusals = _plan_pushes(levels, domains, abilities, options)
    named = {name for name, each in domains.items() if abilities.names_files and _skipped(files, name, each).any()}
    reasons = tuple(each for each in refusals if each.code is not ReasonCode.UNCLUSTERED or each.subject not in named)
    pushed = {push.column: Domain(push.ranges) for push in pushes}
    nothing_matches = no_row_matches(filters, domains)
    kept_files = prune(files, domains if abilities.names_files else pushed)
    kept_groups = prune(readable, pushed) if readable is not None else None
    if nothing_matches:
        kept_files = skip_all(files)
        kept_groups = skip_all(readable) if readable is not None else None
    scanned = (files, kept_files) if row_groups is None or kept_groups is None else (row_groups, kept_groups)
    decisions = tuple(_decide(each, *scanned, abilities, options) for each in filters)
    return ScanPlan(kept_files, kept_groups, pushes, decisions, reasons)


def _file_only(row_groups: Containers | None, abilities: ScanAbilities) -> frozenset[str]:
    """Also the columns on which the reader takes no predicate in any file whose row groups are known."""
    columns = row_groups.columns.items() if row_groups is not None else ()
    hidden = {name for name, each in columns if _has_bounds(each) and not _has_bounds(each.seen_by_reader())}
    return abilities.file_only | hidden


def _has_bounds(column: ColumnStatistics) -> bool:
    return bool((column.has_low | column.has_high).any())


def _plan_pushes(
    levels: Sequence[Containers], domains: Mapping[str, Domain], abilities: ScanAbilities, options: PruningOptions
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
            push = _push(name, domain.ranges, levels, left, options.max_ranges)
            if push.containers_skipped:
                pushes.append(push)
            else:
                detail = f"as far as {options.max_ranges} ranges can tell"
                reasons.append(Reason(ReasonCode.UNCLUSTERED, name, detail))
    return tuple(pushes), tuple(reasons)


def _weights(level: Containers) -> IntArray:
    """What skipping each container is worth; one that is never read anyway is worth nothing."""
    return np.where(level.rows == 0, 0, np.maximum(level.sizes, 1))


def _skipped(level: Containers, name: str, domain: Domain) -> BoolArray:
    if name not in level.columns:
        return np.zeros(len(level), bool)
    skipped: BoolArray = column_causes(level.columns[name], level, domain) != Cause.KEPT
    return skipped


def _bytes_skipped(domain: Domain, name: str, levels: Sequence[Containers], left: Sequence[IntArray]) -> int:
    return sum(int(left[at][_skipped(level, name, domain)].sum()) for at, level in enumerate(levels))


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
        out = _skipped(level, name, Domain(ranges)) & (left[at] > 0)
        skipped, size = skipped + int(out.sum()), size + int(left[at][out].sum())
        left[at] = np.where(out, 0, left[at])
    return Push(name, ranges, skipped, size)


def _decide(
    each: KeyFilter, scanned: Containers, kept: Pruned, abilities: ScanAbilities, options: PruningOptions
) -> Decision:
    ratio = _ratio(each, scanned, kept.kept)
    test, reasons = _choose_test(each, ratio, abilities, options)
    is_literal = test in {RowTest.RANGES, RowTest.IN_LIST}
    is_pushed = not is_literal or _is_pushed(each, test, ratio, scanned, kept.kept)
    return Decision(each, test, ratio, (*each.reasons, *reasons), is_pushed)


def _is_pushed(each: KeyFilter, test: RowTest, ratio: float, containers: Containers, kept: BoolArray) -> bool:
    """Whether storage sees a test by literals as a predicate."""
    ((name, domain),) = each.domains.items()
    column = containers.columns.get(name)
    if column is None or column.is_partition:
        return column is not None
    if test is RowTest.IN_LIST and list_spans_nearly_all(column, containers, kept, domain):
        return False
    return looking_pays(column, containers, kept, ratio)


def _ratio(each: KeyFilter, scanned: Containers, kept: BoolArray) -> float:
    """Columns of a tuple are taken as independent, which only a correlated layout makes optimistic."""
    ratios = [
        pass_ratio(scanned.columns[name], scanned.rows, kept, domain)
        for name, domain in each.domains.items()
        if name in scanned.columns
    ]
    return float(np.prod(ratios)) if ratios else 1.0


def _choose_test(
    each: KeyFilter, ratio: float, abilities: ScanAbilities, options: PruningOptions
) -> tuple[RowTest, tuple[Reason, ...]]:
    subject = ", ".join(each.columns)
    if each.is_empty or not (each.domains or abilities.must_be_exact):
        return RowTest.NONE, ()
    if not abilities.must_be_exact and ratio > 1 - options.min_filter_ratio:
        return RowTest.NONE, (Reason(ReasonCode.UNSELECTIVE, subject, f"{ratio:.0%} expected to pass"),)
    if (literal := _literal_test(each, abilities, options)) is not RowTest.NONE:
        return literal, ()
    if abilities.must_be_exact:
        return RowTest.SEMI_JOIN, ()
    if abilities.tests_bloom and each.has_bloom:
        return RowTest.BLOOM, ()
    return RowTest.NONE, () if abilities.tests_bloom else (Reason(ReasonCode.NO_JVM, subject),)


def _literal_test(each: KeyFilter, abilities: ScanAbilities, options: PruningOptions) -> RowTest:
    """An exact test by literals, where there are few enough of them and storage may see them."""
    if not each.is_exact or abilities.push_refusal is not None or len(each.domains) != 1:
        return RowTest.NONE
    ((name, domain),) = each.domains.items()
    if domain.nan or domain.null or abilities.widen(name, domain.ranges) != domain.ranges:
        return RowTest.NONE
    points = domain.ranges.point_count()
    dense = points is None or 2 * len(domain.ranges) <= points
    if dense and len(domain.ranges) <= options.max_ranges:
        return RowTest.RANGES
    # An IN list hashes floats by their bits, which tells -0.0 from 0.0.
    small = points is not None and points <= options.max_in_list and not domain.type.is_float
    return RowTest.IN_LIST if small else RowTest.NONE
