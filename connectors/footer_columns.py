"""Where a column of the table lies in one Parquet file, by the rules by which Spark finds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.footer_statistics import Annotation, Decoder, LeafType, decoder

if TYPE_CHECKING:
    from connectors.footers import FooterColumn
    from pruning.value_type import ValueType

# In the compact encoding of a footer, `column_orders` comes last: a list of unions, each one empty struct.
_ORDER_BYTES = 3
_TYPE_DEFINED = b"\x1c\x00\x00"
_STRUCT_LIST = 0x0C
_LONG_LIST = 0xFC
_SHORT_LIST_MOST = 14

_VERSION_KEY = b"org.apache.spark.version"
_LEGACY_KEY = b"org.apache.spark.legacyDateTime"
_FIRST_GREGORIAN_VERSION = b"3.0.0"


@dataclass(frozen=True, slots=True)
class Place:
    """One column in one file: its leaf's index, or missing, or neither where it cannot be told."""

    index: int | None = None
    decoder: Decoder | None = None
    is_nested: bool = False
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaf columns of one file.

    `names` are the last parts of their paths, `paths` the parts joined by dots, in which a dot of a name cannot
    be told from a joint. `ordered` says which have bounds in the order of the specification.
    """

    schema: Any
    names: tuple[str, ...]
    paths: tuple[str, ...]
    ordered: tuple[bool, ...]
    is_gregorian: bool

    @staticmethod
    def of(metadata: pq.FileMetaData, footer: bytes) -> Leaves:
        """The leaves of a parsed footer and of its bytes."""
        schema = metadata.schema
        columns = [schema.column(index) for index in range(metadata.num_columns)]
        names = tuple(column.name for column in columns)
        paths = tuple(column.path for column in columns)
        return Leaves(schema, names, paths, _ordered(footer, len(names)), _is_gregorian(metadata.metadata or {}))

    def under(self, tops: Sequence[str] | None, *, case_sensitive: bool) -> Sequence[int]:
        """Indexes of the leaves of these top-level columns, of all if None."""
        if tops is None:
            return range(len(self.names))
        wanted = {_folded(top, case_sensitive=case_sensitive) for top in tops}
        return [index for index in range(len(self.names)) if not wanted.isdisjoint(self._tops(index, case_sensitive))]

    def _tops(self, index: int, case_sensitive: bool) -> Iterator[str]:  # noqa: FBT001 - private
        path = _folded(self.paths[index], case_sensitive=case_sensitive)
        if self.names[index] == self.paths[index]:
            yield path
            return
        parents = path[: -len(self.names[index]) - 1].split(".")
        yield from (".".join(parents[:count]) for count in range(1, len(parents) + 1))

    def type_of(self, index: int) -> LeafType:
        """The stored type of one leaf."""
        column = self.schema.column(index)
        logical = column.logical_type
        return LeafType(
            column.physical_type,
            Annotation.of(logical.type, logical.to_json()),
            column.precision,
            column.scale,
            self.ordered[index],
            self.is_gregorian,
        )


def locate(leaves: Leaves, column: FooterColumn, *, case_sensitive: bool) -> Place:
    """Where `column` lies; unknown where two leaves may be meant, or the one found is not surely it."""
    target = tuple(_folded(part, case_sensitive=case_sensitive) for part in column.path)
    joined = ".".join(target)
    found = [
        index
        for index, path in enumerate(leaves.paths)
        if _folded(path, case_sensitive=case_sensitive) == joined
        and _folded(leaves.names[index], case_sensitive=case_sensitive) == target[-1]
    ]
    if not found:
        missing = column.missing_is_null and not column.field_ids and _is_missing(leaves, target, case_sensitive)
        return Place(is_missing=missing)
    if len(found) > 1 or leaves.schema.column(found[0]).max_repetition_level:
        return Place()
    if (_is_ambiguous(target) or column.field_ids) and not _is_at(leaves, column, case_sensitive):
        return Place()
    return _place(leaves, found[0], column.type, is_nested=len(target) > 1)


def _place(leaves: Leaves, index: int, type_: ValueType, *, is_nested: bool) -> Place:
    return Place(index, decoder(leaves.type_of(index), type_), is_nested)


def _is_missing(leaves: Leaves, target: tuple[str, ...], case_sensitive: bool) -> bool:  # noqa: FBT001 - private
    """True where the file surely has no such column, so that Spark reads NULL.

    At the first part that no leaf lies under, what holds it must be a plain struct: the missing part of a list
    or of a primitive is a conflict of types, which Spark reports.
    """
    paths = [_folded(path, case_sensitive=case_sensitive) for path in leaves.paths]
    for depth in range(1, len(target) + 1):
        here = ".".join(target[:depth])
        if any(path == here or path.startswith(here + ".") for path in paths):
            continue
        if depth == 1:
            return True
        above = ".".join(target[: depth - 1]) + "."
        inside = [index for index, path in enumerate(paths) if path.startswith(above)]
        return any(not leaves.schema.column(index).max_repetition_level for index in inside)
    return False


def _is_ambiguous(target: tuple[str, ...]) -> bool:
    """True where the joined path of a leaf does not tell its parents."""
    parents = target[:-1]
    return len(parents) > 1 or "." in "".join(parents)


def _is_at(leaves: Leaves, column: FooterColumn, case_sensitive: bool) -> bool:  # noqa: FBT001 - private
    """True where walking the file's schema by the column's names, and ids if it has them, ends at a leaf."""
    try:
        here: Any = leaves.schema.to_arrow_schema()
    except (OSError, ValueError, NotImplementedError, pa.ArrowException):
        return False
    ids = column.field_ids or (None,) * len(column.path)
    for part, id_ in zip(column.path, ids, strict=True):
        fields = [here.field(index) for index in range(_field_count(here))]
        wanted = _folded(part, case_sensitive=case_sensitive)
        fields = [field for field in fields if _folded(field.name, case_sensitive=case_sensitive) == wanted]
        if len(fields) != 1 or (id_ is not None and _field_id(fields[0]) != id_):
            return False
        here = fields[0].type
    return _field_count(here) == 0


def _field_count(node: Any) -> int:
    if isinstance(node, pa.Schema):
        return len(node.names)
    return int(node.num_fields) if pa.types.is_struct(node) else 0


def _field_id(field: pa.Field) -> int:
    return int((field.metadata or {}).get(b"PARQUET:field_id", -1))


def _folded(name: str, *, case_sensitive: bool) -> str:
    return name if case_sensitive else name.lower()


def _ordered(footer: bytes, count: int) -> tuple[bool, ...]:
    """For each leaf, whether the footer says that bounds have the type's own order.

    pyarrow then takes `min_value` and `max_value`, else the deprecated fields, and does not say which.
    """
    begin = len(footer) - 1 - count * _ORDER_BYTES
    orders = footer[begin:-1]
    header = bytes([count << 4 | _STRUCT_LIST]) if count <= _SHORT_LIST_MOST else bytes([_LONG_LIST, *_varint(count)])
    if begin < len(header) or footer[-1:] != b"\x00" or footer[begin - len(header) : begin] != header:
        return (False,) * count
    return tuple(orders[at : at + _ORDER_BYTES] == _TYPE_DEFINED for at in range(0, len(orders), _ORDER_BYTES))


def _varint(number: int) -> Iterator[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number


def _is_gregorian(metadata: dict[bytes, bytes]) -> bool:
    # Spark, too, compares the versions as text.
    return metadata.get(_VERSION_KEY, b"") >= _FIRST_GREGORIAN_VERSION and _LEGACY_KEY not in metadata
