"""`late_condition`: an expression that may raise where Spark optimises a plan again and moves it to other rows.

Spark optimises each plan once. `IN` and `EXISTS` become joins at the end of it, and outer joins become inner ones after
tests for NULL were inferred (`InferFiltersFromConstraints`). A pruned plan has these joins from the start, so the rules
that infer, copy and push conditions meet them: a key that may raise is computed below the joins that spare it some
values. A key of a side that gives every row of a leaf is computed for each of them anyway. `OwnQueries.java` leaves
these rules out, but Spark optimises a DataFrame of `prune()` once more for an action such as `count()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pruning.keys.summary import COMPARISONS
from pruning.query.expressions import EQUALITIES
from pruning.query.join_types import JoinType
from pruning.query.key_functions import probed_column
from pruning.query.plan import (
    Expression,
    Filter,
    Generate,
    Grouping,
    Join,
    Limit,
    Node,
    Passthrough,
    Project,
    Relation,
    Union,
    conjuncts_at,
)

# Kinds that give NULL where an operand is NULL.
_NULL_OF_NULL = frozenset(
    {
        "Add",
        "AttributeReference",
        "Cast",
        "Divide",
        "IntegralDivide",
        "Literal",
        "Multiply",
        "Pmod",
        "Remainder",
        "Subtract",
    }
)


def late_condition(root: Node) -> str:
    """The first expression that may raise in such a condition; empty if none may.

    Tests for NULL that stand in the plan already are those of joins which have been inner ones from the start.
    """
    joins = (node for node in root.walk() if isinstance(node, Join))
    return next((each for join in joins for each in _late(join) if each), "")


def _late(join: Join) -> Iterator[str]:
    is_late = JoinType.of(join.type).is_late
    parts = [part for _, part in conjuncts_at(join.condition)]
    if join.may_raise:
        stays = all(_is_computed_for_every_row(part, join.children) for part in parts) if is_late else True
        if not stays or _may_get_conditions(join):
            yield join.may_raise
    tested = [part for part in parts if is_late or part.kind != "EqualNullSafe"]
    columns = frozenset[int]().union(*(part.columns for part in tested))
    others = frozenset[int]().union(*(part.columns for part in tested if part.kind not in EQUALITIES))
    for side, rules in join.sides:
        if is_late or rules.gets_conditions:
            for column in columns.intersection(side.output):
                if column in others or not gives_every_row(side, frozenset({column})):
                    yield from _computed(side, column)


def _is_computed_for_every_row(part: Expression, sides: Sequence[Node]) -> bool:
    """True for a comparison whose operands the join of two sides computes for each row, or that raise for none.

    A join computes its keys for all rows of a side.
    """
    if part.kind not in EQUALITIES and part.kind not in COMPARISONS:
        return False
    return all(
        probed_column(each) is not None
        or each.kind == "Literal"
        or (
            part.kind in EQUALITIES
            and any(
                each.columns and each.columns.issubset(side.output) and gives_every_row(side, null_columns(each))
                for side in sides
            )
        )
        for each in part.children
    )


def gives_every_row(node: Node, columns: frozenset[int]) -> bool:
    """True for all rows of a leaf or of a limit, perhaps projected, but for some with NULL in one of `columns`."""
    match node:
        case Passthrough():
            return gives_every_row(node.children[0], columns)
        case Project(made=made):
            known = made or {}
            sources = (null_columns(known[each]) if each in known else frozenset({each}) for each in columns)
            return gives_every_row(node.children[0], frozenset[int]().union(*sources))
        case Filter(condition=condition):
            parts = [part for _, part in conjuncts_at(condition)]
            computed = _computed_test(node)
            spares_none = all(
                part.kind == "IsNotNull"
                and part.columns <= columns
                and (part.children[0].column is not None or part.children[0] == computed)
                for part in parts
            )
            return spares_none and gives_every_row(node.children[0], columns)
        case Limit():
            return True
        case _:
            return not node.children


def null_columns(expression: Expression) -> frozenset[int]:
    """The only column of an expression that raises on no NULL in it; empty for others.

    With two columns, what is computed of one raises before the NULL in the other is seen.
    """
    columns = expression.columns
    return columns if len(columns) == 1 and _is_null_of_null(expression) else frozenset()


def _is_null_of_null(expression: Expression) -> bool:
    return expression.kind in _NULL_OF_NULL and all(map(_is_null_of_null, expression.children))


def _may_get_conditions(join: Join) -> bool:
    """True where no condition is on a computed key of a join although one is on the column that it is compared with.

    Spark copies it where a join is an inner one from the start, which one that was an outer join is not.
    """
    below = (part for side in join.children for part in _conditions(side) if part.kind != "IsNotNull")
    conditions = tuple(below)
    for _, part in conjuncts_at(join.condition):
        if part.kind == "EqualTo":
            for key, other in (part.children, part.children[::-1]):
                is_limited = any(other.columns & each.columns for each in conditions)
                if probed_column(key) is None and is_limited and not any(_has(each, key) for each in conditions):
                    return True
    return False


def _has(condition: Expression, part: Expression) -> bool:
    return condition == part or any(_has(each, part) for each in condition.children)


def _computed(node: Node, column: int) -> Iterator[str]:
    """The expressions that may raise below which Spark puts a condition on a column of `node`."""
    match node:
        case Project(made=made, children=(child,)) | Grouping(groups=made, children=(child,)) if made is not None:
            expression = made.get(column)
            source = None if expression is None else probed_column(expression)
            if source is not None:
                yield from _computed(child, source)
            # Spark moves no condition below a random column.
            elif expression is not None and node.may_raise and node.is_deterministic:
                yield "" if expression in tested_for_null(child) else node.may_raise
        case Filter() | Passthrough() | Generate() | Join() | Node(kind="ArrowEvalPython" | "BatchEvalPython"):
            for child in node.children:
                if column in child.output:
                    yield from _computed(child, column)
        case Union():
            for child in node.children:
                yield from _computed(child, child.output[node.output.index(column)])
        case Limit() | Relation():
            return
        case _:
            yield from (each.may_raise for child in node.children for each in child.walk())


def tested_for_null(root: Node) -> Iterator[Expression]:
    """The computed expressions that conditions of a plan, but not those of its subqueries, ask not to be NULL."""
    yield from filter(None, map(_computed_test, _filters(root)))


def _computed_test(node: Filter) -> Expression | None:
    """The expression that a filter computes to ask that it is not NULL, which may raise; None if there are several.

    A plan does not tell `try_cast` from a cast. As the only such test it would raise on no value, and neither would the
    filter; beside a cast it drops the values that the cast refuses.
    """
    parts = (part for _, part in conjuncts_at(node.condition) if part.kind == "IsNotNull")
    computed = [part.children[0] for part in parts if part.children[0].column is None]
    return computed[0] if len(computed) == 1 and node.may_raise else None


def _conditions(root: Node) -> Iterator[Expression]:
    yield from (part for node in _filters(root) for _, part in conjuncts_at(node.condition))


def _filters(root: Node) -> Iterator[Filter]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        if isinstance(node, Filter):
            yield node
