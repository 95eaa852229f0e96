from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from connectors.parquet.bounds import decoder, null_count
from connectors.parquet.row_groups import FileRef
from connectors.parquet.schema import Annotation, LeafType
from pruning.scan.statistics import UNKNOWN
from pruning.values import encoding as code
from pruning.values.types import ValueType
from tests.connectors.hand_made import (
    BINARY,
    FALSE,
    I64,
    STRUCT,
    Struct,
    chunk,
    make_deprecated,
    set_bounds,
    set_key_values,
    set_text,
    statistics,
)
from tests.connectors.parquet_files import column, ends, kept, read, written

INF, NAN = float("inf"), float("nan")
NEITHER = (None, None)


def of(tmp_path: Path, values: list, arrow_type: pa.DataType, *edits: Callable[[Struct], None], **options) -> FileRef:
    """A file with one row group of one column, changed by each of `edits`."""

    def edit(metadata: Struct) -> None:
        for each in edits:
            each(metadata)

    table = pa.table({"x": pa.array(values, arrow_type)})
    return written(tmp_path / "x", table, rows=100, edit=edit, **options)


def bounds(low: bytes | None, high: bytes | None) -> Callable[[Struct], None]:
    return lambda metadata: set_bounds(statistics(metadata, 0), low, high)


def nulls(count: int | None) -> Callable[[Struct], None]:
    def edit(metadata: Struct) -> None:
        statistics(metadata, 0).pop(3, None)
        if count is not None:
            statistics(metadata, 0)[3] = (I64, count)

    return edit


def created_by(writer: str) -> Callable[[Struct], None]:
    return lambda metadata: set_text(metadata, 6, writer)


def without_orders(metadata: Struct) -> None:
    metadata.pop(7)


def key_values(**pairs: str) -> Callable[[Struct], None]:
    return lambda metadata: set_key_values(metadata, **pairs)


def packed(layout: str, *values: float) -> list[bytes]:
    return [struct.pack(f"<{layout}", value) for value in values]


# Before 1.10, parquet-mr compared bytes as signed: é is 0xC3 0xA9, so less than every ASCII letter.
@pytest.mark.parametrize("writer", ["parquet-mr version 1.8.1 (build x)", "impala version 2.11.0", ""])
def test_deprecated_bounds_of_strings_are_not_used(tmp_path, writer):  # failure catalogue 84
    edits = (bounds("aé".encode(), b"b"), make_deprecated, created_by(writer))
    file = of(tmp_path, ["ab", "aé", "b"], pa.string(), *edits)
    assert NEITHER == ends(file, column("string"))
    assert [True] == kept(file, column("string"), "ab")


def test_deprecated_bounds_of_byte_decimals_are_not_used(tmp_path):  # failure catalogue 84
    file = of(tmp_path, [1, 3], pa.decimal128(9, 2), make_deprecated)
    assert NEITHER == ends(file, column("decimal(9,2)"))


# Older parquet-rs ordered a shorter string before a longer one.
@pytest.mark.parametrize("edits", [(without_orders,), (make_deprecated,)], ids=["new fields", "old fields"])
def test_string_bounds_without_column_order_are_not_used(tmp_path, edits):  # failure catalogue 141
    file = of(
        tmp_path, ["aa", "m", "z"], pa.string(), bounds(b"m", b"z"), *edits, created_by("parquet-rs version 4.0.0")
    )
    assert [True] == kept(file, column("string"), "aa")


def test_bounds_in_another_column_order_are_not_used(tmp_path):
    def other_order(metadata: Struct) -> None:
        metadata[7][1][1][:] = [{2: (STRUCT, {})}]

    assert NEITHER == ends(of(tmp_path, ["a", "b"], pa.string(), other_order), column("string"))
    new_alone = bounds(*packed("d", 1.0, 2.0))
    assert (1.0, 2.0) == ends(of(tmp_path, [1.0, 2.0], pa.float64(), new_alone), column("double"))
    assert NEITHER == ends(of(tmp_path, [1.0, 2.0], pa.float64(), new_alone, other_order), column("double"))


