"""Oracles for pruned reads and queries: Spark without pruning, and DuckDB."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.oracle.oracle", "tests.oracle.answers")
