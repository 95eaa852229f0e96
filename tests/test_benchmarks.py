"""Measurements go on after an interruption, and their page says what was recorded."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks import queries_table
from benchmarks.queries_table import PAGE, RESULTS, page, recorded
from benchmarks.resume import resumed


@pytest.fixture
def measure():
    """A measurement that is interrupted once it has come to `c`, the first time; what it measured."""

    def one(key: str) -> dict[str, str]:
        one.measured.append(key)
        if key == "c" and one.measured.count("c") == 1:
            raise KeyboardInterrupt
        return {"key": key}

    one.measured = []
    return one


def test_an_interrupted_measurement_goes_on_where_it_was(measure, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        resumed("part", "abcd", measure, tmp_path)
    assert [{"key": each} for each in "abcd"] == resumed("part", "abcd", measure, tmp_path)
    assert [*"abccd"] == measure.measured
    assert [] == [*tmp_path.iterdir()]


def test_what_other_code_measured_is_measured_again(measure, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        resumed("part", "abc", measure, tmp_path)
    (unfinished,) = tmp_path.iterdir()
    long_ago = time.time() - 10 * 365 * 86_400
    os.utime(unfinished, (long_ago, long_ago))
    resumed("part", "abc", measure, tmp_path)
    assert [*"abcabc"] == measure.measured


def test_the_page_of_queries_is_what_was_measured():
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else None
    measured = page(recorded()) if RESULTS.exists() else None
    assert written == measured, "run `make readme`"


def test_the_page_names_queries_whose_rows_differ():
    row = {**dict.fromkeys(queries_table.SUMMED, 1 << 20), "scale": 1.0, "rows_equal": True, "differs": ""}
    rows = [
        {**row, "query": "q1"},
        {**row, "query": "q2", "differs": "ties"},
        {**row, "query": "q3", "rows_equal": False, "differs": "1 row"},
    ]
    text = page(rows)
    assert "differ in: q3. In ties at a LIMIT alone:\n  q2\n" in text
    assert "| all | 3,145,728 |" in text
