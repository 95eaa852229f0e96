from __future__ import annotations

import datetime as dt
import enum
import math
import uuid
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.keys.local import key_table, summary_of, summary_of_table
from pruning.errors import InvalidKeysError
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.values import encoding as code
from pruning.values.coercion import coerce
from pruning.values.domain import Domain
from pruning.values.types import INTEGER_BITS, ValueType

NAN = float("nan")
STOCKHOLM, KATHMANDU = ZoneInfo("Europe/Stockholm"), ZoneInfo("Asia/Kathmandu")
OPTIONS = PruningOptions()
NAIVE = dt.datetime(2024, 1, 1)  # noqa: DTZ001
NAIVE_LAST = dt.datetime.max  # noqa: DTZ901
FIVE, EPOCH = "2024-01-01T05:00:00.000000", "1970-01-01T00:00:00.000000"


class Colour(enum.IntEnum):
    RED = 1


class Word(str, enum.Enum):
    YES = "yes"


def keys(data, *probes):
    return summary_of(data, [ValueType.parse(probe) for probe in probes], OPTIONS, "k")


def found(data, probe):
    """The type, the values, whether NaN is a key, and the number of NULL rows."""
    result = keys(data, probe)
    (column,) = result.columns
    return str(column.type), listed(column.domain), column.domain.nan, result.null_rows


def listed(domain):
    return code.decode(domain.type, domain.ranges.points())


