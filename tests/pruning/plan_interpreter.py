"""An interpreter of plans over small tables in memory; its rules know nothing of pruning.

Rows are tuples in no order. An engine may choose the rows of a limit, of a sample or among ties freely. Here a hash of
the row and a `salt` chooses them, so that two runs can choose differently.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from pruning.query.plan import Expression, Filter, Generate, Grouping, Join, Node, Passthrough, Project, Relation, Union

Row = tuple[Any, ...]
Values = Mapping[int, Any]


@dataclass
class Lake:
    """The rows of each relation by its place in the plan, and the filters that its scan applies.

    Relations that are `unpinned` hold fewer rows when they are read with another salt. `joined` has the rows of nodes
    that are not run again, by their places.
    """

    tables: Mapping[int, Sequence[Row]]
    unpinned: Collection[int] = ()
    tests: dict[int, list[Callable[[Row], bool]]] = field(default_factory=dict)
    joined: dict[int, list[Row]] = field(default_factory=dict)

    def scanned(self, relation: Relation, salt: int) -> list[Row]:
        tests = self.tests.get(relation.id, ())
        rows = [row for row in self.tables[relation.id] if all(test(row) for test in tests)]
        return rows[::2] if salt and relation.id in self.unpinned else rows


def chosen_by(salt: int) -> Callable[[Row], tuple[int, str]]:
    """The sort key by which a run meets rows."""
    return lambda row: (crc32(f"{salt}{row}".encode()), repr(row))


STRICT: Mapping[str, Callable[..., Any]] = {
    "Not": operator.not_,
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "Add": operator.add,
}


class CheckError(Exception):
    """The error of an expression that refuses a value."""


def check(cell: Any, refused: str) -> Any:
    """The cell, unless it is the value that is refused."""
    if str(cell) == refused:
        raise CheckError(refused)
    return cell


def cast(cell: Any, type_: str) -> Any:
    """A cast value; two `int` values become one `float` value, so that casts that lose digits merge keys."""
    return cell // 2 if cell is not None and type_ == "float" else cell


def value(expression: Expression, row: Values) -> Any:
    """The value of an expression, None for NULL."""
    if expression.column is not None:
        return row[expression.column]
    if expression.kind == "Literal":
        return None if expression.text == "None" else int(expression.text)
    values = [value(each, row) for each in expression.children]
    match expression.kind:
        case "And" | "Or":
            decisive = expression.kind == "Or"
            return decisive if decisive in values else (None if None in values else not decisive)
        case "IsNull":
            return values[0] is None
        case "IsNotNull":
            return values[0] is not None
        case "EqualNullSafe":
            return values[0] == values[1]
        case "Coalesce":
            return next((each for each in values if each is not None), None)
        case "Cast":
            return cast(values[0], expression.type)
        case "Checked":
            return check(values[0], expression.text)
        case kind:
            return None if None in values else STRICT[kind](*values)


def rows_of(node: Node, lake: Lake, salt: int = 0) -> list[Row]:
    """The rows that a plan returns."""
    if node.id in lake.joined:
        return lake.joined[node.id]
    if isinstance(node, Relation):
        return lake.scanned(node, salt)
    below = [rows_of(child, lake, salt) for child in node.children]
    match node:
        case Passthrough():
            return below[0]
        case Filter(condition=condition) if condition is not None and _has_scalar(condition):
            values = iter([_scalar(rows_of(each, lake, salt)) for each in node.subqueries])
            known = _with(condition, values)
            return [row for row in below[0] if _holds(known, node.output, row)]
        case Filter(condition=condition):
            least = sum(len(rows_of(each, lake, salt)) for each in node.subqueries) % 3
            kept = [row for row in below[0] if not node.subqueries or row[0] is None or row[0] >= least]
            return [row for row in kept if condition is None or _holds(condition, node.output, row)]
        case Project(made=made) if made is not None:
            return _projected(node, made, below[0], salt)
        case Grouping(groups=groups) if groups is not None:
            return _grouped(node, groups, below[0], salt)
        case Generate():
            return [(*row, step) for row in below[0] for step in range(crc32(repr(row).encode()) % 3)]
        case Union():
            return [row for rows in below for row in rows]
        case Join():
            return _joined(node, *below)
        case _:
            return _opaque(node, below[0], salt)


def _has_scalar(condition: Expression) -> bool:
    return condition.kind == "ScalarSubquery" or any(map(_has_scalar, condition.children))


def _scalar(rows: Sequence[Row]) -> Any:
    """The value of a scalar subquery, NULL without a row. Spark fails on several rows; here the least counts."""
    return min(rows, key=repr)[0] if rows else None


def _with(condition: Expression, values: Iterator[Any]) -> Expression:
    """The condition with values in the place of its subqueries, in the order of their plans."""
    children = tuple(_with(each, values) for each in condition.children)
    if condition.kind == "ScalarSubquery":
        return Expression("Literal", (), None, "bigint", str(next(values)))
    return replace(condition, children=children)


def _holds(condition: Expression, output: Sequence[int], row: Row) -> bool:
    return value(condition, dict(zip(output, row, strict=True))) is True


def _projected(node: Node, made: Mapping[int, Expression], rows: Sequence[Row], salt: int) -> list[Row]:
    """The rows of a projection. If it is not deterministic, its last column numbers the rows."""
    output = node.children[0].output
    result = [tuple(value(made[each], dict(zip(output, row, strict=True))) for each in node.output) for row in rows]
    if node.is_deterministic:
        return result
    return [(*row[:-1], number) for number, row in enumerate(sorted(result, key=chosen_by(salt)))]


def _grouped(node: Node, groups: Mapping[int, Expression], rows: Sequence[Row], salt: int) -> list[Row]:
    output = node.children[0].output
    places = {made: output.index(each.column) for made, each in groups.items() if each.column is not None}
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[place] for place in places.values()), []).append(row)
    if node.kind == "Aggregate" and not places:
        found.setdefault((), [])
    result: list[Row] = []
    for key, group in found.items():
        ordered = sorted(group, key=chosen_by(salt))
        if node.kind == "Window":
            result += [(*row, len(ordered) if node.order_free else number) for number, row in enumerate(ordered)]
        elif node.kind == "WindowGroupLimit":
            result += sorted(group, key=repr)[:1] if node.order_free else ordered[:1]
        else:
            made = dict(zip(places, key, strict=True))
            total = sum(cell or 0 for row in group for cell in row)
            if not node.order_free:
                total = next((cell for row in ordered for cell in row), None)
            total = check(total, "1") if node.may_raise else total
            result.append(tuple(made.get(each, total) for each in node.output))
    return result


def _joined(node: Join, left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    output = node.left.output + node.right.output
    pairs = [[node.condition is None or _holds(node.condition, output, one + other) for other in right] for one in left]
    matches = [[other for other, fits in zip(right, line, strict=True) if fits] for line in pairs]
    nothing_left, nothing_right = (None,) * len(node.left.output), (None,) * len(node.right.output)
    together = [one + other for one, found in zip(left, matches, strict=True) for other in found]
    alone = [one for one, found in zip(left, matches, strict=True) if not found]
    unmatched = [other for at, other in enumerate(right) if not any(line[at] for line in pairs)]
    match node.type:
        case "Inner" | "Cross":
            return together
        case "LeftOuter":
            return together + [one + nothing_right for one in alone]
        case "RightOuter":
            return together + [nothing_left + other for other in unmatched]
        case "FullOuter":
            return together + [one + nothing_right for one in alone] + [nothing_left + other for other in unmatched]
        case "LeftSemi":
            return [one for one, found in zip(left, matches, strict=True) if found]
        case "LeftAnti":
            return alone
        case "ExistenceJoin":
            return [(*one, int(bool(found))) for one, found in zip(left, matches, strict=True)]
        case "LeftSingle":
            return [one + min(found, key=repr, default=nothing_right) for one, found in zip(left, matches, strict=True)]
    raise NotImplementedError(node.type)


def _opaque(node: Node, rows: Sequence[Row], salt: int) -> list[Row]:
    ordered = sorted(rows, key=chosen_by(salt))
    match node.kind:
        case "GlobalLimit":
            return ordered[:2]
        case "Sample":
            return ordered[::2]
        case "Expand":
            return [*ordered, *((None, *row[1:]) for row in ordered)]
        case "Deduplicate":
            return ordered[:1] if len(ordered) > 3 else ordered
    raise NotImplementedError(node.kind)
