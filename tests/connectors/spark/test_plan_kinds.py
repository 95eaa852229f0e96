"""Names of expressions and nodes in the rules are classes of Spark; a rule with a wrong name would never apply."""

from __future__ import annotations

import pytest

from pruning.keys.summary import COMPARISONS
from pruning.query import build_selection as selection
from pruning.query import expressions as order
from pruning.query import expressions as static_filters
from pruning.query import lineage

pytestmark = pytest.mark.spark

CATALYST = "org.apache.spark.sql.catalyst"
EXPRESSIONS = {
    *order._ANY_VALUES,
    *order._EXACT_VALUES,
    *order._EXACT_KINDS,
    *order._RANKS,
    *order._WHOLE,
    *static_filters._FLIPPED,
    *COMPARISONS,
}
NODES = {*selection._REPEATABLE, *lineage._STOPS}
# Classes of other packages.
ELSEWHERE = {
    "InMemoryRelation": "org.apache.spark.sql.execution.columnar",
    "LogicalRDD": "org.apache.spark.sql.execution",
    "LogicalRelation": "org.apache.spark.sql.execution.datasources",
}


def is_class(spark, name: str) -> bool:
    try:
        spark._jvm.java.lang.Class.forName(name)
    except Exception:  # noqa: BLE001 - a Java error
        return False
    return True


def test_expression_names_are_classes_of_spark(spark):
    assert [] == [each for each in sorted(EXPRESSIONS) if not is_class(spark, f"{CATALYST}.expressions.{each}")]


def test_node_names_are_classes_of_spark(spark):
    logical = f"{CATALYST}.plans.logical"
    assert [] == [each for each in sorted(NODES) if not is_class(spark, f"{ELSEWHERE.get(each, logical)}.{each}")]
