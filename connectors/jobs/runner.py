"""Runs builds: each in a thread and under a job tag of its own, with a deadline and progress.

A build that fails or takes too long becomes a `Reason`; its jobs are cancelled. The caller's own tags, job group and
local properties do not change. `BuildScheduler` runs the builds of one query under a common deadline; `within()` runs
one action, and stops waiting at a deadline.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from connectors.jobs.progress import Display, Progress, tasks_of
from connectors.spark.jvm import cancelled_job, error_kind, failed_build, has_jvm, java_names, jvm_session
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode

logger = logging.getLogger("scanprune")

T = TypeVar("T")
# Seconds after which builds that run are looked at again.
_POLL_SECONDS = 0.2
# Seconds within which cancelled jobs end, unless the driver still plans them.
_CANCEL_SECONDS = 2.0
# In the form of Spark's own error, by which the query ends.
_INTERRUPTED = "[SPARK_JOB_CANCELLED] The thread of the query was interrupted"
# The property of a thread by which a session that prunes its queries leaves those of builds alone (SessionRule.java).
_INSIDE = "scanprune.inside"


@dataclass(frozen=True, slots=True)
class Build(Generic[T]):
    """An action to run; `subject` names it in reasons and on the progress line."""

    subject: str
    action: Callable[[], T]


def run(
    spark: SparkSession,
    action: Callable[[], T],
    *,
    timeout: float,
    description: str,
    on_progress: Callable[[Sequence[Progress]], None] | None = None,
) -> T | Reason:
    """The result of `action`; a `Reason` where it fails or takes longer than `timeout` seconds."""
    builds = [Build(description, action)]
    (result,) = run_all(spark, builds, timeout=timeout, on_progress=on_progress)
    return result


def run_all(
    spark: SparkSession,
    builds: Sequence[Build[T]],
    *,
    timeout: float,
    on_progress: Callable[[Sequence[Progress]], None] | None = None,
) -> list[T | Reason]:
    """The result of each build, all run at the same time, each with `timeout` seconds.

    Progress goes to `on_progress`, or else to the terminal or the log. An exception in the calling thread, such
    as `KeyboardInterrupt`, cancels every build and goes on.
    """
    running = [_Running(spark, build, time.monotonic() + timeout) for build in builds]
    try:
        for each in running:
            each.start()
        with closing(Display()) as display:
            _wait(running, on_progress or display.show)
    finally:
        for each in running:
            each.end()
    return [each.result(timeout) for each in running]


def _wait(running: Sequence[_Running[T]], on_progress: Callable[[Sequence[Progress]], None]) -> None:
    """Waits until each build is done or past its deadline; a build past its deadline is cancelled."""
    pending = list(running)
    while pending:
        wait([each.future for each in pending], timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        pending = [each for each in pending if not each.future.done()]
        for each in pending:
            if time.monotonic() >= each.deadline:
                each.end()
        if pending and _is_interrupted(pending[0].spark):
            for each in pending:
                each.end()
                each.is_interrupted = each.is_cancelled
        pending = [each for each in pending if not each.is_cancelled]
        if pending:
            on_progress([each.progress() for each in pending])


@dataclass(slots=True)
class _Running(Generic[T]):
    spark: SparkSession
    build: Build[T]
    deadline: float
    future: Future[T] = field(default_factory=Future)
    tag: str = field(default_factory=lambda: f"scanprune-{uuid.uuid4().hex}")
    started: float = field(default_factory=time.monotonic)
    is_cancelled: bool = False
    is_interrupted: bool = False
    _thread: threading.Thread | None = None

    def start(self) -> None:
        # The build inherits local properties of the caller, such as its scheduler pool.
        target = inheritable_thread_target(self.spark)(self._work)
        self._thread = threading.Thread(target=target, name=f"build of {self.build.subject}", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            _add_tag(self.spark, self.tag)
            if has_jvm(self.spark):
                self.spark.sparkContext.setLocalProperty(_INSIDE, "true")
            result = self.build.action()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            # A failed action may have started several jobs.
            self._cancel()
            self.future.set_exception(error)
        else:
            self.future.set_result(result)
        finally:
            # Without pinned threads the JVM reuses the thread, with its tags, for other calls.
            with suppress(Py4JError, PySparkException, OSError, AttributeError, KeyError):
                _remove_tag(self.spark, self.tag)
                if has_jvm(self.spark):
                    self.spark.sparkContext.setLocalProperty(_INSIDE, None)  # type: ignore[arg-type]

    def end(self) -> None:
        """Cancels the build's jobs, and prevents that further ones start."""
        if self._thread is None or self.is_cancelled:
            return
        if self.future.done():
            # The result is complete; the thread only removes its tag.
            self._thread.join(_CANCEL_SECONDS)
            return
        self.is_cancelled = True
        until = time.monotonic() + _CANCEL_SECONDS
        while self._thread.is_alive() and time.monotonic() < until:
            self._cancel()
            self._thread.join(_POLL_SECONDS)
        if self._thread.is_alive():
            threading.Thread(target=self._cancel_to_the_end, name=f"end of {self.build.subject}", daemon=True).start()

    def _cancel_to_the_end(self) -> None:
        """Cancels until the thread ends, since a job can be cancelled only after it was submitted."""
        while self._thread is not None and self._thread.is_alive():
            self._cancel()
            self._thread.join(_CANCEL_SECONDS)

    def _cancel(self) -> None:
        try:
            if has_jvm(self.spark):
                self.spark.sparkContext.cancelJobsWithTag(self.tag)
            else:
                self.spark.interruptTag(self.tag)
        except (Py4JError, PySparkException, OSError, AttributeError) as error:
            # The session is gone, and its jobs with it.
            logger.debug("Cannot cancel the build of %s: %s", self.build.subject, error_kind(error))

    def progress(self) -> Progress:
        """The progress of the build; tasks are counted only after some seconds, since counting calls the JVM."""
        seconds = time.monotonic() - self.started
        done, total = tasks_of(self.spark, self.tag, seconds)
        return Progress(self.build.subject, seconds, done, total)

    def result(self, timeout: float) -> T | Reason:
        if self.is_interrupted:
            return Reason(ReasonCode.BUILD_CANCELLED, self.build.subject, _INTERRUPTED)
        if self.is_cancelled:
            return Reason(ReasonCode.BUILD_TIMED_OUT, self.build.subject, f"{timeout:g} seconds")
        error = self.future.exception()
        if error is None:
            return self.future.result()
        if not isinstance(error, Exception):
            raise error
        logger.debug("The build of %s failed: %.300s", self.build.subject, error)
        if (cancelled := cancelled_job(error)) is not None:
            return Reason(ReasonCode.BUILD_CANCELLED, self.build.subject, cancelled)
        return failed_build(self.build.subject, error)


