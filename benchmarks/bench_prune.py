"""Seconds and memory of the skipping decision: `prune_containers` and `compact` over many containers and many keys.

Keys and containers are spread at random over one range of values, which is the worst order. The width of the
containers is chosen so that about a third of them are kept. The peak is the memory that the call allocates on top of
its arguments.
"""

from __future__ import annotations

import json
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pruning.scan.compaction import Evidence, compact
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import ColumnStatistics, ContainerKind, Containers
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.domain import Domain
from pruning.values.encoding import Codes
from pruning.values.types import ValueType

# Pairs (containers, keys); the target applies to the last pair of each type.
SIZES = {
    "bigint": ((10_000, 1_000), (100_000, 10_000), (1_000_000, 100_000)),
    "string": ((1_000,) * 2, (10_000,) * 2, (100_000,) * 2),
}
TARGET_SECONDS = {
    ("prune", "bigint"): 1.0,
    ("prune", "string"): 3.0,
    ("compact", "bigint"): 2.0,
    ("compact", "string"): 2.0,
}
_MOST_RANGES = 64
_SPACE = 1 << 40
_RUNS = 5
# A common prefix as in URLs or catalogue numbers, which every comparison of two keys has to read.
_PREFIX = b"https://example.org/item/"


def run(sizes: dict[str, Sequence[tuple[int, int]]] | None = None) -> list[dict[str, Any]]:
    """One entry for each operation, type and size."""
    return [
        entry
        for name, pairs in (sizes or SIZES).items()
        for containers, keys in pairs
        for entry in _measured(ValueType(name), containers, keys)
    ]


def _measured(type_: ValueType, containers: int, keys: int) -> list[dict[str, Any]]:
    files, domain = _files(type_, containers, keys), _keys(type_, keys)
    evidence = [Evidence(files.columns["k"], files.sizes)]
    facts = {"type": type_.name, "containers": containers, "keys": len(domain.ranges)}
    kept = prune_containers(files, {"k": domain}).kept_count
    ranges = len(compact(domain.ranges, evidence, _MOST_RANGES))
    return [
        _entry("prune", facts, lambda: prune_containers(files, {"k": domain})) | {"kept": kept},
        _entry("compact", facts, lambda: compact(domain.ranges, evidence, _MOST_RANGES)) | {"ranges": ranges},
    ]


def _entry(operation: str, facts: dict[str, Any], call: Callable[[], object]) -> dict[str, Any]:
    seconds = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    target = TARGET_SECONDS[operation, facts["type"]]
    timed = {"seconds": min(seconds), "seconds_median": statistics.median(seconds), "target_seconds": target}
    return {"operation": operation, **facts, **timed, "peak_bytes": _peak(call)}


def _peak(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _keys(type_: ValueType, count: int) -> Domain:
    return Domain.of_codes(type_, _codes(type_, np.random.default_rng(1).integers(0, _SPACE, count)))


def _files(type_: ValueType, count: int, keys: int) -> Containers:
    random = np.random.default_rng(2)
    lows = random.integers(0, _SPACE, count)
    highs = lows + random.integers(0, _SPACE // keys, count)
    known, one = np.ones(count, bool), np.ones(count, np.int64)
    column = ColumnStatistics(type_, _codes(type_, lows), _codes(type_, highs), known, known, one - 1, ~known)
    return Containers(ContainerKind.FILE, range(count), one * 1000, one << 20, {"k": column})  # type: ignore[arg-type]


def _codes(type_: ValueType, numbers: IntArray) -> Codes:
    if type_.name == "bigint":
        return numbers
    return ByteStrings.of(_PREFIX + b"%013d" % number for number in numbers.tolist())


if __name__ == "__main__":
    for each in run():
        print(
            json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in each.items()})
        )
