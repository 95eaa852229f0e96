"""`enable()`: every query that a session plans is pruned, and its rows stay the same."""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from connectors.pipeline import explained_query
from connectors.session import session_pruning
from connectors.session.session_pruning import records
from connectors.spark.jvm import jvm_session, optimizer_rules, session_over, set_optimizer_rules
from pruning import PruningCache, ReasonCode, disable, enable, explain, history, prune, report
from pruning.errors import InvalidOptionError, UnsupportedSessionError
from sample_data.rows import Rows
from tests.queries.star import FILES, OPTIONS
from tests.session.conftest import ROWS

pytestmark = pytest.mark.spark


def read(spark) -> dict[str, tuple[int, int, int]]:
    """The files that the scans of the latest query read, those planned, and all."""
    return {
        each.planned.table: (each.measured.files_read, each.planned.files_kept, each.planned.files_total)
        for each in history(spark)[0].tables
    }


PRUNED = (2, 2, FILES)


def test_every_action_of_the_session_is_pruned(spark, query, enabled):
    stock = Rows(spark.sql(query).collect())
    enabled()
    assert stock == Rows(spark.sql(query).collect())
    assert {"sales": PRUNED} == read(spark)
    assert (ROWS, ROWS) == (spark.sql(query).count(), len(stock))
    assert {"sales": PRUNED} == read(spark)
    assert ROWS == len(spark.sql(query).toPandas())
    assert ROWS == spark.sql(query).toArrow().num_rows
    assert {"sales": PRUNED} == read(spark)


def test_schema_and_plan_above_the_scans_are_those_of_the_query(spark, query, enabled):
    named = f"SELECT q.day AS `a day`, amount + 1 AS more, sum(amount) OVER () AS total FROM ({query}) q"

    def schemas() -> list[str]:
        df = spark.sql(named)
        arrow, java = df.toArrow().schema, df._jdf.queryExecution()
        return [str(arrow), java.optimizedPlan().schema().json(), java.executedPlan().schema().json()]

    stock = schemas()
    enabled()
    assert stock == schemas()
    assert {"sales": PRUNED} == read(spark)


def test_the_filters_are_those_of_prune(spark, query, enabled):
    result = prune(spark.sql(query), options=OPTIONS)
    expected = [(each.planned.files_kept, each.planned.bytes_kept) for each in report(result).tables]
    enabled()
    spark.sql(query).collect()
    assert expected == [(each.planned.files_kept, each.planned.bytes_kept) for each in history(spark)[0].tables]


def test_a_pruned_dataframe_is_pruned_once(spark, query, enabled, planned):
    enabled()
    before = planned()
    result = prune(spark.sql(query), options=OPTIONS)
    assert ROWS == len(result.collect()) == result.count()
    assert before == planned()
    (table,) = report(result).tables
    assert PRUNED == (table.measured.files_read, table.planned.files_kept, table.planned.files_total)


def test_builds_are_not_handed_over(spark, query, enabled, planned):
    enabled(OPTIONS.with_limits(driver_scan_files=0))
    before = planned()
    assert ROWS == len(spark.sql(query).collect())
    assert before + 1 == planned()
    assert [False] == [each.on_driver for each in history(spark)[0].builds]


def test_disable_leaves_the_next_query_alone(spark, query, enabled, planned):
    enabled()
    spark.sql(query).collect()
    before = planned()
    disable(spark)
    disable(spark)
    assert ROWS == len(spark.sql(query).collect())
    assert before == planned()


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_each_query_is_one_line_of_the_log_when_asked(spark, query, enabled, caplog, star):
    plain = f"SELECT sum(amount) FROM {star}sales"
    enabled()
    spark.sql(plain).collect()
    assert [] == caplog.records
    with caplog.at_level(logging.INFO, "scanprune"):
        spark.sql(query).collect()
        assert "nothing to prune" not in caplog.text
        spark.sql(plain).collect()
        assert 1 == caplog.text.count("nothing to prune: no join")
        caplog.clear()
        spark.sql(query).collect()
    lines = [each.message for each in caplog.records if each.name == "scanprune" and each.levelno == logging.INFO]
    assert [line for line in lines if line.startswith(f"reads 2 of {FILES} files")] == lines[-1:]
    assert re.search(r": sales\.day by \w*days\.day$", lines[-1])
    assert history(spark)[0].verdict == lines[-1].replace("reads", "read")


