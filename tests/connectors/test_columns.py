from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from connectors.columns import resolve, split_name
from pruning.errors import ColumnNotFoundError

SCHEMA = StructType(
    [
        StructField("Id", LongType()),
        StructField("a.b", IntegerType()),
        StructField("we`ird", IntegerType()),
        StructField("s", StructType([StructField("x", LongType()), StructField("y.z", LongType())])),
        StructField("code", StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}),
        StructField("word", StringType("UTF8_LCASE")),
        StructField("list", ArrayType(IntegerType())),
    ]
)


def found(name, *, case_sensitive=False):
    return resolve(SCHEMA, name, table="t", case_sensitive=case_sensitive)


@pytest.mark.parametrize(
    ("wanted", "path", "sql"),
    [
        ("id", ("Id",), "`Id`"),
        ("`a.b`", ("a.b",), "`a.b`"),
        ("`we``ird`", ("we`ird",), "`we``ird`"),
        ("s.x", ("s", "x"), "`s`['x']"),
        ("S.`y.z`", ("s", "y.z"), "`s`['y.z']"),
    ],
    ids=["case", "dotted name", "backtick", "nested", "nested dotted name"],
)
def test_names_resolve_to_the_spelling_of_the_schema(wanted, path, sql):
    column = found(wanted)
    assert (path, sql) == (column.path, column.sql)
    assert column == found(column.name)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("a.b", "goes in backticks, such as `a.b`"),
        ("idd", "did you mean 'Id'"),
        ("s.q", "No column 's.q' in t"),
        ("Id.x", "it has no fields there"),
        ("`open", "Cannot read the column name"),
        ("back`tick", "a name that holds a backtick is written '`back``tick`'"),
        ("", "Cannot read the column name"),
        ("x'; DROP TABLE t; --\n", "No column"),
    ],
)
def test_missing_columns_are_named_with_a_hint(wanted, message):
    with pytest.raises(ColumnNotFoundError, match=message):
        found(wanted)


def test_case_matters_only_in_case_sensitive_sessions():
    with pytest.raises(ColumnNotFoundError):
        found("id", case_sensitive=True)
    both = StructType([StructField("k", LongType()), StructField("K", LongType())])
    with pytest.raises(ColumnNotFoundError, match="Cannot tell which column"):
        resolve(both, "k", table="t", case_sensitive=False)
    assert ("K",) == resolve(both, "K", table="t", case_sensitive=True).path


@pytest.mark.parametrize(
    ("name", "code"),
    [("code", "CHAR_PADDED"), ("word", "COLLATED"), ("list", "UNSUPPORTED_TYPE"), ("s", "UNSUPPORTED_TYPE")],
)
def test_columns_without_usable_statistics_have_a_reason(name, code):
    column = found(name)
    assert column.type is None
    assert code == column.refusal.code.name


def test_split_keeps_newlines_and_quotes():
    assert ("a'b\nc", '"') == split_name("`a'b\nc`.`\"`")
