"""Leaves of plans that Delta did not pin: no build reads them, and the query reads one snapshot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.connector_names import file_formats, snapshot_calls
from connectors.registry import optimized, table_of
from connectors.spark.plan_facts import plan_facts
from connectors.spark.plan_reader import SparkPlan
from pruning import explain, prune
from pruning.limits import LIMITS
from pruning.query.plan import relations_of
from pruning.reasons import Reason, ReasonCode
from sample_data.rows import Rows
from tests.costs import ALWAYS

pytestmark = [pytest.mark.spark, pytest.mark.quick(3)]

SKIPPING, EXCLUDED = "spark.databricks.delta.stats.skipping", "spark.sql.optimizer.excludedRules"
PREPARING = "org.apache.spark.sql.delta.stats.PrepareDeltaScan"
SWITCHED_OFF = f"{SKIPPING} is false, so Delta pins no version"
NOT_PREPARED = "the plan was optimised without it, so Delta pinned no version"
# With ALWAYS a build's rows are joined as they are; with TWICE the query reads the build side again.
TWICE = replace(ALWAYS, broadcast_strategy="NONE")


class Lake:
    """Facts clustered by day, and days with their months."""

    def __init__(self, spark, folder: Path) -> None:
        self.spark, self.facts, self.days = spark, f"{folder}/facts", f"{folder}/days"
        facts = spark.range(0, 240, 1, 6).selectExpr("cast(id div 4 AS int) AS day", "id")
        facts.write.format("delta").option("delta.enableChangeDataFeed", "true").save(self.facts)
        days = spark.range(0, 60, 1, 1).selectExpr("cast(id AS int) AS day", "cast(id div 10 AS int) AS month")
        days.write.format("delta").save(self.days)

    def query(self, facts: str = "delta.`{facts}`", days: str = "delta.`{days}`"):
        text = f"SELECT f.day, f.id, d.month FROM {facts} f JOIN {days} d ON f.day = d.day WHERE d.month = 2"
        return self.spark.sql(text.format(facts=self.facts, days=self.days))

    def commit(self) -> None:
        """Deletes some selected days, and adds facts to deleted and to remaining ones."""
        self.spark.sql(f"DELETE FROM delta.`{self.days}` WHERE day < 25")
        self.spark.sql(f"INSERT INTO delta.`{self.facts}` (day, id) VALUES (21, 1000), (25, 1001)")


@pytest.fixture
def lake(spark, tmp_path) -> Lake:
    return Lake(spark, tmp_path)


def unpinned(df) -> dict[str, bool]:
    """True for the leaves of a query, by the names of their tables, that its plan does not pin."""
    plan = SparkPlan.of(df, optimized(df))
    found = plan_facts(plan, file_formats(plan.spark), snapshot_calls(plan.spark)).leaves
    for each in relations_of(plan.root):
        table = table_of(plan.spark, plan.node(each), LIMITS)
        assert (each.id not in found.files or each.id in found.unpinned) == isinstance(table, Reason), table
    return {each.table: each.id in found.unpinned for each in relations_of(plan.root)}


def skipping_off(_: Lake, conf, query):
    conf(SKIPPING, "false")
    return query()


def planned_before(_: Lake, conf, query):
    """The query was optimised while the conf was off, and is on again when it is pruned."""
    conf(SKIPPING, "false")
    df = query()
    df._jdf.queryExecution().optimizedPlan()
    conf(SKIPPING, "true")
    return df


def rule_excluded(lake: Lake, conf, query):
    """Delta's rule does not run, and our own pinning leaves tables with generated columns to it."""
    conf(EXCLUDED, PREPARING)
    for name in ("facts", "days"):
        path = getattr(lake, name)
        columns = ", ".join(" ".join(each) for each in lake.spark.read.format("delta").load(path).dtypes)
        own = f"{path} computed"
        computed = f"({columns}, twice INT GENERATED ALWAYS AS (day * 2))"
        lake.spark.sql(f"CREATE TABLE delta.`{own}` {computed} USING delta")
        lake.spark.sql(f"INSERT INTO delta.`{own}` SELECT *, day * 2 FROM delta.`{path}`")
        setattr(lake, name, own)
    return query()


