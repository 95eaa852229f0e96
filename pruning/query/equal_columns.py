"""`EqualColumns`: columns of a plan that conditions set equal, so that Spark may copy a condition of one to the others.

Spark infers `b >= 5` from `a = b` and `a >= 5` (`InferFiltersFromConstraints`), through projections, groups and casts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pruning.query.plan import Expression, Filter, Grouping, Join, Node, Project, Relation, Union, conjuncts_at

_EQUALITIES = frozenset({"EqualTo", "EqualNullSafe"})
# Leaves whose rows are in memory or computed: Spark tests each row of them by a condition, and skips none unread.
_WITHOUT_STORAGE = frozenset({"InMemoryRelation", "LocalRelation", "LogicalRDD", "OneRowRelation", "Range"})


@dataclass(frozen=True, slots=True)
class EqualColumns:
    """The class of each column, by its id, and the leaves that read columns of a class from storage.

    It may say too much: a join of any type counts, although outer joins pass some conditions to one side alone.
    """

    _classes: Mapping[int, int]
    _leaves: Mapping[int, tuple[tuple[Node, int], ...]]

    @staticmethod
    def of(root: Node) -> EqualColumns:
        """The columns of a plan and of its subqueries."""
        parents: dict[int, int] = {}
        for node in root.walk():
            for first, second in _equal_pairs(node):
                parents[_top(parents, first)] = _top(parents, second)
        leaves: dict[int, list[tuple[Node, int]]] = {}
        for node in root.walk():
            if not node.children and node.kind not in _WITHOUT_STORAGE:
                for column in node.output:
                    leaves.setdefault(_top(parents, column), []).append((node, column))
        classes = {column: _top(parents, column) for column in [*parents]}
        return EqualColumns(classes, {top: tuple(found) for top, found in leaves.items()})

    def copies(self, relation: Relation, column: int) -> tuple[tuple[Node, int], ...]:
        """The leaves that may get a condition of a scan's column as well, each with its own column."""
        found = self._leaves.get(self._classes.get(column, column), ())
        return tuple(each for each in found if each != (relation, column))


def _top(parents: Mapping[int, int], column: int) -> int:
    while (above := parents.get(column, column)) != column:
        column = above
    return column


def _equal_pairs(node: Node) -> Iterator[tuple[int, int]]:
    match node:
        case Join(condition=condition) | Filter(condition=condition):
            for _, part in conjuncts_at(condition):
                if part.kind in _EQUALITIES:
                    first, second = (_column(each) for each in part.children)
                    if first is not None and second is not None:
                        yield first, second
        case Project(made=made) | Grouping(groups=made):
            for column, expression in (made or {}).items():
                if (source := _column(expression)) is not None:
                    yield column, source
        case Union():
            for child in node.children:
                yield from zip(node.output, child.output, strict=False)
        case _:
            return


def _column(expression: Expression) -> int | None:
    """The column of an expression that is a column, or a cast or a normal form of one."""
    while expression.column is None and len(expression.children) == 1:
        if expression.kind != "Cast" and not expression.is_normal_form:
            return None
        expression = expression.children[0]
    return expression.column
