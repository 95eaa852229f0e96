"""Random MERGE statements over random targets and sources, as data that a test writes and runs.

Keys vary in type, number and depth, columns in names, tables in the features of Delta, and sources in their types and
columns. DuckDB runs an equal statement: with lists of columns instead of `*`, casts to the columns' types, the column
of an evolution there beforehand, and a whole struct where one field is set.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.oracle.draws import Draws
from tests.oracle.merge_keys import KINDS, Kind, order_of

_MOST = 1000
STORED, LIST, ITSELF, CHECKPOINT = "a stored table", "a list", "the target itself", "a checkpoint"
SPARK, DUCKDB = "`", '"'

VECTORS, FEED, TRACKING, NO_BOUNDS = "deletion vectors", "change feed", "row tracking", "no statistics of keys"
_PROPERTIES = {
    VECTORS: "delta.enableDeletionVectors = true",
    FEED: "delta.enableChangeDataFeed = true",
    TRACKING: "delta.enableRowTracking = true",
    NO_BOUNDS: "delta.dataSkippingStatsColumns = '{a}'",
    "names": "delta.columnMapping.mode = 'name'",
    "ids": "delta.columnMapping.mode = 'id'",
}
_MAPPINGS = ("names", "ids")
# Names of the columns: of the key, of the second key, of a number that rises with the key, of a number, of a text, of
# one that the source has alone, of one that Delta computes, and of a struct with a key.
_ROLES = ("key", "second", "grp", "a", "b", "fresh", "computed", "nest")
_NAMES = (
    ("k.1", "second", "grp", "a", "b", "fresh", "computed", "nest"),
    ("key", "s.2", "grp", "a.x", "b.b", "fresh.x", "computed", "ne.st"),
    ("KEY", "Second", "Grp", "A", "b", "Fresh", "Computed", "NEST"),
)
# Delta itself fails with these in a change feed, in a list of `*`, and as a partition.
_TICKED = ("tick`tick", "`", "select", "ä😀", "it's", "new`", "com`puted", "`nest`")
# Delta allows these with column mapping only.
_SPACED = ("k 1", "second, key", "grp=x", "a(b)", "b;c", "new one", "the computed", "a nest")
# Conditions beside those on keys, and the side that they tell of alone.
_CONDITIONS = (
    ("t.{grp} = s.{grp}", ""),
    ("t.{grp} >= 3", "t"),
    ("s.{a} > 2", "s"),
    ("t.{a} % 3 = 1", "t"),
    ("t.{grp} IN (1, 5, 9)", "t"),
    ("t.{a} > s.{a}", ""),
    ("t.{b} IS NOT NULL", "t"),
)


class Cells(NamedTuple):
    """The values of a row by their roles; a target has no `fresh`, and `second` counts where a MERGE has two keys."""

    key: Any
    second: Any
    grp: int | None
    a: int
    b: str | None
    fresh: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a target and of its source: `types` are those of the keys of the source.

    `evolves` is the way by which the target gets the column that the source has alone, empty where it gets none.
    """

    names: Mapping[str, str]
    kinds: Sequence[Kind]
    types: Sequence[str]
    is_nested: bool
    is_computed: bool
    has_fresh: bool
    evolves: str

    def columns(self, *, is_source: bool) -> list[tuple[str, str]]:
        """The roles of the stored columns with their types in DDL."""
        first, *second = self.types if is_source else [each.type for each in self.kinds]
        found = [("nest", f"STRUCT<{{key}}: {first}, {{a}}: int>") if self.is_nested else ("key", first)]
        found += [("second", each) for each in second]
        found += [("grp", "int"), ("a", "int"), ("b", "string")]
        return found + ([("fresh", "int")] if is_source and self.has_fresh else [])

    @property
    def typed(self) -> list[tuple[Kind, str]]:
        """The kind of each key, and its type in the source."""
        return [*zip(self.kinds, self.types, strict=True)]

    def schema(self, *, is_source: bool) -> str:
        """The stored columns as DDL of Spark."""
        words = self.words(SPARK)
        return ", ".join(f"{{{role}}} {type_}".format(**words) for role, type_ in self.columns(is_source=is_source))

    def row(self, cells: Cells, *, is_source: bool) -> tuple[Any, ...]:
        """The values of the stored columns."""
        values = {**cells._asdict(), "nest": None if cells.key is None else (cells.key, cells.a)}
        return tuple(values[role] for role, _ in self.columns(is_source=is_source))

    def words(self, quote: str) -> dict[str, str]:
        """The quoted names by role, and the path of the key."""
        quoted = {role: quote + name.replace(quote, quote * 2) + quote for role, name in self.names.items()}
        return {**quoted, "path": f"{quoted['nest']}.{quoted['key']}" if self.is_nested else quoted["key"]}


