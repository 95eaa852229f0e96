"""`JoinGraph`: which keys of a query may filter which scans, and why others may not.

edge: probe key = build key. The build side's keys thin the probe side's rows before the join throws them away:

    A join B = (A semijoin B) join B

Of probe key >= build key, or <=, it is the least or the greatest key that does. A filter that compares with a subquery
of one row is a join with that row.

Comparisons of a filter with a subquery of one row: column >= (SELECT min(day) FROM ...).

They are joins with a build of one row, written another way.

Equalities of one join whose keys filter one scan together: a row needs one partner that fulfils all of them.

Each key for itself lets rows pass whose values come from different rows of the build.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from pruning.keys.summary import COMPARISONS, Bound, KeySummary
from pruning.options import PruningOptions
from pruning.query.expressions import probed_column
from pruning.query.lineage import LEFT_NEEDS_MATCH, RIGHT_NEEDS_MATCH, ProbeColumn, partners, stop, trace
from pruning.query.plan import (
    Expression,
    Filter,
    Grouping,
    Join,
    Node,
    Passthrough,
    PlanNames,
    Project,
    Relation,
    conjuncts_at,
    relations_of,
)
from pruning.reasons import Reason, ReasonCode


@dataclass(frozen=True, slots=True)
class BuildSide:
    """Rows whose values of `key` hold every value that a probe key may match; with a `bound`, one on that side of it.

    `path` leads to `key` in the condition of `join`, where it is no plain column. Keys of an equality
    that is `null_safe` are of use only where none of them is NULL: those that hold one match rows without a value.
    """

    node: Node
    key: Expression
    join: Join | Filter
    path: tuple[int, ...]
    null_safe: bool = False
    bound: Bound | None = None

    @property
    def id(self) -> tuple[int, str]:
        """Equal for two build sides that let the same values pass.

        A column goes by its id, since names repeat, all else by its place.
        """
        column = self.key.column
        place = f"#{column}" if column is not None else "/".join(map(str, (self.join.at, *self.path)))
        kind = "" if self.bound is None else f" {self.bound.value}"
        return self.node.at, f"{place}{kind}{'?' if self.null_safe else ''}"

    @property
    def is_widened_bound(self) -> bool:
        """True for a bound in a wider type than that of the columns it is made from.

        Statistics of these would end it where their own type does.
        """
        return self.bound is not None and self.key.column is None

    @property
    def is_one_row(self) -> bool:
        """True for the subquery of a filter."""
        return isinstance(self.join, Filter)

    def described(self, names: PlanNames) -> str:
        """Its key, and on which side of it values may match."""
        return self.worded(names.expression(self.key))

    def worded(self, key: str) -> str:
        """What people call its key, with the side of it on which values may match."""
        return key if self.bound is None else f"{self.bound.value} {key}"


@dataclass(frozen=True, slots=True)
class Edge:
    """One comparison of a join, in the direction from build to probe.

    `probes` are the scans that the walk from the probe side reached, `stops` why it went no further elsewhere.
    """

    join: Join | Filter
    build_side: BuildSide
    probe: Node
    probe_key: Expression
    probes: tuple[ProbeColumn, ...]
    stops: tuple[Reason, ...]

    @property
    def type(self) -> str:
        """The type of its join, `Scalar` for a filter by a subquery."""
        return self.join.type if isinstance(self.join, Join) else "Scalar"


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """Every edge of a query, and the comparisons that are none."""

    root: Node
    edges: tuple[Edge, ...]
    refusals: tuple[Reason, ...]

    @staticmethod
    def of(root: Node, *, equivalence: bool = True) -> JoinGraph:
        """The graph of a plan and of the plans of its subqueries.

        Without `equivalence` keys reach only what the probe key itself leads down to, no column that is equal to it
        by a further join: what that leaves out is what global equivalence gains.
        """
        edges: list[Edge] = []
        refusals: list[Reason] = []
        for node in root.walk():
            match node:
                case Join():
                    found, refused = _edges(node, equivalence=equivalence)
                case Filter():
                    found, refused = _scalar_edges(node, equivalence=equivalence)
                case _:
                    continue
            edges += found
            refusals += refused
        return JoinGraph(root, tuple(edges), tuple(refusals))

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The leaves that read tables, in the order of the plan."""
        return relations_of(self.root)

    def __str__(self) -> str:
        """The scans, then a line for each edge (what it filters, and by what keys), then what is no edge."""
        names = PlanNames(self.root)
        lines = [f"scan {names.scans[each.at]}" for each in self.relations]
        lines += [_edge_line(each, names) for each in self.edges]
        lines += [f"no edge: {each}" for each in self.refusals]
        return "\n".join(lines)


