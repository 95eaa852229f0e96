"""The driver's work for one scan, stage by stage; `bench_driver` starts one process for each case.

Peaks are the resident memory of this process above its resident memory at the start of the stage.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks import driver_footers
from benchmarks import driver_inputs as inputs
from connectors.arrow_values import coded
from connectors.columns import Column
from connectors.delta.bounds import NO_FLAW
from connectors.delta.log import FileCatalog, Uris
from connectors.keys.inputs import Collected, KeyInput, row_keys
from connectors.keys.local import summary_of
from connectors.keys.worker import messages, pieces
from connectors.scan.literals import ranges_sql
from pruning.keys.builder import KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.query.key_origins import domain_from_statistics
from pruning.results.explanation import Explanation
from pruning.results.table_explanation import TableStatistics, explain_table
from pruning.scan.key_filter import key_filter
from pruning.scan.pushdown import PushdownCapabilities
from pruning.scan.scan_plan import RowFilter, ScanPlan, plan_scan
from pruning.scan.statistics import ContainerKind, Containers
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType
from sample_data.process_tree import peak_bytes, reset_peaks, resident_bytes

T = TypeVar("T")

DRIVER, TASK = "driver", "task"
_OPTIONS = PruningOptions()
_PARTITIONS = 8
_ROW_GROUPS = 4
_MOST_ROW_GROUPS = 1_000_000
# A stage that takes less than `_SHORT_SECONDS` is repeated, and the fastest run counts.
_SHORT_SECONDS, _RUNS = 0.1, 3
_NO_SPARK = cast("SparkSession", None)


@dataclass(frozen=True, slots=True)
class Case:
    """One scan: the type of its key, the layout of keys and files, and their numbers."""

    type: str
    layout: str
    files: int
    keys: int


@dataclass(slots=True)
class Stages:
    """The measurements so far; `base` is the resident memory of the process before it received its inputs."""

    base: int
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self, stage: str, call: Callable[[], T], where: str = DRIVER, sent: Callable[[T], int] | None = None) -> T:
        """Measures one stage and returns its result; `sent` counts the bytes of the result that leave the process."""
        before = _settled()
        reset_peaks(os.getpid())
        wall, cpu = time.perf_counter(), time.process_time()
        result = call()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = peak_bytes(os.getpid())
        held = _settled()
        for _ in range(_RUNS if cpu < _SHORT_SECONDS else 0):
            began = time.perf_counter(), time.process_time()
            call()
            wall, cpu = min(wall, time.perf_counter() - began[0]), min(cpu, time.process_time() - began[1])
        row = {"stage": stage, "where": where, "seconds": wall, "cpu_seconds": cpu, "peak_bytes": max(0, peak - before)}
        row |= {"held_bytes": max(0, held - before), "whole_bytes": max(0, peak - self.base)}
        self.rows.append(row if sent is None else row | {"sent_bytes": sent(result)})
        return result


def measured(case: Case) -> list[dict[str, Any]]:
    """A row for each stage of one case."""
    stages = Stages(_settled())
    summary = _keys(case, stages)
    files = _files(case, stages)
    _decisions(case, stages, summary, files)
    return stages.rows


def footers(files: int) -> list[dict[str, Any]]:
    """A row for the stage that reads the footers of `files` files."""
    driver_footers.read(1)
    stages = Stages(_settled())
    stages.run("footers", lambda: driver_footers.read(files))
    return stages.rows


def _keys(case: Case, stages: Stages) -> KeySummary:
    message = _sent(case, stages)
    received = list(pieces(0, message))
    del message
    # From here on only work of the driver is measured; the work of tasks is done.
    stages.base = _settled() - sum(each.nbytes for each in received)

    def finish() -> KeySummary:
        ((_, found),) = messages(received)
        return KeyBuilder.from_bytes(found).finish(_PARTITIONS, source="keys", subject=inputs.COLUMN)

    return stages.run("receive keys", finish)


def _sent(case: Case, stages: Stages) -> bytes:
    """The message with the keys of a DataFrame that the driver receives, made by the same code as in tasks."""
    type_ = inputs.log_column(case.type).type
    array = inputs.arrow_values(case.type, inputs.key_numbers(case.layout, case.keys))
    stages.run("keys of an array", lambda: summary_of(array, [type_], _OPTIONS, inputs.COLUMN))
    share = -(-len(array) // _PARTITIONS)
    shares = [array.slice(at * share, share) for at in range(_PARTITIONS)]
    first = stages.run("keys of a partition", lambda: _partial(type_, shares[0], 0), TASK, len)
    rest = [_partial(type_, each, at + 1) for at, each in enumerate(shares[1:])]
    return stages.run("merge of partitions", lambda: _merged(type_, [first, *rest]), TASK, len)


def _partial(type_: ValueType, array: pa.Array, partition: int) -> bytes:
    builder = KeyBuilder([type_], KeyLimits.of(_OPTIONS))
    for batch in inputs.batches(array):
        builder.add([coded(batch, type_)])
    builder.close(partition)
    return builder.to_bytes()


def _merged(type_: ValueType, partials: Sequence[bytes]) -> bytes:
    merged = KeyBuilder([type_], KeyLimits.of(_OPTIONS))
    for each in partials:
        merged.merge(KeyBuilder.from_bytes(each))
    return merged.to_bytes()


def _files(case: Case, stages: Stages) -> Containers:
    column, table = inputs.log_column(case.type), inputs.listed_files(case.type, case.layout, case.files)

    def keep() -> Containers:
        catalog = FileCatalog()
        files = catalog.keep("file:///table", 0, table, [column])
        (statistics,) = catalog.known([column])
        return Containers(ContainerKind.FILE, files.uris, files.rows, files.sizes, {column.name: statistics})

    return stages.run("statistics of files", keep)


def _decisions(case: Case, stages: Stages, summary: KeySummary, files: Containers) -> None:
    column = inputs.log_column(case.type)
    probe = Column((inputs.COLUMN,), column.spark_type, column.type, None)
    filter_ = stages.run("keys as a filter", lambda: key_filter([probe], summary))

    def widen(_: str, ranges: RangeSet) -> RangeSet:
        return column.stored.comparable(ranges, NO_FLAW)

    capabilities = PushdownCapabilities(
        accepts_file_list=False, push_refusal=None, tests_keys=True, must_be_exact=False, widen=widen
    )
    plan = stages.run("decide by files", lambda: plan_scan(files, None, [filter_], capabilities, _OPTIONS))
    groups = _row_groups(files)
    with_groups = stages.run(
        "decide by row groups", lambda: plan_scan(files, groups, [filter_], capabilities, _OPTIONS)
    )
    stages.run("predicate", lambda: _predicate(plan), sent=len)
    stages.run("list of files", lambda: _listed(files, plan), sent=len)
    tested = replace(plan.decisions[0], test=RowFilter.BLOOM)
    collected = Collected(KeyInput((probe,), None), filter_, summary, None)
    stages.run(
        "bloom filter", lambda: row_keys(_NO_SPARK, collected, tested, _OPTIONS).bloom, sent=lambda it: len(it or b"")
    )
    facts = TableStatistics("table", "delta", 0, files, groups, groups)
    stages.run("explain", lambda: str(_explained(facts, with_groups)), sent=len)
    kept = plan.files.kept
    stages.run("keys of statistics", lambda: domain_from_statistics(files, inputs.COLUMN, kept, column.type))


def _row_groups(files: Containers) -> Containers:
    """`_ROW_GROUPS` row groups of each file, with the bounds of the file, at most `_MOST_ROW_GROUPS` in all."""
    parents = np.repeat(np.arange(min(len(files), _MOST_ROW_GROUPS // _ROW_GROUPS)), _ROW_GROUPS)
    columns = {name: each.take(parents) for name, each in files.columns.items()}
    sizes = files.sizes[parents] // _ROW_GROUPS
    return Containers(ContainerKind.ROW_GROUP, range(len(parents)), files.rows[parents], sizes, columns, parents)  # type: ignore[arg-type]


def _predicate(plan: ScanPlan) -> str:
    return " AND ".join(ranges_sql(predicate.column, predicate.ranges) for predicate in plan.predicates)


def _listed(files: Containers, plan: ScanPlan) -> str:
    kept, uris = plan.files.kept, cast("Uris", files.names)
    return (
        "\n".join(uris.paths.filter(pa.array(kept)).to_pylist())
        if kept.sum() <= _OPTIONS.limits.max_listed_files
        else ""
    )


def _explained(facts: TableStatistics, plan: ScanPlan) -> Explanation:
    return Explanation.of_read(explain_table(facts, plan, (), _OPTIONS.limits.max_ranges))


def _settled() -> int:
    """Resident bytes of the process after a garbage collection, with free memory returned to the system."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    return resident_bytes(os.getpid())


def main(case: Mapping[str, Any]) -> None:
    """Prints the measurements as JSON; a case without keys measures footers."""
    print(json.dumps(measured(Case(**case)) if "keys" in case else footers(case["files"])))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
