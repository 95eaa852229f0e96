"""`with_copies()`: capabilities of a scan whose pushed conditions Spark copies to equal columns of other scans.

Their storage compares the copied literals with its own bounds, which it may do wrongly where that of the scan does not:
a file with fewer digits, inverted bounds, a reader that is not vectorised. So literals are pushed only as far as the
storage of every copy compares them rightly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from connectors.base import Table
from connectors.columns import Column
from connectors.pipeline.plan_metadata import PlanMetadata
from connectors.scan.capabilities import capabilities_of
from connectors.scan.decision import plan_column
from connectors.spark.files import FOOTER_THREADS
from pruning.errors import PruningError
from pruning.query.plan import Node, Relation
from pruning.reasons import Reason
from pruning.scan.pushdown import PushdownCapabilities
from pruning.values.coercion import coerce
from pruning.values.domain import Domain
from pruning.values.ranges import RangeSet

# Types of which some files have fewer digits, or wrong bounds or page indexes by one of several writers.
_SEEN_IN_FOOTERS = frozenset({"binary", "decimal", "string"})
_Widen = Callable[[RangeSet], RangeSet]


def with_copies(
    capabilities: PushdownCapabilities, copies: Mapping[str, Sequence[tuple[Node, int]]], metadata: PlanMetadata
) -> PushdownCapabilities:
    """The capabilities of a scan; `copies` are the leaves that get conditions as well, by the name of its column."""
    if not any(copies.values()):
        return capabilities
    found = _Copies(capabilities.widen, copies, metadata)
    return replace(capabilities, widen=found.widened, may_list=found.may_list)


@dataclass(frozen=True, slots=True)
class _Copies:
    own: Callable[[str, RangeSet], RangeSet]
    copies: Mapping[str, Sequence[tuple[Node, int]]]
    metadata: PlanMetadata
    _read_safely: dict[tuple[int, int], bool] = field(default_factory=dict)

    def widened(self, name: str, ranges: RangeSet) -> RangeSet:
        """A superset of `ranges` that is safe for all storage; every value if one would widen what another has."""
        every: list[_Widen] = [partial(self.own, name)]
        every += [partial(self._safe, *each) for each in self.copies.get(name, ())]
        found = ranges
        for widen in every:
            found = widen(found)
        if found is ranges or all(_is_safe(ranges, found, widen) for widen in every):
            return found
        return RangeSet.all(ranges.type)

    def may_list(self, name: str) -> bool:
        """True if the files of all copies of a column are known to have no bloom filter of it."""
        return all(self._has_no_bloom_filter(*each) for each in self.copies.get(name, ()))

    def _has_no_bloom_filter(self, leaf: Node, column: int) -> bool:
        if not isinstance(leaf, Relation) or isinstance(table := self.metadata.table(leaf), Reason):
            return False
        found = plan_column(table, leaf, column)
        if found.is_partition or found.type is None:
            return found.is_partition
        every = np.arange(len(table.files([found])))
        # The log of a table does not tell, so footers are read, as many as are read at the same time.
        if len(every) > FOOTER_THREADS:
            return False
        seen = table.row_groups(every, [found], ()).columns.get(found.name)
        return seen is not None and not seen.may_have_bloom_filters

    def _safe(self, leaf: Node, column: int, ranges: RangeSet) -> RangeSet:
        """A superset of `ranges` with which the storage of a leaf skips soundly; every value if that is not known."""
        unknown = RangeSet.all(ranges.type)
        if not isinstance(leaf, Relation) or isinstance(table := self.metadata.table(leaf), Reason):
            # All storage compares whole numbers and dates by value; texts may have another order in a database.
            return ranges if ranges.type.is_integer or ranges.type.name == "date" else unknown
        found = plan_column(table, leaf, column)
        # Planning a scan widens ranges several times; confs and footers are read once.
        at = leaf.id, column
        if at not in self._read_safely:
            self._read_safely[at] = self._is_read_safely(table, leaf, found)
        if found.type is None or not self._read_safely[at]:
            return unknown
        if found.type == ranges.type:
            return table.storage_safe_ranges(found.name, ranges)
        if found.type.name == "string" and ranges.type.is_integer:
            # Texts get such a condition below a cast, which storage does not see.
            return ranges
        try:
            inner = coerce(Domain(ranges), found.type, found.name)
        except PruningError:
            return unknown
        if isinstance(inner, Reason):
            return unknown
        return ranges if _is_kept(inner.domain.ranges, partial(table.storage_safe_ranges, found.name)) else unknown

    def _is_read_safely(self, table: Table, relation: Relation, column: Column) -> bool:
        """True if literals may reach the files of a scan, whose digits are then known to its table."""
        known = {each.name: each.dataType for each in table.schema.fields}
        types = [known[name] for name in self.metadata.needed(relation) if name in known]
        spark = self.metadata.plan.spark
        if capabilities_of(spark, table, types, [column], exact=False).push_refusal is not None:
            return False
        if column.type is None or column.is_partition:
            return True
        # A table without a log reads the footers of all files here, and knows then what each type may be compared with.
        count = len(table.files([column]))
        if column.type.name not in _SEEN_IN_FOOTERS:
            return True
        if count > self.metadata.limits.max_footers:
            return column.type.name != "decimal"
        # Footers tell the digits of each file, and the writers that err.
        table.row_groups(np.arange(count), [column], ())
        return True


def _is_safe(ranges: RangeSet, found: RangeSet, widen: _Widen) -> bool:
    """True if storage that would widen `ranges` by `widen` skips soundly by `found`.

    Storage of timestamps compares literals by value alone, and moves them out by a fixed time at each call.
    """
    is_timestamp = ranges.type.name.startswith("timestamp")
    return (is_timestamp and found.contains_all(widen(ranges))) or _is_kept(found, widen)


def _is_kept(ranges: RangeSet, widen: _Widen) -> bool:
    found = widen(ranges)
    return found is ranges or found == ranges
