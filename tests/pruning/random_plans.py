"""Random plans over random tables of few small values, so that keys match, miss, repeat and are NULL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from pruning.query.plan import Expression, Node, Relation
from tests.pruning.plan_interpreter import Row
from tests.pruning.plans import Plans, at_least, call, checked, column, equal, literal

JOIN_TYPES = (
    "Inner",
    "Inner",
    "Inner",
    "LeftOuter",
    "RightOuter",
    "FullOuter",
    "LeftSemi",
    "LeftAnti",
    "ExistenceJoin",
    "LeftSingle",
)
COMPARISONS = ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual")


@dataclass
class RandomPlans:
    """A generator of random plans.

    If `repeatable`, no operator may return other rows when it runs again. If `raises`, some expressions raise an error
    for one value. Tables that are `complete` have a row for each value of their first column, and no NULL.
    """

    random: Random
    repeatable: bool
    plans: Plans
    raises: bool = False
    complete: set[int] = field(default_factory=set)

    @staticmethod
    def of(random: Random, *, repeatable: bool, raises: bool = False) -> RandomPlans:
        return RandomPlans(random, repeatable, Plans(), raises)

    def tree(self, depth: int) -> Node:
        """A plan of at most `depth` nested joins with a join at the top."""
        return self._join(depth, self.random.choice(("Inner", "Inner", *JOIN_TYPES)))

    def _below(self, depth: int) -> Node:
        node: Node
        if depth == 0 or self.random.random() < 0.15:
            node = self.plans.table(*"abc"[: self.random.choice((1, 2, 2, 3))])
        elif self.random.random() < 0.12:
            node = self._union(depth - 1)
        else:
            node = self._join(depth, self.random.choice(JOIN_TYPES))
        while self.random.random() < 0.45:
            node = self._above(node)
        return node

    def _join(self, depth: int, type_: str) -> Node:
        left, right = self._below(depth - 1), self._below(depth - 1)
        parts = [self._part(left, right, type_)]
        while self.random.random() < 0.4:
            parts.append(self._part(left, right, type_))
        return self.plans.join(left, right, *parts, type_=type_)

    def _part(self, left: Node, right: Node, type_: str) -> Expression:
        one, other = self._column(left), self._column(right)
        if self.random.random() < 0.5:
            one, other = other, one
        drawn = self.random.random()
        if drawn < 0.6:
            return call("EqualTo", self._key(one), self._key(other))
        if drawn < 0.75:
            return call(self.random.choice(COMPARISONS), self._key(one), self._key(other))
        if drawn < 0.82:
            return call("EqualNullSafe", column(one), column(other))
        if drawn < 0.9 and type_ == "LeftAnti":
            return call("Or", equal(one, other), call("IsNull", equal(one, other)))
        if drawn < 0.94:
            return call("Or", equal(one, other), at_least(one, 3))
        if drawn < 0.96 and self.raises:
            return call("EqualTo", self._checked(one), column(other))
        return at_least(one, self.random.randrange(3))

    def _key(self, at: int) -> Expression:
        drawn = self.random.random()
        if drawn < 0.1:
            return self._cast(at)
        if drawn < 0.15:
            return call("Coalesce", column(at), literal(0))
        return call("Add", column(at), literal(1)) if drawn < 0.18 else column(at)

    def _cast(self, at: int) -> Expression:
        """A cast to a wider or to a narrower type."""
        return call("Cast", column(at, "int"), type_=self.random.choice(("bigint", "decimal(12,2)", "float")))

    def _column(self, node: Node) -> int:
        return self.random.choice(node.output)

    def _union(self, depth: int) -> Node:
        """A union of projections, each of which is made right after its child, as the plan reader numbers them."""
        children: list[Node] = []
        for _ in range(self.random.choice((2, 2, 3))):
            node = self._below(depth)
            width = len(children[0].output) if children else self.random.randint(1, len(node.output))
            kept = self.random.sample(node.output, min(width, len(node.output)))
            more = (column(self._column(node)) for _ in range(width - len(kept)))
            children.append(self.plans.project(node, *kept, *more))
        return self.plans.union(*children)

    def _above(self, node: Node) -> Node:
        """A plan with one child. Creation numbers a node, so the kind is chosen before any node is created."""
        plans, at = self.plans, self._column(node)
        kinds: list[Callable[[], Node]] = [
            lambda: plans.filter(node, self._condition(at)),
            lambda: self._project(node),
            lambda: plans.aggregate(node, *self.random.sample(node.output, min(len(node.output), 2))),
            lambda: plans.aggregate(node),
            lambda: plans.aggregate(node, at, values=0),
            lambda: plans.window(node, at, order_free=True),
            lambda: plans.generate(node),
            lambda: plans.passing("Sort", node),
            lambda: plans.other("Expand", node),
            lambda: plans.filter(node, at_least(at, 0), subqueries=(self._join(1, "Inner"),)),
            lambda: self.compared_with_scalars(node, at),
            lambda: self.any_of(node),
        ]
        not_repeatable: list[Callable[[], Node]] = [
            lambda: plans.other("GlobalLimit", node),
            lambda: plans.other("Sample", node),
            lambda: plans.other("Deduplicate", node),
            lambda: plans.aggregate(node, at, order_free=False),
            lambda: plans.window(node, *self.random.choice([(), (at,)])),
            lambda: plans.group_limit(node, at),
            lambda: plans.project(node, *node.output, column(at), random=True),
        ]
        raising = self._raising(node, at) * 3 if self.raises else []
        return self.random.choice([*kinds, *([] if self.repeatable else not_repeatable), *raising])()

    def joined_above(self) -> Node:
        """Two tables joined by any type, below expressions that may raise, below a join by a column of the first."""
        plans, random = self.plans, self.random
        left, right = plans.table("a", "b"), plans.table("a", "b")
        key, type_ = left.output[0], random.choice(JOIN_TYPES)
        # Else most of such plans raise an error without any filter.
        self.complete.update((left.id, right.id) if random.random() < 0.6 else ())
        node = plans.join(left, right, equal(key, right.output[0]), type_=type_)
        for _ in range(random.randrange(3)):
            node = random.choice(self._raising(node, key))()
        if random.random() < 0.2:
            table = plans.table(*(f"c{at}" for at in range(len(node.output))))
            node = plans.union(node, table)
            node = random.choice(self._raising(node, key))()
        small = plans.table("a", "b")
        parts = [equal(key, small.output[0])]
        if random.random() < 0.5:
            parts.append(call("EqualNullSafe", self._checked(self._column(node)), column(small.output[1])))
        return plans.join(node, small, *parts, type_=random.choice(("Inner", "LeftSemi")))

    def _raising(self, node: Node, key: int) -> list[Callable[[], Node]]:
        """Operators that keep a column, with expressions that may raise an error, or with others below such."""
        plans, at = self.plans, self._column(node)
        return [
            lambda: plans.project(node, *node.output, self._checked(at)),
            lambda: plans.filter(node, call("EqualNullSafe", self._checked(at), column(at))),
            lambda: plans.aggregate(node, key, may_raise=self.random.choice(("", "Checked"))),
            lambda: plans.aggregate(node, key),
            lambda: plans.window(node, key, order_free=True),
        ]

    def _checked(self, at: int) -> Expression:
        """A column that must not be NULL, as after an outer join, or must not have one value."""
        return checked(column(at), self.random.choice((None, None, 0, 3, 4)))

    def compared_with_scalars(self, node: Node, at: int) -> Node:
        """A filter by one or two scalar subqueries, each an aggregate or a table that may have no row."""
        kinds = self.random.choices(("EqualTo", "EqualNullSafe", *COMPARISONS), k=self.random.choice((1, 1, 2)))
        tables = [self.plans.table("s") if self.random.random() < 0.6 else None for _ in kinds]
        rows = tuple(each or self.plans.aggregate(self.plans.table("s")) for each in tables)
        parts = [call(kind, column(at), call("ScalarSubquery")) for kind in kinds]
        return self.plans.filter(node, *parts, subqueries=rows)

    def any_of(self, node: Node) -> Node:
        """A filter by an OR of marks that joins have made, with other operators between them."""
        random, plans, marks = self.random, self.plans, list[Expression]()
        for _ in range(random.choice((2, 2, 3))):
            one, small = self._column(node), self._below(0) if random.random() < 0.2 else plans.table("a", "b")
            kind = random.choice(("EqualTo",) * 6 + ("EqualNullSafe", *COMPARISONS))
            parts = [call(kind, self._key(one), column(self._column(small)))]
            if random.random() < 0.3:
                parts.append(self._part(node, small, "ExistenceJoin"))
            node = plans.join(node, small, *parts, type_="ExistenceJoin")
            mark = column(node.output[-1])
            marks.append(mark if random.random() < 0.7 else call("And", mark, at_least(self._column(node), 1)))
            if random.random() < 0.3:
                more = (self._checked(self._column(node)),) if self.raises else ()
                node = plans.project(node, *random.sample(node.output, len(node.output)), *more)
            if random.random() < 0.2:
                node = plans.filter(node, self._condition(self._column(node)))
        if random.random() < 0.1:
            marks.append(random.choice((at_least(self._column(node), 2), call("Not", marks[0]))))
        condition = marks[0]
        for each in marks[1:]:
            condition = call("Or", condition, each)
        return plans.filter(node, condition)

    def _condition(self, at: int) -> Expression:
        return self.random.choice([at_least(at, 1), call("IsNotNull", column(at)), call("IsNull", column(at))])

    def _project(self, node: Node) -> Node:
        kept = self.random.sample(node.output, self.random.randrange(1, len(node.output) + 1))
        renamed = column(self.random.choice(kept))
        computed = call("Coalesce", column(self.random.choice(kept)), literal(self.random.randrange(3)))
        cast = self._cast(self.random.choice(kept))
        added = call("Add", column(self.random.choice(kept)), literal(1))
        return self.plans.project(node, *kept, *self.random.choice([(), (renamed,), (computed,), (cast,), (added,)]))

    def rows(self, relation: Relation) -> list[Row]:
        """Random rows of a table."""
        if relation.id in self.complete:
            others = len(relation.output) - 1
            return [(key, *(self.random.choice((1, 2, 3)) for _ in range(others))) for key in range(4)]
        cells = (None, 0, 1, 1, 2, 3)
        return [
            tuple(self.random.choice(cells) for _ in relation.output) for _ in range(self.random.choice((0, 2, 4, 6)))
        ]
