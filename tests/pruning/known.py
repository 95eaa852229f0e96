"""Statistics that a test makes up, and a star whose numbers can be checked by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pruning.cost.rates import CostRates
from pruning.options import PruningOptions
from pruning.query.benefit import Benefits
from pruning.query.build_selection import BuildSelection
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import JoinGraph
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Filter, Join, Node, Relation
from pruning.query.plan_statistics import QueryFacts, Sizes, UnknownStatistics
from pruning.query.runtime_filter import RuntimeFilter
from pruning.reasons import ReasonCode
from pruning.values.domain import Domain
from tests.pruning.plans import Plans, at_least, equal

NO_COSTS = CostRates(**dict.fromkeys(CostRates.__dataclass_fields__, 0.0))
# One nanosecond for each byte, row and value of interest, so that seconds are counts.
ONE_EACH = replace(NO_COSTS, byte=1.0)


@dataclass
class Known(UnknownStatistics):
    """Rows, files by scan; shares of a condition, values, unprunable shares, missing bounds by column; broadcasts."""

    counts: dict[int, int] = field(default_factory=dict)
    values: dict[int, float] = field(default_factory=dict)
    matching: dict[int, float] = field(default_factory=dict)
    whole: dict[int, float] = field(default_factory=dict)
    needed: dict[int, float] = field(default_factory=dict)
    broadcast: set[int] = field(default_factory=set)
    few: float = 0.0
    elsewhere: float = 0.0
    opened: dict[int, int] = field(default_factory=dict)
    together: dict[int, float] = field(default_factory=dict)
    sparse: set[int] = field(default_factory=set)
    least: dict[int, float] = field(default_factory=dict)
    decoded: dict[int, float] = field(default_factory=dict)
    missing: dict[int, ReasonCode] = field(default_factory=dict)

    def rows(self, relation: Relation) -> int:
        return self.counts.get(relation.id, 0)

    def decoded_values(self, relation: Relation) -> float:
        return self.decoded.get(relation.id, 0.0)

    def files(self, relation: Relation) -> int:
        return self.opened.get(relation.id, 0)

    def leaf_rows(self, leaf: Node) -> float:  # noqa: ARG002 - of a protocol
        return self.elsewhere

    def domain_size(self, relation: Relation, column: int) -> float | None:  # noqa: ARG002 - of a protocol
        return self.values.get(column)

    def least_values(self, relation: Relation, column: int) -> float | None:  # noqa: ARG002 - of a protocol
        return self.least.get(column)

    def is_sparse(self, relation: Relation, column: int) -> bool:  # noqa: ARG002 - of a protocol
        return column in self.sparse

    def rows_together(self, relation: Relation, column: int) -> float:  # noqa: ARG002 - of a protocol
        return self.together.get(column, 1.0)

    def matching_share(self, relation: Relation, column: int, domain: Domain) -> float | None:  # noqa: ARG002 - of a protocol
        return self.matching.get(column)

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        return self.whole.get(probe.column, 0.0)

    def missing_bounds(self, probe: ProbeColumn) -> ReasonCode | None:
        return self.missing.get(probe.column)

    def needed_share(self, relation: Relation) -> float:
        return self.needed.get(relation.id, 1.0)

    def is_broadcast(self, join: Join) -> bool:
        return join.id in self.broadcast

    def is_broadcast_side(self, join: Join, side: Node) -> bool:
        return join.id in self.broadcast and side.id == join.right.id

    def are_few(self, node: Node, rows: float) -> bool:  # noqa: ARG002 - of a protocol
        return rows <= self.few


@dataclass
class Star:
    """A fact of 1,000 rows and 1,000,000 bytes, joined with the 10 of 100 days that a condition leaves, of 100 bytes.

    Each day is in the fact, whose files hold all days or, with `whole` of 0, a part of them each.
    """

    fact: Relation
    days: Relation
    few: Filter
    root: Join
    known: Known
    scanned: dict[int, int]

    @staticmethod
    def of(*, whole: float = 0.0, broadcast: bool = True, **known: Any) -> Star:
        plans = Plans()
        fact, days = plans.table("day"), plans.table("day", "month")
        few = plans.filter(days, at_least(days.output[1], 3))
        root = plans.join(fact, few, equal(fact.output[0], days.output[0]))
        statistics = Known(
            counts={fact.id: 1000, days.id: 100},
            values={fact.output[0]: 100.0, days.output[0]: 100.0},
            matching={days.output[1]: 0.1},
            whole={fact.output[0]: whole},
            broadcast={root.id} if broadcast else set(),
            **known,
        )
        return Star(fact, days, few, root, statistics, {fact.id: 1_000_000, days.id: 100})

    @property
    def build_side(self) -> BuildSide:
        """The build side of the fact."""
        return self.runtime_filter.build_side

    @property
    def probe(self) -> ProbeColumn:
        """The filtered column of the fact."""
        return self.runtime_filter.probe

    @property
    def runtime_filter(self) -> RuntimeFilter:
        """The filter of the fact by the days."""
        (found,) = (
            RuntimeFilter(edge.build_side, probe)
            for edge in JoinGraph.of(self.root).edges
            for probe in edge.probes
            if probe.relation is self.fact
        )
        return found

    def sizes(self, **changed: Any) -> Sizes:
        """The sizes of both scans; one core."""
        return replace(Sizes(self.scanned, frozenset(self.scanned), (), statistics=self.known, cores=1), **changed)

    def selection(self, options: PruningOptions, facts: QueryFacts | None = None, **changed: Any) -> BuildSelection:
        """The rules of selection."""
        return BuildSelection.of(JoinGraph.of(self.root), self.sizes(**changed), options, facts)

    def benefits(self, rates: CostRates, *, on_driver: bool = False, **changed: Any) -> Benefits:
        """The model with some rates."""
        return Benefits(self.sizes(**changed), priced(rates).limits, on_driver)


def priced(rates: CostRates, **limits: Any) -> PruningOptions:
    """Options with rates and limits."""
    return PruningOptions().with_limits(costs=rates, **limits)
