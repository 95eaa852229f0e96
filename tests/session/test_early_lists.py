"""File lists from memory: scans of Delta are those of stock Spark, and what is unknown is listed at once.

Each test compares rows, and the number of jobs while a plan is optimised, with those of a session that is not enabled.
"""

from __future__ import annotations

import pytest

from connectors.delta.file_index import PREPARING_RULE, pinned_plan
from pruning import enable, prune, report
from sample_data import confs
from sample_data.rows import Rows
from tests.connectors.delta.test_file_index import jobs
from tests.costs import FREE_BUILDS
from tests.session.early_lists import (
    EXCLUDED_RULES,
    OPTIONS,
    PREPARED,
    QUERIES,
    UNPREPARED,
    Planned,
    check_equal,
    indexes,
    interpreted,
    kind,
    lake,
    leaves,
    memory,
    on,
    own,
    scans,
    stock,
    warm,
)

__all__ = ["interpreted", "lake", "memory", "on", "own", "stock"]

pytestmark = pytest.mark.spark


def check_query(lake, stock, on, query):
    text, stocks, first = QUERIES[query]
    expected = warm(stock, lake(text))
    found = [Planned.of(on, lake(text)) for _ in range(2)]
    assert (stocks, first, 0) == (expected.jobs, *(each.jobs for each in found))
    check_equal(expected, *found)
    assert {PREPARED} == {name for each in found for name in indexes(each)}


@pytest.mark.quick(2)
@pytest.mark.parametrize("query", QUERIES)
def test_scans_are_those_of_stock_and_are_listed_once(lake, stock, on, query):
    check_query(lake, stock, on, query)


