"""The builds of one query: each distinct build runs once, however many parts of the plan need it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from connectors.builds.materialized import MaterializedBuild, TooMany, driver_rows, local_rows
from connectors.builds.stored import GivenRows, StoredBuild, stored_rows
from connectors.jobs.runner import Build, BuildScheduler
from connectors.keys import frame as spark_keys
from connectors.keys.frame import KeyFrame
from connectors.keys.worker import KeyColumns
from connectors.spark.jvm import analyzed_plan, column_of, failed_build, frame_of, optimized_plan
from connectors.spark.own_queries import own_query
from pruning.keys.summary import KeySummary
from pruning.limits import Limits
from pruning.reasons import Reason, ReasonCode
from pruning.values.types import ValueType

logger = logging.getLogger("scanprune")


@dataclass(frozen=True, slots=True, eq=False)
class BuildRequest:
    """A build of the values of `key`, a JVM expression, over the rows of `plan`; `name` is for messages.

    `place` is the number of the key among the columns of `plan`, None if it is computed. With `brings_rows` its rows
    are brought to the driver, to be joined as a local relation if they are few enough; with `must_fit` it yields keys
    only then. With `needs_rows` the plan may give other rows when it runs again, so more rows are stored, and joined,
    too; by its first run with `runs_once`. With `on_driver` keys of rows that are not brought are first tried without a
    job.
    """

    plan: Any
    key: Any
    name: str
    place: int | None = None
    brings_rows: bool = True
    must_fit: bool = False
    on_driver: bool = False
    needs_rows: bool = False
    runs_once: bool = False

    def with_wishes(self, other: BuildRequest) -> BuildRequest:
        """This request of a plan with all that another request wishes of an equal one."""
        return replace(
            self,
            brings_rows=self.brings_rows or other.brings_rows,
            must_fit=self.must_fit or other.must_fit,
            on_driver=self.on_driver or other.on_driver,
            needs_rows=self.needs_rows or other.needs_rows,
            runs_once=self.runs_once or other.runs_once,
        )


@dataclass(frozen=True, slots=True, eq=False)
class BuildResult:
    """The result of a build: its keys, and its rows if the query may join them instead of running the plan again.

    `from_cache`: the build was not run for this query; `on_driver`: its rows were computed there without a job;
    `reasons`: why the result was not cached; `seconds`: how long its jobs, or the driver, took, 0 where another result
    has them.
    """

    keys: KeySummary | Reason
    rows: GivenRows | None
    from_cache: bool = False
    on_driver: bool = False
    reasons: tuple[Reason, ...] = ()
    seconds: float = 0.0


@dataclass(slots=True)
class _PlanNumbers:
    """Numbers of plans; plans that differ only in names and ids have the same number."""

    _known: dict[int, list[tuple[Any, int]]] = field(default_factory=dict)
    _count: int = 0

    def of(self, plan: Any) -> int:
        canonical = plan.canonicalized()
        group = self._known.setdefault(int(canonical.hashCode()), [])
        for known, number in group:
            if known.equals(canonical):
                return number
        group.append((canonical, self._count))
        self._count += 1
        return self._count - 1


@dataclass(frozen=True, slots=True, eq=False)
class _BuildColumn:
    """Keys that only a job can collect: a column of plan `number`, by its place."""

    plan: Any
    number: int
    place: int
    name: str
    type: ValueType
    at_least: int

    @property
    def id(self) -> tuple[int, int]:
        return self.number, self.place


@dataclass(slots=True)
class QueryBuilds:
    """Runs builds and memoizes their results: one job for all keys of a plan that are requested at the same time."""

    scheduler: BuildScheduler
    _numbers: _PlanNumbers = field(default_factory=_PlanNumbers)
    _rows: dict[int, GivenRows | TooMany | Reason | None] = field(default_factory=dict)
    _keys: dict[tuple[int, int], KeySummary | Reason] = field(default_factory=dict)
    _on_driver: set[int] = field(default_factory=set)
    _seconds: dict[int, float] = field(default_factory=dict)
    _lost: float = 0.0

    def run(self, requests: Sequence[BuildRequest]) -> list[BuildResult]:
        """The result of each build, all run at the same time; equal builds share one result object."""
        numbers = [self._numbers.of(each.plan) for each in requests]
        missing: dict[int, BuildRequest] = {}
        for each, number in zip(requests, numbers, strict=True):
            if number not in self._rows:
                missing[number] = each.with_wishes(missing.get(number, each))
        self._run(missing)
        found = [self._keys_or_column(each, number) for each, number in zip(requests, numbers, strict=True)]
        self._collect({it.id: it for it in found if isinstance(it, _BuildColumn) and it.id not in self._keys})
        return [
            BuildResult(
                self._keys[keys.id] if isinstance(keys, _BuildColumn) else keys,
                _given(self._rows[number]),
                on_driver=(keys.number if isinstance(keys, _BuildColumn) else number) in self._on_driver,
                seconds=self._spent(number, keys),
            )
            for keys, number in zip(found, numbers, strict=True)
        ]

    def _run(self, missing: Mapping[int, BuildRequest]) -> None:
        """Computes builds over few small files one after the other on the driver, then runs all others as jobs."""
        self._rows.update(dict.fromkeys(missing))
        wanted = {number: each for number, each in missing.items() if each.brings_rows}
        here = {
            number: self._here(number, each.plan, each.name, self._limits)
            for number, each in wanted.items()
            if not each.runs_once
        }
        done = {number: rows for number, rows in here.items() if rows is not None and _suffices(rows, wanted[number])}
        self._on_driver.update(done)
        self._on_driver.update(number for number, each in missing.items() if _may_be_here(each) and number not in here)
        self._rows.update(done)
        others = {number: each for number, each in wanted.items() if number not in done}
        found = self.scheduler.run_all([self._build(*each) for each in others.items()])
        self._rows.update(zip(others, found, strict=True))

    @property
    def _limits(self) -> Limits:
        return self.scheduler.options.limits

    def _here(self, number: int, plan: Any, name: str, limits: Limits) -> MaterializedBuild | TooMany | None:
        """The rows by the driver; all builds of the query that a job has to do after all lose no more than one may."""
        seconds = min(limits.driver_scan_seconds - self._lost, self.scheduler.remaining)
        limits = replace(limits, driver_scan_seconds=max(0.0, seconds))
        began = time.perf_counter()
        with self._timed([number]):
            rows = driver_rows(self.scheduler.spark, plan, name, limits)
        if rows is None:
            self._lost += time.perf_counter() - began
        return rows

    def _build(self, number: int, request: BuildRequest) -> Build[GivenRows | TooMany]:
        def rows() -> GivenRows | TooMany:
            asked = self.scheduler.spark, request.plan, request.name, self._limits
            with self._timed([number]):
                found = stored_rows(*asked) if request.runs_once else local_rows(*asked)
                # To store rows takes longer than to read few cached ones.
                return stored_rows(*asked) if request.needs_rows and isinstance(found, TooMany) else found

        return Build(request.name, rows)

    @contextmanager
    def _timed(self, numbers: Collection[int]) -> Iterator[None]:
        """Adds the seconds of the block to those of builds."""
        began = time.perf_counter()
        yield
        for each in numbers:
            self._seconds[each] = self._seconds.get(each, 0.0) + time.perf_counter() - began

    def _spent(self, number: int, keys: KeySummary | Reason | _BuildColumn) -> float:
        """The seconds of a build's jobs, which are told once."""
        numbers = {number, keys.number} if isinstance(keys, _BuildColumn) else {number}
        return sum(self._seconds.pop(each, 0.0) for each in numbers)

    def _collect(self, missing: Mapping[tuple[int, int], _BuildColumn]) -> None:
        by_plan: dict[int, list[_BuildColumn]] = {}
        for each in missing.values():
            by_plan.setdefault(each.number, []).append(each)
        results, jobs = dict[int, list[KeySummary] | Reason](), dict[int, KeyFrame]()
        for number, columns in by_plan.items():
            match self._frame(columns):
                case Reason() as refusal:
                    results[number] = refusal
                case frame if (here := self._keys_here(number, frame)) is not None:
                    results[number] = here
                case frame:
                    jobs[number] = frame
        self._on_driver -= jobs.keys()
        with self._timed(jobs):
            collected = spark_keys.collected([*jobs.values()], self.scheduler.options, self.scheduler.run_all)
        results.update(zip(jobs, collected, strict=True))
        for number, columns in by_plan.items():
            result = results[number]
            if isinstance(result, Reason):
                self._keys.update({each.id: replace(result, subject=each.name) for each in columns})
            else:
                self._keys.update({each.id: _pinned(keys) for each, keys in zip(columns, result, strict=True)})

    def _keys_here(self, number: int, frame: KeyFrame) -> list[KeySummary] | None:
        """The keys of rows that are too many to be joined, without a job; None if a job has to collect them.

        Texts that are not joined may be as many as numbers.
        """
        options = self.scheduler.options
        if number not in self._on_driver or frame.at_least >= self._limits.joined_rows:
            return None
        limits = replace(self._limits, joined_long_rows=self._limits.joined_rows)
        try:
            plan = optimized_plan(frame.df)
            rows = self._here(number, plan, frame.name, limits)
            if not isinstance(rows, MaterializedBuild):
                return None
            found = [rows.keys(at, plan.output().apply(at), options, frame.name) for at in range(len(frame.keys))]
        except Exception:
            logger.debug("Collecting the keys of %s on the driver failed", frame.name, exc_info=True)
            return None
        keys = [each for each in found if not isinstance(each, Reason)]
        return keys if len(keys) == len(found) else None

    def _frame(self, columns: Sequence[_BuildColumn]) -> KeyFrame | Reason:
        """The job that reads all these columns of one plan; equal plans have them at the same places."""
        first = columns[0]
        try:
            df = own_query(self._selected(first.plan, [first.plan.output().apply(each.place) for each in columns]))
        except Exception as error:
            logger.debug("The build of %s failed", first.name, exc_info=True)
            return failed_build(first.name, error)
        keys = tuple(KeyColumns(each.name, (at,), (each.type,)) for at, each in enumerate(columns))
        return KeyFrame(df, keys, max(each.at_least for each in columns))

    def _keys_or_column(self, request: BuildRequest, number: int) -> KeySummary | Reason | _BuildColumn:
        """The keys of materialized rows, else the column from which a job collects them.

        A failure of one build does not affect the others.
        """
        rows = self._rows[number]
        if isinstance(rows, Reason):
            return rows
        if request.must_fit and isinstance(rows, TooMany | None):
            return Reason(ReasonCode.TOO_MANY_ROWS, request.name)
        try:
            if isinstance(rows, MaterializedBuild) and request.place is not None:
                return rows.keys(request.place, request.key, self.scheduler.options, request.name)
            return self._column(request, number, rows)
        except Exception as error:
            logger.debug("The build of %s failed", request.name, exc_info=True)
            return failed_build(request.name, error)

    def _column(self, request: BuildRequest, number: int, rows: GivenRows | TooMany | None) -> _BuildColumn | Reason:
        given = _given(rows)
        plan = request.plan if given is None else given.as_relation(request.plan)
        if request.place is not None:
            place = request.place
            schema = StructType([StructType.fromJson(json.loads(plan.schema().json())).fields[place]])
        else:
            df = self._selected(plan, [request.key])
            plan, place, schema = analyzed_plan(df), 0, df.schema
            number = self._numbers.of(plan)
        types = spark_keys.key_types(schema, request.name)
        if isinstance(types, Reason):
            return types
        at_least = rows.count if isinstance(rows, TooMany | StoredBuild) else 0
        return _BuildColumn(plan, number, place, request.name, types[0], at_least)

    def _selected(self, plan: Any, expressions: Sequence[Any]) -> DataFrame:
        spark = self.scheduler.spark
        return frame_of(spark, plan).select(*(column_of(spark, each).alias("key") for each in expressions))


def _may_be_here(request: BuildRequest) -> bool:
    return request.on_driver and not request.runs_once


def _suffices(rows: MaterializedBuild | TooMany, request: BuildRequest) -> bool:
    """False for rows that are too many to be joined and that another run may not give: they are to be stored."""
    return not (request.needs_rows and isinstance(rows, TooMany))


def _given(rows: GivenRows | TooMany | Reason | None) -> GivenRows | None:
    return rows if isinstance(rows, GivenRows) else None


def _pinned(keys: KeySummary) -> KeySummary:
    """The keys without the reason UNPINNED_KEYS: the plan of the query also pins the tables of its builds."""
    return replace(keys, reasons=tuple(it for it in keys.reasons if it.code is not ReasonCode.UNPINNED_KEYS))
