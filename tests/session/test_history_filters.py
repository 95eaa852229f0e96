"""`history()` by table, tag, job group and execution."""

from __future__ import annotations

import json

import pytest

from connectors.measure.status_store import last_execution, sql_store
from connectors.session import session_pruning
from connectors.session.session_history import SessionHistory
from pruning import history
from pruning.errors import InvalidOptionError
from pruning.limits import LIMITS
from sample_data.rows import Rows
from tests.queries.star import FILES
from tests.session.conftest import ROWS

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _new_history(spark):
    session_pruning._state(spark).queries = SessionHistory(LIMITS.history_queries)


def verdicts(found) -> list[str]:
    return [each.verdict.split(" (")[0] for each in found]


PRUNED = f"read 2 of {FILES} files"


def test_queries_are_found_by_tag_and_job_group(spark, star, query, enabled):
    enabled()
    plain = f"SELECT sum(amount) FROM {star}sales WHERE day > 30"
    context = spark.sparkContext
    spark.addTag("nightly")
    try:
        stock = Rows(spark.sql(query).collect())
        spark.sql(plain).collect()
    finally:
        spark.removeTag("nightly")
    context.addJobTag("of context")
    context.setJobGroup("group 7", "")
    try:
        assert ROWS == spark.sql(query).count()
    finally:
        context.removeJobTag("of context")
        context.setLocalProperty("spark.jobGroup.id", None)
    assert stock == Rows(spark.sql(query).collect())
    assert 4 == len(history(spark))
    first, second = history(spark, tag="nightly")
    assert ("nightly",) == first.query.tags == second.query.tags
    assert [False, True] == [each.verdict.startswith(PRUNED) for each in (first, second)]
    assert [PRUNED] == verdicts(history(spark, tag="of context")) == verdicts(history(spark, job_group="group 7"))
    assert ("group 7", ("of context",)) == (
        history(spark)[1].query.job_group,
        history(spark, job_group="group 7")[0].query.tags,
    )
    assert [] == history(spark, tag="nightly", job_group="group 7") == history(spark, tag="night")
    assert (None, ()) == (history(spark)[0].query.job_group, history(spark)[0].query.tags)


def test_queries_are_found_by_table_and_execution(spark, star, query, enabled):
    enabled()
    spark.sql(query).collect()
    execution = last_execution(spark)
    spark.sql(f"SELECT count(*) FROM {star}days WHERE month > 1").collect()
    assert 2 == len(history(spark))
    assert [PRUNED] == verdicts(history(spark, execution_id=execution))
    assert execution == history(spark)[1].query.execution_id == history(spark)[1].query.root_execution_id
    assert [] == history(spark, execution_id=execution - 1)
    (path,) = (each for each in history(spark)[1].query.tables if each.endswith("/sales"))
    assert [PRUNED] == verdicts(history(spark, table="sales")) == verdicts(history(spark, table=path))
    assert 2 == len(history(spark, table="days"))
    assert [] == history(spark, table="items")
    assert execution == json.loads(json.dumps(history(spark, table="sales")[0].to_dict()))["query"]["execution_id"]


def test_table_is_found_by_its_name_in_the_catalog(spark, star, enabled):
    enabled()
    spark.table(f"{star}sales").write.format("delta").saveAsTable("found_by_name")
    try:
        assert 50 == spark.sql(f"SELECT * FROM found_by_name s JOIN {star}days d USING (day) WHERE day < 2").count()
        assert 1 == len(history(spark, table="found_by_name")) == len(history(spark, table="default.found_by_name"))
        assert "spark_catalog.default.found_by_name" in history(spark)[0].query.tables
    finally:
        spark.sql("DROP TABLE found_by_name")


def test_a_merge_is_found_by_its_own_execution(spark, star, enabled, tmp_path):
    target = str(tmp_path / "target")
    spark.table(f"{star}sales").repartitionByRange(FILES, "day").write.format("delta").save(target)
    arrived = str(tmp_path / "arrived")
    spark.table(f"{star}sales").where("day BETWEEN 60 AND 89").write.format("delta").save(arrived)
    enabled()
    spark.table(f"{star}sales").where("day = 1").collect()
    spark.sql(f"""
        MERGE INTO delta.`{target}` t USING delta.`{arrived}` s ON t.amount = s.amount
        WHEN MATCHED THEN UPDATE SET item = -s.item""")
    found = history(spark, table=target)
    (merge,) = {each.query.root_execution_id for each in found}
    assert "MergeIntoCommand" in str(sql_store(spark).execution(merge).get().physicalPlanDescription())
    assert {merge} != {each.query.execution_id for each in found}
    # The source is read by itself, too.
    assert verdicts(found) == verdicts(history(spark, execution_id=merge, table=target))
    assert any(each.startswith("read ") for each in verdicts(found))
    assert len(found) <= len(history(spark, execution_id=merge)) < len(history(spark))
    changed = spark.read.format("delta").load(target).where("day BETWEEN 60 AND 89 AND item <= 0")
    assert ROWS == changed.count()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"table": ""}, "by 'table' '': expected a text that is not empty"),
        ({"tag": 7}, "by 'tag' 7: expected a text"),
        ({"job_group": b"g"}, "by 'job_group' b'g': expected a text"),
        ({"execution_id": "7"}, "by 'execution_id' '7': expected an integer"),
        ({"execution_id": True}, "by 'execution_id' True: expected an integer"),
    ],
)
def test_properties_of_other_types_are_refused(spark, asked, message):
    with pytest.raises(InvalidOptionError, match=message):
        history(spark, **asked)
