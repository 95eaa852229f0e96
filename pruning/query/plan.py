"""The plan of a query as an engine-free tree that holds only what pruning decisions need.

Columns are the plan's own ids, never names: two columns of a query may share a name, and one may have several.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from pruning.query.join_types import JoinSide, JoinType

_OPERATORS = {
    "Add": "+",
    "And": "AND",
    "Divide": "/",
    "EqualNullSafe": "<=>",
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "IntegralDivide": "DIV",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "Multiply": "*",
    "Or": "OR",
    "Remainder": "%",
    "Subtract": "-",
    "TimestampAddInterval": "+",
}
# Functions whose names in SQL are not those of their kinds.
_FUNCTIONS = {
    "DateDiff": "datediff",
    "DateFormatClass": "date_format",
    "DayOfMonth": "dayofmonth",
    "DayOfWeek": "dayofweek",
    "DayOfYear": "dayofyear",
    "FromUnixTime": "from_unixtime",
    "GetTimestamp": "to_timestamp",
    "InitCap": "initcap",
    "IsNaN": "isnan",
    "NaNvl": "nanvl",
    "RegExpExtract": "regexp_extract",
    "RegExpReplace": "regexp_replace",
    "SecondsToTimestamp": "timestamp_seconds",
    "StringInstr": "instr",
    "StringLPad": "lpad",
    "StringLocate": "locate",
    "StringRPad": "rpad",
    "StringRepeat": "repeat",
    "StringReplace": "replace",
    "StringSplit": "split",
    "StringTranslate": "translate",
    "StringTrim": "trim",
    "StringTrimLeft": "ltrim",
    "StringTrimRight": "rtrim",
    "TruncDate": "trunc",
    "TruncTimestamp": "date_trunc",
    "WeekDay": "weekday",
    "WeekOfYear": "weekofyear",
}
# Operators of one operand, and what the engine puts around values of some types, which no query has.
_AFTER = {"IsNotNull": "IS NOT NULL", "IsNull": "IS NULL"}
_BEFORE = {"Not": "NOT ", "UnaryMinus": "-"}
_BRACKETED = _OPERATORS.keys() | _AFTER.keys() | _BEFORE.keys()
COLLATED, PADDED = "CollationKey", "readSidePadding"
# A capital letter that begins another word.
_CAPITAL = re.compile("(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression by the engine's name of its kind, such as `EqualTo`.

    - `column`: the id of the column that it refers to; None for any other kind
    - `type`: the SQL type of a column or of the result of a cast; empty where it is not known
    - `text`: the name of a column, the value of a literal, the method that the engine calls, the name of a field in its
      struct, or its index there, from 0, where the names of the struct are not known
    """

    kind: str
    children: tuple[Expression, ...] = ()
    column: int | None = None
    type: str = ""
    text: str = ""

    @property
    def columns(self) -> frozenset[int]:
        """The ids of all columns in it."""
        own = frozenset() if self.column is None else frozenset([self.column])
        return own.union(*(child.columns for child in self.children))

    @property
    def is_normal_form(self) -> bool:
        """True for the normalisation of NaN and -0.0 that Spark puts around compared floats; equality is unchanged."""
        return self.kind.rpartition(".")[2] in {"KnownFloatingPointNormalized", "NormalizeNaNAndZero"}

    @property
    def is_padded(self) -> bool:
        """True for a value of char(n) that is padded when it is read."""
        return self.kind.endswith("StaticInvoke") and self.text == PADDED

    def sql(self, names: Mapping[int, str] = MappingProxyType({})) -> str:
        """The text of the expression for messages, as SQL writes it; columns go by their own names if not by these.

        >>> day = Expression("Cast", (Expression("AttributeReference", (), 7, "timestamp", "at"),), None, "date")
        >>> print(Expression("EqualTo", (Expression("Year", (day,)), Expression("Literal", text="2024"))))
        year(CAST(at AS date)) = 2024
        """
        if self.column is not None:
            return names.get(self.column, self.text)
        if self.kind == "Literal":
            return self._literal
        parts = [each.sql(names) for each in self.children]
        kind = self.kind.rpartition(".")[2]
        if self.is_normal_form or self.is_padded or kind == COLLATED:
            return parts[0]
        if kind == "ScalarSubquery":
            return "(subquery)"
        if kind == "GetStructField":
            # The engine reads several subqueries of a table as one that returns a struct.
            return parts[0] if self.children[0].kind == "ScalarSubquery" else f"{parts[0]}.{self.text}"
        if kind == "Cast":
            return f"CAST({parts[0]} AS {self.type or 'another type'})"
        if kind == "CaseWhen":
            cases = [f" WHEN {when} THEN {then}" for when, then in zip(parts[::2], parts[1::2], strict=False)]
            return f"CASE{''.join(cases)}{f' ELSE {parts[-1]}' * (len(parts) % 2)} END"
        pairs = zip(parts, self.children, strict=True)
        operands = [f"({text})" if each.kind in _BRACKETED else text for text, each in pairs]
        if kind in _OPERATORS:
            return f" {_OPERATORS[kind]} ".join(operands)
        if kind in _AFTER or kind in _BEFORE:
            return f"{operands[0]} {_AFTER[kind]}" if kind in _AFTER else f"{_BEFORE[kind]}{operands[0]}"
        if kind == "In":
            return f"{operands[0]} IN ({', '.join(parts[1:])})"
        name = self.text if kind == "StaticInvoke" else _FUNCTIONS.get(kind)
        return f"{name or _CAPITAL.sub('_', kind).lower()}({', '.join(parts)})"

    @property
    def _literal(self) -> str:
        if self.text == "None":
            return "NULL"
        if self.type == "date":
            return f"DATE '{np.datetime64(int(self.text), 'D')}'" if self.text.lstrip("-").isdigit() else self.text
        quoted = self.text.replace("'", "\\'")
        return f"'{quoted}'" if self.type == "string" else self.text

    def __str__(self) -> str:
        return self.sql()


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a plan. Every kind without a class of its own is opaque: nothing is known of its rows.

    - `id`: its place among all nodes of the query, where children come first, then the plans of subqueries in its
      expressions, then the node; the least id below it is `subtree_start`
    - `kind`: the engine's name, for people
    - `output`: the ids of its columns, in order
    - `is_deterministic`: none of its own expressions may differ between two runs
    - `subqueries`: the plans inside its expressions
    - `may_raise`: the first of its own expressions that may raise an error on some values; empty if none may
    """

    id: int
    subtree_start: int
    kind: str
    output: tuple[int, ...]
    children: tuple[Node, ...] = ()
    subqueries: tuple[Node, ...] = ()
    is_deterministic: bool = True
    may_raise: str = field(default="", kw_only=True)

    def contains(self, at: int) -> bool:
        """True for the place of a node of this subtree, the node itself and those of subqueries included."""
        return self.subtree_start <= at <= self.id

    def walk(self) -> Iterator[Node]:
        """Every node of the tree and of its subqueries, parents before children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed((*node.children, *node.subqueries)))


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct in a scan, which is a column of the plan as well.

    - `column`: its id, below 0, since the engine has none for it
    - `struct`: the id of the top-level column that holds it
    - `path`: the names that lead to it, from that of the top-level column on
    """

    column: int
    struct: int
    path: tuple[str, ...]
    type: str

    @property
    def name(self) -> str:
        """The path as a query writes it."""
        return ".".join(self.path)


def is_field(column: int) -> bool:
    """True for the id of a `Field`: the engine's nodes have no such column in their output."""
    return column < 0


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """A leaf that reads a table.

    `names` gives the name of each top-level column, `types` its SQL type; `fields` follow these columns in `output`.
    """

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    table: str = ""
    fields: tuple[Field, ...] = ()

    def path_of(self, column: int) -> tuple[str, ...]:
        """The names that lead to a column of `output`: one, or those of a field in its structs."""
        at = self.output.index(column)
        return (self.names[at],) if at < len(self.names) else self.fields[at - len(self.names)].path

    def name_of(self, column: int) -> str:
        """The name of a column of `output`."""
        return ".".join(self.path_of(column))

    def type_of(self, column: int) -> str:
        """The SQL type of a column of `output`; empty if it is not atomic."""
        at = self.output.index(column)
        return self.types[at] if at < len(self.types) else self.fields[at - len(self.types)].type


