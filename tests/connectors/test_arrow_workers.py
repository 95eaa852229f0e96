"""What is kept of asking workers whether they can scan, and what is asked again."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors import arrow_workers, builds
from connectors.arrow_workers import worker_problem
from connectors.session_cache import cache_of
from pruning import pruned_read
from pruning.reasons import Reason, ReasonCode
from tests.queries.arrow import ARROW, is_by_arrow, refusals


@pytest.fixture
def asked(monkeypatch):
    """Answers in turn, and for how long each was waited for."""
    waited: list[float] = []

    def answers(*given) -> list[float]:
        left = iter(given)

        def run(*_, timeout, **__):
            waited.append(timeout)
            return next(left)

        monkeypatch.setattr(builds, "run", run)
        return waited

    return answers


@pytest.mark.parametrize("answer", ["", "they have pyarrow 0.1, and the driver 26"])
def test_an_answer_is_kept_for_the_session(asked, answer):
    waited, session = asked(answer), SimpleNamespace()
    for _ in range(2):
        found = worker_problem(session, 3.0)
        assert answer == ("" if found is None else found.detail)
    assert [3.0] == waited


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reason(ReasonCode.BUILD_TIMED_OUT, "it", "3 seconds"), "no answer in 3 seconds"),
        (Reason(ReasonCode.BUILD_FAILED, "it", "SparkException"), "SparkException"),
    ],
)
def test_who_gave_no_answer_is_asked_again(asked, answer, why):
    waited, session = asked(answer, answer, ""), SimpleNamespace()
    expected = Reason(ReasonCode.NOT_READ_BY_ARROW, "the Python workers", why)
    assert [expected, expected, None, None] == [worker_problem(session, 3.0) for _ in range(4)]
    assert [3.0] * 3 == waited


@pytest.mark.spark
def test_workers_that_answer_too_late_are_not_waited_for(spark, tmp_path, monkeypatch):
    def slow(batches):
        while not Path(tmp_path, "end").exists():
            time.sleep(0.02)
        yield from batches

    pq.write_table(pa.table({"k": range(100)}), tmp_path / "t.parquet", row_group_size=10)
    monkeypatch.setattr(cache_of(spark), "workers", None)
    with monkeypatch.context() as patch:
        patch.setattr(arrow_workers, "versions", slow)
        some = replace(ARROW, build_timeout_seconds=1.0)
        df = pruned_read(spark, str(tmp_path / "t.parquet"), keys={"k": [5]}, options=some)
        (tmp_path / "end").touch()
    assert ["no answer in 1 seconds" in each for each in refusals(df)] == [True]
    assert 1 == df.where("k = 5").count()
    assert is_by_arrow(pruned_read(spark, str(tmp_path / "t.parquet"), keys={"k": [5]}, options=ARROW))
