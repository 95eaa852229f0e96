"""Small Parquet files for tests, and what their footers are read as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.parquet.row_groups import FileRef, FooterCache, FooterColumn, FooterResult, read_row_groups
from connectors.spark.files import LocalStorage
from pruning.scan.skipping import prune
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.connectors.hand_made import Struct, edit_footer


def written(
    path: Path, table: pa.Table, *, rows: int = 2, edit: Callable[[Struct], None] | None = None, **options
) -> FileRef:
    """A file in row groups of `rows` rows, its footer then changed by `edit`."""
    pq.write_table(table, path, row_group_size=rows, **options)
    if edit is not None:
        edit_footer(path, edit)
    return ref(path)


def ref(path: Path) -> FileRef:
    """The file as a listing names it."""
    found = path.stat()
    return FileRef(path.as_uri(), found.st_size, found.st_mtime_ns // 1_000_000)


def column(text: str, *path: str, **options) -> FooterColumn:
    """A column of the Spark type `text`; called `x` in the file if no path is given."""
    return FooterColumn("x", path or ("x",), ValueType.parse(text), **options)


def read(files: FileRef | Sequence[FileRef], *columns: FooterColumn, **options) -> FooterResult:
    """All row groups of local files."""
    listed = [files] if isinstance(files, FileRef) else files
    return read_row_groups(listed, columns, None, LocalStorage(), FooterCache(), **options)


def domains(file: FileRef, asked: FooterColumn, **options) -> list[str]:
    """What each row group may hold, as text."""
    containers = read(file, asked, **options).containers
    return [str(containers[index].domains["x"]) for index in range(len(containers))]


def kept(file: FileRef, asked: FooterColumn, *keys: object) -> list[bool]:
    """The row groups that may hold one of the keys."""
    return prune(read(file, asked).containers, {"x": Domain.of(asked.type, *keys)}).kept.tolist()


def ends(file: FileRef, asked: FooterColumn) -> tuple[object, object]:
    """The bounds of the first row group, None where they are unknown."""
    found = read(file, asked).containers.columns["x"]
    low = code.decode(asked.type, found.lows)[0] if found.has_low[0] else None
    high = code.decode(asked.type, found.highs)[0] if found.has_high[0] else None
    return low, high
