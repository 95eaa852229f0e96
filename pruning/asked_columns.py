"""The columns of scans whose statistics deciding on a query's filters may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pruning.join_graph import JoinGraph
from pruning.query_plan import Expression
from pruning.zones import filters_above, zones_of


def asked_columns(graph: JoinGraph) -> Mapping[int, frozenset[int]]:
    """By `Relation.at`: columns that keys may filter or come from, and those in conditions right above a scan."""
    found: dict[int, set[int]] = {}
    for at, column in _asked(graph):
        found.setdefault(at, set()).add(column)
    own = {each.at: set(each.output) for each in graph.relations}
    return {at: frozenset(columns & own[at]) for at, columns in found.items()}


def _asked(graph: JoinGraph) -> Iterator[tuple[int, int]]:
    for edge in graph.edges:
        yield from ((each.relation.at, each.column) for each in edge.targets)
        for zone in zones_of(edge.source.node, edge.source.key):
            yield zone.relation.at, zone.column
            yield from ((zone.relation.at, column) for column in _named(*zone.conditions))
    for at, filters in filters_above(graph.root).items():
        conditions = (each.condition for each in filters if each.condition is not None)
        yield from ((at, column) for column in _named(*conditions))


def _named(*conditions: Expression) -> Iterator[int]:
    for each in conditions:
        yield from each.columns
