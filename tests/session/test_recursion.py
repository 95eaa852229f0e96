"""Recursive queries of an enabled session: Spark plans each step by itself, and the steps are one query."""

from __future__ import annotations

import pytest

from connectors.session.session_pruning import records
from pruning import history
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS

pytestmark = pytest.mark.spark

STEPS = 12
CHAIN = f"""
    WITH RECURSIVE r(day, step) AS (
        SELECT day, 0 FROM {{star}}days WHERE day = 0
        UNION ALL
        SELECT x.day + 1, step + 1 FROM r JOIN (
            SELECT DISTINCT f.day FROM {{star}}sales f JOIN {{days}} d ON f.day = d.day
        ) x ON r.day = x.day WHERE step < {STEPS}
    )
    SELECT * FROM r"""
FIRST_MONTH = "(SELECT day FROM {star}days WHERE month = 0)"
# All days of the first month, drawn anew in each step.
DRAWN = "(SELECT day FROM {star}days WHERE month = 0 AND rand() + day >= 0)"


@pytest.mark.parametrize(("days", "kept"), [(FIRST_MONTH, 2), (DRAWN, None)], ids=["table", "drawn"])
def test_steps_of_a_recursion_are_one_query(spark, star, enabled, days, kept):
    """A side that may differ from run to run is drawn by each step, so no build of it counts for all of them."""
    query = CHAIN.format(star=star, days=days.format(star=star))
    rows = Rows(spark.sql(query).collect())
    assert STEPS + 1 == len(rows)
    enabled()
    before = records(spark)
    assert rows == Rows(spark.sql(query).collect())
    # The history holds a hundred entries, perhaps of other tests.
    assert 1 == len([each for each in records(spark) if not any(each is one for one in before)])
    planned = [(each.planned.files_kept, each.planned.files_total) for each in history(spark)[0].tables]
    assert ([] if kept is None else [(kept, FILES)]) == planned


# All days, so that no filter is worth its build.
EVERY = "(SELECT day FROM {star}days)"


@pytest.mark.parametrize(("days", "plans"), [(FIRST_MONTH, 2), (DRAWN, 2), (EVERY, 1)], ids=["table", "drawn", "every"])
def test_a_recursion_is_planned_once_and_its_refusal_is_known(spark, star, enabled, planned, days, plans):
    """Spark plans each step anew; by the second run the refusal of the first is known, so it is not planned at all."""
    query = CHAIN.format(star=star, days=days.format(star=star))
    enabled(OPTIONS.with_limits(refused_query_seconds=600.0))
    for _ in range(2):
        assert STEPS + 1 == len(spark.sql(query).collect()), days
    assert plans == planned()
