# ruff: noqa: INP001 - a folder of paths, no package: Python itself imports this before all else
"""For executors that do not have this package: on hosts that the environment names, imports of it find nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

_PACKAGES = ("connectors", "pruning")


class Hidden:
    """Finds these packages nowhere."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:  # noqa: ARG004
        """Nothing, and for others nobody is asked here."""
        if name.partition(".")[0] in _PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


if os.environ.get("SCANPRUNE_HOST", "-") in os.environ.get("SCANPRUNE_HIDDEN_ON", "").split(","):
    sys.meta_path.insert(0, Hidden())  # type: ignore[arg-type]
