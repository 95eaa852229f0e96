"""Joins of a random query: every type, by equality or not, as joins or as subqueries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.oracle.draws import Draws
from tests.oracle.random_lakes import RandomLake
from tests.oracle.random_relations import Column, Operators, Relation, listed
from tests.oracle.random_values import comparable, is_probed, literal

JOINS = ("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
SUBQUERIES = ("EXISTS", "NOT EXISTS", "IN", "NOT IN", "OR EXISTS", "SCALAR", "LOOKUP")
MOST_ROWS = 4000


@dataclass(slots=True)
class Joins:
    """Makes a relation from two others."""

    lake: RandomLake
    draws: Draws
    ops: Operators

    def joined(self, left: Relation, right: Relation) -> Relation:
        """The two, joined by one of their columns each where any can be compared."""
        pairs = comparable_pairs(left, right)
        if not pairs or (left.rows * right.rows < MOST_ROWS and self.draws.chance(6)):
            return self._without_equality(left, right)
        if left.rows * right.rows > 20 * MOST_ROWS:
            right = self.ops.limit(right)
        return self.joined_by(left, right, *self._pair(pairs))

    def joined_by(self, left: Relation, right: Relation, one: Column, other: Column) -> Relation:
        """The two, joined by a column of each."""
        if self.draws.chance(70):
            return self._joined(left, right, self._condition(left, right, one, other))
        return self._by_subquery(left, right, one, other)

    def _pair(self, pairs: Sequence[tuple[Column, Column]]) -> tuple[Column, Column]:
        """Two columns to compare, mostly such as can filter each other."""
        near = [(one, other) for one, other in pairs if is_probed(one.kind, other.kind)]
        return self.draws.choice(near if near and not self.draws.chance(15) else pairs)

    def _joined(self, left: Relation, right: Relation, on: str) -> Relation:
        kind = self.draws.choice(JOINS)
        both = kind not in ("SEMI JOIN", "ANTI JOIN")
        columns = (*left.columns, *right.columns) if both else left.columns
        sql = f"SELECT {listed(columns)} FROM {self.ops.source(left)} {kind} {self.ops.source(right)} ON {on}"
        rows = max(left.rows, right.rows, left.rows * right.rows // 15) if both else left.rows
        return Relation(sql, columns, rows)

    def _without_equality(self, left: Relation, right: Relation) -> Relation:
        if ordered := comparable_pairs(left, right):
            one, other = self.draws.choice(ordered)
            on = f"{one.name} {self.draws.choice(('<=', '>', '<>', '>='))} {other.name}"
            highs = [each for each in right.columns if comparable(one.kind, each.kind)]
            if self.draws.chance(50):
                on = f"{one.name} BETWEEN {other.name} AND {self.draws.choice(highs).name}"
            if left.rows * right.rows < MOST_ROWS:
                return replace(self._joined(left, right, on), rows=left.rows * right.rows // 2 + 1)
            right = self._one_row(right, other)
            on = f"{one.name} {self.draws.choice(('<=', '>'))} {right.columns[0].name}"
            return replace(self._joined(left, right, on), rows=left.rows)
        right = self._one_row(right, self.draws.choice(right.columns))
        columns = (*left.columns, *right.columns)
        kind = self.draws.choice(("CROSS JOIN", "LEFT JOIN"))
        on = "" if kind == "CROSS JOIN" else " ON TRUE"
        sql = f"SELECT {listed(columns)} FROM {self.ops.source(left)} {kind} {self.ops.source(right)}{on}"
        return Relation(sql, columns, left.rows)

    def _one_row(self, relation: Relation, column: Column) -> Relation:
        made = Column(self.ops.name("c"), column.kind)
        aggregate = self.draws.choice(("max", "min"))
        sql = f"SELECT {aggregate}({column.name}) AS {made.name} FROM {self.ops.source(relation)}"
        return Relation(sql, (made,), 1)

    def _condition(self, left: Relation, right: Relation, one: Column, other: Column) -> str:
        parts = [self._equality(one, other)]
        pairs = comparable_pairs(left, right)
        if self.draws.chance(25):
            parts.append(self._equality(*self.draws.choice(pairs)))
        if self.draws.chance(12):
            low, high = self.draws.choice(pairs)
            parts.append(f"{low.name} {self.draws.choice(('<=', '>', '<>'))} {high.name}")
        if self.draws.chance(20):
            side = self.draws.choice((right, left))
            parts.append(self.ops.predicate(side))
        if self.draws.chance(4):
            return f"({parts[0]} OR {self.ops.predicate(left)})" + "".join(f" AND {each}" for each in parts[1:])
        return " AND ".join(parts)

    def _equality(self, one: Column, other: Column) -> str:
        plain = f"{one.name} = {other.name}"
        drawn = self.draws.below(100)
        if drawn < 65:
            return plain
        if drawn < 72:
            return f"{other.name} = {one.name}"
        if drawn < 90:
            return f"{one.name} IS NOT DISTINCT FROM {other.name}"
        return f"{self._computed(one)} = {other.name}"

    def _computed(self, column: Column) -> str:
        """A value made from a column, of which nothing overflows."""
        match column.kind:
            case "small" | "int":
                text = self.draws.choice(("CAST({} AS BIGINT)", "{} % 7", "CAST({} AS DECIMAL(12, 2))"))
            case "day":
                text = self.draws.choice(("CAST({} AS TIMESTAMP)", "greatest({}, DATE '1970-01-05')"))
            case "at" | "wall":
                text = "CAST({} AS DATE)"
            case _:
                text = f"coalesce({{}}, {literal(self.draws, self.lake.pools, column.kind)})"
        return text.format(column.name)

    def _by_subquery(self, left: Relation, right: Relation, one: Column, other: Column) -> Relation:
        kind = self.draws.choice(SUBQUERIES)
        head = f"SELECT {left.names} FROM {self.ops.source(left)} WHERE "
        match kind:
            case "IN" | "NOT IN":
                test = f"{one.name} {kind} (SELECT {other.name} FROM {self.ops.source(right)})"
            case "SCALAR":
                aggregate = self.draws.choice(("max", "min"))
                operator = self.draws.choice(("=", "<=", ">"))
                test = f"{one.name} {operator} (SELECT {aggregate}({other.name}) FROM {self.ops.source(right)})"
            case "LOOKUP":
                return self._lookup(left, right, one, other)
            case _:
                exists = kind.removeprefix("OR ")
                on = self._condition(left, right, one, other)
                test = f"{exists} (SELECT 1 FROM {self.ops.source(right)} WHERE {on})"
        if kind.startswith("OR"):
            test += f" OR {self.ops.predicate(left)}"
        return Relation(head + test, left.columns, left.rows)

    def _lookup(self, left: Relation, right: Relation, one: Column, other: Column) -> Relation:
        value = self.draws.choice(right.columns)
        call, kind = self.draws.choice(((f"max({value.name})", value.kind), ("count(*)", "long")))
        made = Column(self.ops.name("c"), kind)
        inner = f"SELECT {call} FROM {self.ops.source(right)} WHERE {other.name} = {one.name}"
        columns = (*left.columns, made)
        return Relation(
            f"SELECT {left.names}, ({inner}) AS {made.name} FROM {self.ops.source(left)}", columns, left.rows
        )


def comparable_pairs(left: Relation, right: Relation) -> list[tuple[Column, Column]]:
    """The columns of the two that can be compared."""
    return [(one, other) for one in left.columns for other in right.columns if comparable(one.kind, other.kind)]
