"""Small Parquet files for tests, and the statistics that are read from their footers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.parquet.row_groups import FileRef, FooterCache, FooterColumn, FooterResult, read_row_groups
from connectors.spark.files import LocalStorage
from pruning.scan.skipping import prune_containers
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.connectors.hand_made import Struct, edit_footer


def written(
    path: Path, table: pa.Table, *, rows: int = 2, edit: Callable[[Struct], None] | None = None, **options
) -> FileRef:
    """A file with row groups of `rows` rows, whose footer `edit` then changes."""
    pq.write_table(table, path, row_group_size=rows, **options)
    if edit is not None:
        edit_footer(path, edit)
    return ref(path)


def ref(path: Path) -> FileRef:
    """The file as a listing names it."""
    found = path.stat()
    return FileRef(path.as_uri(), found.st_size, found.st_mtime_ns // 1_000_000)


def column(text: str, *path: str, **options) -> FooterColumn:
    """A column of the Spark type `text`, named `x` in the file unless a path is given."""
    return FooterColumn("x", path or ("x",), ValueType.parse(text), **options)


def read(files: FileRef | Sequence[FileRef], *columns: FooterColumn, **options) -> FooterResult:
    """All row groups of local files."""
    listed = [files] if isinstance(files, FileRef) else files
    return read_row_groups(listed, columns, None, LocalStorage(), FooterCache(), **options)


def domains(file: FileRef, wanted: FooterColumn, **options) -> list[str]:
    """The domain of each row group, as text."""
    containers = read(file, wanted, **options).containers
    return [str(containers[index].domains["x"]) for index in range(len(containers))]


def kept(file: FileRef, wanted: FooterColumn, *keys: object) -> list[bool]:
    """A flag for each row group that may have one of the keys."""
    return prune_containers(read(file, wanted).containers, {"x": Domain.of(wanted.type, *keys)}).kept.tolist()


def ends(file: FileRef, wanted: FooterColumn) -> tuple[object, object]:
    """The bounds of the first row group, None where unknown."""
    found = read(file, wanted).containers.columns["x"]
    low = code.decode(wanted.type, found.lows)[0] if found.has_low[0] else None
    high = code.decode(wanted.type, found.highs)[0] if found.has_high[0] else None
    return low, high
