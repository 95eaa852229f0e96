"""`JoinCondition`: one comparison of a probe key with the keys of a build side, and the probe values that match.

    probe = build     the values of the keys            probe >= build    the least key and all above it
    probe <=> build   these values, if none is NULL     probe <= build    the greatest key and all below it
    probe = build or (probe = build) is NULL, as in NOT IN: these values, if neither side has a NULL

A filter that compares with a scalar subquery is a join with one row, written another way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from pruning.keys.summary import COMPARISONS, Bound, KeySummary, bounded
from pruning.query.effects import effect_beside, effects
from pruning.query.expressions import EQUALITIES
from pruning.query.join_types import JoinType
from pruning.query.lineage import partners
from pruning.query.plan import (
    Expression,
    Filter,
    GlobalAggregate,
    Grouping,
    Join,
    Limit,
    Node,
    Passthrough,
    PlanNames,
    Project,
    conjuncts_at,
    is_field,
)
from pruning.reasons import Reason, ReasonCode

_SUBQUERY = "ScalarSubquery"


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """One comparison of a join, or of a filter with a scalar subquery.

    - `node`: the join or the filter
    - `path`: the child indices that lead to the build key in the condition of `node`
    - `bound`: the side of the keys on which values match; None for an equality
    - `null_safe`: True for `<=>`, by which NULL matches NULL
    - `null_aware`: True for the comparison of NOT IN, by which NULL matches everything
    """

    node: Join | Filter
    path: tuple[int, ...]
    bound: Bound | None = None
    null_safe: bool = False
    null_aware: bool = False

    @property
    def is_scalar(self) -> bool:
        """True for the comparison of a filter with a subquery of one row."""
        return isinstance(self.node, Filter)

    @property
    def is_equality(self) -> bool:
        """True for `=` of a join."""
        return self.bound is None and not self.depends_on_null and not self.is_scalar

    @property
    def depends_on_null(self) -> bool:
        """True where a NULL matches, or lets nothing pass."""
        return self.null_safe or self.null_aware

    @property
    def is_narrowing(self) -> bool:
        """True where the condition itself may drop probe values, even if the build side drops no rows."""
        return self.bound is not None or self.is_scalar

    def domain(self, keys: KeySummary, subject: str) -> KeySummary | Reason:
        """The values that match one of the `keys` of a finished build; a `Reason` about `subject` if there are none.

        Filters of scans drop NULL, so a null-safe equality with a NULL key cannot become one, and NULL in NOT IN meets
        every row. Spark raises an error for a scalar subquery of several rows, equal and NULL rows included, unless the
        scan that it filters is empty.
        """
        if self.null_safe and keys.null_rows:
            return Reason(ReasonCode.NULL_SAFE, subject)
        if self.null_aware and keys.null_rows:
            return Reason(ReasonCode.NULL_AWARE, subject, f"NULL in {keys.null_rows:,} rows")
        if self.is_scalar and keys.rows > 1:
            found = f"a scalar subquery gave {keys.rows:,} rows, for which Spark raises an error"
            return Reason(ReasonCode.BUILD_FAILED, subject, found)
        return self.bounds(keys)

    def bounds(self, keys: KeySummary) -> KeySummary:
        """The values but NULL that match one of `keys`, whose rows need not be counted, as those from statistics."""
        return keys if self.bound is None else bounded(keys, self.bound)


@dataclass(frozen=True, slots=True)
class BuildSide:
    """A subtree whose rows hold every value of `key` that a probe key may match by `condition`."""

    node: Node
    key: Expression
    condition: JoinCondition

    @property
    def join(self) -> Join | Filter:
        """The join that drops rows without a key; a filter for a scalar subquery."""
        return self.condition.node

    @property
    def id(self) -> tuple[int, str]:
        """An id that is equal for two build sides whose keys let the same values pass.

        A column key is named by its id, since names repeat; any other key by its path in the plan.
        """
        condition, column = self.condition, self.key.column
        place = f"#{column}" if column is not None else "/".join(map(str, (condition.node.id, *condition.path)))
        kind = "" if condition.bound is None else f" {condition.bound.value}"
        return self.node.id, f"{place}{kind}{'?' * condition.null_safe}{'!' * condition.null_aware}"

    @property
    def is_widened_bound(self) -> bool:
        """True for a bound whose type is wider than that of the columns from which it is computed.

        Statistics of these columns would end the range at the limit of the narrower type.
        """
        return self.condition.bound is not None and self.key.column is None

    @property
    def may_raise(self) -> bool:
        """True for a scalar subquery that may give several rows, for which Spark raises an error."""
        return self.condition.is_scalar and not is_one_row(self.node)

    def domain(self, keys: KeySummary) -> KeySummary | Reason:
        """The values of a probe key that match one of the `keys` of a finished build; a `Reason` if there are none."""
        return self.condition.domain(keys, str(self.key))

    def described(self, names: PlanNames) -> str:
        """The name of the key, with the side of it on which values match."""
        return self.described_key(names.expression(self.key))

    def described_key(self, key: str) -> str:
        """`key` with the side of it on which values match."""
        return key if self.condition.bound is None else f"{self.condition.bound.value} {key}"


def fallback_build_sides(build_side: BuildSide) -> tuple[BuildSide, ...]:
    """Build sides below the first join of `build_side`, which read fewer tables; the keys of each hold all its keys.

    Empty for conditions that depend on NULL, since an outer join may add a NULL that no table holds, and for a scalar
    subquery.
    """
    if build_side.condition.depends_on_null or build_side.condition.is_scalar:
        return ()
    node, column = build_side.node, build_side.key.column
    while column is not None:
        match node:
            case Passthrough() | Filter():
                node = node.children[0]
            case Project(made=made) if made is not None:
                expression = made.get(column)
                column = None if expression is None else expression.column
                node = node.children[0]
            case Grouping(groups=groups) if groups is not None:
                expression = groups.get(column)
                column = None if expression is None else expression.column
                node = node.children[0]
            case Join():
                return tuple(_build_sides_below(node, column, build_side))
            case _:
                return ()
    return ()


def _build_sides_below(join: Join, column: int, build_side: BuildSide) -> Iterator[BuildSide]:
    equal = {column}
    # The equal column of the other side holds every value of this one only if each row must have a partner there.
    if all(rules.needs_match for _, rules in join.sides):
        equal |= set(partners(join, column))
    for side in join.children:
        # No comparison leads to a field of these, so that the engine could not compute it.
        for each in sorted(at for at in equal & set(side.output) if not is_field(at)):
            key = Expression("AttributeReference", (), each, build_side.key.type, build_side.key.text)
            yield BuildSide(side, key, replace(build_side.condition, path=()))


def sides_of(join: Join, part: Expression) -> tuple[int, int] | None:
    """The indices of a comparison's children on the left and on the right side of a join; None for other conditions."""
    if part.kind not in COMPARISONS:
        return None
    left, right = set(join.left.output), set(join.right.output)
    first, second = (each.columns for each in part.children)
    if first and second and first <= left and second <= right:
        return 0, 1
    return (1, 0) if first and second and first <= right and second <= left else None


