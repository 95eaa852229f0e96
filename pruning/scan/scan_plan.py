"""`ScanPlan`: the containers, pushed ranges and row filters of one scan, decided from statistics before any read.

files, row groups --skip--> kept --compact--> pushed ranges --estimate--> row filter per key set
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

import numpy as np

from pruning.cost.rates import CostRates
from pruning.keys.bitmap import span_fits
from pruning.limits import Limits
from pruning.options import PruningOptions
from pruning.reasons import WITHOUT_BOUNDS, Reason, ReasonCode
from pruning.scan.disjunction import PushedDisjunction, plan_disjunctions
from pruning.scan.estimates import fits_codegen_limit, list_spans_nearly_all, pass_ratio, predicate_pays
from pruning.scan.key_filter import KeyFilter, RowWorth
from pruning.scan.pushdown import PushdownCapabilities, PushedPredicate, choose_pushdown, file_only, skips
from pruning.scan.skipping import (
    PruningResult,
    SkipReason,
    column_domains,
    prune_by_filters,
    prune_containers,
    skip_all,
)
from pruning.scan.statistics import Containers
from pruning.scan.tuple_pushdown import PushedTupleRanges, plan_tuple_predicates
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray

# A predicate that storage compares with the bounds of several columns.
JointPredicate: TypeAlias = PushedTupleRanges | PushedDisjunction


class RowFilter(Enum):
    """The way to test rows of kept containers: after the scan, or by the keys themselves inside of it."""

    NONE = "none"
    RANGES = "ranges"
    IN_LIST = "IN list"
    BITMAP = "bitmap"
    BLOOM = "bloom filter"
    SEMI_JOIN = "semi join"


@dataclass(frozen=True, slots=True)
class FilterDecision:
    """The row filter chosen for one key filter. `ratio` is the share of scanned rows expected to pass it.

    It is 1.0 for all that is known where `is_ratio_known` is False: neither statistics nor the query tell of it.
    `is_pushed` is False for a row filter that is hidden from storage, which would read more bytes and skip nothing.
    `is_listed` is True for a pushed list that storage sees value by value, to look for them in dictionaries.
    """

    filter: KeyFilter
    test: RowFilter
    ratio: float
    reasons: tuple[Reason, ...]
    is_pushed: bool = True
    is_ratio_known: bool = True
    is_listed: bool = False

    def passing_ratio(self, limits: Limits) -> float:
        """The share of scanned rows that is expected to leave the scan."""
        match self.test:
            case RowFilter.NONE:
                return 1.0
            case RowFilter.BLOOM:
                return self.ratio + (1 - self.ratio) * limits.bloom_fpp
            case RowFilter.RANGES | RowFilter.IN_LIST | RowFilter.BITMAP | RowFilter.SEMI_JOIN:
                return self.ratio


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The whole decision for one scan; `row_groups` are of kept files, None where no footer was read.

    `joint_predicates`, each of several columns, skip containers that `predicates` keep.
    """

    files: PruningResult
    row_groups: PruningResult | None
    predicates: tuple[PushedPredicate, ...]
    decisions: tuple[FilterDecision, ...]
    reasons: tuple[Reason, ...]
    joint_predicates: tuple[JointPredicate, ...] = ()

    @property
    def acts(self) -> bool:
        """True where the filters change the scan."""
        tested = any(decision.test is not RowFilter.NONE for decision in self.decisions)
        return tested or bool(self.predicates or self.joint_predicates) or not self.files.kept.all()

    def tested_by_keys(self, column: str) -> int:
        """The number of filters whose keys test each row of a column; ranges, which let others pass, are none."""
        by_ranges = (RowFilter.NONE, RowFilter.RANGES)
        return sum(each.filter.columns == (column,) and each.test not in by_ranges for each in self.decisions)

    def reading_whole(self, files: BoolArray) -> ScanPlan:
        """The plan of a scan that takes no predicate and reads all rows of the files where `files` is True."""
        causes = np.where(files, np.int8(SkipReason.KEPT), self.files.causes)
        decisions = tuple(replace(each, test=RowFilter.NONE, ratio=1.0) for each in self.decisions)
        groups = self.row_groups
        if groups is not None:
            everything = np.ones(len(groups.kept), np.bool_)
            groups = PruningResult(everything, np.full(len(groups.kept), SkipReason.KEPT, np.int8))
        return ScanPlan(PruningResult(files, causes), groups, (), decisions, self.reasons)


