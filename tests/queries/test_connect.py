"""Spark Connect: `prune()` gives the query back and says why, and `pruned_read()` works.

A process of its own starts the server from pyspark's jars, because this process has a session with a JVM.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = """
import json
import sys
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
from pruning import explain, prune, pruned_read, report
from pruning.errors import InvalidDataFrameError
from sample_data.rows import Rows

folder = sys.argv[1]
builder = SparkSession.builder.remote("local[2]").config("spark.databricks.delta.snapshotPartitions", "2")
builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
spark = configure_spark_with_delta_pip(builder).getOrCreate()
found = {}


sales = {format_: f"{folder}/{format_}_sales" for format_ in ("delta", "parquet")}
days = spark.read.format("delta").load(f"{folder}/delta_days").where("month = 2")
joined = spark.read.format("delta").load(sales["delta"]).join(days, "day")
pruned = prune(joined)
prune(joined)
found["prune"] = [Rows(pruned.collect()) == Rows(joined.collect()), report(pruned).verdict, explain(pruned).verdict]
found["explain"] = explain(joined).verdict
for format_, path in sales.items():
    whole = spark.read.format(format_).load(path)
    for name, keys in {"values": list(range(20, 30)), "frame": days.select("day")}.items():
        read = pruned_read(spark, path, keys={"day": keys})
        rows = [Rows(df.join(days, "day").collect()) for df in (whole, read)]
        exact = pruned_read(spark, path, keys={"day": keys}, exact=True)
        codes = sorted({reason.code.name for table in explain(read).tables for reason in table.reasons})
        (table,) = explain(read).tables
        counts = [table.files_kept, table.files_total, read.count(), len(read.inputFiles())]
        told = report(read).to_dict()["tables"][0]
        said = [str(explain(read)), str(report(read)), told["actions"], told["planned"]["filters"][0]["pass_ratio"]]
        found[f"{format_} {name}"] = [rows[0] == rows[1], len(rows[0]), exact.count(), codes, counts, said]
spark.read.format("delta").load(sales["delta"]).createOrReplaceTempView("seen")
for source in (spark.table("seen"), "seen"):
    try:
        pruned_read(spark, source, keys={"day": [1]})
    except InvalidDataFrameError as error:
        found.setdefault("sources", []).append(str(error))
print("answer", json.dumps(found))
"""


@pytest.fixture
def lake(spark, tmp_path) -> str:
    sales = spark.range(0, 1200, 1, 6).selectExpr("cast(id div 20 AS int) AS day", "id AS amount")
    days = spark.range(0, 60, 1, 1).selectExpr("cast(id AS int) AS day", "cast(id div 10 AS int) AS month")
    for format_ in ("delta", "parquet"):
        sales.write.format(format_).save(str(tmp_path / f"{format_}_sales"))
    days.write.format("delta").save(str(tmp_path / "delta_days"))
    return str(tmp_path)


@pytest.mark.full
def test_a_query_of_connect_is_given_back_with_a_working_remedy(lake):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, lake],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        cwd=Path(__file__).parents[2],
    )
    answers = [line.removeprefix("answer ") for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert 1 == len(answers), done.stderr[-2000:]
    found = json.loads(answers[0])
    is_equal, *lines = found.pop("prune")
    assert is_equal
    for line in (*lines, found.pop("explain")):
        assert "nothing was pruned, since the query: the session has no JVM plan (Spark Connect)" in line
        assert line.endswith("try: name the keys to pruned_read()")
    assert 1 == done.stderr.count("Reading without pruning: the query: the session has no JVM plan")
    assert [True, True] == ["found a session of Spark Connect" in each for each in found.pop("sources")]
    assert 4 == len(found)
    for name, (is_equal, joined, exact, codes, counts, said) in found.items():
        assert (True, 200, 200) == (is_equal, joined, exact)
        assert "NO_JVM" in codes
        # Without a JVM, files are unknown and none is reported as skipped. Delta still skips by a few ranges.
        assert [None, None, 200, 1 if name.startswith("delta") else 6] == counts
        explained, reported, *unknown = said
        assert [None, None] == unknown
        for text in (explained, reported):
            assert "the share that passes is not known" in text or "share of rows that pass unknown" in text
            assert "expected to pass" not in text
            assert "bytes are" not in text
        assert "no action has read" not in reported
        assert "measurements are not available through Spark Connect" in reported
