"""`BuildSelection`: the scans that are worth a filter, and the build sides worth running for them, before any runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pruning.options import PruningOptions
from pruning.query.join_condition import BuildSide, fallback_build_sides
from pruning.query.join_graph import Edge, JoinGraph
from pruning.query.key_origins import origins_of
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Filter, Grouping, Join, Node, Relation, conjuncts_at
from pruning.query.plan_statistics import Sizes, expected_rows, only_scan
from pruning.reasons import Reason, ReasonCode

# Operators whose result is the same whenever they run on the same rows.
_REPEATABLE = frozenset(
    {
        "Aggregate",
        "Expand",
        "Filter",
        "Generate",
        "Join",
        "LocalRelation",
        "LogicalRelation",
        "Project",
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


@dataclass(frozen=True, slots=True)
class RefusedBuild:
    """A build side that is not run, and why."""

    build_side: BuildSide
    reason: Reason


@dataclass(frozen=True, slots=True)
class _BuildTraits:
    """A plan that may be run: the bytes it reads, and whether it may give fewer keys than its tables hold.

    - `unrepeatable`: the kind of a node that may give the query other rows than it gave a build
    - `is_cached`: some of its rows are those of a cached plan
    """

    size: int
    unrepeatable: str | None
    leaves_out: bool
    is_cached: bool


@dataclass(frozen=True, slots=True)
class BuildSelection:
    """The rules of build selection over the sizes of one moment; each plan is examined once.

    `edges` are those of the query: they tell which further scans the rows of a scan filter. Rules that depend on
    `sizes.statistics` may raise `Unanswered`, and are called by `with_answers()`; `why_no_filter`, `is_bounded`,
    `needs_rows` and `bytes_read` depend on sizes alone.
    """

    sizes: Sizes
    options: PruningOptions
    edges: Sequence[Edge]
    _behind: dict[int, int] = field(default_factory=dict)
    _traits: dict[int, _BuildTraits] = field(default_factory=dict)
    _free: dict[int, bool] = field(default_factory=dict)

    @staticmethod
    def of(graph: JoinGraph, sizes: Sizes, options: PruningOptions) -> BuildSelection:
        """The rules for the edges of a query."""
        return BuildSelection(sizes, options, graph.edges)

    def why_no_filter(self, probe: ProbeColumn) -> Reason | None:
        """The reason against any filter of a scan that needs a build; None if there is no such reason."""
        at, name = probe.relation.id, probe.name
        if at in self.sizes.materialized:
            return Reason(ReasonCode.READ_BY_BUILD, name)
        if at not in self.sizes.files:
            return self.sizes.refused.get(at) or Reason(ReasonCode.NOT_FILES, name)
        if self.sizes.scanned[at] < self.options.min_probe_bytes:
            return Reason(ReasonCode.PROBE_TOO_SMALL, name, f"{self.sizes.scanned[at]:,} bytes")
        return None

    def _why_too_narrow(self, probe: ProbeColumn) -> Reason | None:
        """The reason not to filter a small scan that this column cannot prune, judged by the columns that it reads.

        The size of a scan that is already pruned counts only those columns anyway.
        """
        relation, least, statistics = probe.relation, self.options.min_probe_bytes, self.sizes.statistics
        scanned = self.sizes.scanned[relation.id]
        if relation.id in self.sizes.pruned or scanned >= self.options.limits.columns_factor * least:
            return None
        if self.may_skip(probe) or not 0 < statistics.rows(relation) < self.options.limits.many_rows:
            return None
        size = int(scanned * statistics.needed_share(relation))
        found = f"about {size:,} bytes in the columns that are used"
        return Reason(ReasonCode.PROBE_TOO_SMALL, probe.name, found) if size < least else None

    def chosen(self, build_side: BuildSide, probe: ProbeColumn) -> Iterator[BuildSide | RefusedBuild]:
        """The build side if it may be run, else its fallbacks that may; for a small scan only free builds."""
        refused = self.why_no_filter(probe)
        if refused is None:
            found = tuple(self._with_benefit(build_side, probe))
            # Metadata is read only if some build would be run.
            refused = self._why_too_narrow(probe) if any(isinstance(each, BuildSide) for each in found) else None
            if refused is None:
                yield from found
                return
        if refused.code is ReasonCode.PROBE_TOO_SMALL and self._may_be_free(build_side) and self._has_many_rows(probe):
            free = [
                each for each in self._with_benefit(build_side, probe, is_small=True) if isinstance(each, BuildSide)
            ]
            yield from free
            if not free:
                yield RefusedBuild(build_side, refused)
        else:
            yield RefusedBuild(build_side, refused)

    def must_fit(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where a build side is worth running only if its rows are few enough to be joined as a local relation."""
        is_small = self.why_no_filter(probe) is not None or self._why_too_narrow(probe) is not None
        return is_small or self.bytes_read(build_side) > self._budget(build_side, probe)

    def bytes_read(self, build_side: BuildSide) -> int:
        """Bytes that a run of the build side reads."""
        return self._traits_of(build_side.node).size

    def may_skip(self, probe: ProbeColumn) -> bool:
        """False where the bounds of every container span the whole range of a probe column."""
        return self.sizes.statistics.unprunable_fraction(probe) < 1

    def needs_rows(self, build_side: BuildSide) -> bool:
        """True where a later run of a build side may give other rows than this one."""
        return self._traits_of(build_side.node).is_cached

    def is_bounded(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where statistics of files may bound the keys of a build side, and the probed scan is worth reading them.

        A null-safe equality may meet NULLs of an outer join, which no file holds, and bounds do not count the rows of a
        scalar subquery.
        """
        unbounded = build_side.condition.null_safe or build_side.is_widened_bound or build_side.may_raise
        if unbounded or not self._traits_of(build_side.node).leaves_out:
            return False
        origins = {each.relation.id for each in origins_of(build_side.node, build_side.key)}
        scanned = self.sizes.scanned
        described = sum(scanned.get(at, 0) for at in origins)
        is_worth_it = scanned.get(probe.relation.id, 0) >= described // self.options.limits.metadata_share
        return bool(origins) and origins <= set(self.sizes.files) and is_worth_it

    def _with_benefit(
        self, build_side: BuildSide, probe: ProbeColumn, *, is_small: bool = False
    ) -> Iterator[BuildSide | RefusedBuild]:
        """The build sides that skip enough; if `is_small`, a build that is not free may read no bytes."""
        for found in self._chosen(build_side, probe, is_small=is_small):
            little = self._why_too_little(found, probe) if isinstance(found, BuildSide) else None
            yield found if little is None else RefusedBuild(build_side, little)

    def _budget(self, build_side: BuildSide, probe: ProbeColumn) -> int:
        """The most bytes that a build may read: those that the probed scan reads, or that keys could skip of it."""
        scanned, size = self.sizes.scanned[probe.relation.id], self.bytes_read(build_side)
        share = 1 if build_side.condition.bound is None else self.options.limits.bound_share
        most = min(self.options.limits.max_build_scan_bytes, scanned // share)
        # Metadata is read only where the answer depends on it.
        if not scanned // self.options.limits.join_share < size <= most or self._may_be_materialized(build_side.node):
            return most
        if self._bytes_behind(probe.relation) >= self.options.limits.behind_factor * scanned:
            return most
        return min(most, self._skippable_bytes(probe))

    def _bytes_behind(self, relation: Relation) -> int:
        """Bytes of the other scans that the rows of this scan filter, as part of a build side."""
        if relation.id not in self._behind:
            found = {
                each.relation.id
                for edge in self.edges
                if edge.build_side.node.subtree_start <= relation.id <= edge.build_side.node.id
                for each in edge.probes
            }
            remaining = found.difference(self.sizes.materialized, {relation.id})
            self._behind[relation.id] = sum(self.sizes.scanned[at] for at in remaining)
        return self._behind[relation.id]

    def _may_be_materialized(self, node: Node) -> bool:
        """False where a build gives too many rows to be joined as a local relation, so that the query runs it again.

        A build of several scans is assumed to give many rows, since it joins them; a build of one scan mostly few.
        """
        if only_scan(node, self.sizes.materialized) is None:
            return False
        rows = expected_rows(node, self.sizes.expected, self.sizes.materialized)
        return rows is None or self.sizes.statistics.are_few(node, rows)

    def _skippable_bytes(self, probe: ProbeColumn) -> int:
        """The bytes of a scan that keys could skip, at least a small share, since the join gets fewer rows anyway."""
        scanned = self.sizes.scanned[probe.relation.id]
        return max(
            scanned // self.options.limits.join_share,
            int(scanned * (1 - self.sizes.statistics.unprunable_fraction(probe))),
        )

    def _has_many_rows(self, probe: ProbeColumn) -> bool:
        """True if a scan passes on so many rows that dropping some is worth a filter whose build costs nothing."""
        sizes, at = self.sizes, probe.relation.id
        if not sizes.expected:
            return False
        rows = sizes.expected[at].passing if at in sizes.expected else sizes.statistics.rows(probe.relation)
        return rows >= self.options.limits.many_rows

    def _may_be_free(self, build_side: BuildSide) -> bool:
        """False where neither the build side nor a fallback can be free; then no table is opened to count rows."""
        sizes = self.sizes
        has_rows = bool(sizes.materialized) or self.bytes_read(build_side) == 0
        return has_rows or any(each.ratio <= self.options.limits.few_ratio for each in sizes.expected.values())

    def _is_worth_its_rows(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        return self._is_free(build_side) and self._has_many_rows(probe)

    def _is_free(self, build_side: BuildSide) -> bool:
        """True if the query is expected to join a build's rows as a local relation, so that nothing is read twice.

        A build of several scans may give many rows, whatever is expected of each scan.
        """
        node = build_side.node
        if not build_side.condition.is_equality:
            return False
        if node.id not in self._free:
            self._free[node.id] = self._are_few(node)
        return self._free[node.id]

    def _are_few(self, node: Node) -> bool:
        sizes = self.sizes
        scan = only_scan(node, sizes.materialized)
        known = None if scan is None else sizes.expected.get(scan.id)
        if known is None or known.ratio > self.options.limits.few_ratio:
            return False
        rows = expected_rows(node, sizes.expected, sizes.materialized)
        return rows is not None and sizes.statistics.are_few(node, rows)

    def _why_too_little(self, build_side: BuildSide, probe: ProbeColumn) -> Reason | None:
        """The reason against a build whose keys skip few bytes of a scan and shrink no shuffle and no hash table."""
        least, scanned, statistics = (
            self.options.min_probe_bytes,
            self.sizes.scanned[probe.relation.id],
            self.sizes.statistics,
        )
        if scanned // self.options.limits.join_share >= least or statistics.crosses_shuffle(build_side, probe):
            return None
        if self._is_worth_its_rows(build_side, probe) and statistics.is_hash_build_side(build_side, probe):
            return None
        spared = self._skippable_bytes(probe)
        return None if spared >= least else Reason(ReasonCode.SPARES_LITTLE, probe.name, f"at most {spared:,} bytes")

    def _chosen(
        self, build_side: BuildSide, probe: ProbeColumn, *, is_small: bool
    ) -> Iterator[BuildSide | RefusedBuild]:
        refused = self._why_not_run(build_side, probe, is_small=is_small)
        if refused is None:
            yield build_side
            return
        parts = fallback_build_sides(build_side) if refused.code is not ReasonCode.UNSELECTIVE_BUILD else ()
        if not parts:
            yield RefusedBuild(build_side, refused)
        for each in parts:
            yield from self._chosen(each, probe, is_small=is_small)

    def _why_not_run(self, build_side: BuildSide, probe: ProbeColumn, *, is_small: bool) -> Reason | None:
        is_free = self._is_worth_its_rows(build_side, probe)
        most = (
            self.options.limits.max_build_scan_bytes if is_free else 0 if is_small else self._budget(build_side, probe)
        )
        subject, traits = str(build_side.key), self._traits_of(build_side.node)
        unrepeatable = traits.unrepeatable or self._unrepeatable_in_key(build_side)
        if unrepeatable is not None:
            return Reason(ReasonCode.UNREPEATABLE_KEYS, subject, unrepeatable)
        # A bound or a scalar narrows the probe column even if the build side keeps all rows of its tables.
        is_selective = build_side.condition.is_narrowing or traits.leaves_out
        if not is_selective and not (traits.size <= most and self.sizes.statistics.has_few_keys(build_side, probe)):
            return Reason(ReasonCode.UNSELECTIVE_BUILD, subject)
        if traits.size > most:
            return Reason(ReasonCode.BUILD_TOO_LARGE, subject, f"{traits.size:,} bytes, at most {most:,} here")
        return None

    def _unrepeatable_in_key(self, build_side: BuildSide) -> str | None:
        """The kind of a node by which the query may compute another key from the same rows.

        A computed key may hold a subquery of the join, which runs again even where the query joins the build's rows.
        """
        plans = build_side.join.subqueries if build_side.key.column is None else ()
        nodes = (node for plan in plans for node in plan.walk())
        return next((each.kind for each in nodes if each.kind == _CACHED or not _is_repeatable(each, self.sizes)), None)

    def _traits_of(self, node: Node) -> _BuildTraits:
        if node.id not in self._traits:
            below = [self._traits_of(each) for each in (*node.children, *node.subqueries)]
            unrepeatable = None if _is_repeatable(node, self.sizes) else node.kind
            own = self.sizes.scanned.get(node.id, 0) if isinstance(node, Relation) else 0
            self._traits[node.id] = _BuildTraits(
                own + sum(each.size for each in below),
                next(filter(None, (unrepeatable, *(each.unrepeatable for each in below))), None),
                _leaves_out(node, self.sizes) or any(each.leaves_out for each in below),
                node.kind == _CACHED or any(each.is_cached for each in below),
            )
        return self._traits[node.id]


def _is_repeatable(node: Node, sizes: Sizes) -> bool:
    """True where a node gives the query the rows that it gave a build, or is not run again for the query."""
    if node.kind == _CACHED:
        return True
    if node.kind not in _REPEATABLE or not node.is_deterministic:
        return False
    match node:
        case Relation():
            # Only scans of files are known to read the same rows in the build and in the query.
            return node.id in sizes.files
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
        case Join(type="LeftSemi" | "LeftAnti"):
            return True
        case Relation():
            return node.id in sizes.pruned
        case _:
            return node.kind in ("LocalRelation", _CACHED)