def no_row_matches(filters: Sequence[KeyFilter], domains: Mapping[str, Domain]) -> bool:
    """True where a filter has no keys, or two filters have no common value in a column."""
    return any(each.is_empty for each in filters) or any(domain.is_none for domain in domains.values())


def plan_scan(
    files: Containers,
    row_groups: Containers | None,
    filters: Sequence[KeyFilter],
    capabilities: PushdownCapabilities,
    options: PruningOptions,
) -> ScanPlan:
    """The plan of a scan of `files`, whose kept files have the `row_groups`."""
    domains = column_domains(filters)
    capabilities = replace(capabilities, file_only=file_only(row_groups, capabilities))
    readable = None if row_groups is None else row_groups.seen_by_reader(capabilities.file_only)
    levels = [level for level in (None if capabilities.accepts_file_list else files, readable) if level is not None]
    filled = _filled(filters, files)
    predicates, refused = choose_pushdown(levels, domains, capabilities, options.limits, filled)
    refusals = [_as_of_files(each, files) for each in refused]
    named = {
        name for name, each in domains.items() if capabilities.accepts_file_list and skips(files, name, each).any()
    }
    pushed = {predicate.column: predicate.domain for predicate in predicates}
    nothing_matches = no_row_matches(filters, domains)
    # A reader without a file list skips files only by the pushed ranges.
    kept_files = (
        _by_name(files, row_groups, filters) if capabilities.accepts_file_list else prune_containers(files, pushed)
    )
    kept_groups = prune_containers(readable, pushed) if readable is not None else None
    joint_predicates = _of_several_columns(
        files, readable, kept_files, kept_groups, filters, capabilities, options.limits
    )
    skipping = named.union(*(predicate.columns for predicate in joint_predicates))
    reasons = tuple(
        each for each in refusals if each.code is not ReasonCode.UNCLUSTERED or each.subject not in skipping
    )
    kept_files = kept_files if capabilities.accepts_file_list else _kept_under(joint_predicates, files, kept_files)
    if readable is not None and kept_groups is not None:
        kept_groups = _kept_under(joint_predicates, readable, kept_groups)
    if nothing_matches:
        kept_files = skip_all(files)
        kept_groups = skip_all(readable) if readable is not None else None
    scanned = (files, kept_files) if row_groups is None or kept_groups is None else (row_groups, kept_groups)
    literals = _Literals(predicates, 2 * sum(map(len, joint_predicates)))
    decisions = tuple(_decide(each, *scanned, literals, capabilities, options) for each in filters)
    ors = [each for each in filters if each.any_of]
    by_name = [each for each in ors if capabilities.accepts_file_list and _skips_files(each, files, row_groups)]
    reasons = (*reasons, *_against_disjunctions(ors, by_name, joint_predicates))
    return ScanPlan(kept_files, kept_groups, predicates, decisions, reasons, joint_predicates)


def _against_disjunctions(
    ors: Sequence[KeyFilter], by_name: Sequence[KeyFilter], predicates: Sequence[JointPredicate]
) -> Iterator[Reason]:
    """The reasons against ORs that skip no file by its name, and of which no predicate is pushed."""
    pushed = [{*each.columns} for each in predicates]
    for each in ors:
        if not any(each is other for other in by_name) and {*each.columns} not in pushed:
            yield Reason(ReasonCode.UNCLUSTERED, " or ".join(each.columns))


def _as_of_files(reason: Reason, files: Containers) -> Reason:
    """A reason of missing bounds as it is of files, also where only row groups are asked for them."""
    column = files.columns.get(reason.subject)
    return reason if column is None or reason.code not in WITHOUT_BOUNDS else replace(reason, code=column.missing)


def _filled(filters: Sequence[KeyFilter], files: Containers) -> dict[str, float]:
    """The share of the numbers between keys that are values, where more rows are expected to pass than keys tell.

    Months leave numbers between the last day of one and the first of the next, which are no days of any row.
    """
    found: dict[str, float] = {}
    for each in filters:
        if each.worth is not None and len(each.domains) == 1:
            ratio = _ratio(each, files, np.ones(len(files), bool))
            if ratio < each.worth.passing:
                found[each.columns[0]] = (1.0 - each.worth.passing) / (1.0 - ratio)
    return found


