"""Tables in an object store: both readers return the rows of the unpruned read, and no secret appears anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pruning.reasons import ReasonCode
from tests.queries.store_session import rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def found(store, tmp_path_factory) -> dict[str, Any]:
    """The observations of a session with S3 packages, shared by all tests."""
    log = tmp_path_factory.mktemp("store") / "log"
    answer: dict[str, Any] = {}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.queries.store_session"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=Path(__file__).parents[2],
        ) as process,
    ):
        process.stdin.write(json.dumps(asdict(store.access)) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            match line.split(maxsplit=1):
                case ["answer", text]:
                    answer = json.loads(text)
                case ["reset" | "counts" as message]:
                    served = (store.reset if message == "reset" else store.counts)().bytes
                    process.stdin.write(f"{served}\n")
                    process.stdin.flush()
    assert answer, log.read_text()[-3000:]
    return {**answer, "log": log.read_text()}


FORMATS = ("parquet", "delta")
# Both queries are for the rows with these keys; the second key does not change the result.
ROWS = [list(row.values()) for row in rows().to_pylist() if row["k"] in {5, 61}]


def test_both_readers_return_the_rows_of_the_keys(found):
    answers = {name: each["rows"] for name, each in found.items() if isinstance(each, dict)}
    assert dict.fromkeys(answers, ROWS) == answers
    assert len(answers) == 2 * 5 + 3


@pytest.mark.parametrize("suffix", ["", " query"])
@pytest.mark.parametrize("format_", FORMATS)
def test_pyarrow_reads_a_store_by_spark_settings(found, format_, suffix):
    """Only the needed column chunks are served, because the driver has read the footers."""
    arrow, predicate = found[f"{format_} ARROW{suffix}"], found[f"{format_} PREDICATE{suffix}"]
    assert (True, [], [2, 4, 2]) == (arrow["by arrow"], arrow["why"], arrow["files"])
    groups = 2 if suffix else 3
    assert [groups, 20, groups] == arrow["row groups"]
    scanned, served = arrow["bytes"]
    assert 0 < scanned == served < predicate["bytes"][1]


@pytest.mark.parametrize("suffix", ["", " query"])
@pytest.mark.parametrize("format_", FORMATS)
def test_spark_reader_skips_files_of_a_store(found, format_, suffix):
    predicate = found[f"{format_} PREDICATE{suffix}"]
    assert (False, [], [2, 4, 2]) == (predicate["by arrow"], predicate["why"], predicate["files"])
    assert [2 if suffix else 3, 20] == predicate["row groups"][:2]


def test_other_schemes_of_s3a_are_read_by_pyarrow(found):
    assert {**found["parquet ARROW"], "texts": ""} == {**found["s3"], "texts": ""}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("setting", "s3a://scanprune-other: {} (fs.s3a.requester.pays.enabled is set)"),
        ("option parquet", "{} (fs.s3a.connection.maximum is set)"),
        ("option delta", "{} (fs.s3a.connection.maximum is set)"),
        ("not reached", "AWS Error ACCESS_DENIED during HeadObject"),
    ],
)
def test_store_with_other_settings_keeps_spark_reader(found, name, why):
    """The cause is a setting of one bucket, a setting of one read, or an access error of pyarrow."""
    assert not found[name]["by arrow"]
    (reason,) = found[name]["why"]
    assert why.format(ReasonCode.NOT_READ_BY_ARROW.value) in reason


def test_replaced_file_of_a_store_fails_the_query(found):
    assert "it was replaced since the query was pruned" in found["replaced"]


def test_secrets_of_a_store_appear_nowhere(found, store):
    """Reasons, reports, plans, errors and the log of the session with its workers are searched."""
    shown = json.dumps(found)
    assert "fs.s3a.requester.pays.enabled" in shown
    for key in (store.access_key, store.secret_key):
        assert key not in shown
