"""Range sets: construction, simplification, listing and text."""

from __future__ import annotations

import numpy as np
import pytest

from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from tests.pruning.samples import ALL_TYPES, INF

BIGINT, STRING, DOUBLE, DATE = (ValueType(name) for name in ("bigint", "string", "double", "date"))
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


def _of(type_: ValueType, *pairs: tuple) -> RangeSet:
    lows, highs = (code.encode(type_, [pair[end] for pair in pairs]) for end in (0, 1))
    return RangeSet.of_ranges(type_, lows, highs)


def _points(type_: ValueType, *values: object) -> RangeSet:
    return RangeSet.of_codes(type_, code.encode(type_, values))


def _pairs(ranges: RangeSet) -> list[tuple]:
    return list(zip(code.decode(ranges.type, ranges.lows), code.decode(ranges.type, ranges.highs), strict=True))


@pytest.mark.parametrize(
    ("type_", "pairs", "expected"),
    [
        pytest.param(BIGINT, [(5, 9), (1, 3), (4, 4)], [(1, 9)], id="touching-integers-are-one"),
        pytest.param(BIGINT, [(5, 9), (1, 3)], [(1, 3), (5, 9)], id="sorted"),
        pytest.param(BIGINT, [(3, 1)], [], id="inverted-is-empty"),
        pytest.param(BIGINT, [(3, 1), (7, 7)], [(7, 7)], id="inverted-among-others"),
        pytest.param(BIGINT, [(LEAST, GREATEST)], [(LEAST, GREATEST)], id="everything"),
        pytest.param(STRING, [("a", "c"), ("b", "d")], [("a", "d")], id="overlapping-text"),
        pytest.param(STRING, [("a", "a"), ("a\0", "b")], [("a", "a"), ("a\0", "b")], id="text-never-touches"),
        pytest.param(STRING, [("b", "a"), ("b", "b")], [("b", "b")], id="inverted-text"),
        pytest.param(DOUBLE, [(-0.0, 1.0), (-1.0, 0.0)], [(-1.0, 1.0)], id="zeros-meet"),
        pytest.param(DOUBLE, [(INF, INF), (1e300, 1.7976931348623157e308)], [(1e300, INF)], id="infinity-follows"),
    ],
)
def test_unordered_ranges_are_normalized(type_, pairs, expected):
    assert expected == _pairs(_of(type_, *pairs))


@pytest.mark.parametrize("type_", [BIGINT, STRING, DOUBLE], ids=str)
def test_points_share_one_array_for_both_bounds(type_):
    values = {"bigint": (3, 7, 3), "string": ("x", "y", "x"), "double": (0.5, 7.0, 0.5)}[type_.name]
    ranges = _points(type_, *values)
    assert (2, True, True) == (len(ranges), ranges.is_points, ranges.highs is ranges.lows)
    same = _of(type_, *((value, value) for value in values))
    assert (ranges, True) == (same, same.is_points)


def test_all_is_not_a_point():
    assert not RangeSet.all(STRING).is_points
    assert RangeSet.all(STRING).point_count() is None


@pytest.mark.parametrize(
    ("ranges", "count"),
    [
        pytest.param(_of(BIGINT, (1, 4), (9, 9)), 5, id="integers"),
        pytest.param(RangeSet.all(BIGINT), 1 << 64, id="all-integers"),
        pytest.param(_points(DOUBLE, 1.5, 2.5), 2, id="floats"),
        pytest.param(_of(DOUBLE, (1.5, 2.5)), None, id="range-of-floats"),
        pytest.param(_points(STRING, "a", "b"), 2, id="text"),
        pytest.param(_of(STRING, ("a", "b")), None, id="range-of-text"),
        pytest.param(RangeSet.none(STRING), 0, id="no-text"),
        pytest.param(RangeSet.none(BIGINT), 0, id="no-integers"),
    ],
)
def test_point_count_of_listable_ranges(ranges, count):
    assert count == ranges.point_count()