@pytest.mark.parametrize(
    ("arrow_type", "spark_type"),
    [(pa.int32(), "int"), (pa.int64(), "bigint"), (pa.float64(), "double"), (pa.date32(), "date")],
    ids=str,
)
def test_deprecated_bounds_of_numbers_are_used(tmp_path, arrow_type, spark_type):
    new = ends(of(tmp_path, [1, 3], arrow_type), column(spark_type))
    file = of(tmp_path, [1, 3], arrow_type, make_deprecated, created_by("parquet-mr version 1.8.1"))
    assert None not in new
    assert new == ends(file, column(spark_type))


WRONG = {
    "inverted": (pa.int64(), "bigint", *packed("q", 3, 1)),  # failure catalogue 119
    "inverted strings": (pa.string(), "string", b"b", b"a"),
    "unsigned compared as signed": (pa.uint32(), "bigint", *packed("i", -1, 1)),  # failure catalogue 83
    "low is NaN": (pa.float64(), "double", *packed("d", NAN, 3.0)),  # failure catalogue 62
    "high is NaN": (pa.float64(), "double", *packed("d", 1.0, NAN)),
    "both are NaN": (pa.float32(), "float", *packed("f", NAN, NAN)),
    "too short": (pa.int64(), "bigint", b"\1", *packed("q", 3)),
    "too long": (pa.int32(), "int", *packed("q", 1, 3)),
    "no bytes": (pa.float64(), "double", b"", b""),
    "cut decimal": (pa.decimal128(38, 0), "decimal(38,0)", b"\1", b"\3"),  # failure catalogue 81
    "decimal beyond its precision": (pa.decimal128(4, 0), "decimal(4,0)", b"\0\1", b"\x7f\xff"),
    # Failure catalogue 95.
    "milliseconds beyond microseconds": (pa.timestamp("ms"), "timestamp_ntz", *packed("q", 0, 2**62)),
}


@pytest.mark.parametrize(("arrow_type", "spark_type", "low", "high"), WRONG.values(), ids=WRONG.keys())
def test_invalid_bounds_make_both_bounds_unknown(tmp_path, arrow_type, spark_type, low, high):
    file = of(tmp_path, [1, 3] if arrow_type != pa.string() else ["a", "b"], arrow_type, bounds(low, high))
    assert NEITHER == ends(file, column(spark_type))


ONE_END = {
    "low": (bounds(b"b", None), ("b", None), [False, True]),
    "high": (bounds(None, b"b"), (None, "b"), [True, False]),
    "none": (bounds(None, None), NEITHER, [True, True]),
}


@pytest.mark.parametrize(("edit", "expected", "is_kept"), ONE_END.values(), ids=ONE_END.keys())
def test_single_bound_is_used(tmp_path, edit, expected, is_kept):  # failure catalogue 89
    file = of(tmp_path, ["b", "b"], pa.string(), edit)
    assert expected == ends(file, column("string"))
    assert is_kept == [kept(file, column("string"), key)[0] for key in ("a", "c")]


def test_truncated_bounds_contain_all_values(tmp_path):  # failure catalogue 88, 89
    def cut(metadata: Struct) -> None:
        set_bounds(statistics(metadata, 0), b"\xf0\x9f\x98", b"\xf0\x9f\x99")
        statistics(metadata, 0).update({7: (FALSE, False), 8: (FALSE, False)})

    file = of(tmp_path, ["\U0001f600", "\U0001f639"], pa.string(), cut)
    assert [True, False] == [kept(file, column("string"), key)[0] for key in ("\U0001f610", "\U0001f680")]


NULLS = {
    "none": ([1, 2], nulls(0), 0),
    "some": ([1, None], nulls(1), 1),
    "not told": ([1, None], nulls(None), UNKNOWN),  # failure catalogue 68
    "more than rows": ([1, None], nulls(3), UNKNOWN),
    "negative": ([1, None], nulls(-1), UNKNOWN),
    "all beside bounds": ([1, 2], nulls(2), UNKNOWN),  # failure catalogue 71
    "all": ([None, None], nulls(2), 2),
}


@pytest.mark.parametrize(("values", "edit", "expected"), NULLS.values(), ids=NULLS.keys())
def test_plausible_null_count_is_used(tmp_path, values, edit, expected):
    file = of(tmp_path, values, pa.int64(), edit)
    assert expected == read(file, column("bigint")).containers.columns["x"].null_count[0]
    assert [expected != 0] == kept(file, column("bigint"), None)


