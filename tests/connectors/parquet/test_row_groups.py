from __future__ import annotations

import datetime as dt
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.parquet.row_groups import FileRef, FooterCache, FooterColumn, read_row_groups
from connectors.spark.files import LocalStorage
from pruning.reasons import ReasonCode
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import UNKNOWN
from pruning.values.types import ValueType
from tests.connectors.hand_made import I64, Struct, chunk
from tests.connectors.parquet_files import column, domains, kept, read, ref, written

DAY = 86_400_000_000
INF = float("inf")

# The file's type, two values of each of its two row groups, Spark's type, and keys in the first, the second, and
# neither.
TYPES = {
    "tinyint": (pa.int8(), [-128, 3, 5, 127], "tinyint", -3, 127, 4),
    "smallint": (pa.int16(), [-(2**15), 3, 5, 9], "smallint", -3, 9, 4),
    "int": (pa.int32(), [-(2**31), 3, 5, 9], "int", -3, 9, 4),
    "bigint": (pa.int64(), [-(2**63), 3, 5, 2**63 - 1], "bigint", -3, 2**63 - 1, 4),
    # Failure catalogue 75: the file's type is narrower than the table's.
    "int under bigint": (pa.int32(), [-(2**31), 3, 5, 9], "bigint", -3, 9, 2**32 + 3),
    "int under smallint": (pa.int32(), [1, 3, 5, 9], "smallint", 2, 9, 4),
    "int under double": (pa.int32(), [1, 3, 5, 9], "double", 2.0, 9.0, 4.0),
    "unsigned 8 bits": (pa.uint8(), [1, 3, 5, 255], "smallint", 2, 255, 4),
    "unsigned 16 bits": (pa.uint16(), [1, 3, 5, 2**16 - 1], "int", 2, 2**16 - 1, 4),
    # Failure catalogue 83: the sign bit is a digit.
    "unsigned 32 bits": (pa.uint32(), [1, 2**31, 2**31 + 2, 2**32 - 1], "bigint", 2**31, 2**32 - 1, 2**31 + 1),
    "unsigned 64 bits": (pa.uint64(), [1, 2**63, 2**63 + 2, 2**64 - 1], "decimal(20,0)", 2**63, 2**64 - 1, 2**63 + 1),
    "decimal": (pa.decimal128(7, 2), [Decimal("-1.50"), 3, 5, 9], "decimal(7,2)", "-1.49", 9, "3.01"),
    "wide decimal": (pa.decimal128(38, 2), [-(10**35), 3, 5, 10**35], "decimal(38,2)", -1, 10**35, "3.01"),
    # Failure catalogue 81, 82: the file's scale or precision is less than the table's.
    "decimal of less scale": (pa.decimal128(7, 2), [1, 3, 5, 9], "decimal(12,4)", "2.0001", 9, "3.0001"),
    "decimal of fewer digits": (pa.decimal128(7, 2), [-1, 3, 5, 9], "decimal(20,2)", "-0.01", 9, 4),
    "int under decimal": (pa.int32(), [-1, 3, 5, 9], "decimal(12,2)", "-0.50", 9, 4),
    "bigint under decimal": (pa.int64(), [-1, 3, 5, 9], "decimal(20,0)", 0, 9, 4),
    "float": (pa.float32(), [-1.5, 3.0, 5.0, INF], "float", 0.0, INF, 4.0),
    "float under double": (pa.float32(), [-1.5, 3.0, 5.0, 9.0], "double", 0.0, 9.0, 4.0),
    "double": (pa.float64(), [-INF, 3.0, 5.0, 9.0], "double", -9.0, 9.0, 4.0),
    "string": (pa.string(), ["", "az", "aé", "\U0001f600"], "string", "a", "b", "az\0"),
    "binary": (pa.binary(), [b"", b"\x7f", b"\x80", b"\xff"], "binary", b"\x01", b"\xfe", b"\x7f\x00"),
    "fixed binary": (pa.binary(2), [b"aa", b"cc", b"ee", b"\xff\xff"], "binary", b"bb", b"\xff", b"dd"),
    "boolean": (pa.bool_(), [False, False, True, True], "boolean", False, True, None),
    "date": (pa.date32(), [1, 3, 5, 2_932_896], "date", 2, dt.date(9999, 12, 31), 4),
    "milliseconds": (pa.timestamp("ms", "UTC"), [1, 3, 5, 9], "timestamp", 2000, 9000, 3001),
    "microseconds": (pa.timestamp("us", "UTC"), [1, 3, 5, 9], "timestamp", 2, 9, 4),
    "local milliseconds": (pa.timestamp("ms"), [1, 3, 5, 9], "timestamp_ntz", 2000, 9000, 3001),
    "local microseconds": (pa.timestamp("us"), [1, 3, 5, 9], "timestamp_ntz", 2, 9, 4),
    "nanoseconds as bigint": (pa.timestamp("ns", "UTC"), [1, 3, 5, 9], "bigint", 2, 9, 4),
    "date under timestamp_ntz": (pa.date32(), [1, 3, 5, 9], "timestamp_ntz", 2 * DAY, 9 * DAY, 3 * DAY + 1),
}
UNKNOWN_TYPES = {
    # Failure catalogue 75: Spark refuses to read these types, so their bounds are not interpreted.
    "bigint under int": (pa.int64(), [1, 3, 5, 9], "int"),
    "double under float": (pa.float64(), [1.0, 3.0, 5.0, 9.0], "float"),
    "string under int": (pa.string(), ["1", "3", "5", "9"], "int"),
    "int under string": (pa.int32(), [1, 3, 5, 9], "string"),
    "int under date": (pa.int32(), [1, 3, 5, 9], "date"),
    "timestamp under bigint": (pa.timestamp("us"), [1, 3, 5, 9], "bigint"),
    "timestamp under date": (pa.timestamp("us"), [1, 3, 5, 9], "date"),
    "date under timestamp": (pa.date32(), [1, 3, 5, 9], "timestamp"),
    "nanoseconds under timestamp": (pa.timestamp("ns", "UTC"), [1, 3, 5, 9], "timestamp"),
    "decimal of more scale": (pa.decimal128(7, 2), [1, 3, 5, 9], "decimal(9,1)"),
    "decimal of more digits": (pa.decimal128(9, 2), [1, 3, 5, 9], "decimal(7,2)"),
    "decimal under bigint": (pa.decimal128(9, 0), [1, 3, 5, 9], "bigint"),
    "decimal under binary": (pa.decimal128(9, 0), [1, 3, 5, 9], "binary"),
    "int under a narrow decimal": (pa.int32(), [1, 3, 5, 9], "decimal(9,0)"),
    # The value would wrap when Spark reads it.
    "wide int under smallint": (pa.int32(), [-(2**15) - 1, 2**15, -(2**31), 2**31 - 1], "smallint"),
    "wide unsigned under int": (pa.uint32(), [1, 2**31, 2**31, 2**32 - 1], "int"),
    "unsigned 64 bits under bigint": (pa.uint64(), [1, 2**63, 2**63, 2**64 - 1], "bigint"),
    "time": (pa.time64("us"), [1, 3, 5, 9], "bigint"),
    "half float": (pa.float16(), [np.float16(each) for each in (1, 3, 5, 9)], "float"),
    # Failure catalogue 85: UUIDs have their own order.
    "uuid": (pa.uuid(), [bytes([each]) * 16 for each in (1, 3, 5, 9)], "binary"),
    # Failure catalogue 60, 61: bounds do not cover NaN.
    "all NaN": (pa.float64(), [float("nan")] * 4, "double"),
}


