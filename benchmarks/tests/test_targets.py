"""Tests of targets, which are met, missed, or not measured by the recorded contests."""

from __future__ import annotations

import pytest

from benchmarks.contest.ratios import saved, with_ratios
from benchmarks.contest.targets import lines
from sample_data.tpcds_queries import SELECTIVE

TEN = [f"q{number}" for number in SELECTIVE]
ALL = [f"q{number}" for number in range(1, 100)]


def rows(queries=TEN, layout="delta", **contenders):
    """A row for each query and contender, with (bytes, seconds, peak bytes), or fewer of them."""
    fields = ("bytes", "seconds", "peak_bytes")
    return with_ratios(
        [
            {"layout": layout, "query": query, "contender": name, **dict(zip(fields, numbers, strict=False))}
            for query in queries
            for name, numbers in contenders.items()
        ]
    )


def told(found, what, at=0):
    """The number and the verdict of the target named `what`; `at` selects one of several with the same name."""
    return [each[2:] for each in lines(found) if each[0] == what][at]


@pytest.mark.parametrize(
    ("ours", "expected"), [(11, ("1.10", "met")), (12, ("1.20", "missed")), (None, ("not measured", ""))]
)
def test_bytes_are_compared_by_their_mean(ours, expected):
    pruned = {} if ours is None else {"pruned": (ours, 1.0)}
    found = {"contest-sf10": rows(**pruned, stock=(100, 2.0), limit=(10,))}
    assert expected == told(found, "bytes of the ten queries to the row-group limit")


@pytest.mark.parametrize(("seconds", "expected"), [(1.0, ("2.50x", "met")), (1.25, ("2.00x", "missed"))])
def test_seconds_are_compared_by_their_mean(seconds, expected):
    found = {"contest-sf10": rows(pruned=(1, seconds), stock=(1, 2.5))}
    assert expected == told(found, "the ten, warm, times faster than stock Spark")
    assert ("not measured", "") == told(found, "the ten over the object store, times faster")


def test_a_target_is_not_measured_by_some_of_its_queries():
    found = {"contest-sf10": rows(TEN[:8], pruned=(1, 1.0), stock=(1, 2.5))}
    assert {"not measured"} == {each[2] for each in lines(found)}


def test_a_target_is_not_measured_unless_others_answered_all_of_its_queries():
    ours = rows(ALL, pruned=(1, 1.0))
    found = {"contest-sf10": with_ratios(ours + rows(ALL[:50], stock=(1, 2.0), limit=(1,)))}
    assert {"not measured"} == {each[2] for each in lines(found)}


def test_a_target_with_a_failed_query_is_not_measured():
    whole = rows(pruned=(1, 1.0), stock=(1, 2.5))
    whole[0] = {"layout": "delta", "query": TEN[0], "contender": "pruned", "failed": "ended"}
    assert ("not measured", "") == told({"contest-sf10": whole}, "the ten, warm, times faster than stock Spark")


def test_savings_are_shown_with_those_of_the_row_group_limit():
    what = "all 99, once: bytes of stock Spark no longer read"
    without = rows(ALL, pruned=(30, 6.0), stock=(100, 10.0))
    assert ("70.0%", "missed") == told({"contest-once-sf10": without}, what)
    some = without + rows(TEN, limit=(1,))
    assert ("70.0%", "missed") == told({"contest-once-sf10": some}, what)
    every = rows(ALL, pruned=(20, 5.0), stock=(100, 10.0), limit=(0,))
    assert ("80.0% (the row-group limit: 100.0%)", "met") == told({"contest-once-sf10": every}, what)
    assert ("50.0%", "met") == told({"contest-once-sf10": every}, "all 99, once: seconds of stock Spark saved")
    assert ("2.00x", "missed") == told({"contest-once-sf10": every}, "all 99, once: times faster")


def test_queries_that_read_more_than_stock_are_counted():
    what = "all 99, once: most bytes to stock Spark"
    few = rows(ALL[1:], pruned=(102, 1.0), stock=(100, 1.0))
    for ours, expected in ((102, ("q1: 1.02, 0 read more", "met")), (103, ("q1: 1.03, 1 read more", "missed"))):
        assert expected == told({"contest-once-sf10": rows(ALL[:1], pruned=(ours, 1.0), stock=(100, 1.0)) + few}, what)


@pytest.mark.parametrize(
    ("ours", "stock", "expected"),
    [
        (0.30, 0.20, ("q1: 1.50 (+0.10 s)", "met")),
        (10.4, 10.0, ("q1: 1.04 (+0.40 s)", "met")),
        (0.40, 0.20, ("q1: 2.00 (+0.20 s), 1 slower", "missed")),
    ],
)
def test_a_query_may_be_slower_by_a_small_ratio_or_a_fraction_of_a_second(ours, stock, expected):
    others = rows(ALL[1:], pruned=(1, 1.0), stock=(1, 1.0))
    found = {"contest-once-sf10": rows(ALL[:1], pruned=(1, ours), stock=(1, stock)) + others}
    assert expected == told(found, "all 99, once: slowest to stock Spark")


@pytest.mark.parametrize(
    ("ours", "every", "expected"),
    [
        (2.0, 1.0, ("1 faster: a1", "missed")),
        (1.19, 1.0, ("none faster", "met")),
        (0.24, 0.1, ("none faster", "met")),
    ],
)
def test_every_filter_may_be_faster_by_a_small_ratio_or_a_fraction_of_a_second(ours, every, expected):
    names = [f"a{number}" for number in range(1, 61)]
    others = rows(names[1:], pruned=(1, 1.0), always=(1, 1.0))
    found = {"contest-analyst-sf8": rows(names[:1], pruned=(1, ours), always=(1, every)) + others}
    assert expected == told(found, "all of `analyst`: faster by every filter")


def test_layouts_and_memory_have_targets_of_their_own():
    found = {
        "contest-prune-sf10": rows(layout="partitioned", pruned=(1, 1.0), stock=(1, 1.3)),
        "contest-apart-sf10": rows(pruned=(1, 1.0, 1.2e9), stock=(1, 1.0, 1e9)),
    }
    assert ("1.30x", "met") == told(found, "date-partitioned, times faster")
    assert ("q10: 0.77 (-0.30 s)", "met") == told(found, "date-partitioned, slowest")
    assert ("+200 MB", "met") == told(found, "peak memory above stock Spark's")
    assert ("not measured", "") == told(found, "the ten, warm, times faster than stock Spark")


def test_saved_is_none_without_a_query_that_both_answered():
    assert saved(rows(pruned=(1, 1.0)), "bytes") is None
