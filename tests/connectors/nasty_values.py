"""Edge-case values of each key type, which a hash or a conversion could get wrong."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from connectors.arrow_values import coded
from pruning.keys.key_set import NAN_CODE
from pruning.values.encoding import Codes
from pruning.values.types import ValueType

NAN_PAYLOADS = np.array([0x7FF8000000000000, 0x7FF8000000000001, -1], np.int64).view(np.float64)
DIGITS_38 = 10**38 - 1
TINY = Decimal("0.0000000001")

VALUES = {
    "boolean": pa.array([False, True, None]),
    "tinyint": pa.array([-128, -1, 0, 127, None], pa.int8()),
    "smallint": pa.array([-(2**15), -1, 0, 2**15 - 1, None], pa.int16()),
    "int": pa.array([-(2**31), -1, 0, 7, 2**31 - 1, None], pa.int32()),
    "bigint": pa.array([-(2**63), -1, 0, 7, 2**63 - 1, None], pa.int64()),
    "float": pa.array([0.0, -0.0, 1.5, -3e38, 1e-45, np.inf, -np.inf, *NAN_PAYLOADS.astype(np.float32)], pa.float32()),
    "double": pa.array([0.0, -0.0, 0.1, -1.7e308, 5e-324, np.inf, -np.inf, *NAN_PAYLOADS, None], pa.float64()),
    "date": pa.array([0, -1, 1, -719_162, -719_162 - 365 * 44, 2_932_896, None], pa.date32()),
    "timestamp": pa.array([0, -1, -62_135_596_800_000_000, 253_402_300_799_999_999, None], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([0, -1, -62_135_596_800_000_000, 253_402_300_799_999_999, None], pa.timestamp("us")),
    "decimal(7,2)": pa.array([Decimal("-99999.99"), Decimal("-0.01"), Decimal(0), None], pa.decimal128(7, 2)),
    "decimal(18,0)": pa.array([Decimal(-(10**18) + 1), Decimal(10**18 - 1), None], pa.decimal128(18, 0)),
    "decimal(19,0)": pa.array([Decimal(each) for each in (-(2**63), -129, -128, 127, 128, 0)], pa.decimal128(19, 0)),
    "decimal(38,10)": pa.array(
        [-TINY, TINY, -256 * TINY, Decimal("9" * 28 + "." + "9" * 10), None], pa.decimal128(38, 10)
    ),
    "decimal(38,0)": pa.array([Decimal(-DIGITS_38), Decimal(DIGITS_38), Decimal(2**120), None], pa.decimal128(38, 0)),
    "string": pa.array(["", *("z" * length for length in range(71)), "\U0001f600", "\u00e9\u0000x" * 15, None]),
    "binary": pa.array([bytes(range(256))[-length:] for length in range(1, 71)] + [b"", b"\0", None], pa.binary()),
}


def key_rows(table: pa.Table, types: Sequence[ValueType]) -> tuple[Codes, ...]:
    """The codes of rows without NULL, in the form of a key set."""
    columns = [coded(column, type_) for column, type_ in zip(table.columns, types, strict=True)]
    return tuple(np.where(each.nan, NAN_CODE, each.codes) if each.nan.any() else each.codes for each in columns)
