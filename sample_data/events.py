"""The workload of page views: an append-only table of events of 400 days, and small tables that analysts join to it.

- `page_views`: 5,000,000 rows at a scale of 1, in the order of time; users and sessions are random strings, which
  follow no order; tenants and pages are skewed; structs, an array and a map
- `users`: 100,000 rows at a scale of 1; the UUIDs of the first users are the same at each scale
- `campaigns`: periods of days in which sessions may come from a campaign; some come later
- `bots`: users whose views most queries exclude: one of 199 users, with many views
- `calendar`: the days, and the seasons of sales

Each day is drawn by a generator of its own, so equal scales and versions of numpy give equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from sample_data.cache import Progress, quiet
from sample_data.drawn import drawn_files
from sample_data.events_dimensions import bots, calendar, campaigns, users
from sample_data.events_draws import DAYS, user_count
from sample_data.events_views import SCHEMA as VIEWS
from sample_data.events_views import Days
from sample_data.source import Clustered, Schema, SourceFiles

TABLES = ("page_views", "users", "campaigns", "bots", "calendar")
SCHEMA = Schema(
    "events",
    TABLES,
    {
        "page_views": Clustered(
            # Small files, as appends leave them: four days each at a scale of 10.
            "event_date",
            ("event_time", "view_id"),
            16,
            "user_id",
            rows_per_file=500_000,
        )
    },
    label="events",
)
LEAST_SCALE = 0.001
_REVISION = 1
_VIEWS_PER_SCALE = 5_000_000
_ROWS_PER_GROUP = 100_000

_DIMENSIONS: Mapping[str, Callable[[int], pa.Table]] = MappingProxyType(
    {"users": users, "campaigns": campaigns, "bots": bots, "calendar": calendar}
)


def generate(
    scale: float, target: Path, tables: Sequence[str] | None = None, progress: Progress = quiet
) -> SourceFiles:
    """The files of `tables` (None: all) below `target`; missing files are generated, in less than 1 GB of memory.

    Raises `ValueError` for an invalid scale or table.
    """
    return drawn_files(
        "page views",
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
    if table in _DIMENSIONS:
        pq.write_table(_DIMENSIONS[table](user_count(scale)), path)
    else:
        _write_views(scale, path, progress)


def _write_views(scale: float, path: Path, progress: Progress) -> None:
    """Writes days to row groups of `_ROWS_PER_GROUP` rows or somewhat more."""
    days = Days(user_count(scale), round(_VIEWS_PER_SCALE * scale))
    with pq.ParquetWriter(path, VIEWS) as writer:
        waiting: list[pa.Table] = []
        for day in range(DAYS):
            progress("Generating page views", day / DAYS)
            waiting.append(days.table(day))
            if day == DAYS - 1 or sum(each.num_rows for each in waiting) >= _ROWS_PER_GROUP:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
