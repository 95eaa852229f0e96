"""Names that Spark could resolve wrongly: a struct named like its table, and internal names of a read."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pruning import explain, pruned_read, report

pytestmark = pytest.mark.spark

ROWS = 20
HOSTILE = "o'k`\\[x]"


@pytest.fixture(params=["delta", "parquet"])
def customer(spark, request):
    """A table with a struct of the table's name, whose field has the name of another column."""
    leaves = F.struct(F.col("id"), (F.col("id") * 2).alias(HOSTILE))
    frame = spark.range(0, ROWS, 1, 2).select((F.col("id") + 100).alias("id"), leaves.alias("customer"))
    frame.write.format(request.param).mode("overwrite").saveAsTable("customer")
    yield "customer"
    spark.sql("DROP TABLE customer")


# Failure catalogue 128: a name before a dot is resolved as the table first.
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("wide", [False, True], ids=["list", "frame"])
def test_struct_named_like_its_table_is_filtered_by_its_field(spark, customer, exact, wide):
    keys = spark.range(ROWS).where("id = 4 OR id > 12") if wide else [4]
    read = pruned_read(spark, customer, keys={"customer.id": keys}, exact=exact)
    wanted = sorted(row.id for row in keys.collect()) if wide else [4]
    rows = read.collect()
    found = sorted(row.customer.id for row in rows)
    assert set(wanted) <= set(found)
    assert found == wanted or not exact
    assert all(row.id == row.customer.id + 100 for row in rows)
    if not wide:
        assert (1, 2) == (explain(read).tables[0].files_kept, explain(read).tables[0].files_total)
        assert 1 == report(read).measured.files_read


def test_fields_are_selected_under_their_own_names(spark, customer):
    field = f"customer.`{HOSTILE.replace('`', '``')}`"
    read = pruned_read(spark, customer, keys={field: [8]}, columns=["customer.id", field, "id"], exact=True)
    assert ["id", HOSTILE, "id"] == read.columns
    assert [(4, 8, 104)] == [tuple(row) for row in read.collect()]


@pytest.mark.parametrize("name", ["__scanprune_key_0", "__SCANPRUNE_KEY_0"])
def test_column_with_an_internal_name(spark, tmp_path, name):
    spark.range(0, ROWS, 1, 2).selectExpr("id", f"id * 2 AS `{name}`").write.parquet(str(tmp_path / "t"))
    keys = spark.range(0, 9).selectExpr("id * 2 AS k").where("k <> 6")
    for column, factor in (("id", 1), (name, 2)):
        read = pruned_read(spark, str(tmp_path / "t"), keys={column: keys, ("id", name): [(4, 8), (8, 16)]}, exact=True)
        assert [4, 8] == sorted(row.id for row in read.collect()), factor
