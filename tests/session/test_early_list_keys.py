"""File lists from memory: what each depends on, what none is kept for, and how many are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from connectors.delta.file_index import PREPARING_RULE, SKIPPING_CONF
from connectors.spark.jvm import jvm_session
from pruning import enable, prune
from pruning.limits import Limits
from sample_data import confs
from tests.session.early_lists import (
    ANSI,
    COMMITS,
    COUNTED,
    EXCLUDED_RULES,
    OPTIONS,
    PREPARED,
    QUERIES,
    UNPREPARED,
    ZONE,
    Planned,
    check_equal,
    ids,
    indexes,
    interpreted,
    lake,
    memory,
    on,
    own,
    scans,
    stock,
    unlisted,
    warm,
)

__all__ = ["interpreted", "lake", "memory", "on", "own", "stock"]

pytestmark = pytest.mark.spark


def test_without_skipping_scans_are_not_prepared(lake, stock, on, conf):
    text = lake(QUERIES["join"][0])
    assert (3, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    conf(SKIPPING_CONF, "false")
    stock.conf.set(SKIPPING_CONF, "false")
    expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
    assert (0, 0, 0) == (expected.jobs, *(each.jobs for each in found))
    assert [UNPREPARED] * 3 == indexes(found[1])
    check_equal(expected, *found)
    on.conf.unset(SKIPPING_CONF)
    again = Planned.of(on, text)
    assert (0, [PREPARED] * 3) == (again.jobs, indexes(again))


def check_excluded(lake, stock, on):
    text = lake(QUERIES["join"][0])
    assert (3, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    for names in (PREPARING_RULE, f"org.apache.spark.sql.catalyst.optimizer.CollapseProject , {PREPARING_RULE}"):
        with confs.conf(on, {EXCLUDED_RULES: names}), confs.conf(stock, {EXCLUDED_RULES: names}):
            expected, found = warm(stock, text), Planned.of(on, text)
            assert (0, 0, [UNPREPARED] * 3) == (expected.jobs, found.jobs, indexes(found))
            check_equal(expected, found)
            pruned = prune(on.sql(text), options=OPTIONS)
            assert [UNPREPARED] * 3 == indexes(Planned.of(on, pruned))


def test_delta_rule_that_the_user_excludes_stays_excluded(lake, stock, on):
    check_excluded(lake, stock, on)


METADATA = "part IS NOT NULL AND _metadata.file_name > 'a' AND _metadata.file_size > 5"
LAMBDA = "exists(sequence(0, number), x -> x = 1)"


def check_listed_each_time(lake, stock, on, condition):
    text = lake(f"SELECT id FROM {{parts}} WHERE {condition}")
    expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
    assert (1, 1, 1) == (expected.jobs, *(each.jobs for each in found))
    check_equal(expected, *found)


@pytest.mark.parametrize("condition", [METADATA, LAMBDA])
def test_conditions_without_a_key_are_listed_each_time(lake, stock, on, condition):
    check_listed_each_time(lake, stock, on, condition)


def check_unused(lake, stock, on, condition):
    text = lake(f"SELECT id FROM {{parts}} WHERE {condition} AND part = 'p 0'")
    expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
    assert (expected.jobs, 0) == (found[0].jobs, found[1].jobs)
    check_equal(expected, *found)
    other = text.replace("p 0", "p 1")
    assert 1 == Planned.of(on, other).jobs
    check_equal(warm(stock, other), Planned.of(on, other))


@pytest.mark.parametrize(
    "condition", ["rand() + k >= 0", "id > (SELECT min(id) FROM {dims} d JOIN {facts} f ON d.k = f.k)"]
)
def test_conditions_that_delta_does_not_use_are_equal(lake, stock, on, condition):
    check_unused(lake, stock, on, condition)


def check_functions(lake, stock, on):
    """A function of a user on the values of partitions, whose answers change between queries."""
    java: Any = on._jvm
    answers, same = (java.scala.collection.mutable.HashMap() for _ in range(2))
    for each in (True, False):
        same.put(each, each)
    # Two maps are equal if their values are, and a function is equal to itself alone.
    function = answers.andThen(same)
    sessions = (stock, on)
    legacy = "spark.sql.legacy.allowUntypedScalaUDF"
    with confs.conf(on, {legacy: "true"}):
        # The conf is that of the thread's session.
        java.org.apache.spark.sql.classic.SparkSession.setActiveSession(jvm_session(on))
        made = java.org.apache.spark.sql.functions.udf(function, java.org.apache.spark.sql.types.DataTypes.BooleanType)
    for each in sessions:
        jvm_session(each).udf().register("is_wanted", made)
    text = lake("SELECT id, part FROM {parts} WHERE part IS NOT NULL AND is_wanted(part)")
    try:
        for wanted in ("p 0", "p 1", "p 0"):
            for part in ("p 0", "p 1"):
                answers.put(part, part == wanted)
            expected, found = warm(stock, text), Planned.of(on, text)
            rows = expected.rows()
            assert {wanted} == {part for _, part in rows}
            assert rows == found.rows()
            assert expected.jobs == found.jobs == 1
            check_equal(expected, found)
    finally:
        for each in sessions:
            each.sql("DROP TEMPORARY FUNCTION IF EXISTS is_wanted")


def test_functions_of_users_are_asked_anew(lake, stock, on):
    check_functions(lake, stock, on)


@pytest.mark.full
def test_functions_of_users_in_python_are_asked_anew(lake, stock, on, tmp_path):
    answer = str(tmp_path / "answer")
    is_wanted = F.udf(lambda part: part == Path(answer).read_text(encoding="utf-8"), "boolean")
    for wanted in ("p 0", "p 1"):
        Path(answer).write_text(wanted, encoding="utf-8")
        frames = [each.sql(lake("SELECT * FROM {parts}")).where(is_wanted("part")) for each in (stock, stock, on, on)]
        planned = [Planned.of(each.sparkSession, each) for each in frames]
        assert [1, 1, 1] == [each.jobs for each in planned[1:]]
        assert {wanted} == {row[2] for row in planned[1].rows()}
        check_equal(*planned[1:])


def check_rewritten(lake, stock, on, tmp_path):
    """For a clustered table Delta may rewrite a condition, which its index does not show."""
    table = f"delta.`{tmp_path / 'clustered'}`"
    on.sql(f"CREATE TABLE {table} (id LONG, name STRING) USING delta CLUSTER BY (name)")
    for at in range(2):
        on.sql(lake(f"INSERT INTO {table} SELECT id, 'x{at}' FROM {{facts}} WHERE k = 3"))
    prefix = "spark.databricks.delta.skipping.partitionLike"
    settings = {f"{prefix}Filters.enabled": "true", f"{prefix}DataSkippingFilesThreshold": "1"}
    text = f"SELECT id FROM {table} WHERE upper(name) = 'X1'"
    with confs.conf(stock, settings), confs.conf(on, settings):
        expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
        assert "(upper(name) = X1)" in scans(expected.plan)[0][5]
        check_equal(expected, *found)
        assert (1, 1, 1) == (expected.jobs, *(each.jobs for each in found))


def test_lists_by_rewritten_conditions_of_clustered_tables_are_made_anew(lake, stock, on, tmp_path):
    check_rewritten(lake, stock, on, tmp_path)


@pytest.fixture
def moments(spark: SparkSession, tmp_path: Path) -> str:
    """Four files of a moment each, whose partitions are named by the clock of UTC, without a zone."""
    table = f"delta.`{tmp_path / 'moments'}`"
    with confs.conf(spark, {"spark.databricks.delta.write.utcTimestampPartitionValues": "false", ZONE: "UTC"}):
        spark.sql(
            f"CREATE TABLE {table} USING delta PARTITIONED BY (at) AS "
            "SELECT id, timestamp_seconds(id * 18000) AS at FROM range(4)"
        )
    return f"SELECT id FROM {table} WHERE at >= timestamp_seconds(36000)"


# The ids of the moments from 10:00 on in UTC: the clock of New York shows them five hours later.
ZONES = {"UTC": [2, 3], "America/New_York": [1, 2, 3]}


def check_zones(stock, on, moments):
    seen = set()
    for zone in ("UTC", "America/New_York", "UTC", "America/New_York"):
        with confs.conf(stock, {ZONE: zone}), confs.conf(on, {ZONE: zone}):
            expected, found = warm(stock, moments), Planned.of(on, moments)
            assert ZONES[zone] == ids(expected)
            check_equal(expected, found)
            assert (1, 0 if zone in seen else 1) == (expected.jobs, found.jobs)
        seen.add(zone)


def test_partitions_by_time_are_listed_for_each_time_zone(stock, on, moments):
    check_zones(stock, on, moments)


def check_zones_of_the_machine(stock, on, moments):
    """Where no conf says otherwise, the time zone of the JVM counts."""
    zones: Any = on._jvm.java.util.TimeZone
    former, zone_of_session = zones.getDefault(), on.conf.get(ZONE)
    try:
        for each in (stock, on):
            each.conf.unset(ZONE)
        for zone, expected_ids in ZONES.items():
            zones.setDefault(zones.getTimeZone(zone))
            expected, found = warm(stock, moments), [Planned.of(on, moments) for _ in range(2)]
            assert expected_ids == ids(expected)
            check_equal(expected, *found)
            assert (1, 1, 0) == (expected.jobs, *(each.jobs for each in found))
    finally:
        zones.setDefault(former)
        on.conf.set(ZONE, zone_of_session)


def test_partitions_by_time_are_listed_for_each_time_zone_of_the_machine(stock, on, moments):
    check_zones_of_the_machine(stock, on, moments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (ZONE, "Asia/Tokyo"),
        ("spark.sql.caseSensitive", "true"),
        (ANSI, "false"),
        (COUNTED, "true"),
        ("spark.of.a.user", "1"),
    ],
)
def test_another_conf_gives_another_list(lake, stock, on, conf, name, value):
    text = lake("SELECT * FROM {parts} WHERE part = 'p 1' AND id > 3")
    assert (1, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    former = on.conf.get(name, None)
    conf(name, value)
    stock.conf.set(name, value)
    expected, found = warm(stock, text), [Planned.of(on, text) for _ in range(2)]
    assert (1, 1, 0) == (expected.jobs, *(each.jobs for each in found))
    check_equal(expected, *found)
    if former is None:
        on.conf.unset(name)
    else:
        on.conf.set(name, former)
    assert 0 == Planned.of(on, text).jobs


def check_confs_of_pruning(lake, stock, on):
    text = lake(QUERIES["join"][0])
    assert (3, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    with confs.conf(on, {"spark.pruning.always": "true"}):
        found = Planned.of(on, text)
        assert 0 == found.jobs
    check_equal(warm(stock, text), found)


def test_confs_of_pruning_give_no_other_list(lake, stock, on):
    check_confs_of_pruning(lake, stock, on)


def check_own_commit(lake, stock, on, own):
    text = lake(QUERIES["join"][0])
    assert (3, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    for _ in range(2):
        on.sql(own(COMMITS["insert"]))
        # A conf of the session has the version.
        assert on.conf.get("spark.databricks.delta.lastCommitVersionInSession")
        assert 0 == Planned.of(on, text).jobs
    check_equal(warm(stock, text), Planned.of(on, text))


def test_a_commit_of_the_session_leaves_lists_of_other_tables(lake, stock, on, own):
    check_own_commit(lake, stock, on, own)


def plan_jobs(session: SparkSession, *queries: str) -> list[int]:
    return [Planned.of(session, query).jobs for query in queries]


def check_memory(spark, lake, stock):
    # A list counts one, its three files, and two and three nodes of `isnotnull(id)` and `id > 12`: 9.
    first, second, third = (lake(f"SELECT * FROM {{facts}} WHERE id > 1{at}") for at in (2, 3, 4))
    with unlisted(spark, Limits(listed_files=19)):
        enable(spark, options=OPTIONS)
        assert [1, 1, 0, 0] == plan_jobs(spark, first, second, second, first)
        # The second one is that which was used least recently.
        assert [1, 0, 0, 1] == plan_jobs(spark, third, first, third, second)
        check_equal(warm(stock, first), Planned.of(spark, first))
        # Many values and a long text weigh more than there is room for, so that others stay.
        values = lake(f"SELECT * FROM {{facts}} WHERE id IN ({', '.join(map(str, range(20)))})")
        text = lake(f"SELECT * FROM {{dims}} WHERE name <> '{'y' * 2000}'")
        assert [0, 1] == plan_jobs(spark, second, third)
        assert [1, 1, 1, 1, 0, 0] == plan_jobs(spark, values, values, text, text, second, third)
        check_equal(warm(stock, values), Planned.of(spark, values))
        check_equal(warm(stock, text), Planned.of(spark, text))


def test_the_lists_that_were_used_least_recently_go(spark, lake, stock):
    check_memory(spark, lake, stock)


def check_lambda(spark, lake, stock):
    known, text = lake("SELECT * FROM {facts} WHERE id > 12"), lake(f"SELECT * FROM {{parts}} WHERE {LAMBDA}")
    with unlisted(spark, Limits(listed_files=19)):
        enable(spark, options=OPTIONS)
        # A list that no query finds again takes no room.
        assert [1, 1, 1, 1, 0] == plan_jobs(spark, known, text, text, text, known)
        check_equal(warm(stock, text), Planned.of(spark, text))


def test_a_condition_with_a_lambda_takes_no_room(spark, lake, stock):
    check_lambda(spark, lake, stock)


def check_no_memory(spark, lake, stock):
    text = lake(QUERIES["join"][0])
    with unlisted(spark, Limits(listed_files=0)):
        enable(spark, options=OPTIONS)
        found = [Planned.of(spark, text) for _ in range(2)]
        assert [3, 3] == [each.jobs for each in found]
        check_equal(warm(stock, text), *found)


def test_no_list_is_kept_without_memory(spark, lake, stock):
    check_no_memory(spark, lake, stock)