def test_only_unknown_scans_of_a_plan_are_listed(lake, stock, on):
    text = lake(
        "SELECT f.id FROM {facts} f JOIN {parts} p ON f.id = p.id JOIN {dims} d ON f.k = d.k WHERE p.part = 'p 0'"
    )
    other = text.replace("p 0", "p 1")
    assert 3 == warm(stock, text).jobs
    assert (3, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    found = Planned.of(on, other)
    assert 1 == found.jobs
    check_equal(warm(stock, other), found, Planned.of(on, other))
    assert 0 == Planned.of(on, other).jobs
    # A scan of another query with equal conditions.
    alone = lake("SELECT * FROM {parts} WHERE part = 'p 1' AND id IS NOT NULL")
    assert 0 == Planned.of(on, alone).jobs
    check_equal(warm(stock, alone), Planned.of(on, alone))


def test_one_list_serves_scans_that_delta_lists_each(lake, stock, on):
    text = lake("SELECT id, k + 1 AS k FROM {facts} WHERE id > 5 UNION ALL SELECT id, k FROM {facts} WHERE id > 5")
    expected = warm(stock, text)
    found = [Planned.of(on, text) for _ in range(2)]
    assert (2, 1, 0) == (expected.jobs, *(each.jobs for each in found))
    check_equal(expected, *found)


def test_the_state_of_a_version_is_made_once_for_all_its_scans(spark, lake, stock, on, tmp_path):
    text = "SELECT id FROM {own} WHERE id > 5 UNION ALL SELECT k FROM {own} WHERE id < 5 UNION ALL SELECT 1 FROM {own}"
    taken = []
    for session, name in ((stock, "of_stock"), (on, "of_pruning")):
        table = f"delta.`{tmp_path / name}`"
        spark.sql(lake(f"CREATE TABLE {table} USING delta AS SELECT * FROM {{facts}}"))
        session.sql(f"INSERT INTO {table} VALUES (50, 0)")
        own = text.replace("{own}", table)
        taken.append([Planned.of(session, own).jobs for _ in range(2)])
        assert 81 == len(session.sql(own).collect())
        check_equal(warm(stock, own), Planned.of(session, own))
    assert [[6, 3], [6, 0]] == taken


def test_scans_of_one_list_are_not_listed_again_when_they_run(lake, stock, on):
    text = lake("SELECT id, k + 1 AS k FROM {facts} WHERE id > 5 UNION ALL SELECT id, k FROM {facts} WHERE id > 5")
    expected, found = warm(stock, text), Planned.of(on, text)
    ran = []
    for each in (expected, found):
        before = jobs(on)
        each.rows()
        ran.append(jobs(on) - before)
    assert ran[0] == ran[1]


def test_actions_of_an_enabled_session_have_the_rows_of_stock(lake, stock, spark):
    enable(spark, options=FREE_BUILDS)
    for text in (QUERIES["join"][0], QUERIES["in-subquery"][0]):
        expected = Rows(stock.sql(lake(text)).collect())
        assert len(expected)
        assert [expected] * 2 == [Rows(spark.sql(lake(text)).collect()) for _ in range(2)]
    assert 0 == Planned.of(spark, lake(QUERIES["join"][0])).jobs


LIMITED = {
    "alone": ("SELECT * FROM {facts} LIMIT 3", 1),
    "partition": ("SELECT * FROM {parts} WHERE part = 'p 1' LIMIT 3", 1),
    "offset": ("SELECT * FROM {facts} LIMIT 12 OFFSET 9", 1),
    "of-all-rows": ("SELECT * FROM {facts} LIMIT 100", 1),
}


def check_limit(lake, stock, on, query):
    text, expected_jobs = LIMITED[query]
    expected = warm(stock, lake(text))
    found = [Planned.of(on, lake(text)) for _ in range(2)]
    assert [expected_jobs] * 3 == [each.jobs for each in (expected, *found)]
    check_equal(expected, *found)


@pytest.mark.parametrize("query", LIMITED)
def test_limits_are_left_to_delta(lake, stock, on, query):
    check_limit(lake, stock, on, query)


def test_a_limit_below_a_filter_of_rows_is_a_plain_scan(lake, stock, on):
    text = lake("SELECT * FROM {facts} WHERE id > 3 ORDER BY id LIMIT 3")
    expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
    assert (1, 1, 0) == (expected.jobs, *(each.jobs for each in found))
    check_equal(expected, *found)


def test_a_limit_beside_other_scans_is_listed_alone(lake, stock, on):
    text = lake("SELECT f.id FROM {facts} f JOIN (SELECT k FROM {dims} LIMIT 100) d ON f.k = d.k WHERE f.id > 5")
    expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
    assert (2, 2, 1) == (expected.jobs, *(each.jobs for each in found))
    check_equal(expected, *found)


FROM_METADATA = {
    "count": "SELECT count(*) FROM {facts}",
    "bounds": "SELECT count(*), min(id), max(k) FROM {facts}",
    "partition": "SELECT min(number), max(number) FROM {parts}",
    "subquery": "SELECT * FROM {dims} WHERE k + 35 < (SELECT count(*) FROM {facts})",
    "vectors": "SELECT count(*) FROM {vectors}",
}


@pytest.mark.parametrize("query", FROM_METADATA)
def test_counts_and_bounds_come_from_metadata(lake, stock, on, query):
    text = lake(FROM_METADATA[query])
    expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
    assert "LocalRelation" in str(expected.plan.toString()) + str(expected.shown())
    # The scan beside the subquery is remembered.
    saved = 1 if query == "subquery" else 0
    assert [expected.jobs, expected.jobs - saved] == [each.jobs for each in found]
    check_equal(expected, *found)


def test_a_count_that_metadata_does_not_give_is_a_plain_scan(lake, stock, on):
    text = lake("SELECT count(*) FROM {facts} WHERE id > 12")
    expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
    assert (1, 1, 0) == (expected.jobs, *(each.jobs for each in found))
    check_equal(expected, *found)
    assert [PREPARED] == indexes(found[1])


# All rows of the dimension match, so that nothing is pruned.
UNPRUNED = "SELECT f.id, f.k, d.name FROM {facts} f JOIN {dims} d ON f.k = d.k"


def test_a_query_that_prune_leaves_alone_is_read_without_listing_jobs(spark, lake, stock):
    text = lake(UNPRUNED)
    expected, results, taken = warm(stock, text), [], []
    for _ in range(2):
        before = jobs(spark)
        results.append(prune(spark.sql(text), options=OPTIONS))
        taken.append(jobs(spark) - before)
    assert 0 == taken[1]
    planned = [Planned.of(spark, each) for each in results]
    assert [0, 0] == [each.jobs for each in planned]
    check_equal(expected, *planned)
    # Queries that are built on it, too.
    more = [Planned.of(spark, prune(spark.sql(text), options=OPTIONS).where("id > 20")) for _ in range(2)]
    assert [1, 0] == [each.jobs for each in more]
    assert [warm(stock, f"SELECT * FROM ({text}) WHERE id > 20").rows()] * 2 == [each.rows() for each in more]
    # Other queries of the session are those of stock.
    assert [2, 2] == [Planned.of(spark, text).jobs for _ in range(2)]


def test_a_query_that_is_pruned_is_read_without_listing_jobs(spark, lake, stock):
    text = lake("SELECT f.id, f.k, d.name FROM {facts} f JOIN {dims} d ON f.id = d.k WHERE d.name > 'x3'")
    expected, taken = warm(stock, text), []
    for _ in range(2):
        before = jobs(spark)
        result = prune(spark.sql(text), options=FREE_BUILDS)
        taken.append(jobs(spark) - before)
        assert expected.rows() == Rows(result.collect())
    assert [0, 1] == [taken[1], len(report(result).tables)]
    assert [2, 2] == [Planned.of(spark, text).jobs for _ in range(2)]


def test_a_dataframe_is_left_alone_by_prune(spark, stock, own, lake):
    text = own("SELECT o.id, d.name FROM {own} o JOIN ") + lake("{dims} d ON o.k = d.k WHERE o.id >= 12")
    df = spark.sql(text)
    result = prune(df, options=OPTIONS)
    stock.sql(own("INSERT INTO {own} VALUES (901, 7)"))
    expected = warm(stock, text)
    found = Planned.of(spark, df)
    assert expected.jobs == found.jobs == 2
    check_equal(expected, found)
    assert 29 == len(found.rows()) == len(result.collect())
    # It has been planned: `prune()` reads the plan that it has.
    assert expected.rows() == Rows(prune(df, options=OPTIONS).collect())


def test_a_query_that_delta_left_alone_is_pinned_from_memory(lake, stock, spark):
    texts = {
        lake("SELECT * FROM {facts} WHERE id > 17"): (1, [[10, 10, 10]]),
        lake("SELECT p.id FROM {parts} p JOIN {facts} f ON p.id = f.id WHERE p.part = 'p 1'"): (2, None),
        lake("SELECT * FROM {facts} LIMIT 3"): (1, None),
    }
    for text, (expected_jobs, _) in texts.items():
        expected = warm(stock, text)
        with confs.conf(spark, {EXCLUDED_RULES: PREPARING_RULE}):
            plan = Planned.of(spark, text).plan
        assert {UNPREPARED} == {kind(each.relation().location()) for each in leaves(plan)}
        found = []
        for _ in range(2):
            before = jobs(spark)
            pinned = pinned_plan(spark, plan)
            found.append(jobs(spark) - before)
        assert [expected_jobs, 0] == found
        if "LIMIT" in text:
            # All files: the limit stays that of the plan.
            assert 4 == len(scans(pinned)[0][7:-5])
        else:
            assert scans(expected.plan) == scans(pinned)
