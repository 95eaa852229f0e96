"""The benchmark of phases, over one query at a small scale, in a process of its own: it starts and stops Spark."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.resume import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_PROGRAM = """
import json
from benchmarks import bench_phases
print(json.dumps(bench_phases.run(0.01, ("q3",))))
"""


def test_each_way_has_a_row_with_its_phases():
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False, timeout=900
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    rows = json.loads(done.stdout.splitlines()[-1])
    ways = ["stock", "prune()", "session"]
    assert [(name, way) for name in ("q3", "median of all") for way in ways] == [
        (row["query"], row["way"]) for row in rows if row["query"] in {"q3", "median of all"}
    ]
    for row in rows[:3]:
        assert 0.0 < row["before_first_task"] < row["milliseconds"]
        assert row["milliseconds"] == pytest.approx(row["before_first_task"] + row["run"])
        assert {"analyse", "optimise", "plan", "run", "to first task"} <= row.keys()
    stock, pruned, enabled = (row["py4j_calls"] for row in rows[:3])
    assert stock < pruned
    assert stock < enabled
