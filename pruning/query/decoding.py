"""`decoded_numbers()`: the time of decoding one value, beside that of a number.

Spark's vectorised reader copies numbers; it makes an object of each text, computes an instant of the two numbers of an
INT96, as which Spark writes timestamps to Parquet, and parses decimals of more digits than 64 bits have. Measured on
four million values of each type, one column at a time.
"""

from __future__ import annotations

from pruning.values.types import ValueType

DECODED_TEXT = 4
_TIMESTAMP, _LONG_DECIMAL, _LONG_DIGITS = 3, 15, 18


def decoded_numbers(type_: str) -> int:
    """The numbers whose decoding takes as long as that of one value of an SQL type.

    >>> [decoded_numbers(each) for each in ("int", "decimal(18,2)", "timestamp", "string", "decimal(20,2)")]
    [1, 1, 3, 4, 15]
    """
    found = ValueType.known(type_)
    if found is None or found.name in {"string", "binary"}:
        return DECODED_TEXT
    if found.name == "timestamp":
        return _TIMESTAMP
    return _LONG_DECIMAL if found.name == "decimal" and found.precision > _LONG_DIGITS else 1
