"""Parquet files as other writers were seen to make them: wrong indexes in the file, and bounds of another form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.connectors.hand_made import Struct, edit_footer, set_bounds, set_text, statistics

_PLAIN = {"use_dictionary": False, "compression": "none"}


def inverted_page_index(folder: Path, created_by: str) -> None:
    """Files "d" to "g" of a least and a greatest text, whose page index has "" as the greatest; bounds are right."""
    folder.mkdir()
    for letter in "defg":
        low, high, path = letter * 4, f"{letter}zzz", folder / f"{letter}.parquet"
        pq.write_table(pa.table({"k": [low, high], "v": [1, 2]}), path, write_page_index=True, **_PLAIN)
        _patch_after_chunks(path, b"\x04" + high.encode(), b"\x04" + bytes(4))
        edit_footer(path, _written_by(created_by))


def bounds_with_length(folder: Path) -> None:
    """Files "m" to "p" of texts without an annotation, whose bounds begin with their length in four bytes."""
    folder.mkdir()
    for letter in "mnop":
        values = [f"{letter}{number:07d}".encode() for number in range(50)]

        def edit(metadata: Struct, values: list[bytes] = values) -> None:
            ends = [len(each).to_bytes(4, "little") + each for each in (values[0], values[-1])]
            set_bounds(statistics(metadata, 0), *ends)

        path = folder / f"{letter}.parquet"
        pq.write_table(pa.table({"k": pa.array(values, pa.binary())}), path, **_PLAIN)
        edit_footer(path, edit)


def _written_by(created_by: str) -> Callable[[Struct], None]:
    return lambda metadata: set_text(metadata, 6, created_by)


def _patch_after_chunks(path: Path, old: bytes, new: bytes) -> None:
    """Replaces bytes between the last column chunk and the footer, where the page index lies."""
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    meta = pq.ParquetFile(path).metadata
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    chunks = [group.column(index) for group in groups for index in range(meta.num_columns)]
    end = max(chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks)
    assert old in data[end:footer]
    path.write_bytes(data[:end] + data[end:footer].replace(old, new) + data[footer:])