def test_rules_of_others_stay(spark, enabled):
    def rules() -> list[str]:
        return [each.getClass().getSimpleName() for each in optimizer_rules(spark)]

    foreign = getattr(getattr(spark._jvm.org.apache.spark.sql.catalyst.optimizer, "CollapseProject$"), "MODULE$")
    set_optimizer_rules(spark, [foreign])
    try:
        for _ in range(2):
            enabled()
            assert ["CollapseProject$", "SessionRule"] == rules()
        disable(spark)
        assert ["CollapseProject$"] == rules()
    finally:
        set_optimizer_rules(spark, [])


WAYS_TO_RUN = {
    "saveAsTable": lambda df, name: df.write.saveAsTable(name),
    "writeTo": lambda df, name: df.writeTo(name).using("delta").create(),
    "replace": lambda df, name: df.writeTo(name).using("delta").createOrReplace(),
    "rdd": lambda df, _: df.rdd.count(),
    "checkpoint": lambda df, _: df.localCheckpoint(),
    "iterator": lambda df, _: [*df.toLocalIterator()],
}


@pytest.mark.quick(len(WAYS_TO_RUN))
@pytest.mark.parametrize("star", ["delta"], indirect=True)
@pytest.mark.parametrize("run", WAYS_TO_RUN.values(), ids=WAYS_TO_RUN)
def test_every_way_to_run_a_query_is_pruned(spark, query, enabled, planned, run):
    enabled()
    try:
        run(spark.sql(query), "made_by_a_session")
        if spark.catalog.tableExists("made_by_a_session"):
            assert ROWS == spark.table("made_by_a_session").count()
    finally:
        spark.sql("DROP TABLE IF EXISTS made_by_a_session")
    assert 1 == planned()
    assert PRUNED[1] == next(each.planned.files_kept for told in history(spark) for each in told.tables)


def test_a_conf_switches_it_off_and_on(spark, query, enabled, planned):
    enabled(None)
    before = planned()
    spark.sql("SET spark.pruning.auto = false")
    try:
        assert ROWS == spark.sql(query).count()
        assert before == planned()
        spark.sql("SET spark.pruning.auto = true")
        assert ROWS == spark.sql(query).count()
        assert before + 1 == planned()
    finally:
        spark.conf.unset("spark.pruning.auto")


@pytest.mark.parametrize("options", [None, OPTIONS])
def test_a_switch_that_is_neither_on_nor_off_is_told_of(spark, query, enabled, planned, conf, caplog, options):
    enabled(options)
    before = planned()
    conf("spark.pruning.auto", "fasle")
    assert ROWS == spark.sql(query).count()
    assert before == planned()
    assert ReasonCode.INVALID_OPTION.value in history(spark)[0].verdict
    assert 1 == len([each for each in caplog.records if "expected true or false" in each.getMessage()])


def test_confs_of_the_session_count_at_each_query(spark, query, enabled, conf):
    enabled(None)
    conf("spark.pruning.always", "true")
    assert ROWS == spark.sql(query).count()
    assert {"sales": PRUNED} == read(spark)


@pytest.mark.parametrize("star", ["delta"], indirect=True)
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("unknown", "1", "expected one of enabled, "),
        ("always", "perhaps", "'perhaps': expected true or false"),
        ("limits.joined_rows", "many", "'many': expected a number"),
    ],
)
def test_a_conf_that_is_not_understood_is_named(spark, query, enabled, conf, name, value, expected):
    enabled(None)
    conf(f"spark.pruning.{name}", value)
    before = len(history(spark))
    spark.sql(query).explain()
    assert before == len(history(spark))
    assert ROWS == spark.sql(query).count()
    verdict = history(spark)[0].verdict
    assert f"an option of the session is not understood (Cannot set 'spark.pruning.{name}'" in verdict
    assert expected in verdict
    assert verdict.endswith("try: set that conf to what is expected, or unset it")


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_a_query_with_nothing_to_prune_is_planned_once(spark, query, enabled, planned, conf):
    enabled(None)
    assert ROWS == spark.sql(query).count() == spark.sql(query).count()
    assert 1 == planned()
    first, second = history(spark)[:2]
    assert ((), first.nothing) == (second.tables, second.nothing)
    assert "no scan below a join" in first.nothing
    # Other options may prune it.
    conf("spark.pruning.always", "true")
    assert ROWS == spark.sql(query).count()
    assert {"sales": PRUNED} == read(spark)
    assert 2 == planned()


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_a_query_with_an_existence_join_and_nothing_to_prune_is_planned_once(spark, star, enabled, planned):
    enabled(None)
    query = "SELECT * FROM {0}sales WHERE item = 1 OR day IN (SELECT day FROM {0}days WHERE month = {1})"
    found = [spark.sql(query.format(star, month)).count() for month in (2, 2, 3)]
    assert (True, 2) == (found[0] == found[1] > 0, planned())


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_a_query_with_filters_is_planned_each_time(spark, query, enabled, planned):
    enabled()
    assert ROWS == spark.sql(query).count() == spark.sql(query).count()
    assert 2 == planned()


