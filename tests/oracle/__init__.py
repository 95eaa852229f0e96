"""Answers from Spark without pruning and from DuckDB, and the checks that hold pruned reads to them."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.oracle.oracle", "tests.oracle.answers")
