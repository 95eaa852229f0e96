"""`Explanation`: the planned filters of a read or a query, and the reasons against others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from pruning.query.filter_plan import FilterPlan
from pruning.query.join_condition import BuildSide
from pruning.query.join_graph import JoinGraph
from pruning.query.metadata_filters import BY_STATISTICS
from pruning.query.plan import Join, PlanNames, relations_of
from pruning.query.runtime_filter import FilterId, RuntimeFilter
from pruning.query.top_k import TopFilter
from pruning.reasons import Reason, ReasonCode, remedies
from pruning.results.blocks import Block, as_html, as_rich, as_text
from pruning.results.prune_report import table_blocks
from pruning.results.query_lines import BuildLine, EdgeLine, FilterLine, QueryPlan, TopLine, UnusedLine
from pruning.results.render_query import query_blocks
from pruning.results.table_explanation import KindLine, TableExplanation


@dataclass(frozen=True, slots=True)
class Explanation(QueryPlan):
    """The result of `explain()` for a `pruned_read()` or a query: planned numbers, none of them measured.

    A read has only `tables`, with one table. `to_dict()` gives these and the verdict for it, all fields for a query.
    """

    is_read: bool = False

    @staticmethod
    def of_read(table: TableExplanation) -> Explanation:
        """The explanation of a `pruned_read()`, whose keys were collected."""
        return Explanation(True, {}, (), (), (), (), (table,), (), is_read=True)  # noqa: FBT003 - as fields come

    @staticmethod
    def nothing(reason: Reason, *, ran_builds: bool) -> Explanation:
        """The explanation of a query that stays unchanged."""
        return Explanation(ran_builds, {}, (), (), (), (), (), (reason,))

    @staticmethod
    def of(  # noqa: PLR0913 - a plan, and what is known of its parts
        plan: FilterPlan,
        sizes: Mapping[int, int],
        tables: Mapping[int, TableExplanation],
        reasons: tuple[Reason, ...],
        *,
        ran_builds: bool,
        kinds: Mapping[FilterId, tuple[KindLine, ...]] = MappingProxyType({}),
        from_cache: Collection[tuple[int, str]] = (),
        on_driver: Collection[tuple[int, str]] = (),
        seconds: Mapping[tuple[int, str], float] = MappingProxyType({}),
    ) -> Explanation:
        """The explanation of a plan; `sizes` are bytes and `tables` pruned scans by `Relation.id`, `kinds` by filter.

        `from_cache` are the ids of build sides that were not run for it, `on_driver` of those that took no job;
        `seconds` are those of each build.
        """
        names = PlanNames(plan.graph.root)
        return Explanation(
            ran_builds,
            {names.scans[each.id]: sizes.get(each.id, 0) for each in plan.graph.relations},
            _edges(plan.graph, names),
            *builds_and_filters(plan, sizes, kinds, (from_cache, on_driver), seconds),
            tuple(
                UnusedLine(
                    each.edge.type,
                    _keys(each.edge.build_side, names),
                    names.scans[each.probe.relation.id],
                    each.probe.name,
                    each.reason,
                )
                for each in plan.unused
            ),
            tuple(replace(table, table=names.scans[at]) for at, table in tables.items()),
            reasons,
            tuple(_top_line(each, names) for each in plan.tops),
            has_join=any(isinstance(each, Join) for each in plan.graph.root.walk()),
            causes=_causes(plan, sizes, reasons),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        if self.is_read:
            return {"verdict": self.verdict, "tables": [each.to_dict() for each in self.tables]}
        return {
            "verdict": self.verdict,
            "ran_builds": self.ran_builds,
            "scans": dict(self.scans),
            "edges": [asdict(each) for each in self.edges],
            "builds": [asdict(each) for each in self.builds],
            "feeds": [asdict(each) for each in self.filters],
            "unused": [{**asdict(each), "reason": each.reason.to_dict()} for each in self.unused],
            "tables": [each.to_dict() for each in self.tables],
            "reasons": [each.to_dict() for each in self.reasons],
            "causes": [each.to_dict() for each in self.causes],
            "tops": [
                {**asdict(each), "reason": None if each.reason is None else each.reason.to_dict()} for each in self.tops
            ],
        }

    def __str__(self) -> str:
        return as_text(self._blocks())

    def __rich__(self) -> object:
        return as_rich(self._blocks())

    def _repr_html_(self) -> str:
        return as_html(self._blocks())

    def _blocks(self) -> list[Block]:
        own = [Block(self.verdict, (), ()), *table_blocks(self.tables)]
        shown = own if self.is_read else query_blocks(self)
        of_tables = (each for table in self.tables for each in (*table.reasons, *_reasons_of_filters(table)))
        lines = remedies((*self.causes, *_of_users(self.reasons), *of_tables))
        return [*shown, *([Block("What to try", (), (), lines)] if lines else [])]


def _reasons_of_filters(table: TableExplanation) -> Iterator[Reason]:
    return (reason for each in table.filters for reason in each.reasons)


def _keys(build_side: BuildSide, names: PlanNames) -> str:
    """The name of a build's keys; for a column, the name with its scan, since column ids may repeat in a plan."""
    column = build_side.key.column
    scan = next((each for each in relations_of(build_side.node) if column in each.output), None)
    if column is None or scan is None:
        return build_side.described_key(names.expression(build_side.key))
    return build_side.described_key(f"{names.scans[scan.id]}.{scan.name_of(column)}")


