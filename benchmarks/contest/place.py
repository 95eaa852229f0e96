"""The location of a contest's tables, and the lists of their files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pyarrow import fs

_HIDDEN = ("_", ".")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Table:
    """A table as every engine receives it: its folder and format, for engines that read a log, and all of its files.

    `partition` is the column whose values are in the names of folders, "" for none, and `partition_type` its SQL type.
    """

    name: str
    folder: str
    format: str
    files: tuple[str, ...]
    partition: str = ""
    partition_type: str = "INTEGER"

    def to_json(self) -> dict[str, Any]:
        """The JSON object that `of_json()` reads."""
        return asdict(self)

    @staticmethod
    def of_json(found: Mapping[str, Any]) -> Table:
        """The table of a JSON object of `to_json()`."""
        return Table(**{**found, "files": tuple(found["files"])})


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of a file system; engines prepend `prefix` to its paths, such as `s3a://`."""

    root: str
    prefix: str = ""
    filesystem: fs.FileSystem = field(default_factory=fs.LocalFileSystem)

    def table(self, folder: str, name: str, table_format: str) -> Table:
        """The table of this name in a folder. Raises `ValueError` if it has no file."""
        path = f"{self.root}/{folder}/{name}"
        files = sorted(self._data_files(path))
        if not files:
            raise ValueError(f"Cannot read table {name!r}: no Parquet file below {path!r}")
        parts = (part.partition("=") for part in PurePosixPath(files[0].removeprefix(path)).parts if "=" in part)
        partition, _, value = next(parts, ("", "", ""))
        return Table(
            name,
            self.prefix + path,
            table_format,
            tuple(self.prefix + each for each in files),
            partition,
            "DATE" if _DATE.fullmatch(value) else "INTEGER",
        )

    def _data_files(self, path: str) -> Iterator[str]:
        for each in self.filesystem.get_file_info(fs.FileSelector(path, recursive=True)):
            inside = each.path.removeprefix(path).strip("/").split("/")
            if each.extension == "parquet" and not any(part.startswith(_HIDDEN) for part in inside):
                yield each.path
