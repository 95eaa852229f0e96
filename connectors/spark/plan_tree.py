"""The text of an optimised plan as an engine-free tree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from typing import Any, TypeAlias
from urllib.parse import unquote_plus

from pyspark.sql.types import StructType

from pruning.query.expressions import is_frame_order_free, is_order_free, is_rank
from pruning.query.fallible import first_fallible
from pruning.query.plan import (
    Expression,
    Field,
    Filter,
    Generate,
    GlobalAggregate,
    Grouping,
    Join,
    Limit,
    Node,
    Passthrough,
    Project,
    RankLimit,
    Relation,
    Sort,
    SortKey,
    Union,
    columns_by_place,
    is_field,
)
from pruning.query.struct_fields import with_fields

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_PASSING = {
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
    "SubqueryAlias",
    "ReturnAnswer",
}
# The keys by which Spark marks structs whose fields are in no file: `_metadata`, and those that it makes of a variant.
_METADATA, _VARIANT = "__metadata_col", "__VARIANT_METADATA_KEY"
_DIRECTIONS = ("Ascending", "Descending")
_NULLS = ("NullsFirst", "NullsLast")


# The fields that every kind of node has.
_Same: TypeAlias = tuple[int, int, str, tuple[int, ...], tuple[Node, ...], tuple[Node, ...], bool]


class UnreadablePlanError(Exception):
    """The text of a plan does not match the nodes of the JVM."""


def plan_tree(text: str, described: str) -> tuple[Node, frozenset[int]]:
    """The tree of a plan, and the ids of the engine's columns that some expression or the result uses.

    `text` is Spark's JSON of the plan; `described` has a line for each node, in the order of places.
    `UnreadablePlanError` if the two do not match.
    """
    reader = _Reader(described.splitlines())
    root = reader.read(json.loads(text))
    used = frozenset(reader.used).union(root.output, columns_by_place(root))
    return with_fields(root), frozenset(at for at in used if not is_field(at))


@dataclass(slots=True)
class _Reader:
    """Reads nodes in the order of the text, and their descriptions by the JVM from `lines`, in the order of places.

    `structs` has the type of each column that is a struct, by its id.
    """

    lines: Sequence[str]
    used: set[int] = field(default_factory=set)
    structs: dict[int, Any] = field(default_factory=dict)
    _fields: Iterator[int] = field(default_factory=lambda: count(-1, -1))
    _at: int = 0

    def read(self, items: list[Any]) -> Node:
        """The tree of all items."""
        rest = iter(items)
        root = self._node(rest)
        if self._at != len(self.lines) or next(rest, None) is not None:
            msg = f"its text has {self._at} nodes, and the plan {len(self.lines)}"
            raise UnreadablePlanError(msg)
        return root

    def _node(self, rest: Iterator[Any]) -> Node:
        item = next(rest)
        first = self._at
        children = tuple(self._node(rest) for _ in range(item["num-children"]))
        fields = {name: self._field(value) for name, value in item.items() if name not in ("class", "num-children")}
        subqueries = tuple(plan for each in fields.values() for plan in each.subqueries)
        if self._at >= len(self.lines):
            msg = f"its text has more nodes than the plan's {len(self.lines)}"
            raise UnreadablePlanError(msg)
        name, deterministic, traits, table, *output = self.lines[self._at].split(" ")
        if name != item["class"]:
            msg = f"its text has a {item['class']} at {self._at}, and the plan a {name}"
            raise UnreadablePlanError(msg)
        expressions = {name: each.expressions for name, each in fields.items()}
        if children:
            self.used.update(*(each.columns for group in expressions.values() for each in group))
        made = _made(
            Node(
                self._at,
                first,
                name.rpartition(".")[2],
                tuple(map(int, output)),
                children,
                subqueries,
                deterministic == "1",
            ),
            expressions,
            item,
            unquote_plus(table),
        )
        if isinstance(made, Relation) and (inside := tuple(self._fields_of(made))):
            made = replace(made, output=(*made.output, *(each.column for each in inside)), fields=inside)
        self._at += 1
        own = [each for group in expressions.values() for each in group] if children else []
        may_raise = first_fallible(own, traits)
        return replace(made, may_raise=may_raise) if may_raise else made

    def _field(self, value: Any) -> _Field:
        """The expressions of one field of a node, and the plans inside them."""
        if not isinstance(value, list):
            return _Field((), ())
        if value and isinstance(value[0], dict) and "class" in value[0]:
            return self._expression_list([value])
        return self._expression_list([each for each in value if isinstance(each, list)])

    def _expression_list(self, lists: list[Any]) -> _Field:
        found: list[Expression] = []
        plans: list[Node] = []
        for each in lists:
            if each and isinstance(each[0], dict) and "num-children" in each[0]:
                rest = iter(each)
                found.append(self._expression(rest, plans))
            elif each and isinstance(each[0], list):
                inner = self._expression_list(each)
                found += inner.expressions
                plans += inner.subqueries
        return _Field(tuple(found), tuple(plans))

    def _fields_of(self, relation: Relation) -> Iterator[Field]:
        """The fields of the structs of a scan whose types are atomic."""
        for column, name in zip(relation.output, relation.names, strict=True):
            for path, type_ in _leaves(self.structs.get(column), (name,)):
                yield Field(next(self._fields), column, path, type_)

    def _expression(self, rest: Iterator[Any], plans: list[Node]) -> Expression:
        return self._typed(rest, plans)[0]

    def _typed(self, rest: Iterator[Any], plans: list[Node]) -> tuple[Expression, Any]:
        """An expression, and its type by Spark's JSON if it is a column or a field of one; else None."""
        item = next(rest)
        typed = [self._typed(rest, plans) for _ in range(item["num-children"])]
        children = tuple(each for each, _ in typed)
        plan = item.get("plan")
        if isinstance(plan, list):
            plans.append(self._node(iter(plan)))
        kind = str(item["class"]).removeprefix(_EXPRESSIONS)
        match kind:
            case "AttributeReference":
                type_ = item["dataType"]
                if _is_struct(type_) and _METADATA not in (item.get("metadata") or {}):
                    self.structs[_id(item)] = type_
                return Expression(kind, (), _id(item), _sql_type(type_), str(item["name"])), type_
            case "Alias":
                return Expression(kind, children, _id(item), children[0].type, str(item["name"])), typed[0][1]
            case "Literal":
                return Expression(kind, (), None, _sql_type(item["dataType"]), str(item.get("value"))), None
            case "Cast":
                return Expression(kind, children, None, _sql_type(item["dataType"])), None
            case "SortOrder":
                order = f"{_object(item['direction'])} {_object(item['nullOrdering'])}"
                return Expression(kind, children, text=order), None
            case "objects.StaticInvoke":
                return Expression(kind, children, text=str(item.get("functionName") or "")), None
            case "GetStructField" if _is_struct(typed[0][1]):
                found = typed[0][1]["fields"][int(item["ordinal"])]
                return Expression(kind, children, None, _sql_type(found["type"]), str(found["name"])), found["type"]
            case "GetStructField":
                return Expression(kind, children, text=str(item["ordinal"])), None
            case _:
                return Expression(kind, children), None


