"""The MERGE that README has for each UPDATE and DELETE with a subquery, which Delta refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from sample_data.rows import Rows

pytestmark = [pytest.mark.spark, pytest.mark.full]

README = Path(__file__).parents[2] / "connectors" / "session" / "README.md"
(_EXAMPLES,) = re.findall(r"```sql\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
EXAMPLES = re.findall(r"-- (.*?)\n(.*?);", _EXAMPLES, re.DOTALL)
# The rows that each refused statement would leave, by the meaning of its subqueries.
_RETURNED = "id IN (SELECT id FROM returns)"
EXPECTED = (
    f"SELECT * FROM orders WHERE id IS NULL OR NOT coalesce({_RETURNED}, false)",
    (
        "SELECT id, CASE WHEN id IN (SELECT id FROM returns WHERE refund >= 10 AND id IS NOT NULL)"
        " THEN 0 ELSE price END FROM orders"
    ),
    (
        "SELECT id, CASE WHEN id IN (SELECT id FROM returns WHERE id IS NOT NULL)"
        " THEN (SELECT max(refund) FROM returns r WHERE r.id = orders.id) ELSE price END FROM orders"
    ),
)


CASES = [(*example, expected) for example, expected in zip(EXAMPLES, EXPECTED, strict=True)]


@pytest.mark.parametrize(("refused", "merge", "expected"), CASES, ids=["delete", "update", "set"])
def test_merge_does_what_a_refused_statement_would(spark, enabled, tmp_path, refused, merge, expected, targets):
    target, returns = str(tmp_path / "target"), str(tmp_path / "returns")
    rows = spark.range(0, 8000, 1, 8).selectExpr("nullif(id, 7000) AS id", "id % 97 AS price")
    rows.write.format("delta").save(target)
    # Some twice, one without an order, and one without a key.
    ids = spark.range(2100, 2140).selectExpr("id", "id % 20 AS refund")
    more = spark.sql("SELECT * FROM VALUES (2101L, 15L), (90000L, 15L), (NULL, 15L) AS more (id, refund)")
    ids.union(more).coalesce(1).write.format("delta").save(returns)

    def over(text: str) -> str:
        named = re.sub(r"\borders\b(?!\.)", f"delta.`{target}`", text)
        return re.sub(r"\breturns\b", f"delta.`{returns}`", named)

    for name, path in (("orders", target), ("returns", returns)):
        spark.read.format("delta").load(path).createOrReplaceTempView(name)
    wanted = Rows(spark.sql(expected).collect())
    for name in ("orders", "returns"):
        spark.catalog.dropTempView(name)
    enabled()
    with pytest.raises(AnalysisException, match="SUBQUERY"):
        spark.sql(over(refused))
    spark.sql(over(merge))
    assert wanted == Rows(spark.read.format("delta").load(target).collect())
    assert wanted != Rows(rows.collect())
    (searched,) = targets.found(is_pruned=True)
    assert (1, 8) == (searched.planned.files_kept, searched.planned.files_total)
