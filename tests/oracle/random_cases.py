"""Random pruned reads from a seed: keys, options and projections over a few tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pruning import PruningOptions
from pruning.cost.rates import CostRates
from tests.oracle.answers import Keys
from tests.oracle.lakes import Layout

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ALPHABET = "az~\u00df\u007f\u0080\u07ff\uffff\U00010000\U0010ffff\x00 %_'"
_NAN = float("nan")

# Generators of one value each. Tables and keys draw from the same few hundred values, so that keys hit and miss.
DRAW: Mapping[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "small": (pa.int8(), lambda rng: rng.randint(-128, 127)),
    "int": (pa.int32(), lambda rng: rng.choice([rng.randint(-50, 250), rng.choice([-(2**31), 2**31 - 1])])),
    "long": (pa.int64(), lambda rng: rng.choice([1, 1 << 53, (1 << 63) // 300]) * rng.randint(-250, 250)),
    "money": (pa.decimal128(7, 2), lambda rng: Decimal(rng.randint(-300, 300)) / rng.choice([1, 4, 100])),
    "wide": (pa.decimal128(38, 10), lambda rng: Decimal(rng.randint(-200, 200) * 10 ** rng.randint(0, 25)) / 10**10),
    "real": (pa.float64(), lambda rng: rng.choice([rng.randint(-100, 100) / 8, -0.0, 0.0, _NAN, float("inf"), 1e300])),
    "single": (pa.float32(), lambda rng: rng.choice([rng.randint(-100, 100) / 8, -0.0, _NAN, 2.0**-149])),
    "day": (pa.date32(), lambda rng: date(1969, 6, 1) + timedelta(days=rng.randint(0, 400))),
    "at": (pa.timestamp("us", "UTC"), lambda rng: _EPOCH + timedelta(microseconds=rng.randint(-150, 150) * 499)),
    "wall": (pa.timestamp("us"), lambda rng: datetime(1970, 1, 1) + timedelta(hours=rng.randint(-150, 150))),  # noqa: DTZ001
    "text": (
        pa.string(),
        lambda rng: "p" * rng.choice([0, 31, 40]) + "".join(rng.choices(_ALPHABET, k=rng.randint(0, 2))),
    ),
    "raw": (pa.binary(), lambda rng: bytes(rng.choices([0, 127, 128, 255], k=rng.randint(0, 3)))),
    "flag": (pa.bool_(), lambda rng: rng.random() < 0.5),
}

# Types that Spark compares with a column of each type, besides its own.
OTHERS: Mapping[str, Sequence[str]] = {
    "small": ("int", "long", "money", "real"),
    "int": ("small", "long", "money", "wide", "real"),
    "long": ("int", "small", "wide", "real"),
    "money": ("int", "wide", "real"),
    "wide": ("money", "int"),
    "real": ("int", "single", "money"),
    "single": ("real", "money"),
    "day": ("at", "wall"),
    "at": ("day", "wall"),
    "wall": ("day", "at"),
}

LAYOUTS = (Layout(file_rows=40, group_rows=10), Layout(file_rows=7, group_rows=7), Layout(file_rows=120, group_rows=15))
ROWS = 120


def random_table(seed: int) -> pa.Table:
    """A table with every type, one or two columns of it clustered, with some NULL."""
    rng = random.Random(f"table {seed}")  # noqa: S311 - a test that can be repeated
    clustered = rng.choice(list(DRAW))
    columns = {}
    for name, (type_, draw) in DRAW.items():
        values = [draw(rng) for _ in range(ROWS)]
        if name == clustered or rng.random() < 0.4:
            values.sort(key=_order)
        nulls = rng.choice([0.0, 0.1, 0.6])
        columns[name] = pa.array([None if rng.random() < nulls else value for value in values], type_)
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), **columns})


def _order(value: Any) -> Any:
    if isinstance(value, float):
        return (value != value, value)  # noqa: PLR0124 - NaN is greatest, as in Spark
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One pruned read."""

    entries: tuple[Keys, ...]
    exact: bool
    options: PruningOptions
    columns: tuple[str, ...] | None

    def __repr__(self) -> str:
        keys = ", ".join(map(repr, self.entries))
        return f"keys={{{keys}}}, exact={self.exact}, columns={self.columns}, options={self.options}"


def random_cases(seed: int, count: int) -> list[Case]:
    """`count` cases for `random_table(seed)`, the same for the same seed."""
    rng = random.Random(f"cases {seed}")  # noqa: S311
    return [_case(rng, random_table(seed)) for _ in range(count)]


def _case(rng: random.Random, rows: pa.Table) -> Case:
    entries: dict[tuple[str, ...], Keys] = {}
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        names = tuple(rng.sample(list(DRAW), rng.choice([1, 1, 1, 2, 3])))
        entries[names] = _keys(rng, rows, names)
    columns = tuple(rng.sample(rows.column_names, 3)) if rng.random() < 0.2 else None
    return Case(tuple(entries.values()), rng.random() < 0.5, _options(rng), columns)


def _keys(rng: random.Random, rows: pa.Table, names: Sequence[str]) -> Keys:
    count = rng.choice([0, 1, 2, 5, 30, 200])
    picked = [rng.randrange(ROWS) for _ in range(count)]
    arrays = []
    for name in names:
        kind = name
        if len(names) == 1 and name in OTHERS and rng.random() < 0.3:
            kind = rng.choice(OTHERS[name])
        type_, draw = DRAW[kind]
        values = [draw(rng) if rng.random() < 0.4 or kind != name else None for _ in range(count)]
        existing = rows.column(name).take(pa.array(picked, pa.int64())).to_pylist()
        if kind == name:
            values = [old if new is None else new for old, new in zip(existing, values, strict=True)]
        arrays.append(pa.array([None if rng.random() < 0.03 else value for value in values], type_))
    return Keys.of(tuple(names), *arrays)


def _options(rng: random.Random) -> PruningOptions:
    if rng.random() < 0.4:
        return PruningOptions()
    return PruningOptions(max_build_bytes=rng.choice([16, 500, 150 << 20])).with_limits(
        max_build_keys=rng.choice([1, 3, 20, 10_000_000]),
        max_ranges=rng.choice([1, 2, 64]),
        max_in_list=rng.choice([0, 3, 500]),
        max_footers=rng.choice([0, 2, 1000]),
        bloom_fpp=rng.choice([0.01, 0.4]),
        costs=CostRates(joined_row=rng.choice([0.0, 20.0, 1e9])),
    )
