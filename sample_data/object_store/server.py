"""The process of an object store, which runs the server and the proxy until standard input ends.

The process prints `{"port": ...}`, then answers requests in lines of JSON: `{"ask": "counts"}`, `{"ask": "reset"}`,
`{"ask": "shape", "shape": {...}}` and `{"ask": "refuse", "requests": ...}`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sample_data.object_store.proxy import Proxy
from sample_data.object_store.shape import Shape

_HOST = "127.0.0.1"
_SECONDS_TO_START, _SECONDS_TO_END = 20.0, 5.0
_SECONDS_BETWEEN_LOOKS = 0.02


@contextmanager
def _gateway(program: str) -> Iterator[str]:
    """The socket of a running server over an empty folder; server and folder are removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="scanprune-store-", ignore_cleanup_errors=True) as folder:
        for name in ("objects", "attributes"):
            Path(folder, name).mkdir()
        # A Unix socket needs no free port, which another process might take first.
        listens = f"{folder}/socket"
        command = [program, "--port", listens, "--keep-alive", "--quiet"]
        # Attributes go to a folder, because not every file system has extended attributes.
        command += ["posix", "--sidecar", f"{folder}/attributes", f"{folder}/objects"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr) as server:  # noqa: S603
            try:
                _wait_for(server, listens)
                yield listens
            finally:
                server.terminate()
                try:
                    server.wait(_SECONDS_TO_END)
                except subprocess.TimeoutExpired:
                    server.kill()


def _wait_for(server: subprocess.Popen[bytes], listens: str) -> None:
    """Waits until the server listens; raises `OSError` if it does not."""
    until = time.monotonic() + _SECONDS_TO_START
    while server.poll() is None and time.monotonic() < until:
        with socket.socket(socket.AF_UNIX) as asked:
            if not asked.connect_ex(listens):
                return
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    raise OSError(f"the server does not listen; it ended with {server.poll()}")


async def _serve(proxy: Proxy) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    listening = await asyncio.start_server(proxy.converse, _HOST, 0)
    _say({"port": listening.sockets[0].getsockname()[1]})
    while line := await lines.readline():
        _say(_answer(proxy, json.loads(line)))
    # The client has gone, so open connections need not be finished.
    listening.close()


def _answer(proxy: Proxy, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The counters and the number of requests still to be refused, both from before the change."""
    found = {"bytes": proxy.served, "requests": proxy.requests, "refusals": proxy.refusals}
    match asked["ask"]:
        case "counts":
            pass
        case "reset":
            proxy.served = proxy.requests = 0
        case "shape":
            proxy.reshape(Shape.of_json(asked["shape"]))
        case "refuse":
            proxy.refusals = int(asked["requests"])
        case other:
            raise ValueError(f"there is no question {other!r}")
    return found


def _say(said: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def main(program: str) -> None:
    """Runs the server and the proxy until standard input ends."""
    with _gateway(program) as listens:
        asyncio.run(_serve(Proxy(listens)))


if __name__ == "__main__":
    main(sys.argv[1])
