"""Plans made by hand. Nodes are numbered as the plan reader numbers them, children first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pruning.options import PruningOptions
from pruning.query.build_selection import BuildSelection
from pruning.query.filter_plan import FilterId, RuntimeFilter, UnusedFilter, ready_filters, unused
from pruning.query.join_graph import JoinGraph
from pruning.query.plan import (
    Expression,
    Filter,
    Generate,
    GlobalAggregate,
    Grouping,
    Join,
    Limit,
    Node,
    Passthrough,
    Project,
    Relation,
    Union,
)
from pruning.query.plan_statistics import Sizes, UnknownStatistics
from pruning.query.requests import Request, answered
from pruning.reasons import Reason


class ManyValues(UnknownStatistics):
    """Columns of a million values, and builds whose rows are few enough to be joined."""

    def domain_size(self, relation: Relation, column: int) -> float | None:  # noqa: ARG002 - of a protocol
        return 1e6

    def are_few(self, node: Node, rows: float) -> bool:  # noqa: ARG002 - of a protocol
        return True


def never_asked(request: Request[object]) -> object:
    """No answer: statistics of tests are all known beforehand."""
    msg = f"asked for {request}"
    raise AssertionError(msg)


def ready(
    graph: JoinGraph, sizes: Sizes, done: Collection[FilterId], options: PruningOptions
) -> tuple[tuple[RuntimeFilter, ...], tuple[Reason, ...]]:
    """`ready_filters()` with the statistics of `sizes`."""
    return answered(ready_filters(BuildSelection.of(graph, sizes, options), done), never_asked)


def left_out(
    graph: JoinGraph,
    sizes: Sizes,
    options: PruningOptions,
    levels: Sequence[Sequence[RuntimeFilter]] = (),
) -> tuple[UnusedFilter, ...]:
    """`unused()` with the statistics of `sizes`."""
    return answered(unused(BuildSelection.of(graph, sizes, options), levels), never_asked)


def column(at: int, type_: str = "bigint", name: str = "k") -> Expression:
    """A column. The name defaults to one that all columns share, since the id identifies a column."""
    return Expression("AttributeReference", (), at, type_, name)


def literal(value: object) -> Expression:
    return Expression("Literal", (), None, "bigint", str(value))


def call(kind: str, *children: Expression, type_: str = "") -> Expression:
    return Expression(kind, children, None, type_)


def equal(first: int | Expression, second: int | Expression) -> Expression:
    return call("EqualTo", *(each if isinstance(each, Expression) else column(each) for each in (first, second)))


def both(*parts: Expression) -> Expression | None:
    """The conjunction of all parts, None without a part."""
    whole: Expression | None = None
    for part in parts:
        whole = part if whole is None else call("And", whole, part)
    return whole


def checked(expression: Expression, refused: object) -> Expression:
    """The value of an expression; an error if it is `refused`."""
    return Expression("Checked", (expression,), text=str(refused))


def raising(*expressions: Expression | None) -> str:
    """The kind of the first expression that may raise an error; empty if none may."""
    below = (raising(*each.children) or ("Checked" if each.kind == "Checked" else "") for each in expressions if each)
    return next(filter(None, below), "")


def at_least(at: int, value: int) -> Expression:
    """A condition that drops rows."""
    return call("GreaterThanOrEqual", column(at), literal(value))


@dataclass
class Plans:
    """A factory of nodes, numbered in the order of creation: Python makes the arguments of a call before the node
    itself.
    """

    next_id: int = 0
    columns: int = 0

    def fresh(self, count: int = 1) -> tuple[int, ...]:
        self.columns += count
        return tuple(range(self.columns - count, self.columns))

    def place(self, children: Sequence[Node]) -> tuple[int, int]:
        own, self.next_id = self.next_id, self.next_id + 1
        return own, min([own, *(each.subtree_start for each in children)])

    def table(self, *names: str, type_: str = "bigint") -> Relation:
        output = self.fresh(len(names))
        types = tuple(type_ for _ in names)
        return Relation(*self.place(()), "LogicalRelation", output, names=names, types=types)

    def other(
        self,
        kind: str,
        *children: Node,
        output: tuple[int, ...] | None = None,
        subqueries: tuple[Node, ...] = (),
        is_deterministic: bool = True,
    ) -> Node:
        """A node without a class of its own; `output` defaults to that of its first child."""
        columns = children[0].output if output is None else output
        place = self.place((*children, *subqueries))
        return Node(*place, kind, columns, children, subqueries, is_deterministic)

    def passing(self, kind: str, child: Node) -> Passthrough:
        return Passthrough(*self.place((child,)), kind, child.output, (child,))

    def filter(
        self, child: Node, *parts: Expression, subqueries: tuple[Node, ...] = (), random: bool = False
    ) -> Filter:
        place = self.place((child, *subqueries))
        return Filter(
            *place, "Filter", child.output, (child,), subqueries, not random, both(*parts), may_raise=raising(*parts)
        )

    def project(self, child: Node, *expressions: int | Expression, random: bool = False) -> Project:
        """A projection: plain numbers keep a column's id, expressions get a fresh one."""
        made = {
            each if isinstance(each, int) else self.fresh()[0]: column(each) if isinstance(each, int) else each
            for each in expressions
        }
        place, fails = self.place((child,)), raising(*made.values())
        return Project(*place, "Project", tuple(made), (child,), (), not random, made, may_raise=fails)

    def aggregate(
        self,
        child: Node,
        *keys: int,
        values: int = 1,
        random: bool = False,
        order_free: bool = True,
        may_raise: str = "",
    ) -> Grouping:
        """An aggregate by `keys`; its output has `values` more columns, made of the group's rows."""
        output = (*keys, *self.fresh(values))
        made = self._grouped("Aggregate", child, keys, output, random=random, order_free=order_free)
        return replace(made, may_raise=may_raise)

    def window(self, child: Node, *keys: int, order_free: bool = False) -> Grouping:
        output = (*child.output, *self.fresh())
        return self._grouped("Window", child, keys, output, order_free=order_free)

    def group_limit(self, child: Node, *keys: int, order_free: bool = False) -> Grouping:
        return self._grouped("WindowGroupLimit", child, keys, child.output, order_free=order_free)

    def _grouped(
        self,
        kind: str,
        child: Node,
        keys: Sequence[int],
        output: tuple[int, ...],
        *,
        order_free: bool,
        random: bool = False,
    ) -> Grouping:
        groups = {each: column(each) for each in keys}
        made = GlobalAggregate if kind == "Aggregate" and not keys else Grouping
        return made(*self.place((child,)), kind, output, (child,), (), not random, groups, order_free)

    def limit(self, child: Node, count: int | None, kind: str = "GlobalLimit") -> Limit:
        return Limit(*self.place((child,)), kind, child.output, (child,), count=count)

    def generate(self, child: Node, *, random: bool = False) -> Generate:
        output = (*child.output, *self.fresh())
        return Generate(*self.place((child,)), "Generate", output, (child,), (), not random)

    def union(self, *children: Node) -> Union:
        """A union. Its output has the column ids of its first child, as in Spark."""
        return Union(*self.place(children), "Union", children[0].output, children)

    def join(self, left: Node, right: Node, *parts: Expression, type_: str = "Inner", random: bool = False) -> Join:
        match type_:
            case "LeftSemi" | "LeftAnti":
                output = left.output
            case "ExistenceJoin":
                output = (*left.output, *self.fresh())
            case _:
                output = left.output + right.output
        place = self.place((left, right))
        fails = raising(*parts)
        return Join(*place, "Join", output, (left, right), (), not random, type_, both(*parts), may_raise=fails)
