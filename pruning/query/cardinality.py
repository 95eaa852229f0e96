"""`Cardinalities`: the expected rows of each node of a plan, and the share of a scan's rows that have a partner.

Rows of tables come from metadata, shares of conditions from `selectivity`, joins are estimated by containment: the side
with fewer values of a key finds them among those of the other side, as foreign keys do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, prod, sqrt

from pruning.cost.estimate import Estimate
from pruning.limits import Limits
from pruning.query.expressions import static_domains
from pruning.query.join_condition import BuildSide, equal_keys
from pruning.query.key_origins import KeyOrigin, KeyOrigins, origins_of
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import (
    Expression,
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
    Union,
    conjuncts_at,
)
from pruning.query.plan_statistics import Sizes
from pruning.query.selectivity import ALL, around, both, condition_share
from pruning.values.domain import Domain

# Bytes of a row in a file where the rows of a table are not counted.
_ROW_BYTES = 64
# More rows than any query makes: products of rows stay numbers.
_FINITE = 1e30


@dataclass(frozen=True, slots=True)
class _Keys:
    """The values of a key column of a node: `all` in its table, `left` after the conditions of the node.

    `is_unique`: each row of the table has another value.
    """

    all: float
    left: float
    is_unique: bool

    @property
    def share(self) -> float:
        """The share of the table's values that are left."""
        return min(1.0, self.left / self.all) if self.all else 0.0