@dataclass(frozen=True, slots=True)
class SortKey:
    """One expression by which rows are ordered."""

    key: Expression
    is_descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Passthrough(Node):
    """All rows of its one child, in another order or partition: sort, repartition."""


@dataclass(frozen=True, slots=True)
class Sort(Passthrough):
    """The rows of its child in an order, over all partitions or within each partition."""

    order: tuple[SortKey, ...] = ()
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class Limit(Node):
    """The first `count` rows of its child, or all others for an `Offset`; `count` is None if it is no literal."""

    count: int | None = None


@dataclass(frozen=True, slots=True)
class Project(Node):
    """One row for each row of its child; `made` holds the expression of each output column."""

    made: Mapping[int, Expression] | None = None


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """The rows of its child for which a condition holds."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Grouping(Node):
    """Rows that each depend on one group of rows of its child alone: aggregates, windows.

    `groups` maps an output column to its expression, if that is a column of the child (or a cast of one) that is
    constant in a group. `order_free` is True if the other columns and the choice of rows depend only on the set of rows
    of a group. The results of `first`, of `row_number` among ties and of sums of doubles depend on their order. `most`
    are the rows that it gives at most, None if not known.
    """

    groups: Mapping[int, Expression] | None = None
    order_free: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class GlobalAggregate(Grouping):
    """One row for all rows of its child, even if it has none."""


@dataclass(frozen=True, slots=True)
class RankLimit(Grouping):
    """The rows of its child whose rank in an order is at most `count`; tied rows share the least of their ranks."""

    order: tuple[SortKey, ...] = ()
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Generate(Node):
    """The rows of its child, each repeated for every row that a generator makes of it."""


@dataclass(frozen=True, slots=True)
class Union(Node):
    """The rows of all children; column `n` of the output is column `n` of each."""


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Pairs of rows of two children for which a condition holds; `type` is Spark's, such as `LeftSemi`."""

    type: str = "Inner"
    condition: Expression | None = None

    @property
    def left(self) -> Node:
        """The first child."""
        return self.children[0]

    @property
    def right(self) -> Node:
        """The second child."""
        return self.children[1]

    @property
    def sides(self) -> tuple[tuple[Node, JoinSide], tuple[Node, JoinSide]]:
        """Each child, with what the type of the join does with its rows."""
        rules = JoinType.of(self.type)
        return (self.left, rules.left), (self.right, rules.right)


