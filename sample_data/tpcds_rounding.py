"""Queries of TPC-DS whose decimals Spark and DuckDB round differently, and why."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

# The last digits by which Spark's decimals may be away from the exact result, where half a digit is not enough.
ROUNDED_TWICE: Mapping[int, tuple[Decimal, str]] = MappingProxyType(
    {
        58: (Decimal(10**6), "it divides by an average that Spark has rounded to six digits, and multiplies by 100"),
        66: (Decimal(1), "it adds two quotients, each of which Spark has rounded"),
    }
)
