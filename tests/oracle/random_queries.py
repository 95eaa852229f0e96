"""Random queries over a random lake, in SQL with one meaning for Spark and DuckDB and with deterministic rows.

Every relation is a whole SELECT, whose columns have unique names. Names are quoted as in standard SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pruning import PruningOptions
from tests.costs import ALWAYS, FREE_BUILDS
from tests.oracle.draws import Draws
from tests.oracle.expected_filters import Must
from tests.oracle.random_joins import MOST_ROWS, Joins, On, equalities
from tests.oracle.random_lakes import EXACT, INTEGERS, RandomLake, Table
from tests.oracle.random_relations import Column, Operators, Relation, listed, quoted
from tests.oracle.random_values import comparison, is_probed, literal, predicate

SPARKS_BLOOM = "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold"

FEW_SHARED = 3


@dataclass(frozen=True, slots=True)
class Query:
    """One case: its SQL, its pruning options, and the confs of Spark.

    - `musts`: the filters that its plan must have
    - `compares`: a column of one side of some join could filter the other side
    """

    sql: str
    options: PruningOptions
    confs: Mapping[str, str]
    musts: tuple[Must, ...]
    compares: bool


def random_query(lake: RandomLake, draws: Draws) -> Query:
    """The query that the draws choose."""
    confs, shape = random_confs(draws), draws.choice(("tree", "aimed", "over", "over", "plain"))
    options = _plain_options(draws) if shape in ("over", "plain") else random_options(draws)
    ops = Operators(lake, draws)
    queries = _Queries(lake, draws, ops, Joins(lake, draws, ops))
    pairs = _prunable(lake)
    sure = [each for each in pairs if _is_sure(*each[1:])]
    if shape == "plain" and sure:
        sql = queries.plain(*draws.choice(sure))
    elif shape == "over" and pairs:
        sql = queries.over(*draws.choice(pairs))
    else:
        sql = queries.query(draws.choice(pairs) if shape != "tree" and pairs else None)
    if draws.chance(15):
        options = options.with_limits(joined_rows=2, joined_long_rows=2)
    return Query(sql, options, confs, tuple(queries.joins.musts), bool(queries.joins.compared))


def _prunable(lake: RandomLake) -> list[tuple[Table, Table, str]]:
    """Clustered tables of several files, each with a smaller table and its column that shares some values."""
    return [
        (fact, dim, key)
        for fact in lake.tables
        if fact.sorted_by and len(fact.rows) > fact.file_rows
        for dim in lake.tables
        if dim is not fact and 0 < len(dim.rows) <= len(fact.rows) // 2
        for key, kind in dim.kinds.items()
        if is_probed(fact.kinds[fact.sorted_by], kind) and _share_some(fact, dim, key)
    ]


def _share_some(fact: Table, dim: Table, key: str) -> bool:
    """True if both tables have matching rows, and the clustered table also has others."""
    values, keys = (
        set(table.rows.column(name).to_pylist()) - {None} for table, name in ((fact, fact.sorted_by), (dim, key))
    )
    return len(values & keys) >= FEW_SHARED and not values <= keys


def _is_sure(dim: Table, key: str) -> bool:
    """True if the files with a key are known beforehand, and the table surely reads fewer bytes."""
    return dim.kinds[key] in (*EXACT, "day") and len(dim.rows) <= dim.file_rows


def random_confs(draws: Draws) -> dict[str, str]:
    confs = {"spark.sql.adaptive.enabled": draws.choice(("true", "false"))}
    confs["spark.sql.autoBroadcastJoinThreshold"] = draws.choice(("10485760", "-1"))
    confs["spark.sql.join.preferSortMergeJoin"] = draws.choice(("true", "false"))
    if draws.chance(10):
        confs["spark.sql.optimizer.dynamicPartitionPruning.enabled"] = "false"
    if draws.chance(10):
        # Spark's own runtime bloom filter beside a pruned scan.
        confs["spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold"] = "0"
        confs[SPARKS_BLOOM] = "1g"
        confs["spark.sql.autoBroadcastJoinThreshold"] = "-1"
    return confs


def random_options(draws: Draws) -> PruningOptions:
    options = replace(
        draws.choice((ALWAYS, ALWAYS, ALWAYS, FREE_BUILDS)),
        broadcast_strategy=draws.choice(("AUTO", "AUTO", "RUNTIME_ONLY", "NONE")),
    )
    if draws.chance(50):
        return options
    return replace(options, max_build_bytes=draws.choice((150 << 20, 150 << 20, 16, 300))).with_limits(
        max_build_keys=draws.choice((10_000_000, 10_000_000, 1, 4)),
        max_ranges=draws.choice((64, 1, 2)),
        max_in_list=draws.choice((500, 0, 3)),
        max_footers=draws.choice((1000, 0, 2)),
        bloom_fpp=draws.choice((0.01, 0.4)),
        bitmap_filter_bytes=draws.choice((1 << 20, 0, 64)),
    )


def _plain_options(draws: Draws) -> PruningOptions:
    return replace(ALWAYS, broadcast_strategy=draws.choice(("AUTO", "RUNTIME_ONLY", "NONE"))).with_limits(
        max_in_list=draws.choice((500, 0)), bitmap_filter_bytes=draws.choice((1 << 20, 0, 64))
    )


@dataclass(slots=True)
class _Queries:
    lake: RandomLake
    draws: Draws
    ops: Operators
    joins: Joins
    _shared: list[tuple[str, Relation]] = field(default_factory=list)

    def query(self, aim: tuple[Table, Table, str] | None) -> str:
        """A tree of joins below random operators; with `aim`, its topmost join filters one table by keys of the
        other.
        """
        depth = self.draws.choice((1, 1, 1, 2, 2, 3))
        if self.draws.chance(20):
            self._shared.append((self.ops.name("s"), self._relation(depth - 1)))
        made = self._joined(depth) if aim is None else self._aimed(*aim)
        while self.draws.chance(35):
            made = self._above(made)
        if made.rows > MOST_ROWS:
            made = self.ops.group(made)
        if self.draws.chance(30):
            made = self.ops.narrow(made)
        sql = self._with_shared(made.sql)
        # A relation that was not used in the end is missing in the query, with its columns.
        self.joins.compared = [each for each in self.joins.compared if _names(sql, each)]
        used = [each for each in self.joins.musts if _names(sql, each.keys.split()[2])]
        self.joins.musts = [replace(each, keys=self._with_shared(each.keys)) for each in used]
        return sql

    def _with_shared(self, sql: str) -> str:
        """A query with the definitions of the CTEs that it names."""
        parts = [f"{name} AS ({each.sql})" for name, each in self._shared if _names(sql, name)]
        return f"WITH {', '.join(parts)} {sql}" if parts else sql

    def _aimed(self, fact: Table, dim: Table, key: str) -> Relation:
        """A clustered table below random operators, joined with a filtered smaller table."""
        left = self._of_table(fact, list(fact.kinds))
        one = left.columns[list(fact.kinds).index(fact.sorted_by)]
        right = self._of_table(dim, list(dim.kinds))
        other = right.columns[list(dim.kinds).index(key)]
        if self.draws.chance(80):
            right = self.ops.filter(right)
        while self.draws.chance(60):
            above = self._above(left)
            left = above if one in above.columns else left
        one = left.columns[left.columns.index(one)]
        if self.draws.chance(40):
            left, right, one, other = right, left, other, one
        return self.joins.joined_by(left, right, one, other)

    def over(self, fact: Table, dim: Table, key: str) -> str:
        """One operator above a clustered table, joined with a filtered smaller table: the operator passes keys
        or stops them.
        """
        # Unmatched rows must reach the operator, or its effect on them does not show.
        left, right = self._of_table(fact, list(fact.kinds), filtered=15), self._of_table(dim, list(dim.kinds))
        one, other = left.columns[list(fact.kinds).index(fact.sorted_by)], right.columns[list(dim.kinds).index(key)]
        # A statically pruned fact may be smaller than the other table.
        is_sure = " WHERE " not in left.sql and _is_sure(dim, key)
        is_null_safe = self.draws.chance(30)
        if self.draws.chance(70):
            # The rows without a key stay where NULL matches NULL.
            tested, where = self._some_of(dim, right.columns, but=key if is_null_safe else "")
            is_sure &= tested != key
            right = replace(right, sql=f"SELECT {right.names} FROM {self.ops.source(right)} WHERE {where}")
        else:
            is_sure = False
            right = self.ops.filter(right) if self.draws.chance(50) else right
        kind = self.draws.choice(("JOIN", "SEMI JOIN", "RIGHT JOIN"))
        if is_null_safe:
            on = On(f"{one.name} IS NOT DISTINCT FROM {other.name}")
        else:
            ops = self.ops
            above = self.draws.choice((ops.limit, ops.limit, ops.window, ops.window, ops.group, ops.distinct))(left)
            left = above if one in above.columns else left
            one = left.columns[left.columns.index(one)]
            on = On(equalities(one, other)[0], (one, other))
        return self.joins.joined_as(kind, left, right, on, is_sure=is_sure).sql

    def plain(self, fact: Table, dim: Table, key: str) -> str:
        """A clustered table joined with a filtered smaller table."""
        name, key = key, quoted(key)
        facts = [Column(f"f.{quoted(name)}", kind) for name, kind in fact.kinds.items()]
        dims = [Column(f"d.{quoted(name)}", kind) for name, kind in dim.kinds.items()]
        tested, where = self._some_of(dim, dims)
        on = f"f.{quoted(fact.sorted_by)} = d.{key}"
        form = self.draws.choice(("JOIN", "LEFT", "EXISTS", "IN", "GROUP"))
        shown, both = self._renamed(facts), self._renamed((*facts, *dims))
        match form:
            case "JOIN":
                sql = f"SELECT {both} FROM {fact.name} f JOIN {dim.name} d ON {on} WHERE {where}"
            case "LEFT":
                sql = f"SELECT {both} FROM {dim.name} d LEFT JOIN {fact.name} f ON {on} WHERE {where}"
            case "EXISTS":
                inner = f"SELECT 1 FROM {dim.name} d WHERE {on} AND {where}"
                sql = f"SELECT {shown} FROM {fact.name} f WHERE EXISTS ({inner})"
            case "IN":
                inner = f"SELECT d.{key} FROM {dim.name} d WHERE {where}"
                sql = f"SELECT {shown} FROM {fact.name} f WHERE f.{quoted(fact.sorted_by)} IN ({inner})"
            case _:
                group = self.draws.choice(dims).name
                sql = f"SELECT {group} AS c0, count(*) AS c1, max(f.id) AS c2 FROM {fact.name} f JOIN {dim.name} d"
                sql += f" ON {on} WHERE {where} GROUP BY {group}"
        keys = f"SELECT DISTINCT d.{key} FROM {dim.name} d WHERE {where}"
        self.joins.compared.append(key)
        # Spark applies a condition on a key to its equal column, too, which may leave nothing for a filter to skip.
        self.joins.musts.append(Must(fact, keys, is_sure=tested != name, is_exact=tested != name))
        return sql

    def _some_of(self, table: Table, columns: Sequence[Column], but: str = "") -> tuple[str, str]:
        """The name of a column of the table, except `but`, and a comparison of it with values that it has."""
        # For other kinds, Spark may know that a condition is always true.
        tested = [
            (name, each)
            for name, each in zip(table.kinds, columns, strict=True)
            if each.kind not in ("small", "flag") and name != but
        ]
        name, column = self.draws.choice(tested)
        own = table.rows.column(name).drop_null().unique().to_pylist() or self.lake.pools[column.kind]
        return name, comparison(self.draws, {**self.lake.pools, column.kind: own}, column.name, column.kind)

    def _renamed(self, columns: Sequence[Column]) -> str:
        return ", ".join(f"{each.name} AS {self.ops.name('c')}" for each in columns)

    def _relation(self, depth: int) -> Relation:
        made = self._base() if depth <= 0 or self.draws.chance(15) else self._joined(depth)
        while self.draws.chance(22):
            made = self._above(made)
        return made

    def _joined(self, depth: int) -> Relation:
        left, right = self._relation(depth - 1), self._relation(self.draws.choice((0, 0, depth - 1)))
        return self.joins.joined(right, left) if self.draws.chance(25) else self.joins.joined(left, right)

    def _base(self) -> Relation:
        """A table, or a relation that has a name, filtered as often as not."""
        if self._shared and self.draws.chance(50):
            name, shared = self.draws.choice(self._shared)
            return self._selected(name, shared.columns, shared.rows)
        if self.draws.chance(5):
            return self._values()
        table = self.draws.choice(self.lake.tables)
        names = list(table.kinds)
        return self._of_table(table, names[:3] + self.draws.sample(names[3:], self.draws.below(3)))

    def _of_table(self, table: Table, names: Sequence[str], filtered: int = 50) -> Relation:
        clustered = table if len(table.rows) > table.file_rows else None
        columns = [
            Column(quoted(each), table.kinds[each], clustered if each == table.sorted_by else None) for each in names
        ]
        return self._selected(table.name, columns, len(table.rows), filtered)

    def _selected(self, name: str, columns: Sequence[Column], rows: int, filtered: int = 50) -> Relation:
        made = tuple(replace(each, name=self.ops.name("c")) for each in columns)
        texts = [f"{old.name} AS {each.name}" for old, each in zip(columns, made, strict=True)]
        sql = f"SELECT {', '.join(texts)} FROM {name}"
        if self.draws.chance(filtered):
            sql += f" WHERE {predicate(self.draws, self.lake.pools, [(each.name, each.kind) for each in columns])}"
            rows = (rows + 1) // 2
        return Relation(sql, made, rows)

    def _values(self) -> Relation:
        kind = self.draws.choice(("int", "long", "day", "money"))
        texts = [f"({literal(self.draws, self.lake.pools, kind)})" for _ in range(1 + self.draws.below(5))]
        column = Column(self.ops.name("c"), kind)
        sql = f"SELECT {column.name} FROM (VALUES {', '.join(texts)}) AS {self.ops.name('a')}({column.name})"
        return Relation(sql, (column,), len(texts))

    def _above(self, relation: Relation) -> Relation:
        kinds: list[Callable[[Relation], Relation]] = [
            self.ops.filter,
            self.ops.narrow,
            self.ops.project,
            self.ops.group,
            self.ops.group,
            self.ops.window,
            self.ops.window,
            self.ops.limit,
            self.ops.distinct,
            self._combine,
            self._combine,
        ]
        return self.draws.choice(kinds)(relation)

    def _combine(self, relation: Relation) -> Relation:
        """A set operation with another relation, in columns of the same kinds."""
        other = self._relation(self.draws.choice((0, 0, 1)))
        left: list[Column] = []
        right: list[Column] = []
        for column in relation.columns:
            fitting = [each for each in other.columns if _unites(column.kind, each.kind) and each not in right]
            if fitting:
                left.append(column)
                right.append(self.draws.choice(fitting))
        if not left:
            return self.ops.filter(relation)
        kind = self.draws.choice(("UNION ALL",) * 4 + ("UNION", "INTERSECT", "EXCEPT"))
        sql = f"SELECT {listed(left)} FROM {self.ops.source(relation)} {kind} "
        sql += f"SELECT {listed(right)} FROM {self.ops.source(other)}"
        kinds = [max(a.kind, b.kind, key=_width) for a, b in zip(left, right, strict=True)]
        columns = tuple(replace(each, kind=its) for each, its in zip(left, kinds, strict=True))
        return Relation(sql, columns, relation.rows + other.rows)


def _names(sql: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", sql) is not None


def _width(kind: str) -> int:
    return INTEGERS.index(kind) if kind in INTEGERS else 0


def _unites(one: str, other: str) -> bool:
    return one == other or {one, other} <= set(INTEGERS)
