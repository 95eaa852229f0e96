"""Parts of a plan that do more than give rows, which a scan that gives fewer rows may keep from running."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pruning.query.plan import Node

# Functions of the user: Spark does not know what else they do.
_FUNCTIONS = frozenset(
    {
        "AppendColumns",
        "AppendColumnsWithObject",
        "ArrowEvalPython",
        "ArrowEvalPythonUDTF",
        "BatchEvalPython",
        "BatchEvalPythonUDTF",
        "CoGroup",
        "FlatMapCoGroupsInArrow",
        "FlatMapCoGroupsInPandas",
        "FlatMapGroupsInArrow",
        "FlatMapGroupsInPandas",
        "MapElements",
        "MapGroups",
        "MapInArrow",
        "MapInPandas",
        "MapPartitions",
        "ScriptTransformation",
        "TypedFilter",
    }
)
_OBSERVATION = "CollectMetrics"


def effects(root: Node) -> Iterator[Node]:
    """The nodes of a plan that count rows for the user, or call functions of the user."""
    return (each for each in root.walk() if each.kind == _OBSERVATION or each.kind in _FUNCTIONS)


def effect_beside(found: Iterable[Node], at: int, done: Collection[int] = ()) -> Node | None:
    """The first of the nodes with an effect that stands beside node `at`, not above it; None if there is none.

    Spark does not read a side of a join, or reads only a part of it, where the other side has no row: a whole stage by
    adaptive execution, a streamed side beside an empty broadcast, a sorted partition beside an empty one. So a filter
    of a scan may change what is seen beside it, if some rows are left, too. An effect above the scan sees the rows of
    all joins that justify the filter. Nodes `done` have run already, or will in a build whose rows the query joins.
    """
    beside = (each for each in found if each.id not in done and not each.contains(at))
    return next(beside, None)
