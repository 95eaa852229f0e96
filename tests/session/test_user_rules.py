"""Optimiser rules of users: a rule that changes the rows of a query each time that it meets it meets it once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.spark.jvm import JavaFile, instance, jvm_session, optimizer_rules, set_optimizer_rules
from pruning import report
from sample_data.rows import Rows
from tests.in_session import kept
from tests.queries.star import BY_JOB, DAYS_PER_MONTH, OPTIONS, ROWS_PER_DAY

pytestmark = pytest.mark.spark

# Rows that are too many to come to the driver, so that a job collects keys.
BUILDS = {"driver": OPTIONS, "rows": BY_JOB, "keys": BY_JOB.with_limits(joined_rows=1, joined_long_rows=1)}
QUERY = "SELECT s.*, month FROM {star}sales s JOIN {star}days d ON s.day = d.day WHERE month = 0"
ROWS = (DAYS_PER_MONTH - 1) * ROWS_PER_DAY


@pytest.fixture(params=["pre-CBO", "operator", "extra"])
def skips_a_day(spark, request) -> Iterator[None]:
    """A rule that leaves out the first row of the days."""
    # Spark calls the rules of two of these places until the plan stays.
    rule = instance(spark, JavaFile("tests", "RowSkippingRule"), "days", request.param != "pre-CBO")
    before = optimizer_rules(spark)
    match request.param:
        case "pre-CBO":
            jvm_session(spark).extensions().injectPreCBORule(rule.builder())
        case "operator":
            jvm_session(spark).extensions().injectOptimizerRule(rule.builder())
        case _:
            set_optimizer_rules(spark, [*before, rule])
    yield
    rule.switchOff()
    set_optimizer_rules(spark, before)


@pytest.mark.usefixtures("skips_a_day")
@pytest.mark.parametrize("build", BUILDS)
def test_a_rule_of_the_user_meets_a_query_once(spark, star, pruned_frame, build):
    query = QUERY.format(star=star)
    rows = Rows(spark.sql(query).collect())
    assert len(rows) == ROWS
    result = pruned_frame(spark.sql(query), options=BUILDS[build])
    assert rows == Rows(result.collect())
    # Without an order, other rows may be skipped in another run: such keys count only where the rows are joined.
    assert ([] if build == "keys" else [("sales", 2)]) == kept(report(result))
