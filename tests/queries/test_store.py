"""Tables in an object store: whoever scans them, the rows are those of the unpruned read, and no key of it shows."""

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
    """What a session that knows S3 has found, once for all tests."""
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
                case ["reset" | "counts" as asked]:
                    served = (store.reset if asked == "reset" else store.counts)().bytes
                    process.stdin.write(f"{served}\n")
                    process.stdin.flush()
    assert answer, log.read_text()[-3000:]
    return {**answer, "log": log.read_text()}


FORMATS = ("parquet", "delta")
# Whatever the second key, both queries are for the rows that have it.
ROWS = [list(row.values()) for row in rows().to_pylist() if row["k"] in {5, 61}]


def test_rows_are_those_of_the_keys_whoever_reads_a_store(found):
    answers = {name: each["rows"] for name, each in found.items() if isinstance(each, dict)}
    assert dict.fromkeys(answers, ROWS) == answers
    assert len(answers) == 2 * 5 + 3


@pytest.mark.parametrize("asked", ["", " query"])
@pytest.mark.parametrize("format_", FORMATS)
def test_pyarrow_reads_a_store_by_the_settings_of_spark(found, format_, asked):
    """Of the file's bytes just the chunks that are needed: footers are those that the driver has read."""
    arrow, predicate = found[f"{format_} ARROW{asked}"], found[f"{format_} PREDICATE{asked}"]
    assert (True, [], [2, 4, 2]) == (arrow["by arrow"], arrow["why"], arrow["files"])
    groups = 2 if asked else 3
    assert [groups, 20, groups] == arrow["row groups"]
    scanned, served = arrow["bytes"]
    assert 0 < scanned == served < predicate["bytes"][1]


@pytest.mark.parametrize("asked", ["", " query"])
@pytest.mark.parametrize("format_", FORMATS)
def test_sparks_reader_skips_files_of_a_store(found, format_, asked):
    predicate = found[f"{format_} PREDICATE{asked}"]
    assert (False, [], [2, 4, 2]) == (predicate["by arrow"], predicate["why"], predicate["files"])
    assert [2 if asked else 3, 20] == predicate["row groups"][:2]


def test_other_schemes_that_hadoop_reads_by_s3a_are_read_alike(found):
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
def test_a_store_that_is_not_surely_reached_alike_is_left_to_spark(found, name, why):
    """By a setting of one bucket, by settings of one read, and by what the store says to pyarrow."""
    assert not found[name]["by arrow"]
    (reason,) = found[name]["why"]
    assert why.format(ReasonCode.NOT_READ_BY_ARROW.value) in reason


def test_a_file_of_a_store_that_was_replaced_ends_the_query(found):
    assert "it was replaced since the query was pruned" in found["replaced"]


def test_keys_of_a_store_show_nowhere(found, store):
    """Neither in reasons and reports nor in plans, errors and the log of the session, its workers' lines among them."""
    shown = json.dumps(found)
    assert "fs.s3a.requester.pays.enabled" in shown
    for key in (store.access_key, store.secret_key):
        assert key not in shown
