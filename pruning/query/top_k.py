"""`TopK`: a limit that takes the first rows of an order, and the keys that metadata proves for these rows.

If at least `rows` rows have a key as good as t, no row with a worse key is among the first `rows`. So the scans below
have to give only the rows with a key as good as t, ties included. A key may be a function of a column that keeps order,
such as `to_date(ts)`: rows whose values are as good as t have keys as good as those of t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pruning.keys.summary import values_at_least, values_at_most
from pruning.query.benefit import Benefit
from pruning.query.edges import if_ordered
from pruning.query.join_graph import JoinGraph
from pruning.query.key_functions import KeyPath, key_path
from pruning.query.lineage import ProbeColumn, computed, trace_key
from pruning.query.plan import (
    Expression,
    Filter,
    Join,
    Limit,
    Node,
    Passthrough,
    PlanNames,
    Project,
    RankLimit,
    Relation,
    Sort,
    SortKey,
    Union,
    conjuncts_at,
    is_field,
)
from pruning.reasons import Reason
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, Containers
from pruning.values.domain import Domain
from pruning.values.encoding import GREATEST, LEAST, Codes, merged_ranks
from pruning.values.ranges import BoolArray, Intervals, RangeSet
from pruning.values.types import ValueType


@dataclass(frozen=True, slots=True)
class TopK:
    """The first `rows` rows of `node` by an order with first key `sort_key`; rows that tie with the last may follow.

    - `id`: the id of the limit; `rows` includes the rows that an offset leaves out
    - `probes`: scan columns that may be filtered, to values as good as the key of the last row; `stops` says where the
      walk from the key down to scans ended
    - `proving`: scan columns that prove keys: each row of the scan with a value gives `node` a row with that key
    """

    id: int
    node: Node
    rows: int
    sort_key: SortKey
    probes: tuple[ProbeColumn, ...] = ()
    stops: tuple[Reason, ...] = ()
    proving: tuple[ProbeColumn, ...] = ()

    @staticmethod
    def of(id_: int, node: Node, rows: int, sort_key: SortKey, raises: str = "") -> TopK:
        """The top-k of a limit, with the scan columns to which its key leads down.

        `raises` is an expression between the limit and `node` that may raise on rows that the limit drops.
        """
        path = key_path(sort_key.key)
        if path is None:
            return TopK(id_, node, rows, sort_key, stops=(computed(sort_key.key),))
        found = [if_ordered(each) for each in trace_key(node, path, equivalence=True, raises=raises)]
        probes = tuple(each for each in found if isinstance(each, ProbeColumn))
        stops = tuple(each for each in found if isinstance(each, Reason))
        proving = (each for each in _proving(node, path) if all(it.maps_ranges for it in each.functions))
        return TopK(id_, node, rows, sort_key, probes, stops, tuple(proving))

    @property
    def type(self) -> ValueType | None:
        """The type of the keys; None for types that are not pruned by."""
        path = key_path(self.sort_key.key)
        return None if path is None else path.type

    def no_later_than(self, keys: Domain) -> Domain:
        """Every value that comes no later than one of `keys`.

        >>> from pruning.values.types import ValueType
        >>> day = Expression("AttributeReference", (), 1, "int", "day")
        >>> newest = SortKey(day, is_descending=True, nulls_first=False)
        >>> print(TopK.of(2, Relation(0, 0, "", (1,)), 3, newest).no_later_than(Domain.of(ValueType("int"), 7, 9)))
        {[7, ...)}
        """
        wider = values_at_least(keys) if self.sort_key.is_descending else values_at_most(keys)
        return Domain(wider.ranges, self.sort_key.nulls_first, wider.nan)

    def described(self, names: PlanNames) -> str:
        """The name of the top-k for messages."""
        return (
            f"top {self.rows:,} by {names.expression(self.sort_key.key)}{' descending' * self.sort_key.is_descending}"
        )


@dataclass(frozen=True, slots=True)
class TopFilter:
    """The outcome for a scan below a `TopK`: the seconds that its filter costs and saves, or the reason against one."""

    top: TopK
    probe: ProbeColumn | None
    found: Benefit | Reason


def top_ks(graph: JoinGraph) -> Iterator[TopK]:
    """Every limit of a plan, and of the plans of its subqueries, that takes the first rows of an order."""
    for each in _top_ks(graph.root):
        probes, reasons = graph.equal.sound_probes(each.probes)
        yield replace(each, probes=probes, stops=(*each.stops, *reasons)) if reasons else each


def _top_ks(root: Node) -> Iterator[TopK]:
    for node in root.walk():
        match node:
            case Limit(kind="GlobalLimit"):
                yield from _below_limit(node)
            case RankLimit(count=int(count), order=(sort_key, *_)) if count and node.is_deterministic:
                yield TopK.of(node.id, node.children[0], count, sort_key, node.may_raise)
            case _:
                pass


def _below_limit(limit: Limit) -> Iterator[TopK]:
    """The top-k of a limit over a global sort, with only projections, local limits and offsets in between."""
    rows, node, raises = limit.count, limit.children[0], ""
    while rows:
        raises = raises or node.may_raise
        match node:
            case Sort(is_global=True, order=(sort_key, *_)) if node.is_deterministic:
                yield TopK.of(limit.id, node.children[0], rows, sort_key, raises)
                return
            case Limit(kind="Offset", count=int(skipped)):
                rows += skipped
            case Limit(kind="LocalLimit") | Project():
                pass
            case _:
                return
        node = node.children[0]


def _proving(node: Node, path: KeyPath) -> Iterator[ProbeColumn]:
    column = path.column
    match node:
        case Relation() if is_field(column):
            # Writers differ in whether a NULL struct counts for its fields, so that rows with a value are not counted.
            return
        case Relation():
            yield ProbeColumn(node, column, functions=path.functions)
        case Passthrough():
            yield from _proving(node.children[0], path)
        case Project() | Filter() if not node.is_deterministic:
            return
        case Project(made=made) if made is not None and column in made:
            if (below := key_path(made[column])) is not None:
                functions = (*below.functions, *path.functions)
                yield from _proving(node.children[0], replace(below, functions=functions))
        case Filter(condition=condition) if all(_is_present(part, column) for _, part in conjuncts_at(condition)):
            yield from _proving(node.children[0], path)
        case Union():
            for child in node.children:
                yield from _proving(child, replace(path, column=child.output[node.output.index(column)]))
        case Join():
            # Each row of such a side reaches the order, whatever the other side has.
            having = [(side, rules) for side, rules in node.sides if column in side.output]
            if len(having) == 1 and having[0][1].keeps_every_row:
                yield from _proving(having[0][0], path)
        case _:
            return


def _is_present(part: Expression, column: int) -> bool:
    """True if a condition is just `column IS NOT NULL`."""
    return part.kind == "IsNotNull" and part.children[0].column == column


def topk_threshold(top: TopK, containers: Containers, name: str) -> Domain | None:
    """The keys as good as a threshold that at least `top.rows` rows reach by their bounds; None if there is none.

    If a container has n rows, d with NULL and g marked as deleted, at least n - d - g have a key no worse than the
    worse bound. NULLs that come first are not counted, which only makes the threshold weaker.
    """
    column = containers.columns.get(name)
    if column is None:
        return None
    (lows, highs), known = _ends(column)
    known &= (column.null_count != UNKNOWN) & (containers.rows != UNKNOWN)
    if not top.sort_key.is_descending:
        # NaN comes after all numbers, and no bound holds it.
        known &= ~column.may_have_nan
    present = np.where(known, containers.rows - column.null_count, 0)
    gone = np.zeros_like(present) if containers.deleted is None else containers.deleted
    sure = np.where(gone < present, present - gone, 0)
    order = np.argsort(lows, kind="stable")[::-1] if top.sort_key.is_descending else np.argsort(highs, kind="stable")
    order = order[sure[order] > 0]
    enough = np.flatnonzero(np.cumsum(np.minimum(sure[order], top.rows)) >= top.rows)
    if not len(enough):
        return None
    return _from_end(top, column, column.lows if top.sort_key.is_descending else column.highs, int(order[enough[0]]))


def without_absent(domain: Domain, containers: Containers, name: str) -> Domain:
    """The domain without NULL and NaN if no container holds any."""
    column = containers.columns.get(name)
    if column is None:
        return domain
    some = containers.rows != 0
    null = domain.null and bool((some & (column.null_count != 0)).any())
    nan = domain.nan and bool((some & column.may_have_nan).any())
    return Domain(domain.ranges, null, nan)


def _from_end(top: TopK, column: ColumnStatistics, bounds: Codes, index: int) -> Domain:
    return top.no_later_than(Domain(RangeSet.of_codes(column.type, bounds.take(np.array([index])))))


def _ends(column: ColumnStatistics) -> tuple[Intervals, BoolArray]:
    """The bounds as order-preserving integers, and the containers where both are known and in order."""
    # Bounds of bytes have no order against an empty range set, so both are ranked together below.
    _, _, known = column.against(RangeSet.none(column.type))
    lows, highs = merged_ranks(column.lows, column.highs)
    return (np.where(known, lows, LEAST), np.where(known, highs, GREATEST)), known
