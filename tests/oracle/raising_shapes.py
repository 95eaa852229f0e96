"""Relations whose expressions answer on all rows of the query, and raise an error for rows that a filter makes.

In each of them keys of the join above could filter one scan, and reach no other. The expression raises for

| shape | rows |
|---|---|
| padded | of an outer join that have lost their match |
| spared | that have lost their match, by which an anti join dropped them or a branch spared them |
| united | of groups that have lost those of one branch of a union |
| parted | of groups that have lost those of other files |
| late | that a join has dropped before a condition of a subquery, which Spark moves if it optimises the plan again |
| unmatched | that have no match in the query either, so that it raises with pruning and without it |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from tests.oracle.draws import Draws
from tests.oracle.raising_lake import KEYS
from tests.oracle.raising_values import OF_TEXT, SPARKS_OF_INT
from tests.oracle.random_relations import Column, Relation

# Expressions of a column, each with its kind.
Forms = Sequence[tuple[str, str]]
# Tables with rows of all keys in several files.
EVERY_KEY = ("t1", "t0")


class Shape(Enum):
    """The kind of a query's part below the join with the dimension; `FREE` stands for any operators."""

    FREE = "free"
    PADDED = "padded"
    SPARED = "spared"
    UNITED = "united"
    PARTED = "parted"
    LATE = "late"
    UNMATCHED = "unmatched"


