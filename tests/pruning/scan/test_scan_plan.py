from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pruning.cost.rates import CostRates
from pruning.options import PruningOptions
from pruning.reasons import ReasonCode
from pruning.scan.key_filter import KeyFilter, RowWorth
from pruning.scan.pushdown import PushdownCapabilities
from pruning.scan.scan_plan import RowFilter, plan_scan
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values.domain import Domain
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType

BIGINT = ValueType("bigint")
DELTA = PushdownCapabilities(
    accepts_file_list=False, push_refusal=None, tests_keys=True, must_be_exact=False, widen=lambda _, ranges: ranges
)
PARQUET = replace(DELTA, accepts_file_list=True)
# So few keys are expected to be shuffled, not broadcast.
OPTIONS = PruningOptions().with_limits(joined_rows=0)


def files(bounds, *, name="k", rows=100, extra=None):
    columns = {name: ColumnStatistics.of(BIGINT, [(low, high, 0) for low, high in bounds]), **(extra or {})}
    count = len(bounds)
    return Containers(
        ContainerKind.FILE, [f"f{i}" for i in range(count)], np.full(count, rows), np.full(count, 1000), columns
    )


def keys(*values, name="k", exact=True, bloom=True):
    domain = Domain.of(BIGINT, *values)
    return KeyFilter(
        (name,),
        {name: domain},
        rows=len(values),
        distinct=len(values),
        is_exact=exact,
        is_empty=domain.is_none,
        has_bloom=bloom,
        source="test",
    )


TEN_FILES = [(i * 100, i * 100 + 99) for i in range(10)]


def test_ranges_skip_files_between_keys():
    plan = plan_scan(files(TEN_FILES), None, [keys(5, 7, 250, 930)], DELTA, OPTIONS)
    assert [0, 2, 9] == np.flatnonzero(plan.files.kept).tolist()
    (predicate,) = plan.predicates
    assert "{[5, 7], 250, 930}" == str(predicate.ranges)
    assert (7, 7000) == (predicate.containers_skipped, predicate.bytes_skipped)


def test_gaps_without_a_container_are_bridged():
    plan = plan_scan(files(TEN_FILES), None, [keys(5, 50, 95)], DELTA, OPTIONS)
    (predicate,) = plan.predicates
    assert "{[5, 95]}" == str(predicate.ranges)


def test_range_budget_keeps_the_heaviest_gaps():
    plan = plan_scan(files(TEN_FILES), None, [keys(5, 250, 930)], DELTA, OPTIONS.with_limits(max_ranges=2))
    (predicate,) = plan.predicates
    assert "{[5, 250], 930}" == str(predicate.ranges)
    assert [0, 1, 2, 9] == np.flatnonzero(plan.files.kept).tolist()


def test_file_list_needs_no_ranges():
    plan = plan_scan(files(TEN_FILES), None, [keys(5, 930)], PARQUET, OPTIONS)
    assert [0, 9] == np.flatnonzero(plan.files.kept).tolist()
    assert () == plan.predicates
    assert () == plan.reasons


def test_row_groups_of_listed_files_get_ranges():
    groups = replace(files([(0, 49), (50, 99)]), kind=ContainerKind.ROW_GROUP, parents=np.array([0, 0]))
    plan = plan_scan(files([(0, 99)]), groups, [keys(60)], PARQUET, OPTIONS)
    assert [False, True] == plan.row_groups.kept.tolist()
    assert ["{60}"] == [str(predicate.ranges) for predicate in plan.predicates]


def test_column_that_skips_nothing_more_is_not_pushed():
    other = ColumnStatistics.of(BIGINT, [(i, i, 0) for i in range(10)])
    plan = plan_scan(files(TEN_FILES, extra={"j": other}), None, [keys(5), keys(0, name="j")], DELTA, OPTIONS)
    assert 1 == len(plan.predicates)
    assert [ReasonCode.UNCLUSTERED] == [reason.code for reason in plan.reasons]


def test_no_key_skips_every_file_and_pushes_nothing():
    nothing = replace(keys(5), domains={}, is_empty=True)
    plan = plan_scan(files(TEN_FILES), None, [nothing], DELTA, OPTIONS)
    assert {"no keys": 10} == plan.files.skipped_by()
    assert (0, ()) == (plan.files.kept_count, plan.predicates)