def table_of(arrow_type: pa.DataType, values: list) -> pa.Table:
    return pa.table({"x": pa.array(values, arrow_type)})


@pytest.mark.parametrize("case", TYPES.values(), ids=TYPES.keys())
def test_row_groups_without_a_key_are_skipped(tmp_path, case):
    arrow_type, values, spark_type, first, second, neither = case
    file, wanted = written(tmp_path / "x", table_of(arrow_type, values)), column(spark_type)
    assert [True, False] == kept(file, wanted, first)
    assert [False, True] == kept(file, wanted, second)
    assert [True, True] == kept(file, wanted, first, second)
    if neither is not None:
        assert [False, False] == kept(file, wanted, neither)


@pytest.mark.parametrize("case", TYPES.values(), ids=TYPES.keys())
def test_null_count_distinguishes_null_from_values(tmp_path, case):
    arrow_type, (low, _, _, high), spark_type, first, *_ = case
    file = written(tmp_path / "x", table_of(arrow_type, [None, None, low, None, low, high]))
    assert [True, True, False] == kept(file, column(spark_type), None)
    assert not kept(file, column(spark_type), first)[0]


@pytest.mark.parametrize("case", UNKNOWN_TYPES.values(), ids=UNKNOWN_TYPES.keys())
def test_bounds_of_unsupported_types_are_unknown(tmp_path, case):
    arrow_type, values, spark_type = case
    file = written(tmp_path / "x", table_of(arrow_type, values))
    containers = read(file, column(spark_type)).containers
    found = containers.columns["x"]
    assert [False] * 4 == [*found.has_low, *found.has_high]


