"""`ValueType`: a Spark SQL type whose values can be ordered, hashed and compared with statistics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pruning.errors import UnsupportedTypeError

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FLOATS = ("float", "double")
TEMPORAL = ("date", "timestamp", "timestamp_ntz")
_NAMES = (*INTEGER_BITS, *FLOATS, *TEMPORAL, "boolean", "string", "binary", "decimal")
_SPARK_ALIASES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float"}
_DECIMAL = re.compile(r"decimal\((\d+), ?(-?\d+)\)")
LONG_DECIMAL_DIGITS = 18
DECIMAL_DIGITS = 38


class Physical(Enum):
    """The representation of the values of a type: see `pruning.values.encoding`."""

    INT64 = "int64"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type of key or column values; `str()` is Spark's own name.

    >>> ValueType.parse("decimal(7,2)")
    ValueType(name='decimal', precision=7, scale=2)
    >>> str(ValueType("bigint"))
    'bigint'
    """

    name: str
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.name not in _NAMES:
            msg = f"Cannot prune by type {self.name!r}: expected one of {', '.join(_NAMES)}"
            raise UnsupportedTypeError(msg)
        if self.name == "decimal" and not (1 <= self.precision <= DECIMAL_DIGITS and 0 <= self.scale <= self.precision):
            msg = (
                f"Cannot prune by type {self}: expected 1 to {DECIMAL_DIGITS} digits, as many or fewer after the point"
            )
            raise UnsupportedTypeError(msg)

    @staticmethod
    def parse(text: str) -> ValueType:
        """The type with the Spark name `text`; `UnsupportedTypeError` for others, such as arrays and maps."""
        if match := _DECIMAL.fullmatch(text):
            return ValueType("decimal", int(match[1]), int(match[2]))
        return ValueType(_SPARK_ALIASES.get(text, text))

    @staticmethod
    def known(text: str) -> ValueType | None:
        """The type with the Spark name `text`; None for others."""
        try:
            return ValueType.parse(text)
        except UnsupportedTypeError:
            return None

    @property
    def physical(self) -> Physical:
        """Bytes for strings, binaries and decimals that overflow 64 bits, else int64."""
        wide = self.name == "decimal" and self.precision > LONG_DECIMAL_DIGITS
        return Physical.BYTES if wide or self.name in ("string", "binary") else Physical.INT64

    @property
    def is_float(self) -> bool:
        """True for float and double, which have NaN."""
        return self.name in FLOATS

    @property
    def is_temporal(self) -> bool:
        """True for dates and both timestamps."""
        return self.name in TEMPORAL

    @property
    def is_integer(self) -> bool:
        """True for the four integer widths."""
        return self.name in INTEGER_BITS

    @property
    def is_exact_number(self) -> bool:
        """True for integers and decimals, which compare with each other without rounding."""
        return self.is_integer or self.name == "decimal"

    @property
    def has_bitmap(self) -> bool:
        """True if Spark's own value is a whole number of at most 64 bits, or days, which is the value's code."""
        return self.is_integer or self.name == "date"

    @property
    def has_density(self) -> bool:
        """True if the distance of two codes is the number of values between them."""
        return self.physical is Physical.INT64 and not self.is_float

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name
