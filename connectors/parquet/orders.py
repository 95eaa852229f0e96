"""The order in which a leaf's bounds were taken, by the format's specification.

Bounds count where the specification fixes their order, or where stock Spark believes them for a literal on the column
(`takes_predicate` in `pushdown.py`). `SPECIFIED` is the first list: a leaf that is not in it has no bounds under a type
on which Spark pushes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from connectors.parquet.schema import LeafType


class Order(Enum):
    """An order of values in the words of the specification."""

    SIGNED = "signed comparison"
    UNSIGNED = "unsigned comparison"
    FLOAT = "signed comparison of the represented value, with rules for NaN and zeros"
    VALUE = "signed comparison of the represented value"
    BYTES = "unsigned byte-wise comparison"


_INTEGERS, _LONG_BITS = ("INT32", "INT64"), 64
# By physical type and annotation, where `UINT` is an integer without a sign.
SPECIFIED: Mapping[tuple[str, str], Order] = {
    ("BOOLEAN", "NONE"): Order.SIGNED,
    **{(each, kind): Order.SIGNED for each in _INTEGERS for kind in ("NONE", "INT", "DECIMAL")},
    **{(each, "UINT"): Order.UNSIGNED for each in _INTEGERS},
    ("INT32", "DATE"): Order.SIGNED,
    ("INT64", "TIMESTAMP"): Order.SIGNED,
    **{(each, "NONE"): Order.FLOAT for each in ("FLOAT", "DOUBLE")},
    **{(each, "DECIMAL"): Order.VALUE for each in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")},
    **{("BYTE_ARRAY", kind): Order.BYTES for kind in ("STRING", "TEXT")},
    # BYTE_ARRAY without an annotation is not here: some writers store the length of such a bound in front of it.
    ("FIXED_LEN_BYTE_ARRAY", "NONE"): Order.BYTES,
}


def order_of(leaf: LeafType) -> Order | None:
    """The order of the bounds of a leaf; None where the specification or its writers leave it open."""
    annotation = leaf.annotation
    if annotation.kind != "INT":
        return SPECIFIED.get((leaf.physical, annotation.kind))
    # The specification has no numbers of fewer bits in INT64, and none of more in INT32.
    fits = leaf.physical == ("INT64" if annotation.bits == _LONG_BITS else "INT32")
    return SPECIFIED.get((leaf.physical, "INT" if annotation.is_signed else "UINT")) if fits else None
