"""Random MERGE statements over random targets and sources, as data that a test writes and runs."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.oracle.draws import Draws

Row = tuple[Any, ...]

KEYS: Mapping[str, Callable[[int], Any]] = {
    "int": lambda at: at,
    "bigint": lambda at: (at - 500) * 10**15,
    "string": lambda at: f"ключ {at:05}",
    "date": lambda at: dt.date(1600, 1, 1) + dt.timedelta(days=at * 97),
    "decimal(12,2)": lambda at: Decimal(at * 5 - 700) / 4,
}
# Columns after the key: a number that rises with the key, a number, a text. Names that have to be quoted.
COLUMNS = ("`k.1`", "grp", "a", "b")
_OTHERS = "grp int, a int, b string"
_MOST = 1000
PROPERTIES = (
    "",
    "TBLPROPERTIES (delta.enableDeletionVectors = true)",
    "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    "TBLPROPERTIES (delta.columnMapping.mode = 'name')",
    "TBLPROPERTIES (delta.enableRowTracking = true)",
    "PARTITIONED BY (grp)",
    "TBLPROPERTIES (delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true)",
    # No statistics of the key.
    "TBLPROPERTIES (delta.dataSkippingStatsColumns = 'a')",
)
STORED, LIST, ITSELF, CHECKPOINT = "a stored table", "a list", "the target itself", "a checkpoint"


@dataclass(frozen=True, slots=True)
class Merge:
    """One MERGE: the rows of each file of the target, the rows of the source, the statement.

    `command` has the places `{target}` and `{source}`. `may_skip`: files may be left out, if they have no key.
    """

    key: str
    files: Sequence[Sequence[Row]]
    properties: str
    source: Sequence[Row]
    kind: str
    command: str
    may_skip: bool

    @property
    def schema(self) -> str:
        """The columns of the target and of the source, as DDL."""
        return f"{COLUMNS[0]} {self.key}, {_OTHERS}"

    def __str__(self) -> str:
        count = sum(map(len, self.files))
        rows = f"{count} rows in {len(self.files)} files, {len(self.source)} rows of {self.kind}"
        return f"{self.command}\nkey {self.key}, {self.properties or 'plain'}, {rows}"


def random_merge(draws: Draws) -> Merge:
    """The statement, its target and its source."""
    key = draws.choice([*KEYS])
    is_clustered = not draws.chance(25)
    source, kind = _source(key, draws), draws.choice((STORED, LIST, ITSELF, CHECKPOINT))
    condition = _condition(draws)
    matched, missing, alone = _clauses(draws)
    command = f"MERGE INTO {{target}} t USING {{source}} s ON {condition}{''.join((*matched, *missing, *alone))}"
    return Merge(
        key,
        _files(key, draws, is_clustered=is_clustered),
        draws.choice(PROPERTIES),
        source,
        kind,
        command,
        may_skip=not alone and "%" not in condition,
    )


def _files(key: str, draws: Draws, *, is_clustered: bool) -> list[list[Row]]:
    """Files of about as many rows, each with the keys of one stretch, or with keys of all."""
    count, files = draws.choice((40, 200, 400)), draws.choice((8, 2, 5))
    rows = [_row(key, draws.below(_MOST), draws, nulls=3) for _ in range(count)]
    if is_clustered:
        rows.sort(key=lambda each: (each[1] is None, each[1] or 0, repr(each[0])))
    ends = [len(rows) * at // files for at in range(files + 1)]
    return [rows[first:last] for first, last in itertools.pairwise(ends)]


def _row(key: str, at: int, draws: Draws, *, nulls: int) -> Row:
    """A row; the numbers of a group lie beside each other, so that files by groups are files by keys."""
    if draws.chance(nulls):
        return (None, None, draws.below(9), None)
    return (KEYS[key](at), at // 50, draws.below(9), draws.choice(("x", "y", "z", None)))


def _source(key: str, draws: Draws) -> list[Row]:
    """Rows with keys of a narrow stretch, of all keys or of none of the target; maybe none, maybe some twice."""
    count = draws.choice((5, 0, 1, 40))
    first, width = draws.choice(((draws.below(_MOST), 60), (0, _MOST), (2 * _MOST, 50)))
    places = [first + draws.below(width) for _ in range(count)]
    if not draws.chance(20):
        # Else a row of the target may match several.
        places = [*dict.fromkeys(places)]
    return [_row(key, at, draws, nulls=5) for at in places]


def _condition(draws: Draws) -> str:
    parts = [draws.choice((f"t.{COLUMNS[0]} = s.{COLUMNS[0]}", f"s.{COLUMNS[0]} = t.{COLUMNS[0]}"))]
    if draws.chance(10):
        parts = [f"t.{COLUMNS[0]} <=> s.{COLUMNS[0]}"]
    more = (
        "t.grp = s.grp",
        "t.grp >= 3",
        "s.a > 2",
        "t.a % 3 = 1",
        "t.grp IN (1, 5, 9)",
        "t.a > s.a",
        "t.b IS NOT NULL",
    )
    parts += [each for each in more if draws.chance(12)]
    return " AND ".join(parts)


def _clauses(draws: Draws) -> tuple[list[str], list[str], list[str]]:
    """Clauses for rows with a match, for rows of the source without, and for rows of the target without."""
    update = " THEN UPDATE SET a = s.a, b = concat('new ', coalesce(s.b, '-'))"
    matched = draws.choice(
        (
            [f" WHEN MATCHED{update}"],
            [],
            [" WHEN MATCHED THEN DELETE"],
            [f" WHEN MATCHED AND t.a > 4{update}", " WHEN MATCHED AND s.a < 3 THEN DELETE"],
        )
    )
    insert = f" THEN INSERT ({', '.join(COLUMNS)}) VALUES ({', '.join(f's.{each}' for each in COLUMNS)})"
    missing = draws.choice(
        ([f" WHEN NOT MATCHED{insert}"], [], [f" WHEN NOT MATCHED AND s.a > 3{insert}"])
        if matched
        else ([f" WHEN NOT MATCHED{insert}"], [f" WHEN NOT MATCHED AND s.a > 3{insert}"])
    )
    alone = (
        draws.choice(
            (
                [" WHEN NOT MATCHED BY SOURCE AND t.grp < 4 THEN DELETE"],
                [" WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = -1"],
            )
        )
        if draws.chance(15)
        else []
    )
    return matched, missing, alone
