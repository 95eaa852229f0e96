"""Filters have all keys that the join will see, or there is no filter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pruning import explain, prune
from sample_data.rows import Rows
from tests.catalogue.facts import ALWAYS_BUILD, FILES, KEYS_PER_FILE, OPTIONS, fact_rows, files, refusal_codes
from tests.unchanged import is_unchanged

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("tables")]

PLANNED = replace(OPTIONS, broadcast_strategy="NONE")
# The facts in two files: 41 and 101 lie in the third and the sixth of eight files.
TWO_FILES = {"facts": 2}
DIM = "(SELECT * FROM dims WHERE grp = 2)"


@pytest.fixture(scope="module")
def many(spark, stored):
    """A dimension in eight files. Its keys with `pick` lie in two files, beside NULL keys."""
    rows = fact_rows(spark).selectExpr(
        "k", "CASE WHEN k IN (41, 101) THEN k END AS key", "k IN (41, 101) AS pick", "item"
    )
    stored("many", rows)


# Failure catalogue 31, 33 - 36, 163: partitions of a build, some of them over a limit, make one filter with all keys.
@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({}, id="few-rows"),
        pytest.param({"max_build_keys": 1}, id="one-key"),
        pytest.param({"max_ranges": 1, "max_in_list": 0}, id="one-range"),
        pytest.param({"max_build_keys": 1, "max_ranges": 1}, id="a-bloom-filter-of-one-key"),
    ],
)
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("max_build_bytes", [150 << 20, 8], ids=["", "eight-bytes"])
def test_filter_has_keys_of_all_partitions(agreed, limits, max_build_bytes):
    options = replace(ALWAYS_BUILD, broadcast_strategy="NONE", max_build_bytes=max_build_bytes).with_limits(**limits)
    # Failure catalogue 38: NULL is among the keys.
    _, result = agreed("SELECT f.id FROM facts f JOIN many m ON f.k = m.key WHERE m.pick OR m.item = 3", options)
    # If only one range is allowed, it spans from the first key to the last.
    assert (4 if limits.get("max_ranges") == 1 else 2) == files(result)["facts"]
    _, result = agreed(
        "SELECT f.id FROM facts f WHERE f.k IN (SELECT key FROM many WHERE item >= 0 AND k > 50)", options
    )
    assert 1 == files(result)["facts"]


# Failure catalogue 31, 35: a build that is too large for the driver is summarized in Python workers.
def test_keys_are_summarized_in_workers(agreed):
    query = "SELECT f.id, d.item FROM facts f JOIN dims d ON f.k = d.k WHERE d.grp IN (2, 5)"
    _, result = agreed(query, PLANNED.with_limits(driver_rows=3, joined_rows=3))
    assert TWO_FILES == files(result)


@pytest.fixture(scope="module")
def large(spark, stored):
    """Facts large enough that a build may read another table for one bound; 20 keys per file, as in other tables."""
    rows = FILES * KEYS_PER_FILE * 300
    stored(
        "large", spark.range(0, rows, 1, FILES).selectExpr("cast(id div 300 AS int) AS k", "id", "xxhash64(id) AS x")
    )


# Failure catalogue 37: older files lack the column, so that it is NULL there, which is no bound.
@pytest.mark.full
@pytest.mark.parametrize("format_", ["delta", "parquet"])
@pytest.mark.usefixtures("large")
def test_columns_missing_in_older_files(spark, agreed, stored, ways, format_):
    grown = f"grown_{format_}"
    folder = stored(grown, fact_rows(spark).selectExpr("k", "id"), format_)
    late = spark.createDataFrame([(7, 1, 41), (8, 2, 3), (9, 3, None)], "k int, id long, late int")
    late.coalesce(1).write.format(format_).mode("append").option("mergeSchema", "true").save(folder)
    ways.view(grown, spark.read.format(format_).option("mergeSchema", "true").load(folder))
    _, result = agreed(f"SELECT g.id, d.item FROM {grown} g JOIN dims d ON g.late = d.k WHERE d.grp = 2")
    # A column that a file lacks has no statistics in the Delta log, so no file is known to have no key.
    assert ({} if format_ == "delta" else {grown: 1}) == files(result)
    _, result = agreed(f"SELECT f.id, g.id FROM {grown} g JOIN facts f ON g.late = f.k WHERE g.id < 10")
    assert {"facts": 2} == files(result)
    for query, kept in (("f.k <= (SELECT min(late) FROM {})", 1), ("f.k >= (SELECT max(late) FROM {})", 6)):
        assert {"large": kept} == files(agreed("SELECT f.id FROM large f WHERE " + query.format(grown))[1])


# Failure catalogue 41, 42, 44 - 46: rows that differ between two runs are no keys for a join that runs the build again.
@pytest.mark.parametrize(
    "build",
    [
        pytest.param("SELECT k FROM dims WHERE rand() < 0.25", id="random"),
        pytest.param("SELECT k FROM dims WHERE grp < 3 LIMIT 7", id="limit"),
        pytest.param("SELECT k FROM dims WHERE grp < 3 ORDER BY item LIMIT 7", id="ties"),
        pytest.param(
            "SELECT k FROM (SELECT k, row_number() OVER (ORDER BY item) AS r FROM dims) WHERE r < 5", id="rank-of-ties"
        ),
        pytest.param("SELECT first(k) AS k FROM dims WHERE grp < 3 GROUP BY item", id="first-row"),
        pytest.param("SELECT CAST(avg(weight) AS int) AS k FROM facts WHERE item = 3", id="sum-of-doubles"),
        pytest.param("SELECT CAST(avg(k) AS int) AS k FROM facts WHERE item = 3", id="average-of-integers"),
        pytest.param("SELECT k - (SELECT max(k) FROM (SELECT k FROM dims LIMIT 9)) AS k FROM dims", id="in-a-subquery"),
        pytest.param("SELECT CAST(try_sum(k) AS int) AS k FROM facts WHERE id = 3", id="sum-that-overflows"),
        pytest.param("SELECT k FROM dims TABLESAMPLE (10 PERCENT) WHERE grp < 3", id="sample"),
        pytest.param("SELECT k FROM dims WHERE grp < 3 DISTRIBUTE BY rand()", id="random-partitions"),
    ],
)
def test_unrepeatable_build_gives_no_keys(spark, pruned_frame, build):
    df = spark.sql(f"SELECT f.id FROM facts f JOIN ({build}) b ON f.k = b.k")
    result = pruned_frame(df, options=PLANNED)
    # Other rows in each run.
    result.collect()
    assert "UNREPEATABLE_KEYS" in refusal_codes(df, result)
    # Metadata may still bound the keys.
    assert {"by the statistics" in each.keys for each in explain(result).filters} <= {True}


# Failure catalogue 41: a sum of wide decimals is NULL if it overflows on the way, unless ANSI mode makes that an error.
@pytest.mark.parametrize(
    ("ansi", "digits", "is_built"), [("false", 38, False), ("false", 28, True), ("true", 38, True)]
)
def test_overflowing_decimal_sum_gives_no_keys(spark, pruned_frame, conf, ansi, digits, is_built):
    conf("spark.sql.ansi.enabled", ansi)
    build = f"SELECT CAST(sum(CAST(k AS decimal({digits}, 0))) AS int) AS k FROM dims WHERE item = 3"
    df = spark.sql(f"SELECT f.id FROM facts f JOIN ({build}) b ON f.k = b.k")
    result = pruned_frame(df, options=PLANNED)
    assert Rows(df.collect()) == Rows(result.collect())
    assert is_built is ("UNREPEATABLE_KEYS" not in refusal_codes(df, result))


# Failure catalogue 41: the order of rows decides which of several equal strings represents a group.
@pytest.mark.parametrize(
    ("text", "is_built"),
    [
        ("SELECT CAST(name AS STRING) AS t FROM named WHERE k > 5 GROUP BY name", False),
        ("SELECT CAST(max(name) AS STRING) AS t FROM named WHERE k > 5", False),
        ("SELECT CAST(max(zero) AS STRING) AS t FROM named WHERE k > 5", False),
        ("SELECT CAST(k AS STRING) AS t FROM named WHERE k > 5 GROUP BY k", True),
        ("SELECT CAST(max(k) AS STRING) AS t FROM named WHERE k > 5", True),
    ],
)
def test_groups_of_collated_strings_give_no_keys(spark, stored, pruned_frame, text, is_built):
    rows = fact_rows(spark).selectExpr("k", "IF(k % 2 = 0, 'A', 'a') COLLATE UTF8_LCASE AS name", "-0.0D * k AS zero")
    stored("named", rows, "parquet")
    stored("texts", fact_rows(spark).selectExpr("CAST(k AS STRING) AS t"), "parquet")
    df = spark.sql(f"SELECT x.t FROM texts x JOIN ({text}) n ON x.t = n.t")
    result = pruned_frame(df, options=PLANNED)
    assert Rows(df.collect()) == Rows(result.collect())
    assert is_built is ("UNREPEATABLE_KEYS" not in refusal_codes(df, result))


# Spark retries tasks only if its master allows it, so this is a session of its own. Each first attempt fails after its
# last row.
RETRIED = """
import json, sys
from pathlib import Path
from pyspark import TaskContext
from pyspark.sql import SparkSession
from connectors.keys import frame
from pruning import explain, prune
from sample_data.rows import Rows
from tests.catalogue.facts import ALWAYS_BUILD, OPTIONS