@pytest.mark.parametrize("digits", [9, 18], ids=["int32", "int64"])
def test_decimals_stored_as_integers(tmp_path, digits):
    values = [Decimal("-1.50"), Decimal(3), Decimal(5), Decimal(9)]
    table = table_of(pa.decimal128(digits, 2), values)
    file = written(tmp_path / "x", table, store_decimal_as_integer=True)
    assert ["{[-1.50, 3.00]}", "{[5.00, 9.00]}"] == domains(file, column(f"decimal({digits},2)"))


def test_column_without_a_type_has_no_statistics(tmp_path):
    file = written(tmp_path / "t.parquet", pa.table({"x": [1, 2, 3, 4]}))
    found = read(file, replace(column("bigint"), type=None)).containers
    assert (2, {}) == (len(found), found.columns)


def test_int96_timestamps_are_unknown(tmp_path):  # failure catalogue 104
    file = written(tmp_path / "x", table_of(pa.timestamp("us"), [1, 3, 5, 9]), use_deprecated_int96_timestamps=True)
    assert ["all", "all"] == domains(file, column("timestamp"))
    (found,) = read(file, column("timestamp")).containers.columns.values()
    assert (False, ReasonCode.INT96) == (found.has_bounds, found.missing)
    assert ReasonCode.INT96 == found.take(np.array([0])).missing


def test_nan_is_never_excluded(tmp_path):  # failure catalogue 60, 61, 64
    nan = float("nan")
    file = written(tmp_path / "x", table_of(pa.float64(), [1.0, nan, 5.0, 9.0]))
    assert ["{1.0} or NaN", "{[5.0, 9.0]} or NaN"] == domains(file, column("double"))
    assert [True, True] == kept(file, column("double"), nan)
    assert [True, False] == kept(file, column("double"), 1.0)


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("key", [0.0, -0.0])
def test_either_zero_matches_the_other(tmp_path, zero, key):  # failure catalogue 66, 171
    assert str(zero) == str(np.float64(zero))
    file = written(tmp_path / "x", table_of(pa.float64(), [zero, zero, 5.0, 9.0]))
    assert [True, False] == kept(file, column("double"), key)


