"""`TableExplanation`: the planned numbers of one scan, and the containers that each kind of filter would keep.

Kinds of filters: the query's own conditions alone, minimum and maximum of the keys, ranges, and the list of all keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from pruning.reasons import Reason
from pruning.scan.compaction import Evidence, compact
from pruning.scan.key_filter import KeyFilter
from pruning.scan.scan_plan import FilterDecision, ScanPlan
from pruning.scan.skipping import PruningResult, prune_by_filters, prune_containers, skip_all
from pruning.scan.statistics import UNKNOWN, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.ranges import BoolArray

CHUNKS = "compressed chunks of the columns asked for"
FILE_SIZES = "file sizes"


@dataclass(frozen=True, slots=True)
class FilterExplanation:
    """The filter of one entry of `keys`.

    - `kind`: the form of the collected keys; `keys`: the number of distinct ones, None if there were too many to count
    - `ranges`: the number of ranges pushed to storage, by column
    - `files_kept` and the like: counts of this filter alone; row groups are None if footers were not read
    - `kinds`: counts of other filters that could be made of the keys
    - `row_test`: the row filter, which the share `pass_ratio` of the scanned rows is expected to pass; None if
      neither statistics nor the query tell of it
    """

    columns: tuple[str, ...]
    source: str
    kind: str
    rows: int
    keys: int | None
    ranges: Mapping[str, int]
    files_kept: int | None
    files_skipped_by: Mapping[str, int]
    row_groups_kept: int | None
    bytes_kept: int | None
    row_test: str
    pass_ratio: float | None
    reasons: tuple[Reason, ...]
    kinds: tuple[KindLine, ...] = ()


@dataclass(frozen=True, slots=True)
class TableExplanation:
    """Planned numbers of one table; row groups are None if footers were not read, all counts if files were not listed.

    Totals of a scan in a query are those under the query's own conditions. `bytes_basis` says which bytes are counted,
    in total and kept alike.
    """

    table: str
    format: str
    version: int | None
    files_total: int | None
    files_kept: int | None
    row_groups_total: int | None
    row_groups_kept: int | None
    rows_total: int | None
    rows_kept: int | None
    bytes_total: int | None
    bytes_kept: int | None
    bytes_basis: str
    files_skipped_by: Mapping[str, int]
    row_groups_skipped_by: Mapping[str, int]
    filters: tuple[FilterExplanation, ...]
    reasons: tuple[Reason, ...]

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values; reasons as dictionaries."""
        plain = asdict(self)
        plain["reasons"] = [reason.to_dict() for reason in self.reasons]
        for each, filter_ in zip(plain["filters"], self.filters, strict=True):
            each["reasons"] = [reason.to_dict() for reason in filter_.reasons]
        return plain


@dataclass(frozen=True, slots=True, eq=False)
class TableStatistics:
    """The statistics of a table: every file, and the row groups whose footers were read.

    `row_groups` are those of kept files, from which the scan was planned; `all_row_groups` are those of every file,
    None if there are too many footers to read.
    """

    name: str
    format: str
    version: int | None
    files: Containers
    row_groups: Containers | None
    all_row_groups: Containers | None


@dataclass(frozen=True, slots=True, eq=False)
class RemainingContainers:
    """The files, all row groups and planned row groups that the query's own conditions keep.

    Row groups are None if footers were not read.
    """

    files: BoolArray
    all_row_groups: BoolArray | None
    row_groups: BoolArray | None


def restrict_to(
    facts: TableStatistics, plan: ScanPlan, remaining: RemainingContainers
) -> tuple[TableStatistics, ScanPlan]:
    """The facts and the plan, restricted to the containers in `remaining`."""
    files = np.flatnonzero(remaining.files)
    places = np.cumsum(remaining.files) - 1
    planned = None if remaining.row_groups is None else np.flatnonzero(remaining.row_groups)
    return (
        replace(
            facts,
            files=facts.files.take(files),
            row_groups=_taken(facts.row_groups, remaining.row_groups, places),
            all_row_groups=_taken(facts.all_row_groups, remaining.all_row_groups, places),
        ),
        replace(
            plan,
            files=plan.files.take(files),
            row_groups=None if plan.row_groups is None or planned is None else plan.row_groups.take(planned),
        ),
    )


