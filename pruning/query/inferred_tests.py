"""`late_null_test`: a test for NULL that Spark adds where it optimises a plan again, and that may raise an error.

From `a = b` of a join Spark infers `b IS NOT NULL` (`InferFiltersFromConstraints`), once for each plan: before `IN` and
`EXISTS` become joins, and before outer joins become inner ones. A pruned plan has these joins already, and is optimised
again: the test of a computed column then goes below the joins that spare its expression some values.
"""

from __future__ import annotations

from collections.abc import Iterator

from pruning.query.expressions import probed_column
from pruning.query.plan import (
    Expression,
    Filter,
    Generate,
    Grouping,
    Join,
    Node,
    Passthrough,
    Project,
    Union,
    conjuncts_at,
)


def late_null_test(root: Node) -> str:
    """The first expression that may raise in such a test; empty if no test may.

    Tests that stand in the plan already are those of joins which have been inner ones from the start.
    """
    joins = (node for node in root.walk() if isinstance(node, Join))
    return next((each for join in joins for each in _inferred(join)), "")


def _inferred(join: Join) -> Iterator[str]:
    parts = (part for _, part in conjuncts_at(join.condition) if part.kind != "EqualNullSafe")
    columns = frozenset[int]().union(*(part.columns for part in parts))
    for side, rules in join.sides:
        if rules.gets_conditions:
            for column in columns.intersection(side.output):
                yield from _computed(side, column)


def _computed(node: Node, column: int) -> Iterator[str]:
    """The expressions that may raise below which Spark puts a test of a column of `node`."""
    match node:
        case Project(made=made, children=(child,)):
            expression = (made or {}).get(column)
            source = None if expression is None else probed_column(expression)
            if source is not None:
                yield from _computed(child, source)
            elif node.may_raise and _is_above_a_join(child) and expression not in {*tested_for_null(child)}:
                yield node.may_raise
        case Grouping(groups=groups, children=(child,)) if groups is not None:
            key = groups.get(column)
            source = None if key is None else probed_column(key)
            if source is not None:
                yield from _computed(child, source)
        case Filter() | Passthrough() | Generate() | Join():
            for child in node.children:
                if column in child.output:
                    yield from _computed(child, column)
        case Union():
            for child in node.children:
                yield from _computed(child, child.output[node.output.index(column)])
        case _:
            return


def _is_above_a_join(node: Node) -> bool:
    """True where an operator may drop rows of a leaf, other than a condition, which Spark tests before what it adds."""
    match node:
        case Passthrough() | Project() | Filter():
            return _is_above_a_join(node.children[0])
        case _:
            return bool(node.children)


def tested_for_null(root: Node) -> Iterator[Expression]:
    """The expressions that conditions of a plan, but not those of its subqueries, ask not to be NULL."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        if isinstance(node, Filter):
            yield from (part.children[0] for _, part in conjuncts_at(node.condition) if part.kind == "IsNotNull")