folder, done = Path(sys.argv[1]), frame.partial_task

def partial_task(*given):
    def tried(batches):
        yield from done(*given)(batches)
        task = TaskContext.get()
        if task.attemptNumber() == 0:
            (folder / f"failed-{task.partitionId()}").touch()
            raise OSError("first attempt")
    return tried

frame.partial_task = partial_task
confs = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
spark = SparkSession.builder.master("local[2,4]").config(map=confs).getOrCreate()
for name in ("facts", "days"):
    spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
df = spark.sql("SELECT f.id FROM facts f JOIN (SELECT key FROM days WHERE pick OR item = 3) d ON f.k = d.key")
result = prune(df, options=OPTIONS.with_limits(driver_rows=3, joined_rows=3))
rows = Rows(result.collect())
print(json.dumps({
    "same": rows == Rows(df.collect()),
    "rows": len(rows),
    "files": {each.table: each.files_kept for each in explain(result).tables}["facts"],
    "is_built": not {each.code.name for each in explain(result).reasons} & {"BUILD_FAILED", "BUILD_TIMED_OUT"},
    "failed": len(list(folder.glob("failed-*"))),
}))
"""


# Failure catalogue 45: a retried task replaces the failed one, in keys as in rows.
@pytest.mark.full
@pytest.mark.slow
def test_retried_tasks_of_a_build(spark, tmp_path):
    rows = fact_rows(spark)
    rows.write.parquet(f"{tmp_path}/facts")
    keys = rows.selectExpr("CASE WHEN k IN (41, 101) THEN k END AS key", "k IN (41, 101) AS pick", "item")
    keys.write.parquet(f"{tmp_path}/days")
    command = [sys.executable, "-c", RETRIED, str(tmp_path)]
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": str(root), "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found.pop("failed") > 1
    assert {"same": True, "rows": 8, "files": 2, "is_built": True} == found


# Failure catalogue 41: a subquery in the key itself runs again with the join, even if the build is materialized.
@pytest.mark.parametrize("options", [OPTIONS, PLANNED], ids=["rows-are-joined", "builds-run-again"])
def test_subqueries_in_keys(spark, agreed, conf, ways, pruned_frame, options):
    # Spark itself fails to broadcast a side whose key has a subquery.
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    query = f"SELECT f.id FROM facts f JOIN {DIM} d ON f.k = d.k + (SELECT {{}})"
    _, result = agreed(query.format("max(k) - 139 FROM dims"), options)
    # Keys from 60 to 79.
    assert {"facts": 1} == files(result)
    limited = "(SELECT k FROM dims WHERE item = 3 LIMIT 4)"
    for subquery in (f"max(k) - 139 FROM {limited}", "CAST(sum(weight) AS int) FROM facts WHERE id = 10040"):
        df = spark.sql(query.format(subquery))
        result = pruned_frame(df, options=options)
        result.collect()
        assert is_unchanged(df, result)
        assert "UNREPEATABLE_KEYS" in refusal_codes(df, df)
    ways.view("kept", spark.table("dims").where("k < 21").cache())
    try:
        df, result = agreed(query.format("max(k) FROM kept"), options)
        assert is_unchanged(df, result)
        assert "UNREPEATABLE_KEYS" in refusal_codes(df, result)
    finally:
        spark.table("kept").unpersist(blocking=True)


# Failure catalogue 41: the repeated rows of an outer generator add no key; its NULL for an empty array is none.
def test_keys_of_an_outer_generator(agreed):
    of_some = "explode(CASE WHEN item > 3 THEN array(k, k, k + 100) WHEN item > 1 THEN array() END)"
    _, result = agreed(
        f"SELECT f.id FROM facts f JOIN (SELECT e FROM {DIM} LATERAL VIEW OUTER {of_some} AS e) d ON f.k = d.e",
        PLANNED,
        duck=f"""SELECT f.id FROM facts f JOIN (
                     SELECT k AS e FROM {DIM} WHERE item > 3 UNION ALL SELECT k FROM {DIM} WHERE item > 3
                     UNION ALL SELECT k + 100 FROM {DIM} WHERE item > 3
                 ) d ON f.k = d.e""",
    )
    assert TWO_FILES == files(result)


# Failure catalogue 41: an RDD may compute other rows each time, so the query joins those of the build.
def test_builds_from_rdds_and_literal_lists(spark, agreed, ways):
    ways.view("fixed", spark.createDataFrame([(41,), (101,), (None,)], "k int"))
    ways.view("listed", spark.sql("SELECT * FROM VALUES (41), (101), (NULL) AS (k)"))
    _, result = agreed("SELECT f.id FROM facts f JOIN listed l ON f.k = l.k")
    assert TWO_FILES == files(result)
    _, result = agreed("SELECT f.id FROM facts f JOIN fixed l ON f.k = l.k")
    assert TWO_FILES == files(result)
    without_rows = replace(PLANNED, broadcast_strategy="NONE")
    df, result = agreed("SELECT f.id FROM facts f JOIN fixed l ON f.k = l.k", without_rows)
    assert {} == files(result)
    assert "UNREPEATABLE_KEYS" in refusal_codes(df, result)
    _, result = agreed(
        "SELECT f.id FROM facts f JOIN (SELECT explode(array(41, 101, NULL)) AS k) l ON f.k = l.k",
        duck="SELECT f.id FROM facts f WHERE k IN (41, 101)",
    )
    assert TWO_FILES == files(result)


# Failure catalogue 42, 43: the probe side has a nondeterministic filter above its scan.
def test_nondeterministic_probe_side_is_not_filtered(spark):
    for condition in ("rand() < 0.25", "noise(f.item) >= 0"):
        spark.udf.register("noise", spark_udf())
        df = spark.sql(f"SELECT f.id FROM (SELECT * FROM facts f WHERE {condition}) f JOIN {DIM} d ON f.k = d.k")
        result = prune(df, options=PLANNED)
        assert is_unchanged(df, result)
        assert {"NONDETERMINISTIC", "OPAQUE"} & refusal_codes(df, result)
    spark.sql("DROP TEMPORARY FUNCTION noise")


def spark_udf():
    from pyspark.sql.functions import udf  # noqa: PLC0415

    return udf(lambda value: value, "int").asNondeterministic()


# Failure catalogue 24: an error in a build is an error of the query, raised by its action.
def test_error_on_the_build_side_is_raised_by_the_action(spark, conf, pruned_frame, caplog):
    conf("spark.sql.ansi.enabled", "true")
    bad = "(SELECT k FROM dims WHERE 100 / (k - 41) > 0)"
    df = spark.sql(f"SELECT f.id FROM facts f JOIN {bad} d ON f.k = d.k")
    result = pruned_frame(df, options=OPTIONS)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        result.collect()
    assert is_unchanged(df, result)
    assert "BUILD_RAISED" in refusal_codes(df, result)
    # Where the query drops the row before the expression, it is fine, and else its own error tells.
    assert not [each for each in caplog.records if each.levelname == "WARNING" and each.name == "scanprune"]
