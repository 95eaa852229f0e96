"""Metrics of the latest action of a scan, also when other scans share the action."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError

from connectors.measure import metrics as measured
from connectors.measure import status_store
from connectors.measure import status_store as scan_identity
from connectors.pipeline.records import record_of
from connectors.spark.jvm import JavaFile, instance, java_names
from pruning import PruningOptions, pruned_read, report
from pruning.limits import LIMITS
from sample_data.confs import CODE_GENERATION, conf
from tests.connectors.parquet_tables import in_files, numbered

pytestmark = pytest.mark.spark

# More rows than one batch of the reader has.
ROWS = 5000


@pytest.fixture(scope="module", params=["delta", "parquet"])
def source(spark, request, tmp_path_factory) -> str:
    return written(spark, tmp_path_factory.mktemp(request.param) / "probe", request.param)


def written(spark, folder, format_) -> str:
    """A table of four files with `ROWS` rows each and consecutive keys from 0."""
    frame = spark.range(0, 4 * ROWS, 1, 4).selectExpr("id AS k", "hash(id) AS v", f"id div {ROWS} AS part")
    frame.write.format(format_).save(str(folder))
    return str(folder)


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory) -> str:
    """A table whose files Spark lists without a job."""
    return written(spark, tmp_path_factory.mktemp("files") / "probe", "parquet")


@pytest.fixture(scope="module")
def other(spark, tmp_path_factory):
    """A table with equally many columns and another number of rows."""
    folder = str(tmp_path_factory.mktemp("other") / "rows")
    spark.range(0, 3 * ROWS, 1, 2).selectExpr("id AS k", "hash(-id) AS v", "id AS part").write.parquet(folder)
    return spark.read.parquet(folder)


@pytest.fixture
def read(spark, source):
    """A pruned read of one file of four."""
    return pruned_read(spark, source, keys={"k": [7]})


def noop(df) -> None:
    df.write.format("noop").mode("overwrite").save()


def counters(df) -> tuple[int, int, int | None]:
    """The files, rows and bytes of the latest action."""
    found = report(df).measured
    assert (found.bytes_scanned is None) == bool(found.bytes_note)
    return found.files_read, found.rows_scanned, found.bytes_scanned


def alone(df) -> int:
    """The bytes of a scan that is the only scan of its action."""
    noop(df)
    files, rows, size = counters(df)
    assert (1, ROWS) == (files, rows)
    assert size >= report(df).tables[0].planned.bytes_kept > 0
    return size


def actions(df) -> int:
    return report(df).tables[0].actions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 ms", 0.012),
        ("total (min, med, max (stageId: taskId))\n1.5 s (12 ms, 0.7 s, 0.8 s (stage 3.0: task 4))", 1.5),
        ("2.0 m", 120.0),
        ("1.25 h", 4500.0),
        ("", 0.0),
    ],
)
def test_durations_are_read_in_their_units(text, expected):
    value = SimpleNamespace(isDefined=lambda: True, get=lambda: text)
    execution = SimpleNamespace(metricValues=lambda: SimpleNamespace(get=lambda _: value))
    assert expected == measured._duration(execution, 7)
    assert measured._duration(execution, None) is None


def test_bytes_of_a_single_scan(read):
    size = alone(read)
    read.collect()
    assert (1, ROWS, size) == counters(read)
    assert 1 == read.count()
    files, rows, counted = counters(read)
    assert (1, ROWS) == (files, rows)
    # Hadoop reads ahead in a small file, so fewer columns may not mean fewer bytes.
    assert 0 < counted <= size
    assert 3 == actions(read)


def test_bytes_of_two_scans_in_one_stage_are_unknown(read, other):
    alone(read)
    noop(read.union(other))
    assert (1, ROWS, None) == counters(read)
    assert "shares its tasks" in report(read).measured.bytes_note


def test_bytes_beside_a_scan_without_rows_are_unknown(read, other):
    alone(read)
    # All row groups of the other scan are skipped; only its footers are read, which are bytes without rows.
    noop(read.union(other.where("k > 100000")))
    assert (1, ROWS, None) == counters(read)


def test_bytes_beside_a_scan_in_its_own_stage_are_exact(read, other):
    size = alone(read)
    for joined in (read.join(other.hint("broadcast"), "k"), read.join(other.hint("merge"), "k")):
        noop(joined)
        assert (1, ROWS, size) == counters(read)


def test_bytes_beside_a_scan_of_equal_row_count_are_unknown(spark, source, read):
    second = pruned_read(spark, source, keys={"k": [ROWS + 7]})
    noop(read.join(second.hint("merge"), "v", "full"))
    assert [(1, ROWS, None)] * 2 == [counters(read), counters(second)]


@contextmanager
def losing_metrics_of(spark, *stages: int):
    """Loses the metrics of stages that start, by their order from 0.

    Spark does so by itself if a stage starts while the metrics of another execution are cleaned up.
    """
    listener = status_store.sql_store(spark).listener().get()
    field = listener.getClass().getDeclaredField("stageMetrics")
    field.setAccessible(True)
    kept, lost = field.get(listener), java_names(spark).java.util.ArrayList()
    for stage in stages:
        lost.add(stage)
    field.set(listener, instance(spark, JavaFile("tests.connectors.measure", "ForgetfulMap"), lost))
    try:
        yield
        status_store.jvm_context(spark).listenerBus().waitUntilEmpty()
    finally:
        field.set(listener, kept)


LOST = "Spark has not recorded the metrics of every stage of the action"


def unknown_rows(df, files: int | None) -> bool:
    """True if the latest action of a scan has the number of files alone."""
    found = report(df)
    assert (files, None, None) == (found.measured.files_read, found.measured.rows_scanned, found.measured.bytes_scanned)
    assert LOST == found.measured.bytes_note
    assert {"rows", "bytes"} <= {line.split()[1] for line in str(found).splitlines() if " unknown " in line}
    return True


def test_rows_of_a_stage_without_metrics_are_unknown(spark, files):
    read = pruned_read(spark, files, keys={"k": [7]})
    with losing_metrics_of(spark, 0):
        noop(read)
    assert unknown_rows(read, files=1)
    noop(read)
    assert (1, ROWS) == counters(read)[:2]


def test_rows_of_a_plan_that_runs_again_without_metrics_are_unknown(spark, files):
    read = pruned_read(spark, files, keys={"k": [7]})
    read.collect()
    with losing_metrics_of(spark, 0):
        read.collect()
    assert unknown_rows(read, files=None)


@pytest.mark.parametrize("lost", [0, 1])
def test_lost_metrics_of_one_scan_leave_those_of_the_other(spark, files, lost):
    read = pruned_read(spark, files, keys={"k": [7]})
    second = pruned_read(spark, files, keys={"k": [ROWS + 7]})
    with losing_metrics_of(spark, lost):
        noop(read.join(second.hint("merge"), "v", "full"))
    rows = [report(each).measured.rows_scanned for each in (read, second)]
    assert {None, ROWS} == set(rows)
    assert [LOST] * 2 == [report(each).measured.bytes_note for each in (read, second)]


@pytest.mark.parametrize("lost", [(), (0,), (1,), (0, 1)])
def test_rows_of_a_scan_that_runs_twice_are_unknown_without_one_of_both(spark, files, lost):
    read = pruned_read(spark, files, keys={"k": [7]})
    # A sort runs the scan once for a sample.
    with losing_metrics_of(spark, *lost):
        noop(read.repartitionByRange(2, "v"))
    if lost:
        assert unknown_rows(read, files=1)
    else:
        assert (1, 2 * ROWS) == counters(read)[:2]


class Unwritten:
    """An execution that has ended, as Spark records it before the metrics."""

    def __init__(self, execution):
        self._execution = execution

    def metricValues(self):  # noqa: N802 - Spark's own name
        return None

    def __getattr__(self, name):
        return getattr(self._execution, name)


@pytest.mark.parametrize("looks", [3, None])
def test_metrics_that_are_written_late_are_awaited_or_unknown(spark, read, monkeypatch, looks):
    noop(read)
    size = counters(read)
    executions, calls = status_store._executions_from_last, []

    def late(session):
        calls.append(True)
        is_late = looks is None or len(calls) < looks
        return (Unwritten(each) if is_late else each for each in executions(session))

    monkeypatch.setattr(status_store, "_executions_from_last", late)
    limits = replace(LIMITS, report_wait_seconds=60.0 if looks else 0.0)
    found, count = measured.latest(spark, record_of(read).identity, limits)
    expected = size if looks else (None, None, None)
    assert (*expected, 1) == (found.files_read, found.rows_scanned, found.bytes_scanned, count)
    assert bool(looks) == (not found.bytes_note)
    assert looks in (None, len(calls))


def test_limit_is_measured_exactly(read):
    size = alone(read)
    assert 1 == len(read.limit(3).collect())
    files, rows, limited = counters(read)
    assert (1, ROWS) == (files, rows)
    assert 0 < limited <= size


def test_limit_that_stops_inside_a_file_is_measured(spark, tmp_path):
    folder = str(in_files(tmp_path / "long", *numbered(0, count=50_000)))
    df = pruned_read(spark, folder, keys={"id": list(range(0, 50_000, 2))})
    assert 3 == len(df.limit(3).collect())
    files, rows, size = counters(df)
    assert 1 == files
    assert 3 <= rows < 50_000
    assert size > 0


def test_self_join_has_two_scans(read):
    noop(read.alias("a").join(read.alias("b").hint("merge"), "k"))
    files, rows, size = counters(read)
    # Spark may share one scan between both sides.
    assert (1, ROWS) == (files, rows)
    assert size is None or size > 0


def test_cached_rows_are_counted_once(read):
    size = alone(read)
    cached = read.cache()
    try:
        noop(cached.union(cached))
        assert (1, ROWS) == counters(read)[:2]
        assert counters(read)[2] in (size, None)
        noop(cached)
        assert (0, 0, 0) == counters(read)
    finally:
        read.unpersist()


def test_other_scans_of_the_action_are_not_counted(spark, source, other):
    probe = spark.read.format("delta" if "delta" in source else "parquet").load(source)
    joined = probe.where("v IS NOT NULL").join(other.select("k"), "k", "left_semi")
    identity = scan_identity.identity_of(joined)
    assert 3 * ROWS == len(joined.collect())
    found, _ = measured.latest(spark, identity)
    assert (4, 4 * ROWS) == (found.files_read, found.rows_scanned)


@pytest.mark.parametrize("folder", ["rows", "rows below a folder of " + 100 * "a long name "])
def test_scan_of_count_is_found_by_its_listing(spark, tmp_path, folder):
    folder = written(spark, tmp_path / folder[:200], "parquet")
    # Without a predicate, count() needs no column.
    with conf(spark, {"spark.sql.parquet.filterPushdown": "false"}):
        whole = pruned_read(spark, folder, keys={"k": list(range(4 * ROWS))})
        read = pruned_read(spark, folder, keys={"k": list(range(2 * ROWS))})
        third = pruned_read(spark, folder, keys={"k": list(range(ROWS))})
        assert (4 * ROWS, 2 * ROWS, ROWS) == (whole.count(), read.count(), third.count())
        assert (4, 4 * ROWS, 1) == (*counters(whole)[:2], actions(whole))
        files, rows, size = counters(read)
        assert (2, 2 * ROWS, 1) == (files, rows, actions(read))
        assert size > 0
        assert (1, ROWS, 1) == (*counters(third)[:2], actions(third))
        # Two scans of the same files are not distinguished.
        assert 4 * ROWS == read.union(read).count()
        assert 1 == actions(read)


def test_each_run_of_a_plan_is_measured(read, conf):
    for name, value in CODE_GENERATION.items():
        conf(name, value)
    assert [7] == [row.k for row in read.collect()]
    first = counters(read)
    assert (1, ROWS) == first[:2]
    # Spark plans a DataFrame once and counts the files of a plan once.
    assert [7] == [row.k for row in read.collect()]
    assert (first, 2) == (counters(read), actions(read))


def test_actions_of_other_dataframes_are_not_counted(spark, source):
    spread = pruned_read(spark, source, keys={"v": list(range(100))}, options=PruningOptions(enabled=False))
    plain = spark.read.format("delta" if "delta" in source else "parquet").load(source)
    assert 4 * ROWS == plain.count() == pruned_read(spark, source, keys={"k": list(range(4 * ROWS))}).count()
    noop(plain.select())
    assert (None, 0) == (report(spread).measured, actions(spread))


def test_slow_listener_does_not_block_a_report(spark, read, monkeypatch):
    noop(read)
    size = counters(read)
    context, calls = status_store.jvm_context(spark), []

    def gives_up() -> None:
        calls.append(True)
        units = spark._jvm.java.util.concurrent.TimeUnit
        with pytest.raises(Py4JJavaError) as caught:
            spark._jvm.java.util.concurrent.CompletableFuture().get(1, units.MILLISECONDS)
        assert "TimeoutException" in str(caught.value)
        raise caught.value

    class Context:
        def listenerBus(self):  # noqa: N802 - Spark's own name
            return SimpleNamespace(waitUntilEmpty=gives_up)

        def __getattr__(self, name):
            return getattr(context, name)

    monkeypatch.setattr(status_store, "jvm_context", lambda _: Context())
    assert size == counters(read)
    assert calls


def test_failed_action_is_not_measured(read):
    noop(read)
    found = counters(read)
    with pytest.raises(Exception, match="not this one"):
        read.selectExpr("raise_error('not this one')").collect()
    assert (found, 1) == (counters(read), actions(read))


def test_other_queries_of_a_catalog_table_are_not_counted(spark, tmp_path):
    name = "measured_rows"
    spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{written(spark, tmp_path / 'rows', 'parquet')}'")
    try:
        read = pruned_read(spark, name, keys={"k": [7]})
        assert [7] == [row.k for row in read.collect()]
        assert 4 * ROWS == len(spark.table(name).collect())
        assert ((1, ROWS), 1) == (counters(read)[:2], actions(read))
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_seconds_of_scan_tasks_are_those_of_all_tasks(spark, files):
    # Spark times a scan that reads batches, for which it needs generated code.
    with conf(spark, CODE_GENERATION):
        read = pruned_read(spark, files, keys={"k": [7]})
        noop(read)
        found = report(read).measured
    assert found.vectorised
    assert 0 <= found.scan_seconds <= 60 * found.seconds
