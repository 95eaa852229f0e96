"""Limits change what a query costs, and none changes its rows."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from pruning.limits import Limits
from tests.costs import ALWAYS

pytestmark = pytest.mark.spark

NAMES = [each.name for each in fields(Limits)]
QUERY = """
    SELECT s.*, d.month, i.name FROM {sales} s JOIN {days} d ON s.day = d.day JOIN {items} i ON s.item = i.item
    WHERE d.month = 2 AND i.name IN ('n1', 'n3', 'n7')
"""


@pytest.mark.quick(2)
@pytest.mark.parametrize("strategy", ["AUTO", "NONE"])
def test_rows_are_the_same_without_any_limit(pruned, strategy):
    options = replace(ALWAYS, broadcast_strategy=strategy)
    df, _ = pruned(QUERY, replace(options, limits=options.limits.without(*NAMES)))
    assert df.count()


@pytest.mark.full
@pytest.mark.parametrize("star", ["parquet"], indirect=True)
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_the_same_without_one_limit(pruned, name):
    pruned(QUERY, replace(ALWAYS, limits=ALWAYS.limits.without(name)))
