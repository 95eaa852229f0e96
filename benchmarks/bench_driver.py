"""Seconds and memory of the driver's work for one scan, by stage, up to 1,000,000 files and 10,000,000 keys.

The number of files varies with 100,000 keys, the number of keys varies with 100,000 files, and the last case has the
most of both. Strings and decimals stop at 3,000,000 keys, because 10,000,000 exceed the limits. Spark does not run:
`driver_inputs` makes the data that Spark would hand over. Each case runs in a process of its own (`driver_stages`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.driver_chart import ALL
from benchmarks.driver_inputs import BIGINT, CLUSTERED, DECIMAL, STRING, UNCLUSTERED
from benchmarks.driver_stages import DRIVER, Case
from benchmarks.resume import ROOT, forget, resumed

_PART = "driver"
_SIZES = (
    *((10**power, 10**5) for power in (3, 4, 5, 6)),
    *((10**5, 10**power) for power in (3, 4, 6, 7)),
    (10**6, 10**7),
)
# Fewer sizes for strings and decimals, because they grow between these sizes as integers do.
_FEWER = {
    UNCLUSTERED: (
        *((10**power, 10**5) for power in (3, 5, 6)),
        *((10**5, 10**power) for power in (3, 6)),
        (10**6, 3 * 10**6),
    ),
    CLUSTERED: ((10**6, 10**6),),
}
_FOOTERS = (100, 1000, 10_000)
_QUICK_SIZES = ((10**3, 10**4), (10**4, 10**4), (10**4, 10**5))
# The stages that every scan needs; `explain` and the like run only on demand and are not in the sum.
IN_A_SCAN = (
    *("receive keys", "keys as a filter", "statistics of files", "decide by files", "decide by row groups"),
    *("predicate", "list of files", "bloom filter"),
)


def run(*, quick: bool) -> list[dict[str, Any]]:
    """One entry for each case and stage, and one for all stages of a scan on the driver."""
    cases = {str(case): case for case in _cases(quick=quick)}
    name = f"{_PART}-quick" if quick else _PART
    found = resumed(name, cases, lambda key: {"rows": _measured(cases[key])})
    footers = (10, 100) if quick else _FOOTERS
    return [row for each in found for row in each["rows"]] + [
        row for files in footers for row in _stages({"files": files})
    ]


def _cases(*, quick: bool) -> Iterator[Case]:
    for type_ in (BIGINT, STRING, DECIMAL):
        for layout in (UNCLUSTERED, CLUSTERED):
            sizes = _SIZES if type_ == BIGINT else _FEWER[layout]
            for files, keys in _QUICK_SIZES if quick else sizes:
                yield Case(type_, layout, files, keys)


def _measured(case: Case) -> list[dict[str, Any]]:
    rows = _stages(asdict(case))
    return [*rows, {**asdict(case), **_sum(rows)}]


def _stages(case: dict[str, Any]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.driver_stages", json.dumps(case)]
    answer = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)  # noqa: S603
    return [{**case, **row} for row in json.loads(answer.stdout)]


def _sum(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The sum over the stages of a scan; the peak is measured above the memory of the driver before the first stage."""
    some = [row for row in rows if row["stage"] in IN_A_SCAN]
    sums = {name: sum(row.get(name, 0) for row in some) for name in ("seconds", "cpu_seconds", "sent_bytes")}
    peak = max(row["whole_bytes"] for row in some)
    return {"stage": ALL, "where": DRIVER, **sums, "peak_bytes": peak, "whole_bytes": peak}


if __name__ == "__main__":
    forget(_PART)
    for entry in run(quick="--quick" in sys.argv):
        print(json.dumps(entry), flush=True)
