"""The builds of one query: each distinct one runs once, whatever part of the plan asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connectors import spark_keys
from pruning.key_summary import KeySummary
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode


@dataclass(slots=True, eq=False)
class _Known:
    """One build: its plan without names and ids, and what it gave once it ran."""

    canonical: Any
    df: DataFrame
    name: str
    result: KeySummary | Reason | None = None


@dataclass(slots=True)
class QueryBuilds:
    """Runs builds and keeps what they gave; `jobs` counts those that ran."""

    spark: SparkSession
    options: PruningOptions
    _known: dict[int, list[_Known]] = field(default_factory=dict)

    @property
    def jobs(self) -> int:
        """How many builds ran."""
        return sum(each.result is not None for group in self._known.values() for each in group)

    def run(self, frames: Sequence[tuple[DataFrame, str]]) -> list[KeySummary | Reason]:
        """The keys of each DataFrame of one column, named for messages; equal ones give the same object."""
        asked = [self._entry(df, name) for df, name in frames]
        missing = list({id(each): each for each in asked if each.result is None}.values())
        found = spark_keys.collect_all(self.spark, [(each.df, each.name) for each in missing], self.options)
        for each, result in zip(missing, found, strict=True):
            each.result = _pinned(result)
        return [each.result for each in asked if each.result is not None]

    def _entry(self, df: DataFrame, name: str) -> _Known:
        canonical: Any = df._jdf.queryExecution().analyzed().canonicalized()  # noqa: SLF001 - plans have no public door
        group = self._known.setdefault(int(canonical.hashCode()), [])
        for each in group:
            if each.canonical.equals(canonical):
                return each
        group.append(_Known(canonical, df, name))
        return group[-1]


def _pinned(result: KeySummary | Reason) -> KeySummary | Reason:
    """Builds read what the whole query reads, so its plan pins their tables."""
    if isinstance(result, Reason):
        return result
    return replace(result, reasons=tuple(it for it in result.reasons if it.code is not ReasonCode.UNPINNED_KEYS))
