"""`BuildSelection`: the build sides that may be run for each scan: sound ones that may leave out keys.

Soundness is decided here, and that a scan is not too small to be planned anew; other worth in `filter_choice.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from pruning.cost.estimate import short
from pruning.cost.rates import NANOSECONDS
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.benefit import Benefits, are_ranges
from pruning.query.disjunctions import Disjunction
from pruning.query.edges import Edge
from pruning.query.effects import effect_beside, effects
from pruning.query.exchanges import between
from pruning.query.expressions import static_domains
from pruning.query.join_condition import BuildSide, fallback_build_sides
from pruning.query.join_graph import JoinGraph
from pruning.query.key_origins import conditions_of, origins_of
from pruning.query.lessons import NO_LESSON, Attempt, Lesson
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Filter, Grouping, Join, Node, Relation, conjuncts_at
from pruning.query.plan_statistics import QueryFacts, Sizes
from pruning.reasons import Reason, ReasonCode, size
from pruning.values.functions import functions_sql

# Operators whose result is the same whenever they run on the same rows.
_REPEATABLE = frozenset(
    {
        "Aggregate",
        "Expand",
        "Filter",
        "Generate",
        "Join",
        "LocalRelation",
        "LogicalRDD",
        "LogicalRelation",
        "OneRowRelation",
        "Project",
        "Range",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "Sort",
        "SubqueryAlias",
        "Union",
        "Window",
        "WindowGroupLimit",
    }
)
# Cached rows may be lost, and then made again from tables that have changed.
_CACHED = "InMemoryRelation"
# Operators that may give other rows in each run, and can be run apart from the query.
_RUN_ONCE = frozenset(
    {
        "ArrowEvalPython",
        "BatchEvalPython",
        "FlatMapGroupsInArrow",
        "FlatMapGroupsInPandas",
        "GlobalLimit",
        "LocalLimit",
        "MapInArrow",
        "MapInPandas",
        "Offset",
        "Sample",
        _CACHED,
    }
)
# Reasons that hold for the parts of a build side, too, which give more keys.
_OF_PARTS = frozenset({ReasonCode.UNSELECTIVE_BUILD, ReasonCode.IDLE_BEFORE})
# The keys of such rows; the beginning of a message.
NEEDS_ROWS = "they count only if the query joins the rows of the build"


@dataclass(frozen=True, slots=True)
class RefusedBuild:
    """A build side that is not run, and why."""

    build_side: BuildSide
    reason: Reason


@dataclass(frozen=True, slots=True)
class _BuildTraits:
    """A plan that may be run: the bytes it reads, and whether it may give fewer keys than its tables hold.

    - `unrepeatable`: the kind of a node that may give the query other rows than it gave a build, and cannot be run
      apart, or is run by Spark once for several places
    - `needs_rows`: a later run may give other rows
    - `runs_once`: it must not run a second time, for what its functions do
    """

    size: int
    unrepeatable: str | None
    leaves_out: bool
    needs_rows: bool
    runs_once: bool


@dataclass(frozen=True, slots=True)
class BuildSelection:
    """The rules of build selection over the sizes of one moment; each plan is examined once.

    Rules that depend on `sizes.statistics` may raise `Unanswered`, and are called by `with_answers()`; `why_unsound`,
    `why_no_filter`, `leaves_out`, `is_bounded`, `needs_rows`, `runs_once` and `bytes_read` depend on sizes alone.
    """

    sizes: Sizes
    options: PruningOptions
    edges: Sequence[Edge]
    root: Node
    benefits: Benefits
    equal: Collection[int] = ()
    effects: Sequence[Node] = ()
    disjunctions: Sequence[Disjunction] = ()
    partitions: Collection[int] = ()
    lesson: Lesson = NO_LESSON
    _traits: dict[int, _BuildTraits] = field(default_factory=dict)
    _raising: dict[tuple[int, str], str] = field(default_factory=dict)

    @staticmethod
    def of(graph: JoinGraph, sizes: Sizes, options: PruningOptions, facts: QueryFacts | None = None) -> BuildSelection:
        """The rules for the edges of a query."""
        benefits = Benefits.of(sizes, options.limits, facts)
        several = {*(facts.equal if facts else ()), *_in_steps(graph.root)}
        beside = tuple(effects(graph.root))
        partitions = facts.partitions if facts else ()
        lesson = (facts.lesson if facts else None) or NO_LESSON
        of_query = (several, beside, graph.disjunctions, partitions, lesson)
        return BuildSelection(sizes, options, graph.edges, graph.root, benefits, *of_query)

    def why_unsound(self, probe: ProbeColumn) -> Reason | None:
        """The reason why no build may filter a scan; None if there is no such reason."""
        at, name = probe.relation.id, probe.name
        if at in self.sizes.materialized:
            return Reason(ReasonCode.READ_BY_BUILD, name)
        if at not in self.sizes.files:
            return self.sizes.refused.get(at) or Reason(ReasonCode.NOT_FILES, name)
        return self.why_cut_off(probe.relation, name, self._expected_to_run(at)) if self.effects else None

    def why_cut_off(self, relation: Relation, name: str, expected: Collection[int] = ()) -> Reason | None:
        """The reason why fewer rows of a scan may cut off what another part of the query does; None if there is none.

        `expected` are nodes that are to run in builds, beside those whose rows the query joins by now. Such a build may
        fail, so it is asked again, without them, when the scan is planned.
        """
        found = effect_beside(self.effects, relation.id, {*self.sizes.materialized, *expected})
        return None if found is None else Reason(ReasonCode.EFFECT_BESIDE, name, found.kind)

    def _expected_to_run(self, at: int) -> set[int]:
        """Nodes of builds beside scan `at` whose keys count only if the query joins their rows."""
        builds = {each.build_side.node.id: each.build_side.node for each in self.edges}.values()
        beside = ((each, self._traits_of(each)) for each in builds if not each.contains(at))
        to_run = (each for each, traits in beside if traits.runs_once and traits.leaves_out and not traits.unrepeatable)
        return {below.id for each in to_run for below in each.walk()}

    def why_no_filter(self, probe: ProbeColumn) -> Reason | None:
        """The reason against a filter of a scan by metadata alone; None if there is no such reason."""
        found = self.why_unsound(probe)
        scanned = self.sizes.scanned.get(probe.relation.id, 0)
        if found is not None or self.options.always:
            return found
        costs, cores = self.options.limits.costs, self.sizes.cores
        if scanned < costs.planned_bytes(cores):
            paid, saved = costs.planned_scan / NANOSECONDS, scanned * costs.most_reading / cores / NANOSECONDS
            detail = f"costs {short(paid)} s, saves about {short(saved)} s: the scan reads {size(scanned)}"
            return Reason(ReasonCode.NOT_WORTH, probe.name, detail)
        return None

    def sound(self, build_side: BuildSide, probe: ProbeColumn) -> Iterator[BuildSide | RefusedBuild]:
        """The build side if it may be run for a scan, else its fallbacks that may, else why not."""
        refused = self.why_unsound(probe)
        if refused is not None:
            yield RefusedBuild(build_side, refused)
            return
        refused = self._why_not_run(build_side, probe)
        if refused is None:
            yield build_side
            return
        parts = () if refused.code in _OF_PARTS else fallback_build_sides(build_side)
        if not parts:
            yield RefusedBuild(build_side, refused)
        for each in parts:
            yield from self.sound(each, probe)

    def why_not(self, build_side: BuildSide, probe: ProbeColumn) -> Reason | None:
        """The reason why a build side may not be run for a scan; None if it may."""
        return self.why_unsound(probe) or self._why_not_run(build_side, probe)

    def parts(self, build_side: BuildSide, probe: ProbeColumn) -> Iterator[BuildSide]:
        """The sound build sides below the joins of a build side: cheaper ones, whose keys let more rows pass."""
        for part in fallback_build_sides(build_side):
            if self._why_not_run(part, probe) is None:
                yield part
            yield from self.parts(part, probe)

    def bytes_read(self, build_side: BuildSide) -> int:
        """Bytes that a run of the build side reads."""
        return self._traits_of(build_side.node).size

    def may_skip(self, probe: ProbeColumn) -> bool:
        """False where the bounds of every container span the whole range of a probe column."""
        return self.sizes.statistics.unprunable_fraction(probe) < 1

    def needs_rows(self, build_side: BuildSide) -> bool:
        """True where a later run of a build side may give other rows than this one, or more that may raise an error."""
        return self._traits_of(build_side.node).needs_rows or bool(self._raises_above(build_side))

    def _raises_above(self, build_side: BuildSide) -> str:
        """The first expression that may raise for rows which the query reads and a build side has not; empty if none.

        Keys of a join further up may filter a scan of the build side. A later plan of the scan may test fewer of its
        rows, as other keys skip more. The join above drops these rows. Until then they lack the rows of the other side
        that the keys of the build side have left out.
        """
        if not self.sizes.highest:
            return ""
        if build_side.id not in self._raising:
            self._raising[build_side.id] = next(self._raising_above(build_side), "")
        return self._raising[build_side.id]

    def _raising_above(self, build_side: BuildSide) -> Iterator[str]:
        inside, own, highest = build_side.node, build_side.join.id, self.sizes.highest
        again = (at for at in highest if inside.contains(at) and at not in self.sizes.materialized)
        for at in again:
            path = (node for node, _ in between(self.root, at) if own < node.id <= highest[at])
            yield from (node.may_raise for node in path if node.may_raise)

    def runs_once(self, build_side: BuildSide) -> bool:
        """True where a build side must not run a second time, even if its first rows were too many to be joined."""
        return self._traits_of(build_side.node).runs_once

    def leaves_out(self, build_side: BuildSide) -> bool:
        """True where a build side may give fewer keys than its tables hold.

        A bound or a scalar narrows the probe column even if the build side keeps all rows of its tables.
        """
        return build_side.condition.is_narrowing or self._traits_of(build_side.node).leaves_out

    def is_bounded(self, build_side: BuildSide) -> bool:
        """True where statistics of files may bound the keys of a build side.

        Conditions that depend on NULL may meet those of an outer join, which no file holds, and bounds do not count the
        rows of a scalar subquery.
        """
        unbounded = build_side.condition.depends_on_null or build_side.is_widened_bound or build_side.may_raise
        if unbounded or not self._traits_of(build_side.node).leaves_out or self._raises_above(build_side):
            return False
        origins = {each.relation.id for each in origins_of(build_side.node, build_side.key)}
        return bool(origins) and origins <= set(self.sizes.files)

    def _why_not_run(self, build_side: BuildSide, probe: ProbeColumn) -> Reason | None:
        subject, traits = str(build_side.key), self._traits_of(build_side.node)
        unrepeatable = traits.unrepeatable or self._unrepeatable_in_key(build_side)
        if unrepeatable is not None:
            return Reason(ReasonCode.UNREPEATABLE_KEYS, subject, unrepeatable)
        if self.needs_rows(build_side) and self._is_inside_a_build(build_side.node):
            return Reason(ReasonCode.READ_BY_BUILD, subject)
        if self.needs_rows(build_side) and self.options.broadcast_strategy == BroadcastStrategy.NONE.name:
            return Reason(ReasonCode.UNREPEATABLE_KEYS, subject, f"{NEEDS_ROWS}, but joins are left as they are")
        if self.needs_rows(build_side) and not (self.options.always or self.benefits.may_fit(build_side.node)):
            return Reason(ReasonCode.UNREPEATABLE_KEYS, subject, f"{NEEDS_ROWS}, which are expected to be too many")
        if build_side.condition.null_aware and (column := self._column_with_nulls(build_side, probe)):
            return Reason(ReasonCode.NULL_AWARE, column, "statistics do not prove that the column has no NULL")
        if are_ranges(build_side, probe) and (missing := self._missing_bounds(probe)):
            return Reason(missing, functions_sql(probe.functions, probe.name))
        if not self.leaves_out(build_side) and self.benefits.cardinalities.most_partners(build_side, probe) >= 1.0:
            return Reason(ReasonCode.UNSELECTIVE_BUILD, subject)
        share = partial(self.benefits.passing, build_side, probe)
        if self.lesson.idle and self.lesson.leaves_out(Attempt.of(build_side, probe), share):
            return Reason(ReasonCode.IDLE_BEFORE, probe.name)
        return None

    def _missing_bounds(self, probe: ProbeColumn) -> ReasonCode | None:
        """The reason why ranges skip no container of a scan, as far as known; every sound filter may try."""
        return None if self.options.always else self.sizes.statistics.missing_bounds(probe)

    def _column_with_nulls(self, build_side: BuildSide, probe: ProbeColumn) -> str:
        """The first column, of the scan or of the keys, that may hold NULL as far as is known; empty if none may.

        The rows of a build tell of keys that come from no scan.
        """
        keys = ((each.relation, each.column, each.conditions) for each in origins_of(build_side.node, build_side.key))
        for relation, column, conditions in (
            (probe.relation, probe.column, conditions_of(self.root, probe.relation)),
            *keys,
        ):
            domain = static_domains(conditions).get(column)
            if (domain is None or domain.null) and self.sizes.statistics.may_have_nulls(relation, column):
                return relation.name_of(column)
        return ""

    def _is_inside_a_build(self, node: Node) -> bool:
        """True for a part of a build that has run, which may have read other rows than another run of the part."""
        return node.id in self.sizes.materialized and node.id not in self.sizes.rows

    def _unrepeatable_in_key(self, build_side: BuildSide) -> str | None:
        """The kind of a node by which the query may compute another key from the same rows.

        A computed key may hold a subquery of the join, which runs again even where the query joins the build's rows.
        """
        plans = build_side.join.subqueries if build_side.key.column is None else ()
        nodes = (node for plan in plans for node in plan.walk())
        return next((each.kind for each in nodes if not _is_repeatable(each, self.sizes)), None)

    def _traits_of(self, node: Node) -> _BuildTraits:
        if node.id not in self._traits:
            below = [self._traits_of(each) for each in (*node.children, *node.subqueries)]
            repeats = _is_repeatable(node, self.sizes)
            unrepeatable = None if repeats or self._may_run_once(node) else node.kind
            own = self.sizes.scanned.get(node.id, 0) if isinstance(node, Relation) else 0
            self._traits[node.id] = _BuildTraits(
                own + sum(each.size for each in below),
                next(filter(None, (unrepeatable, *(each.unrepeatable for each in below))), None),
                _leaves_out(node, self.sizes) or any(each.leaves_out for each in below),
                not repeats or any(each.needs_rows for each in below),
                not (repeats or _is_kept(node) or _has_no_effect(node)) or any(each.runs_once for each in below),
            )
        return self._traits[node.id]

    def _may_run_once(self, node: Node) -> bool:
        """True where the query may join the rows of a build instead of running an unrepeatable node.

        Rows of a node that Spark runs once for several places of the query have to be the same in all of them, and each
        step of a recursion has rows of its own.
        """
        if _is_kept(node):
            # Only a table that has changed makes other rows of it.
            return True
        return node.kind in _RUN_ONCE | _REPEATABLE and node.id not in self.equal


def _in_steps(root: Node) -> Iterator[int]:
    """The nodes that Spark runs anew in each step of a recursive query."""
    steps = (each for each in root.walk() if each.kind == "UnionLoop")
    return (below.id for each in steps for child in each.children for below in child.walk())


def _has_no_effect(node: Node) -> bool:
    """True for groups that only give other rows when they run again, where these depend on the order of rows."""
    return isinstance(node, Grouping) and node.is_deterministic


def _is_kept(node: Node) -> bool:
    """True for cached rows of a plan that computes the same rows from the same tables."""
    return node.kind == _CACHED and node.is_deterministic


def _is_repeatable(node: Node, sizes: Sizes) -> bool:
    """True where a node gives the query the rows that it gave a build."""
    if node.kind not in _REPEATABLE or not node.is_deterministic:
        return False
    match node:
        case Relation():
            # Only scans of files are known to read the same rows in the build and in the query.
            return node.id in sizes.files or node.id in sizes.streams
        case Grouping(groups=groups):
            # Rows arrive in another order in every run; a column that is constant in a group does not depend on it.
            return node.order_free or (groups is not None and groups.keys() >= set(node.output))
        case _:
            return True


def _leaves_out(node: Node, sizes: Sizes) -> bool:
    """True where a node may give fewer keys than the tables below it hold."""
    match node:
        case Filter(condition=condition):
            return any(part.kind != "IsNotNull" for _, part in conjuncts_at(condition))
        case Join():
            (_, left), _ = node.sides
            return left.at_most_once and not left.keeps_every_row
        case Relation():
            return node.id in sizes.pruned or node.id not in sizes.files
        case _:
            # Rows of no table: a list of keys.
            return not node.children
