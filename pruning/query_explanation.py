"""`QueryExplanation`: what pruning a query would do, or did, and why not more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pruning import render
from pruning.explanation import TableExplanation
from pruning.filter_plan import FilterPlan
from pruning.join_graph import JoinGraph
from pruning.query_plan import PlanNames
from pruning.reasons import Reason


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """One equality of a join: keys of one side for a column of the other, and the columns of scans that they reach."""

    join: str
    probe: str
    keys: str
    reaches: tuple[str, ...]
    stops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FeedLine:
    """One filter: the keys of a build, the column of a scan, and the level at which the build runs, from 1."""

    level: int
    keys: str
    target: str


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """Nothing of it was measured.

    - `ran_builds`: True for the plan of a pruned query, whose builds ran: `tables` are its pruned scans, in exact
      numbers. False for what `prune()` would try: every build is taken to leave something out
    - `scans`: bytes that each scan reads without filters, by its name
    """

    ran_builds: bool
    scans: Mapping[str, int]
    edges: tuple[EdgeLine, ...]
    feeds: tuple[FeedLine, ...]
    tables: tuple[TableExplanation, ...]
    reasons: tuple[Reason, ...]

    @staticmethod
    def of(
        plan: FilterPlan | None,
        sizes: Mapping[int, int],
        tables: tuple[TableExplanation, ...],
        reasons: tuple[Reason, ...],
        *,
        ran_builds: bool,
    ) -> QueryExplanation:
        """The explanation of a plan, None where there is none; `sizes` are bytes by `Relation.at`."""
        if plan is None:
            return QueryExplanation(ran_builds, {}, (), (), tables, reasons)
        names = PlanNames(plan.graph.root)
        scans = {names.scans[each.at]: sizes.get(each.at, 0) for each in plan.graph.relations}
        feeds = tuple(
            FeedLine(level, names.expression(each.source.key), names.column(each.target.column))
            for level, feeds in enumerate(plan.levels, start=1)
            for each in feeds
        )
        return QueryExplanation(ran_builds, scans, _edges(plan.graph, names), feeds, tables, reasons)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        return {
            "ran_builds": self.ran_builds,
            "scans": dict(self.scans),
            "edges": [asdict(each) for each in self.edges],
            "feeds": [asdict(each) for each in self.feeds],
            "tables": [each.to_dict() for each in self.tables],
            "reasons": [each.to_dict() for each in self.reasons],
        }

    def __str__(self) -> str:
        return render.query_text(self)

    def __rich__(self) -> object:
        return render.query_rich(self)

    def _repr_html_(self) -> str:
        return render.query_html(self)


def _edges(graph: JoinGraph, names: PlanNames) -> tuple[EdgeLine, ...]:
    return tuple(
        EdgeLine(
            each.join.type,
            names.expression(each.probe_key),
            names.expression(each.source.key),
            tuple(names.column(target.column) for target in each.targets),
            tuple(map(str, each.stops)),
        )
        for each in graph.edges
    )