def test_row_groups_have_file_rows_and_bytes(tmp_path):
    table = pa.table({"a": [1, 2, 3], "B": ["x" * 1000, "y", "z"], "s": [{"a": 1, "b": 2.0}] * 3})
    files = [written(tmp_path / name, table) for name in ("1", "2")]
    result = read_row_groups(files, [column("bigint", "a")], ["b", "S"], LocalStorage(), FooterCache())
    whole = read(files, column("bigint", "a")).containers
    found = result.containers
    assert [0, 0, 1, 1] == found.parents.tolist()
    assert [2, 1, 2, 1] == found.rows.tolist()
    assert f"{files[1].path}#0" == found.names[2]
    chunks = [pq.read_metadata(tmp_path / "1").row_group(0).column(index) for index in range(4)]
    sizes = [chunk.total_compressed_size for chunk in chunks]
    assert sum(sizes[1:]) == found.sizes[0]
    assert sum(sizes) == whole.sizes[0]
    assert () == result.problems


def test_no_projected_column_has_no_bytes(tmp_path):
    file = written(tmp_path / "1", pa.table({"a": [1]}))
    assert [0] == read_row_groups([file], [], [], LocalStorage(), FooterCache()).containers.sizes.tolist()


def test_file_without_row_groups_has_no_container(tmp_path):
    with pq.ParquetWriter(tmp_path / "none", pa.schema([("x", pa.int64())])):
        pass
    full = written(tmp_path / "full", pa.table({"x": [1]}))
    assert [1] == read([ref(tmp_path / "none"), full], column("bigint")).containers.parents.tolist()


def test_row_group_without_rows_is_skipped(tmp_path):
    file = written(tmp_path / "x", pa.table({"x": pa.array([], pa.int64())}))
    assert [False] == kept(file, column("bigint"), 1, None)


def test_no_file_has_no_container():
    assert 0 == len(read([], column("string")).containers)


def truncated(path: Path) -> FileRef:
    path.write_bytes(path.read_bytes()[:-20])
    return ref(path)


def encrypted(path: Path) -> FileRef:
    path.write_bytes(path.read_bytes()[:-4] + b"PARE")
    return ref(path)


def overlong(path: Path) -> FileRef:
    path.write_bytes(path.read_bytes()[:-8] + (2**31).to_bytes(4, "little") + b"PAR1")
    return ref(path)


def scrambled(path: Path) -> FileRef:
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[: -length - 8] + bytes(length) + data[-8:])
    return ref(path)


def emptied(path: Path) -> FileRef:
    path.write_bytes(b"")
    return ref(path)


def removed(path: Path) -> FileRef:
    found = ref(path)
    path.unlink()
    return found


def replaced(path: Path) -> FileRef:
    found = ref(path)
    path.write_bytes(path.read_bytes() + path.read_bytes())
    return found


BROKEN = {
    truncated: "not a Parquet file",
    encrypted: "the footer is encrypted",
    overlong: "cannot lie in",
    scrambled: "it has no schema",
    emptied: "not a Parquet file",
    removed: "No such file",
    replaced: "so it was replaced",
}


@pytest.mark.parametrize(("breaks", "detail"), BROKEN.items(), ids=[each.__name__ for each in BROKEN])
def test_file_with_an_unreadable_footer_is_kept_with_a_reason(tmp_path, breaks, detail):
    good, bad = (written(tmp_path / name, pa.table({"x": [1, 2]})) for name in ("good", "bad"))
    bad = breaks(tmp_path / "bad")
    result = read([bad, good], column("bigint"))
    assert ["all", "{[1, 2]}"] == [str(result.containers[index].domains["x"]) for index in range(2)]
    assert (UNKNOWN, bad.size) == (result.containers.rows[0], result.containers.sizes[0])
    (problem,) = result.problems
    assert (ReasonCode.STATISTICS_FAILED, bad.path) == (problem.code, problem.subject)
    assert detail in problem.detail


def test_many_broken_files_give_few_reasons(tmp_path):
    files = [FileRef(f"{tmp_path}/{index}", 100, 0) for index in range(20)]
    assert ["15 more files"] == [each.subject for each in read(files, column("int")).problems[5:]]