@dataclass(frozen=True, slots=True)
class _Field:
    expressions: tuple[Expression, ...]
    subqueries: tuple[Node, ...]


def _is_struct(type_: Any) -> bool:
    return isinstance(type_, dict) and type_["type"] == "struct"


def _leaves(type_: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The path and the SQL type of each field of a struct that is atomic, but for those that share a name.

    A struct that Spark makes of a variant has none: no file has its fields.
    """
    fields = type_["fields"] if _is_struct(type_) else ()
    if any(_VARIANT in (each.get("metadata") or {}) for each in fields):
        return
    names = Counter(each["name"] for each in fields)
    for each in fields:
        if names[each["name"]] > 1:
            continue
        if sql_type := _sql_type(each["type"]):
            yield (*path, each["name"]), sql_type
        yield from _leaves(each["type"], (*path, each["name"]))


def _id(item: Mapping[str, Any]) -> int:
    return int(item["exprId"]["id"])


def _sql_type(value: Any) -> str:
    """Spark's name of a type; empty for one that is not atomic."""
    return _atomic_type(value) if isinstance(value, str) else ""


@lru_cache(maxsize=1024)
def _atomic_type(name: str) -> str:
    # Cached, since a plan names the same few types thousands of times, and parsing a type is slow.
    field = {"name": "x", "type": name, "nullable": True, "metadata": {}}
    try:
        return str(StructType.fromJson({"type": "struct", "fields": [field]})["x"].dataType.simpleString())
    except (ValueError, KeyError):
        return ""


def _made(node: Node, expressions: Mapping[str, tuple[Expression, ...]], item: Mapping[str, Any], table: str) -> Node:
    """The node as an object of the class of its kind; an opaque `Node` if the kind has no class."""
    same: _Same = (
        node.id,
        node.subtree_start,
        node.kind,
        node.output,
        node.children,
        node.subqueries,
        node.is_deterministic,
    )
    match node.kind:
        case "LogicalRelation":
            known = _named_columns(node, expressions.get("output", ()))
            return Relation(*same, tuple(each.text for each in known), tuple(each.type for each in known), table)
        case "Project":
            return Project(*same, _by_output(expressions["projectList"]))
        case "Filter":
            return Filter(*same, *expressions["condition"])
        case "Join":
            return Join(*same, _join_type(item["joinType"]), *expressions.get("condition", ())[:1])
        case "Aggregate":
            outputs, keys = expressions["aggregateExpressions"], expressions["groupingExpressions"]
            is_free = all(map(is_order_free, outputs))
            return Grouping(*same, _groups(keys, outputs), is_free) if keys else GlobalAggregate(*same, {}, is_free)
        case "Window" | "WindowGroupLimit":
            return _windowed(same, expressions, item)
        case "Sort" | "GlobalLimit" | "LocalLimit" | "Offset":
            return _first_rows(same, expressions, item)
        case "Union":
            return Union(*same)
        case "Generate":
            return Generate(*same)
        case kind if kind in _PASSING and len(node.children) == 1:
            return Passthrough(*same)
        case _:
            return node


def _named_columns(node: Node, named: Sequence[Expression]) -> list[Expression]:
    """The columns of a table in the order of the plan."""
    by_id = {each.column: each for each in named}
    if not by_id.keys() >= set(node.output):
        msg = "its text names other columns of a table than the plan"
        raise UnreadablePlanError(msg)
    return [by_id[each] for each in node.output]


def _windowed(same: _Same, expressions: Mapping[str, tuple[Expression, ...]], item: Mapping[str, Any]) -> Grouping:
    keys = {each.column for each in expressions["partitionSpec"] if each.kind == "AttributeReference"}
    functions = expressions.get("rankLikeFunction", ())
    order_free = all(map(is_frame_order_free, expressions.get("windowExpressions", ())))
    order_free &= all(map(is_rank, functions))
    groups = _equal_columns(same[4][0], keys)
    limit = _whole(item["limit"]) if functions and not expressions["partitionSpec"] else None
    match [each.kind for each in functions]:
        case ["Rank"] if not expressions["partitionSpec"]:
            return RankLimit(*same, groups, order_free, order=_order(expressions["orderSpec"]), count=limit)
        case ["RowNumber"]:
            return Grouping(*same, groups, order_free, most=limit)
        case _:
            return Grouping(*same, groups, order_free)


def _first_rows(same: _Same, expressions: Mapping[str, tuple[Expression, ...]], item: Mapping[str, Any]) -> Node:
    if "order" in expressions:
        return Sort(*same, _order(expressions["order"]), item["global"] is True)
    return Limit(*same, _literal(expressions.get("limitExpr") or expressions.get("offsetExpr") or ()))


def _by_output(named: Sequence[Expression]) -> dict[int, Expression]:
    """The expression of each output column, by id."""
    return {each.column: _unnamed(each) for each in named if each.column is not None}


def _unnamed(expression: Expression) -> Expression:
    return expression.children[0] if expression.kind == "Alias" else expression


def _groups(grouping: Sequence[Expression], outputs: Sequence[Expression]) -> dict[int, Expression]:
    keys = {each.column for each in grouping if each.kind == "AttributeReference"}
    return {column: each for column, each in _by_output(outputs).items() if _uncast(each).column in keys}


def _uncast(expression: Expression) -> Expression:
    """The expression below casts: Spark casts the distinct keys of a join above the aggregate that finds them."""
    while expression.kind == "Cast":
        expression = expression.children[0]
    return expression


def _equal_columns(child: Node, keys: Collection[int | None]) -> dict[int, Expression]:
    """The other columns of a node that are equal to one of its columns `keys`."""
    made: Mapping[int, Expression] = {}
    if isinstance(child, Project) and child.made is not None:
        made = child.made
    origin = {column: made[column].column if column in made else column for column in child.output}
    equal = {origin[key] for key in keys if key in origin} - {None}
    return {
        column: Expression("AttributeReference", (), column)
        for column in child.output
        if column in keys or origin[column] in equal
    }


def _join_type(value: Any) -> str:
    """Spark's name of a join type; existence joins carry a column."""
    return _object(value)


def _object(value: Any) -> str:
    """The name of an object or a product of Spark's, without its package."""
    name = str(value.get("object") or value.get("product-class") or "") if isinstance(value, dict) else ""
    return name.removesuffix("$").rpartition(".")[2]


def _order(orders: Sequence[Expression]) -> tuple[SortKey, ...]:
    """The sort keys of rows, the most significant first."""
    found = []
    for each in orders:
        direction, _, nulls = each.text.partition(" ")
        if each.kind != "SortOrder" or direction not in _DIRECTIONS or nulls not in _NULLS:
            msg = f"its text orders rows by {each.kind} {each.text!r}"
            raise UnreadablePlanError(msg)
        found.append(SortKey(each.children[0], direction == _DIRECTIONS[1], nulls == _NULLS[0]))
    return tuple(found)


def _literal(expressions: Sequence[Expression]) -> int | None:
    """The integer value of a single literal; None for anything else."""
    return _whole(expressions[0].text) if [each.kind for each in expressions] == ["Literal"] else None


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() else None