PYTHON = [
    ("ints", "int", [3, 1, None, 3], ("int", [1, 3], False, 1)),
    ("ints beyond the column", "int", [7, 3_000_000_000], ("bigint", [7, 3_000_000_000], False, 0)),
    ("ints beyond bigint", "bigint", [7, 10**30], ("decimal(38,0)", [7, 10**30], False, 0)),
    ("ints beyond every type", "int", [7, 10**40, -(10**38)], ("decimal(38,0)", [7], False, 2)),
    ("ints beyond every type for doubles", "double", [7, 2**200], ("double", [7.0, 2.0**200], False, 0)),
    ("ints beyond every double", "double", [7, 10**400], ("double", [7.0], False, 1)),
    # Failure catalogue 75: a double from 2**53 on equals several integers, a float from 2**24 on.
    ("whole floats", "bigint", [2.0**53 - 1, 3.0], ("bigint", [3, 2**53 - 1], False, 0)),
    ("floats that several ints equal", "bigint", [2.0**53, 3.0], ("double", [3.0, 2.0**53], False, 0)),
    ("ints for doubles", "double", [2**53, 1], ("double", [1.0, 2.0**53], False, 0)),
    ("ints that no double is", "double", [2**53 + 1], ("bigint", [2**53 + 1], False, 0)),
    ("ints that no float is", "float", [2**24 + 1], ("bigint", [2**24 + 1], False, 0)),
    ("ints for decimals", "decimal(7,2)", [99999, -1], ("decimal(7,2)", [-1, 99999], False, 0)),
    ("ints for fine decimals", "decimal(38,30)", [1], ("decimal(38,30)", [1], False, 0)),
    ("ints beyond the decimals", "decimal(7,2)", [100_000], ("bigint", [100_000], False, 0)),
    ("numpy ints", "int", [np.int64(5), np.uint8(3), 4], ("int", [3, 4, 5], False, 0)),
    ("enums", "int", [Colour.RED], ("int", [1], False, 0)),
    ("enums of text", "string", [Word.YES], ("string", ["yes"], False, 0)),
    ("whole floats", "int", [1.0, 2.0, NAN], ("int", [1, 2], False, 1)),
    ("parts", "int", [1.5, 2.0], ("double", [1.5, 2.0], False, 0)),
    ("whole floats too big to be exact", "bigint", [2.0**60], ("double", [2.0**60], False, 0)),
    ("floats", "double", [NAN, -0.0, 0.0, math.inf, None], ("double", [0.0, math.inf], True, 1)),
    ("ints among floats", "double", [1, 0.5], ("double", [0.5, 1.0], False, 0)),
    ("floats that are single", "float", [0.5, NAN], ("float", [0.5], True, 0)),
    ("floats that are not single", "float", [0.1], ("double", [0.1], False, 0)),
    ("numpy floats", "float", [np.float32(0.1)], ("float", [float(np.float32(0.1))], False, 0)),
    ("infinity for ints", "int", [math.inf], ("double", [math.inf], False, 0)),
    (
        "decimals",
        "decimal(7,2)",
        [Decimal("1.50"), Decimal("1.5"), 2],
        ("decimal(7,2)", [Decimal("1.50"), 2], False, 0),
    ),
    ("decimals too fine", "decimal(7,2)", [Decimal("0.005")], ("decimal(3,3)", [Decimal("0.005")], False, 0)),
    ("trailing zeros", "decimal(7,2)", [Decimal("1.50000")], ("decimal(7,2)", [Decimal("1.50")], False, 0)),
    ("exponents", "int", [Decimal("1E+3")], ("decimal(4,0)", [1000], False, 0)),
    ("zero of any scale", "decimal(7,2)", [Decimal("0E-50"), Decimal("-0")], ("decimal(7,2)", [0], False, 0)),
    (
        "decimals too far apart",
        "decimal(7,2)",
        [Decimal("1E+30"), Decimal("1E-30"), 1],
        ("decimal(7,2)", [1], False, 2),
    ),
    (
        "decimals too far apart for ints",
        "int",
        [Decimal("1E+30"), Decimal("1E-30"), 1],
        ("decimal(20,0)", [1], False, 2),
    ),
    ("text", "string", ["b", "", None, "é", np.str_("b")], ("string", ["", "b", "é"], False, 1)),
    ("text with NaN", "string", ["b", NAN], ("string", ["b"], False, 1)),
    ("bytes", "binary", [b"\xff", bytearray(b"a"), memoryview(b"")], ("binary", [b"", b"a", b"\xff"], False, 0)),
    ("bools", "boolean", [True, np.zeros(1, bool)[0], None], ("boolean", [False, True], False, 1)),
    ("dates", "date", [dt.date(1, 1, 1), dt.date(9999, 12, 31)], ("date", ["0001-01-01", "9999-12-31"], False, 0)),
    ("dates for timestamps", "timestamp", [dt.date(2024, 1, 1)], ("date", ["2024-01-01"], False, 0)),
    (
        "moments with zones",
        "timestamp",
        [dt.datetime(1850, 1, 1, tzinfo=STOCKHOLM), dt.datetime(2024, 1, 1, tzinfo=KATHMANDU)],
        ("timestamp", ["1849-12-31T22:47:48.000000", "2023-12-31T18:15:00.000000"], False, 0),
    ),
    (
        "the hour that comes twice",
        "timestamp",
        [dt.datetime(2024, 10, 27, 2, 30, tzinfo=STOCKHOLM, fold=fold) for fold in (0, 1)],
        ("timestamp", ["2024-10-27T00:30:00.000000", "2024-10-27T01:30:00.000000"], False, 0),
    ),
    (
        "moments without zone",
        "timestamp",
        [NAIVE_LAST, pd.NaT],
        ("timestamp_ntz", ["9999-12-31T23:59:59.999999"], False, 1),
    ),
    (
        "pandas moments",
        "timestamp",
        [pd.Timestamp("2024-01-01", tz="UTC"), pd.NA],
        ("timestamp", ["2024-01-01T00:00:00.000000"], False, 1),
    ),
    (
        "numpy moments",
        "timestamp_ntz",
        [np.datetime64("2024-01-01"), np.datetime64("2024-01-01T05"), np.datetime64("NaT"), None],
        ("timestamp_ntz", ["2024-01-01T00:00:00.000000", "2024-01-01T05:00:00.000000"], False, 2),
    ),
    ("numpy days", "date", [np.datetime64("2024-01-01"), None], ("date", ["2024-01-01"], False, 1)),
    ("only NULL", "int", [None, None], ("int", [], False, 2)),
    ("only NaN", "int", [NAN], ("int", [], False, 1)),
    ("empty", "string", [], ("string", [], False, 0)),
]