def test_explaining_starts_no_build(spark, query, enabled, planned, capsys, tmp_path):
    enabled(OPTIONS.with_limits(driver_scan_files=0))
    before, tracker = planned(), spark.sparkContext.statusTracker()
    df = spark.sql(query)
    df.explain()
    texts = [capsys.readouterr().out, spark.sql(f"EXPLAIN {query}").collect()[0][0]]
    spark.sql(query).limit(0).write.parquet(str(tmp_path / "written"))
    spark.sql(f"CREATE TABLE explained USING parquet LOCATION '{tmp_path / 'written'}'")
    try:
        texts.append(spark.sql(f"EXPLAIN INSERT INTO explained {query}").collect()[0][0])
    finally:
        spark.sql("DROP TABLE explained")
    to_come = r"\(scanprune: keys are still to come: day by \w+\.day\)"
    assert [1] * 3 == [len(re.findall(to_come, each)) for each in texts], texts
    assert FILES + 1 == len(df.inputFiles())
    assert "scanprune" not in spark.sql(query)._jdf.queryExecution().optimizedPlan().toString()
    assert explain(df, options=OPTIONS).filters
    assert before == planned()
    # Spark runs the plan that it has made for explain().
    assert ROWS == len(df.collect())
    assert before == planned()
    assert ROWS == len(spark.sql(query).collect())
    assert before + 1 == planned()
    assert not tracker.getActiveJobsIds()


def test_a_plan_that_cannot_be_read_is_shown_as_it_is(spark, query, enabled, monkeypatch, caplog):
    before = list(map(id, records(enabled())))
    monkeypatch.setattr(explained_query, "answered", Mock(side_effect=ZeroDivisionError))
    with caplog.at_level(logging.WARNING, logger="scanprune"):
        assert "scanprune" not in spark.sql(f"EXPLAIN {query}").collect()[0][0]
    assert ([], before) == (caplog.records, list(map(id, records(spark))))
    assert ROWS == spark.sql(query).count()
    assert {"sales": PRUNED} == read(spark)


def test_writes_are_pruned(spark, query, enabled, tmp_path):
    stock = Rows(spark.sql(query).collect())
    enabled()
    for format_ in ("parquet", "delta"):
        folder = str(tmp_path / format_)
        spark.sql(query).write.format(format_).save(folder)
        assert {"sales": PRUNED} == read(spark), format_
        assert stock == Rows(spark.read.format(format_).load(folder).collect())


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_commands_with_a_query_are_pruned(spark, query, enabled, planned, format_):
    stock = Rows(spark.sql(query).collect())
    enabled()
    name = f"session_{format_}"
    try:
        spark.sql(f"CREATE TABLE {name} USING {format_} AS {query}")
        assert {"sales": PRUNED} == read(spark)
        assert stock == Rows(spark.table(name).collect())
        before = planned()
        spark.sql(f"INSERT INTO {name} {query}")
        assert ({"sales": PRUNED}, before + 1) == (read(spark), planned())
        assert 2 * ROWS == spark.table(name).count()
        spark.sql(f"INSERT OVERWRITE {name} {query}")
        assert {"sales": PRUNED} == read(spark)
        assert stock == Rows(spark.table(name).collect())
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_write_by_the_second_interface_of_sources_is_pruned(spark, query, enabled, planned):
    enabled()
    before = planned()
    spark.sql(query).write.format("noop").mode("overwrite").save()
    assert ({"sales": PRUNED}, before + 1) == (read(spark), planned())


def test_rows_to_be_cached_are_pruned_and_found_again(spark, query, enabled, planned):
    enabled()
    before = planned()
    df = spark.sql(query).cache()
    try:
        assert before + 1 == planned()
        assert ROWS == df.count()
        assert "InMemoryTableScan" in spark.sql(query)._jdf.queryExecution().executedPlan().toString()
        assert before + 1 == planned()
    finally:
        df.unpersist()