def _is_interrupted(spark: SparkSession) -> bool:
    """True once the thread of the JVM that plans the query was interrupted, by which Connect ends a statement.

    The thread waits for this one, and would notice only after the builds.
    """
    if not has_jvm(spark):
        return False
    try:
        return bool(java_names(spark).java.lang.Thread.currentThread().isInterrupted())
    except (Py4JError, OSError, AttributeError):
        return False


def _add_tag(spark: SparkSession, tag: str) -> None:
    # Only the thread that added a session's tag can interrupt it; any thread can cancel a tag of the context.
    if has_jvm(spark):
        spark.sparkContext.addJobTag(tag)
        # `interruptAll()` of the session also reaches jobs that run in a clone of it.
        spark.sparkContext.addJobTag(str(jvm_session(spark).sessionJobTag()))
    else:
        spark.addTag(tag)


def _remove_tag(spark: SparkSession, tag: str) -> None:
    if has_jvm(spark):
        spark.sparkContext.removeJobTag(tag)
        spark.sparkContext.removeJobTag(str(jvm_session(spark).sessionJobTag()))
    else:
        spark.removeTag(tag)


@dataclass(frozen=True, slots=True)
class BuildScheduler:
    """Runs builds, each with its own timeout and all of them until `deadline`, a time of `time.monotonic()`.

    A build that has not ended by then gives a `Reason`, and its caller continues without keys. No job runs after
    `run_all` returns or raises, in any thread: jobs are cancelled by a tag that no other build has. After somebody
    else has cancelled a build, no other one begins.
    """

    spark: SparkSession
    options: PruningOptions
    deadline: float
    _cancelled: list[Reason] = field(default_factory=list)

    @staticmethod
    def of(spark: SparkSession, options: PruningOptions) -> BuildScheduler:
        """The scheduler of a query whose builds begin at this moment."""
        return BuildScheduler(spark, options, time.monotonic() + options.limits.all_builds_timeout_seconds)

    @property
    def remaining(self) -> float:
        """Seconds that a build which begins now may take; none are left if not positive."""
        return min(self.options.build_timeout_seconds, self.deadline - time.monotonic())

    def cancel(self, reason: Reason) -> None:
        """Begins no further build; those that are asked for give this reason."""
        self._cancelled.append(reason)

    def run_all(self, wanted: Sequence[Build[T]]) -> list[T | Reason]:
        """The result of each build, all run at the same time."""
        remaining = self.deadline - time.monotonic()
        if self._cancelled:
            return [replace(self._cancelled[0], subject=each.subject) for each in wanted]
        if remaining <= 0:
            return [self._too_late(each.subject) for each in wanted]
        own = self.options.build_timeout_seconds
        results = run_all(self.spark, wanted, timeout=min(own, remaining))
        for each in results:
            if isinstance(each, Reason) and each.code is ReasonCode.BUILD_CANCELLED:
                self.cancel(each)
        return [
            self._too_late(each.subject) if remaining < own and _is(result, ReasonCode.BUILD_TIMED_OUT) else result
            for each, result in zip(wanted, results, strict=True)
        ]

    def _too_late(self, subject: str) -> Reason:
        detail = f"{self.options.limits.all_builds_timeout_seconds:g} seconds for all builds of the query"
        return Reason(ReasonCode.BUILD_TIMED_OUT, subject, detail)


def _is(result: object, code: ReasonCode) -> bool:
    return isinstance(result, Reason) and result.code is code


class DeadlineError(Exception):
    """The action did not end in time; its daemon thread runs on, and does not keep the process alive."""


def within(seconds: float, action: Callable[[], T], name: str) -> T:
    """The result or error of `action`, run in a thread of this name; `DeadlineError` if it takes longer."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            found = action()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            future.set_exception(error)
        else:
            future.set_result(found)

    threading.Thread(target=run, name=name, daemon=True).start()
    if not wait([future], seconds).done:
        raise DeadlineError(name)
    return future.result()
