"""With a cache builds run once, and never are keys given that another run would not give."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from connectors.builds import cached_builds as kept_builds
from connectors.builds.query_builds import QueryBuilds
from connectors.jobs.runner import BuildScheduler
from pruning import PruningCache, PruningOptions, explain, prune, report
from pruning.errors import InvalidOptionError
from tests.same_session import same_session
from tests.three_ways import as_text

pytestmark = pytest.mark.spark

FILES, DAYS_PER_FILE = 6, 10
OPTIONS = PruningOptions(min_probe_bytes=0)


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
    """As if its files had been written a while ago."""
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
    """How many jobs builds have run since it was last asked."""
    run_all, count = BuildScheduler.run_all, [0]

    def total() -> int:
        return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())

    def counted(self, wanted):
        before = total()
        try:
            return run_all(self, wanted)
        finally:
            count[0] += total() - before

    def asked() -> int:
        found, count[0] = count[0], 0
        return found

    monkeypatch.setattr(BuildScheduler, "run_all", counted)
    return asked


def agreed(spark, query: str, cache: PruningCache, options: PruningOptions = OPTIONS):
    """The pruned query, whose rows are those of the query."""
    result = prune(spark.sql(query), options=options, cache=cache)
    assert as_text(spark.sql(query).collect()) == as_text(result.collect())
    return result


def kept_files(result) -> list[int | None]:
    return [each.files_kept for each in explain(result).tables if each.table.startswith("sales")]


def from_cache(result) -> list[bool]:
    """Of each build that reads anything whether it was not run."""
    return [each.from_cache for each in explain(result).builds if each.reads]


def not_cached(result) -> list[str]:
    return [each.detail for each in explain(result).reasons if each.code.name == "NOT_CACHED"]


def test_a_build_is_run_once(spark, lake, jobs):
    cache = PruningCache()
    first = agreed(spark, lake.query(), cache)
    assert 0 < jobs()
    assert ([1], [False], []) == (kept_files(first), from_cache(first), not_cached(first))
    # Other columns of the fact, and another name of the dimension's key.
    for query in (lake.query(), lake.query("max(s.id) AS most")):
        again = agreed(spark, query, cache)
        assert ([1], [True], []) == (kept_files(again), from_cache(again), not_cached(again))
        assert ["the cache"] == [each.source for table in report(again).tables for each in table.planned.filters]
        assert "nothing: the cache has its keys" in str(explain(again))
    assert 0 == jobs()
    assert (1, 2, 1) == (len(cache), cache.hits, cache.misses)
    other = agreed(spark, lake.query(where="month = 3"), cache)
    assert ([1], [False], 2) == (kept_files(other), from_cache(other), len(cache))
    assert 0 < jobs()
    cache.clear()
    assert [False] == from_cache(agreed(spark, lake.query(), cache))
    jobs()
    assert [False] == from_cache(prune(spark.sql(lake.query()), options=OPTIONS))
    assert 0 < jobs()


def test_too_many_rows_to_be_joined_are_kept_as_keys(spark, lake, jobs):
    cache, options = PruningCache(), OPTIONS.with_limits(joined_rows=5)
    for is_kept in (False, True):
        result = agreed(spark, lake.query(), cache, options)
        assert ([1], is_kept) == (kept_files(result), any(from_cache(result)))
        assert is_kept is (jobs() == 0)
        assert "LocalRelation" not in result._jdf.queryExecution().optimizedPlan().toString()
    assert [False] == from_cache(agreed(spark, lake.query(), cache))


@pytest.mark.full
def test_limits_of_a_key_set_are_part_of_what_is_asked(spark, lake):
    cache = PruningCache()
    few = PruningOptions(min_probe_bytes=0).with_limits(max_build_keys=3)
    for options in (few, OPTIONS):
        assert [False] == from_cache(agreed(spark, lake.query(), cache, options))
    for options, kind in ((few, "ranges and bloom filter"), (OPTIONS, "exact set")):
        result = agreed(spark, lake.query(), cache, options)
        assert [True] == from_cache(result)
        assert [kind] == [each.kind for table in explain(result).tables for each in table.filters]


# 56: plans that are prepared once keep statistics of rows that are no longer all.
@pytest.mark.full
def test_a_commit_is_another_version_and_time_travel_goes_back(spark, sales, tmp_path, jobs):
    lake, cache = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache()
    before = agreed(spark, lake.query(), cache)
    lake.write(lake.days, lake.months("2").where("day IN (3, 55)"), "append")
    after = agreed(spark, lake.query(), cache)
    assert ([1], [3], [False]) == (kept_files(before), kept_files(after), from_cache(after))
    jobs()
    assert ([3], [True]) == (kept_files(again := agreed(spark, lake.query(), cache)), from_cache(again))
    assert 0 == jobs()
    old = f"(SELECT * FROM delta.`{lake.days}` VERSION AS OF 0)"
    for is_kept in (False, True):
        result = agreed(spark, lake.query(days=old), cache)
        assert ([1], [is_kept]) == (kept_files(result), from_cache(result))


# 47, 49: a query that was planned at one version gets no keys of another one.
@pytest.mark.full
def test_a_query_that_was_planned_before_a_commit_keeps_its_version(spark, sales, tmp_path):
    lake, cache = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache()
    planned = spark.sql(lake.query())
    expected = as_text(planned.collect())
    lake.write_days("7 - day div 10", "overwrite")
    agreed(spark, lake.query(), cache)
    result = prune(planned, options=OPTIONS, cache=cache)
    assert (expected, [False]) == (as_text(result.collect()), from_cache(result))


@pytest.mark.full
def test_a_table_that_is_made_again_at_its_path_is_another_one(spark, sales, tmp_path):
    lake, cache = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache()
    agreed(spark, lake.query(), cache)
    shutil.rmtree(lake.days)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    lake.write_days("5 - day div 10")
    result = agreed(spark, lake.query(where="month = 2"), cache)
    assert (2, [False], [1]) == (len(cache), from_cache(result), kept_files(result))
    assert [(30, 39)] == result.selectExpr("min(day)", "max(day)").collect()


@pytest.mark.full
def test_files_of_parquet_that_are_overwritten_are_others(spark, sales, tmp_path, monkeypatch):
    lake, cache = Lake(spark, sales / "parquet" / "sales", tmp_path), PruningCache()
    planned = spark.sql(lake.query())
    agreed(spark, lake.query(), cache)
    (file,) = Path(lake.days).glob("*.parquet")
    lake.months("5 - day div 10").write.parquet(str(tmp_path / "other"))
    (other,) = (tmp_path / "other").glob("*.parquet")
    shutil.copy(other, file)
    Path(lake.days, f".{file.name}.crc").unlink()
    # Of late, it may be written once more with the same time.
    fresh = agreed(spark, lake.query(), cache)
    assert (["a file of it was written less than 60 seconds ago"], [False]) == (not_cached(fresh), from_cache(fresh))
    settle(lake.days, 300)
    assert ([], [False]) == (not_cached(late := agreed(spark, lake.query(), cache)), from_cache(late))
    assert [True] == from_cache(agreed(spark, lake.query(), cache))
    # Who listed the file before it was overwritten reads what lies there, so keys of what lay there would be wrong.
    stale = prune(planned, options=OPTIONS, cache=cache)
    assert (["a file of it is not the one that was listed"], [False]) == (not_cached(stale), from_cache(stale))
    cache.clear()
    run = QueryBuilds.run

    def overwritten(self, asked):
        found = run(self, asked)
        settle(lake.days, 200)
        return found

    monkeypatch.setattr(QueryBuilds, "run", overwritten)
    result = agreed(spark, lake.query(), cache)
    assert (["a file of it was written meanwhile"], 0) == (not_cached(result), len(cache))


@pytest.mark.full
def test_a_pruned_build_is_one_by_its_own_keys(spark, sales, tmp_path, jobs):
    """The scan of days is filtered by the keys of another build, which are a part of what is asked."""
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
def test_other_sessions_share_what_their_confs_let_them(spark, sales, tmp_path):
    lake, cache, other = Lake(spark, sales / "delta" / "sales", tmp_path), PruningCache(), same_session(spark)
    query = lake.query(where="to_date(moment) = '2024-01-21'")
    assert [False] == from_cache(agreed(spark, query, cache))
    assert [True] == from_cache(agreed(other, query, cache))
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    result = agreed(other, query, cache)
    assert ([False], [19]) == (from_cache(result), [row.day for row in result.collect()])
    assert [20] == [row.day for row in agreed(spark, query, cache).collect()]


def test_confs_that_are_set_during_a_build_are_not_what_was_asked(spark, lake, conf, monkeypatch):
    run, cache = QueryBuilds.run, PruningCache()

    def set_meanwhile(self, asked):
        conf("spark.sql.session.timeZone", "Asia/Tokyo")
        return run(self, asked)

    monkeypatch.setattr(QueryBuilds, "run", set_meanwhile)
    result = agreed(spark, lake.query(), cache)
    assert (["confs were set meanwhile"], 0) == (not_cached(result), len(cache))


@pytest.mark.full
def test_queries_at_the_same_time_share_a_cache(spark, lake):
    cache = PruningCache(max_entries=2)
    queries = [lake.query(where=f"month = {at % 3}") for at in range(9)]
    expected = {query: as_text(spark.sql(query).collect()) for query in set(queries)}

    def work(query: str) -> bool:
        result = prune(spark.sql(query), options=OPTIONS, cache=cache)
        return expected[query] == as_text(result.collect()) and [1] == kept_files(result)

    with ThreadPoolExecutor(3) as threads:
        assert [True] * 9 == list(threads.map(work, queries))
    assert (2, 9) == (len(cache), cache.hits + cache.misses)


# 59: cached rows may be lost, and made again from a table that has changed.
def test_cached_rows_and_rows_that_are_too_many_bytes_are_not_kept(spark, lake):
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


def test_what_is_no_cache_is_refused(spark):
    with pytest.raises(InvalidOptionError, match="expected a PruningCache, found a dict"):
        prune(spark.range(1), cache={})


def test_trouble_with_a_key_runs_the_build(spark, lake, monkeypatch):
    def fails(*_):
        msg = "secret"
        raise PySparkException(msg)

    monkeypatch.setattr(kept_builds, "build_key", fails)
    cache = PruningCache()
    result = agreed(spark, lake.query(), cache)
    assert ([1], 0, 1) == (kept_files(result), len(cache), cache.misses)
    (why,) = not_cached(result)
    assert "secret" not in why