def test_another_session_is_left_alone(spark, query, enabled, planned, star):
    enabled()
    before, other = planned(), spark.newSession()
    for name in ("sales", "days"):
        spark.table(f"{star}{name}").createOrReplaceGlobalTempView(f"{star}{name}")
    try:
        asked = query.replace(star, f"global_temp.{star}")
        assert ROWS == other.sql(asked).count()
        assert before == planned()
        assert [] == history(other)
    finally:
        for name in ("sales", "days"):
            spark.catalog.dropGlobalTempView(f"{star}{name}")


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_a_cloned_session_may_have_options_of_its_own(spark, query, enabled, planned):
    enabled()
    clone = session_over(spark, jvm_session(spark).cloneSession())
    assert ROWS == clone.sql(query).count()
    assert ((1, 0), {"sales": PRUNED}) == ((planned(), len(history(clone))), read(spark))
    enable(clone, options=OPTIONS.with_limits(max_ranges=1))
    assert ROWS == clone.sql(query).count()
    assert (2, 1) == (planned(), len(history(clone)))
    disable(clone)
    assert ROWS == clone.sql(query).count()
    assert (2, 1) == (planned(), len(history(clone)))
    assert ROWS == spark.sql(query).count()
    assert 3 == planned()


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_a_session_is_the_same_by_every_object_of_python(spark, query, enabled, planned):
    enabled()
    clone, other = session_over(spark, jvm_session(spark).cloneSession()), session_over(spark, jvm_session(spark))
    assert other is not spark
    assert ROWS == other.sql(query).count()
    assert (1, {"sales": PRUNED}, {"sales": PRUNED}) == (planned(), read(spark), read(other))
    disable(other)
    assert [ROWS] * 3 == [each.sql(query).count() for each in (spark, other, clone)]
    assert 1 == planned()
    assert history(spark)[0].to_dict() == history(other)[0].to_dict()


@pytest.mark.parametrize("star", ["delta"], indirect=True)
def test_builds_in_a_cache_of_the_session_are_not_run_again(spark, query):
    enable(spark, options=OPTIONS, cache=PruningCache())
    try:
        assert ROWS == spark.sql(query).count() == spark.sql(query).count()
    finally:
        disable(spark)
    again, first = history(spark)[:2]
    assert [[True], [False]] == [[each.from_cache for each in told.builds] for told in (again, first)]
    assert {PRUNED[1]} == {each.planned.files_kept for told in (again, first) for each in told.tables}


def test_two_sessions_have_options_of_their_own(spark, query, star, planned):
    other = spark.newSession()
    for name in ("sales", "days"):
        spark.table(f"{star}{name}").createOrReplaceGlobalTempView(f"{star}{name}")
    enable(spark, options=OPTIONS)
    enable(other, options=OPTIONS.with_limits(max_build_keys=1, max_ranges=1))
    try:
        for session in (spark, other):
            assert ROWS == session.sql(query.replace(star, f"global_temp.{star}")).count()
        assert 2 == planned()
        (own,) = history(other)
        (first,), (second,) = history(spark)[0].tables, own.tables
        assert (PRUNED[1], PRUNED[1]) == (first.planned.files_kept, second.planned.files_kept)
        assert [30, None] == [each.planned.filters[0].keys for each in (first, second)]
    finally:
        disable(spark)
        disable(other)
        for name in ("sales", "days"):
            spark.catalog.dropGlobalTempView(f"{star}{name}")


def test_trouble_gives_the_unpruned_answer(spark, query, enabled, monkeypatch, caplog):
    enabled()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(session_pruning, "prune_plan", broken)
    with caplog.at_level(logging.WARNING, logger="scanprune"):
        assert ROWS == spark.sql(query).count()
    assert 1 == len(caplog.records)
    assert "ZeroDivisionError" in caplog.text
    assert not history(spark)[0].tables


def test_an_error_of_the_query_is_that_of_spark(spark, query, enabled):
    enabled()
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql(f"SELECT 1 div (amount - amount) FROM ({query})").collect()


def test_sixteen_threads_at_once(spark, query, enabled):
    enabled()
    with ThreadPoolExecutor(16) as pool:
        assert [ROWS] * 32 == list(pool.map(lambda _: spark.sql(query).count(), range(32)))
    assert {"sales": PRUNED} == read(spark)


@pytest.mark.parametrize("call", [enable, disable, history])
def test_a_session_that_was_stopped_is_named(spark, monkeypatch, call):
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    with pytest.raises(UnsupportedSessionError, match="it was stopped; start another one"):
        call(spark)


def test_wrong_arguments_are_named(spark, query):
    with pytest.raises(UnsupportedSessionError, match=r"expected a SparkSession .* found a DataFrame"):
        enable(spark.sql(query))
    with pytest.raises(InvalidOptionError, match="expected a PruningOptions"):
        enable(spark, options="fast")
    with pytest.raises(InvalidOptionError, match="expected a PruningCache"):
        enable(spark, cache={})
