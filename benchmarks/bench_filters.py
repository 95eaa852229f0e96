"""Keys tested per second and core by the bloom filter, and its false positive rate.

Each filter tests a batch of keys, a tenth of which are in the filter. It is timed from int64 codes, so its time
includes Spark's hash function. Rates are those of the fastest run and of the median run: the fastest shows the speed of
the code, the median includes the load of the machine.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from pruning.keys.bloom import BloomFilter
from pruning.keys.xxhash64 import hash_codes
from pruning.values.byte_strings import ByteStrings, IntArray
from pruning.values.types import ValueType

SIZES = (100_000, 1_000_000, 10_000_000)
RATES = (0.03, 0.01)
_BIGINT, _STRING = ValueType("bigint"), ValueType("string")
_BATCH = 1 << 20
_RUNS = 15
_ABSENT = 4_000_000
_MATCHING = 0.1


def run(sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """One entry for each filter, size and false positive rate."""
    return [
        *(bloom(items, fpp) for fpp in RATES for items in sizes),
        hashing(),
    ]


def bloom(items: int, fpp: float) -> dict[str, Any]:
    empty = cast("BloomFilter", BloomFilter.of_capacity(items, fpp))
    codes = np.arange(items, dtype=np.int64) * 2
    began = time.perf_counter()
    made = empty.adding(hash_codes(_BIGINT, codes))
    build_seconds = time.perf_counter() - began
    absent = np.arange(_ABSENT, dtype=np.int64) * 2 + 1
    found_fpp = float(made.might_contain(hash_codes(_BIGINT, absent)).mean())
    batch = _batch(items)
    return {
        "filter": "bloom",
        "items": items,
        "bytes": made.nbytes,
        "hashes": made.hash_count,
        "asked_fpp": fpp,
        "found_fpp": found_fpp,
        "found_to_asked": found_fpp / fpp,
        "build_seconds": build_seconds,
        **_rates("tests", lambda: made.might_contain(hash_codes(_BIGINT, batch))),
        **_rates("tests_if_all_match", lambda: made.might_contain(hash_codes(_BIGINT, codes[:_BATCH])), len(codes)),
    }


def hashing() -> dict[str, Any]:
    letters = np.random.default_rng(0).integers(97, 123, (_BATCH, 16), dtype=np.uint8)
    strings, numbers = ByteStrings.of_fixed_width(letters), _batch(_BATCH)
    return {
        "filter": "xxhash64",
        **_rates("bigints", lambda: hash_codes(_BIGINT, numbers)),
        **_rates("strings_of_16", lambda: hash_codes(_STRING, strings)),
    }


def _batch(items: int) -> IntArray:
    random = np.random.default_rng(1)
    matching = random.random(_BATCH) < _MATCHING
    return random.integers(0, items, _BATCH) * 2 + np.where(matching, 0, 1)


def _rates(name: str, test: Callable[[], object], count: int = _BATCH) -> dict[str, Any]:
    """Millions of keys a second of one core, fastest and median."""
    seconds = []
    for _ in range(_RUNS):
        began = time.process_time()
        test()
        seconds.append(time.process_time() - began)
    keys = min(count, _BATCH) / 1e6
    return {
        f"{name}_millions_per_second": keys / min(seconds),
        f"{name}_millions_per_second_median": keys / statistics.median(seconds),
    }


if __name__ == "__main__":
    for entry in run():
        print(
            json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in entry.items()})
        )
