"""EXCEPT ALL and INTERSECT ALL of a pruned query: Spark repeats rows by an operator that makes the columns it reads."""

from __future__ import annotations

import pytest

from pruning import prune, report
from sample_data.rows import Rows
from tests.in_session import in_session
from tests.queries.star import FILES, OPTIONS

pytestmark = pytest.mark.spark

PART = "SELECT s.item FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
FORMS = {
    "except": f"{PART} EXCEPT ALL SELECT item FROM {{sales}} WHERE day < 20",
    "intersect": f"{PART} INTERSECT ALL SELECT item FROM {{sales}} WHERE day % 2 = 0",
    "inside": "SELECT day, item FROM {sales} "
    f"WHERE item IN ({PART} INTERSECT ALL SELECT item FROM {{sales}} WHERE day < 9)",
    "beside": f"SELECT o.item, count(*) FROM ({PART} EXCEPT ALL SELECT item FROM {{sales}} WHERE day < 20) o "
    "JOIN {sales} s ON o.item = s.item GROUP BY o.item",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.quick(4)
def test_rows_are_those_of_spark_through_both_doors(spark, star, form):
    text = FORMS[form].format(sales=f"{star}sales", days=f"{star}days")
    df = spark.sql(text)
    expected = Rows(df.collect())
    assert len(expected) > 0
    result = prune(df, options=OPTIONS)
    assert expected == Rows(result.collect())
    assert df.count() == result.count()
    told = report(result)
    rows, in_a_session = in_session(spark, OPTIONS, lambda: Rows(spark.sql(text).collect()))
    assert expected == rows
    kept = sorted(each.planned.files_kept for each in told.tables)
    assert kept == sorted(each.planned.files_kept for each in in_a_session.tables)
    assert kept[0] < FILES
