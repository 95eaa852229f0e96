"""`QueryOrigin`: names of tables, and executions of commands."""

from __future__ import annotations

import pytest

from pruning.results.query_origin import QueryOrigin

FOUND = QueryOrigin(7, 5, tables=("spark_catalog.shop.Sales", "file:/lake/sales", "s3a://bucket/lake/days.v2"))


@pytest.mark.parametrize(
    ("table", "is_read"),
    [
        ("sales", True),
        ("SHOP.sales", True),
        ("spark_catalog.`shop`.sales", True),
        ("/lake/sales", True),
        ("/lake/sales/", True),
        ("/lake", True),
        ("lake/sales", True),
        ("file:///lake/sales", True),
        ("delta.`/lake/sales`", True),
        ("s3a://bucket/lake/days.v2", True),
        ("s3a://bucket", True),
        ("days.v2", True),
        ("ales", False),
        ("shop", False),
        ("other.sales", False),
        ("lake", False),
        ("/lake/sale", False),
        ("/sales", False),
        ("/lake/sales/day=1", False),
        ("s3a://other/lake/days.v2", False),
        ("v2", False),
    ],
)
def test_table_is_named_by_its_path_or_by_the_last_parts_of_its_name(table, is_read):
    assert is_read == FOUND.reads(table)


def test_folders_of_a_table_count_as_the_table():
    assert QueryOrigin(tables=("file:/lake/sales/day=1",)).reads("/lake/sales")


def test_query_is_of_its_execution_and_of_that_of_its_command():
    assert [True, True, False] == [FOUND.is_of(each) for each in (7, 5, 6)]
    assert not QueryOrigin().is_of(0)