@dataclass(frozen=True, slots=True)
class Merge:
    """One MERGE: the rows of each slice of the target, the rows of the source, and the statement.

    The statement has places for names and for texts that differ between engines. `features` are those of the target,
    `partitioned` is the role of a column; where the target `is_thinned`, rows are deleted before.
    """

    shape: Shape
    slices: Sequence[Sequence[Cells]]
    features: Sequence[str]
    partitioned: str
    is_thinned: bool
    source: Sequence[Cells]
    kind: str
    equal: str
    conditions: Sequence[tuple[str, str]]
    matched: Sequence[str]
    missing: Sequence[str]
    alone: Sequence[str]

    @property
    def condition(self) -> str:
        """The condition of the join, with places for names."""
        keys = [f"t.{{{each}}} {self.equal} s.{{{each}}}" for each in ("path", "second")[: len(self.shape.kinds)]]
        return " AND ".join([*keys, *(text for text, _ in self.conditions)])

    @property
    def gains_a_column(self) -> bool:
        """True if the target has the new column of the source afterwards."""
        return bool(self.shape.evolves) and any("_all}" in each for each in (*self.matched, *self.missing))

    @property
    def is_insert(self) -> bool:
        """True for a statement that only inserts."""
        return not self.matched and not self.alone

    @property
    def is_narrowed(self) -> bool:
        """True if Delta itself may leave out files, by conditions on the target alone."""
        is_conditional = bool(self.matched) and not self.missing and all(" AND " in each for each in self.matched)
        return is_conditional or any(side == "t" for _, side in self.conditions)

    def table(self, path: str) -> str:
        """The statement that makes the target."""
        words = self.shape.words(SPARK)
        columns = [self.shape.schema(is_source=False)]
        columns += ["{computed} int GENERATED ALWAYS AS ({a} + 1)".format(**words)] if self.shape.is_computed else []
        properties = ", ".join(_PROPERTIES[each] for each in self.features)
        parts = [f"TBLPROPERTIES ({properties})" if properties else ""]
        parts += [f"PARTITIONED BY ({{{self.partitioned}}})"] if self.partitioned else []
        made = f"CREATE TABLE delta.`{path}` ({', '.join(columns)}) USING delta"
        return f"{made} {' '.join(parts).format(**words)}"

    def thinning(self, table: str, quote: str) -> str:
        """The statement that deletes rows before the MERGE; empty if there is none."""
        return f"DELETE FROM {table} WHERE {self.shape.words(quote)['a']} = 3" if self.is_thinned else ""

    def itself(self, table: str, quote: str) -> str:
        """The query of a source that reads the target."""
        words = self.shape.words(quote)
        columns = [words[role] for role, _ in self.shape.columns(is_source=False)]
        columns += [f"{words['a']} + 7 AS {words['fresh']}"] if self.shape.has_fresh else []
        return f"(SELECT {', '.join(columns)} FROM {table} WHERE {words['grp']} = 3)"

    def command(self, target: str, source: str, quote: str) -> str:
        """The statement in the words of Spark or of DuckDB."""
        words = self._words(quote)
        evolution = "WITH SCHEMA EVOLUTION " if self.shape.evolves == "statement" and quote == SPARK else ""
        # With clauses for rows of the target alone, DuckDB fails unless there is one for rows of the source alone.
        idle = ["WHEN NOT MATCHED THEN DO NOTHING"] if quote == DUCKDB and self.alone and not self.missing else []
        clauses = (*self.matched, *self.missing, *idle, *self.alone)
        text = f" ON {self.condition} {' '.join(clauses)}".format(**words)
        text = text if quote == SPARK else text.replace("<=>", "IS NOT DISTINCT FROM")
        return f"MERGE {evolution}INTO {target} t USING {source} s{text}"

    def join(self, target: str, source: str) -> str:
        """The join of the rows that the search has to match, for DuckDB."""
        # Rows of the source that no clause inserts need no match.
        inserted = " AND s.{a} > 3" if self.is_insert and "s.{a} > 3" in self.missing[0] else ""
        condition = (self.condition + inserted).format(**self.shape.words(DUCKDB))
        return f"{target} t JOIN {source} s ON {condition.replace('<=>', 'IS NOT DISTINCT FROM')}"

    def _words(self, quote: str) -> dict[str, str]:
        words = self.shape.words(quote)
        columns = self.shape.columns(is_source=False)
        top = columns[0][0]
        values = [f"s.{words[role]}" for role, _ in columns]
        if quote == DUCKDB:
            types = [_duck_type(type_.format(**words)) for _, type_ in columns]
            values = [f"CAST({each} AS {type_})" for each, type_ in zip(values, types, strict=True)]
        named = [words[role] for role, _ in columns]
        listed = {"columns": ", ".join(named), "values": ", ".join(values)}
        some = {"some_columns": f"{words[top]}, {words['a']}", "some_values": f"{values[0]}, s.{words['a']}"}
        if quote == SPARK:
            all_ = {"set_all": "*", "insert_all": "*", "set_field": f"{words[top]}.{words['a']} = s.{words['a']}"}
        else:
            fresh = [words["fresh"]] if self.gains_a_column else []
            every = [*zip(named, values, strict=True), *((each, f"s.{each}") for each in fresh)]
            lists = f"({', '.join(name for name, _ in every)}) VALUES ({', '.join(value for _, value in every)})"
            packed = f"{{{words['key']}: t.{words['path']}, {words['a']}: s.{words['a']}}}"
            all_ = {
                "set_all": ", ".join(f"{name} = {value}" for name, value in every),
                "insert_all": lists,
                "set_field": f"{words[top]} = {packed}",
            }
        return {**words, **listed, **some, **all_}

    def __str__(self) -> str:
        keys = ", ".join(f"{kind.type} by {type_}" for kind, type_ in self.shape.typed)
        count = sum(map(len, self.slices))
        laid = f"{count} rows in {len(self.slices)} slices, {len(self.source)} rows of {self.kind}"
        made = self.table("target") + (", thinned" if self.is_thinned else "")
        return (
            f"{self.command('target', 'source', SPARK)}\n{made}\nkeys {keys}, {self.shape.evolves or 'fixed'}, {laid}"
        )


