"""First rows of an order by metadata: which rows of a `TopK` its scans have to give, decided before any is read."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from pruning.limits import Limits
from pruning.query.benefit import Benefit, Benefits
from pruning.query.build_selection import BuildSelection
from pruning.query.lineage import ProbeColumn
from pruning.query.metadata_filters import benefit_of_skipping
from pruning.query.plan import PlanNames
from pruning.query.requests import DescribeFiles, DescribeRowGroups, ScanContainers, Steps, TrustStatistics, ask
from pruning.query.top_k import TopFilter, TopK, topk_threshold, without_absent
from pruning.reasons import UNREAD, Reason, ReasonCode
from pruning.scan.generated_columns import GeneratedColumn
from pruning.scan.key_filter import KeyFilter
from pruning.scan.skipping import prune_containers, skipped_share
from pruning.scan.statistics import why_missing
from pruning.values.coercion import coerce
from pruning.values.domain import Domain
from pruning.values.functions import preimage


def worth_filtering(top: TopK, selection: BuildSelection) -> tuple[ProbeColumn, ...]:
    """The scans below a limit that are worth a filter, if metadata may prove which rows come first."""
    return tuple(each for each in top.probes if selection.why_no_filter(each) is None) if top.proving else ()


def too_few_first_rows(subject: str) -> Reason:
    """The reason of a limit for which metadata counts too few rows."""
    return Reason(ReasonCode.TOO_FEW_FIRST_ROWS, subject)


def prove_first_rows(top: TopK, limits: Limits) -> Steps[Domain | Reason]:
    """Keys, in the type of the order, that at least as many rows as the limit have; a `Reason` if none are known.

    Each scan alone may prove a set of keys; their intersection is enough.
    """
    found: list[Domain] = []
    codes: set[ReasonCode] = set()
    key = str(top.sort_key.key)
    for probe in top.proving:
        proved = yield from _proved_by(top, probe, limits)
        if isinstance(proved, Domain):
            found.append(proved)
        elif isinstance(proved, Reason):
            return Reason(ReasonCode.STATISTICS_FAILED, key, proved.detail)
        else:
            codes.add(proved)
    if found:
        return reduce(Domain.intersect, found)
    return Reason(codes.pop(), key) if len(codes) == 1 else too_few_first_rows(key)


def _proved_by(top: TopK, probe: ProbeColumn, limits: Limits) -> Steps[Domain | Reason | ReasonCode]:
    """The keys that one scan proves; a code if it proves none, a `Reason` if its statistics cannot be read."""
    is_trusted = yield from ask(TrustStatistics(probe))
    if isinstance(is_trusted, Reason):
        return is_trusted
    if not is_trusted:
        return ReasonCode.TOO_FEW_FIRST_ROWS
    files = yield from ask(DescribeFiles(probe.relation, probe.column))
    if isinstance(files, Reason):
        return files if files.code in UNREAD else ReasonCode.TOO_FEW_FIRST_ROWS
    keys = _keys_of(files, probe)
    if keys is None or keys.type is None or keys.type != top.type:
        return ReasonCode.TOO_FEW_FIRST_ROWS
    found = topk_threshold(top, keys.containers, keys.name)
    chosen = np.flatnonzero(prune_containers(keys.containers, {} if found is None else {keys.name: found}).kept)
    if not files.containers.is_listed or len(chosen) > limits.max_footers:
        return _why_unproved(files) if found is None else found
    groups = yield from ask(DescribeRowGroups(probe.relation, chosen, probe.column))
    if isinstance(groups, Reason):
        return groups
    of_groups = _keys_of(groups, probe)
    of_keys = None if of_groups is None else topk_threshold(top, of_groups.containers, of_groups.name)
    both = [each for each in (found, of_keys) if each is not None]
    return reduce(Domain.intersect, both) if both else _why_unproved(files, groups)


def _keys_of(values: ScanContainers, probe: ProbeColumn) -> ScanContainers | None:
    """The statistics of the keys that functions make of the values of a column; None if they are not known."""
    column, functions = values.column, probe.functions
    if not functions or column is None:
        return values
    result = functions[-1].result
    keys = GeneratedColumn(values.name, values.name, functions).of_result(column, result)
    if keys is None:
        return None
    columns = {**values.containers.columns, values.name: keys}
    return replace(values, containers=replace(values.containers, columns=columns), type=result)


def _why_unproved(*levels: ScanContainers) -> ReasonCode:
    """The reason why statistics of files, and of row groups, prove nothing: there are no bounds, or too few rows."""
    columns = [each.containers.columns[each.name] for each in levels if each.name in each.containers.columns]
    if not any(map(len, columns)) or any(each.has_bounds for each in columns):
        return ReasonCode.TOO_FEW_FIRST_ROWS
    return why_missing(columns)


def first_rows_filter(
    top: TopK, probe: ProbeColumn, keys: Domain, names: PlanNames, benefits: Benefits
) -> Steps[tuple[KeyFilter, Benefit] | Reason]:
    """The filter of a scan by `keys`, which are in the type of the order, with the seconds that it costs and saves.

    Where functions make keys of the values of the column, some values may pass whose keys are none.
    """
    files = yield from ask(DescribeFiles(probe.relation, probe.column))
    if isinstance(files, Reason):
        return files
    if files.type is None:
        return files.refusal or Reason(ReasonCode.UNSUPPORTED_TYPE, probe.name)
    values = preimage(probe.functions, keys)
    found = values if isinstance(values, Reason) else coerce(values, files.type, files.name)
    if isinstance(found, Reason):
        return found
    present_keys = without_absent(found.domain, files.containers, files.name)
    made = KeyFilter(
        (files.name,),
        {files.name: present_keys},
        rows=top.rows,
        distinct=None,
        is_exact=not probe.functions,
        is_empty=present_keys.is_none,
        has_bloom=False,
        source=top.described(names),
        is_order=True,
    )
    skipped = skipped_share(made, files.containers)
    return made, (yield from benefit_of_skipping(probe, skipped, benefits))


def expected_filters(top: TopK, selection: BuildSelection, limits: Limits) -> Steps[tuple[TopFilter, ...]]:
    """The outcome for each scan below a limit, as far as it is known before any scan is planned."""
    proved = (yield from prove_first_rows(top, limits)) if worth_filtering(top, selection) else None
    found: list[TopFilter] = []
    for each in top.probes:
        unproved = proved if isinstance(proved, Reason) else too_few_first_rows(each.name)
        outcome: Benefit | Reason = selection.why_no_filter(each) or unproved
        if isinstance(proved, Domain) and selection.why_no_filter(each) is None:
            made = yield from first_rows_filter(top, each, proved, PlanNames(selection.root), selection.benefits)
            outcome = made if isinstance(made, Reason) else made[1]
        found.append(TopFilter(top, each, outcome))
    return *found, *(TopFilter(top, None, each) for each in top.stops)
