from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.jobs import runner as builds
from connectors.jobs.runner import Build
from pruning.options import PruningOptions
from pruning.reasons import Reason

pytestmark = pytest.mark.spark


def eventually(condition):
    """Waits until the condition holds; the time limit of the test ends a wait in vain."""
    while not condition():
        time.sleep(0.05)
    return True


def sleeping(pids):
    def task(batches):
        Path(pids, str(os.getpid())).touch()
        for batch in batches:
            time.sleep(3600)
            yield batch

    return task


def is_running(pid):
    status = Path("/proc", pid, "status")
    try:
        return "State:\tZ" not in status.read_text()
    except OSError:
        return False


def own_threads():
    return [each.name for each in threading.enumerate() if each.name.startswith(("build of", "end of"))]


def state_of(spark):
    context = spark.sparkContext
    return (
        context.getLocalProperty("spark.jobGroup.id"),
        context.getLocalProperty("mine"),
        context.getJobTags(),
        spark.getTags(),
    )


@pytest.fixture
def caller(spark):
    """A caller with its own job group, tag and local property."""
    context = spark.sparkContext
    context.setJobGroup("group", "description")
    context.setLocalProperty("mine", "value")
    context.addJobTag("context tag")
    spark.addTag("session tag")
    yield state_of(spark)
    context.setLocalProperty("spark.jobGroup.id", None)
    context.setLocalProperty("mine", None)
    context.removeJobTag("context tag")
    spark.removeTag("session tag")


def assert_nothing_is_left(spark, pids, before):
    tracker = spark.sparkContext.statusTracker()
    assert eventually(lambda: not tracker.getActiveJobsIds() and not tracker.getActiveStageIds())
    assert eventually(lambda: not any(is_running(pid.name) for pid in pids.iterdir()))
    assert eventually(lambda: not own_threads())
    assert before == state_of(spark)


def test_build_over_its_time_limit_is_cancelled(spark, caller, tmp_path):
    frame = spark.range(0, 2, 1, 2).mapInArrow(sleeping(str(tmp_path)), "id long")
    started = []

    def action():
        started.append(True)
        return frame.collect()

    reason = builds.run(spark, action, timeout=3.0, description="k")
    assert ("BUILD_TIMED_OUT", "k", "3 seconds") == (reason.code.name, reason.subject, reason.detail)
    assert started
    assert_nothing_is_left(spark, tmp_path, caller)


def test_interrupt_cancels_the_build_and_is_raised(spark, caller, tmp_path):
    frame = spark.range(0, 2, 1, 2).mapInArrow(sleeping(str(tmp_path)), "id long")

    def interrupt(_):
        if any(tmp_path.iterdir()):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builds.run(spark, frame.collect, timeout=60.0, description="k", on_progress=interrupt)
    assert_nothing_is_left(spark, tmp_path, caller)


def test_after_a_build_that_somebody_cancels_no_other_begins(spark, caller, tmp_path):
    frame = spark.range(0, 2, 1, 2).mapInArrow(sleeping(str(tmp_path)), "id long")

    def cancel() -> None:
        eventually(lambda: any(tmp_path.iterdir()))
        spark.sparkContext.cancelJobGroup("group")

    other = threading.Thread(target=cancel, daemon=True)
    other.start()
    scheduler = builds.BuildScheduler.of(spark, PruningOptions())
    (reason,) = scheduler.run_all([Build("k", frame.collect)])
    assert ("BUILD_CANCELLED", "k") == (reason.code.name, reason.subject)
    assert "cancelled part of cancelled job group group" in reason.detail
    other.join()
    assert [replace(reason, subject="l")] == scheduler.run_all([Build("l", lambda: pytest.fail("it began"))])
    assert_nothing_is_left(spark, tmp_path, caller)


def test_builds_run_concurrently_with_separate_results(spark, caller, tmp_path):
    def meeting(mine, other):
        def task(batches):
            Path(tmp_path, mine).touch()
            while not Path(tmp_path, other).exists():
                time.sleep(0.02)
            yield from batches

        return spark.range(0, 1, 1, 1).mapInArrow(task, "id long")

    def failing():
        msg = "secret"
        raise ValueError(msg)

    first, second = meeting("a", "b"), meeting("b", "a")
    results = builds.run_all(
        spark, [Build("a", first.count), Build("b", second.count), Build("c", failing)], timeout=60.0
    )
    assert [1, 1] == results[:2]
    assert Reason(builds.ReasonCode.BUILD_FAILED, "c", "ValueError") == results[2]
    assert caller == state_of(spark)
    assert [] == own_threads()


def test_build_inherits_local_properties(spark, caller):
    assert "value" == builds.run(
        spark, lambda: spark.sparkContext.getLocalProperty("mine"), timeout=60.0, description="k"
    )
    assert caller == state_of(spark)


def test_progress_counts_only_tasks_of_the_build(spark, tmp_path):
    seen = []

    def waiting(batches):
        while not Path(tmp_path, "seen").exists():
            time.sleep(0.02)
        yield from batches

    def watch(progress):
        seen.extend(each.total for each in progress if each.total)
        if seen:
            Path(tmp_path, "seen").touch()

    frame = spark.range(0, 2, 1, 2).mapInArrow(waiting, "id long")
    assert 2 == len(builds.run(spark, frame.collect, timeout=60.0, description="k", on_progress=watch))
    assert {2} == set(seen)