@pytest.mark.parametrize(("probe", "data", "expected"), [row[1:] for row in PYTHON], ids=[row[0] for row in PYTHON])
def test_python_values_keep_their_value(probe, data, expected):
    assert expected == found(data, probe)


CONTAINERS = [
    ("tuple", (1, 2)),
    ("set", {1, 2}),
    ("frozenset", frozenset([1, 2])),
    ("range", range(1, 3)),
    ("generator", (n for n in (1, 2))),
    ("dict keys", {1: "a", 2: "b"}.keys()),
    ("rows of one", [(1,), (2,)]),
    ("numpy", np.array([1, 2])),
    ("numpy objects", np.array([1, 2], object)),
    ("numpy column", np.array([[1], [2]])),
    ("structured numpy", np.array([(1,), (2,)], [("a", "i8")])),
    ("series", pd.Series([1, 2])),
    ("index", pd.Index([1, 2])),
    ("categories", pd.Series([1, 2]).astype("category")),
    ("frame", pd.DataFrame({"a": [1, 2]})),
    ("arrow", pa.array([1, 2])),
    ("arrow dictionary", pa.array([1, 2]).dictionary_encode()),
    ("arrow chunks", pa.chunked_array([[1], [], [2]])),
    ("table", pa.table({"a": [1, 2]})),
    ("batch", pa.record_batch({"a": [1, 2]})),
    ("unsigned", np.array([1, 2], np.uint64)),
    ("floats", np.array([1.0, 2.0])),
    ("half floats", np.array([1.0, 2.0], np.float16)),
]


@pytest.mark.parametrize("data", [row[1] for row in CONTAINERS], ids=[row[0] for row in CONTAINERS])
def test_every_container_type_gives_equal_keys(data):
    assert ("int", [1, 2], False, 0) == found(data, "int")