def _causes(plan: FilterPlan, sizes: Mapping[int, int], reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The reasons against filters of the largest scan, and those that concern no single scan."""
    largest = max(plan.graph.relations, key=lambda each: sizes.get(each.id, 0), default=None)
    if largest is None:
        return reasons
    own = [*plan.graph.against(largest), *(it.reason for it in plan.unused if it.probe.relation.id == largest.id)]
    if not any(plan.levels):
        own += [stop for edge in plan.graph.edges for stop in edge.stops if stop.code is ReasonCode.CACHED]
    of_others = {it.reason for it in plan.unused} | {*plan.graph.refusals}
    found = tuple(dict.fromkeys([*own, *(each for each in reasons if each not in of_others)]))
    return tuple(_of_users(found)) or found


def _of_users(reasons: Iterable[Reason]) -> Iterator[Reason]:
    """The reasons but for those against keys that the statistics of a build side give, which users cannot change."""
    return (each for each in reasons if not each.detail.startswith(BY_STATISTICS))


def _top_line(top: TopFilter, names: PlanNames) -> TopLine:
    probe, name = top.probe, top.top.described(names)
    scan, column = ("", "") if probe is None else (names.scans[probe.relation.id], probe.name)
    if isinstance(top.found, Reason):
        return TopLine(name, scan, column, None, top.found)
    return TopLine(name, scan, column, top.found, None)


def _tells_benefit(runtime_filter: RuntimeFilter) -> bool:
    """True for one of the operands of an OR, whose benefit is that of all."""
    return all(runtime_filter.id < each for each in runtime_filter.other_operands)


def _edges(graph: JoinGraph, names: PlanNames) -> tuple[EdgeLine, ...]:
    operands = (edge for each in graph.disjunctions for edge in each.edges)
    return tuple(
        EdgeLine(
            each.type,
            names.expression(each.probe_key),
            _keys(each.build_side, names),
            tuple(names.column(probe.column) for probe in each.probes),
            tuple(map(str, each.stops)),
        )
        for each in (*graph.edges, *operands)
    )


def builds_and_filters(
    plan: FilterPlan,
    sizes: Mapping[int, int],
    kinds: Mapping[FilterId, tuple[KindLine, ...]],
    without_job: tuple[Collection[tuple[int, str]], Collection[tuple[int, str]]],
    seconds: Mapping[tuple[int, str], float],
) -> tuple[tuple[BuildLine, ...], tuple[FilterLine, ...]]:
    """The builds and the filters of a plan; `without_job` are the build sides from the cache, and on the driver."""
    names = PlanNames(plan.graph.root)
    builds: dict[tuple[int, str, bool], BuildLine] = {}
    filters: list[FilterLine] = []
    for level, of_level in enumerate(plan.levels, start=1):
        for each in of_level:
            name = _keys(each.build_side, names)
            reads = () if each.from_metadata else relations_of(each.build_side.node)
            build = builds.setdefault(
                (*each.build_side.id, each.from_metadata),
                BuildLine(
                    str(len(builds) + 1),
                    level,
                    replace(each, united=(), other_operands=()).described(name),
                    tuple(names.scans[it.id] for it in reads),
                    sum(sizes.get(it.id, 0) for it in reads),
                    from_cache=not each.from_metadata and each.build_side.id in without_job[0],
                    on_driver=not each.from_metadata and each.build_side.id in without_job[1],
                    benefit=None if each.from_metadata or not _tells_benefit(each) else each.benefit,
                    seconds=None if each.from_metadata else seconds.get(each.build_side.id),
                ),
            )
            scan = names.scans[each.probe.relation.id]
            benefit = each.benefit if each.from_metadata else None
            keys, column = each.described(name), each.probe.name
            filters.append(FilterLine(level, build.name, keys, scan, column, kinds.get(each.id, ()), benefit))
    return tuple(builds.values()), tuple(filters)
