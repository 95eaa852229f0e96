"""Keys of one type against a column of another: keys that stay, keys that are dropped, pairs that are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

from pruning.errors import InvalidKeysError
from pruning.reasons import Reason, ReasonCode
from pruning.values import encoding as code
from pruning.values.coercion import Coerced, coerce
from pruning.values.domain import Domain
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from tests.pruning.samples import ALL_TYPES, INF, NAN

PARSE = ValueType.parse
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
DAY = 86_400_000_000
HOUR = DAY // 24
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


def _coerced(source: str, column: str, *keys: object) -> Coerced:
    found = coerce(Domain.of(PARSE(source), *keys), PARSE(column), "`k`")
    assert isinstance(found, Coerced)
    return found


@pytest.mark.parametrize(
    ("source", "column", "keys", "kept"),
    [
        # Failure catalogue 75, 78: a key beyond the column's range is dropped; wrapped, it would lose or invent rows.
        pytest.param("bigint", "int", [7, 3_000_000_000], [7], id="bigint-key-beyond-int"),
        pytest.param("bigint", "int", [(1 << 32) + 7], [], id="bigint-key-that-wraps-to-7"),
        pytest.param("bigint", "tinyint", [-129, -128, 127, 128], [-128, 127], id="just-inside-and-just-outside"),
        pytest.param("bigint", "smallint", [LEAST, GREATEST], [], id="ends-of-bigint"),
        # Failure catalogue 77: coerced keys have the column's type, whatever width the keys had.
        pytest.param("int", "bigint", [-(1 << 31), (1 << 31) - 1], [-(1 << 31), (1 << 31) - 1], id="widening"),
        pytest.param("decimal(38,0)", "bigint", [10**20, 5], [5], id="wide-decimal-beyond-bigint"),
        pytest.param("decimal(38,0)", "bigint", [GREATEST, GREATEST + 1], [GREATEST], id="just-beyond-bigint"),
        pytest.param("decimal(38,0)", "bigint", [LEAST, LEAST - 1], [LEAST], id="just-below-bigint"),
        pytest.param("decimal(38,0)", "decimal(18,0)", [10**38 - 1, 10**18 - 1], [10**18 - 1], id="wide-to-narrow"),
        # Failure catalogue 82: literals of another scale.
        pytest.param("decimal(3,1)", "int", [Decimal("1.5"), Decimal("2.0")], [2], id="fraction-against-int"),
        pytest.param(
            "decimal(7,4)", "decimal(5,2)", [Decimal("1.2345"), Decimal("1.2300")], [Decimal("1.23")], id="scale-down"
        ),
        pytest.param("decimal(7,4)", "decimal(5,2)", [Decimal("-1.2301")], [], id="scale-down-below-zero"),
        pytest.param("decimal(5,2)", "decimal(18,4)", [Decimal("-1.23")], [Decimal("-1.2300")], id="scale-up"),
        pytest.param("int", "decimal(5,2)", [7, 1000], [Decimal("7.00")], id="int-beyond-decimal"),
        pytest.param("bigint", "decimal(18,4)", [GREATEST, 3], [Decimal("3.0000")], id="product-beyond-int64"),
        pytest.param("bigint", "decimal(38,10)", [GREATEST], [Decimal(GREATEST)], id="int-to-wide-decimal"),
        pytest.param("float", "int", [1.5, 2.0, 1e30, INF, -INF, NAN], [2], id="float-against-int"),
        pytest.param("double", "tinyint", [-128.0, 127.0, 128.0, 127.5], [-128, 127], id="double-against-tinyint"),
        pytest.param("double", "float", [0.1, 0.5, 1e300], [0.5], id="double-that-is-no-single"),
        pytest.param("int", "float", [3, -7], [3.0, -7.0], id="int-against-float"),
        pytest.param("decimal(5,2)", "double", [Decimal("0.10")], [0.1], id="decimal-against-double"),
        pytest.param(
            "decimal(5,2)", "float", [Decimal("0.10"), Decimal("0.50")], [0.5], id="decimal-that-is-no-single"
        ),
        # Failure catalogue 66: the zeros are one value; the sign on either side does not matter.
        pytest.param("double", "int", [-0.0], [0], id="negative-zero-against-int"),
        pytest.param("double", "float", [-0.0], [0.0], id="negative-zero-against-float"),
        pytest.param("int", "double", [0], [-0.0], id="zero-against-double"),
        pytest.param("timestamp_ntz", "date", [DAY, DAY + 1], [1], id="time-of-day-against-date"),
        pytest.param("timestamp_ntz", "date", [-DAY, -1, -DAY - 1], [-1], id="days-before-1970"),
        pytest.param("date", "timestamp_ntz", [0, -2], [0, -2 * DAY], id="midnights"),
        # Failure catalogue 95: a key that overflows is dropped or saturates; coercion does not raise.
        pytest.param(
            "date", "timestamp_ntz", [106_751_992, -106_751_992, 200_000_000], [], id="days-beyond-timestamps"
        ),
        pytest.param("date", "timestamp_ntz", [106_751_991], [106_751_991 * DAY], id="last-day-of-timestamps"),
    ],
)
def test_exact_coercion_keeps_only_matching_keys(source, column, keys, kept):
    assert Coerced(Domain.of(PARSE(column), *kept), is_exact=True) == _coerced(source, column, *keys)


@pytest.mark.parametrize(
    ("source", "column", "key", "matching", "not_matching"),
    [
        # Spark compares in single precision outside of ANSI mode, and in double precision inside.
        pytest.param("int", "float", 16_777_217, [16_777_216.0], [16_777_218.0], id="int-beside-float"),
        pytest.param(
            *("bigint", "float", (1 << 60) + (1 << 36) + 1, [float((1 << 60) + (1 << 37))], [float(1 << 61)]),
            id="one-rounding-not-two",
        ),
        pytest.param("float", "bigint", 2.0**24, [1 << 24, (1 << 24) + 1], [(1 << 24) - 2], id="float-beside-bigint"),
        pytest.param("double", "bigint", 2.0**63, [GREATEST, GREATEST - 511], [GREATEST - 2048], id="two-to-the-63"),
        pytest.param(
            *("double", "decimal(38,10)", 0.1, [Decimal("0.1")], [Decimal("0.1000000001")]), id="double-beside-decimal"
        ),
        pytest.param("double", "decimal(5,2)", 0.1, [Decimal("0.10")], [Decimal("0.11")], id="double-beside-scale-2"),
    ],
)
def test_rounding_moves_ends_outward(source, column, key, matching, not_matching):
    found = _coerced(source, column, key)
    assert (True, False) == (all(map(found.domain.contains, matching)), any(map(found.domain.contains, not_matching)))
    assert not found.is_exact


@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        # Failure catalogue 96, 98: the session's time zone is not known, and historical offsets have seconds.
        pytest.param("Etc/GMT+12", dt.timedelta(hours=-12), id="west"),
        pytest.param("Pacific/Kiritimati", dt.timedelta(hours=14), id="east"),
        pytest.param("Europe/Stockholm", dt.timedelta(minutes=53, seconds=28), id="stockholm-1850"),
        pytest.param("Asia/Manila", -dt.timedelta(hours=15, minutes=56), id="manila-1844"),
        pytest.param("+18:00", dt.timedelta(hours=18), id="farthest"),
    ],
)
@pytest.mark.parametrize("day", [dt.date(1850, 6, 1), dt.date(1582, 10, 14), dt.date(2038, 1, 19)], ids=str)
def test_dates_and_timestamps_match_in_any_time_zone(zone, offset, day):
    midnight = dt.datetime(day.year, day.month, day.day, tzinfo=dt.timezone(offset, zone))
    local = midnight.replace(tzinfo=None)
    assert _coerced("date", "timestamp", day).domain.contains(midnight)
    assert _coerced("timestamp", "date", midnight).domain.contains(day)
    assert _coerced("timestamp_ntz", "timestamp", local).domain.contains(midnight)
    assert _coerced("timestamp", "timestamp_ntz", midnight).domain.contains(local)


def test_nothing_matches_beyond_the_farthest_time_zone():
    found = _coerced("date", "timestamp", 0)
    assert (Domain.between(PARSE("timestamp"), -18 * HOUR, 18 * HOUR), False) == (found.domain, found.is_exact)


@pytest.mark.parametrize("column", ["timestamp_ntz", "date"])
@pytest.mark.parametrize("key", [LEAST, GREATEST], ids=["least", "greatest"])
def test_time_zone_margin_saturates_at_int64(column, key):
    # Failure catalogue 95: a bound moved past int64 would wrap around.
    found = _coerced("timestamp", column, key).domain
    assert found.contains(key if column == "timestamp_ntz" else key // DAY + (key < 0))
    assert not found.contains(0)


@pytest.mark.parametrize(
    ("source", "column", "low", "high", "expected", "is_exact"),
    [
        pytest.param("bigint", "int", 0, 1 << 40, (0, (1 << 31) - 1), True, id="cut-above"),
        pytest.param("bigint", "int", LEAST, GREATEST, (-(1 << 31), (1 << 31) - 1), True, id="cut-at-both-ends"),
        pytest.param("decimal(5,2)", "int", Decimal("1.01"), Decimal("3.99"), (2, 3), True, id="fractions-move-inward"),
        pytest.param("decimal(5,2)", "int", Decimal("-3.99"), Decimal("-1.01"), (-3, -2), True, id="below-zero"),
        pytest.param("int", "decimal(5,2)", 1, 3, (Decimal(1), Decimal(3)), False, id="finer-column"),
        pytest.param("float", "double", 1.0, 2.0, (1.0, 2.0), False, id="single-to-double"),
        pytest.param("double", "float", 1.0, 2.0, (1.0, 2.0), True, id="double-to-single"),
        pytest.param("double", "int", -INF, 5.5, (-(1 << 31), 5), False, id="from-minus-infinity"),
        pytest.param("date", "timestamp_ntz", 0, 2, (0, 2 * DAY), False, id="between-midnights"),
        pytest.param("timestamp_ntz", "date", 1, 2 * DAY - 1, (1, 1), True, id="midnights-within"),
    ],
)
def test_ranges_coerce_as_their_values_do(source, column, low, high, expected, is_exact):
    found = coerce(Domain.between(PARSE(source), low, high), PARSE(column), "`k`")
    assert Coerced(Domain.between(PARSE(column), *expected), is_exact) == found


@pytest.mark.parametrize(
    ("source", "column", "low", "high"),
    [
        pytest.param("decimal(5,2)", "int", Decimal("1.01"), Decimal("1.99"), id="between-two-integers"),
        pytest.param("bigint", "tinyint", 128, 1 << 40, id="beyond-the-column"),
        pytest.param("double", "bigint", 1e19, INF, id="beyond-bigint"),
        pytest.param("double", "bigint", -INF, -1e19, id="below-bigint"),
        pytest.param("timestamp_ntz", "date", 1, DAY - 1, id="within-one-day"),
        pytest.param("date", "timestamp", 1 << 30, 1 << 31, id="after-the-end-of-time"),
    ],
)
def test_range_without_a_matching_value_becomes_empty(source, column, low, high):
    found = coerce(Domain.between(PARSE(source), low, high), PARSE(column), "`k`")
    assert found.domain.is_none


def test_decimals_between_two_integer_keys_make_coercion_inexact():
    # 1 and 2 lie in one range, in which decimal(5,2) has 1.50 as well.
    found = _coerced("int", "decimal(5,2)", 1, 2)
    assert (True, False) == (found.domain.contains(Decimal("1.50")), found.is_exact)


def test_open_range_of_wide_decimals_stays_open():
    keys = Domain.between(PARSE("decimal(30,0)"), 5, None)
    found = coerce(keys, PARSE("decimal(32,2)"), "`k`")
    assert (True, False) == (found.domain.contains(10**29), found.domain.contains(4))


@pytest.mark.parametrize("column", ["bigint", "decimal(38,4)"])
def test_keys_of_several_blocks_keep_their_order(column):
    # Wide decimals are coerced 65,536 at a time.
    unscaled = np.arange(66_000) * 10_000
    keys = code.encode(PARSE("decimal(30,4)"), [Decimal(int(each)).scaleb(-4) for each in unscaled])
    found = coerce(Domain.of_codes(PARSE("decimal(30,4)"), keys), PARSE(column), "`k`")
    assert isinstance(found, Coerced)
    expected = Domain.of(PARSE(column), *range(66_000))
    assert (expected, True) == (found.domain, found.is_exact)


def test_integers_that_fit_are_not_copied():
    keys = RangeSet.of_codes(PARSE("int"), np.arange(0, 300_000, 3))
    found = coerce(Domain(keys), PARSE("bigint"), "`k`")
    assert isinstance(found, Coerced)
    assert (keys.lows is found.domain.ranges.lows, True) == (True, found.domain.ranges.is_points)


@pytest.mark.parametrize(
    ("source", "column"),
    [
        pytest.param("decimal(38,0)", "decimal(38,10)", id="48-digits"),
        pytest.param("bigint", "decimal(38,20)", id="40-digits"),
        pytest.param("decimal(38,38)", "int", id="int-beside-fractions"),
    ],
)
def test_decimals_without_a_common_type_give_a_reason(source, column):
    # Spark would cut digits of both sides, so different keys could become equal.
    found = coerce(Domain.of(PARSE(source), 0), PARSE(column), "`k`")
    assert isinstance(found, Reason)
    assert (ReasonCode.INEXACT_CAST, "`k`") == (found.code, found.subject)
    assert f"{source} and {column}" in found.detail


_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}
_MOMENTS = {"date", "timestamp", "timestamp_ntz"}


@pytest.mark.parametrize("column", ALL_TYPES, ids=str)
@pytest.mark.parametrize("source", ALL_TYPES, ids=str)
def test_types_that_do_not_compare_are_refused(source, column):
    # Failure catalogue 76: comparing text with any other type needs a cast, which changes the order.
    kinds = [name for name in (_NUMBERS, _MOMENTS) if source.name in name and column.name in name]
    if kinds or source == column:
        assert isinstance(coerce(Domain.none(source), column, "`k`"), Coerced | Reason)
    else:
        with pytest.raises(InvalidKeysError, match=r"Cannot compare keys of .* with column `k` of .*: cast the keys"):
            coerce(Domain.none(source), column, "`k`")


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_keys_of_the_column_type_stay_unchanged(type_):
    keys = Domain.all(type_)
    assert Coerced(keys, is_exact=True) == coerce(keys, type_, "`k`")
