"""Tables that are made once on a machine and kept for later runs, by a digest of the code that makes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from connectors.cli.command import default_folder

_PACKAGES = ("pyspark", "delta-spark", "duckdb", "pyarrow")


def kept_folder(name: str, sources: Sequence[Path]) -> Path:
    """The folder for tables that `sources` make; another one after a change of these files or of an engine."""
    found = hashlib.sha256(" ".join(f"{each} {version(each)}" for each in _PACKAGES).encode())
    for source in sources:
        found.update(source.read_bytes())
    return default_folder() / "tests" / f"{name}-{found.hexdigest()[:16]}"