@pytest.mark.parametrize(
    ("capabilities", "reason"),
    [
        (replace(DELTA, push_refusal=ReasonCode.NOT_VECTORISED), ReasonCode.NOT_VECTORISED),
        (replace(DELTA, push_refusal=ReasonCode.SKIPPING_DISABLED), ReasonCode.SKIPPING_DISABLED),
    ],
    ids=["not vectorised", "skipping disabled"],
)
def test_scan_without_pushdown_keeps_all_with_a_reason(capabilities, reason):
    plan = plan_scan(files(TEN_FILES), None, [keys(5)], capabilities, OPTIONS)
    assert 10 == plan.files.kept_count
    assert [reason] == [each.code for each in plan.reasons]


def test_nan_and_null_keys_are_not_pushed():
    double = ValueType("double")
    statistics = ColumnStatistics.of(double, [(0.0, 1.0, 0), (5.0, 6.0, 0)])
    table = files([(0, 1), (5, 6)], extra={"d": statistics})
    nan = replace(keys(1, name="d"), domains={"d": Domain.of(double, 0.5, float("nan"))})
    plan = plan_scan(table, None, [nan], DELTA, OPTIONS)
    assert (2, (), [ReasonCode.NAN_KEYS]) == (
        plan.files.kept_count,
        plan.predicates,
        [each.code for each in plan.reasons],
    )


def test_null_key_is_pushed_and_keeps_files_with_null():
    """The domain of a top-k with NULLS FIRST has such a NULL."""
    statistics = ColumnStatistics.of(BIGINT, [(0, 99, 0), (100, 199, 5), (200, 299, 0)])
    table = files([(0, 0)] * 3, name="other", extra={"k": statistics})
    some = replace(keys(5), domains={"k": replace(Domain.of(BIGINT, 5), null=True)})
    plan = plan_scan(table, None, [some], DELTA, OPTIONS)
    (predicate,) = plan.predicates
    assert (True, 1, [True, True, False]) == (predicate.null, predicate.containers_skipped, plan.files.kept.tolist())
    assert RowFilter.NONE is plan.decisions[0].test


WIDE = [(0, 10**9)]


@pytest.mark.parametrize(("type_", "expected"), [(BIGINT, RowFilter.IN_LIST), (ValueType("double"), RowFilter.BLOOM)])
def test_floats_are_not_tested_by_an_in_list(type_, expected):
    """An IN list distinguishes -0.0 from 0.0, which are equal keys."""
    statistics = ColumnStatistics.of(type_, [(0, 10**9, 0)])
    few = replace(keys(0, 500, 10**6), domains={"k": Domain.of(type_, 0, 500, 10**6)})
    plan = plan_scan(files([(0, 0)], name="other", extra={"k": statistics}), None, [few], DELTA, OPTIONS)
    assert expected is plan.decisions[0].test


@pytest.mark.parametrize(
    ("filter_", "capabilities", "expected"),
    [
        (keys(1, 5, 9), DELTA, RowFilter.IN_LIST),
        (keys(*range(100, 200)), DELTA, RowFilter.RANGES),
        (keys(*range(0, 4000, 2)), DELTA, RowFilter.BITMAP),
        (keys(*range(0, 4000, 2), bloom=False), DELTA, RowFilter.BITMAP),
        (keys(*range(0, 1 << 40, 1 << 28)), DELTA, RowFilter.BLOOM),
        (keys(*range(0, 4000, 2), exact=False), DELTA, RowFilter.BLOOM),
        (keys(*range(0, 4000, 2)), replace(DELTA, tests_keys=False), RowFilter.NONE),
        (keys(*range(0, 4000, 2)), replace(DELTA, must_be_exact=True), RowFilter.SEMI_JOIN),
        (keys(1, 5, 9, exact=False), replace(DELTA, must_be_exact=True), RowFilter.SEMI_JOIN),
        (keys(1, 5), replace(DELTA, push_refusal=ReasonCode.NOT_VECTORISED), RowFilter.BITMAP),
        (keys(1, 5), replace(DELTA, widen=lambda _, ranges: RangeSet.all(ranges.type)), RowFilter.BITMAP),
        (keys(1, 5, exact=False, bloom=False), DELTA, RowFilter.NONE),
    ],
    ids=[
        "few keys",
        "dense keys",
        "many keys",
        "many keys without a bloom filter",
        "many keys far apart",
        "many inexact keys",
        "many keys without a JVM",
        "many keys, exact",
        "inexact keys, exact",
        "no literals",
        "unsound literals",
        "nothing to test by",
    ],
)
def test_cheapest_sound_row_filter_is_chosen(filter_, capabilities, expected):
    plan = plan_scan(files(WIDE), None, [filter_], capabilities, OPTIONS)
    assert expected is plan.decisions[0].test


