"""Joins by several columns: what no row of the build has together is skipped, however the columns reach the scan."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pruning import PruningOptions, explain, report
from pruning.reasons import ReasonCode
from tests.oracle.lakes import Layout, spark_frame, write
from tests.oracle.test_tuples import GROUPS, LAYOUT, PAIRS, orders

pytestmark = pytest.mark.spark

OPTIONS = PruningOptions(min_probe_bytes=0)
# Every shop and every number occurs, and the pairs of `PAIRS` alone together where `kind` is 1; twice, and with NULLs.
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


def together(df, table="orders"):
    """The columns of filters of several ones."""
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
def test_what_lies_between_pairs_is_skipped(ways, join):
    _, result = ways.agreed(JOINS[join], OPTIONS)
    found = scan_of(result)
    assert BOTH == together(result)
    assert (4, GROUPS) == (found.planned.row_groups_kept, found.planned.row_groups_total)
    assert 4 * LAYOUT.group_rows == found.measured.rows_scanned
    assert found.measured.files_read == found.planned.files_kept


@pytest.mark.parametrize("scan", ["ARROW", "AUTO"])
def test_pyarrow_opens_row_groups_with_a_pair_alone(ways, scan):
    _, result = ways.agreed(JOINS["inner"], PruningOptions(min_probe_bytes=0, scan=scan))
    assert 4 == scan_of(result).planned.row_groups_kept


SINGLE = {
    # Rows without a value match rows without one.
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
def test_columns_that_are_not_asked_for_together(ways, join):
    query = SINGLE[join]
    _, result = ways.agreed(query, OPTIONS, duck=query.replace("<=>", "IS NOT DISTINCT FROM"))
    assert [] == [columns for each in report(result).tables for columns in together(result, each.planned.table)]


def test_rows_that_a_later_run_may_not_give_are_no_keys_together_either(spark, ways):
    # What is cached may be lost and made anew from a table that has changed, so the query has to take the same rows.
    cached = spark.table("wanted").where("kind = 1").cache()
    ways.view("cached", cached)
    try:
        query = "SELECT o.id FROM orders o JOIN cached ON shop = s AND number = n JOIN names m ON o.shop = m.shop"
        query += " WHERE m.name >= 'n3'"
        _, result = ways.agreed(query, PruningOptions(min_probe_bytes=0, broadcast_strategy="NONE"))
        filters = scan_of(result).planned.filters
        assert [("shop",)] == [each.columns for each in filters]
        assert ReasonCode.UNREPEATABLE_KEYS in {each.code for each in explain(result).reasons}
        # Rows that the query takes as they are may be keys.
        _, result = ways.agreed(query, OPTIONS)
        assert BOTH == together(result)
    finally:
        cached.unpersist(blocking=True)


def test_two_joins_with_the_same_rows_filter_once(ways):
    twice = "SELECT o.id FROM orders o JOIN wanted w ON shop = w.s AND number = w.n JOIN wanted x "
    _, result = ways.agreed(twice + "ON shop = x.s AND number = x.n WHERE w.kind = 1 AND x.kind = 1", OPTIONS)
    assert BOTH == together(result)


def test_rows_that_are_kept_by_one_side_are_not_skipped(ways):
    df, result = ways.agreed("SELECT * FROM orders LEFT JOIN wanted ON shop = s AND number = n AND kind = 1", OPTIONS)
    assert df._jdf is result._jdf


def test_what_is_explained_names_the_columns_together(spark):
    told = str(explain(spark.sql(JOINS["inner"]), options=OPTIONS, run_builds=True))
    assert "shop, number" in told or "number, shop" in told
