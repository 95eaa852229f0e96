"""A session learns from its queries: idle filters are left out for a while, risky ones are used in slow queries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.pipeline import earlier_queries
from connectors.session.session_pruning import records
from pruning import disable, enable
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.catalogue.facts import FILES, fact_rows
from tests.costs import NO_FIXED_COSTS, PATIENT

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("tables")]

# Few keys for the model, and one in each file.
SCATTERED = "SELECT f.id, pad FROM lesson_facts f JOIN (SELECT k FROM lesson_dims WHERE step = {}) d ON f.k = d.k"
# A scan of these files takes long, and rows are not worth testing.
COSTS = replace(NO_FIXED_COSTS, byte=1e4, spark_test=1e15, spark_lookup=1e15, spark_compared=1e15)
# The rows of builds are not joined.
LEARNING = replace(PATIENT, broadcast_strategy="NONE", cost_rates="SESSION")
IDLE = LEARNING.with_limits(costs=COSTS)
RISKY = LEARNING.with_limits(
    costs=replace(COSTS, build_job=4e6, driver_build=4e6), risked_seconds=0.0, risked_share=1e-3, risked_gain=0.0
)


@pytest.fixture(params=["delta", "parquet"])
def tables(spark, tmp_path, request):
    dims = spark.range(0, FILES * 20, 1, 1).selectExpr("cast(id AS int) AS k", "cast(id % 20 AS int) AS step")
    facts = fact_rows(spark).selectExpr("id", "k", "repeat(sha2(string(id), 512), 4) AS pad")
    for name, rows in (("lesson_facts", facts), ("lesson_dims", dims)):
        rows.write.format(request.param).save(str(tmp_path / name))
        spark.read.format(request.param).load(str(tmp_path / name)).createOrReplaceTempView(name)
    yield
    disable(spark)
    for name in ("lesson_facts", "lesson_dims"):
        spark.catalog.dropTempView(name)


def run(spark, text):
    """The rows of a query in an enabled session, its record, and the codes of the reasons against other filters."""
    rows = Rows(spark.sql(text).collect())
    record = records(spark)[0]
    # A later query makes a record forget its plan.
    return rows, record, {each.code for each in record.explanation().reasons}


def builds(record):
    return sum(map(len, record.plan.levels))


@pytest.mark.quick(2)
def test_a_filter_that_skipped_nothing_is_left_out_by_the_next_queries_of_its_shape(spark):
    texts = [SCATTERED.format(step % 20) for step in range(7)]
    expected = [Rows(spark.sql(text).collect()) for text in texts]
    enable(spark, options=IDLE)
    found = [run(spark, text) for text in texts]
    assert expected == [rows for rows, *_ in found]
    assert [1, 0, 1, 0, 0, 1, 0] == [builds(record) for _, record, _ in found]
    assert [] == [record.scans for _, record, _ in found if record.scans]
    left_out = [ReasonCode.IDLE_BEFORE in codes for *_, codes in found]
    assert [False, True, False, True, True, False, True] == left_out


def test_the_same_query_tries_an_idle_filter_again(spark):
    enable(spark, options=IDLE)
    assert [1, 0, 1, 0, 0, 1] == [builds(run(spark, SCATTERED.format(3))[1]) for _ in range(6)]


def test_narrower_keys_are_tried_at_once(spark):
    enable(spark, options=IDLE)
    wide, narrow = (SCATTERED.format(f"3 AND k < {most}") for most in (1000, 10))
    found = [run(spark, text) for text in (wide, wide, narrow)]
    assert [1, 0, 1] == [builds(record) for _, record, _ in found]
    assert [1] == [each.plan.files.kept_count for each in found[2][1].scans.values()]


def test_a_filter_that_skips_files_stays(spark):
    text = SCATTERED.format("3 AND k < 10")
    expected = Rows(spark.sql(text).collect())
    enable(spark, options=IDLE)
    for _ in range(3):
        rows, record, _ = run(spark, text)
        assert expected == rows
        assert [1] == [each.plan.files.kept_count for each in record.scans.values()]


def test_a_session_with_given_rates_learns_nothing(spark):
    enable(spark, options=replace(IDLE, cost_rates="GIVEN"))
    assert [1, 1] == [builds(run(spark, SCATTERED.format(3))[1]) for _ in range(2)]


# Parquet tells of few rows before footers are read, so that more is known of this risk.
@pytest.mark.parametrize("tables", ["delta"], indirect=True)
@pytest.mark.parametrize("seconds", [None, 1.0, 1000.0])
def test_a_risky_filter_is_used_once_a_query_of_its_shape_took_long(spark, monkeypatch, seconds):
    asked = []
    monkeypatch.setattr(earlier_queries, "execution_seconds", lambda _, execution: asked.append(execution) or seconds)
    texts = [SCATTERED.format(f"{step} AND k < 10") for step in (3, 4, 4)]
    expected = [Rows(spark.sql(text).collect()) for text in texts]
    enable(spark, options=RISKY)
    found = [run(spark, text) for text in texts]
    assert expected == [rows for rows, *_ in found]
    is_long = seconds == 1000.0
    assert [False, is_long, is_long] == [bool(record.scans) for _, record, _ in found]
    assert [True, not is_long, not is_long] == [ReasonCode.RISKY in codes for *_, codes in found]
    assert asked
