"""File lists from memory: errors, cancelled queries, several sessions, and rules of users."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from connectors.delta import file_index
from connectors.spark.jvm import JavaFile, instance, jvm_session, session_over
from connectors.spark.session_state import state_of
from pruning import disable, enable, prune
from sample_data import confs
from sample_data.rows import Rows
from tests.connectors.delta.test_file_index import jobs
from tests.session.early_lists import (
    ANSI,
    OPTIONS,
    PATIENCE,
    QUERIES,
    Planned,
    check_equal,
    interpreted,
    lake,
    makers_of,
    memory,
    on,
    own,
    stock,
    unlisted,
    warm,
)

__all__ = ["interpreted", "lake", "memory", "on", "own", "stock"]

pytestmark = pytest.mark.spark


DIVIDED = {
    "one-scan": "SELECT id FROM {parts} WHERE 10 div number = 5",
    "beside-others": "SELECT p.id FROM {parts} p JOIN {facts} f ON p.id = f.id WHERE 10 div p.number = 5 AND f.id > 2",
    "both": "SELECT p.id FROM {parts} p JOIN {parts} q ON p.id = q.id WHERE 10 div p.number = 5 AND 7 div q.number = 3",
}


def error_of(session: SparkSession, query: str | DataFrame) -> tuple[str, str | None]:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO") as raised:
        Planned.of(session, query)
    return type(raised.value).__name__, raised.value.getCondition()


@pytest.mark.parametrize("query", DIVIDED)
def test_an_error_in_a_condition_is_that_of_stock(lake, stock, on, conf, query):
    text = lake(DIVIDED[query])
    for strict in ("false", "true", "false"):
        conf(ANSI, strict)
        stock.conf.set(ANSI, strict)
        if strict == "true":
            expected = error_of(stock, text)
            assert [expected] * 3 == [
                error_of(on, text),
                error_of(on, text),
                error_of(on, prune(on.sql(text), options=OPTIONS)),
            ]
        else:
            expected, found = warm(stock, text), Planned.of(on, text)
            check_equal(expected, found)
            assert len(found.rows())


def check_failure(lake, stock, on):
    text, ran = lake(DIVIDED["one-scan"]), []
    with confs.conf(on, {ANSI: "true"}), confs.conf(stock, {ANSI: "true"}):
        for each in (stock, on):
            before = jobs(on)
            error_of(each, text)
            ran.append(jobs(on) - before)
    assert [1, 1] == ran


def test_a_list_that_fails_is_made_once(lake, stock, on):
    check_failure(lake, stock, on)


# Stock lists one scan after the other.
@pytest.mark.full
def test_no_job_goes_on_after_an_error(lake, stock, on, conf):
    conf(ANSI, "true")
    stock.conf.set(ANSI, "true")
    slow = "aggregate(sequence(0, 400000 + q.number), 0L, (a, x) -> a + x) > 0"
    text = lake(f"SELECT p.id FROM {{parts}} p JOIN {{parts}} q ON p.id = q.id WHERE 10 div p.number = 5 AND {slow}")
    tracker, left = on.sparkContext.statusTracker(), []
    for each in (stock, on):
        error_of(each, text)
        # Spark notes the end of a job a moment later.
        time.sleep(0.2)
        left.append(len(tracker.getActiveJobsIds()))
        deadline = time.monotonic() + PATIENCE
        while tracker.getActiveJobsIds() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert [0, 0] == left


def threads(spark: SparkSession) -> set[str]:
    """The names of the threads of pools in the JVM."""
    java: Any = spark._jvm
    names = {str(each.getName()) for each in java.java.lang.Thread.getAllStackTraces().keySet()}
    return {each for each in names if re.fullmatch(r"pool-\d+-thread-\d+", each)}


def without_more(spark: SparkSession, known: set[str]) -> set[str]:
    """The threads of pools that are left after those of `known`, once they had time to end."""
    deadline = time.monotonic() + PATIENCE
    while (left := threads(spark) - known) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def check_cancelled(lake, stock, on, query):
    text = lake(QUERIES[query][0])
    warm(stock, text)
    known = threads(on)

    def cancelled(session: SparkSession) -> tuple[bool, int]:
        context = session.sparkContext
        group = f"early lists {time.monotonic_ns()}"
        context.setJobGroup(group, "cancelled by a test")
        context._jsc.sc().cancelJobGroupAndFutureJobs(group)
        before = jobs(session)
        with pytest.raises(Exception, match="SPARK_JOB_CANCELLED") as raised:
            Planned.of(session, text)
        return group in str(raised.value), jobs(session) - before

    found = []
    for each in (stock, on):
        # A thread of its own, whose properties go with it.
        with ThreadPoolExecutor(1) as pool:
            found.append(pool.submit(cancelled, each).result())
    # No scan is listed a second time.
    assert (True, 1) == found[0]
    assert (True, True) == (found[1][0], 1 <= found[1][1] <= QUERIES[query][1])
    assert set() == without_more(on, known)
    assert [] == list(on.sparkContext.statusTracker().getActiveJobsIds())
    again = [Planned.of(on, text) for _ in range(2)]
    assert (QUERIES[query][2], 0) == (again[0].jobs, again[1].jobs)
    check_equal(warm(stock, text), *again)


@pytest.mark.parametrize("query", ["join", "filter"])
def test_a_query_whose_jobs_are_cancelled_ends_as_in_stock(lake, stock, on, query):
    check_cancelled(lake, stock, on, query)


def test_threads_of_listing_end(spark, lake, on):
    known = threads(spark)
    assert 3 == Planned.of(on, lake(QUERIES["join"][0])).jobs
    assert set() == without_more(spark, known)


def test_sessions_with_the_same_extensions_share_lists(spark, lake, stock, on):
    text = lake(QUERIES["join"][0])
    other = confs.same_session(spark)
    enable(other, options=OPTIONS)
    clone = session_over(spark, jvm_session(spark).cloneSession())
    try:
        found = [Planned.of(each, text) for each in (on, other, clone)]
        assert [3, 0, 0] == [each.jobs for each in found]
        check_equal(warm(stock, text), *found)
        new = lake("SELECT * FROM {facts} WHERE id > 18")
        assert [1, 0, 0] == [Planned.of(each, new).jobs for each in (other, on, clone)]
        # The one that is not enabled any more lists as stock; the others stay.
        disable(other)
        assert [3, 0] == [Planned.of(each, text).jobs for each in (other, on)]
    finally:
        disable(other)


def test_two_sessions_that_list_at_once_have_the_rows_of_stock(spark, lake, stock, on):
    other = confs.same_session(spark)
    enable(other, options=OPTIONS)
    texts = [lake(QUERIES["join"][0]).replace("> 7", f"> {at}") for at in range(4)]
    barrier = threading.Barrier(4)

    def rows(session: SparkSession) -> list[Rows]:
        found = []
        for text in texts:
            barrier.wait(PATIENCE)
            found.append(Planned.of(session, text).rows())
        return found

    try:
        expected = [Rows(stock.sql(text).collect()) for text in texts]
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(rows, (on, other, on, other)):
                assert expected == found
        assert [0] * 4 == [Planned.of(on, text).jobs for text in texts]
    finally:
        disable(other)


def check_switches(lake, stock, on):
    text = lake(QUERIES["join"][0])
    assert (3, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    with confs.conf(on, {"spark.pruning.auto": "false"}):
        off = Planned.of(on, text)
        assert 3 == off.jobs
    assert 0 == Planned.of(on, text).jobs
    disable(on)
    disabled = [Planned.of(on, text) for _ in range(2)]
    assert [3, 3] == [each.jobs for each in disabled]
    check_equal(warm(stock, text), off, *disabled)


def test_what_is_switched_off_lists_as_stock(lake, stock, on):
    check_switches(lake, stock, on)


def test_enabling_often_leaves_one_maker_of_rules(spark, lake, on):
    for _ in range(10):
        enable(on, options=OPTIONS)
    assert ["EarlyLists", "Delta", "Delta"] == makers_of(spark)
    for _ in range(2):
        prune(spark.sql(lake(QUERIES["join"][0])), options=OPTIONS)
    assert 1 == makers_of(confs.same_session(spark)).count("EarlyLists")


def test_the_maker_of_another_process_of_python_is_replaced(spark, lake, stock, on):
    from connectors.spark import jvm  # noqa: PLC0415 - the module, whose classes are forgotten

    text = lake(QUERIES["join"][0])
    assert (3, 0) == (Planned.of(on, text).jobs, Planned.of(on, text).jobs)
    classes = spark._jvm.__dict__[jvm._CLASSES]
    intact = classes.pop(file_index._LISTS.name)
    state_of(spark).slot(file_index._FileLists).java = None
    try:
        # py4j keeps methods by class name for each thread.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(enable, on, options=OPTIONS).result()
    finally:
        classes[file_index._LISTS.name] = intact
    assert ["EarlyLists", "Delta", "Delta"] == makers_of(spark)
    found = [Planned.of(on, text) for _ in range(2)]
    assert [3, 0] == [each.jobs for each in found]
    check_equal(warm(stock, text), *found)


OF_ALL_ROWS = {
    "count": ("SELECT count(*) FROM {facts}", 39),
    "limit": ("SELECT count(id) FROM (SELECT * FROM {facts} LIMIT 10)", 10),
}


# Stock asks the rule of a user first where its extension is named before that of Delta.
def check_rule_of_user(spark, lake, stock, query, place):
    text, count = lake(OF_ALL_ROWS[query][0]), OF_ALL_ROWS[query][1]
    rule = instance(spark, JavaFile("tests", "RowSkippingRule"), "facts", False)  # noqa: FBT003 - for Java
    extensions = jvm_session(spark).extensions()
    field = extensions.getClass().getDeclaredField("preCBORules")
    field.setAccessible(True)
    with unlisted(spark):
        makers = field.get(extensions).clone()
        makers.insert(makers.size() if place == "after" else 0, rule.builder())
        field.set(extensions, makers)
        try:
            expected = warm(stock, text)
            enable(spark, options=OPTIONS)
            found = [Planned.of(spark, text) for _ in range(2)]
            others = ["EarlyLists", "Delta", "Delta"]
            assert ([*others, "Builder"] if place == "after" else ["Builder", *others]) == makers_of(spark)
            check_equal(expected, *found)
            assert place == "after" or [(count,)] == list(found[1].rows())
        finally:
            rule.switchOff()


@pytest.mark.parametrize("query", OF_ALL_ROWS)
@pytest.mark.parametrize("place", ["before", "after"])
def test_rules_of_users_stay_at_their_place(spark, lake, stock, query, place):
    check_rule_of_user(spark, lake, stock, query, place)
