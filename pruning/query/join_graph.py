"""`JoinGraph`: the scans of a query that the keys of each join may filter, and the reasons against the others.

    A join B = (A semijoin B) join B

An edge leads from the build side of one comparison to the scans whose rows it filters before the join drops them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from pruning.keys.summary import COMPARISONS, KeySummary
from pruning.query.calendar_keys import CalendarKey, calendar_keys
from pruning.query.disjunctions import Disjunction, disjunctions_of
from pruning.query.edges import Edge, RefusedComparison, build_side_of, edge_to
from pruning.query.equal_columns import EqualColumns
from pruning.query.join_condition import BuildSide, JoinCondition, scalar_subqueries, scalars_of, sides_of
from pruning.query.lineage import computed, stop
from pruning.query.plan import (
    Expression,
    Filter,
    Join,
    Node,
    Passthrough,
    PlanNames,
    Project,
    Relation,
    conjuncts_at,
    is_field,
    relations_of,
)
from pruning.reasons import Reason, ReasonCode


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """Every edge of a query, the comparisons that are not edges, and the columns that are equal.

    The keys of no edge of `disjunctions` filter a scan by themselves.
    """

    root: Node
    edges: tuple[Edge, ...]
    refused: tuple[RefusedComparison, ...]
    equal: EqualColumns
    disjunctions: tuple[Disjunction, ...] = ()

    @staticmethod
    def of(root: Node, *, equivalence: bool = True, by_file: bool = False) -> JoinGraph:
        """The graph of a plan and of the plans of its subqueries.

        Without `equivalence` keys reach only the scans of the probe key itself, no column that a further join sets
        equal to it. The difference between both graphs is the gain of equivalence. With `by_file` a scan gets a list
        of files, and no condition that Spark could move or copy to an expression that may raise.
        """
        edges: list[Edge] = []
        refused: list[RefusedComparison] = []
        filters = [] if by_file else [node for node in root.walk() if isinstance(node, Filter)]
        disjunctions = [found for each in filters for found in disjunctions_of(each, equivalence=equivalence)]
        marking = frozenset[int]().union(*(each.joins for each in disjunctions))
        refused += [each.refused for each in disjunctions if each.refused is not None]
        disjunctions = [each for each in disjunctions if each.keyless is None]
        for node in root.walk():
            match node:
                case Join():
                    found, others = _edges(node, equivalence=equivalence)
                    others = [each for each in others if node.id not in marking or each.probe is not node.left]
                case Filter():
                    found, others = _scalar_edges(node, equivalence=equivalence)
                case _:
                    continue
            edges += found
            refused += others
        equal = EqualColumns.of(root)
        sound = edges if by_file else [_with_sound_probes(each, equal) for each in edges]
        sound_operands = (
            each.with_edges([_with_sound_probes(edge, equal) for edge in each.edges]) for each in disjunctions
        )
        return JoinGraph(root, tuple(sound), tuple(refused), equal, tuple(sound_operands))

    @property
    def refusals(self) -> tuple[Reason, ...]:
        """The reasons against the comparisons that are not edges."""
        return tuple(each.reason for each in self.refused)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The leaves that read tables, in the order of the plan."""
        return relations_of(self.root)

    def against(self, relation: Relation) -> tuple[Reason, ...]:
        """The reasons why comparisons above a scan do not lead to it."""
        refused = [each.reason for each in self.refused if each.probe.contains(relation.id)]
        operands = (edge for each in self.disjunctions for edge in each.edges)
        edges = (each for each in (*self.edges, *operands) if each.probe.contains(relation.id))
        missing = (each for each in edges if all(probe.relation.id != relation.id for probe in each.probes))
        return tuple(dict.fromkeys([*refused, *(stop for each in missing for stop in each.stops)]))

    def towards(self, probed: Collection[int]) -> JoinGraph:
        """The edges whose keys may filter a scan in `probed`, by `Relation.id`, and only such scans."""
        edges = (
            replace(each, probes=tuple(probe for probe in each.probes if probe.relation.id in probed))
            for each in self.edges
        )
        return replace(self, edges=tuple(each for each in edges if each.probes))

    def __str__(self) -> str:
        """The text of the graph: the scans, a line for each edge with its probes and build key, then the refusals."""
        names = PlanNames(self.root)
        lines = [f"scan {names.scans[each.id]}" for each in self.relations]
        lines += [_edge_line(each, names) for each in self.edges]
        lines += [f"no edge: {each}" for each in self.refusals]
        return "\n".join(lines)


