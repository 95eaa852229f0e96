"""A query that cannot be pruned costs nothing: no optimization, no listing, no job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.pipeline import pruned_query
from connectors.pipeline.records import record_of
from connectors.spark.jvm import optimized_plan
from pruning import PruningOptions, explain, prune, report
from pruning.cost.rates import CostRates
from pruning.reasons import ReasonCode, size
from sample_data.rows import Rows
from tests.connectors.delta.test_file_index import jobs
from tests.costs import NO_FIXED_COSTS
from tests.queries.star import OPTIONS
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

JOIN = "SELECT s.* FROM {sales} s JOIN {days} d ON s.day = d.day WHERE month = 2"
SUBQUERY = "SELECT count(*) FROM {sales} WHERE day IN (SELECT day FROM {days} WHERE month = 2)"
# A join of small tables is no candidate at any depth; without a join, size does not matter.
NO_CANDIDATES = {
    "small": (JOIN, PruningOptions()),
    "small in a subquery": (SUBQUERY, PruningOptions()),
    "no join": ("SELECT day, max(amount) FROM {sales} WHERE item < 3 GROUP BY day", OPTIONS),
    "a limit without an order": ("SELECT day FROM (SELECT * FROM {sales} LIMIT 3) ORDER BY day", OPTIONS),
    "first rows, switched off": ("SELECT * FROM {sales} ORDER BY day LIMIT 3", replace(OPTIONS, top_k=False)),
    "a union": ("SELECT day FROM {sales} UNION SELECT day FROM {days}", OPTIONS),
    "a name for a query": ("WITH d AS (SELECT * FROM {sales} WHERE rand() < 2) TABLE d UNION ALL TABLE d", OPTIONS),
    "no files": ("SELECT * FROM range(9) r JOIN (VALUES (3)) v(k) ON r.id = v.k", OPTIONS),
}
CANDIDATES = {
    "large": (JOIN, OPTIONS),
    "large in a subquery": ("SELECT (SELECT max(s.day) FROM {sales} s JOIN {days} d ON s.day = d.day) AS k", OPTIONS),
    "a table beside its own rows": ("SELECT * FROM {sales} WHERE amount = (SELECT max(day) FROM {days})", OPTIONS),
    "rows of two tables in both": ("SELECT day FROM {sales} INTERSECT SELECT day FROM {days}", OPTIONS),
    "first rows of an order": (
        "SELECT day FROM {sales} ORDER BY amount LIMIT 3 OFFSET 2",
        OPTIONS,
    ),
    "a rank of all rows": ("SELECT *, rank() OVER (ORDER BY day) FROM {sales}", OPTIONS),
    "small, but always": (JOIN, PruningOptions(always=True)),
}


@pytest.fixture
def query(spark, star):
    return lambda text: spark.sql(text.format(sales=f"{star}sales", days=f"{star}days"))


@pytest.fixture
def plan_reads(monkeypatch):
    """A counter of how many plans were read."""
    reader = pruned_query.SparkPlan.read

    def read(*given, **named):
        read.count += 1
        return reader(*given, **named)

    read.count = 0
    monkeypatch.setattr(pruned_query.SparkPlan, "read", read)
    return read


def is_optimised(df) -> bool:
    return bool(df._jdf.queryExecution().tracker().phases().contains("optimization"))


@pytest.mark.parametrize("case", NO_CANDIDATES)
def test_query_that_cannot_be_pruned_is_not_read(spark, query, pruned_frame, plan_reads, case):
    text, options = NO_CANDIDATES[case]
    df = query(text)
    before = jobs(spark)
    result = pruned_frame(df, options=options)
    assert (before, False) == (jobs(spark), is_optimised(df))
    assert Rows(df.collect()) == Rows(result.collect())
    assert is_unchanged(df, result)
    assert 0 == plan_reads.count


@pytest.mark.parametrize("case", CANDIDATES)
def test_plan_of_a_candidate_is_read(query, pruned_frame, plan_reads, case):
    text, options = CANDIDATES[case]
    df = query(text)
    assert Rows(df.collect()) == Rows(pruned_frame(df, options=options).collect())
    assert 1 == plan_reads.count


@pytest.mark.parametrize("case", NO_CANDIDATES)
def test_unread_query_has_the_explanation_of_a_read_one(query, monkeypatch, case):
    text, options = NO_CANDIDATES[case]
    found = explain(prune(query(text), options=options))
    monkeypatch.setattr(pruned_query, "is_candidate", lambda *_, **__: True)
    wanted = explain(prune(query(text), options=options))
    assert str(wanted) == str(found)
    assert wanted.to_dict() == found.to_dict()
    assert ("NOT_WORTH" in str(found.to_dict())) == case.startswith("small")


def test_report_of_an_unread_query_is_empty(query, pruned_frame):
    result = pruned_frame(query(JOIN))
    assert 750 == result.count()
    assert () == report(result).tables


def test_expected_seconds_are_those_before_pruning_whether_or_not_a_query_was_read(query):
    unread, pruned = (record_of(prune(query(JOIN), options=each)) for each in (PruningOptions(), OPTIONS))
    assert len(pruned.plan.levels) == 1
    seconds = pruned.expected_seconds(CostRates(row=0.0))
    assert unread.examined().expected_seconds(CostRates(row=0.0)) == seconds > 0
    assert pruned.expected_seconds(CostRates(row=10.0)) > pruned.expected_seconds(CostRates(row=5.0)) > seconds
    assert record_of(prune(query(JOIN), options=PruningOptions(enabled=False))).expected_seconds() is None


def test_failed_explanation_of_an_unread_query_is_a_reason(query, monkeypatch):
    def fails(*_: object) -> None:
        raise LookupError

    df = prune(query(JOIN))
    monkeypatch.setattr(pruned_query.SparkPlan, "of", fails)
    assert [ReasonCode.PRUNING_FAILED] == [each.code for each in explain(df).reasons]


@pytest.mark.full
def test_time_travel_uses_the_size_of_its_version(spark, tmp_path):
    folder = str(tmp_path / "facts")
    spark.range(3000).write.format("delta").save(folder)
    spark.sql(f"DELETE FROM delta.`{folder}`")
    text = "SELECT f.id FROM delta.`{}` {} f JOIN range(3) r ON f.id = r.id"
    options = PruningOptions().with_limits(costs=replace(NO_FIXED_COSTS, driver_build=1000.0))
    found = [prune(spark.sql(text.format(folder, version)), options=options) for version in ("", "VERSION AS OF 0")]
    assert [pruned_query.UntouchedQuery, pruned_query.PrunedQuery] == [type(record_of(it)) for it in found]


def test_stream_is_refused_with_one_warning_that_names_what_prunes_it(spark, caplog):
    df = spark.readStream.format("rate").load().join(spark.range(3).toDF("value"), "value")
    result = prune(df)
    assert is_unchanged(df, result)
    assert [("scanprune", "WARNING")] == [(each.name, each.levelname) for each in caplog.records]
    assert "the query is a stream" in caplog.text
    assert "try: enable(spark) before the stream starts" in caplog.text
    caplog.clear()
    for found in (explain(result), explain(df)):
        assert [ReasonCode.STREAMING] == [each.code for each in found.reasons]
        assert "try: enable(spark) before the stream starts" in found.verdict
    assert "try: enable(spark) before the stream starts" in report(result).verdict
    assert "" == caplog.text
    assert [ReasonCode.STREAMING] == [each.code for each in explain(df, run_builds=True).reasons]


def test_table_without_files_is_not_told_to_have_bytes(spark, tmp_path):
    folder = str(tmp_path / "empty")
    spark.range(0).write.format("delta").save(folder)
    text = f"SELECT e.id FROM delta.`{folder}` e JOIN range(3) r ON e.id = r.id"
    options = PruningOptions()
    assert [] == spark.sql(text).collect() == prune(spark.sql(text), options=options).collect()
    reason = pruned_query.why_not_worth(spark, optimized_plan(spark.sql(text)), options)
    assert ReasonCode.NOT_WORTH == reason.code
    least = size(pruned_query.least_bytes(spark, options))
    assert f"no scan below a join, or below a limit over an order, has as much as {least} to read" == reason.detail
    assert {"empty": 0} == dict(explain(spark.sql(text), options=options).scans)
    result = prune(spark.sql(text), options=replace(OPTIONS, always=True))
    assert report(result).verdict.startswith("nothing to read: no file of empty")