def _of_several_columns(  # noqa: PLR0913, PLR0917 - two levels of containers, what is kept of them, and by what
    files: Containers,
    readable: Containers | None,
    kept_files: PruningResult,
    kept_groups: PruningResult | None,
    filters: Sequence[KeyFilter],
    capabilities: PushdownCapabilities,
    limits: Limits,
) -> tuple[JointPredicate, ...]:
    """Predicates of several columns together that skip containers which are otherwise read."""
    levels, remaining = ([], []) if capabilities.accepts_file_list else ([files], [kept_files.kept])
    if readable is not None and kept_groups is not None:
        is_read = capabilities.accepts_file_list and readable.parents is not None
        levels.append(readable)
        remaining.append(kept_groups.kept & kept_files.kept[readable.parents] if is_read else kept_groups.kept)
    if not levels:
        return ()
    tuples = plan_tuple_predicates(levels, remaining, filters, capabilities, limits)
    return (*tuples, *plan_disjunctions(levels, remaining, filters, capabilities, limits))


def _kept_under(predicates: Sequence[JointPredicate], level: Containers, found: PruningResult) -> PruningResult:
    """The result `found`, with containers that the predicates skip removed."""
    for each in predicates:
        found = found.without(each.skips(level))
    return found


def _skips_files(each: KeyFilter, files: Containers, row_groups: Containers | None) -> bool:
    """True where a filter skips files that have rows, by their own statistics or by those of their row groups."""
    kept = _by_name(files, row_groups, [each]).kept
    return bool((~kept & (files.rows != 0)).any())


def _by_name(files: Containers, row_groups: Containers | None, filters: Sequence[KeyFilter]) -> PruningResult:
    """The files kept by all filters, without those whose examined row groups are all skipped.

    Row groups count only for filters of several columns: the reader itself skips row groups by each column alone.
    """
    found = prune_by_filters(files, filters)
    is_alone = all(each.points is None and not each.any_of for each in filters)
    if row_groups is None or row_groups.parents is None or is_alone:
        return found
    gone = np.zeros(len(files), bool)
    gone[row_groups.parents] = True
    gone[row_groups.parents[prune_by_filters(row_groups, filters).kept]] = False
    return found.without(gone)


def _decide(  # noqa: PLR0913, PLR0917 - a filter, and what is known of the scan
    each: KeyFilter,
    scanned: Containers,
    kept: PruningResult,
    literals: _Literals,
    capabilities: PushdownCapabilities,
    options: PruningOptions,
) -> FilterDecision:
    ratio = max(_ratio(each, scanned, kept.kept), 0.0 if each.worth is None else each.worth.passing)
    is_known = each.worth is not None or not each.domains or any(name in scanned.columns for name in each.domains)
    share = f"{ratio:.0%} expected to pass" if is_known else "the share that passes is not known"
    test, reasons = _choose_test(each, ratio, share, literals, capabilities, options)
    is_literal = test in {RowFilter.RANGES, RowFilter.IN_LIST}
    is_pushed = not is_literal or _is_pushed(each, test, ratio, scanned, kept.kept, options.limits)
    is_listed = is_pushed and test is RowFilter.IN_LIST and _may_list(each, scanned, capabilities)
    return FilterDecision(each, test, ratio, (*each.reasons, *reasons), is_pushed, is_known, is_listed)


def _may_list(each: KeyFilter, scanned: Containers, capabilities: PushdownCapabilities) -> bool:
    """True if a reader that is asked for single values looks at no bloom filter, which a join never does."""
    (name,) = each.domains
    column = scanned.columns.get(name)
    return column is not None and not column.may_have_bloom_filters and capabilities.may_list(name)


def _is_pushed(  # noqa: PLR0913, PLR0917 - a filter, and what is known of the scan
    each: KeyFilter, test: RowFilter, ratio: float, containers: Containers, kept: BoolArray, limits: Limits
) -> bool:
    """True if storage sees a test by literals as a predicate."""
    ((name, domain),) = each.domains.items()
    column = containers.columns.get(name)
    if column is None or column.is_partition:
        return column is not None
    if test is RowFilter.IN_LIST and list_spans_nearly_all(column, containers, kept, domain, limits):
        return False
    return predicate_pays(column, containers, kept, ratio, limits)


def _ratio(each: KeyFilter, scanned: Containers, kept: BoolArray) -> float:
    """The expected share of rows that pass; columns of a tuple are assumed to be independent."""
    ratios = [
        pass_ratio(scanned.columns[name], scanned.rows, kept, domain)
        for name, domain in each.domains.items()
        if name in scanned.columns
    ]
    return float(np.prod(ratios)) if ratios else 1.0


