"""Generated tables of a workload before they are laid out: one Parquet file each, and how facts will be clustered.

This module loads no engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sample_data.cache import Manifest

ROWS_PER_FILE_AT_MOST = 4_000_000


@dataclass(frozen=True, slots=True)
class Clustered:
    """A fact table ordered by `date`, then by `unique`; a day is never split over files.

    - `files`: the number of files, as long as none exceeds `rows_per_file` rows
    - `item`: the column that a Z-order has beside the date
    """

    date: str
    unique: tuple[str, str]
    files: int
    item: str
    rows_per_file: int = ROWS_PER_FILE_AT_MOST

    def files_of(self, rows: int) -> int:
        """The number of files for `rows` rows."""
        return max(self.files, math.ceil(rows / self.rows_per_file))


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a workload, and the layout of its facts.

    `label` begins the names of folders and results; it is empty for TPC-DS.
    """

    name: str
    tables: tuple[str, ...]
    facts: Mapping[str, Clustered]
    label: str = ""

    def folder(self, scale: float, layout: str = "") -> str:
        """The name of the folder of all tables of a scale, as source files or in a layout."""
        return "-".join(filter(None, (self.label, layout, f"sf{scale:g}")))


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """One Parquet file per table."""

    scale: float
    manifest: Manifest
    paths: Mapping[str, Path]
    schema: Schema