def conjuncts_at(
    expression: Expression | None, path: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Expression]]:
    """The conjuncts of a condition, each with the child indices that lead to it."""
    if expression is None:
        return
    if expression.kind != "And":
        yield path, expression
        return
    for place, child in enumerate(expression.children):
        yield from conjuncts_at(child, (*path, place))


def relations_of(root: Node) -> tuple[Relation, ...]:
    """The leaves that read tables, in the order of the plan."""
    return tuple(sorted((node for node in root.walk() if isinstance(node, Relation)), key=lambda node: node.id))


class PlanNames:
    """Names of the scans and columns of a plan for messages; scans of the same table are numbered."""

    def __init__(self, root: Node) -> None:
        leaves = relations_of(root)
        counts = Counter(leaf.table for leaf in leaves)
        seen: Counter[str] = Counter()
        self.scans: dict[int, str] = {}
        self._columns: dict[int, str] = {}
        for leaf in leaves:
            seen[leaf.table] += 1
            self.scans[leaf.id] = leaf.table if counts[leaf.table] == 1 else f"{leaf.table}#{seen[leaf.table]}"
            names = (*leaf.names, *(each.name for each in leaf.fields))
            for column, name in zip(leaf.output, names, strict=True):
                self._columns[column] = f"{self.scans[leaf.id]}.{name}"

    def column(self, column: int) -> str:
        """The name of a column of a scan."""
        return self._columns[column]

    def expression(self, expression: Expression) -> str:
        """The text of an expression, with the full names of the columns of scans."""
        return expression.sql(self._columns)


# Operators whose expressions name every column that they use.
_NAMING = frozenset({"Project", "Aggregate"})


def columns_by_place(root: Node) -> frozenset[int]:
    """The ids of columns of scans that count as used although no expression names them, as in a union.

    A column is such unless a projection or an aggregate stands above its scan with only filters between. Spark's
    optimised plans drop unused columns at the other operators.
    """
    found: set[int] = set()
    waiting = [(root, True)]
    while waiting:
        node, counts = waiting.pop()
        match node:
            case Relation():
                found.update(node.output if counts else ())
            case _ if node.kind in _NAMING:
                counts = False
            case Filter():
                pass
            case _:
                counts = True
        waiting += [(each, counts) for each in node.children]
        waiting += [(each, True) for each in node.subqueries]
    return frozenset(found)
