"""Tests of measurements that resume after an interruption, and of the pages and charts of recorded results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import driver_chart, phases_chart, queries_table
from benchmarks.queries_table import PAGE, RESULTS, page, recorded
from benchmarks.resume import resumed

ROOT = Path(__file__).resolve().parents[2]


class Measure:
    """A measurement that is interrupted at the first `c`."""

    def __init__(self):
        self.measured = []

    def __call__(self, key: str) -> dict[str, str]:
        self.measured.append(key)
        if key == "c" and self.measured.count("c") == 1:
            raise KeyboardInterrupt
        return {"key": key}


@pytest.fixture
def measure():
    return Measure()


def test_an_interrupted_measurement_is_resumed(measure, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        resumed("part", "abcd", measure, tmp_path)
    assert [{"key": each} for each in "abcd"] == resumed("part", "abcd", measure, tmp_path)
    assert [*"abccd"] == measure.measured
    assert [] == [*tmp_path.iterdir()]


def test_rows_measured_by_other_code_are_measured_again(measure, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        resumed("part", "abc", measure, tmp_path)
    (unfinished,) = tmp_path.iterdir()
    long_ago = time.time() - 10 * 365 * 86_400
    os.utime(unfinished, (long_ago, long_ago))
    resumed("part", "abc", measure, tmp_path)
    assert [*"abcabc"] == measure.measured


def test_the_page_of_queries_matches_the_recorded_results():
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else None
    measured = page(recorded()) if RESULTS.exists() else None
    assert written == measured, "run `make readme`"


def test_the_page_names_queries_whose_rows_differ():
    row = {**dict.fromkeys(queries_table.SUMMED, 1 << 20), "scale": 1.0, "rows_equal": True, "differs": ""}
    rows = [
        {**row, "query": "q1"},
        {**row, "query": "q2", "differs": "ties"},
        {**row, "query": "q3", "rows_equal": False, "differs": "1 row"},
    ]
    text = page(rows)
    assert "differ in: q3. In ties at a LIMIT alone:\n  q2\n" in text
    assert "| all | 3,145,728 |" in text


PHASED = [
    {"query": "q1", "way": "stock", "analyse": 3.0, "optimise": 50.0, "run": 9.0},
    {"query": "q1", "way": "pruned", "analyse": 3.0, "optimise": 20.0, "builds": 40.0, "run": 4.0},
]


def test_the_chart_of_phases_names_each_query_and_phase_and_is_reproducible():
    pytest.importorskip("matplotlib")
    svg = phases_chart.picture(PHASED)
    assert svg == phases_chart.picture(PHASED)
    for text in ("q1 stock", "q1 pruned", "analyse", "optimise", "builds"):
        assert f">{text}<" in svg
    # A phase without a measurement, and the phase after the first task.
    assert not {">decide<", ">run<"} & {f">{each}<" for each in (*phases_chart.PHASES, "run") if f">{each}<" in svg}


def test_the_chart_of_phases_matches_the_recorded_results():
    assert (phases_chart.RESULTS.with_suffix(".svg")).exists() == bool(phases_chart.recorded())
    names = {(row["query"], row["way"]) for row in phases_chart.recorded()}
    assert all(f">{' '.join(each)}<" in phases_chart.RESULTS.with_suffix(".svg").read_text() for each in names)


def _stages(stage: str, **seconds: float) -> list[dict[str, object]]:
    sizes = {"small": (1000, 100_000), "large": (100_000, 100_000), "keys": (100_000, 10_000_000)}
    return [
        {
            "stage": stage,
            "type": "bigint",
            "layout": "unclustered",
            "files": sizes[at][0],
            "keys": sizes[at][1],
            "cpu_seconds": each,
            "peak_bytes": 0,
        }
        for at, each in seconds.items()
    ]


@pytest.mark.full
def test_the_chart_of_the_driver_has_a_line_for_each_measured_stage():
    pytest.importorskip("matplotlib")
    rows = [*_stages("explain", small=0.01, large=0.5, keys=2.0), *_stages("receive keys", small=0.1, large=0.0)]
    svg = driver_chart.picture(rows)
    assert svg == driver_chart.picture(rows)
    for text in ("explain", "receive keys", "bigint: CPU seconds", "files, beside 100,000 keys"):
        assert f">{text}<" in svg


def test_the_chart_of_the_driver_matches_the_recorded_results():
    assert driver_chart.RESULTS.with_suffix(".svg").exists() == bool(driver_chart.recorded())
    assert {driver_chart.ALL} <= {row["stage"] for row in driver_chart.recorded()} or not driver_chart.recorded()


def test_time_in_a_nested_phase_is_counted_once(monkeypatch):
    pytest.importorskip("pyspark")
    from benchmarks.bench_phases import Stopwatch  # noqa: PLC0415 - loads Spark

    ticks = iter([0.0, 1.0, 3.0, 7.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    watch = Stopwatch()
    with watch.phase("outer"), watch.phase("inner"):
        pass
    assert {"inner": 2.0, "outer": 5.0} == watch.seconds


def test_every_module_of_the_benchmarks_can_be_imported():
    """Benchmarks take an hour and do not run for each commit, so a broken import would stay unseen."""
    paths = (path.relative_to(ROOT) for path in sorted((ROOT / "benchmarks").rglob("*.py")))
    names = [
        ".".join(path.with_suffix("").parts) for path in paths if path.stem != "__main__" and "tests" not in path.parts
    ]
    program = f"from importlib import import_module\nfor each in {names}: import_module(each)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr[-500:])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is counted by /proc")
@pytest.mark.parametrize(
    ("case", "last"),
    [
        ({"type": "string", "layout": "clustered", "files": 50, "keys": 500}, "keys of statistics"),
        ({"files": 3}, "footers"),
    ],
    ids=["scan", "footers"],
)
def test_every_stage_of_the_driver_is_measured(case, last):
    command = [sys.executable, "-m", "benchmarks.driver_stages", json.dumps(case)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr[-2000:]
    stages = [row["stage"] for row in json.loads(done.stdout)]
    assert last == stages[-1]
    assert len(stages) == len(set(stages))
    assert (len(stages) > 1) == (case.keys() != {"files"})
