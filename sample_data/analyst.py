"""The workload of analysts: facts in the order of text and of time, and small tables that people join to them by hand.

- `orders`: 1,000,000 rows at a scale of 1, in the order of `customer`, a text; the customer's number as an integer, two
  decimals, a double and the field of a struct, which follow the same order; ids of orders and times that follow none
- `clicks`: as many rows in the order of time; visitors are random UUIDs; sessions are fields of a struct
- `customers`: 50,000 at a scale of 1, the customers of orders
- `vips`: 20 of them, the same at each scale, by keys of each type
- `calendar`: the days, with weeks, months and holidays

Equal scales and versions of numpy give equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sample_data.cache import Progress, quiet
from sample_data.drawn import drawn_files
from sample_data.events_draws import DAYS, Numbers, chosen, dates, day_of, generator, hexadecimal, strings, uuids
from sample_data.source import Clustered, Schema, SourceFiles

TABLES = ("orders", "clicks", "customers", "vips", "calendar")
SCHEMA = Schema(
    "analyst",
    TABLES,
    {
        "orders": Clustered("customer", ("order_id", "amount"), 40, "sku"),
        "clicks": Clustered("day", ("at", "click_id"), 40, "visitor"),
    },
    label="analyst",
)
LEAST_SCALE = 0.01
VIPS = 20
# Visitors of clicks whom queries list; each has a few clicks on different days.
LISTED_VISITORS = 5
_REVISION = 1
_ROWS_PER_SCALE = 1_000_000
_ORDERS_PER_CUSTOMER, _CLICKS_PER_SESSION, _CLICKS_PER_VISITOR = 20, 8, 16
_ROWS_PER_PART = 500_000
_SKUS, _REGIONS = 1_000, 50
_MICROSECONDS_OF_DAY = 86_400 * 1_000_000
_FIRST_MICROSECOND = int(np.datetime64(day_of(0), "us").astype(np.int64))
_TIME = pa.timestamp("us", "UTC")
_FIRST_NAMES = ["Ada", "Ben", "Chen", "Dina", "Emil", "Fatou", "Gus", "Hana", "Ines", "Juri", "Karl", "Lea", "Zoë"]
_SECTIONS = ["home", "search", "product", "cart", "checkout", "account", "blog"]
_HOLIDAYS = frozenset({(1, 1), (5, 1), (10, 3), (12, 25), (12, 26)})


def customer_count(scale: float) -> int:
    """The number of customers."""
    return round(_ROWS_PER_SCALE * scale) // _ORDERS_PER_CUSTOMER


def customer_codes(numbers: Numbers) -> pa.Array:
    """The text keys of customers by their numbers, such as C0000017, whose order is that of the numbers."""
    digits = numbers[:, None] // 10 ** np.arange(6, -1, -1) % 10 + ord("0")
    return strings(np.concatenate([np.full((len(numbers), 1), ord("C")), digits], axis=1).astype(np.uint8))


def customer_names(numbers: Numbers) -> pa.Array:
    """The names of customers, which follow no order; hardly two have the same."""
    first = pa.array(_FIRST_NAMES).take(pa.array(numbers * 7 % len(_FIRST_NAMES)))
    return pc.binary_join_element_wise(first, pa.array(numbers * 7_919 % 999_983).cast(pa.string()), " ")


def visitors(numbers: Numbers) -> pa.Array:
    """The UUIDs of visitors by their numbers, which follow no order and do not depend on the scale."""
    mixed = [_mixed(numbers.astype(np.uint64) * np.uint64(2) + np.uint64(half)) for half in (0, 1)]
    return uuids(np.stack(mixed, axis=1).view(np.uint8).reshape(len(numbers), 16))


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Another 64-bit number for each, by the finaliser of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        numbers = (numbers ^ numbers >> np.uint64(33)) * np.uint64(factor)
    return numbers ^ numbers >> np.uint64(33)


def _decimals(numbers: Numbers, precision: int, scale: int) -> pa.Array:
    return pa.array(numbers).cast(pa.decimal128(19, 0)).cast(pa.decimal128(precision, scale))


def _times(micros: Numbers) -> pa.Array:
    return pa.array(_FIRST_MICROSECOND + micros, _TIME)


def _orders(scale: float) -> Iterator[pa.Table]:
    count = round(_ROWS_PER_SCALE * scale)
    for part, first in enumerate(range(0, count, _ROWS_PER_PART)):
        rows = np.arange(first, min(first + _ROWS_PER_PART, count))
        numbers = np.minimum(rows // _ORDERS_PER_CUSTOMER, customer_count(scale) - 1)
        draws = generator("orders", part)
        # Ids follow no order: the multiplier has no factor in common with their number.
        ids = rows * 7_919 % count if count % 7_919 else rows
        yield pa.table(
            {
                "order_id": ids,
                "customer": customer_codes(numbers),
                "customer_no": pa.array(numbers, pa.int32()),
                "customer_code": _decimals(numbers, 20, 2),
                "customer_serial": _decimals(numbers, 30, 4),
                "customer_weight": numbers.astype(np.float64),
                "buyer": pa.StructArray.from_arrays(
                    [pa.array(numbers, pa.int32()), customer_names(numbers)], ["number", "name"]
                ),
                "ordered_at": _times(draws.integers(0, DAYS * _MICROSECONDS_OF_DAY, len(rows))),
                "sku": pa.array(draws.integers(0, _SKUS, len(rows)), pa.int32()),
                "amount": pa.array(draws.integers(100, 100_000, len(rows))).cast(pa.decimal128(19, 0)),
                "note": strings(hexadecimal(draws.integers(0, 256, (len(rows), 8), np.uint8))),
            }
        )


def _clicks(scale: float) -> Iterator[pa.Table]:
    count = round(_ROWS_PER_SCALE * scale)
    pause = DAYS * _MICROSECONDS_OF_DAY // count
    for part, first in enumerate(range(0, count, _ROWS_PER_PART)):
        rows = np.arange(first, min(first + _ROWS_PER_PART, count))
        draws = generator("clicks", part)
        times = _times(rows * pause + draws.integers(0, pause, len(rows)))
        sessions = rows // _CLICKS_PER_SESSION
        yield pa.table(
            {
                "click_id": rows,
                "at": times,
                "day": times.cast(pa.date32()),
                "visitor": visitors(draws.integers(0, max(1, count // _CLICKS_PER_VISITOR), len(rows))),
                "session": pa.StructArray.from_arrays(
                    [pa.array(sessions), chosen(["web", "app"], [3, 1], draws.random(len(rows)))], ["id", "channel"]
                ),
                "section": chosen(_SECTIONS, [18, 15, 40, 9, 4, 6, 8], draws.random(len(rows))),
                "customer_no": pa.array(draws.integers(0, customer_count(scale), len(rows)), pa.int32()),
                "milliseconds": pa.array(draws.integers(0, 60_000, len(rows)), pa.int32()),
            }
        )


def _customers(scale: float) -> Iterator[pa.Table]:
    numbers = np.arange(customer_count(scale))
    yield pa.table(
        {
            "customer": customer_codes(numbers),
            "customer_no": pa.array(numbers, pa.int32()),
            "name": customer_names(numbers),
            "region": pa.array(numbers * 31 % _REGIONS, pa.int32()),
            "joined_on": dates(numbers * 6_007 % (3 * DAYS) - 2 * DAYS),
        }
    )


def _vips(_scale: float) -> Iterator[pa.Table]:
    numbers = 5 + 17 * np.arange(VIPS)
    yield pa.table(
        {
            "customer": customer_codes(numbers),
            "customer_no": pa.array(numbers, pa.int32()),
            "code": _decimals(numbers, 20, 2),
            "serial": _decimals(numbers, 30, 4),
            "weight": numbers.astype(np.float64),
            "visitor": visitors(numbers),
        }
    )


def _calendar(_scale: float) -> Iterator[pa.Table]:
    days = [day_of(number) for number in range(DAYS)]
    starts = np.arange(DAYS) * _MICROSECONDS_OF_DAY
    yield pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "starts_at": _times(starts),
            "ends_at": _times(starts + _MICROSECONDS_OF_DAY - 1),
            "month_start": pa.array([each.replace(day=1) for each in days], pa.date32()).cast(_TIME),
            "day_text": [each.isoformat() for each in days],
            "year": pa.array([each.year for each in days], pa.int32()),
            "month": pa.array([each.month for each in days], pa.int32()),
            "week": [f"{each.isocalendar().year}-W{each.isocalendar().week:02}" for each in days],
            "day_before": pa.array([each - timedelta(days=1) for each in days], pa.date32()),
            "is_holiday": [(each.month, each.day) in _HOLIDAYS for each in days],
        }
    )


_PARTS: Mapping[str, Callable[[float], Iterator[pa.Table]]] = MappingProxyType(
    {"orders": _orders, "clicks": _clicks, "customers": _customers, "vips": _vips, "calendar": _calendar}
)


def generate(
    scale: float, target: Path, tables: Sequence[str] | None = None, progress: Progress = quiet
) -> SourceFiles:
    """The files of `tables` (None: all) below `target`; missing files are generated, in less than 1 GB of memory.

    Raises `ValueError` for an invalid scale or table.
    """
    return drawn_files(
        "the analyst workload",
        SCHEMA,
        _REVISION,
        _write,
        scale=scale,
        least_scale=LEAST_SCALE,
        target=target,
        tables=tables,
        progress=progress,
    )


def _write(table: str, scale: float, path: Path, progress: Progress) -> None:
    progress(f"Generating {table}", TABLES.index(table) / len(TABLES))
    parts = _PARTS[table](scale)
    first = next(parts)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for each in parts:
            writer.write_table(each)
