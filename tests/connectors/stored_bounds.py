"""Checks of truncated stored bounds against the original values, without a test framework."""

from __future__ import annotations

import pyarrow as pa

from connectors.delta.bounds import Flaws, StoredBounds
from pruning.values import encoding as code
from pruning.values.domain import Domain
from pruning.values.types import ValueType


def check_stored_bounds() -> None:
    """No value lies above the bound that Delta stored for it."""
    texts = ["a" * 40, "a" * 31 + "é" * 9, "z" * 31 + "😀" * 3]
    _assert_above(ValueType("string"), texts, pa.array([text[:32] for text in texts]))
    moments = [1_600_000_000_123_456, 1_600_000_000_123_999]
    stored = pa.array([moment // 1000 * 1000 for moment in moments], pa.timestamp("us", "UTC"))
    _assert_above(ValueType("timestamp"), moments, stored)
    _assert_reached(b"\xc3\xa9", stored=pa.chunked_array([["\ufffd"]]))


def _assert_above(type_: ValueType, values: list, stored: pa.Array) -> None:
    bounds = StoredBounds(type_).sound(stored, stored)
    line, highs = code.merged_ranks(code.encode(type_, values), bounds.highs)
    assert ((line <= highs) | ~bounds.has_high).all()


def _assert_reached(key: bytes, stored: pa.ChunkedArray) -> None:
    """A pushed predicate reaches a stored bound whose bytes were replaced."""
    pushed = StoredBounds(ValueType("string")).comparable(
        Domain.of(ValueType("string"), key).ranges, Flaws.of(stored, stored, ValueType("string"))
    )
    assert pushed.contains(code.encode(ValueType("string"), stored.to_pylist())).all()