def test_missing_statistics_of_a_long_value_are_not_null(tmp_path):  # failure catalogue 71
    file = of(tmp_path, ["a" * 10_000, None], pa.string(), bounds(None, None))
    assert [True] == kept(file, column("string"), "a" * 10_000)


def test_null_parents_make_the_null_count_unknown(tmp_path):  # failure catalogue 70
    table = pa.table({"s": pa.array([{"x": 1.0}, None], pa.struct([("x", pa.float64())]))})

    def forget(metadata: Struct) -> None:
        statistics(metadata, 0)[3] = (I64, 0)

    file = written(tmp_path / "x", table, edit=forget)
    assert [True] == kept(file, column("double", "s", "x"), None)
    assert [UNKNOWN, 0] == [null_count(0, 2, has_bounds=True, has_null_parents=each) for each in (True, False)]


def test_chunk_with_another_value_count_is_unknown(tmp_path):
    def lengthen(metadata: Struct) -> None:
        chunk(metadata, 0)[5] = (I64, 3)

    file = of(tmp_path, [1, 2], pa.int64(), lengthen)
    assert NEITHER == ends(file, column("bigint"))
    assert [True] == kept(file, column("bigint"), None)


def test_chunk_without_statistics_is_unknown(tmp_path):
    def forget(metadata: Struct) -> None:
        chunk(metadata, 0).pop(12)

    assert [True] == kept(of(tmp_path, [1, 2], pa.int64(), forget), column("bigint"), 9)


def test_chunk_in_another_file_is_unknown(tmp_path):
    def move(metadata: Struct) -> None:
        metadata[4][1][1][0][1][1][1][0][1] = (BINARY, b"elsewhere.parquet")

    assert NEITHER == ends(of(tmp_path, [1, 2], pa.int64(), move), column("bigint"))


def test_statistics_of_wrong_kinds_are_unknown(tmp_path):
    def confuse(metadata: Struct) -> None:
        statistics(metadata, 0).update({3: (BINARY, b"0"), 5: (I64, 10**12), 6: (I64, 1)})

    assert NEITHER == ends(of(tmp_path, [1, 2], pa.int64(), confuse), column("bigint"))
    assert NEITHER == ends(of(tmp_path, ["a", "b"], pa.string(), confuse), column("string"))


JULIAN_DAY, GREGORIAN_DAY = -141_428, -141_427
JULIAN_TIME, STANDARD_TIME = -2_208_988_800_000_001, -2_208_988_800_000_000
CALENDARS = {
    "no writer": ({}, False),
    "Spark 2.4": ({"org__apache__spark__version": "2.4.8"}, False),
    "Spark 3 in legacy mode": (
        {"org__apache__spark__version": "3.5.1", "org__apache__spark__legacyDateTime": ""},
        False,
    ),
    "Spark 3": ({"org__apache__spark__version": "3.5.1"}, True),
    "Spark 4": ({"org__apache__spark__version": "4.2.0"}, True),
}
MOMENTS = {
    "date": (pa.date32(), "date", JULIAN_DAY, GREGORIAN_DAY, 1),
    "timestamp": (pa.timestamp("us", "UTC"), "timestamp", JULIAN_TIME, STANDARD_TIME, 1),
    "date as timestamp_ntz": (pa.date32(), "timestamp_ntz", JULIAN_DAY, GREGORIAN_DAY, 86_400_000_000),
}


# Failure catalogue 97.
@pytest.mark.parametrize(("pairs", "is_gregorian"), CALENDARS.values(), ids=CALENDARS.keys())
@pytest.mark.parametrize("case", MOMENTS.values(), ids=MOMENTS.keys())
def test_early_dates_are_bounded_iff_their_calendar_is_known(tmp_path, pairs, is_gregorian, case):
    arrow_type, spark_type, early, first, unit = case
    wanted = column(spark_type)
    late = of(tmp_path, [first, 0], arrow_type, key_values(**pairs))
    assert tuple(code.decode(wanted.type, code.encode(wanted.type, [first * unit, 0]))) == ends(late, wanted)
    mixed = of(tmp_path, [early, 0], arrow_type, key_values(**pairs))
    assert is_gregorian == (ends(mixed, wanted) != NEITHER)
    assert [not is_gregorian] == kept(mixed, wanted, (early - 1) * unit)


