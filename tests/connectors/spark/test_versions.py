"""Missing packages and unknown versions: one line with the remedy, and unpruned rows."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.spark.versions import KNOWN, unknown_version
from pruning import PruningOptions, ReasonCode, explain, prune, pruned_read, report

ROOT = Path(__file__).resolve().parents[3]
INSTALL = "pip install 'scanprune[spark]'"

# An import hook that hides packages from imports and from `find_spec`, as if they were not installed.
HIDING = """
import sys
from importlib.machinery import PathFinder

hidden, sys.argv = sys.argv[1].split(","), ["scanprune", *sys.argv[2:]]


class Rest(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Rest
"""
CALLS = """
import scanprune
from pruning import *

calls = {
    "prune": lambda: prune(None),
    "explain": lambda: explain(None),
    "read": lambda: pruned_read(None, "sales", keys={"day": [1]}),
    "start a session": lambda: spark_session("missing"),
}
for asked, call in calls.items():
    try:
        call()
    except scanprune.EnvironmentProblem as error:
        print(asked, "|", error)
"""
COMMAND = "from connectors.cli.main import main\nmain()"


def without(packages: str, program: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDING + program, packages, *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "TERM": "dumb", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize(
    ("hidden", "found"),
    [("pyspark,py4j,delta,pandas", "found no package pyspark and no py4j"), ("py4j", "found no package py4j")],
    ids=["nothing of Spark", "the client of Connect alone"],
)
def test_missing_spark_is_a_one_line_error_with_remedy(hidden, found):
    done = without(hidden, CALLS)
    assert "" == done.stderr
    lines = [line.split(" | ") for line in done.stdout.splitlines()]
    assert ["prune", "explain", "read", "start a session"] == [action for action, _ in lines]
    for action, message in lines:
        assert message.startswith(f"Cannot {action} without Spark: {found}; {INSTALL}, or use the Python")


def test_missing_delta_spark_is_a_one_line_error_with_remedy():
    done = without("delta", "from scanprune import spark_session\nspark_session('missing')")
    expected = f"Cannot start a session without Delta Lake: found no package delta-spark; {INSTALL}"
    assert f"pruning.errors.EnvironmentProblem: {expected}" == done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments", [("run", "SELECT 1"), ("explain", "SELECT 1"), ("demo",), ("calibrate",)], ids=" ".join
)
@pytest.mark.parametrize("hidden", ["pyspark,py4j,delta,pandas", "delta"])
def test_command_without_a_package_is_a_one_line_error(tmp_path, hidden, arguments):
    done = without(hidden, COMMAND, *arguments, XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert (1, "") == (done.returncode, done.stdout)
    (line,) = done.stderr.splitlines()
    assert line.startswith("scanprune: Cannot ")
    assert INSTALL in line


def test_delta_remedy_names_a_missing_package():
    program = "from connectors.spark.session import delta_remedy\nprint(delta_remedy())"
    start = "start it by delta.configure_spark_with_delta_pip, or by pruning.spark_session"
    missing, installed = (without(hidden, program).stdout.strip() for hidden in ("delta", "nothing"))
    assert (f"{INSTALL} brings the package delta-spark, then {start}", start) == (missing, installed)


@pytest.mark.parametrize("version", ["4.2", "4.2.0", "4.2.13", "4.2.0-amzn-0", "4.2.0.dev1", "4.2.0-SNAPSHOT"])
def test_every_patch_of_a_known_version_is_known(version):
    assert unknown_version(version) is None


@pytest.mark.parametrize("version", ["4.3.0", "4.20.0", "4.1.2", "14.2.0", "3.5.8", "5.0.0", "4", "", "client"])
def test_unknown_version_is_a_reason_with_remedy(version):
    reason = unknown_version(version)
    assert ReasonCode.UNKNOWN_VERSION is reason.code
    assert f"Spark {version}" == reason.subject
    assert str(reason).endswith(f"(known: 4.2; {INSTALL} brings it)")


def test_version_of_the_extra_is_known():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert {(int(major), int(minor)) for major, minor in re.findall(r'"pyspark==(\d+)\.(\d+)\.\*"', project)} == {
        *KNOWN
    }


@pytest.fixture
def unknown(spark, monkeypatch):
    """A session of an unknown Spark version, in which every use of Spark's internals fails."""

    def changed(*_: object, **__: object) -> None:
        msg = "an internal of Spark that is another one in this version"
        raise AssertionError(msg)

    for name in (
        "delta.open.file_index",
        "delta.table.snapshot_of",
        "parquet.table.spark_files",
        "parquet.table.with_new_column_ids",
        "pipeline.pruned_query.SparkPlan.of",
        "pipeline.pruned_query.is_candidate",
        "pipeline.records.identity_of",
        "spark.jvm.java_names",
    ):
        monkeypatch.setattr(f"connectors.{name}", changed)
    version_reads = []
    monkeypatch.setattr(type(spark), "version", property(lambda _: version_reads.append(1) or "4.3.0"))
    session = spark.newSession()
    session.version_reads = version_reads
    return session


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    for format_ in ("delta", "parquet"):
        spark.range(0, 400, 1, 4).selectExpr("id", "id div 100 AS part").write.format(format_).save(
            f"{folder}/{format_}"
        )
    spark.range(400, 500).selectExpr("id", "id div 100 AS part").write.format("delta").mode("append").save(
        f"{folder}/delta"
    )
    return folder


@pytest.mark.spark
@pytest.mark.parametrize(
    ("format_", "version", "count"), [("delta", None, 500), ("delta", 0, 400), ("parquet", None, 400)]
)
def test_read_in_an_unknown_version_returns_every_row(unknown, lake, caplog, format_, version, count):
    frame = unknown.range(3, 8)
    with caplog.at_level(logging.WARNING, "scanprune"):
        reads = [pruned_read(unknown, lake / format_, keys={"id": keys}, version=version) for keys in ([3], frame)]
    assert [count, count] == [each.count() for each in reads]
    for each in reads:
        (table,) = explain(each).tables
        assert {ReasonCode.UNKNOWN_VERSION} == {reason.code for reason in table.reasons}
        assert {reason.subject for reason in table.reasons} == {"Spark 4.3.0"}
        (measured,) = report(each).tables
        assert measured.measured is None
    (warning,) = caplog.messages
    assert warning.startswith("Reading without pruning: Spark 4.3.0: scanprune does not know")
    assert [1] == unknown.version_reads


@pytest.mark.spark
def test_delta_table_in_an_unknown_version_is_pinned(unknown, spark, tmp_path):
    spark.range(5).write.format("delta").save(str(tmp_path / "t"))
    read = pruned_read(unknown, tmp_path / "t", keys={"id": [3]})
    spark.range(5, 9).write.format("delta").mode("append").save(str(tmp_path / "t"))
    assert 5 == read.count()


@pytest.mark.spark
@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_exact_read_in_an_unknown_version_returns_rows_of_keys(unknown, lake, format_):
    for keys in ([3, 4, 5, 6, 7], unknown.range(3, 8)):
        rows = pruned_read(unknown, lake / format_, keys={"id": keys}, columns=["id"], exact=True).collect()
        assert [3, 4, 5, 6, 7] == sorted(row.id for row in rows)


@pytest.mark.spark
def test_query_in_an_unknown_version_is_unchanged(unknown, lake, caplog):
    # A DataFrame may keep the record of `prune()`, so each call gets its own.
    whole, small = unknown.read.parquet(f"{lake}/parquet"), unknown.range(3, 8)
    query, *others = (whole.join(small, "id") for _ in range(4))
    with caplog.at_level(logging.WARNING, "scanprune"):
        pruned, again = prune(query), prune(others[0])
    assert (5, 5) == (pruned.count(), again.count())
    explanations = [explain(pruned), explain(others[1]), explain(others[2], run_builds=True)]
    assert [[ReasonCode.UNKNOWN_VERSION]] * 3 == [[reason.code for reason in each.reasons] for each in explanations]
    assert 1 == len(caplog.messages)
    assert [1] == unknown.version_reads


@pytest.mark.spark
def test_disabled_pruning_gives_no_version_warning(unknown, lake, caplog):
    unknown.conf.set("spark.pruning.enabled", "false")
    with caplog.at_level(logging.WARNING, "scanprune"):
        read = pruned_read(unknown, lake / "delta", keys={"id": [3]})
        query = prune(unknown.read.parquet(f"{lake}/parquet"), options=PruningOptions(enabled=False))
    assert [] == caplog.messages
    assert (500, 400) == (read.count(), query.count())
    assert ReasonCode.SWITCHED_OFF.value in str(explain(read))
