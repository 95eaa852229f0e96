"""`EqualColumns`: columns of a plan that conditions set equal, so that Spark may copy a condition of one to the others.

Spark infers `b >= 5` from `a = b` and `a >= 5` (`InferFiltersFromConstraints`), through projections, groups and casts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pruning.query.expressions import EQUALITIES
from pruning.query.key_functions import probed_column
from pruning.query.late_conditions import gives_every_row, late_condition, tested_for_null
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import (
    Expression,
    Filter,
    Grouping,
    Join,
    Node,
    Project,
    Relation,
    Union,
    conjuncts_at,
)
from pruning.reasons import Reason, ReasonCode

# Leaves whose rows are in memory or computed: Spark tests each row of them by a condition, and skips none unread.
_WITHOUT_STORAGE = frozenset({"InMemoryRelation", "LocalRelation", "LogicalRDD", "OneRowRelation", "Range"})


@dataclass(frozen=True, slots=True)
class EqualColumns:
    """The class of each column, by its id, and the leaves that read columns of a class from storage.

    It may say too much: a join of any type counts, although outer joins pass some conditions to one side alone.
    `_by_cast` has the classes with a cast that may raise an error; `_late` is the `late_condition` of the plan.
    """

    _classes: Mapping[int, int]
    _leaves: Mapping[int, tuple[tuple[Node, int], ...]]
    _by_cast: frozenset[int] = frozenset()
    _late: str = ""

    @staticmethod
    def of(root: Node) -> EqualColumns:
        """The columns of a plan and of its subqueries."""
        parents: dict[int, int] = {}
        nodes = tuple(root.walk())
        for node in nodes:
            for first, second in _equal_pairs(node):
                parents[_top(parents, first)] = _top(parents, second)
        leaves: dict[int, list[tuple[Node, int]]] = {}
        for node in nodes:
            if not node.children and node.kind not in _WITHOUT_STORAGE:
                for column in node.output:
                    leaves.setdefault(_top(parents, column), []).append((node, column))
        classes = {column: _top(parents, column) for column in [*parents]}
        keys = frozenset(key for node in nodes if isinstance(node, Join) for key in _keys_of_every_row(node))
        by_cast = frozenset(_top(parents, each) for node in nodes for each in _cast_columns(node, keys))
        return EqualColumns(
            classes, {top: tuple(found) for top, found in leaves.items()}, by_cast, late_condition(root)
        )

    def is_cast(self, column: int) -> bool:
        """True where Spark may copy a condition of a column to a cast that raises an error on some values.

        The copy is tested before the joins that spare the query such values, or while Spark plans, if they are the
        rows of a build.
        """
        return self._classes.get(column, column) in self._by_cast

    def sound_probes(self, probes: Iterable[ProbeColumn]) -> tuple[tuple[ProbeColumn, ...], tuple[Reason, ...]]:
        """The columns whose filters make no such expression raise, and the reason against each of the others."""
        sound, reasons = list[ProbeColumn](), list[Reason]()
        for each in probes:
            if self._late:
                reasons.append(Reason(ReasonCode.MAY_MOVE, each.name, self._late))
            elif self.is_cast(each.column):
                reasons.append(Reason(ReasonCode.MAY_RAISE, each.name, "an expression that is equal to the column"))
            else:
                sound.append(each)
        return tuple(sound), tuple(reasons)

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
                if part.kind in EQUALITIES:
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


def _cast_columns(node: Node, keys: Collection[int]) -> Iterator[int]:
    """The columns below casts that may raise, of those that a condition sets equal to others, and computed columns.

    A key of a join does not count where the join meets every row of a leaf, so that the query computes it for each;
    `keys` are columns that are such keys. A computed column does not count either where a condition below tests it for
    NULL: Spark would put a copy beside that test.
    It adds one for each key of a join that can be NULL; `coalesce` and columns NOT NULL have none. Beside another
    condition of the same filter Spark puts the copy first.
    """
    match node:
        case Join(condition=condition) | Filter(condition=condition) if node.may_raise:
            parts = (part for _, part in conjuncts_at(condition) if part.kind in EQUALITIES)
            casts = [each for part in parts for each in part.children if probed_column(each) is None]
            yield from (column for each in casts if (column := _column(each)) is not None and _is_spared(node, column))
        case Project(made=made, children=(child,)) if node.may_raise:
            tested = frozenset(tested_for_null(child))
            computed = ((column, each) for column, each in (made or {}).items() if probed_column(each) is None)
            yield from (column for column, each in computed if each not in tested and column not in keys)
        case _:
            return


def _keys_of_every_row(join: Join) -> Iterator[int]:
    """The columns that are keys of a join and that it meets for every row of a leaf.

    A column that is computed below is computed for each of them; above a join that drops rows, only for the others.
    """
    for _, part in conjuncts_at(join.condition):
        if part.kind in EQUALITIES:
            for column in (each.column for each in part.children if each.column is not None):
                sides = (side for side in join.children if column in side.output)
                if any(gives_every_row(side, frozenset({column})) for side in sides):
                    yield column


def _is_spared(node: Node, column: int) -> bool:
    """True where rows of the child that has a column may be dropped before an expression of `node` is computed."""
    return isinstance(node, Filter) or not any(
        gives_every_row(child, frozenset({column})) for child in node.children if column in child.output
    )


def _column(expression: Expression) -> int | None:
    """The column of an expression that is a column, or a cast or a normal form of one."""
    while expression.column is None and len(expression.children) == 1:
        if expression.kind != "Cast" and not expression.is_normal_form:
            return None
        expression = expression.children[0]
    return expression.column
