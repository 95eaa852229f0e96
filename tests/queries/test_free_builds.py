"""Materialized builds cost nothing beside their latency, so that they filter scans of few bytes and many rows, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pruning import explain
from tests.costs import FREE_BUILDS, NO_FIXED_COSTS
from tests.queries.star import files

pytestmark = pytest.mark.spark

PEOPLE, BOUGHT = 20_000, 600_000
# `bought` is sorted by person, and has fewer bytes than `people`.
OPTIONS = FREE_BUILDS
QUERY = """
    SELECT b.id, p.name FROM {at}bought b
    JOIN {at}people p ON b.person = p.person JOIN {at}places c ON p.place = c.place
    WHERE c.city = 'c3'"""


@pytest.fixture(scope="module", params=["delta", "parquet"])
def at(spark, ways, request, tmp_path_factory) -> str:
    """The prefix of views: people in places, a fiftieth of them in each city, and their purchases."""
    folder, format_ = tmp_path_factory.mktemp(f"free_{request.param}"), request.param
    tables = {
        "bought": spark.range(0, BOUGHT, 1, 1).selectExpr("id % 7 AS id", f"id div {BOUGHT // PEOPLE} AS person"),
        "people": spark.range(0, PEOPLE, 1, 1).selectExpr(
            "id AS person",
            "id % 500 AS place",
            "sha2(cast(id AS string), 256) AS name",
            "sha2('x' || id, 512) AS other",
        ),
        "places": spark.range(0, 500, 1, 1).selectExpr("id AS place", "concat('c', id % 50) AS city"),
    }
    for name, df in tables.items():
        ways.stored(f"free_{format_}_{name}", df, str(folder / name), format_)
    return f"free_{format_}_"


def leaves(df) -> list[str]:
    found = df._jdf.queryExecution().optimizedPlan().collectLeaves()
    return [found.apply(index).nodeName() for index in range(found.size())]


def codes(df) -> set[str]:
    return {each.code.name for each in explain(df).reasons}


def filters(df) -> dict[str, list[tuple[str, ...]]]:
    """The columns of the filters of each pruned scan."""
    return {each.table: [it.columns for it in each.filters] for each in explain(df).tables}


@pytest.mark.full
def test_scan_of_few_bytes_and_many_rows_is_filtered(ways, at):
    _, result = ways.agreed(QUERY.format(at=at), OPTIONS)
    assert {"bought": [("person",)]} == filters(result)
    assert ["LocalRelation", "LocalRelation", "LogicalRelation"] == sorted(leaves(result))
    assert {"bought": (1, 1, 1)} == files(result)
    assert {"READ_BY_BUILD"} == codes(result)


def test_build_that_the_query_runs_again_costs_its_time(ways, at):
    """The build reads for longer than its keys save, unless the query joins its rows in place of reading them again."""
    costs = replace(NO_FIXED_COSTS, decoded_byte=60.0)
    for strategy, expected in (("NONE", {"people": [("place",)]}), ("AUTO", {"bought": [("person",)]})):
        options = replace(OPTIONS, broadcast_strategy=strategy).with_limits(costs=costs)
        _, result = ways.agreed(QUERY.format(at=at), options)
        assert expected == filters(result)


@pytest.mark.full
def test_build_over_its_expected_rows_is_not_run_again(ways, at):
    # A third of the 400 people is expected to have a name.
    costs = replace(NO_FIXED_COSTS, decoded_byte=60.0)
    options = OPTIONS.with_limits(costs=costs, joined_rows=200, joined_long_rows=200)
    _, result = ways.agreed(QUERY.format(at=at) + " AND length(p.name) > 0", options)
    assert {"people": [("place",)]} == filters(result)
    assert "TOO_MANY_ROWS" in codes(result)


def test_materialized_join_replaces_its_broadcast_hint(ways, at):
    """The places are materialized, so their join gets a broadcast hint; then the rows of that join are materialized,
    too.
    """
    query = """
        SELECT b.id, c.* FROM {at}bought b JOIN (
            SELECT * FROM {at}people WHERE place IN (SELECT place FROM {at}places WHERE city = 'c3')
        ) c ON b.person = c.person"""
    _, result = ways.agreed(query.format(at=at), OPTIONS)
    assert {"bought": [("person",)]} == filters(result)
    assert ["LocalRelation", "LogicalRelation"] == sorted(leaves(result))
