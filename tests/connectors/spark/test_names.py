from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812

from connectors.registry import open_table
from connectors.spark.files import is_name
from pruning import explain, pruned_read
from pruning.errors import SourceNotFoundError
from pruning.limits import LIMITS

pytestmark = pytest.mark.spark


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opened(spark, source):
    return open_table(spark, source, format_=None, version=None, timestamp=None, limits=LIMITS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("/data/sales", False),
        ("s3a://bucket/sales", False),
        ("data/*.parquet", False),
        ("shop.sales", True),
        ("t", True),
        ("delta.`/data/sales`", True),
    ],
)
def test_slash_distinguishes_paths_from_names(spark, source, expected):
    assert expected == is_name(spark, source)


@pytest.mark.parametrize("name", ["sales", "sales.parquet.bak.old", "it's; DROP TABLE x"])
def test_entry_of_the_working_directory_is_a_path(spark, here, name):
    (here / name).mkdir()
    assert not is_name(spark, name)


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_catalog_table_precedes_a_directory_of_its_name(spark, here, format_):
    spark.range(3).write.format(format_).mode("overwrite").saveAsTable("both_names")
    try:
        spark.range(5).write.parquet(str(here / "both_names"))
        table = opened(spark, "both_names")
        assert (format_, 3) == (table.connector.name, table.read(None).count())
    finally:
        spark.sql("DROP TABLE both_names")


# Failure catalogue 114: the path is not percent-decoded before it reaches the file system.
@pytest.mark.parametrize("prefix", ["", "file:"])
def test_format_detection_uses_the_exact_path(spark, tmp_path, prefix):
    path = tmp_path / "a%20b"
    spark.range(4).withColumn("part", F.lit(1)).write.format("delta").save(str(path))
    spark.range(2).write.parquet(str(tmp_path / "a b"))
    table = opened(spark, f"{prefix}{path}")
    assert ("delta", 4) == (table.connector.name, table.read(None).count())


def test_path_in_backticks_is_read(spark, tmp_path):
    spark.range(4).coalesce(1).write.format("delta").save(str(tmp_path / "t"))
    read = pruned_read(spark, f"delta.`{tmp_path}/t`", keys={"id": [99]})
    assert (0, 1, 0) == (explain(read).tables[0].files_kept, explain(read).tables[0].files_total, read.count())


def test_unknown_file_system_is_an_error(spark):
    with pytest.raises(SourceNotFoundError, match="Cannot look at 'nowhere://x/y'"):
        opened(spark, "nowhere://x/y")
