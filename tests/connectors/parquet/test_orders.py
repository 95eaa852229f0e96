"""All triples of physical type, annotation and Spark type whose bounds count, each by an order that is known."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from connectors.parquet.bounds import decoder
from connectors.parquet.orders import Order, order_of
from connectors.parquet.pushdown import takes_predicate
from connectors.parquet.schema import Annotation, LeafType
from pruning.values.types import ValueType

PHYSICAL = {
    "BOOLEAN": 0,
    "INT32": 0,
    "INT64": 0,
    "INT96": 12,
    "FLOAT": 0,
    "DOUBLE": 0,
    "BYTE_ARRAY": 0,
    "FIXED_LEN_BYTE_ARRAY": 2,
}
ANNOTATIONS = {
    "none": Annotation(),
    "string": Annotation("STRING"),
    "enum": Annotation("TEXT"),
    "date": Annotation("DATE"),
    "other": Annotation("OTHER"),
    "decimal": Annotation("DECIMAL", precision=4, scale=2),
    **{f"int{bits}": Annotation("INT", bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": Annotation("INT", bits, is_signed=False) for bits in (8, 16, 32, 64)},
    **{f"{unit} {'utc' if utc else 'local'}": Annotation("TIMESTAMP", unit=f"{unit}seconds", is_utc=utc)
       for unit in ("milli", "micro", "nano") for utc in (True, False)},
}  # fmt: skip
SPARK = [
    *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz"),
    *("string", "binary", "decimal(4,2)", "decimal(6,4)", "decimal(12,2)", "decimal(20,0)", "decimal(38,10)"),
]
TRIPLES = list(itertools.product(PHYSICAL, ANNOTATIONS, SPARK))
WIDE = ("decimal(12,2)", "decimal(20,0)", "decimal(38,10)")
# The triples whose bounds count although Spark pushes nothing to such a leaf, by the order of the specification.
NOT_PUSHED = {
    Order.UNSIGNED: {
        *itertools.product(["INT32"], ["uint8", "uint16", "uint32"], ["tinyint", "smallint", "int", "bigint"]),
        *itertools.product(["INT64"], ["uint64"], ["bigint", "decimal(20,0)"]),
    },
    Order.SIGNED: {
        *itertools.product(["INT64"], ["nano utc", "nano local"], ["bigint"]),
        *itertools.product(["INT32"], ["none", "int8", "int16", "int32"], WIDE),
        *itertools.product(["INT64"], ["none", "int64"], ["decimal(20,0)", "decimal(38,10)"]),
        *itertools.product(["INT32"], ["none", "int32"], ["double"]),
        *itertools.product(["INT32", "INT64"], ["decimal"], ["decimal(6,4)", "decimal(38,10)"]),
        ("INT32", "date", "timestamp_ntz"),
        *itertools.product(["INT64"], ["milli local", "micro local"], ["timestamp", "timestamp_ntz"]),
        *itertools.product(["INT64"], ["milli utc", "micro utc"], ["timestamp_ntz"]),
    },
    Order.FLOAT: {("FLOAT", "none", "double")},
    Order.VALUE: {
        *itertools.product(
            ["BYTE_ARRAY"], ["decimal"], ["decimal(4,2)", "decimal(6,4)", "decimal(12,2)", "decimal(38,10)"]
        ),
        *itertools.product(["FIXED_LEN_BYTE_ARRAY"], ["decimal"], ["decimal(6,4)", "decimal(38,10)"]),
    },
    Order.BYTES: {
        ("BYTE_ARRAY", "enum", "string"),
        *itertools.product(["BYTE_ARRAY"], ["string", "enum"], ["binary"]),
        ("FIXED_LEN_BYTE_ARRAY", "none", "binary"),
    },
}


def leaf_of(physical: str, annotation: str) -> LeafType:
    return LeafType(physical, PHYSICAL[physical], ANNOTATIONS[annotation])


def believed() -> Iterator[tuple[str, str, str]]:
    for physical, annotation, name in TRIPLES:
        leaf, type_ = leaf_of(physical, annotation), ValueType.parse(name)
        if decoder(leaf, type_, is_ordered=True, is_gregorian=True) is not None:
            yield physical, annotation, name


def test_bounds_count_only_where_spark_pushes_or_the_specification_orders():  # failure catalogue 177
    found: dict[Order | None, set[tuple[str, str, str]]] = {}
    for physical, annotation, name in believed():
        leaf = leaf_of(physical, annotation)
        if not takes_predicate(leaf, ValueType.parse(name)):
            found.setdefault(order_of(leaf), set()).add((physical, annotation, name))
    assert NOT_PUSHED == found


def test_bytes_without_an_annotation_are_no_bounds_of_text():  # failure catalogue 177
    leaf = leaf_of("BYTE_ARRAY", "none")
    assert [False, True] == [
        decoder(leaf, ValueType(name), is_ordered=True, is_gregorian=True) is not None for name in ("string", "binary")
    ]


BYTES = [b"\x00\x01", b"\x00\x7f", b"\x00\x80", b"\x01\x00", b"\x7f\xff", b"\x80\x00", b"\xff\x00", b"\xff\xff"]
VALUES = {
    "BOOLEAN": [struct.pack("<?", each) for each in (False, True)],
    "INT32": [struct.pack("<i", each) for each in (-(2**31), -1, 0, 1, 127, 2**31 - 1)],
    "INT64": [struct.pack("<q", each) for each in (-(2**63), -1, 0, 1, 127, 2**63 - 1)],
    "FLOAT": [struct.pack("<f", each) for each in (-1.5, 0.0, 1e-40, 2.0, float("inf"))],
    "DOUBLE": [struct.pack("<d", each) for each in (-1.5, 0.0, 1e-300, 2.0, float("inf"))],
    "BYTE_ARRAY": BYTES,
    "FIXED_LEN_BYTE_ARRAY": BYTES,
}


def sort_key(physical: str, order: Order) -> Callable[[bytes], Any]:
    """The order of the specification, made anew from its words."""
    match order:
        case Order.SIGNED:
            return lambda value: int.from_bytes(value, "little", signed=physical != "BOOLEAN")
        case Order.UNSIGNED:
            return lambda value: int.from_bytes(value, "little")
        case Order.FLOAT:
            return lambda value: struct.unpack("<f" if physical == "FLOAT" else "<d", value)[0]
        case Order.VALUE:
            return lambda value: Decimal(int.from_bytes(value, "big", signed=True))
        case Order.BYTES:
            return bytes


@pytest.mark.parametrize("triple", list(believed()), ids=str)
def test_codes_of_bounds_follow_the_order_of_the_specification(triple):
    physical, annotation, name = triple
    leaf = leaf_of(physical, annotation)
    # Where Spark pushes to BYTE_ARRAY without an annotation, the order is that of the physical type.
    order = order_of(leaf) or Order.BYTES
    found = decoder(leaf, ValueType.parse(name), is_ordered=True, is_gregorian=True)
    assert found is not None
    ordered = sorted(VALUES[physical], key=sort_key(physical, order))
    ends = [found.bounds({5: value, 6: value}) for value in ordered]
    known = [each.low for each in ends if each.low is not None]
    assert not any(each.is_inverted for each in ends)
    assert known == sorted(known)
    assert len(known) >= 2
