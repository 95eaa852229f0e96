from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.spark import java_check as java


def fake_java(folder: Path, *lines: str) -> Path:
    """A `bin/java` that prints lines to standard error, as Java does with its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text("\n".join(["#!/bin/sh", *(f"echo '{line}' >&2" for line in lines)]) + "\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        pytest.param(['openjdk version "17.0.15" 2025-04-15'], None, id="oldest"),
        pytest.param(['openjdk version "25" 2025-09-16'], None, id="no minor version"),
        pytest.param(["Picked up JAVA_TOOL_OPTIONS: -Xmx1g", 'java version "21.0.2"'], None, id="options first"),
        pytest.param(['java version "1.8.0_392"'], "is Java 8: install", id="numbered the old way"),
        pytest.param(['openjdk version "11.0.2" 2019-01-15'], "is Java 11: install", id="too old"),
        pytest.param(["Unable to locate a Java Runtime."], "does not tell a version: install", id="not a Java"),
    ],
)
def test_java_version_check(tmp_path: Path, monkeypatch, lines, found):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "", *lines)))
    problem = java.java_problem()
    if found is None:
        assert problem is None
    else:
        assert problem is not None
        assert found in problem
        assert "\n" not in problem


def test_error_names_java_home_without_java(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    problem = java.java_problem()
    assert problem is not None
    assert f"JAVA_HOME is {str(tmp_path)!r}, which has no bin/java" in problem


def test_java_home_overrides_path(tmp_path: Path, monkeypatch):
    old = fake_java(tmp_path, 'openjdk version "11.0.2"')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(old / "bin"))
    assert "is Java 11" in str(java.java_problem())
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(fake_java(other, 'openjdk version "17.0.1"')))
    assert java.java_problem() is None


def test_no_java(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "found no JAVA_HOME, no java on PATH" in str(java.java_problem())


def test_file_runs_as_a_script_with_a_one_line_error(tmp_path: Path):
    answer = subprocess.run(
        [sys.executable, "-I", java.__file__],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "install a JDK" in answer.stderr
