"""Tests of the parts of `python -m tests.cluster` that need no cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console

from tests.cluster import faults, supervisor
from tests.cluster.__main__ import _numbers, _parts, _seeds
from tests.cluster.faults import Fault, Faults, Place, rows_then_strike, strike
from tests.cluster.outcomes import Found, Outcomes, Skipped, table
from tests.cluster.sessions import hidden_on
from tests.cluster.standalone import is_running
from tests.cluster.tpcds import NUMBERS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def armed(tmp_path, monkeypatch) -> Faults:
    monkeypatch.setenv(faults.FOLDER, str(tmp_path))
    return Faults(tmp_path)


def test_a_fault_strikes_once_and_at_its_place(armed):
    armed.arm(Place.KEYS, Fault.RAISES)
    strike(Place.ROWS)
    with pytest.raises(OSError, match="asked for"):
        strike(Place.KEYS)
    strike(Place.KEYS)
    assert [] == armed.disarm()


def test_a_fault_that_did_not_strike_is_told_and_strikes_nobody_afterwards(armed):
    armed.arm(Place.ROWS, Fault.RAISES)
    assert ["rows-raises"] == armed.disarm()
    assert [1, 2] == list(rows_then_strike(iter([1, 2])))


def test_rows_are_handed_over_before_a_fault_strikes(armed):
    armed.arm(Place.ROWS, Fault.RAISES)
    rows = rows_then_strike(iter([1, 2]))
    assert [1, 2] == [next(rows), next(rows)]
    with pytest.raises(OSError, match="asked for"):
        next(rows)


def test_without_a_folder_nothing_strikes(monkeypatch):
    monkeypatch.delenv(faults.FOLDER, raising=False)
    for place in Place:
        strike(place)


def test_a_worker_that_ends_its_executor_ends_the_parent_of_its_parent(tmp_path):
    """The processes are nested as in Spark: the executor starts the daemon, the daemon starts the worker."""
    worker = "from tests.cluster.faults import Place, strike; strike(Place.ROWS)"
    run = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}]); import time; time.sleep(60)"
    environment = {**os.environ, faults.FOLDER: str(tmp_path), "PYTHONPATH": str(ROOT)}
    Faults(tmp_path).arm(Place.ROWS, Fault.EXECUTOR_ENDS)
    with subprocess.Popen(
        [sys.executable, "-c", run.format(run.format(worker))], env=environment, start_new_session=True
    ) as executor:
        assert -signal.SIGKILL == executor.wait(30)
        assert not is_running(executor.pid)
        os.killpg(executor.pid, signal.SIGKILL)


@pytest.mark.parametrize(("hosts", "is_there"), [("a,b", False), ("b", False), ("a", True), ("ab", True), ("", True)])
def test_packages_are_hidden_on_hosts_that_are_named(hosts, is_there, tmp_path):
    confs = hidden_on(hosts, {})
    prefix = "spark.executorEnv."
    environment = {name.removeprefix(prefix): value for name, value in confs.items() if name.startswith(prefix)}
    asked = "import numpy\ntry: import connectors.columns\nexcept ImportError: print('hidden')\nelse: print('there')"
    found = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, **environment, supervisor.HOST: "b"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("there" if is_there else "hidden") == found.stdout.strip()


def test_a_case_that_fails_is_told_and_the_next_one_runs(tmp_path):
    console = Console(record=True, width=200, quiet=True)
    outcomes = Outcomes(console)

    def fails():
        raise ValueError("not\nalike")

    outcomes.run("part", "one", fails)
    outcomes.run("part", "two", lambda: Found(7, Skipped(1, (2, 8), (3, 40)), failed_tasks=1))
    outcomes.run("part", "three", lambda: Found(1, Skipped(2, (1, 8))))
    assert ["ValueError in fails:"] == [
        each.problem.rpartition(":")[0].rstrip("0123456789") for each in outcomes.problems
    ]
    assert {"part": "part", "case": "two", "rows": 7, "failed_tasks": 1, "note": "", "scans": 1} == {
        name: value
        for name, value in outcomes.all[1].to_row().items()
        if name not in {"seconds", "files", "row_groups", "problem"}
    }
    outcomes.write(tmp_path / "folder" / "cluster.json")
    assert outcomes.all[1].to_row() == {
        **json.loads((tmp_path / "folder" / "cluster.json").read_text())[1],
        "files": (2, 8),
        "row_groups": (3, 40),
    }
    shown = Console(record=True, width=200, file=StringIO())
    shown.print(table(outcomes.all))
    (line,) = [each for each in map(str.split, shown.export_text().splitlines()) if each[:2] == ["part", "3"]]
    assert ["part", "3", "2", "8", "3", "3", "of", "16", "3", "of", "40", "1"] == line[:-1]


def test_the_supervisor_finds_what_spark_says_of_itself():
    said = b"INFO Master: Starting Spark master at spark://127.0.0.1:7077\nINFO Master: Registering worker a:1"
    assert b"spark://127.0.0.1:7077" == supervisor._URL.search(said).group(1)
    assert 1 == len(supervisor._REGISTERED.findall(said))


def test_queries_parts_and_seeds_are_chosen_by_their_names():
    assert ((3, 96), NUMBERS, 99) == (_numbers(["q3", "96"]), _numbers([]), len(_numbers(["all"])))
    assert (("random",), 4) == (_parts(["random"]), len(_parts([])))
    assert ((2,), (1, 2, 3)) == (_seeds("2"), _seeds("1-3"))


@pytest.mark.parametrize(("choose", "given"), [(_numbers, ["q100"]), (_parts, ["nothing"]), (_seeds, "a-b")])
def test_what_is_not_there_cannot_be_chosen(choose, given):
    with pytest.raises(typer.BadParameter, match=r"expected"):
        choose(given)


def test_every_module_can_be_imported():
    """The run on a cluster takes many minutes and is not part of every commit, so a broken import would stay unseen."""
    paths = (path.relative_to(ROOT) for path in sorted(Path(__file__).parent.rglob("*.py")))
    names = [".".join(path.with_suffix("").parts) for path in paths if path.stem != "__main__"]
    program = f"from importlib import import_module\nfor each in {names}: import_module(each)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr[-500:])
