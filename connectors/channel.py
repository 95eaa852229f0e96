"""`Channel`: the builds of one query, from their start to their end, under one deadline."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import SparkSession

from connectors import builds
from connectors.builds import Build
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Channel:
    """Runs builds, each with a time of its own and all of them until `deadline`, of `time.monotonic()`.

    What is not there by then is a `Reason`, and whoever waits for it goes on without. Nothing is left running when
    `run_all` returns or raises, in whatever thread: jobs are cancelled by a tag that no other build has.
    """

    spark: SparkSession
    options: PruningOptions
    deadline: float

    @staticmethod
    def of(spark: SparkSession, options: PruningOptions) -> Channel:
        """The channel of a query whose builds begin at this moment."""
        return Channel(spark, options, time.monotonic() + options.all_builds_timeout_seconds)

    def run_all(self, wanted: Sequence[Build[T]]) -> list[T | Reason]:
        """What each build gives, all run at the same time."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            return [self._too_late(each.subject) for each in wanted]
        own = self.options.build_timeout_seconds
        results = builds.run_all(self.spark, wanted, timeout=min(own, left))
        return [
            self._too_late(each.subject) if left < own and _timed_out(result) else result
            for each, result in zip(wanted, results, strict=True)
        ]

    def _too_late(self, subject: str) -> Reason:
        detail = f"{self.options.all_builds_timeout_seconds:g} seconds for all builds of the query"
        return Reason(ReasonCode.BUILD_TIMED_OUT, subject, detail)


def _timed_out(result: object) -> bool:
    return isinstance(result, Reason) and result.code is ReasonCode.BUILD_TIMED_OUT