def _duck_type(type_: str) -> str:
    """A type of a column; DuckDB has the instants of Spark as clocks in UTC."""
    if type_.startswith("STRUCT"):
        fields = (each.rpartition(": ") for each in type_.removeprefix("STRUCT<").removesuffix(">").split(", "))
        return f"STRUCT({', '.join(f'{name} {_duck_type(each)}' for name, _, each in fields)})"
    return {"timestamp_ntz": "timestamp", "binary": "blob"}.get(type_, type_)


def random_merge(draws: Draws, *, is_sure: bool = False) -> Merge:
    """The statement, its target and its source; with `is_sure` one that need not read every file of its target."""
    features, partitioned = _features(draws, is_sure=is_sure)
    shape = _shape(draws, features, partitioned, is_sure=is_sure)
    kind = STORED if is_sure else draws.choice((STORED, LIST, ITSELF, CHECKPOINT))
    matched, missing, alone = _clauses(shape, draws, is_sure=is_sure)
    return Merge(
        shape,
        _slices(shape, draws, is_clustered=is_sure or not draws.chance(25), is_sure=is_sure),
        features,
        partitioned,
        VECTORS in features and draws.chance(50),
        _source(shape, draws, is_sure=is_sure),
        kind,
        "<=>" if not is_sure and draws.chance(10) else "=",
        [] if is_sure else [each for each in _CONDITIONS if draws.chance(10)],
        matched,
        missing,
        alone,
    )


def _features(draws: Draws, *, is_sure: bool) -> tuple[list[str], str]:
    """The features of the target, and the role of the column by which it is partitioned."""
    chances = {VECTORS: 40, FEED: 30, TRACKING: 20, NO_BOUNDS: 0 if is_sure else 8}
    found = [each for each, percent in chances.items() if draws.chance(percent)]
    found += [draws.choice(_MAPPINGS)] if draws.chance(35) else []
    return found, draws.choice(("grp", "computed")) if not is_sure and draws.chance(20) else ""


def _shape(draws: Draws, features: Iterable[str], partitioned: str, *, is_sure: bool) -> Shape:
    kinds = [KINDS[draws.choice([each for each in KINDS if not is_sure or each != "binary"])]]
    kinds += [KINDS[draws.choice([*KINDS])]] if draws.chance(25) else []
    others = [_SPACED] if {*features} & {*_MAPPINGS} else []
    others += [] if FEED in features or partitioned else [_TICKED]
    names = draws.choice((*_NAMES, *others))
    is_nested, has_fresh = not is_sure and draws.chance(15), draws.chance(30)
    return Shape(
        dict(zip(_ROLES, names, strict=True)),
        kinds,
        [draws.choice([*each.others]) if each.others and draws.chance(30) else each.type for each in kinds],
        is_nested,
        partitioned == "computed" or draws.chance(15),
        has_fresh,
        draws.choice(("", "statement", "conf")) if has_fresh else "",
    )


