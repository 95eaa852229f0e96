"""The driver's cost of row groups on top of file statistics: footers.

Footers are taken from real files and served from memory, so the latency of a store is excluded.
"""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import driver_inputs as inputs
from connectors.parquet.row_groups import FileRef, FooterCache, FooterColumn, read_row_groups
from pruning.scan.statistics import Containers
from pruning.values.types import ValueType

ROW_GROUPS, COLUMNS = 4, 24
_ROWS = 100
_TAIL = 8
_CHUNK_BYTES = 1 << 20
_CORES = 2


class Footers:
    """A `Storage` whose files all have the same footer."""

    def read_footer(self, uri: str, size: int) -> bytes:  # noqa: ARG002 - as of any storage
        """The footer with its trailer."""
        return one_footer()


def read(files: int) -> Containers:
    """The row groups of `files` files, none of whose footers is cached yet."""
    refs = [FileRef(f"file:///table/part-{at:08}.parquet", 1 << 26, 0) for at in range(files)]
    column = FooterColumn(inputs.COLUMN, (inputs.COLUMN,), ValueType(inputs.BIGINT))
    return read_row_groups(refs, [column], [inputs.COLUMN], Footers(), FooterCache()).containers


@cache
def one_footer() -> bytes:
    """The footer, with its trailer, of a file with `ROW_GROUPS` row groups and `COLUMNS` columns, the key first."""
    values = np.arange(_ROWS * ROW_GROUPS)
    names = [inputs.COLUMN, *(f"column_{at}" for at in range(1, COLUMNS))]
    file = io.BytesIO()
    pq.write_table(pa.table(dict.fromkeys(names, values)), file, row_group_size=_ROWS)
    content = file.getvalue()
    return content[-int.from_bytes(content[-_TAIL:-4], "little") - _TAIL :]
