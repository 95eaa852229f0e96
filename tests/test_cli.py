"""The command line without Spark: help, exit codes, and one-line error messages."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from connectors.cli.command import default_folder
from connectors.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
LOADED = "import sys, connectors.cli; print(*sorted({'pyspark', 'rich.console', 'duckdb'} & set(sys.modules)))"


def invoked(*arguments: str) -> tuple[int, str]:
    """The exit code and the output of a command, without terminal colours and boxes."""
    result = CliRunner().invoke(app, arguments, env={"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "200"})
    return result.exit_code, result.output


def run_in_process(*arguments: str, checkout: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scanprune", *arguments],
        cwd=checkout,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def assert_one_line(run: subprocess.CompletedProcess[str], message: str) -> None:
    assert 1 == run.returncode
    assert "" == run.stdout
    assert 1 == len(run.stderr.splitlines()), run.stderr
    assert run.stderr.startswith("scanprune: ")
    assert message in run.stderr


def test_help_names_the_command():
    code, output = invoked("--help")
    assert 0 == code
    assert "demo" in output
    assert "<bool>" not in output


def test_demo_help_describes_each_option():
    code, output = invoked("demo", "--help")
    assert 0 == code
    words = " ".join(output.split())
    for each in ("--scale", "--dir", "--runs", "3 million sales", "as time allows"):
        assert each in words


def test_no_command_shows_help():
    assert "demo" in invoked()[1]


def test_version_is_the_package_version():
    assert (0, f"scanprune {version('scanprune')}\n") == invoked("--version")


def test_the_package_runs_as_a_command():
    found = run_in_process("--version")
    assert (0, f"scanprune {version('scanprune')}\n", "") == (found.returncode, found.stdout, found.stderr)


@pytest.mark.parametrize(
    "arguments",
    [("demonstrate",), ("demo", "--speed", "9"), ("demo", "--scale", "large"), ("demo", "--runs", "0"), ("demo", "x")],
    ids=["command", "option", "no number", "no run", "argument"],
)
def test_unknown_arguments_are_refused(arguments):
    code, output = invoked(*arguments)
    assert 2 == code
    assert arguments[-1] in output or arguments[-2] in output
    assert "Traceback" not in output


def test_help_and_version_load_no_engine():
    loaded = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "" == loaded.stdout.strip()


def test_error_is_one_line_without_traceback(tmp_path):
    assert_one_line(run_in_process("demo", "--scale", "0", "--dir", str(tmp_path)), "at scale 0: it must be a number")


def test_invalid_folder_is_a_one_line_error(tmp_path):
    file = tmp_path / "file"
    file.touch()
    run = run_in_process("demo", "--dir", str(file / "tables"))
    assert_one_line(run, "Not a directory; name another folder with --dir")


def test_missing_java_is_a_one_line_error_with_remedy(tmp_path):
    run = run_in_process("demo", "--dir", str(tmp_path / "tables"), "--scale", "0.01", JAVA_HOME=str(tmp_path))
    assert_one_line(run, "which has no bin/java: install a JDK")


def test_demo_without_a_checkout_says_to_clone(tmp_path):
    for package in ("connectors", "pruning"):
        shutil.copytree(ROOT / package, tmp_path / package)
    assert_one_line(
        run_in_process("demo", "--dir", str(tmp_path / "tables"), checkout=tmp_path), "clone the repository"
    )


@pytest.mark.parametrize("named", ["", "relative/cache"])
def test_default_folder_is_below_the_home_cache(monkeypatch, named):
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert Path.home() / ".cache" / "scanprune" == default_folder()


def test_default_folder_is_below_xdg_cache_home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "scanprune" == default_folder()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "SELECT 1", "--table", "a=/no/such"), "No table 'a' at '/no/such': there is no such path"),
        (("run", "SELECT 1", "--table", "1a=/tmp"), "Cannot call a table '1a': expected a name of letters"),
        (("run", "-f", "/no/such.sql"), "Cannot read the query from '/no/such.sql': No such file or directory"),
        (("explain",), "Cannot tell the query: found neither SQL nor a file"),
        (
            ("explain", "SELECT 1", "--conf", "limits.max_ranges=many"),
            "Cannot set 'spark.pruning.limits.max_ranges' to 'many'",
        ),
    ],
    ids=["path", "name", "file", "no query", "option"],
)
def test_invalid_query_arguments_are_a_one_line_error(tmp_path, arguments, message):
    assert_one_line(run_in_process(*arguments, XDG_CACHE_HOME=str(tmp_path)), message)
    assert [] == list(tmp_path.iterdir())


def test_query_without_java_is_a_one_line_error(tmp_path):
    env = {"JAVA_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    assert_one_line(run_in_process("explain", "SELECT 1", **env), "which has no bin/java: install a JDK")


def test_query_help_describes_each_option():
    for command, options in (
        ("explain", ("--run-builds", "--json")),
        ("run", ("--limit", "--compare", "--runs")),
    ):
        code, output = invoked(command, "--help")
        assert 0 == code
        assert "<bool>" not in output
        for each in ("--table", "NAME=PATH", "--file", "--conf", *options):
            assert each in output


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
def test_query_is_explained_and_run_from_a_shell(spark, tmp_path):
    facts, days = (str(tmp_path / name) for name in ("facts", "days"))
    spark.range(0, 400_000, 1, 8).selectExpr("id div 1000 AS day", "id AS amount").write.format("delta").save(facts)
    spark.range(0, 400).selectExpr("id AS day", "id div 100 AS month").write.parquet(days)
    query = tmp_path / "query.sql"
    query.write_text("SELECT sum(amount) AS total FROM facts JOIN days USING (day) WHERE month = 1;", encoding="utf-8")
    given = ("--table", f"facts={facts}", "--table", f"days={days}", "--conf", "always=true")
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    explained = run_in_process("explain", f"@{query}", *given, "--run-builds", "--json", **env)
    assert (0, "") == (explained.returncode, explained.stderr)
    (table,) = json.loads(explained.stdout)["tables"]
    assert ("facts", 2, 8) == (table["table"], table["files_kept"], table["files_total"])

    ran = run_in_process("run", "-f", str(query), *given, "--compare", **env)
    assert (0, "") == (ran.returncode, ran.stderr)
    rows = [line.replace("│", " ").split() for line in ran.stdout.splitlines()]
    assert ["files", "8", "2", "statistics:", "6"] in rows
    assert ["files", "2", "2", "8"] in rows
    for each in ("14999950000", "Rows equal: 1 row; read "):
        assert each in ran.stdout

    bad = run_in_process("run", "SELECT nothing FROM facts", *given, **env)
    assert_one_line(bad, "Cannot understand the query: [UNRESOLVED_COLUMN")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--table", "sales"), "Cannot tell a table from 'sales': expected name=path"),
        (("--table", "sales=nowhere"), "No table 'sales' at 'nowhere': there is no such path"),
        (("--conf", "always=perhaps"), "'perhaps'"),
        (("--conf", "quickly=true"), "Cannot set 'quickly'"),
        (("--address", "203.0.113.7"), "Cannot listen on '203.0.113.7', port 0: "),
    ],
)
def test_mistakes_of_a_server_are_named_before_spark_starts(arguments, message):
    assert_one_line(run_in_process("serve", "connect", "--port", "0", *arguments), message)


def test_a_port_in_use_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        run = run_in_process("serve", "thrift", "--port", str(other.getsockname()[1]))
    assert_one_line(run, "Address already in use; name another address or port")


def test_a_client_by_its_environment_cannot_serve():
    run = run_in_process("serve", "connect", "--port", "0", SPARK_REMOTE="sc://127.0.0.1:1")
    assert_one_line(run, "found SPARK_REMOTE in the environment")