def equal_keys(join: Join, kinds: Collection[str] = EQUALITIES) -> list[tuple[Expression, Expression]]:
    """The keys that each equality of a join compares, that of the left side first."""
    parts = [part for _, part in conjuncts_at(join.condition) if part.kind in kinds]
    found = ((part, sides_of(join, part)) for part in parts)
    return [(part.children[sides[0]], part.children[sides[1]]) for part, sides in found if sides is not None]


def is_one_row(node: Node) -> bool:
    """True where a plan surely gives at most one row."""
    match node:
        case GlobalAggregate():
            return True
        case Limit(kind="GlobalLimit", count=0 | 1):
            return True
        case Limit() | Passthrough() | Project() | Filter() | Grouping():
            return is_one_row(node.children[0])
        case Join():
            return node.sides[0][1].at_most_once and is_one_row(node.left)
        case _:
            return node.kind == "OneRowRelation"


def has_effect_elsewhere(root: Node, at: int) -> bool:
    """True if a part of the plan that does not contain node `at` does more than give rows.

    A scalar subquery may give several rows, for which Spark raises an error, and `effects()` count rows or call
    functions. Spark drops that part, and its effect, if it knows while planning that a join or filter has no row. So a
    node that gives no row must not become a constant there.
    """
    if effect_beside(effects(root), at) is not None:
        return True
    for node in root.walk():
        plans = [each for each in node.subqueries if not is_one_row(each)]
        if isinstance(node, Join) and JoinType.of(node.type).is_scalar:
            plans.append(node)
        if any(not each.contains(at) for each in plans):
            return True
    return False


def scalars_of(filter_: Filter) -> Iterator[tuple[Expression, Expression, BuildSide]]:
    """The comparisons of a filter with a scalar subquery, or with a field of one that holds the values of several.

    Each comes with its probe key and its build side, which is the one row of the subquery. The build key has no column
    if it is computed from the subquery, as by a cast.
    """
    plans = _plans(filter_)
    for path, part in conjuncts_at(filter_.condition):
        if part.kind not in COMPARISONS:
            continue
        for build, probe in ((0, 1), (1, 0)):
            found = None if part.children[build].columns else _key(part.children[build], plans)
            if found is not None and part.children[probe].columns:
                bound, null_safe = COMPARISONS[part.kind][probe], part.kind == "EqualNullSafe"
                condition = JoinCondition(filter_, (*path, build), bound, null_safe)
                yield part, part.children[probe], BuildSide(*found, condition)


def _plans(filter_: Filter) -> dict[int, Node]:
    """The plan of each scalar subquery, by the identity of its expression; empty if other expressions have plans."""
    found = [] if filter_.condition is None else list(scalar_subqueries(filter_.condition))
    if len(found) != len(filter_.subqueries):
        return {}
    return {id(each): plan for each, plan in zip(found, filter_.subqueries, strict=True)}


def scalar_subqueries(expression: Expression) -> Iterator[Expression]:
    """The scalar subqueries in an expression, children first, which is the order of the plans of a node."""
    for child in expression.children:
        yield from scalar_subqueries(child)
    if expression.kind == _SUBQUERY:
        yield expression


def _key(expression: Expression, plans: dict[int, Node]) -> tuple[Node, Expression] | None:
    """The build node and the key of an expression of scalar subqueries; None if it has none with a known plan."""
    known = [plans[id(each)] for each in scalar_subqueries(expression) if id(each) in plans]
    return _value(expression, plans) or ((known[0], expression) if known else None)


def _value(expression: Expression, plans: dict[int, Node]) -> tuple[Node, Expression] | None:
    """The build node and the key expression of a scalar subquery, or of a field of the struct that it returns."""
    if expression.kind == _SUBQUERY:
        plan = plans.get(id(expression))
        return None if plan is None else (plan, Expression("AttributeReference", (), plan.output[0], "", "value"))
    if expression.kind != "GetStructField" or expression.children[0].kind != _SUBQUERY:
        return None
    plan = plans.get(id(expression.children[0]))
    if not isinstance(plan, Project) or plan.made is None or not plan.is_deterministic or not expression.text:
        return None
    made = plan.made[plan.output[0]]
    # The children of `CreateNamedStruct` alternate between names and values.
    field = made.children[2 * int(expression.text) + 1] if made.kind == "CreateNamedStruct" else made
    return (plan.children[0], field) if field.column is not None and field is not made else None