@pytest.mark.parametrize(
    ("values", "is_partition", "expected"),
    [
        (range(0, 99, 11), False, True),
        (range(0, 999, 30), False, False),
        (range(0, 500, 30), False, True),
        (range(0, 999, 30), True, True),
    ],
    ids=["few are looked up", "many all over", "many in a part", "partition values"],
)
def test_in_list_is_pushed_only_if_it_can_skip(values, is_partition, expected):
    whole = files([(0, 999)])
    column = replace(whole.columns["k"], is_partition=is_partition)
    options = OPTIONS.with_limits(max_ranges=4)
    plan = plan_scan(replace(whole, columns={"k": column}), None, [keys(*values)], DELTA, options)
    (decision,) = plan.decisions
    assert (RowFilter.IN_LIST, expected) == (decision.test, decision.is_pushed)


@pytest.mark.parametrize(
    ("bounds", "rows", "size", "values", "expected"),
    [
        ((0, 86_399), 30_000, 80_000, range(70_000, 72_000), False),
        ((0, 86_399), 3_000_000, 40_000_000, range(70_000, 72_000), True),
        ((0, 86_399), 30_000, 80_000, range(70_000, 70_020), True),
        ((1, 12), 30_000, 600_000, range(3, 6), True),
        ((1, 12), 30_000, 80_000, range(3, 6), False),
    ],
    ids=["a dictionary as large as the rest", "beside much else", "few matches", "few values", "two reads more"],
)
def test_ranges_are_pushed_if_cheap_or_selective(bounds, rows, size, values, expected):
    groups = replace(files([bounds] * 3, rows=rows), sizes=np.full(3, size))
    (decision,) = plan_scan(groups, None, [keys(*values)], DELTA, OPTIONS).decisions
    assert (RowFilter.RANGES, expected) == (decision.test, decision.is_pushed)


# A reader believes bloom filters for `=` and IN, at which a join does not look.
@pytest.mark.parametrize(
    ("has_bloom_filter", "may_copy", "expected"),
    [([False] * 2, True, True), ([False, True], True, False), (None, True, False), ([False] * 2, False, False)],
    ids=["none", "in one row group", "not known", "where the list is copied"],
)
def test_values_are_listed_where_no_bloom_filter_is_asked(has_bloom_filter, may_copy, expected):
    groups = replace(files([(0, 99)] * 2), kind=ContainerKind.ROW_GROUP, parents=np.array([0, 0]))
    known = None if has_bloom_filter is None else np.array(has_bloom_filter)
    groups = replace(groups, columns={"k": replace(groups.columns["k"], has_bloom_filter=known)})
    capabilities = replace(PARQUET, may_list=lambda _: may_copy)
    for row_groups, is_listed in ((groups, expected), (None, False)):
        (decision,) = plan_scan(files([(0, 99)]), row_groups, [keys(3, 60)], capabilities, OPTIONS).decisions
        assert (RowFilter.IN_LIST, True, is_listed) == (decision.test, decision.is_pushed, decision.is_listed)


def test_hidden_lists_are_not_listed_to_storage():
    whole = files([(0, 999)])
    column = replace(whole.columns["k"], has_bloom_filter=np.array([False]))
    options = OPTIONS.with_limits(max_ranges=4)
    (decision,) = plan_scan(
        replace(whole, columns={"k": column}), None, [keys(*range(0, 999, 2))], DELTA, options
    ).decisions
    assert (RowFilter.IN_LIST, False, False) == (decision.test, decision.is_pushed, decision.is_listed)


def test_in_list_without_statistics_is_not_pushed():
    unknown = replace(files([(0, 999)]), columns={"k": ColumnStatistics.of(BIGINT, [(None, None, None)])})
    options = replace(OPTIONS, always=True).with_limits(max_ranges=4)
    (decision,) = plan_scan(unknown, None, [keys(*range(0, 999, 30))], DELTA, options).decisions
    assert (RowFilter.IN_LIST, False) == (decision.test, decision.is_pushed)


RATES = replace(CostRates(), spark_test=40.0, spark_lookup=20.0, spark_compared=10.0)