def test_any_damage_gives_containers_without_an_error(tmp_path):
    table = pa.table({"x": [1, 2, 3], "s": ["a", "b", None], "n": [{"f": 1.0}] * 3})
    whole = (tmp_path / "x", written(tmp_path / "x", table))[0].read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    dice = random.Random(1)  # noqa: S311 - a reproducible choice of damage
    wanted = [column("bigint"), column("string", "s"), column("double", "n", "f")]
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(dice.choice([1, 2, 8])):
            data[dice.randrange(len(data) - length - 8, len(data) - 8)] = dice.randrange(256)
        (tmp_path / "x").write_bytes(data)
        result = read(ref(tmp_path / "x"), *wanted)
        assert len(prune_containers(result.containers, {}).kept) == len(result.containers)


def test_footers_are_read_once(tmp_path):
    cache, file = FooterCache(), written(tmp_path / "x", pa.table({"x": [1, 2, 3]}))
    first = read_row_groups([file], [column("bigint")], None, LocalStorage(), cache)
    (tmp_path / "x").unlink()
    again = read_row_groups([file], [column("bigint")], None, LocalStorage(), cache)
    later = FileRef(file.path, file.size, file.modified + 1)
    missed = read_row_groups([later], [column("bigint")], None, LocalStorage(), cache)
    assert (3, 3, UNKNOWN) == tuple(each.containers.rows.sum() for each in (first, again, missed))
    assert () == again.problems


def test_cache_keeps_the_latest_within_its_limit(tmp_path):
    files = [written(tmp_path / str(index), pa.table({"x": [index]})) for index in range(5)]
    alone = FooterCache()
    read_row_groups(files[:1], [], None, LocalStorage(), alone)
    cache = FooterCache(most_bytes=alone.nbytes * 3)
    for file in files:
        read_row_groups([file], [], None, LocalStorage(), cache)
    assert 3 == len(cache)
    assert [False, False, True, True, True] == [cache.get(file) is not None for file in files]
    assert cache.nbytes <= alone.nbytes * 3


def test_threads_share_a_cache(tmp_path):
    files = [written(tmp_path / str(index), pa.table({"x": [index, index]})) for index in range(20)]
    cache, wanted = FooterCache(most_bytes=3000), [column("bigint")]

    def lows(_: int) -> list[int]:
        found = read_row_groups(files, wanted, None, LocalStorage(), cache).containers
        return found.columns["x"].lows.tolist()

    with ThreadPoolExecutor(8) as pool:
        assert [list(range(20))] * 16 == list(pool.map(lows, range(16)))


def test_files_of_one_schema_share_it(tmp_path):
    cache = FooterCache()
    tables = [pa.table({"x": [1]}), pa.table({"x": [2]}), pa.table({"y": [2]})]
    files = [written(tmp_path / str(index), table) for index, table in enumerate(tables)]
    read_row_groups(files, [], None, LocalStorage(), cache)
    first, second, third = (cache.get(file).schema for file in files)
    assert first is second
    assert first is not third


# Different values by the size of a dictionary.

MANY = np.random.default_rng(3).permutation(np.arange(20_000) % 2_000)
PLAIN = {"use_dictionary": False}
OVERFLOWN = {"dictionary_pagesize_limit": 1000, "write_batch_size": 1000, "data_page_size": 1000}


