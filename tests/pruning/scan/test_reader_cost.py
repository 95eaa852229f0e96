"""The estimated cost of each reader, and the reader that is chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pruning.cost.rates import CostRates
from pruning.errors import InvalidOptionError
from pruning.options import ARROW, PREDICATE, PruningOptions
from pruning.scan.reader_cost import KeySample, KeyWork, ReaderCase, RowGroupWork, Sample, by_arrow, by_predicate

NOTHING = CostRates.parse(
    "byte=0,spark_value=0,spark_test=0,arrow_value=0,arrow_test=0,arrow_search=0,arrow_handed=0,arrow_task=0,arrow_scan=0"
)
FREE = replace(NOTHING, joined_row=0.0)
# Two row groups with a thousand rows and three columns.
WORK = RowGroupWork(np.array([1000, 1000]), np.array([900, 1100]), 3)


def keys(*ratios, size=100):
    return [KeyWork(each, np.array([size, size])) for each in ratios]


def seconds(estimate):
    return pytest.approx(estimate.seconds)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ("byte", 2000),
        ("spark_value", 6000),
        ("spark_test", 4000),
        ("joined_row", 2000 * 0.5 * 0.1),
        ("arrow_value", 0),
        ("arrow_task", 0),
    ],
)
def test_spark_reader_decodes_all_columns_and_tests_every_row(cost, expected):
    found = by_predicate(WORK, [0.5, 0.1], replace(FREE, **{cost: 1.0}))
    assert (2000, expected / 1e9) == (found.bytes, seconds(found))


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ("arrow_value", 2000 + 2000 + 2000),
        ("arrow_test", 2000 + 2000),
        ("arrow_handed", 2000 * 0.05 * 3),
        ("joined_row", 2000 * 0.05),
        ("arrow_task", 7),
        ("arrow_scan", 1),
        ("remote_byte", 0),
        ("byte", 2000),
        ("spark_value", 0),
    ],
)
def test_pyarrow_decodes_keys_and_hands_over_passing_rows(cost, expected):
    found = by_arrow(WORK, keys(0.5, 0.1), 0.05, 7, replace(FREE, **{cost: 1.0}))
    assert (2000, expected / 1e9) == (found.bytes, seconds(found))


def test_columns_after_a_key_are_read_only_for_survivors():
    """A key that passes one row in two thousand leaves no row in half of the row groups, so later columns are not read
    there.
    """
    first, rest = 200, 1600
    read = 1 - (1 - 1 / 2000) ** 1000
    found = by_arrow(WORK, keys(0.3, 1 / 2000), 1 / 2000, 0, FREE)
    # The most selective key goes first, in any position.
    assert first + read * first + (1 - (1 - 1 / 2000) ** 1000) * rest == pytest.approx(found.bytes, abs=1)
    assert 2 * first == by_arrow(WORK, keys(1.0, 1.0), 0.0, 0, FREE).bytes
    assert first == by_arrow(WORK, keys(0.0, 0.5), 0.0, 0, FREE).bytes


def case(costs, *ratios):
    return ReaderCase(WORK, [0.5], WORK, keys(*ratios), 2, costs)


@pytest.mark.parametrize(("by_spark", "expected"), [(13.1, ARROW), (12.9, PREDICATE), (9.0, PREDICATE)])
def test_pyarrow_is_chosen_only_if_clearly_cheaper(by_spark, expected):
    """The least difference that counts is ten against thirteen, because estimates are as far off."""
    costs = replace(FREE, spark_value=by_spark, arrow_task=10.0 * 2000 * 3 / 2)
    assert expected == case(costs, 0.5).choice().scan


def test_sampled_pass_ratio_overrides_the_estimate():
    costs = replace(FREE, spark_value=1.0, arrow_handed=2.0)
    assert ARROW == case(costs, 0.001).choice().scan
    seen = case(costs, 0.001).choice(Sample(0.99, (None,)))
    assert (PREDICATE, 0.99) == (seen.scan, seen.survivors)


def test_sampled_cost_of_a_key_overrides_the_default():
    """Three string keys took some hundred nanoseconds per test; estimated as numbers, they made scans five times slower
    than Spark's reader.
    """
    cost = replace(FREE, arrow_value=2.0, arrow_test=1.0, spark_value=10.0)
    assert ARROW == case(cost, 0.5, 0.5, 0.5).choice().scan
    slow = Sample(0.1, (KeySample(0.5, 100.0), KeySample(0.5, 150.0), None))
    found = case(cost, 0.5, 0.5, 0.5).choice(slow)
    assert PREDICATE == found.scan
    assert 2000 * (100 + 150 + 3) / 1e9 == seconds(found.arrow)
    assert str(slow) == "10.00% of the rows of a row group pass; its keys take 250 ns a row"
    # A sample faster than the constants does not lower the cost: the other constants are those of a slower machine.
    quick = Sample(0.1, (KeySample(0.5, 0.1), KeySample(0.5, 0.1), KeySample(0.5, None)))
    assert 2000 * 9 / 1e9 == seconds(case(cost, 0.5, 0.5, 0.5).choice(quick).arrow)
    assert str(Sample(0.5, (None,))) == "50.00% of the rows of a row group pass"


def test_sampled_pass_ratio_of_each_key_counts():
    """The first key passes no row of most row groups, so the second key is not read there."""
    cost = replace(FREE, arrow_test=1.0)
    found = case(cost, 0.5, 0.5).choice(Sample(1e-6, (KeySample(1e-6), None)))
    assert 2000 * (1 + 0.001) / 1e9 == pytest.approx(found.arrow.seconds, rel=1e-3)


@pytest.mark.parametrize(("is_dense", "expected"), [(True, 3.0), (False, 100.0)])
def test_searched_values_cost_more_unless_sampled(is_dense, expected):
    cost = replace(FREE, arrow_value=2.0, arrow_test=1.0, arrow_search=100.0)
    key = KeyWork(0.5, np.array([1, 1]), is_dense)
    assert expected == key.value(cost)
    assert 3.0 == replace(key, nanoseconds=1.0).value(cost)


def test_text_of_a_choice_has_both_estimates():
    text = str(case(replace(FREE, spark_value=1e6, arrow_task=1e9), 0.001).choice())
    assert text.startswith(
        "expected to take 6.00 s of a core for 2.0 KiB by Spark's reader, 2.00 s of a core for 1.3 KiB by"
    )
    assert text.endswith("pyarrow; 0.10% of the rows expected to pass")


def test_bytes_of_an_object_store_have_their_own_cost():
    costs = replace(FREE, remote_byte=3.0)
    remote = replace(WORK, is_remote=True)
    assert 6000e-9 == pytest.approx(by_predicate(remote, [], costs).seconds)
    assert 6000e-9 == pytest.approx(by_arrow(remote, keys(1.0), 1.0, 1, costs).seconds)


def test_scan_without_rows_costs_only_tasks():
    none = RowGroupWork(np.array([], np.int64), np.array([], np.int64), 3)
    found = by_arrow(none, [KeyWork(0.5, np.array([], np.int64))], 0.5, 1, CostRates())
    assert (0, (CostRates().arrow_task + CostRates().arrow_scan) / 1e9) == (found.bytes, seconds(found))


def test_costs_round_trip_as_text():
    costs = replace(CostRates(), byte=0.25, arrow_task=12_340_000.0)
    assert (
        costs
        == CostRates.parse(str(costs))
        == PruningOptions.from_confs({"spark.pruning.limits.costs": str(costs)}).limits.costs
    )


@pytest.mark.parametrize(
    "text", ["bytes=1", "byte", "byte=x", "byte=-1", "byte=nan", "byte=inf", "byte=1;arrow_task=2"]
)
def test_invalid_costs_are_refused(text):
    with pytest.raises(InvalidOptionError, match=r"Cannot set 'spark.pruning.limits.costs' to .*: expected rates as"):
        PruningOptions.from_confs({"spark.pruning.limits.costs": text})
    with pytest.raises(InvalidOptionError, match="Cannot set 'costs'"):
        PruningOptions().with_limits(costs=text)
