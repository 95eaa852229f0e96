"""Seconds to build a `KeySummary` from keys in memory: int64 numbers and strings, within the limits and over them.

Keys are drawn at random, so that about a fifth of them are duplicates. They arrive in batches of Spark's size, or at
once as an array of a user. Seconds are CPU seconds of one core, of the fastest and of the median run.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.arrow_values import coded
from connectors.keys.local import summary_of
from pruning.keys.builder import KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.values.types import ValueType

SIZES = (1_000_000, 3_000_000, 10_000_000)
TARGET_SECONDS = {("bigint", 10_000_000, "within the limits", "one array"): 3.0}
_SPARK_BATCH = 10_000
_RUNS = 3
_AMPLE = PruningOptions(max_build_bytes=1 << 32).with_limits(max_build_keys=100_000_000)


def run(sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """One entry for each type, size, limit and form of arrival."""
    return list(_entries(sizes))


def _entries(sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    for name, make in (("bigint", _numbers), ("string", _strings)):
        for keys in sizes:
            yield from _measured(ValueType(name), make(keys))


def _measured(type_: ValueType, array: pa.Array) -> Iterator[dict[str, Any]]:
    limits = {
        "within the limits": _AMPLE,
        "over the limits": PruningOptions().with_limits(max_build_keys=len(array) // 4),
    }
    arrivals: dict[str, Callable[[PruningOptions], KeySummary]] = {
        "one array": lambda options: summary_of(array, [type_], options, "k"),
        "Spark's batches": lambda options: _in_batches(type_, array, options),
    }
    for limit, options in limits.items():
        for arrival, build in arrivals.items():
            yield {
                "type": str(type_),
                "keys": len(array),
                "limit": limit,
                "arrival": arrival,
                "target_seconds": TARGET_SECONDS.get((str(type_), len(array), limit, arrival)),
                **_timed(build, options),
            }


def _timed(build: Callable[[PruningOptions], KeySummary], options: PruningOptions) -> dict[str, Any]:
    summary = build(options)
    seconds = []
    for _ in range(_RUNS):
        began = time.process_time()
        build(options)
        seconds.append(time.process_time() - began)
    return {
        "seconds": min(seconds),
        "seconds_median": statistics.median(seconds),
        "distinct": summary.distinct,
        "bytes": summary.nbytes,
    }


def _in_batches(type_: ValueType, array: pa.Array, options: PruningOptions) -> KeySummary:
    builder = KeyBuilder([type_], KeyLimits.of(options))
    for begin in range(0, len(array), _SPARK_BATCH):
        builder.add([coded(array.slice(begin, _SPARK_BATCH), type_)])
    builder.close(0)
    return builder.finish(1, source="benchmark")


def _numbers(keys: int) -> pa.Array:
    return pa.array(np.random.default_rng(0).integers(0, 2 * keys, keys))


def _strings(keys: int) -> pa.Array:
    prefixed = np.char.mod("customer-%09d", np.random.default_rng(0).integers(0, 2 * keys, keys))
    return pa.array(prefixed)


if __name__ == "__main__":
    for entry in _entries(SIZES):
        print(
            json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in entry.items()}),
            flush=True,
        )