MISSING = [
    ("numpy floats", np.array([1.0, NAN]), "int", ("int", [1], False, 1)),
    ("numpy floats for doubles", np.array([1.0, NAN]), "double", ("double", [1.0], True, 0)),
    ("masked", np.ma.array([1, 2], mask=[0, 1]), "int", ("int", [1], False, 1)),
    ("numpy moments", np.array(["2024-01-01T05", "NaT"], "M8[h]"), "timestamp", ("timestamp_ntz", [FIVE], False, 1)),
    ("pandas gaps", pd.Series([1, None]), "int", ("int", [1], False, 1)),
    ("pandas gaps for doubles", pd.Series([1, None]), "double", ("double", [1.0], True, 0)),
    ("pandas Int64", pd.Series([1, None], dtype="Int64"), "int", ("int", [1], False, 1)),
    ("pandas Float64", pd.Series([1, None], dtype="Float64"), "double", ("double", [1.0], False, 1)),
    ("pandas boolean", pd.Series([True, None], dtype="boolean"), "boolean", ("boolean", [True], False, 1)),
    ("pandas strings", pd.Series(["a", None]), "string", ("string", ["a"], False, 1)),
    ("pandas arrow", pd.Series([1, None], dtype="int64[pyarrow]"), "int", ("int", [1], False, 1)),
    ("pandas objects", pd.Series([1, NAN, None, pd.NA], dtype=object), "int", ("int", [1], False, 3)),
    ("pandas moments", pd.Series([pd.Timestamp(0, tz="UTC"), pd.NaT]), "timestamp", ("timestamp", [EPOCH], False, 1)),
    ("arrow nulls", pa.nulls(2), "string", ("string", [], False, 2)),
    ("arrow NaN", pa.array([1.5, NAN, None]), "decimal(7,2)", ("double", [1.5], False, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("data", "probe", "expected"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING])
def test_missing_values_are_null_and_nan_is_a_value_of_floats_only(data, probe, expected):
    assert expected == found(data, probe)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps"])
def test_numpy_timestamps_of_every_unit_are_equal(unit):
    data = np.array(["1970-01-01", "NaT"], f"M8[{unit}]")
    result = keys(data, "timestamp_ntz")
    coerced = coerce(result.domains[0], ValueType("timestamp_ntz"), "k")
    assert (Domain.of(ValueType("timestamp_ntz"), 0), 1) == (coerced.domain, result.null_rows)


def test_key_tuples_are_in_the_order_of_probe_columns():
    rows = [(1, "a"), (2, None), (1, "a"), (3, "b")]
    expected = keys(rows, "int", "string")
    assert ([1, 3], ["a", "b"], 2, 1) == (
        listed(expected.domains[0]),
        listed(expected.domains[1]),
        expected.distinct,
        expected.null_rows,
    )
    columns = {"x": [1, 2, 1, 3], "y": ["a", None, "a", "b"]}
    for data in (pd.DataFrame(columns), pa.table(columns), [list(row) for row in rows], iter(rows)):
        result = keys(data, "int", "string")
        assert (expected.columns, expected.key_rows) == (result.columns, result.key_rows)
    numbers = keys(np.array([[1, 10], [2, 20]]), "int", "bigint")
    assert [[1, 2], [10, 20]] == [listed(domain) for domain in numbers.domains]


def test_unmatchable_value_drops_its_row():
    result = keys([(10**40, "a"), (1, "b")], "int", "string")
    assert ([1], ["b"], 1) == (listed(result.domains[0]), listed(result.domains[1]), result.null_rows)


REFUSED = [
    ("one string", "abc", ["string"], "found str, expected a DataFrame, a sequence of values"),
    ("one bytes", b"abc", ["binary"], "found bytes"),
    ("a mapping", {"a": [1]}, ["int"], "found dict"),
    ("one number", 5, ["int"], "found int, expected a DataFrame"),
    ("nothing", None, ["int"], "found None, expected a DataFrame"),
    ("bools among ints", [True, 1], ["int"], "found bool and int; expected Decimal, float or int: convert the keys"),
    ("bools", [True], ["int"], "found bool"),
    ("numpy bools", np.array([True]), ["int"], "found boolean; expected Decimal"),
    ("text for numbers", ["1"], ["int"], "found str"),
    ("numbers for text", [1], ["string"], "found int; expected str: convert the keys"),
    ("arrow text for numbers", pa.array(["1"]), ["int"], "with 'k' of type int: found string"),
    ("text among numbers", ["1", 1], ["string"], "found int and str"),
    ("bytes for text", [b"a"], ["string"], "found bytes"),
    ("zones among none", [NAIVE, NAIVE.replace(tzinfo=STOCKHOLM)], ["timestamp"], "that no one type holds"),
    ("dates among moments", [NAIVE.date(), NAIVE], ["timestamp"], "found date and datetime without zone that"),
    ("floats among decimals", [Decimal(1), 0.5], ["double"], "no one type holds; expected values of one kind"),
    ("floats among wide ints", [2**53 + 1, 0.5], ["bigint"], "found float and int that no one type holds"),
    ("NaN decimals", [Decimal("NaN")], ["decimal(7,2)"], "found Decimal that no one type holds"),
    ("half a pair of surrogates", ["\ud800"], ["string"], "found str that no one type holds"),
    ("identifiers", [uuid.uuid4()], ["string"], "found UUID"),
    ("times", [dt.time(5)], ["timestamp"], "found time"),
    ("durations", np.array([1], "m8[s]"), ["bigint"], r"numpy values of type timedelta64"),
    ("complex", np.array([1j]), ["double"], "numpy values of type complex128"),
    ("cube", np.zeros((1, 1, 1)), ["double"], "found"),
    ("periods", pd.Series(pd.period_range("2024", "2024", freq="M")), ["date"], "Cannot use keys of 'k'"),
    ("lists", pa.array([[1]]), ["int"], "Cannot prune by Arrow type list"),
    ("pairs for one", [(1, 2)], ["int"], "found a row of 2"),
    ("one for pairs", [1, 2], ["int", "int"], "found a plain value, expected a DataFrame, tuples of 2 values"),
    ("uneven pairs", [(1, 2), (1,)], ["int", "int"], "found a row of 1 and a row of 2"),
    ("narrow table", pa.table({"a": [1]}), ["int", "int"], "found 1 columns, expected 2"),
    ("wide frame", pd.DataFrame({"a": [1], "b": [1]}), ["int"], "found 2 columns, expected 1"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "probes", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_keys_that_cannot_be_compared_are_refused(data, probes, message):
    with pytest.raises(InvalidKeysError, match=message):
        keys(data, *probes)


def test_summary_is_used_unchanged():
    summary = keys([1, 2], "int")
    assert summary is keys(summary, "bigint")
    with pytest.raises(InvalidKeysError, match="found 1 columns, expected 2"):
        keys(summary, "int", "int")


def test_keys_over_the_limit_become_bounds_and_bloom_filter():
    options = PruningOptions().with_limits(max_build_keys=10)
    result = summary_of(range(0, 1000, 10), [ValueType("int")], options, "k")
    assert isinstance(result, KeySummary)
    assert (None, (ValueType("int"),)) == (result.distinct, result.hashed_as)
    assert Domain.between(ValueType("int"), 0, 990) == result.domains[0].span()


def test_key_table_of_a_generator():
    table = key_table(((n, str(n)) for n in range(3)), [ValueType("int"), ValueType("string")], "k")
    assert [{"k0": n, "k1": str(n)} for n in range(3)] == table.to_pylist()
    assert [pa.int32(), pa.large_string()] == table.schema.types
    assert 3 == summary_of_table(table, OPTIONS, "k", source="generator").distinct


def test_source_names_the_kind_of_data():
    assert ["list", "ndarray", "Table"] == [
        keys(data, "int").source for data in ([1], np.array([1]), pa.table({"a": [1]}))
    ]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**70), 2**70)), max_size=8), st.sampled_from(sorted(INTEGER_BITS)))
