"""DataFrames pruned in either way: by `prune()`, and by an enabled session that plans them.

Both results answer `explain()` and `report()`: that of a session tells of the latest query which the session planned,
so an action comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pruning import Explanation, PruneReport, PruningCache, PruningOptions, disable, enable, history, prune

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import DataFrame, SparkSession

WAYS = ("prune()", "enable()")


@dataclass(frozen=True, slots=True)
class LatestQuery:
    """The record of the latest query that a session planned."""

    session: SparkSession

    def explanation(self) -> Explanation:
        """Its plan; without filters if the session did not hand it over."""
        from connectors.session.session_pruning import records  # noqa: PLC0415 - tests without Spark load none

        self.report()
        found = records(self.session)
        return found[0].explanation() if found else Explanation(True, {}, (), (), (), (), (), ())  # noqa: FBT003 - as fields come

    def report(self) -> PruneReport:
        """Its plan beside what the execution measured for which it was made."""
        reports = history(self.session)
        assert reports, "the session has planned no query: an action of the DataFrame comes first"
        return reports[0]


@dataclass(frozen=True, slots=True)
class PrunedFrames:
    """Makes DataFrames that are pruned in one of the `WAYS`.

    `prune()` collects keys and pins snapshots when it is called. A session does when the DataFrame first runs.
    """

    is_session: bool
    _sessions: list[SparkSession] = field(default_factory=list)

    def __call__(
        self, df: DataFrame, *, options: PruningOptions | None = None, cache: PruningCache | None = None
    ) -> DataFrame:
        """A pruned DataFrame with the plan of `df`: in its session, or in a clone of it that is enabled."""
        if not self.is_session:
            return prune(df, options=options, cache=cache)
        from connectors.pipeline.records import attach  # noqa: PLC0415 - tests without Spark load none
        from connectors.spark.jvm import analyzed_plan, frame_of, jvm_session, session_over  # noqa: PLC0415 - the same

        session = session_over(df.sparkSession, jvm_session(df.sparkSession).cloneSession())
        enable(session, options=options, cache=cache)
        self._sessions.append(session)
        return attach(frame_of(session, analyzed_plan(df)), LatestQuery(session))

    def disable(self) -> None:
        """Leaves the sessions that were made alone."""
        while self._sessions:
            disable(self._sessions.pop())


@dataclass(slots=True)
class Interruptions:
    """Lets something happen once, in a thread of its own, after a query was pruned and before it reads rows.

    A session prunes and reads by one action, so it happens when the pruned plan is handed back.
    """

    frames: PrunedFrames
    monkeypatch: pytest.MonkeyPatch
    to_come: list[Callable[[], object]] = field(default_factory=list)

    def __call__(self, act: Callable[[], object], df: DataFrame, *, options: PruningOptions | None = None) -> DataFrame:
        """A pruned DataFrame with the plan of `df`, before whose rows are read `act` is called."""
        from connectors.session.session_pruning import SessionPruning  # noqa: PLC0415 - tests without Spark load none

        result = self.frames(df, options=options)
        self.to_come.append(act)
        if not self.frames.is_session:
            self._act()
            return result
        apply = SessionPruning.apply

        def applied(pruning: SessionPruning, event: str, query: object) -> object:
            plan = apply(pruning, event, query)
            if pruning.spark is result.sparkSession:
                self._act()
            return plan

        self.monkeypatch.setattr(SessionPruning, "apply", applied)
        return result

    def _act(self) -> None:
        if self.to_come:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(self.to_come.pop()).result()


@contextmanager
def pruned_frames(way: str) -> Iterator[PrunedFrames]:
    """Makes DataFrames that are pruned in one way; its sessions prune nothing any more at the end."""
    frames = PrunedFrames(way == "enable()")
    try:
        yield frames
    finally:
        frames.disable()
