"""Joins of a random query: every join type, by equality or another condition, as joins or as subqueries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.oracle.draws import Draws
from tests.oracle.expected_filters import Must
from tests.oracle.random_lakes import RandomLake
from tests.oracle.random_relations import Column, Operators, Relation, listed, stopped
from tests.oracle.random_values import comparable, is_probed, literal

JOINS = ("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
SUBQUERIES = ("EXISTS", "NOT EXISTS", "IN", "NOT IN", "OR EXISTS", "SCALAR", "LOOKUP")
MOST_ROWS = 4000
# Joins that drop unmatched rows of a side, and joins that keep them.
LEFT_PROBED = {"JOIN", "RIGHT JOIN", "SEMI JOIN", "EXISTS", "IN"}
RIGHT_PROBED = {"JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", "EXISTS", "IN", "NOT EXISTS"}
LEFT_STOPS, RIGHT_STOPS = {"RIGHT JOIN", "FULL JOIN"}, {"LEFT JOIN", "FULL JOIN"}


@dataclass(frozen=True, slots=True)
class On:
    """A join condition, and the two columns that are equal in every matching pair, if there are such."""

    text: str
    equal: tuple[Column, Column] | None = None


@dataclass(slots=True)
class Joins:
    """A factory of relations from two others; `musts` are the filters that the plan must have.

    `compared`: columns of equalities by which one side of a join may filter the other.
    """

    lake: RandomLake
    draws: Draws
    ops: Operators
    musts: list[Must] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)

    def joined(self, left: Relation, right: Relation) -> Relation:
        """A join of the two relations by one column each, if any two can be compared."""
        pairs = comparable_pairs(left, right)
        if not pairs or (left.rows * right.rows < MOST_ROWS and self.draws.chance(6)):
            return self._without_equality(left, right)
        if left.rows * right.rows > 20 * MOST_ROWS:
            right = self.ops.limit(right)
        return self.joined_by(left, right, *self._pair(pairs))

    def joined_by(self, left: Relation, right: Relation, one: Column, other: Column) -> Relation:
        """A join of the two relations by the given columns."""
        if self.draws.chance(70):
            return self._joined(left, right, self._condition(left, right, one, other))
        return self._by_subquery(left, right, one, other)

    def _pair(self, pairs: Sequence[tuple[Column, Column]]) -> tuple[Column, Column]:
        """Two columns to compare, mostly columns that can filter each other."""
        near = [(one, other) for one, other in pairs if is_probed(one.kind, other.kind)]
        return self.draws.choice(near if near and not self.draws.chance(15) else pairs)

    def joined_as(self, kind: str, left: Relation, right: Relation, on: On, *, is_sure: bool = False) -> Relation:
        """A join of the given type."""
        both = kind not in ("SEMI JOIN", "ANTI JOIN")
        columns = stopped(left.columns) if kind in LEFT_STOPS else left.columns
        if both:
            columns += stopped(right.columns) if kind in RIGHT_STOPS else right.columns
        sql = f"SELECT {listed(columns)} FROM {self.ops.source(left)} {kind} {self.ops.source(right)} ON {on.text}"
        self._expect(kind, left, right, on, is_sure=is_sure)
        rows = max(left.rows, right.rows, left.rows * right.rows // 15) if both else left.rows
        return Relation(sql, columns, rows)

    def _joined(self, left: Relation, right: Relation, on: On) -> Relation:
        return self.joined_as(self.draws.choice(JOINS), left, right, on)

    def _expect(self, kind: str, left: Relation, right: Relation, on: On, *, is_sure: bool = False) -> None:
        """Records the scans that keys of one side may filter on the other."""
        if on.equal is None or not is_probed(*(each.kind for each in on.equal)):
            return
        one, other = on.equal
        if kind in LEFT_PROBED | RIGHT_PROBED:
            self.compared.append(one.name)
        if one.kind != other.kind:
            # A cast may stop keys at an operator that would otherwise pass them.
            return
        if kind in LEFT_PROBED and one.clustered is not None:
            self.musts.append(Must(one.clustered, distinct_values(right, other), is_sure))
        if kind in RIGHT_PROBED and other.clustered is not None:
            self.musts.append(Must(other.clustered, distinct_values(left, one)))

    def _without_equality(self, left: Relation, right: Relation) -> Relation:
        if ordered := comparable_pairs(left, right):
            one, other = self.draws.choice(ordered)
            on = f"{one.name} {self.draws.choice(('<=', '>', '<>', '>='))} {other.name}"
            highs = [each for each in right.columns if comparable(one.kind, each.kind)]
            if self.draws.chance(50):
                on = f"{one.name} BETWEEN {other.name} AND {self.draws.choice(highs).name}"
            if left.rows * right.rows < MOST_ROWS:
                return replace(self._joined(left, right, On(on)), rows=left.rows * right.rows // 2 + 1)
            right = self._one_row(right, other)
            on = f"{one.name} {self.draws.choice(('<=', '>'))} {right.columns[0].name}"
            return replace(self._joined(left, right, On(on)), rows=left.rows)
        right = self._one_row(right, self.draws.choice(right.columns))
        columns = (*left.columns, *stopped(right.columns))
        kind = self.draws.choice(("CROSS JOIN", "LEFT JOIN"))
        on = "" if kind == "CROSS JOIN" else " ON TRUE"
        sql = f"SELECT {listed(columns)} FROM {self.ops.source(left)} {kind} {self.ops.source(right)}{on}"
        return Relation(sql, columns, left.rows)

    def _one_row(self, relation: Relation, column: Column) -> Relation:
        made = Column(self.ops.name("c"), column.kind)
        aggregate = self.draws.choice(("max", "min"))
        sql = f"SELECT {aggregate}({column.name}) AS {made.name} FROM {self.ops.source(relation)}"
        return Relation(sql, (made,), 1)

    def _condition(self, left: Relation, right: Relation, one: Column, other: Column) -> On:
        first = self._equality(one, other)
        parts, equal = [first], (one, other) if first in equalities(one, other) else None
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
            return On(f"({parts[0]} OR {self.ops.predicate(left)})" + "".join(f" AND {each}" for each in parts[1:]))
        return On(" AND ".join(parts), equal)

    def _equality(self, one: Column, other: Column) -> str:
        plain, turned = equalities(one, other)
        drawn = self.draws.below(100)
        if drawn < 65:
            return plain
        if drawn < 72:
            return turned
        if drawn < 90:
            return f"{one.name} IS NOT DISTINCT FROM {other.name}"
        return f"{self._computed(one)} = {other.name}"

    def _computed(self, column: Column) -> str:
        """A value computed from a column without overflow."""
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
                self._expect(kind, left, right, On("", (one, other)))
            case "SCALAR":
                aggregate = self.draws.choice(("max", "min"))
                operator = self.draws.choice(("=", "<=", ">"))
                test = f"{one.name} {operator} (SELECT {aggregate}({other.name}) FROM {self.ops.source(right)})"
            case "LOOKUP":
                return self._lookup(left, right, one, other)
            case _:
                exists = kind.removeprefix("OR ")
                on = self._condition(left, right, one, other)
                test = f"{exists} (SELECT 1 FROM {self.ops.source(right)} WHERE {on.text})"
                self._expect(kind, left, right, on)
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


def equalities(one: Column, other: Column) -> tuple[str, str]:
    """The two ways to write an equality of two columns."""
    return f"{one.name} = {other.name}", f"{other.name} = {one.name}"


def distinct_values(relation: Relation, column: Column) -> str:
    """The SQL that selects all values of a column."""
    return f"SELECT DISTINCT {column.name} FROM ({relation.sql}) AS keys"


def comparable_pairs(left: Relation, right: Relation) -> list[tuple[Column, Column]]:
    """The pairs of columns of two relations that can be compared."""
    return [(one, other) for one in left.columns for other in right.columns if comparable(one.kind, other.kind)]