WAYS = [(skipping_off, SWITCHED_OFF), (planned_before, NOT_PREPARED), (rule_excluded, NOT_PREPARED)]


@pytest.mark.parametrize(("way", "detail"), WAYS, ids=[way.__name__ for way, _ in WAYS])
@pytest.mark.parametrize("options", [ALWAYS, TWICE], ids=["rows joined", "read twice"])
def test_commits_after_pruning_give_the_rows_of_one_snapshot(lake, conf, pruned_before, way, detail, options):
    if pruned_before.frames.is_session and way is planned_before:
        pytest.skip("a session prunes what it plans itself")
    df = way(lake, conf, lake.query)
    result = pruned_before(lake.commit, df, options=options)
    # A query that Delta does not pin reads the versions of its action.
    found = Rows(result.collect())
    expected = Rows(lake.query().collect())
    assert 21 == len(expected)
    assert expected == found
    reasons = [(each.code, each.detail) for each in explain(result).reasons]
    assert (ReasonCode.SKIPPING_DISABLED, detail) in reasons
    assert ReasonCode.NOT_FILES not in [code for code, detail in reasons if detail]


@pytest.mark.parametrize("way", [way for way, _ in WAYS], ids=[way.__name__ for way, _ in WAYS])
def test_leaves_without_a_snapshot_are_not_pinned(lake, conf, way):
    assert {True} == set(unpinned(way(lake, conf, lake.query)).values())


@pytest.mark.parametrize(
    ("facts", "days"),
    [
        ("delta.`{facts}`", "delta.`{days}`"),
        ("delta.`{facts}` VERSION AS OF 0", "delta.`{days}`"),
        ("a_view_of_facts", "(SELECT * FROM delta.`{days}` LIMIT 50)"),
        ("(SELECT * FROM delta.`{facts}` WHERE id > (SELECT min(id) FROM delta.`{facts}`))", "delta.`{days}`"),
        ("delta.`{facts}`", "(SELECT DISTINCT * FROM delta.`{days}`)"),
    ],
)
def test_leaves_that_delta_prepared_are_pinned(spark, lake, facts, days):
    spark.read.format("delta").load(lake.facts).createOrReplaceTempView("a_view_of_facts")
    try:
        assert {False} == set(unpinned(lake.query(facts, days)).values())
    finally:
        spark.catalog.dropTempView("a_view_of_facts")


def test_an_older_version_is_not_pinned_by_the_plan_where_skipping_is_off(lake, conf, pruned_frame):
    conf(SKIPPING, "false")
    lake.commit()
    df = lake.query("delta.`{facts}` VERSION AS OF 0", "delta.`{days}` VERSION AS OF 0")
    assert {True} == set(unpinned(df).values())
    assert Rows(df.collect()) == Rows(pruned_frame(df, options=ALWAYS).collect())


def test_a_change_feed_is_no_table_of_files(spark, lake, pruned_frame):
    """The reader of a change feed is a relation without a file index."""
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(lake.facts)
    days = spark.read.format("delta").load(lake.days).where("month = 2")
    df = feed.join(days, "day")
    result = pruned_frame(df, options=ALWAYS)
    assert Rows(df.drop("_commit_timestamp").collect()) == Rows(result.drop("_commit_timestamp").collect())
    codes = {each.code for each in explain(result).reasons}
    # Its rows may be keys, where the query joins them.
    assert codes <= {ReasonCode.NOT_FILES, ReasonCode.READ_BY_BUILD}


def test_a_batch_of_a_stream_is_joined_with_pinned_tables_alone(spark, lake, conf, tmp_path):
    """The batch itself is a leaf of rows, and a table beside it is pinned unless skipping is off."""
    found = []

    def batch(df, _) -> None:
        days = spark.read.format("delta").load(lake.days).where("month = 2")
        joined = df.join(days, "day")
        found.append((unpinned(joined), Rows(joined.collect()) == Rows(prune(joined, options=ALWAYS).collect())))

    for at, switch in enumerate(("true", "false")):
        conf(SKIPPING, switch)
        stream = spark.readStream.format("delta").load(lake.facts).writeStream.foreachBatch(batch)
        checkpoint = str(tmp_path / f"checkpoint {at}")
        stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    assert [({"days": False}, True), ({"days": True}, True)] == found
