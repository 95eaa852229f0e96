"""Files with their footers, and where in each the columns of a table lie: what a reader of our own needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from connectors.arrow_values import arrow_of
from connectors.footer_columns import FooterColumn, Place, locate
from connectors.footer_parse import Footer
from connectors.footers import FileRef, FooterCache, load_footers, unread
from connectors.storage import Storage
from pruning.byte_strings import IntArray
from pruning.reasons import Reason, ReasonCode
from pruning.statistics import ColumnStatistics

# In the place of a column of the files: the value that all rows of a file have, or None for NULL.
Constant: TypeAlias = "pa.Scalar | None"


@dataclass(frozen=True, slots=True, eq=False)
class StoredFile:
    """One file: for each column asked for where it lies, or, without a place, the value of all rows.

    `modified` is the time of the file itself in milliseconds since 1970; None where only a log says one.
    """

    uri: str
    size: int
    modified: int | None
    footer: Footer
    places: tuple[Place | None, ...]
    constants: tuple[Constant, ...]


def stored_files(
    files: Sequence[FileRef],
    columns: Sequence[FooterColumn | Sequence[Constant]],
    storage: Storage,
    cache: FooterCache,
    *,
    case_sensitive: bool,
) -> list[StoredFile] | Reason:
    """The files with all `columns`, each of the files or as the constants of every file; a `Reason` where one fails."""
    found: list[StoredFile] = []
    for at, (file, footer) in enumerate(zip(files, load_footers(files, storage, cache), strict=True)):
        if isinstance(footer, Exception):
            return unread(file, footer)
        places = [
            locate(footer.schema, each, case_sensitive=case_sensitive) if isinstance(each, FooterColumn) else None
            for each in columns
        ]
        constants = [None if isinstance(each, FooterColumn) else each[at] for each in columns]
        found.append(StoredFile(file.path, file.size, file.modified, footer, tuple(places), tuple(constants)))
    return found


def partition_constants(
    names: Sequence[str], statistics: Mapping[str, ColumnStatistics], rows: IntArray, files: IntArray
) -> dict[str, list[Constant]] | Reason:
    """The values of partition columns in the files at these indexes; a `Reason` where one is not known exactly."""
    found: dict[str, list[Constant]] = {}
    for name in names:
        column = statistics.get(name)
        # -0.0 and 0.0 share a code.
        if column is None or not column.is_partition or column.type.is_float:
            return Reason(ReasonCode.NO_STATISTICS, name)
        taken = column.take(files)
        is_null, is_value = taken.all_null(rows[files]), taken.has_low & taken.has_high & (taken.null_count == 0)
        if not (is_null | is_value).all() or taken.may_have_nan[~is_null].any():
            return Reason(ReasonCode.NO_STATISTICS, name, "a partition may have other values than one")
        values = arrow_of(column.type, taken.lows)
        found[name] = [None if null else values[at] for at, null in enumerate(np.asarray(is_null).tolist())]
    return found
