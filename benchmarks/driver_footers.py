"""What row groups cost the driver beyond statistics of files: footers, and what tasks of a scan by pyarrow are told.

Footers are those of real files, and are handed over from memory: how long a store takes to give them is not in it.
"""

from __future__ import annotations

import io
import pickle
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import driver_inputs as inputs
from connectors.arrow_scan.files import FilePart
from connectors.arrow_scan.partition import dealt
from connectors.parquet.row_groups import FileRef, FooterCache, FooterColumn, read_row_groups
from pruning.scan.statistics import Containers
from pruning.values.types import ValueType

ROW_GROUPS, COLUMNS = 4, 24
_ROWS = 100
_TAIL = 8
_CHUNK_BYTES = 1 << 20
_CORES = 2


class Footers:
    """A `Storage` of files that all end like one."""

    def read_footer(self, uri: str, size: int) -> bytes:  # noqa: ARG002 - as of any storage
        """The footer with its trailer."""
        return one_footer()


def read(files: int) -> Containers:
    """The row groups of so many files, none of whose footers is known yet."""
    refs = [FileRef(f"file:///table/part-{at:08}.parquet", 1 << 26, 0) for at in range(files)]
    column = FooterColumn(inputs.COLUMN, (inputs.COLUMN,), ValueType(inputs.BIGINT))
    return read_row_groups(refs, [column], [inputs.COLUMN], Footers(), FooterCache()).containers


def told(files: int) -> bytes:
    """The parts of so many files as tasks are given them, packed as they are sent."""
    some = tuple(range(ROW_GROUPS))
    parts = [
        FilePart(f"/table/part-{at:08}.parquet", some, (0, 1), (None, None), 1 << 26, 0, one_footer())
        for at in range(files)
    ]
    tasks = dealt(parts, [np.full(ROW_GROUPS, _CHUNK_BYTES)] * files, _CORES)
    return pickle.dumps(tasks, pickle.HIGHEST_PROTOCOL)


@cache
def one_footer() -> bytes:
    """The end of a file with a few row groups of some columns, the first of them the key."""
    values = np.arange(_ROWS * ROW_GROUPS)
    names = [inputs.COLUMN, *(f"column_{at}" for at in range(1, COLUMNS))]
    file = io.BytesIO()
    pq.write_table(pa.table(dict.fromkeys(names, values)), file, row_group_size=_ROWS)
    content = file.getvalue()
    return content[-int.from_bytes(content[-_TAIL:-4], "little") - _TAIL :]
