"""Relations of a random query, and operators on one relation: filters, groups, windows, limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.oracle.draws import Draws
from tests.oracle.random_lakes import INTEGERS, RandomLake, Table
from tests.oracle.random_values import literal, predicate


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation: its name in SQL and its kind.

    `clustered`: the table whose clustered column it is, if keys may pass from here down to its scan.
    """

    name: str
    kind: str
    clustered: Table | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """A SELECT and its columns; `rows` is an estimate, by which results stay small."""

    sql: str
    columns: tuple[Column, ...]
    rows: int

    @property
    def names(self) -> str:
        """All columns as a list in SQL."""
        return listed(self.columns)


def stopped(columns: Sequence[Column], passed: Sequence[Column] = ()) -> tuple[Column, ...]:
    """Columns above an operator that stops keys, except `passed`."""
    return tuple(each if each in passed else replace(each, clustered=None) for each in columns)


def listed(columns: Sequence[Column]) -> str:
    """The names as a list in SQL."""
    return ", ".join(each.name for each in columns)


def quoted(name: str) -> str:
    """A name in SQL.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


@dataclass(slots=True)
class Operators:
    """A factory of relations from one other; the order of equal rows never changes a result."""

    lake: RandomLake
    draws: Draws
    _count: int = 0

    def name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def source(self, relation: Relation) -> str:
        return f"({relation.sql}) AS {self.name('a')}"

    def predicate(self, relation: Relation) -> str:
        return predicate(self.draws, self.lake.pools, [(each.name, each.kind) for each in relation.columns])

    def filter(self, relation: Relation) -> Relation:
        sql = f"SELECT {relation.names} FROM {self.source(relation)} WHERE {self.predicate(relation)}"
        return replace(relation, sql=sql, rows=(relation.rows + 1) // 2)

    def narrow(self, relation: Relation) -> Relation:
        kept = self.draws.sample(relation.columns, 1 + self.draws.below(3))
        return Relation(f"SELECT {listed(kept)} FROM {self.source(relation)}", tuple(kept), relation.rows)

    def project(self, relation: Relation) -> Relation:
        column = self.draws.choice(relation.columns)
        value = literal(self.draws, self.lake.pools, column.kind)
        text = self.draws.choice(
            (
                column.name,
                f"coalesce({column.name}, {value})",
                f"CASE WHEN {self.predicate(relation)} THEN {column.name} END",
            )
        )
        made = Column(self.name("c"), column.kind, column.clustered if text == column.name else None)
        kept = [each for each in relation.columns if each is not column]
        columns = (*kept, made)
        texts = [*(each.name for each in kept), f"{text} AS {made.name}"]
        return Relation(f"SELECT {', '.join(texts)} FROM {self.source(relation)}", columns, relation.rows)

    def group(self, relation: Relation) -> Relation:
        keys = self.draws.sample(relation.columns, self.draws.choice((1, 1, 2, 0)))
        column = self.draws.choice(relation.columns)
        calls = [("count(*)", "long"), (f"count({column.name})", "long"), (f"count(DISTINCT {column.name})", "long")]
        calls += [(f"max({column.name})", column.kind), (f"min({column.name})", column.kind)]
        if column.kind in INTEGERS:
            calls.append((f"sum(CAST({column.name} AS DECIMAL(20, 0)))", "sum"))
        picked = self.draws.sample(calls, 1 + self.draws.below(2))
        made = [Column(self.name("c"), kind) for _, kind in picked]
        texts = [*(each.name for each in keys)]
        texts += [f"{call} AS {each.name}" for (call, _), each in zip(picked, made, strict=True)]
        sql = f"SELECT {', '.join(texts)} FROM {self.source(relation)}"
        columns = (*keys, *made)
        if keys:
            rollup = self.draws.chance(10)
            sql += f" GROUP BY ROLLUP ({listed(keys)})" if rollup else f" GROUP BY {listed(keys)}"
            columns = stopped(columns) if rollup else columns
        if keys and self.draws.chance(25):
            sql += " HAVING count(*) > 1"
        return Relation(sql, columns, max(1, relation.rows // 2) if keys else 1)

    def window(self, relation: Relation) -> Relation:
        column = self.draws.choice(relation.columns)
        by = self.draws.sample(relation.columns, self.draws.choice((1, 1, 2, 0)))
        partition = f"PARTITION BY {listed(by)}" if by else ""
        order = f"{partition} ORDER BY {self._total(relation)}"
        call, kind = self.draws.choice(
            (
                (f"count(*) OVER ({partition})", "long"),
                (f"max({column.name}) OVER ({partition})", column.kind),
                (f"row_number() OVER ({order})", "long"),
                (f"rank() OVER ({partition} ORDER BY {column.name} NULLS FIRST)", "long"),
                (f"lag({column.name}) OVER ({order})", column.kind),
                (f"count({column.name}) OVER ({order} ROWS UNBOUNDED PRECEDING)", "long"),
            )
        )
        made = Column(self.name("c"), kind)
        result = Relation(
            f"SELECT {relation.names}, {call} AS {made.name} FROM {self.source(relation)}",
            (*stopped(relation.columns, by), made),
            relation.rows,
        )
        if kind == "long" and self.draws.chance(50):
            test = self.draws.choice((f"{made.name} <= 2", f"{made.name} = 1", f"{made.name} > 1"))
            return replace(result, sql=f"SELECT {result.names} FROM {self.source(result)} WHERE {test}")
        return result

    def _total(self, relation: Relation) -> str:
        """A total order: only equal rows tie."""
        first = self.draws.choice(relation.columns)
        direction = self.draws.choice(("", " DESC"))
        rest = [f"{each.name} NULLS FIRST" for each in relation.columns if each is not first]
        return ", ".join([f"{first.name}{direction} NULLS FIRST", *rest])

    def limit(self, relation: Relation) -> Relation:
        # A limit that all rows pass would hide nothing of the operators below it.
        most = self.draws.choice([each for each in (1, 5, 20) if each < relation.rows] or [1])
        offset = f" OFFSET {self.draws.choice((1, 10))}" if self.draws.chance(20) else ""
        sql = f"SELECT {relation.names} FROM {self.source(relation)} ORDER BY {self._total(relation)} LIMIT {most}"
        return Relation(sql + offset, stopped(relation.columns), min(most, relation.rows))

    def distinct(self, relation: Relation) -> Relation:
        kept = self.draws.sample(relation.columns, 1 + self.draws.below(3))
        return Relation(f"SELECT DISTINCT {listed(kept)} FROM {self.source(relation)}", tuple(kept), relation.rows)
