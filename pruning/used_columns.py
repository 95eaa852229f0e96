"""Columns of scans that count by their place, though no expression names them."""

from __future__ import annotations

from pruning.query_plan import Filter, Generate, Grouped, Join, Node, Passing, Project, Relation, Union

# Each column that these give is one that an expression of theirs names.
_NAMING = frozenset({"Project", "Aggregate"})


def columns_by_place(root: Node) -> frozenset[int]:
    """The ids of columns of scans that reach a result, a union or an unknown operator as they are, by their place."""
    found: set[int] = set()
    waiting = [(root, True)]
    while waiting:
        node, counts = waiting.pop()
        match node:
            case Relation():
                found.update(node.output if counts else ())
            case Project() | Grouped() if node.kind in _NAMING:
                counts = False
            case Filter() | Join() | Passing() | Generate() | Grouped():
                pass
            case Union() | _:
                counts = True
        waiting += [(each, counts) for each in node.children]
        waiting += [(each, True) for each in node.subqueries]
    return frozenset(found)
