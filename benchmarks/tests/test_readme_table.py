"""Tests that the tables in README.md and benchmarks/README.md match the recorded measurements."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.readme_table import BENCHMARKS, README, ROOT, benchmarks_readme, readme, recorded, replaced, table


def test_the_tables_match_the_recorded_results():
    for path, made in ((README, readme), (BENCHMARKS, benchmarks_readme)):
        text = path.read_text(encoding="utf-8")
        assert text == made(text), "run `make readme`"


def test_a_text_without_the_table_is_refused():
    with pytest.raises(ValueError, match="expected one in README"):
        replaced("# scanprune\n", table(recorded()))


def test_making_the_table_loads_no_engine():
    code = "import sys, benchmarks.readme_table; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "False" == done.stdout.strip()
