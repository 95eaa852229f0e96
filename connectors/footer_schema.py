"""The schema of a Parquet file: its tree of columns, and what each leaf stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from connectors.thrift import Struct, list_header, read_struct

_PHYSICAL = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_REQUIRED, _REPEATED = 0, 2
_UNITS = {1: "milliseconds", 2: "microseconds", 3: "nanoseconds"}


@dataclass(frozen=True, slots=True)
class Annotation:
    """What the stored values of a leaf stand for; a field counts only where its kind has it.

    Of `kind`, `NONE` is no annotation, `TEXT` is an enum or a document in the order of strings, and `OTHER` is one
    whose values are not compared (UUID, intervals, time).
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
    """What a leaf stores: its physical type, the bytes of a value where that is fixed, and its annotation."""

    physical: str
    length: int
    annotation: Annotation


@dataclass(frozen=True, slots=True)
class Node:
    """One column of a schema, which has a `type` and the index `leaf`, or a group of columns, which has neither.

    `is_plain` is False for a group that is annotated, as lists and maps are.
    """

    name: str
    field_id: int | None
    repetition: int
    children: tuple[Node, ...] = ()
    is_plain: bool = True
    leaf: int | None = None
    type: LeafType | None = None

    @property
    def is_optional(self) -> bool:
        """True where NULL may stand."""
        return self.repetition != _REQUIRED

    @property
    def is_repeated(self) -> bool:
        """True where one row may hold many."""
        return self.repetition == _REPEATED


@dataclass(frozen=True, slots=True)
class Schema:
    """The top-level columns, the path of each leaf, and the bytes that say so."""

    tops: tuple[Node, ...]
    paths: tuple[tuple[str, ...], ...]
    encoded: bytes

    def __len__(self) -> int:
        return len(self.paths)


def read_schema(data: bytes, at: int) -> Schema:
    """The schema encoded as a list of its nodes at this offset; `ValueError` where they make no tree."""
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
) -> tuple[Node, ...]:
    """The nodes below `parent`, of the path `above`, out of a walk over the tree; paths of leaves are added."""
    return tuple(_node(above, walk, paths) for _ in range(parent.get(5, 0)))


def _node(above: tuple[str, ...], walk: Iterator[Struct], paths: list[tuple[str, ...]]) -> Node:
    element = next(walk, None)
    if element is None:
        msg = "its schema ends within the tree"
        raise ValueError(msg)
    name, repetition = element[4].decode("utf-8"), element.get(3, _REQUIRED)
    path = (*above, name)
    if 1 in element:
        paths.append(path)
        return Node(name, element.get(9), repetition, leaf=len(paths) - 1, type=_leaf_type(element))
    children = _children(element, path, walk, paths)
    return Node(name, element.get(9), repetition, children, is_plain=6 not in element and 10 not in element)


def _leaf_type(element: Struct) -> LeafType:
    physical = element[1]
    if not 0 <= physical < len(_PHYSICAL):
        msg = f"no physical type is {physical}"
        raise ValueError(msg)
    return LeafType(_PHYSICAL[physical], element.get(2, 0), _annotation(element))


def _annotation(element: Struct) -> Annotation:
    """The logical type; where it says nothing, the converted type that came before it."""
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