def test_points_list_integers_of_a_range():
    assert [1, 2, 3, 9] == _of(BIGINT, (9, 9), (1, 3)).points().tolist()


def test_points_of_string_ranges_are_refused():
    with pytest.raises(TypeError, match="Cannot list the values of string ranges"):
        _of(STRING, ("a", "b")).points()


def test_simplify_keeps_the_widest_gaps():
    ranges = _points(BIGINT, LEAST, 0, 10, 11, 500, GREATEST)
    assert [(LEAST, LEAST), (0, 500), (GREATEST, GREATEST)] == _pairs(ranges.simplify(3))
    assert [(LEAST, LEAST), (0, 11), (500, 500), (GREATEST, GREATEST)] == _pairs(ranges.simplify(4))


def test_simplify_spreads_gaps_between_strings_evenly():
    # Distances between strings have no meaning, so each range gets an equal share of the strings.
    ranges = _points(STRING, *(chr(ord("a") + number) for number in range(16)))
    widths = [ord(high) - ord(low) + 1 for low, high in _pairs(ranges.simplify(4))]
    assert [4, 4, 4, 4] == widths


@pytest.mark.parametrize("most", [0, -1])
def test_simplify_to_no_ranges_is_refused(most):
    with pytest.raises(ValueError, match=f"Cannot simplify to {most} ranges: at least one is needed"):
        _points(BIGINT, 1, 5).simplify(most)


def test_simplify_keeps_an_open_end():
    ranges = _points(STRING, "a", "c", "e").union(
        RangeSet(STRING, code.encode(STRING, ["g"]), code.encode(STRING, ["g"]), unbounded=True)
    )
    for simple in (ranges.simplify(1), ranges.simplify(2), ranges.span(), ranges.bridged(np.array([2]))):
        assert simple.contains(code.encode(STRING, ["zzz"])).tolist() == [True]


@pytest.mark.parametrize("operation", ["union", "intersect", "overlaps", "contains_all"])
def test_ranges_of_different_types_do_not_combine(operation):
    with pytest.raises(ValueError, match="Cannot combine ranges of bigint and int: coerce one to the other's type"):
        getattr(_points(BIGINT, 1), operation)(_points(ValueType("int"), 1))


def test_ranges_of_different_types_are_unequal():
    assert RangeSet.none(BIGINT) != RangeSet.none(ValueType("int"))
    assert RangeSet.none(BIGINT) != "none"


@pytest.mark.parametrize(
    ("ranges", "shown"),
    [
        pytest.param(_of(BIGINT, (1, 3), (7, 7)), "{[1, 3], 7}", id="integers"),
        pytest.param(RangeSet.none(STRING), "{}", id="none"),
        pytest.param(RangeSet.all(STRING), "{[, ...)}", id="all-text"),
        pytest.param(RangeSet.all(DATE), "{(..., ...)}", id="all-dates"),
        pytest.param(_of(DATE, (LEAST, 0)), "{(..., 1970-01-01]}", id="open-below"),
        pytest.param(_of(DATE, (0, GREATEST)), "{[1970-01-01, ...)}", id="open-above"),
        pytest.param(_points(BIGINT, *range(0, 20, 2)), "{0, 2, 4, 6, ... 6 more}", id="many"),
        pytest.param(_points(STRING, "k" * 99), "{" + "k" * 37 + "...}", id="long-text"),
    ],
)
def test_text_of_a_range_set_is_short(ranges, shown):
    assert (shown, f"RangeSet[{ranges.type}]{shown}") == (str(ranges), repr(ranges))


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_intersection_with_all_returns_the_same_object(type_):
    ranges = RangeSet.all(type_).union(RangeSet.none(type_))
    assert ranges.intersect(RangeSet.all(type_)) is ranges


def test_nbytes_counts_a_shared_array_once():
    assert (16, 32) == (_points(BIGINT, 1, 5).nbytes, _of(BIGINT, (1, 2), (5, 6)).nbytes)
    packed = ByteStrings.of([b"ab"])
    assert packed.nbytes == RangeSet(STRING, packed, packed).nbytes
