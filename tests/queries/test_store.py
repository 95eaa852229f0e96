"""Tables in an object store: pruned reads and queries have the rows of the keys, and no secret appears anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

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


def test_rows_are_those_with_the_keys(found):
    answers = {name: each["rows"] for name, each in found.items() if isinstance(each, dict)}
    assert dict.fromkeys(answers, ROWS) == answers
    assert len(answers) == 3 * len(FORMATS) + 2


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(("kind", "groups"), [("read", 3), ("query", 2), ("option", 2)])
def test_files_of_a_store_are_skipped(found, format_, kind, groups):
    """A setting of one read, the number of connections, changes nothing."""
    pruned = found[f"{format_} {kind}"]
    assert ([2, 4, 2], [groups, 20]) == (pruned["files"], pruned["row groups"])
    assert 0 < pruned["bytes"] < found[f"{format_} whole"]


def test_other_schemes_of_s3a_are_read_alike(found):
    assert {**found["parquet read"], "texts": ""} == {**found["s3"], "texts": ""}


def test_bucket_with_a_setting_of_its_own_is_pruned(found):
    setting = found["setting"]
    assert ([1, 1, 1], [3, 20]) == (setting["files"], setting["row groups"])


def test_secrets_of_a_store_appear_nowhere(found, store):
    """Reasons, reports, plans and the log of the session with its workers are searched."""
    shown = json.dumps(found)
    assert "s3a://scanprune-other/t" in shown
    for key in (store.access_key, store.secret_key):
        assert key not in shown
