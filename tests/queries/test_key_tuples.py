"""Joins by several columns skip containers without any key tuple of the build, for every path of the columns to the
scan.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pruning import explain, report
from pruning.reasons import ReasonCode
from tests.costs import ALWAYS
from tests.oracle.lakes import Layout, spark_frame, write
from tests.oracle.test_tuples import GROUPS, LAYOUT, PAIRS, orders
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

# By each column alone, the keys of these joins skip little.
OPTIONS = ALWAYS
# All shops and numbers occur. Rows of `kind` 1 have only the pairs of `PAIRS`, each twice, and pairs with NULL.
WANTED = [(*pair, 1) for pair in (*PAIRS, *PAIRS, (None, 5), (1, None))]
WANTED += [(shop, number, 2) for shop in range(9) for number in range(1, 101)]


@pytest.fixture(scope="module", params=["delta", "parquet"], autouse=True)
def _lake(request, spark, ways, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuples")
    written = write(spark, folder / "orders", request.param, orders(), LAYOUT)
    ways.view("orders", spark.read.format(request.param).load(written.source))
    shops, numbers, kinds = zip(*WANTED, strict=True)
    rows = pa.table({"s": pa.array(shops, pa.int64()), "n": pa.array(numbers, pa.int32()), "kind": pa.array(kinds)})
    wanted = write(spark, folder / "wanted", request.param, rows, Layout(2000, 2000))
    ways.view("wanted", spark.read.format(request.param).load(wanted.source))
    ways.view(
        "names", spark_frame(spark, pa.table({"shop": pa.array(range(9)), "name": [f"n{at}" for at in range(9)]}))
    )


def scan_of(df, table="orders"):
    (found,) = (each for each in report(df).tables if each.planned.table == table)
    return found


def tuple_columns(df, table="orders"):
    """The columns of each filter by several columns."""
    found = (each for each in scan_of(df, table).planned.filters if len(each.columns) > 1)
    return [tuple(sorted(each.columns)) for each in found]


BOTH = [("number", "shop")]
JOINS = {
    "inner": "SELECT o.*, kind FROM orders o JOIN wanted ON shop = s AND number = n WHERE kind = 1",
    "semi": "SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM wanted WHERE shop = s AND number = n AND kind = 1)",
    "outer": "SELECT s, n, id FROM (SELECT * FROM wanted WHERE kind = 1) LEFT JOIN orders ON shop = s AND number = n",
    "anti": "SELECT * FROM wanted WHERE kind = 1 AND NOT EXISTS (SELECT 1 FROM orders WHERE shop = s AND number = n)",
    "groups": (
        "SELECT g.* FROM (SELECT shop, number, count(*) c FROM orders GROUP BY shop, number) g "
        "JOIN wanted ON number = n AND shop = s WHERE kind = 1"
    ),
    "by an equal column": (
        "SELECT o.id, name FROM orders o JOIN names m ON o.shop = m.shop "
        "JOIN wanted ON m.shop = s AND number = n WHERE kind = 1"
    ),
}


@pytest.mark.parametrize("join", JOINS)
def test_row_groups_between_key_pairs_are_skipped(ways, join):
    _, result = ways.agreed(JOINS[join], OPTIONS)
    found = scan_of(result)
    assert BOTH == tuple_columns(result)
    assert (4, GROUPS) == (found.planned.row_groups_kept, found.planned.row_groups_total)
    assert 4 * LAYOUT.group_rows == found.measured.rows_scanned
    assert found.measured.files_read == found.planned.files_kept


SINGLE = {
    # NULL matches NULL here.
    "a NULL that is equal": "SELECT o.id FROM orders o JOIN wanted ON shop = s AND number <=> n WHERE kind = 1",
    "a comparison": "SELECT o.id FROM orders o JOIN wanted ON shop = s AND number <= n WHERE kind = 1",
    "a computed key": "SELECT o.id FROM orders o JOIN wanted ON shop = s AND number = n + 1 WHERE kind = 1",
    "one column": "SELECT o.id FROM orders o JOIN wanted ON shop = s WHERE kind = 1",
    "columns of two builds": (
        "SELECT o.id FROM orders o JOIN (SELECT s FROM wanted WHERE kind = 1) ON shop = s "
        "JOIN (SELECT DISTINCT n FROM wanted WHERE kind = 1) ON number = n"
    ),
    "all pairs": "SELECT o.id FROM orders o JOIN wanted ON shop = s AND number = n WHERE kind = 2 AND n IN (5, 95)",
}


@pytest.mark.parametrize("join", SINGLE)
def test_other_joins_have_no_key_tuples(ways, join):
    query = SINGLE[join]
    _, result = ways.agreed(query, OPTIONS, duck=query.replace("<=>", "IS NOT DISTINCT FROM"))
    assert [] == [columns for each in report(result).tables for columns in tuple_columns(result, each.planned.table)]


def test_unrepeatable_rows_give_no_key_tuples(spark, ways):
    # Spark may evict cached rows and compute them again from a table that has changed, so the query must use the rows
    # of the build.
    cached = spark.table("wanted").where("kind = 1").cache()
    ways.view("cached", cached)
    try:
        query = "SELECT o.id FROM orders o JOIN cached ON shop = s AND number = n JOIN names m ON o.shop = m.shop"
        query += " WHERE m.name >= 'n3'"
        _, result = ways.agreed(query, replace(ALWAYS, broadcast_strategy="NONE"))
        filters = scan_of(result).planned.filters
        assert [("shop",)] == [each.columns for each in filters]
        assert ReasonCode.UNREPEATABLE_KEYS in {each.code for each in explain(result).reasons}
        # Materialized rows may be keys.
        _, result = ways.agreed(query, OPTIONS)
        assert BOTH == tuple_columns(result)
    finally:
        cached.unpersist(blocking=True)


def test_equal_joins_give_one_filter(ways):
    twice = "SELECT o.id FROM orders o JOIN wanted w ON shop = w.s AND number = w.n JOIN wanted x "
    _, result = ways.agreed(twice + "ON shop = x.s AND number = x.n WHERE w.kind = 1 AND x.kind = 1", OPTIONS)
    assert BOTH == tuple_columns(result)


def test_preserved_side_of_an_outer_join_is_not_filtered(ways):
    df, result = ways.agreed("SELECT * FROM orders LEFT JOIN wanted ON shop = s AND number = n AND kind = 1", OPTIONS)
    assert is_unchanged(df, result)


def test_explanation_names_columns_of_a_key_tuple(spark):
    text = str(explain(spark.sql(JOINS["inner"]), options=OPTIONS, run_builds=True))
    assert "shop, number" in text or "number, shop" in text