def _taken(groups: Containers | None, remaining: BoolArray | None, places: IntArray) -> Containers | None:
    """The row groups in `remaining`, with the new indexes of their files."""
    if groups is None or groups.parents is None or remaining is None:
        return None
    some = groups.take(np.flatnonzero(remaining))
    return replace(some, parents=None if some.parents is None else places[some.parents])


def explain_table(
    facts: TableStatistics, plan: ScanPlan, reasons: Sequence[Reason], most_ranges: int
) -> TableExplanation:
    """The explanation of one planned scan, to which at most `most_ranges` ranges a column are pushed."""
    groups = _read_groups(facts, plan)
    kept = plan.files.kept
    is_known = facts.files.is_listed
    # A scan that reads nothing has known totals, listed or not.
    is_kept_known = is_known or not kept.any()
    return TableExplanation(
        table=facts.name,
        format=facts.format,
        version=facts.version,
        files_total=len(facts.files) if is_known else None,
        files_kept=plan.files.kept_count if is_kept_known else None,
        row_groups_total=len(groups.all) if groups else None,
        row_groups_kept=int(np.count_nonzero(groups.kept)) if groups else None,
        rows_total=_known_sum(facts.files.rows),
        rows_kept=_known_sum(groups.planned.rows[groups.kept] if groups else facts.files.rows[kept]),
        bytes_total=_sum(groups.all.sizes if groups else facts.files.sizes, is_known),
        bytes_kept=_sum(groups.planned.sizes[groups.kept] if groups else facts.files.sizes[kept], is_kept_known),
        bytes_basis=CHUNKS if groups else FILE_SIZES,
        files_skipped_by=plan.files.skipped_by() if is_known else {},
        row_groups_skipped_by=plan.row_groups.skipped_by() if plan.row_groups is not None else {},
        filters=tuple(_explain_filter(decision, plan, facts, most_ranges) for decision in plan.decisions),
        reasons=(*reasons, *plan.reasons),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _ReadGroups:
    """All row groups, the planned ones, and an array: True for the planned ones that are read."""

    all: Containers
    planned: Containers
    kept: BoolArray


def _read_groups(facts: TableStatistics, plan: ScanPlan) -> _ReadGroups | None:
    planned, parents = facts.row_groups, facts.row_groups.parents if facts.row_groups is not None else None
    if facts.all_row_groups is None or planned is None or parents is None or plan.row_groups is None:
        return None
    if not facts.files.is_listed:
        return None
    return _ReadGroups(facts.all_row_groups, planned, plan.row_groups.kept & plan.files.kept[parents])


def _explain_filter(
    decision: FilterDecision, plan: ScanPlan, facts: TableStatistics, most_ranges: int
) -> FilterExplanation:
    filter_ = decision.filter
    files = _alone(facts.files, filter_)
    all_groups = facts.all_row_groups if facts.files.is_listed else None
    groups_read = all_groups.seen_by_reader() if all_groups is not None else None
    groups = _alone(groups_read, filter_) if groups_read is not None else None
    sizes = facts.files.sizes if all_groups is None else all_groups.sizes
    is_known = facts.files.is_listed or not files.kept.any()
    return FilterExplanation(
        columns=filter_.columns,
        source=filter_.source,
        kind=filter_.kind,
        rows=filter_.rows,
        keys=filter_.distinct,
        ranges=_ranges(plan, filter_),
        files_kept=files.kept_count if is_known else None,
        files_skipped_by=files.skipped_by() if facts.files.is_listed else {},
        row_groups_kept=groups.kept_count if groups is not None else None,
        bytes_kept=_sum(sizes[(groups or files).kept], is_known),
        row_test=decision.test.value,
        pass_ratio=decision.ratio if decision.is_ratio_known else None,
        reasons=decision.reasons,
        kinds=kinds_of(filter_, Scanned.whole(facts.files, groups_read), most_ranges),
    )


def _ranges(plan: ScanPlan, filter_: KeyFilter) -> dict[str, int]:
    """The number of ranges pushed for each column, and for tuples of columns."""
    found = {
        predicate.column: len(predicate.ranges) for predicate in plan.predicates if predicate.column in filter_.domains
    }
    together = (predicate for predicate in plan.joint_predicates if {*predicate.columns} <= {*filter_.columns})
    return found | {", ".join(predicate.columns): len(predicate) for predicate in together}


def _alone(containers: Containers, filter_: KeyFilter) -> PruningResult:
    return skip_all(containers) if filter_.is_empty else prune_by_filters(containers, [filter_])


def _sum(sizes: IntArray, is_known: bool) -> int | None:  # noqa: FBT001 - its name says it
    return int(sizes.sum()) if is_known else None


def _known_sum(rows: IntArray) -> int | None:
    return None if bool((rows == UNKNOWN).any()) else int(rows.sum())


NONE, MIN_MAX, RANGES, LIST = "none", "min-max", "ranges", "list"


@dataclass(frozen=True, slots=True)
class KindLine:
    """The containers that a kind of filter alone keeps; None if not known, or if there are too many row groups."""

    kind: str
    files: int | None
    row_groups: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Scanned:
    """The files of a scan, those that static filters leave (`remaining`), and their row groups, None if not read."""

    files: Containers
    row_groups: Containers | None
    remaining: BoolArray

    @staticmethod
    def whole(files: Containers, row_groups: Containers | None) -> Scanned:
        """A scan without static filters."""
        return Scanned(files, row_groups, np.ones(len(files), bool))


def kinds_of(filter_: KeyFilter, scanned: Scanned, most_ranges: int) -> tuple[KindLine, ...]:
    """A line for each kind; that of the list is unknown if there were too many keys to keep each."""
    listed = filter_.is_empty or filter_.distinct is not None
    if filter_.any_of:
        unknown = (KindLine(kind, None, None, None) for kind in (MIN_MAX, RANGES))
        listed_line = _kept_line(LIST, lambda containers: prune_by_filters(containers, [filter_]).kept, scanned)
        return (_line(NONE, {}, scanned), *unknown, listed_line)
    return (
        _line(NONE, {}, scanned),
        _line(MIN_MAX, {name: each.span() for name, each in filter_.domains.items()}, scanned, filter_),
        _line(RANGES, _compacted(filter_.domains, scanned, most_ranges), scanned, filter_),
        _line(LIST, filter_.domains, scanned, filter_) if listed else KindLine(LIST, None, None, None),
    )


def before_build(lines: tuple[KindLine, ...]) -> tuple[KindLine, ...]:
    """The lines before the build: upper bounds, since its keys may skip containers that metadata cannot."""
    whole = lines[0]
    return (
        whole,
        *(
            each if each.kind != LIST and each.bytes != whole.bytes else KindLine(each.kind, None, None, None)
            for each in lines[1:]
        ),
    )


def _compacted(domains: Mapping[str, Domain], scanned: Scanned, most: int) -> dict[str, Domain]:
    """The domains with the fewest ranges that skip as much, at most `most` for each column."""
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
    some = filter_ is None or not filter_.is_empty
    return _kept_line(kind, lambda containers: prune_containers(containers, domains).kept & some, scanned)


def _kept_line(kind: str, kept_of: Callable[[Containers], BoolArray], scanned: Scanned) -> KindLine:
    files, groups = scanned.files, scanned.row_groups
    kept = kept_of(files) & scanned.remaining
    count = int(np.count_nonzero(kept)) if files.is_listed else None
    if groups is None or groups.parents is None:
        return KindLine(kind, count, None, int(files.sizes[kept].sum()) if files.is_listed else None)
    read = kept_of(groups) & kept[groups.parents]
    return KindLine(kind, count, int(np.count_nonzero(read)), int(groups.sizes[read].sum()))
