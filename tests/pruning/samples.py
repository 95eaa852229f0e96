"""Types, edge-case values of each, and sets written down in plain Python.

A `Spec` is the oracle that a `Domain` built from it must agree with.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.ranges import RangeSet
from pruning.values.types import INTEGER_BITS, ValueType

NAN = float("nan")
INF = float("inf")
INTEGERS = tuple(ValueType(name) for name in INTEGER_BITS)
FLOATS = (ValueType("float"), ValueType("double"))
DECIMALS = tuple(ValueType("decimal", *digits) for digits in ((5, 2), (18, 4), (38, 0), (38, 10)))
MOMENTS = tuple(ValueType(name) for name in ("date", "timestamp", "timestamp_ntz"))
BYTES = (ValueType("string"), ValueType("binary"))
ALL_TYPES = (*INTEGERS, *FLOATS, *DECIMALS, *MOMENTS, *BYTES, ValueType("boolean"))

_SINGLE_MAX = 3.4028234663852886e38
_NASTY_TEXTS = (
    *("", "\0", "\0\0", "a", "a\0", "a\0b", "ab", "a\0\0\0\0\0\0\0", "a\0\0\0\0\0\0\0\0", "abcdefgh", "abcdefgh\0"),
    *("abcdefghi", "abcdefgi", "abcdefghijklmnop", "abcdefghijklmnopq"),
    *("z", "é", "\u07ff", "\uffff", "😀", "\U0010ffff"),
)
_NASTY_BYTES = (b"", b"\0", b"\0\xff", b"\x7f", b"\x80", b"\xff", b"\xff\0", b"\xff\xff", b"\xff" * 8, b"\xff" * 9)


def nasty(type_: ValueType) -> tuple[Any, ...]:
    """Values of the type at its edges and around zero, unordered; two of them may be equal (-0.0 and 0.0)."""
    match type_.name:
        case name if name in INTEGER_BITS:
            return _around(1 << (INTEGER_BITS[name] - 1))
        case "double":
            return (-INF, -1.7976931348623157e308, -1.5, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 2.0**53, 1e300, INF)
        case "float":
            return (-INF, -_SINGLE_MAX, -1.5, -1.0, -0.0, 0.0, 1.401298464324817e-45, 1.0, 2.0**24, _SINGLE_MAX, INF)
        case "decimal":
            most = 10**type_.precision
            return tuple(
                decimal(type_, unscaled) for unscaled in (1 - most, 2 - most, -1, 0, 1, 2, 100, most - 2, most - 1)
            )
        case "date":
            return _around(1 << 31)
        case "timestamp" | "timestamp_ntz":
            return _around(1 << 63)
        case "boolean":
            return (False, True)
        case "string":
            return _NASTY_TEXTS
        case _:
            return _NASTY_BYTES


def _around(half: int) -> tuple[int, ...]:
    return (-half, 1 - half, -3, -1, 0, 1, 2, 3, 5, 8, half - 2, half - 1)


def decimal(type_: ValueType, unscaled: int) -> Decimal:
    """The decimal with this unscaled number, exact in every decimal context of Python."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -type_.scale))


def order(type_: ValueType, value: Any) -> Any:
    """A sort key by which Python orders values as Spark does."""
    return value.encode() if type_.name == "string" else value


@dataclass(frozen=True)
class Spec:
    """A set as closed pairs of Python values (None is an open end) and flags for NULL and NaN."""

    type: ValueType
    pairs: tuple[tuple[Any, Any], ...]
    null: bool = False
    nan: bool = False

    def domain(self) -> Domain:
        """The set as a `Domain`, made by the constructor that fits."""
        closed = [pair for pair in self.pairs if None not in pair]
        lows, highs = (code.encode(self.type, [pair[end] for pair in closed]) for end in (0, 1))
        if all(low == high for low, high in closed):
            ranges = RangeSet.of_codes(self.type, lows)
        else:
            ranges = RangeSet.of_ranges(self.type, lows, highs)
        result = Domain(ranges, self.null, self.nan)
        for low, high in self.pairs:
            if low is None or high is None:
                result = result.union(Domain.between(self.type, low, high))
        return result

    def holds(self, value: Any) -> bool:
        """True if the set has the value."""
        if value is None:
            return self.null
        if value != value:  # noqa: PLR0124  only NaN differs from itself
            return self.nan
        point = order(self.type, value)
        return any(
            (low is None or order(self.type, low) <= point) and (high is None or point <= order(self.type, high))
            for low, high in self.pairs
        )

    def probes(self) -> tuple[Any, ...]:
        """Values at which membership may change: the ends of the set and the edge cases of its type."""
        return (*(end for pair in self.pairs for end in pair if end is not None), *nasty(self.type))
