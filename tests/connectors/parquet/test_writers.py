"""Files of writers that are known to err, and of those that say nothing of the order of their bounds."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

from connectors.parquet.pushdown import ReaderLimits
from connectors.parquet.schema import Annotation, LeafType
from connectors.parquet.writers import Fault, writer_of
from pruning.reasons import ReasonCode
from tests.connectors.hand_made import FALSE, TRUE, Struct, set_bounds, set_text, statistics
from tests.connectors.parquet_files import column, ends, kept, read, written

NEITHER = (None, None)
TEXT, INT = LeafType("BYTE_ARRAY", 0, Annotation("STRING")), LeafType("INT64", 0, Annotation())
MONEY = LeafType("FIXED_LEN_BYTE_ARRAY", 9, Annotation("DECIMAL", precision=20, scale=2))
MONEY_BYTES = LeafType("BYTE_ARRAY", 0, Annotation("DECIMAL", precision=20, scale=2))
CENTS = LeafType("INT64", 0, Annotation("DECIMAL", precision=18, scale=2))
BOUNDS, PAGES = Fault.BOUNDS, Fault.PAGE_INDEX

# Errors of each writer in a text, a decimal of fixed length, one of any length, and an integer.
WRITERS = {
    "parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)": (None, None, None, None),
    "parquet-mr compatible Photon version 0.2 (build 12.2)": (None, None, None, None),
    "parquet-cpp version 1.5.1-SNAPSHOT": (None, BOUNDS, BOUNDS, None),
    "parquet-cpp-arrow version 3.0.0": (None, BOUNDS, BOUNDS, None),
    "parquet-cpp-arrow version 4.0.0": (None, None, None, None),
    "parquet-cpp-arrow version 21.0.0": (None, None, None, None),
    "ClickHouse v23.8.1.94-testing": (PAGES, BOUNDS, BOUNDS, None),
    "ClickHouse version 25.7.4 (build 1f)": (PAGES, BOUNDS, BOUNDS, None),
    "ClickHouse version 25.8.1 (build 1f)": (PAGES, None, PAGES, None),
    "ClickHouse version 26.5.1 (build 1f)": (None, None, None, None),
    "github.com/parquet-go/parquet-go version 0.32.0(build )": (None, BOUNDS, BOUNDS, None),
    "github.com/segmentio/parquet-go": (None, BOUNDS, BOUNDS, None),
    "parquet-go version latest": (PAGES, PAGES, PAGES, PAGES),
    "Polars": (BOUNDS, BOUNDS, BOUNDS, None),
    "Arrow2 - Native Rust implementation of Arrow": (BOUNDS, None, BOUNDS, None),
    "parquet-rs version 5.1.0 (build 1f)": (BOUNDS, None, BOUNDS, None),
    "parquet-rs version 43.0.0": (None, None, BOUNDS, None),
    "flow-php parquet version 1.x-dev": (BOUNDS, None, BOUNDS, None),
    "DuckDB version v1.3.0 (build 71c5c07cdd)": (None, None, None, None),
    "": (None, None, None, None),
}


@pytest.mark.parametrize(("created_by", "expected"), WRITERS.items(), ids=WRITERS)
def test_errors_of_known_writers(created_by, expected):
    writer = writer_of(created_by.encode())
    assert expected == tuple(writer.fault(each) for each in (TEXT, MONEY, MONEY_BYTES, INT))
    assert writer.fault(INT) == writer.fault(CENTS)


@pytest.mark.parametrize(
    ("created_by", "expected"),
    [
        ("DuckDB", True),
        ("DuckDB version v1.3.0 (build 71c5c07cdd)", True),
        ("parquet-rs version 5.1.0", False),
        ("parquet-rs", False),
        ("parquet-rs version 43.0.0 (build 1f)", True),
        ("parquet-mr compatible Photon version 0.2 (build 12.2)", False),
        ("Arrow2 - Native Rust implementation of Arrow", False),
        ("", False),
        ("\udcff version 7.0", False),
    ],
)
def test_writers_that_order_strings_by_unsigned_bytes(created_by, expected):
    assert expected is writer_of(created_by.encode("utf-8", "surrogateescape")).orders_bytes()


def by(writer: str, *edits: Callable[[Struct], None]) -> Callable[[Struct], None]:
    def edit(metadata: Struct) -> None:
        set_text(metadata, 6, writer)
        for each in edits:
            each(metadata)

    return edit


def without_orders(metadata: Struct) -> None:
    metadata.pop(7)


# The reader of parquet-java takes a missing list as the order of the type.
SIGNED = {
    "int": (pa.int32(), "int", [-5, 3], ("<i",)),
    "bigint": (pa.int64(), "bigint", [-5, 3], ("<q",)),
    "date": (pa.date32(), "date", [1, 3], ("<i",)),
    "timestamp": (pa.timestamp("us", "UTC"), "timestamp", [1, 3], ("<q",)),
    "timestamp_ntz": (pa.timestamp("us"), "timestamp_ntz", [1, 3], ("<q",)),
    "double": (pa.float64(), "double", [-5.0, 3.0], ("<d",)),
    "boolean": (pa.bool_(), "boolean", [False, True], ("<?",)),
}


@pytest.mark.parametrize(("arrow_type", "spark_type", "values", "layout"), SIGNED.values(), ids=SIGNED)
def test_signed_bounds_without_column_orders_are_used(tmp_path, arrow_type, spark_type, values, layout):
    def new_alone(metadata: Struct) -> None:
        set_bounds(statistics(metadata, 0), *(struct.pack(layout[0], each) for each in values))

    table = pa.table({"x": pa.array(values, arrow_type)})
    expected = ends(written(tmp_path / "whole", table), column(spark_type))
    file = written(tmp_path / "x", table, edit=by("another writer", without_orders, new_alone))
    assert None not in expected
    assert expected == ends(file, column(spark_type))
    assert ReaderLimits() == read(file, column(spark_type)).limits


@pytest.mark.parametrize(
    ("created_by", "is_known"),
    [
        ("DuckDB version v1.3.0 (build 71c5c07cdd)", True),
        ("parquet-rs version 43.0.0", True),
        ("parquet-rs version 5.1.0", False),
        ("parquet-mr compatible Photon version 0.2 (build 12.2)", False),
        ("", False),
    ],
)
def test_strings_without_column_orders_are_bounded_by_the_writer(tmp_path, created_by, is_known):  # catalogue 141
    file = written(tmp_path / "x", pa.table({"x": ["b", "é"]}), edit=by(created_by, without_orders))
    assert (("b", "é") if is_known else NEITHER) == ends(file, column("string"))
    assert [not is_known] == kept(file, column("string"), "a")


# Types whose order the specification states another way than by signed comparison.
@pytest.mark.parametrize(
    ("arrow_type", "values", "spark_type"),
    [
        (pa.uint64(), [1, 3], "decimal(20,0)"),
        (pa.decimal128(20, 2), [1, 3], "decimal(20,2)"),
        (pa.binary(), [b"a", b"b"], "binary"),
        (pa.binary(2), [b"aa", b"bb"], "binary"),
    ],
    ids=str,
)
def test_other_bounds_without_column_orders_are_not_used(tmp_path, arrow_type, values, spark_type):
    def new_alone(metadata: Struct) -> None:
        found = statistics(metadata, 0)
        set_bounds(found, found[6][1], found[5][1])

    table = pa.table({"x": pa.array(values, arrow_type)})
    assert None not in ends(written(tmp_path / "whole", table), column(spark_type))
    file = written(tmp_path / "x", table, edit=by("parquet-cpp-arrow version 21.0.0", without_orders, new_alone))
    assert NEITHER == ends(file, column(spark_type))


def test_a_list_of_another_length_gives_no_order(tmp_path):
    def shorten(metadata: Struct) -> None:
        metadata[7][1][1].pop()
        found = statistics(metadata, 0)
        set_bounds(found, found[6][1], found[5][1])

    assert NEITHER == ends(written(tmp_path / "x", pa.table({"x": [1, 2]}), edit=shorten), column("bigint"))


def test_wrong_bounds_are_neither_believed_nor_compared(tmp_path):
    table = pa.table({"x": pa.array([Decimal(1), Decimal(3)], pa.decimal128(20, 2)), "n": [1, 2]})
    money, number = column("decimal(20,2)"), column("bigint", "n")
    for created_by, is_wrong in (("Polars", True), ("parquet-cpp-arrow version 21.0.0", False)):
        file = written(tmp_path / created_by, table, edit=by(created_by))
        assert is_wrong == (ends(file, money) == NEITHER)
        result = read(file, money)
        assert (frozenset({"x"}) if is_wrong else frozenset()) == result.limits.misled
        assert ([ReasonCode.WRONG_METADATA] if is_wrong else []) == [each.code for each in result.problems]
        assert not read(file, number).limits.misled


def test_wrong_bounds_mislead_no_reader_that_takes_no_predicate(tmp_path):
    file = written(tmp_path / "x", pa.table({"x": ["a", "b"]}), edit=by("Polars"))
    results = [read(file, column(each)) for each in ("string", "binary")]
    assert [{"x"}, set()] == [each.limits.misled for each in results]
    assert [NEITHER] * 2 == [ends(file, column(each)) for each in ("string", "binary")]


def test_wrong_page_indexes_leave_bounds_alone(tmp_path):
    file = written(tmp_path / "x", pa.table({"x": ["a", "b"]}), edit=by("ClickHouse version 26.3.3 (build 1f)"))
    assert ("a", "b") == ends(file, column("string"))
    (problem,) = read(file, column("string")).problems
    assert "page index, ClickHouse version 26.3.3 (build 1f)" == problem.detail
    assert {"x"} == read(file, column("string")).limits.misled


# A cut bound of a decimal is another number.
@pytest.mark.parametrize(
    ("is_exact", "is_known"), [(None, True), ((TRUE, True), True), ((FALSE, False), False)], ids=["none", "yes", "no"]
)
@pytest.mark.parametrize("field", [7, 8])
def test_cut_decimals_are_no_bounds(tmp_path, field, is_exact, is_known):
    def mark(metadata: Struct) -> None:
        found = statistics(metadata, 0)
        found.pop(7, None)
        found.pop(8, None)
        if is_exact is not None:
            found[field] = is_exact

    table = pa.table({"x": pa.array([Decimal(1), Decimal(3)], pa.decimal128(20, 2))})
    assert is_known == (ends(written(tmp_path / "x", table, edit=mark), column("decimal(20,2)")) != NEITHER)
    text = written(tmp_path / "text", pa.table({"x": ["a", "b"]}), edit=mark)
    assert ("a", "b") == ends(text, column("string"))