def _slices(shape: Shape, draws: Draws, *, is_clustered: bool, is_sure: bool) -> list[list[Cells]]:
    """Slices of about as many rows, each with the keys of one stretch, or with keys of all."""
    count, slices = draws.choice((200, 400) if is_sure else (40, 200, 400)), 8 if is_sure else draws.choice((8, 2, 5))
    types = [each.type for each in shape.kinds]
    rows = [_cells(shape, types, draws.below(_MOST), draws, nulls=3) for _ in range(count)]
    if is_clustered:
        rows.sort(key=lambda each: [(value is not None, value is not None and order_of(value)) for value in each[:2]])
    ends = [len(rows) * at // slices for at in range(slices + 1)]
    return [rows[first:last] for first, last in itertools.pairwise(ends)]


def _cells(shape: Shape, types: Sequence[str], at: int, draws: Draws, *, nulls: int) -> Cells:
    """A row; the numbers of a group lie beside each other, so that files by groups are files by keys."""
    # Several rows share the first of two keys, and the second tells them apart.
    places = (at,) if len(types) == 1 else (at // 10 * 10, at)
    keys: list[Any] = [
        each.values_as(type_)(place) for each, type_, place in zip(shape.kinds, types, places, strict=True)
    ]
    for number, kind in enumerate(shape.kinds):
        if draws.chance(nulls):
            keys[number] = None
        elif kind.extremes and types[number] == kind.type and draws.chance(3):
            keys[number] = draws.choice(kind.extremes)
    group = None if keys[0] is None else at // 50
    return Cells(keys[0], keys[-1], group, draws.below(9), draws.choice(("x", "y", "z", None)), at % 13)


def _source(shape: Shape, draws: Draws, *, is_sure: bool) -> list[Cells]:
    """Rows with keys of a narrow stretch, of all keys or of none of the target; maybe none, maybe some twice."""
    count = 5 if is_sure else draws.choice((5, 0, 1, 40))
    narrow = (200 + draws.below(_MOST - 400), 60)
    first, width = narrow if is_sure else draws.choice((narrow, (0, _MOST), (2 * _MOST, 50)))
    places = [first + draws.below(width) for _ in range(count)]
    if not draws.chance(20):
        # Else a row of the target may match several.
        places = [*dict.fromkeys(places)]
    return [_cells(shape, shape.types, at, draws, nulls=5) for at in places]


def _clauses(shape: Shape, draws: Draws, *, is_sure: bool) -> tuple[list[str], list[str], list[str]]:
    """Clauses for rows with a match, for rows of the source without, and for rows of the target without."""
    updates = ["{a} = s.{a}, {b} = concat('new ', coalesce(s.{b}, '-'))"]
    updates += ["{set_field}, {b} = 'new'"] if shape.is_nested else []
    inserts = ["({columns}) VALUES ({values})", "({some_columns}) VALUES ({some_values})"]
    if not shape.is_computed and not any("`" in each for each in shape.names.values()):
        # Delta looks for each column of the target in the source.
        updates.append("{set_all}")
        inserts.append("{insert_all}")
    update, insert = f" THEN UPDATE SET {draws.choice(updates)}", f" THEN INSERT {draws.choice(inserts)}"
    several = [f"WHEN MATCHED AND t.{{a}} > 4{update}", "WHEN MATCHED AND s.{a} < 3 THEN DELETE"]
    matched = draws.choice(
        ([f"WHEN MATCHED{update}"], [], ["WHEN MATCHED THEN DELETE"], *([] if is_sure else [several]))
    )
    missing: list[list[str]] = [[f"WHEN NOT MATCHED{insert}"], [f"WHEN NOT MATCHED AND s.{{a}} > 3{insert}"]]
    ends = (
        ["WHEN NOT MATCHED BY SOURCE AND t.{grp} < 4 THEN DELETE"],
        ["WHEN NOT MATCHED BY SOURCE THEN UPDATE SET {a} = -1"],
    )
    added = draws.choice([*missing, []] if matched else missing)
    return matched, added, draws.choice(ends) if not is_sure and draws.chance(15) else []
