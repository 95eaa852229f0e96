"""Filters by scalar subqueries of no, one and several rows: `prune()` gives the rows of the query, or its error.

Spark raises an error where a scalar subquery gives several rows, but not where it drops the subquery while it plans.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pruning import PruningCache, explain
from pruning.reasons import ReasonCode
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS, files
from tests.unchanged import is_unchanged

pytestmark = pytest.mark.spark

SUM = "SELECT count(*), sum(amount) FROM {sales} f WHERE "
# No file has a day of more than 159.
OUTSIDE = "(SELECT day + 1000 FROM {days} WHERE day = 30)"
TWO_DAYS = "(SELECT day FROM {days} WHERE day BETWEEN 30 AND 31)"
LEAST = "(SELECT min(day) FROM {days} WHERE day > 1)"
GREATEST = "(SELECT max(day) FROM {days} WHERE day > 1)"
SEVERAL = {
    "two": TWO_DAYS,
    "equal": "(SELECT month FROM {days} WHERE day BETWEEN 60 AND 61)",
    "null": "(SELECT IF(day > 60, NULL, month) FROM {days} WHERE day BETWEEN 60 AND 61)",
    "all-null": "(SELECT IF(day > 1, NULL, month) FROM {days} WHERE day BETWEEN 60 AND 61)",
    "outside": "(SELECT day + 1000 FROM {days} WHERE day BETWEEN 60 AND 61)",
}


@pytest.fixture
def text(star):
    """The text of a query over the star."""
    return lambda query: query.format(sales=f"{star}sales", days=f"{star}days", items=f"{star}items")


@pytest.fixture
def pruned_error(spark, text, pruned_frame):
    """The pruned DataFrame of a query, after it and the query raised the error of a subquery with several rows."""

    def run(query: str, options=OPTIONS, **kwargs):
        df = spark.sql(text(query))
        result = pruned_frame(df, options=options, **kwargs)
        for each in (df, result):
            with pytest.raises((Py4JJavaError, PySparkException), match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
                each.collect()
        return result

    return run


def failed(df) -> list[str]:
    return [each.detail for each in explain(df).reasons if each.code is ReasonCode.BUILD_FAILED]


NO_KEY = ["a scalar subquery gave 2 rows, for which Spark raises an error"]


@pytest.mark.parametrize("strategy", ["AUTO", "NONE"])
@pytest.mark.parametrize("operator", ["=", ">"])
@pytest.mark.parametrize("rows", SEVERAL)
def test_several_rows_raise_and_are_no_key(pruned_error, rows, operator, strategy):
    result = pruned_error(f"{SUM} f.day {operator} {SEVERAL[rows]}", replace(OPTIONS, broadcast_strategy=strategy))
    assert ({}, NO_KEY) == (files(result), failed(result))


def test_cached_build_of_several_rows_is_no_key(pruned_error):
    cache = PruningCache()
    for _ in range(2):
        result = pruned_error(f"{SUM} f.day = {SEVERAL['outside']}", cache=cache)
        assert ({}, NO_KEY) == (files(result), failed(result))


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ("SELECT day FROM {days} WHERE day = 30", 1),
        ("SELECT day FROM {days} WHERE day = -1", 0),
        ("SELECT IF(day > 1, NULL, day) FROM {days} WHERE day = 30", 0),
        ("SELECT max(day) FROM {days} WHERE month = 2", 1),
        ("SELECT max(day) FROM {days} WHERE month = -1", 0),
    ],
    ids=["one", "none", "null", "aggregate", "aggregate-of-none"],
)
@pytest.mark.parametrize("strategy", ["AUTO", "NONE"])
def test_at_most_one_row_is_a_key(pruned, rows, kept, strategy):
    _, result = pruned(f"{SUM} f.day = ({rows})", replace(OPTIONS, broadcast_strategy=strategy))
    assert {"sales": (kept, kept, FILES)} == {name.rpartition("_")[2]: each for name, each in files(result).items()}
    assert [] == failed(result)


# A limit is no build where its rows cannot be joined; statistics show that no file has such a day, and count no rows.
@pytest.mark.parametrize(("limit", "expected"), [(1, {"sales": (0, 0, FILES)}), (2, {})])
def test_statistics_bound_only_one_row(pruned, limit, expected):
    options = replace(OPTIONS, broadcast_strategy="NONE")
    _, result = pruned(f"{SUM} f.day = (SELECT day FROM {{days}} WHERE day > 200 LIMIT {limit})", options)
    assert expected == {name.rpartition("_")[2]: each for name, each in files(result).items()}
    assert ReasonCode.UNREPEATABLE_KEYS in {each.code for each in explain(result).reasons}


# Fails if Spark learns while planning that a scan or a build has no row, because it then drops the subquery.
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize(
    "query",
    [
        pytest.param(f"{SUM} f.day = {OUTSIDE} AND f.item = {TWO_DAYS}", id="two-scalars"),
        pytest.param(f"{SUM} f.day = (SELECT day FROM {{days}} WHERE day < 0) AND f.item = {TWO_DAYS}", id="no-row"),
        pytest.param(
            "SELECT f.* FROM {sales} f JOIN (SELECT day + 1000 AS day FROM {days} WHERE day = 30) d ON f.day = d.day"
            f" WHERE f.item = {TWO_DAYS}",
            id="join",
        ),
        pytest.param(
            "SELECT f.*, (SELECT day FROM {days} WHERE day < 2) FROM {sales} f WHERE f.day = " + OUTSIDE, id="selected"
        ),
    ],
)
def test_skipped_scan_hides_no_error_of_another_subquery(pruned_error, conf, query, adaptive):
    conf("spark.sql.adaptive.enabled", adaptive)
    result = pruned_error(query)
    assert [(0, FILES)] == [(each.files_kept, each.files_total) for each in explain(result).tables]


def test_empty_build_hides_no_error_of_another_subquery(pruned_error, conf):
    conf("spark.sql.adaptive.enabled", "false")
    query = "SELECT f.* FROM {sales} f JOIN {days} d ON f.day = d.day WHERE d.month = -1 AND f.item = " + TWO_DAYS
    result = pruned_error(query)
    assert [(0, FILES)] == [(each.files_kept, each.files_total) for each in explain(result).tables]


def test_empty_build_hides_no_error_of_a_correlated_subquery(pruned_error, conf):
    """The subquery is a join, which Spark would drop together with a side without rows."""
    conf("spark.sql.adaptive.enabled", "false")
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    inner = "SELECT i.item, (SELECT d.day FROM {days} d WHERE d.month = i.item) AS found FROM {items} i"
    query = f"SELECT v.found FROM ({inner}) v JOIN {{sales}} f ON v.item = f.item JOIN {{days}} o ON f.day = o.day"
    result = pruned_error(f"{query} WHERE o.month = -1")
    assert [(0, FILES)] == [(each.files_kept, each.files_total) for each in explain(result).tables]


# Spark drops the subquery of a filter that it knows to be false.
def test_dropped_subquery_of_several_rows_raises_nothing(spark, text, pruned_frame):
    df = spark.sql(text(f"{SUM} f.item = {TWO_DAYS} AND false"))
    result = pruned_frame(df, options=OPTIONS)
    assert [(0, None)] == df.collect() == result.collect()
    assert is_unchanged(df, result)


def test_statically_skipped_scan_raises(pruned_error):
    result = pruned_error(f"{SUM} f.day < 0 AND f.day = {TWO_DAYS}")
    assert {} == files(result)


# A correlated subquery is a join that raises the error for a row of the left side, which keys may not drop before.
def test_keys_do_not_pass_a_correlated_subquery(pruned_error):
    inner = "SELECT f.day, (SELECT d.day FROM {days} d WHERE d.month = f.day) AS found FROM {sales} f"
    result = pruned_error(f"SELECT * FROM ({inner}) v JOIN {{days}} o ON v.day = o.day WHERE o.month = 5")
    stops = [each for edge in explain(result).edges for each in edge.stops]
    assert ["LeftSingle join"] == [each.partition(":")[0] for each in stops]
    assert "sales" not in files(result)


@pytest.mark.parametrize(
    ("condition", "computed"),
    [
        ("f.amount > (SELECT max(day) FROM {days})", "CAST((subquery) AS bigint)"),
        ("(SELECT max(day) FROM {days}) < f.amount", "CAST((subquery) AS bigint)"),
        ("f.amount = (SELECT day FROM {days} WHERE day = 30)", "CAST((subquery) AS bigint)"),
        (
            "cast(f.day AS timestamp) > (SELECT date_add(DATE '1970-01-01', max(day)) FROM {days})",
            "CAST(day AS timestamp)",
        ),
        ("f.day = (SELECT max(day) FROM {days}) + 1", "(subquery) + 1"),
        ("f.day - (SELECT max(day) FROM {days}) = 1", "(day - (subquery)) = 1"),
        (
            f"f.amount BETWEEN {LEAST} AND {GREATEST}",
            "CAST((subquery) AS bigint)",
        ),
    ],
    ids=["greater", "mirrored", "equal", "probe", "plus", "minus", "field"],
)
def test_computed_scalar_has_a_reason(spark, text, pruned_frame, condition, computed):
    df = spark.sql(text(SUM + condition))
    result = pruned_frame(df, options=OPTIONS)
    assert Rows(df.collect()) == Rows(result.collect())
    plan = explain(result)
    said = [*(each for edge in plan.edges for each in edge.stops), *map(str, plan.reasons)]
    assert {f"{computed}: the key is computed, and no values of a column follow from it"} == set(said)
