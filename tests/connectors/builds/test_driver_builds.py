"""Builds that are computed on the driver without a job: equal to those of a job, or left to a job."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors.builds import materialized
from connectors.builds.materialized import MaterializedBuild, TooMany, driver_rows, local_rows
from connectors.builds.query_builds import BuildRequest, QueryBuilds
from connectors.columns import quoted
from connectors.jobs.runner import BuildScheduler
from connectors.registry import optimized
from connectors.spark.jvm import frame_of
from pruning import PruningCache, explain
from pruning.limits import Limits
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from sample_data.nasty import tables
from tests.costs import FREE_BUILDS, PATIENT
from tests.oracle.lakes import Layout, spark_frame, write

pytestmark = pytest.mark.spark

OPTIONS = PATIENT
FEW = replace(OPTIONS.limits, joined_rows=20)
# Two files of at most two row groups.
LAYOUT = Layout(file_rows=25, group_rows=15)
TABLES = tuple(name for name in tables() if name != "unsigned")
BATCH_ROWS = "spark.sql.parquet.columnarReaderBatchSize"
MAPPED = {"delta.columnMapping.mode": "name"}


def whole(spark, source: Path, format_: str) -> DataFrame:
    reader = spark.read.format(format_)
    return (reader.option("__globPaths__", "false") if format_ == "parquet" else reader).load(str(source))


def written(spark, folder: Path, format_: str, name: str) -> DataFrame:
    rows, layout = tables()[name], LAYOUT
    if name == "partitions":
        # Each partition has a file, and few files are read on the driver.
        rows, layout = rows.slice(0, 4), Layout(partition_by=("part",))
    write(spark, folder, format_, rows, layout, options=MAPPED if format_ == "delta" else {})
    return whole(spark, folder, format_)


def conditions(df: DataFrame) -> Iterator[Column | None]:
    """No condition, and two for each column, most with some of its own values as literals of its type."""
    yield None
    compared = [each for each in df.schema.fields if each.dataType.typeName() not in {"binary", "struct", "array"}]
    rows = df.select(*(F.col(quoted(each.name)).cast("string") for each in compared)).collect()
    for at, field in enumerate(compared):
        column = F.col(quoted(field.name))
        texts = sorted({row[at] for row in rows if row[at] is not None})
        literals = [F.lit(text).cast(field.dataType) for text in texts]
        if literals:
            yield column == literals[at % len(literals)]
            yield (column > literals[len(literals) // 2], ~column.isin(literals[::3]), column.isNull())[at % 3]


def agreed(spark, df: DataFrame) -> MaterializedBuild:
    """The rows that were computed on the driver, after bytes, order and keys of each column equal those of a job."""
    plan = optimized(df)
    here, by_job = driver_rows(spark, plan, "k", OPTIONS.limits), local_rows(spark, plan, "k")
    assert isinstance(here, MaterializedBuild)
    assert isinstance(by_job, MaterializedBuild)
    assert (by_job.count, by_job.nbytes) == (here.count, here.nbytes)
    assert here.as_relation(plan).data().equals(by_job.as_relation(plan).data())
    for at, name in enumerate(df.columns):
        attribute = plan.output().apply(at)
        assert by_job.keys(at, attribute, OPTIONS, name) == here.keys(at, attribute, OPTIONS, name)
    return here


@pytest.mark.quick(2)
@pytest.mark.parametrize("zone", ["America/New_York"])
@pytest.mark.parametrize("format_", ["delta", "parquet"])
@pytest.mark.parametrize("name", TABLES)
def test_every_value_and_condition_gives_the_rows_and_keys_of_a_job(spark, conf, tmp_path, format_, name, zone):
    conf("spark.sql.session.timeZone", zone)
    df = written(spark, tmp_path / "rows", format_, name)
    for condition in conditions(df):
        agreed(spark, df if condition is None else df.where(condition))


@pytest.fixture
def numbers(spark, tmp_path):
    """A function that writes and reads a table of some rows, a number and a word each."""

    def make(format_: str = "parquet", rows: int = 100, files: int = 1, **options: str) -> DataFrame:
        folder = tmp_path / f"{format_}{rows}_{files}"
        df = spark.range(0, rows, 1, files).selectExpr("cast(id AS int) AS n", "concat('w', id) AS word")
        df.write.format(format_).options(**options).save(str(folder))
        return whole(spark, folder, format_)

    return make


@pytest.fixture
def why(spark, monkeypatch):
    """A function that returns the reason why the rows of a DataFrame are not computed on the driver."""
    given: list[str] = []
    monkeypatch.setattr(materialized.logger, "debug", lambda *said, **_: given.append(str(said[-1])))

    def of(df: DataFrame, limits: Limits = OPTIONS.limits, plan=None) -> str:
        given.clear()
        assert driver_rows(spark, optimized(df) if plan is None else plan, "k", limits) is None
        nothing_is_left(spark)
        return given[-1]

    return of


def jobs(spark) -> int:
    return int(spark._jsc.sc().dagScheduler().numTotalJobs())


def nothing_is_left(spark) -> None:
    """No task, no memory of a task and no thread outlives a build."""
    jvm = spark._jvm
    assert jvm.org.apache.spark.TaskContext.get() is None
    deadline = time.monotonic() + 60
    # A scan that was stopped runs to the end of its batch, as a task that is killed.
    while "scanprune rows" in threads(jvm) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "scanprune rows" not in threads(jvm)
    assert 0 == jvm.org.apache.spark.SparkEnv.get().memoryManager().executionMemoryUsed()


def threads(jvm) -> str:
    return " ".join(str(each.getName()) for each in jvm.java.lang.Thread.getAllStackTraces().keySet())


def run(spark, plan, options: PruningOptions = OPTIONS, place: int = 0, **more: bool):
    request = BuildRequest(plan, plan.output().apply(place), "key", place, **more)
    (found,) = QueryBuilds(BuildScheduler.of(spark, options)).run([request])
    return found


@pytest.mark.parametrize("name", TABLES)
def test_rows_in_memory_are_those_of_a_job(spark, name):
    agreed(spark, spark.createDataFrame(tables()[name]))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT * FROM VALUES ('a', 1, DATE '0001-01-01'), (NULL, 2, NULL), ('\U0001f600', 1, DATE '9999-12-31')", 3),
        ("SELECT * FROM VALUES (1), (2) WHERE col1 > 2", 0),
        ("SELECT id FROM range(5, 2000, 3, 4)", 665),
        ("SELECT id * 2 AS k, concat('C', id) AS code FROM range(100) WHERE id % 3 = 1", 33),
        ("SELECT id FROM range(9, 9)", 0),
    ],
)
def test_lists_and_ranges_take_no_job(spark, text, count):
    before = jobs(spark)
    here = driver_rows(spark, optimized(spark.sql(text)), "k", OPTIONS.limits)
    assert isinstance(here, MaterializedBuild)
    assert count == here.count
    assert before == jobs(spark)
    nothing_is_left(spark)
    agreed(spark, spark.sql(text))


AGGREGATES = {
    "SELECT max(n) AS m FROM rows": 1,
    "SELECT max(word), min(n) FROM rows": 1,
    "SELECT max(n) + 1 AS m FROM rows WHERE n < 0": 1,
    "SELECT word FROM rows GROUP BY word": 300,
    "SELECT DISTINCT n % 7 AS k FROM rows WHERE n > 50": 7,
    "SELECT n % 7 AS k, count(*) AS c, sum(n), avg(n), count(DISTINCT word) FROM rows GROUP BY 1 HAVING c > 42": 6,
    "SELECT max(k) FROM (SELECT n % 7 AS k, count(*) AS c FROM rows GROUP BY 1) WHERE c > 42": 1,
    "SELECT max(id) FILTER (WHERE id % 2 = 0) FROM range(0, 1000, 1, 4)": 1,
    "SELECT k, max(v) FROM VALUES (1, 'a'), (1, 'b'), (NULL, 'c'), (NULL, NULL) AS t(k, v) GROUP BY k": 2,
    "SELECT d, count(*) FROM VALUES (-0.0D), (0.0D), (CAST('NaN' AS DOUBLE)), (NULL) AS t(d) GROUP BY d": 3,
}


@pytest.mark.quick(4)
@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("text", AGGREGATES)
def test_aggregates_take_no_job(spark, numbers, text, files):
    numbers("delta", rows=300, files=files).createOrReplaceTempView("rows")
    plan, before = optimized(spark.sql(text)), jobs(spark)
    here = driver_rows(spark, plan, "k", OPTIONS.limits)
    assert isinstance(here, MaterializedBuild)
    assert (AGGREGATES[text], before) == (here.count, jobs(spark))
    nothing_is_left(spark)
    assert sorted_rows(spark, here, plan) == sorted_rows(spark, local_rows(spark, plan, "k"), plan)


def sorted_rows(spark, build: MaterializedBuild | TooMany, plan) -> list[str]:
    assert isinstance(build, MaterializedBuild)
    return sorted(map(repr, frame_of(spark, build.as_relation(plan)).collect()))


@pytest.mark.parametrize("needs_rows", [False, True])
def test_rows_of_an_aggregate_that_another_run_may_not_give_are_stored_if_they_are_too_many(spark, numbers, needs_rows):
    numbers("delta", rows=300).createOrReplaceTempView("rows")
    plan = optimized(spark.sql("SELECT n % 50 AS k, first(word) FROM rows GROUP BY 1"))
    few = run(spark, plan, needs_rows=needs_rows)
    assert (True, 50) == (few.on_driver, few.rows.count)
    many = run(spark, plan, OPTIONS.with_limits(joined_rows=20, joined_long_rows=20), needs_rows=needs_rows)
    assert (needs_rows, 50) == (many.rows is not None, many.keys.distinct)


def test_aggregates_that_raise_or_read_too_much_are_left_to_a_job(spark, conf, numbers, why):
    conf("spark.sql.ansi.enabled", "true")
    numbers(rows=10_000).createOrReplaceTempView("rows")
    assert "overflow" in why(spark.sql("SELECT sum(9223372036854775807 - n) FROM rows")).lower()
    assert "it reads more than 99 rows" in why(spark.sql("SELECT max(n) FROM rows"), Limits(driver_scan_rows=99))
    assert "it reads more than" in why(spark.sql("SELECT max(id % 1000) FROM range(1000000000)"))
    assert isinstance(driver_rows(spark, optimized(spark.sql("SELECT n FROM rows GROUP BY n")), "k", FEW), TooMany)
    nothing_is_left(spark)


def test_long_range_is_left_to_a_job(spark, why):
    assert "it reads more than" in why(spark.range(10**9).where("id % 100000007 = 5"))
    assert isinstance(driver_rows(spark, optimized(spark.range(10**9)), "k", OPTIONS.limits), TooMany)


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_build_over_a_small_table_takes_no_job(spark, numbers, format_):
    df = numbers(format_)
    plan = optimized(df.where("n > 90").join(df.select(F.col("n").alias("m")), F.col("n") == F.col("m")))
    side = plan.children().head()
    before = jobs(spark)
    found = run(spark, side)
    assert (True, 9, 9, before) == (found.on_driver, found.rows.count, found.keys.distinct, jobs(spark))
    nothing_is_left(spark)
    off = run(spark, side, OPTIONS.with_limits(driver_scan_files=0))
    assert (False, 9, found.keys) == (off.on_driver, off.rows.count, off.keys)
    assert before < jobs(spark)


def test_query_says_which_builds_took_no_job(numbers, pruned_frame):
    df = numbers("delta", rows=2000, files=8)
    few = numbers("delta", rows=10)
    query = df.join(few.where("word = 'w7'").select(F.col("n").alias("k")), F.col("n") == F.col("k"))
    options = FREE_BUILDS
    result = pruned_frame(query, options=options)
    assert [(7, "w7", 7)] == [tuple(each) for each in result.collect()]
    (build,) = explain(result).builds
    assert build.on_driver
    assert explain(result).to_dict()["builds"][0]["on_driver"]
    by_job = pruned_frame(query, options=options.with_limits(driver_scan_files=0))
    assert [(7, "w7", 7)] == [tuple(each) for each in by_job.collect()]
    assert [False] == [each.on_driver for each in explain(by_job).builds]
    assert [False] == [each.on_driver for each in explain(query, options=options).builds]


def test_cached_build_of_the_driver_is_not_computed_again(numbers, pruned_frame):
    df, few = numbers("delta", rows=2000, files=8), numbers("delta", rows=10)
    query = df.join(few.where("n = 7").select(F.col("n").alias("k")), F.col("n") == F.col("k"))
    options, cache = FREE_BUILDS, PruningCache()
    results = [pruned_frame(query, options=options, cache=cache) for _ in range(2)]
    assert [[7], [7]] == [[row.k for row in each.collect()] for each in results]
    lines = [explain(each).builds[0] for each in results]
    assert [(False, True), (True, False)] == [(each.from_cache, each.on_driver) for each in lines]


def test_empty_tables_and_filters_give_no_rows(spark, numbers):
    assert 0 == agreed(spark, numbers(rows=0)).count
    assert 0 == agreed(spark, numbers("delta", rows=7).where("n < 0")).count


def test_only_files_that_the_conditions_leave_count(spark, tmp_path):
    spark.range(0, 60, 1, 1).selectExpr("id", "id % 6 AS p").write.partitionBy("p").parquet(str(tmp_path / "rows"))
    df = whole(spark, tmp_path / "rows", "parquet")
    assert 20 == agreed(spark, df.where("p < 2")).count


@pytest.mark.parametrize("least", [0, 1])
def test_too_many_rows_are_counted_up_to_the_limit(spark, numbers, least):
    plan = optimized(numbers(rows=20 - least))
    found = driver_rows(spark, plan, "k", replace(OPTIONS.limits, joined_long_rows=20))
    assert (TooMany(20) if least == 0 else 19) == (found if least == 0 else found.count)
    nothing_is_left(spark)


def test_more_files_bytes_or_rows_are_run_as_a_job(numbers, why):
    several = numbers(files=3)
    assert "it reads 3 files" in why(several, Limits(driver_scan_files=2))
    assert "it reads 3 files" in why(several, Limits(driver_scan_bytes=1000))
    assert "it reads more than 99 rows" in why(numbers(rows=500), Limits(driver_scan_rows=99))
    wide = numbers(rows=400).selectExpr("n", "repeat(word, 1000)")
    assert "its rows have more than 30000 bytes" in why(wide, Limits(driver_scan_bytes=30_000))


def test_off_values_run_every_build_as_a_job(spark, numbers):
    plan = optimized(numbers())
    for limits in (
        Limits(driver_scan_files=0),
        Limits(driver_scan_bytes=0),
        Limits(driver_scan_rows=0),
        Limits(driver_scan_seconds=0),
    ):
        assert driver_rows(spark, plan, "k", limits) is None


def test_build_past_the_deadline_is_not_computed(spark, numbers):
    plan = optimized(numbers())
    request = BuildRequest(plan, plan.output().apply(0), "key", 0)
    (found,) = QueryBuilds(BuildScheduler(spark, OPTIONS, deadline=time.monotonic())).run([request])
    assert (ReasonCode.BUILD_TIMED_OUT, False) == (found.keys.code, found.on_driver)


def test_slow_build_is_run_as_a_job(spark, conf, numbers, why):
    """The limit of time ends the scan between two batches of rows, and closes its file."""
    conf(BATCH_ROWS, "64")
    slow = numbers(rows=60_000).where("sha2(repeat(word, 3000), 512) = 'none'")
    assert "it took longer than 20 milliseconds" in why(slow, Limits(driver_scan_seconds=0.02))
    assert [] == open_files(spark, "parquet60000_1")


def open_files(spark, part: str) -> Sequence[str]:
    """The files that the JVM has open, with this part of a name."""
    folder = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/fd")
    if not folder.exists():
        pytest.skip("this system does not list open files")
    found = []
    for each in folder.iterdir():
        with suppress(OSError):
            found.append(str(each.readlink()))
    return [each for each in found if part in each]


# Executors may see files that the driver does not, so a file that is left out is left to them.
@pytest.mark.parametrize("name", ["spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"])
def test_session_that_ignores_files_runs_jobs(conf, numbers, why, name):
    conf(name, "true")
    assert "it ignores files that cannot be read" in why(numbers(rows=10))


@pytest.mark.parametrize("option", ["ignoreMissingFiles", "ignoreCorruptFiles"])
def test_read_that_ignores_files_runs_a_job(spark, tmp_path, why, option):
    path = str(tmp_path / "t")
    spark.range(10).write.parquet(path)
    lenient, strict = (spark.read.option(option, each).parquet(path).where("id > 3") for each in ("true", "false"))
    assert "it ignores files that cannot be read" in why(lenient)
    assert driver_rows(spark, optimized(strict), "k", OPTIONS.limits) is not None


def test_cut_build_closes_its_files(spark, numbers):
    plan = optimized(numbers(rows=3000))
    assert TooMany(5) == driver_rows(spark, plan, "k", replace(OPTIONS.limits, joined_long_rows=5))
    assert [] == open_files(spark, "parquet3000_1")


def test_interrupt_ends_the_scan(spark, conf, numbers, monkeypatch):
    conf(BATCH_ROWS, "64")
    plan = optimized(numbers(rows=60_000).where("sha2(repeat(word, 3000), 512) = 'none'"))
    made = materialized.instance
    calls: list[str] = []

    class Interrupted:
        def __init__(self, rows):
            self.rows = rows

        def collectHere(self, *sizes):  # noqa: N802 - the name in Java
            thread = threading.Thread(target=lambda: calls.append(str(self.rows.collectHere(*sizes))))
            thread.start()
            calls.append("interrupted")
            self.thread = thread
            raise KeyboardInterrupt

        def cancel(self):
            self.rows.cancel()

    held: list[Interrupted] = []

    def instance(*arguments):
        held.append(Interrupted(made(*arguments)))
        return held[-1]

    monkeypatch.setattr(materialized, "instance", instance)
    with pytest.raises(KeyboardInterrupt):
        driver_rows(spark, plan, "k", Limits(driver_scan_seconds=600))
    held[0].thread.join(60)
    nothing_is_left(spark)


def test_plans_that_are_not_surely_the_same_are_run_as_jobs(spark, numbers, why, tmp_path):
    df = numbers(rows=10)
    for other, reason in {
        "rand() > 0.5": "it has a Rand",
        "n > (SELECT avg(id) FROM range(9))": "it has a ScalarSubquery",
        "exists(array(n, 1), x -> x = 2)": "it has a ArrayExists",
    }.items():
        assert reason in why(df.where(other)), other
    assert "it is planned with a ObjectHashAggregateExec" in why(df.groupBy("n").agg(F.percentile("n", 0.5)))
    assert "it has a Window" in why(df.select(F.max("n").over(Window.partitionBy("word"))))
    assert "it has a Join" in why(df.join(df.groupBy("word").count(), "word"))
    assert "it has a LogicalRDD" in why(spark.createDataFrame([(1,)], "n int"))
    assert "it has a OneRowRelation" in why(spark.sql("SELECT 1 AS n"))
    assert "it has a ArrowEvalPython" in why(df.select(F.udf(lambda n: n + 1, "int")("n")))
    assert "it reads files by OrcFileFormat" in why(numbers("orc"))
    df.write.bucketBy(2, "n").saveAsTable("driver_buckets", path=str(tmp_path / "buckets"))
    try:
        assert "it reads buckets" in why(spark.table("driver_buckets"))
    finally:
        spark.sql("DROP TABLE driver_buckets")
    cached = df.where("n > 3").cache()
    try:
        assert "it has a InMemoryRelation" in why(cached)
    finally:
        cached.unpersist(blocking=True)


def test_metadata_columns_are_run_as_a_job(numbers, why):
    assert "it has a " in why(numbers(rows=9).selectExpr("n", "_metadata.file_path AS path"))


def test_deletion_vectors_are_run_as_a_job(spark, numbers, why, tmp_path):
    df = numbers("delta", rows=50, **{"delta.enableDeletionVectors": "true"})
    assert 50 == agreed(spark, df).count
    folder = tmp_path / "delta50_1"
    spark.sql(f"DELETE FROM delta.`{folder}` WHERE n % 2 = 0")
    assert "it reads columns that are not in its table" in why(whole(spark, folder, "delta"))
    plan = optimized(whole(spark, folder, "delta"))
    assert (25, False) == ((found := run(spark, plan)).rows.count, found.on_driver)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_error_of_a_condition_is_that_of_the_job(spark, conf, numbers, ansi):
    conf("spark.sql.ansi.enabled", ansi)
    plan = optimized(numbers(rows=10).where("cast(word AS int) = 1 OR n = 3"))
    found = run(spark, plan)
    nothing_is_left(spark)
    if ansi == "true":
        assert isinstance(found.keys, Reason)
        assert (ReasonCode.BUILD_RAISED, False) == (found.keys.code, found.on_driver)
        assert "CAST_INVALID_INPUT" in str(found.keys)
    else:
        assert (True, 1) == (found.on_driver, found.rows.count)


def test_missing_file_is_left_to_the_job(spark, numbers, why, tmp_path):
    df = numbers(rows=10)
    plan = optimized(df)
    for each in (tmp_path / "parquet10_1").glob("*.parquet"):
        each.unlink()
    assert why(df, plan=plan)
    assert ReasonCode.BUILD_FAILED is run(spark, plan).keys.code


def test_confs_of_the_session_hold_in_the_scan(spark, conf, tmp_path):
    """Code of a task reads them from the properties of its job, of which there is none here."""
    conf("spark.sql.session.timeZone", "Asia/Kathmandu")
    rows = pa.table({"day": pa.array(["2024-02-30", "2024-02-29", None])})
    spark_frame(spark, rows).write.parquet(str(tmp_path / "rows"))
    df = whole(spark, tmp_path / "rows", "parquet")
    conf("spark.sql.ansi.enabled", "false")
    built = agreed(spark, df.selectExpr("try_cast(day AS timestamp) AS at", "cast(day AS date) AS day"))
    assert 3 == built.count


def test_builds_of_a_level_run_on_the_driver_and_as_jobs(spark, numbers):
    small, large = optimized(numbers(rows=10)), optimized(numbers(rows=30).repartition(3))
    requests = [BuildRequest(each, each.output().apply(0), "key", 0) for each in (small, large, small)]
    found = QueryBuilds(BuildScheduler.of(spark, OPTIONS)).run(requests)
    assert [True, False, True] == [each.on_driver for each in found]
    assert [10, 30, 10] == [each.rows.count for each in found]
    assert found[0].rows is found[2].rows
