"""Casts that keys can be taken back through: each value keeps a place of its own in the order of the wider type.

cast(column) = key: what the column must hold is found by `pruning.coerce`, from the key to the column's type.
"""

from __future__ import annotations

from pruning.errors import UnsupportedTypeError
from pruning.query_plan import Expression
from pruning.value_type import INTEGER_BITS, ValueType

_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
# The widest integers of which each is a number of the type.
_EXACT_BITS = {"float": 16, "double": 32}


def probed_column(key: Expression) -> int | None:
    """The column whose values keys can be brought to: a plain one, or one that is only made wider."""
    while key.kind == "Cast" or key.is_normal_form:
        (inner,) = key.children
        if key.kind == "Cast" and not _is_lossless(inner.type, key.type):
            return None
        key = inner
    return key.column


def _is_lossless(source: str, target: str) -> bool:
    try:
        return is_lossless(ValueType.parse(source), ValueType.parse(target))
    except UnsupportedTypeError:
        return False


def is_lossless(source: ValueType, target: ValueType) -> bool:
    """True where casting changes the type, and takes different values to different ones in the same order.

    Days are as good as different midnights: two fall on one instant only where a zone has left out a day, which
    the margin for zones of `pruning.coerce` covers.
    """
    match source, target:
        case ValueType(name="float"), ValueType(name="double"):
            return True
        case ValueType(name="date"), ValueType(name="timestamp" | "timestamp_ntz"):
            return True
        case _ if source.is_integer and target.is_integer:
            return INTEGER_BITS[source.name] < INTEGER_BITS[target.name]
        case _ if source.is_integer and target.is_float:
            return INTEGER_BITS[source.name] <= _EXACT_BITS[target.name]
        case _ if source.is_exact_number and target.name == "decimal" and source != target:
            return source.scale <= target.scale and _whole_digits(source) <= _whole_digits(target)
        case _:
            return False


def _whole_digits(type_: ValueType) -> int:
    return _WHOLE_DIGITS.get(type_.name, type_.precision - type_.scale)
