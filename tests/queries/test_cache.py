"""`PruningCache` in queries: builds run once, and cached keys are those that another run would give."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from connectors.builds import cached_builds
from connectors.builds.query_builds import QueryBuilds
from connectors.jobs.runner import BuildScheduler
from pruning import PruningCache, PruningOptions, explain, prune, report
from pruning.errors import InvalidOptionError
from sample_data.confs import same_session
from sample_data.rows import Rows
from tests.costs import FREE_BUILDS

pytestmark = pytest.mark.spark

FILES, DAYS_PER_FILE = 6, 10
# Tests count the jobs of builds.
OPTIONS = FREE_BUILDS.with_limits(driver_scan_files=0)


LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"


class Lake:
    """Sales clustered by day, in a folder named after the format, and days with their months and moments."""

    def __init__(self, spark, sales: Path, folder: Path) -> None:
        self.spark, self.format = spark, sales.parent.name
        self.sales, self.days = str(sales), str(folder / "days")
        self.write_days("day div 10")

    def write(self, path: str, df, mode: str = "error") -> None:
        df.write.format(self.format).mode(mode).save(path)
        settle(path)

    def write_days(self, month: str, mode: str = "error") -> None:
        self.write(self.days, self.months(month), mode)

    def months(self, month: str):
        days = self.spark.range(0, FILES * DAYS_PER_FILE, 1, 1).selectExpr("cast(id AS int) AS day")
        moment = "timestamp'2024-01-01 00:00:00Z' + make_dt_interval(day, 18) AS moment"
        return days.selectExpr("day", f"cast({month} AS int) AS month", moment)

    def query(self, what: str = "s.day, month, count(*), sum(s.id)", where: str = "month = 2", days: str = "") -> str:
        return f"""
            SELECT {what} FROM {self.format}.`{self.sales}` s
            JOIN {days or f"{self.format}.`{self.days}`"} d ON s.day = d.day WHERE {where} GROUP BY s.day, month"""


def settle(path: str, seconds: float = 600) -> None:
    """Backdates the files of a table."""
    for each in Path(path).glob("*.parquet"):
        os.utime(each, (time.time() - seconds,) * 2)


@pytest.fixture(scope="module")
def sales(spark, tmp_path_factory) -> Path:
    """The folder of sales in both formats."""
    folder, rows = tmp_path_factory.mktemp("sales"), FILES * DAYS_PER_FILE * 20
    for format_ in ("delta", "parquet"):
        df = spark.range(0, rows, 1, FILES).selectExpr("cast(id div 20 AS int) AS day", "id")
        df.write.format(format_).save(str(folder / format_ / "sales"))
        settle(str(folder / format_ / "sales"))
    return folder


@pytest.fixture(scope="module", params=["delta", "parquet"])
def lake(spark, sales, request, tmp_path_factory) -> Lake:
    return Lake(spark, sales / request.param / "sales", tmp_path_factory.mktemp("cached"))


@pytest.fixture
def jobs(spark, monkeypatch):
    """A function that returns the number of Spark jobs that builds have run since its last call."""
    run_all, count = BuildScheduler.run_all, [0]

    def total() -> int:
        return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())

    def counted(self, wanted):
        before = total()
        try:
            return run_all(self, wanted)
        finally:
            count[0] += total() - before

    def jobs_since_last_call() -> int:
        found, count[0] = count[0], 0
        return found

    monkeypatch.setattr(BuildScheduler, "run_all", counted)
    return jobs_since_last_call


@pytest.fixture
def agreed(pruned_frame):
    """The pruned query, after a check that its rows are those of the query."""

    def run(spark, query: str, cache: PruningCache | None, options: PruningOptions = OPTIONS):
        result = pruned_frame(spark.sql(query), options=options, cache=cache)
        assert Rows(spark.sql(query).collect()) == Rows(result.collect())
        return result

    return run


def kept_files(result) -> list[int | None]:
    return [each.files_kept for each in explain(result).tables if each.table.startswith("sales")]


def from_cache(result) -> list[bool]:
    """For each build that reads a table: True if the cache had its keys."""
    return [each.from_cache for each in explain(result).builds if each.reads]


def not_cached(result) -> list[str]:
    return [each.detail for each in explain(result).reasons if each.code.name == "NOT_CACHED"]


def test_cached_build_runs_once(spark, lake, jobs, agreed):
    cache = PruningCache()
    first = agreed(spark, lake.query(), cache)
    assert 0 < jobs()
    assert ([1], [False], []) == (kept_files(first), from_cache(first), not_cached(first))
    # The second query has other columns of the fact and another alias.
    for query in (lake.query(), lake.query("max(s.id) AS most")):
        again = agreed(spark, query, cache)
        assert ([1], [True], []) == (kept_files(again), from_cache(again), not_cached(again))
        assert ["days.day"] == [each.source for table in report(again).tables for each in table.planned.filters]
        assert "nothing: the cache has its keys" in str(explain(again))
    assert 0 == jobs()
    assert (1, 2, 1) == (len(cache), cache.hits, cache.misses)
    other = agreed(spark, lake.query(where="month = 3"), cache)
    assert ([1], [False], 2) == (kept_files(other), from_cache(other), len(cache))
    assert 0 < jobs()
    cache.clear()
    assert [False] == from_cache(agreed(spark, lake.query(), cache))
    jobs()
    assert [False] == from_cache(agreed(spark, lake.query(), None))
    assert 0 < jobs()


def test_too_many_rows_are_cached_as_keys(spark, lake, jobs, agreed):
    cache, options = PruningCache(), OPTIONS.with_limits(joined_rows=5)
    for is_kept in (False, True):
        result = agreed(spark, lake.query(), cache, options)
        assert ([1], is_kept) == (kept_files(result), any(from_cache(result)))
        assert is_kept is (jobs() == 0)
        assert "LocalRelation" not in result._jdf.queryExecution().optimizedPlan().toString()
    assert [False] == from_cache(agreed(spark, lake.query(), cache))


@pytest.mark.full
def test_key_limits_are_part_of_the_cache_key(spark, lake, agreed):
    cache = PruningCache()
    few = FREE_BUILDS.with_limits(max_build_keys=3)
    for options in (few, OPTIONS):
        assert [False] == from_cache(agreed(spark, lake.query(), cache, options))
    for options, kind in ((few, "ranges and bloom filter"), (OPTIONS, "exact set")):
        result = agreed(spark, lake.query(), cache, options)
        assert [True] == from_cache(result)
        assert [kind] == [each.kind for table in explain(result).tables for each in table.filters]


# Failure catalogue 56: plans that are prepared once keep the statistics of an outdated version.
@pytest.mark.full
def test_cache_distinguishes_table_versions(spark, sales, tmp_path, jobs, agreed):
    lake, cache = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache()
    before = agreed(spark, lake.query(), cache)
    lake.write(lake.days, lake.months("2").where("day IN (3, 55)"), "append")
    after = agreed(spark, lake.query(), cache)
    assert ([1], [3], [False]) == (kept_files(before), kept_files(after), from_cache(after))
    jobs()
    assert ([3], [True]) == (kept_files(again := agreed(spark, lake.query(), cache)), from_cache(again))
    assert 0 == jobs()
    old = f"(SELECT * FROM delta.`{lake.days}` VERSION AS OF 0)"
    # The first query has read that version.
    result = agreed(spark, lake.query(days=old), cache)
    assert ([1], [True]) == (kept_files(result), from_cache(result))


# Failure catalogue 47, 49: a query that was planned at one version gets no keys of another version.
@pytest.mark.full
def test_query_planned_before_a_commit_keeps_its_version(spark, sales, tmp_path, agreed):
    lake, cache = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache()
    planned = spark.sql(lake.query())
    expected = Rows(planned.collect())
    lake.write_days("7 - day div 10", "overwrite")
    agreed(spark, lake.query(), cache)
    result = prune(planned, options=OPTIONS, cache=cache)
    assert (expected, [False]) == (Rows(result.collect()), from_cache(result))


@pytest.mark.full
def test_recreated_table_is_not_found_in_the_cache(spark, sales, tmp_path, agreed):
    lake, cache = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache()
    agreed(spark, lake.query(), cache)
    shutil.rmtree(lake.days)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    lake.write_days("5 - day div 10")
    result = agreed(spark, lake.query(where="month = 2"), cache)
    assert (2, [False], [1]) == (len(cache), from_cache(result), kept_files(result))
    assert [(30, 39)] == result.selectExpr("min(day)", "max(day)").collect()


@pytest.mark.full
def test_overwritten_parquet_files_are_not_found_in_the_cache(
    spark, sales, tmp_path, monkeypatch, agreed, pruned_frame
):
    lake, cache = Lake(spark, sales / "parquet" / "sales", tmp_path), PruningCache()
    planned = spark.sql(lake.query())
    agreed(spark, lake.query(), cache)
    (file,) = Path(lake.days).glob("*.parquet")
    lake.months("5 - day div 10").write.parquet(str(tmp_path / "other"))
    (other,) = (tmp_path / "other").glob("*.parquet")
    shutil.copy(other, file)
    Path(lake.days, f".{file.name}.crc").unlink()
    # A recent file may be overwritten once more with the same modification time.
    fresh = agreed(spark, lake.query(), cache)
    assert (["a file of it was written less than 60 seconds ago"], [False]) == (not_cached(fresh), from_cache(fresh))
    settle(lake.days, 300)
    assert ([], [False]) == (not_cached(late := agreed(spark, lake.query(), cache)), from_cache(late))
    assert [True] == from_cache(agreed(spark, lake.query(), cache))
    # A query that listed the file before it was overwritten reads the new content, so cached keys of the old content
    # are wrong.
    stale = pruned_frame(planned, options=OPTIONS, cache=cache)
    assert 10 == len(stale.collect())
    assert (["a file of it is not the one that was listed"], [False]) == (not_cached(stale), from_cache(stale))
    cache.clear()
    run = QueryBuilds.run

    def overwritten(self, requests):
        found = run(self, requests)
        settle(lake.days, 200)
        return found

    monkeypatch.setattr(QueryBuilds, "run", overwritten)
    result = agreed(spark, lake.query(), cache)
    assert (["a file of it was written meanwhile"], 0) == (not_cached(result), len(cache))


@pytest.mark.full
def test_cache_key_of_a_pruned_build_includes_its_filters(spark, sales, tmp_path, jobs, agreed):
    """Keys of another build filter the scan of days, so they are part of the cache key."""
    lake, cache = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache()
    days = lake.months("day div 10").repartitionByRange(6, "day")
    lake.write(lake.days, days, "overwrite")
    months = spark.range(0, 6, 1, 1).selectExpr("cast(id AS int) AS m", "concat('m', id) AS name")
    months.write.format("delta").save(str(tmp_path / "months"))
    query = f"""
        SELECT s.day, name, count(*) FROM delta.`{lake.sales}` s JOIN delta.`{lake.days}` d ON s.day = d.day
        JOIN delta.`{tmp_path}/months` ON month = m WHERE name = '{{}}' GROUP BY 1, 2"""
    levels = set()
    for name, is_kept in (("m2", False), ("m3", False), ("m2", True), ("m3", True)):
        result = agreed(spark, query.format(name), cache)
        levels |= {each.level for each in explain(result).builds}
        assert [1] == kept_files(result)
        assert {is_kept} == set(from_cache(result))
        assert is_kept is (jobs() == 0)
    assert {1, 2} <= levels


@pytest.mark.full
def test_sessions_share_entries_only_with_equal_confs(spark, sales, tmp_path, agreed):
    lake, cache, other = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache(), same_session(spark)
    query = lake.query(where="to_date(moment) = '2024-01-21'")
    assert [False] == from_cache(agreed(spark, query, cache))
    assert [True] == from_cache(agreed(other, query, cache))
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    result = agreed(other, query, cache)
    assert ([False], [19]) == (from_cache(result), [row.day for row in result.collect()])
    assert [20] == [row.day for row in agreed(spark, query, cache).collect()]


def test_commit_to_another_table_leaves_entries(spark, lake, tmp_path, agreed):
    """Delta notes the version of each commit in a conf of the session."""
    cache = PruningCache()
    spark.conf.unset(LAST_COMMIT)
    assert [False] == from_cache(agreed(spark, lake.query(), cache))
    spark.range(3).write.format("delta").save(str(tmp_path / "other"))
    assert "0" == spark.conf.get(LAST_COMMIT)
    assert [True] == from_cache(agreed(spark, lake.query(), cache))


def test_confs_changed_during_a_build_prevent_caching(spark, lake, conf, monkeypatch, agreed):
    run, cache, zone = QueryBuilds.run, PruningCache(), "spark.sql.session.timeZone"
    conf(zone, "UTC")

    def set_meanwhile(self, requests):
        self.scheduler.spark.conf.set(zone, "Asia/Tokyo")
        return run(self, requests)

    monkeypatch.setattr(QueryBuilds, "run", set_meanwhile)
    result = agreed(spark, lake.query(), cache)
    assert (["confs were set meanwhile"], 0) == (not_cached(result), len(cache))


@pytest.mark.full
def test_concurrent_queries_share_a_cache(spark, lake, pruned_frame):
    cache = PruningCache(max_entries=2)
    queries = [lake.query(where=f"month = {at % 3}") for at in range(9)]
    expected = {query: Rows(spark.sql(query).collect()) for query in set(queries)}

    def work(query: str) -> bool:
        result = pruned_frame(spark.sql(query), options=OPTIONS, cache=cache)
        return expected[query] == Rows(result.collect()) and [1] == kept_files(result)

    with ThreadPoolExecutor(3) as threads:
        assert [True] * 9 == list(threads.map(work, queries))
    assert (2, 9) == (len(cache), cache.hits + cache.misses)


# Failure catalogue 59: Spark may evict cached rows and compute them again from a table that has changed.
def test_dataframe_cache_and_oversized_rows_are_not_cached(spark, lake, agreed):
    cache = PruningCache()
    cached = spark.sql(f"SELECT * FROM {lake.format}.`{lake.days}` WHERE month = 2").cache()
    try:
        cached.createOrReplaceTempView("cached_days")
        result = agreed(spark, lake.query(days="cached_days"), cache)
        assert ([1], ["it has a InMemoryRelation"]) == (kept_files(result), not_cached(result))
    finally:
        cached.unpersist(blocking=True)
        spark.catalog.dropTempView("cached_days")
    assert (0, 1) == (len(cache), cache.misses)
    small = PruningCache(max_bytes=100)
    (why,) = not_cached(agreed(spark, lake.query(), small))
    assert "bytes, at most 100 are held" in why
    assert 0 == len(small)


def test_value_that_is_no_cache_is_refused(spark):
    with pytest.raises(InvalidOptionError, match="expected a PruningCache, found a dict"):
        prune(spark.range(1), cache={})


def test_failed_fingerprint_runs_the_build(spark, lake, monkeypatch, agreed):
    def fails(*_):
        msg = "secret"
        raise PySparkException(msg)

    monkeypatch.setattr(cached_builds, "fingerprints", fails)
    cache = PruningCache()
    result = agreed(spark, lake.query(), cache)
    assert ([1], 0, 1) == (kept_files(result), len(cache), cache.misses)
    (why,) = not_cached(result)
    assert "secret" not in why
