"""The object store: a context manager that runs it, its access keys, and its counters."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from pyarrow import fs

from pruning.errors import EnvironmentProblem
from sample_data.object_store.gateway import gateway
from sample_data.object_store.shape import UNSHAPED, Shape

BUCKET, REGION = "scanprune", "us-east-1"
_ROOT = Path(__file__).resolve().parents[2]
_SECONDS_TO_END = 15.0
_UPLOADS = 8


@dataclass(frozen=True, slots=True)
class Served:
    """Body bytes of GET responses, and the number of requests of every kind."""

    bytes: int
    requests: int


@dataclass(frozen=True, slots=True)
class Access:
    """Access to a store; `endpoint` is a local URL without TLS, with path-style buckets."""

    endpoint: str
    access_key: str
    secret_key: str
    bucket: str = BUCKET
    region: str = REGION

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of the AWS SDK for this store, which `of_environment()` reads."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
        }

    @staticmethod
    def of_environment() -> Access:
        """The access of the environment variables of this process."""
        told = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
        endpoint, access_key, secret_key, region = (os.environ[name] for name in told)
        return Access(endpoint, access_key, secret_key, region=region)

    @property
    def host(self) -> str:
        """The host name and port of the endpoint."""
        return urlsplit(self.endpoint).netloc

    def filesystem(self) -> fs.S3FileSystem:
        """The store as a file system of pyarrow; paths begin with the bucket."""
        return fs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            endpoint_override=self.endpoint,
            region=self.region,
            allow_bucket_creation=True,
        )


class ObjectStore:
    """A running store, with its access and its counters."""

    def __init__(self, access: Access, process: subprocess.Popen[str]) -> None:
        self.access = access
        self._process = process

    @property
    def endpoint(self) -> str:
        """The URL of the store."""
        return self.access.endpoint

    @property
    def access_key(self) -> str:
        """The access key id for signatures."""
        return self.access.access_key

    @property
    def secret_key(self) -> str:
        """The secret access key for signatures."""
        return self.access.secret_key

    @property
    def bucket(self) -> str:
        """The only bucket, which exists from the start."""
        return self.access.bucket

    def filesystem(self) -> fs.S3FileSystem:
        """The store as a file system of pyarrow; see `Access.filesystem()`."""
        return self.access.filesystem()

    def counts(self) -> Served:
        """The counters since the start of the store or the last reset."""
        return self._ask({"ask": "counts"})

    def reset(self) -> Served:
        """Resets the counters; returns their values before the reset."""
        return self._ask({"ask": "reset"})

    def reshape(self, shape: Shape) -> None:
        """Sets latency and bandwidth, from the next request on."""
        self._ask({"ask": "shape", "shape": shape.to_json()})

    def refuse(self, requests: int) -> int:
        """Refuses the next `requests` GETs and HEADs by 503; returns the former number still to be refused."""
        return int(_asked(self._process, {"ask": "refuse", "requests": requests})["refusals"])

    def upload(self, folder: Path, key: str) -> None:
        """Uploads every file below a folder to `key` in the bucket, except hidden files such as Hadoop's checksums."""
        files = [each for each in sorted(folder.rglob("*")) if each.is_file() and not each.name.startswith(".")]
        target = self.filesystem()

        def put(file: Path) -> None:
            path = f"{self.bucket}/{key}/{file.relative_to(folder).as_posix()}"
            with file.open("rb") as source, target.open_output_stream(path) as sink:
                sink.upload(source)

        with ThreadPoolExecutor(_UPLOADS) as pool:
            list(pool.map(put, files))

    def _ask(self, question: Mapping[str, Any]) -> Served:
        said = _asked(self._process, question)
        return Served(said["bytes"], said["requests"])


@contextmanager
def object_store(shape: Shape = UNSHAPED, folder: Path | None = None) -> Iterator[ObjectStore]:
    """A store with an empty bucket; its processes and files are removed however the block ends.

    `folder`: the folder of the server's program, by default the user's cache. Raises `EnvironmentProblem` if there is
    no server and the build fails.
    """
    program = gateway(folder)
    keys = {"ROOT_ACCESS_KEY": secrets.token_hex(8), "ROOT_SECRET_KEY": secrets.token_hex(16)}
    with tempfile.TemporaryFile() as log, _running(program, keys, log) as (process, port):
        access = Access(f"http://127.0.0.1:{port}", keys["ROOT_ACCESS_KEY"], keys["ROOT_SECRET_KEY"])
        found = ObjectStore(access, process)
        found.filesystem().create_dir(found.bucket)
        found.reshape(shape)
        found.reset()
        yield found


@contextmanager
def _running(program: Path, keys: Mapping[str, str], log: IO[bytes]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process of a store and the port on which it listens."""
    process = subprocess.Popen(  # noqa: S603 - a module of this package
        [sys.executable, "-m", "sample_data.object_store.server", str(program)],
        cwd=_ROOT,
        env={**os.environ, **keys},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        # A new session, so that Ctrl-C does not reach the store, which is needed until the block has ended.
        start_new_session=True,
    )
    try:
        yield process, _port(process, log)
    finally:
        _end(process)


def _port(process: subprocess.Popen[str], log: IO[bytes]) -> int:
    """The port of the first line that the process prints once it listens."""
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        process.wait()
        log.seek(0)
        last = (log.read().decode(errors="replace").strip().splitlines() or ["no word of why"])[-1]
        raise EnvironmentProblem(f"Cannot start an object store: {last}")
    return int(json.loads(line)["port"])


def _asked(process: subprocess.Popen[str], question: Mapping[str, Any]) -> Mapping[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise EnvironmentProblem("Cannot ask an object store: it was started without pipes")
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    said: Mapping[str, Any] = json.loads(process.stdout.readline())
    return said


def _end(process: subprocess.Popen[str]) -> None:
    """Closes the input of the process, so that it removes its files, then kills what is left of its session."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_SECONDS_TO_END)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