def _choose_test(  # noqa: PLR0913, PLR0917 - a filter, the share that passes as a number and in words, and the scan
    each: KeyFilter,
    ratio: float,
    share: str,
    literals: _Literals,
    capabilities: PushdownCapabilities,
    options: PruningOptions,
) -> tuple[RowFilter, tuple[Reason, ...]]:
    subject = ", ".join(each.columns)
    if each.is_empty or not (each.domains or capabilities.must_be_exact):
        return RowFilter.NONE, ()
    in_jvm = _jvm_test(each, capabilities, options.limits)
    test = _literal_test(each, capabilities, options)
    if test is RowFilter.NONE or (in_jvm is not RowFilter.NONE and _is_long(test, each, literals, options.limits)):
        test = in_jvm
    if not capabilities.must_be_exact and not _pays(each, ratio, _price(test, options.limits.costs), options):
        return RowFilter.NONE, (Reason(ReasonCode.UNSELECTIVE, subject, share),)
    if test is not RowFilter.NONE:
        return test, ()
    if capabilities.must_be_exact:
        return RowFilter.SEMI_JOIN, ()
    return RowFilter.NONE, () if capabilities.tests_keys else (Reason(ReasonCode.NO_JVM, subject),)


def _jvm_test(each: KeyFilter, capabilities: PushdownCapabilities, limits: Limits) -> RowFilter:
    """The test that Spark makes of its own values, whatever the file holds; it drops NULL."""
    if not capabilities.tests_keys or capabilities.must_be_exact:
        return RowFilter.NONE
    if any(domain.null for domain in each.domains.values()):
        return RowFilter.NONE
    if fits_bitmap(each, limits):
        return RowFilter.BITMAP
    return RowFilter.BLOOM if each.has_bloom else RowFilter.NONE


def _price(test: RowFilter, costs: CostRates) -> float:
    """Nanoseconds of a core for the test of a row by Spark."""
    match test:
        case RowFilter.BLOOM:
            return costs.spark_test
        case RowFilter.BITMAP:
            return costs.spark_lookup
        case _:
            return costs.spark_compared


def fits_bitmap(each: KeyFilter, limits: Limits) -> bool:
    """True for exact keys of one column that lie near enough to each other for a bitmap."""
    if not each.is_exact or len(each.domains) != 1:
        return False
    ((_, domain),) = each.domains.items()
    if not domain.type.has_bitmap or domain.is_none:
        return False
    ends = domain.ranges.span()
    return span_fits(int(ends.lows[0]), int(ends.highs[0]), limits.bitmap_filter_bytes)


def _pays(each: KeyFilter, ratio: float, test: float, options: PruningOptions) -> bool:
    """True where a row filter is expected to drop enough rows for a test of `test` nanoseconds."""
    if options.always:
        return True
    worth = each.worth or RowWorth.of_unknown_query(each.rows, options.limits)
    return worth.pays(ratio, test)


@dataclass(frozen=True, slots=True)
class _Literals:
    """The pushed ranges that every row is compared with; `others` counts those of predicates of several columns."""

    predicates: Sequence[PushedPredicate]
    others: int

    def beside(self, name: str = "") -> int:
        """The number of ranges of all columns but `name`."""
        return self.others + sum(len(predicate.ranges) for predicate in self.predicates if predicate.column != name)


def _is_long(test: RowFilter, each: KeyFilter, literals: _Literals, limits: Limits) -> bool:
    """True if a row filter by literals does not fit into generated code together with the pushed ranges."""
    ((name, domain),) = each.domains.items()
    if test is RowFilter.IN_LIST:
        return not fits_codegen_limit(literals.beside(), domain, limits)
    return not fits_codegen_limit(literals.beside(name) + len(domain.ranges), limits=limits)


def _literal_test(each: KeyFilter, capabilities: PushdownCapabilities, options: PruningOptions) -> RowFilter:
    """An exact row filter by literals, if they are few enough and storage may see them; else NONE."""
    if not each.is_exact or capabilities.push_refusal is not None or len(each.domains) != 1:
        return RowFilter.NONE
    ((name, domain),) = each.domains.items()
    test = RowFilter.NONE if domain.nan or domain.null else _shortest(domain, options)
    # Only few ranges are widened here, since widening millions takes seconds.
    if test is not RowFilter.NONE and capabilities.widen(name, domain.ranges) != domain.ranges:
        return RowFilter.NONE
    return test


def _shortest(domain: Domain, options: PruningOptions) -> RowFilter:
    points = domain.ranges.point_count()
    dense = points is None or 2 * len(domain.ranges) <= points
    if dense and len(domain.ranges) <= options.limits.max_ranges:
        return RowFilter.RANGES
    # An IN list hashes floats by their bits, which tells -0.0 from 0.0.
    small = points is not None and points <= options.limits.max_in_list and not domain.type.is_float
    return RowFilter.IN_LIST if small else RowFilter.NONE
