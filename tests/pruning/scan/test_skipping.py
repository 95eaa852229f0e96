"""`prune_containers`: kept containers, and the causes for which others are skipped."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruning.scan.skipping import SkipReason, prune_containers
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.pruning.plain_pruning import Column, Knowledge, Table, numbers
from tests.pruning.samples import ALL_TYPES, INF, NAN, Spec
from tests.pruning.soundness import check_several_columns, check_wrong_statistics
from tests.pruning.strategies import LAW, specs, values

BIGINT, DOUBLE = ValueType("bigint"), ValueType("double")
INT64 = (-(1 << 63), (1 << 63) - 1)

# Seven ascending values of each type; the container spans the second to the sixth.
SEVEN = {
    "tinyint": (-128, -127, -1, 0, 1, 126, 127),
    "smallint": (-32768, -32767, -1, 0, 1, 32766, 32767),
    "int": (-(1 << 31), 1 - (1 << 31), -1, 0, 1, (1 << 31) - 2, (1 << 31) - 1),
    "bigint": (INT64[0], INT64[0] + 1, -1, 0, 1, INT64[1] - 1, INT64[1]),
    "float": (-INF, -1.5, -1e-45, 0.0, 1e-45, 1.5, INF),
    "double": (-INF, -1.5, -5e-324, -0.0, 5e-324, 1.5, INF),
    "decimal(5,2)": tuple(map(Decimal, ("-999.99", "-999.98", "-0.01", "0", "0.01", "999.98", "999.99"))),
    "decimal(38,0)": (1 - 10**38, 2 - 10**38, -1, 0, 1, 10**38 - 2, 10**38 - 1),
    "date": (-(1 << 31), -719_163, -1, 0, 1, 2_932_897, (1 << 31) - 1),
    "timestamp": (INT64[0], INT64[0] + 1, -1, 0, 1, INT64[1] - 1, INT64[1]),
    "timestamp_ntz": (INT64[0], INT64[0] + 1, -1, 0, 1, INT64[1] - 1, INT64[1]),
    "string": ("", "\0", "a", "a\0", "az", "aé", "😀"),
    "binary": (b"", b"\0", b"\x7f", b"\x80", b"\xff", b"\xff\0", b"\xff\xff"),
}


def _files(column: ColumnStatistics, rows: tuple[int, ...] = ()) -> Containers:
    count = len(column)
    numbers = np.array(rows or (10,) * count, np.int64)
    return Containers(
        ContainerKind.FILE, [str(index) for index in range(count)], numbers, np.full(count, 1), {"k": column}
    )


def _kept(column: ColumnStatistics, keys: Domain) -> list[bool]:
    return prune_containers(_files(column), {"k": keys}).kept.tolist()


@pytest.mark.parametrize("name", SEVEN)
def test_key_within_bounds_keeps_container(name):
    type_, seven = ValueType.parse(name), SEVEN[name]
    low, high = seven[1], seven[5]
    column = ColumnStatistics.of(type_, [(low, high, 0), (None, high, 0), (low, None, 0), (None, None, 0)])
    hits = {key: _kept(replace(column, may_have_nan=np.zeros(4, bool)), Domain.of(type_, key)) for key in seven}
    below, above = [False, True, False, True], [False, False, True, True]
    assert {seven[0]: below, **dict.fromkeys(seven[1:6], [True] * 4), seven[6]: above} == hits


@pytest.mark.parametrize("name", SEVEN)
def test_key_range_that_overlaps_bounds_keeps_container(name):
    type_, seven = ValueType.parse(name), SEVEN[name]
    column = ColumnStatistics.of(type_, [(seven[2], seven[4], 0)], may_have_nan=False)
    first, second, _, middle, _, sixth, last = seven
    hits = [
        _kept(column, Domain.between(type_, *pair))[0]
        for pair in (
            (first, second),
            (first, seven[2]),
            (middle, middle),
            (seven[4], last),
            (sixth, last),
            (first, last),
        )
    ]
    assert [False, True, True, True, False, True] == hits
    around = Domain.between(type_, first, second).union(Domain.between(type_, sixth, last))
    assert [False] == _kept(column, around)
    assert [True] == _kept(column, around.union(Domain.of(type_, middle)))


@pytest.mark.parametrize("name", SEVEN)
def test_container_of_one_value_is_kept_only_for_that_key(name):
    type_, seven = ValueType.parse(name), SEVEN[name]
    column = ColumnStatistics.of(type_, [(value, value, 0) for value in seven], may_have_nan=False)
    found = [_kept(column, Domain.of(type_, value)) for value in seven]
    assert np.eye(7, dtype=bool).tolist() == found


def test_boolean_keys():
    boolean = ValueType("boolean")
    column = ColumnStatistics.of(boolean, [(False, False, 0), (False, True, 0), (True, True, 0), (None, None, 0)])
    assert [False, True, True, True] == _kept(column, Domain.of(boolean, True))  # noqa: FBT003  a key
    assert [True, True, False, True] == _kept(column, Domain.of(boolean, False))  # noqa: FBT003  a key


@pytest.mark.parametrize(
    ("row", "rows", "keys", "cause"),
    [
        pytest.param((1, 9, 0), 5, Domain.of(BIGINT, 5), SkipReason.KEPT, id="key-inside"),
        pytest.param((1, 9, 0), 5, Domain.of(BIGINT, 0, 10), SkipReason.STATISTICS, id="keys-around"),
        pytest.param((1, 9, 0), 5, Domain.of(BIGINT, None), SkipReason.STATISTICS, id="null-key-no-null"),
        pytest.param((1, 9, 1), 5, Domain.of(BIGINT, None), SkipReason.KEPT, id="null-key-some-null"),
        # Failure catalogue 68: a missing null count is not 0.
        pytest.param((1, 9, None), 5, Domain.of(BIGINT, None), SkipReason.KEPT, id="null-key-null-count-unknown"),
        pytest.param((None, None, 5), 5, Domain.of(BIGINT, 5), SkipReason.ALL_NULL, id="all-null"),
        pytest.param((None, None, 5), 5, Domain.of(BIGINT, 5, None), SkipReason.KEPT, id="all-null-null-key"),
        pytest.param((None, None, 5), UNKNOWN, Domain.of(BIGINT, 5), SkipReason.KEPT, id="all-null-of-unknown-rows"),
        # Failure catalogue 71: missing bounds do not mean all NULL.
        pytest.param((None, None, None), 5, Domain.of(BIGINT, 5), SkipReason.KEPT, id="no-bounds-no-null-count"),
        pytest.param((None, None, None), UNKNOWN, Domain.of(BIGINT, 5), SkipReason.KEPT, id="both-counts-unknown"),
        pytest.param((1, 9, 0), 0, Domain.of(BIGINT, 5), SkipReason.NO_ROWS, id="no-rows"),
        pytest.param((None, None, None), 0, Domain.all(BIGINT), SkipReason.NO_ROWS, id="no-rows-all-keys"),
        pytest.param((1, 9, 0), 5, Domain.none(BIGINT), SkipReason.NO_KEYS, id="no-keys"),
        pytest.param((1, 9, 0), 0, Domain.none(BIGINT), SkipReason.NO_ROWS, id="no-rows-no-keys"),
        pytest.param((None, None, 5), 5, Domain.none(BIGINT), SkipReason.NO_KEYS, id="all-null-no-keys"),
        pytest.param((1, 9, 0), 5, Domain.all(BIGINT), SkipReason.KEPT, id="all-keys"),
        # Failure catalogue 72, 83: inverted bounds come from a writer that compares by other rules.
        pytest.param((9, 1, 0), 5, Domain.of(BIGINT, 50), SkipReason.KEPT, id="inverted-bounds"),
        pytest.param((1, 9, 5), 5, Domain.of(BIGINT, 5), SkipReason.KEPT, id="all-null-yet-bounds"),
        pytest.param(
            (1, 9, 5), 5, Domain.of(BIGINT, 50), SkipReason.STATISTICS, id="all-null-and-bounds-agree-to-skip"
        ),
        pytest.param((1, 9, 7), 5, Domain.of(BIGINT, 50), SkipReason.STATISTICS, id="more-nulls-than-rows"),
    ],
)
def test_cause_of_a_skipped_container(row, rows, keys, cause):
    found = prune_containers(_files(ColumnStatistics.of(BIGINT, [row]), (rows,)), {"k": keys})
    assert ([cause], [cause is SkipReason.KEPT]) == (found.causes.tolist(), found.kept.tolist())


@pytest.mark.parametrize(
    ("row", "may_have_nan", "keys", "kept"),
    [
        # Failure catalogue 60, 61: the values 3.0, NaN, 3.0 have the bounds 3.0 and 3.0.
        pytest.param((3.0, 3.0, 0), True, Domain.of(DOUBLE, NAN), True, id="nan-key-nan-possible"),
        pytest.param((3.0, 3.0, 0), False, Domain.of(DOUBLE, NAN), False, id="nan-key-nan-absent"),
        pytest.param((1.0, 1.0, 0), True, Domain.between(DOUBLE, 2.0, INF), False, id="numbers-do-not-match-nan"),
        pytest.param((None, None, 0), True, Domain.of(DOUBLE, 5.0), True, id="bounds-unknown-as-all-may-be-nan"),
        pytest.param((NAN, 3.0, 0), True, Domain.of(DOUBLE, -5.0), True, id="nan-as-low"),
        pytest.param((1.0, NAN, 0), True, Domain.of(DOUBLE, 50.0), True, id="nan-as-high"),
        # Failure catalogue 66: -0.0 and 0.0 are one value for keys and for bounds.
        pytest.param((0.0, 0.0, 0), False, Domain.of(DOUBLE, -0.0), True, id="key-minus-zero"),
        pytest.param((-0.0, -0.0, 0), False, Domain.of(DOUBLE, 0.0), True, id="bound-minus-zero"),
        pytest.param((-0.0, 5.0, 0), False, Domain.between(DOUBLE, -5.0, 0.0), True, id="low-minus-zero"),
        pytest.param((None, None, 10), True, Domain.of(DOUBLE, NAN), False, id="all-null-has-no-nan"),
    ],
)
def test_float_containers_with_nan_and_zeros(row, may_have_nan, keys, kept):
    assert [kept] == _kept(ColumnStatistics.of(DOUBLE, [row], may_have_nan=may_have_nan), keys)


@pytest.mark.parametrize(
    ("row", "rows", "keys", "cause"),
    [
        pytest.param((3, 3, 0), 5, Domain.of(BIGINT, 3), SkipReason.KEPT, id="its-value"),
        pytest.param((3, 3, 0), 5, Domain.of(BIGINT, 4), SkipReason.PARTITION, id="another-value"),
        pytest.param((3, 3, 0), UNKNOWN, Domain.of(BIGINT, 4), SkipReason.PARTITION, id="rows-unknown"),
        pytest.param((None, None, 5), 5, Domain.of(BIGINT, 4), SkipReason.PARTITION, id="null-partition"),
        pytest.param((None, None, 5), 5, Domain.of(BIGINT, None), SkipReason.KEPT, id="null-partition-null-key"),
        pytest.param((3, 3, 0), 5, Domain.of(BIGINT, None), SkipReason.PARTITION, id="null-key"),
    ],
)
def test_partition_values_have_their_own_cause(row, rows, keys, cause):
    column = replace(ColumnStatistics.of(BIGINT, [row]), is_partition=True)
    assert [cause] == prune_containers(_files(column, (rows,)), {"k": keys}).causes.tolist()


def test_all_columns_must_match_and_the_strongest_cause_counts():
    a = ColumnStatistics.of(BIGINT, [(0, 4, 0), (0, 4, 0), (5, 9, 0), (5, 9, 0), (None, None, 10)])
    b = replace(ColumnStatistics.of(BIGINT, [(1, 1, 0), (2, 2, 0), (1, 1, 0), (2, 2, 0), (2, 2, 0)]), is_partition=True)
    files = replace(_files(a), columns={"a": a, "b": b})
    keys = {"a": Domain.of(BIGINT, 3), "b": Domain.of(BIGINT, 1)}
    expected = [
        SkipReason.KEPT,
        SkipReason.PARTITION,
        SkipReason.STATISTICS,
        SkipReason.PARTITION,
        SkipReason.PARTITION,
    ]
    for each in (keys, dict(reversed(keys.items()))):
        assert expected == prune_containers(files, each).causes.tolist()


def test_empty_key_set_skips_everything():
    files = _files(ColumnStatistics.of(BIGINT, [(0, 4, 0), (5, 9, 0)]))
    for name in ("k", "no statistics"):
        found = prune_containers(files, {"k": Domain.of(BIGINT, 3), name: Domain.none(BIGINT)})
        assert {"no keys": 2} == found.skipped_by()


def test_column_without_statistics_keeps_everything():
    files = _files(ColumnStatistics.of(BIGINT, [(0, 4, 0)]))
    assert [True] == prune_containers(files, {"other": Domain.of(BIGINT, 99)}).kept.tolist()
    assert [True] == prune_containers(files, {}).kept.tolist()


def test_no_containers():
    found = prune_containers(_files(ColumnStatistics.unknown(BIGINT, 0)), {"k": Domain.of(BIGINT, 1)})
    assert (0, {}, []) == (found.kept_count, found.skipped_by(), found.kept.tolist())


def test_skipped_by_counts_causes():
    column = ColumnStatistics.of(BIGINT, [(0, 4, 0), (5, 9, 0), (None, None, 10), (None, None, None), (5, 9, 0)])
    found = prune_containers(_files(column, (10, 10, 10, 10, 0)), {"k": Domain.of(BIGINT, 3)})
    assert (2, {"no rows": 1, "all null": 1, "statistics": 1}) == (found.kept_count, found.skipped_by())


def test_keys_of_another_type_are_refused():
    files = _files(ColumnStatistics.of(ValueType("date"), [(0, 9, 0)]))
    with pytest.raises(ValueError, match="Cannot compare bounds of date with keys of timestamp"):
        prune_containers(files, {"k": Domain.of(ValueType("timestamp"), 5)})


def test_contradictory_statistics_keep_container():
    check_wrong_statistics()


@pytest.mark.parametrize("seed", range(5))
def test_several_columns_match_the_plain_oracle(seed):
    check_several_columns(seed)


_KNOWLEDGE = st.builds(Knowledge, *[st.sampled_from((True, True, False))] * 5)


def _tables(type_: ValueType) -> st.SearchStrategy[tuple]:
    value = st.one_of(values(type_), st.none(), *([st.just(NAN)] if type_.is_float else []))
    rows = st.lists(value, max_size=3).map(tuple)
    return st.tuples(st.lists(st.tuples(rows, _KNOWLEDGE), min_size=1, max_size=4), specs(type_))


_TABLES = {type_: _tables(type_) for type_ in ALL_TYPES}


@LAW
@given(st.sampled_from(ALL_TYPES).flatmap(lambda type_: _TABLES[type_]), st.booleans())
def test_every_type_skips_all_that_statistics_allow(example, from_rows):
    containers, keys = example
    contents, known = tuple(rows for rows, _ in containers), tuple(each for _, each in containers)
    if from_rows:
        # Keys are taken from the containers, so that single values match.
        points = [point for rows in contents[::2] for point in numbers(rows[:1])]
        keys = Spec(keys.type, tuple((point, point) for point in points), keys.null, keys.nan)
    Table({"k": Column(keys.type, contents, known)}, known).prune({"k": keys})


_TABLES_AND_KEYS = {type_: st.tuples(_TABLES[type_], specs(type_)) for type_ in ALL_TYPES}


@LAW
@given(st.sampled_from(ALL_TYPES).flatmap(lambda type_: _TABLES_AND_KEYS[type_]))
def test_wider_keys_never_skip_more(example):
    # Failure catalogue 153, 156: an approximation is only ever widened and never negated.
    (containers, keys), more = example
    contents, known = tuple(rows for rows, _ in containers), tuple(each for _, each in containers)
    files = Table({"k": Column(keys.type, contents, known)}, known).files
    narrow = keys.domain()
    kept = prune_containers(files, {"k": narrow}).kept
    for wide in (narrow.union(more.domain()), narrow.simplify(2), narrow.span(), Domain.all(keys.type)):
        assert not (kept & ~prune_containers(files, {"k": wide}).kept).any()