@pytest.mark.parametrize(
    ("values", "worth", "expected"),
    [
        # A tenth of the rows has a key: a dropped one spares 45 nanoseconds or 44.
        (range(0, 100, 10), RowWorth(0.0, 12.0), RowFilter.IN_LIST),
        (range(0, 100, 10), RowWorth(0.0, 11.0), RowFilter.NONE),
        (range(0, 20_000, 10), RowWorth(0.0, 23.0), RowFilter.BITMAP),
        (range(0, 20_000, 10), RowWorth(0.0, 22.0), RowFilter.NONE),
        (range(0, 10 << 30, 10 << 20), RowWorth(0.0, 41.0), RowFilter.BLOOM),
        (range(0, 10 << 30, 10 << 20), RowWorth(0.0, 40.0), RowFilter.NONE),
        # The query knows better than the bounds that nearly all rows pass.
        (range(0, 20_000, 10), RowWorth(0.9, 199.0), RowFilter.NONE),
        (range(0, 20_000, 10), RowWorth(0.9, 201.0), RowFilter.BITMAP),
    ],
)
def test_row_filter_has_to_spare_more_than_its_test(values, worth, expected):
    spanned = files([(0, values.stop - 1)])
    options = OPTIONS.with_limits(costs=RATES, max_ranges=4)
    found = plan_scan(spanned, None, [replace(keys(*values), worth=worth)], DELTA, options)
    (decision,) = found.decisions
    assert expected is decision.test
    assert max(1 / values.step, worth.passing) == pytest.approx(decision.ratio, rel=1e-3)
    codes = [each.code for each in decision.reasons]
    assert ([ReasonCode.UNSELECTIVE] if expected is RowFilter.NONE else []) == codes


@pytest.mark.parametrize(("passing", "expected"), [(0.0, 5), (0.999, 1)])
def test_gaps_that_the_query_takes_for_empty_have_no_pages(passing, expected):
    """Most rows have one of the days, though days are a third of the numbers between the bounds."""
    bounds = [(100 * month, 100 * month + 99) for month in range(6)]
    groups = replace(files(bounds, rows=200_000), parents=np.arange(6))
    days = keys(*(100 * month + day for month in range(5) for day in range(1, 31)))
    each = replace(days, worth=RowWorth(passing, 0.0))
    (predicate,) = plan_scan(files(bounds), groups, [each], PARQUET, OPTIONS).predicates
    assert (expected, 1) == (len(predicate.ranges), predicate.containers_skipped)


INT = ValueType("int")


def _spread(count, name="k", type_=INT, width=1, step=1000):
    """A filter of `count` runs of keys."""
    domain = Domain.of(type_, *(step * at + each for at in range(count) for each in range(width)))
    return replace(keys(1, name=name), domains={name: domain}, rows=count * width, distinct=count * width)


def _spread_files(count, name="k", type_=INT):
    """A file in each gap between runs, and one file that spans all keys."""
    bounds = [(1000 * at + 10, 1000 * at + 990, 0) for at in range(count)] + [(0, 1000 * count, 0)]
    return replace(files([(0, 1)] * len(bounds)), columns={name: ColumnStatistics.of(type_, bounds)})


@pytest.mark.parametrize(
    ("filter_", "gaps", "has_bloom", "expected"),
    [
        pytest.param(_spread(300), 1, True, RowFilter.IN_LIST, id="a-list"),
        pytest.param(_spread(300), 40, True, RowFilter.BLOOM, id="a-list-beside-many-ranges"),
        pytest.param(_spread(300), 40, False, RowFilter.IN_LIST, id="nothing-else-tests-rows"),
        pytest.param(_spread(380), 1, True, RowFilter.BLOOM, id="a-long-switch"),
        pytest.param(_spread(450), 1, True, RowFilter.IN_LIST, id="a-set"),
        pytest.param(_spread(380, type_=BIGINT), 1, True, RowFilter.IN_LIST, id="a-set-of-long-numbers"),
        pytest.param(_spread(60, width=3), 60, True, RowFilter.RANGES, id="ranges-in-place-of-those-pushed"),
    ],
)
def test_row_filter_fits_the_codegen_limit(filter_, gaps, has_bloom, expected):
    type_ = next(iter(filter_.domains.values())).type
    tables, tested = _spread_files(gaps, type_=type_), [replace(filter_, has_bloom=has_bloom)]
    plan = plan_scan(tables, None, tested, DELTA, OPTIONS.with_limits(bitmap_filter_bytes=0))
    assert expected is plan.decisions[0].test
    plan = plan_scan(tables, None, tested, DELTA, OPTIONS)
    is_literal = has_bloom and expected is not RowFilter.BLOOM
    assert (expected if is_literal else RowFilter.BITMAP) is plan.decisions[0].test


def test_columns_share_the_budget_of_compared_ranges():
    gaps, wide = [(1000 * at + 10, 1000 * at + 990, 0) for at in range(50)], [(0, 50_000, 0)] * 50
    columns = {"k": ColumnStatistics.of(INT, gaps + wide), "j": ColumnStatistics.of(INT, wide + gaps)}
    containers = replace(files([(0, 1)] * 100), columns=columns)
    plan = plan_scan(containers, None, [_spread(50, width=3), _spread(50, "j", width=3)], DELTA, OPTIONS)
    first, second = plan.predicates
    assert (50, 14) == (len(first.ranges), len(second.ranges))
    tests = [decision.test for decision in plan.decisions]
    assert [RowFilter.RANGES, RowFilter.BITMAP] == tests


