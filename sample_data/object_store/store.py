"""An object store that runs as long as a block does."""

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
    """Body bytes that GETs were given, and requests of every kind."""

    bytes: int
    requests: int


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a store; `endpoint` is a URL of this machine, without TLS, with the bucket in its paths."""

    endpoint: str
    access_key: str
    secret_key: str
    bucket: str = BUCKET
    region: str = REGION

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables by which programs find Amazon's store, and this one; as `of_environment()` reads it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
        }

    @staticmethod
    def of_environment() -> Access:
        """The store that this process was told of."""
        told = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        return Access(*(os.environ[name] for name in told), region=os.environ["AWS_REGION"])

    @property
    def host(self) -> str:
        """Its name and port."""
        return urlsplit(self.endpoint).netloc

    def filesystem(self) -> fs.S3FileSystem:
        """The store as pyarrow reads and writes it; paths begin with the bucket."""
        return fs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            endpoint_override=self.endpoint,
            region=self.region,
            allow_bucket_creation=True,
        )


class ObjectStore:
    """A running store: how to reach it, and what it has served."""

    def __init__(self, access: Access, process: subprocess.Popen[str]) -> None:
        self.access = access
        self._process = process

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return self.access.endpoint

    @property
    def access_key(self) -> str:
        """The name to sign with."""
        return self.access.access_key

    @property
    def secret_key(self) -> str:
        """The secret to sign with."""
        return self.access.secret_key

    @property
    def bucket(self) -> str:
        """The one bucket, which is there."""
        return self.access.bucket

    def filesystem(self) -> fs.S3FileSystem:
        """As `Access.filesystem()`."""
        return self.access.filesystem()

    def counts(self) -> Served:
        """What it has served since it began, or since it was reset."""
        return self._ask({"ask": "counts"})

    def reset(self) -> Served:
        """Lets counts begin anew; as they were."""
        return self._ask({"ask": "reset"})

    def reshape(self, shape: Shape) -> None:
        """Lets it seem nearer or further away from the next request on."""
        self._ask({"ask": "shape", "shape": shape.to_json()})

    def refuse(self, requests: int) -> int:
        """Lets it answer so many of the next requests to read by 503; how many were still to be refused."""
        return int(_asked(self._process, {"ask": "refuse", "requests": requests})["refusals"])

    def upload(self, folder: Path, key: str) -> None:
        """Puts every file below a folder under `key` in the bucket, but for hidden ones: Hadoop's checksums."""
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
    """A store with an empty bucket; its processes and files are gone when the block ends, however it does.

    `folder`: where its server is kept, the user's cache by default. Raises `EnvironmentProblem` where there is none and
    none can be built.
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
    """The process of a store and the port it listens on."""
    process = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "sample_data.object_store.server", str(program)],
        cwd=_ROOT,
        env={**os.environ, **keys},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        # Whoever interrupts this process still needs the store until the block has ended.
        start_new_session=True,
    )
    try:
        yield process, _port(process, log)
    finally:
        _end(process)


def _port(process: subprocess.Popen[str], log: IO[bytes]) -> int:
    """What it says when it listens."""
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
    """Lets it remove its files, and ends what is left of it."""
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
