"""`PlanCost`: the seconds that scans, operators and whole subtrees of a plan are expected to take.

    seconds = (bytes * (byte + decoded_byte) + values * decoded_value + rows * the rate of each operator above) / cores

An operator counts the rows that reach it. Equal subtrees count as often as the plan has them, although an engine may
reuse an exchange: estimates of the query are then too high, those of a filter's gain are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pruning.cost.rates import NANOSECONDS, CostRates
from pruning.query.cardinality import Cardinalities
from pruning.query.exchanges import between
from pruning.query.plan import (
    Filter,
    Generate,
    GlobalAggregate,
    Grouping,
    Join,
    Limit,
    Node,
    Passthrough,
    Project,
    RankLimit,
    Relation,
    Sort,
    Union,
)
from pruning.query.plan_statistics import Sizes

# Bytes of a value of an `UnsafeRow`, and of the flags before all values; a string has 20 more by Spark's estimate.
_VALUE_BYTES, _TEXT_BYTES = 8, 28
_TEXT = ("string", "char", "varchar", "binary")


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The expected seconds of parts of a plan at one moment; each part is estimated once."""

    sizes: Sizes
    rates: CostRates
    cardinalities: Cardinalities
    _trees: dict[int, float] = field(default_factory=dict)
    _needed: dict[int, float] = field(default_factory=dict)
    _per_byte: dict[int, float] = field(default_factory=dict)
    _ways: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    _steps: dict[tuple[int, int], float] = field(default_factory=dict)
    _largest: dict[int, float] = field(default_factory=dict)

    def scan(self, relation: Relation) -> float:
        """Seconds of a scan, without the operators above it."""
        read = self.needed_bytes(relation)
        rows = self.cardinalities.rows(relation)
        return (read * self.per_byte(relation) + rows * self.rates.row) / self._units(relation)

    def per_byte(self, relation: Relation) -> float:
        """Nanoseconds of a core for reading and decoding one byte of a scan, and the values that lie in it."""
        if relation.id not in self._per_byte:
            self._per_byte[relation.id] = self._per_byte_of(relation)
        return self._per_byte[relation.id]

    def _per_byte_of(self, relation: Relation) -> float:
        read, is_remote = self.needed_bytes(relation), relation.id in self.sizes.remote
        if not read:
            return self.rates.reading(1.0, 0.0, 0.0 if is_remote else None)
        requests = self.files(relation) * self.cardinalities.limits.requests_per_file if is_remote else None
        return self.rates.reading(read, self._values(relation), requests) / read

    def _values(self, relation: Relation) -> float:
        """Values that a scan decodes, as many as numbers would take the time."""
        expected = self.sizes.expected.get(relation.id)
        rows = self.cardinalities.table_rows(relation) if expected is None else expected.rows
        return rows * self.sizes.statistics.decoded_values(relation)

    def files(self, relation: Relation) -> float:
        """Files that a scan opens: as large a share of its table's as of the rows; 0 if not known."""
        rows, expected = self.cardinalities.table_rows(relation), self.sizes.expected.get(relation.id)
        share = 1.0 if expected is None or not rows else expected.rows / rows
        return self.sizes.statistics.files(relation) * share

    def file_bytes(self, relation: Relation) -> float:
        """Bytes of the files that a scan opens, all columns included."""
        scanned = self.sizes.scanned.get(relation.id, 0)
        share = self.sizes.statistics.needed_share(relation) if relation.id in self.sizes.pruned else 1.0
        return scanned / share if share else scanned

    def needed_bytes(self, relation: Relation) -> float:
        """Bytes of the columns that a scan reads; the size of a pruned scan counts only these."""
        if relation.id not in self._needed:
            self._needed[relation.id] = self._needed_bytes(relation)
        return self._needed[relation.id]

    def _needed_bytes(self, relation: Relation) -> float:
        scanned = self.sizes.scanned.get(relation.id, 0)
        if not scanned or relation.id in self.sizes.pruned:
            return scanned
        return scanned * self.sizes.statistics.needed_share(relation)

    def tree(self, node: Node) -> float:
        """Seconds of a subtree with all its scans and subqueries; 0 for rows that a build has given."""
        if node.id not in self._trees:
            self._trees[node.id] = self._tree(node)
        return self._trees[node.id]

    def _tree(self, node: Node) -> float:
        if node.id in self.sizes.materialized:
            return 0.0
        if isinstance(node, Relation):
            return self.scan(node)
        if (sort := _first_rows_of(node)) is not None:
            child = sort.children[0]
            return self.tree(child) + self.cardinalities.rows(child) * self.rates.grouped_row / self._units()
        below = sum(self.tree(each) for each in (*node.children, *node.subqueries))
        own = sum(self.cardinalities.rows(each) * self.row_through(node, each) for each in node.children)
        return below + own / self._units()

    def bounded(self, root: Node) -> float:
        """Seconds of a plan of whose operators none gets more rows than the files of all its scans have.

        Estimates of joins without keys, and of rows that are in no file, may be too high by any factor.
        """
        nodes = [each for each in root.walk() if each.id not in self.sizes.materialized]
        scans = [each for each in nodes if isinstance(each, Relation) and each.id in self.sizes.files]
        most = sum(map(self.cardinalities.table_rows, scans))
        cut = {sort.id for sort in map(_first_rows_of, nodes) if sort is not None}
        passed = ((node, child) for node in nodes if node.id not in cut for child in node.children)
        own = sum(min(most, self.cardinalities.rows(child)) * self.row_through(node, child) for node, child in passed)
        return sum(map(self.scan, scans)) + own / self._units()

    def way(self, top: Node, relation: Relation) -> float:
        """Nanoseconds of a core for a row of a scan from there through `top`, the join that may drop it.

        Operators above one that drops or groups rows get a part of them. Above a join, a row of a dimension is as many
        rows as it has partners.
        """
        spent, _ = self._way(top, relation)
        return spent

    def _way(self, top: Node, relation: Relation) -> tuple[float, float]:
        """The nanoseconds of a row through `top`, and the rows that it is there; ways to joins above begin here."""
        if top.id == relation.id:
            return 0.0, 1.0
        at = top.id, relation.id
        if at not in self._ways:
            _, child = next(between(top, relation.id))
            spent, own = self._way(child, relation)
            spent += own * self.row_through(top, child)
            rows = self._at_most_largest(child)
            # The other children of a union give rows that are not of the scan.
            if rows and not isinstance(top, Union):
                own *= self._at_most_largest(top) / rows
            self._ways[at] = spent, own
        return self._ways[at]

    def _at_most_largest(self, node: Node) -> float:
        """The rows of a node, or those of the largest scan below it if fewer: a join may be estimated too high."""
        return min(self.cardinalities.rows(node), self._largest_scan(node))

    def _largest_scan(self, node: Node) -> float:
        if node.id not in self._largest:
            below = max(map(self._largest_scan, node.children), default=0.0)
            self._largest[node.id] = below if node.children else self.cardinalities.rows(node)
        return self._largest[node.id]

    def row_through(self, node: Node, child: Node) -> float:
        """Nanoseconds of a core for a row of `child` in the operator `node`."""
        at = node.id, child.id
        if at not in self._steps:
            self._steps[at] = self._row_through(node, child)
        return self._steps[at]

    def _row_through(self, node: Node, child: Node) -> float:
        rates = self.rates
        match node:
            case Join():
                return self._row_through_join(node, child)
            case GlobalAggregate():
                return rates.grouped_row
            case Grouping(kind="Aggregate"):
                groups = min(1.0, self.cardinalities.rows(node) / max(1.0, self.cardinalities.rows(child)))
                return rates.grouped_row * _key_width(node) + groups * (rates.hashed_row + rates.exchanged_row)
            case RankLimit() | Grouping():
                return (rates.exchanged_row + rates.sorted_row) * self._width(child)
            case Sort():
                spent = rates.sorted_row + (rates.exchanged_row if node.is_global else 0.0)
                return spent * self._width(child)
            case Passthrough(kind="SubqueryAlias" | "ReturnAnswer"):
                return 0.0
            case Passthrough():
                return rates.exchanged_row * self._width(child)
            case Filter() | Project() | Union() | Generate():
                return rates.row
            case _:
                return rates.row

    def _row_through_join(self, join: Join, child: Node) -> float:
        other = join.right if child is join.left or child.id == join.left.id else join.left
        if child.id in self.sizes.materialized or other.id in self.sizes.materialized:
            return self.rates.hashed_row if child.id in self.sizes.materialized else self.rates.joined_row
        statistics = self.sizes.statistics
        if statistics.is_broadcast(join):
            return self.rates.hashed_row if statistics.is_broadcast_side(join, child) else self.rates.joined_row
        return (self.rates.exchanged_row + self.rates.sorted_row) * self._width(child) + self.rates.joined_row

    def _width(self, node: Node) -> float:
        return self.sizes.statistics.row_width(node)

    def seconds(self, nanoseconds: float, relation: Relation | None = None) -> float:
        """Seconds that pass while all cores spend so many nanoseconds, or those that the scan of a relation uses."""
        return nanoseconds / self._units(relation)

    def _units(self, relation: Relation | None = None) -> float:
        """Core nanoseconds in a second: a small scan is one task, so it uses one core."""
        most = self.cardinalities.limits.task_bytes
        is_small = relation is not None and self.sizes.scanned.get(relation.id, 0) <= most
        return NANOSECONDS * (1 if is_small else max(1, self.sizes.cores))


def _first_rows_of(node: Node) -> Sort | None:
    """The sort of which a limit takes the first rows: the engine keeps these alone, and sorts and moves no others."""
    if not isinstance(node, Limit) or node.count is None or node.kind not in ("GlobalLimit", "LocalLimit"):
        return None
    while isinstance(node, Limit | Project):
        node = node.children[0]
    return node if isinstance(node, Sort) and node.is_global else None


def _key_width(node: Grouping) -> float:
    """The bytes of the key of a group, which each row is hashed and compared by, beside those of one number."""
    keys = (node.groups or {}).values()
    values = sum(_TEXT_BYTES if each.type.startswith(_TEXT) else _VALUE_BYTES for each in keys)
    return max(1.0, (_VALUE_BYTES + values) / (2 * _VALUE_BYTES))
