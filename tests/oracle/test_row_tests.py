"""Every row filter on kept containers, and every option and setting that changes it, give the same rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from pruning import PruningOptions, pruned_read
from pruning.cost.rates import CostRates
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from tests.oracle.answers import Keys
from tests.oracle.lakes import Layout
from tests.oracle.oracle import (
    Skips,
    reason_codes,
    row_tests,
    skips,
)

pytestmark = pytest.mark.spark

ROWS, FILES, GROUPS = 400, 4, 8
LAYOUT = Layout(file_rows=100, group_rows=50)


def scattered() -> pa.Table:
    """Columns that are spread over every row group, and one that is clustered."""
    rng = np.random.default_rng(11)
    spread = rng.permutation(ROWS).astype(np.int64) * 10
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "spread": pa.array([None if at % 50 == 7 else int(value) for at, value in enumerate(spread)], pa.int64()),
            "word": pa.array([f"{value:05}\U0001f600" for value in spread]),
            "real": pa.array([float("nan") if at % 40 == 3 else value / 4 for at, value in enumerate(spread)]),
            "few": pa.array(spread // 10 % 4, pa.int32()),
        }
    )


@pytest.fixture(params=["delta", "parquet"])
def lake(request, shared_lake):
    return shared_lake("scattered", request.param, scattered, LAYOUT)


def spread_keys(step: int = 7) -> pa.Array:
    """Keys in every part of the span; a third of them has no row."""
    return pa.array([int(value) + (5 if at % 3 == 0 else 0) for at, value in enumerate(range(0, 10 * ROWS, 10 * step))])


ALWAYS = PruningOptions(always=True)
NO_LISTS = ALWAYS.with_limits(max_in_list=0)
# Row filters of inexact reads by numbers and by texts, and of exact reads.
ROW_TESTS: Mapping[str, tuple[PruningOptions, tuple[str, str, str]]] = {
    "few keys": (ALWAYS, ("IN list", "IN list", "IN list")),
    "no lists": (NO_LISTS, ("bitmap", "bloom filter", "semi join")),
    "short lists": (ALWAYS.with_limits(max_in_list=3), ("bitmap", "bloom filter", "semi join")),
    "no lists and no bitmap": (
        NO_LISTS.with_limits(bitmap_filter_bytes=0),
        ("bloom filter", "bloom filter", "semi join"),
    ),
    "coarse bloom": (
        NO_LISTS.with_limits(bitmap_filter_bytes=0, bloom_fpp=0.5),
        ("bloom filter", "bloom filter", "semi join"),
    ),
    # A bloom filter for one key is overfull with so many.
    "one key allowed": (ALWAYS.with_limits(max_build_keys=1), ("none", "none", "semi join")),
    "20 keys allowed": (
        ALWAYS.with_limits(max_build_keys=20),
        ("bloom filter", "bloom filter", "semi join"),
    ),
    "64 bytes allowed": (
        PruningOptions(max_build_bytes=64, always=True),
        ("bloom filter", "bloom filter", "semi join"),
    ),
    "never worth it": (PruningOptions().with_limits(costs=CostRates(joined_row=0.0)), ("none", "none", "IN list")),
}


@pytest.mark.parametrize("case", ROW_TESTS)
def test_scattered_keys_use_a_row_filter(oracle, lake, case):
    options, (of_numbers, of_texts, of_exact) = ROW_TESTS[case]
    keys = spread_keys()
    column = "spread" if lake.format == "delta" else "word"
    if column == "word":
        keys = pa.array([f"{value:05}\U0001f600" for value in keys.to_pylist()])
    for exact, test in ((False, of_numbers if column == "spread" else of_texts), (True, of_exact)):
        plan = oracle.check(lake, Keys.of(column, keys), exact=[exact], options=options)
        assert (FILES, GROUPS) == (plan.files_kept, plan.row_groups_kept)
        assert (test,) == row_tests(plan)


# A float column may have NaN anywhere, and a NaN key prevents every row filter by literals.
@pytest.mark.parametrize(
    ("keys", "test"),
    [
        (pa.array([0.0, 2.5, 5.0, 997.5, 1000.0]), "bloom filter"),
        (pa.array([2.5, float("nan")]), "bloom filter"),
        (pa.array([-0.0]), "bloom filter"),
    ],
    ids=["numbers", "NaN", "negative zero"],
)
def test_float_keys_match_zeros_and_nan(oracle, lake, keys, test):
    # Row groups with NaN have no bounds, so the share of passing rows is unknown.
    worth = ALWAYS
    plan = oracle.check(lake, Keys.of("real", keys), exact=[False], options=worth)
    assert (test,) == row_tests(plan)
    plan = oracle.check(lake, Keys.of("real", keys), exact=[False])
    assert ("none",) == row_tests(plan)
    oracle.check(lake, Keys.of("real", keys), exact=[True])


def test_dense_keys_use_ranges(oracle, lake):
    keys = pa.array(range(100, 2200), pa.int64())
    plan = oracle.check(lake, Keys.of("spread", keys), exact=[True])
    assert ("ranges",) == row_tests(plan)


def test_key_tuples_are_tested_together(oracle, lake):
    rows = scattered()
    spread, few = rows.column("spread").to_pylist(), rows.column("few").to_pylist()
    # Every value occurs, but every other pair does not.
    pairs = [
        (a, b if at % 2 else (b + 1) % 4) for at, (a, b) in enumerate(zip(spread, few, strict=True)) if at % 9 == 0
    ]
    keys = Keys.of(
        ("spread", "few"), pa.array([a for a, _ in pairs], pa.int64()), pa.array([b for _, b in pairs], pa.int32())
    )
    for exact, test in ((False, "bloom filter"), (True, "semi join")):
        plan = oracle.check(lake, keys, exact=[exact], options=ALWAYS)
        assert (test,) == row_tests(plan)


def test_key_tuples_of_other_types(oracle, lake):
    keys = Keys.of(
        ("spread", "few"), pa.array([10, 20, 30, 1000, 2000], pa.int32()), pa.array([1, 2, 3, 0, 0], pa.int64())
    )
    oracle.check(lake, keys)


def test_several_filters_are_anded(oracle, lake):
    entries = (
        Keys.of("id", pa.array(range(40, 160), pa.int64())),
        Keys.of("spread", spread_keys(3)),
        Keys.of(("few", "id"), pa.array([1, 2, 1, 0] * 100, pa.int32()), pa.array(range(400), pa.int64())),
        Keys.of("word", pa.array([f"{value:05}\U0001f600" for value in range(0, 4000, 20)])),
    )
    # Rows 40 to 159 lie in files 0 and 1, in row groups 0 to 3.
    oracle.check(lake, *entries, expected=skips((2, FILES), (4, GROUPS), ReasonCode.UNCLUSTERED))


def test_empty_key_set_reads_nothing(oracle, lake):
    entries = (Keys.of("id", pa.array([1, 2])), Keys.of("spread", pa.array([None, None], pa.int64())))
    oracle.check(lake, *entries, expected=skips((0, FILES), (0, GROUPS)))


def test_disjoint_key_sets_read_nothing(oracle, lake):
    entries = (Keys.of("id", pa.array([1, 120, 399])), Keys.of("ID", pa.array([50, 300])))
    answer = oracle.answer(lake, entries)
    assert not answer.matching
    df = pruned_read(oracle.spark, lake.source, keys={"id": [1, 120, 399], "ID": [50, 300]}, exact=True)
    assert [] == df.collect()


# Keys in the first, third and last row group, with gaps of one and of four row groups between them.
SPARSE = Keys.of("id", pa.array([3, 130, 140, 399], pa.int64()))


def test_two_ranges_keep_the_smaller_gap(oracle, lake):
    # A row filter by literals lets the reader skip more than the ranges do.
    oracle.check(
        lake,
        SPARSE,
        options=PruningOptions().with_limits(max_ranges=2),
        expected=skips((3, FILES), (4, GROUPS), pages=True),
    )


def test_one_range_keeps_all_between_the_keys(oracle, lake):
    # A file list names Parquet files exactly, for any number of ranges.
    files, groups = (FILES, GROUPS) if lake.format == "delta" else (3, 6)
    plan = oracle.check(
        lake,
        SPARSE,
        options=PruningOptions().with_limits(max_ranges=1),
        expected=Skips(files=(files, FILES), pages=True),
    )
    assert groups == plan.row_groups_kept


def test_keys_over_the_limit_still_skip_by_their_span(oracle, lake):
    keys = Keys.of("id", pa.array(range(60, 90), pa.int64()))
    options = ALWAYS.with_limits(max_build_keys=5)
    oracle.check(lake, keys, options=options, expected=skips((1, FILES), (1, GROUPS), ReasonCode.KEYS_OVER_LIMIT))


@pytest.mark.parametrize("most", [0, 1, 3])
def test_footer_limit_skips_by_log_statistics(oracle, lake, most):
    keys = Keys.of("id", pa.array([10, 20, 120], pa.int64()))
    # Spark's reader skips row groups by footers that the plan did not read.
    plan = oracle.check(lake, keys, options=PruningOptions().with_limits(max_footers=most), expected=Skips(pages=True))
    assert plan.row_groups_total is None
    if lake.format == "delta":
        assert 2 == plan.files_kept
    else:
        assert ReasonCode.NO_ROW_GROUPS_READ in reason_codes(plan)


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        (["word"], Keys.of("id", pa.array([5, 250]))),
        (["few", "id"], Keys.of("spread", pa.array([10, 20]))),
        (["ID"], Keys.of("Id", pa.array([5, 250]))),
        (["word"], Keys.of(("id", "few"), pa.array([5, 250]), pa.array([1, 2], pa.int32()))),
    ],
)
def test_selected_columns_need_not_include_the_keys(oracle, lake, columns, keys):
    oracle.check(lake, keys, columns=columns)


ONE = skips((1, FILES), (1, GROUPS))
# Expected skips for keys in one row group: Delta, Parquet.
SESSIONS: Mapping[str, tuple[Mapping[str, str], Skips, Skips]] = {
    "AQE off": ({"spark.sql.adaptive.enabled": "false"}, ONE, ONE),
    "ANSI off": ({"spark.sql.ansi.enabled": "false"}, ONE, ONE),
    "no codegen": ({"spark.sql.codegen.wholeStage": "false"}, ONE, ONE),
    "case-sensitive": ({"spark.sql.caseSensitive": "true"}, ONE, ONE),
    "zone": ({"spark.sql.session.timeZone": "America/St_Johns"}, ONE, ONE),
    "quoted names": ({"spark.sql.ansi.doubleQuotedIdentifiers": "true"}, ONE, ONE),
    "legacy parser": ({"spark.sql.legacy.timeParserPolicy": "LEGACY"}, ONE, ONE),
    "one row a batch": ({"spark.sql.parquet.columnarReaderBatchSize": "1"}, ONE, ONE),
    "not vectorised": (
        {"spark.sql.parquet.enableVectorizedReader": "false"},
        skips((FILES, FILES), (GROUPS, GROUPS), ReasonCode.NOT_VECTORISED),
        skips((1, FILES), (2, GROUPS), ReasonCode.NOT_VECTORISED),
    ),
    "no pushdown": (
        {"spark.sql.parquet.filterPushdown": "false"},
        skips((1, FILES), (2, GROUPS)),
        skips((1, FILES), (2, GROUPS), ReasonCode.SKIPPING_DISABLED),
    ),
    "no Delta skipping": (
        {"spark.databricks.delta.stats.skipping": "false"},
        skips((FILES, FILES), (GROUPS, GROUPS), ReasonCode.SKIPPING_DISABLED),
        ONE,
    ),
    # A DataSource V2 scan takes no file list.
    "v1 sources off": (
        {"spark.sql.sources.useV1SourceList": ""},
        ONE,
        skips(None, None, ReasonCode.STATISTICS_FAILED, ReasonCode.NO_STATISTICS),
    ),
}


@pytest.mark.parametrize("session", SESSIONS)
def test_session_settings_change_no_rows(oracle, spark, lake, session):
    settings, delta, parquet = SESSIONS[session]
    with conf(spark, settings):
        oracle.check(lake, Keys.of("id", pa.array([60, 90])), expected=delta if lake.format == "delta" else parquet)


def test_options_are_read_from_session_confs(oracle, spark, lake):
    keys = Keys.of("id", pa.array([3, 130, 399], pa.int64()))
    with conf(spark, {"spark.pruning.limits.max_ranges": "2", "spark.pruning.limits.max_in_list": "0"}):
        oracle.check(lake, keys, expected=Skips((3, FILES), (4, GROUPS)))
    with conf(spark, {"spark.pruning.enabled": "false"}):
        plan = oracle.check(lake, keys, expected=skips(None, None, ReasonCode.SWITCHED_OFF))
        # Storage is not read.
        assert (None, None) == (plan.files_total, plan.row_groups_total)
    # An explicit argument overrides the session.
    with conf(spark, {"spark.pruning.enabled": "false"}):
        oracle.check(lake, keys, options=PruningOptions(), expected=skips((3, FILES), (3, GROUPS)))
