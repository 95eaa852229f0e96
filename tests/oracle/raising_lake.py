"""Tables for queries whose expressions raise errors: most values that raise stand in rows that joins drop.

All tables have the same columns. Every key is one of three:

| key | rows |
|---|---|
| wanted | the last table marks it with `v = 1`, so that it reaches the result |
| plain | no expression raises for its rows by themselves, but may for a part of them, or where a join pads them |
| bad | its rows hold values for which expressions raise |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tests.oracle.draws import Draws
from tests.oracle.random_lakes import TYPES, RandomLake, Table

KEYS = 36
# A value of the column `big` to which nothing can be added.
GREATEST = 2**31 - 1
# - `v`: from 1 to 9
# - `u`: 1 in one row of each key in a table, 0 in its other rows
# - `z`, `n`, `s`, `big`: as `v`, NULL, the key as text, and small, but 0, NULL, no number and too large in bad rows
KINDS = {"k": "long", "v": "int", "u": "int", "z": "int", "n": "int", "s": "text", "big": "int"}


def raising_lake(seed: int) -> RandomLake:
    """The tables of a seed.

    - `t0`: several rows for each key, so that the ends of files part them
    - `t1`: one row for each key
    - `t2`: one row for each bad key
    - `t3`: one file, which no key can skip, with values that raise in rows of bad keys alone
    - `t4`: the dimension that marks the wanted keys
    """
    draws = Draws(f"raising lake {seed}")
    wanted = {draws.below(KEYS) for _ in range(3)}
    bad = {key for key in range(KEYS) if key not in wanted and draws.chance(40)}
    rows = _Rows(draws, frozenset(wanted), frozenset(bad))
    every = range(KEYS)
    return RandomLake(
        (
            rows.table("t0", [key for key in every for _ in range(1 + draws.below(5))], draws.choice((8, 15, 30))),
            rows.table("t1", every, draws.choice((4, 8))),
            rows.table("t2", sorted(bad), draws.choice((2, 4))),
            rows.table("t3", [key for key in every for _ in range(1 + draws.below(2))], 1000, strays=0),
            rows.table("t4", every, 1000, marks=True),
        ),
        {},
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    draws: Draws
    wanted: frozenset[int]
    bad: frozenset[int]

    def table(self, name: str, keys: Sequence[int], file_rows: int, *, strays: int = 1, marks: bool = False) -> Table:
        """A table with a row for each of the keys, which come in order.

        `strays` is the percentage of rows with values that raise among those of keys that are not bad.
        """
        only = {key: self.draws.choice([at for at, each in enumerate(keys) if each == key]) for key in sorted({*keys})}
        made = [self._row(key, is_only=at == only[key], strays=strays, marks=marks) for at, key in enumerate(keys)]
        columns = zip(*made, strict=True) if made else [()] * len(KINDS)
        arrays = [pa.array(list(cells), TYPES[kind]) for cells, kind in zip(columns, KINDS.values(), strict=True)]
        writer = self.draws.choice(("parquet", "delta-rs"))
        return Table(name, KINDS, pa.table(arrays, list(KINDS)), file_rows, 1000, writer, "k")

    def _row(self, key: int, *, is_only: bool, strays: int, marks: bool) -> tuple[int | str | None, ...]:
        raises = self.draws.chance(60 if key in self.bad else strays)
        v = 1 + self.draws.below(9)
        if marks:
            v = 1 if key in self.wanted else 2
        u = int(is_only)
        return (key, v, u, 0, None, "no number", GREATEST) if raises else (key, v, u, v, v, str(key), v)
