"""Seeded random reads: pruned == unpruned == DuckDB, and the scan read what was planned.

`SCANPRUNE_SEEDS=100-199 SCANPRUNE_CASES=200 pytest tests/oracle/test_random_reads.py` runs more and other reads.
"""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

from tests.oracle.oracle import Oracle, Skips
from tests.oracle.random_cases import LAYOUTS, Case, random_cases, random_table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CASES = int(os.environ.get("SCANPRUNE_CASES", "25"))


def seeds() -> range:
    first, _, last = os.environ.get("SCANPRUNE_SEEDS", "0-2").partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", seeds())
def test_random_reads(oracle, shared_lake, seed):
    cases = random_cases(seed, CASES)
    layout = LAYOUTS[seed % len(LAYOUTS)]
    lakes = [shared_lake(f"random{seed}", each, lambda: random_table(seed), layout) for each in ("delta", "parquet")]
    for sets in by_shape(cases).values():
        oracle.prepare(lakes[0], sets)
    for at, case in enumerate(cases):
        check(oracle, lakes[at % 2], seed, case)


def by_shape(cases: list[Case]) -> dict[object, list]:
    """The key sets of all cases, grouped by columns and types, since one query answers a group."""
    found = defaultdict(list)
    for case in cases:
        for entry in case.entries:
            found[entry.columns, str(entry.table.schema)].append(entry)
    return found


def check(oracle: Oracle, lake, seed: int, case: Case) -> None:
    try:
        oracle.check(
            lake,
            *case.entries,
            exact=[case.exact],
            options=case.options,
            columns=case.columns,
            expected=Skips(pages=True),
        )
    except Exception as error:
        msg = f"{error}\nseed {seed}, {lake.format}: pruned_read(random_table({seed}), {case!r})"
        raise AssertionError(msg) from error
