"""Columns of scans that count by their place, though no expression names them."""

from __future__ import annotations

from pruning.query_plan import Filter, Node, Relation

# Whatever these use, an expression of theirs names.
_NAMING = frozenset({"Project", "Aggregate"})


def columns_by_place(root: Node) -> frozenset[int]:
    """The ids of columns of scans that no projection or aggregate right above names, be it above filters.

    What lies above uses all that it is given: Spark's optimised plans leave out elsewhere what nothing uses.
    """
    found: set[int] = set()
    waiting = [(root, True)]
    while waiting:
        node, counts = waiting.pop()
        match node:
            case Relation():
                found.update(node.output if counts else ())
            case _ if node.kind in _NAMING:
                counts = False
            case Filter():
                pass
            case _:
                counts = True
        waiting += [(each, counts) for each in node.children]
        waiting += [(each, True) for each in node.subqueries]
    return frozenset(found)
