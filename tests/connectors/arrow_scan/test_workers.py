"""Answers of workers about their versions and memory: cached answers, and repeated requests."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from connectors.arrow_scan import workers as arrow_workers
from connectors.arrow_scan.workers import (
    WORKERS,
    KnownWorkers,
    Workers,
    probe,
    refused_before,
    summed_up,
    version,
    workers_of,
)
from connectors.jobs import runner as builds
from connectors.spark.session_state import Refusals, state_of
from pruning import pruned_read
from pruning.reasons import Reason, ReasonCode
from tests.queries.arrow import ARROW, is_by_arrow, refusals


class Session:
    """A stand-in for a Spark session, of which only the identity matters."""


@pytest.fixture
def scripted_answers(monkeypatch):
    """A function that scripts the workers' answers and returns the list of timeouts."""
    waited: list[float] = []

    def answers(*given) -> list[float]:
        left = iter(given)

        def run(*_, timeout, **__):
            waited.append(timeout)
            return next(left)

        monkeypatch.setattr(builds, "run", run)
        return waited

    return answers


@pytest.mark.parametrize("answer", [Workers(), Workers(room=5), Workers("they have pyarrow 0.1")])
def test_answer_is_cached_per_session(scripted_answers, answer):
    waited, session = scripted_answers(answer), Session()
    expected = Reason(ReasonCode.NOT_READ_BY_ARROW, WORKERS, answer.problem) if answer.problem else answer
    assert refused_before(session) is None
    assert [expected] * 2 == [workers_of(session, 3.0) for _ in range(2)]
    assert refused_before(session) == (expected if answer.problem else None)
    assert [3.0] == waited


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reason(ReasonCode.BUILD_TIMED_OUT, "it", "3 seconds"), "no answer in 3 seconds"),
        (Reason(ReasonCode.BUILD_FAILED, "it", "SparkException"), "SparkException"),
    ],
)
def test_missing_answer_is_requested_again_after_minutes(scripted_answers, answer, why):
    """Each request is a job that fails or times out: once in ten minutes, not once per query."""
    waited, session, minute = scripted_answers(answer, answer, Workers()), Session(), 60.0
    times = [0.0]
    state_of(session).refusals.clock = lambda: times[0]
    expected = Reason(ReasonCode.NOT_READ_BY_ARROW, WORKERS, why)
    found = []
    for at in (0, 1, 9, 11, 12, 22):
        times[0] = at * minute
        found.append((refused_before(session), workers_of(session, 3.0)))
    refused = (expected, expected)
    assert [(None, expected), refused, refused, (None, expected), refused, (None, Workers())] == found
    assert [3.0] * 3 == waited


def test_answers_of_several_workers_are_summed_up():
    own = version()
    assert own.startswith(f"pyarrow {pa.__version__}")
    assert Workers() == summed_up([(own, None)] * 2)
    assert Workers(room=5) == summed_up([(own, 7), (own, None), (own, 5)])
    assert (
        f"they have no scanprune (x); pyarrow 1, and the driver has {own}"
        == summed_up([("pyarrow 1", None), (own, None), ("no scanprune (x)", None)]).problem
    )


ELSEWHERE = """
import pickle, resource, sys
sys.modules.update(dict.fromkeys(["connectors", "pruning"]))
ask = pickle.load(sys.stdin.buffer)
for limit in (resource.RLIM_INFINITY, 8 << 30):
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    (batch,) = ask(iter([None]))
    print(*batch.to_pylist()[0].values(), sep="|")
"""


def test_workers_without_the_package_answer():
    """The probe is sent by value, because importing it by name would fail the job."""
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], input=cloudpickle.dumps(probe()), capture_output=True, check=False
    )
    free, limited = run.stdout.decode().splitlines()
    answer, room = free.split("|")
    assert ("no scanprune (", "None") == (answer[:14], room)
    assert 4 << 30 < int(limited.split("|")[1]) < 8 << 30


@pytest.mark.spark
def test_late_workers_keep_spark_reader(spark, tmp_path, monkeypatch):
    def slow(batches):
        while not Path(tmp_path, "end").exists():
            time.sleep(0.02)
        yield from batches

    pq.write_table(pa.table({"k": range(100)}), tmp_path / "t.parquet", row_group_size=10)
    monkeypatch.setattr(state_of(spark).slot(KnownWorkers), "answer", None)
    monkeypatch.setattr(state_of(spark), "refusals", Refusals())
    with monkeypatch.context() as patch:
        patch.setattr(arrow_workers, "probe", lambda: slow)
        some = replace(ARROW, build_timeout_seconds=1.0)
        df = pruned_read(spark, str(tmp_path / "t.parquet"), keys={"k": [5]}, options=some)
        (tmp_path / "end").touch()
    assert ["no answer in 1 seconds" in each for each in refusals(df)] == [True]
    assert 1 == df.where("k = 5").count()
    monkeypatch.setattr(state_of(spark), "refusals", Refusals())
    assert is_by_arrow(pruned_read(spark, str(tmp_path / "t.parquet"), keys={"k": [5]}, options=ARROW))
