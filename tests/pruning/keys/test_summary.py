from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.keys import key_set as key_sets
from pruning.keys import sketch as sketches
from pruning.keys.builder import IncompleteBuildError, KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.keys.sketch import KeySketch
from pruning.keys.summary import KeyRows
from pruning.keys.xxhash64 import hash_codes
from pruning.values import encoding as code
from pruning.values.byte_strings import ByteStrings
from pruning.values.domain import Domain
from pruning.values.types import Physical, ValueType
from tests.pruning.strategies import ALL_TYPES, values

NAN = float("nan")
BIGINT, DOUBLE, STRING = ValueType("bigint"), ValueType("double"), ValueType("string")
AMPLE = KeyLimits(keys=1000, nbytes=1 << 20, fpp=0.01)
LIMITS = (AMPLE, KeyLimits(1, 1 << 20, 0.01), KeyLimits(3, 1 << 20, 0.3), KeyLimits(1000, 40, 0.01))
LONG_DECIMAL = ValueType("decimal", 38, 2)


@dataclass
class Column:
    type: ValueType
    codes: Any
    valid: Any
    nan: Any


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def column(type_, items):
    filler = code.decode(type_, ByteStrings.of([b"\x80" * 16]))[0] if type_.physical is Physical.BYTES else 0
    if type_.name == "string":
        filler = "any"
    valid = [item is not None and not is_nan(item) for item in items]
    codes = code.encode(type_, [item if there else filler for item, there in zip(items, valid, strict=True)])
    return Column(type_, codes, np.array(valid, bool), np.array([is_nan(item) for item in items], bool))


def partition(types, rows, limits, index=0, batches=1):
    builder = KeyBuilder(types, limits)
    for start in range(batches):
        batch = rows[start::batches]
        builder.add([column(type_, [row[at] for row in batch]) for at, type_ in enumerate(types)])
    builder.close(index)
    return builder


def summary(types, rows, limits=AMPLE):
    return partition(types, rows, limits).finish(1, source="test")


def keys(type_, items, limits=AMPLE):
    return summary([type_], [(item,) for item in items], limits)


def cells(type_):
    special = st.sampled_from([None, NAN]) if type_.is_float else st.none()
    return st.one_of(values(type_), values(type_), values(type_), special)


@st.composite
def builds(draw, most_columns=2):
    """Key types, and rows that partly repeat."""
    types = draw(st.lists(st.sampled_from(ALL_TYPES), min_size=1, max_size=most_columns))
    rows = draw(st.lists(st.tuples(*map(cells, types)), max_size=12))
    repeated = draw(st.lists(st.sampled_from(rows), max_size=4)) if rows else []
    return types, rows + repeated


def complete(rows):
    return [row for row in rows if None not in row]


def canonical(type_, value):
    return "NaN" if is_nan(value) else code.decode(type_, code.encode(type_, [value]))[0]


@given(
    builds(), st.sampled_from(LIMITS), st.sampled_from([0, 64, 1 << 20]), st.sampled_from([2, 3, 1 << 14]), st.data()
)
def test_summary_is_independent_of_partitions_and_merge_order(build, limits, buffer, ranges, data):
    types, rows = build
    count = data.draw(st.integers(1, 4), "partitions")
    homes = [data.draw(st.integers(0, count - 1)) for _ in rows]
    order = data.draw(st.permutations(range(count)), "order")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketches, "_COARSE_RANGES", ranges)
        whole = summary(types, rows, limits)
        patch.setattr(key_sets, "_BUFFER_BYTES", buffer)
        merged = KeyBuilder(types, limits)
        for index in order:
            own = [row for row, home in zip(rows, homes, strict=True) if home == index]
            part = partition(types, own, limits, index, batches=data.draw(st.integers(1, 3)))
            merged.merge(KeyBuilder.from_bytes(part.to_bytes()) if data.draw(st.booleans()) else part)
        assert whole == merged.finish(count, source="test")