def fallback_build_sides(build_side: BuildSide) -> tuple[BuildSide, ...]:
    """Key sets that each hold that of `build_side` and come from fewer tables: those that its first join puts together.

    None of a `null_safe` build side: an outer join may add a NULL that no table holds. None of a scalar subquery.
    """
    if build_side.null_safe or build_side.is_one_row:
        return ()
    node, column = build_side.node, build_side.key.column
    while column is not None:
        match node:
            case Passthrough() | Filter():
                node = node.children[0]
            case Project(made=made) if made is not None:
                expression = made.get(column)
                column = None if expression is None else expression.column
                node = node.children[0]
            case Grouping(groups=groups) if groups is not None:
                expression = groups.get(column)
                column = None if expression is None else expression.column
                node = node.children[0]
            case Join():
                return tuple(_join_sources(node, column, build_side))
            case _:
                return ()
    return ()


def _join_sources(join: Join, column: int, build_side: BuildSide) -> Iterator[BuildSide]:
    equal = {column}
    # A column of the other side holds every value of this one only where a row has to have a partner there.
    if join.type in {"Inner", "LeftSemi"}:
        equal |= set(partners(join, column))
    for side in join.children:
        for each in sorted(equal & set(side.output)):
            key = Expression("AttributeReference", (), each, build_side.key.type, build_side.key.text)
            yield BuildSide(side, key, build_side.join, (), bound=build_side.bound)


def _edges(join: Join, *, equivalence: bool) -> tuple[list[Edge], list[Reason]]:
    edges: list[Edge] = []
    refusals: list[Reason] = []
    for path, part in conjuncts_at(join.condition):
        sides = _sides(join, part)
        if sides is None:
            if _is_null_aware(join, part):
                refusals.append(stop(join, ReasonCode.NULL_AWARE, str(part)))
            continue
        left, right = sides
        for build, probe, needs_match in ((right, left, LEFT_NEEDS_MATCH), (left, right, RIGHT_NEEDS_MATCH)):
            if join.type not in needs_match:
                refusals.append(stop(join, ReasonCode.OUTER_SIDE, str(part)))
            elif not join.is_deterministic:
                refusals.append(stop(join, ReasonCode.NONDETERMINISTIC, str(part)))
            else:
                build_side = _source(join, part, path, build, COMPARISONS[part.kind][probe])
                probe_side = join.right if build_side.node is join.left else join.left
                edges.append(_edge(build_side, probe_side, part.children[probe], equivalence=equivalence))
    return edges, refusals


def _scalar_edges(filter_: Filter, *, equivalence: bool) -> tuple[list[Edge], list[Reason]]:
    edges: list[Edge] = []
    refusals: list[Reason] = []
    for each in scalars_of(filter_):
        if each.null_safe:
            refusals.append(stop(filter_, ReasonCode.NULL_AWARE, str(each.part)))
        elif not filter_.is_deterministic:
            refusals.append(stop(filter_, ReasonCode.NONDETERMINISTIC, str(each.part)))
        else:
            build_side = BuildSide(each.node, each.key, filter_, (), bound=each.bound)
            edges.append(_edge(build_side, filter_.children[0], each.probe, equivalence=equivalence))
    return edges, refusals


def _sides(join: Join, part: Expression) -> tuple[int, int] | None:
    """Which child of a comparison is of the left and which of the right side; None for other conditions."""
    if part.kind not in COMPARISONS:
        return None
    left, right = set(join.left.output), set(join.right.output)
    first, second = (each.columns for each in part.children)
    if first and second and first <= left and second <= right:
        return 0, 1
    return (1, 0) if first and second and first <= right and second <= left else None


def _is_null_aware(join: Join, part: Expression) -> bool:
    """True for an equality that holds where it is NULL, too, as NOT IN asks for."""
    if part.kind != "Or":
        return False
    return any(
        _sides(join, equality) is not None and other == Expression("IsNull", (equality,))
        for equality, other in (part.children, part.children[::-1])
    )


def _source(join: Join, part: Expression, path: tuple[int, ...], build: int, bound: Bound | None) -> BuildSide:
    """`build` is the place of its key in the comparison."""
    key = part.children[build]
    side = join.left if key.columns <= set(join.left.output) else join.right
    return BuildSide(side, key, join, (*path, build), part.kind == "EqualNullSafe", bound)


def _edge(build_side: BuildSide, probe_side: Node, probe_key: Expression, *, equivalence: bool) -> Edge:
    column = probed_column(probe_key)
    if column is None:
        found: list[ProbeColumn | Reason] = [stop(build_side.join, ReasonCode.COMPUTED, str(probe_key))]
    else:
        found = list(trace(probe_side, column, equivalence=equivalence))
    probes = tuple(each for each in found if isinstance(each, ProbeColumn))
    stops = tuple(each for each in found if isinstance(each, Reason))
    return Edge(build_side.join, build_side, probe_side, probe_key, probes, stops)


