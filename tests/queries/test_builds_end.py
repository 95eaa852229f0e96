"""No job, thread, broadcast or job tag is left over after pruning a query, in success or failure."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import DataFrame

from connectors.builds import materialized, query_builds
from connectors.jobs import runner
from connectors.jobs import runner as builds
from pruning import explain, prune
from sample_data.rows import Rows
from tests.costs import ALWAYS
from tests.leftovers import blocks
from tests.queries.star import BY_JOB, FILES, OPTIONS, files
from tests.unchanged import is_unchanged

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# The format does not affect how long a build takes and what ends it.
ONE_FORMAT = pytest.mark.parametrize("star", ["delta"], indirect=True)

QUERY = "SELECT s.*, month FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE month = 2"
# Deterministic, runs longer than any test waits, and uses little memory, because a full heap would end Java. A
# cancelled task runs to the end of its batch.
ENDLESS = f"{QUERY} AND NOT exists(sequence(d.day, 500), x -> exists(sequence(d.day, 500), y -> x + y < d.day))"
# A build that is a broadcast join. PySpark logs other kinds of errors with the contents of their frames.
JOINED = """
    SELECT s.*, month FROM {star}sales s JOIN (
        SELECT /*+ BROADCAST(i) */ d.day, month FROM {star}days d JOIN {star}items i ON month = i.item
        WHERE month = 2 AND if(d.day + i.item = {bad}, raise_error('mine'), true)
    ) d ON s.day = d.day"""
# Two builds of one level; that of nearly all items is not worth its time.
TWO = """
    SELECT s.* FROM {star}sales s JOIN {star}days d ON s.day = d.day JOIN {star}items i ON s.item = i.item
    WHERE month = 2 AND name <> 'n7'"""


def broadcasts_of(plan) -> set[str]:
    """The blocks that an executed plan has broadcast for its joins."""
    match str(plan.getClass().getSimpleName()):
        case "AdaptiveSparkPlanExec":
            return broadcasts_of(plan.executedPlan())
        case name if name.endswith("QueryStageExec"):
            return broadcasts_of(plan.plan())
        case "BroadcastExchangeExec":
            return {f"broadcast_{plan.completionFuture().value().get().get().id()}"}
    children = plan.children()
    return {block for at in range(children.size()) for block in broadcasts_of(children.apply(at))}


@pytest.fixture
def held_broadcasts(spark, monkeypatch) -> dict[str, DataFrame]:
    """The blocks of join broadcasts that existed when the builds ended, and the execution of each."""
    found, released = {}, materialized.execution_released

    @contextmanager
    def noted(session, execution):
        with released(session, execution):
            try:
                yield
            finally:
                found.update(dict.fromkeys(broadcasts_of(execution.executedPlan()) & blocks(spark), execution))

    monkeypatch.setattr(materialized, "execution_released", noted)
    return found


def assert_released(spark, held_broadcasts: dict[str, DataFrame]) -> None:
    """Broadcasts are released with the build; while the plan is referenced, they would be no garbage."""
    assert held_broadcasts
    deadline = time.monotonic() + 10
    while held_broadcasts.keys() & blocks(spark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set() == held_broadcasts.keys() & blocks(spark)
    held_broadcasts.clear()


def waiting(spark, folder: Path):
    """A DataFrame whose job creates the file `begun` and runs until its folder has a file `end`."""

    def task(batches):
        Path(folder, "begun").touch()
        while not Path(folder, "end").exists():
            time.sleep(0.02)
        yield from batches

    return spark.range(0, 1, 1, 1).mapInArrow(task, "id long")


@pytest.mark.parametrize("options", [OPTIONS, BY_JOB], ids=["on the driver", "by a job"])
def test_nothing_is_left_after_success(spark, star, assert_no_leftovers, pruned_frame, options):
    result = pruned_frame(spark.sql(QUERY.format(star=star)), options=options)
    assert 750 == result.count()
    assert [options is OPTIONS] == [each.on_driver for each in explain(result).builds]
    assert {"sales": (2, 2, FILES)} == files(result)
    del result
    assert_no_leftovers()


def test_nothing_is_left_after_a_failed_build(spark, star, assert_no_leftovers, pruned_frame, monkeypatch, caplog):
    def fails(*_) -> None:
        msg = "secret"
        raise ValueError(msg)

    monkeypatch.setattr(query_builds, "local_rows", fails)
    df = spark.sql(QUERY.format(star=star))
    result = pruned_frame(df, options=BY_JOB)
    assert Rows(df.collect()) == Rows(result.collect())
    assert is_unchanged(df, result)
    assert {"BUILD_FAILED"} <= {each.code.name for each in explain(result).reasons}
    assert "collecting the keys failed (ValueError)" in caplog.text
    assert "secret" not in caplog.text
    del df, result
    assert_no_leftovers()


def test_nothing_is_left_after_a_broadcast_join_build(spark, star, assert_no_leftovers, pruned_frame, held_broadcasts):
    result = pruned_frame(spark.sql(JOINED.format(star=star, bad=0)), options=OPTIONS)
    assert 750 == result.count()
    assert_released(spark, held_broadcasts)
    assert {"sales": (2, 2, FILES)} == files(result)
    del result
    assert_no_leftovers()


def test_nothing_is_left_after_a_failed_broadcast_join_build(
    spark, star, assert_no_leftovers, pruned_frame, held_broadcasts
):
    """The build fails at a row of the join, after the broadcast, and so does the query."""
    df = spark.sql(JOINED.format(star=star, bad=67))
    result = pruned_frame(df, options=OPTIONS)
    with pytest.raises(Exception, match="mine"):
        result.collect()
    assert_released(spark, held_broadcasts)
    assert {"BUILD_RAISED"} <= {each.code.name for each in explain(result).reasons}
    del df, result
    assert_no_leftovers()


def test_failed_build_does_not_end_others_of_its_level(
    spark, star, assert_no_leftovers, pruned_frame, monkeypatch, tmp_path
):
    show = builds.Display.show

    def fails_beside_a_job(session, plan, name, *limits):
        if name == "day":
            waiting(session, tmp_path).collect()
            return materialized.local_rows(session, plan, name, *limits)
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        msg = "secret"
        raise ValueError(msg)

    def let_go(self, progress) -> None:
        show(self, progress)
        if len(progress) == 1 and (tmp_path / "begun").exists():
            (tmp_path / "end").touch()

    monkeypatch.setattr(query_builds, "local_rows", fails_beside_a_job)
    monkeypatch.setattr(builds.Display, "show", let_go)
    df = spark.sql(TWO.format(star=star))
    result = pruned_frame(df, options=ALWAYS.with_limits(driver_scan_files=0))
    assert Rows(df.collect()) == Rows(result.collect())
    assert [("BUILD_FAILED", "item")] == unfinished_builds(result)
    assert {"sales": (2, 2, FILES)} == files(result)
    del df, result
    assert_no_leftovers()


@pytest.mark.full
@ONE_FORMAT
def test_timed_out_build_does_not_end_others_of_its_level(
    spark, star, assert_no_leftovers, pruned_frame, monkeypatch, tmp_path
):
    def slow(session, plan, name, *limits):
        if name == "item":
            waiting(session, tmp_path).collect()
        return materialized.local_rows(session, plan, name, *limits)

    monkeypatch.setattr(query_builds, "local_rows", slow)
    df = spark.sql(TWO.format(star=star))
    result = pruned_frame(df, options=replace(ALWAYS.with_limits(driver_scan_files=0), build_timeout_seconds=4.0))
    assert Rows(df.collect()) == Rows(result.collect())
    assert (tmp_path / "begun").exists()
    assert [("BUILD_TIMED_OUT", "item")] == unfinished_builds(result)
    assert {"sales": (2, 2, FILES)} == files(result)
    del df, result
    assert_no_leftovers()


def unfinished_builds(df) -> list[tuple[str, str]]:
    """The reason code and the subject of each build that failed or timed out."""
    reasons = explain(df).reasons
    return [(each.code.name, each.subject) for each in reasons if each.code.name in {"BUILD_FAILED", "BUILD_TIMED_OUT"}]


def test_builds_of_one_level_run_concurrently(spark, star, pruned_frame, monkeypatch):
    """In sequence, the first build would wait for the second until the barrier times out."""
    meeting = threading.Barrier(2, timeout=20)

    def meets(*arguments):
        meeting.wait()
        return materialized.local_rows(*arguments)

    monkeypatch.setattr(query_builds, "local_rows", meets)
    df = spark.sql(TWO.format(star=star))
    result = pruned_frame(df, options=ALWAYS.with_limits(driver_scan_files=0))
    assert Rows(df.collect()) == Rows(result.collect())
    assert [] == unfinished_builds(result)
    assert {"day", "item"} == {each.keys.split(".")[-1] for each in explain(result).filters}


@pytest.mark.full
@ONE_FORMAT
@pytest.mark.parametrize("limit", ["build_timeout_seconds", "all_builds_timeout_seconds"])
def test_nothing_is_left_after_a_timed_out_build(spark, star, assert_no_leftovers, caplog, limit):
    df = spark.sql(ENDLESS.format(star=star))
    own = limit == "build_timeout_seconds"
    result = prune(df, options=replace(OPTIONS, **{limit: 1.0}) if own else OPTIONS.with_limits(**{limit: 1.0}))
    assert is_unchanged(df, result)
    (reason,) = [each for each in explain(result).reasons if each.code.name == "BUILD_TIMED_OUT"]
    assert {"build_timeout_seconds": "1 seconds"}.get(limit, "1 seconds for all builds of the query") == reason.detail
    assert "longer than the limit" in caplog.text
    assert_no_leftovers()


@ONE_FORMAT
def test_no_job_starts_after_the_deadline_of_all_builds(spark, star, assert_no_leftovers, pruned_frame, monkeypatch):
    """The rows are too many to be materialized, and the deadline passes before a job collects their keys."""
    clock = Mock(monotonic=Mock(return_value=0.0))
    monkeypatch.setattr(runner, "time", clock)
    run_all, begun = builds.run_all, []

    def counted(session, wanted, **named):
        # A reference to a build would keep its broadcasts.
        begun.extend(each.subject for each in wanted if not each.subject.startswith("statistics"))
        return run_all(session, wanted, **named)

    monkeypatch.setattr(builds, "run_all", counted)

    def late(*arguments):
        assert materialized.local_rows(*arguments) is not None
        clock.monotonic.return_value = OPTIONS.limits.all_builds_timeout_seconds + 1

    monkeypatch.setattr(query_builds, "local_rows", late)
    df = spark.sql(QUERY.format(star=star))
    result = pruned_frame(df, options=BY_JOB)
    assert Rows(df.collect()) == Rows(result.collect())
    assert ["day"] == begun
    assert is_unchanged(df, result)
    assert "BUILD_TIMED_OUT" in {each.code.name for each in explain(result).reasons}
    del df, result
    assert_no_leftovers()


@pytest.mark.full
@ONE_FORMAT
def test_nothing_is_left_after_an_interrupt(spark, star, assert_no_leftovers, monkeypatch):
    shown = builds.Display.show

    def interrupt(self, progress) -> None:
        shown(self, progress)
        if spark.sparkContext.statusTracker().getActiveJobsIds():
            raise KeyboardInterrupt

    monkeypatch.setattr(builds.Display, "show", interrupt)
    df = spark.sql(ENDLESS.format(star=star))
    with pytest.raises(KeyboardInterrupt):
        prune(df, options=OPTIONS)
    assert_no_leftovers()


def test_nothing_is_left_after_an_error_in_the_action(spark, star, assert_no_leftovers, pruned_frame):
    query = QUERY.format(star=star).replace("s.*", "raise_error(concat('mine', s.amount))")
    result = pruned_frame(spark.sql(query), options=OPTIONS)
    with pytest.raises(Exception, match="mine"):
        result.collect()
    assert [("sales", 2)] == [(each.table, each.files_kept) for each in explain(result).tables]
    del result
    assert_no_leftovers()


@pytest.mark.full
@ONE_FORMAT
def test_queries_of_several_threads_are_independent(spark, star, assert_no_leftovers):
    """One query times out; each keeps its own deadline, filters and rows."""
    endless = spark.sql(ENDLESS.format(star=star))

    def late():
        result = prune(endless, options=replace(OPTIONS, build_timeout_seconds=0.5))
        return is_unchanged(endless, result), {each.code.name for each in explain(result).reasons}

    def soon(month: int):
        df = spark.sql(QUERY.format(star=star).replace("= 2", f"= {month}"))
        result = prune(df, options=OPTIONS)
        return sorted({row.month for row in result.collect()}), files(result)

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(late)
        others = list(pool.map(soon, [0, 2, 4]))
        is_untouched, codes = first.result()
    assert [([0], {"sales": (2, 2, FILES)}), ([2], {"sales": (2, 2, FILES)}), ([4], {"sales": (2, 2, FILES)})] == others
    assert is_untouched
    assert "BUILD_TIMED_OUT" in codes
    assert_no_leftovers()