def test_integers_in_the_range_of_the_column_stay_keys(items, probe):
    result = keys(items, probe)
    coerced = coerce(result.domains[0], ValueType(probe), "k")
    half = 1 << (INTEGER_BITS[probe] - 1)
    assert Domain.of(ValueType(probe), *[n for n in items if n is not None and -half <= n < half]) == coerced.domain


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=3), max_size=6))
def test_decimals_in_the_range_of_the_column_stay_keys(items):
    type_ = ValueType("decimal", 9, 2)
    coerced = coerce(keys(items, "decimal(9,2)").domains[0], type_, "k")
    kept = [item for item in items if abs(item) < 10**7 and item * 100 == int(item * 100)]
    assert Domain.of(type_, *kept) == coerced.domain


@given(st.lists(st.floats(), max_size=6), st.sampled_from(["float", "double"]))
def test_floats_in_the_range_of_the_column_stay_keys(items, probe):
    coerced = coerce(keys(items, probe).domains[0], ValueType(probe), "k")
    with np.errstate(over="ignore"):
        kept = [item for item in items if probe == "double" or math.isnan(item) or float(np.float32(item)) == item]
    assert Domain.of(ValueType(probe), *kept) == coerced.domain


# Failure catalogue 75: an integer column matches such a value by every integer that rounds to it.
@pytest.mark.parametrize(("dtype", "exponent"), [(np.float32, 24), (np.float64, 53)])
def test_floats_equal_to_several_integers_stay_floats(dtype, exponent):
    below, at = (keys(np.array([value], dtype), "bigint").types for value in (2.0**exponent - 1, 2.0**exponent))
    assert ["bigint"] == [str(each) for each in below]
    assert [{24: "float", 53: "double"}[exponent]] == [str(each) for each in at]


@pytest.mark.parametrize("dtype", [">i8", ">f8", ">M8[s]", ">u4"])
def test_byte_order_does_not_change_numbers(dtype):
    native = np.dtype(dtype).newbyteorder("=")
    probe = {"M": "timestamp_ntz", "f": "double"}.get(native.kind, "bigint")
    assert found(np.array([5, 7], native), probe) == found(np.array([5, 7], native).astype(dtype), probe)