@dataclass(frozen=True, slots=True)
class Cardinalities:
    """The expected rows of the nodes of a plan at one moment; each node is estimated once."""

    sizes: Sizes
    limits: Limits
    _rows: dict[int, float] = field(default_factory=dict)
    _kept: dict[int, Estimate] = field(default_factory=dict)
    _shares: dict[int, Estimate] = field(default_factory=dict)
    _origins: dict[tuple[int, Expression], KeyOrigins] = field(default_factory=dict)
    _left: dict[tuple[int, Expression], _Keys | None] = field(default_factory=dict)

    def rows(self, node: Node) -> float:
        """The rows that a node is expected to give."""
        if node.id not in self._rows:
            self._rows[node.id] = min(_FINITE, self._rows_of(node))
        return self._rows[node.id]

    def origins(self, node: Node, key: Expression) -> KeyOrigins:
        """The columns of scans that hold the keys of a node; each is traced once."""
        at = node.id, key
        if at not in self._origins:
            self._origins[at] = origins_of(node, key)
        return self._origins[at]

    def table_rows(self, relation: Relation) -> float:
        """The rows of a scan's table, by its bytes where they are not counted."""
        return float(self.sizes.statistics.rows(relation) or self.sizes.scanned.get(relation.id, 0) / _ROW_BYTES)

    def values(self, relation: Relation, column: int) -> float:
        """The different values of a column in its table; each row has its own where bounds say nothing."""
        size = self.sizes.statistics.domain_size(relation, column)
        return self.table_rows(relation) if size is None else size

    def kept_share(self, node: Node) -> Estimate:
        """The share of rows that all conditions below a node let pass, for the bounds of an estimate.

        Rows that a build has counted are known.
        """
        if node.id in self.sizes.rows:
            return ALL
        if node.id not in self._kept:
            below = [self.kept_share(each) for each in node.children]
            own = self._condition_share(node) if isinstance(node, Filter) else ALL
            share = own
            for each in below:
                share = both(share, each)
            self._kept[node.id] = share
        return self._kept[node.id]

    def partner_share(self, build_side: BuildSide, probe: ProbeColumn) -> Estimate:
        """The share of a scan's rows whose value of a column is a key of a build side.

        It rests on the values that are left of the key's own table, and on those beside all values of the column.
        """
        if build_side.condition.bound is not None:
            return around(self.limits.bound_share, self.limits.guess_error)
        values = self.key_values(probe)
        if build_side.condition.is_scalar:
            one = self._share_of_one_key(probe)
            return around(self.limits.equal_share, self.limits.share_error) if one is None else one
        keys = self._keys(build_side.node, build_side.key)
        if keys is None:
            return self._share_of_unknown(self.rows(build_side.node), probe)
        shares = self._shares_among(keys, values, probe)
        kept = self.kept_share(build_side.node)
        least, most = (each / kept.expected if kept.expected else 1.0 for each in (kept.low, kept.high))
        return Estimate.around(shares.low * least, shares.expected, min(1.0, shares.high * most))

    def key_values(self, probe: ProbeColumn | KeyOrigin) -> float | None:
        """The different keys that the values of a column make; None if unknown."""
        statistics, width = self.sizes.statistics, probe.width
        numbers = None if width == 1.0 else statistics.numbers_between(probe.relation, probe.column)
        if numbers is None:
            return statistics.domain_size(probe.relation, probe.column)
        return max(1.0, min(numbers / width, self.table_rows(probe.relation)))

    def _share_of_one_key(self, probe: ProbeColumn) -> Estimate | None:
        """The share of a table's rows with one key; None if nothing tells of its values."""
        if probe.width == 1.0:
            return self.share_of_one(probe.relation, probe.column)
        values = self.key_values(probe)
        return around(1 / values, self.limits.share_error) if values else None

    def share_of_one(self, relation: Relation, column: int) -> Estimate | None:
        """The share of a table's rows with one value of a column; None if nothing tells of its values.

        Where nothing tells how often values repeat, it is expected at the geometric mean of both ends.
        """
        statistics = self.sizes.statistics
        values, least = statistics.domain_size(relation, column), statistics.least_values(relation, column)
        if not values:
            return None
        if least is None or not statistics.is_sparse(relation, column):
            return around(1 / values, self.limits.share_error)
        return Estimate.around(1 / values, 1 / sqrt(least * values), 1 / least)

    def _share_of_unknown(self, keys: float, probe: ProbeColumn) -> Estimate:
        """The share of a scan's rows that have one of so many keys, of which nothing else is known."""
        one, rows = self._share_of_one_key(probe), self.sizes.statistics.rows(probe.relation)
        if one is None and not rows:
            return around(1.0, self.limits.guess_error)
        if one is None:
            # Each row may have another value, or all the same.
            return Estimate.around(min(1.0, keys / rows), min(1.0, keys / sqrt(rows)), 1.0)
        share = min(1.0, keys * one.expected)
        widest = around(share, self.limits.guess_error)
        return Estimate(min(widest.low, keys * one.low), share, min(1.0, max(widest.high, keys * one.high)))

    def most_partners(self, build_side: BuildSide, probe: ProbeColumn) -> float:
        """The share of the values of a scan's column that are keys of a build side, if each of its rows has another."""
        statistics = self.sizes.statistics
        values = self.key_values(probe) or statistics.rows(probe.relation)
        origins = self.origins(build_side.node, build_side.key)
        known = [sum(self.values(each.relation, each.column) for each in origins)] if origins else []
        return min(1.0, min([self.rows(build_side.node), *known]) / values) if values else 1.0

    def most_passing(self, build_side: BuildSide, probe: ProbeColumn) -> float:
        """The share of a scan's rows with a key, at the largest that both kinds of a small table make likely.

        A dimension with a condition has a key for every row, so its share of keys counts as well: numbers between the
        bounds of a column that are no keys, such as the 32nd of a month, are then no values. A list without a condition
        has keys for some rows.
        """
        keys = self._keys(build_side.node, build_side.key) if build_side.condition.bound is None else None
        share = self.partner_share(build_side, probe)
        is_dimension = keys is not None and keys.is_unique and (keys.left < keys.all or self._is_sparse(probe))
        return max(share.expected, keys.share) if keys is not None and is_dimension else share.expected

    def _share_among(self, keys: _Keys, values: float | None, probe: ProbeColumn | KeyOrigin | None) -> float:
        return self._shares_among(keys, values, probe).expected

    def _shares_among(self, keys: _Keys, values: float | None, probe: ProbeColumn | KeyOrigin | None) -> Estimate:
        """The share of the values of a probe column that are keys.

        Foreign keys refer to rows that exist: where keys are unique and values are not, values are among all keys. The
        keys that are left may lie anywhere among all (as months do among days) or all among the values (as a year
        does), so the share is between both, and expected at their geometric mean. Nothing tells how often values of a
        sparse column repeat, such as random numbers.
        """
        if not values:
            return Estimate.exact(keys.share)
        among = min(1.0, keys.left / values)
        is_foreign = probe is None or not self._is_unique(values, self.table_rows(probe.relation))
        if keys.is_unique and (is_foreign or (probe is not None and self._is_sparse(probe))):
            least, most = sorted((keys.share, among))
            return Estimate.around(least, sqrt(least * most), most)
        return around(among, self.limits.values_error)

    def _is_sparse(self, probe: ProbeColumn | KeyOrigin) -> bool:
        if probe.width == 1.0:
            return self.sizes.statistics.is_sparse(probe.relation, probe.column)
        rows, values = self.sizes.statistics.rows(probe.relation), self.key_values(probe)
        return values is not None and 0 < rows <= values

    def _is_unique(self, values: float, rows: float) -> bool:
        return values >= rows * self.limits.unique_share

    def _keys(self, node: Node, key: Expression) -> _Keys | None:
        """The values of a key of a node, the same for all scans that it may filter; None if unknown."""
        at = node.id, key
        if at not in self._left:
            self._left[at] = self._keys_of(node, key)
        return self._left[at]

    def _keys_of(self, node: Node, key: Expression) -> _Keys | None:
        origins = self.origins(node, key)
        if not origins:
            return None
        every = [self.values(each.relation, each.column) for each in origins]
        tables = [self.table_rows(each.relation) for each in origins]
        if len(origins) > 1:
            return _Keys(sum(every), distinct(self.rows(node), sum(every)), is_unique=False)
        (all_values,), (table,) = every, tables
        is_unique = self._is_unique(all_values, table)
        rows = min(self.rows(node), table)
        # Keys that filter the column already are all the values that it has left.
        (origin,) = origins
        applied = min(all_values, self.sizes.applied.get(origin.relation.id, {}).get(origin.column, all_values))
        if is_unique:
            return _Keys(all_values, min(rows, applied), is_unique=True)
        together = self.sizes.statistics.rows_together(origin.relation, origin.column)
        drawn = self._drawn(node, origin, rows, together)
        return _Keys(distinct(table / together, all_values), distinct(drawn, applied), is_unique=False)

    def _drawn(self, node: Node, origin: KeyOrigin, rows: float, together: float) -> float:
        """The number of values that `rows` rows draw, repeated ones included, if the rows of a value stand together.

        Conditions by columns whose values stand together as well, such as the day of an order, leave or drop all rows
        of a value at once. Others leave some of them.
        """
        table = self.table_rows(origin.relation)
        if (
            together == 1.0
            or rows >= table
            or all(
                self.sizes.statistics.rows_together(origin.relation, each) >= together
                for each in self._conditions_on(node, origin)
            )
        ):
            return rows / together
        return table / together * (1.0 - float((1.0 - rows / table) ** together))

    def _conditions_on(self, node: Node, origin: KeyOrigin) -> set[int]:
        """The columns of a key's scan by which joins, keys and conditions leave rows out, without the key's own."""
        found = set(self.sizes.applied.get(origin.relation.id, ()))
        for each in node.walk():
            if isinstance(each, Filter):
                parts = (part for _, part in conjuncts_at(each.condition))
                found |= {at for part in parts if part.kind != "IsNotNull" for at in part.columns}
            elif isinstance(each, Join):
                found |= {key.column for pair in equal_keys(each) for key in pair if key.column is not None}
        return (found & set(origin.relation.output)) - {origin.column}

    # Rows of nodes.

    def _rows_of(self, node: Node) -> float:
        if node.id in self.sizes.rows:
            return float(self.sizes.rows[node.id])
        match node:
            case Relation():
                found = self.sizes.expected.get(node.id)
                return self._filtered_rows(node) if found is None else found.passing
            case Filter():
                return self.rows(node.children[0]) * self._condition_share(node).expected
            case GlobalAggregate():
                return 1.0
            case RankLimit(count=int(most)) | Grouping(most=int(most)):
                return min(float(most), self.rows(node.children[0]))
            case Grouping(kind="Aggregate"):
                return self._groups(node)
            case Limit(kind="GlobalLimit" | "LocalLimit", count=count) if count is not None:
                return min(float(count), self.rows(node.children[0]))
            case Project() | Passthrough() | Grouping() | Generate() | Limit():
                return self.rows(node.children[0])
            case Union():
                return sum(self.rows(each) for each in node.children)
            case Join():
                return self._joined(node)
            case _ if not node.children:
                return self.sizes.statistics.leaf_rows(node)
            case _:
                return sum(self.rows(each) for each in node.children)

    def _filtered_rows(self, relation: Relation) -> float:
        """The rows of a scan whose rows under its keys are not estimated."""
        rows = self.table_rows(relation)
        for column, keys in self.sizes.applied.get(relation.id, {}).items():
            values = self.sizes.statistics.domain_size(relation, column)
            rows *= min(1.0, keys / values) if values else 1.0
        return rows

    def _condition_share(self, node: Filter) -> Estimate:
        """The share of a filter's rows that its condition lets pass."""
        if node.id not in self._shares:
            self._shares[node.id] = self._share_of(node)
        return self._shares[node.id]

    def _share_of(self, node: Filter) -> Estimate:
        statistics = self.sizes.statistics

        def share_of(column: int, domain: Domain) -> float | None:
            origins = self.origins(node.children[0], Expression("AttributeReference", (), column, str(domain.type)))
            if len(origins) != 1:
                return None
            return statistics.matching_share(origins[0].relation, origins[0].column, domain)

        def share_of_one(column: int) -> Estimate | None:
            origins = self.origins(node.children[0], Expression("AttributeReference", (), column))
            return self.share_of_one(origins[0].relation, origins[0].column) if len(origins) == 1 else None

        return condition_share(node.condition, share_of, share_of_one, self.limits)

    def _groups(self, node: Grouping) -> float:
        """Groups by columns of one table are no more than its rows that have a partner."""
        child = node.children[0]
        rows = self.rows(child)
        values: dict[int, float] = {}
        for expression in (node.groups or {}).values():
            origins = self.origins(child, expression)
            if len(origins) != 1:
                return rows
            at, table = origins[0].relation.id, self._joined_rows(child, origins[0].relation)
            values[at] = min(table, values.get(at, 1.0) * self._left_values(origins[0]))
        groups = prod(values.values())
        return rows if groups >= rows else distinct(rows, groups)

    def _joined_rows(self, node: Node, relation: Relation) -> float:
        """The rows of a scan's table below a node that inner joins by a unique key leave."""
        found = self.table_rows(relation)
        for join in node.walk():
            if not isinstance(join, Join) or join.type != "Inner":
                continue
            for pair in equal_keys(join):
                sides = list(zip(join.children, pair, strict=True))
                for own, other in (sides, sides[::-1]):
                    keys = self._keys(*other) if self._is_unique_key(own, relation) else None
                    found = found if keys is None else min(found, max(1.0, keys.left))
        return found

    def _is_unique_key(self, side: tuple[Node, Expression], relation: Relation) -> bool:
        """True if a key of a node is a column of this scan with another value in each row."""
        origins = self.origins(*side)
        return (
            len(origins) == 1
            and origins[0].relation.id == relation.id
            and self._is_unique(self.values(relation, origins[0].column), self.table_rows(relation))
        )

    def _left_values(self, origin: KeyOrigin) -> float:
        """The different values of a key in its table that conditions on the column itself let pass."""
        values, domain = (
            self.values(origin.relation, origin.column),
            static_domains(origin.conditions).get(origin.column),
        )
        if domain is None:
            return values
        share = self.sizes.statistics.matching_share(origin.relation, origin.column, domain)
        return values if share is None else max(1.0, share * values)

    def _joined(self, join: Join) -> float:
        left, right = self.rows(join.left), self.rows(join.right)
        match join.type:
            case "LeftSemi":
                return left * self._matching(join, left_is_probe=True)
            case "LeftAnti":
                return left * max(self.limits.equal_share, 1 - self._matching(join, left_is_probe=True))
            case "ExistenceJoin" | "LeftSingle":
                return left
            case "LeftOuter":
                return max(left, self._inner(join))
            case "RightOuter":
                return max(right, self._inner(join))
            case "FullOuter":
                return max(left, right, self._inner(join))
            case _:
                return self._inner(join)

    def _inner(self, join: Join) -> float:
        left, right = self.rows(join.left), self.rows(join.right)
        pairs = list(equal_keys(join))
        if not pairs:
            return left * right if join.condition is None else left * right * self.limits.other_share
        known = [(self._keys(join.left, first), self._keys(join.right, second)) for first, second in pairs]
        if len(pairs) > 1:
            return self._inner_by_several(join, [each for both in known for each in both if each is not None])
        ((first, second),) = known
        if second is not None and (second.is_unique or first is None):
            return left * self._matching(join, left_is_probe=True)
        if first is not None and (first.is_unique or second is None):
            return right * self._matching(join, left_is_probe=False)
        values = max([each.left for each in (first, second) if each is not None], default=max(left, right))
        return left * right / max(values, 1.0)

    def _inner_by_several(self, join: Join, keys: list[_Keys]) -> float:
        """Rows of a join by several columns, which together are taken to be unique on the side with fewer rows."""
        left, right = self.rows(join.left), self.rows(join.right)
        shares = [self._table_share(join.left), self._table_share(join.right)]
        return min(left * shares[1], right * shares[0]) if keys else max(left, right)

    def _table_share(self, node: Node) -> float:
        """The share of the rows of the largest table below a node that the node gives."""
        tables = [self.table_rows(each) for each in node.walk() if isinstance(each, Relation)]
        most = max(tables, default=0.0)
        return min(1.0, self.rows(node) / most) if most else 1.0

    def _matching(self, join: Join, *, left_is_probe: bool) -> float:
        """The share of rows of one side that have a partner on the other."""
        shares = [1.0]
        for first, second in equal_keys(join):
            probe, key, build = (first, second, join.right) if left_is_probe else (second, first, join.left)
            side = join.left if left_is_probe else join.right
            if self._is_applied(side, probe):
                continue
            keys = self._keys(build, key)
            origins = self.origins(side, probe)
            if keys is not None:
                (origin,) = origins if len(origins) == 1 else (None,)
                values = None if origin is None else self.values(origin.relation, origin.column)
                shares.append(self._share_among(keys, values, origin))
        return min(shares)

    def _is_applied(self, side: Node, key: Expression) -> bool:
        """True where the scan that a key comes from is already filtered by keys of that column."""
        origins = self.origins(side, key)
        return bool(origins) and all(each.column in self.sizes.applied.get(each.relation.id, {}) for each in origins)


def distinct(rows: float, values: float) -> float:
    """The different values among `rows` rows that each have one of `values` values by chance.

    All of them where less than half a value is expected to be missing, so that a whole table has all of its values.

    >>> round(distinct(100, 100)), round(distinct(10, 1e9)), distinct(4000, 160)
    (63, 10, 160)
    """
    if not values or not rows:
        return 0.0
    if rows / values < 1e-6:
        return rows
    missing = values * exp(-rows / values)
    return min(rows, values if missing < 0.5 else values - missing)
