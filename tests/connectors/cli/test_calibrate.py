"""`scanprune calibrate`: rates of each step from small tables, and the file that later sessions read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from connectors import rate_files
from connectors.cli.calibrate_command import busy, measured, tell
from connectors.cli.calibrate_rows import TimedBuild
from connectors.cli.calibrate_store import store_rates
from connectors.cli.calibrate_trials import Trials, credible
from connectors.rate_files import machine_rates, rate_file
from pruning.cost.rates import CostRates
from pruning.errors import EnvironmentProblem

ROOT = Path(__file__).resolve().parents[3]
TRIALS = Trials(rows=20_000, kept=800, store_bytes=1 << 12, warm=0, runs=1, seconds=0.1)
OF_STORES = {"remote_byte", "remote_request"}
OF_MACHINE = {each.name for each in fields(CostRates)} - {*OF_STORES, "query"}


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rate_files.forget_files()
    yield tmp_path / "cache"
    rate_files.forget_files()


def test_all_rates_but_those_of_stores_are_measured(spark, tmp_path):
    reported = []
    found = measured(spark, None, tmp_path, lambda name, share: reported.append((name, share)), TRIALS)
    assert OF_MACHINE == found.keys() == {name for name, _ in reported}
    assert all(0.0 <= share < 1.0 for _, share in reported)
    for name, rate in found.items():
        default = getattr(CostRates(), name)
        assert default / 10 <= rate <= default * 10
    assert [] == list(tmp_path.iterdir())


def test_builds_are_timed_with_their_keys(spark, tmp_path):
    build = TimedBuild.of(spark, tmp_path / "rows.parquet", 100)
    assert [100, 100] == [keys.distinct for keys in (build.by_job(), build.on_driver())]
    refused = replace(build, options=build.options.with_limits(joined_rows=10, driver_scan_files=0))
    assert refused.on_driver() is None
    with pytest.raises(RuntimeError, match="Cannot time a build: found None"):
        refused.by_job()


def test_rates_of_a_store_are_measured_in_a_folder_that_is_removed(spark, tmp_path):
    found = store_rates(spark, tmp_path.as_uri(), trials=TRIALS)
    assert OF_STORES == found.keys()
    assert all(rate > 0.0 for rate in found.values())
    assert [] == list(tmp_path.iterdir())


@pytest.mark.full
def test_path_of_this_machine_holds_the_tables(spark, tmp_path):
    folder = tmp_path / "a b"
    assert OF_MACHINE == measured(spark, folder.as_uri(), tmp_path / "unused", lambda *_: None, TRIALS).keys()
    assert [folder] == list(tmp_path.iterdir())


def test_trials_take_medians_of_differences(monkeypatch):
    clock, log = [0.0], []
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    delays = iter([9, 9, 5, 1, 3, 1, 90, 1])

    def step(name):
        def run():
            log.append(name)
            clock[0] += next(delays)

        return run

    assert 4.0 == Trials(warm=1, runs=3, seconds=1e9).more(step("a"), step("b"))
    assert list("abababab") == log


def test_slow_step_runs_once(monkeypatch):
    clock, runs = [0.0], []
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    def step():
        runs.append(clock[0])
        clock[0] += 100.0

    assert 100.0 == Trials().took(step)
    assert [0.0, 100.0] == runs


def test_growth_is_that_of_a_row_without_the_rest(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    def step(seconds):
        def run():
            clock[0] += seconds

        return run

    trials = Trials(seconds=1e9)
    assert 2.0 == pytest.approx(trials.growth(lambda rows: step(7 + rows * 2.0), 1000))
    assert 1.5 == pytest.approx(
        trials.growth(lambda rows: step(7 + rows * 2.0), 1000, lambda rows: step(3 + rows * 0.5))
    )


@pytest.mark.parametrize(("measured", "expected"), [(0.5, 0.5), (0.01, 0.1), (1e9, 10.0), (0.0, 1.0), (-5.0, 1.0)])
def test_rate_is_not_far_from_its_default(measured, expected):
    default = CostRates().joined_row
    assert expected * default == credible("joined_row", measured * default)


def test_rates_are_printed_and_kept(cache, capsys):
    tell({"byte": 0.25}, "local")
    tell({"remote_byte": 7.0}, "s3a-lake")
    out, err = capsys.readouterr()
    first, second = (CostRates.parse(line.removeprefix("spark.pruning.limits.costs=")) for line in out.splitlines())
    assert (0.25, 10.0) == (first.byte, first.remote_byte)
    assert (0.25, 7.0) == (second.byte, second.remote_byte)
    assert second == machine_rates(["s3a-lake"])
    for line, store in zip(err.splitlines(), ("local", "s3a-lake"), strict=True):
        assert f"Kept in {str(rate_file(store))!r} for later sessions; delete that file to forget it" == line
    assert cache in rate_file().parents


def test_rates_are_printed_also_where_they_cannot_be_kept(cache, capsys):
    cache.write_text("a file", encoding="utf-8")
    with pytest.raises(EnvironmentProblem, match="Cannot keep rates"):
        tell({"byte": 0.25}, "local")
    assert "limits.costs=byte=0.25," in capsys.readouterr().out


def test_busy_machine_is_told():
    assert "" == busy(2.0, 2)
    assert "busy before the start (2.1 processes, 2 cores): calibrate again" in busy(2.1, 2)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("is_local", [True, False])
def test_command_prints_and_keeps_rates(tmp_path, is_local):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    # A file system of Hadoop over local files.
    mounted = "spark.hadoop.fs.viewfs.mounttable.lake.linkFallback=file:///"
    where = () if is_local else ("--path", f"viewfs://lake{tmp_path}", "--conf", mounted)
    done = subprocess.run(
        [sys.executable, "-m", "connectors.cli.main", "calibrate", "--small", *where],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    (line,) = done.stdout.splitlines()
    printed = CostRates.parse(line.removeprefix("spark.pruning.limits.costs="))
    (file,) = (tmp_path / "cache" / "scanprune" / "rates").glob("*/*.json")
    assert str(file) in done.stderr
    assert ("local.json" if is_local else "viewfs-lake.json") == file.name
    rates = json.loads(file.read_text(encoding="utf-8"))["rates"]
    assert (OF_MACHINE if is_local else OF_STORES) == rates.keys()
    assert all(getattr(printed, name) == pytest.approx(rate, rel=1e-3) for name, rate in rates.items())
    assert re.fullmatch(r".+-[0-9a-f]{8}", file.parent.name)
