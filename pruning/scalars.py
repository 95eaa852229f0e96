"""Comparisons of a filter with a subquery of one row: column >= (SELECT min(day) FROM ...).

They are joins with a build of one row, written another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pruning.bounds import COMPARISONS, Bound
from pruning.query_plan import Expression, Filter, Node, Project, conjuncts_at

_SUBQUERY = "ScalarSubquery"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One such comparison: the rows of `node` have the value as their `key`, and `probe` is compared with it.

    Keys of one that is `null_safe` do not tell which rows match: a subquery without a row is NULL, too.
    """

    part: Expression
    probe: Expression
    node: Node
    key: Expression
    bound: Bound | None

    @property
    def null_safe(self) -> bool:
        """True for an equality that matches NULL."""
        return self.part.kind == "EqualNullSafe"


def scalars_of(filter_: Filter) -> Iterator[Scalar]:
    """The comparisons of which one side is a subquery, or a field of one that holds the values of several."""
    plans = _plans(filter_)
    for _, part in conjuncts_at(filter_.condition):
        if part.kind not in COMPARISONS:
            continue
        for build, probe in ((0, 1), (1, 0)):
            found = _value(part.children[build], plans)
            if found is not None and part.children[probe].columns:
                yield Scalar(part, part.children[probe], *found, COMPARISONS[part.kind][probe])


def _plans(filter_: Filter) -> dict[int, Node]:
    """The plan of each scalar subquery, by the identity of its expression; none where others have plans, too."""
    found = [] if filter_.condition is None else list(_subqueries(filter_.condition))
    if len(found) != len(filter_.subqueries):
        return {}
    return {id(each): plan for each, plan in zip(found, filter_.subqueries, strict=True)}


def _subqueries(expression: Expression) -> Iterator[Expression]:
    """In the order of the plans of a node: those of its parts first."""
    for child in expression.children:
        yield from _subqueries(child)
    if expression.kind == _SUBQUERY:
        yield expression


def _value(expression: Expression, plans: dict[int, Node]) -> tuple[Node, Expression] | None:
    """The rows and the key behind a subquery, or behind a field of its one struct."""
    if expression.kind == _SUBQUERY:
        plan = plans.get(id(expression))
        return None if plan is None else (plan, Expression("AttributeReference", (), plan.output[0], "", "value"))
    if expression.kind != "GetStructField" or expression.children[0].kind != _SUBQUERY:
        return None
    plan = plans.get(id(expression.children[0]))
    if not isinstance(plan, Project) or plan.made is None or not plan.is_deterministic or not expression.text:
        return None
    made = plan.made[plan.output[0]]
    # Names and values take turns.
    field = made.children[2 * int(expression.text) + 1] if made.kind == "CreateNamedStruct" else made
    return (plan.children[0], field) if field.column is not None and field is not made else None