@given(builds(most_columns=3), st.sampled_from(LIMITS))
def test_summary_holds_every_key_and_counts_every_row(build, limits):
    types, rows = build
    result = summary(types, rows, limits)
    matchable = complete(rows)
    assert (len(rows), len(rows) - len(matchable)) == (result.rows, result.null_rows)
    assert result.is_none is (len(matchable) == 0)
    for at, (type_, key) in enumerate(zip(types, result.columns, strict=True)):
        exact = Domain.of(type_, *[row[at] for row in matchable])
        assert sum(row[at] is None for row in rows) == key.nulls
        assert sum(is_nan(row[at]) for row in rows) == key.nans
        assert exact == key.domain if result.exact else key.domain.contains_all(exact)
        assert exact.nan is key.domain.nan
        assert key.domain.ranges.span() == exact.ranges.span()
    if result.exact:
        distinct = {tuple(canonical(*cell) for cell in zip(types, row, strict=True)) for row in matchable}
        assert len(distinct) == result.distinct
    if result.bloom is not None:
        codes = [row_codes(type_, [row[at] for row in matchable]) for at, type_ in enumerate(types)]
        assert result.bloom.might_contain(key_sets.row_hashes(types, tuple(codes))).all()


def row_codes(type_, items):
    found = column(type_, items)
    return np.where(found.nan, key_sets.NAN_CODE, found.codes) if type_.is_float else found.codes


@given(builds(), st.sampled_from(LIMITS), st.data())
def test_more_keys_only_widen(build, limits, data):
    types, rows = build
    some = summary(types, rows[: data.draw(st.integers(0, len(rows)))], limits)
    more = summary(types, rows, limits)
    for before, after in zip(some.domains, more.domains, strict=True):
        assert after.contains_all(before)


@given(builds(), st.integers(1, 4))
def test_tighter_limits_only_widen(build, limit):
    types, rows = build
    exact, loose = summary(types, rows), summary(types, rows, KeyLimits(limit, 1 << 20, 0.01))
    for before, after in zip(exact.domains, loose.domains, strict=True):
        assert after.contains_all(before)
    assert loose.exact is (exact.distinct <= limit)


@given(builds(), st.sampled_from(LIMITS))
def test_hash_collisions_lose_no_key(build, limits):
    types, rows = build
    expected = summary(types, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_sets, "row_hashes", lambda _, codes: np.zeros(len(codes[0]), np.uint64))
        found = summary(types, rows, limits)
    for before, after in zip(expected.domains, found.domains, strict=True):
        assert after.contains_all(before)
    assert not found.exact or (expected.distinct, expected.key_rows) == (found.distinct, found.key_rows)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], Domain.none(DOUBLE)),
        ([None, None], Domain.none(DOUBLE)),
        ([NAN, NAN, None], Domain.of(DOUBLE, NAN)),
        ([-0.0, 0.0, float("inf"), NAN], Domain.of(DOUBLE, 0.0, float("inf"), NAN)),
    ],
    ids=["empty", "only NULL", "only NaN", "zeros and NaN"],
)
def test_null_never_matches_and_nan_is_one_value(items, expected):
    result = keys(DOUBLE, items)
    assert (expected,) == result.domains
    assert len({canonical(DOUBLE, item) for item in items if item is not None}) == result.distinct


def test_row_with_null_is_counted_and_in_no_domain():
    result = summary([BIGINT, STRING], [(1, "a"), (2, None), (None, None), (1, "a")])
    assert (Domain.of(BIGINT, 1), Domain.of(STRING, "a")) == result.domains
    assert ([1, 2], 2, 1) == ([key.nulls for key in result.columns], result.null_rows, result.distinct)


def test_key_rows_of_several_columns_are_sorted():
    result = summary([DOUBLE, STRING], [(NAN, "b"), (2.0, "a"), (NAN, "b"), (-0.0, "c"), (0.0, "c"), (2.0, None)])
    assert result.key_rows is not None
    numbers, texts = result.key_rows.columns
    np.testing.assert_array_equal([0.0, 2.0, NAN], code.float_values(numbers))
    assert ["c", "a", "b"] == code.decode(STRING, texts)
    assert 3 == result.distinct


def test_column_within_limits_stays_exact_if_rows_are_not():
    limits = KeyLimits(keys=50, nbytes=1 << 20, fpp=0.01)
    result = summary([BIGINT, BIGINT], [(n % 10, n) for n in range(100)], limits)
    assert Domain.of(BIGINT, *range(10)) == result.domains[0]
    assert (None, None, False) == (result.distinct, result.key_rows, result.exact)


