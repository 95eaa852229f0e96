"""Parts of a plan that Spark runs once for several places: a filter for one of them alone would have them run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pruning.join_graph import Source
from pruning.lineage import Target
from pruning.query_plan import Expression, Grouped, Join, Node, conjuncts_at
from pruning.spread import between, stays_in_place

# A class of equal nodes, and by which of their columns their rows are spread over tasks.
_Kept = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Reuse:
    """What is kept of the rows of a node for whoever makes the same, by `Node.at` of the node; and who does."""

    _kept: Mapping[int, tuple[_Kept, Node]]
    _places: Mapping[_Kept, Sequence[Node]]

    @staticmethod
    def of(root: Node, equal: Mapping[int, int], is_sent: Callable[[Join, Node], bool]) -> Reuse:
        """The places of a plan.

        `equal` gives nodes that are not the only ones to make their rows, by `Node.at`, a number that is the same for
        all of these; `is_sent` says whether the rows of a join's side go to other tasks. An aggregate is taken to have
        its rows sent, though Spark spares itself that where a join has spread them by the same keys.
        """
        candidates = equal.keys() & _with_groups(root)
        kept: dict[int, tuple[_Kept, Node]] = {}
        places: dict[_Kept, list[Node]] = {}
        for node in root.walk():
            for child in node.children:
                whole = child if isinstance(node, Join) else node
                if whole.at not in candidates or stays_in_place(node):
                    continue
                if isinstance(node, Join) and not is_sent(node, child):
                    continue
                key = equal[whole.at], _keys(node, child) if isinstance(node, Join) else ()
                kept[child.at] = key, whole
                places.setdefault(key, []).append(whole)
        return Reuse(kept, places)

    def others(self, source: Source, target: Target) -> Sequence[Node]:
        """Other places of what a filter of the target would have run again.

        Only what groups rows somewhere counts: of mere scans the places have more to do than their reading, which keys
        spare them.
        """
        found: dict[int, Node] = {}
        for _, child in between(source.join, target.relation):
            if child.at in self._kept:
                key, own = self._kept[child.at]
                found |= {each.at: each for each in self._places[key] if each.at != own.at}
        return tuple(found.values())


def _with_groups(root: Node) -> set[int]:
    """The places of nodes that group rows, or have such a node below them."""
    found: set[int] = set()
    for node in reversed(list(root.walk())):
        if isinstance(node, Grouped) or any(each.at in found for each in node.children):
            found.add(node.at)
    return found


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
    below = ",".join(_placed(each, places) for each in expression.children)
    return f"{expression.kind}({below}){expression.type} {expression.text}"
