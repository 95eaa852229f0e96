"""`SparkPlan`: the plan is read and rewritten in few calls, and lines beside Spark's JSON say which rows repeat."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from connectors.spark.jvm import optimized_plan
from connectors.spark.plan_reader import SparkPlan
from pruning.query.broadcasts import BroadcastSide
from pruning.query.plan import Grouping, Join, relations_of

pytestmark = pytest.mark.spark

ROWS = (
    "(SELECT id % 3 AS k, id AS n, double(id) AS d, string(id) COLLATE UTF8_LCASE AS word,"
    " cast(id AS decimal(38, 2)) AS wide, cast(id AS decimal(28, 2)) AS c FROM range(20))"
)


@pytest.fixture
def joined(spark, tmp_path):
    """A join of a table with itself."""
    spark.range(0, 9, 1, 1).selectExpr("id % 3 AS k", "id AS n").write.parquet(str(tmp_path / "rows"))
    one = spark.read.parquet(str(tmp_path / "rows"))
    return one.join(one.where("n > 2").withColumnRenamed("n", "m"), "k")


def test_plan_is_read_in_few_calls_whatever_its_size(joined, bridge_calls):
    for df in (joined, joined.unionAll(joined)):
        optimized = optimized_plan(df)
        SparkPlan.of(df, optimized)
        # The analysed plan in two calls, an object that has read the plan, and its packed text.
        assert 4 == bridge_calls(lambda df=df, optimized=optimized: SparkPlan.of(df, optimized))


def test_nodes_are_replaced_in_few_calls(joined, bridge_calls):
    plan = SparkPlan.of(joined)
    first, second = relations_of(plan.root)
    (join,) = (each for each in plan.root.walk() if isinstance(each, Join))
    leaf = plan.node(first).newInstance()
    made = []
    others = {first.id: leaf, second.id: plan.node(second)}
    # Two nodes, and the rewrite.
    assert 3 == bridge_calls(lambda: made.append(plan.replaced(plan.root, others, {join.id: BroadcastSide.LEFT})))
    text = made[0].toString()
    assert "leftHint=(strategy=broadcast)" in text
    assert f"#{leaf.output().head().exprId().id()}" in text
    assert text != plan.node(plan.root).toString()
    assert plan.replaced(plan.root, {}).equals(plan.node(plan.root))


def test_part_of_a_plan_is_rewritten_by_the_places_in_the_whole(joined):
    plan = SparkPlan.of(joined)
    first, second = relations_of(plan.root)
    (part,) = (each for each in plan.root.walk() if second in each.children)
    leaf = plan.node(second).newInstance()
    made = plan.replaced(part, {first.id: plan.node(first).newInstance(), second.id: leaf})
    assert made.children().head().equals(leaf)
    plan._java.give(1, leaf)
    with pytest.raises(Py4JJavaError, match="node 1 of the plan is another one than was read"):
        plan._java.replaced(1, plan.root.id, "1", "")


def test_hint_of_the_query_stays(joined):
    plan = SparkPlan.of(joined.hint("merge").join(joined.select("k").distinct(), "k"))
    join = next(each for each in plan.root.walk() if isinstance(each, Join))
    assert "leftHint=(strategy=merge)" in plan.node(join).toString().splitlines()[0]
    assert plan.node(plan.root).equals(plan.replaced(plan.root, {}, {join.id: BroadcastSide.LEFT}))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("k, sum(n)", True),
        ("k, try_sum(n)", False),
        ("k, sum(c)", True),
        ("k, try_sum(c)", False),
        ("k, max(d)", True),
        ("k, string(max(d))", False),
        ("k, string(max(n))", True),
        ("k, max(word)", False),
        ("word, max(n)", False),
        ("k, max(n) + rand()", False),
    ],
)
def test_order_of_rows_that_no_text_shows(spark, columns, expected):
    plan = SparkPlan.of(spark.sql(f"SELECT {columns} FROM {ROWS} GROUP BY 1"))
    assert [expected] == [each.is_deterministic for each in plan.root.walk() if isinstance(each, Grouping)]


@pytest.mark.parametrize("ansi", [True, False])
def test_sum_of_many_digits_repeats_unless_it_is_null_on_overflow(spark, conf, ansi):
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    plan = SparkPlan.of(spark.sql(f"SELECT k, sum(wide) FROM {ROWS} GROUP BY k"))
    assert [ansi] == [each.is_deterministic for each in plan.root.walk() if isinstance(each, Grouping)]


def test_bytes_are_spark_s_own_estimate(joined):
    plan = SparkPlan.of(joined)
    assert int(str(plan.node(plan.root).stats().sizeInBytes())) == plan.nbytes(plan.root)
