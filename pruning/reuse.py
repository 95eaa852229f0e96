"""Parts of a plan that Spark runs once for several places: a filter for one of them alone would have them run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pruning.join_graph import Source
from pruning.lineage import Target
from pruning.query_plan import Expression, Filter, Generate, Grouped, Join, Node, Passing, Project, Union, conjuncts_at
from pruning.spread import between

# Operators that need no rows of other tasks, so that what they make is not kept for another place.
_FLOWING = (Filter, Project, Generate, Union)
# What is kept of the rows of a node: its class, and by which of its columns they are spread over tasks.
_Kept = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Reuse:
    """`equal` gives nodes by `Node.at` a number that is the same for those that make the same rows.

    `is_sent` says whether the rows of a join's side go to other tasks.
    """

    root: Node
    equal: Mapping[int, int]
    is_sent: Callable[[Join, Node], bool]
    _places: dict[_Kept, list[Node]] = field(default_factory=dict)
    _joins: dict[int, list[Node]] = field(default_factory=dict)

    @staticmethod
    def of(root: Node, equal: Mapping[int, int], is_sent: Callable[[Join, Node], bool]) -> Reuse:
        """The places of a plan that keep the same rows."""
        found = Reuse(root, equal, is_sent)
        for node in root.walk():
            if isinstance(node, Join | Filter) and node.at in equal:
                found._joins.setdefault(equal[node.at], []).append(node)
            for child in (*node.children, *node.subqueries):
                kept = found._kept(node, child)
                if kept is not None:
                    found._places.setdefault(kept[0], []).append(kept[1])
        return found

    def others(self, source: Source, target: Target) -> Sequence[Node]:
        """Other places of what a filter of the target would have run again, and where no equal join has that filter.

        Only what condenses rows counts: of a mere scan the places have more to do than its reading, which keys spare
        them.
        """
        found: dict[int, Node] = {}
        twins = self._joins.get(self.equal.get(source.join.at, -1), [source.join])
        for node, child in between(source.join, target.relation):
            kept = self._kept(node, child)
            if kept is None or not _condenses(kept[1]):
                continue
            filtered = {twin.at - (source.join.at - kept[1].at) for twin in twins}
            found |= {each.at: each for each in self._places[kept[0]] if each.at not in filtered}
        return tuple(found.values())

    def _kept(self, node: Node, child: Node) -> tuple[_Kept, Node] | None:
        """What is kept of a child for a node, or of the node itself, and which of the two; None of what flows on."""
        if isinstance(node, Join) and child in node.children:
            if child.at not in self.equal or not self.is_sent(node, child):
                return None
            return (self.equal[child.at], _keys(node, child)), child
        if child in node.subqueries:
            return ((self.equal[child.at], ("subquery",)), child) if child.at in self.equal else None
        is_flowing = isinstance(node, _FLOWING) or (isinstance(node, Passing) and node.kind == "SubqueryAlias")
        return None if is_flowing or node.at not in self.equal else ((self.equal[node.at], ()), node)


def _condenses(node: Node) -> bool:
    return any(isinstance(each, Grouped) for each in node.walk())


def _keys(join: Join, side: Node) -> tuple[str, ...]:
    """The keys of a join's side, by the places of their columns."""
    places = {column: str(at) for at, column in enumerate(side.output)}
    return tuple(
        sorted(
            _placed(child, places)
            for _, part in conjuncts_at(join.condition)
            if part.kind in {"EqualTo", "EqualNullSafe"}
            for child in part.children
            if child.columns and child.columns <= places.keys()
        )
    )


def _placed(expression: Expression, places: Mapping[int, str]) -> str:
    if expression.column is not None:
        return places[expression.column]
    return f"{expression.kind}({','.join(_placed(each, places) for each in expression.children)}){expression.text}"
