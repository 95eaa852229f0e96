"""Knowledge of the writer that a footer names as `created_by`: errors in its bounds, and the order of its strings.

Each rule has its source in the README. A writer that names no version has each error that any version of it had.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from connectors.parquet.orders import Order, order_of
from connectors.parquet.schema import LeafType

_VERSION = re.compile(r"\bv?(\d+(?:\.\d+)+)")
Version = tuple[int, ...]


class Fault(Enum):
    """The part of the metadata of a column that a writer is known to get wrong."""

    BOUNDS = "bounds of row groups and pages"
    PAGE_INDEX = "page index"


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer: the text by which it names itself, and its version, empty if it names none."""

    text: str = ""
    version: Version = ()

    def fault(self, leaf: LeafType) -> Fault | None:
        """The part of the metadata of a leaf that the writer is known to get wrong, the greatest part first."""
        found = {each.fault for each in _ERRORS if each.is_in(self, leaf)}
        return next((fault for fault in Fault if fault in found), None)

    def orders_bytes(self) -> bool:
        """True for a writer that is known to order strings by unsigned bytes, also where its footer does not say so."""
        return any(self.text.startswith(name) and self.version >= first for name, first in _ORDERED_BY_BYTES.items())


_NEVER: Version = (1 << 30,)


@dataclass(frozen=True, slots=True)
class _Error:
    """A known error of the writers whose text begins with `name`, before the version `fixed`.

    It is in leaves with bounds in `order` and of the type `physical`, in all if None.
    """

    name: str
    fault: Fault
    order: Order | None = None
    physical: str | None = None
    fixed: Version = _NEVER

    def is_in(self, writer: Writer, leaf: LeafType) -> bool:
        return (
            writer.text.startswith(self.name)
            and writer.version < self.fixed
            and self.order in (None, order_of(leaf))
            and self.physical in (None, leaf.physical)
        )


_ERRORS = (
    _Error("parquet-cpp", Fault.BOUNDS, order=Order.VALUE, fixed=(4,)),
    _Error("ClickHouse", Fault.BOUNDS, order=Order.VALUE, fixed=(25, 8)),
    _Error("github.com/segmentio/parquet-go", Fault.BOUNDS, order=Order.VALUE),
    _Error("github.com/parquet-go/parquet-go", Fault.BOUNDS, order=Order.VALUE),
    _Error("Polars", Fault.BOUNDS, order=Order.VALUE),
    _Error("Polars", Fault.BOUNDS, physical="BYTE_ARRAY"),
    _Error("Arrow2", Fault.BOUNDS, physical="BYTE_ARRAY"),
    _Error("parquet-rs", Fault.BOUNDS, physical="BYTE_ARRAY", fixed=(6,)),
    _Error("parquet-rs", Fault.BOUNDS, order=Order.VALUE, physical="BYTE_ARRAY"),
    _Error("flow-php", Fault.BOUNDS, physical="BYTE_ARRAY"),
    _Error("ClickHouse", Fault.PAGE_INDEX, physical="BYTE_ARRAY", fixed=(26, 5)),
    _Error("parquet-go version latest", Fault.PAGE_INDEX),
)
# The first version that orders strings by unsigned bytes.
_ORDERED_BY_BYTES: Mapping[str, Version] = {"DuckDB": (), "parquet-rs": (6,)}


@lru_cache(maxsize=256)
def writer_of(created_by: bytes) -> Writer:
    """The writer that a footer names."""
    text = created_by.decode("utf-8", "replace")
    found = _VERSION.search(text)
    return Writer(text, tuple(int(each) for each in found[1].split(".")) if found else ())
