"""The schema of a Parquet file: its tree of columns and the type of each leaf.

`locate()` finds the leaf of a table's column in a file by Spark's rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.parquet.thrift import Struct, list_header, read_struct
from pruning.values.types import ValueType

_PHYSICAL = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_REQUIRED, _REPEATED = 0, 2
_UNITS = {1: "milliseconds", 2: "microseconds", 3: "nanoseconds"}


@dataclass(frozen=True, slots=True)
class Annotation:
    """The logical type of a leaf; a field counts only if its kind has it.

    The `kind` is `NONE` without an annotation, `TEXT` for an enum or a document in the order of strings, and `OTHER`
    for types whose values are not compared (UUID, intervals, time).
    """

    kind: str = "NONE"
    bits: int = 0
    is_signed: bool = True
    unit: str = ""
    is_utc: bool = False
    precision: int = 0
    scale: int = 0


_STRING, _TEXT = Annotation("STRING"), Annotation("TEXT")
_OTHER, _DATE = Annotation("OTHER"), Annotation("DATE")
_CONVERTED: Mapping[int, Annotation] = {
    0: _STRING,
    **dict.fromkeys((4, 19, 20), _TEXT),
    6: _DATE,
    9: Annotation("TIMESTAMP", unit="milliseconds", is_utc=True),
    10: Annotation("TIMESTAMP", unit="microseconds", is_utc=True),
    **{11 + step: Annotation("INT", 8 << step, is_signed=False) for step in range(4)},
    **{15 + step: Annotation("INT", 8 << step) for step in range(4)},
}
_CONVERTED_DECIMAL = 5


@dataclass(frozen=True, slots=True)
class LeafType:
    """A leaf of a file's schema: its physical type, the length of a value if it is fixed, and its annotation."""

    physical: str
    length: int
    annotation: Annotation


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """One column of a schema, which has a `type` and the index `leaf`, or a group of columns, which has neither.

    `is_plain` is False for a group that is annotated, as lists and maps are.
    """

    name: str
    field_id: int | None
    repetition: int
    children: tuple[SchemaNode, ...] = ()
    is_plain: bool = True
    leaf: int | None = None
    type: LeafType | None = None

    @property
    def is_optional(self) -> bool:
        """True if the column may hold NULL."""
        return self.repetition != _REQUIRED

    @property
    def is_repeated(self) -> bool:
        """True if one row may hold several values."""
        return self.repetition == _REPEATED


@dataclass(frozen=True, slots=True)
class Schema:
    """The top-level columns, the path of each leaf, and the encoded bytes."""

    tops: tuple[SchemaNode, ...]
    paths: tuple[tuple[str, ...], ...]
    encoded: bytes

    def __len__(self) -> int:
        return len(self.paths)


def read_schema(data: bytes, at: int) -> Schema:
    """The schema encoded as a list of its nodes at this offset; `ValueError` if they form no tree."""
    begin = at
    count, _, at = list_header(data, at)
    elements: list[Struct] = []
    for _ in range(count):
        element, at = read_struct(data, at)
        elements.append(element)
    walk, paths = iter(elements), list[tuple[str, ...]]()
    children = _children(next(walk, {}), (), walk, paths)
    if next(walk, None) is not None:
        msg = "its schema has columns outside of the tree"
        raise ValueError(msg)
    return Schema(children, tuple(paths), data[begin:at])


def _children(
    parent: Struct, above: tuple[str, ...], walk: Iterator[Struct], paths: list[tuple[str, ...]]
) -> tuple[SchemaNode, ...]:
    """The nodes below `parent`, of the path `above`, out of a walk over the tree; paths of leaves are added."""
    return tuple(_node(above, walk, paths) for _ in range(parent.get(5, 0)))


def _node(above: tuple[str, ...], walk: Iterator[Struct], paths: list[tuple[str, ...]]) -> SchemaNode:
    element = next(walk, None)
    if element is None:
        msg = "its schema ends within the tree"
        raise ValueError(msg)
    name, repetition = element[4].decode("utf-8"), element.get(3, _REQUIRED)
    path = (*above, name)
    if 1 in element:
        paths.append(path)
        return SchemaNode(name, element.get(9), repetition, leaf=len(paths) - 1, type=_leaf_type(element))
    children = _children(element, path, walk, paths)
    return SchemaNode(name, element.get(9), repetition, children, is_plain=6 not in element and 10 not in element)


