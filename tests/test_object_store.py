"""Tests of the object store: counters, unchanged requests, latency and bandwidth, the build, and cleanup."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from pruning.errors import EnvironmentProblem
from sample_data import process_tree
from sample_data.object_store import gateway
from sample_data.object_store.proxy import _REFUSAL, _REFUSAL_HEAD, Proxy
from sample_data.object_store.shape import SHAPED, UNSHAPED, Shape, TokenBucket
from sample_data.object_store.store import object_store

ROOT = Path(__file__).resolve().parents[1]
KIB = 1 << 10

# Shapes.


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0, 0.5)), min_size=1, max_size=50))
def test_bytes_in_any_interval_are_limited_by_rate_and_burst(pieces):
    bucket, now, passed = TokenBucket(rate=1000.0, burst=100.0), 0.0, []
    for size, pause in pieces:
        now += pause
        passed.append((now + bucket.delay(size, now), size))
    for first, (began, _) in enumerate(passed):
        total = 0
        for at, size in passed[first + 1 :]:
            total += size
            assert total <= 1000.0 * (at - began) + 100.0 + 1e-6


def test_a_late_timer_does_not_lower_the_bandwidth():
    bucket, now = TokenBucket(rate=1000.0, burst=100.0), 0.0
    for _ in range(100):
        now += bucket.delay(100, now) + 0.05
    assert 100 * 100 / 1000.0 == pytest.approx(now, abs=0.2)


def test_a_shape_without_a_bandwidth_never_waits_and_survives_json():
    assert 0.0 == TokenBucket.of(UNSHAPED).delay(1 << 40, 0.0)
    for shape in (UNSHAPED, SHAPED):
        assert shape == Shape.of_json(shape.to_json())


# The proxy, before a server with scripted responses.

GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def reply(body, *headers, status="200 OK", length=None):
    told = len(body) if length is None else length
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {told}", *headers, "", ""]).encode() + body


def asked(method="GET", *headers):
    return "\r\n".join([f"{method} /bucket/a%20key?x=1 HTTP/1.1", "Host: 127.0.0.1:1", *headers, "", ""]).encode()


def conversation(tmp_path, exchanges, **proxy):
    """Sends the requests of `exchanges` through a proxy to a server that answers each with the paired bytes.

    Returns the proxy, the responses that the client received, the requests that the server received, and the number of
    connections to the server. The server ends its connection after a request with the header `X-Then: end`.
    """
    refused = (_REFUSAL_HEAD, _REFUSAL_HEAD + _REFUSAL)
    replies, seen, connections = iter([each for _, each in exchanges if each not in refused]), [], []

    async def serve(reader, writer):
        connections.append(writer)
        while head := await reader.readuntil(b"\r\n\r\n"):
            seen.append(head)
            if b"100-continue" in head:
                writer.write(GO_ON)
            if b"Content-Length: " in head:
                seen.append(await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])))
            elif b"chunked" in head:
                seen.append(await reader.readuntil(b"0\r\n\r\n"))
            writer.write(next(replies).removeprefix(GO_ON))
            if b"X-Then: end" in head:
                break
        writer.close()

    async def run():
        found = Proxy(str(tmp_path / "socket"), **proxy)
        if "shape" in proxy:
            found.reshape(proxy["shape"])
        server = await asyncio.start_unix_server(ignore_ends(serve), found.listens)
        listening = await asyncio.start_server(found.converse, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        got = []
        for request, answer in exchanges:
            writer.write(request)
            got.append(await asyncio.wait_for(reader.readexactly(len(answer)), 10))
            # Time for the proxy to notice the end of a connection.
            await asyncio.sleep(0.02)
        writer.close()
        # Waits until the proxy and the server have closed their connections.
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        listening.close()
        server.close()
        await asyncio.sleep(0)
        return found, got

    found, got = asyncio.run(run())
    return found, got, seen, len(connections)


def ignore_ends(serve):
    async def served(reader, writer):
        try:
            await serve(reader, writer)
        except (EOFError, OSError):
            writer.close()

    return served


@pytest.mark.parametrize(
    ("request_", "answer", "served"),
    [
        (asked(), reply(b"x" * 300_000), 300_000),
        (asked(), reply(b""), 0),
        (asked(), CHUNKED + b"5\r\nhello\r\n3;a=b\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n", 8),
        (asked("HEAD"), reply(b"", length=1000), 0),
        (asked(), b"HTTP/1.1 204 No Content\r\n\r\n", 0),
        (asked("POST", "Content-Length: 0"), reply(b"answer"), 0),
        (asked(), reply(b"no such key", status="404 Not Found"), 11),
    ],
    ids=["a length", "nothing", "chunks", "a HEAD", "no content", "a POST", "an error"],
)
def test_bodies_of_gets_are_counted_to_the_byte_and_forwarded_unchanged(tmp_path, request_, answer, served):
    found, got, _, _ = conversation(tmp_path, [(request_, answer), (asked(), reply(b"again"))])
    assert [answer, reply(b"again")] == got
    assert (served + 5, 2) == (found.served, found.requests)


def test_a_signed_request_is_forwarded_byte_for_byte(tmp_path):
    signed = asked("GET", "authorization:  AWS4-HMAC-SHA256 Signature=ab", "X-Amz-Date: 1", "Range: bytes=0-4")
    upload = asked("PUT", "Content-Length: 5") + b"\x00\xffabc"
    _, _, seen, connections = conversation(tmp_path, [(signed, reply(b"hello")), (upload, reply(b""))])
    assert signed + upload == b"".join(seen)
    assert 1 == connections


@pytest.mark.parametrize("how", ["Transfer-Encoding: chunked", "x-amz-content-sha256: STREAMING-AWS4-HMAC"])
def test_no_request_follows_an_upload_in_chunks_on_its_connection(tmp_path, how):
    """versitygw answers some requests after an upload in chunks with 400."""
    upload = asked("PUT", how) + b"3\r\nabc\r\n0\r\n\r\n"
    if "chunked" not in how:
        upload = asked("PUT", how, "Content-Length: 3") + b"abc"
    _, _, seen, connections = conversation(tmp_path, [(upload, reply(b"")), (asked(), reply(b"x"))])
    assert upload + asked() == b"".join(seen)
    assert 2 == connections


def test_an_upload_that_expects_100_continue_receives_it(tmp_path):
    upload = asked("PUT", "Expect: 100-continue", "Content-Length: 3") + b"abc"
    _, got, _, _ = conversation(tmp_path, [(upload, GO_ON + reply(b"done"))])
    assert [GO_ON + reply(b"done")] == got


def test_a_connection_that_the_server_closed_is_reopened(tmp_path):
    ended = asked("GET", "X-Then: end")
    found, got, _, connections = conversation(tmp_path, [(ended, reply(b"1")), (asked(), reply(b"2"))])
    assert [reply(b"1"), reply(b"2")] == got
    assert (2, 2) == (found.requests, connections)


def test_requests_wait_for_the_latency_and_bytes_for_the_bandwidth(tmp_path):
    clock = [0.0]
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)
        clock[0] += seconds

    shape = Shape(latency=0.5, bytes_per_second=1000.0)
    exchanges = [(asked(), reply(b"x" * 500)), (asked("HEAD"), reply(b"", length=7)), (asked(), reply(b"x" * 400))]
    conversation(tmp_path, exchanges, shape=shape, now=lambda: clock[0], sleep=sleep)
    # A burst of 10 bytes passes without delay, so the first 500 bytes wait for 0.49 s.
    assert [0.5, 0.49, 0.5, 0.5, 0.39] == pytest.approx(pauses)


def test_refused_requests_are_answered_by_503_and_do_not_reach_the_server(tmp_path):
    """Uploads are never refused, because a client may have sent a part of the body when the response arrives."""
    refusal = _REFUSAL_HEAD + _REFUSAL
    exchanges = [(asked(), refusal), (asked("HEAD"), _REFUSAL_HEAD), (asked(), reply(b"x"))]
    upload = asked("PUT", "Content-Length: 3") + b"abc", reply(b"put")
    found, got, seen, _ = conversation(tmp_path, [exchanges[0], upload, *exchanges[1:]], refusals=2)
    assert [refusal, reply(b"put"), _REFUSAL_HEAD, reply(b"x")] == got
    assert upload[0] + asked() == b"".join(seen)
    assert (1, 4, 0) == (found.served, found.requests, found.refusals)
    assert b" 503 " in _REFUSAL_HEAD
    assert f"Content-Length: {len(_REFUSAL)}\r\n".encode() in _REFUSAL_HEAD


# Building and starting the server.


def test_without_go_and_without_a_server_one_line_has_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gateway, "_USUAL_GO", str(tmp_path / "go"))
    with pytest.raises(EnvironmentProblem, match=r"^An object store needs Go once.*install it from \S+$"):
        gateway.gateway(tmp_path)
    assert "python -m sample_data.object_store" in gateway.gateway_problem(tmp_path)


def go(tmp_path, monkeypatch, script):
    """Puts a fake `go` on PATH that runs a shell script."""
    (tmp_path / "go").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "cache"


def test_a_server_is_built_once(tmp_path, monkeypatch):
    monkeypatch.setattr(gateway, "_USUAL_GO", "")
    folder = go(tmp_path, monkeypatch, f'echo "$@" >> {tmp_path}/calls; mkdir -p "$GOBIN"; touch "$GOBIN/versitygw"')
    first = gateway.gateway(folder)
    # A built server needs no Go.
    monkeypatch.setenv("PATH", "")
    assert first == gateway.gateway(folder)
    assert first.exists()
    assert gateway.gateway_problem(folder) is None
    assert 1 == len((tmp_path / "calls").read_text().splitlines())


def test_a_failed_build_is_reported_in_one_line_and_leaves_no_server(tmp_path, monkeypatch):
    folder = go(tmp_path, monkeypatch, 'mkdir -p "$GOBIN"; touch "$GOBIN/versitygw"; echo "a\nno network" >&2; exit 1')
    with pytest.raises(EnvironmentProblem, match=r"^Cannot build '\S+', which needs the network: no network$"):
        gateway.gateway(folder)
    assert gateway.gateway_problem(folder) is not None


def test_a_server_that_cannot_start_is_reported_in_one_line(tmp_path, monkeypatch):
    made = 'mkdir -p "$GOBIN"; printf "#!/bin/sh\\nexit 3" > "$GOBIN/versitygw"; chmod +x "$GOBIN/versitygw"'
    folder = go(tmp_path, monkeypatch, made)
    with (
        pytest.raises(EnvironmentProblem, match=r"^Cannot start an object store: OSError: .* ended with 3$"),
        object_store(folder=folder),
    ):
        pass


# A real store.


def folder_of(tmp_path):
    """A folder with the files of a Delta table, including a hidden checksum."""
    for name, size in (("t/a.parquet", 300 * KIB), ("t/_delta_log/0.json", 10), ("t/.a.crc", 4)):
        (tmp_path / "lake" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lake" / name).write_bytes(os.urandom(size))
    return tmp_path / "lake"


def test_a_store_serves_uploaded_files_and_counts_bytes(store, tmp_path):
    lake = folder_of(tmp_path)
    store.reset()
    store.upload(lake, "lake")
    before = store.reset()
    assert (0, True) == (before.bytes, before.requests >= 2)
    found = store.filesystem()
    names = [each.path for each in found.get_file_info(fs.FileSelector(f"{store.bucket}/lake", recursive=True))]
    assert {f"{store.bucket}/lake/t/a.parquet", f"{store.bucket}/lake/t/_delta_log/0.json"} <= {*names}
    assert not any(name.endswith(".crc") for name in names)
    store.reset()
    with found.open_input_file(f"{store.bucket}/lake/t/a.parquet") as file:
        opened = store.counts().requests
        file.seek(100)
        assert (lake / "t" / "a.parquet").read_bytes()[100:1124] == file.read(1024)
    assert (1024, opened + 1) == (store.counts().bytes, store.counts().requests)


def test_a_store_refuses_a_wrong_secret_key(store):
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        replace(store.access, secret_key=store.secret_key[::-1]).filesystem().create_dir(f"{store.bucket}/d")


def test_the_shape_of_a_running_store_can_be_reset(store):
    store.reshape(SHAPED)
    store.reshape(UNSHAPED)
    store.reset()
    store.filesystem().get_file_info(store.bucket)
    assert 1 <= store.counts().requests


def is_alive(process):
    return (
        Path("/proc", str(process), "cmdline").exists() and Path("/proc", str(process), "cmdline").read_bytes() != b""
    )


@pytest.mark.skipif(not process_tree.is_accounted(), reason="needs Linux's /proc")
@pytest.mark.parametrize("how", ["well", "by an error", "killed"])
@pytest.mark.usefixtures("store")
def test_processes_and_files_of_a_store_are_removed_when_its_block_ends(how, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ending = {"well": "pass", "by an error": "raise ValueError", "killed": "os.kill(os.getpid(), 9)"}[how]
    code = f"""if True:
        import os
        from sample_data import process_tree
        from sample_data.object_store.store import object_store
        with object_store() as store:
            print(*process_tree.below(os.getpid())[1:], flush=True)
            {ending}
    """
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    processes = found.stdout.split()
    assert 2 == len(processes), found.stderr
    until = time.monotonic() + 30
    while any(map(is_alive, processes)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_alive, processes))
    assert [] == [*tmp_path.glob("scanprune-store-*")]