# Failure catalogue 32: keys of only some rows are no filter.
@pytest.mark.parametrize("partitions", [0, 2], ids=["too many", "too few"])
def test_partial_build_gives_no_summary(partitions):
    builder = partition([BIGINT], [(1,)], AMPLE)
    with pytest.raises(IncompleteBuildError, match=f"expected {partitions} partitions, found 1"):
        builder.finish(partitions, source="test")


def test_missing_partition_is_noticed_despite_right_count():
    builder = partition([BIGINT], [(1,)], AMPLE, index=0)
    builder.merge(partition([BIGINT], [(2,)], AMPLE, index=2))
    with pytest.raises(IncompleteBuildError):
        builder.finish(2, source="test")


def test_partition_counts_once():
    builder = partition([BIGINT], [(1,)], AMPLE)
    with pytest.raises(IncompleteBuildError, match=r"found \[0\] again"):
        builder.merge(partition([BIGINT], [(1,)], AMPLE))
    with pytest.raises(IncompleteBuildError, match="Cannot report partition 0"):
        builder.close(0)


def test_open_partition_cannot_be_published():
    builder = KeyBuilder([BIGINT], AMPLE)
    builder.add([column(BIGINT, [1])])
    with pytest.raises(IncompleteBuildError, match="not closed"):
        builder.finish(0, source="test")
    with pytest.raises(IncompleteBuildError, match="not closed"):
        builder.to_bytes()
    with pytest.raises(IncompleteBuildError, match="not closed"):
        KeyBuilder([BIGINT], AMPLE).merge(builder)


def test_build_without_partitions_is_empty():
    result = KeyBuilder([BIGINT], AMPLE).finish(0, source="test")
    assert (0, 0, True, True) == (result.rows, result.distinct, result.is_none, result.exact)


@pytest.mark.parametrize("other", [([STRING], AMPLE), ([BIGINT], LIMITS[1])], ids=["types", "limits"])
def test_builders_of_other_types_or_limits_do_not_merge(other):
    with pytest.raises(ValueError, match="Cannot merge keys"):
        KeyBuilder([BIGINT], AMPLE).merge(KeyBuilder(*other))


def test_batch_of_other_type_or_uneven_columns_is_refused():
    with pytest.raises(ValueError, match="Cannot add keys of int"):
        KeyBuilder([BIGINT], AMPLE).add([column(ValueType("int"), [1])])
    with pytest.raises(ValueError, match="all of one length"):
        KeyBuilder([BIGINT, BIGINT], AMPLE).add([column(BIGINT, [1]), column(BIGINT, [1, 2])])


@pytest.mark.parametrize("damage", ["cut", "longer", "other magic", "empty", "header length"])
def test_damaged_bytes_are_refused(damage):
    data = partition([BIGINT, STRING], [(1, "a")], AMPLE).to_bytes()
    damaged = {
        "cut": data[:-1],
        "longer": data + b"\0",
        "other magic": b"PICKLES!" + data[8:],
        "empty": b"",
        "header length": data[:8] + b"\xff" * 8 + data[16:],
    }[damage]
    with pytest.raises(ValueError, match="Cannot read packed array"):
        KeyBuilder.from_bytes(damaged)


def test_bloom_is_sized_by_the_number_of_keys():
    limits = KeyLimits(keys=1000, nbytes=1 << 20, fpp=0.01)
    few, many = (keys(BIGINT, range(0, 7 * count, 7), limits) for count in (1001, 4000))
    assert few.bloom.nbytes < many.bloom.nbytes
    absent = hash_codes(BIGINT, np.arange(10**6, 2 * 10**6))
    for result in (few, many):
        assert np.count_nonzero(result.bloom.might_contain(absent)) < 1.3 * 0.01 * len(absent)
    assert (BIGINT,) == few.hashed_as


def test_bloom_of_ints_does_not_contain_bigints():
    int_ = ValueType("int")
    result = keys(int_, range(100), KeyLimits(10, 1 << 20, 0.01))
    assert (int_,) == result.hashed_as
    assert not result.bloom.might_contain(hash_codes(BIGINT, np.arange(100))).all()