def _edges(join: Join, *, equivalence: bool) -> tuple[list[Edge], list[RefusedComparison]]:
    edges: list[Edge] = []
    refused: list[RefusedComparison] = []
    calendars = [[*calendar_keys(join, left_is_probe=is_left)] for is_left in (True, False)]
    in_dates = {part for several in calendars for each in several for part in each.parts}
    for path, part in conjuncts_at(join.condition):
        sides = sides_of(join, part)
        if sides is None:
            found = _null_aware_edge(join, part, path, equivalence=equivalence)
            if isinstance(found, Edge):
                edges.append(found)
                refused.append(RefusedComparison(join.left, stop(join, ReasonCode.OUTER_SIDE, str(part))))
            elif found is not None:
                refused.append(RefusedComparison(join, found))
            continue
        left, right = sides
        of_left, of_right = join.sides
        for build, probe, (probe_side, rules) in ((right, left, of_left), (left, right, of_right)):
            if not rules.needs_match:
                refused.append(RefusedComparison(probe_side, stop(join, ReasonCode.OUTER_SIDE, str(part))))
            elif not join.is_deterministic:
                refused.append(RefusedComparison(probe_side, stop(join, ReasonCode.NONDETERMINISTIC, str(part))))
            elif part.children[probe] not in in_dates:
                build_side = build_side_of(join, part, path, build, COMPARISONS[part.kind][probe])
                edges.append(edge_to(build_side, probe_side, part.children[probe], equivalence=equivalence))
    return [*edges, *_calendar_edges(join, calendars, equivalence=equivalence)], refused


def _calendar_edges(join: Join, calendars: Sequence[Sequence[CalendarKey]], *, equivalence: bool) -> Iterator[Edge]:
    """The edges by the months or days of which a join compares the parts, towards the left side and the right."""
    for at, (probe_side, rules) in enumerate(join.sides):
        if rules.needs_match and join.is_deterministic:
            for each in calendars[at]:
                build_side = BuildSide(join.children[1 - at], each.build, JoinCondition(join, each.path))
                yield edge_to(build_side, probe_side, each.probe, equivalence=equivalence)


def _scalar_edges(filter_: Filter, *, equivalence: bool) -> tuple[list[Edge], list[RefusedComparison]]:
    edges: list[Edge] = []
    refused: list[RefusedComparison] = []
    found: set[Expression] = set()
    child = filter_.children[0]
    for part, probe_key, build_side in scalars_of(filter_):
        found.add(part)
        if build_side.condition.null_safe:
            # A subquery without a row is also NULL, and no key shows that.
            refused.append(RefusedComparison(child, stop(filter_, ReasonCode.NULL_AWARE, str(part))))
        elif not filter_.is_deterministic:
            refused.append(RefusedComparison(child, stop(filter_, ReasonCode.NONDETERMINISTIC, str(part))))
        else:
            edges.append(edge_to(build_side, child, probe_key, equivalence=equivalence))
    for _, part in conjuncts_at(filter_.condition):
        if part.kind in COMPARISONS and part.columns and part not in found and any(scalar_subqueries(part)):
            refused.append(RefusedComparison(child, computed(part)))
    return edges, refused


