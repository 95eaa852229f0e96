# ruff: noqa: INP001 - a folder on PYTHONPATH, no package: Python imports this module at startup
"""Hides this package from Python workers on the hosts of an environment variable: imports of it fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

_PACKAGES = ("connectors", "pruning")


class Hidden:
    """An import finder that hides `_PACKAGES`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:  # noqa: ARG004
        """None for other packages; raises `ModuleNotFoundError` for hidden ones."""
        if name.partition(".")[0] in _PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


if os.environ.get("SCANPRUNE_HOST", "-") in os.environ.get("SCANPRUNE_HIDDEN_ON", "").split(","):
    sys.meta_path.insert(0, Hidden())  # type: ignore[arg-type]
