"""`check_stores`: the driver's access check of an object store before workers scan it, and its time limit."""

from __future__ import annotations

import socket
from contextlib import contextmanager

import pytest

from connectors.arrow_scan import preflight
from connectors.arrow_scan.files import FilePart, OtherFileError
from connectors.arrow_scan.preflight import check_stores
from connectors.arrow_scan.s3 import S3Access
from pruning.limits import LIMITS, Limits
from pruning.reasons import Reason, ReasonCode


class Session:
    """A stand-in for a Spark session, of which only the identity matters."""


PART = FilePart("s3a://lake/t.parquet", (0,), (0,), (None,))


@pytest.fixture
def silent(monkeypatch):
    """A session whose object store accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        access = S3Access("us-east-1", "http", f"127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(preflight, "s3_buckets", lambda *_: {"lake": access})
        yield Session()


@contextmanager
def opened(calls, *errors):
    calls.append(None)
    if errors:
        raise errors[0]
    yield


def refusal(detail: str) -> Reason:
    return Reason(ReasonCode.NOT_READ_BY_ARROW, "s3a://lake", detail)


def checked(session, limits=LIMITS):
    return check_stores(session, [[PART]], [], [], is_sampled=False, limits=limits)


def test_silent_store_is_refused_and_remembered(silent, monkeypatch):
    assert refusal("no answer in 0.2 seconds") == checked(silent, Limits(store_trial_seconds=0.2))
    monkeypatch.setattr(preflight, "within", None)
    assert refusal("no answer in 0.2 seconds") == checked(silent)


@pytest.mark.parametrize(
    ("error", "times"), [(OSError("access  denied"), 1), (ImportError("no S3"), 1), (OtherFileError("replaced"), 3)]
)
def test_refusal_is_remembered_except_for_replaced_files(silent, monkeypatch, error, times):
    calls = []
    monkeypatch.setattr(preflight, "open_file", lambda *_: opened(calls, error))
    assert [refusal(" ".join(str(error).split()))] * 3 == [checked(silent) for _ in range(3)]
    assert times == len(calls)


def test_new_credentials_are_checked_again(silent, monkeypatch):
    calls, keys = [], ["one"]
    monkeypatch.setattr(
        preflight, "s3_buckets", lambda *_: {"lake": S3Access("r", access_key=keys[0], secret_key=keys[0])}
    )
    monkeypatch.setattr(preflight, "open_file", lambda *_: opened(calls, OSError("access denied")))
    assert refusal("access denied") == checked(silent)
    keys[0] = "two"
    monkeypatch.setattr(preflight, "open_file", lambda *_: opened(calls))
    assert ["lake"] == [*checked(silent).stores]
    assert 2 == len(calls)


def test_row_group_is_sampled_only_from_many(monkeypatch):
    """The middle one is sampled; of few row groups, reading one more would be much of the scan."""
    sampled = []
    monkeypatch.setattr(preflight, "s3_buckets", lambda *_: {})
    monkeypatch.setattr(preflight, "sample_row_group", lambda part, *_: sampled.append(part.row_groups))
    for count in (7, 8):
        tasks = [[FilePart("/t.parquet", tuple(range(count // 2)), (0,), (None,))] for _ in range(2)]
        tasks[1].append(FilePart("/u.parquet", (9,) * (count % 2), (0,), (None,)))
        assert not isinstance(check_stores(Session(), tasks, [], [], is_sampled=True), Reason)
    assert [(0,)] == sampled
