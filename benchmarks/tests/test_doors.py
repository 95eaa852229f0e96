"""Tests of the comparison of both doors, and the guard over twenty queries of TPC-DS at scale 1."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.doors import more_jobs, page
from sample_data.tpcds_queries import SELECTIVE

# The selective ones, and others from all over the workload.
GUARDED = sorted({*SELECTIVE, 3, 7, 17, 25, 46, 51, 60, 79, 84, 92})
# Slower machines run a build on the driver to its end, too.
PATIENT = "spark.pruning.limits.driver_scan_seconds=60"


def row(query, **found):
    counts = {"files": 2, "filters": 2, "builds": 1, "builds_by_jobs": 0, "jobs_stock": 7, "jobs_session": 4}
    return {"query": query, "differ": [], "rows_differ": "", **counts, **found}


def test_the_table_counts_jobs_beyond_those_of_stock_and_of_builds():
    rows = [row("q1"), row("q2", differ=["files", "builds"], builds_by_jobs=1, jobs_session=10)]
    assert [0, 2] == [more_jobs(each) for each in rows]
    text = page(rows)
    assert "1 of 2 queries have the same" in text
    assert "| q1 | 2 | 2 | 1 | 0 | 7 | 4 |  |  |" in text
    assert "| q2 | 2 | 2 | 1 | 1 | 7 | 10 | files, builds | 2 |" in text
    assert text.rstrip().endswith("| all | 4 | 4 | 2 | 1 | 14 | 14 |  |  |")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_session_prunes_twenty_queries_as_prune_does_and_runs_no_other_jobs(tmp_path):
    names = (part for number in GUARDED for part in ("--query", f"q{number}"))
    # A process of its own: the JVM of tests is too small to write tables of this scale.
    command = [sys.executable, "-m", "benchmarks", "doors", "--scale", "1", "--conf", PATIENT, "--results", tmp_path]
    subprocess.run([*map(str, command), *names], check=True)
    rows = {each["query"]: each for each in json.loads((tmp_path / "doors-tpcds-sf1.json").read_text())["rows"]}
    assert [f"q{number}" for number in GUARDED] == sorted(rows, key=lambda name: int(name[1:]))
    assert {} == {name: each["differ"] for name, each in rows.items() if each["differ"]}
    assert {} == {name: each["rows_differ"] for name, each in rows.items() if each["rows_differ"]}
    assert {} == {name: more_jobs(each) for name, each in rows.items() if more_jobs(each)}
    # A build takes 20 milliseconds, and all of q96's scan of this scale 18.
    assert ["q96"] == [f"q{number}" for number in SELECTIVE if not rows[f"q{number}"]["filters"]]
