"""Measurements as JSON files, with the commit of the code and a description of the machine."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.resume import ROOT

_PACKAGES = ("numpy", "pyarrow", "pyspark", "delta-spark", "duckdb", "datafusion")
# Linux counts kibibytes, macOS bytes.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def record(path: Path, name: str, measure: Callable[[], Sequence[Mapping[str, Any]]], *, quick: bool) -> None:
    """Writes the rows of `measure` to `path`, only after all of them were measured."""
    load, began = os.getloadavg()[0], time.perf_counter()
    rows = measure()
    found = {
        "part": name,
        "quick": quick,
        "code": _code(),
        "machine": {**_machine(), "load_before": round(load, 1)},
        "seconds": round(time.perf_counter() - began, 1),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT,
        "rows": [_rounded(row) for row in rows],
    }
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


def recorded(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, each with its commit and load; a row without its own takes those of the file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    origin = {"code": found.get("code"), "load_before": found.get("machine", {}).get("load_before")}
    return [{**origin, **row} for row in found["rows"]]


def _code() -> str | None:
    """The measured commit, with a suffix if the work tree differs from it; None if git cannot tell."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--match="],  # noqa: S607 - git is found on PATH
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in row.items()}
