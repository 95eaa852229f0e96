"""`PlanMetadata`: facts from the metadata of a plan's tables, before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from connectors.base import Table
from connectors.columns import Column
from connectors.registry import PlanTable, scan_of, snapshot_calls, table_of, versions_by_format
from connectors.scan.decision import Kept, has_few_keys, keys_from_statistics, leaves_out, plan_column
from connectors.spark.plan_facts import PlanFacts, broadcast_limit, has_small_side, is_broadcast_side, plan_facts
from connectors.spark.plan_reader import SparkPlan
from pruning.keys.summary import KeySummary
from pruning.limits import Limits
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.exchanges import ExchangeReuse, crosses_shuffle, is_hash_build_side, unprunable_fraction
from pruning.query.join_condition import BuildSide
from pruning.query.key_origins import origins_of
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Join, Node, Relation, relations_of
from pruning.reasons import Reason, ReasonCode
from pruning.scan.statistics import UNKNOWN, Containers
from pruning.values.byte_strings import IntArray

# Types whose values may be long: rows with them have a lower limit.
_LONG = ("string", "char", "binary", "array", "map", "struct", "variant")


@dataclass(slots=True)
class PlanMetadata:
    """The tables of one plan, each opened once however many scans read it, and facts from their statistics.

    `asked` gives the columns of scans whose statistics may be needed, by `Relation.id`: one job fetches all of them for
    a table version that no query of the session has read.
    """

    plan: SparkPlan
    options: PruningOptions
    asked: Callable[[], Mapping[int, Collection[int]]] = dict
    _asked: Mapping[int, Collection[int]] | None = None
    _facts: PlanFacts | None = None
    _tables: dict[int, Table | Reason] = field(default_factory=dict)
    _scans: dict[int, PlanTable | Reason] = field(default_factory=dict)
    _keys: dict[tuple[int, str], KeySummary | Reason] = field(default_factory=dict)
    _few: dict[tuple[int, str, int, int], bool] = field(default_factory=dict)
    _covered: dict[tuple[int, int], float] = field(default_factory=dict)
    _broadcast: dict[int, bool] = field(default_factory=dict)
    _rows: dict[int, int] = field(default_factory=dict)
    _shares: dict[int, float] = field(default_factory=dict)
    _reuse: ExchangeReuse | None = None

    def facts(self) -> PlanFacts:
        """The facts about the plan, read from the JVM once."""
        if self._facts is None:
            spark = self.plan.spark
            self._facts = plan_facts(self.plan, versions_by_format(spark), snapshot_calls(spark))
        return self._facts

    def table(self, relation: Relation) -> Table | Reason:
        """The table that a scan reads; scans of the same table version and files share one object."""
        first = self.facts().first_leaf[relation.id]
        if first not in self._tables:
            self._tables[first] = self._opened(relation, first)
        return self._tables[first]

    def _opened(self, relation: Relation, first: int) -> Table | Reason:
        table = table_of(self.plan.spark, self.plan.node(relation), self.options.limits)
        if not isinstance(table, Reason):
            table.expect(self._asked_of(table, first))
        return table

    def _asked_of(self, table: Table, first: int) -> Iterator[Column]:
        """The columns of a table whose statistics may be needed; a generator, so computed only if the table uses it."""
        if self._asked is None:
            self._asked = self.asked()
        for each in relations_of(self.plan.root):
            if self.facts().first_leaf[each.id] == first:
                yield from (plan_column(table, each, column) for column in self._asked.get(each.id, ()))

    def plan_table(self, relation: Relation) -> PlanTable | Reason:
        """The table of this scan with column ids of its own, to replace the scan in the plan."""
        if relation.id not in self._scans:
            table = self.table(relation)
            if isinstance(table, Reason):
                return table
            self._scans[relation.id] = scan_of(self.plan.spark, self.plan.node(relation), table)
        return self._scans[relation.id]

    def needed(self, relation: Relation) -> tuple[str, ...]:
        """The columns of a scan that the query uses."""
        used = self.plan.used
        return tuple(name for name, column in zip(relation.names, relation.output, strict=True) if column in used)

    def keys(self, build_side: BuildSide, kept_of: Kept) -> KeySummary | Reason:
        """The values that match the keys which the files of a build side allow; a `Reason` if these are not bounded.

        `kept_of` gives the files that a pruned scan still reads; the answer is memoized until `forget_keys`.
        """
        if build_side.id not in self._keys:
            zones = () if build_side.is_widened_bound else origins_of(build_side.node, build_side.key)
            found = keys_from_statistics(zones, self.table, kept_of, str(build_side.key), self.options)
            self._keys[build_side.id] = found if isinstance(found, Reason) else build_side.condition.bounds(found)
        return self._keys[build_side.id]

    def forget_keys(self) -> None:
        """Discards memoized keys, because scans read fewer files than before."""
        self._keys.clear()

    def selective_keys(self, build_side: BuildSide, probe: ProbeColumn, kept_of: Kept) -> KeySummary | Reason:
        """The result of `keys`, but a `Reason`, too, if the keys skip no file of the probe column."""
        found, table = self.keys(build_side, kept_of), self.table(probe.relation)
        if isinstance(found, Reason):
            return found
        if isinstance(table, Reason):
            return table
        if leaves_out(table, self.column(table, probe), found, self.options):
            return found
        return Reason(ReasonCode.UNCLUSTERED, probe.name, "metadata of the build side")

    def has_few_keys(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True if a build side has few rows by metadata, compared with the values of a probe column."""
        pair = (*build_side.id, probe.relation.id, probe.column)
        if pair not in self._few:
            table, zones = self.table(probe.relation), origins_of(build_side.node, build_side.key)
            self._few[pair] = not isinstance(table, Reason) and has_few_keys(
                zones, self.table, table, self.column(table, probe), self.options
            )
        return self._few[pair]

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        """The share of a probe column's bytes in files that any key keeps.

        If the statistics of files skip nothing, row groups of some large files are used instead.
        """
        at = probe.relation.id, probe.column
        if at not in self._covered:
            table = self.table(probe.relation)
            self._covered[at] = (
                0.0 if isinstance(table, Reason) else _covered(table, self.column(table, probe), self.options.limits)
            )
        return self._covered[at]

    def crosses_shuffle(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True if a shuffle moves rows of a probe column before the join of the build side drops them."""
        return crosses_shuffle(build_side, probe, self._is_broadcast)

    def _is_broadcast(self, join: Join) -> bool:
        if join.id not in self._broadcast:
            self._broadcast[join.id] = has_small_side(self.plan, join)
        return self._broadcast[join.id]

    def is_hash_build_side(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where rows of the probe column become a hash table before the join of the build side drops them."""
        return is_hash_build_side(build_side, probe, partial(is_broadcast_side, self.plan))

    def rows(self, relation: Relation) -> int:
        """The number of rows that a scan reads without filters; 0 if the row count of some file is unknown."""
        if relation.id not in self._rows:
            table = self.table(relation)
            rows = np.zeros(0, np.int64) if isinstance(table, Reason) else table.files([]).rows
            self._rows[relation.id] = 0 if (rows == UNKNOWN).any() else int(rows.sum())
        return self._rows[relation.id]

    def needed_share(self, relation: Relation) -> float:
        """The share of the bytes of a scan's files in columns that the query uses, estimated from some large files."""
        if relation.id not in self._shares:
            table = self.table(relation)
            self._shares[relation.id] = (
                1.0 if isinstance(table, Reason) else _share(table, self.needed(relation), self.options.limits)
            )
        return self._shares[relation.id]

    def are_few(self, node: Node, rows: float) -> bool:
        """True if `rows` rows, or somewhat more, are few enough to be joined as a local relation."""
        if self.options.broadcast_strategy == BroadcastStrategy.NONE.name:
            return False
        schema = self.plan.node(node).schema()
        # An `UnsafeRow` has eight bytes for each value, and more for long ones. Column names may contain type names.
        width = 8 + 8 * len(node.output) + int(schema.defaultSize())
        types = str(schema.catalogString()).removeprefix("struct")
        is_long = any(kind in types for kind in _LONG)
        limits = self.options.limits
        rows *= limits.joined_rows_margin
        most = limits.joined_long_rows if is_long else limits.joined_rows
        return rows <= most and rows * width <= broadcast_limit(self.plan.spark)

    def is_same_table(self, first: Relation, second: Relation) -> bool:
        """True where two scans read the same table at the same version."""
        return self.table(first) is self.table(second)

    def shared_places(self, build_side: BuildSide, probe: ProbeColumn) -> Sequence[Node]:
        """The other places of a reused exchange, if the keys of the build side would filter only one of them."""
        if self._reuse is None:
            self._reuse = ExchangeReuse.of(self.plan.root, self.facts().equal, self._is_sent_to)
        return self._reuse.others(build_side, probe)

    def _is_sent_to(self, join: Join, side: Node) -> bool:
        return not self._is_broadcast(join) or is_broadcast_side(self.plan, join, side)

    @staticmethod
    def column(table: Table, probe: ProbeColumn) -> Column:
        """The table's column for a probe column."""
        return plan_column(table, probe.relation, probe.column)


def _covered(table: Table, column: Column, limits: Limits) -> float:
    if column.type is None:
        return 0.0
    files = table.files([column])
    share = (
        unprunable_fraction(files.columns[column.name], files.sizes, limits) if column.name in files.columns else 0.0
    )
    if 0.0 < share < 1.0:
        return share
    groups = table.row_groups(_largest(files, limits), [column], [column.path[0]])
    return (
        unprunable_fraction(groups.columns[column.name], groups.sizes, limits)
        if column.name in groups.columns
        else share
    )


def _share(table: Table, columns: Sequence[str], limits: Limits) -> float:
    files = table.files([])
    sampled = _largest(files, limits)
    whole, part = int(files.sizes[sampled].sum()), int(table.row_groups(sampled, [], columns).sizes.sum())
    # If the files of a table identify columns only by id, no column is found by name.
    return part / whole if whole and part else 1.0


def _largest(files: Containers, limits: Limits) -> IntArray:
    return np.argsort(-files.sizes)[: limits.sampled_files]
