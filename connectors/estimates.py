"""What filters would leave of scans by metadata alone: keys of a build are bounded by the statistics of its files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from connectors.plan_metadata import PlanMetadata
from connectors.zone_keys import static_columns
from pruning.filter_kinds import KindLine, Scanned, before_build, kinds_of
from pruning.filter_plan import Feed, FeedId, FilterPlan
from pruning.key_filter import KeyFilter, key_filter
from pruning.reasons import Reason
from pruning.skipping import prune
from pruning.zones import conditions_of


def estimates(metadata: PlanMetadata, filters: FilterPlan) -> Mapping[FeedId, tuple[KindLine, ...]]:
    """What each kind of each filter keeps at most; none for scans whose metadata cannot be read."""
    found = {each.id: _kinds(metadata, each) for level in filters.levels for each in level}
    return {name: lines for name, lines in found.items() if lines}


def _kinds(metadata: PlanMetadata, feed: Feed) -> tuple[KindLine, ...]:
    relation, options = feed.target.relation, metadata.options
    table = metadata.table(relation)
    if isinstance(table, Reason):
        return ()
    column = metadata.column(table, feed.target)
    keys = metadata.keys(feed.source, lambda _: None)
    filter_ = KeyFilter.unknown([column], "") if isinstance(keys, Reason) else key_filter([column], keys)
    columns, wanted = static_columns(table, relation, conditions_of(metadata.plan.root, relation))
    columns = {**columns, column.name: column} if column.type is not None else columns
    files = table.files(list(columns.values()))
    left = prune(files, wanted).kept
    chosen = np.flatnonzero(left)
    groups = None
    if files.is_listed and len(chosen) <= options.max_footers:
        groups = table.row_groups(chosen, list(columns.values()), metadata.needed(relation)).seen_by_reader()
    return before_build(kinds_of(filter_, Scanned(files, groups, left), options.max_ranges))