def _leaf_type(element: Struct) -> LeafType:
    physical = element[1]
    if not 0 <= physical < len(_PHYSICAL):
        msg = f"unknown physical type {physical}"
        raise ValueError(msg)
    return LeafType(_PHYSICAL[physical], element.get(2, 0), _annotation(element))


def _annotation(element: Struct) -> Annotation:
    """The logical type; if there is none, the older converted type."""
    for kind, fields in element.get(10, {}).items():
        return _logical(kind, fields)
    converted = element.get(6)
    if converted is None:
        return Annotation()
    if converted == _CONVERTED_DECIMAL:
        return Annotation("DECIMAL", precision=element.get(8, 0), scale=element.get(7, 0))
    return _CONVERTED.get(converted, _OTHER)


def _logical(kind: int, fields: Struct) -> Annotation:
    match kind:
        case 1:
            return _STRING
        case 4 | 12 | 13:
            return _TEXT
        case 5:
            return Annotation("DECIMAL", precision=fields[2], scale=fields[1])
        case 6:
            return _DATE
        case 8:
            return Annotation("TIMESTAMP", unit=_UNITS.get(next(iter(fields[2])), ""), is_utc=bool(fields[1]))
        case 10:
            return Annotation("INT", fields[1], is_signed=fields[2])
        case _:
            return _OTHER


@dataclass(frozen=True, slots=True)
class FooterColumn:
    """A leaf column as files name it: physical names from the top, and the type that Spark reads it as.

    - `name`: the name of the statistics
    - `type`: None if its values cannot be compared, so that it has no statistics
    - `missing_is_null`: False if a file without the column does not read as NULL (a column default)
    - `field_ids`: the ids along the path if Spark finds columns by id; names are then ignored, and a file without the
      ids is unknown
    """

    name: str
    path: tuple[str, ...]
    type: ValueType | None
    missing_is_null: bool = True
    field_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one column in one file: the index and type of its leaf; or missing (every row is NULL); or unknown.

    `has_null_parents`: a struct around the column may be NULL.
    """

    leaf: int | None = None
    type: LeafType | None = None
    has_null_parents: bool = False
    is_missing: bool = False


def locate(schema: Schema, column: FooterColumn, *, case_sensitive: bool) -> Place:
    """The place of `column` in a file; unknown if two columns match, or the match is no plain leaf.

    A field that a file has not is unknown: it may be one that Spark computes while it reads, as parts of a variant.
    """
    here: Sequence[SchemaNode] = schema.tops
    found: SchemaNode | None = None
    has_null_parents = False
    for depth, part in enumerate(column.path):
        if found is not None:
            if found.is_repeated or not found.is_plain or found.leaf is not None:
                return Place()
            has_null_parents |= found.is_optional
            here = found.children
        matches = _by_id(here, column.field_ids[depth]) if column.field_ids else _by_name(here, part, case_sensitive)
        if not matches and not column.field_ids:
            return Place(is_missing=column.missing_is_null and len(column.path) == 1)
        if len(matches) != 1:
            return Place()
        found = matches[0]
    if found is None or found.leaf is None or found.is_repeated:
        return Place()
    return Place(found.leaf, found.type, has_null_parents)


def leaves_under(schema: Schema, tops: Sequence[str] | None, *, case_sensitive: bool) -> list[int]:
    """Indexes of the leaves of these top-level columns, of all if None."""
    if tops is None:
        return list(range(len(schema)))
    wanted = {top if case_sensitive else top.lower() for top in tops}
    return [
        index for index, path in enumerate(schema.paths) if (path[0] if case_sensitive else path[0].lower()) in wanted
    ]


def _by_name(nodes: Sequence[SchemaNode], name: str, case_sensitive: bool) -> list[SchemaNode]:  # noqa: FBT001 - private
    if case_sensitive:
        return [node for node in nodes if node.name == name]
    return [node for node in nodes if node.name.lower() == name.lower()]


def _by_id(nodes: Sequence[SchemaNode], field_id: int) -> list[SchemaNode]:
    return [node for node in nodes if node.field_id == field_id]
