"""Tests of the demo on small tables: rows, skipped files, reasons, the printed table, and interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from benchmarks.demo.run import FACT, JOINS, TABLES
from pruning.reasons import ReasonCode
from sample_data.confs import CODE_GENERATION, conf

if TYPE_CHECKING:
    from benchmarks.demo.run import Result
    from benchmarks.demo.star_join import Lake
    from sample_data.tpcds import TpcdsFiles

# Its tables and queries take a minute.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.full]

ROOT = Path(__file__).resolve().parents[2]
SCALE = 0.01
LINE = "scanprune: Interrupted; run the same command again to continue with the tables made so far"
SECONDS_AT_MOST = 120


@dataclass(frozen=True, slots=True)
class Made:
    folder: Path
    sources: TpcdsFiles
    lakes: tuple[Lake, ...]
    progress: list[tuple[str, float]]


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory) -> Made:
    from benchmarks.demo.run import made_tables  # noqa: PLC0415 - loads Spark

    folder, progress = tmp_path_factory.mktemp("demo"), []
    with conf(spark, CODE_GENERATION):
        sources, lakes = made_tables(spark, folder, SCALE, TABLES, lambda what, share: progress.append((what, share)))
    return Made(folder, sources, lakes, progress)


@pytest.fixture(scope="module")
def results(spark, made) -> dict[tuple[str, str], Result]:
    from benchmarks.demo.duckdb_answers import oracle  # noqa: PLC0415 - loads Spark
    from benchmarks.demo.run import compared  # noqa: PLC0415 - loads Spark

    with oracle(made.sources.paths, JOINS) as judge:
        return {
            (join.name, lake.format): compared(spark, lake, join, judge, range(1))
            for join in JOINS
            for lake in made.lakes
        }


def test_rows_of_every_join_equal_those_of_duckdb(results):
    assert {} == {each: result.after.rows for each, result in results.items() if not result.rows_equal}
    some = {name for (name, _), result in results.items() if result.after.rows}
    assert {join.name for join in JOINS} - {"no store"} == some


# The numbers of files and row groups that are kept, of 24 and 96.
@pytest.mark.parametrize("table_format", ["delta", "parquet"])
@pytest.mark.parametrize(
    ("join", "files", "row_groups"),
    [
        ("one month", 2, 4),
        ("three keys", 2, 4),
        ("Christmas", 5, 5),
        ("ticket list", 24, 94),
        ("items alone", 24, 96),
        ("no store", 0, 0),
    ],
)
def test_joins_skip_files_and_row_groups_without_keys(results, table_format, join, files, row_groups):
    result = results[join, table_format]
    plan, measured = result.after.planned, result.after.measured
    assert (24, 96) == (plan.files_total, plan.row_groups_total)
    assert (files, row_groups) == (plan.files_kept, plan.row_groups_kept)
    assert files == measured.files_read


def test_fewer_bytes_are_read_where_files_are_skipped(results):
    for (join, _), result in results.items():
        before, after = result.before.measured.bytes_scanned, result.after.measured.bytes_scanned
        if join in {"one month", "three keys", "Christmas"}:
            assert 0 < after < before / 2


def test_join_without_a_gain_has_a_reason(results):
    for table_format in ("delta", "parquet"):
        reasons = results["items alone", table_format].after.planned.reasons
        assert [ReasonCode.UNCLUSTERED] == [reason.code for reason in reasons]


def test_progress_of_making_tables_never_decreases(made):
    shares = [share for _, share in made.progress]
    assert sorted(shares) == shares
    assert 0 <= shares[0] <= shares[-1] == 0.5


def test_tables_are_made_once(spark, made):
    from benchmarks.demo.run import made_tables  # noqa: PLC0415 - loads Spark

    before = stamps(made.folder)
    made_tables(spark, made.folder, SCALE, TABLES, lambda _what, _share: None)
    assert before == stamps(made.folder)


def stamps(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.glob("*sf*/**/*.parquet")}


def printed(results: list[Result]) -> str:
    from benchmarks.demo.view import results_table, verdict  # noqa: PLC0415 - loads Spark

    console = Console(width=80, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115 - records alone
    with console.file:
        console.print(results_table(results))
        console.print(verdict(results))
        return console.export_text()


def test_table_shows_every_join_of_each_format_in_one_line(results):
    lines = printed(list(results.values())).splitlines()
    assert all(len(line) <= 80 for line in lines)
    for name in (join.name for join in JOINS):
        assert 2 == sum(line.startswith(f"{name} ") and "→" in line for line in lines)
    assert any(line.startswith("Rows equal in all 12 comparisons; read ") for line in lines)
    assert any("one run" in line for line in lines)


def test_table_shows_the_number_of_runs_of_a_median(results):
    one, *others = results.values()
    assert "median of 1 to 3." in printed([replace(one, runs=3), *others])
    assert "median of 3." in printed([replace(each, runs=3) for each in results.values()])


def test_rows_that_differ_are_named(results):
    one, *others = results.values()
    text = printed([replace(one, rows_equal=False), *others])
    assert "DIFFER" in text
    assert "Rows differ: one month (delta)" in text


def test_requested_runs_are_done_and_default_runs_stop_at_the_time_limit():
    from benchmarks.demo.run import _turns  # noqa: PLC0415 - loads Spark

    over, never = time.monotonic() - 1, time.monotonic() + SECONDS_AT_MOST
    assert [0, 1, 2, 3, 4, 5] == list(_turns(5, over, 1))
    assert [0] == list(_turns(None, over, 1))
    assert [0, 1] == list(_turns(None, over, 2))
    assert [0, 1, 2, 3] == list(_turns(None, never, 1))


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGINT, "start"), (signal.SIGINT, "Writing store_sales as delta"), (signal.SIGTERM, "one month, delta")],
    ids=["Ctrl-C while Spark starts", "Ctrl-C while a table is written", "SIGTERM while a join runs"],
)
def test_interrupted_demo_ends_in_one_line_and_leaves_nothing_behind(spark, made, tmp_path, number, moment):
    folder = made.folder
    if moment != "one month, delta":
        folder = tmp_path / "tables"
        folder.mkdir()
        (folder / f"sf{SCALE}").symlink_to(made.sources.paths[FACT].parent, target_is_directory=True)
    said = tmp_path / "said"
    with said.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "connectors.cli.main", "demo", "--scale", str(SCALE), "--dir", str(folder)],
            cwd=ROOT,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        log = folder / "spark.log"
        wait_for(lambda: log.exists() if moment == "start" else moment in said.read_text(), process)
        time.sleep(0.5)
        os.killpg(process.pid, number)
        assert 128 + number == process.wait(SECONDS_AT_MOST)
    finally:
        process.kill()
        process.wait()
    lines = said.read_text().splitlines()
    assert [LINE] == [line for line in lines if "%" not in line]
    assert LINE == lines[-1]
    assert [] == still_running(process.pid)
    assert [] == list(folder.glob("*/*.part*"))
    assert {lake.format: 28810 for lake in made.lakes} == sales(spark, folder)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + SECONDS_AT_MOST
    while not condition():
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < until
        time.sleep(0.05)


def still_running(session: int) -> list[str]:
    """Running processes of a session, Java and Python workers included; zombies are ignored."""
    asked = ["ps", "-A", "-o", "pid=,stat=,comm="]
    table = subprocess.run(asked, capture_output=True, text=True, check=True)
    found = []
    for line in table.stdout.splitlines():
        pid, state, _ = line.split(maxsplit=2)
        with suppress(ProcessLookupError):
            if os.getsid(int(pid)) == session and not state.startswith("Z"):
                found.append(line)
    return found


def sales(spark, folder: Path) -> dict[str, int]:
    """The row counts of the fact tables that a repeated run finds or makes."""
    from benchmarks.demo.run import made_tables  # noqa: PLC0415 - loads Spark

    _, lakes = made_tables(spark, folder, SCALE, TABLES, lambda _what, _share: None)
    return {lake.format: lake.frame(spark, FACT).count() for lake in lakes}