def test_unselective_keys_get_no_row_filter():
    plan = plan_scan(files([(0, 9)]), None, [keys(*range(10))], DELTA, OPTIONS)
    assert RowFilter.NONE is plan.decisions[0].test
    assert ReasonCode.UNSELECTIVE in [reason.code for reason in plan.decisions[0].reasons]


def test_two_filters_on_one_column_are_intersected():
    plan = plan_scan(files(TEN_FILES), None, [keys(5, 250), keys(250, 930)], DELTA, OPTIONS)
    assert [2] == np.flatnonzero(plan.files.kept).tolist()


def row_groups_of(bounds):
    found = files(bounds, rows=10)
    return replace(found, kind=ContainerKind.ROW_GROUP, parents=np.arange(len(found)) // 2)


def test_file_only_column_skips_files_but_no_row_groups():
    capabilities = replace(DELTA, file_only=frozenset({"k"}))
    plan = plan_scan(files(TEN_FILES[:2]), row_groups_of(TEN_FILES[:4]), [keys(5)], capabilities, OPTIONS)
    assert plan.row_groups is not None
    assert [True, False] == plan.files.kept.tolist()
    assert [True] * 4 == plan.row_groups.kept.tolist()


def test_kept_row_groups_of_file_only_column_have_a_reason():
    capabilities = replace(PARQUET, file_only=frozenset({"k"}))
    plan = plan_scan(files(TEN_FILES[:2]), row_groups_of(TEN_FILES[:4]), [keys(5)], capabilities, OPTIONS)
    assert () == plan.predicates
    assert [ReasonCode.NO_READER_FILTER] == [reason.code for reason in plan.reasons]


@pytest.mark.parametrize(
    ("hidden", "kept", "codes"),
    [
        ([False, False, False, False], [True, False, False, False], []),
        ([False, True, False, True], [True, True, False, True], []),
        ([True] * 4, [True] * 4, [ReasonCode.NO_READER_FILTER]),
    ],
    ids=["none", "some", "all"],
)
def test_file_only_row_groups_are_kept(hidden, kept, codes):
    groups = row_groups_of(TEN_FILES[:4])
    column = replace(groups.columns["k"], file_only=np.array(hidden))
    plan = plan_scan(files(TEN_FILES[:2]), replace(groups, columns={"k": column}), [keys(5)], PARQUET, OPTIONS)
    assert plan.row_groups is not None
    assert ([True, False], kept) == (plan.files.kept.tolist(), plan.row_groups.kept.tolist())
    assert codes == [reason.code for reason in plan.reasons]


BLIND = replace(DELTA, pushes_without_statistics=True)
UNLISTED = replace(files([(None, None)]), columns={}, is_listed=False)


def test_unlisted_table_gets_ranges_with_the_widest_gaps():
    pairs = [(1000 * at * at, 1000 * at * at + 5) for at in range(1, 10)]
    plan = plan_scan(UNLISTED, None, [keys(*(each for pair in pairs for each in pair))], BLIND, OPTIONS)
    (predicate,) = plan.predicates
    assert [(1000, 4005), *pairs[2:]] == list(
        zip(predicate.ranges.lows.tolist(), predicate.ranges.highs.tolist(), strict=True)
    )
    assert plan.files.kept.all()


@pytest.mark.parametrize(
    ("capabilities", "code"),
    [
        (DELTA, ReasonCode.NO_STATISTICS),
        (replace(BLIND, push_refusal=ReasonCode.NOT_VECTORISED), ReasonCode.NOT_VECTORISED),
        (replace(BLIND, file_only=frozenset("k")), ReasonCode.NO_READER_FILTER),
        (replace(BLIND, widen=lambda _, ranges: RangeSet.all(ranges.type)), ReasonCode.NO_STATISTICS),
    ],
)
def test_unlisted_table_without_capability_gets_no_ranges(capabilities, code):
    plan = plan_scan(UNLISTED, None, [keys(1, 9)], capabilities, OPTIONS)
    assert () == plan.predicates
    assert code in {each.code for each in plan.reasons}


def test_unlisted_table_without_keys_has_no_pushed_predicate():
    plan = plan_scan(UNLISTED, None, [keys()], replace(BLIND, push_refusal=ReasonCode.NOT_VECTORISED), OPTIONS)
    assert ((), ()) == (plan.predicates, plan.reasons)
    assert not plan.files.kept.any()
