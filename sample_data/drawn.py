"""Tables that numpy draws, one Parquet file each, in a cache folder: `drawn_files()`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from sample_data.cache import Manifest, Progress, cache_folder, made_whole
from sample_data.generator import valid_scale, wanted_tables
from sample_data.source import Schema, SourceFiles

# A function that writes a table at a scale to a path.
WriteTable = Callable[[str, float, Path, Progress], None]


def drawn_files(  # noqa: PLR0913 - a workload, and what is wanted of it
    title: str,
    schema: Schema,
    revision: int,
    write: WriteTable,
    *,
    scale: float,
    least_scale: float,
    target: Path,
    tables: Sequence[str] | None,
    progress: Progress,
) -> SourceFiles:
    """The files of `tables` (None: all) below `target`; missing files are written by `write`.

    `revision` changes with the rows. Raises `ValueError` for an invalid scale or table.
    """
    valid_scale(title, scale, least_scale)
    wanted = wanted_tables(title, schema.tables, tables)
    made: Manifest = {"generator": f"numpy {np.__version__}", schema.name: revision, "scale": scale}
    folder = target / schema.folder(scale)
    paths = {table: folder / f"{table}.parquet" for table in wanted}
    with cache_folder(folder, made, [f"{table}.parquet" for table in schema.tables]):
        missing = {table: path for table, path in paths.items() if not path.exists()}
        for table, path in missing.items():
            with made_whole(path) as unfinished:
                write(table, scale, unfinished, progress)
    progress(f"{title.capitalize()} generated", 1.0)
    return SourceFiles(scale, made, paths, schema)