def test_local_timestamps_have_one_calendar(tmp_path):
    file = of(tmp_path, [JULIAN_TIME, 0], pa.timestamp("us"), key_values())
    assert None not in ends(file, column("timestamp_ntz"))


def test_date_bound_without_a_lower_bound_is_unknown(tmp_path):
    (high,) = packed("i", 5)
    assert NEITHER == ends(of(tmp_path, [1, 5], pa.date32(), bounds(None, high)), column("date"))


CONVERTED = {
    "tinyint": (pa.int8(), "tinyint", [-128, 127]),
    "unsigned 32 bits": (pa.uint32(), "bigint", [1, 2**32 - 1]),
    "unsigned 8 bits": (pa.uint8(), "smallint", [1, 255]),
    "decimal": (pa.decimal128(9, 2), "decimal(9,2)", [Decimal("-1.50"), Decimal("3.00")]),
    "date": (pa.date32(), "date", [1, 3]),
    "milliseconds": (pa.timestamp("ms", "UTC"), "timestamp", [1, 3]),
    "microseconds": (pa.timestamp("us", "UTC"), "timestamp", [1, 3]),
    "string": (pa.string(), "string", ["a", "é"]),
}


@pytest.mark.parametrize(("arrow_type", "spark_type", "values"), CONVERTED.values(), ids=CONVERTED.keys())
def test_converted_types_read_as_logical_types(tmp_path, arrow_type, spark_type, values):
    def only_converted(metadata: Struct) -> None:
        element = metadata[2][1][1][1]
        assert 6 in element
        element.pop(10, None)

    wanted = column(spark_type)
    new = ends(of(tmp_path, values, arrow_type), wanted)
    assert None not in new
    assert new == ends(of(tmp_path, values, arrow_type, only_converted), wanted)


def test_unknown_annotation_makes_bounds_unknown(tmp_path):
    def annotate(metadata: Struct) -> None:
        metadata[2][1][1][1][10] = (STRUCT, {99: (STRUCT, {})})

    assert NEITHER == ends(of(tmp_path, ["a", "b"], pa.string(), annotate), column("string"))


DECIMALS = {
    "variable bytes": ("BYTE_ARRAY", 0, b"\xff", b"\x01\x00", (-1, 256)),
    "sign extended": ("BYTE_ARRAY", 0, b"\xff\xff\xff", b"\x00\x00\x01", (-1, 1)),
    "fixed bytes": ("FIXED_LEN_BYTE_ARRAY", 2, b"\xff\xfe", b"\x00\x01", (-2, 1)),
    "fixed bytes of another width": ("FIXED_LEN_BYTE_ARRAY", 2, b"\xff", b"\x00\x01", NEITHER),
    "no bytes": ("BYTE_ARRAY", 0, b"", b"\x01", NEITHER),
}


@pytest.mark.parametrize(("physical", "length", "low", "high", "expected"), DECIMALS.values(), ids=DECIMALS.keys())
def test_byte_decimals_are_big_endian(physical, length, low, high, expected):
    leaf = LeafType(physical, length, Annotation("DECIMAL", precision=9, scale=2))
    found = decoder(leaf, ValueType.parse("decimal(9,2)"), is_ordered=True, is_gregorian=True)
    assert found is not None
    bounds = found.bounds({5: high, 6: low})
    assert expected == (bounds.low, bounds.high)


def test_wide_decimal_is_scaled_exactly():
    leaf = LeafType("FIXED_LEN_BYTE_ARRAY", 16, Annotation("DECIMAL", precision=36, scale=0))
    type_ = ValueType.parse("decimal(38,2)")
    found = decoder(leaf, type_, is_ordered=True, is_gregorian=True)
    assert found is not None
    low, high = (value.to_bytes(16, "big", signed=True) for value in (-(10**36) + 1, 10**36 - 1))
    expected = [Decimal(-(10**36) + 1), Decimal(10**36 - 1)]
    bounds = found.bounds({5: high, 6: low})
    assert expected == [code.decimal_of(type_, each) for each in (bounds.low, bounds.high)]