def _edge_line(edge: Edge, names: PlanNames) -> str:
    probes = [names.column(each.column) for each in edge.probes]
    reached = [*probes, *(f"({each})" for each in edge.stops)]
    keys, probe = edge.build_side.described(names), names.expression(edge.probe_key)
    return f"{edge.type} join: {probe} by {keys} -> {', '.join(reached)}"


_SUBQUERY = "ScalarSubquery"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One such comparison: the rows of `node` have the value as their `key`, and `probe` is compared with it.

    Keys of one that is `null_safe` do not tell which rows match: a subquery without a row is NULL, too.
    """

    part: Expression
    probe: Expression
    node: Node
    key: Expression
    bound: Bound | None

    @property
    def null_safe(self) -> bool:
        """True for an equality that matches NULL."""
        return self.part.kind == "EqualNullSafe"


def scalars_of(filter_: Filter) -> Iterator[Scalar]:
    """The comparisons of which one side is a subquery, or a field of one that holds the values of several."""
    plans = _plans(filter_)
    for _, part in conjuncts_at(filter_.condition):
        if part.kind not in COMPARISONS:
            continue
        for build, probe in ((0, 1), (1, 0)):
            found = _value(part.children[build], plans)
            if found is not None and part.children[probe].columns:
                yield Scalar(part, part.children[probe], *found, COMPARISONS[part.kind][probe])


def _plans(filter_: Filter) -> dict[int, Node]:
    """The plan of each scalar subquery, by the identity of its expression; none where others have plans, too."""
    found = [] if filter_.condition is None else list(_subqueries(filter_.condition))
    if len(found) != len(filter_.subqueries):
        return {}
    return {id(each): plan for each, plan in zip(found, filter_.subqueries, strict=True)}


def _subqueries(expression: Expression) -> Iterator[Expression]:
    """In the order of the plans of a node: those of its parts first."""
    for child in expression.children:
        yield from _subqueries(child)
    if expression.kind == _SUBQUERY:
        yield expression


def _value(expression: Expression, plans: dict[int, Node]) -> tuple[Node, Expression] | None:
    """The rows and the key behind a subquery, or behind a field of its one struct."""
    if expression.kind == _SUBQUERY:
        plan = plans.get(id(expression))
        return None if plan is None else (plan, Expression("AttributeReference", (), plan.output[0], "", "value"))
    if expression.kind != "GetStructField" or expression.children[0].kind != _SUBQUERY:
        return None
    plan = plans.get(id(expression.children[0]))
    if not isinstance(plan, Project) or plan.made is None or not plan.is_deterministic or not expression.text:
        return None
    made = plan.made[plan.output[0]]
    # Names and values take turns.
    field = made.children[2 * int(expression.text) + 1] if made.kind == "CreateNamedStruct" else made
    return (plan.children[0], field) if field.column is not None and field is not made else None


_SEVERAL = 2


@dataclass(frozen=True, slots=True)
class KeyTuple:
    """Columns of the rows of a build, and those of a scan that hold the same in every row that finds a partner.

    `name` is that of the keys, for people.
    """

    build: tuple[int, ...]
    probe: tuple[int, ...]
    name: str


def key_tuple(graph: JoinGraph, build_side: BuildSide, relation: Relation) -> KeyTuple | None:
    """The columns by which the join of a build side compares its rows with a scan; None if there is only one.

    Both are columns as they are: rows of a build hold nothing that the join would compute of them.
    """
    pairs: dict[int, int] = {}
    names: list[str] = []
    for edge in graph.edges:
        if edge.join.at != build_side.join.at or not _is_plain(edge, build_side):
            continue
        found = next((each.column for each in edge.probes if each.relation.at == relation.at), None)
        key = edge.build_side.key.column
        if found is not None and key is not None and found not in pairs.values() and key not in pairs:
            pairs[key] = found
            names.append(str(edge.build_side.key))
    return KeyTuple(tuple(pairs), tuple(pairs.values()), ", ".join(names)) if len(pairs) >= _SEVERAL else None


def says_more(keys: KeySummary, options: PruningOptions) -> bool:
    """Whether the rows of keys leave out, of all combinations of their values, as much as a test of rows has to."""
    counts = [each.ranges.point_count() for each in keys.domains]
    every = prod(each for each in counts if each is not None)
    return keys.distinct is not None and None not in counts and keys.distinct <= (1 - options.min_filter_ratio) * every


def _is_plain(edge: Edge, build_side: BuildSide) -> bool:
    own = edge.build_side
    is_equality = own.bound is None and not own.null_safe and not own.is_one_row
    return is_equality and own.node.at == build_side.node.at and own.key.column in build_side.node.output
