"""What filters would leave of scans by metadata alone: keys of a build are bounded by the statistics of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from connectors.base import Table
from connectors.plan_reader import SparkPlan
from connectors.plan_tables import PlanTable, table_of
from connectors.zone_keys import plan_column, static_columns, zone_keys
from pruning.bounds import bounded
from pruning.filter_kinds import KindLine, Scanned, before_build, kinds_of
from pruning.filter_plan import Feed, FeedId, FilterPlan
from pruning.key_filter import KeyFilter, key_filter
from pruning.key_summary import KeySummary
from pruning.options import PruningOptions
from pruning.query_plan import Relation
from pruning.reasons import Reason
from pruning.skipping import prune
from pruning.zones import conditions_of, zones_of


def estimates(plan: SparkPlan, filters: FilterPlan, options: PruningOptions) -> Mapping[FeedId, tuple[KindLine, ...]]:
    """What each kind of each filter keeps at most; none for scans whose metadata cannot be read."""
    known = _Known(plan, options)
    found = {each.id: known.kinds(each) for level in filters.levels for each in level}
    return {name: lines for name, lines in found.items() if lines}


@dataclass(slots=True)
class _Known:
    """Tables that were opened so far, and the keys that metadata allows, by the id of their source."""

    plan: SparkPlan
    options: PruningOptions
    _tables: dict[int, PlanTable | Reason] = field(default_factory=dict)
    _keys: dict[tuple[int, str], KeySummary | Reason] = field(default_factory=dict)

    def kinds(self, feed: Feed) -> tuple[KindLine, ...]:
        relation = feed.target.relation
        table = self._table(relation)
        if isinstance(table, Reason):
            return ()
        column = plan_column(table, relation, feed.target.column)
        keys = self._allowed(feed)
        filter_ = KeyFilter.unknown([column], "") if isinstance(keys, Reason) else key_filter([column], keys)
        columns, wanted = static_columns(table, relation, conditions_of(self.plan.root, relation))
        columns = {**columns, column.name: column} if column.type is not None else columns
        files = table.files(list(columns.values()))
        left = prune(files, wanted).kept
        chosen = np.flatnonzero(left)
        groups = None
        if files.is_listed and len(chosen) <= self.options.max_footers:
            needed = [name for name, at in zip(relation.names, relation.output, strict=True) if at in self.plan.used]
            groups = table.row_groups(chosen, list(columns.values()), needed).seen_by_reader()
        return before_build(kinds_of(filter_, Scanned(files, groups, left), self.options.max_ranges))

    def _allowed(self, feed: Feed) -> KeySummary | Reason:
        source = feed.source
        if source.id not in self._keys:
            # In a narrower type than the one in which it is compared, a bound would end where that type does.
            is_widened = source.bound is not None and source.key.column is None
            zones = () if is_widened else zones_of(source.node, source.key)
            name = str(source.key)
            self._keys[source.id] = zone_keys(zones, self._table, lambda _: None, name, self.options)
        found = self._keys[source.id]
        return found if isinstance(found, Reason) or source.bound is None else bounded(found, source.bound)

    def _table(self, relation: Relation) -> Table | Reason:
        if relation.at not in self._tables:
            self._tables[relation.at] = table_of(self.plan.spark, self.plan.node(relation), self.options)
        found = self._tables[relation.at]
        return found if isinstance(found, Reason) else found.table