def _null_aware_edge(join: Join, part: Expression, path: tuple[int, ...], *, equivalence: bool) -> Edge | Reason | None:
    """The edge of a null-aware equality, which also matches where it is NULL, as in NOT IN; None for other conditions.

    The rows of the left side of NOT IN filter the right side, if neither has a NULL. It leads to scans of which each
    row is one of the right side, so that statistics tell of NULL there.
    """
    if part.kind != "Or":
        return None
    for at, other in ((0, 1), (1, 0)):
        equality = part.children[at]
        sides = sides_of(join, equality)
        if sides is None or part.children[other] != Expression("IsNull", (equality,)):
            continue
        if join.type != "LeftAnti" or not join.is_deterministic or equality.kind != "EqualTo":
            return stop(join, ReasonCode.NULL_AWARE, str(part))
        left, right = sides
        condition = JoinCondition(join, (*path, at, left), null_aware=True)
        build_side = BuildSide(join.left, equality.children[left], condition)
        edge = edge_to(build_side, join.right, equality.children[right], equivalence=equivalence)
        probes = tuple(
            each for each in edge.probes if not each.functions and _gives_all_rows_of(each.relation, join.right)
        )
        return replace(edge, probes=probes) if probes else stop(join, ReasonCode.NULL_AWARE, str(part))
    return None


def _gives_all_rows_of(relation: Relation, node: Node) -> bool:
    """True where every row of a node is a row of a scan, so that it has no NULL which the scan has not."""
    while isinstance(node, Filter | Passthrough | Project):
        node = node.children[0]
    return node.id == relation.id


def _with_sound_probes(edge: Edge, equal: EqualColumns) -> Edge:
    """The edge without columns whose filters Spark copies to an expression that may raise."""
    probes, reasons = equal.sound_probes(edge.probes)
    return replace(edge, probes=probes, stops=(*edge.stops, *reasons)) if reasons else edge


def _edge_line(edge: Edge, names: PlanNames) -> str:
    probes = [names.column(each.column) for each in edge.probes]
    reached = [*probes, *(f"({each})" for each in edge.stops)]
    keys, probe = edge.build_side.described(names), names.expression(edge.probe_key)
    return f"{edge.type} join: {probe} by {keys} -> {', '.join(reached)}"


_SEVERAL = 2


@dataclass(frozen=True, slots=True)
class KeyTuple:
    """Columns of a build's rows, and the columns of a scan that are equal to them in every row with a partner.

    `name` describes the keys in messages.
    """

    build: tuple[int, ...]
    probe: tuple[int, ...]
    name: str


def key_tuple(graph: JoinGraph, build_side: BuildSide, relation: Relation) -> KeyTuple | None:
    """The columns by which the join of a build side compares its rows with a scan; None if there is only one.

    Computed keys are left out: the rows of a build hold only its columns.
    """
    pairs: dict[int, int] = {}
    names: list[str] = []
    every = PlanNames(graph.root)
    for edge in graph.edges:
        if edge.join.id != build_side.join.id or not _is_plain(edge, build_side):
            continue
        plain = (each for each in edge.probes if not each.functions)
        found = next((each.column for each in plain if each.relation.id == relation.id), None)
        key = edge.build_side.key.column
        is_new = key is not None and not is_field(key) and key not in pairs
        if found is not None and key is not None and is_new and found not in pairs.values():
            pairs[key] = found
            names.append(every.expression(edge.build_side.key))
    return KeyTuple(tuple(pairs), tuple(pairs.values()), ", ".join(names)) if len(pairs) >= _SEVERAL else None


def combined_share(keys: KeySummary) -> float:
    """The share of all combinations of the values of several columns that are keys; 1 if they are not counted.

    As many of the rows that pass each column alone are expected to pass all of them together.
    """
    counts = [each.ranges.point_count() for each in keys.domains]
    every = prod(each for each in counts if each is not None)
    return min(1.0, keys.distinct / every) if keys.distinct is not None and None not in counts and every else 1.0


def _is_plain(edge: Edge, build_side: BuildSide) -> bool:
    own = edge.build_side
    return own.condition.is_equality and own.node.id == build_side.node.id and own.key.column in build_side.node.output
