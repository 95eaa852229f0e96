"""Random queries with expressions that raise errors between the scans and the join that drops most of their rows.

Every relation is a whole SELECT whose first column is the key. Names are unique in a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pruning import PruningOptions
from tests.costs import ALWAYS, FILES_ONLY
from tests.oracle.draws import Draws
from tests.oracle.raising_lake import KINDS
from tests.oracle.raising_shapes import Shape, Shapes
from tests.oracle.raising_values import of_group, of_row, of_window
from tests.oracle.random_lakes import RandomLake
from tests.oracle.random_queries import random_confs, random_options
from tests.oracle.random_relations import Column, Relation, listed

JOINS = ("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
SUBQUERIES = ("EXISTS", "NOT EXISTS", "IN", "IF EXISTS", "LOOKUP", "ROW", "SCALAR", "SCALAR")
TOPS = ("JOIN", "JOIN", "SEMI JOIN", "RIGHT JOIN", "IN", "EXISTS")
# Spark itself moves a semi join below many windows, groups and joins.
SHAPED_TOPS = ("JOIN", "JOIN", "RIGHT JOIN", "RIGHT JOIN", "SEMI JOIN")


@dataclass(frozen=True, slots=True)
class RaisingQuery:
    """One case: its SQL, its pruning options, and the confs of Spark."""

    sql: str
    options: PruningOptions
    confs: Mapping[str, str]


def raising_query(lake: RandomLake, shape: Shape, draws: Draws) -> RaisingQuery:
    """The query of a shape that the draws choose."""
    confs, options = random_confs(draws), random_options(draws)
    queries = _Queries(lake, draws, is_plain=draws.chance(65))
    if shape is Shape.FREE:
        return RaisingQuery(queries.query(), options, confs)
    # A test of each row would drop the parts of groups that a list of files leaves.
    base = FILES_ONLY if shape is Shape.PARTED else ALWAYS
    return RaisingQuery(queries.shaped(shape), replace(base, broadcast_strategy=options.broadcast_strategy), confs)


@dataclass(slots=True)
class _Queries:
    lake: RandomLake
    draws: Draws
    # No row has a value that raises by itself: only a part of a group, or a row that is padded or survives.
    is_plain: bool
    _count: int = 0

    def query(self) -> str:
        """Random operators over joins and unions, joined with some keys of the dimension, sometimes below another."""
        made = self._relation(self.draws.choice((0, 1, 1, 1, 2)))
        while self.draws.chance(30):
            made = self._above(made)
        made = self._filtered(made, self._dimension())
        return (self._above(made) if self.draws.chance(20) else made).sql

    def shaped(self, shape: Shape) -> str:
        """A relation of a shape, joined with some keys of the dimension."""
        made = Shapes(self.draws, self._name).relation(shape)
        return self._filtered(made, self._table("t4", " WHERE v = 1"), SHAPED_TOPS).sql

    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _from(self, relation: Relation) -> str:
        return f"({relation.sql}) AS {self._name('a')}"

    # -------------------------------------------------------------------------------------------- leaves

    def _table(self, name: str, where: str = "") -> Relation:
        """The key and some other columns of a table."""
        names = ["v", "u"] if self.is_plain else [each for each in KINDS if each != "k"]
        kept = ["k", *self.draws.sample(names, 1 + self.draws.below(3))]
        columns = tuple(Column(self._name("c"), "unit" if each == "u" else KINDS[each]) for each in kept)
        texts = [f"{old} AS {each.name}" for old, each in zip(kept, columns, strict=True)]
        return Relation(f"SELECT {', '.join(texts)} FROM {name}{where}", columns, 0)

    def _leaf(self) -> Relation:
        made = self._table(self.draws.choice(("t0", "t1", "t0", "t3", "t3" if self.is_plain else "t2")))
        return self._valued(made) if self.draws.chance(25) else made

    def _dimension(self) -> Relation:
        """The wanted keys: a column, or a cast that raises an error for the text of other rows."""
        wanted = " WHERE v = 1"
        match self.draws.choice(
            ("column", "column", "column", "cast", "spared", "column" if self.is_plain else "valued")
        ):
            case "cast":
                key, other = Column(self._name("c"), "long"), Column(self._name("c"), "int")
                sql = f"SELECT CAST(s AS BIGINT) AS {key.name}, v AS {other.name} FROM t4{wanted}"
                return Relation(sql, (key, other), 0)
            case "spared":
                # The semi join drops the rows whose text is no number.
                key, keys = Column(self._name("c"), "long"), self._table("t4", wanted)
                own, source = self._name("a"), self.draws.choice(("t4", "t3"))
                sql = f"SELECT CAST({own}.s AS BIGINT) AS {key.name} FROM {source} AS {own}"
                sql += f" SEMI JOIN {self._from(keys)} ON {own}.k = {keys.columns[0].name}"
                return Relation(sql, (key,), 0)
            case "valued":
                return self._valued(self._table("t4", wanted))
            case _:
                return self._table("t4", wanted)

    # -------------------------------------------------------------------------------------------- two relations

    def _relation(self, depth: int) -> Relation:
        if depth <= 0:
            made = self._leaf()
        elif self.draws.chance(20):
            made = self._union(self._relation(depth - 1), self._relation(0))
        else:
            made = self._joined(self._relation(depth - 1), self._relation(0))
        while self.draws.chance(45):
            made = self._above(made)
        return made

    def _joined(self, left: Relation, right: Relation) -> Relation:
        """Two relations, joined by their keys; the key of the result is that of one of them, or of both."""
        if self.draws.chance(30):
            return self._by_subquery(left, right)
        kind = self.draws.choice(JOINS)
        (one, *of_left), (other, *of_right) = left.columns, right.columns
        on = f"{one.name} = {other.name}"
        if self.draws.chance(15):
            on += f" AND {of_row(self.draws, self.draws.choice((left, right)).columns)[0]} >= 0"
        source = f"{self._from(left)} {kind} {self._from(right)} ON {on}"
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            return Relation(f"SELECT {left.names} FROM {source}", left.columns, 0)
        key = replace(one, name=self._name("c"))
        of_both = f"coalesce({one.name}, {other.name})"
        text = {"LEFT JOIN": one.name, "RIGHT JOIN": other.name, "FULL JOIN": of_both}.get(kind, one.name)
        if self.draws.chance(10):
            text = other.name
        columns = (key, *of_left, *of_right)
        return Relation(
            f"SELECT {', '.join([f'{text} AS {key.name}', *_names(columns[1:])])} FROM {source}", columns, 0
        )

    def _by_subquery(self, left: Relation, right: Relation) -> Relation:
        kind, (one, other) = self.draws.choice(SUBQUERIES), (left.columns[0].name, right.columns[0].name)
        exists = f"EXISTS (SELECT 1 FROM {self._from(right)} WHERE {other} = {one})"
        value = self.draws.choice(right.columns)
        looked_up = f"FROM {self._from(right)} WHERE {other} = {one}"
        match kind:
            case "EXISTS" | "NOT EXISTS":
                return self._where(left, exists if kind == "EXISTS" else f"NOT {exists}")
            case "IN":
                return self._where(left, f"{one} IN (SELECT {other} FROM {self._from(right)})")
            case "IF EXISTS":
                column = self.draws.choice(left.columns[1:] or left.columns)
                return self._with(left, f"IF({exists}, {column.name}, NULL)", column.kind)
            case "LOOKUP":
                text, its = of_group(self.draws, right.columns)
                return self._with(left, f"(SELECT {text} {looked_up})", its)
            case "ROW":
                # Several rows for one key raise an error.
                return self._with(left, f"(SELECT {value.name} {looked_up})", value.kind)
            case _:
                return self._where(left, f"{self._number(left)} >= {self._scalar(right)}")

    def _scalar(self, relation: Relation) -> str:
        """A subquery of one row, as a rule over a relation that is filtered itself; of several rows at times."""
        made = self._filtered(relation, self._dimension()) if self.draws.chance(60) else relation
        if self.draws.chance(10):
            return f"(SELECT {self._number(made)} FROM {self._from(made)})"
        return f"(SELECT {of_group(self.draws, made.columns)[0]} FROM {self._from(made)})"

    def _union(self, left: Relation, right: Relation) -> Relation:
        """All rows of both, each with numbers of its own in columns where the other has 0."""
        shared = [(each, replace(each, name=self._name("c"))) for each in left.columns]
        rest = list(right.columns[1:])
        texts = [right.columns[0].name]
        for each in left.columns[1:]:
            same = next((one for one in rest if one.kind == each.kind), None)
            if same is None or self.draws.chance(30):
                texts.append({"text": "'0'", "real": "0D", "long": "0L"}.get(each.kind, "0"))
            else:
                rest.remove(same)
                texts.append(same.name)
        own = [each for each in rest if each.kind == "int"][:1]
        columns = (*(made for _, made in shared), *(replace(each, name=self._name("c")) for each in own))
        first = [*(old.name for old, _ in shared), *("0" for _ in own)]
        names = [f"{text} AS {each.name}" for text, each in zip(first, columns, strict=True)]
        sql = f"SELECT {', '.join(names)} FROM {self._from(left)} UNION ALL "
        return Relation(sql + f"SELECT {', '.join([*texts, *_names(own)])} FROM {self._from(right)}", columns, 0)

    def _filtered(self, left: Relation, right: Relation, tops: Sequence[str] = TOPS) -> Relation:
        """The rows of a relation whose key the other one has."""
        kind, (one, other) = self.draws.choice(tops), (left.columns[0].name, right.columns[0].name)
        if kind == "IN":
            return self._where(left, f"{one} IN (SELECT {other} FROM {self._from(right)})")
        on = f"{one} {self.draws.choice(('=', '=', '=', '=', '<=>'))} {other}"
        if self.draws.chance(10):
            on += f" AND {of_row(self.draws, left.columns)[0]} >= 0"
        if kind == "EXISTS":
            return self._where(left, f"EXISTS (SELECT 1 FROM {self._from(right)} WHERE {on})")
        columns = left.columns if kind == "SEMI JOIN" else (*left.columns, *right.columns)
        sides = [self._from(left), self._from(right)]
        if kind == "JOIN" and self.draws.chance(30):
            sides.reverse()
        return Relation(f"SELECT {listed(columns)} FROM {sides[0]} {kind} {sides[1]} ON {on}", columns, 0)

    # -------------------------------------------------------------------------------------------- one relation

    def _above(self, relation: Relation) -> Relation:
        kinds: list[Callable[[Relation], Relation]] = [
            lambda each: self._where(each, f"{of_row(self.draws, each.columns)[0]} >= 0"),
            self._valued,
            self._grouped,
            self._grouped,
            self._windowed,
            self._distinct,
        ]
        return self.draws.choice(kinds)(relation)

    def _where(self, relation: Relation, condition: str) -> Relation:
        return replace(relation, sql=f"SELECT {relation.names} FROM {self._from(relation)} WHERE {condition}")

    def _with(self, relation: Relation, text: str, kind: str) -> Relation:
        made = Column(self._name("c"), kind)
        sql = f"SELECT {relation.names}, {text} AS {made.name} FROM {self._from(relation)}"
        return Relation(sql, (*relation.columns, made), 0)

    def _valued(self, relation: Relation) -> Relation:
        made = self._with(relation, *of_row(self.draws, relation.columns))
        return self._tested(made)

    def _windowed(self, relation: Relation) -> Relation:
        return self._tested(self._with(relation, *of_window(self.draws, relation.columns, relation.columns[0])))

    def _tested(self, relation: Relation) -> Relation:
        """The relation, with a condition on its last column at times, so that each row needs the value of it."""
        if relation.columns[-1].kind == "text" or not self.draws.chance(50):
            return relation
        return self._where(relation, f"{relation.columns[-1].name} >= 0")

    def _grouped(self, relation: Relation) -> Relation:
        (key, *rest), made = relation.columns, []
        keys = [key, *(self.draws.sample(rest, 1) if self.draws.chance(20) else ())]
        texts, columns = list(_names(keys)), list(keys)
        for _ in range(1 + self.draws.below(2)):
            text, kind = of_group(self.draws, relation.columns)
            columns.append(Column(self._name("c"), kind))
            texts.append(f"{text} AS {columns[-1].name}")
            made.append(text)
        sql = f"SELECT {', '.join(texts)} FROM {self._from(relation)} GROUP BY {listed(keys)}"
        if self.draws.chance(40):
            sql += f" HAVING {self.draws.choice(made)} >= 0"
        return Relation(sql, tuple(columns), 0)

    def _distinct(self, relation: Relation) -> Relation:
        return self._tested(replace(relation, sql=f"SELECT DISTINCT {relation.names} FROM {self._from(relation)}"))

    def _number(self, relation: Relation) -> str:
        return self.draws.choice([each for each in relation.columns if each.kind != "text"]).name


def _names(columns: Sequence[Column]) -> list[str]:
    return [each.name for each in columns]
