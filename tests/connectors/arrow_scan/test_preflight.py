"""What the driver tries before workers scan a store, and for how long."""

from __future__ import annotations

import socket
from contextlib import contextmanager

import pytest

from connectors.arrow_scan import preflight as arrow_trial
from connectors.arrow_scan.files import FilePart, OtherFileError
from connectors.arrow_scan.preflight import check_stores
from connectors.arrow_scan.s3 import S3Access
from pruning.limits import LIMITS, Limits
from pruning.reasons import Reason, ReasonCode


class Session:
    """Stands for a Spark session, of which only the identity counts."""


PART = FilePart("s3a://lake/t.parquet", (0,), (0,), (None,))


@pytest.fixture
def silent(monkeypatch):
    """A store that takes connections and never says a word; the session that asks it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        access = S3Access("us-east-1", "http", f"127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(arrow_trial, "s3_buckets", lambda *_: {"lake": access})
        yield Session()


@contextmanager
def opened(calls, *errors):
    calls.append(None)
    if errors:
        raise errors[0]
    yield


def told(detail: str) -> Reason:
    return Reason(ReasonCode.NOT_READ_BY_ARROW, "s3a://lake", detail)


def trial(session, limits=LIMITS):
    return check_stores(session, [[PART]], [], [], is_sampled=False, limits=limits)


def test_a_store_that_does_not_answer_is_not_waited_for_and_not_asked_again(silent, monkeypatch):
    assert told("no answer in 0.2 seconds") == trial(silent, Limits(store_trial_seconds=0.2))
    monkeypatch.setattr(arrow_trial, "within", None)
    assert told("no answer in 0.2 seconds") == trial(silent)


@pytest.mark.parametrize(
    ("error", "times"), [(OSError("access  denied"), 1), (ImportError("no S3"), 1), (OtherFileError("replaced"), 3)]
)
def test_a_store_that_refuses_is_not_asked_again_but_for_another_file(silent, monkeypatch, error, times):
    calls = []
    monkeypatch.setattr(arrow_trial, "open_file", lambda *_: opened(calls, error))
    assert [told(" ".join(str(error).split()))] * 3 == [trial(silent) for _ in range(3)]
    assert times == len(calls)


def test_other_keys_are_another_access(silent, monkeypatch):
    calls, keys = [], ["one"]
    monkeypatch.setattr(
        arrow_trial, "s3_buckets", lambda *_: {"lake": S3Access("r", access_key=keys[0], secret_key=keys[0])}
    )
    monkeypatch.setattr(arrow_trial, "open_file", lambda *_: opened(calls, OSError("access denied")))
    assert told("access denied") == trial(silent)
    keys[0] = "two"
    monkeypatch.setattr(arrow_trial, "open_file", lambda *_: opened(calls))
    assert ["lake"] == [*trial(silent).stores]
    assert 2 == len(calls)


def test_a_row_group_is_looked_at_where_it_is_one_of_many(monkeypatch):
    """The one in the middle; of few row groups one more is much of the scan."""
    looked = []
    monkeypatch.setattr(arrow_trial, "s3_buckets", lambda *_: {})
    monkeypatch.setattr(arrow_trial, "sample_row_group", lambda part, *_: looked.append(part.row_groups))
    for count in (7, 8):
        tasks = [[FilePart("/t.parquet", tuple(range(count // 2)), (0,), (None,))] for _ in range(2)]
        tasks[1].append(FilePart("/u.parquet", (9,) * (count % 2), (0,), (None,)))
        assert not isinstance(check_stores(Session(), tasks, [], [], is_sampled=True), Reason)
    assert [(0,)] == looked
