"""The builds of one query: each distinct one runs once, whatever part of the plan asks for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from connectors import spark_keys
from connectors.build_errors import one_line
from connectors.builds import Build
from connectors.channel import Channel
from connectors.java_names import java_names
from connectors.local_builds import LocalRows, TooMany, local_rows
from connectors.spark_files import frame_of
from pruning.key_summary import KeySummary
from pruning.reasons import Reason, ReasonCode

logger = logging.getLogger("scanprune")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The values of `key`, an expression of the JVM, over the rows of `plan`; `name` is for messages.

    `place` is where `plan` has them among its columns, None where they are computed. `is_bounded` says that what it
    reads is known to be little, whatever Spark takes it for. What `must_fit` has no keys where it gives more rows than
    are kept.
    """

    plan: Any
    key: Any
    name: str
    place: int | None = None
    is_bounded: bool = False
    must_fit: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """What a build gave: its keys, and its rows where they are few enough to be joined as they are.

    `from_cache` says that it was not run for this query.
    """

    keys: KeySummary | Reason
    rows: LocalRows | None
    from_cache: bool = False


@dataclass(slots=True)
class _Once(Generic[T]):
    """What each distinct plan gave; equal plans differ in names and ids alone."""

    _known: dict[int, list[tuple[Any, list[T]]]] = field(default_factory=dict)

    def each(self, plans: Sequence[Any], run: Callable[[Sequence[int]], Sequence[T]]) -> list[T]:
        """What each plan gave; `run` takes the indexes of those that have not run, one of several equal ones."""
        places = [self._place(plan) for plan in plans]
        missing = {id(place): at for at, place in enumerate(places) if not place}
        for at, result in zip(missing.values(), run(list(missing.values())), strict=True):
            places[at].append(result)
        return [place[0] for place in places]

    def _place(self, plan: Any) -> list[T]:
        """Empty, or with what the plan gave."""
        canonical = plan.canonicalized()
        group = self._known.setdefault(int(canonical.hashCode()), [])
        for known, place in group:
            if known.equals(canonical):
                return place
        group.append((canonical, []))
        return group[-1][1]


@dataclass(slots=True)
class QueryBuilds:
    """Runs builds and keeps what they gave."""

    channel: Channel
    _rows: _Once[LocalRows | TooMany | Reason | None] = field(default_factory=_Once)
    _keys: _Once[KeySummary | Reason] = field(default_factory=_Once)

    def run(self, asked: Sequence[Asked]) -> list[Built]:
        """What each build gives, all run at the same time; equal ones give the same object."""
        rows = self._rows.each([each.plan for each in asked], lambda places: self._run([asked[at] for at in places]))
        found = [self._keys_or_frame(each, its_rows) for each, its_rows in zip(asked, rows, strict=True)]
        frames = [
            (df, each.name, its_rows.count if isinstance(its_rows, TooMany) else 0)
            for each, df, its_rows in zip(asked, found, rows, strict=True)
            if isinstance(df, DataFrame)
        ]
        plans = [df._jdf.queryExecution().analyzed() for df, *_ in frames]  # noqa: SLF001 - plans have no public door
        keys = iter(self._keys.each(plans, lambda places: self._collect([frames[at] for at in places])))
        return [
            Built(
                next(keys) if isinstance(each, DataFrame) else each,
                its_rows if isinstance(its_rows, LocalRows) else None,
            )
            for each, its_rows in zip(found, rows, strict=True)
        ]

    def _run(self, asked: Sequence[Asked]) -> Sequence[LocalRows | TooMany | Reason | None]:
        return self.channel.run_all([self._build(each) for each in asked])

    def _build(self, asked: Asked) -> Build[LocalRows | TooMany | None]:
        spark = self.channel.spark
        if asked.is_bounded or asked.must_fit:
            return Build(asked.name, lambda: local_rows(spark, asked.plan, asked.name, None))
        return Build(asked.name, lambda: local_rows(spark, asked.plan, asked.name))

    def _collect(self, frames: Sequence[tuple[DataFrame, str, int]]) -> Sequence[KeySummary | Reason]:
        options = self.channel.options
        return [_pinned(each) for each in spark_keys.collected(frames, options, self.channel.run_all)]

    def _keys_or_frame(
        self, asked: Asked, rows: LocalRows | TooMany | Reason | None
    ) -> KeySummary | Reason | DataFrame:
        """The keys of rows that are here, else a DataFrame of one column.

        That Spark does not understand one leaves the others theirs.
        """
        if isinstance(rows, Reason):
            return rows
        if asked.must_fit and not isinstance(rows, LocalRows):
            return Reason(ReasonCode.TOO_MANY_ROWS, asked.name)
        try:
            if isinstance(rows, LocalRows) and asked.place is not None:
                return rows.keys(asked.place, asked.key, self.channel.options, asked.name)
            return self._keys_of(asked, rows)
        except Exception as error:
            logger.debug("The build of %s failed", asked.name, exc_info=True)
            return Reason(ReasonCode.BUILD_FAILED, asked.name, one_line(error))

    def _keys_of(self, asked: Asked, rows: LocalRows | TooMany | None) -> DataFrame:
        spark = self.channel.spark
        jvm = java_names(spark)
        utils = getattr(getattr(jvm.org.apache.spark.sql.classic, "ExpressionUtils$"), "MODULE$")
        plan = rows.instead_of(asked.plan) if isinstance(rows, LocalRows) else asked.plan
        return frame_of(spark, plan).select(SparkColumn(utils.column(asked.key)).alias("key"))


def _pinned(result: KeySummary | Reason) -> KeySummary | Reason:
    """Builds read what the whole query reads, so its plan pins their tables."""
    if isinstance(result, Reason):
        return result
    return replace(result, reasons=tuple(it for it in result.reasons if it.code is not ReasonCode.UNPINNED_KEYS))
