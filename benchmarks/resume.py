"""Measurements that resume after an interruption: each row is written to a file as soon as it is measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Rows of unfinished measurements are kept here, apart from results.
_UNFINISHED = ROOT / ".cache" / "benchmarks"
_SOURCES = ("pruning", "connectors", "benchmarks", "sample_data")
_TESTS = ROOT / "benchmarks" / "tests"


def is_newer_than_code(path: Path) -> bool:
    """True if a file is newer than every source file."""
    sources = (each for folder in _SOURCES for kind in ("*.py", "*.java") for each in (ROOT / folder).rglob(kind))
    files = [each for each in sources if _TESTS not in each.parents]
    code = max(each.stat().st_mtime for each in files)
    return path.exists() and path.stat().st_mtime > code


def resumed(
    name: str, keys: Iterable[str], measure: Callable[[str], dict[str, Any]], folder: Path = _UNFINISHED
) -> list[dict[str, Any]]:
    """A row for each key; rows that an interrupted call of this name measured with the same code are reused."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    if not is_newer_than_code(path):
        path.unlink(missing_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known: dict[str, dict[str, Any]] = dict(map(json.loads, lines))
    with path.open("a", encoding="utf-8") as file:
        for key in keys:
            if key not in known:
                known[key] = measure(key)
                file.write(json.dumps([key, known[key]]) + "\n")
                file.flush()
    path.unlink()
    return [known[key] for key in keys]


def forget(name: str, folder: Path = _UNFINISHED) -> None:
    """Removes the rows of an interrupted call of this name, so that the next call starts over."""
    (folder / f"{name}.jsonl").unlink(missing_ok=True)