@dataclass(frozen=True, slots=True)
class Shapes:
    """A factory of relations; `name` gives names that are unique in a query."""

    draws: Draws
    name: Callable[[str], str]

    def relation(self, shape: Shape) -> Relation:
        """A key and a value, which is computed for each row or group before the join above drops it."""
        match shape:
            case Shape.PADDED | Shape.UNMATCHED:
                # Spark moves a test of the value of a row below an anti join, and not below the join that pads it.
                make = self.draws.choice((self._by_row, self._by_row, self._of_row))
                return make(*self._padded("t2" if shape is Shape.UNMATCHED else self.draws.choice(EVERY_KEY)))
            case Shape.SPARED:
                return self._by_row(*self._spared())
            case Shape.UNITED:
                return self._by_group(self._united())
            case Shape.PARTED:
                return self._by_group(self._parted())
            case Shape.LATE:
                return self._needed(f"SELECT r.k, r.v AS y FROM t1 AS r WHERE {self._late()}", "int")
            case _:
                msg = f"{shape} has no relation of its own"
                raise ValueError(msg)

    # -------------------------------------------------------------------------------------------- rows of `k` and `x`

    def _padded(self, table: str) -> tuple[str, Forms]:
        """An outer join, in which each row has a match if the table has all keys."""
        own, other = f"({self._unreached('k')}) AS l", f"{table} AS r"
        grouped = f"(SELECT k, min(v) AS v FROM {other} GROUP BY k) AS r"
        joined = self.draws.choice(
            (
                f"{own} LEFT JOIN {other} ON l.k = r.k",
                f"{other} RIGHT JOIN {own} ON l.k = r.k",
                f"{own} LEFT JOIN {grouped} ON l.k = r.k",
                f"{own} LEFT JOIN t1 AS q ON l.k = q.k LEFT JOIN {other} ON q.k = r.k",
            )
        )
        value, forms = self.draws.choice((("r.v", SPARKS_OF_INT), ("r.v", SPARKS_OF_INT), ("string(r.v)", OF_TEXT[:1])))
        return f"SELECT l.k, {value} AS x FROM {joined}", forms

    def _spared(self) -> tuple[str, Forms]:
        """A join or a branch that leaves out the rows with values that raise."""
        column, good, forms = self.draws.choice((("n", "1", SPARKS_OF_INT), ("s", "'1'", OF_TEXT)))
        own, matches = f"({self._unreached('k', column)}) AS l", "EXISTS (SELECT 1 FROM t2 AS r WHERE r.k = l.k)"
        rows = self.draws.choice(
            (
                f"SELECT l.k, {column} AS x FROM {own} ANTI JOIN t2 AS r ON l.k = r.k",
                f"SELECT l.k, {column} AS x FROM {own} WHERE NOT {matches}",
                f"SELECT l.k, IF({matches}, {good}, {column}) AS x FROM {own}",
            )
        )
        return rows, forms

    def _united(self) -> str:
        """A union of which one branch alone has numbers other than 0."""
        branches = [f"SELECT k, 0 AS x FROM ({self._unreached('k')})"]
        branches.insert(self.draws.below(2), f"SELECT k, v AS x FROM {self.draws.choice(EVERY_KEY)}")
        return " UNION ALL ".join(branches)

    def _parted(self) -> str:
        """Rows of a key in several files, of which one alone has a number other than 0."""
        joined = f"SELECT l.k, r.u AS x FROM ({self._unreached('k')}) AS l JOIN t0 AS r ON l.k = r.k"
        return self.draws.choice(("SELECT k, u AS x FROM t0", "SELECT k, u AS x FROM t0", joined))

    def _late(self) -> str:
        """A condition with a cast of texts, of which a join drops those that are no numbers.

        Keys of a computed column filter no scan, so the query does not join the rows of a build in place of the texts.
        """
        rows, key = "(SELECT t.* FROM t3 AS t ANTI JOIN t2 AS b ON t.k = b.k) AS t", "CAST(t.s AS BIGINT)"
        computed = f"(SELECT {key} AS c, v, u FROM {rows}) AS q"
        grouped = "GROUP BY c HAVING count(DISTINCT v) + count(DISTINCT u) > 0"
        either = f"(t.v < 4 AND {key} >= 0) OR (t.v >= 4 AND r.v > 0)"
        return self.draws.choice(
            (
                f"coalesce(r.k, 0) IN (SELECT c FROM {computed})",
                f"coalesce(r.k, 0) IN (SELECT c FROM {computed} {grouped})",
                f"EXISTS (SELECT 1 FROM {rows} WHERE {key} = coalesce(r.k, 0))",
                f"r.v > 0 AND NOT EXISTS (SELECT 1 FROM {rows} WHERE {key} = r.v AND t.k = r.k AND t.v = 0)",
                f"EXISTS (SELECT 1 FROM {rows} WHERE t.k = coalesce(r.k, 0) AND ({either}))",
            )
        )

    def _unreached(self, *columns: str) -> str:
        """One row or more of each key, of which no filter drops any."""
        source = "t3" if len(columns) > 1 else self.draws.choice(("t3", f"range({KEYS}) AS t(k)"))
        return f"SELECT coalesce(k, 0) AS k{''.join(f', {each}' for each in columns[1:])} FROM {source}"

    # -------------------------------------------------------------------------------------------- the value

    def _by_row(self, rows: str, forms: Forms) -> Relation:
        text, kind = self.draws.choice(forms)
        return self._aggregated(rows, f"max({text.replace('{}', 'x')})", "{}", kind)

    def _of_row(self, rows: str, forms: Forms) -> Relation:
        text, kind = self.draws.choice(forms)
        return self._needed(f"SELECT k, {text.replace('{}', 'x')} AS y FROM ({rows})", kind)

    def _by_group(self, rows: str) -> Relation:
        text, kind = self.draws.choice(SPARKS_OF_INT)
        return self._aggregated(rows, "max(x)", text.replace("{}", "nullif({}, 0)"), kind)

    def _aggregated(self, rows: str, call: str, text: str, kind: str) -> Relation:
        """An expression over a call of an aggregate for all rows of a key."""
        if self.draws.chance(40):
            value = text.replace("{}", f"{call} OVER (PARTITION BY k)")
            return self._needed(f"SELECT k, {value} AS y FROM ({rows})", kind)
        return self._needed(f"SELECT k, {text.replace('{}', call)} AS y FROM ({rows}) GROUP BY k", kind)

    def _needed(self, sql: str, kind: str) -> Relation:
        """The columns `k` and `y` of all rows, with a condition on `y`, so that each row needs its value."""
        key, made = Column(self.name("c"), "long"), Column(self.name("c"), kind)
        return Relation(f"SELECT k AS {key.name}, y AS {made.name} FROM ({sql}) WHERE y >= 0", (key, made), 0)
