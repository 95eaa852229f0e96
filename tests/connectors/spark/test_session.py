from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.spark.session import spark_session
from pruning.errors import EnvironmentProblem
from sample_data.confs import conf

pytestmark = pytest.mark.spark


def test_delta_tables_can_be_written_and_read(spark, tmp_path: Path):
    path = str(tmp_path / "a b")
    spark.range(3).write.format("delta").save(path)
    assert [(0,), (1,), (2,)] == sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())


def test_workers_use_this_python_and_the_project(spark):
    import pyarrow as pa  # noqa: PLC0415

    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import connectors  # noqa: PLC0415

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "project": [connectors.__file__]})

    rows = spark.range(1).mapInArrow(describe, "python string, project string").collect()
    root = Path(__file__).resolve().parents[3]
    assert [(sys.executable, str(root / "connectors" / "__init__.py"))] == [tuple(row) for row in rows]


def test_running_session_is_returned_with_the_new_conf(spark):
    name = "spark.sql.files.maxPartitionBytes"
    with conf(spark, {name: spark.conf.get(name)}):
        assert spark is spark_session("again", conf={name: "1234567b"})
        assert "1234567b" == spark.conf.get(name)


def test_running_session_keeps_its_other_confs(spark):
    before = spark.conf.getAll
    assert spark is spark_session("another name", master="local[7]")
    assert before == spark.conf.getAll
    assert "another name" != before["spark.app.name"]


def test_session_listens_only_on_localhost(spark):
    conf = spark.sparkContext.getConf()
    assert "127.0.0.1" == conf.get("spark.driver.host")
    assert "127.0.0.1" == conf.get("spark.driver.bindAddress")
    assert spark.sparkContext.uiWebUrl is None


START = "from connectors.spark.session import spark_session; spark_session('alone', conf={})"
START_WITH_LOG = """
import os, sys
from pathlib import Path
from connectors.spark.session import spark_session
try:
    spark_session("alone", log=Path(sys.argv[1]))
finally:
    os.write(2, b"ours\\n")
"""


def run_alone(*arguments: str, program: str = START, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        check=False,
    )


def test_missing_java_is_an_environment_problem(tmp_path: Path):
    answer = run_alone(PATH=str(tmp_path))
    last = answer.stderr.splitlines()[-1]
    assert last.startswith(f"{EnvironmentProblem.__module__}.{EnvironmentProblem.__name__}: Spark needs Java")


def dying_java(folder: Path) -> str:
    """A JAVA_HOME whose Java reports a valid version, then ends."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\necho farewell >&2\nexit 1\n")
    program.chmod(0o755)
    return str(folder)


def test_java_that_ends_is_an_environment_problem(tmp_path: Path):
    answer = run_alone(PATH="/usr/bin:/bin", JAVA_HOME=dying_java(tmp_path))
    assert "farewell" in answer.stderr
    assert answer.stderr.splitlines()[-1].startswith(
        "pruning.errors.EnvironmentProblem: Cannot start Spark for 'alone': its Java process ended"
    )


def test_log_has_only_output_of_java(tmp_path: Path):
    log = tmp_path / "a log"
    answer = run_alone(str(log), program=START_WITH_LOG, PATH="/usr/bin:/bin", JAVA_HOME=dying_java(tmp_path))
    assert "farewell" in log.read_text()
    assert "ours" not in log.read_text()
    assert "farewell" not in answer.stderr
    assert "ours" == answer.stderr.splitlines()[0]
    assert f"its Java process ended, see {str(log)!r}" in answer.stderr.splitlines()[-1]
