"""Equalities of one join whose keys filter one scan together: a row needs one partner that fulfils all of them.

Each key for itself lets rows pass whose values come from different rows of the build.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pruning.join_graph import Edge, JoinGraph, Source
from pruning.key_summary import KeySummary
from pruning.options import PruningOptions
from pruning.query_plan import Relation

_SEVERAL = 2


@dataclass(frozen=True, slots=True)
class KeyTuple:
    """Columns of the rows of a build, and those of a scan that hold the same in every row that finds a partner.

    `name` is that of the keys, for people.
    """

    build: tuple[int, ...]
    probe: tuple[int, ...]
    name: str


def key_tuple(graph: JoinGraph, source: Source, relation: Relation) -> KeyTuple | None:
    """The columns by which the join of a source compares its rows with those of a scan; None if they are not several.

    Both are columns as they are: rows of a build hold nothing that the join would compute of them.
    """
    pairs: dict[int, int] = {}
    names: list[str] = []
    for edge in graph.edges:
        if edge.join.at != source.join.at or not _is_plain(edge, source):
            continue
        found = next((each.column for each in edge.targets if each.relation.at == relation.at), None)
        key = edge.source.key.column
        if found is not None and key is not None and found not in pairs.values() and key not in pairs:
            pairs[key] = found
            names.append(str(edge.source.key))
    return KeyTuple(tuple(pairs), tuple(pairs.values()), ", ".join(names)) if len(pairs) >= _SEVERAL else None


def says_more(keys: KeySummary, options: PruningOptions) -> bool:
    """Whether the rows of keys leave out, of all combinations of their values, as much as a test of rows has to."""
    counts = [each.ranges.point_count() for each in keys.domains]
    every = prod(each for each in counts if each is not None)
    return keys.distinct is not None and None not in counts and keys.distinct <= (1 - options.min_filter_ratio) * every


def _is_plain(edge: Edge, source: Source) -> bool:
    own = edge.source
    is_equality = own.bound is None and not own.null_safe and not own.is_one_row
    return is_equality and own.node.at == source.node.at and own.key.column in source.node.output