@pytest.mark.parametrize(
    ("values", "text", "options", "expected"),
    [
        (pa.array(MANY, pa.int32()), "int", {}, 2000),
        (pa.array(MANY, pa.int64()), "bigint", {}, 2000),
        (pa.array(MANY, pa.int32()), "date", {}, 2000),
        (pa.array(MANY, pa.int32()), "int", {"compression": "none"}, 2000),
        # Part of the values stand outside of the dictionary, or all: there may be as many as rows.
        (pa.array(MANY, pa.int32()), "int", OVERFLOWN, 10_000),
        (pa.array(MANY, pa.int32()), "int", PLAIN, 10_000),
        (pa.array(map(str, MANY.tolist())), "string", PLAIN, 10_000),
        # These encodings, codecs and types do not tell.
        (pa.array(MANY, pa.int32()), "int", {**PLAIN, "column_encoding": "DELTA_BINARY_PACKED"}, UNKNOWN),
        (pa.array(MANY, pa.int32()), "int", {"compression": "zstd"}, UNKNOWN),
        (pa.array(MANY.tolist(), pa.decimal128(30, 4)), "decimal(30,4)", PLAIN, 10_000),
    ],
)
def test_size_of_a_dictionary_tells_the_different_values(tmp_path, values, text, options, expected):
    if text == "date":
        values = values.cast(pa.date32())
    file = written(tmp_path / "x", pa.table({"x": values}), rows=10_000, **options)
    found = read(file, column(text)).containers.columns["x"].distinct
    # Both row groups hold every value.
    assert [expected] * 2 == pytest.approx(found.tolist(), rel=0.5 if text == "bigint" else 0.02)


@pytest.mark.parametrize("compression", ["none", "snappy", "lz4", "gzip"])
@pytest.mark.parametrize("distinct", [1, 2, 50, 2000])
@pytest.mark.parametrize("make", [str, "customer {:07d}".format, lambda at: f"{at * 2654435761 % 2**32:08x}" * 3])
def test_size_of_a_dictionary_of_texts_tells_them_within_a_factor(tmp_path, make, distinct, compression):
    values = pa.array([make(at % distinct) for at in range(20_000)], pa.string())
    file = written(tmp_path / "x", pa.table({"x": values}), rows=10_000, compression=compression)
    found = read(file, column("string")).containers.columns["x"].distinct.tolist()
    if compression == "gzip":
        assert [UNKNOWN] * 2 == found
    else:
        assert all(distinct / 6 <= each <= distinct * 3 for each in found)


@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize(("precision", "scale"), [(20, 2), (30, 4), (38, 0)])
def test_size_of_a_dictionary_of_long_decimals_tells_them_within_a_factor(tmp_path, precision, scale, compression):
    values = pa.array(MANY.tolist(), pa.decimal128(precision, scale))
    file = written(tmp_path / "x", pa.table({"x": values}), rows=10_000, compression=compression)
    found = read(file, column(f"decimal({precision},{scale})")).containers.columns["x"].distinct.tolist()
    assert all(2_000 / 4 <= each <= 2_000 * 3 for each in found), found


def test_texts_without_bounds_tell_nothing(tmp_path):
    file = written(tmp_path / "x", pa.table({"x": ["a", "b"] * 100}), rows=100, write_statistics=False)
    assert [UNKNOWN] * 2 == read(file, column("string")).containers.columns["x"].distinct.tolist()


def test_bloom_filters_are_known_to_be_absent_by_the_footer(tmp_path):
    def add(metadata: Struct) -> None:
        chunk(metadata, 0, 1)[14] = I64, 4

    table = pa.table({"x": [1, 2, 3, 4], "y": [1, 2, 3, 4]})
    file = written(tmp_path / "x", table, edit=add)
    wanted = [
        column("bigint"),
        FooterColumn("y", ("y",), ValueType("bigint")),
        FooterColumn("z", ("z",), ValueType("int")),
    ]
    found = read(file, *wanted).containers.columns
    assert {"x": [False, True], "y": [False, False], "z": [False, False]} == {
        name: each.has_bloom_filter.tolist() for name, each in found.items()
    }
    assert found["x"].may_have_bloom_filters
    assert not found["x"].take(np.array([0])).may_have_bloom_filters


def test_a_footer_that_cannot_be_read_tells_of_no_bloom_filters(tmp_path):
    (tmp_path / "x").write_bytes(b"PAR1")
    assert [True] == read(ref(tmp_path / "x"), column("bigint")).containers.columns["x"].has_bloom_filter.tolist()