def test_overfull_bloom_is_reported_and_dropped():
    result = keys(BIGINT, range(1000), KeyLimits(keys=2, nbytes=1 << 20, fpp=0.01))
    assert (None, ()) == (result.bloom, result.hashed_as)
    assert ["KEYS_OVER_LIMIT", "BLOOM_TOO_FULL"] == [reason.code.name for reason in result.reasons]


@pytest.mark.parametrize(
    ("limits", "exact"),
    [(KeyLimits(4, 1 << 20, 0.01), True), (KeyLimits(3, 1 << 20, 0.01), False), (KeyLimits(4, 31, 0.01), False)],
    ids=["at the limit", "over keys", "over bytes"],
)
def test_limits_are_inclusive(limits, exact):
    result = keys(BIGINT, [1, 2, 3, 4, 4, 4, None], limits)
    assert exact is result.exact
    assert ([] if exact else ["KEYS_OVER_LIMIT"]) == [reason.code.name for reason in result.reasons]


@given(st.lists(st.lists(values(BIGINT), max_size=6), max_size=4), st.integers(2, 5))
def test_coarse_ranges_contain_keys_in_any_grouping(groups, ranges):
    together = np.array([each for group in groups for each in group], np.int64)
    nothing = span = KeySketch.empty(BIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketches, "_COARSE_RANGES", ranges)
        for group in groups:
            span = span.merge(nothing.adding(np.array(group, np.int64)))
        found, whole = span.range_set(), nothing.adding(together).range_set()
    assert whole == found
    assert Domain(found).contains_all(Domain.of_codes(BIGINT, together))
    assert len(found) <= ranges


def test_wide_gaps_stay_open_over_the_limit():
    bands = np.concatenate([np.arange(0, 10**6), np.arange(10**9, 10**9 + 10**6), np.arange(-(2**63), -(2**63) + 10)])
    span = KeySketch.empty(BIGINT)
    for part in np.array_split(np.random.default_rng(1).permutation(bands), 5):
        span = span.adding(part)
    domain = Domain(span.range_set())
    assert domain.contains_all(Domain.of_codes(BIGINT, bands))
    assert [False, True, False] == [domain.contains(value) for value in (5 * 10**8, 10**9, -(2**62))]
    assert Domain.between(BIGINT, -(2**63), 10**9 + 10**6 - 1) == domain.span()
    assert sketches._COARSE_RANGES >= len(span.prefixes)


@pytest.mark.parametrize("type_", [BIGINT, DOUBLE], ids=str)
def test_coarse_ranges_reach_both_ends_of_int64(type_):
    codes = np.linspace(-(2**63), 2**63 - 1025, 3 * sketches._COARSE_RANGES).astype(np.int64)
    span = KeySketch.empty(type_).adding(codes)
    assert Domain.of_codes(type_, codes).span() == Domain(span.range_set()).span()
    assert Domain(span.range_set()).contains_all(Domain.of_codes(type_, codes))


def test_strings_over_the_limit_keep_their_bounds():
    result = keys(STRING, ["b", "a\0", "a", "ba", "b\0\0"], KeyLimits(2, 1 << 20, 0.01))
    assert Domain.between(STRING, "a", "ba") == result.domains[0]


@pytest.mark.parametrize("type_", [LONG_DECIMAL, STRING], ids=str)
def test_repeated_keys_of_byte_codes_are_deduplicated(type_):
    items = [Decimal(n % 100).scaleb(-2) if type_ == LONG_DECIMAL else f"key {n % 100}" for n in range(1000)]
    result = keys(type_, items)
    assert (100, Domain.of(type_, *items)) == (result.distinct, result.domains[0])


def test_summary_of_one_table_names_its_version():
    builder = partition([BIGINT], [(1,)], AMPLE)
    assert 7 == builder.finish(1, source="test", versions={"t": 7}).version
    assert None is builder.finish(1, source="test", versions={"t": 7, "u": 8}).version


@pytest.mark.parametrize(
    "change",
    [{"rows": 1}, {"null_rows": 3}, {"distinct": 5}, {"columns": ()}, {"key_rows": KeyRows((np.array([1]),))}],
    ids=lambda change: next(iter(change)),
)
def test_contradictory_summary_is_refused(change):
    with pytest.raises(ValueError, match="Cannot make a KeySummary of 'test'"):
        replace(keys(BIGINT, [1, 2, None]), **change)
