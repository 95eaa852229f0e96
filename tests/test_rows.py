"""Rows are equal just where the table in `sample_data/rows.py` says so."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import Row

from sample_data.rows import Moment, Rows, arrow_rows, by_value, difference, ordered, unmatched

NAN = float("nan")
NOON = datetime(2020, 1, 1, 12)  # noqa: DTZ001 - without a zone
UTC_NOON = NOON.replace(tzinfo=timezone.utc)
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("one", "other", "is_exact", "has_value"),
    [
        (None, None, True, True),
        (None, 0, False, False),
        (None, "None", False, False),
        (NAN, float("nan"), True, True),
        (NAN, None, False, False),
        (NAN, "nan", False, False),
        (0.0, -0.0, False, True),
        (0.1 + 0.2, 0.3, False, False),
        (math.nextafter(1.0, 2.0), 1.0, False, False),
        (1, 1.0, False, True),
        (1, Decimal(1), False, True),
        (1, True, False, False),
        (1, "1", False, False),
        (Decimal("1.50"), Decimal("1.50"), True, True),
        (Decimal("1.50"), Decimal("1.5"), False, True),
        (Decimal("1.50"), Decimal("1.51"), False, False),
        ("a", "a ", False, False),
        ("a", b"a", False, False),
        (b"a", bytearray(b"a"), True, True),
        (date(2020, 1, 1), datetime(2020, 1, 1), False, False),  # noqa: DTZ001 - without a zone
        (NOON, UTC_NOON, False, True),
        (NOON, NOON + timedelta(microseconds=1), False, False),
        (UTC_NOON, datetime(2020, 1, 1, 14, tzinfo=EAST), True, True),
        (NOON, NOON.replace(fold=1), False, True),
        (NOON, Moment.of(NOON), True, True),
        ([1, None], [1, None], True, True),
        ([1, 2], [2, 1], False, False),
        ([0.0], [-0.0], False, True),
        ({"a": 1}, {"a": 1}, True, True),
        ({"a": 1}, {"b": 1}, False, False),
        ({"a": NAN}, {"a": NAN}, True, True),
        (Row(a=1), Row(a=1), True, True),
        (Row(a=1), Row(b=1), False, True),
    ],
    ids=repr,
)
def test_values_are_equal_where_their_form_says_so(one, other, is_exact, has_value):
    assert is_exact is (Rows([(one,)]) == Rows([(other,)]))
    assert is_exact is (Rows([(other,)]) == [(one,)])
    assert has_value is (Rows([(one,)], by_value) == Rows([(other,)], by_value))


def test_order_does_not_matter_and_duplicates_count():
    once, twice = Rows([(1, "a"), (2, "b")]), Rows([(2, "b"), (1, "a"), (2, "b")])
    assert once == [(2, "b"), (1, "a")]
    assert once != twice
    assert (1, 0) == (len(twice - once), len(once - twice))
    assert [(2, "b")] == twice - once
    assert list(once) == [(1, "a"), (2, "b")]
    assert once != [(1, "a"), (2, "c")]
    assert once != [(1,), (2,)]


def test_order_is_compared_where_it_is_asked_for():
    assert ordered([(1, NAN), (2, 0.0)]) == ordered([(1, NAN), (2, 0.0)])
    assert ordered([(1,), (2,)]) != ordered([(2,), (1,)])
    assert ordered([(0.0,)]) != ordered([(-0.0,)])
    assert ordered([(0.0,)], by_value) == ordered([(-0.0,)], by_value)


def test_rows_by_different_forms_are_not_compared():
    with pytest.raises(ValueError, match="rows by exact with rows by by_value"):
        assert Rows([(1,)]) == Rows([(1,)], by_value)


def test_no_row_is_the_partner_of_two():
    assert ([(1,)], [(2,)]) == unmatched([(1,), (1,), (3,)], [(3,), (1,), (2,)])
    near = {0: lambda one, other: abs(one - other) < 2}
    assert ([], []) == unmatched([(1.0,), (2.0,)], [(2.5,), (0.5,)], near=near)
    assert ([(2.0,)], [(9.0,)]) == unmatched([(1.0,), (2.0,)], [(1.5,), (9.0,)], near=near)


def test_near_columns_do_not_forgive_the_others():
    near = {1: lambda one, other: abs(one - other) < 1}
    assert "" == difference({"a": [("x", 1.0)], "b": [("x", 1.5)]}, near=near)
    found = difference({"a": [("x", 1.0)], "b": [("y", 1.0)]}, near=near)
    assert "1 rows of a alone: ('x', 1.0); 1 of b alone: ('y', 1.0)" == found


def test_rows_of_arrow_are_those_of_python():
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "f": pa.array([-0.0, NAN], pa.float32()),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(7, 2)),
            "at": pa.array([UTC_NOON, None], pa.timestamp("us", "Asia/Tokyo")),
            "clock": pa.array([NOON, None], pa.timestamp("ns")),
            "list": pa.array([[1, None], None], pa.list_(pa.int32())),
            "struct": pa.array([{"x": "y"}, None], pa.struct({"x": pa.string()})),
        }
    )
    expected = [
        (1, -0.0, Decimal("1.50"), UTC_NOON, NOON, [1, None], {"x": "y"}),
        (None, NAN, None, None, None, None, None),
    ]
    assert Rows(expected) == Rows(arrow_rows(table))
    assert ordered(expected) == ordered(arrow_rows(table))


def test_arrow_has_moments_that_python_has_not():
    (row,) = arrow_rows(pa.table({"at": pa.array([1 << 62], pa.timestamp("us"))}))
    assert (Moment(1 << 62, has_zone=False),) == row


def test_a_failed_comparison_names_the_rows_that_one_side_has(pytestconfig):
    (found,) = pytestconfig.hook.pytest_assertrepr_compare(
        config=pytestconfig, op="==", left=Rows([(1,), (2,)]), right=[(2,)]
    )[:1]
    assert ["2 rows == 1 rows", "1 rows of left alone: (1,); 0 of right alone: "] == found
