"""The builds of one query: each distinct one runs once, whatever part of the plan asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession

from connectors import builds, spark_keys
from connectors.builds import Build
from connectors.local_builds import LocalRows, local_rows
from connectors.spark_files import frame_of
from pruning.key_summary import KeySummary
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The values of `key`, an expression of the JVM, over the rows of `plan`; `name` is for messages."""

    plan: Any
    key: Any
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """What a build gave: its keys, and its rows where they are few enough to be joined as they are."""

    keys: KeySummary | Reason
    rows: LocalRows | None


@dataclass(slots=True)
class _Once:
    """What each distinct plan gave; equal plans differ in names and ids alone."""

    _known: dict[int, list[tuple[Any, Any]]] = field(default_factory=dict)

    def find(self, plan: Any) -> list[Any]:
        """The place of what the plan gave: empty, or with that."""
        canonical = plan.canonicalized()
        group = self._known.setdefault(int(canonical.hashCode()), [])
        for known, place in group:
            if known.equals(canonical):
                return place  # type: ignore[no-any-return]
        group.append((canonical, []))
        return group[-1][1]  # type: ignore[no-any-return]


@dataclass(slots=True)
class QueryBuilds:
    """Runs builds and keeps what they gave."""

    spark: SparkSession
    options: PruningOptions
    _rows: _Once = field(default_factory=_Once)
    _keys: _Once = field(default_factory=_Once)

    def run(self, asked: Sequence[Asked]) -> list[Built]:
        """What each build gives, all run at the same time; equal ones give the same object."""
        rows = self._all_rows(asked)
        ran = [each for each in zip(asked, rows, strict=True) if not isinstance(each[1], Reason)]
        frames = [(self._frame(each, found), each.name) for each, found in ran if not isinstance(found, Reason)]
        keys = iter(self._all_keys(frames))
        return [Built(found, None) if isinstance(found, Reason) else Built(next(keys), found) for found in rows]

    def _all_rows(self, asked: Sequence[Asked]) -> list[LocalRows | Reason | None]:
        places = [self._rows.find(each.plan) for each in asked]
        missing = {id(place): (place, each) for place, each in zip(places, asked, strict=True) if not place}
        wanted = [self._build(each) for _, each in missing.values()]
        results = builds.run_all(self.spark, wanted, timeout=self.options.build_timeout_seconds)
        for (place, _), result in zip(missing.values(), results, strict=True):
            place.append(result)
        return [place[0] for place in places]

    def _build(self, asked: Asked) -> Build[LocalRows | None]:
        return Build(asked.name, lambda: local_rows(self.spark, asked.plan, asked.name))

    def _all_keys(self, frames: Sequence[tuple[DataFrame, str]]) -> list[KeySummary | Reason]:
        plans = [df._jdf.queryExecution().analyzed() for df, _ in frames]  # noqa: SLF001 - plans have no public door
        places = [self._keys.find(plan) for plan in plans]
        missing = {id(place): (place, frame) for place, frame in zip(places, frames, strict=True) if not place}
        results = spark_keys.collect_all(self.spark, [frame for _, frame in missing.values()], self.options)
        for (place, _), result in zip(missing.values(), results, strict=True):
            place.append(_pinned(result))
        return [place[0] for place in places]

    def _frame(self, asked: Asked, rows: LocalRows | None) -> DataFrame:
        """The keys as a DataFrame of one column."""
        jvm: Any = self.spark._jvm  # noqa: SLF001 - PySpark's only door to the JVM
        utils = getattr(getattr(jvm.org.apache.spark.sql.classic, "ExpressionUtils$"), "MODULE$")
        plan = asked.plan if rows is None else rows.instead_of(asked.plan)
        return frame_of(self.spark, plan).select(SparkColumn(utils.column(asked.key)).alias("key"))


def _pinned(result: KeySummary | Reason) -> KeySummary | Reason:
    """Builds read what the whole query reads, so its plan pins their tables."""
    if isinstance(result, Reason):
        return result
    return replace(result, reasons=tuple(it for it in result.reasons if it.code is not ReasonCode.UNPINNED_KEYS))
