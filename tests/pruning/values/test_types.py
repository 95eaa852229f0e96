"""`ValueType` parsed from Spark's type names."""

from __future__ import annotations

import pytest

from pruning.errors import UnsupportedTypeError
from pruning.values.types import Physical, ValueType
from tests.pruning.samples import ALL_TYPES


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_type_parses_its_own_name(type_):
    assert type_ == ValueType.parse(str(type_))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("long", "bigint", id="long"),
        pytest.param("integer", "int", id="integer"),
        pytest.param("short", "smallint", id="short"),
        pytest.param("byte", "tinyint", id="byte"),
        pytest.param("real", "float", id="real"),
        pytest.param("decimal(10, 2)", "decimal(10,2)", id="decimal-with-space"),
    ],
)
def test_aliases_of_type_names(text, expected):
    assert expected == str(ValueType.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        *("array<int>", "map<string,int>", "struct<a:int>", "variant", "void", "interval day to second", "time(6)"),
        # Failure catalogue 80, 87: these types compare by other rules than the bytes that statistics describe.
        *("string collate UTF8_LCASE", "char(5)", "varchar(5)"),
        *("", "INT", "decimal", "decimal()", "decimal(10,2"),
        *("decimal(0,0)", "decimal(39,0)", "decimal(5,6)", "decimal(5,-2)"),
    ],
)
def test_type_without_the_order_of_statistics_is_refused(text):
    with pytest.raises(UnsupportedTypeError, match="Cannot prune by type"):
        ValueType.parse(text)


@pytest.mark.parametrize(
    ("text", "physical", "is_float", "is_integer", "is_exact_number", "has_density"),
    [
        pytest.param("tinyint", Physical.INT64, False, True, True, True, id="tinyint"),
        pytest.param("bigint", Physical.INT64, False, True, True, True, id="bigint"),
        pytest.param("boolean", Physical.INT64, False, False, False, True, id="boolean"),
        pytest.param("date", Physical.INT64, False, False, False, True, id="date"),
        pytest.param("timestamp", Physical.INT64, False, False, False, True, id="timestamp"),
        pytest.param("float", Physical.INT64, True, False, False, False, id="float"),
        pytest.param("double", Physical.INT64, True, False, False, False, id="double"),
        pytest.param("decimal(18,4)", Physical.INT64, False, False, True, True, id="decimal-in-64-bits"),
        pytest.param("decimal(19,0)", Physical.BYTES, False, False, True, False, id="decimal-beyond-64-bits"),
        pytest.param("string", Physical.BYTES, False, False, False, False, id="string"),
        pytest.param("binary", Physical.BYTES, False, False, False, False, id="binary"),
    ],
)
def test_properties_of_types(text, physical, is_float, is_integer, is_exact_number, has_density):
    type_ = ValueType.parse(text)
    assert (physical, is_float, is_integer) == (type_.physical, type_.is_float, type_.is_integer)
    assert (is_exact_number, has_density) == (type_.is_exact_number, type_.has_density)
